//! The worked example, and the branches that it leaves out.

use aqmlab_net::Ecn;
use proptest::prelude::*;

use super::*;
use crate::worked::{self, Row};

/// The parameters of the example.
fn params() -> Params {
    Params {
        levels: 2,
        bins: 3,
        bin_size: Some(2),
        limit: QueueSize::Packets(50.0),
        d1: 0.25,
        d2: 0.05,
        freeze_time: Time::ZERO,
        rehash: Time::ZERO,
        penalty_rate: None,
        penalty_burst: Bytes(3000),
        drop_any_bin: false,
        mean_packet: Bytes(500),
        ecn: true,
    }
}

fn aqm(params: &Params) -> Sfb {
    Sfb::new(params, worked::link(1000, 500), 1)
}

/// A flow with these bins, level by level.
fn flow_in(aqm: &Sfb, bins: &[usize]) -> FlowKey {
    let hashes_there = |flow: &FlowKey| {
        let mut empty = aqm.current.clone();
        empty.bins.fill(Bin::default());
        empty.for_each(empty.hash(*flow), |bin| bin.qlen = 1);
        let levels = empty.bins.chunks(empty.width);
        let places = levels.map(|level| level.iter().position(|bin| bin.qlen == 1).unwrap());
        places.eq(bins.iter().copied())
    };
    (1..).map(FlowKey).find(hashes_there).unwrap()
}

fn compare_bins(aqm: &Sfb, row: &Row) {
    let columns = row.text("bins").split(['/', '|']);
    assert_eq!(columns.clone().count(), aqm.current.bins.len());
    for (index, (bin, column)) in aqm.current.bins.iter().zip(columns).enumerate() {
        let what = format!("row {}, bin {index}", row.step());
        let (qlen, p_m) = column.split_once(':').unwrap();
        assert_eq!(bin.qlen.to_string(), qlen, "{what}");
        worked::assert_close(bin.p_m, p_m.parse().unwrap(), &what);
    }
}

#[test]
fn sfb() {
    let mut aqm = aqm(&params());
    let flows = [[0, 1], [0, 2], [2, 1]].map(|bins| flow_in(&aqm, &bins));
    for row in worked::rows(include_str!("../../tests/data/sfb.csv")) {
        let packet = Packet {
            flow: match row.text("flow") {
                "a" => flows[0],
                "b" => flows[1],
                _ => flows[2],
            },
            ..row.packet()
        };
        worked::play_packet(&mut aqm, &row, &packet, true);
        if row.event() == "arrive" {
            worked::compare(&aqm, &row, &["p_min"]);
        }
        compare_bins(&aqm, &row);
    }
}

/// SFB with a clock; packets have 500 bytes.
struct Played {
    aqm: Sfb,
    now: Time,
}

impl Played {
    fn new(params: &Params) -> Self {
        Self {
            aqm: aqm(params),
            now: Time::ZERO,
        }
    }

    fn arrive(&mut self, flow: FlowKey, u: f64) -> Decision {
        let (packet, queue) = (packet(flow), Backlog::default());
        let decision = self.aqm.on_arrival(self.now, &packet, queue, &mut || u);
        let outcome = match decision {
            Decision::Admit => Outcome::Enqueue,
            Decision::Signal(reason) | Decision::Drop(reason) => Outcome::Drop(reason),
        };
        self.aqm.on_outcome(self.now, &packet, queue, outcome);
        decision
    }

    fn depart(&mut self) {
        let queue = Backlog::default();
        self.aqm
            .on_departure(self.now, &packet(FlowKey(0)), self.now, queue);
    }

    fn tick(&mut self) {
        self.now = self.aqm.next_tick();
        self.aqm.on_tick(self.now, Backlog::default());
    }

    fn rows_of_bins(&self) -> Vec<u32> {
        self.aqm.current.bins.iter().map(|bin| bin.qlen).collect()
    }
}

fn packet(flow: FlowKey) -> Packet {
    Packet {
        size: 500,
        ecn: Ecn::NotEct,
        dscp: 0,
        flow,
    }
}

#[test]
fn a_flow_is_signalled_with_the_smallest_probability_of_its_bins() {
    let mut played = Played::new(&params());
    let flow = flow_in(&played.aqm, &[0, 1]);
    played.aqm.current.bins[0].p_m = 0.8;
    played.aqm.current.bins[4].p_m = 0.35;
    for bin in [0, 4] {
        played.aqm.current.bins[bin].qlen = 1;
    }
    assert_eq!(played.arrive(flow, 0.36), Decision::Admit);
    for bin in [0, 4] {
        played.aqm.current.bins[bin].qlen = 1;
    }
    assert_eq!(played.arrive(flow, 0.34), Decision::Signal(Reason::EARLY));
    assert_eq!(played.aqm.p_min, 0.35);
}

#[test]
fn the_letter_of_the_figure_drops_where_one_bin_is_full() {
    for (drop_any_bin, expected) in [(false, Decision::Admit), (true, Decision::Drop(FULL_BIN))] {
        let mut played = Played::new(&Params {
            drop_any_bin,
            ..params()
        });
        let flow = flow_in(&played.aqm, &[0, 1]);
        played.aqm.current.bins[0].qlen = 2;
        assert_eq!(played.arrive(flow, 0.999), expected);
    }
}

#[test]
fn the_penalty_box_lets_a_trickle_through() {
    let mut played = Played::new(&Params {
        bin_size: Some(1000),
        penalty_rate: Some(Rate::from_bps(40_000)),
        penalty_burst: Bytes(1000),
        ..params()
    });
    let flow = FlowKey(1);
    let hash = played.aqm.current.hash(flow);
    played
        .aqm
        .current
        .for_each(hash, |bin| (bin.p_m, bin.qlen) = (1.0, 1));
    let dropped = Decision::Drop(PENALTY);
    // 1000 bytes at once, then 5 a millisecond: a packet per 100 ms.
    let admitted: Vec<_> = (0..400)
        .filter(|ms| {
            played.now = Time::from_millis(*ms);
            let decision = played.arrive(flow, 0.999);
            assert!(decision == Decision::Admit || decision == dropped);
            decision == Decision::Admit
        })
        .collect();
    assert_eq!(admitted, [0, 1, 100, 200, 300]);
}

#[test]
fn a_bin_moves_once_per_freeze_time() {
    let steps = Steps {
        bin_size: 2,
        d1: 0.25,
        d2: 0.05,
        freeze: Time::from_millis(100),
    };
    let mut bin = Bin {
        qlen: 2,
        ..Bin::default()
    };
    for (ms, p_m) in [(0, 0.25), (99, 0.25), (100, 0.5), (250, 0.75), (349, 0.75)] {
        bin.arrive(Time::from_millis(ms), steps);
        assert_eq!(bin.p_m, p_m, "at {ms} ms");
    }
    // Down under the same clock: at 349 ms nothing, at 350 ms a step.
    bin.qlen = 1;
    bin.depart(Time::from_millis(349), steps);
    assert_eq!(bin.p_m, 0.75);
    bin.arrive(Time::from_millis(350), steps);
    worked::assert_close(bin.p_m, 0.7, "after a step down");
    // Between empty and full nothing moves.
    bin.qlen = 1;
    bin.arrive(Time::from_millis(900), steps);
    worked::assert_close(bin.p_m, 0.7, "between empty and full");
}

#[test]
fn new_hash_functions_keep_what_they_learned_of_punished_flows() {
    let mut played = Played::new(&Params {
        rehash: Time::from_secs(2),
        ..params()
    });
    let flow = FlowKey(1);
    // Two are let in and fill all bins, four are dropped: four steps in both sets of bins.
    for _ in 0..6 {
        played.arrive(flow, 0.999);
    }
    assert_eq!(played.aqm.next_tick(), Time::from_secs(2));
    let before = played.aqm.current.seed;
    played.tick();
    assert_ne!(played.aqm.current.seed, before);
    assert_eq!(played.aqm.next_tick(), Time::from_secs(4));
    assert_eq!(played.arrive(flow, 0.999), Decision::Drop(FULL_BIN));
    assert_eq!(played.aqm.p_min, 1.0);
    // The set after it has seen one more drop than packets, and no packet.
    let next = played.aqm.next.as_ref().unwrap();
    assert!(next.bins.iter().all(|bin| bin.qlen == 0));
}

#[test]
fn a_packet_lowers_the_bins_that_it_raised() {
    let mut played = Played::new(&Params {
        rehash: Time::from_secs(2),
        bin_size: Some(100),
        ..params()
    });
    let sum = |played: &Played| played.rows_of_bins().iter().sum::<u32>();
    for flow in 0..5 {
        played.arrive(FlowKey(flow), 0.999);
    }
    played.tick();
    assert_eq!(sum(&played), 10, "the next bins had counted all five");
    played.depart();
    assert_eq!(sum(&played), 8);
    played.arrive(FlowKey(9), 0.999);
    played.tick();
    // Bins that never saw the first five: they leave without a trace.
    assert_eq!(sum(&played), 2);
    for _ in 0..4 {
        played.depart();
    }
    assert_eq!(sum(&played), 2);
    played.depart();
    assert_eq!(sum(&played), 0);
}

#[test]
fn levels_hash_apart() {
    // 23 bins at 6 levels: 2000 flows spread evenly at each, and pairs that share a bin at one
    // level share it at another as often as strangers do, one in 23.
    let wide = Params {
        levels: 6,
        bins: 23,
        ..params()
    };
    let mut bins = aqm(&wide).current;
    let places: Vec<Vec<usize>> = (0..2000)
        .map(|flow| {
            bins.bins.fill(Bin::default());
            bins.for_each(bins.hash(FlowKey(flow)), |bin| bin.qlen = 1);
            let levels = bins.bins.chunks(23);
            levels
                .map(|level| level.iter().position(|bin| bin.qlen == 1).unwrap())
                .collect()
        })
        .collect();
    for level in 0..6 {
        let in_bin = |bin| places.iter().filter(|place| place[level] == bin).count();
        // Five standard deviations of 2000 throws into 23 bins: 87 +- 46.
        assert!((0..23).all(|bin| in_bin(bin).abs_diff(87) < 46));
        for other in 0..level {
            let same = places
                .iter()
                .filter(|place| place[level] == place[other])
                .count();
            assert!(same.abs_diff(87) < 46, "levels {level} and {other}: {same}");
        }
    }
}

#[test]
fn bin_size_and_penalty_rate_follow_buffer_and_link_unless_they_are_set() {
    let by_rule = Params {
        bin_size: None,
        bins: 23,
        limit: QueueSize::Packets(200.0),
        ..params()
    };
    assert_eq!(by_rule.bin_size(), 13);
    let tiny = Params {
        limit: QueueSize::Packets(1.0),
        ..by_rule
    };
    assert_eq!(tiny.bin_size(), 1);
    // 45 Mbit/s let 0.16 Mbit/s, 20000 bytes a second, pass.
    let mut aqm = aqm(&by_rule);
    aqm.set_link(worked::link(11_250, 500));
    worked::assert_close(aqm.penalty.bytes_per_second, 20_000.0, "penalty rate");
}

proptest! {
    #[test]
    fn every_level_counts_all_packets_that_wait(
        events in prop::collection::vec((0_u64..30, any::<bool>(), 0.0..1.0_f64), 0..300),
    ) {
        let mut played = Played::new(&Params { bin_size: Some(4), ..params() });
        let mut waiting = 0;
        for (flow, leave, u) in events {
            played.now += Time::from_millis(1);
            if !leave {
                waiting += u32::from(played.arrive(FlowKey(flow), u) == Decision::Admit);
            } else if waiting > 0 {
                waiting -= 1;
                played.depart();
            }
            for level in played.rows_of_bins().chunks(3) {
                prop_assert_eq!(level.iter().sum::<u32>(), waiting);
            }
            for bin in &played.aqm.current.bins {
                prop_assert!((0.0..=1.0).contains(&bin.p_m));
            }
        }
    }
}
