// Stations of 802.11n that always have packets of one of two access categories to send, for ns-3:
// records/wifi.md.
//
// There is no IP: packet sockets hand 1,500 bytes to each device. All senders stand on a circle of a
// millimetre around the receiver, so that nobody hears one of them above another. On a circle of a
// metre (--radius=1) a sender that is near one of two that collide hears its preamble, and waits an EIFS.
// Each packet is sent alone, at MCS 7 with the long guard interval. Build with
//   g++ -O2 wifi_edca_ns3.cc -o wifi_edca_ns3 -lns3-wifi -lns3-mobility -lns3-network -lns3-core
//     -lns3-propagation

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/packet-socket-client.h"
#include "ns3/packet-socket-server.h"
#include "ns3/wifi-module.h"

#include <cmath>
#include <map>
#include <iostream>

using namespace ns3;

namespace
{

uint64_t received[2] = {0, 0};
std::map<Address, int> groups;

void
Receive(Ptr<const Packet>, const Address& from)
{
    const PacketSocketAddress address = PacketSocketAddress::ConvertFrom(from);
    ++received[groups.at(address.GetPhysicalAddress())];
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t first = 5;  // senders of the first category
    uint32_t second = 5; // and of the second
    uint32_t priorities[2] = {0, 1};
    uint32_t seed = 1;
    double seconds = 10;
    double radius = 0.001;
    CommandLine words;
    words.AddValue("first", "how many stations send of the first category", first);
    words.AddValue("second", "how many stations send of the second category", second);
    words.AddValue("up1", "user priority of the first category", priorities[0]);
    words.AddValue("up2", "user priority of the second category", priorities[1]);
    words.AddValue("seed", "number of the run", seed);
    words.AddValue("seconds", "simulated time", seconds);
    words.AddValue("radius", "metres from the receiver to each sender", radius);
    words.Parse(argc, argv);
    RngSeedManager::SetRun(seed);

    const uint32_t senders = first + second;
    NodeContainer nodes;
    nodes.Create(senders + 1);
    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac",
                "QosSupported", BooleanValue(true),
                "VO_MaxAmpduSize", UintegerValue(0),
                "VI_MaxAmpduSize", UintegerValue(0),
                "BE_MaxAmpduSize", UintegerValue(0),
                "BK_MaxAmpduSize", UintegerValue(0));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("HtMcs7"),
                                 "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("200p")));
    phy.Set("ChannelSettings", StringValue("{36, 20, BAND_5GHZ, 0}"));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    for (uint32_t k = 0; k <= senders; ++k)
    {
        Ptr<WifiMac> of = DynamicCast<WifiNetDevice>(devices.Get(k))->GetMac();
        of->GetQosTxop(AC_VO)->SetTxopLimit(MicroSeconds(1504));
        of->GetQosTxop(AC_VI)->SetTxopLimit(MicroSeconds(3008));
        of->GetQosTxop(AC_BE)->SetTxopLimit(MicroSeconds(0));
        of->GetQosTxop(AC_BK)->SetTxopLimit(MicroSeconds(0));
        groups[devices.Get(k)->GetAddress()] = k > first;
    }

    Ptr<ListPositionAllocator> places = CreateObject<ListPositionAllocator>();
    places->Add(Vector(0, 0, 0));
    for (uint32_t k = 0; k < senders; ++k)
    {
        const double angle = 2 * M_PI * k / senders;
        places->Add(Vector(radius * std::cos(angle), radius * std::sin(angle), 0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);

    PacketSocketHelper sockets;
    sockets.Install(nodes);
    for (uint32_t k = 1; k <= senders; ++k)
    {
        PacketSocketAddress to;
        to.SetSingleDevice(devices.Get(k)->GetIfIndex());
        to.SetPhysicalAddress(devices.Get(0)->GetAddress());
        to.SetProtocol(1);
        Ptr<PacketSocketClient> client = CreateObject<PacketSocketClient>();
        client->SetRemote(to);
        client->SetAttribute("PacketSize", UintegerValue(1500));
        client->SetAttribute("MaxPackets", UintegerValue(0));
        client->SetAttribute("Interval", TimeValue(Seconds(1500 * 8 / 60e6)));
        client->SetAttribute("Priority", UintegerValue(priorities[k > first]));
        client->SetStartTime(MicroSeconds(37 * k));
        nodes.Get(k)->AddApplication(client);
    }
    PacketSocketAddress own;
    own.SetSingleDevice(devices.Get(0)->GetIfIndex());
    own.SetProtocol(1);
    Ptr<PacketSocketServer> server = CreateObject<PacketSocketServer>();
    server->SetLocal(own);
    server->TraceConnectWithoutContext("Rx", MakeCallback(&Receive));
    nodes.Get(0)->AddApplication(server);

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    Simulator::Destroy();
    for (const uint64_t count : received)
    {
        std::cout << count * 1500 * 8 / seconds / 1e6 << " Mbit/s of IP\n";
    }
}
