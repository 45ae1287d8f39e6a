//! When the end of a flight is probed, and what the probe's ACK reports ([`super::probe`]).

use aqmlab_net::Time;

use super::RackSender;
use super::probe::pto;
use super::rules;
use crate::context::Context;
use crate::control::Cause;
use crate::profile::TailLossProbe;
use crate::receiver::Receiver;
use crate::segment::Outbox;
use crate::sender::space::Space;

impl RackSender {
    /// After new data has left, or an ACK of new data: section 7.2.
    pub(super) fn schedule_probe(&mut self, space: &mut Space, sends: bool, cx: &Context<'_>) {
        let srtt = space.rto.smoothed(cx.profile);
        let is_open = space.is_open();
        let is_out = space.una < space.max && space.sacks() && is_open;
        self.pto_at = Time::NEVER;
        let TailLossProbe::On {
            max_ack_delay,
            margin,
        } = cx.profile.tail_loss_probe
        else {
            return;
        };
        // Linux sets the timer all the same, and then sends nothing.
        let free = (self.probe.end.is_none() && !self.probe.used) || rules::applies(cx);
        // New data that leaves while a mark is answered puts the probe in the place of RACK's timer (Linux).
        let reducing = sends && self.is_reducing && rules::applies(cx);
        if is_out && free && (reducing || !self.log.has_gaps()) {
            if reducing {
                self.reo_at = Time::NEVER;
            }
            let mut left = self.rto_at.saturating_sub(cx.now);
            // Where new data leaves, Linux counts from when the oldest segment was sent.
            if let Some(oldest) = self.log.oldest_sent_at()
                && rules::applies(cx)
                && sends
            {
                let due = oldest + space.rto.timeout(cx.profile);
                let rest = due.saturating_sub(cx.now);
                left = if rest > Time::ZERO { rest } else { Time::NEVER };
            }
            let segments = self.log.segments();
            self.pto_at = cx.now + pto(srtt, segments, (max_ack_delay, margin), left);
            if rules::applies(cx) {
                self.rto_at = self.rto_at.max(self.pto_at); // One timer runs.
            }
        }
    }

    /// Section 7.3: new data if there is some, whatever Nagle's rule says, else the last segment again.
    pub(super) fn send_probe(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.pto_at = Time::NEVER;
        if rules::applies(cx) && self.probe.end.is_some() {
            self.count_from_oldest(space, cx);
            return;
        }
        let is_new = self.send_new(space, true, receiver, cx, out);
        if !is_new {
            let newest = self.log.newest();
            if let Some((seq, end)) = newest {
                self.resend(space, seq, end, receiver, cx, out);
            }
        }
        let max = space.max;
        self.probe.end = Some(max);
        self.probe.is_resend = !is_new;
        self.probe.used = true;
        self.restart_rto(space, cx);
    }

    /// Section 7.4.2: an ACK may show what became of the probe. Where it has repaired a loss, that
    /// costs what any loss does.
    pub(super) fn end_probe(
        &mut self,
        space: &mut Space,
        ack: u64,
        advances: bool,
        dsack: bool,
        pipe: u64,
        cx: &Context<'_>,
    ) {
        let Some(end) = self.probe.end else {
            return;
        };
        if ack < end {
            return;
        }
        if rules::applies(cx) {
            self.end_probe_as_linux(space, (ack, end), advances, cx);
            return;
        }
        let delivers = self.log.news.segments > 0;
        if !self.probe.is_resend || dsack {
            self.probe.end = None;
        } else if ack > end {
            self.probe.end = None;
            if space.is_open() {
                let cwnd = space.cut(pipe, Cause::Loss, cx);
                if !cx.profile.congestion_control.owns_window() {
                    space.control.set_window(cwnd);
                }
            }
        } else if !advances && !delivers {
            self.probe.end = None;
        }
    }
}
