//! What such a sender sends: lost segments first, then new ones, as far as the window goes beyond what
//! is on its way, and as pacing allows.

use aqmlab_net::Time;

use super::undo::Spurious;
use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::profile::{Pacing, PacingBurst};
use crate::recovery::RecoveryState;
use crate::segment::Outbox;

/// Linux's factors of the pacing rate: while the window is below half of ssthresh, and later.
const EARLY: f64 = 2.0;
const LATER: f64 = 1.2;

impl Endpoint {
    /// Whether such a sender repairs losses: even if all was sent that was written.
    #[inline]
    pub(crate) fn repairs_by_records(&self) -> bool {
        self.keeps_records && self.recovery_state != RecoveryState::Open
    }

    /// Sends what window, pacing and Nagle's rule allow.
    #[inline(never)]
    pub(crate) fn tracked_output(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        if self.hold_until < Time::NEVER {
            return; // The next segment has its time.
        }
        if self.una == self.max
            && self.end > self.nxt
            && !cx.profile.congestion_control.owns_window()
        {
            self.restart_after_idle(cx);
        }
        let max = self.max;
        if self.sends_in_order() {
            #[cfg(test)]
            self.send_both_ways_tracked(cx, out);
            #[cfg(not(test))]
            self.send_run(cx, out);
        } else {
            while self.send_one(cx, out) {}
        }
        if self.hold_until == Time::NEVER {
            self.note_application_limit(cx);
        }
        if self.max > max && self.recovery_state == RecoveryState::Open {
            if self.tracked().rto_at == Time::NEVER {
                self.restart_rto(cx);
            }
            self.schedule_probe(cx);
        }
        self.set_timer(cx);
    }

    /// Whether all that can go is new data and a FIN, whose order nothing disturbs.
    #[inline]
    fn sends_in_order(&self) -> bool {
        let cold = self.cold.as_ref();
        let tracked = cold.and_then(|cold| cold.tracked.as_ref());
        self.recovery_state == RecoveryState::Open
            && self.sacking
            && self.nxt == self.max
            && tracked.is_some_and(|tracked| tracked.spurious == Spurious::Settled)
    }

    /// What [`send_one`](Self::send_one) does time after time where
    /// [`sends_in_order`](Self::sends_in_order) holds: what all segments would look up is looked up
    /// once.
    #[inline(always)]
    fn send_run(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let (mss, cwnd) = (cx.profile.mss.0, self.control.window());
        let (edge, header) = (self.una + self.data_limit(cx), cx.profile.header.0);
        let mut pipe = self.pipe(mss);
        while pipe < cwnd {
            let small = self.nagle_lets_go(cx);
            let limit = edge.min(self.max.saturating_add(cwnd - pipe));
            let Some(allowed) = self.next_segment(limit, small, cx) else {
                return;
            };
            // A window that ends within a segment lets go of it whole.
            let whole = match allowed {
                (len, _) if len == mss => Some(allowed),
                _ => self.next_segment(edge, small, cx),
            };
            let Some((len, fin)) = whole else {
                return;
            };
            let seq = self.nxt;
            let end = seq + len + u64::from(fin);
            let tracked = self.tracked();
            if let Some(next) = tracked.pace.wait(cx.now) {
                self.hold_until = next;
                return;
            }
            tracked.flight.on_send(seq, end, pipe, cx.now);
            tracked.pace.on_send(len + header, cx.now);
            if len < mss {
                tracked.small_end = end;
            }
            self.nxt = end;
            self.emit(seq, len, fin, cx, out);
            pipe += end - seq;
        }
    }

    /// Sends a segment; false if none may go now.
    fn send_one(&mut self, cx: &Context<'_>, out: &mut impl Outbox) -> bool {
        let (cwnd, pipe) = (self.control.window(), self.pipe(cx.profile.mss.0));
        let repairing = self.recovery_state != RecoveryState::Open;
        let in_recovery = self.recovery_state == RecoveryState::Recovery;
        let small = self.nagle_lets_go(cx);
        let tracked = self.tracked();
        let probing = match tracked.spurious {
            Spurious::Second => return false,
            Spurious::Probing(left) => left,
            _ => 0,
        };
        // What begins a recovery goes whatever the window (RFC 6675, section 5, step 4.3).
        let first = in_recovery && tracked.prr.out == 0;
        let hole = tracked.flight.first_hole();
        let hole = hole.filter(|_| repairing && probing == 0);
        let may = match hole {
            Some((seq, end)) => first || pipe + (end - seq) <= cwnd,
            None if probing > 0 => true,
            None => pipe < cwnd,
        };
        if !may {
            return false;
        }
        let room = if probing > 0 {
            u64::MAX
        } else {
            cwnd.saturating_sub(pipe)
        };
        if hole.is_none() && !self.may_send_new(room, small, cx) {
            return self.end_probing();
        }
        if let Some(next) = self.tracked().pace.wait(cx.now) {
            self.hold_until = next;
            return false;
        }
        match hole {
            Some((seq, end)) => {
                self.resend_tracked(seq, end, cx, out);
                self.tracked().undo.on_resend(cx.now);
            }
            None => {
                self.send_new_tracked(small, cx, out);
                if probing > 0 {
                    self.tracked().spurious = match probing {
                        1 => Spurious::Second,
                        left => Spurious::Probing(left - 1),
                    };
                }
            }
        }
        true
    }

    /// No more new data may go: if some has, the second ACK decides; else the repair is an ordinary
    /// one, and begins (true).
    fn end_probing(&mut self) -> bool {
        let spurious = &mut self.tracked().spurious;
        let was = *spurious;
        match was {
            Spurious::Probing(1) => *spurious = Spurious::Second,
            Spurious::Probing(_) => *spurious = Spurious::Settled,
            _ => {}
        }
        was != *spurious && *spurious == Spurious::Settled
    }

    /// Whether Nagle's rule lets a small segment go: with nothing out, or by Minshall's change with
    /// nothing small.
    fn nagle_lets_go(&mut self, cx: &Context<'_>) -> bool {
        let una = self.una;
        una == self.max || (cx.profile.minshall && self.tracked().small_end <= una)
    }

    /// Whether a new segment may go that takes `room` bytes at most; `small`: Nagle's rule does not
    /// hold it.
    fn may_send_new(&self, room: u64, small: bool, cx: &Context<'_>) -> bool {
        let limit = (self.una + self.data_limit(cx)).min(self.max.saturating_add(room));
        self.next_segment(limit, small, cx).is_some()
    }

    /// Sends a new segment if the peer's window allows one; `small`: Nagle's rule does not hold it.
    pub(super) fn send_new_tracked(
        &mut self,
        small: bool,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        let limit = self.una + self.data_limit(cx);
        let Some((len, fin)) = self.next_segment(limit, small, cx) else {
            return false;
        };
        let (seq, pipe) = (self.nxt, self.pipe(cx.profile.mss.0));
        let end = seq + len + u64::from(fin);
        let bytes = len + cx.profile.header.0;
        let in_recovery = self.recovery_state == RecoveryState::Recovery;
        let tracked = self.tracked();
        tracked.flight.on_send(seq, end, pipe, cx.now);
        tracked.pace.on_send(bytes, cx.now);
        if in_recovery {
            tracked.prr.out += end - seq;
        }
        if len < cx.profile.mss.0 {
            tracked.small_end = end;
        }
        self.nxt = end;
        self.emit_out_of_line(seq, len, fin, cx, out);
        true
    }

    /// Sends the segment `[seq, end)` again.
    pub(super) fn resend_tracked(
        &mut self,
        seq: u64,
        end: u64,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let (len, fin) = self.piece(seq, end, cx.profile);
        let pipe = self.pipe(cx.profile.mss.0);
        let in_recovery = self.recovery_state == RecoveryState::Recovery;
        let is_oldest = seq <= self.una;
        let tracked = self.tracked();
        tracked.flight.on_resend(end, pipe, cx.now);
        tracked.pace.on_send(len + cx.profile.header.0, cx.now);
        if in_recovery {
            tracked.prr.out += end - seq;
        }
        self.emit_out_of_line(seq, len, fin, cx, out);
        if is_oldest {
            self.restart_rto(cx);
        }
    }

    /// The window allows more than the application has: samples tell of it, not of the path.
    fn note_application_limit(&mut self, cx: &Context<'_>) {
        let mss = cx.profile.mss.0;
        let (pipe, cwnd) = (self.pipe(mss), self.control.window());
        let waits = self.end - self.nxt.min(self.end);
        let tracked = self.tracked();
        if waits < mss && pipe + mss <= cwnd && tracked.flight.holes() == 0 {
            tracked.flight.limit_by_application(pipe);
        }
    }

    /// The rate follows the window: that of the congestion control, or Linux's.
    pub(crate) fn set_pace(&mut self, cx: &Context<'_>) {
        let srtt = self.rto.smoothed(cx.profile);
        let own = self.control.pacing_rate(cx.profile, srtt);
        let rate = own.or_else(|| match (cx.profile.pacing, srtt) {
            (Pacing::Linux, Some(srtt)) => {
                let mss = cx.profile.mss.0;
                let wire = (mss + cx.profile.header.0) as f64 / mss as f64;
                let (cwnd, ssthresh) = (self.control.window(), self.control.ssthresh());
                let factor = if cwnd < ssthresh / 2 { EARLY } else { LATER };
                let window = cwnd.max(self.in_flight()) as f64;
                Some(factor * window * wire / srtt.as_secs_f64())
            }
            _ => None,
        });
        let followers = match (rate, cx.profile.pacing_burst) {
            (Some(rate), PacingBurst::Linux) => {
                let len = cx.profile.mss.0 + cx.profile.header.0;
                let min_rtt = self.tracked().rack.min_rtt();
                self.control.linux_burst(rate, min_rtt, len) - 1
            }
            _ => 0,
        };
        self.tracked().pace.set(rate, followers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::tests::Copying;

    impl Endpoint {
        /// In the tests of this crate whatever goes in a run goes one by one as well: what is sent and
        /// what is left are equal.
        pub(crate) fn send_both_ways_tracked(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
            let (mut other, mut expected) = (self.clone(), Vec::new());
            while other.send_one(cx, &mut expected) {}
            let mut copying = Copying::new(out);
            self.send_run(cx, &mut copying);
            assert_eq!(copying.sent, expected);
            assert_eq!(format!("{self:?}"), format!("{other:?}"));
        }
    }
}
