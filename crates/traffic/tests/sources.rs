//! Distributions, open-loop arrivals, bulk transfers and the refusal of impossible parameters.

use std::collections::HashMap;

use aqmlab_net::{Bytes, Frequency, RandomStream, Rate, Time};
use aqmlab_traffic::cbr::Gaps;
use aqmlab_traffic::{
    Action, Bulk, Cbr, Connect, Direction, HostCounts, Model, Poisson, Rtt, Setting, Sizes, Source,
};

const HOSTS: HostCounts = HostCounts {
    clients: 3,
    servers: 2,
};

const RTT: Rtt = Rtt::Constant {
    rtt: Time::from_millis(80),
};

/// Draws sizes, ascending.
fn draw(sizes: &Sizes, number: usize) -> Vec<f64> {
    let mut stream = RandomStream::new(1, "sizes", 0);
    let mut drawn: Vec<_> = (0..number)
        .map(|_| sizes.sample(&mut stream) as f64)
        .collect();
    drawn.sort_by(f64::total_cmp);
    drawn
}

fn assert_quantiles(sizes: &Sizes, expected: impl Fn(f64) -> f64) {
    let drawn = draw(sizes, 400_000);
    for q in [0.01, 0.1, 0.5, 0.9, 0.99] {
        let (found, expected) = (drawn[(q * drawn.len() as f64) as usize], expected(q));
        assert!(
            (found / expected - 1.0).abs() < 0.03,
            "{sizes:?}, quantile {q}: found {found}, expected {expected}"
        );
    }
}

fn constant(size: u64) -> Sizes {
    Sizes::Constant { size: Bytes(size) }
}

#[test]
fn a_constant_is_constant() {
    assert!(
        draw(&constant(1460), 100)
            .iter()
            .all(|size| *size == 1460.0)
    );
}

#[test]
fn pareto_has_its_quantiles() {
    let sizes = Sizes::Pareto {
        shape: 1.2,
        minimum: Bytes(10_000),
    };
    assert_quantiles(&sizes, |q| 10_000.0 * (1.0 - q).powf(-1.0 / 1.2));
}

#[test]
fn bounded_pareto_has_its_quantiles_mean_and_bounds() {
    let (shape, low, high) = (0.85, 5_000.0_f64, 2_000_000.0);
    let sizes = Sizes::BoundedPareto {
        shape,
        minimum: Bytes(low as u64),
        maximum: Bytes(high as u64),
    };
    let inside = 1.0 - (low / high).powf(shape);
    assert_quantiles(&sizes, |q| low * (1.0 - q * inside).powf(-1.0 / shape));
    let drawn = draw(&sizes, 400_000);
    assert!(drawn[0] >= low && drawn[drawn.len() - 1] <= high);
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    let power = 1.0 - shape;
    let expected = shape * low.powf(shape) / inside * (high.powf(power) - low.powf(power)) / power;
    assert!((mean / expected - 1.0).abs() < 0.02, "{mean}, {expected}");
}

#[test]
fn lognormal_has_its_median_and_spread() {
    let sizes = Sizes::Lognormal {
        median: Bytes(20_000),
        sigma: 1.5,
    };
    let drawn = draw(&sizes, 400_000);
    let logs: Vec<_> = drawn.iter().map(|size| size.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64;
    assert!((mean - 20_000_f64.ln()).abs() < 0.02, "{mean}");
    assert!((variance.sqrt() - 1.5).abs() < 0.01, "{variance}");
}

#[test]
fn a_table_gives_its_rows_with_their_probabilities() {
    let sizes = Sizes::Empirical {
        file: None,
        cdf: vec![(0.0, 0.1), (99.5, 0.5), (1000.0, 0.5), (2000.0, 1.0)],
    };
    let mut counts = HashMap::<u64, f64>::new();
    for size in draw(&sizes, 100_000) {
        *counts.entry(size as u64).or_insert(0.0) += 1e-5;
    }
    // No byte becomes one, part of a byte a whole one, and a row of probability 0 never comes.
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by_key(|row| row.0);
    for ((size, share), (expected_size, expected)) in
        rows.iter().zip([(1, 0.1), (100, 0.4), (2000, 0.5)])
    {
        assert_eq!(*size, expected_size);
        assert!((share - expected).abs() < 0.01);
    }
    assert_eq!(rows.len(), 3);
}

#[test]
fn a_size_is_never_absurd() {
    let sizes = Sizes::Pareto {
        shape: 0.001,
        minimum: Bytes(1),
    };
    let drawn = draw(&sizes, 1000);
    assert_eq!(drawn[999], (u64::MAX / 2) as f64);
}

fn poisson(response: Sizes) -> Model {
    Model::Poisson(Poisson {
        rate: Some(Frequency(200.0)),
        request: constant(300),
        response,
    })
}

/// The arrivals of an open-loop source.
fn arrivals(model: &Model, rtt: &Rtt, direction: Direction, until: Time) -> Vec<(Time, Connect)> {
    let mut source = Source::new(
        model,
        &Setting {
            rtt,
            direction,
            hosts: HOSTS,
            seed: 1,
            class: "peers",
        },
    )
    .unwrap();
    let (mut actions, mut arrivals) = (Vec::new(), Vec::new());
    source.start(&mut actions);
    loop {
        let Some(Action::WakeAt { at, token }) = actions.pop() else {
            panic!("an open-loop source always waits for the next arrival");
        };
        assert!(actions.is_empty());
        if at > until {
            return arrivals;
        }
        source.on_wake(at, token, &mut actions);
        let Action::Connect(connect) = actions.remove(0) else {
            panic!("every arrival is a connection");
        };
        // Nothing that happens to a connection matters to an open loop.
        source.on_finished(at, connect.token, &mut actions);
        arrivals.push((at, connect));
    }
}

#[test]
fn arrivals_are_poisson() {
    let end = Time::from_secs(1000);
    let arrivals = arrivals(&poisson(constant(1000)), &RTT, Direction::Forward, end);
    let number = arrivals.len() as f64;
    assert!(
        (number / 200_000.0 - 1.0).abs() < 5.0 / 200_000_f64.sqrt(),
        "{number}"
    );
    let gaps: Vec<_> = arrivals
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() * 200.0)
        .collect();
    // Exponential: P(gap > x mean) = e^-x.
    for x in [0.1, 1.0, 3.0_f64] {
        let share = gaps.iter().filter(|gap| **gap > x).count() as f64 / number;
        assert!((share - (-x).exp()).abs() < 0.006, "{x}: {share}");
    }
    // Hosts are uniform and independent.
    let mut pairs = HashMap::new();
    for (_, connect) in &arrivals {
        *pairs.entry((connect.client, connect.server)).or_insert(0.0) += 1.0 / number;
    }
    assert_eq!(pairs.len(), 6);
    assert!(
        pairs
            .values()
            .all(|share| (share - 1.0 / 6.0_f64).abs() < 0.006)
    );
}

#[test]
fn other_sizes_meet_the_same_arrivals_and_hosts() {
    let end = Time::from_secs(10);
    let run = |response, rtt: &Rtt| {
        arrivals(&poisson(response), rtt, Direction::Both, end)
            .into_iter()
            .map(|(at, c)| {
                (
                    at,
                    c.client,
                    c.server,
                    c.flipped,
                    c.script.exchanges()[0].request,
                )
            })
            .collect::<Vec<_>>()
    };
    let lognormal = Sizes::Lognormal {
        median: Bytes(9000),
        sigma: 2.0,
    };
    let uniform = Rtt::Uniform {
        min: Time::from_millis(10),
        max: Time::from_millis(150),
    };
    assert_eq!(run(constant(1), &RTT), run(lognormal, &uniform));
}

#[test]
fn both_directions_take_turns() {
    let end = Time::from_secs(10);
    let arrivals = arrivals(&poisson(constant(1)), &RTT, Direction::Both, end);
    assert!(arrivals.len() > 1000);
    for (index, (_, connect)) in arrivals.iter().enumerate() {
        assert_eq!(connect.flipped, index % 2 == 1);
        // Client and server are places at the sides where they sit.
        let (clients, servers) = if connect.flipped { (2, 3) } else { (3, 2) };
        assert!(connect.client < clients && connect.server < servers);
    }
}

#[test]
fn uniform_round_trip_times_are_uniform() {
    let rtt = Rtt::Uniform {
        min: Time::from_millis(10),
        max: Time::from_millis(150),
    };
    let end = Time::from_secs(500);
    let arrivals = arrivals(&poisson(constant(1)), &rtt, Direction::Forward, end);
    let mut ms: Vec<_> = arrivals
        .iter()
        .map(|(_, connect)| connect.rtt.as_secs_f64() * 1e3)
        .collect();
    ms.sort_by(f64::total_cmp);
    for q in [0.0, 0.25, 0.5, 0.75, 0.99999] {
        let found = ms[(q * ms.len() as f64) as usize];
        assert!((found - (10.0 + 140.0 * q)).abs() < 1.5, "{q}: {found}");
    }
}

fn bulk(flows: u32, size: Option<Bytes>) -> Model {
    Model::Bulk(Bulk {
        flows,
        size,
        start_within: Time::from_secs(1),
        limit: None,
        pauses: Vec::new(),
    })
}

/// When each transfer starts, and what it is.
fn transfers(model: &Model, direction: Direction) -> Vec<(Time, Connect)> {
    let mut source = Source::new(
        model,
        &Setting {
            rtt: &RTT,
            direction,
            hosts: HOSTS,
            seed: 1,
            class: "files",
        },
    )
    .unwrap();
    let (mut wakes, mut actions) = (Vec::new(), Vec::new());
    source.start(&mut wakes);
    let connect = |wake| {
        let Action::WakeAt { at, token } = wake else {
            panic!("a transfer starts with a wake-up");
        };
        source.on_wake(at, token, &mut actions);
        let Some(Action::Connect(connect)) = actions.pop() else {
            panic!("a wake-up starts a transfer");
        };
        source.on_finished(at, token, &mut actions);
        assert!(actions.is_empty(), "a transfer is not repeated");
        (at, connect)
    };
    wakes.into_iter().map(connect).collect()
}

#[test]
fn bulk_transfers_start_within_their_time_and_carry_their_size() {
    let endless = transfers(&bulk(100, None), Direction::Forward);
    assert_eq!(endless.len(), 100);
    for (token, (at, connect)) in endless.iter().enumerate() {
        assert!(*at < Time::from_secs(1));
        assert_eq!(connect.token as usize, token);
        assert_eq!(connect.script.exchanges()[0].request, 1);
        assert_eq!(connect.script.exchanges()[0].response, u64::MAX / 2);
    }
    let sized = transfers(&bulk(2, Some(Bytes(5_000_000))), Direction::Forward);
    assert_eq!(sized[0].1.script.exchanges()[0].response, 5_000_000);
    // More transfers do not change the first ones.
    assert_eq!(
        transfers(&bulk(10, None), Direction::Forward),
        endless[..10]
    );
}

#[test]
fn bulk_transfers_go_both_ways_and_round_the_hosts() {
    let mut pairs = HashMap::new();
    for (_, connect) in transfers(&bulk(24, None), Direction::Both) {
        assert_eq!(connect.flipped, connect.token % 2 == 1);
        *pairs
            .entry((connect.flipped, connect.client, connect.server))
            .or_insert(0) += 1;
    }
    // Two directions, six pairs of hosts each.
    assert_eq!(pairs.len(), 12);
    assert!(pairs.values().all(|count| *count == 2));
}

fn empirical(cdf: &[(f64, f64)]) -> Sizes {
    Sizes::Empirical {
        file: None,
        cdf: cdf.to_vec(),
    }
}

#[test]
fn impossible_models_are_refused_with_the_field() {
    let pareto = |shape| Sizes::Pareto {
        shape,
        minimum: Bytes(1),
    };
    let bounded = Sizes::BoundedPareto {
        shape: 1.0,
        minimum: Bytes(100),
        maximum: Bytes(100),
    };
    let rate = |rate| {
        Model::Poisson(Poisson {
            rate: Some(Frequency(rate)),
            request: constant(1),
            response: constant(1),
        })
    };
    for (model, field, words) in [
        (rate(0.0), "rate", "0 /s"),
        (rate(f64::INFINITY), "rate", "inf"),
        (poisson(constant(0)), "response.size", "0 bytes"),
        (poisson(pareto(0.0)), "response.shape", "above 0"),
        (poisson(pareto(-1.0)), "response.shape", "found -1"),
        (poisson(bounded), "response.maximum", "exceed minimum, 100"),
        (poisson(empirical(&[])), "response.cdf", "no rows"),
        (
            poisson(empirical(&[(1.0, 0.5), (1.0, 1.0)])),
            "response.cdf",
            "row 2",
        ),
        (
            poisson(empirical(&[(1.0, 0.5), (2.0, 0.4), (3.0, 1.0)])),
            "response.cdf",
            "ascend",
        ),
        (
            poisson(empirical(&[(1.0, 0.5), (2.0, 0.9)])),
            "response.cdf",
            "must be 1",
        ),
        (
            poisson(empirical(&[(-1.0, 0.5), (2.0, 1.0)])),
            "response.cdf",
            "negative",
        ),
    ] {
        let (found, message) = model.check().unwrap_err();
        assert_eq!(found, field, "{message}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(
        poisson(empirical(&[(0.0, 0.5), (2.0, 1.0)])).check(),
        Ok(())
    );
}

#[test]
fn impossible_round_trip_times_are_refused_with_the_field() {
    let pairs = |matrix: &[&[u64]]| Rtt::Pairs {
        file: None,
        matrix: matrix
            .iter()
            .map(|row| row.iter().map(|ms| Time::from_millis(*ms)).collect())
            .collect(),
        extra: Time::ZERO,
    };
    let backwards = Rtt::Uniform {
        min: Time::from_millis(2),
        max: Time::from_millis(1),
    };
    for (rtt, field, words) in [
        (backwards, "max", "must not be below min, 2 ms"),
        (pairs(&[]), "matrix", "found 0 rows"),
        (pairs(&[&[1, 2, 3]]), "matrix", "one per server host, 2"),
        (
            pairs(&[&[1, 2, 3], &[1, 2]]),
            "matrix",
            "found 2 entries in row 2",
        ),
    ] {
        let (found, message) = rtt.check(HOSTS).unwrap_err();
        assert_eq!(found, field, "{message}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(pairs(&[&[1, 2, 3], &[4, 5, 6]]).check(HOSTS), Ok(()));
    assert_eq!(RTT.check(HOSTS), Ok(()));
}

/// Two flows of 100 datagrams per second each, for 100 seconds: times and tokens.
fn datagrams(gaps: Gaps) -> Vec<(Time, u32)> {
    let model = Model::Cbr(Cbr {
        flows: 2,
        rate: Rate::from_bps(400_000),
        packet: Bytes(500),
        gaps,
        ect: Default::default(),
        start_within: Time::from_millis(5),
    });
    model.check().unwrap();
    let mut source = Source::new(
        &model,
        &Setting {
            rtt: &RTT,
            direction: Direction::Both,
            hosts: HOSTS,
            seed: 1,
            class: "cbr",
        },
    )
    .expect("a complete model");
    assert!(!source.waits_for_connections());
    let (mut wakes, mut actions, mut sent, mut opened) = (Vec::new(), Vec::new(), Vec::new(), 0);
    source.start(&mut actions);
    let mut now = Time::ZERO;
    loop {
        for action in actions.drain(..) {
            match action {
                Action::OpenDatagrams(open) => {
                    assert_eq!((open.token, open.flipped), (opened, opened == 1));
                    opened += 1;
                }
                Action::Datagram { token, size } => {
                    assert_eq!(size, 500);
                    sent.push((now, token));
                }
                Action::WakeAt { at, token } => wakes.push((at, token)),
                other => panic!("a datagram needs no {other:?}"),
            }
        }
        let (place, &(at, token)) = wakes
            .iter()
            .enumerate()
            .min_by_key(|(_, due)| *due)
            .unwrap();
        wakes.remove(place);
        if at > Time::from_secs(100) {
            return sent;
        }
        now = at;
        source.on_wake(now, token, &mut actions);
    }
}

#[test]
fn datagrams_keep_their_rate_and_their_distribution_of_gaps() {
    // The squared coefficient of variation of the gaps: 0, 1/12 and 1.
    for (gaps, expected) in [
        (Gaps::Constant, 0.0),
        (Gaps::Uniform, 1.0 / 12.0),
        (Gaps::Exponential, 1.0),
    ] {
        let sent = datagrams(gaps);
        for flow in 0..2 {
            let times: Vec<_> = sent.iter().filter(|(_, token)| *token == flow).collect();
            assert!(times[0].0 < Time::from_millis(5));
            let gaps_s: Vec<_> = times
                .windows(2)
                .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64())
                .collect();
            let n = gaps_s.len() as f64;
            let mean = gaps_s.iter().sum::<f64>() / n;
            let variance = gaps_s.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
            // Four standard errors of 10,000 gaps.
            assert!(
                (mean / 0.01 - 1.0).abs() < 0.04,
                "{gaps:?}: mean gap {mean}"
            );
            let squared = variance / mean / mean;
            assert!(
                (squared - expected).abs() <= 0.12 * expected + 1e-9,
                "{gaps:?}: {squared}, expected {expected}"
            );
        }
    }
}
