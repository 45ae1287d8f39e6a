//! The worked example, and the branches that it leaves out.

use aqmlab_net::Ecn;

use super::*;
use crate::worked::{self, Row};

fn params() -> Params {
    Params {
        min_th: QueueSize::Packets(2.0),
        max_th: QueueSize::Packets(20.0),
        limit: QueueSize::Packets(50.0),
        w_q: 1.0,
        max_p: 0.1,
        gentle: false,
        gap: Gap::None,
        unit: Unit::Packets,
        scale_by_size: false,
        mean_packet: Bytes(500),
        target_rtt: Time::from_millis(40),
        lists: 5,
        lists_needed: 3,
        list_flows: 50,
        identify_above: 0.001,
        max_decrease: 0.05,
        p_min_thresh: 0.005,
        increase_lists: 1,
        increase_time: Time::ZERO,
        decrease_lists: 1,
        unresponsive_test: false,
        test_periods: 5,
        test_rise: 1.5,
        test_pairs: 3,
        test_majority: 4.0,
        unresponsive_step: 2.0,
        ecn: false,
    }
}

fn aqm(params: &Params) -> RedPd {
    RedPd::new(params, worked::link(1000, 500))
}

fn packet(flow: FlowKey, size: u32) -> Packet {
    Packet {
        size,
        ecn: Ecn::NotEct,
        dscp: 0,
        flow,
    }
}

/// The drops of a row, as `flow:packets`.
fn lose(aqm: &mut RedPd, row: &Row) {
    let drops = row.text("list_drops").split('|');
    for (flow, packets) in drops.filter_map(|item| item.split_once(':')) {
        for _ in 0..packets.parse().unwrap() {
            aqm.note(&packet(worked::flow(flow), 500));
        }
    }
}

#[test]
fn red_pd() {
    let mut aqm = aqm(&params());
    for row in worked::rows(include_str!("../../tests/data/red_pd.csv")) {
        let what = format!("row {}", row.step());
        lose(&mut aqm, &row);
        // Each list's end is rounded to a nanosecond.
        let late = aqm.next_tick().as_secs_f64() - row.number("time_s");
        assert!(late.abs() < 2e-8, "{what}: {late}");
        let begin = aqm.next_tick();
        let p = row.number("ambient_p");
        aqm.end_list(p);

        let history = aqm.history.lists.iter().map(|list| {
            let mut flows: Vec<_> = list.iter().map(|(flow, _)| worked::name(*flow)).collect();
            flows.sort();
            if flows.is_empty() {
                "-".to_owned()
            } else {
                flows.concat()
            }
        });
        let history: Vec<_> = history.collect();
        assert_eq!(history.join("/"), row.text("history"), "{what}");

        let identified = aqm.history.records.iter();
        let identified = identified.filter(|(_, record)| record.lists >= 3);
        let mut identified: Vec<_> = identified
            .map(|(flow, record)| (*flow, f64::from(record.packets)))
            .collect();
        identified.sort_by_key(|(flow, _)| *flow);
        if p > 0.001 {
            worked::compare_list(&row, "identified", identified);
        }

        let length = aqm.next_tick() - begin;
        let off = length.as_secs_f64() - row.number("next_list_length_s");
        assert!(off.abs() < 1e-9, "{what}: {off}");
        let filtered = aqm
            .filter
            .flows
            .iter()
            .map(|(flow, filtered)| (*flow, filtered.p_f));
        worked::compare_list(&row, "P_after", filtered);
    }
}

/// An arrival that finds `queue` packets; every open chance comes out as `u` says.
fn arrive(aqm: &mut RedPd, flow: u64, queue: u32, u: f64) -> Decision {
    let packet = packet(FlowKey(flow), 500);
    let queue = Backlog {
        packets: queue,
        bytes: 500 * u64::from(queue),
    };
    let decision = aqm.on_arrival(Time::ZERO, &packet, queue, &mut || u);
    let outcome = match decision {
        Decision::Admit => Outcome::Enqueue,
        Decision::Signal(reason) | Decision::Drop(reason) => Outcome::Drop(reason),
    };
    aqm.on_outcome(Time::ZERO, &packet, queue, outcome);
    decision
}

/// Puts a flow into the filter.
fn filter(aqm: &mut RedPd, flow: u64, p_f: f64) {
    aqm.filter.raise(FlowKey(flow), p_f, p_f, aqm.list);
}

#[test]
fn the_filter_acts_on_its_flows_while_the_queue_is_congested() {
    let mut aqm = aqm(&params());
    filter(&mut aqm, 1, 0.4);
    let signal = Decision::Signal(FILTER);
    // The first arrival ends the idle time; the average is the queue found (weight 1).
    assert_eq!(arrive(&mut aqm, 2, 1, 0.39), Decision::Admit);
    assert_eq!(arrive(&mut aqm, 1, 5, 0.39), Decision::Admit, "average 0");
    assert_eq!(aqm.red.average.avg, 5.0);
    assert_eq!(
        arrive(&mut aqm, 1, 1, 0.39),
        Decision::Admit,
        "a packet waits"
    );
    arrive(&mut aqm, 2, 5, 0.39);
    assert_eq!(arrive(&mut aqm, 1, 5, 0.39), signal);
    assert_eq!(arrive(&mut aqm, 1, 5, 0.41), Decision::Admit);
    assert_eq!(
        arrive(&mut aqm, 2, 5, 0.39),
        Decision::Admit,
        "not filtered"
    );
}

#[test]
fn only_what_red_signals_makes_the_history() {
    let mut aqm = aqm(&params());
    filter(&mut aqm, 1, 0.4);
    arrive(&mut aqm, 2, 5, 0.999);
    arrive(&mut aqm, 2, 5, 0.999);
    // p_b = 0.1 (5 - 2) / 18: the filter takes 0.39, RED what is below 0.0167.
    assert_eq!(arrive(&mut aqm, 1, 5, 0.39), Decision::Signal(FILTER));
    assert_eq!((aqm.rate.arrivals, aqm.rate.drops), (2, 0));
    let early = Decision::Signal(Reason::EARLY);
    assert_eq!(arrive(&mut aqm, 2, 5, 0.016), early);
    assert_eq!((aqm.rate.arrivals, aqm.rate.drops), (3, 1));
    assert_eq!(aqm.losses.iter().count(), 1);
    let Loss { packets, bytes } = aqm.losses.get(FlowKey(2)).unwrap();
    assert_eq!((*packets, *bytes), (1, 500));
    // A third of the arrivals, as rate and as average.
    aqm.on_tick(aqm.next_tick(), Backlog::default());
    worked::assert_close(aqm.ambient_p, 1.0 / 3.0, "p");
    assert_eq!(aqm.losses.len(), 0);
}

#[test]
fn the_drop_rate_is_the_smaller_of_list_and_average() {
    let mut rate = DropRate::default();
    let mut close = |arrivals, drops| {
        (rate.arrivals, rate.drops) = (arrivals, drops);
        rate.close()
    };
    // Averages: 0.1, 0.25, 0.145; an empty list has lost nothing.
    let found = [close(100, 10), close(100, 40), close(100, 4), close(0, 0)];
    assert_eq!(found, [0.1, 0.25, 0.04, 0.0]);
}

#[test]
fn each_flow_has_a_spacing_of_its_own() {
    let uniform = Params {
        gap: Gap::Uniform,
        ..params()
    };
    let mut aqm = aqm(&uniform);
    filter(&mut aqm, 1, 0.25);
    filter(&mut aqm, 2, 0.25);
    let no = |aqm: &mut RedPd, flow| {
        let congested = true;
        aqm.filter.signals(FlowKey(flow), congested, &mut || 0.999)
    };
    // 1/4, 1/3, 1/2, 1: the fourth packet of each flow at the latest.
    assert_eq!([1, 1, 1].map(|_| no(&mut aqm, 1)), [false; 3]);
    assert_eq!([1, 1, 1].map(|_| no(&mut aqm, 2)), [false; 3]);
    // At 4 p = 1 there is no draw.
    let four = |aqm: &mut RedPd, flow| {
        aqm.filter.flows.get_mut(FlowKey(flow)).unwrap().count += 1;
        aqm.filter
            .signals(FlowKey(flow), true, &mut || unreachable!("certain"))
    };
    assert!(four(&mut aqm, 1) && four(&mut aqm, 2));
    assert_eq!(aqm.filter.flows.get(FlowKey(1)).unwrap().count, 0);
}

/// Ends a list in which these flows lost a packet each, at a drop rate of 0.02.
fn end_list(aqm: &mut RedPd, flows: &[u64]) {
    for flow in flows {
        aqm.note(&packet(FlowKey(*flow), 500));
    }
    aqm.end_list(0.02);
}

fn p_f(aqm: &RedPd, flow: u64) -> Option<f64> {
    aqm.filter.flows.get(FlowKey(flow)).map(|flow| flow.p_f)
}

#[test]
fn probabilities_change_no_faster_than_allowed() {
    let slow = Params {
        increase_lists: 3,
        decrease_lists: 3,
        lists: 2,
        lists_needed: 1,
        ..params()
    };
    let mut aqm = aqm(&slow);
    let mut seen = Vec::new();
    for list in 1..=12 {
        end_list(&mut aqm, if list <= 5 { &[1] } else { &[] });
        seen.push(p_f(&aqm, 1).unwrap_or_default());
    }
    // Found after list 1; raised three lists later; without a loss in two lists from list 7
    // on, when three have passed; then halved every third list, released below 0.005.
    let steps = [
        0.02, 0.02, 0.02, 0.04, 0.04, 0.04, 0.02, 0.02, 0.02, 0.01, 0.01, 0.01,
    ];
    for (found, expected) in seen.iter().zip(steps) {
        worked::assert_close(*found, expected, &format!("{seen:?}"));
    }
    for _ in 0..4 {
        end_list(&mut aqm, &[]);
    }
    assert_eq!(p_f(&aqm, 1), None);
}

#[test]
fn the_time_between_increases_counts_too() {
    let slow = Params {
        increase_time: Time::from_millis(300),
        lists: 1,
        lists_needed: 1,
        ..params()
    };
    let mut aqm = aqm(&slow);
    // After the first, lists of 40 ms / sqrt(0.03), 231 ms: the second of them is late enough.
    let mut seen = Vec::new();
    for _ in 0..3 {
        end_list(&mut aqm, &[1]);
        seen.push(p_f(&aqm, 1).unwrap());
    }
    assert_eq!(seen, [0.02, 0.02, 0.04]);
}

#[test]
fn a_large_probability_falls_by_the_largest_decrease() {
    let mut aqm = aqm(&params());
    filter(&mut aqm, 1, 0.3);
    for _ in 0..2 {
        end_list(&mut aqm, &[]);
    }
    worked::assert_close(p_f(&aqm, 1).unwrap(), 0.25, "P_f");
}

#[test]
fn a_list_keeps_the_flows_that_lost_most_bytes() {
    let two = Params {
        list_flows: 2,
        ..params()
    };
    let mut aqm = aqm(&two);
    for (flow, size) in [(1, 40), (2, 1500), (3, 500), (1, 40)] {
        aqm.note(&packet(FlowKey(flow), size));
    }
    aqm.end_list(0.02);
    let newest = aqm.history.newest();
    assert_eq!(newest, [(FlowKey(2), 1), (FlowKey(3), 1)]);
}

#[test]
fn lists_are_bounded_however_many_flows_there_are() {
    let any = Params {
        lists_needed: 1,
        list_flows: 1000,
        ..params()
    };
    let mut aqm = aqm(&any);
    for list in 0..6 {
        let flows: Vec<_> = (list * 5000..(list + 1) * 5000).collect();
        for flow in flows {
            aqm.note(&packet(FlowKey(flow), 500));
        }
        assert_eq!(aqm.losses.len(), MOST_FLOWS);
        aqm.end_list(0.02);
    }
    assert_eq!(aqm.filter.flows.len(), MOST_FLOWS);
}

#[test]
fn no_flow_is_found_where_hardly_anything_is_lost() {
    let mut aqm = aqm(&Params {
        lists_needed: 1,
        ..params()
    });
    aqm.note(&packet(FlowKey(1), 500));
    aqm.end_list(0.001);
    assert_eq!(p_f(&aqm, 1), None);
    aqm.note(&packet(FlowKey(1), 500));
    aqm.end_list(0.0011);
    assert_eq!(p_f(&aqm, 1), Some(0.0011));
}

fn testing() -> Params {
    Params {
        unresponsive_test: true,
        ..params()
    }
}

/// A flow that is found in every list, each of 200 ms, and sends so many packets in it, by its
/// filter probability: whether it is held unresponsive, and its next probability.
fn found(params: &Params, sends: impl Fn(f64) -> f64) -> (Vec<bool>, Vec<f64>) {
    let mut aqm = aqm(params);
    filter(&mut aqm, 1, 0.02);
    let here = [(FlowKey(1), Record::default())].into_iter().collect();
    let (mut missing, mut p_fs) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let p_f = p_f(&aqm, 1).unwrap();
        for number in 0..sends(p_f) as u32 {
            // The filter takes its share, evenly spread.
            let lost = |number| (f64::from(number) * p_f) as u32;
            let u = f64::from(u8::from(lost(number + 1) == lost(number)));
            aqm.filter.signals(FlowKey(1), true, &mut || u);
        }
        aqm.list.time += Time::from_millis(200);
        aqm.list.number += 1;
        aqm.filter.raise(FlowKey(1), 0.03, 0.03, aqm.list);
        aqm.filter.loosen(&here, aqm.list.number);
        missing.push(aqm.filter.unresponsive == 1);
        p_fs.push(self::p_f(&aqm, 1).unwrap());
    }
    (missing, p_fs)
}

#[test]
fn a_constant_rate_is_found_unresponsive_and_a_rate_of_tcp_is_not() {
    // Drop rates 0.02, 0.05, 0.08: rises of 2.5, 4 and 1.6; from then on twice the step.
    let late = [false, false, true, true, true, true, true];
    let (missing, p_fs) = found(&testing(), |_| 1000.0);
    assert_eq!(missing, late);
    for (p_f, expected) in p_fs.iter().zip([0.05, 0.08, 0.14, 0.20, 0.26, 0.32, 0.38]) {
        worked::assert_close(*p_f, expected, "P_f");
    }
    // A little more than the square root, and a little less.
    let power = |exponent: f64| move |p_f: f64| 1000.0 * libm::pow(p_f, -exponent);
    let none = [false; 7];
    assert_eq!(found(&testing(), power(0.55)).0, none);
    assert_eq!(found(&testing(), power(0.45)).0, late);
    // With the test off the steps are plain.
    let (missing, p_fs) = found(&params(), |_| 1000.0);
    assert_eq!(missing, none);
    worked::assert_close(p_fs[6], 0.23, "P_f");
}

#[test]
fn what_red_takes_of_a_filtered_flow_counts_as_its_loss() {
    for (params, losses) in [(testing(), 2), (params(), 1)] {
        let mut aqm = aqm(&params);
        filter(&mut aqm, 1, 0.4);
        arrive(&mut aqm, 2, 5, 0.999);
        arrive(&mut aqm, 2, 5, 0.999);
        // The filter takes the first; of the two others, RED the second.
        for u in [0.39, 0.999] {
            arrive(&mut aqm, 1, 5, u);
        }
        aqm.note(&packet(FlowKey(1), 500));
        aqm.note(&packet(FlowKey(2), 500));
        let response = &aqm.filter.flows.get(FlowKey(1)).unwrap().response;
        assert_eq!(response.counts(), (2, losses));
    }
}

#[test]
fn the_test_asks_for_enough_pairs_and_a_majority() {
    let test = Test::new(&testing()).unwrap();
    let decision = |periods: &[(f64, f64)]| {
        let period = |&(drop_rate, rate)| response::Period { rate, drop_rate };
        test.fails(&periods.iter().map(period).collect::<Vec<_>>())
    };
    // Three pairs without a response; two, for 4/3 is no rise; none, for the rate follows.
    let no = |p| (p, 100.0);
    assert_eq!(decision(&[0.1, 0.2, 0.4].map(no)), Some(true));
    assert_eq!(decision(&[0.1, 0.3, 0.4].map(no)), None);
    assert_eq!(decision(&[(0.1, 100.0), (0.4, 50.0)]), Some(false));
    // A fall of the drop rate, a rise from nothing and one too large say nothing.
    assert_eq!(decision(&[0.4, 0.2, 0.1].map(no)), None);
    assert_eq!(decision(&[0.0, 0.1, 0.2, 0.3].map(no)), None);
    assert_eq!(decision(&[0.01, 0.02, 0.11].map(no)), None);
    // With a response from 0.2 to 0.4: two, three and four pairs without one.
    let mixed = |last| decision(&[(0.1, 50.0), (0.2, 100.0), (0.4, 50.0), last]);
    assert_eq!(mixed((0.0, 100.0)), None);
    assert_eq!(mixed((0.25, 100.0)), None);
    assert_eq!(mixed((0.4, 100.0)), Some(true));
}

#[test]
fn a_verdict_stands_until_a_response_is_seen() {
    let test = Test::new(&testing()).unwrap();
    let mut response = Response::default();
    let mut period = |arrivals: u32, losses: u32| {
        (0..arrivals).for_each(|_| response.arrival());
        (0..losses).for_each(|_| response.loss());
        response.end_period(Time::from_secs(1), &test);
        response.is_missing
    };
    assert!([(100, 5), (100, 10), (100, 20)].map(|(a, l)| period(a, l))[2]);
    // Nothing rises any more, and five periods are remembered.
    assert_eq!([0; 5].map(|_| period(100, 20)), [true; 5]);
    assert!(!period(50, 20), "half the rate at twice the drop rate");
}
