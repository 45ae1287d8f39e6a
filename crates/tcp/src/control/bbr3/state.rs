//! What the state of BBR, version 3, is made of.

use crate::control::bbr::{FULL_GROWTH, FULL_ROUNDS, round_down, round_up};
use crate::rate::Loss;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    pub(super) const PHASES: [&'static str; 7] = [
        "startup",
        "drain",
        "probe-down",
        "cruise",
        "refill",
        "probe-up",
        "probe-rtt",
    ];

    pub(super) const fn name(self) -> &'static str {
        Self::PHASES[self as usize]
    }
}

/// What the ACKs that come in report (draft, section 5.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Bounds of what is in flight and of the bandwidth; infinite: none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: f64,
    pub(super) inflight_shortterm: f64,
    pub(super) inflight_longterm: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
        }
    }
}

/// The detector of a full pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FullPipe {
    pub(super) bw: f64,
    pub(super) count: u32,
    pub(super) now: bool,
}

impl FullPipe {
    /// Section 5.3.1.2.
    pub(super) fn check(&mut self, rate: f64, round_start: bool, app_limited: bool, any_ack: bool) {
        if self.now || app_limited || !(round_start || any_ack) {
            return;
        }
        if rate >= FULL_GROWTH * self.bw {
            (self.bw, self.count) = (rate, 0);
            return;
        }
        if round_start {
            self.count += 1;
            self.now = self.count >= FULL_ROUNDS;
        }
    }
}

/// What was in flight when the loss crossed the threshold (section 5.5.10.2): with `in_flight` bytes
/// out when the segment of `len` bytes was sent, and `lost` since, itself included. In units of `unit`
/// bytes, as the branch counts; 0: exact.
pub(super) fn inflight_at_loss(loss: &Loss, threshold: f64, unit: f64) -> f64 {
    let len = loss.len as f64;
    let before = loss.in_flight as f64 - len;
    let lost_before = loss.lost as f64 - len;
    let budget = round_up(threshold * before, unit);
    let prefix = round_down((budget - lost_before) / (1.0 - threshold), unit);
    before + prefix.max(0.0)
}
