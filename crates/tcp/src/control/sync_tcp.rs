//! Sync-TCP: early congestion detection by one-way delay. M. C. Weigle, K. Jeffay, F. D. Smith,
//! "Delay-based early congestion detection and adaptation in TCP: impact on web performance",
//! Computer Communications 28, 2005, Algorithms 1 and 2. The peer tells the transit time of every
//! segment; what exceeds the smallest one is queueing delay. Its weighted average (1/8), as a share
//! of the largest delay seen, and the trend of nine averages (medians of three threes) decide, from
//! the ninth ACK on and then at every third. Before that, and for losses, it is Reno. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::Time;
use serde::{Deserialize, Serialize};

use super::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlMetrics, ControlParameters, Decrease,
};
use super::window::Window;
use crate::segment::{Stamps, Timestamps};

/// Parameters of Sync-TCP: two readings of the paper.
#[parameters]
#[derive(Copy, Eq)]
pub struct Params {
    /// How often the window can decrease.
    #[param(default)]
    pub decrease: DecreaseRule,
    /// Slow start after the ninth ACK.
    #[param(default)]
    pub slow_start: SlowStartRule,
}

/// How often Sync-TCP decreases the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecreaseRule {
    /// Once per round trip, as for a loss.
    #[default]
    OncePerRtt,
    /// At every result that asks for a decrease, at most every third ACK.
    EveryResult,
}

/// Slow start after the ninth ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartRule {
    /// As in Reno. Only a decrease ends it.
    #[default]
    Keep,
    /// It ends. The reaction table sets the growth.
    Replace,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Sync-TCP",
        paper: "M. C. Weigle, K. Jeffay, F. D. Smith, Delay-based early congestion detection and \
                adaptation in TCP: impact on web performance, Computer Communications 28, 2005",
        purpose: "Reno that reacts to the trend of the one-way queueing delay before the queue is \
                  full. Both ends take part: time stamps report the delay.",
        departures: &[
            "The paper leaves points open; records/congestion-controls.md has the choices.",
            "As in the paper, the minimum transit time never expires. If the receiver's clock is \
             500 us/s too fast, a transfer of a minute starves.",
        ],
        memory: "nine averages, the minimum delay and the maximum delay",
    };
}

impl ControlParameters for Params {
    type Control = SyncTcp;

    const STAMPS: Option<Stamps> = Some(Stamps::Transit);
}

/// Averages that a trend is made of.
const SAMPLES: usize = 9;
/// ACKs between results.
const RENEWAL: usize = 3;

/// Where the queueing delay is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Rising,
    Falling,
    Equal,
}

/// What a result asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reaction {
    /// Grow by this many segments per round trip.
    Segments(f64),
    /// Grow by this share of the window per round trip.
    Share(f64),
    /// Multiply the window at once.
    Decrease(f64),
}

/// The reaction table (Algorithm 2): by trend and quarter of the largest delay.
const fn reaction(trend: Trend, quarter: usize) -> Reaction {
    const RISING: [Reaction; 4] = [
        Reaction::Segments(1.0),
        Reaction::Decrease(0.9),
        Reaction::Decrease(0.75),
        Reaction::Decrease(0.5),
    ];
    const FALLING: [Reaction; 4] = [
        Reaction::Share(0.5),
        Reaction::Share(0.25),
        Reaction::Share(0.1),
        Reaction::Share(0.0),
    ];
    match trend {
        Trend::Rising => RISING[quarter],
        Trend::Falling => FALLING[quarter],
        Trend::Equal => Reaction::Segments(1.0),
    }
}

/// The state of Sync-TCP; delays in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct SyncTcp {
    /// The smallest transit time; none before the first.
    min: Option<i32>,
    /// The largest queueing delay.
    max_queue: i32,
    /// The weighted average of the queueing delay.
    average: f64,
    /// The last averages; the oldest is at `count % SAMPLES`.
    averages: [f64; SAMPLES],
    /// ACKs since the start, a time-out or an idle period.
    count: usize,
    /// The echo of the last sample: a repeated one says nothing new.
    echo: u32,
    /// The result that this ACK brought.
    result: Option<Reaction>,
    /// Growth in segments per round trip.
    alpha: f64,
    /// No further decrease until this is acknowledged.
    hold_until: u64,
}

impl Default for SyncTcp {
    fn default() -> Self {
        Self {
            min: None,
            max_queue: 0,
            average: 0.0,
            averages: [0.0; SAMPLES],
            count: 0,
            echo: 0,
            result: None,
            alpha: 1.0,
            hold_until: 0,
        }
    }
}

impl SyncTcp {
    /// A transit time: minimum, queueing delay, largest, average, in the order of Algorithm 1.
    fn sample(&mut self, transit: i32) {
        let first = self.min.is_none();
        let min = self.min.map_or(transit, |min| {
            // The clocks' difference is any constant, so that the difference may wrap.
            if transit.wrapping_sub(min) < 0 {
                transit
            } else {
                min
            }
        });
        self.min = Some(min);
        let queue = transit.wrapping_sub(min);
        self.max_queue = self.max_queue.max(queue);
        self.average = if first {
            f64::from(queue)
        } else {
            0.875 * self.average + 0.125 * f64::from(queue)
        };
    }

    fn push(&mut self) {
        self.averages[self.count % SAMPLES] = self.average;
        self.count += 1;
        if self.count >= SAMPLES && (self.count - SAMPLES).is_multiple_of(RENEWAL) {
            self.result = Some(reaction(self.trend(), self.quarter()));
        }
    }

    /// First against last median of the three threes, in order of time.
    fn trend(&self) -> Trend {
        let third = |n: usize| {
            let at = |i: usize| self.averages[(self.count + n * 3 + i) % SAMPLES];
            median(at(0), at(1), at(2))
        };
        let (first, last) = (third(0), third(2));
        if first < last {
            Trend::Rising
        } else if first > last {
            Trend::Falling
        } else {
            Trend::Equal
        }
    }

    /// The quarter of the largest queueing delay that the average lies in.
    fn quarter(&self) -> usize {
        if self.max_queue == 0 {
            return 0;
        }
        ((4.0 * self.average / f64::from(self.max_queue)) as usize).min(3)
    }

    fn forget_trend(&mut self) {
        self.count = 0;
        self.alpha = 1.0;
        self.result = None;
    }

    /// Acts on a result; whether the window was decreased.
    fn react(
        &mut self,
        reaction: Reaction,
        params: &Params,
        window: &mut Window,
        ack: &Ack<'_>,
    ) -> bool {
        let mss = ack.profile.mss.0 as f64;
        match reaction {
            Reaction::Segments(segments) => self.alpha = segments,
            Reaction::Share(share) => self.alpha = share * window.cwnd / mss,
            Reaction::Decrease(factor) => {
                self.alpha = 0.0;
                let held =
                    params.decrease == DecreaseRule::OncePerRtt && ack.una <= self.hold_until;
                if !held {
                    window.cwnd = (factor * window.cwnd).max(2.0 * mss);
                    window.ssthresh = window.cwnd;
                    self.hold_until = ack.max;
                    return true;
                }
            }
        }
        false
    }
}

fn median(a: f64, b: f64, c: f64) -> f64 {
    a.min(b).max(a.max(b).min(c))
}

impl CongestionControl for SyncTcp {
    type Params = Params;

    fn on_timestamps(&mut self, stamps: &Timestamps, of_data: bool) {
        self.result = None;
        let Some(transit) = stamps.transit else {
            return;
        };
        let is_new = self.min.is_none() || stamps.echo.wrapping_sub(self.echo) as i32 > 0;
        if !is_new {
            return;
        }
        self.echo = stamps.echo;
        self.sample(transit as i32);
        if of_data {
            self.push();
        }
    }

    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        if let Some(reaction) = self.result.take()
            && self.react(reaction, params, window, ack)
        {
            return;
        }
        let reno = self.count < SAMPLES || params.slow_start == SlowStartRule::Keep;
        if reno && window.in_slow_start(ack.profile) {
            window.slow_start(ack.acked, ack.profile);
        } else {
            let mss = ack.profile.mss.0 as f64;
            window.cwnd += self.alpha * mss * mss / window.cwnd;
        }
    }

    fn on_idle(&mut self) {
        self.forget_trend();
    }

    fn on_congestion(&mut self, _: &Params, _: &Window, congestion: &Congestion<'_>) -> Decrease {
        if congestion.cause == Cause::Timeout {
            self.forget_trend();
        }
        Decrease::HALF
    }

    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: Some(Time::from_secs_f64(self.average * 1e-6)),
            segments: Some(self.alpha),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use aqmlab_net::Bytes;

    use super::*;
    use crate::profile::Profile;

    const MSS: u64 = 1000;

    /// A row of the worked example, by column.
    type Row<'a> = HashMap<&'a str, &'a str>;

    fn rows(variant: &str) -> Vec<Row<'static>> {
        let text = include_str!("../../tests/data/sync_tcp.csv");
        let mut lines = text.lines();
        let names: Vec<_> = lines.next().unwrap().split(',').collect();
        let rows = lines.map(|line| names.iter().copied().zip(line.split(',')).collect());
        rows.filter(|row: &Row<'_>| row["variant"] == variant)
            .collect()
    }

    fn number(row: &Row<'_>, column: &str) -> f64 {
        row[column].parse().unwrap()
    }

    /// Plays a variant of the worked example: 105 ACKs in congestion avoidance.
    fn follow(variant: &str, decrease: DecreaseRule) {
        let profile = Profile {
            mss: Bytes(MSS),
            ..Profile::named("rfc").unwrap()
        };
        let params = Params {
            decrease,
            ..Params::default()
        };
        let mut sync = SyncTcp::default();
        let rows = rows(variant);
        assert_eq!(rows.len(), 105);
        let mut window = Window {
            cwnd: number(&rows[0], "cwnd_before") * MSS as f64,
            ssthresh: 2.0 * MSS as f64,
        };
        let mut una = 1;
        for (row, n) in rows.iter().zip(1..) {
            let close = |found: f64, column: &str| {
                let expected = number(row, column);
                assert!(
                    (found - expected).abs() < 2e-6 * expected.abs().max(1.0),
                    "{variant}, row {n}, {column}: {found} against {expected}"
                );
            };
            close(window.cwnd / MSS as f64, "cwnd_before");
            let max = una + window.cwnd as u64;
            una += MSS;
            let stamps = Timestamps {
                value: 0,
                echo: n,
                transit: Some(row["ott_us"].parse().unwrap()),
            };
            sync.on_timestamps(&stamps, true);
            sync.on_ack(
                &params,
                &mut window,
                &Ack {
                    now: Time::ZERO,
                    profile: &profile,
                    acked: MSS,
                    una,
                    max,
                    counted: None,
                },
            );
            close(f64::from(sync.min.unwrap()), "min_ott_us");
            close(f64::from(sync.max_queue), "max_queue_us");
            close(sync.average, "avg_queue_us");
            close(sync.alpha, "alpha_after");
            close(window.cwnd / MSS as f64, "cwnd_after");
            let regions = ["0-25", "25-50", "50-75", "75-100"];
            assert_eq!(regions[sync.quarter()], row["region"], "{variant}, row {n}");
            let trend = match row["trend"] {
                "increasing" => Trend::Rising,
                "decreasing" => Trend::Falling,
                "equal" => Trend::Equal,
                _ => continue,
            };
            assert_eq!(sync.trend(), trend, "{variant}, row {n}");
        }
    }

    #[test]
    fn the_worked_example_is_followed_with_a_decrease_per_round_trip() {
        follow("once_per_rtt", DecreaseRule::OncePerRtt);
    }

    #[test]
    fn the_worked_example_is_followed_with_a_decrease_per_result() {
        follow("every_result", DecreaseRule::EveryResult);
    }

    #[test]
    fn transit_times_may_be_negative_and_wrap() {
        let mut sync = SyncTcp::default();
        for (n, transit) in [i32::MAX, i32::MIN, i32::MAX - 5].into_iter().enumerate() {
            let stamps = Timestamps {
                value: 0,
                echo: n as u32 + 1,
                transit: Some(transit as u32),
            };
            sync.on_timestamps(&stamps, false);
        }
        assert_eq!((sync.min, sync.max_queue), (Some(i32::MAX - 5), 1));
        // A time stamp that was echoed before brings no sample.
        let before = sync.average;
        sync.on_timestamps(
            &Timestamps {
                value: 0,
                echo: 3,
                transit: Some(90),
            },
            true,
        );
        assert_eq!((sync.average, sync.count), (before, 0));
    }

    #[test]
    fn before_nine_acks_and_with_the_kept_slow_start_it_is_reno() {
        let profile = Profile::named("rfc").unwrap();
        let mss = profile.mss.0;
        let mut sync = SyncTcp::default();
        let mut window = Window {
            cwnd: mss as f64,
            ssthresh: 1e9,
        };
        for n in 1..=20 {
            let stamps = Timestamps {
                value: 0,
                echo: n,
                transit: Some(1000),
            };
            sync.on_timestamps(&stamps, true);
            let una = 1 + u64::from(n) * mss;
            sync.on_ack(
                &Params::default(),
                &mut window,
                &Ack {
                    now: Time::ZERO,
                    profile: &profile,
                    acked: mss,
                    una,
                    max: una,
                    counted: None,
                },
            );
        }
        assert_eq!(window.cwnd, 21.0 * mss as f64);
    }
}
