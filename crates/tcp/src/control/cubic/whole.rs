//! CUBIC where the window is a whole number of segments, as Linux counts it: how many segments are to be
//! acknowledged for one more. Its clock are ticks of the kernel, and times are 1024ths of a second.

use std::cell::Cell;

use aqmlab_net::Time;

use super::{Cubic, Params, RenoEstimate, TargetRtt};
use crate::control::congestion_control::{Ack, Sample};
use crate::control::window::Window;

/// A tick of a kernel with 250 of them a second, the most frequent choice.
const TICK: Time = Time::from_millis(4);
/// For so many ticks the curve is not looked at again while the window stays: a 32nd of a second.
const LOOKING: u64 = 7;
/// For so many ticks after an epoch begins no round trip is measured: a second.
const SETTLING: u64 = 250;
/// Units of time of the curve in a second.
const UNITS: u64 = 1024;
/// The fewest segments acknowledged for one by which the window grows (Linux).
const LEAST_PER_SEGMENT: u64 = 2;

/// HyStart: bytes of four of the largest bursts, and how many seconds they count at most.
const BURSTS: f64 = 4.0 * 65_536.0;
const MOST_BURST_TIME: f64 = 0.001;

/// What is counted where the window is a whole number of segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) is_whole: bool,
    /// Segments to be acknowledged for one more.
    pub(super) per_segment: u64,
    /// Segments acknowledged since Reno's window has grown last.
    pub(super) acked: u64,
    /// The window at the last look at the curve, and the tick of that.
    pub(super) cwnd: u64,
    pub(super) at: u64,
    /// When data was sent last.
    pub(super) sent_at: Time,
    /// Nothing is in flight.
    pub(super) idle: bool,
}

fn ticks(time: Time) -> u64 {
    time.as_nanos() / TICK.as_nanos()
}

/// Growth in whole segments, as Linux counts it.
impl Cubic {
    /// Data leaves. An epoch does not count the time since data was sent last if nothing is in flight.
    pub(super) fn note_sent(&mut self, now: Time) {
        if std::mem::take(&mut self.count.idle)
            && let Some(epoch) = self.epoch
        {
            self.epoch = Some(now.min(epoch + (now - self.count.sent_at)));
        }
        self.count.sent_at = now;
    }

    /// An ACK in any state: the smallest round trip, and whether slow start ends.
    pub(super) fn measure_whole(
        &mut self,
        params: &Params,
        window: &mut Window,
        sample: &Sample<'_>,
    ) {
        self.count.is_whole = true;
        self.count.idle = sample.in_flight == 0;
        let Some(rtt) = sample.rtt else {
            return;
        };
        let is_settling = |epoch| ticks(sample.now) - ticks(epoch) < SETTLING;
        if self.epoch.is_some_and(is_settling) {
            return;
        }
        let rtt = rtt.as_secs_f64();
        self.min_rtt = self.min_rtt.min(rtt);
        if params.hystart && !self.found && window.cwnd < window.ssthresh {
            let (round, profile) = ((sample.una, sample.max), sample.profile);
            if self.ends_slow_start(window, round, sample.now, profile, Some(rtt)) {
                window.ssthresh = window.cwnd;
            }
        }
    }

    /// How long four of the largest bursts take at the pacing rate of slow start, in seconds: a millisecond at
    /// most.
    pub(super) fn burst_time(&self, window: &Window) -> f64 {
        let per_round = 2.0 * window.cwnd;
        self.smoothed
            .map_or(0.0, |srtt| (BURSTS * srtt / per_round).min(MOST_BURST_TIME))
    }

    /// Slow start, and what it leaves of an ACK for the curve.
    pub(super) fn grow_whole(
        &mut self,
        params: &Params,
        window: &mut Window,
        ack: &Ack<'_>,
        counted: &Cell<u32>,
    ) {
        let mut acked = ack.acked / ack.profile.mss.0;
        if window.in_slow_start(ack.profile) {
            acked = window.slow_start_whole(ack);
            if acked == 0 {
                return;
            }
        }
        let cwnd = window.segments(ack.profile);
        let per_segment = self.count_avoided(params, cwnd, acked, ack.now);
        window.avoid_whole(per_segment, acked, counted, ack.profile);
    }

    /// Section 4.2 to 4.5: how many segments are to be acknowledged for one more, with `acked` more now. The
    /// curve is looked at where the window has changed, or some time has passed.
    fn count_avoided(&mut self, params: &Params, cwnd: u64, acked: u64, now: Time) -> u64 {
        self.count.acked += acked;
        let tick = ticks(now);
        if self.count.cwnd == cwnd && tick - self.count.at <= LOOKING {
            return self.count.per_segment;
        }
        if self.epoch.is_none() || self.count.at != tick {
            (self.count.cwnd, self.count.at) = (cwnd, tick);
            if self.epoch.is_none() {
                self.begin_epoch(cwnd as f64, params.c, now);
                self.count.acked = acked;
            }
            self.count.per_segment = self.by_curve(params, cwnd, now);
        }
        let share = (1.0 + params.beta) / 3.0 / (1.0 - params.beta);
        let of_reno = match params.reno_estimate {
            RenoEstimate::Rfc9438 if self.w_est >= self.cwnd_prior => cwnd,
            _ => (cwnd * (8.0 * share) as u64) >> 3,
        };
        let of_reno = of_reno.max(1);
        if self.count.acked > of_reno {
            let more = (self.count.acked - 1) / of_reno;
            self.count.acked -= more * of_reno;
            self.w_est += more as f64;
        }
        let behind = self.w_est - cwnd as f64;
        if behind >= 1.0 {
            let by_reno = cwnd / behind as u64;
            self.count.per_segment = self.count.per_segment.min(by_reno);
        }
        self.count.per_segment = self.count.per_segment.max(LEAST_PER_SEGMENT);
        self.count.per_segment
    }

    /// What the cubic function asks for, a round trip from now.
    fn by_curve(&self, params: &Params, cwnd: u64, now: Time) -> u64 {
        let rtt = match (params.rtt, self.smoothed) {
            (TargetRtt::Smoothed, Some(smoothed)) => smoothed,
            _ if self.min_rtt.is_finite() => self.min_rtt,
            _ => 0.0,
        };
        let passed = ticks(now) - ticks(self.epoch.unwrap_or(now));
        let ahead = Time::from_secs_f64(rtt)
            .as_nanos()
            .div_ceil(TICK.as_nanos());
        let units = (passed + ahead) * UNITS * TICK.as_nanos() / Time::from_secs(1).as_nanos();
        let x = units as f64 / UNITS as f64 - self.k;
        // The way to the plateau is rounded down.
        let way = libm::floor(params.c * (x * x * x).abs());
        let target = self.origin + if x < 0.0 { -way } else { way };
        let missing = target - cwnd as f64;
        let per_segment = if missing >= 1.0 {
            cwnd / missing as u64
        } else {
            100 * cwnd
        };
        let most = match self.w_max == 0.0 && params.search_growth > 0.0 {
            true => (1.0 / params.search_growth) as u64,
            false => u64::MAX,
        };
        per_segment.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bursts_take_a_millisecond_at_most() {
        let mut cubic = Cubic {
            smoothed: Some(0.1),
            ..Cubic::default()
        };
        let window = |cwnd| Window {
            cwnd,
            ssthresh: 0.0,
        };
        assert_eq!(cubic.burst_time(&window(1e5)), MOST_BURST_TIME);
        // 20 Gbyte/s at twice the window a round trip: 262,144 bytes take 13.1 us.
        assert!((cubic.burst_time(&window(1e9)) - 13.107_2e-6).abs() < 1e-12);
        cubic.smoothed = None;
        assert_eq!(cubic.burst_time(&window(1e5)), 0.0);
    }

    #[test]
    fn an_epoch_moves_by_the_time_since_data_was_sent_last_and_not_beyond_the_present() {
        let ms = Time::from_millis;
        for (idle, epoch, expected) in [(true, 100, 600), (true, 900, 1000), (false, 100, 100)] {
            let mut cubic = Cubic {
                epoch: Some(ms(epoch)),
                ..Cubic::default()
            };
            (cubic.count.sent_at, cubic.count.idle) = (ms(500), idle);
            cubic.note_sent(ms(1000));
            assert_eq!(cubic.epoch, Some(ms(expected)), "{idle} {epoch}");
            assert!(!cubic.count.idle);
        }
    }
}
