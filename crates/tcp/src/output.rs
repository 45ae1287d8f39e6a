//! What an end point sends, and when.

use aqmlab_net::{Ecn, RandomStream, Time};

use crate::ack::DUP_THRESH;
use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::profile::{CwndArithmetic, EcnEcho, Ect, EctOn, Profile, Recovery, SackAtTimeout};
use crate::recovery::RecoveryState;
use crate::segment::{Flags, Outbox, Segment, SegmentKind};

/// A segment that could be sent: its length, and whether it would carry the FIN.
type Candidate = (u64, bool);

impl Endpoint {
    /// The peer offers its whole buffer, and both ends run the same stack.
    #[expect(clippy::unused_self, reason = "a property of the connection")]
    #[inline]
    pub(crate) fn peer_window(&self, cx: &Context<'_>) -> u64 {
        let profile = cx.profile;
        profile
            .peer_receive_buffer
            .unwrap_or(profile.receive_buffer)
            .0
    }

    /// Sends what window, Nagle's rule and the ACK policy allow.
    #[inline(always)]
    pub(crate) fn output(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        if !self.is_established() {
            return;
        }
        // Whoever has sent all that was written, FIN included, has nothing more to look at.
        if self.nxt < self.end + u64::from(self.closed)
            || self.recovery_state == RecoveryState::Recovery
            || self.repairs_by_records()
        {
            self.send_what_is_allowed(cx, out);
        }
        if self.receiver.wants_ack() {
            self.send_pure_ack(cx, out);
        }
    }

    #[inline(never)]
    fn send_what_is_allowed(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        if self.keeps_records {
            self.tracked_output(cx, out);
            return;
        }
        let idle = self.una == self.max;
        if idle && self.end > self.nxt {
            self.restart_after_idle(cx);
        }
        if !self.sends_plainly(cx) {
            return self.send_anything(idle, cx, out);
        }
        #[cfg(test)]
        self.send_both_ways(idle, cx, out);
        #[cfg(not(test))]
        self.send_plainly(idle, cx, out);
    }

    /// [`send_what_is_allowed`](Self::send_what_is_allowed), whatever goes on.
    #[inline(never)]
    pub(crate) fn send_anything(&mut self, idle: bool, cx: &Context<'_>, out: &mut impl Outbox) {
        let in_recovery = self.recovery_state == RecoveryState::Recovery;
        let lone = cx.profile.lone_fast_retransmit && !self.sacking;
        if in_recovery && lone && self.dup_acks == DUP_THRESH {
            return;
        }
        if in_recovery && self.sacking {
            self.sack_output(cx, out);
        } else if cx.profile.random_send_delay > Time::ZERO {
            self.delay_output(cx);
        } else if self.recovery_state == RecoveryState::Loss
            && cx.profile.sack_at_timeout == SackAtTimeout::Keep
        {
            self.fill_holes(idle, cx, out);
        } else {
            let limit = self.send_limit(cx);
            while let Some(candidate) = self.next_segment(limit, idle, cx) {
                self.send_next(candidate, cx, out);
            }
        }
    }

    /// After a time-out that left the scoreboard: what has arrived is passed over and takes no room
    /// in the window, and segments that are sent again are whole ones.
    #[inline(never)]
    fn fill_holes(&mut self, idle: bool, cx: &Context<'_>, out: &mut impl Outbox) {
        while let Some((len, fin)) = self.next_segment(self.send_limit(cx), idle, cx) {
            if len < cx.profile.mss.0 && self.nxt + len < self.max.min(self.end) {
                return;
            }
            self.send_next_out_of_line((len, fin), cx, out);
        }
    }

    /// RFC 5681, section 4.1. Idle time counts as [`Profile::idle_since_ack`] says.
    #[inline(never)]
    pub(crate) fn restart_after_idle(&mut self, cx: &Context<'_>) {
        let idle_for = cx.now.saturating_sub(self.last_received);
        if idle_for < self.rto.timeout(cx.profile) {
            return;
        }
        self.control.on_idle();
        if cx.profile.restart_after_idle {
            let restart = u64::from(cx.profile.initial_window) * cx.profile.mss.0;
            if self.control.window() > restart {
                self.control.set_window(restart);
            }
        }
    }

    // ---- the random delay before a segment ----

    /// Draws a delay if something may be sent and none is running.
    #[inline(never)]
    fn delay_output(&mut self, cx: &Context<'_>) {
        let idle = self.una == self.max;
        if self.hold_until < Time::NEVER
            || self.next_segment(self.send_limit(cx), idle, cx).is_none()
        {
            return;
        }
        let longest = cx.profile.random_send_delay.as_secs_f64();
        let draws = self
            .cold_mut()
            .draws
            .get_or_insert_with(|| RandomStream::new(0, "send-overhead", 0));
        self.hold_until = cx.now + Time::from_secs_f64(draws.uniform() * longest);
    }

    /// The delay is over: one segment goes, or all that the window allows.
    pub(crate) fn send_delayed(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        if self.keeps_records {
            return; // It was a paced segment's: what goes next is looked at anew.
        }
        let idle = self.una == self.max;
        while let Some(candidate) = self.next_segment(self.send_limit(cx), idle, cx) {
            self.send_next_out_of_line(candidate, cx, out);
            if !cx.profile.delayed_send_fills_window {
                break;
            }
        }
    }

    // ---- what may be sent ----

    /// The windows end here: congestion window, peer's window, send buffer. The first two
    /// duplicate ACKs release a segment each (RFC 3042).
    #[inline]
    pub(crate) fn send_limit(&self, cx: &Context<'_>) -> u64 {
        let mut window = (self.control.window() as i64 + self.inflation) as u64;
        if cx.profile.cwnd_arithmetic == CwndArithmetic::WholeSegments {
            window -= window % cx.profile.mss.0;
        }
        if self.transmits_limited(cx) {
            window += u64::from(self.dup_acks) * cx.profile.mss.0;
        }
        self.una + (window + self.arrived_below_next(cx)).min(self.data_limit(cx))
    }

    /// When going back: bytes below the next one to send that have arrived.
    #[inline]
    fn arrived_below_next(&self, cx: &Context<'_>) -> u64 {
        match &self.cold {
            Some(cold)
                if self.recovery_state == RecoveryState::Loss
                    && cx.profile.sack_at_timeout == SackAtTimeout::Keep =>
            {
                self.nxt - self.una - cold.board.missing_between(self.una, self.nxt)
            }
            _ => 0,
        }
    }

    #[inline]
    fn transmits_limited(&self, cx: &Context<'_>) -> bool {
        cx.profile.limited_transmit
            && matches!(self.dup_acks, 1 | 2)
            && self.recovery_state != RecoveryState::Recovery
    }

    /// Bytes that may be out, whatever the congestion window.
    #[inline]
    pub(crate) fn data_limit(&self, cx: &Context<'_>) -> u64 {
        self.peer_window(cx).min(cx.profile.send_buffer.0)
    }

    /// The segment at `nxt`, if it ends by `limit` and may be sent: RFC 1122, section 4.2.3.4
    /// (Nagle and sender's silly window avoidance), as BSD words it.
    #[inline]
    pub(crate) fn next_segment(
        &self,
        limit: u64,
        idle: bool,
        cx: &Context<'_>,
    ) -> Option<Candidate> {
        let mss = cx.profile.mss.0;
        let len = self.end.min(limit).saturating_sub(self.nxt).min(mss);
        // The common cases: a full segment of new data, and a window that is full.
        if len == mss && self.nxt >= self.max && !self.ecn.hold {
            return Some((len, self.ends_at(self.nxt + len, cx)));
        }
        if len == 0 && self.nxt < self.end {
            return None;
        }
        let fin = self.ends_at(self.nxt + len, cx);
        let resending = self.nxt < self.max;
        if self.ecn.hold && !resending {
            return None;
        }
        // The FIN goes once; again only when everything from `una` on is sent again.
        if fin && (self.max <= self.end || self.nxt == self.una) {
            return Some((len, fin));
        }
        if len == 0 {
            return None;
        }
        let last = self.nxt + len == self.end.min(self.una + cx.profile.send_buffer.0);
        let idle = idle && !(cx.profile.strict_nagle && self.una != self.max);
        let may = len == mss
            || (last && (idle || !cx.profile.nagle))
            || 2 * len >= self.peer_window(cx)
            || resending;
        may.then_some((len, fin))
    }

    /// Whether the segment at `nxt`, which ends at `end`, may carry the FIN.
    #[inline(always)]
    fn ends_at(&self, end: u64, cx: &Context<'_>) -> bool {
        let waits = cx.profile.strict_nagle && self.una != self.max && self.max <= self.end;
        self.closed && end == self.end && !waits
    }

    /// Sends the segment at `nxt`. When going back, what the peer has told by SACK is left out.
    #[inline(always)]
    fn send_next(&mut self, (len, fin): Candidate, cx: &Context<'_>, out: &mut impl Outbox) {
        self.emit(self.nxt, len, fin, cx, out);
        self.nxt += len + u64::from(fin);
        self.limited |= self.transmits_limited(cx);
        if self.nxt < self.max
            && self.sacking
            && !cx.profile.sack_in_recovery_only
            && let Some(cold) = &self.cold
        {
            self.nxt = cold.board.skip(self.nxt);
        }
    }

    /// [`send_next`](Self::send_next) where it is not worth its space.
    #[inline(never)]
    fn send_next_out_of_line(
        &mut self,
        candidate: Candidate,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.send_next(candidate, cx, out);
    }

    /// The piece `[seq, to)` of what is out, at most a segment; the FIN is its last byte.
    pub(crate) fn piece(&self, seq: u64, to: u64, profile: &Profile) -> Candidate {
        let len = self.end.min(to).saturating_sub(seq).min(profile.mss.0);
        (len, self.closed && seq + len == self.end && to > self.end)
    }

    /// Fast retransmit, and NewReno's answer to a partial ACK.
    pub(crate) fn resend_oldest(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let (len, fin) = self.piece(self.una, self.max, cx.profile);
        self.emit_out_of_line(self.una, len, fin, cx, out);
        let end = self.una + len + u64::from(fin);
        self.nxt = self.nxt.max(end);
        if self.sacking {
            let una = self.una;
            let cold = self.cold_mut();
            cold.board.high_rxt = end;
            cold.board.rescue_rxt = end;
            cold.prr.out += end - una;
        }
    }

    // ---- SACK recovery ----

    #[inline(never)]
    fn sack_output(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        if cx.profile.recovery == Recovery::SackPipe {
            self.pipe_output(cx, out);
            return;
        }
        let mss = cx.profile.mss.0;
        let (una, max, cwnd) = (self.una, self.max, self.control.window());
        let mut pipe = self.cold_mut().board.set_pipe(una, max, mss);
        while pipe + mss <= cwnd {
            let sent = self.send_by_sack(cx, out);
            if sent == 0 {
                return;
            }
            pipe += sent;
            self.cold_mut().prr.out += sent;
        }
    }

    /// NextSeg of RFC 6675, section 4: a lost hole, new data, any hole, a rescue. Returns the
    /// bytes sent.
    fn send_by_sack(&mut self, cx: &Context<'_>, out: &mut impl Outbox) -> u64 {
        let mss = cx.profile.mss.0;
        let (una, max, recover) = (self.una, self.max, self.recover);
        let board = &mut self.cold_mut().board;
        let hole = board.hole(board.high_rxt.max(una));
        let lost = hole.filter(|&(from, _)| from < board.lost_below(mss));
        if lost.is_none()
            && let Some(sent) = self.send_new(cx, out)
        {
            return sent;
        }
        if let Some((from, to)) = hole {
            let end = self.resend(from, to, cx, out);
            self.cold_mut().board.high_rxt = end;
            return end - from;
        }
        let board = &mut self.cold_mut().board;
        let highest = board.highest(una);
        if una > board.rescue_rxt && highest < max {
            // The last segment that is out, once per recovery: it may be the one that is lost.
            board.rescue_rxt = recover;
            let from = highest.max(max.saturating_sub(mss));
            return self.resend(from, max, cx, out) - from;
        }
        0
    }

    /// ns's Sack1: a counter of segments on their way instead of a reckoning.
    fn pipe_output(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let mss = cx.profile.mss.0;
        let cwnd = (self.control.window() / mss * mss) as i64;
        while self.cold_mut().board.pipe < cwnd {
            let una = self.una;
            let board = &mut self.cold_mut().board;
            let sent = if let Some((from, to)) = board.hole(board.high_rxt.max(una)) {
                let end = self.resend(from, to, cx, out);
                self.cold_mut().board.high_rxt = end;
                end - from
            } else if let Some(sent) = self.send_new(cx, out) {
                sent
            } else {
                return;
            };
            self.cold_mut().board.pipe += sent as i64;
        }
    }

    /// Sends new data, as far as the peer's window allows; the bytes sent.
    fn send_new(&mut self, cx: &Context<'_>, out: &mut impl Outbox) -> Option<u64> {
        self.nxt = self.max;
        let limit = self.una + self.data_limit(cx);
        let (len, fin) = self.next_segment(limit, false, cx)?;
        self.send_next_out_of_line((len, fin), cx, out);
        Some(len + u64::from(fin))
    }

    /// Sends the first segment of `[from, to)` again; returns its end.
    fn resend(&mut self, from: u64, to: u64, cx: &Context<'_>, out: &mut impl Outbox) -> u64 {
        let (len, fin) = self.piece(from, to, cx.profile);
        self.emit_out_of_line(from, len, fin, cx, out);
        from + len + u64::from(fin)
    }

    // ---- segments ----

    /// [`emit`](Self::emit) where it is not worth its space.
    #[inline(never)]
    pub(crate) fn emit_out_of_line(
        &mut self,
        seq: u64,
        len: u64,
        fin: bool,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.emit(seq, len, fin, cx, out);
    }

    /// Sends `[seq, seq + len)` and perhaps a FIN.
    #[inline(always)]
    pub(crate) fn emit(
        &mut self,
        seq: u64,
        len: u64,
        fin: bool,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let end = seq + len + u64::from(fin);
        let is_new = seq >= self.max;
        let mut flags = if fin { Flags::FIN } else { Flags::default() };
        // ECT and CWR on new data only (RFC 3168, sections 6.1.2 and 6.1.5).
        let agreed = len > 0 && self.ecn.agreed;
        if agreed && is_new && self.ecn.cwr_pending {
            self.ecn.cwr_pending = false;
            flags = flags.with(Flags::CWR);
        }
        let ecn = if agreed && (is_new || cx.profile.ect_on != EctOn::NewData) {
            self.code_point(cx)
        } else if len == 0 {
            self.code_point_of_control(false, cx)
        } else {
            Ecn::NotEct
        };
        let segment = self.receiver.segment(seq, len, flags, ecn);
        self.receiver.hand_over(segment, cx, out);
        self.receiver.on_ack_sent();
        self.control.on_send(seq, end, !is_new, cx.now);
        if is_new {
            self.max = end;
            if self.timed_at == Time::NEVER {
                (self.timed_seq, self.timed_at) = (seq, cx.now);
            }
        } else {
            self.count_resent(len, out);
            self.max = self.max.max(end);
        }
        if self.retransmit_at == Time::NEVER {
            self.arm(cx);
        }
    }

    /// What data says that is ECN-capable.
    #[inline]
    fn code_point(&self, cx: &Context<'_>) -> Ecn {
        match cx.profile.ect {
            Ect::Ect0 => Ecn::Ect0,
            Ect::Ect1 if self.falls_back(cx) => Ecn::Ect0,
            Ect::Ect1 => Ecn::Ect1,
        }
    }

    /// The same of a SYN, an ACK, a FIN: as a rule nothing. `asks`: it is the SYN that offers ECN.
    #[inline]
    pub(crate) fn code_point_of_control(&self, asks: bool, cx: &Context<'_>) -> Ecn {
        let capable = self.ecn.agreed || (asks && cx.profile.ecn);
        if capable && cx.profile.ect_on == EctOn::AllPackets {
            self.code_point(cx)
        } else {
            Ecn::NotEct
        }
    }

    /// Accurate feedback was wanted, or is what the congestion control is made for, and the peer has
    /// classic ECN: what asks for the L4S service without it would harm others (RFC 9331, section 4.2).
    #[inline]
    pub(crate) fn falls_back(&self, cx: &Context<'_>) -> bool {
        let wanted = match cx.profile.ecn_echo {
            EcnEcho::Accurate => true,
            EcnEcho::EachChange => false,
            EcnEcho::UntilCwr => cx.profile.congestion_control.echo() == EcnEcho::Accurate,
        };
        wanted && !self.ecn.accurate
    }

    #[inline(never)]
    fn count_resent(&mut self, len: u64, out: &mut impl Outbox) {
        let retransmissions = &mut self.cold_mut().retransmissions;
        let kind = if len > 0 {
            retransmissions.data += 1;
            SegmentKind::Data
        } else {
            retransmissions.fin += 1;
            SegmentKind::Fin
        };
        out.on_retransmission(kind);
    }

    #[inline(never)]
    pub(crate) fn send_pure_ack(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let ecn = self.code_point_of_control(false, cx);
        self.receiver.send_ack(self.nxt, ecn, cx, out);
    }

    /// An ACK without payload, and so far without options.
    pub(crate) fn pure_ack(&self, seq: u64, cx: &Context<'_>) -> Segment {
        let ecn = self.code_point_of_control(false, cx);
        self.receiver.segment(seq, 0, Flags::default(), ecn)
    }
}
