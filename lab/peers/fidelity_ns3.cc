// Endless TCP transfers, and datagrams, through one queue disc of ns-3: `make peers-fidelity`, `make card-rows`.
//
// Measures from `warm_up` on for `seconds` and prints, each on a line of its own: the bits of data per
// second that receivers passed on, together and of each sender, and of the forward queue disc the packets
// that came, those that it dropped, the time average of the packets in it, and percentiles of their waits.
//
// Below the queue disc the device keeps one packet waiting: with flow control it stops the queue disc
// when it has it. A host for each sender and half of its round-trip time on either side, as in aqmlab.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// A transfer without end, or datagrams at a rate.
struct Sender
{
    std::string control;  // type of its congestion control; `datagrams`: none
    double rtt = 0.1;     // seconds
    double start = 0;     // seconds
    double within = 0;    // seconds after `start`
    double rate = 0;      // of datagrams, bits per second
};

struct Parameters
{
    double seconds = 10;
    double warmUp = 10;
    uint32_t seed = 1;
    std::string senders; // each `control/rtt/start/within/rate`, commas between them
    std::string rate = "10000000bps";
    uint32_t segment = 1460;    // bytes of data
    uint32_t window = 65535;    // bytes
    uint32_t initialWindow = 3; // segments
    double rtoMin = 1;          // seconds
    double delayedAck = 0.2;    // seconds
    bool scaling = false;       // of windows
    bool ecn = false;
    std::string discipline = "ns3::FifoQueueDisc";
    std::string settings;       // attributes: A=1,B=2
};

void
SetTcp(const Parameters& p)
{
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(p.scaling));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(p.ecn ? "On" : "Off"));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(p.rtoMin)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(p.segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(p.initialWindow));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(p.window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(p.window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(p.delayedAck)));
}

std::vector<Sender>
Senders(const std::string& text)
{
    std::vector<Sender> found;
    std::istringstream senders(text);
    for (std::string one; std::getline(senders, one, ',');)
    {
        std::replace(one.begin(), one.end(), '/', ' ');
        Sender sender;
        std::istringstream(one) >> sender.control >> sender.rtt >> sender.start >> sender.within >>
            sender.rate;
        found.push_back(sender);
    }
    return found;
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

// How long packets waited that left in the measured time.
class Waits
{
  public:
    Waits(const Ptr<QueueDisc>& queue, double from)
        : from(from)
    {
        queue->TraceConnectWithoutContext("SojournTime", MakeCallback(&Waits::Left, this));
    }

    double Percentile(double share)
    {
        if (waits.empty())
        {
            return 0;
        }
        std::sort(waits.begin(), waits.end());
        return waits[static_cast<size_t>(share * (waits.size() - 1))];
    }

  private:
    void Left(Time wait)
    {
        if (Simulator::Now().GetSeconds() >= from)
        {
            waits.push_back(wait.GetSeconds());
        }
    }

    double from;
    std::vector<double> waits;
};

struct Counts
{
    std::vector<double> bytes;
    double total = 0;
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
        found.bytes.push_back(DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx());
        found.total += found.bytes.back();
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

    const std::vector<Sender> senders = Senders(p.senders);
    NodeContainer routers(2);
    NodeContainer clients(senders.size());
    NodeContainer servers(senders.size());
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
    for (uint32_t host = 0; host < senders.size(); ++host)
    {
        const double rtt = senders[host].rtt;
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
    const uint32_t headers = 28; // of IPv4 and UDP
    ApplicationContainer sinks;
    const Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t host = 0; host < senders.size(); ++host)
    {
        const Sender& sender = senders[host];
        const InetSocketAddress there(clientAddresses[host], port);
        const InetSocketAddress any(Ipv4Address::GetAny(), port);
        const Time at = Seconds(sender.start + start->GetValue(0, sender.within));
        if (sender.control == "datagrams")
        {
            const uint32_t size = p.segment + 40;
            UdpClientHelper datagrams(there);
            datagrams.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX)); // 0 is none
            datagrams.SetAttribute("PacketSize", UintegerValue(size - headers));
            datagrams.SetAttribute("Interval", TimeValue(Seconds(8.0 * size / sender.rate)));
            datagrams.Install(servers.Get(host)).Start(at);
            sinks.Add(PacketSinkHelper("ns3::UdpSocketFactory", any).Install(clients.Get(host)));
            continue;
        }
        servers.Get(host)->GetObject<TcpL4Protocol>()->SetAttribute(
            "SocketType",
            TypeIdValue(TypeId::LookupByName("ns3::" + sender.control)));
        BulkSendHelper transfer("ns3::TcpSocketFactory", there);
        transfer.SetAttribute("MaxBytes", UintegerValue(0));
        transfer.SetAttribute("SendSize", UintegerValue(p.segment));
        transfer.Install(servers.Get(host)).Start(at);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", any).Install(clients.Get(host)));
    }

    Integral integral(queue);
    Waits waits(queue, p.warmUp);
    Counts before;
    Simulator::Schedule(Seconds(p.warmUp), [&] { before = Count(sinks, queue, integral); });
    Simulator::Stop(Seconds(p.warmUp + p.seconds));
    Simulator::Run();
    const Counts after = Count(sinks, queue, integral);
    std::cout << "goodput_bps " << (after.total - before.total) * 8 / p.seconds << '\n'
              << "arrived_packets " << after.arrived - before.arrived << '\n'
              << "dropped_packets " << after.dropped - before.dropped << '\n'
              << "queue_mean_packets " << (after.integral - before.integral) / p.seconds << '\n'
              << "wait_p50_s " << waits.Percentile(0.5) << '\n'
              << "wait_p95_s " << waits.Percentile(0.95) << '\n';
    for (size_t i = 0; i < senders.size(); ++i)
    {
        std::cout << "goodput_bps_of_" << i << ' '
                  << (after.bytes[i] - before.bytes[i]) * 8 / p.seconds << '\n';
    }
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
    options.AddValue("senders", "each control/rtt/start/within/rate, commas between them", p.senders);
    options.AddValue("rate", "rate of the bottleneck", p.rate);
    options.AddValue("segment", "bytes of data in a segment", p.segment);
    options.AddValue("window", "send and receive buffer in bytes", p.window);
    options.AddValue("initial_window", "initial window in segments", p.initialWindow);
    options.AddValue("rto_min", "smallest retransmission time-out in seconds", p.rtoMin);
    options.AddValue("delayed_ack", "delay of ACKs in seconds", p.delayedAck);
    options.AddValue("scaling", "whether windows are scaled", p.scaling);
    options.AddValue("ecn", "whether senders use ECN", p.ecn);
    options.AddValue("discipline", "type of the queue disc", p.discipline);
    options.AddValue("settings", "its attributes, A=1,B=2", p.settings);
    options.Parse(argc, argv);
    std::cout.precision(12);
    Run(p);
    return 0;
}
