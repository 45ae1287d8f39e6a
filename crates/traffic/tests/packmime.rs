//! PackMime against the numbers of its tables and of an independent calculation.
//!
//! Sizes and gaps have long memory, so a share in one long series says little about its own error.
//! Every test draws many independent series and takes the error from the spread between them.

use aqmlab_net::{Frequency, Time};
use aqmlab_traffic::packmime::Http;
use aqmlab_traffic::{
    Action, Connect, Direction, HostCounts, Model, Packmime, PackmimeRtt, Rtt, Setting, Source,
};

const HOSTS: HostCounts = HostCounts {
    clients: 3,
    servers: 2,
};

const NS2: Rtt = Rtt::Packmime {
    table: PackmimeRtt::Ns2,
    extra: Time::ZERO,
};

fn packmime(rate: f64, http: Http) -> Model {
    Model::Packmime(Packmime {
        rate: Some(Frequency(rate)),
        http,
        server_delay: true,
        response_scale: 1.0,
    })
}

/// The first connections of a run, with the times at which they open.
fn connections(
    model: &Model,
    rtt: &Rtt,
    direction: Direction,
    seed: u64,
    number: usize,
) -> Vec<(Time, Connect)> {
    let mut source = Source::new(
        model,
        &Setting {
            rtt,
            direction,
            hosts: HOSTS,
            seed,
            class: "web",
        },
    )
    .unwrap();
    let (mut actions, mut due, mut opened) = (Vec::new(), Vec::new(), Vec::new());
    source.start(&mut actions);
    while opened.len() < number {
        for action in actions.drain(..) {
            match action {
                Action::WakeAt { at, token } => due.push((at, token)),
                other => panic!("{other:?}"),
            }
        }
        due.sort();
        let (at, token) = due.remove(0);
        source.on_wake(at, token, &mut actions);
        let Action::Connect(connect) = actions.remove(0) else {
            panic!("a wake-up opens a connection");
        };
        opened.push((at, connect));
    }
    opened
}

/// Independent series of each test, and connections in each.
const SERIES: u64 = 60;
const LENGTH: usize = 10_000;

/// One statistic of many series.
struct Sample(Vec<f64>);

impl Sample {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Standard error of the mean, from the spread between the series.
    fn error(&self) -> f64 {
        let (mean, n) = (self.mean(), self.0.len() as f64);
        let squares = self
            .0
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        (squares / (n - 1.0) / n).sqrt()
    }

    /// The expected value lies within 4 standard errors, and these are not wide.
    fn expect(&self, what: &str, expected: f64, widest: f64) {
        let (mean, error) = (self.mean(), self.error());
        assert!(
            4.0 * error < widest,
            "{what}: 4 standard errors are {}",
            4.0 * error
        );
        assert!(
            (mean - expected).abs() < 4.0 * error,
            "{what}: {mean} +- {error}, expected {expected}"
        );
    }
}

fn share(values: &[f64], at_most: f64) -> f64 {
    values.iter().filter(|value| **value <= at_most).count() as f64 / values.len() as f64
}

fn all_series<T>(rate: f64, http: Http, of: impl Fn(&[(Time, Connect)]) -> T) -> Vec<T> {
    let model = packmime(rate, http);
    (0..SERIES)
        .map(|seed| of(&connections(&model, &NS2, Direction::Forward, seed, LENGTH)))
        .collect()
}

#[test]
fn sizes_have_the_published_quantiles() {
    let sizes = all_series(100.0, Http::Http10, |connections| {
        let exchanges = || {
            connections
                .iter()
                .map(|(_, connect)| connect.script.exchanges()[0])
        };
        assert!(
            connections
                .iter()
                .all(|(_, connect)| connect.script.exchanges().len() == 1)
        );
        let requests: Vec<_> = exchanges().map(|it| it.request as f64).collect();
        let responses: Vec<_> = exchanges().map(|it| it.response as f64).collect();
        [requests, responses]
    });
    let shares = |which: usize, at_most: f64| {
        Sample(
            sizes
                .iter()
                .map(|sizes| share(&sizes[which], at_most))
                .collect(),
        )
    };
    // Requests: p10, p25, p50, p75, p90, p99 of the tables, and the share up to a packet.
    for (bytes, expected) in [
        (279.0, 0.1),
        (350.0, 0.25),
        (423.0, 0.5),
        (514.0, 0.75),
        (869.0, 0.9),
        (1420.0, 0.968_76),
        (3061.0, 0.99),
    ] {
        shares(0, bytes).expect(&format!("requests up to {bytes}"), expected, 0.03);
    }
    // Responses at 100 connections/s: median, p60, p90, p99, shares up to one and ten packets.
    // The papers: 60 % fit into one packet, 90 % into ten, the median is below 1000 bytes.
    for (bytes, expected) in [
        (895.0, 0.5),
        (1420.0, 0.571_62),
        (1725.0, 0.6),
        (14_200.0, 0.894_16),
        (14_858.0, 0.9),
        (71_665.0, 0.99),
        // Cache validations end at 272 bytes, their share is 1 - 0.72457 (and some downloads).
        (197.0, 0.75 * 0.275_43),
    ] {
        shares(1, bytes).expect(&format!("responses up to {bytes}"), expected, 0.01);
    }
}

#[test]
fn the_tail_of_the_responses_has_its_index() {
    // Hill's estimate over what exceeds 200 kB, where the table is a straight line: 1.231.
    let sum = all_series(100.0, Http::Http10, |connections| {
        let tail: Vec<_> = connections
            .iter()
            .map(|(_, connect)| connect.script.exchanges()[0].response as f64 / 200_000.0)
            .filter(|excess| *excess > 1.0)
            .collect();
        (
            tail.len() as f64,
            tail.iter().map(|excess| excess.ln()).sum::<f64>(),
        )
    });
    let count: f64 = sum.iter().map(|it| it.0).sum();
    let index = count / sum.iter().map(|it| it.1).sum::<f64>();
    // Standard error index / sqrt(count).
    assert!(count > 500.0);
    assert!(
        (index - 1.231).abs() < 4.0 * 1.231 / count.sqrt(),
        "{index} of {count}"
    );
}

/// The gaps between connections, in units of the Weibull scale.
fn gaps(connections: &[(Time, Connect)], scale_s: f64) -> Vec<f64> {
    let times: Vec<f64> = connections.iter().map(|(at, _)| at.as_secs_f64()).collect();
    times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / scale_s)
        .collect()
}

/// Shape and scale (s) of the gaps, and share of white noise in their memory, by rate; the
/// independent calculation.
const ARRIVALS: [(f64, f64, f64, f64); 3] = [
    (1.0, 0.5607, 0.60478, 0.55745),
    (20.0, 0.80319, 0.044256, 0.81322),
    (200.0, 0.90886, 0.0047772, 0.91866),
];

#[test]
fn gaps_are_weibull_with_the_shape_of_the_rate() {
    for (rate, shape, scale_s, _) in ARRIVALS {
        let gaps = all_series(rate, Http::Http10, |connections| gaps(connections, scale_s));
        for x in [0.05, 0.3, 1.0, 2.0_f64] {
            let shares = Sample(gaps.iter().map(|gaps| share(gaps, x)).collect());
            let expected = 1.0 - (-x.powf(shape)).exp();
            shares.expect(&format!("rate {rate}, gaps up to {x}"), expected, 0.06);
        }
        let means = gaps
            .iter()
            .map(|gaps| gaps.iter().sum::<f64>() / gaps.len() as f64);
        let expected = 1.0 / (rate * scale_s);
        Sample(means.collect()).expect(&format!("rate {rate}, mean gap"), expected, 0.25);
    }
}

/// The standard normal value below which a share `p` lies, by bisection.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(-middle / 2.0_f64.sqrt()) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Autocorrelation of e_t + e_(t-1), where e is fractional noise.
fn correlation(d: f64, lag: u32) -> f64 {
    let rho = |lag: u32| {
        (1..=lag)
            .map(f64::from)
            .map(|k| (k - 1.0 + d) / (k - d))
            .product::<f64>()
    };
    let pair = |lag: u32| 2.0 * rho(lag) + rho(lag + 1) + rho(lag.abs_diff(1));
    pair(lag) / pair(0)
}

#[test]
fn gaps_remember_as_long_as_they_should() {
    let (rate, shape, scale_s, white) = ARRIVALS[0];
    let scores = all_series(rate, Http::Http10, |connections| {
        let score = |gap: f64| normal_quantile(1.0 - (-gap.powf(shape)).exp());
        let gaps = gaps(connections, scale_s);
        gaps.into_iter()
            .take(5000)
            .map(|gap| score(gap.max(1e-12)))
            .collect::<Vec<_>>()
    });
    for lag in [1, 2, 10, 100, 1000] {
        let products = scores.iter().map(|scores| {
            let pairs = scores.iter().zip(&scores[lag..]);
            // The mean is known to be 0: subtracting that of the sample would hide long memory.
            pairs.map(|(a, b)| a * b).sum::<f64>() / (scores.len() - lag) as f64
        });
        let expected = (1.0 - white) * correlation(0.33, lag as u32);
        Sample(products.collect()).expect(&format!("lag {lag}"), expected, 0.08);
    }
}

#[test]
fn round_trip_times_have_the_quantiles_of_the_tables() {
    let rtts = all_series(100.0, Http::Http10, |connections| {
        let ms = |it: &(Time, Connect)| it.1.rtt.as_secs_f64() * 1e3;
        connections.iter().map(ms).collect::<Vec<_>>()
    });
    for (ms, expected) in [(21.102, 0.25), (67.294, 0.5), (97.212, 0.75), (186.01, 0.9)] {
        let shares = Sample(rtts.iter().map(|rtts| share(rtts, ms)).collect());
        shares.expect(&format!("round trips up to {ms}"), expected, 0.05);
    }
}

/// Of a series: share of persistent connections, requests of one, share of requests on them, sizes of
/// later responses, pauses in seconds.
type Persistent = (f64, f64, f64, Vec<f64>, Vec<f64>);

#[test]
fn persistent_connections_have_their_pages_objects_and_gaps() {
    let per_series = all_series(100.0, Http::Http11, |connections| {
        let persistent: Vec<_> = connections
            .iter()
            .map(|(_, connect)| connect.script.exchanges())
            .filter(|exchanges| exchanges.len() > 1)
            .collect();
        let requests: usize = persistent.iter().map(|exchanges| exchanges.len()).sum();
        let plain = connections.len() - persistent.len();
        for exchanges in &persistent {
            for exchange in *exchanges {
                assert_eq!(exchange.request, exchanges[0].request);
                if exchanges[0].response <= 275 {
                    assert_eq!(exchange.response, exchanges[0].response);
                }
            }
            assert_eq!(exchanges[exchanges.len() - 1].pause, Time::ZERO);
        }
        let later = persistent
            .iter()
            .filter(|exchanges| exchanges[0].response > 275)
            .flat_map(|exchanges| exchanges[1..].iter().map(|it| it.response as f64));
        let pauses = persistent.iter().flat_map(|exchanges| {
            let pauses = exchanges.iter().take(exchanges.len() - 1);
            pauses.map(|exchange| exchange.pause.as_secs_f64())
        });
        (
            persistent.len() as f64 / connections.len() as f64,
            requests as f64 / persistent.len() as f64,
            requests as f64 / (requests + plain) as f64,
            later.collect::<Vec<_>>(),
            pauses.collect::<Vec<_>>(),
        )
    });
    let sample = |of: fn(&Persistent) -> f64| Sample(per_series.iter().map(of).collect());
    sample(|it| it.0).expect("persistent connections", 0.09, 0.002);
    sample(|it| it.1).expect("requests of one", 3.1952, 0.05);
    sample(|it| it.2).expect("their share of requests", 0.240_13, 0.005);
    // Median and 90th percentile of the later responses.
    sample(|it| share(&it.3, 1575.2)).expect("later responses", 0.5, 0.02);
    sample(|it| share(&it.3, 7715.2)).expect("later responses", 0.9, 0.02);
    // Nine in ten gaps are between objects: median 0.057 s, 90th percentile 0.38 s; the others, a
    // tenth at most, between pages: median 9.3 s.
    sample(|it| share(&it.4, 0.056_534)).expect("gaps", 0.5 * 0.9098, 0.05);
}

#[test]
fn servers_take_their_time_but_never_more_than_a_tenth_of_a_second() {
    // 1 / max(10, Weibull(0.63, 305)): p25 1.9 ms, median 5.9 ms, p75 23.7 ms, mean 21.96 ms; 11 %
    // reach the limit.
    let delays = all_series(100.0, Http::Http10, |connections| {
        let delay = |it: &(Time, Connect)| it.1.script.exchanges()[0].think.as_secs_f64();
        connections.iter().map(delay).collect::<Vec<_>>()
    });
    for (s, expected) in [(0.001_948_9, 0.25), (0.005_860_5, 0.5), (0.023_679, 0.75)] {
        let shares = Sample(delays.iter().map(|delays| share(delays, s)).collect());
        shares.expect(&format!("delays up to {s}"), expected, 0.01);
    }
    let means = delays
        .iter()
        .map(|delays| delays.iter().sum::<f64>() / LENGTH as f64);
    Sample(means.collect()).expect("mean delay", 0.021_957, 0.001);
    assert!(delays.iter().flatten().all(|delay| *delay <= 0.1));
    let Model::Packmime(params) = packmime(100.0, Http::Http11) else {
        unreachable!()
    };
    let at_once = Model::Packmime(Packmime {
        server_delay: false,
        ..params
    });
    for (_, connect) in connections(&at_once, &NS2, Direction::Forward, 1, 1000) {
        assert!(
            connect
                .script
                .exchanges()
                .iter()
                .all(|it| it.think == Time::ZERO)
        );
    }
}

#[test]
fn each_direction_is_a_pair_of_clouds_of_its_own() {
    let model = packmime(20.0, Http::Http10);
    let both = connections(&model, &NS2, Direction::Both, 1, 20_000);
    let span = both[both.len() - 1].0.as_secs_f64();
    for flipped in [false, true] {
        let half: Vec<_> = both.iter().filter(|it| it.1.flipped == flipped).collect();
        let rate = half.len() as f64 / span;
        assert!((rate - 10.0).abs() < 1.5, "{rate}");
        let (clients, servers) = if flipped { (2, 3) } else { (3, 2) };
        assert!(
            half.iter()
                .all(|it| it.1.client < clients && it.1.server < servers)
        );
        // Half the clouds meet what they would meet alone.
        let direction = if flipped {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        let alone = connections(&packmime(10.0, Http::Http10), &NS2, direction, 1, 1000);
        let script = |it: &(Time, Connect)| (it.0, it.1.script.clone());
        let halves: Vec<_> = half.into_iter().take(1000).map(script).collect();
        assert_eq!(halves, alone.iter().map(script).collect::<Vec<_>>());
    }
}

#[test]
fn other_round_trip_times_meet_the_same_connections() {
    let model = packmime(50.0, Http::Http11);
    let other = Rtt::Constant {
        rtt: Time::from_millis(80),
    };
    let rest = |rtt: &Rtt| {
        connections(&model, rtt, Direction::Forward, 3, 1000)
            .into_iter()
            .map(|(at, it)| (at, it.client, it.server, it.script))
            .collect::<Vec<_>>()
    };
    assert_eq!(rest(&NS2), rest(&other));
}

#[test]
fn a_factor_scales_responses_and_nothing_else() {
    let scaled = |http, response_scale| {
        let Model::Packmime(params) = packmime(100.0, http) else {
            unreachable!()
        };
        let model = Model::Packmime(Packmime {
            response_scale,
            ..params
        });
        let opened = connections(&model, &NS2, Direction::Forward, 1, 2000);
        let exchanges = opened.into_iter().flat_map(|(at, connect)| {
            let exchanges = connect.script.exchanges().to_vec();
            exchanges.into_iter().map(move |it| (at, it))
        });
        exchanges.collect::<Vec<_>>()
    };
    for http in [Http::Http10, Http::Http11] {
        let (whole, half) = (scaled(http, 1.0), scaled(http, 0.5));
        assert_eq!(whole.len(), half.len());
        for ((at, one), (at_half, other)) in whole.iter().zip(&half) {
            let response = ((one.response as f64 * 0.5).round() as u64).max(1);
            assert_eq!(other.response, response);
            let without_response = |it: &aqmlab_traffic::Exchange| (it.request, it.think, it.pause);
            assert_eq!(without_response(one), without_response(other));
            assert_eq!(at, at_half);
        }
    }
}
