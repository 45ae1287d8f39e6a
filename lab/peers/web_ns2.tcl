# The scenario web-100mbit for ns-2: Poisson arrivals of connections with one request and one
# response each, half of them each way, over two-way TCP (Full-TCP) with PackMime as application.
# PackMime gets the scenario's arrivals and sizes instead of its own distributions.

source [file join [file dirname [info script]] dumbbell.tcl]

array set p [options {
    seconds 10 seed 1 connections 1940 request 400 sizes "" rate 100Mb queue 240
    shortest 0.01 longest 0.15 segment 1460 window 65535 initial_window 3
} $argv]

proc constant {value} {
    set variable [new RandomVariable/Constant]
    $variable set val_ $value
    return $variable
}

# `connections` per second with servers at `servers` and clients at `clients`.
proc web {servers clients connections request sizes seed} {
    upvar $servers server $clients client
    set web [new PackMimeHTTP]
    for {set i 0} {$i < [array size server]} {incr i} {
        $web set-server $server($i)
        $web set-client $client($i)
    }
    set gaps [new RandomVariable/Exponential]
    $gaps set avg_ [expr {1.0 / $connections}]
    set responses [new RandomVariable/Empirical]
    $responses loadCDF $sizes
    $responses set interpolation_ 1
    foreach variable [list $gaps $responses] {
        set random [new RNG]
        $random seed [incr seed 100]
        $variable use-rng $random
    }
    $web set-TCP Reno
    $web set-rate $connections
    $web set-flow_arrive $gaps
    $web set-req_size [constant $request]
    $web set-rsp_size $responses
    $web set-server_delay [constant 0]
    return $web
}

set ns [new Simulator]
$ns use-scheduler Calendar
set_tcp $p(segment) $p(window) $p(initial_window)
set monitors [dumbbell $ns $p(rate) $p(queue) $p(shortest) $p(longest)]
set each_way [expr {$p(connections) / 2.0}]
foreach {servers clients} {server client client server} {
    set web [web $servers $clients $each_way $p(request) $p(sizes) [incr p(seed)]]
    $ns at 0 "$web start"
}

run_and_report $ns $p(seconds) $monitors
