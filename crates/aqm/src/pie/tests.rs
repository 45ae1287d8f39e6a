//! Rules of the RFC and of Linux, each on its own.

use aqmlab_net::{Ecn, FlowKey, Rate};

use super::*;

const FULL: Backlog = Backlog {
    packets: 20,
    bytes: 30_000,
};

fn settings() -> Settings {
    Settings {
        qdelay_ref: 0.015,
        t_update: PUBLISHED_T_UPDATE,
        alpha: ALPHA,
        beta: BETA,
        max_burst: Time::ZERO,
        mean_packet: 1500,
        scale_by_size: false,
        derandomize: false,
        mark_ecnth: 0.1,
        rules: Rules::Rfc,
        p_max: 1.0,
    }
}

/// A controller that has nothing left to do but to draw.
fn control(p: f64) -> Control {
    Control {
        p,
        qdelay: 0.02,
        qdelay_old: 0.02,
        burst: Time::ZERO,
        accu: 0.0,
        left: None,
    }
}

#[test]
fn gains_follow_the_time_between_updates() {
    let ms = Time::from_millis;
    assert_eq!(gains(ms(15), None, None), (0.125, 1.25));
    assert_eq!(
        gains(Time::from_micros(7500), None, None),
        (0.0625, 1.25 + 0.125 / 4.0)
    );
    assert_eq!(gains(ms(30), None, None), (0.25, 1.25 - 0.125 / 2.0));
    assert_eq!(gains(ms(30), Some(1.0), Some(2.0)), (1.0, 2.0));
    assert_eq!(gains(Time::from_secs(10), None, None).1, 0.0);
}

#[test]
fn a_low_delay_or_a_short_queue_spares_the_arrival_and_a_high_probability_does_not() {
    let settings = settings();
    let decision = |p, qdelay_old, bytes| {
        let mut control = Control {
            qdelay_old,
            ..control(p)
        };
        control.judge(
            &settings,
            1500,
            Backlog { packets: 3, bytes },
            true,
            &mut || 0.0,
        )
    };
    assert_eq!(decision(0.05, 0.0074, 30_000), Decision::Admit);
    assert_eq!(
        decision(0.05, 0.0075, 30_000),
        Decision::Signal(Reason::EARLY)
    );
    assert_eq!(decision(0.2, 0.0074, 30_000), Decision::Drop(Reason::EARLY));
    assert_eq!(decision(0.2, 0.02, 3000), Decision::Admit);
    assert_eq!(decision(0.2, 0.02, 3001), Decision::Drop(Reason::EARLY));
    assert_eq!(decision(0.1, 0.02, 30_000), Decision::Drop(Reason::EARLY));
}

/// RFC 8033, section 4.4: below half of the reference at both updates, with nothing to signal.
#[test]
fn a_burst_is_allowed_anew_when_both_delays_are_below_half_of_the_reference() {
    let settings = Settings {
        max_burst: Time::from_millis(150),
        ..settings()
    };
    let allowed = |p, qdelay, qdelay_old| {
        let mut control = Control {
            qdelay,
            qdelay_old,
            ..control(p)
        };
        let _ = control.judge(&settings, 1500, FULL, true, &mut || 0.99);
        control.burst
    };
    assert_eq!(allowed(0.0, 0.0074, 0.0074), settings.max_burst);
    for (p, qdelay, qdelay_old) in [(0.0, 0.0075, 0.0), (0.0, 0.0, 0.0075), (1e-9, 0.0, 0.0)] {
        let burst = allowed(p, qdelay, qdelay_old);
        assert_eq!(burst, Time::ZERO, "{p} {qdelay} {qdelay_old}");
    }
}

#[test]
fn small_packets_are_spared_where_size_counts() {
    let scaled = Settings {
        scale_by_size: true,
        ..settings()
    };
    let mut draw = || 0.04;
    let signal = Decision::Signal(Reason::EARLY);
    assert_eq!(
        control(0.05).judge(&scaled, 1500, FULL, true, &mut draw),
        signal
    );
    assert_eq!(
        control(0.05).judge(&scaled, 1000, FULL, true, &mut draw),
        Decision::Admit
    );
    assert_eq!(
        control(0.05).judge(&settings(), 1000, FULL, true, &mut draw),
        signal
    );
}

#[test]
fn derandomized_signals_come_neither_soon_nor_late() {
    let settings = Settings {
        derandomize: true,
        ..settings()
    };
    // 1/16 a packet: 14 reach 0.85, 136 are 8.5.
    for (u, expected) in [(0.0, 14), (0.999, 136)] {
        let mut control = control(0.0625);
        for round in 1..=3 * expected {
            let decision = control.judge(&settings, 1500, FULL, true, &mut || u);
            let signalled = decision != Decision::Admit;
            assert_eq!(signalled, round % expected == 0, "{round} of {expected}");
        }
    }
    let mut control = control(0.0625);
    control.judge(&settings, 1500, FULL, true, &mut || 0.5);
    control.p = 0.0;
    control.judge(&settings, 1500, FULL, true, &mut || 0.5);
    assert_eq!(control.accu, 0.0);
}

fn linux() -> Settings {
    Settings {
        rules: Rules::Linux,
        p_max: LARGEST_P,
        derandomize: true,
        ..settings()
    }
}

#[test]
fn linux_winds_up_beyond_one_and_adds_a_step_above_250_ms() {
    let grown = |p, qdelay, settings: &Settings| {
        let mut control = Control {
            qdelay,
            qdelay_old: qdelay,
            ..control(p)
        };
        control.update(settings, true);
        control.p
    };
    for (qdelay, step) in [(0.25, 0.02), (0.26, 0.04)] {
        let found = grown(1.0, qdelay, &linux());
        assert!((found - (1.0 + step)).abs() < 1e-12, "{found}");
        assert_eq!(grown(1.0, qdelay, &settings()), 1.0);
        let bounded = Settings {
            p_max: 1.0,
            ..linux()
        };
        assert_eq!(grown(1.0, qdelay, &bounded), 1.0);
    }
    assert_eq!(grown(255.99, 0.3, &linux()), 1.0);
}

#[test]
fn linux_decays_by_a_64th_and_only_an_empty_queue() {
    for (is_busy, decay) in [(true, 1.0), (false, 63.0 / 64.0)] {
        let mut control = Control {
            qdelay: 0.0,
            qdelay_old: 0.0,
            ..control(0.5)
        };
        control.update(&linux(), is_busy);
        let step = -ALPHA * 0.015;
        assert!(
            (control.p - (0.5 + step) * decay).abs() < 1e-12,
            "{is_busy}"
        );
    }
}

#[test]
fn the_last_departure_decides_in_linux_and_uses_up_the_allowance() {
    let mut control = Control {
        qdelay: 0.0,
        accu: 8.4,
        burst: Time::from_millis(20),
        ..control(0.1)
    };
    let judge = |control: &mut Control, bytes| {
        let queue = Backlog { packets: 9, bytes };
        control.judge(&linux(), 1500, queue, true, &mut || 0.0)
    };
    control.departed(&linux(), Time::from_millis(5), Time::from_millis(8), FULL);
    assert_eq!(judge(&mut control, 30_000), Decision::Admit, "a burst");
    control.departed(&linux(), Time::from_millis(25), Time::from_millis(7), FULL);
    assert_eq!(control.burst, Time::ZERO);
    assert_eq!(judge(&mut control, 30_000), Decision::Admit, "7 ms");
    control.departed(&linux(), Time::from_millis(26), Time::from_millis(8), FULL);
    assert_eq!(judge(&mut control, 2999), Decision::Admit, "two packets");
    assert_eq!(judge(&mut control, 3000), Decision::Signal(Reason::EARLY));
}

#[test]
fn an_overflow_is_seen_first_in_linux_and_resets_the_sum() {
    let mut control = Control {
        accu: 5.0,
        ..control(0.5)
    };
    let mut no_draw = || unreachable!("it does not fit");
    let decision = control.judge(&linux(), 1500, FULL, false, &mut no_draw);
    assert_eq!((decision, control.accu), (Decision::Admit, 0.0));
}

#[test]
fn linux_begins_anew_when_delay_and_probability_are_low() {
    let fresh = Settings {
        max_burst: Time::from_millis(150),
        ..linux()
    };
    for (p, qdelay, burst) in [(0.0, 0.007, 150), (0.0, 0.0075, 0), (0.2, 0.007, 0)] {
        let mut control = Control {
            qdelay,
            qdelay_old: qdelay,
            accu: 1.0,
            ..control(p)
        };
        control.update(&fresh, true);
        assert_eq!(control.burst, Time::from_millis(burst), "{p} {qdelay}");
    }
}

#[test]
fn a_high_probability_grows_by_a_fiftieth_at_most() {
    let mut control = Control {
        qdelay: 10.0,
        ..control(0.5)
    };
    control.update(&settings(), true);
    assert_eq!(control.p, 0.52);
    assert_eq!(control.qdelay_old, 10.0);
}

#[test]
fn the_delay_may_be_found_from_the_rate_of_departures() {
    let params: Params = toml::from_str("delay = \"rate\"").unwrap();
    let link = LinkFacts {
        rate: Rate::from_mbps(12),
        framing: Bytes(0),
    };
    let packet = Packet {
        size: 1500,
        ecn: Ecn::NotEct,
        dscp: 0,
        flow: FlowKey(0),
    };
    let mut pie = params.aqm(link, 1);
    let leave = |pie: &mut Pie, ms: u64, bytes: u64| {
        let now = Time::from_millis(ms);
        let packets = (bytes / 1500) as u32;
        pie.on_departure(now, &packet, Time::ZERO, Backlog { packets, bytes });
    };
    let delay = |pie: &mut Pie, bytes: u64| {
        pie.on_tick(pie.next_tick(), Backlog { packets: 1, bytes });
        pie.control.qdelay
    };
    // A packet a millisecond: the measurement begins with 16 kB waiting and takes 11 packets.
    leave(&mut pie, 0, 16_383);
    (1..=11).for_each(|ms| leave(&mut pie, ms, 30_000));
    assert_eq!(delay(&mut pie, 30_000), 0.0);
    leave(&mut pie, 12, 16_384);
    assert!((delay(&mut pie, 30_000) - 0.020).abs() < 1e-12);
    // The next one takes 2 ms a packet, and counts a quarter: 1.25 ms.
    (1..=11).for_each(|n| leave(&mut pie, 12 + 2 * n, 3000));
    assert!((delay(&mut pie, 30_000) - 0.025).abs() < 1e-12);
    // With less than 16 kB waiting at its end no other began.
    (1..=11).for_each(|n| leave(&mut pie, 34 + 9 * n, 3000));
    assert!((delay(&mut pie, 30_000) - 0.025).abs() < 1e-12);
}
