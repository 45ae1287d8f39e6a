//! What goes out: lost segments first, then new ones, as far as the window goes beyond what is on its way,
//! and as pacing allows.

use aqmlab_net::Time;

use super::RackSender;
use super::rules;
use super::spurious::NEW_SEGMENTS;
use super::undo::Spurious;
use crate::context::Context;
use crate::control::Restart;
use crate::profile::WindowCounts;
use crate::receiver::Receiver;
use crate::recovery::RecoveryState;
use crate::segment::Outbox;
use crate::sender::space::{Candidate, Space};

impl RackSender {
    /// Sends what window, pacing and Nagle's rule allow, and an ACK if one must go.
    #[inline(always)]
    pub(in crate::sender) fn output(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        // When all that was written has left, FIN included, only a repair has more to send.
        if !space.has_sent_all() || !space.is_open() {
            self.send(space, receiver, cx, out);
            self.log.apart = false;
        }
        space.ack_if_due(receiver, cx, out);
    }

    /// What follows is sent by a write.
    pub(in crate::sender) fn begin_write(&mut self) {
        self.log.apart = true;
    }

    #[inline(never)]
    fn send(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        if space.hold_until < Time::NEVER {
            return; // The next segment has its time.
        }
        if space.una == space.max && space.end > space.nxt {
            self.restart(space, cx);
        }
        let max = space.max;
        if self.sends_bursts(space, receiver) {
            self.send_burst(space, receiver, cx, out);
        } else {
            while self.send_one(space, receiver, cx, out) {}
        }
        let pipe = self.pipe(space, cx);
        space.note_usage(pipe, space.max > max, cx);
        if space.hold_until == Time::NEVER {
            self.note_application_limit(space, cx);
        }
        if space.max > max && space.is_open() {
            if self.rto_at == Time::NEVER {
                self.restart_rto(space, cx);
            }
            self.schedule_probe(space, true, cx);
        }
        self.set_timer(space, cx);
    }

    /// Nothing is out, and something is to be sent.
    #[inline(never)]
    fn restart(&mut self, space: &mut Space, cx: &Context<'_>) {
        if !cx.profile.congestion_control.owns_window() {
            if rules::applies(cx) {
                self.restart_as_linux(space, cx);
            } else {
                space.restart_after_idle(cx);
            }
            return;
        }
        let srtt = space.rto.smoothed(cx.profile);
        space.control.on_restart(&Restart {
            now: cx.now,
            profile: cx.profile,
            srtt,
            delivered: self.log.delivery.delivered,
        });
        self.set_pace(space, cx);
    }

    /// Whether all that can go is new data and a FIN, whose order nothing disturbs.
    #[inline]
    fn sends_bursts(&self, space: &Space, receiver: &Receiver) -> bool {
        space.is_open()
            && !self.is_reducing
            && space.sacks()
            && space.nxt == space.max
            && self.spurious == Spurious::Settled
            && !receiver.avoids_fast_path()
    }

    /// What [`send_one`](Self::send_one) does time after time where
    /// [`sends_bursts`](Self::sends_bursts) holds: what all segments would look up is looked up
    /// once.
    #[inline(always)]
    fn send_burst(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let (mss, cwnd) = (cx.profile.mss.0, space.control.window());
        let (edge, header) = (space.una + space.data_limit(cx), cx.profile.header.0);
        let mut pipe = self.pipe(space, cx);
        while pipe < cwnd {
            let small = self.nagle_lets_go(space, cx);
            let limit = edge.min(space.max.saturating_add(cwnd - pipe));
            let Some(allowed) = space.next_segment(limit, small, cx) else {
                return;
            };
            // A window that ends within a segment lets go of it whole.
            let whole = match allowed {
                (len, _) if len == mss => Some(allowed),
                _ => space.next_segment(edge, small, cx),
            };
            let Some((len, fin)) = whole else {
                return;
            };
            let seq = space.nxt;
            let end = seq + len + u64::from(fin);
            if let Some(next) = self.pace.wait(cx.now) {
                space.hold_until = next;
                return;
            }
            self.log.on_send(seq, end, pipe, cx.now);
            self.pace.on_send(len + header, cx.now);
            if len < mss {
                self.small_end = end;
            }
            space.nxt = end;
            self.emit(space, seq, (len, fin), receiver, cx, out);
            pipe += match cx.profile.window_counts {
                WindowCounts::Bytes => end - seq,
                WindowCounts::Packets => mss,
            };
        }
    }

    /// Sends a segment; false if none may go now.
    fn send_one(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        let (cwnd, pipe) = (space.control.window(), self.pipe(space, cx));
        let repairing = !space.is_open();
        let in_recovery = space.recovery_state == RecoveryState::Recovery;
        let small = self.nagle_lets_go(space, cx);
        let probing = match self.spurious {
            Spurious::Second => return false,
            Spurious::Probing(left) => left,
            _ => 0,
        };
        // What begins a recovery goes whatever the window (RFC 6675, section 5, step 4.3).
        let first = in_recovery && self.prr.out == 0;
        let hole = self.log.first_hole();
        let hole = hole.filter(|_| repairing && probing == 0);
        let linux = rules::applies(cx);
        let may = match hole {
            Some(_) if linux => pipe < cwnd,
            Some((seq, end)) => first || pipe + (end - seq) <= cwnd,
            None if probing > 0 && !linux => true,
            None => pipe < cwnd,
        };
        if !may {
            return probing > 0 && self.end_probing();
        }
        let room = if probing > 0 {
            u64::MAX
        } else {
            cwnd.saturating_sub(pipe)
        };
        if hole.is_none() && !space.may_send_new(room, small, cx) {
            return self.end_probing();
        }
        if let Some(next) = self.pace.wait(cx.now) {
            space.hold_until = next;
            if linux {
                self.put_off();
            }
            return false;
        }
        match hole {
            Some((seq, end)) => {
                self.resend(space, seq, end, receiver, cx, out);
                self.undo.on_resend(cx.now);
            }
            None => {
                self.send_new(space, small, receiver, cx, out);
                if probing > 0 {
                    self.spurious = match probing {
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
        let spurious = &mut self.spurious;
        let was = *spurious;
        match was {
            Spurious::Probing(NEW_SEGMENTS | u8::MAX) => *spurious = Spurious::Settled,
            Spurious::Probing(_) => *spurious = Spurious::Second,
            _ => {}
        }
        was != *spurious && *spurious == Spurious::Settled
    }

    /// Whether Nagle's rule lets a small segment go: with nothing out, or by Minshall's change with
    /// nothing small.
    fn nagle_lets_go(&mut self, space: &mut Space, cx: &Context<'_>) -> bool {
        let una = space.una;
        una == space.max || (cx.profile.minshall && self.small_end <= una)
    }

    /// Sends a new segment if the peer's window allows one; `small`: Nagle's rule does not hold it.
    pub(super) fn send_new(
        &mut self,
        space: &mut Space,
        small: bool,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        let limit = space.una + space.data_limit(cx);
        let Some((len, fin)) = space.next_segment(limit, small, cx) else {
            return false;
        };
        let (seq, pipe) = (space.nxt, self.pipe(space, cx));
        let end = seq + len + u64::from(fin);
        let bytes = len + cx.profile.header.0;
        let in_recovery = space.recovery_state == RecoveryState::Recovery;
        self.log.on_send(seq, end, pipe, cx.now);
        self.pace.on_send(bytes, cx.now);
        if in_recovery || self.is_reducing {
            self.prr.out += reduced_by(end - seq, cx);
        }
        if len < cx.profile.mss.0 {
            self.small_end = end;
        }
        space.nxt = end;
        self.emit_out_of_line(space, seq, (len, fin), receiver, cx, out);
        true
    }

    /// Sends the segment `[seq, end)` again.
    pub(super) fn resend(
        &mut self,
        space: &mut Space,
        seq: u64,
        end: u64,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let (len, fin) = space.piece(seq, end, cx.profile);
        let pipe = self.pipe(space, cx);
        let in_recovery = space.recovery_state == RecoveryState::Recovery;
        let is_oldest = seq <= space.una;
        self.log.on_resend(end, pipe, cx.now);
        self.pace.on_send(len + cx.profile.header.0, cx.now);
        if in_recovery {
            self.prr.out += reduced_by(end - seq, cx);
        }
        self.emit_out_of_line(space, seq, (len, fin), receiver, cx, out);
        if is_oldest {
            self.restart_rto(space, cx);
        }
    }

    /// The window allows more than the application has: samples show the application, not the path.
    fn note_application_limit(&mut self, space: &mut Space, cx: &Context<'_>) {
        let mss = cx.profile.mss.0;
        let (pipe, cwnd) = (self.pipe(space, cx), space.control.window());
        let waits = space.end - space.nxt.min(space.end);
        if waits < mss && pipe + mss <= cwnd && self.log.holes() == 0 {
            self.log.delivery.limit_by_application(pipe);
        }
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
            self.counts.on_resend(candidate.0, out);
        }
    }
}

/// What a segment of `len` bytes takes of what proportional rate reduction allows: Linux counts segments.
fn reduced_by(len: u64, cx: &Context<'_>) -> u64 {
    if rules::applies(cx) {
        cx.profile.mss.0
    } else {
        len
    }
}

impl Space {
    /// Whether a new segment may go that takes `room` bytes at most; `small`: Nagle's rule does not
    /// hold it.
    fn may_send_new(&self, room: u64, small: bool, cx: &Context<'_>) -> bool {
        let limit = (self.una + self.data_limit(cx)).min(self.max.saturating_add(room));
        self.next_segment(limit, small, cx).is_some()
    }
}
