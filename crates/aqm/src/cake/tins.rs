//! Tins: classes of traffic by code point, and what follows from the rate of each.

use aqmlab_declare::JsonSchema;
use aqmlab_net::Time;
use serde::{Deserialize, Serialize};

/// Traffic classes (tins). The DSCP of a packet selects its tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tins {
    /// One tin for all traffic.
    Besteffort,
    /// Three tins: best effort, bulk and voice.
    #[default]
    Diffserv3,
    /// Four tins: best effort, bulk, video and voice.
    Diffserv4,
    /// Eight tins, as in Linux.
    Diffserv8,
    /// Eight tins, by the three highest bits of the DSCP.
    Precedence,
}

/// Most tins that there are.
pub(super) const MOST: usize = 8;

/// Code points.
const POINTS: usize = 64;

impl Tins {
    /// The tin of each code point.
    pub(super) fn map(self) -> [u8; POINTS] {
        let mut map = [0; POINTS];
        let groups: &[(u8, &[u8])] = match self {
            Self::Besteffort => &[],
            Self::Diffserv3 => &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])],
            Self::Diffserv4 => &[
                (1, &[1, 8]),
                (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]),
                (3, &[32, 40, 44, 46, 48, 56]),
            ],
            Self::Diffserv8 => {
                map = [2; POINTS];
                &[
                    (0, &[1]),
                    (1, &[2, 8, 10, 12, 14]),
                    (3, &[24, 26, 28, 30, 34, 36, 38]),
                    (4, &[4, 18, 20, 22]),
                    (5, &[16]),
                    (6, &[32, 40, 44, 46]),
                    (7, &[48, 56]),
                ]
            }
            Self::Precedence => {
                for (point, tin) in map.iter_mut().enumerate() {
                    *tin = (point / 8) as u8;
                }
                &[]
            }
        };
        for (tin, points) in groups {
            points
                .iter()
                .for_each(|&point| map[usize::from(point)] = *tin);
        }
        map
    }

    /// The rate in bytes per second and the weight of each tin of a link with this rate; 0 is no
    /// limit.
    pub(super) fn shares(self, rate: u64) -> Vec<(u64, u32)> {
        let parts: &[(u64, u32)] = match self {
            Self::Besteffort => &[(1, 65_535)],
            Self::Diffserv3 => &[(1, 1024), (16, 64), (4, 256)],
            Self::Diffserv4 => &[(1, 1024), (16, 64), (2, 512), (4, 256)],
            Self::Diffserv8 | Self::Precedence => {
                let eighth_less =
                    |&(rate, weight): &(u64, u32)| Some((rate * 7 / 8, weight * 7 / 8));
                return std::iter::successors(Some((rate, 256)), eighth_less)
                    .take(MOST)
                    .collect();
            }
        };
        let share = |&(part, weight): &(u64, u32)| (rate / part, weight);
        parts.iter().map(share).collect()
    }
}

/// What follows from the rate of a tin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// Nanoseconds that a byte takes; 0 without a limit.
    pub(super) ns_per_byte: f64,
    /// Bytes that a turn adds to what a flow may send.
    pub(super) flow_quantum: u32,
    /// The weight of the tin, where nothing is shaped.
    pub(super) weight: u32,
    pub(super) target: Time,
    pub(super) interval: Time,
    pub(super) mtu_time: Time,
}

impl Shape {
    /// That of a tin with `rate` bytes per second, where delays are to be `target` within `rtt`.
    pub(super) fn new((rate, weight): (u64, u32), mtu: u32, target: Time, rtt: Time) -> Self {
        const LEAST_QUANTUM: u64 = 300;
        if rate == 0 {
            return Self {
                ns_per_byte: 0.0,
                flow_quantum: mtu,
                weight,
                target,
                interval: rtt,
                mtu_time: Time::ZERO,
            };
        }
        let ns_per_byte = 1e9 / rate as f64;
        let mtu_ns = f64::from(mtu) * ns_per_byte;
        let raised = Time::from_nanos((1.5 * mtu_ns) as u64).max(target);
        let most = u64::from(mtu).max(LEAST_QUANTUM);
        Self {
            ns_per_byte,
            flow_quantum: (rate >> 12).clamp(LEAST_QUANTUM, most) as u32,
            weight,
            target: raised,
            interval: (rtt + raised).saturating_sub(target).max(raised * 2),
            mtu_time: Time::from_nanos(mtu_ns as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worked::rows;

    fn mode(name: &str) -> Tins {
        toml::Value::from(name).try_into().unwrap()
    }

    #[test]
    fn ck03_what_follows_from_the_rate_of_a_tin_follows_the_table() {
        for row in rows(include_str!("../../tests/data/cake_tins.csv")) {
            let rate = (row.number("rate_mbit") * 125_000.0) as u64;
            let shares = mode(row.text("mode")).shares(rate);
            let share = shares[row.number("tin") as usize];
            let what = format!("{} {} {}", row.text("mode"), rate, row.text("tin"));
            assert_eq!(
                share.0 as f64,
                row.number("threshold_bytes_per_s"),
                "{what}"
            );
            assert_eq!(f64::from(share.1), row.number("tin_quantum"), "{what}");
            let shape = Shape::new(share, 1514, Time::from_millis(5), Time::from_millis(100));
            assert_eq!(
                f64::from(shape.flow_quantum),
                row.number("flow_quantum_bytes"),
                "{what}"
            );
            for (found, column) in [
                (shape.target, "target_ms"),
                (shape.interval, "interval_ms"),
                (shape.mtu_time, "mtu_time_ms"),
            ] {
                let expected = row.number(column) / 1e3;
                let difference = (found.as_secs_f64() - expected).abs();
                assert!(
                    difference <= 1e-6 * expected + 2e-9,
                    "{what} {column}: {found}"
                );
            }
        }
    }

    /// The table of the sheet, from the tins' side: every other code point is in the tin named last.
    #[test]
    fn ck04_code_points_go_to_their_tins() {
        type Mode<'a> = (&'a str, &'a [(u8, &'a [u8])], u8);
        let modes: [Mode<'_>; 3] = [
            ("diffserv3", &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])], 0),
            (
                "diffserv4",
                &[
                    (1, &[1, 8]),
                    (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]),
                    (3, &[32, 40, 44, 46, 48, 56]),
                ],
                0,
            ),
            (
                "diffserv8",
                &[
                    (0, &[1]),
                    (1, &[2, 8, 10, 12, 14]),
                    (3, &[24, 26, 28, 30, 34, 36, 38]),
                    (4, &[4, 18, 20, 22]),
                    (5, &[16]),
                    (6, &[32, 40, 44, 46]),
                    (7, &[48, 56]),
                ],
                2,
            ),
        ];
        for (name, groups, rest) in modes {
            let map = mode(name).map();
            for point in 0..64 {
                let group = groups.iter().find(|(_, points)| points.contains(&point));
                let expected = group.map_or(rest, |(tin, _)| *tin);
                assert_eq!(map[usize::from(point)], expected, "{name} {point}");
            }
        }
        assert_eq!(mode("besteffort").map(), [0; 64]);
        let map = mode("precedence").map();
        assert!((0..64).all(|point| map[point] == point as u8 / 8));
    }
}
