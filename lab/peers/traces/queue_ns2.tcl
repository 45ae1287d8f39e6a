# One queue of ns-2 in front of a link of 10 Mbit/s, fed with the packets of a list.
#
#   ns queue_ns2.tcl KIND SETTINGS VARIABLE ARRIVALS SEED OUTPUT
#
# KIND is a queue of ns-2, SETTINGS a list of its options and values, VARIABLE one of its variables
# ("-": none). ARRIVALS has a line "time flow size" for each packet. OUTPUT gets ns-2's own trace of
# the queue (+ arrives, - leaves, d is dropped) and 1 ms before each
# tenth of a second a line "v time value".
lassign $argv kind settings variable arrivals seed output

set ns [new Simulator]
ns-random $seed
# The first numbers of neighbouring seeds are alike.
for {set skipped 0} {$skipped < 1000} {incr skipped} {
    ns-random
}
set left [$ns node]
set right [$ns node]
foreach {name value} $settings {
    Queue/$kind set $name $value
}
set trace [open $output w]
$ns simplex-link $left $right 10Mb 0 $kind
$ns trace-queue $left $right $trace
set queue [[$ns link $left $right] queue]

Agent/UDP set packetSize_ 1500
set sink [new Agent/Null]
$ns attach-agent $right $sink
for {set flow 0} {$flow < 10} {incr flow} {
    set sender($flow) [new Agent/UDP]
    $sender($flow) set fid_ $flow
    $ns attach-agent $left $sender($flow)
    $ns connect $sender($flow) $sink
}

set list [open $arrivals]
while {[gets $list line] >= 0} {
    lassign $line time flow size
    $ns at $time "$sender($flow) send $size"
}
close $list

proc sample {} {
    global ns queue variable trace
    set now [$ns now]
    puts $trace "v $now [$queue set $variable]"
}
if {$variable ne "-"} {
    for {set step 1} {$step * 0.1 <= $time} {incr step} {
        $ns at [expr {$step * 0.1 - 0.001}] sample
    }
}
$ns at [expr {$time + 10}] {
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
