//! Counters, and the short ways past a queue: packets that need not wait in it count all the same.

use aqmlab_aqm::{Backlog, Counters, Discipline, FifoQueue, LinkFacts, Outcome, Queue, Reason};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, RandomStream, Rate, Time};
use toml::Table;

use crate::model::once::{Judged, Numbered};

const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(0),
};
const MS: fn(u64) -> Time = Time::from_millis;

fn discipline(text: &str) -> Discipline {
    let table: Table = text.parse().unwrap();
    tagged::from_value(table.into()).unwrap()
}

fn packet(size: u32) -> Packet {
    Packet {
        size,
        ecn: Ecn::Ect0,
        dscp: 0,
        flow: FlowKey(1),
    }
}

#[test]
fn a_difference_of_counters_is_what_came_between_them() {
    let of = |text: &str| {
        let mut queue: Queue<usize> = Queue::new(&discipline(text), LINK, 1);
        let mut count = |times: u64| {
            for number in 0..times {
                let now = MS(number);
                queue.put(now, packet(100), 0, &mut || 0.2, &mut |_, _| ());
                if number % 2 == 0 {
                    queue.take(now, &mut || 0.2, &mut |_, _| ());
                }
            }
            queue.counters().clone()
        };
        [count(10), count(25)]
    };
    // A draw of 0.2 marks everything; the second queue has room for three packets.
    let [earlier, now] = of("kind = 'bernoulli'\nlimit = '100 packets'\np = 0.5\necn = true");
    let between = now.since(&earlier);
    assert_eq!(between.reasons, now.reasons);
    assert_eq!((between.arrived_packets, between.arrived_bytes), (25, 2500));
    assert_eq!(
        (between.departed_packets, between.departed_bytes),
        (13, 1300)
    );
    assert_eq!(
        (between.marked_packets(), between.dropped_packets()),
        (25, 0)
    );
    let marks: Vec<_> = between.marks().collect();
    assert_eq!(marks, [(Reason::EARLY, 25)]);
    let [earlier, now] = of("kind = 'droptail'\nlimit = '3 packets'");
    let between = now.since(&earlier);
    assert_eq!((earlier.dropped_packets(), now.dropped_packets()), (2, 15));
    assert_eq!(
        between.drops().collect::<Vec<_>>(),
        [(Reason::OVERFLOW, 13)]
    );
    assert_eq!(now.since(&now), Counters::new(now.reasons));
}

#[test]
fn reasons_are_equal_where_place_and_name_are() {
    // The first reason of a discipline's own has the same place in each.
    let own = |text: &str| {
        let reasons = discipline(text).reasons();
        reasons.iter().find(|it| it.index() == 3).copied().unwrap()
    };
    let blue = own("kind = 'cobalt'");
    let filter = own("kind = 'sfb'\nlimit = '10 packets'");
    assert_eq!(blue.index(), filter.index());
    assert!(blue != filter && blue != Reason::EARLY && blue == own("kind = 'cobalt'"));
    assert_eq!(format!("{:?}", Reason::FORCED), "Reason(forced)");
}

fn droptail(limit: &str) -> FifoQueue {
    let discipline = discipline(&format!("kind = 'droptail'\nlimit = '{limit}'"));
    FifoQueue::new(&discipline, LINK, 1).unwrap()
}

#[test]
fn where_a_queue_only_limits_admit_is_arrive() {
    for limit in ["5 packets", "4000 bytes"] {
        let (mut long, mut short) = (droptail(limit), droptail(limit));
        assert!(long.only_limits() && !long.wants_departures());
        let mut stream = RandomStream::new(3, "sizes", 0);
        let mut waiting = Vec::new();
        for _ in 0..500 {
            let size = [40, 500, 1500][stream.below(3)];
            if !waiting.is_empty() && stream.below(2) == 0 {
                let size = waiting.remove(0);
                long.depart(MS(1), &packet(size), MS(1));
                short.release(size);
                continue;
            }
            let fits = short.has_room(size);
            let outcome = long.come(MS(1), &packet(size), &mut || 0.5);
            assert_eq!(outcome == Outcome::Enqueue, fits);
            assert_eq!(short.admit(size, true), fits);
            if fits {
                waiting.push(size);
            }
            assert_eq!(short.backlog(), long.backlog());
        }
        let counted = short.counters();
        assert_eq!(counted, long.counters());
        assert!(counted.dropped_packets() > 20 && counted.departed_packets > 100);
        short.release_all();
        assert_eq!(short.backlog(), Backlog::default());
        assert_eq!(
            short.counters().departed_packets,
            counted.arrived_packets - counted.dropped_packets()
        );
        // One that need not wait is not part of what waits, and counts.
        assert!(short.admit(1500, false));
        assert_eq!(short.backlog(), Backlog::default());
        assert_eq!(
            short.counters().arrived_packets,
            counted.arrived_packets + 1
        );
    }
}

#[test]
fn aqms_that_hear_of_packets_do_not_only_limit() {
    for (text, departures) in [
        (
            "kind = 'red'\nmin_th = '2 packets'\nmax_th = '6 packets'\nlimit = '9 packets'",
            false,
        ),
        ("kind = 'pie'\ndelay = 'rate'", true),
        ("kind = 'blue'\nlimit = '9 packets'", false),
    ] {
        let fifo = FifoQueue::new(&discipline(text), LINK, 1).unwrap();
        assert!(!fifo.only_limits(), "{text}");
        assert_eq!(fifo.wants_departures(), departures, "{text}");
    }
}

#[test]
fn packets_that_bypass_codel_count_and_take_their_room() {
    for limit in ["4 packets", "4000 bytes"] {
        let codel = discipline(&format!(
            "kind = 'codel'\nlimit = '{limit}'\ntarget = '5 ms'"
        ));
        let mut queue: Queue<usize> = Queue::new(&codel, LINK, 1);
        assert!(queue.bypass_below() > Time::ZERO && queue.bypass_below() <= MS(5));
        let waiting = |packets: u32| Backlog {
            packets,
            bytes: 1000 * u64::from(packets),
        };
        let room = queue.bypass_room();
        assert!(room.admits(waiting(3), 1000), "{limit}: the last that fits");
        assert!(!room.admits(waiting(4), 1000), "{limit}");
        assert!(room.admits(waiting(3), 40));
        for _ in 0..3 {
            queue.count_bypassed(MS(1), 1000);
        }
        let counted = queue.counters().clone();
        assert_eq!((counted.arrived_packets, counted.arrived_bytes), (3, 3000));
        assert_eq!(
            (counted.departed_packets, counted.departed_bytes),
            (3, 3000)
        );
        queue.set_bypassed(waiting(3));
        let mut dropped = Vec::new();
        for _ in 0..2 {
            queue.put(MS(1), packet(1000), 0, &mut || 0.5, &mut |_, reason| {
                dropped.push(reason);
            });
        }
        assert_eq!(dropped, [Reason::OVERFLOW], "{limit}");
        assert_eq!(queue.backlog(), waiting(1));
        queue.set_bypassed(waiting(0));
        queue.put(MS(1), packet(1000), 0, &mut || 0.5, &mut |_, reason| {
            dropped.push(reason);
        });
        assert_eq!((queue.backlog(), dropped.len()), (waiting(2), 1));
    }
}

#[test]
fn other_queues_cannot_be_bypassed() {
    for text in [
        "kind = 'fq-codel'",
        "kind = 'droptail'\nlimit = '9 packets'",
    ] {
        let queue: Queue<usize> = Queue::new(&discipline(text), LINK, 1);
        assert_eq!(queue.bypass_below(), Time::ZERO, "{text}");
        assert!(
            !queue.bypass_room().admits(Backlog::default(), 40),
            "{text}"
        );
    }
}
