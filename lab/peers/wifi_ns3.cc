// Stations of 802.11a that always have packets to send, for ns-3: the scenario wifi/senders.toml.
//
// There is no IP: packet sockets hand 1,500 bytes to each device. All senders stand on a circle around
// the receiver, so that none of them is heard above another one. Time is the CPU time of the simulation
// alone. Build with
//   g++ -O2 wifi_ns3.cc -o wifi_ns3 -lns3-wifi -lns3-mobility -lns3-network -lns3-core
//     -lns3-propagation

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/packet-socket-client.h"
#include "ns3/packet-socket-server.h"
#include "ns3/wifi-module.h"

#include <cmath>
#include <ctime>
#include <iostream>

using namespace ns3;

namespace
{

uint64_t received = 0;

void
Receive(Ptr<const Packet>, const Address&)
{
    ++received;
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t senders = 10;
    uint32_t seed = 1;
    double seconds = 10;
    double rate = 4.5e6; // bits a second of each sender
    CommandLine words;
    words.AddValue("senders", "how many stations send", senders);
    words.AddValue("seed", "number of the run", seed);
    words.AddValue("seconds", "simulated time", seconds);
    words.AddValue("rate", "bits a second of each sender", rate);
    words.Parse(argc, argv);
    RngSeedManager::SetRun(seed);

    NodeContainer nodes;
    nodes.Create(senders + 1);
    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("OfdmRate54Mbps"),
                                 "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);

    Ptr<ListPositionAllocator> places = CreateObject<ListPositionAllocator>();
    places->Add(Vector(0, 0, 0));
    for (uint32_t k = 0; k < senders; ++k)
    {
        const double angle = 2 * M_PI * k / senders;
        places->Add(Vector(std::cos(angle), std::sin(angle), 0));
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
        client->SetAttribute("Interval", TimeValue(Seconds(1500 * 8 / rate)));
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
    const std::clock_t began = std::clock();
    Simulator::Run();
    const double spent = double(std::clock() - began) / CLOCKS_PER_SEC;
    Simulator::Destroy();
    std::cout << "packets " << received << "\ncpu_s " << spent << "\nmbps "
              << received * 1472 * 8 / seconds / 1e6 << "\n";
}
