//! What both senders share: their part of the sequence space, the window, the timer, and how a
//! segment leaves.

use aqmlab_net::{Ecn, Time};

use super::congestion::EcnResponse;
use crate::agreed::Agreed;
use crate::context::Context;
use crate::control::{Ack, Control};
use crate::profile::{EcnEcho, Ect, Profile, WindowGrowth};
use crate::receiver::Receiver;
use crate::recovery::RecoveryState;
use crate::rto::Rto;
use crate::segment::{Flags, Outbox, RoundTrip, Segment, SegmentKind, Timestamps};

/// A segment that could be sent: its length, and whether it would carry the FIN.
pub(super) type Candidate = (u64, bool);

/// [`Space::most_out`] where the window was full.
const FULL: u16 = u16::MAX;

/// The state that both senders have.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// The oldest byte not acknowledged.
    pub(super) una: u64,
    /// The next byte to send; falls back to `una` when losses are repaired by going back.
    pub(super) nxt: u64,
    /// The highest byte ever sent.
    pub(super) max: u64,
    /// Behind the last byte that the application has written.
    pub(super) end: u64,
    pub(super) control: Control,
    pub(super) rto: Rto,
    /// The segment whose round trip is being timed (the lowest bits of its number), and when it was sent;
    /// [`Time::NEVER`]: none.
    timed_seq: u32,
    pub(super) timed_at: Time,
    pub(super) retransmit_at: Time,
    /// While the handshake is under way: when it is aborted. Later: when the next segment may leave.
    pub(super) hold_until: Time,
    pub(super) last_received: Time,
    /// The most segments that were out at once since the window was last looked at; [`FULL`]: all of the
    /// window.
    most_out: u16,
    /// The window is looked at anew once all below this is acknowledged: the lowest bits.
    usage_until: u32,
    /// What was out at the last loss: `recover` of RFC 6582, RecoveryPoint of RFC 6675.
    pub(super) recover: u64,
    /// Echoes are ignored until the peer acknowledges more than this: one cut per window.
    pub(super) cut_until: u64,
    pub(super) ecn: EcnResponse,
    pub(super) recovery_state: RecoveryState,
    pub(super) agreed: Agreed,
    /// Nothing more is written: a FIN is to follow.
    pub(super) closed: bool,
}

impl Space {
    #[inline(always)]
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            una: 0,
            nxt: 1,
            max: 1,
            end: 1,
            control: Control::new(profile),
            rto: Rto::new(profile),
            timed_seq: 0,
            timed_at: Time::NEVER,
            retransmit_at: Time::NEVER,
            hold_until: Time::NEVER,
            last_received: Time::ZERO,
            most_out: 0,
            usage_until: 0,
            recover: 0,
            cut_until: 0,
            ecn: EcnResponse::default(),
            recovery_state: RecoveryState::Open,
            agreed: Agreed::default(),
            closed: false,
        }
    }

    // ---- what the application and the end point say ----

    /// The application writes `bytes`.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.end += bytes;
    }

    /// The application takes back what was never sent.
    pub(crate) fn withdraw(&mut self) {
        self.end = self.end.min(self.max);
    }

    /// The application has nothing more to write.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the application has written nothing so far, and has not closed.
    pub(crate) fn is_untouched(&self) -> bool {
        self.end == 1 && !self.closed
    }

    /// Nothing is sent any more.
    pub(crate) fn stop(&mut self) {
        self.retransmit_at = Time::NEVER;
        self.hold_until = Time::NEVER;
    }

    /// Says which initial sequence number stands for 0 here ([`crate::InitialRecover`]).
    pub(crate) fn set_initial_sequence_number(&mut self, number: u32) {
        if number > i32::MAX as u32 {
            self.recover = u64::from(number.wrapping_neg());
        }
    }

    /// A segment has arrived, whatever it is.
    pub(crate) fn note_arrival(&mut self, segment: &Segment, cx: &Context<'_>) {
        let is_ack = segment.len == 0 || segment.ack > self.una;
        if is_ack || !cx.profile.idle_since_ack {
            self.last_received = cx.now;
        }
    }

    /// The peer stamps its segments for the congestion control.
    pub(crate) fn on_timestamps(&mut self, stamps: &Timestamps) {
        let of_data = self.una < self.max;
        self.control.on_timestamps(stamps, of_data);
    }

    // ---- what others ask ----

    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The sequence number of a segment without data.
    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    #[inline]
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Bytes sent and not acknowledged, SYN and FIN counted as one each.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.max - self.una
    }

    /// Bytes written and never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.max)
    }

    /// The application has closed, and everything that it wrote has been sent.
    pub(crate) fn is_all_sent(&self) -> bool {
        self.closed && self.unsent() == 0
    }

    /// Everything is acknowledged, the FIN included.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.closed && self.una == self.end + 1
    }

    #[inline]
    pub(crate) fn wake_at(&self) -> Time {
        self.retransmit_at.min(self.hold_until)
    }

    /// When the next segment may leave; [`Time::NEVER`]: none is held back.
    pub(crate) fn hold_until(&self) -> Time {
        self.hold_until
    }

    /// Whether the time is over for which something was held back; it is held back no longer.
    pub(crate) fn is_released(&mut self, now: Time) -> bool {
        let is_over = self.hold_until <= now;
        if is_over {
            self.hold_until = Time::NEVER;
        }
        is_over
    }

    /// Whether the timer has expired.
    pub(crate) fn is_timed_out(&self, now: Time) -> bool {
        self.retransmit_at <= now
    }

    #[cfg(test)]
    pub(crate) fn recover(&self) -> u64 {
        self.recover
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    pub(crate) fn control_mut(&mut self) -> &mut Control {
        &mut self.control
    }

    pub(crate) fn rto(&self) -> &Rto {
        &self.rto
    }

    pub(crate) fn rto_mut(&mut self) -> &mut Rto {
        &mut self.rto
    }

    pub(crate) fn recovery_state(&self) -> RecoveryState {
        self.recovery_state
    }

    #[inline(always)]
    pub(super) fn sacks(&self) -> bool {
        self.agreed.has(Agreed::SACK)
    }

    /// Nothing is known to be lost.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.recovery_state == RecoveryState::Open
    }

    /// Whether all was sent that was written, the FIN included.
    #[inline(always)]
    pub(super) fn has_sent_all(&self) -> bool {
        self.nxt >= self.end + u64::from(self.closed)
    }

    // ---- the handshake ----

    /// What both ends have agreed on so far.
    pub(crate) fn agreed(&self) -> Agreed {
        self.agreed
    }

    pub(crate) fn agree(&mut self, agreed: Agreed) {
        self.agreed = agreed;
    }

    /// A SYN or SYN-ACK leaves for the first time: the handshake may take so long.
    pub(crate) fn begin_handshake(&mut self, patience: Time, now: Time) {
        self.start_timing(0, now);
        self.hold_until = now + patience;
    }

    /// The segment at `seq` is timed from now on.
    #[inline(always)]
    pub(super) fn start_timing(&mut self, seq: u64, now: Time) {
        (self.timed_seq, self.timed_at) = (seq as u32, now);
    }

    /// What is out is not timed any more (Karn).
    pub(crate) fn stop_timing(&mut self) {
        self.timed_at = Time::NEVER;
    }

    /// ECN did not pass: nothing more is sent as capable.
    pub(crate) fn disable_ecn(&mut self) {
        self.agreed.set(Agreed::ECN, false);
    }

    /// The handshake is complete. RFC 5681, section 3.1: the window is one segment if a SYN was lost.
    /// The time that it took, if it was timed.
    pub(super) fn establish(&mut self, lost_syn: bool, cx: &Context<'_>) -> Option<Time> {
        self.una = 1;
        self.stop();
        let sent = self.take_timed(1);
        if let Some(sent) = sent {
            self.rto.sample(cx.profile, cx.host, sent, cx.now);
        }
        self.rto.on_established(cx.profile);
        let segments = if lost_syn {
            1
        } else {
            cx.profile.initial_window
        };
        self.control.start(segments, cx.profile);
        sent.map(|sent| cx.now - sent)
    }

    // ---- round trips and the timer ----

    /// When the segment was sent that is timed, if this acknowledges it: none is timed any more.
    #[inline(always)]
    pub(super) fn take_timed(&mut self, ack: u64) -> Option<Time> {
        let is_behind = (ack as u32).wrapping_sub(self.timed_seq) as i32 > 0;
        let is_timed = self.timed_at < Time::NEVER && is_behind;
        is_timed.then(|| std::mem::replace(&mut self.timed_at, Time::NEVER))
    }

    /// A round trip of data was measured.
    #[inline(always)]
    pub(super) fn on_round_trip(
        &mut self,
        sent: Time,
        cwnd: u64,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.rto.sample(cx.profile, cx.host, sent, cx.now);
        let time = cx.now - sent;
        out.on_round_trip(&RoundTrip {
            time,
            smoothed: self.rto.smoothed(cx.profile).unwrap_or(time),
            cwnd,
        });
    }

    #[inline]
    pub(crate) fn arm(&mut self, cx: &Context<'_>) {
        self.retransmit_at = self.deadline(cx);
    }

    #[inline]
    pub(crate) fn deadline(&self, cx: &Context<'_>) -> Time {
        self.rto.deadline(cx.profile, cx.host, cx.now)
    }

    /// The retransmission timer has expired; false: once too often.
    pub(crate) fn on_expiry(&mut self, cx: &Context<'_>) -> bool {
        if u32::from(self.rto.expiries()) >= cx.profile.max_retransmissions {
            return false;
        }
        self.rto.back_off(cx.profile);
        self.stop_timing(); // Karn: what is sent again is not timed.
        true
    }

    // ---- the window ----

    /// Something was sent, with `pipe` bytes on their way then: whether the window holds more back. It
    /// counts for the flight that is out, until all of it is acknowledged.
    #[inline]
    pub(super) fn note_usage(&mut self, pipe: u64, sent: bool, cx: &Context<'_>) {
        if cx.profile.window_growth != WindowGrowth::CwndLimited {
            return;
        }
        let is_limited = pipe + cx.profile.mss.0 > self.control.window();
        let flight = self.in_flight().div_ceil(cx.profile.mss.0);
        let segments = if is_limited {
            FULL
        } else {
            flight.min(u64::from(FULL) - 1) as u16
        };
        let is_new = (self.una as u32).wrapping_sub(self.usage_until) as i32 >= 0;
        if is_limited || (sent && (is_new || segments > self.most_out)) {
            (self.most_out, self.usage_until) = (segments, self.max as u32);
        }
    }

    /// RFC 7661: a window that is not used says nothing about the path. It is used if it was full at
    /// some time since the flight began that is out; in slow start half of it is enough, because it
    /// doubles (Linux).
    #[inline]
    pub(super) fn uses_window(&self, cx: &Context<'_>) -> bool {
        let cwnd = self.control.window();
        cx.profile.window_growth != WindowGrowth::CwndLimited
            || self.most_out == FULL
            || (cwnd < self.control.ssthresh()
                && cwnd < 2 * u64::from(self.most_out) * cx.profile.mss.0)
    }

    /// An ACK of `acked` bytes, for the congestion control.
    #[inline]
    pub(super) fn news<'a>(&self, acked: u64, cx: &Context<'a>) -> Ack<'a> {
        Ack {
            now: cx.now,
            profile: cx.profile,
            acked,
            una: self.una,
            max: self.max,
            counted: None,
        }
    }

    /// Opens the window for `acked` bytes.
    #[inline]
    pub(crate) fn open(&mut self, acked: u64, cx: &Context<'_>) {
        let news = self.news(acked, cx);
        self.control.on_ack(&news);
    }

    /// An ACK of `acked` bytes opens no window.
    #[inline]
    pub(super) fn pass(&mut self, acked: u64, cx: &Context<'_>) {
        let news = self.news(acked, cx);
        self.control.on_recovery_ack(&news);
    }

    /// RFC 5681, section 4.1. Idle time counts as [`Profile::idle_since_ack`] says.
    #[inline(never)]
    pub(super) fn restart_after_idle(&mut self, cx: &Context<'_>) {
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

    // ---- what may be sent ----

    /// Bytes that may be out, whatever the congestion window.
    #[inline]
    pub(super) fn data_limit(&self, cx: &Context<'_>) -> u64 {
        cx.profile.peer_window().min(cx.profile.send_buffer.0)
    }

    /// The segment at `nxt`, if it ends by `limit` and may be sent: RFC 1122, section 4.2.3.4
    /// (Nagle and sender's silly window avoidance), as BSD words it.
    #[inline]
    pub(super) fn next_segment(
        &self,
        limit: u64,
        idle: bool,
        cx: &Context<'_>,
    ) -> Option<Candidate> {
        let mss = cx.profile.mss.0;
        let len = self.end.min(limit).saturating_sub(self.nxt).min(mss);
        // The common cases: a full segment of new data, and a window that is full.
        if len == mss && self.nxt >= self.max && !self.ecn.holds() {
            return Some((len, self.ends_at(self.nxt + len, cx)));
        }
        if len == 0 && self.nxt < self.end {
            return None;
        }
        let fin = self.ends_at(self.nxt + len, cx);
        let resending = self.nxt < self.max;
        if self.ecn.holds() && !resending {
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
            || 2 * len >= cx.profile.peer_window()
            || resending;
        may.then_some((len, fin))
    }

    /// Whether the segment at `nxt`, which ends at `end`, may carry the FIN.
    #[inline(always)]
    fn ends_at(&self, end: u64, cx: &Context<'_>) -> bool {
        let waits = cx.profile.strict_nagle && self.una != self.max && self.max <= self.end;
        self.closed && end == self.end && !waits
    }

    /// The piece `[seq, to)` of what is out, at most a segment; the FIN is its last byte.
    pub(super) fn piece(&self, seq: u64, to: u64, profile: &Profile) -> Candidate {
        let len = self.end.min(to).saturating_sub(seq).min(profile.mss.0);
        (len, self.closed && seq + len == self.end && to > self.end)
    }

    // ---- what leaves ----

    /// Sends `[seq, seq + len)` and perhaps a FIN; whether it is sent for the first time.
    #[inline(always)]
    pub(super) fn emit(
        &mut self,
        seq: u64,
        (len, fin): Candidate,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        let end = seq + len + u64::from(fin);
        let is_new = seq >= self.max;
        let mut flags = if fin { Flags::FIN } else { Flags::default() };
        // ECT and CWR on new data only (RFC 3168, sections 6.1.2 and 6.1.5).
        let agreed = len > 0 && self.agreed.has(Agreed::ECN);
        if agreed && is_new && self.ecn.take_cwr() {
            flags = flags.with(Flags::CWR);
        }
        let ect_on = cx.profile.ect_on;
        let ecn = if agreed
            && (is_new || ect_on.covers_retransmissions(self.agreed.has(Agreed::ACCURATE)))
        {
            self.code_point(cx)
        } else if len == 0 {
            self.code_point_of_control(cx)
        } else {
            Ecn::NotEct
        };
        let segment = receiver.segment(seq, len, flags, ecn);
        receiver.hand_over(segment, cx, out);
        receiver.on_ack_sent();
        self.control.on_send(seq, end, !is_new, cx.now);
        self.max = self.max.max(end);
        is_new
    }

    /// Sends an ACK without data, if one must go.
    #[inline(always)]
    pub(super) fn ack_if_due(
        &self,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        if receiver.wants_ack() {
            self.send_ack(receiver, cx, out);
        }
    }

    /// Sends an ACK without data.
    #[inline(never)]
    pub(crate) fn send_ack(
        &self,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        receiver.send_ack(self.nxt, self.code_point_of_control(cx), cx, out);
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

    /// The ECN field of an ACK, or of a FIN: as a rule not capable.
    #[inline]
    pub(crate) fn code_point_of_control(&self, cx: &Context<'_>) -> Ecn {
        let accurate = self.agreed.has(Agreed::ACCURATE);
        if self.agreed.has(Agreed::ECN) && cx.profile.ect_on.covers_control(accurate) {
            self.code_point(cx)
        } else {
            Ecn::NotEct
        }
    }

    /// The ECN field of a SYN that offers ECN, or of a SYN-ACK that agrees on it.
    #[inline]
    pub(crate) fn code_point_of_opening(&self, capable: bool, cx: &Context<'_>) -> Ecn {
        if capable && cx.profile.ect_on.covers_handshake() {
            self.code_point(cx)
        } else {
            Ecn::NotEct
        }
    }

    /// Accurate feedback was wanted, or is what the congestion control is made for, and the peer has
    /// classic ECN: what asks for the L4S service without it would harm others (RFC 9331, section 4.2).
    #[inline]
    pub(super) fn falls_back(&self, cx: &Context<'_>) -> bool {
        let wanted = match cx.profile.ecn_echo {
            EcnEcho::Accurate => true,
            EcnEcho::EachChange => false,
            EcnEcho::UntilCwr => cx.profile.congestion_control.echo() == EcnEcho::Accurate,
        };
        wanted && !self.agreed.has(Agreed::ACCURATE)
    }
}

/// What a sender has sent again, for the results.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) retransmissions: Retransmissions,
    pub(super) fast_retransmits: u32,
}

impl Counts {
    /// A segment with so much data was sent again.
    pub(super) fn on_resend(&mut self, len: u64, out: &mut impl Outbox) {
        let kind = if len > 0 {
            self.retransmissions.data += 1;
            SegmentKind::Data
        } else {
            self.retransmissions.fin += 1;
            SegmentKind::Fin
        };
        out.on_retransmission(kind);
    }
}

/// Segments sent more than once, and the time-outs behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retransmissions {
    /// SYN and SYN-ACK segments.
    pub syn: u32,
    /// FIN segments without data.
    pub fin: u32,
    /// Segments with data.
    pub data: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
}
