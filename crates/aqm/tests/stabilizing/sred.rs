//! SRED.

use aqmlab_aqm::sred::Params;
use aqmlab_aqm::{Aqm, AqmParameters, Backlog, Decision, Discipline};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};
use proptest::prelude::*;

use crate::model::once::Judged;
use crate::stabilizing::{LINK, fifo, packet, probe, read};

fn params(table: &str) -> Params {
    match read(table) {
        Discipline::Sred(params) => params,
        other => panic!("{other:?}"),
    }
}

const FULL: &str = "kind = \"sred\"\nlimit = \"90 packets\"\n";
const SIMPLE: &str = "kind = \"sred\"\nrule = \"simple\"\nlimit = \"90 packets\"\n";

/// What waits in a buffer of 90 packets that is a third full.
const THIRD: Backlog = Backlog {
    packets: 30,
    bytes: 15_000,
};

fn packet_of(flow: u64) -> Packet {
    Packet {
        flow: FlowKey(flow),
        ..packet(500, Ecn::NotEct)
    }
}

/// Sends 300 000 packets, of flow number `flow(random)`, at a buffer a third full, and returns P
/// at the end and, of the last 200 000, the packets and the signals of flow 0 and of all.
fn crowd(table: &str, flow: impl Fn(&mut RandomStream) -> usize) -> (f64, [f64; 2], [f64; 2]) {
    let mut sred = params(table).aqm(LINK, 1);
    let mut flows = RandomStream::new(1, "flows", 0);
    let mut draws = RandomStream::new(1, "law", 0);
    let (mut packets, mut signals) = ([0.0; 2], [0.0; 2]);
    for arrival in 0..300_000 {
        let flow = flow(&mut flows);
        let packet = packet_of(flow as u64);
        let decision = sred.on_arrival(Time::ZERO, &packet, THIRD, &mut || draws.uniform());
        if arrival >= 100_000 {
            for (index, counts) in [flow == 0, true].into_iter().enumerate() {
                packets[index] += f64::from(u8::from(counts));
                signals[index] += f64::from(u8::from(counts && decision != Decision::Admit));
            }
        }
    }
    let mut probed = Vec::new();
    sred.probe(&mut probed);
    (probed[1], packets, signals)
}

#[test]
fn sred_estimates_the_number_of_flows_and_signals_by_its_square() {
    for flows in [10, 50, 200] {
        let (frequency, packets, signals) = crowd(SIMPLE, |random| random.below(flows));
        let estimate = 1.0 / frequency;
        assert!((estimate / flows as f64 - 1.0).abs() < 0.25, "{estimate}");
        let share = flows as f64 / 256.0;
        let rate = signals[1] / packets[1];
        assert!((rate / (0.15 * share * share) - 1.0).abs() < 0.25, "{rate}");
    }
    // Far more than 256 flows saturate it at p_max.
    let (_, packets, signals) = crowd(SIMPLE, |random| random.below(1_000_000));
    assert!((signals[1] / packets[1] - 0.15).abs() < 0.005);
}

#[test]
fn sred_full_signals_a_greedy_flow_more_often_than_its_share() {
    // Flow 0 sends a quarter of all packets, 100 flows the rest.
    let greedy = |random: &mut RandomStream| {
        let greedy = random.uniform() < 0.25;
        if greedy { 0 } else { 1 + random.below(100) }
    };
    let ratio = |table| {
        let (_, packets, signals) = crowd(table, greedy);
        (signals[0] / packets[0]) / ((signals[1] - signals[0]) / (packets[1] - packets[0]))
    };
    // P is 1/16 + 100 (3/400)^2, and p (1 + Hit / P) is on average p (1 + share / P).
    let p = 0.0625 + 100.0 * 0.0075 * 0.0075;
    let expected = (1.0 + 0.25 / p) / (1.0 + 0.0075 / p);
    let full = ratio(FULL);
    assert!((full / expected - 1.0).abs() < 0.3, "{full}, {expected}");
    let simple = ratio(SIMPLE);
    assert!((simple - 1.0).abs() < 0.3, "{simple}");
}

#[test]
fn sred_signals_by_sixths_of_the_buffer_in_the_unit_of_the_limit() {
    let p_zap = |table: &str, packets: u32, bytes: u64| {
        let mut sred = params(table).aqm(LINK, 1);
        let queue = Backlog { packets, bytes };
        sred.on_arrival(Time::ZERO, &packet_of(1), queue, &mut || 0.999_999);
        let mut probed = Vec::new();
        sred.probe(&mut probed);
        probed[2]
    };
    for (packets, p) in [
        (14, 0.0),
        (15, 0.0375),
        (29, 0.0375),
        (30, 0.15),
        (90, 0.15),
    ] {
        assert_eq!(p_zap(FULL, packets, 0), p, "{packets} packets");
    }
    let bytes = "kind = \"sred\"\nlimit = \"9000 bytes\"";
    for (length, p) in [(1499, 0.0), (1500, 0.0375), (2999, 0.0375), (3000, 0.15)] {
        assert_eq!(p_zap(bytes, 0, length), p, "{length} bytes");
    }
}

#[test]
fn sred_learns_from_packets_that_it_drops() {
    let mut sred = params(
        "kind = \"sred\"\nlimit = \"9 packets\"\nzombies = 1\nalpha = 0.5\n\
                          p_max = 1.0",
    )
    .aqm(LINK, 1);
    let full = Backlog {
        packets: 9,
        bytes: 4500,
    };
    let mut no_draw = || unreachable!("the list fills and the probability is 1");
    let decision = sred.on_arrival(Time::ZERO, &packet_of(1), full, &mut no_draw);
    assert_ne!(decision, Decision::Admit);
    // Index, then the zap is drawn: it hits, and P = 0.5 asks for 3 / 128^2.
    let mut draws = [0.999_999, 0.9].into_iter();
    sred.on_arrival(Time::ZERO, &packet_of(1), full, &mut || {
        draws.next().unwrap()
    });
    assert_eq!(sred.zombies()[0].count, 1);
    let mut probed = Vec::new();
    sred.probe(&mut probed);
    assert_eq!(probed, [1.0, 0.5, 3.0 / (128.0 * 128.0)]);
}

#[test]
fn sred_remembers_no_more_than_its_list() {
    let mut sred = params(FULL).aqm(LINK, 1);
    let mut draws = RandomStream::new(1, "law", 0);
    for flow in 0..100_000 {
        sred.on_arrival(Time::ZERO, &packet_of(flow), THIRD, &mut || draws.uniform());
    }
    assert_eq!(sred.zombies().len(), 1000);
    assert_eq!(size_of_val(sred.zombies()), 16_000);
}

proptest! {
    #[test]
    fn sred_exposes_probabilities_whatever_arrives(
        arrivals in prop::collection::vec((0_u64..5, 0.0..1.0), 1..300),
        alpha in prop_oneof![Just(1.0), Just(1e-320), 1e-9..1.0],
        zombies in 1..6,
    ) {
        let table = format!("{FULL}alpha = {alpha:?}\nzombies = {zombies}");
        let mut fifo = fifo(&table);
        for (flow, u) in arrivals {
            fifo.come(Time::ZERO, &packet_of(flow), &mut || u);
            for name in ["hit", "P", "p_zap"] {
                prop_assert!((0.0..=1.0).contains(&probe(&fifo, name)), "{}", name);
            }
        }
    }
}
