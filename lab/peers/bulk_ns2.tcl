# The scenario bulk-50 for ns-2: endless one-way TCP transfers through one drop-tail queue.
# One-way TCP is the cheapest that ns-2 has: no handshake, whole packets, ACKs without data.

source [file join [file dirname [info script]] dumbbell.tcl]

array set p [options {
    seconds 10 seed 1 flows 50 rate 100Mb queue 240 shortest 0.01 longest 0.15 start_within 1
    segment 1460 window 65535 initial_window 3
} $argv]

set ns [new Simulator]
$ns use-scheduler Calendar
set_tcp $p(segment) $p(window) $p(initial_window)
set monitors [dumbbell $ns $p(rate) $p(queue) $p(shortest) $p(longest)]

set random [new RNG]
$random seed $p(seed)
for {set flow 0} {$flow < $p(flows)} {incr flow} {
    set host [expr {$flow % [array size server]}]
    set sender [new Agent/TCP/Reno]
    set receiver [new Agent/TCPSink/DelAck]
    $ns attach-agent $server($host) $sender
    $ns attach-agent $client($host) $receiver
    $ns connect $sender $receiver
    set transfer [new Application/FTP]
    $transfer attach-agent $sender
    $ns at [$random uniform 0 $p(start_within)] "$transfer start"
}

run_and_report $ns $p(seconds) $monitors
