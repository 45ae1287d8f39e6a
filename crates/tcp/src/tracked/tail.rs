//! When the end of a flight is probed, and what the probe's ACK tells ([`super::probe`]).

use aqmlab_net::Time;

use super::probe::pto;
use crate::context::Context;
use crate::control::Cause;
use crate::endpoint::Endpoint;
use crate::profile::TailLossProbe;
use crate::recovery::RecoveryState;
use crate::segment::Outbox;

impl Endpoint {
    /// After new data has left, or an ACK of new data: section 7.2.
    pub(super) fn schedule_probe(&mut self, cx: &Context<'_>) {
        let srtt = self.rto.smoothed(cx.profile);
        let is_open = self.recovery_state == RecoveryState::Open;
        let is_out = self.una < self.max && self.sacking && is_open;
        let tracked = self.tracked();
        tracked.pto_at = Time::NEVER;
        let TailLossProbe::On {
            max_ack_delay,
            margin,
        } = cx.profile.tail_loss_probe
        else {
            return;
        };
        let free = tracked.probe.end.is_none() && !tracked.probe.used;
        if is_out && free && !tracked.flight.has_gaps() {
            let left = tracked.rto_at.saturating_sub(cx.now);
            let segments = tracked.flight.segments();
            tracked.pto_at = cx.now + pto(srtt, segments, (max_ack_delay, margin), left);
        }
    }

    /// Section 7.3: new data if there is some, whatever Nagle's rule says, else the last segment again.
    pub(super) fn send_probe(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        self.tracked().pto_at = Time::NEVER;
        let is_new = self.send_new_tracked(true, cx, out);
        if !is_new {
            let newest = self.tracked().flight.newest();
            if let Some((seq, end)) = newest {
                self.resend_tracked(seq, end, cx, out);
            }
        }
        let max = self.max;
        let tracked = self.tracked();
        tracked.probe.end = Some(max);
        tracked.probe.is_resend = !is_new;
        tracked.probe.used = true;
        self.restart_rto(cx);
    }

    /// Section 7.4.2: an ACK may tell what became of the probe. Where it has repaired a loss, that
    /// costs what any loss does.
    pub(super) fn end_probe(
        &mut self,
        ack: u64,
        advances: bool,
        dsack: bool,
        pipe: u64,
        cx: &Context<'_>,
    ) {
        let tracked = self.tracked();
        let Some(end) = tracked.probe.end else {
            return;
        };
        if ack < end {
            return;
        }
        let told = tracked.flight.news.segments > 0;
        if !tracked.probe.is_resend || dsack {
            tracked.probe.end = None;
        } else if ack > end {
            tracked.probe.end = None;
            if self.recovery_state == RecoveryState::Open {
                let cwnd = self.cut(pipe, Cause::Loss, cx);
                if !cx.profile.congestion_control.owns_window() {
                    self.control.set_window(cwnd);
                }
            }
        } else if !advances && !told {
            tracked.probe.end = None;
        }
    }
}
