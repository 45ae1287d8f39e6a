//! Adaptive RED, both kinds.

use aqmlab_aqm::Outcome;
use aqmlab_net::Time;
use proptest::prelude::*;

use crate::stabilizing::{depart, fifo, play, probe, send};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_average_never_leaves_what_the_queue_has_been_and_max_p_stays_in_bounds(
        seed: u64,
        load in 0.3..3.0,
        w_q in prop_oneof![Just("w_q = 1.0"), Just("w_q = 0.1"), Just("")],
    ) {
        let ared = "kind = \"ared\"\nlimit = \"60 packets\"\ninterval = \"3 ms\"\necn = true\n";
        play(&format!("{ared}{w_q}"), seed, load, |fifo, longest| {
            assert!((0.0..=f64::from(longest)).contains(&probe(fifo, "avg")));
            assert!((0.01..=0.5).contains(&probe(fifo, "max_p")));
        });
        let feng = "kind = \"ared-feng\"\nmin_th = \"5 packets\"\nmax_th = \"15 packets\"\n\
                    limit = \"60 packets\"\n";
        play(&format!("{feng}{w_q}"), seed, load, |fifo, longest| {
            assert!((0.0..=f64::from(longest)).contains(&probe(fifo, "avg")));
            assert!((1e-6..=1.0).contains(&probe(fifo, "max_p")));
        });
    }
}

/// Sends one packet every 10 ms to a RED whose average is the queue, so that every arrival may
/// adapt, and returns max_p after each.
fn max_p_at(table: &str, queue: usize, steps: usize) -> Vec<f64> {
    let mut fifo = fifo(table);
    send(&mut fifo, Time::ZERO, queue, 0.999_999);
    assert_eq!(fifo.backlog().packets as usize, queue);
    (1..=steps)
        .map(|step| {
            let outcome = send(&mut fifo, Time::from_millis(10 * step as u64), 1, 0.999_999);
            if outcome == [Outcome::Enqueue] {
                depart(&mut fifo, Time::ZERO, 1);
            }
            probe(&fifo, "max_p")
        })
        .collect()
}

const ARED: &str = "kind = \"ared\"\nmin_th = \"10 packets\"\nmax_th = \"20 packets\"\n\
                    limit = \"100 packets\"\nw_q = 1.0\ngap = \"none\"\ninterval = \"10 ms\"\n";

#[test]
fn ared_adds_above_the_band_multiplies_below_it_and_rests_within() {
    // The band goes from 14 to 16 packets.
    let above = max_p_at(ARED, 17, 60);
    assert!((above[0] - 0.11).abs() < 1e-12);
    assert_eq!(above[59], 0.5);
    let below = max_p_at(ARED, 13, 60);
    assert!((below[0] - 0.09).abs() < 1e-12);
    assert_eq!(below[59], 0.01);
    for edge in [14, 15, 16] {
        assert_eq!(max_p_at(ARED, edge, 3), [0.1; 3]);
    }
    // A quarter of 0.02 is less than 0.01.
    let small = max_p_at(&format!("{ARED}max_p = 0.02"), 17, 1);
    assert!((small[0] - 0.025).abs() < 1e-12);
}

#[test]
fn ared_lets_an_interval_begin_at_the_change_and_silence_does_not_add_up() {
    let mut fifo = fifo(ARED);
    send(&mut fifo, Time::ZERO, 17, 0.999_999);
    // 35 ms of silence: one change, not three.
    send(&mut fifo, Time::from_millis(35), 1, 0.999_999);
    assert!((probe(&fifo, "max_p") - 0.11).abs() < 1e-12);
    send(&mut fifo, Time::from_millis(44), 1, 0.999_999);
    assert!((probe(&fifo, "max_p") - 0.11).abs() < 1e-12);
    send(&mut fifo, Time::from_millis(45), 1, 0.999_999);
    assert!((probe(&fifo, "max_p") - 0.12).abs() < 1e-12);
}

#[test]
fn feng_moves_max_p_once_per_crossing_and_stops_at_the_floor_and_at_1() {
    let table = "kind = \"ared-feng\"\nmin_th = \"4 packets\"\nmax_th = \"8 packets\"\n\
                 limit = \"100 packets\"\nw_q = 1.0\ngap = \"none\"\n";
    let mut fifo = fifo(table);
    let mut cross = |expected: &mut dyn FnMut(f64) -> f64, from: usize, to: usize| {
        let before = probe(&fifo, "max_p");
        if to > from {
            send(&mut fifo, Time::ZERO, to - from, 0.999_999);
        } else {
            depart(&mut fifo, Time::ZERO, from - to);
        }
        // Two more arrivals: the first samples the new queue, the second changes nothing.
        for _ in 0..2 {
            if send(&mut fifo, Time::ZERO, 1, 0.999_999) == [Outcome::Enqueue] {
                depart(&mut fifo, Time::ZERO, 1);
            }
        }
        let after = probe(&fifo, "max_p");
        assert!((after - expected(before)).abs() < 1e-15, "{before} {after}");
    };
    // The first arrival, at an empty queue, falls below.
    cross(&mut |_| 0.1 / 3.0, 0, 3);
    // To max_th itself: neither above nor below, and the status stays.
    cross(&mut |max_p| max_p, 3, 8);
    cross(&mut |max_p| max_p / 3.0, 8, 3);
    for _ in 0..20 {
        cross(&mut |max_p| max_p, 3, 6);
        cross(&mut |max_p| (max_p / 3.0).max(1e-6), 6, 3);
    }
}
