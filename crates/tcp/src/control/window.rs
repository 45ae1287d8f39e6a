//! The congestion window, and the ways of opening it that congestion controls share.

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
