// The scenario bulk-50 for ns-3: endless TCP transfers through one drop-tail queue.
//
// Ten hosts on each side, because ns-3's routers search all their interfaces for every packet: a
// host for each flow would charge ns-3 for a topology that the comparison does not need. The
// bottleneck's queue is the device's own, and no link has a queue disc above it: without flow control
// ns-3 installs none, and drops happen and are counted at the device.
// Nothing is traced: the counters printed at the end are kept by the queues in any case.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <iostream>
#include <string>

using namespace ns3;

namespace
{

struct Parameters
{
    double seconds = 10;
    uint32_t seed = 1;
    uint32_t flows = 50;
    uint32_t hosts = 10;       // on each side
    std::string rate = "100Mbps";
    std::string accessRate = "10Gbps";
    uint32_t queue = 240;      // packets
    double shortest = 0.010;   // round-trip times, seconds
    double longest = 0.150;
    double startWithin = 1;    // seconds
    uint32_t segment = 1460;   // bytes of data
    uint32_t window = 65535;   // bytes
    uint32_t initialWindow = 3; // segments
};

void
SetTcp(const Parameters& p)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(p.segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(p.initialWindow));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(p.window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(p.window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
}

NetDeviceContainer
Connect(const Ptr<Node>& a,
        const Ptr<Node>& b,
        const std::string& rate,
        Time delay,
        uint32_t queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    link.DisableFlowControl();
    return link.Install(a, b);
}

Ipv4InterfaceContainer
Address(const NetDeviceContainer& devices, const std::string& network)
{
    Ipv4AddressHelper addresses;
    addresses.SetBase(network.c_str(), "255.255.255.0");
    return addresses.Assign(devices);
}

// Packets that came to the queue, packets that it dropped, bytes that it admitted.
void
Report(const std::string& direction, const Ptr<NetDevice>& device)
{
    const auto queue = DynamicCast<PointToPointNetDevice>(device)->GetQueue();
    const uint64_t dropped = queue->GetTotalDroppedPacketsBeforeEnqueue();
    const uint64_t arrived = queue->GetTotalReceivedPackets() + dropped;
    std::cout << direction << ' ' << arrived << ' ' << dropped << ' '
              << queue->GetTotalReceivedBytes() << '\n';
}

void
Run(const Parameters& p)
{
    RngSeedManager::SetSeed(p.seed);
    SetTcp(p);

    NodeContainer routers(2);
    NodeContainer clients(p.hosts);
    NodeContainer servers(p.hosts);
    // Static routes are the cheapest that ns-3 has: one for each network, no shared table.
    Ipv4StaticRoutingHelper routing;
    InternetStackHelper internet;
    internet.SetRoutingHelper(routing);
    internet.SetIpv6StackInstall(false);
    internet.Install(NodeContainer(routers, clients, servers));

    // The first link, so that it is interface 1 of both routers.
    const NetDeviceContainer bottleneck =
        Connect(routers.Get(0), routers.Get(1), p.rate, Seconds(0), p.queue);
    const Ipv4InterfaceContainer middle = Address(bottleneck, "10.0.0.0");
    const Ipv4Mask side("255.255.0.0");
    routing.GetStaticRouting(routers.Get(0)->GetObject<Ipv4>())
        ->AddNetworkRouteTo("10.2.0.0", side, middle.GetAddress(1), 1);
    routing.GetStaticRouting(routers.Get(1)->GetObject<Ipv4>())
        ->AddNetworkRouteTo("10.1.0.0", side, middle.GetAddress(0), 1);

    std::vector<Ipv4Address> clientAddresses;
    for (uint32_t host = 0; host < p.hosts; ++host)
    {
        // Round-trip times evenly over the range; all of the delay on the server's link.
        const double rtt = p.shortest + (p.longest - p.shortest) * (host + 0.5) / p.hosts;
        const auto join = [&](const Ptr<Node>& node, uint32_t router, Time delay) {
            const NetDeviceContainer devices =
                Connect(node, routers.Get(router), p.accessRate, delay, 10000);
            const std::string network =
                "10." + std::to_string(router + 1) + "." + std::to_string(host) + ".0";
            const Ipv4InterfaceContainer interfaces = Address(devices, network);
            routing.GetStaticRouting(node->GetObject<Ipv4>())
                ->SetDefaultRoute(interfaces.GetAddress(1), 1);
            return interfaces.GetAddress(0);
        };
        join(servers.Get(host), 0, Seconds(rtt / 2));
        clientAddresses.push_back(join(clients.Get(host), 1, Seconds(0)));
    }

    const uint16_t port = 80;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sink.Install(clients);
    const Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t flow = 0; flow < p.flows; ++flow)
    {
        const uint32_t host = flow % p.hosts;
        BulkSendHelper sender("ns3::TcpSocketFactory",
                              InetSocketAddress(clientAddresses[host], port));
        sender.SetAttribute("MaxBytes", UintegerValue(0));
        sender.SetAttribute("SendSize", UintegerValue(p.segment));
        sender.Install(servers.Get(host)).Start(Seconds(start->GetValue(0, p.startWithin)));
    }

    Simulator::Stop(Seconds(p.seconds));
    Simulator::Run();
    Report("forward", bottleneck.Get(0));
    Report("reverse", bottleneck.Get(1));
    Simulator::Destroy();
}

} // namespace

int
main(int argc, char** argv)
{
    Parameters p;
    CommandLine options;
    options.AddValue("seconds", "simulated time", p.seconds);
    options.AddValue("seed", "seed of the random starts", p.seed);
    options.AddValue("flows", "number of transfers", p.flows);
    options.AddValue("rate", "rate of the bottleneck", p.rate);
    options.AddValue("queue", "its buffer in packets", p.queue);
    options.AddValue("shortest", "shortest round-trip time in seconds", p.shortest);
    options.AddValue("longest", "longest round-trip time in seconds", p.longest);
    options.AddValue("start_within", "transfers start within this time, in seconds", p.startWithin);
    options.AddValue("segment", "bytes of data in a segment", p.segment);
    options.AddValue("window", "send and receive buffer in bytes", p.window);
    options.AddValue("initial_window", "initial window in segments", p.initialWindow);
    options.Parse(argc, argv);
    Run(p);
    return 0;
}
