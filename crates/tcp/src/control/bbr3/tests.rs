//! The worked traces and the numbers of the draft.

use super::state::inflight_at_loss;
use super::*;
use crate::control::tests::{Feed, segments};
use crate::rate::Loss;

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
        let found = inflight_at_loss(&loss, numbers.loss_threshold, 0.0) / 1000.0;
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
    bbr.adapt_lower_bounds(&numbers, &segments(20.0), MSS);
    assert_eq!(bbr.bounds.bw_shortterm, 80_000.0, "not below the latest");
    assert_eq!(bbr.bounds.inflight_shortterm, 14_000.0);
    let before = bbr.bounds;
    bbr.adapt_lower_bounds(&numbers, &segments(20.0), MSS);
    assert_eq!(bbr.bounds, before, "once per loss");
    bbr.state = State::Up;
    bbr.loss_in_round = true;
    bbr.adapt_lower_bounds(&numbers, &segments(20.0), MSS);
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

/// A connection at 200 segments/s and 100 ms, whose pipe is full.
fn steady(state: State) -> Bbr3 {
    let mut bbr = Bbr3 {
        state,
        full_reached: true,
        min_rtt: Some(Time::from_millis(100)),
        ..Bbr3::default()
    };
    bbr.max_bw.add(0, 200.0 * MSS, BW_CYCLES);
    bbr
}

/// A sample of that rate, of a segment that was sent with so many others in flight.
fn rate(in_flight: u64, prior_delivered: u64) -> Rate {
    Rate {
        delivered: 20_000,
        interval: Time::from_millis(100),
        prior_delivered,
        in_flight: in_flight * Feed::MSS,
        lost: 0,
        app_limited: false,
    }
}

#[test]
fn b303_losses_end_startup_after_a_round_of_recovery() {
    let numbers = Constants::Draft.numbers();
    for (in_recovery, lost, events, leaves) in [
        (true, 3, 6, true),
        (true, 3, 5, false),
        (true, 2, 6, false),
        (false, 3, 6, false),
    ] {
        let mut bbr = Bbr3 {
            round_start: true,
            round_in_recovery: in_recovery,
            loss_events: events,
            inflight_latest: 25_000.0,
            full_reached: false,
            ..steady(State::Startup)
        };
        let mut feed = Feed::default();
        let mut sample = feed.acks(1, 0);
        sample.lost = lost * Feed::MSS;
        bbr.check_startup(&numbers, &rate(100, 0), &sample);
        bbr.leave_startup();
        let case = (in_recovery, lost, events);
        assert_eq!(bbr.state == State::Drain, leaves, "{case:?}");
        let bound = if leaves { 25_000.0 } else { f64::INFINITY };
        assert_eq!(bbr.bounds.inflight_longterm, bound, "{case:?}");
    }
}

#[test]
fn b306_the_next_probe_comes_after_2_to_3_s_or_as_many_rounds_as_reno_needs() {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for n in 0..200 {
        let mut feed = Feed {
            now: Time::from_micros(1_000_003 * n),
            ..Feed::default()
        };
        let mut bbr = steady(State::Up);
        let sample = feed.acks(1, 0);
        bbr.start_down(sample.now, sample.delivered);
        assert!(bbr.rounds_since_probe < 2);
        let wait = bbr.probe_wait.as_secs_f64();
        (least, most) = (least.min(wait), most.max(wait));
        feed.now = bbr.cycle_at + bbr.probe_wait - Time::from_nanos(1);
        bbr.rounds_since_probe = 0;
        assert!(!bbr.is_time_to_probe(&segments(40.0), &feed.acks(1, 0)));
        feed.now += Time::from_nanos(1);
        assert!(bbr.is_time_to_probe(&segments(40.0), &feed.acks(1, 0)));
    }
    assert!((2.0..2.05).contains(&least) && (2.95..3.0).contains(&most));
    // A BDP of 20 segments, and one of 500.
    for (bandwidth, rounds) in [(200.0, 20), (5000.0, 63)] {
        let mut feed = Feed::default();
        let mut bbr = steady(State::Cruise);
        bbr.probe_wait = Time::from_secs(3);
        bbr.max_bw.add(0, bandwidth * MSS, BW_CYCLES);
        for (passed, due) in [(rounds - 1, false), (rounds, true)] {
            bbr.rounds_since_probe = passed;
            let found = bbr.is_time_to_probe(&segments(1000.0), &feed.acks(1, 0));
            assert_eq!(found, due, "{bandwidth} {passed}");
        }
    }
}

#[test]
fn b310_refill_lifts_the_short_term_bounds_and_lasts_a_round() {
    let numbers = Constants::Draft.numbers();
    let mut feed = Feed::default();
    let mut bbr = steady(State::Cruise);
    (bbr.bounds.bw_shortterm, bbr.bounds.inflight_shortterm) = (1e5, 1e4);
    bbr.start_refill(&feed.acks(1, 0));
    assert_eq!(bbr.bounds, Bounds::default());
    let window = segments(40.0);
    bbr.update_cycle(&numbers, &window, &rate(20, 0), &feed.acks(1, 0));
    assert_eq!(bbr.state, State::Refill, "within the round");
    bbr.round_start = true;
    bbr.update_cycle(&numbers, &window, &rate(20, 1000), &feed.acks(1, 0));
    assert_eq!(bbr.state, State::Up);
}

#[test]
fn b311_the_round_trip_is_probed_every_5_s_with_half_a_bdp_for_200_ms() {
    let params = Params::default();
    let mut bbr = steady(State::Cruise);
    (bbr.round_count, bbr.cycle_at) = (1, Time::from_secs(5));
    (bbr.probe_wait, bbr.probe_rtt_min) = (Time::from_secs(3), bbr.min_rtt);
    let mut window = segments(40.0);
    let mut feed = Feed {
        rtt: Some(Time::from_millis(150)),
        ..Feed::default()
    };
    feed.send(4);
    let mut hear = |bbr: &mut Bbr3, window: &mut Window, millis, prior: Option<u64>| {
        feed.now = Time::from_millis(millis);
        feed.rate = prior.map(|prior| rate(10, prior));
        bbr.on_sample(&params, window, &feed.acks(1, 0));
    };
    hear(&mut bbr, &mut window, 5000, None);
    assert_eq!(bbr.state, State::Cruise, "five seconds have not passed");
    hear(&mut bbr, &mut window, 5001, None);
    assert_eq!((bbr.state, bbr.limits_samples()), (State::ProbeRtt, true));
    assert_eq!(window.cwnd, 10_000.0, "half of 20 segments");
    hear(&mut bbr, &mut window, 5150, Some(u64::MAX));
    assert_eq!(bbr.state, State::ProbeRtt, "a round, but not yet 200 ms");
    hear(&mut bbr, &mut window, 5202, None);
    assert_eq!(bbr.state, State::Cruise);
    assert!(window.cwnd > 30_000.0, "{window:?}");
}

#[test]
fn b313_the_pace_only_rises_until_the_pipe_is_full() {
    let numbers = Constants::Draft.numbers();
    let mut bbr = Bbr3 {
        full_reached: false,
        ..steady(State::Startup)
    };
    bbr.update_pacing(&numbers);
    assert_eq!(bbr.pacing, 2.77 * 200.0 * MSS * 0.99);
    bbr.bounds.bw_shortterm = 100.0 * MSS;
    bbr.update_pacing(&numbers);
    assert_eq!(bbr.pacing, 2.77 * 200.0 * MSS * 0.99, "it does not fall");
    (bbr.full_reached, bbr.state) = (true, State::Down);
    bbr.update_pacing(&numbers);
    assert_eq!(bbr.pacing, 0.9 * 100.0 * MSS * 0.99);
}

#[test]
fn b314_a_probe_stops_at_a_bound_of_losses_and_refills_if_a_round_shows_none() {
    let numbers = Constants::Draft.numbers();
    let mut feed = Feed::default();
    let mut bbr = Bbr3 {
        prev_probe_too_high: true,
        ..steady(State::Up)
    };
    bbr.bounds.inflight_longterm = 100.0 * MSS;
    let window = segments(100.0);
    // Bursts of one segment: what is out before the ACK and a burst reach the bound.
    let mut check = |in_flight_before: f64| {
        let sample = Sample {
            in_flight_before: in_flight_before as u64,
            ..feed.acks(1, 0)
        };
        bbr.check_up(&rate(90, 0), &window, &sample);
        bbr.state
    };
    assert_eq!(check(98.0 * MSS), State::Up, "below the bound");
    check(99.0 * MSS);
    assert_eq!((bbr.state, bbr.stopped_early), (State::Down, true));
    bbr.round_start = true;
    bbr.update_cycle(&numbers, &window, &rate(90, 0), &feed.acks(1, 0));
    assert_eq!((bbr.state, bbr.stopped_early), (State::Refill, false));
}

#[test]
fn b316_a_loss_that_was_none_leaves_the_bounds_as_they_were_and_probing_begins_anew() {
    let params = Params::default();
    let mut window = segments(40.0);
    let mut feed = Feed {
        delivered: 5000,
        ..Feed::default()
    };
    let profile = feed.profile.clone();
    let congestion = Congestion {
        now: Time::ZERO,
        profile: &profile,
        flight: 40_000,
        window: 40_000,
        cause: Cause::Loss,
        whole: false,
    };
    for (state, then, after) in [
        (State::Startup, State::Startup, State::Startup),
        (State::Up, State::Down, State::Refill),
        (State::Cruise, State::Down, State::Down),
    ] {
        let mut bbr = steady(state);
        let before = bbr.bounds;
        let _ = bbr.on_congestion(&params, &window, &congestion);
        let low = Bounds {
            bw_shortterm: 1e5,
            inflight_shortterm: 1e4,
            inflight_longterm: 2e4,
        };
        (bbr.bounds, bbr.state) = (low, State::Down);
        bbr.on_undo(&params, &mut window);
        assert_eq!((bbr.bounds, bbr.state), (before, then));
        assert_eq!(bbr.full, FullPipe::default());
        // The ACK that shows it has a sample, from which a probe begins.
        bbr.probe_wait = Time::from_secs(2);
        let silent = feed.acks(0, 0);
        bbr.on_sample(&params, &mut window, &silent);
        assert_eq!(bbr.state, after, "{state:?}");
        assert_eq!(
            bbr.next_round_delivered == feed.delivered,
            after == State::Refill
        );
        // Once.
        bbr.bounds = low;
        bbr.on_undo(&params, &mut window);
        assert_eq!(bbr.bounds, low);
    }
}

/// The rules of the branch that the recorded ACKs do not reach.
#[test]
fn after_a_time_out_the_branch_looks_for_a_full_pipe_anew_and_bounds_what_is_in_flight() {
    let feed = Feed::default();
    for (constants, state, shortterm) in [
        (Constants::Google, State::Cruise, 40.0 * MSS),
        (Constants::Google, State::Up, f64::INFINITY),
        (Constants::Draft, State::Cruise, f64::INFINITY),
    ] {
        let mut bbr = Bbr3 {
            branch: constants == Constants::Google,
            full: FullPipe {
                bw: 1.0,
                count: 2,
                now: false,
            },
            ..steady(state)
        };
        let congestion = Congestion {
            now: Time::ZERO,
            profile: &feed.profile,
            flight: 40_000,
            window: 40_000,
            cause: Cause::Timeout,
            whole: false,
        };
        let _ = bbr.on_congestion(&Params { constants }, &segments(40.0), &congestion);
        assert_eq!(bbr.bounds.inflight_shortterm, shortterm, "{state:?}");
        let begins_anew = bbr.full == FullPipe::default();
        assert_eq!(begins_anew, constants == Constants::Google);
    }
}

/// At 1 Mbit/s and 100 ms: room for three bursts of two segments, by the draft of one.
#[test]
fn the_branch_has_room_for_bursts_of_two_segments_at_any_rate() {
    for (branch, segments, burst) in [(true, 6.0, 2), (false, 4.0, 1)] {
        let bbr = Bbr3 {
            branch,
            pacing: 125_000.0,
            ..steady(State::Cruise)
        };
        assert_eq!(bbr.with_room(MSS, MSS), segments * MSS);
        let leaves = bbr.linux_burst(125_000.0, bbr.min_rtt, 1000);
        assert_eq!(leaves, burst);
    }
}

/// A time-out alone gives the window of before back: nothing else has cut it.
#[test]
fn the_branch_restores_the_window_behind_a_time_out_alone() {
    let params = Params {
        constants: Constants::Google,
    };
    for (state, left) in [(RecoveryState::Recovery, 11.0), (RecoveryState::Loss, 40.0)] {
        let mut bbr = steady(State::Cruise);
        bbr.max_bw.add(0, 1000.0 * MSS, BW_CYCLES);
        bbr.prior_cwnd = 40.0 * MSS;
        let (mut window, mut feed) = (segments(10.0), Feed::default());
        let mut sample = feed.acks(0, 0);
        (sample.state, sample.acked) = (state, Feed::MSS);
        bbr.branch = true;
        bbr.update_cwnd(&params.constants.numbers(), &mut window, &sample);
        window.cwnd = 10.0 * MSS;
        bbr.update_cwnd(&params.constants.numbers(), &mut window, &feed.acks(1, 0));
        assert!(
            (window.cwnd / MSS - left).abs() <= 1.0,
            "{state:?} {window:?}"
        );
    }
}
