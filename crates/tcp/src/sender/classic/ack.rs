//! What an ACK does: round trips, the window, and which repair it begins or ends.

use aqmlab_net::Time;

use super::ClassicSender;
use crate::agreed::Agreed;
use crate::context::Context;
use crate::profile::{BackoffEnd, EcnReaction, SackAtTimeout, WindowGrowth};
use crate::receiver::Receiver;
use crate::recovery::RecoveryState;
use crate::segment::{Flags, Outbox, Segment, Stamps};
use crate::sender::space::Space;

impl ClassicSender {
    /// Takes an acknowledgement of what was sent; it is no more than that.
    #[inline(never)]
    pub(in crate::sender) fn on_ack(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let ack = segment.ack;
        let echo = space.agreed.has(Agreed::ECN) && segment.flags.has(Flags::ECE);
        let before = self.before_ack(space, segment.options.sack_blocks().len() > 0, cx);
        let news = space.sacks() && self.note_sack(space, segment);
        // The reaction comes before the opening (and takes its place): the flight that is halved
        // still contains what this ACK covers.
        if echo {
            space.on_echo(ack, cx);
        } else if ack > space.una && cx.profile.ecn_reaction == EcnReaction::Fractional {
            space.ecn.release();
        }
        let pure = segment.len == 0 && !segment.flags.has(Flags::FIN);
        if ack > space.una {
            self.on_new_ack_out_of_line(space, segment, echo, receiver, cx, out);
        } else if ack == space.una && space.una < space.max && (pure || news) {
            // RFC 6675, section 2: with SACK a duplicate must report something new.
            if news || !space.sacks() {
                self.on_dup_ack(space, receiver, cx, out);
            }
        } else {
            self.dup_acks = 0;
        }
        if let Some(before) = before
            && space.recovery_state == RecoveryState::Recovery
        {
            self.reduce(space, before, cx);
        }
        if space.ecn.holds() && space.retransmit_at == Time::NEVER {
            space.arm(cx);
        }
    }

    /// Out-of-line copy of [`on_new_ack`](Self::on_new_ack) for rare callers.
    #[inline(never)]
    pub(super) fn on_new_ack_out_of_line(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        echo: bool,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.on_new_ack(space, segment, echo, receiver, cx, out);
    }

    #[inline(always)]
    pub(super) fn on_new_ack(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        echo: bool,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let ack = segment.ack;
        let acked = self.newly_acked(space, ack, cx);
        let predicted = space.is_header_predicted(segment, cx);
        let armed_before = cx.profile.backoff_ends_with == BackoffEnd::NewAckOnceArmed;
        if armed_before {
            space.arm(cx);
        }
        self.measure(space, segment, cx, out);
        space.una = ack;
        space.nxt = space.nxt.max(ack);
        if space.sacks()
            && let Some(repairs) = &mut self.repairs
        {
            repairs.board.advance(ack);
        }
        let may_open = !echo || cx.profile.ecn_reaction == EcnReaction::Kame;
        let mut opens = may_open && !predicted && space.uses_window(cx);
        if space.recovery_state == RecoveryState::Recovery {
            if !self.ends_recovery(space, cx) {
                self.on_partial_ack(space, acked, receiver, cx, out);
                return;
            }
            opens &= cx.profile.recovery_exit_opens_window
                && (!space.sacks() || cx.profile.sack_in_recovery_only);
            self.leave_recovery(space, space.in_flight(), cx);
        } else if space.recovery_state == RecoveryState::Loss && ack >= space.recover {
            space.recovery_state = RecoveryState::Open;
        }
        self.dup_acks = 0;
        if opens {
            space.open(acked, cx);
        } else {
            space.pass(acked, cx);
        }
        if space.una == space.max {
            space.retransmit_at = Time::NEVER;
        } else {
            if !armed_before {
                space.arm(cx);
            }
            if space.control.is_overdue(space.una, cx.now, true) && self.may_repair(space, cx) {
                self.fast_retransmit(space, receiver, cx, out);
            }
        }
    }

    /// Bytes that an ACK acknowledges for the first time.
    #[inline]
    fn newly_acked(&self, space: &Space, ack: u64, cx: &Context<'_>) -> u64 {
        match &self.repairs {
            Some(repairs) if space.sacks() && cx.profile.sack_at_timeout == SackAtTimeout::Keep => {
                repairs.board.missing_between(space.una, ack)
            }
            _ => ack - space.una,
        }
    }

    // ---- round trips ----

    #[inline(always)]
    fn measure(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let stamping = space.agreed.has(Agreed::STAMPS);
        let stamps = if stamping && cx.profile.stamps() == Some(Stamps::Rfc7323) {
            segment.options.timestamps()
        } else {
            None
        };
        let sent = if let Some(stamps) = stamps {
            let passed = cx.host.millis(cx.now).wrapping_sub(stamps.echo);
            Some(cx.now.saturating_sub(Time::from_millis(u64::from(passed))))
        } else {
            space.take_timed(segment.ack)
        };
        if let Some(sent) = sent {
            let cwnd = self.cwnd(space);
            space.on_round_trip(sent, cwnd, cx, out);
        }
        if cx.profile.backoff_ends_with != BackoffEnd::Sample {
            space.rto.end_backoff(cx.profile);
        }
    }
}

impl Space {
    /// BSD's header prediction: an in-order pure ACK takes a path that never opens the window once
    /// that exceeds the peer's.
    #[inline(always)]
    fn is_header_predicted(&self, segment: &Segment, cx: &Context<'_>) -> bool {
        cx.profile.window_growth == WindowGrowth::HeaderPrediction
            && segment.len == 0
            && self.nxt == self.max
            && self.control.window() >= cx.profile.peer_window()
            && self.recovery_state != RecoveryState::Recovery
    }
}
