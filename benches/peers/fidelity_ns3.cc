// Endless TCP transfers through one queue disc of ns-3: `make peers-fidelity`.
//
// Measures from `warm_up` on for `seconds` and prints, each on a line of its own: the bits of data per
// second that receivers passed on, and of the forward queue disc the packets that came, those that it
// dropped and the time average of the packets in it.
//
// Below the queue disc the device keeps one packet waiting: with flow control it stops the queue disc
// when it has it. A host for each transfer and half of its round-trip time on either side, as in aqmlab.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

struct Parameters
{
    double seconds = 10;
    double warmUp = 10;
    uint32_t seed = 1;
    uint32_t flows = 10;
    std::string rate = "10000000bps";
    double shortest = 0.084;    // round-trip times, seconds
    double longest = 0.124;
    double startWithin = 1;     // seconds
    uint32_t segment = 1460;    // bytes of data
    uint32_t window = 65535;    // bytes
    uint32_t initialWindow = 3; // segments
    double rtoMin = 1;          // seconds
    bool ecn = false;
    std::string discipline = "ns3::FifoQueueDisc";
    std::string settings;       // attributes: A=1,B=2
};

void
SetTcp(const Parameters& p)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(p.ecn ? "On" : "Off"));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(p.rtoMin)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(p.segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(p.initialWindow));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(p.window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(p.window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
}

// A queue disc by its name; its attributes are set as defaults of its type, or of the type that they name.
TrafficControlHelper
Discipline(const Parameters& p)
{
    std::istringstream settings(p.settings);
    for (std::string setting; std::getline(settings, setting, ',');)
    {
        const size_t equals = setting.find('=');
        const std::string name = setting.substr(0, equals);
        const bool whole = name.find("::") != std::string::npos;
        Config::SetDefault(whole ? name : p.discipline + "::" + name,
                           StringValue(setting.substr(equals + 1)));
    }
    TrafficControlHelper helper;
    helper.SetRootQueueDisc(p.discipline);
    return helper;
}

// Packets in a queue disc, times seconds.
class Integral
{
  public:
    explicit Integral(const Ptr<QueueDisc>& queue)
    {
        queue->TraceConnectWithoutContext("PacketsInQueue",
                                          MakeCallback(&Integral::Change, this));
    }

    double Now()
    {
        const double now = Simulator::Now().GetSeconds();
        sum += packets * (now - last);
        last = now;
        return sum;
    }

  private:
    void Change(uint32_t, uint32_t after)
    {
        Now();
        packets = after;
    }

    double sum = 0;
    double last = 0;
    uint32_t packets = 0;
};

struct Counts
{
    double bytes = 0;
    double arrived = 0;
    double dropped = 0;
    double integral = 0;
};

Counts
Count(const ApplicationContainer& sinks, const Ptr<QueueDisc>& queue, Integral& integral)
{
    Counts found;
    for (uint32_t i = 0; i < sinks.GetN(); ++i)
    {
        found.bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    found.arrived = queue->GetStats().nTotalReceivedPackets;
    found.dropped = queue->GetStats().nTotalDroppedPackets;
    found.integral = integral.Now();
    return found;
}

void
Run(const Parameters& p)
{
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(p.seed);
    SetTcp(p);

    NodeContainer routers(2);
    NodeContainer clients(p.flows);
    NodeContainer servers(p.flows);
    Ipv4StaticRoutingHelper routing;
    InternetStackHelper internet;
    internet.SetRoutingHelper(routing);
    internet.SetIpv6StackInstall(false);
    internet.Install(NodeContainer(routers, clients, servers));

    PointToPointHelper bottleneckLink;
    bottleneckLink.SetDeviceAttribute("DataRate", StringValue(p.rate));
    bottleneckLink.SetQueue("ns3::DropTailQueue<Packet>",
                            "MaxSize",
                            QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 1)));
    const NetDeviceContainer bottleneck = bottleneckLink.Install(routers.Get(0), routers.Get(1));
    TrafficControlHelper control = Discipline(p);
    const Ptr<QueueDisc> queue = control.Install(bottleneck).Get(0);

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    const Ipv4InterfaceContainer middle = addresses.Assign(bottleneck);
    const Ipv4Mask side("255.255.0.0");
    routing.GetStaticRouting(routers.Get(0)->GetObject<Ipv4>())
        ->AddNetworkRouteTo("10.2.0.0", side, middle.GetAddress(1), 1);
    routing.GetStaticRouting(routers.Get(1)->GetObject<Ipv4>())
        ->AddNetworkRouteTo("10.1.0.0", side, middle.GetAddress(0), 1);

    std::vector<Ipv4Address> clientAddresses;
    for (uint32_t host = 0; host < p.flows; ++host)
    {
        const double rtt = p.shortest + (p.longest - p.shortest) * host / (p.flows - 1);
        const auto join = [&](const Ptr<Node>& node, uint32_t router) {
            PointToPointHelper link;
            link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
            link.SetChannelAttribute("Delay", TimeValue(Seconds(rtt / 4)));
            link.SetQueue("ns3::DropTailQueue<Packet>",
                          "MaxSize",
                          QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 10000)));
            link.DisableFlowControl();
            const NetDeviceContainer devices = link.Install(node, routers.Get(router));
            const std::string network =
                "10." + std::to_string(router + 1) + "." + std::to_string(host) + ".0";
            addresses.SetBase(network.c_str(), "255.255.255.0");
            const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
            routing.GetStaticRouting(node->GetObject<Ipv4>())
                ->SetDefaultRoute(interfaces.GetAddress(1), 1);
            return interfaces.GetAddress(0);
        };
        join(servers.Get(host), 0);
        clientAddresses.push_back(join(clients.Get(host), 1));
    }

    const uint16_t port = 80;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    const ApplicationContainer sinks = sink.Install(clients);
    const Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t flow = 0; flow < p.flows; ++flow)
    {
        BulkSendHelper sender("ns3::TcpSocketFactory",
                              InetSocketAddress(clientAddresses[flow], port));
        sender.SetAttribute("MaxBytes", UintegerValue(0));
        sender.SetAttribute("SendSize", UintegerValue(p.segment));
        sender.Install(servers.Get(flow)).Start(Seconds(start->GetValue(0, p.startWithin)));
    }

    Integral integral(queue);
    Counts before;
    Simulator::Schedule(Seconds(p.warmUp), [&] { before = Count(sinks, queue, integral); });
    Simulator::Stop(Seconds(p.warmUp + p.seconds));
    Simulator::Run();
    const Counts after = Count(sinks, queue, integral);
    std::cout << "goodput_bps " << (after.bytes - before.bytes) * 8 / p.seconds << '\n'
              << "arrived_packets " << after.arrived - before.arrived << '\n'
              << "dropped_packets " << after.dropped - before.dropped << '\n'
              << "queue_mean_packets " << (after.integral - before.integral) / p.seconds << '\n';
    Simulator::Destroy();
}

} // namespace

int
main(int argc, char** argv)
{
    Parameters p;
    CommandLine options;
    options.AddValue("seconds", "measured time", p.seconds);
    options.AddValue("warm_up", "time before it", p.warmUp);
    options.AddValue("seed", "run of the random numbers", p.seed);
    options.AddValue("flows", "number of transfers", p.flows);
    options.AddValue("rate", "rate of the bottleneck", p.rate);
    options.AddValue("shortest", "shortest round-trip time in seconds", p.shortest);
    options.AddValue("longest", "longest round-trip time in seconds", p.longest);
    options.AddValue("start_within", "transfers start within this time, in seconds", p.startWithin);
    options.AddValue("segment", "bytes of data in a segment", p.segment);
    options.AddValue("window", "send and receive buffer in bytes", p.window);
    options.AddValue("initial_window", "initial window in segments", p.initialWindow);
    options.AddValue("rto_min", "smallest retransmission time-out in seconds", p.rtoMin);
    options.AddValue("ecn", "whether senders use ECN", p.ecn);
    options.AddValue("discipline", "type of the queue disc", p.discipline);
    options.AddValue("settings", "its attributes, A=1,B=2", p.settings);
    options.Parse(argc, argv);
    std::cout.precision(12);
    Run(p);
    return 0;
}
