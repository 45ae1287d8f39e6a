// One queue disc of ns-3 in front of a wire of 10 Mbit/s, fed with the packets of a list.
//
//   queue_ns3 KIND SETTINGS ECN ARRIVALS SEED OUTPUT
//
// KIND is a queue disc of ns-3, SETTINGS its attributes ("MinTh=5,MaxTh=15"), ECN 1 if every packet
// is ECN-capable. ARRIVALS has a line "time flow size" for each packet. OUTPUT gets a line for each
// packet that arrives (+), leaves (-), is dropped (d) or is marked (m): the letter, time and number.
//
// The wire is ours: it takes the next packet when the last one has left and so asks an empty queue
// once, as a device without a queue of its own would. No header is added and no other queue is in
// the way, and the queue disc counts what aqmlab's counts.

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr int64_t NS_PER_BYTE = 800; // at 10 Mbit/s

struct Arrival
{
    int64_t time; // ns
    uint32_t flow;
    uint32_t size;
};

// A packet that knows its number, and its flow without having headers.
class Item : public QueueDiscItem
{
  public:
    Item(uint32_t number, const Arrival& arrival, bool capable)
        : QueueDiscItem(Create<Packet>(arrival.size), Address(), 0x0800),
          number(number),
          flow(arrival.flow),
          capable(capable)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        marked = capable;
        return capable;
    }

    // Neighbours: each flow has a queue of its own.
    uint32_t Hash(uint32_t) const override
    {
        return flow;
    }

    const uint32_t number;
    bool marked = false;

  private:
    const uint32_t flow;
    const bool capable;
};

std::ofstream output;

void
Tell(char what, const QueueDiscItem* item)
{
    output << what << ' ' << Simulator::Now().GetNanoSeconds() << ' '
           << static_cast<const Item*>(item)->number << '\n';
}

void
Dropped(Ptr<const QueueDiscItem> item)
{
    Tell('d', PeekPointer(item));
}

class Port
{
  public:
    explicit Port(Ptr<QueueDisc> queue)
        : queue(queue)
    {
    }

    void Arrive(Ptr<Item> item)
    {
        Tell('+', PeekPointer(item));
        queue->Enqueue(item);
        if (!busy)
        {
            Serve();
        }
    }

  private:
    void Serve()
    {
        Ptr<QueueDiscItem> item = queue->Dequeue();
        busy = item != nullptr;
        if (!busy)
        {
            return;
        }
        if (static_cast<Item*>(PeekPointer(item))->marked)
        {
            Tell('m', PeekPointer(item));
        }
        Tell('-', PeekPointer(item));
        Simulator::Schedule(NanoSeconds(NS_PER_BYTE * item->GetSize()), &Port::Serve, this);
    }

    Ptr<QueueDisc> queue;
    bool busy = false;
};

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 7)
    {
        std::cerr << "usage: queue_ns3 KIND SETTINGS ECN ARRIVALS SEED OUTPUT\n";
        return 2;
    }
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(std::stoul(argv[5]));
    output.open(argv[6]);

    ObjectFactory factory(std::string("ns3::") + argv[1]);
    uint32_t quantum = 0; // no attribute of FQ-CoDel
    std::istringstream settings(argv[2]);
    for (std::string setting; std::getline(settings, setting, ',');)
    {
        const size_t equals = setting.find('=');
        const std::string name = setting.substr(0, equals);
        const std::string value = setting.substr(equals + 1);
        if (name == "Quantum")
        {
            quantum = std::stoul(value);
        }
        else
        {
            factory.Set(name, StringValue(value));
        }
    }
    Ptr<QueueDisc> queue = factory.Create<QueueDisc>();
    if (auto fq = DynamicCast<FqCoDelQueueDisc>(queue))
    {
        fq->SetQuantum(quantum);
    }
    queue->Initialize();
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));

    Port port(queue);
    std::ifstream list(argv[4]);
    double seconds;
    Arrival arrival;
    for (uint32_t number = 0; list >> seconds >> arrival.flow >> arrival.size; ++number)
    {
        arrival.time = std::llround(seconds * 1e9);
        Ptr<Item> item = Create<Item>(number, arrival, std::string(argv[3]) == "1");
        Simulator::Schedule(NanoSeconds(arrival.time), &Port::Arrive, &port, item);
    }
    Simulator::Stop(NanoSeconds(arrival.time + 10'000'000'000));
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
