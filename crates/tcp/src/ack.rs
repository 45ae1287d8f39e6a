//! What an ACK does: round trips, the window, loss recovery.

use aqmlab_net::Time;

use crate::context::Context;
use crate::control::{Ack, Cause, Congestion};
use crate::endpoint::Endpoint;
use crate::profile::{
    BackoffEnd, EcnReaction, FastRetransmitGuard, NewRenoExit, NewRenoVariant, Recovery,
    RepeatedTimeout, SackAtTimeout, WindowGrowth,
};
use crate::prr::Prr;
use crate::recovery::RecoveryState;
use crate::segment::{Flags, Outbox, RoundTrip, Segment, Stamps};

/// Duplicate ACKs that mean a loss (RFC 5681, section 3.2).
pub(crate) const DUP_THRESH: u32 = 3;

impl Endpoint {
    /// Takes the acknowledgement of a segment; whether the segment's data may be taken too.
    pub(crate) fn on_ack(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        let ack = segment.ack;
        if !segment.flags.has(Flags::ACK) {
            return false;
        }
        if ack > self.max {
            // It acknowledges what was never sent: RFC 9293, section 3.10.7.4.
            self.receiver.ack_at_once();
            return false;
        }
        if self.keeps_records {
            self.on_tracked_ack(segment, cx, out);
            return true;
        }
        let echo = self.ecn.agreed && segment.flags.has(Flags::ECE);
        let before = self.before_ack(segment.options.sack_blocks().len() > 0, cx);
        let news = self.sacking && self.note_sack(segment);
        // The reaction comes before the opening (and takes its place): the flight that is halved
        // still contains what this ACK covers.
        if echo {
            self.on_echo(ack, cx);
        } else if ack > self.una && cx.profile.ecn_reaction == EcnReaction::Fractional {
            self.ecn.hold = false;
        }
        let pure = segment.len == 0 && !segment.flags.has(Flags::FIN);
        if ack > self.una {
            self.on_other_new_ack(segment, echo, cx, out);
        } else if ack == self.una && self.una < self.max && (pure || news) {
            // RFC 6675, section 2: with SACK a duplicate must tell something new.
            if news || !self.sacking {
                self.on_dup_ack(cx, out);
            }
        } else {
            self.dup_acks = 0;
        }
        if let Some(before) = before
            && self.recovery_state == RecoveryState::Recovery
        {
            self.reduce(before, cx);
        }
        if self.ecn.hold && self.retransmit_at == Time::NEVER {
            self.arm(cx);
        }
        true
    }

    /// [`on_new_ack`](Self::on_new_ack) where it is not worth its space.
    #[inline(never)]
    pub(crate) fn on_other_new_ack(
        &mut self,
        segment: &Segment,
        echo: bool,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        self.on_new_ack(segment, echo, cx, out);
    }

    #[inline(always)]
    pub(crate) fn on_new_ack(
        &mut self,
        segment: &Segment,
        echo: bool,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let ack = segment.ack;
        let (acked, flight) = (self.newly_acked(ack, cx), self.in_flight());
        let predicted = self.is_predicted(segment, cx);
        let armed_before = cx.profile.backoff_ends_with == BackoffEnd::NewAckOnceArmed;
        if armed_before {
            self.arm(cx);
        }
        self.measure(segment, cx, out);
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        if self.sacking
            && let Some(cold) = &mut self.cold
        {
            cold.board.advance(ack);
        }
        let may_open = !echo || cx.profile.ecn_reaction == EcnReaction::Kame;
        let mut opens = may_open && !predicted && self.uses_window(flight, cx);
        if self.recovery_state == RecoveryState::Recovery {
            if !self.ends_recovery(cx) {
                self.on_partial_ack(acked, cx, out);
                return;
            }
            opens &= cx.profile.recovery_exit_opens_window
                && (!self.sacking || cx.profile.sack_in_recovery_only);
            self.leave_recovery(self.in_flight(), cx);
        } else if self.recovery_state == RecoveryState::Loss && ack >= self.recover {
            self.recovery_state = RecoveryState::Open;
        }
        self.dup_acks = 0;
        if opens {
            self.open(acked, cx);
        } else {
            let news = self.news(acked, cx);
            self.control.on_recovery_ack(&news);
        }
        if self.una == self.max {
            self.retransmit_at = Time::NEVER;
        } else {
            if !armed_before {
                self.arm(cx);
            }
            if self.control.is_overdue(self.una, cx.now, true) && self.may_repair(cx) {
                self.fast_retransmit(cx, out);
            }
        }
    }

    /// Bytes that an ACK acknowledges for the first time.
    #[inline]
    fn newly_acked(&self, ack: u64, cx: &Context<'_>) -> u64 {
        match &self.cold {
            Some(cold) if self.sacking && cx.profile.sack_at_timeout == SackAtTimeout::Keep => {
                cold.board.missing_between(self.una, ack)
            }
            _ => ack - self.una,
        }
    }

    /// BSD's header prediction: an in-order pure ACK takes a path that never opens the window once
    /// that exceeds the peer's.
    #[inline(always)]
    fn is_predicted(&self, segment: &Segment, cx: &Context<'_>) -> bool {
        cx.profile.window_growth == WindowGrowth::HeaderPrediction
            && segment.len == 0
            && self.nxt == self.max
            && self.control.window() >= self.peer_window(cx)
            && self.recovery_state != RecoveryState::Recovery
    }

    /// RFC 7661: a window that is not used tells nothing about the path. In slow start half of it
    /// is enough, because it doubles (Linux).
    #[inline]
    pub(crate) fn uses_window(&self, flight: u64, cx: &Context<'_>) -> bool {
        if cx.profile.window_growth != WindowGrowth::CwndLimited {
            return true;
        }
        let cwnd = self.control.window();
        flight + cx.profile.mss.0 > cwnd || (cwnd < self.control.ssthresh() && 2 * flight > cwnd)
    }

    #[inline]
    pub(crate) fn news<'a>(&self, acked: u64, cx: &Context<'a>) -> Ack<'a> {
        Ack {
            now: cx.now,
            profile: cx.profile,
            acked,
            una: self.una,
            max: self.max,
        }
    }

    /// Opens the window for `acked` bytes.
    #[inline]
    pub(crate) fn open(&mut self, acked: u64, cx: &Context<'_>) {
        let news = self.news(acked, cx);
        self.control.on_ack(&news);
    }

    // ---- round trips ----

    #[inline(always)]
    fn measure(&mut self, segment: &Segment, cx: &Context<'_>, out: &mut impl Outbox) {
        let stamps = if self.stamping && cx.profile.stamps() == Some(Stamps::Rfc7323) {
            segment.options.timestamps()
        } else {
            None
        };
        let sent = if let Some(stamps) = stamps {
            let passed = cx.host.millis(cx.now).wrapping_sub(stamps.echo);
            Some(cx.now.saturating_sub(Time::from_millis(u64::from(passed))))
        } else {
            self.take_timed(segment.ack)
        };
        if let Some(sent) = sent {
            self.rto.sample(cx.profile, cx.host, sent, cx.now);
            let time = cx.now - sent;
            out.on_round_trip(&RoundTrip {
                time,
                smoothed: self.rto.smoothed(cx.profile).unwrap_or(time),
                cwnd: self.cwnd(),
            });
        }
        if cx.profile.backoff_ends_with != BackoffEnd::Sample {
            self.rto.end_backoff(cx.profile);
        }
    }

    /// When the segment was sent that is timed, if this acknowledges it: none is timed any more.
    #[inline(always)]
    pub(crate) fn take_timed(&mut self, ack: u64) -> Option<Time> {
        let is_timed = self.timed_at < Time::NEVER && ack > self.timed_seq;
        is_timed.then(|| std::mem::replace(&mut self.timed_at, Time::NEVER))
    }

    // ---- loss recovery ----

    /// The scheme in use: SACK without a peer that sends blocks is NewReno.
    fn scheme(&self, cx: &Context<'_>) -> Recovery {
        match cx.profile.recovery {
            Recovery::Sack | Recovery::SackPipe | Recovery::RackTlp if !self.sacking => {
                Recovery::NewReno
            }
            scheme => scheme,
        }
    }

    /// Takes the SACK blocks of a segment; whether they tell anything new.
    fn note_sack(&mut self, segment: &Segment) -> bool {
        let (una, max) = (self.una.max(segment.ack), self.max);
        let mut news = false;
        for (from, to) in segment.options.sack_blocks() {
            let (from, to) = (Segment::unwrap_seq(from, una), Segment::unwrap_seq(to, una));
            // Blocks that cannot be are passed over; those below `una` (D-SACK) tell of no gap.
            if una <= from && from < to && to <= max {
                news |= self.cold_mut().board.insert(from, to);
            }
        }
        news
    }

    /// RFC 6582, section 3.2, step 1; RFC 6675, section 5.1.
    fn may_repair(&self, cx: &Context<'_>) -> bool {
        let scheme = self.scheme(cx);
        let guard = match scheme {
            Recovery::NewReno | Recovery::Sack | Recovery::SackPipe | Recovery::RackTlp => {
                FastRetransmitGuard::Always
            }
            Recovery::Tahoe | Recovery::Reno => cx.profile.fast_retransmit_guard,
        };
        let beyond = if scheme == Recovery::Sack {
            self.una >= self.recover
        } else {
            self.una > self.recover
        };
        match guard {
            FastRetransmitGuard::Off => true,
            FastRetransmitGuard::AfterTimeout => beyond || !self.timed_out,
            FastRetransmitGuard::Always => beyond,
        }
    }

    #[inline(never)]
    fn on_dup_ack(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let mss = cx.profile.mss.0;
        let scheme = self.scheme(cx);
        self.dup_acks += 1;
        if self.dup_acks == 1 {
            self.limited = false;
        }
        if self.recovery_state == RecoveryState::Recovery {
            match scheme {
                Recovery::Tahoe | Recovery::Sack | Recovery::RackTlp => {}
                Recovery::Reno | Recovery::NewReno => self.inflation += mss as i64,
                Recovery::SackPipe => self.cold_mut().board.pipe -= mss as i64,
            }
            return;
        }
        let una = self.una;
        let lost = match scheme {
            Recovery::Sack => {
                self.dup_acks >= DUP_THRESH || una < self.cold_mut().board.lost_below(mss)
            }
            _ => self.dup_acks == DUP_THRESH,
        };
        if (lost || self.control.is_overdue(una, cx.now, false)) && self.may_repair(cx) {
            self.fast_retransmit(cx, out);
        }
    }

    /// RFC 5681, section 3.2, steps 2 and 3; RFC 6675, section 5, step 4. Tahoe goes back to slow
    /// start instead.
    #[inline(never)]
    fn fast_retransmit(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let mss = cx.profile.mss.0;
        let scheme = self.scheme(cx);
        // The allowance of limited transmit does not count (RFC 5681, section 3.2, step 2), also
        // if what an earlier recovery had released took its place.
        let flight = if self.limited || (cx.profile.limited_transmit && self.nxt < self.end) {
            self.in_flight().saturating_sub(2 * mss)
        } else {
            self.in_flight()
        };
        let cwnd = self.cut_for_loss(flight, cx);
        self.cold_mut().fast_retransmits += 1;
        self.recover = self.max;
        self.timed_out = false;
        self.timed_at = Time::NEVER;
        self.partial = false;
        self.recovery_state = RecoveryState::Recovery;
        let lone = cx.profile.lone_fast_retransmit && scheme == Recovery::Reno;
        let window = if lone { self.ssthresh() } else { cwnd };
        self.control.set_window(window);
        match scheme {
            Recovery::Tahoe => {
                self.recovery_state = RecoveryState::Loss;
                self.control.set_window(mss);
                self.nxt = self.una;
            }
            Recovery::Reno | Recovery::NewReno => {
                self.inflation = i64::from(DUP_THRESH) * mss as i64;
            }
            Recovery::Sack | Recovery::SackPipe | Recovery::RackTlp => {
                let (una, pipe) = (self.una, self.in_flight() as i64);
                let board = &mut self.cold_mut().board;
                board.begin(una);
                board.pipe = pipe - i64::from(DUP_THRESH) * mss as i64;
                self.cold_mut().prr = Prr::default();
            }
        }
        self.resend_oldest(cx, out);
        self.arm(cx);
    }

    /// The window that a loss leaves; the present one if an echo has cut it for the same data.
    pub(crate) fn cut_for_loss(&mut self, flight: u64, cx: &Context<'_>) -> u64 {
        if self.ecn.cut_by_echo && self.una <= self.ecn.cut_until {
            return self.control.window();
        }
        self.cut(flight, Cause::Loss, cx)
    }

    /// A congestion event: ssthresh falls, and echoes of this window are ignored. Returns the
    /// window that goes with it.
    pub(crate) fn cut(&mut self, flight: u64, cause: Cause, cx: &Context<'_>) -> u64 {
        let cwnd = self.control.on_congestion(&Congestion {
            now: cx.now,
            profile: cx.profile,
            flight,
            window: self.control.window().min(self.peer_window(cx)),
            cause,
        });
        self.ecn.cut_until = self.max;
        self.ecn.cut_by_echo = false;
        self.ecn.cwr_pending = self.ecn.agreed && !self.ecn.accurate;
        cwnd
    }

    /// RFC 3168, section 6.1.2: an echo halves the window, at most once per window of data.
    pub(crate) fn on_echo(&mut self, ack: u64, cx: &Context<'_>) {
        if ack <= self.ecn.cut_until {
            return;
        }
        let (window, mss) = (self.control.window(), cx.profile.mss.0);
        let reaction = cx.profile.ecn_reaction;
        if reaction == EcnReaction::Kame && window < 2 * mss {
            return;
        }
        let fractional = reaction == EcnReaction::Fractional;
        if window <= mss && !fractional {
            self.ecn.hold = reaction == EcnReaction::Rfc3168;
            self.ecn.cut_until = self.max;
            self.ecn.cwr_pending = !self.ecn.accurate;
            return;
        }
        let cwnd = self.cut(self.in_flight(), Cause::Echo, cx);
        self.ecn.cut_by_echo = true;
        self.ecn.hold = fractional && window < 2 * mss;
        self.control.set_window(cwnd);
    }

    /// The congestion control answers the echo itself, and the next new data says so once per window of
    /// data: a classic receiver echoes until then (RFC 8257, section 3.3, which leaves CWR as it is in
    /// RFC 3168).
    pub(crate) fn answer_echo(&mut self, ack: u64) {
        if !self.ecn.accurate && ack > self.ecn.cut_until {
            self.ecn.cut_until = self.max;
            self.ecn.cwr_pending = true;
        }
    }

    /// Whether the new ACK ends fast recovery: any does for Reno, for the others one that covers
    /// all that was out at its start.
    fn ends_recovery(&self, cx: &Context<'_>) -> bool {
        self.scheme(cx) == Recovery::Reno || self.una >= self.recover
    }

    #[inline(never)]
    fn leave_recovery(&mut self, flight: u64, cx: &Context<'_>) {
        let mss = cx.profile.mss.0;
        self.recovery_state = RecoveryState::Open;
        self.inflation = 0;
        match self.scheme(cx) {
            Recovery::NewReno if cx.profile.newreno_exit == NewRenoExit::FlightSize => {
                let most = flight.max(mss) + mss;
                if self.control.window() > most {
                    self.control.set_window(most);
                }
            }
            Recovery::SackPipe => self.cold_mut().board.clear(),
            Recovery::Sack => self.end_reduction(cx),
            _ => {}
        }
    }

    /// RFC 6582, section 3.2, step 3: the next loss is repaired, what left the network deflates
    /// the window.
    #[inline(never)]
    fn on_partial_ack(&mut self, acked: u64, cx: &Context<'_>, out: &mut impl Outbox) {
        let mss = cx.profile.mss.0 as i64;
        let news = self.news(acked, cx);
        self.control.on_recovery_ack(&news);
        let scheme = self.scheme(cx);
        match scheme {
            Recovery::SackPipe => self.cold_mut().board.pipe -= 2 * mss,
            Recovery::Sack => {}
            _ => {
                self.inflation -= acked as i64;
                if acked as i64 >= mss {
                    self.inflation += mss;
                }
                let least = mss - self.control.window() as i64;
                self.inflation = self.inflation.max(least);
                self.resend_oldest(cx, out);
            }
        }
        let restarts = cx.profile.newreno_variant == NewRenoVariant::SlowButSteady;
        if scheme != Recovery::NewReno || restarts || !self.partial {
            self.arm(cx);
        }
        self.partial = true;
    }

    /// FlightSize when the timer expires. In fast recovery, what arrived beyond a hole has left the
    /// network, and the sender has sent new data in its place: counted in, it would raise ssthresh
    /// with every time-out that ends a recovery. The window that recovery leaves bounds what is out
    /// ("no more than" FlightSize / 2: RFC 5681, section 3.1, equation 4).
    fn outstanding(&self) -> u64 {
        match self.recovery_state {
            RecoveryState::Recovery => self.in_flight().min(self.control.window()),
            RecoveryState::Open | RecoveryState::Loss => self.in_flight(),
        }
    }

    /// The retransmission timer has expired: everything from the oldest byte on goes again.
    pub(crate) fn go_back(&mut self, cx: &Context<'_>) {
        if self.recovery_state == RecoveryState::Recovery {
            self.end_reduction(cx);
        }
        let outstanding = self.outstanding();
        let una = self.una;
        let cold = self.cold_mut();
        let repeated = cold.timed_out_at == una;
        cold.timed_out_at = una;
        // RFC 2018, section 8: what was told may no longer be true; what the peer has and does not
        // acknowledge is not.
        if cx.profile.sack_at_timeout == SackAtTimeout::Forget || cold.board.skip(una) > una {
            cold.board.clear();
        }
        if cx.profile.lone_fast_retransmit {
            let inflated = self.control.window() as i64 + self.inflation;
            self.control.set_window(inflated as u64);
        }
        self.inflation = 0;
        if !repeated || cx.profile.ssthresh_at_repeated_timeout == RepeatedTimeout::Reduced {
            self.cut(outstanding, Cause::Timeout, cx);
        }
        if cx.profile.ecn_reaction == EcnReaction::Fractional {
            self.ecn.cut_until = una;
        }
        self.control.set_window(cx.profile.mss.0);
        self.recovery_state = RecoveryState::Loss;
        self.recover = self.max;
        self.timed_out = true;
        self.dup_acks = 0;
        self.nxt = self.una;
    }
}
