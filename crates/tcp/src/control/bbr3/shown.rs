//! What traces show of BBR, version 3.

use super::Bbr3;
use crate::control::congestion_control::ControlState;

/// A bound, if there is one.
fn finite(bound: f64) -> Option<f64> {
    bound.is_finite().then_some(bound)
}

impl Bbr3 {
    pub(super) fn shown(&self) -> ControlState {
        let bounds = &self.bounds;
        let extra = match self.branch {
            true => self.aggregation.most(),
            false => self.extra.get().unwrap_or(0.0),
        };
        ControlState {
            phase: self.state.name(),
            max_bw: self.max_bw.get(),
            bw: self.max_bw.get().map(|_| self.bw()),
            min_rtt: self.min_rtt,
            pacing_rate: None,
            inflight_longterm: finite(bounds.inflight_longterm),
            inflight_shortterm: finite(bounds.inflight_shortterm),
            bw_shortterm: finite(bounds.bw_shortterm),
            extra_acked: Some(extra),
            full_bw_reached: Some(self.full_reached),
            round: Some(self.round_count),
            cycle: Some(self.cycle_count),
        }
    }
}
