//! CUBIC where the window is a whole number of segments, as Linux counts it: how many segments are to be
//! acknowledged for one more.

use aqmlab_net::Time;

use super::{Cubic, Params, RenoEstimate, TargetRtt};

/// For so long the curve is not looked at again while the window stays (Linux).
const LOOKING: Time = Time::from_micros(31_250);
/// The fewest segments acknowledged for one by which the window grows (Linux).
const LEAST_PER_SEGMENT: u64 = 2;

/// What is counted where the window is a whole number of segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) is_whole: bool,
    /// Segments to be acknowledged for one more.
    pub(super) per_segment: u64,
    /// Segments acknowledged since Reno's window has grown last.
    pub(super) acked: u64,
    /// The window at the last look at the curve, and when that was.
    pub(super) cwnd: u64,
    pub(super) at: Time,
}

/// Growth in whole segments, as Linux counts it.
impl Cubic {
    /// Section 4.2 to 4.5: how many segments are to be acknowledged for one more, with `acked` more now. The
    /// curve is looked at where the window has changed, or some time has passed.
    pub(super) fn count_avoided(
        &mut self,
        params: &Params,
        cwnd: u64,
        acked: u64,
        now: Time,
    ) -> u64 {
        self.count.acked += acked;
        let looked = now.saturating_sub(self.count.at) <= LOOKING;
        if self.count.cwnd == cwnd && looked {
            return self.count.per_segment;
        }
        if self.epoch.is_none() || self.count.at != now {
            (self.count.cwnd, self.count.at) = (cwnd, now);
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
        let since = now.saturating_sub(self.epoch.unwrap_or(now));
        let x = since.as_secs_f64() + rtt - self.k;
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
