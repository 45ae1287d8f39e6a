//! LEDBAT++. P. Balasubramanian, O. Ertugay, D. Havey, M. Bagnulo, "LEDBAT++: Congestion Control for
//! Background Traffic", draft-irtf-iccrg-ledbat-plus-plus. The queueing delay is the round trip beyond
//! the smallest one; below a target the window grows more slowly than Reno's, above it shrinks by a
//! share, and now and then the sender all but stops so that the queue empties and the smallest round
//! trip shows. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::Time;

use super::congestion_control::{
    Ack, Congestion, CongestionControl, ControlMetrics, ControlParameters, Decrease, Sample,
};
use super::window::Window;
use crate::filter::Smallest;
use crate::profile::Profile;
use crate::recovery::RecoveryState;

/// Parameters of LEDBAT++.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Target queueing delay. A larger target takes more of a shared link.
    #[param(default = "60 ms", above = Time::ZERO)]
    pub target: Time,
    /// Above `target` the window shrinks per round trip by this factor times (delay - `target`) /
    /// `target`, at most by half.
    #[param(default = 1.0, above = 0.0)]
    pub decrease: f64,
    /// Slow start ends when the queueing delay exceeds this share of `target`.
    #[param(default = 0.75, above = 0.0)]
    pub slow_start_delay: f64,
    /// Time between two slowdowns, as a multiple of the duration of the last one. 0 disables
    /// slowdowns.
    #[param(default = 9.0, least = 0.0)]
    pub slowdown_gap: f64,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "LEDBAT++",
        paper: "P. Balasubramanian et al., LEDBAT++: Congestion Control for Background Traffic, \
                draft-irtf-iccrg-ledbat-plus-plus",
        purpose: "Background traffic that fills an empty link with a small delay and yields to \
                  other flows. Needs `recovery = \"rack-tlp\"`.",
        departures: &[
            "A loss halves the window once per recovery, as in Reno.",
            "Growth is spread over the ACKs of a round trip. A decrease happens once, at the first \
             ACK.",
            "The draft's initial window of two segments is `initial_window` of the stack.",
        ],
        memory: "two minimum round-trip times and the times of the slowdown",
    };
}

impl ControlParameters for Params {
    type Control = LedbatPlusPlus;

    const NEEDS_SAMPLES: bool = true;
}

/// The smallest round trip of so many minutes is the base.
const BASE_MINUTES: u64 = 10;
const MINUTE: Time = Time::from_secs(60);
/// The round trip of now is the smallest of so many samples (RFC 6817, section 3.4.2).
const CURRENT_SAMPLES: u64 = 4;
/// Reno's growth is divided by no more than this.
const MOST_DIVISOR: f64 = 16.0;
/// In a slowdown the window has so many segments, for so many round trips.
const SLOWDOWN_SEGMENTS: f64 = 2.0;
const SLOWDOWN_ROUND_TRIPS: u64 = 2;
/// Slow start is not left below this window, in segments.
const LEAST_EXIT_SEGMENTS: f64 = 10.0;

/// Where the slowdowns stand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Slowdown {
    /// The first slow start has not ended.
    #[default]
    NotYet,
    /// The next one begins then.
    Due(Time),
    /// The window stays at two segments until then.
    Frozen { since: Time, until: Time },
    /// Slow start up to the window of before.
    RampingUp { since: Time },
}

/// The state of LEDBAT++.
#[derive(Clone, Debug, Default)]
pub(crate) struct LedbatPlusPlus {
    base: Smallest<Time>,
    current: Smallest<Time>,
    samples: u64,
    srtt: Time,
    slowdown: Slowdown,
    /// The window shrinks no further until more than this is acknowledged.
    shrunk_until: u64,
}

impl LedbatPlusPlus {
    fn queueing_delay(&self) -> Option<Time> {
        Some(self.current.get()?.saturating_sub(self.base.get()?))
    }

    /// Section 4.2: growth in shares of Reno's, so that short round trips do not outgrow it.
    fn gain(&self, params: &Params) -> f64 {
        let Some(base) = self.base.get().filter(|base| *base > Time::ZERO) else {
            return 1.0 / MOST_DIVISOR;
        };
        let ratio = 2.0 * params.target.as_secs_f64() / base.as_secs_f64();
        1.0 / ratio.ceil().min(MOST_DIVISOR)
    }

    /// Section 4.3: what a window of `segments` gains in a round trip.
    fn change(&self, params: &Params, segments: f64) -> f64 {
        let gain = self.gain(params);
        let target = params.target.as_secs_f64();
        let delay = self.queueing_delay().unwrap_or(Time::ZERO).as_secs_f64();
        if delay <= target {
            return gain;
        }
        let less = params.decrease * segments * (delay / target - 1.0);
        (gain - less).max(-segments / 2.0)
    }

    /// Section 4.5: begins a slowdown, ends its stillness, and its slow start.
    fn keep_time(&mut self, params: &Params, window: &mut Window, now: Time, mss: f64) {
        match self.slowdown {
            Slowdown::Due(at) if now >= at && params.slowdown_gap > 0.0 => {
                window.ssthresh = window.cwnd;
                window.cwnd = SLOWDOWN_SEGMENTS * mss;
                self.slowdown = Slowdown::Frozen {
                    since: now,
                    until: now + self.srtt * SLOWDOWN_ROUND_TRIPS,
                };
            }
            Slowdown::Frozen { since, until } if now >= until => {
                self.slowdown = Slowdown::RampingUp { since };
            }
            Slowdown::RampingUp { since } if window.cwnd >= window.ssthresh => {
                let length = now.saturating_sub(since).as_secs_f64();
                let gap = Time::from_secs_f64(params.slowdown_gap * length);
                self.slowdown = Slowdown::Due(now + gap);
            }
            _ => {}
        }
    }
}

impl CongestionControl for LedbatPlusPlus {
    type Params = Params;

    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        if matches!(self.slowdown, Slowdown::Frozen { .. }) {
            return;
        }
        let mss = ack.profile.mss.0 as f64;
        let acked = ack.acked as f64;
        if window.in_slow_start(ack.profile) {
            let long = params.target.as_secs_f64() * params.slow_start_delay;
            let delay = self.queueing_delay().unwrap_or(Time::ZERO);
            let is_first = self.slowdown == Slowdown::NotYet;
            if is_first && window.cwnd >= LEAST_EXIT_SEGMENTS * mss && delay.as_secs_f64() > long {
                window.ssthresh = window.cwnd;
            } else {
                window.cwnd += self.gain(params) * acked;
            }
        } else if self
            .queueing_delay()
            .is_none_or(|delay| delay <= params.target)
        {
            window.cwnd += self.gain(params) * acked * mss / window.cwnd;
        } else if ack.una > self.shrunk_until {
            // Once per round trip: what is in the queue was sent earlier.
            let more = self.change(params, window.cwnd / mss) * mss;
            window.cwnd = (window.cwnd + more).max(SLOWDOWN_SEGMENTS * mss);
            window.ssthresh = window.cwnd; // No slow start leads back.
            self.shrunk_until = ack.max;
        }
    }

    fn on_sample(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        if let Some(rtt) = sample.rtt {
            let minute = sample.now.as_nanos() / MINUTE.as_nanos();
            self.base.add(minute, rtt, BASE_MINUTES);
            self.current.add(self.samples, rtt, CURRENT_SAMPLES);
            self.samples += 1;
        }
        self.srtt = sample.srtt.unwrap_or(Time::ZERO);
        if sample.state != RecoveryState::Open {
            return;
        }
        if self.slowdown == Slowdown::NotYet && !window.in_slow_start(sample.profile) {
            // The initial slowdown: two round trips behind the end of slow start.
            self.slowdown = Slowdown::Due(sample.now + self.srtt * SLOWDOWN_ROUND_TRIPS);
        }
        self.keep_time(params, window, sample.now, sample.profile.mss.0 as f64);
    }

    /// Slowdowns begin and end with time.
    fn samples_when_idle(&self, _: &Params, _: &Window, _: &Profile, _: Time) -> bool {
        true
    }

    fn on_congestion(&mut self, _: &Params, _: &Window, _: &Congestion<'_>) -> Decrease {
        // What follows is no ramp of a slowdown any more: the next one has its gap from here.
        if let Slowdown::Frozen { since, .. } = self.slowdown {
            self.slowdown = Slowdown::RampingUp { since };
        }
        Decrease::HALF
    }

    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: self.queueing_delay(),
            segments: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::{Feed, segments};

    const MS: fn(u64) -> Time = Time::from_millis;

    fn with_delays(base: u64, current: u64) -> LedbatPlusPlus {
        let mut ledbat = LedbatPlusPlus::default();
        ledbat.base.add(0, MS(base), BASE_MINUTES);
        ledbat.current.add(0, MS(current), CURRENT_SAMPLES);
        ledbat
    }

    #[test]
    fn the_gain_is_that_of_section_4_2() {
        let params = Params::default();
        // 2 x 60 ms over 5, 10, 30, 50, 120 and 200 ms: 24, 12, 4, 2.4, 1, 0.6.
        for (base, divisor) in [
            (5, 16.0),
            (10, 12.0),
            (30, 4.0),
            (50, 3.0),
            (120, 1.0),
            (200, 1.0),
        ] {
            let gain = with_delays(base, base).gain(&params);
            assert!((gain * divisor - 1.0).abs() < 1e-12, "{base} ms: {gain}");
        }
    }

    #[test]
    fn a_round_trip_changes_the_window_as_in_section_4_3() {
        let params = Params::default();
        // 120 ms of base: a gain of 1. At the target growth; beyond it the share; half at most.
        for (queue, change) in [
            (30, 1.0),
            (60, 1.0),
            (66, 1.0 - 2.0),
            (90, 1.0 - 10.0),
            (240, -10.0),
        ] {
            let found = with_delays(120, 120 + queue).change(&params, 20.0);
            assert!((found - change).abs() < 1e-9, "{queue} ms: {found}");
        }
    }

    fn ack(feed: &Feed, count: u64) -> Ack<'_> {
        Ack {
            now: feed.now,
            profile: &feed.profile,
            acked: count * Feed::MSS,
            una: feed.una,
            max: feed.max,
            counted: None,
        }
    }

    /// An ACK of a segment after a round trip of so many milliseconds.
    fn hear(ledbat: &mut LedbatPlusPlus, window: &mut Window, feed: &mut Feed, rtt: u64) {
        let params = Params::default();
        feed.rtt = Some(MS(rtt));
        ledbat.on_sample(&params, window, &feed.acks(1, 0));
        let ack = ack(feed, 1);
        ledbat.on_ack(&params, window, &ack);
    }

    #[test]
    fn slow_start_grows_by_the_gain_and_ends_at_three_quarters_of_the_target() {
        let mut feed = Feed::default();
        let (mut ledbat, mut window) = (LedbatPlusPlus::default(), segments(20.0));
        window.ssthresh = 1e9;
        hear(&mut ledbat, &mut window, &mut feed, 40); // a gain of 1/3
        assert!((window.cwnd - 20_333.333).abs() < 0.01, "{}", window.cwnd);
        for _ in 0..4 {
            hear(&mut ledbat, &mut window, &mut feed, 85); // 45 ms: not beyond
        }
        assert!(window.ssthresh > 1e8);
        for _ in 0..4 {
            hear(&mut ledbat, &mut window, &mut feed, 86);
        }
        assert!(window.ssthresh < 1e8);
    }

    #[test]
    fn slowdowns_last_two_round_trips_and_a_slow_start_and_come_after_nine_times_that() {
        let mut feed = Feed::default();
        let (mut ledbat, mut window) = (LedbatPlusPlus::default(), segments(8.0));
        // Slow start has ended at 0: two round trips of 120 ms later the first one begins.
        let mut log = Vec::new();
        let mut was = Slowdown::NotYet;
        for step in 0..600_u64 {
            feed.now = MS(10 * step);
            hear(&mut ledbat, &mut window, &mut feed, 120);
            if std::mem::discriminant(&was) != std::mem::discriminant(&ledbat.slowdown) {
                log.push((10 * step, window.cwnd / Feed::MSS as f64));
                was = ledbat.slowdown;
            }
        }
        // Due; frozen at two segments; ramping up from there, a segment per ACK; done.
        let times: Vec<u64> = log.iter().map(|(at, _)| *at).collect();
        let first: Vec<u64> = times[..4].to_vec();
        assert_eq!(first[..3], [0, 240, 480], "{log:?}");
        assert!((log[1].1 - 2.0).abs() < 1e-9, "{log:?}");
        let length = first[3] - first[1];
        assert!((300..340).contains(&length), "{log:?}");
        assert_eq!(times[4], first[3] + 9 * length, "{log:?}");
    }
}
