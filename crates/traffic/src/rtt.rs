//! Round-trip times of connections.

use std::sync::LazyLock;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, problem};
use aqmlab_net::{RandomStream, Time};
use serde::{Deserialize, Serialize};

use crate::packmime::RttCurves;
use crate::setting::{HostCounts, Pair};
use crate::shipped;

aqmlab_declare::tagged! {
    /// Minimum round-trip time of each connection, including the delay of the bottleneck.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Rtt {
        /// One round-trip time for all connections.
        Constant {
            /// The round-trip time.
            rtt: Time,
        },
        /// Each connection has the round-trip time from its connection vector, but at least the
        /// delay of the links. Only for traffic of kind `vectors` or `general-tcp`.
        Vector {
            /// Round-trip time of a connection if its vector contains none.
            #[serde(default = "default_fallback")]
            fallback: Time,
        },
        /// Uniform distribution from `min` to `max`.
        Uniform {
            /// Minimum round-trip time.
            min: Time,
            /// Maximum round-trip time.
            max: Time,
        },
        /// Evenly spaced from `min` to `max`, without random numbers. With n users or flows, user
        /// or flow k has the round-trip time min + k/(n - 1) (max - min). k counts from 0. In a
        /// class with an arrival rate, connection k has the round-trip time min + f (max - min). f
        /// is the fractional part of 0.618 k.
        Even {
            /// Minimum round-trip time.
            min: Time,
            /// Maximum round-trip time.
            max: Time,
        },
        /// A fixed round-trip time for each pair of a server host and a client host. Either `file`
        /// or `matrix` is required.
        Pairs {
            /// CSV file. The header is `server` and the names of the clients. Each further row
            /// contains the name of a server and one time in milliseconds for each client.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            file: Option<String>,
            /// List of rows. Each row belongs to a server and contains one time for each client.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            matrix: Vec<Vec<Time>>,
            /// aqmlab adds this time to each entry.
            #[serde(default)]
            extra: Time,
        },
        /// Random value from a table of cumulative probabilities. Between two rows, aqmlab
        /// interpolates the logarithm of the round-trip time. Either `file` or `cdf` is required.
        Empirical {
            /// CSV file with a header. The first column contains milliseconds, the last column
            /// contains cumulative probabilities.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            file: Option<String>,
            /// List of rows (round-trip time, cumulative probability). Both numbers increase from
            /// row to row. The last probability is 1. No round-trip time is smaller than in the
            /// first row.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            cdf: Vec<(Time, f64)>,
        },
        /// Wide distribution of Aikat et al. 2003, which aqmlab reconstructs from published
        /// results. The times are 10 ms to 25 s, and 10 % exceed 1.1 s. The median is 80 ms, or 97
        /// ms with `fit = "median"`.
        General {
            /// Published result that the distribution matches. No distribution matches all
            /// published results.
            #[serde(default)]
            fit: GeneralFit,
        },
        /// Round-trip times of the traffic model PackMime. With traffic of kind `packmime` and the
        /// table `ns2`, the round-trip times have long-range dependence. Otherwise they are
        /// independent.
        Packmime {
            /// Distribution of the round-trip times.
            #[serde(default)]
            table: PackmimeRtt,
            /// aqmlab adds this time to each value of the distribution. The sum is the whole
            /// round-trip time, including the `delay` of the links.
            #[serde(default)]
            extra: Time,
        },
    }
}

fn default_fallback() -> Time {
    Time::from_millis(100)
}

/// How to resolve a contradiction between the sources of the general distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GeneralFit {
    /// The lower 60 % of the published round-trip times, which are below 94 ms.
    #[default]
    Body,
    /// In a network without congestion, the response times have the published median. 60 % of the
    /// round-trip times are below 115 ms.
    Median,
}

/// Which round-trip times PackMime uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PackmimeRtt {
    /// Distribution of ns-2.35: the sum of a client part and a server part. Median 67 ms, mean 108
    /// ms.
    #[default]
    Ns2,
    /// Distribution of ns-2.1b9 in Weigle's dissertation (2003), which aqmlab reconstructs from
    /// published statistics. Range 1 ms to 3.5 s, median 54 ms, mean 74 ms.
    Weigle2003,
}

/// Which of a class's connections one is, for round trips that are spread over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// One of number `index` of so many flows, sessions or users.
    Of { index: u32, count: u32 },
    /// The number of those that have arrived before it.
    Arrival(u32),
}

/// The fraction of the golden ratio, as a multiple of 2^-64. Its multiples leave the
/// smallest gaps (D. Knuth, The Art of Computer Programming, volume 3, section 6.4, theorem S).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rank {
    /// What it has of a span over which all are spread.
    fn share_of(self, span: Time) -> Time {
        let span = u128::from(span.as_nanos());
        let share = match self {
            Self::Of { index, count } => span * u128::from(index) / u128::from(count.max(2) - 1),
            Self::Arrival(index) => {
                let fraction = GOLDEN.wrapping_mul(u64::from(index));
                (span * u128::from(fraction)) >> 64
            }
        };
        Time::from_nanos(share as u64)
    }
}

/// A knot of a distribution: milliseconds, cumulative probability.
type Knot = (f64, f64);

static GENERAL: LazyLock<[Vec<Knot>; 2]> = LazyLock::new(|| {
    [
        include_str!("../data/rtt/general_body.csv"),
        include_str!("../data/rtt/general_median.csv"),
    ]
    .map(knots)
});

static WEIGLE2003: LazyLock<Vec<Knot>> =
    LazyLock::new(|| knots(include_str!("../data/rtt/packmime_weigle2003.csv")));

static PACKMIME: LazyLock<RttCurves> = LazyLock::new(RttCurves::shipped);

fn knots(csv: &str) -> Vec<Knot> {
    let rows = shipped::rows(csv).into_iter();
    rows.map(|[ms, cumulative]| (ms, cumulative)).collect()
}

fn general(fit: GeneralFit) -> &'static [Knot] {
    &GENERAL[fit as usize]
}

impl Rtt {
    /// Refuses what means nothing between `hosts`; the error is the field and the message.
    pub fn check(&self, hosts: HostCounts) -> Result<(), Problem> {
        match self {
            Self::Constant { .. }
            | Self::Vector { .. }
            | Self::General { .. }
            | Self::Packmime { .. } => Ok(()),
            Self::Empirical { cdf, .. } => check_rtts(cdf),
            Self::Uniform { min, max } | Self::Even { min, max } => {
                if min <= max {
                    return Ok(());
                }
                problem(
                    "max",
                    format!("found {max}; it must not be below min, {min}"),
                )
            }
            Self::Pairs { matrix, .. } => {
                let HostCounts { clients, servers } = hosts;
                if matrix.len() != servers as usize {
                    return problem(
                        "matrix",
                        format!(
                            "found {} rows; there must be one per server host, {servers}",
                            matrix.len()
                        ),
                    );
                }
                let odd = |row: &Vec<_>| row.len() != clients as usize;
                let Some(row) = matrix.iter().position(odd) else {
                    return Ok(());
                };
                problem(
                    "matrix",
                    format!(
                        "found {} entries in row {}; there must be one per client host, {clients}",
                        matrix[row].len(),
                        row + 1
                    ),
                )
            }
        }
    }

    /// The round-trip time of a connection between these hosts.
    pub(crate) fn sample(&self, pair: Pair, stream: &mut RandomStream) -> Time {
        match self {
            Self::Constant { rtt } | Self::Vector { fallback: rtt } => *rtt,
            Self::Uniform { min, max } => {
                Time::from_secs_f64(stream.uniform_in(min.as_secs_f64(), max.as_secs_f64()))
            }
            Self::Even { min, max } => *min + pair.rank.share_of(max.saturating_sub(*min)),
            Self::Pairs { matrix, extra, .. } => {
                let Pair { client, server, .. } = pair;
                // The matrix knows places, not roles: rows are the hosts at the servers' side.
                let (row, column) = if pair.flipped {
                    (client, server)
                } else {
                    (server, client)
                };
                matrix[row as usize][column as usize] + *extra
            }
            Self::Empirical { cdf, .. } => {
                let u = stream.uniform_positive();
                let after = cdf.partition_point(|&(_, cumulative)| cumulative < u);
                milliseconds(between(after.min(cdf.len() - 1), u, |row| {
                    (cdf[row].0.as_secs_f64() * 1e3, cdf[row].1)
                }))
            }
            Self::General { fit } => quantile(general(*fit), stream.uniform_positive()),
            Self::Packmime { table, extra } => {
                let own = match table {
                    PackmimeRtt::Ns2 => {
                        let above = [stream.uniform_positive(), stream.uniform_positive()];
                        milliseconds(PACKMIME.exceeded_ms(above))
                    }
                    PackmimeRtt::Weigle2003 => quantile(&WEIGLE2003, stream.uniform_positive()),
                };
                own.saturating_add(*extra)
            }
        }
    }

    /// About the mean round trip, from a few draws; of those that are fixed for pairs of hosts, that
    /// of the first.
    pub fn mean(&self) -> Time {
        const DRAWS: u32 = 256;
        let mut stream = RandomStream::new(0, "mean round trip", 0);
        let draw = |index| {
            let rank = Rank::Arrival(index);
            let pair = Pair {
                client: 0,
                server: 0,
                flipped: false,
                rank,
            };
            self.sample(pair, &mut stream).as_secs_f64()
        };
        let sum: f64 = (0..DRAWS).map(draw).sum();
        Time::from_secs_f64(sum / f64::from(DRAWS))
    }

    /// The shortest and the longest round trip; a distribution without an end has none longest.
    pub fn extremes(&self) -> (Time, Time) {
        let ends = |knots: &[Knot]| {
            let [first, last] = [knots[0], knots[knots.len() - 1]].map(|knot| milliseconds(knot.0));
            (first, last)
        };
        match self {
            Self::Constant { rtt } | Self::Vector { fallback: rtt } => (*rtt, *rtt),
            Self::Uniform { min, max } | Self::Even { min, max } => (*min, *max),
            Self::Pairs { matrix, extra, .. } => {
                let cells = || {
                    let cells = matrix.iter().flatten();
                    cells.map(|cell| cell.saturating_add(*extra))
                };
                (
                    cells().min().unwrap_or_default(),
                    cells().max().unwrap_or_default(),
                )
            }
            Self::Empirical { cdf, .. } => (
                cdf.first().map_or(Time::ZERO, |row| row.0),
                cdf.last().map_or(Time::ZERO, |row| row.0),
            ),
            Self::General { fit } => ends(general(*fit)),
            Self::Packmime { table, extra } => {
                let (shortest, longest) = match table {
                    PackmimeRtt::Ns2 => (milliseconds(PACKMIME.shortest_ms()), *extra),
                    PackmimeRtt::Weigle2003 => ends(&WEIGLE2003),
                };
                let longest = longest.saturating_add(*extra);
                (shortest.saturating_add(*extra), longest)
            }
        }
    }
}

/// Rows of (round-trip time, cumulative probability): both ascending, the last probability 1. Times
/// may stay the same: then they have the probability between them.
fn check_rtts(cdf: &[(Time, f64)]) -> Result<(), Problem> {
    let Some(&(first, probability)) = cdf.first() else {
        return problem("cdf", "found no rows; give them, or a file that has them");
    };
    if first == Time::ZERO || !(0.0..=1.0).contains(&probability) {
        let right = "a time is above 0 and a probability from 0 to 1";
        return problem(
            "cdf",
            format!("found ({first}, {probability}) in row 1; {right}"),
        );
    }
    for (index, pair) in cdf.windows(2).enumerate() {
        let ((rtt, probability), (next, after)) = (pair[0], pair[1]);
        if !(next >= rtt && after >= probability) {
            let found = format!("found ({next}, {after}) in row {}", index + 2);
            let right = "times and probabilities must ascend";
            return problem(
                "cdf",
                format!("{found} after ({rtt}, {probability}); {right}"),
            );
        }
    }
    let (longest, last) = cdf[cdf.len() - 1];
    if (last - 1.0).abs() > 1e-9 {
        let right = "its probability must be 1";
        return problem(
            "cdf",
            format!("found ({longest}, {last}) in the last row; {right}"),
        );
    }
    Ok(())
}

fn milliseconds(ms: f64) -> Time {
    Time::from_secs_f64(ms / 1e3)
}

fn quantile(knots: &[Knot], u: f64) -> Time {
    let after = knots.partition_point(|&(_, cumulative)| cumulative < u);
    milliseconds(between(after.min(knots.len() - 1), u, |row| knots[row]))
}

/// The value at probability `u` before row `after`, the logarithm linear between rows. Below the
/// first row it is the first row's.
fn between(after: usize, u: f64, row: impl Fn(usize) -> Knot) -> f64 {
    if after == 0 {
        return row(0).0;
    }
    let ((low, p), (high, q)) = (row(after - 1), row(after));
    low * libm::pow(high / low, (u - p) / (q - p))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(rank: Rank) -> Pair {
        Pair {
            client: 0,
            server: 0,
            flipped: false,
            rank,
        }
    }

    fn first() -> Pair {
        ranked(Rank::Arrival(0))
    }

    fn drawn_ms(rtt: &Rtt) -> Vec<f64> {
        let mut stream = RandomStream::new(1, "rtt", 0);
        let draw = |_| rtt.sample(first(), &mut stream).as_secs_f64() * 1e3;
        let mut drawn: Vec<f64> = (0..400_000).map(draw).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    /// The share of draws below `value` must be `share`, within 4.5 standard errors.
    fn expect_share(drawn: &[f64], value: f64, share: f64) {
        let n = drawn.len() as f64;
        let found = drawn.partition_point(|rtt| *rtt < value) as f64 / n;
        let bound = 4.5 * (share * (1.0 - share) / n).sqrt();
        assert!(
            (found - share).abs() < bound,
            "{value} ms: {found}, not {share}"
        );
    }

    #[test]
    fn the_general_distribution_has_its_knots() {
        let body = drawn_ms(&Rtt::General {
            fit: GeneralFit::Body,
        });
        for (ms, share) in [(24.0, 0.1), (94.0, 0.6), (307.951, 0.75), (1154.813, 0.9)] {
            expect_share(&body, ms, share);
        }
        // Between knots the logarithm is linear.
        expect_share(&body, (94.0_f64 * 307.951).sqrt(), 0.675);
        assert!(body[0] >= 10.5 && body[body.len() - 1] <= 25_000.0);
        let median = drawn_ms(&Rtt::General {
            fit: GeneralFit::Median,
        });
        expect_share(&median, 114.936, 0.6);
        expect_share(&median, 100.0, 0.516);
    }

    #[test]
    fn packmime_has_its_published_quantiles() {
        // Computed independently from the tables: 10th, 25th, ... percentile of the sum.
        let ns2 = drawn_ms(&Rtt::Packmime {
            table: PackmimeRtt::Ns2,
            extra: Time::ZERO,
        });
        for (ms, share) in [
            (4.8903, 0.1),
            (21.102, 0.25),
            (67.294, 0.5),
            (97.212, 0.75),
            (186.01, 0.9),
            (1057.6, 0.99),
        ] {
            expect_share(&ns2, ms, share);
        }
        assert!((ns2[0] - 1.0178).abs() < 0.2);
        // Weigle 2003, section II.A: median 54, mean 74, 90th percentile 117 ms, 1 ms to 3.5 s.
        let weigle = drawn_ms(&Rtt::Packmime {
            table: PackmimeRtt::Weigle2003,
            extra: Time::from_millis(14),
        });
        expect_share(&weigle, 14.0 + 54.0, 0.5);
        expect_share(&weigle, 14.0 + 117.0, 0.9);
        let mean = weigle.iter().sum::<f64>() / weigle.len() as f64;
        assert!((mean - 88.0).abs() < 1.5, "{mean}");
        assert!(weigle[0] >= 15.0 && weigle[weigle.len() - 1] <= 3514.0);
    }

    #[test]
    fn even_round_trips_are_spread_over_all() {
        let ms = Time::from_millis;
        let rtt = Rtt::Even {
            min: ms(10),
            max: ms(200),
        };
        let mut stream = RandomStream::new(1, "rtt", 0);
        let mut sample = |rank| rtt.sample(ranked(rank), &mut stream);
        let of = |count| move |index| Rank::Of { index, count };
        let found = [0, 1, 18, 19].map(of(20)).map(&mut sample);
        assert_eq!(found, [ms(10), ms(20), ms(190), ms(200)]);
        assert_eq!(sample(of(1)(0)), ms(10));
        assert_eq!(sample(of(u32::MAX)(u32::MAX - 1)), ms(200));
        // However many have arrived, no gap is much wider than an even one.
        for arrived in [2, 10, 100, 1000] {
            let mut times: Vec<Time> = (0..arrived).map(Rank::Arrival).map(&mut sample).collect();
            times.push(ms(200));
            times.sort();
            assert_eq!(times[0], ms(10));
            let widest = times.windows(2).map(|two| two[1] - two[0]).max().unwrap();
            let even = 0.190 / f64::from(arrived);
            assert!(widest.as_secs_f64() < 2.7 * even, "{arrived}: {widest}");
        }
        assert_eq!(rtt.extremes(), (ms(10), ms(200)));
        assert!((rtt.mean().as_secs_f64() - 0.105).abs() < 0.001);
    }

    #[test]
    fn an_empirical_distribution_is_its_table() {
        let ms = Time::from_millis;
        let rtt = Rtt::Empirical {
            file: None,
            cdf: vec![(ms(10), 0.2), (ms(40), 0.6), (ms(40), 0.8), (ms(90), 1.0)],
        };
        let drawn = drawn_ms(&rtt);
        // A fifth is exactly 10 ms, another exactly 40 ms.
        expect_share(&drawn, 10.01, 0.2);
        expect_share(&drawn, 20.0, 0.4);
        expect_share(&drawn, 39.99, 0.6);
        expect_share(&drawn, 40.01, 0.8);
        expect_share(&drawn, 60.0, 0.9);
        assert_eq!(rtt.extremes(), (ms(10), ms(90)));
    }
}
