# Exchanges of a list over two-way TCP (Full-TCP) of ns-2, through one queue each way.
#
#   ns responses_ns2.tcl [NAME VALUE]...
#
# `list` begins with a line of round-trip times in seconds, one for each pair of hosts; each further
# line is an exchange: when it begins, the side of its server (L or R), its pair of hosts, bytes of
# request and response. `responses` gets a line for each that has ended: when it began, how long it
# took, bytes of the response. Prints for each direction, from `warm_up` on for `seconds`, packets
# that came to the queue, that it dropped, and the time average of the packets in it.

source [file join [file dirname [info script]] dumbbell.tcl]

# Segments, windows and timers are those of aqmlab's profile "ns-full-tcp".
array set p [options {
    seconds 180 warm_up 20 seed 1 list "" responses "" rate 10Mb queue 149 segment 1420 window 74
    initial_window 2 tick 0.01 rto_initial 6 rto_min 1 kind Reno ecn 0 discipline DropTail settings {}
} $argv]

set ns [new Simulator]
$ns use-scheduler Calendar
ns-random $p(seed)
# The first numbers of neighbouring seeds are alike.
for {set skipped 0} {$skipped < 1000} {incr skipped} {
    ns-random
}
foreach {name value} $p(settings) {
    Queue/$p(discipline) set $name $value
}
foreach {name value} [list packetSize_ $p(segment) window_ $p(window) \
    windowInit_ $p(initial_window) minrto_ $p(rto_min) rtxcur_init_ $p(rto_initial) \
    tcpTick_ $p(tick) ecn_ $p(ecn)] {
    Agent/TCP set $name $value
}
Agent/TCP/FullTcp set segsize_ $p(segment)
Agent/TCP/FullTcp set segsperack_ 1
set agent [expr {$p(kind) eq "Reno" ? "Agent/TCP/FullTcp" : "Agent/TCP/FullTcp/$p(kind)"}]

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $p(rate) 0 $p(discipline)
$ns queue-limit $left $right $p(queue)
$ns queue-limit $right $left $p(queue)
set monitors [list [$ns monitor-queue $left $right ""] [$ns monitor-queue $right $left ""]]

set list [open $p(list)]
set hosts 0
foreach rtt [gets $list] {
    foreach {side router} [list L $left R $right] {
        set node($side,$hosts) [$ns node]
        $ns duplex-link $node($side,$hosts) $router 10Gb [expr {$rtt / 4}] DropTail
        $ns queue-limit $node($side,$hosts) $router 10000
        $ns queue-limit $router $node($side,$hosts) 10000
        set free($side,$hosts) {}
    }
    incr hosts
}

# Client and server with their applications; those of a connection that ended 10 s ago serve again.
proc ends {side host} {
    global ns node free agent
    lassign [lindex $free($side,$host) 0] used ended
    if {$used ne "" && $ended < [$ns now] - 10} {
        set free($side,$host) [lrange $free($side,$host) 1 end]
        return $used
    }
    set client [new $agent]
    set server [new $agent]
    $ns attach-agent $node([expr {$side eq "L" ? "R" : "L"}],$host) $client
    $ns attach-agent $node($side,$host) $server
    $ns connect $client $server
    set asks [new Application/TcpApp $client]
    set answers [new Application/TcpApp $server]
    $asks connect $answers
    return [list $client $server $asks $answers]
}

proc begin {start side host request response} {
    global open begun
    set both [ends $side $host]
    lassign $both client server asks answers
    set id [incr begun]
    set open($id) 2
    foreach end [list $client $server] {
        $end reset
        $end proc done {} "ended $id $side $host {$both}"
    }
    $server set close_on_empty_ false
    $server listen
    $asks send $request "answer $server $answers $start $response"
}

proc answer {server answers start response} {
    $server set close_on_empty_ true
    $answers send $response "got $start $response"
}

proc got {start response} {
    global ns output
    puts $output "$start [expr {[$ns now] - $start}] $response"
}

# Of both ends.
proc ended {id side host both} {
    global ns open free
    if {[incr open($id) -1] == 0} {
        unset open($id)
        lappend free($side,$host) [list $both [$ns now]]
    }
}

proc next {} {
    global ns list
    if {[gets $list line] >= 0} {
        lassign $line start side host request response
        $ns at $start "begin $line; next"
    }
}

# Arrivals, drops, and packets in the queue times seconds, so far, of both directions.
proc counts {} {
    global ns monitors
    set all {}
    foreach monitor $monitors {
        set integral [$monitor get-pkts-integrator]
        $integral newpoint [$ns now] [$monitor set pkts_]
        lappend all [$monitor set parrivals_] [$monitor set pdrops_] [$integral set sum_]
    }
    return $all
}

proc finish {} {
    global p before output
    foreach later [counts] earlier $before {
        lappend differences [expr {$later - $earlier}]
    }
    foreach {arrived dropped integral} $differences {
        puts "[format "%.0f %.0f" $arrived $dropped] [expr {$integral / $p(seconds)}]"
    }
    close $output
    exit 0
}

set begun 0
set output [open $p(responses) w]
next
$ns at $p(warm_up) {set before [counts]}
$ns at [expr {$p(warm_up) + $p(seconds)}] finish
$ns run
