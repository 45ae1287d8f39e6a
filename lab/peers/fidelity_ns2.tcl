# Endless one-way TCP transfers through one queue of ns-2: `make peers-fidelity`.
#
#   ns fidelity_ns2.tcl [NAME VALUE]...
#
# Measures from `warm_up` on for `seconds` and prints, each on a line of its own: ns-2's version, the
# bits of data per second that receivers could pass on, and of the forward queue the packets that
# came, the packets that it dropped and the time average of the packets in it.

source [file join [file dirname [info script]] dumbbell.tcl]

# `discipline` is ns-2's name, `settings` a list of its options and values. Segments and windows are
# those of aqmlab's profile "ns-one-way". With `two_way` every second transfer goes the other way.
array set p [options {
    seconds 10 warm_up 10 seed 1 flows 4 rate 1544000 queue 39 shortest 0.084 longest 0.124
    start_within 1 segment 460 window 92000 initial_window 2 tick 0.01 rto_initial 3 rto_min 0.2
    rto_max 60 limited_transmit 0 sack 0 ecn 0 two_way 0 discipline DropTail settings {}
} $argv]

set ns [new Simulator]
ns-random $p(seed)
# The first numbers of neighbouring seeds are alike.
for {set skipped 0} {$skipped < 1000} {incr skipped} {
    ns-random
}
foreach {name value} $p(settings) {
    Queue/$p(discipline) set $name $value
}
set_tcp $p(segment) $p(window) $p(initial_window)
foreach {name value} [list minrto_ $p(rto_min) maxrto_ $p(rto_max) rtxcur_init_ $p(rto_initial) \
    tcpTick_ $p(tick) ecn_ $p(ecn) singledup_ $p(limited_transmit) overhead_ 0] {
    Agent/TCP set $name $value
}
# As in aqmlab, half of the delay lies on either side: it matters where transfers go both ways.
array set monitors [dumbbell $ns $p(rate) $p(queue) $p(shortest) $p(longest) \
    $p(discipline) $p(flows) 0.5]

lassign [expr {$p(sack) ? {Sack1 TCPSink/Sack1} : {Reno TCPSink}}] sender_kind receiver_kind
set senders {}
for {set flow 0} {$flow < $p(flows)} {incr flow} {
    set sender [new Agent/TCP/$sender_kind]
    set receiver [new Agent/$receiver_kind]
    if {$p(two_way) && $flow % 2} {
        $ns attach-agent $client($flow) $sender
        $ns attach-agent $server($flow) $receiver
    } else {
        $ns attach-agent $server($flow) $sender
        $ns attach-agent $client($flow) $receiver
    }
    $ns connect $sender $receiver
    set transfer [new Application/FTP]
    $transfer attach-agent $sender
    $ns at [expr {[ns-random] / 2147483647.0 * $p(start_within)}] "$transfer start"
    lappend senders $sender
}

# Segments acknowledged in order, arrivals, drops, and packets in the queue times seconds, so far.
proc counts {} {
    global ns monitors senders
    set acknowledged 0
    foreach sender $senders {
        incr acknowledged [$sender set ack_]
    }
    set monitor $monitors(forward)
    set integral [$monitor get-pkts-integrator]
    $integral newpoint [$ns now] [$monitor set pkts_]
    return [list $acknowledged [$monitor set parrivals_] [$monitor set pdrops_] [$integral set sum_]]
}

proc finish {} {
    global p before
    foreach later [counts] earlier $before {
        lappend differences [expr {$later - $earlier}]
    }
    lassign $differences acknowledged arrived dropped integral
    puts "version [ns-version]"
    puts "goodput_bps [expr {$acknowledged * $p(segment) * 8.0 / $p(seconds)}]"
    puts "arrived_packets [format %.0f $arrived]"
    puts "dropped_packets [format %.0f $dropped]"
    puts "queue_mean_packets [expr {$integral / $p(seconds)}]"
    exit 0
}

$ns at $p(warm_up) {set before [counts]}
$ns at [expr {$p(warm_up) + $p(seconds)}] finish
$ns run
