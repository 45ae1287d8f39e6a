//! The worked traces and the numbers of the draft.

use super::*;
use crate::control::tests::{Feed, segments};

const MSS: f64 = Feed::MSS as f64;

#[test]
fn b302_startup_ends_when_the_trace_says() {
    let rows = include_str!("../../../tests/data/modern/bbr_startup.csv");
    for (any_ack, at) in [(false, 6), (true, 9)] {
        let (mut full, mut case) = (FullPipe::default(), "");
        for row in rows.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            if cells[0] != case {
                (case, full) = (cells[0], FullPipe::default());
            }
            let rate = cells[4].parse().unwrap();
            full.check(rate, cells[3] == "true", cells[5] == "true", any_ack);
            let found = (full.bw, full.count, full.now);
            let bw: f64 = cells[at].parse().unwrap();
            let count: u32 = cells[at + 1].parse().unwrap();
            assert_eq!(
                found,
                (bw, count, cells[at + 2] == "true"),
                "{any_ack} {row}"
            );
        }
    }
}

#[test]
fn b307_the_bound_grows_as_in_the_trace() {
    let rows = include_str!("../../../tests/data/modern/bbr3_inflight_growth.csv");
    let mut bbr = Bbr3::default();
    let mut window = segments(0.0);
    for row in rows.lines().skip(1) {
        let cells: Vec<u64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
        if cells[1] == 1 {
            window = segments(cells[0] as f64);
            bbr = Bbr3 {
                state: State::Up,
                ..Bbr3::default()
            };
            bbr.bounds.inflight_longterm = window.cwnd;
        }
        bbr.raise_slope(&window, MSS);
        assert_eq!(bbr.probe_up_count, cells[3] as f64, "{row}");
        for _ in 0..cells[4] {
            let mut feed = Feed::default();
            // The window follows the bound only when the round is over.
            let before = bbr.bounds.inflight_longterm;
            bbr.bounds.inflight_longterm = window.cwnd;
            bbr.probe_upward(&window, &feed.acks(1, 0), MSS);
            bbr.bounds.inflight_longterm += before - window.cwnd;
        }
        assert_eq!(bbr.bounds.inflight_longterm / MSS, cells[5] as f64, "{row}");
        window.cwnd = bbr.bounds.inflight_longterm;
    }
}

#[test]
fn b308_the_bound_after_a_loss_is_that_of_the_trace() {
    let rows = include_str!("../../../tests/data/modern/bbr3_inflight_at_loss.csv");
    let numbers = Constants::Draft.numbers();
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().unwrap();
        // In thousandths of a segment, so that bytes are exact.
        let bytes = |at: usize| (number(at) * 1000.0) as u64;
        let loss = Loss {
            in_flight: bytes(0),
            lost: bytes(1),
            len: bytes(2),
            app_limited: false,
        };
        let too_high = Bbr3::is_too_high(number(1), number(0), &numbers);
        assert_eq!(too_high, cells[3] == "true", "{row}");
        // A prefix below 0 is taken as none.
        let least = number(0) - number(2);
        let found = inflight_at_loss(&loss, numbers.loss_threshold) / 1000.0;
        assert!(
            (found - number(4).max(least)).abs() < 1e-6,
            "{row}: {found}"
        );
    }
}

#[test]
fn b312_what_may_be_in_flight_is_that_of_the_trace() {
    let rows = include_str!("../../../tests/data/modern/bbr3_targets.csv");
    const SEGMENT: f64 = 1500.0;
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().unwrap();
        let bw = number(0) * 1e6 / 8.0;
        let bbr = Bbr3 {
            state: match cells[3] {
                "startup" => State::Startup,
                "probe_up" => State::Up,
                "probe_rtt" => State::ProbeRtt,
                _ => State::Down,
            },
            min_rtt: Some(Time::from_secs_f64(number(1) / 1e3)),
            pacing: bw * PACING_MARGIN,
            ..Bbr3::default()
        };
        assert_eq!(bbr.cwnd_gain(), number(4), "{row}");
        let quantum = quantum(bw, SEGMENT) / SEGMENT;
        assert!((quantum - number(5)).abs() < 1e-9, "{row}: {quantum}");
        let found = bbr.inflight(bw, bbr.cwnd_gain(), SEGMENT) / SEGMENT;
        assert!((found - number(6)).abs() < 1e-6, "{row}: {found}");
    }
}

#[test]
fn b309_a_round_with_a_loss_lowers_the_short_term_bounds() {
    let numbers = Constants::Draft.numbers();
    let mut bbr = Bbr3 {
        state: State::Cruise,
        loss_round_start: true,
        loss_in_round: true,
        bw_latest: 80_000.0,
        ..Bbr3::default()
    };
    bbr.max_bw.add(0, 100_000.0, BW_CYCLES);
    bbr.adapt_lower_bounds(&numbers, &segments(20.0));
    assert_eq!(bbr.bounds.bw_shortterm, 80_000.0, "not below the latest");
    assert_eq!(bbr.bounds.inflight_shortterm, 14_000.0);
    let before = bbr.bounds;
    bbr.adapt_lower_bounds(&numbers, &segments(20.0));
    assert_eq!(bbr.bounds, before, "once per loss");
    bbr.state = State::Up;
    bbr.loss_in_round = true;
    bbr.adapt_lower_bounds(&numbers, &segments(20.0));
    assert_eq!(bbr.bounds, before, "not while probing");
}

#[test]
fn b304_b305_the_gains_are_those_of_the_draft_and_of_the_branch() {
    let mut bbr = Bbr3::default();
    let mut gains = |constants: Constants, state| {
        bbr.state = state;
        (bbr.pacing_gain(&constants.numbers()), bbr.cwnd_gain())
    };
    let draft = [
        (State::Startup, 2.77, 2.0),
        (State::Drain, 0.5, 2.0),
        (State::Down, 0.9, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
    ];
    for (state, pacing, cwnd) in draft {
        assert_eq!(gains(Constants::Draft, state), (pacing, cwnd), "{state:?}");
    }
    assert_eq!(gains(Constants::Google, State::Drain).0, 0.343_75);
    assert_eq!(gains(Constants::Google, State::Down).0, 0.906_25);
}
