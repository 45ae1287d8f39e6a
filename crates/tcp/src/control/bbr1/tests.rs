//! The cycle, the filter and the worked series.

use std::collections::BTreeMap;

use super::*;
use crate::control::tests::{Feed, segments};
use crate::rate::{Loss, Rate};

/// bbr_startup.csv: bandwidths in Mbit/s, an ACK per row.
#[test]
fn b101_startup_ends_when_the_trace_says() {
    let rows = include_str!("../../../tests/data/modern/bbr_startup.csv");
    let mut bbr = Bbr1::default();
    let mut case = "";
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        if cells[0] != case {
            (case, bbr) = (cells[0], Bbr1::default());
        }
        let rate: f64 = cells[4].parse().unwrap();
        let app_limited = cells[5] == "true";
        bbr.round_start = cells[3] == "true";
        if !app_limited || rate >= bbr.bw() {
            bbr.max_bw.add(cells[2].parse().unwrap(), rate, 10);
        }
        bbr.check_full(app_limited);
        let found = [bbr.bw(), bbr.full_bw, f64::from(bbr.full_bw_count)];
        let expected: [f64; 3] = [12, 13, 14].map(|at: usize| cells[at].parse().unwrap());
        assert_eq!(found, expected, "{row}");
        assert_eq!(bbr.full, cells[15] == "true", "{row}");
    }
}

#[test]
fn b102_the_gains_are_those_of_linux() {
    let params = Params::default();
    let mut bbr = Bbr1::default();
    let mut gains = |mode| {
        bbr.mode = mode;
        (bbr.pacing_gain(), bbr.cwnd_gain(&params))
    };
    let (startup, drain) = (gains(Mode::Startup), gains(Mode::Drain));
    assert!((startup.0 - 2.89).abs() < 0.001 && (startup.1 - 2.89).abs() < 0.001);
    assert!((drain.0 - 0.344).abs() < 0.001 && drain.1 == startup.1);
    assert_eq!(gains(Mode::ProbeRtt), (1.0, 1.0));
    assert_eq!(gains(Mode::ProbeBw), (1.25, 2.0));
    assert_eq!(CYCLE.iter().sum::<f64>(), 8.0);
}

#[test]
fn b103_the_cycle_begins_in_any_phase_but_that_of_three_quarters() {
    let mut counts = BTreeMap::new();
    for n in 0..7000 {
        let mut feed = Feed {
            now: Time::from_micros(1_000_003 * n),
            ..Feed::default()
        };
        let mut bbr = Bbr1::default();
        let sample = feed.acks(1, 0);
        bbr.begin_probe_bw(sample.now, sample.delivered);
        *counts.entry(bbr.cycle_index).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 7);
    assert!(!counts.contains_key(&1));
    assert!(
        counts.values().all(|&count| (900..1100).contains(&count)),
        "{counts:?}"
    );
}

/// A connection whose bandwidth is 100 segments/s at a round trip of 100 ms.
fn steady(mode: Mode, cycle_index: usize) -> Bbr1 {
    let mut bbr = Bbr1 {
        mode,
        cycle_index,
        min_rtt: Some(Time::from_millis(100)),
        full: true,
        ..Bbr1::default()
    };
    bbr.max_bw.add(0, 100_000.0, 10);
    bbr.pacing = 100_000.0;
    bbr
}

#[test]
fn b104_the_probe_lasts_until_it_has_filled_the_pipe() {
    let mss = Feed::MSS as f64;
    // BDP 10 segments, times 5/4 and rounded up 13, three bursts of one: 16; two more: 18. The
    // burst that leaves next counts.
    for (cycle, millis, in_flight, moves) in [
        (0, 150, 16, false),
        (0, 150, 17, true),
        (0, 50, 30, false),
        (1, 50, 15, false),
        (1, 50, 14, true),
        (1, 150, 20, true),
        (2, 50, 5, false),
        (2, 150, 20, true),
    ] {
        let mut bbr = steady(Mode::ProbeBw, cycle);
        let mut feed = Feed {
            now: Time::from_millis(millis),
            ..Feed::default()
        };
        let mut sample = feed.acks(1, 0);
        sample.in_flight_before = in_flight * Feed::MSS;
        bbr.update_cycle(&sample, mss);
        assert_eq!(
            bbr.cycle_index != cycle,
            moves,
            "{cycle} {millis} {in_flight}"
        );
    }
}

#[test]
fn b105_the_round_trip_is_probed_with_four_segments_for_200_ms() {
    let params = Params::default();
    let mut bbr = steady(Mode::ProbeBw, 2);
    (bbr.round, bbr.next_round_delivered) = (1, u64::MAX);
    let mut window = segments(20.0);
    let mut feed = Feed {
        now: Time::from_millis(10_001),
        rtt: Some(Time::from_millis(150)),
        ..Feed::default()
    };
    feed.send(4);
    bbr.on_sample(&params, &mut window, &feed.acks(1, 0));
    assert_eq!(bbr.mode, Mode::ProbeRtt);
    assert!(bbr.limits_samples());
    assert_eq!(window, segments(4.0));
    feed.now = Time::from_millis(10_150);
    bbr.on_sample(&params, &mut window, &feed.acks(1, 0));
    assert_eq!((bbr.mode, window), (Mode::ProbeRtt, segments(4.0)));
    feed.now = Time::from_millis(10_202);
    feed.rate = Some(Rate {
        delivered: 4000,
        interval: Time::from_millis(150),
        prior_delivered: feed.delivered,
        in_flight: 4000,
        lost: 0,
        app_limited: true,
    });
    bbr.on_sample(&params, &mut window, &feed.acks(1, 0));
    assert_eq!(bbr.mode, Mode::ProbeBw);
    assert!(window.cwnd > 10.0 * Feed::MSS as f64, "{window:?}");
}

#[test]
fn b106_the_first_round_of_recovery_conserves_packets_and_its_end_restores_the_window() {
    let params = Params::default();
    let mut bbr = steady(Mode::ProbeBw, 2);
    bbr.min_rtt_at = Time::from_secs(1);
    let mut window = segments(20.0);
    let mut feed = Feed::default();
    feed.send(12);
    let congestion = Congestion {
        now: Time::ZERO,
        profile: &feed.profile,
        flight: 12_000,
        window: 20_000,
        cause: Cause::Loss,
        whole: false,
    };
    let _ = bbr.on_congestion(&params, &window, &congestion);
    let loss = [Loss {
        len: Feed::MSS,
        in_flight: 12_000,
        lost: 1000,
        app_limited: false,
    }];
    let mut sample = feed.acks_of_what_is_out(1, 0);
    (sample.losses, sample.state) = (&loss, RecoveryState::Recovery);
    sample.in_flight -= Feed::MSS;
    bbr.on_sample(&params, &mut window, &sample);
    assert_eq!(
        window,
        segments(11.0),
        "what is in flight, and what has come"
    );
    let mut sample = feed.acks_of_what_is_out(1, 0);
    sample.state = RecoveryState::Recovery;
    sample.in_flight -= Feed::MSS;
    bbr.on_sample(&params, &mut window, &sample);
    assert_eq!(window, segments(11.0), "it takes no more");
    let mut sample = feed.acks_of_what_is_out(1, 0);
    (sample.losses, sample.state) = (&loss, RecoveryState::Recovery);
    sample.in_flight = 5 * Feed::MSS;
    bbr.on_sample(&params, &mut window, &sample);
    assert_eq!(window, segments(10.0), "what is lost leaves it");
    bbr.on_sample(&params, &mut window, &feed.acks_of_what_is_out(1, 0));
    assert!(window.cwnd >= 20.0 * Feed::MSS as f64, "{window:?}");
}

/// Equal, up to what Linux's unit of bandwidth rounds off.
fn near(found: f64, expected: f64) -> bool {
    found <= expected && found > expected - 100.0
}

/// Twelve seconds without anything to send: what follows is paced at the bandwidth, without a probe of
/// the round trip, and a probe whose time is over has ended. (A probe sets the rate with its next ACK.)
#[test]
fn a_restart_after_an_idle_time_begins_no_probe_of_the_round_trip() {
    let params = Params::default();
    for (mode, then) in [
        (Mode::ProbeBw, Mode::ProbeBw),
        (Mode::ProbeRtt, Mode::ProbeBw),
    ] {
        for restarts in [true, false] {
            let mut bbr = steady(mode, 2);
            (bbr.round, bbr.full) = (1, true);
            bbr.probe_rtt_until = Some(Time::from_millis(200));
            bbr.prior_cwnd = 40.0 * Feed::MSS as f64;
            let mut window = segments(40.0);
            let mut feed = Feed {
                now: Time::from_secs(12),
                rtt: Some(Time::from_millis(150)),
                ..Feed::default()
            };
            feed.send(4);
            let profile = feed.profile.clone();
            let restart = Restart {
                now: Time::from_millis(11_900),
                profile: &profile,
                srtt: None,
                delivered: 0,
            };
            if restarts {
                bbr.on_restart(&params, &mut window, &restart);
                let is_probe = mode == Mode::ProbeRtt;
                let rate = if is_probe { 1.0 } else { PACING_MARGIN };
                assert_eq!(bbr.pacing, 100_000.0 * rate, "{mode:?}");
            }
            bbr.on_sample(&params, &mut window, &feed.acks_of_what_is_out(1, 0));
            let expected = if restarts { then } else { Mode::ProbeRtt };
            assert_eq!(bbr.mode, expected, "{mode:?} {restarts}");
        }
    }
}

#[test]
fn b107_a_smaller_sample_that_the_application_limits_is_passed_over() {
    let mut bbr = steady(Mode::ProbeBw, 2);
    let mut feed = Feed::default();
    for (delivered, app_limited, expected) in [
        (50_000, true, 100_000.0),
        (120_000, true, 120_000.0),
        (80_000, false, 120_000.0),
    ] {
        feed.rate = Some(Rate {
            delivered,
            interval: Time::from_secs(1),
            prior_delivered: 0,
            in_flight: 1000,
            lost: 0,
            app_limited,
        });
        bbr.next_round_delivered = u64::MAX;
        bbr.update_bw(&Params::default(), &feed.acks(1, 0));
        assert!(near(bbr.bw(), expected), "{}", bbr.bw());
    }
    // However long that goes on: Linux adds nothing to its filter, so nothing leaves it.
    for round in 0..30 {
        feed.rate = Some(Rate {
            delivered: 20_000,
            interval: Time::from_secs(1),
            prior_delivered: feed.delivered,
            in_flight: 1000,
            lost: 0,
            app_limited: true,
        });
        bbr.next_round_delivered = 0;
        bbr.update_bw(&Params::default(), &feed.acks(1, 0));
        assert!(bbr.round_start);
        assert!(near(bbr.bw(), 120_000.0), "round {round}");
    }
    feed.rate = feed.rate.map(|rate| Rate {
        app_limited: false,
        ..rate
    });
    bbr.update_bw(&Params::default(), &feed.acks(1, 0));
    assert!(
        near(bbr.bw(), 20_000.0),
        "the path's own rate, after so long"
    );
}

#[test]
fn a_rate_counts_for_as_many_rounds_as_the_parameter_says() {
    for bw_rounds in [1, 3, 10] {
        let params = Params {
            bw_rounds,
            ..Params::default()
        };
        let mut bbr = Bbr1::default();
        let mut feed = Feed::default();
        let mut lasted = 0;
        for round in 0..20 {
            feed.rate = Some(Rate {
                delivered: if round == 0 { 100_000 } else { 20_000 },
                interval: Time::from_secs(1),
                prior_delivered: feed.delivered,
                in_flight: 1000,
                lost: 0,
                app_limited: false,
            });
            bbr.next_round_delivered = 0;
            bbr.update_bw(&params, &feed.acks(1, 0));
            lasted += u32::from(near(bbr.bw(), 100_000.0));
        }
        // The round that it comes in, and so many more.
        assert_eq!(lasted, bw_rounds + 1);
    }
}
