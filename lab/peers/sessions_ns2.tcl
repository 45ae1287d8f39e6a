# Web sessions and endless transfers over one-way TCP of ns-2, through one queue each way.
#
#   ns sessions_ns2.tcl [NAME VALUE]...
#
# `ftp` endless transfers and `web` sessions send forward, `reverse` endless transfers against them.
# A session sends a transfer, thinks from the last ACK on, and sends the next. `connections` says
# over what: `new` agents, the same ones after their command `reset`, or the same ones as they are,
# `kept`. One-way TCP has no requests; the last ACK takes the time that a request would.
#
# Measures from `warm_up` on for `seconds` and prints, each on a line of its own: ns-2's version; the
# mean rate of the Web transfers that ended; bits of data per second that receivers could pass on,
# segments with data that a queue dropped and time-outs of each class; of the forward queue the
# packets that came, those that it dropped and the time average of the packets in it.

source [file join [file dirname [info script]] dumbbell.tcl]

# `discipline` is ns-2's name, `settings` a list of its options and values; `agents` are further
# options of Agent/TCP. Windows and timers are those of aqmlab's profile "ns-one-way".
array set p [options {
    seconds 150 warm_up 50 seed 1 ftp 5 web 10 reverse 0 connections new transfer 30000 think_min 1
    think_max 3 start_within 3 rate 1544000 delay 0.05 hosts 10 host_rate 10000000 rtt 0.104
    queue 40 segment 460 window 92000 initial_window 1 tick 0.1 rto_initial 6 rto_min 0.2 rto_max 64
    send_delay 0.00259 sack 0 ecn 0 discipline DropTail settings {} agents {}
} $argv]

set ns [new Simulator]
$ns use-scheduler Calendar
ns-random $p(seed)
# The first numbers of neighbouring seeds are alike.
for {set skipped 0} {$skipped < 1000} {incr skipped} {
    ns-random
}
proc uniform {low high} {
    return [expr {$low + [ns-random] / 2147483647.0 * ($high - $low)}]
}

foreach {name value} $p(settings) {
    Queue/$p(discipline) set $name $value
}
# As ns was in 2000: no SYN, no limited transmit, and duplicate ACKs that may not start a fast
# retransmit inflate the window all the same.
foreach {name value} [concat [list packetSize_ $p(segment) \
    window_ [expr {$p(window) / $p(segment)}] windowInit_ $p(initial_window) tcpTick_ $p(tick) \
    rtxcur_init_ $p(rto_initial) minrto_ $p(rto_min) maxrto_ $p(rto_max) \
    overhead_ $p(send_delay) ecn_ $p(ecn) syn_ false delay_growth_ false singledup_ 0 \
    exitFastRetrans_ false bugfix_ss_ 0] $p(agents)] {
    Agent/TCP set $name $value
}

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $p(rate) $p(delay) $p(discipline)
$ns queue-limit $left $right $p(queue)
$ns queue-limit $right $left $p(queue)
for {set i 0} {$i < $p(hosts)} {incr i} {
    foreach {side router} [list server $left client $right] {
        set node($side,$i) [$ns node]
        $ns duplex-link $node($side,$i) $router $p(host_rate) \
            [expr {($p(rtt) / 2 - $p(delay)) / 2}] DropTail
        $ns queue-limit $node($side,$i) $router 10000
        $ns queue-limit $router $node($side,$i) 10000
    }
}
# They tell flows apart by `fid_`, here the number of the class; ACKs have that of their data.
array set number {ftp 1 web 2 reverse 3}
array set way {ftp forward web forward reverse reverse}
foreach {direction a b} [list forward $left $right reverse $right $left] {
    set monitors($direction) [$ns makeflowmon Fid]
    $ns attach-fmon [$ns link $a $b] $monitors($direction)
    $monitors($direction) set-pkts-integrator [new Integrator]
}

# A sender of a class and its receiver, the newest of this index.
proc connection {class index} {
    global ns p node number pairs
    lassign [expr {$p(sack) ? {Sack1 TCPSink/Sack1} : {Reno TCPSink}}] sender_kind receiver_kind
    set sender [new Agent/TCP/$sender_kind]
    set receiver [new Agent/$receiver_kind]
    set host [expr {$index % $p(hosts)}]
    lassign [expr {$class eq "reverse" ? {client server} : {server client}}] from to
    $ns attach-agent $node($from,$host) $sender
    $ns attach-agent $node($to,$host) $receiver
    $ns connect $sender $receiver
    $sender set fid_ $number($class)
    return [set pairs($class,$index) [list $sender $receiver]]
}

# `ended`: segments acknowledged and time-outs of the class's earlier connections.
foreach class {ftp web reverse} {
    set ended($class) {0 0}
    for {set index 0} {$index < $p($class)} {incr index} {
        if {$class eq "web"} {
            $ns at [uniform 0 $p(start_within)] "begin $index"
        } else {
            set transfer [new Application/FTP]
            $transfer attach-agent [lindex [connection $class $index] 0]
            $ns at [uniform 0 $p(start_within)] "$transfer start"
        }
    }
}

# What a sender has had acknowledged, in segments, and its time-outs.
proc so_far {sender} {
    # -1 before the first ACK
    return [list [expr {[$sender set ack_] + 1}] [$sender set nrexmit_]]
}

proc begin {index} {
    global ns p pairs begun ended
    if {![info exists pairs(web,$index)]} {
        connection web $index
    } elseif {$p(connections) ne "kept"} {
        lassign $pairs(web,$index) sender receiver
        set ended(web) [sum $ended(web) [so_far $sender]]
        # Its timer stops, too.
        $sender reset
        if {$p(connections) eq "new"} {
            connection web $index
        } else {
            $receiver reset
        }
    }
    set begun($index) [$ns now]
    set sender [lindex $pairs(web,$index) 0]
    $sender proc done {} "arrived $index"
    $sender advanceby [expr {int(ceil(double($p(transfer)) / $p(segment)))}]
}

proc arrived {index} {
    global ns p begun rates
    set now [$ns now]
    lappend rates [expr {8.0 * $p(transfer) / ($now - $begun($index))}]
    $ns at [expr {$now + [uniform $p(think_min) $p(think_max)]}] "begin $index"
}

proc sum {some others} {
    set sums {}
    foreach a $some b $others {
        lappend sums [expr {$a + $b}]
    }
    return $sums
}

# So far: of each class segments acknowledged, dropped and time-outs; of the forward queue arrivals,
# drops, and packets in it times seconds.
proc counts {} {
    global ns monitors pairs ended number way
    set all {}
    foreach class {ftp web reverse} {
        set own $ended($class)
        foreach {name pair} [array get pairs $class,*] {
            set own [sum $own [so_far [lindex $pair 0]]]
        }
        set dropped 0
        foreach flow [$monitors($way($class)) flows] {
            if {[$flow set flowid_] == $number($class)} {
                set dropped [expr {$dropped + [$flow set pdrops_]}]
            }
        }
        lappend all [lindex $own 0] $dropped [lindex $own 1]
    }
    set monitor $monitors(forward)
    set integral [$monitor get-pkts-integrator]
    $integral newpoint [$ns now] [$monitor set pkts_]
    return [concat $all [$monitor set parrivals_] [$monitor set pdrops_] [$integral set sum_]]
}

proc finish {} {
    global p before rates
    foreach later [counts] earlier $before {
        lappend differences [expr {$later - $earlier}]
    }
    puts "version [ns-version]"
    puts "web_transfers [llength $rates]"
    if {[llength $rates]} {
        puts "web_rate_bps [expr "([join $rates +]) / [llength $rates]"]"
    }
    set names {acknowledged dropped timeouts}
    foreach class {ftp web reverse} {
        foreach name $names value [lrange $differences 0 2] {
            set $name $value
        }
        set differences [lrange $differences 3 end]
        puts "${class}_goodput_bps [expr {$acknowledged * $p(segment) * 8.0 / $p(seconds)}]"
        puts "${class}_dropped_segments [format %.0f $dropped]"
        puts "${class}_timeouts $timeouts"
    }
    lassign $differences arrived dropped integral
    puts "arrived_packets [format %.0f $arrived]"
    puts "dropped_packets [format %.0f $dropped]"
    puts "queue_mean_packets [expr {$integral / $p(seconds)}]"
    exit 0
}

proc start_measuring {} {
    global before rates
    set before [counts]
    set rates {}
}

set rates {}
$ns at $p(warm_up) start_measuring
$ns at [expr {$p(warm_up) + $p(seconds)}] finish
$ns run
