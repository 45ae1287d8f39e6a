//! The fifo and RED as they behave from outside: limits, ECN, byte mode, spacing, idle time,
//! conservation, and the refusal of impossible parameters.

use aqmlab_aqm::droptail;
use aqmlab_aqm::red::{Gap, Params, Unit};
use aqmlab_aqm::{Backlog, Discipline, FifoQueue, LinkFacts, Outcome, Reason};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, QueueSize, RandomStream, Rate, Time};
use proptest::prelude::*;

use crate::model::once::Judged;

const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(38),
};

fn packet(size: u32, ecn: Ecn) -> Packet {
    Packet {
        size,
        ecn,
        dscp: 0,
        flow: FlowKey(7),
    }
}

/// A packet of `size` bytes leaves, now or never mind when.
fn depart(fifo: &mut FifoQueue, size: u32) {
    fifo.depart(Time::ZERO, &packet(size, Ecn::NotEct), Time::ZERO);
}

fn droptail(limit: QueueSize) -> Discipline {
    Discipline::Droptail(droptail::Params { limit, ecn: false })
}

fn params() -> Params {
    Params {
        min_th: QueueSize::Packets(5.0),
        max_th: QueueSize::Packets(15.0),
        limit: QueueSize::Packets(60.0),
        w_q: 0.002,
        max_p: 0.1,
        gentle: false,
        gap: Gap::Uniform,
        unit: Unit::Packets,
        scale_by_size: false,
        mean_packet: Bytes(500),
        ecn: false,
    }
}

fn fifo(params: Params) -> FifoQueue {
    FifoQueue::new(&Discipline::Red(params), LINK, 1).unwrap()
}

/// The value of one of the AQM's inner variables.
fn probe(fifo: &FifoQueue, name: &str) -> f64 {
    let mut values = Vec::new();
    fifo.probe(&mut values);
    values[fifo.probe_names().iter().position(|n| *n == name).unwrap()]
}

/// Sends packets through a fifo at one instant; `u` is every random number.
fn send(fifo: &mut FifoQueue, count: usize, packet: &Packet, u: f64) -> Vec<Outcome> {
    (0..count)
        .map(|_| fifo.come(Time::ZERO, packet, &mut || u))
        .collect()
}

#[test]
fn a_limit_in_packets_counts_packets_and_a_limit_in_bytes_counts_bytes() {
    let big = packet(1500, Ecn::NotEct);
    let small = packet(40, Ecn::NotEct);
    let overflow = Outcome::Drop(Reason::OVERFLOW);

    let mut packets = FifoQueue::new(&droptail(QueueSize::Packets(2.5)), LINK, 1).unwrap();
    let outcomes = send(&mut packets, 3, &big, 0.5);
    assert_eq!(outcomes, [Outcome::Enqueue, Outcome::Enqueue, overflow]);
    assert_eq!(send(&mut packets, 1, &small, 0.5), [overflow]);

    let mut bytes = FifoQueue::new(&droptail(QueueSize::Bytes(3040)), LINK, 1).unwrap();
    let outcomes = send(&mut bytes, 3, &big, 0.5);
    assert_eq!(outcomes, [Outcome::Enqueue, Outcome::Enqueue, overflow]);
    let outcomes = send(&mut bytes, 2, &small, 0.5);
    assert_eq!(outcomes, [Outcome::Enqueue, overflow]);
}

#[test]
fn counters_hold_what_happened() {
    let mut fifo = FifoQueue::new(&droptail(QueueSize::Packets(2.0)), LINK, 1).unwrap();
    send(&mut fifo, 3, &packet(1000, Ecn::NotEct), 0.5);
    depart(&mut fifo, 1000);
    let counters = fifo.counters();
    assert_eq!(
        (counters.arrived_packets, counters.arrived_bytes),
        (3, 3000)
    );
    assert_eq!(
        (counters.departed_packets, counters.departed_bytes),
        (1, 1000)
    );
    assert_eq!(counters.dropped[Reason::OVERFLOW.index()], 1);
    assert_eq!(counters.dropped_packets(), 1);
    let left = Backlog {
        packets: 1,
        bytes: 1000,
    };
    assert_eq!(fifo.backlog(), left);
}

#[test]
fn a_marked_packet_that_does_not_fit_counts_once_as_overflow() {
    let params = Params {
        min_th: QueueSize::Packets(1.0),
        max_th: QueueSize::Packets(100.0),
        limit: QueueSize::Packets(2.0),
        w_q: 1.0,
        ecn: true,
        ..params()
    };
    let mut fifo = fifo(params);
    let capable = packet(500, Ecn::Ect0);
    // The first ends the idle time and takes no sample; from two packets on, u = 0 signals all.
    let outcomes = send(&mut fifo, 4, &capable, 0.0);
    let overflow = Outcome::Drop(Reason::OVERFLOW);
    assert_eq!(
        outcomes,
        [Outcome::Enqueue, Outcome::Enqueue, overflow, overflow]
    );
    assert_eq!(fifo.counters().marked_packets(), 0);
    assert_eq!(fifo.counters().dropped[Reason::OVERFLOW.index()], 2);
    assert_eq!(fifo.counters().dropped_packets(), 2);
    assert_eq!(probe(&fifo, "count"), 0.0);
}

#[test]
fn an_overflow_starts_the_spacing_anew_and_a_draw_equal_to_the_probability_is_no_signal() {
    let params = Params {
        w_q: 1.0,
        limit: QueueSize::Packets(10.0),
        ..params()
    };
    let mut fifo = fifo(params);
    let sent = packet(500, Ecn::NotEct);
    send(&mut fifo, 10, &sent, 0.999);
    // From the sixth arrival on the average is at or above min_th.
    assert_eq!(probe(&fifo, "count"), 4.0);
    assert_eq!(
        send(&mut fifo, 1, &sent, 0.999),
        [Outcome::Drop(Reason::OVERFLOW)]
    );
    assert_eq!(probe(&fifo, "count"), 0.0);

    depart(&mut fifo, 500);
    // 9 packets: p_b = 0.04, and count is 1.
    let p_a = 0.04 / 0.96;
    assert_eq!(send(&mut fifo.clone(), 1, &sent, p_a), [Outcome::Enqueue]);
    let below = p_a * (1.0 - 1e-12);
    assert_eq!(
        send(&mut fifo, 1, &sent, below),
        [Outcome::Drop(Reason::EARLY)]
    );
}

/// Fills a queue to three packets, so that the average (weight 1) lies between the thresholds,
/// and returns the outcome of the next arrival when every open chance comes true.
fn fate_of_a_signal(ecn: bool, on_packet: Ecn) -> Outcome {
    let params = Params {
        min_th: QueueSize::Packets(3.0),
        max_th: QueueSize::Packets(100.0),
        w_q: 1.0,
        ecn,
        ..params()
    };
    let mut fifo = fifo(params);
    send(&mut fifo, 4, &packet(500, Ecn::NotEct), 0.999);
    fifo.come(Time::ZERO, &packet(500, on_packet), &mut || 0.0)
}

#[test]
fn marks_need_ecn_at_the_router_and_on_the_packet() {
    let dropped = Outcome::Drop(Reason::EARLY);
    for capable in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        assert_eq!(
            fate_of_a_signal(true, capable),
            Outcome::Mark(Reason::EARLY)
        );
        assert_eq!(fate_of_a_signal(false, capable), dropped);
    }
    assert_eq!(fate_of_a_signal(true, Ecn::NotEct), dropped);
}

#[test]
fn above_max_th_even_capable_packets_are_dropped() {
    let params = Params {
        w_q: 1.0,
        ecn: true,
        ..params()
    };
    let mut fifo = fifo(params);
    let outcomes = send(&mut fifo, 20, &packet(500, Ecn::Ect0), 0.999);
    // The sample is taken before the packet: the 16th arrival sees 15 packets.
    assert!(
        outcomes[..15]
            .iter()
            .all(|outcome| *outcome == Outcome::Enqueue)
    );
    assert!(
        outcomes[15..]
            .iter()
            .all(|outcome| *outcome == Outcome::Drop(Reason::FORCED))
    );
}

#[test]
fn scaling_by_size_spares_small_packets() {
    let params = Params {
        w_q: 1.0,
        gap: Gap::None,
        unit: Unit::Bytes,
        scale_by_size: true,
        ..params()
    };
    let mut fifo = fifo(params);
    // 10 packets of 500 bytes: half-way between the thresholds of 2500 and 7500 bytes.
    send(&mut fifo, 10, &packet(500, Ecn::NotEct), 0.999);
    for (size, p_b) in [(500, 0.05), (40, 0.05 * 40.0 / 500.0)] {
        assert_eq!(fifo.backlog().bytes, 5000);
        let outcome = fifo.come(Time::ZERO, &packet(size, Ecn::NotEct), &mut || 0.0);
        assert_eq!(outcome, Outcome::Drop(Reason::EARLY));
        assert!((probe(&fifo, "p_b") - p_b).abs() < 1e-12);
    }
}

#[test]
fn a_scaled_probability_is_clamped() {
    let params = Params {
        w_q: 1.0,
        max_p: 1.0,
        scale_by_size: true,
        ..params()
    };
    let mut fifo = fifo(params);
    send(&mut fifo, 14, &packet(500, Ecn::NotEct), 0.999);
    fifo.come(Time::ZERO, &packet(1500, Ecn::NotEct), &mut || 0.0);
    assert_eq!(probe(&fifo, "p_b"), 1.0);
}

#[test]
fn thresholds_in_bytes_may_govern_a_queue_measured_in_packets() {
    let bytes = Params {
        min_th: QueueSize::Bytes(2500),
        max_th: QueueSize::Bytes(7500),
        w_q: 1.0,
        ..params()
    };
    let packets = Params {
        w_q: 1.0,
        ..params()
    };
    let sent = packet(500, Ecn::NotEct);
    let outcomes = [bytes, packets].map(|params| send(&mut fifo(params), 30, &sent, 0.05));
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(outcomes[0].contains(&Outcome::Drop(Reason::EARLY)));
}

#[test]
fn fewer_than_two_packets_waiting_are_never_signalled() {
    let params = Params {
        w_q: 0.01,
        ..params()
    };
    let mut fifo = fifo(params);
    let sent = packet(500, Ecn::NotEct);
    while probe(&fifo, "avg") < 10.0 {
        send(&mut fifo, 1, &sent, 0.999);
    }
    while fifo.backlog().packets > 1 {
        depart(&mut fifo, 500);
    }
    assert_eq!(send(&mut fifo, 1, &sent, 0.0), [Outcome::Enqueue]);
    assert!(probe(&fifo, "avg") > 9.0, "the average is still high");
    assert_eq!(
        send(&mut fifo, 1, &sent, 0.0),
        [Outcome::Drop(Reason::EARLY)]
    );
}

/// Brings the average to 10 packets or more and empties the queue by `emptied`.
fn gate_with_high_average(emptied: Time) -> FifoQueue {
    let mut fifo = fifo(Params {
        w_q: 0.01,
        max_th: QueueSize::Packets(50.0),
        ..params()
    });
    while probe(&fifo, "avg") < 10.0 {
        fifo.come(emptied, &packet(500, Ecn::NotEct), &mut || 0.999);
    }
    while fifo.backlog().packets > 0 {
        depart(&mut fifo, 500);
    }
    fifo
}

#[test]
fn an_idle_queue_ages_by_the_packets_it_could_have_sent() {
    let second = Time::from_secs(1);
    let mut fifo = gate_with_high_average(second);
    let before = probe(&fifo, "avg");
    // 2500 packets of 500 bytes a second: 40 ms are 100 packets.
    fifo.idle(second);
    let arrival = second + Time::from_millis(40);
    fifo.come(arrival, &packet(500, Ecn::NotEct), &mut || 0.5);
    let expected = before * 0.99_f64.powi(100);
    assert!((probe(&fifo, "avg") / expected - 1.0).abs() < 1e-9);
    // The idle time is over: the next arrival is an ordinary sample of one packet.
    fifo.come(arrival, &packet(500, Ecn::NotEct), &mut || 0.5);
    let expected = 0.99 * expected + 0.01;
    assert!((probe(&fifo, "avg") / expected - 1.0).abs() < 1e-9);
}

#[test]
fn idle_time_told_twice_counts_once() {
    let mut once = gate_with_high_average(Time::ZERO);
    let mut twice = once.clone();
    let arrival = |fifo: &mut FifoQueue, ms| {
        let at = Time::from_millis(ms);
        fifo.come(at, &packet(500, Ecn::NotEct), &mut || 0.5);
        depart(fifo, 500);
    };
    once.idle(Time::ZERO);
    twice.idle(Time::ZERO);
    twice.idle(Time::from_millis(10));
    arrival(&mut once, 40);
    arrival(&mut twice, 40);
    assert_eq!(probe(&once, "avg"), probe(&twice, "avg"));
    // A start before the last arrival is that arrival.
    once.idle(Time::from_millis(40));
    twice.idle(Time::ZERO);
    arrival(&mut once, 60);
    arrival(&mut twice, 60);
    assert_eq!(probe(&once, "avg"), probe(&twice, "avg"));
}

/// Distances between signals under a queue that is always 7 packets long: p_b = 0.02.
fn distances(gap: Gap) -> Vec<u32> {
    let mut fifo = fifo(Params {
        w_q: 1.0,
        gap,
        ..params()
    });
    let sent = packet(500, Ecn::NotEct);
    send(&mut fifo, 7, &sent, 0.999);
    let mut stream = RandomStream::new(5, "spacing", 0);
    let (mut distances, mut distance) = (Vec::new(), 0);
    for _ in 0..1_000_000 {
        distance += 1;
        match fifo.come(Time::ZERO, &sent, &mut || stream.uniform()) {
            Outcome::Drop(_) => distances.push(std::mem::take(&mut distance)),
            _ => depart(&mut fifo, 500),
        }
    }
    assert_eq!(probe(&fifo, "p_b"), 0.02);
    // The first distance has the start of the run in it.
    distances.split_off(1)
}

#[test]
fn signals_are_spaced_as_the_rules_say() {
    // The first packet after a signal has count 1, so that the ranges end one before 1/p_b = 50
    // and 2/p_b = 100. In the long run the rules signal 2 p_b, 2/3 p_b, p_b and p_b of the packets.
    for (gap, range, mean) in [
        (Gap::Uniform, Some((1, 49)), 25.0),
        (Gap::Wait, Some((50, 99)), 74.5),
        (Gap::Altq, Some((1, 99)), 50.0),
        (Gap::None, None, 50.0),
    ] {
        let distances = distances(gap);
        let signals = distances.len() as f64;
        let found = f64::from(distances.iter().sum::<u32>()) / signals;
        // Five standard errors of the widest, the geometric, distribution.
        assert!(
            (found - mean).abs() < 5.0 * 50.0 / signals.sqrt(),
            "{gap:?}: mean distance {found}, expected {mean}"
        );
        if let Some(range) = range {
            let extremes = (distances.iter().min(), distances.iter().max());
            assert_eq!(extremes, (Some(&range.0), Some(&range.1)), "{gap:?}");
        }
    }
}

/// What is done to a fifo in the conservation test.
#[derive(Clone, Debug)]
enum Event {
    Arrive { size: u32, capable: bool, u: f64 },
    Depart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let arrive = (40_u32..=1500, any::<bool>(), 0.0..1.0_f64)
        .prop_map(|(size, capable, u)| Event::Arrive { size, capable, u });
    prop::collection::vec(prop_oneof![2 => arrive, 1 => Just(Event::Depart)], 0..400)
}

proptest! {
    #[test]
    fn the_backlog_is_what_was_let_in_and_has_not_left(
        events in events(),
        limit in prop_oneof![
            (1.0..40.0_f64).prop_map(QueueSize::Packets),
            (1500_u64..30_000).prop_map(QueueSize::Bytes),
        ],
        red in any::<bool>(),
        ecn in any::<bool>(),
    ) {
        let discipline = if red {
            Discipline::Red(Params { w_q: 0.2, limit, ecn, ..params() })
        } else {
            droptail(limit)
        };
        let mut fifo = FifoQueue::new(&discipline, LINK, 1).unwrap();
        let mut queue = std::collections::VecDeque::new();
        let (mut now, mut dropped, mut marked) = (Time::ZERO, 0, 0);
        for event in events {
            now += Time::from_micros(300);
            match event {
                Event::Arrive { size, capable, u } => {
                    let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
                    match fifo.come(now, &packet(size, ecn), &mut || u) {
                        Outcome::Drop(_) => dropped += 1,
                        Outcome::Enqueue => queue.push_back(size),
                        Outcome::Mark(_) => {
                            prop_assert!(capable);
                            marked += 1;
                            queue.push_back(size);
                        }
                    }
                }
                Event::Depart => match queue.pop_front() {
                    Some(size) => depart(&mut fifo, size),
                    None => fifo.idle(now),
                },
            }
            let bytes: u64 = queue.iter().map(|size| u64::from(*size)).sum();
            prop_assert_eq!(fifo.backlog(), Backlog { packets: queue.len() as u32, bytes });
            match limit {
                QueueSize::Packets(limit) => prop_assert!(queue.len() as f64 <= limit),
                QueueSize::Bytes(limit) => prop_assert!(bytes <= limit),
            }
        }
        let counters = fifo.counters();
        prop_assert_eq!(counters.dropped_packets(), dropped);
        prop_assert_eq!(counters.marked_packets(), marked);
        prop_assert_eq!(
            counters.arrived_packets,
            dropped + counters.departed_packets + queue.len() as u64
        );
    }
}

#[test]
fn impossible_parameters_are_refused_with_the_field_and_the_remedy() {
    let packets = QueueSize::Packets;
    let red = |change: fn(&mut Params)| {
        let mut params = params();
        change(&mut params);
        Discipline::Red(params)
    };
    let cases: [(Discipline, &str, &str); 13] = [
        (droptail(packets(0.5)), "limit", "holds no packet"),
        (droptail(QueueSize::Bytes(39)), "limit", "40 bytes"),
        (
            red(|p| p.limit = QueueSize::Packets(0.0)),
            "limit",
            "holds no packet",
        ),
        (red(|p| p.w_q = 0.0), "w_q", "found 0;"),
        (red(|p| p.w_q = 1.5), "w_q", "found 1.5;"),
        (red(|p| p.w_q = f64::NAN), "w_q", "NaN"),
        (red(|p| p.max_p = -0.1), "max_p", "above 0 and at most 1"),
        (red(|p| p.max_p = 10.0), "max_p", "above 0 and at most 1"),
        (red(|p| p.mean_packet = Bytes(0)), "mean_packet", "0 bytes"),
        (
            red(|p| p.max_th = QueueSize::Packets(5.0)),
            "max_th",
            "must exceed min_th, 5 packets",
        ),
        (
            red(|p| p.max_th = QueueSize::Bytes(2000)),
            "max_th",
            "must exceed min_th",
        ),
        (
            red(|p| p.limit = QueueSize::Packets(5.0)),
            "limit",
            "must exceed min_th, 5 packets",
        ),
        (
            red(|p| {
                p.gentle = true;
                p.limit = QueueSize::Packets(30.0);
            }),
            "limit",
            "twice max_th, 15 packets",
        ),
    ];
    for (discipline, field, words) in cases {
        let (found, message) = discipline.check().unwrap_err();
        assert_eq!(found, field, "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn the_parameters_of_the_papers_are_accepted() {
    let packets = QueueSize::Packets;
    for (min_th, max_th, limit) in [
        (5.0, 15.0, 480.0),
        (120.0, 360.0, 480.0),
        (30.0, 90.0, 120.0),
        (90.0, 150.0, 120.0),
    ] {
        let red = Params {
            min_th: packets(min_th),
            max_th: packets(max_th),
            limit: packets(limit),
            ..params()
        };
        assert_eq!(Discipline::Red(red).check(), Ok(()));
    }
    assert_eq!(droptail(packets(1.0)).check(), Ok(()));
}
