//! Rules are named after the list that they come from: CK and a number.

use aqmlab_net::{Ecn, FlowKey, Packet};

use super::*;
use crate::context::{Ack, Context, Details};
use crate::queue::{Queued, Scheduler, Stats};
use crate::worked::queues::LINK;

/// What a test sends: an item of its own, and who sends it to whom.
#[derive(Clone, Copy, Debug)]
struct Sent {
    flow: u64,
    hosts: [u64; 2],
    dscp: u8,
    size: u32,
    ecn: Ecn,
}

impl Sent {
    const fn of(flow: u64) -> Self {
        Self {
            flow,
            hosts: [flow, 1000],
            dscp: 0,
            size: 1500,
            ecn: Ecn::NotEct,
        }
    }
}

struct Surroundings {
    hosts: [u64; 2],
    ack: Option<Ack>,
}

impl Context for Surroundings {
    fn draw(&mut self) -> f64 {
        unreachable!("nothing is left to chance on arrival")
    }

    fn details(&self) -> Option<Details> {
        Some(Details {
            hosts: self.hosts,
            ack: self.ack.clone(),
            client: None,
        })
    }
}

/// A queue and what it counted.
struct Bench {
    queue: Cake<u32>,
    stats: Stats<u32>,
    now: Time,
    sent: u32,
}

impl Bench {
    fn new(text: &str) -> Self {
        let params: Params = toml::from_str(text).unwrap();
        assert_eq!(params.check(), Ok(()));
        Self {
            queue: params.scheduler(LINK, 1),
            stats: Stats::new(Params::REASONS),
            now: Time::ZERO,
            sent: 0,
        }
    }

    fn push(&mut self, sent: Sent) {
        self.push_ack(sent, None);
    }

    fn push_ack(&mut self, sent: Sent, ack: Option<Ack>) {
        let packet = Packet {
            size: sent.size,
            ecn: sent.ecn,
            dscp: sent.dscp,
            flow: FlowKey(sent.flow),
        };
        let mut context = Surroundings {
            hosts: sent.hosts,
            ack,
        };
        let (queue, stats) = (&mut self.queue, &mut self.stats);
        queue.enqueue(self.now, packet, self.sent, stats, &mut context);
        self.sent += 1;
        self.stats.hand_back(|_, _| ());
    }

    /// The next packet: when the shaper lets it go, and not before now.
    fn pop(&mut self) -> Option<Queued<u32>> {
        loop {
            let next = self.queue.dequeue(self.now, &mut self.stats, &mut || 0.5);
            self.stats.hand_back(|_, _| ());
            if next.is_some() || self.queue.backlog().packets == 0 {
                return next;
            }
            let release = self.queue.next_release();
            assert!(
                release > self.now,
                "a shaper that holds back says until when"
            );
            self.now = release;
        }
    }

    fn dropped(&self, reason: Reason) -> u64 {
        self.stats.counters().dropped[reason.index()]
    }
}

#[test]
fn ck01_the_shaper_spaces_packets_and_saves_nothing_up() {
    let mut bench = Bench::new("bandwidth = '10 Mbit/s'\nlink_layer = 'ethernet'");
    let charged = Time::from_nanos(1538 * 800);
    for start in [Time::ZERO, Time::from_secs(1), Time::from_secs(5)] {
        bench.now = start;
        (0..10).for_each(|_| bench.push(Sent::of(1)));
        for number in 0..10 {
            bench.pop().unwrap();
            assert_eq!(bench.now, start + charged * number);
        }
        assert!(bench.pop().is_none());
    }
}

/// The published rates: IP bytes per second through a shaper of 10 Mbit/s.
#[test]
fn shaped_rates_with_each_overhead() {
    for (layer, size, charged) in [
        ("raw", 1500, 1500),
        ("ethernet", 1500, 1538),
        ("ethernet", 40, 84),
        ("docsis", 1500, 1518),
        ("pppoe-llcsnap", 1500, 1749),
        ("pppoa-vcmux", 40, 106),
        ("pppoe-ptm", 1500, 1554),
        ("bridged-ptm", 1500, 1546),
    ] {
        let mut bench = Bench::new(&format!(
            "bandwidth = '10 Mbit/s'\nlink_layer = '{layer}'\nrtt = '1000 s'"
        ));
        (0..1001).for_each(|_| {
            bench.push(Sent {
                size,
                ..Sent::of(1)
            });
        });
        (0..1001).for_each(|_| assert!(bench.pop().is_some()));
        let rate = 8.0 * 1000.0 * f64::from(size) / bench.now.as_secs_f64();
        let expected = 1e7 * f64::from(size) / f64::from(charged);
        assert!((rate / expected - 1.0).abs() < 1e-5, "{layer}: {rate}");
    }
}

/// Bytes that each of some senders gets of a busy link in so many packets. Each keeps its queue
/// full: what leaves comes again.
fn shares(text: &str, senders: &[Sent], packets: u32) -> Vec<f64> {
    let mut bench = Bench::new(&format!("{text}\nrtt = '1000 s'"));
    let mut owner = Vec::new();
    for (number, sender) in senders.iter().enumerate() {
        for _ in 0..20 {
            bench.push(*sender);
            owner.push(number);
        }
    }
    let mut bytes = vec![0.0; senders.len()];
    for _ in 0..packets {
        let queued = bench.pop().expect("it is busy");
        let sender = owner[queued.item as usize];
        bytes[sender] += f64::from(queued.packet.size);
        bench.push(senders[sender]);
        owner.push(sender);
    }
    let total: f64 = bytes.iter().sum();
    bytes.iter().map(|bytes| bytes / total).collect()
}

#[test]
fn ck06_hosts_share_alike_whatever_their_flows() {
    // One host sends eight flows, a second host one, to hosts of their own.
    let mut senders: Vec<_> = (0..8)
        .map(|flow| Sent {
            hosts: [1, 11],
            ..Sent::of(flow)
        })
        .collect();
    senders.push(Sent {
        hosts: [2, 12],
        ..Sent::of(8)
    });
    for (isolation, expected) in [
        ("triple", 0.5),
        ("dual-srchost", 0.5),
        ("dual-dsthost", 0.5),
        ("srchost", 0.5),
        ("dsthost", 0.5),
        ("hosts", 0.5),
        ("flows", 1.0 / 9.0),
    ] {
        for shaped in ["", "bandwidth = '10 Mbit/s'"] {
            let text = format!("isolation = '{isolation}'\n{shaped}");
            let single = *shares(&text, &senders, 8000).last().unwrap();
            let error = (single - expected).abs() / expected;
            assert!(error < 0.03, "{isolation} {shaped}: {single}");
        }
    }
}

#[test]
fn hosts_at_the_other_end_count_by_isolation() {
    // Both flows have one sender; one of them has its receiver for itself, the other shares it with
    // three flows of other senders.
    let mut senders = vec![Sent {
        hosts: [1, 11],
        ..Sent::of(0)
    }];
    senders.push(Sent {
        hosts: [2, 12],
        ..Sent::of(1)
    });
    senders.extend((0..3).map(|n| Sent {
        hosts: [3 + n, 12],
        ..Sent::of(2 + n)
    }));
    let alone = |isolation: &str| shares(&format!("isolation = '{isolation}'"), &senders, 8000)[0];
    assert!((alone("dual-dsthost") - 0.5).abs() < 0.015);
    assert!((alone("dual-srchost") - 0.2).abs() < 0.01);
}

#[test]
fn ck05_a_tin_has_priority_up_to_its_rate_and_shares_the_rest() {
    let mut bench = Bench::new("bandwidth = '10 Mbit/s'\nrtt = '1000 s'");
    let (voice, effort) = (
        Sent {
            dscp: 46,
            ..Sent::of(1)
        },
        Sent::of(2),
    );
    (0..50).for_each(|_| bench.push(effort));
    // EF at 2 Mbit/s, a packet each 6 ms: within its quarter it waits for a packet at most.
    let mut late = 0.0_f64;
    let packet = Time::from_micros(1200);
    let mut next_voice = Time::from_millis(20);
    for _ in 0..2000 {
        while next_voice <= bench.now {
            bench.push(voice);
            next_voice += Time::from_millis(6);
        }
        let queued = bench.pop().unwrap();
        match queued.packet.dscp {
            46 => late = late.max((bench.now - queued.arrived).as_secs_f64()),
            _ => bench.push(effort),
        }
    }
    assert!(late <= 2.0 * packet.as_secs_f64() + 1e-9, "{late}");
    // Greedy, it gets its quarter and then shares, so that the link never idles.
    let greedy = shares("bandwidth = '10 Mbit/s'", &[voice, effort], 4000);
    assert!((0.24..0.76).contains(&greedy[0]), "{greedy:?}");
}

#[test]
fn without_a_shaper_tins_share_by_their_weights() {
    let (effort, bulk) = (
        Sent::of(1),
        Sent {
            dscp: 8,
            ..Sent::of(2)
        },
    );
    let found = shares("", &[effort, bulk], 20_000);
    assert!((found[1] - 64.0 / 1088.0).abs() < 0.005, "{found:?}");
}

#[test]
fn ck07_a_sparse_flow_goes_before_bulk_flows() {
    let mut bench = Bench::new("bandwidth = '10 Mbit/s'\nrtt = '1000 s'");
    (0..20).for_each(|_| bench.push(Sent::of(1)));
    let mut next = Time::from_millis(50);
    let mut late = Time::ZERO;
    for _ in 0..1000 {
        while next <= bench.now {
            bench.push(Sent {
                size: 200,
                ..Sent::of(2)
            });
            next += Time::from_millis(50);
        }
        let queued = bench.pop().unwrap();
        match queued.packet.flow {
            FlowKey(2) => late = late.max(bench.now - queued.arrived),
            _ => bench.push(Sent::of(1)),
        }
    }
    // It came while a packet was on the wire, which takes 1.2 ms.
    assert!(late <= Time::from_micros(1200), "{late}");
}

#[test]
fn ck09_beyond_the_memory_the_longest_queue_loses_its_head_and_cobalt_hears_of_it() {
    let mut bench = Bench::new("memory = '30 kB'");
    for number in 0..40 {
        bench.push(Sent::of(1));
        if number % 10 == 0 {
            bench.push(Sent {
                size: 100,
                ..Sent::of(2)
            });
        }
    }
    assert_eq!(bench.dropped(Reason::OVERFLOW), 41 - 20);
    let flows = bench.queue.unresponsive();
    assert_eq!(flows, 1, "BLUE knows the fat flow only");
    let left: Vec<_> = std::iter::from_fn(|| bench.pop()).collect();
    assert_eq!(
        left.iter()
            .filter(|queued| queued.packet.flow == FlowKey(2))
            .count(),
        4
    );
}

#[test]
fn ck10_the_last_packet_of_a_queue_is_delivered() {
    let mut bench = Bench::new("memory = '3000 bytes'");
    // Overflows 5.1 ms apart bring BLUE's probability to 1.
    for _ in 0..300 {
        (0..3).for_each(|_| bench.push(Sent::of(1)));
        bench.now += Time::from_micros(5100);
    }
    assert!(bench.queue.largest_blue() >= 1.0);
    while bench.pop().is_some() {}
    let before = bench.stats.counters().dropped_packets();
    for _ in 0..10 {
        bench.now += Time::from_micros(10);
        bench.push(Sent::of(1));
        assert!(bench.pop().is_some());
    }
    assert_eq!(bench.stats.counters().dropped_packets(), before);
}

#[test]
fn ck11_the_filter_thins_out_acks_in_the_queue() {
    for (filter, left) in [("off", 6), ("on", 2), ("aggressive", 1)] {
        let mut bench = Bench::new(&format!("ack_filter = '{filter}'"));
        for number in 1..=6 {
            let ack = Ack {
                number: 1448 * number,
                is_pure: true,
                ..Ack::default()
            };
            bench.push_ack(
                Sent {
                    size: 52,
                    ..Sent::of(1)
                },
                Some(ack),
            );
        }
        assert_eq!(bench.queue.backlog().packets, left, "{filter}");
        assert_eq!(bench.dropped(ACK_FILTER), 6 - u64::from(left));
        assert_eq!(bench.queue.backlog().bytes, 52 * u64::from(left));
    }
}

#[test]
fn ck13_a_queue_that_empties_remembers_until_it_is_at_rest() {
    let mut bench = Bench::new("bandwidth = '1 Mbit/s'\ntins = 'besteffort'");
    // Two packets for each that leaves, for 10 s: COBALT counts.
    for _ in 0..800 {
        (0..2).for_each(|_| bench.push(Sent::of(1)));
        bench.pop();
    }
    while bench.pop().is_some() {}
    let count = bench.queue.largest_count();
    assert!(count > 5, "{count}");
    let packet = Sent::of(1);
    bench.now += Time::from_millis(500);
    bench.push(packet);
    bench.pop().unwrap();
    let after = bench.queue.largest_count();
    assert!(
        after < count && after > 0,
        "{count} {after}: it decays, step by step"
    );
    // At rest the queue is given up.
    for _ in 0..2000 {
        bench.now += Time::from_secs(1);
        bench.push(Sent::of(2));
        while bench.pop().is_some() {}
    }
    assert_eq!(bench.queue.largest_count(), 0);
}

#[test]
fn both_ecn_capable_code_points_are_marked() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let mut bench = Bench::new("bandwidth = '1 Mbit/s'");
        for _ in 0..200 {
            (0..2).for_each(|_| bench.push(Sent { ecn, ..Sent::of(1) }));
            bench.pop();
        }
        let counters = bench.stats.counters();
        assert!(counters.marked[Reason::EARLY.index()] > 0);
        assert_eq!(counters.dropped[Reason::EARLY.index()], 0);
    }
}

#[test]
fn ingress_mode_charges_what_it_drops() {
    let rate = |text: &str| {
        let mut bench = Bench::new(&format!("bandwidth = '1 Mbit/s'\n{text}"));
        let mut bytes = 0.0;
        let mut came = Time::ZERO;
        while bench.now < Time::from_secs(20) {
            while came <= bench.now {
                bench.push(Sent::of(1));
                came += Time::from_millis(8);
            }
            match bench.pop() {
                Some(queued) => bytes += f64::from(queued.packet.size),
                None => bench.now = came,
            }
        }
        8.0 * bytes / 20.0 / 1e6
    };
    let [egress, ingress] = ["", "ingress = true"].map(rate);
    assert!((egress - 1.0).abs() < 0.01, "{egress}");
    assert!(
        ingress < 0.95,
        "{ingress}: what is dropped took its time in front of the shaper"
    );
}

/// Without a shaper, tins take turns by their deficits, as the flows of a tin always do.
#[test]
fn ingress_mode_charges_what_it_drops_to_its_tin_and_flow() {
    let share = |text: &str| {
        let mut bench = Bench::new(text);
        let mut lossy = 0.0;
        for number in 0..2000 {
            bench.now = Time::from_millis(12 * number);
            // Each flow gets what the link carries. One is marked where the other loses.
            for (flow, dscp, ecn) in [(1, 0, Ecn::NotEct), (2, 34, Ecn::Ect0)] {
                let of = Sent::of(flow);
                bench.push(Sent { dscp, ecn, ..of });
            }
            lossy += f64::from(bench.pop().unwrap().packet.dscp == 0);
        }
        lossy / 2000.0
    };
    for tins in ["diffserv4", "besteffort"] {
        let [egress, ingress] =
            ["false", "true"].map(|it| share(&format!("tins = '{tins}'\ningress = {it}")));
        assert!(
            ingress < 0.8 * egress,
            "{tins}: {ingress} of the link, {egress} at an egress"
        );
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let field = |text: &str| {
        let params: Params = toml::from_str(text).unwrap();
        params.check().unwrap_err().0
    };
    assert_eq!(field("flows = 12"), "flows");
    assert_eq!(field("overhead = 300"), "overhead");
    assert_eq!(field("bandwidth = '1 kbit/s'"), "bandwidth");
    assert_eq!(field("rtt = '10 ms'\ntarget = '20 ms'"), "target");
    assert_eq!(field("rtt = '0 s'"), "rtt");
}

#[test]
fn memory_follows_rate_and_rtt() {
    let memory = |text: &str| toml::from_str::<Params>(text).unwrap().memory().0;
    assert_eq!(memory(""), 10_240 * 1514);
    assert_eq!(memory("bandwidth = '10 Mbit/s'"), 4 << 20);
    assert_eq!(memory("bandwidth = '200 Mbit/s'"), 10_000_000);
    assert_eq!(memory("bandwidth = '10 Gbit/s'"), 10_240 * 1514);
    assert_eq!(memory("memory = '1 MB'"), 1_000_000);
}
