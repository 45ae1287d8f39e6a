//! What goes out: new data as the window allows, holes of the scoreboard, what a time-out sends again.

use aqmlab_net::{RandomStream, Time};

use super::ClassicSender;
use super::recovery::DUP_THRESH;
use crate::context::Context;
use crate::profile::{CwndArithmetic, Recovery, SackAtTimeout};
use crate::receiver::Receiver;
use crate::recovery::RecoveryState;
use crate::segment::Outbox;
use crate::sender::space::{Candidate, Space};

impl ClassicSender {
    /// Sends what window and Nagle's rule allow, and an ACK if one must go.
    #[inline(always)]
    pub(in crate::sender) fn output(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        // When all that was written has left, FIN included, only a recovery has more to send.
        if !space.has_sent_all() || space.recovery_state == RecoveryState::Recovery {
            self.send(space, receiver, cx, out);
        }
        space.ack_if_due(receiver, cx, out);
    }

    #[inline(never)]
    fn send(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let idle = space.una == space.max;
        if idle && space.end > space.nxt {
            space.restart_after_idle(cx);
        }
        let max = space.max;
        if self.sends_bursts(space, receiver, cx) {
            self.send_burst(space, idle, receiver, cx, out);
        } else {
            self.send_any(space, idle, receiver, cx, out);
        }
        space.note_usage(space.in_flight(), space.max > max, cx);
    }

    /// [`send`](Self::send) whatever goes on: segment by segment.
    #[inline(never)]
    fn send_any(
        &mut self,
        space: &mut Space,
        idle: bool,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let in_recovery = space.recovery_state == RecoveryState::Recovery;
        let lone = cx.profile.lone_fast_retransmit && !space.sacks();
        if in_recovery && lone && self.dup_acks == DUP_THRESH {
            return;
        }
        if in_recovery && space.sacks() {
            self.sack_output(space, receiver, cx, out);
        } else if cx.profile.random_send_delay > Time::ZERO {
            self.delay_output(space, cx);
        } else if space.recovery_state == RecoveryState::Loss
            && cx.profile.sack_at_timeout == SackAtTimeout::Keep
        {
            self.fill_holes(space, idle, receiver, cx, out);
        } else {
            let limit = self.send_limit(space, cx);
            while let Some(candidate) = space.next_segment(limit, idle, cx) {
                self.send_next(space, candidate, receiver, cx, out);
            }
        }
    }

    /// After a time-out that left the scoreboard: what has arrived is passed over and takes no room
    /// in the window, and segments that are sent again are whole ones.
    #[inline(never)]
    fn fill_holes(
        &mut self,
        space: &mut Space,
        idle: bool,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        while let Some((len, fin)) = space.next_segment(self.send_limit(space, cx), idle, cx) {
            if len < cx.profile.mss.0 && space.nxt + len < space.max.min(space.end) {
                return;
            }
            self.send_next_out_of_line(space, (len, fin), receiver, cx, out);
        }
    }

    // ---- the random delay before a segment ----

    /// Draws a delay if something may be sent and none is running.
    #[inline(never)]
    fn delay_output(&mut self, space: &mut Space, cx: &Context<'_>) {
        let idle = space.una == space.max;
        if space.hold_until < Time::NEVER
            || space
                .next_segment(self.send_limit(space, cx), idle, cx)
                .is_none()
        {
            return;
        }
        let longest = cx.profile.random_send_delay.as_secs_f64();
        let draws = self
            .repairs_mut()
            .draws
            .get_or_insert_with(|| RandomStream::new(0, "send-overhead", 0));
        space.hold_until = cx.now + Time::from_secs_f64(draws.uniform() * longest);
    }

    /// The delay is over: one segment goes, or all that the window allows.
    pub(in crate::sender) fn send_delayed(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let idle = space.una == space.max;
        while let Some(candidate) = space.next_segment(self.send_limit(space, cx), idle, cx) {
            self.send_next_out_of_line(space, candidate, receiver, cx, out);
            if !cx.profile.delayed_send_fills_window {
                break;
            }
        }
    }

    // ---- what may be sent ----

    /// The windows end here: congestion window, peer's window, send buffer. The first two
    /// duplicate ACKs release a segment each (RFC 3042).
    #[inline(always)]
    pub(super) fn send_limit(&self, space: &Space, cx: &Context<'_>) -> u64 {
        let mut window = (space.control.window() as i64 + self.inflation) as u64;
        if cx.profile.cwnd_arithmetic == CwndArithmetic::WholeSegments {
            window -= window % cx.profile.mss.0;
        }
        if self.transmits_limited(space, cx) {
            window += u64::from(self.dup_acks) * cx.profile.mss.0;
        }
        space.una + (window + self.arrived_below_next(space, cx)).min(space.data_limit(cx))
    }

    /// When going back: bytes below the next one to send that have arrived.
    #[inline]
    fn arrived_below_next(&self, space: &Space, cx: &Context<'_>) -> u64 {
        match &self.repairs {
            Some(repairs)
                if space.recovery_state == RecoveryState::Loss
                    && cx.profile.sack_at_timeout == SackAtTimeout::Keep =>
            {
                space.nxt - space.una - repairs.board.missing_between(space.una, space.nxt)
            }
            _ => 0,
        }
    }

    #[inline]
    fn transmits_limited(&self, space: &Space, cx: &Context<'_>) -> bool {
        cx.profile.limited_transmit
            && matches!(self.dup_acks, 1 | 2)
            && space.recovery_state != RecoveryState::Recovery
    }

    /// Sends the segment at `nxt`. When going back, what the peer has reported by SACK is left out.
    #[inline(always)]
    fn send_next(
        &mut self,
        space: &mut Space,
        (len, fin): Candidate,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.emit(space, space.nxt, (len, fin), receiver, cx, out);
        space.nxt += len + u64::from(fin);
        self.limited |= self.transmits_limited(space, cx);
        if space.nxt < space.max
            && space.sacks()
            && !cx.profile.sack_in_recovery_only
            && let Some(repairs) = &self.repairs
        {
            space.nxt = repairs.board.skip(space.nxt);
        }
    }

    /// Out-of-line copy of [`send_next`](Self::send_next) for rare callers.
    #[inline(never)]
    fn send_next_out_of_line(
        &mut self,
        space: &mut Space,
        candidate: Candidate,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.send_next(space, candidate, receiver, cx, out);
    }

    /// Fast retransmit, and NewReno's answer to a partial ACK.
    pub(super) fn resend_oldest(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let (len, fin) = space.piece(space.una, space.max, cx.profile);
        self.emit_out_of_line(space, space.una, (len, fin), receiver, cx, out);
        let end = space.una + len + u64::from(fin);
        space.nxt = space.nxt.max(end);
        if space.sacks() {
            let una = space.una;
            let repairs = self.repairs_mut();
            repairs.board.high_rxt = end;
            repairs.board.rescue_rxt = end;
            repairs.prr.out += end - una;
        }
    }

    // ---- SACK recovery ----

    #[inline(never)]
    fn sack_output(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        if cx.profile.recovery == Recovery::SackPipe {
            self.pipe_output(space, receiver, cx, out);
            return;
        }
        let mss = cx.profile.mss.0;
        let (una, max, cwnd) = (space.una, space.max, space.control.window());
        let mut pipe = self.repairs_mut().board.set_pipe(una, max, mss);
        while pipe + mss <= cwnd {
            let sent = self.send_by_sack(space, receiver, cx, out);
            if sent == 0 {
                return;
            }
            pipe += sent;
            self.repairs_mut().prr.out += sent;
        }
    }

    /// NextSeg of RFC 6675, section 4: a lost hole, new data, any hole, a rescue. Returns the
    /// bytes sent.
    fn send_by_sack(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> u64 {
        let mss = cx.profile.mss.0;
        let (una, max, recover) = (space.una, space.max, space.recover);
        let board = &mut self.repairs_mut().board;
        let hole = board.hole(board.high_rxt.max(una));
        let lost = hole.filter(|&(from, _)| from < board.lost_below(mss));
        if lost.is_none()
            && let Some(sent) = self.send_new(space, receiver, cx, out)
        {
            return sent;
        }
        if let Some((from, to)) = hole {
            let end = self.resend(space, from, to, receiver, cx, out);
            self.repairs_mut().board.high_rxt = end;
            return end - from;
        }
        let board = &mut self.repairs_mut().board;
        let highest = board.highest(una);
        if una > board.rescue_rxt && highest < max {
            // The last segment that is out, once per recovery: it may be the one that is lost.
            board.rescue_rxt = recover;
            let from = highest.max(max.saturating_sub(mss));
            return self.resend(space, from, max, receiver, cx, out) - from;
        }
        0
    }

    /// ns's Sack1: a counter of segments on their way instead of a reckoning.
    fn pipe_output(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let mss = cx.profile.mss.0;
        let cwnd = (space.control.window() / mss * mss) as i64;
        while self.repairs_mut().board.pipe < cwnd {
            let una = space.una;
            let board = &mut self.repairs_mut().board;
            let sent = if let Some((from, to)) = board.hole(board.high_rxt.max(una)) {
                let end = self.resend(space, from, to, receiver, cx, out);
                self.repairs_mut().board.high_rxt = end;
                end - from
            } else if let Some(sent) = self.send_new(space, receiver, cx, out) {
                sent
            } else {
                return;
            };
            self.repairs_mut().board.pipe += sent as i64;
        }
    }

    /// Sends new data, as far as the peer's window allows; the bytes sent.
    fn send_new(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<u64> {
        space.nxt = space.max;
        let limit = space.una + space.data_limit(cx);
        let (len, fin) = space.next_segment(limit, false, cx)?;
        self.send_next_out_of_line(space, (len, fin), receiver, cx, out);
        Some(len + u64::from(fin))
    }

    /// Sends the first segment of `[from, to)` again; returns its end.
    fn resend(
        &mut self,
        space: &mut Space,
        from: u64,
        to: u64,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> u64 {
        let (len, fin) = space.piece(from, to, cx.profile);
        self.emit_out_of_line(space, from, (len, fin), receiver, cx, out);
        from + len + u64::from(fin)
    }

    // ---- segments ----

    /// Out-of-line copy of [`emit`](Self::emit) for rare callers.
    #[inline(never)]
    fn emit_out_of_line(
        &mut self,
        space: &mut Space,
        seq: u64,
        candidate: Candidate,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.emit(space, seq, candidate, receiver, cx, out);
    }

    /// Sends `[seq, seq + len)` and perhaps a FIN.
    #[inline(always)]
    fn emit(
        &mut self,
        space: &mut Space,
        seq: u64,
        candidate: Candidate,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        if !space.emit(seq, candidate, receiver, cx, out) {
            self.count_resent(candidate.0, out);
        } else if space.timed_at == Time::NEVER {
            space.start_timing(seq, cx.now);
        }
        if space.retransmit_at == Time::NEVER {
            space.arm(cx);
        }
    }

    #[inline(never)]
    fn count_resent(&mut self, len: u64, out: &mut impl Outbox) {
        self.repairs_mut().counts.on_resend(len, out);
    }
}
