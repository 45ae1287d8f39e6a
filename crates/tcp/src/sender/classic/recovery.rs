//! Fast retransmit and fast recovery, and what a time-out does: Tahoe, Reno (RFC 5681), NewReno (RFC 6582),
//! SACK (RFC 6675).

use aqmlab_net::Time;

use super::ClassicSender;
use crate::context::Context;
use crate::control::Cause;
use crate::profile::{
    EcnReaction, FastRetransmitGuard, NewRenoExit, NewRenoVariant, Recovery, RepeatedTimeout,
    SackAtTimeout,
};
use crate::receiver::Receiver;
use crate::recovery::RecoveryState;
use crate::segment::{Outbox, Segment};
use crate::sender::prr::Prr;
use crate::sender::space::Space;

/// Duplicate ACKs that mean a loss (RFC 5681, section 3.2).
pub(super) const DUP_THRESH: u32 = 3;

impl ClassicSender {
    /// Takes the SACK blocks of a segment; whether they report anything new.
    pub(super) fn note_sack(&mut self, space: &mut Space, segment: &Segment) -> bool {
        let (una, max) = (space.una.max(segment.ack), space.max);
        let mut news = false;
        for (from, to) in segment.options.sack_blocks() {
            let (from, to) = (Segment::unwrap_seq(from, una), Segment::unwrap_seq(to, una));
            // Impossible blocks are passed over; those below `una` (D-SACK) report no gap.
            if una <= from && from < to && to <= max {
                news |= self.repairs_mut().board.insert(from, to);
            }
        }
        news
    }

    /// RFC 6582, section 3.2, step 1; RFC 6675, section 5.1.
    pub(super) fn may_repair(&self, space: &Space, cx: &Context<'_>) -> bool {
        let scheme = space.scheme(cx);
        let guard = match scheme {
            Recovery::NewReno | Recovery::Sack | Recovery::SackPipe | Recovery::RackTlp => {
                FastRetransmitGuard::Always
            }
            Recovery::Tahoe | Recovery::Reno => cx.profile.fast_retransmit_guard,
        };
        let beyond = if scheme == Recovery::Sack {
            space.una >= space.recover
        } else {
            space.una > space.recover
        };
        match guard {
            FastRetransmitGuard::Off => true,
            FastRetransmitGuard::AfterTimeout => beyond || !self.timed_out,
            FastRetransmitGuard::Always => beyond,
        }
    }

    #[inline(never)]
    pub(super) fn on_dup_ack(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let mss = cx.profile.mss.0;
        let scheme = space.scheme(cx);
        self.dup_acks += 1;
        if self.dup_acks == 1 {
            self.limited = false;
        }
        if space.recovery_state == RecoveryState::Recovery {
            match scheme {
                Recovery::Tahoe | Recovery::Sack | Recovery::RackTlp => {}
                Recovery::Reno | Recovery::NewReno => self.inflation += mss as i64,
                Recovery::SackPipe => self.repairs_mut().board.pipe -= mss as i64,
            }
            return;
        }
        let una = space.una;
        let lost = match scheme {
            Recovery::Sack => {
                self.dup_acks >= DUP_THRESH || una < self.repairs_mut().board.lost_below(mss)
            }
            _ => self.dup_acks == DUP_THRESH,
        };
        if (lost || space.control.is_overdue(una, cx.now, false)) && self.may_repair(space, cx) {
            self.fast_retransmit(space, receiver, cx, out);
        }
    }

    /// RFC 5681, section 3.2, steps 2 and 3; RFC 6675, section 5, step 4. Tahoe goes back to slow
    /// start instead.
    #[inline(never)]
    pub(super) fn fast_retransmit(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let mss = cx.profile.mss.0;
        let scheme = space.scheme(cx);
        // The allowance of limited transmit does not count (RFC 5681, section 3.2, step 2), also
        // if what an earlier recovery had released took its place.
        let flight = if self.limited || (cx.profile.limited_transmit && space.nxt < space.end) {
            space.in_flight().saturating_sub(2 * mss)
        } else {
            space.in_flight()
        };
        let cwnd = space.cut_for_loss(flight, cx);
        self.repairs_mut().counts.fast_retransmits += 1;
        space.recover = space.max;
        self.timed_out = false;
        space.timed_at = Time::NEVER;
        self.partial = false;
        space.recovery_state = RecoveryState::Recovery;
        let lone = cx.profile.lone_fast_retransmit && scheme == Recovery::Reno;
        let window = if lone { space.control.ssthresh() } else { cwnd };
        space.control.set_window(window);
        match scheme {
            Recovery::Tahoe => {
                space.recovery_state = RecoveryState::Loss;
                space.control.set_window(mss);
                space.nxt = space.una;
            }
            Recovery::Reno | Recovery::NewReno => {
                self.inflation = i64::from(DUP_THRESH) * mss as i64;
            }
            Recovery::Sack | Recovery::SackPipe | Recovery::RackTlp => {
                let (una, pipe) = (space.una, space.in_flight() as i64);
                let board = &mut self.repairs_mut().board;
                board.begin(una);
                board.pipe = pipe - i64::from(DUP_THRESH) * mss as i64;
                self.repairs_mut().prr = Prr::default();
            }
        }
        self.resend_oldest(space, receiver, cx, out);
        space.arm(cx);
    }

    /// Whether the new ACK ends fast recovery: any does for Reno, for the others one that covers
    /// all that was out at its start.
    pub(super) fn ends_recovery(&self, space: &Space, cx: &Context<'_>) -> bool {
        space.scheme(cx) == Recovery::Reno || space.una >= space.recover
    }

    #[inline(never)]
    pub(super) fn leave_recovery(&mut self, space: &mut Space, flight: u64, cx: &Context<'_>) {
        let mss = cx.profile.mss.0;
        space.recovery_state = RecoveryState::Open;
        self.inflation = 0;
        match space.scheme(cx) {
            Recovery::NewReno if cx.profile.newreno_exit == NewRenoExit::FlightSize => {
                let most = flight.max(mss) + mss;
                if space.control.window() > most {
                    space.control.set_window(most);
                }
            }
            Recovery::SackPipe => self.repairs_mut().board.clear(),
            Recovery::Sack => self.end_reduction(space, cx),
            _ => {}
        }
    }

    /// RFC 6582, section 3.2, step 3: the next loss is repaired, what left the network deflates
    /// the window.
    #[inline(never)]
    pub(super) fn on_partial_ack(
        &mut self,
        space: &mut Space,
        acked: u64,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let mss = cx.profile.mss.0 as i64;
        space.pass(acked, cx);
        let scheme = space.scheme(cx);
        match scheme {
            Recovery::SackPipe => self.repairs_mut().board.pipe -= 2 * mss,
            Recovery::Sack => {}
            _ => {
                self.inflation -= acked as i64;
                if acked as i64 >= mss {
                    self.inflation += mss;
                }
                let least = mss - space.control.window() as i64;
                self.inflation = self.inflation.max(least);
                self.resend_oldest(space, receiver, cx, out);
            }
        }
        let restarts = cx.profile.newreno_variant == NewRenoVariant::SlowButSteady;
        if scheme != Recovery::NewReno || restarts || !self.partial {
            space.arm(cx);
        }
        self.partial = true;
    }

    /// The retransmission timer has expired: everything from the oldest byte on goes again.
    pub(super) fn go_back(&mut self, space: &mut Space, cx: &Context<'_>) {
        if space.recovery_state == RecoveryState::Recovery {
            self.end_reduction(space, cx);
        }
        let outstanding = space.outstanding();
        let una = space.una;
        let repairs = self.repairs_mut();
        let repeated = repairs.timed_out_at == una;
        repairs.timed_out_at = una;
        // RFC 2018, section 8: old reports may no longer be true; data that the peer has and does not
        // acknowledge is not.
        if cx.profile.sack_at_timeout == SackAtTimeout::Forget || repairs.board.skip(una) > una {
            repairs.board.clear();
        }
        if cx.profile.lone_fast_retransmit {
            let inflated = space.control.window() as i64 + self.inflation;
            space.control.set_window(inflated as u64);
        }
        self.inflation = 0;
        if !repeated || cx.profile.ssthresh_at_repeated_timeout == RepeatedTimeout::Reduced {
            space.cut(outstanding, Cause::Timeout, cx);
        }
        if cx.profile.ecn_reaction == EcnReaction::Fractional {
            space.cut_until = una;
        }
        space.control.set_window(cx.profile.mss.0);
        space.recovery_state = RecoveryState::Loss;
        space.recover = space.max;
        self.timed_out = true;
        self.dup_acks = 0;
        space.nxt = space.una;
    }
}

impl Space {
    /// The scheme in use: SACK without a peer that sends blocks is NewReno.
    fn scheme(&self, cx: &Context<'_>) -> Recovery {
        match cx.profile.recovery {
            Recovery::Sack | Recovery::SackPipe | Recovery::RackTlp if !self.sacks() => {
                Recovery::NewReno
            }
            scheme => scheme,
        }
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
}
