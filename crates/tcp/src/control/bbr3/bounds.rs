//! The long-term bound of what is in flight: what losses in a probe take from it, and what probes without
//! them add (sections 5.3.3.8 and 5.5.10.2 of the draft).

use super::numbers::Numbers;
use super::state::{AckPhase, State, inflight_at_loss};
use super::{BW_CYCLES, Bbr3};
use crate::control::bbr::round_down;
use crate::control::congestion_control::Sample;
use crate::control::window::Window;
use crate::sender::rack::segment_log::Rate;

impl Bbr3 {
    pub(super) fn is_too_high(lost: f64, in_flight: f64, numbers: &Numbers) -> bool {
        lost > in_flight * numbers.loss_threshold
    }

    /// Segments found lost: the probe may have gone too high.
    pub(super) fn take_losses(&mut self, numbers: &Numbers, window: &Window, sample: &Sample<'_>) {
        if sample.losses.is_empty() {
            return;
        }
        if !self.loss_in_round {
            self.loss_round_delivered = sample.delivered;
        }
        self.loss_in_round = true;
        self.loss_events += 1;
        let mss = sample.profile.mss.0 as f64;
        for loss in sample.losses {
            if !self.probe_samples {
                return;
            }
            if Self::is_too_high(loss.lost as f64, loss.in_flight as f64, numbers) {
                let unit = self.unit(mss);
                let in_flight = inflight_at_loss(loss, numbers.loss_threshold, unit);
                self.on_too_high(numbers, window, in_flight, loss.app_limited, sample, mss);
            }
        }
    }

    pub(super) fn on_too_high(
        &mut self,
        numbers: &Numbers,
        window: &Window,
        in_flight: f64,
        app_limited: bool,
        sample: &Sample<'_>,
        mss: f64,
    ) {
        self.prev_probe_too_high = true;
        self.probe_samples = false;
        if !app_limited {
            let target = numbers.beta * self.target_inflight(window, mss);
            let target = round_down(target, self.unit(mss));
            self.bounds.inflight_longterm = in_flight.max(target);
        }
        if self.state == State::Up {
            self.start_down(sample.now, sample.delivered);
        }
    }

    /// Section 5.3.3.8: raises the bound while a probe finds no excess. Whether the next probe begins at
    /// once, because one that a bound has ended was safe.
    pub(super) fn adapt_upper_bounds(
        &mut self,
        numbers: &Numbers,
        window: &Window,
        rate: &Rate,
        sample: &Sample<'_>,
    ) -> bool {
        let mss = sample.profile.mss.0 as f64;
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.probe_samples = false;
            self.ack_phase = AckPhase::Init;
            if matches!(self.state, State::Down | State::Cruise) {
                if !rate.app_limited {
                    self.cycle_count += 1;
                    self.max_bw.forget(self.cycle_count, BW_CYCLES);
                }
                if self.stopped_early && !self.prev_probe_too_high {
                    self.start_refill(sample);
                    return true;
                }
            }
        }
        let in_flight = rate.in_flight as f64;
        if Self::is_too_high(rate.lost as f64, in_flight, numbers) {
            if self.probe_samples {
                self.on_too_high(numbers, window, in_flight, rate.app_limited, sample, mss);
            }
            return false;
        }
        if self.bounds.inflight_longterm.is_infinite() {
            return false;
        }
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(in_flight);
        if self.state == State::Up {
            self.probe_upward(window, sample, mss);
        }
        false
    }

    /// The bound grows by 1, 2, 4, ... segments a round while it limits.
    pub(super) fn probe_upward(&mut self, window: &Window, sample: &Sample<'_>, mss: f64) {
        let limits = sample.window_limited && window.cwnd >= self.bounds.inflight_longterm;
        if limits {
            self.probe_up_acks += sample.acked as f64 / mss;
            if self.probe_up_acks >= self.probe_up_count {
                let more = (self.probe_up_acks / self.probe_up_count).floor();
                self.probe_up_acks -= more * self.probe_up_count;
                self.bounds.inflight_longterm += more * mss;
            }
        }
        if self.round_start && (limits || !self.branch) {
            self.raise_slope(window, mss);
        }
    }

    pub(super) fn raise_slope(&mut self, window: &Window, mss: f64) {
        let growth = f64::from(1_u32 << self.probe_up_rounds.min(30));
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_count = (window.cwnd / mss / growth).floor().max(1.0);
    }
}
