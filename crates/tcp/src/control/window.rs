//! The congestion window, and the ways of opening it that congestion controls share.

use std::cell::Cell;

use super::congestion_control::Ack;
use crate::profile::{AtSsthresh, CongestionAvoidance, CwndArithmetic, Profile, SlowStart};

/// What congestion controls move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// The congestion window in bytes.
    pub(crate) cwnd: f64,
    /// The slow-start threshold in bytes.
    pub(crate) ssthresh: f64,
}

impl Window {
    /// Whether the window is to grow exponentially.
    #[inline]
    pub(crate) fn in_slow_start(&self, profile: &Profile) -> bool {
        self.cwnd < self.ssthresh
            || (profile.at_ssthresh == AtSsthresh::SlowStart && self.cwnd == self.ssthresh)
    }

    /// Slow start: a segment per ACK, or what was acknowledged up to a limit (RFC 3465).
    #[inline]
    pub(crate) fn slow_start(&mut self, acked: u64, profile: &Profile) {
        let mss = profile.mss.0;
        let opened = match profile.slow_start {
            SlowStart::PerAck => mss,
            SlowStart::ByteCounting { limit } => acked.min(mss * u64::from(limit)),
        };
        self.cwnd += opened as f64;
    }

    /// Reno's growth: slow start, then `increase` segments per round trip.
    #[inline]
    pub(crate) fn grow_as_reno(&mut self, increase: f64, ack: &Ack<'_>) {
        let profile = ack.profile;
        if let Some(counted) = ack.counted {
            self.grow_whole(increase, counted, ack);
            return;
        }
        if self.in_slow_start(profile) {
            self.slow_start(ack.acked, profile);
            return;
        }
        let acks = match profile.congestion_avoidance {
            CongestionAvoidance::PerAck => 1.0,
            CongestionAvoidance::ByteCounting => ack.acked as f64 / profile.mss.0 as f64,
        };
        self.avoid(acks * increase, profile);
    }

    /// Reno's growth in whole segments.
    fn grow_whole(&mut self, increase: f64, counted: &Cell<u32>, ack: &Ack<'_>) {
        let left = match ack.profile.congestion_avoidance {
            _ if self.in_slow_start(ack.profile) => self.slow_start_whole(ack),
            CongestionAvoidance::PerAck => 1,
            CongestionAvoidance::ByteCounting => ack.acked / ack.profile.mss.0,
        };
        let per_segment = (self.segments(ack.profile) as f64 / increase) as u64;
        self.avoid_whole(per_segment, left, counted, ack.profile);
    }

    /// The window in whole segments.
    pub(crate) fn segments(&self, profile: &Profile) -> u64 {
        (self.cwnd as i64 as u64) / profile.mss.0
    }

    /// Slow start up to ssthresh: the acknowledged segments that are left for congestion avoidance.
    pub(crate) fn slow_start_whole(&mut self, ack: &Ack<'_>) -> u64 {
        let mss = ack.profile.mss.0;
        let acked = match ack.profile.slow_start {
            SlowStart::PerAck => 1,
            SlowStart::ByteCounting { limit } => (ack.acked / mss).min(limit.into()),
        };
        let room = ((self.ssthresh - self.cwnd) as i64 as u64).div_ceil(mss);
        let opened = acked.min(room.max(1));
        self.cwnd += (opened * mss) as f64;
        acked - opened
    }

    /// Congestion avoidance: a segment more for each `per_segment` acknowledged. `counted` has those on the
    /// way to the next one; where they were counted towards a larger number they make one segment.
    pub(crate) fn avoid_whole(
        &mut self,
        per_segment: u64,
        acked: u64,
        counted: &Cell<u32>,
        profile: &Profile,
    ) {
        if acked == 0 {
            return;
        }
        let per_segment = per_segment.max(1);
        let mut count = u64::from(counted.get());
        let mut more = 0;
        if count >= per_segment {
            (count, more) = (0, 1);
        }
        count += acked;
        more += count / per_segment;
        self.cwnd += (more * profile.mss.0) as f64;
        counted.set((count % per_segment) as u32);
    }

    /// Congestion avoidance: `increase` segments per round trip, spread over its ACKs.
    #[inline]
    pub(crate) fn avoid(&mut self, increase: f64, profile: &Profile) {
        let mss = profile.mss.0 as f64;
        let step = increase * mss * mss / self.cwnd;
        self.cwnd += match profile.cwnd_arithmetic {
            CwndArithmetic::Integer => ((step as i64) as f64).max(1.0),
            CwndArithmetic::Real | CwndArithmetic::WholeSegments => step,
        };
    }
}
