# One response over two-way TCP (Full-TCP) of ns-2, with packets of the server dropped or marked.
#
#   ns full_tcp_ns2.tcl KIND BYTES ECN NUMBERS TRACE
#
# KIND is Reno or Sack, BYTES the size of the response. NUMBERS counts the server's packets from 1,
# the SYN-ACK: those listed are dropped, or marked with ECN 1. TRACE gets ns-2's own trace, with the
# headers of TCP: node 0 is the client, node 1 the server.
lassign $argv kind bytes ecn numbers trace

Trace set show_tcphdr_ 1
set ns [new Simulator]
foreach {name value} [list packetSize_ 1420 window_ 74 windowInit_ 2 minrto_ 1 rtxcur_init_ 6 \
    tcpTick_ 0.01 ecn_ $ecn] {
    Agent/TCP set $name $value
}
Agent/TCP/FullTcp set segsize_ 1420
Agent/TCP/FullTcp set segsperack_ 1

set output [open $trace w]
$ns trace-all $output
set client_host [$ns node]
set server_host [$ns node]
$ns duplex-link $client_host $server_host 100Mb 50ms DropTail
set errors [new ErrorModel/List]
$errors set markecn_ $ecn
$errors droplist $numbers
$errors drop-target [new Agent/Null]
$ns lossmodel $errors $server_host $client_host

set class [expr {$kind eq "Reno" ? "Agent/TCP/FullTcp" : "Agent/TCP/FullTcp/$kind"}]
set client [new $class]
set server [new $class]
$ns attach-agent $client_host $client
$ns attach-agent $server_host $server
$ns connect $client $server
$server listen
set asks [new Application/TcpApp $client]
set answers [new Application/TcpApp $server]
$asks connect $answers

proc answer {} {
    global answers server bytes
    $server set close_on_empty_ true
    $answers send $bytes ended
}

proc ended {} {
}

proc finish {} {
    global ns output
    $ns flush-trace
    close $output
    exit 0
}

$ns at 1 "$asks send 400 answer"
$ns at 60 finish
$ns run
