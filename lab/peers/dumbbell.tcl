# What the ns-2 programs share: options, a dumbbell of hosts on each side, the count.
# No trace is written. Packets are counted by the queue monitors of the bottleneck.

# Options are pairs "name value" on the command line; every one of `defaults` must be a number or
# a word that the program knows.
proc options {defaults arguments} {
    array set values $defaults
    foreach {name value} $arguments {
        if {![info exists values($name)]} {
            puts stderr "unknown option $name; known: [lsort [array names values]]"
            exit 2
        }
        set values($name) $value
    }
    return [array get values]
}

# TCP of both programs: Reno with the windows, timers and delayed ACKs of aqmlab's profile "rfc".
# Windows are in segments here.
proc set_tcp {segment window initial_window} {
    Agent/TCP set packetSize_ $segment
    Agent/TCP set window_ [expr {$window / $segment}]
    Agent/TCP set windowInit_ $initial_window
    Agent/TCP set minrto_ 1
    Agent/TCP set tcpTick_ 0.001
    Agent/TCPSink/DelAck set interval_ 0.2
    Agent/TCP/FullTcp set segsize_ $segment
    Agent/TCP/FullTcp set segsperack_ 2
    Agent/TCP/FullTcp set interval_ 0.2
}

# Sets server(i) and client(i) in the caller; round-trip times go evenly over the range. The
# bottleneck has no delay of its own: it lies on the servers' links but for `at_clients`, a share of
# it. `kind` is ns-2's name of the discipline of both directions of the bottleneck, `hosts` their
# number on each side.
proc dumbbell {ns rate queue shortest longest {kind DropTail} {hosts 10} {at_clients 0}} {
    upvar server server client client
    set left [$ns node]
    set right [$ns node]
    $ns duplex-link $left $right $rate 0 $kind
    $ns queue-limit $left $right $queue
    $ns queue-limit $right $left $queue
    for {set i 0} {$i < $hosts} {incr i} {
        set rtt [expr {$shortest + ($longest - $shortest) * ($i + 0.5) / $hosts}]
        set server($i) [$ns node]
        set client($i) [$ns node]
        $ns duplex-link $server($i) $left 10Gb [expr {$rtt / 2 * (1 - $at_clients)}] DropTail
        $ns duplex-link $client($i) $right 10Gb [expr {$rtt / 2 * $at_clients}] DropTail
        foreach {a b} [list $server($i) $left $client($i) $right] {
            $ns queue-limit $a $b 10000
            $ns queue-limit $b $a 10000
        }
    }
    set monitors {}
    foreach {direction a b} [list forward $left $right reverse $right $left] {
        lappend monitors $direction [$ns monitor-queue $a $b ""]
    }
    return $monitors
}

# Runs for `seconds`, then prints for each direction: packets that came to the queue, packets that it
# dropped, bytes that left it.
proc run_and_report {ns seconds monitors} {
    $ns at $seconds "report {$monitors}"
    $ns run
}

proc report {monitors} {
    foreach {direction monitor} $monitors {
        puts "$direction [format "%.0f %.0f %.0f" [$monitor set parrivals_] \
            [$monitor set pdrops_] [$monitor set bdepartures_]]"
    }
    exit 0
}
