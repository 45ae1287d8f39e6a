//! What an ACK means for losses, marks and the window, in the order in which Linux asks: the ends of
//! states first, then what is to be taken back, then losses, then marks. One point, `recover`, ends a
//! reduction for a mark, a recovery and the repair after a time-out alike.

use std::cell::Cell;

use aqmlab_net::Time;

use super::RackSender;
use super::rules::{self, DUP_THRESH};
use super::undo::{Spurious, Undo};
use crate::context::Context;
use crate::control::{Ack, Cause, CongestionControlKind};
use crate::profile::{Frto, RateReduction};
use crate::recovery::RecoveryState;
use crate::sender::prr::Prr;
use crate::sender::space::Space;

/// What an ACK says beside its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// The oldest byte that was not acknowledged before it.
    pub(super) from: u64,
    pub(super) advances: bool,
    /// It echoes a mark that the stack answers.
    pub(super) echo: bool,
    /// It advances nothing, and without SACK stands for a segment that has arrived.
    pub(super) duplicate: bool,
}

/// Half and a quarter of a window, each rounded down to whole segments.
fn three_quarters(window: u64, cx: &Context<'_>) -> u64 {
    let mss = cx.profile.mss.0;
    (window / mss / 2 + window / mss / 4) * mss
}

impl RackSender {
    /// Segments that an ACK delivers. Without SACK each duplicate ACK has delivered one, and the ACK that
    /// closes the gap delivers the rest. `had`: duplicate ACKs before.
    pub(super) fn count_arrived(
        &mut self,
        space: &Space,
        had: u32,
        advances: bool,
        cx: &Context<'_>,
    ) {
        let news = &self.log.news;
        self.arrived = if space.sacks() {
            news.segments + news.duplicates
        } else if advances {
            let rest = news.segments.saturating_sub(u64::from(had));
            rest.max(news.segments.min(1))
        } else if space.recovery_state == RecoveryState::Recovery && space.una >= space.recover {
            0 // A recovery is held, and duplicates do not count.
        } else {
            u64::from(self.dup_acks.saturating_sub(had))
        };
        self.log.recount(self.arrived * cx.profile.mss.0, cx.now);
    }

    /// Losses, marks and the states that go with them.
    pub(super) fn take_as_linux(&mut self, space: &mut Space, mut said: Said, cx: &Context<'_>) {
        if said.echo {
            self.undo.forbid();
        }
        self.end_reduction(space, cx);
        let mut repairs = space.recovery_state;
        if repairs == RecoveryState::Recovery && space.una >= space.recover {
            self.dup_acks = 0;
            if !self.leaves(space, said.advances, cx) {
                return;
            }
            repairs = RecoveryState::Open;
        }
        match repairs {
            RecoveryState::Recovery => {
                if said.advances && cx.profile.undo && self.is_delayed(space) {
                    self.rack.on_late(said.from);
                    if self.log.repairs() > 0 {
                        return; // What comes late goes on to come; nothing more is sent again.
                    }
                    self.take_back(space, true, cx);
                    said.echo = false;
                } else if self.undo.is_shown_by_duplicates() && cx.profile.undo {
                    self.take_back(space, false, cx);
                }
            }
            RecoveryState::Loss => {
                let before = self.log.lost_repairs;
                self.judge_as_linux(space, said, cx);
                self.find_losses(space, said.advances, cx);
                let again = self.log.lost_repairs > before;
                if space.recovery_state == RecoveryState::Loss && !again {
                    return;
                }
            }
            RecoveryState::Open => {
                let may = cx.profile.undo && !self.is_reducing;
                if may && self.undo.is_shown_by_duplicates() {
                    self.take_back(space, false, cx);
                }
            }
        }
        if repairs != RecoveryState::Loss {
            self.find_losses(space, said.advances, cx);
        }
        let repairing = space.recovery_state == RecoveryState::Recovery;
        if !repairing && self.log.lost_segments > 0 {
            self.begin_recovery(space, said.echo, cx);
        } else if said.echo && space.is_open() && !self.is_reducing {
            self.undo.marker = None;
            self.reduce_for_mark(space, cx);
        }
    }

    /// All that was out when a mark was echoed, and more, has arrived: the window is ssthresh.
    pub(super) fn end_reduction(&mut self, space: &mut Space, cx: &Context<'_>) {
        if self.is_reducing && space.una > space.recover {
            self.is_reducing = false;
            self.close_to_ssthresh(space, cx);
        }
    }

    fn close_to_ssthresh(&self, space: &mut Space, cx: &Context<'_>) {
        if !cx.profile.congestion_control.owns_window() {
            space.control.set_window(space.control.ssthresh());
        }
    }

    /// All is repaired: whether the state ends. Without SACK it is held until more has arrived, because
    /// duplicate ACKs may still come.
    fn leaves(&mut self, space: &mut Space, advances: bool, cx: &Context<'_>) -> bool {
        if self.shows_delay(space, advances, cx) {
            self.take_back(space, false, cx);
            space.recovery_state = RecoveryState::Recovery;
        }
        if space.una == space.recover && !space.sacks() {
            return false;
        }
        space.recovery_state = RecoveryState::Open;
        self.spurious = Spurious::Settled;
        self.rack.on_recovered();
        if self.undo.marker.is_some() {
            self.close_to_ssthresh(space, cx);
        }
        true
    }

    /// Reports of duplicates or the echo of a time stamp show that nothing was lost.
    fn shows_delay(&self, space: &Space, advances: bool, cx: &Context<'_>) -> bool {
        cx.profile.undo
            && self.undo.marker.is_some()
            && (self.undo.is_shown_by_duplicates() || (advances && self.is_delayed(space)))
    }

    /// What is acknowledged was sent before anything was sent again: a time stamp says so, or nothing has been
    /// sent again yet.
    fn is_delayed(&self, space: &Space) -> bool {
        let waits = self.undo.has_resent_nothing() && (space.sacks() || space.una < space.recover);
        self.undo.marker.is_some() && (waits || self.undo.is_shown_by_stamp(self.rack.echoed))
    }

    /// Nothing was lost: the window is the one of before. `unmark`: nothing is left to repair.
    fn take_back(&mut self, space: &mut Space, unmark: bool, cx: &Context<'_>) {
        let undo = std::mem::take(&mut self.undo);
        if unmark {
            self.log.unmark();
        }
        self.spurious = Spurious::Settled;
        space.recovery_state = RecoveryState::Open;
        if undo.marker.is_some() && !undo.is_forbidden {
            if undo.ssthresh > space.control.ssthresh() {
                space.ecn.take_cwr();
            }
            // Linux's BBR takes its own window back when the repair is over.
            let cwnd = match cx.profile.congestion_control {
                CongestionControlKind::Bbr1(_) => 0,
                _ => undo.cwnd,
            };
            space.control.on_undo(cwnd, undo.ssthresh, cx.profile);
        }
    }

    /// An ACK after a time-out: what it says of that; and whether the repair is over.
    fn judge_as_linux(&mut self, space: &mut Space, said: Said, cx: &Context<'_>) {
        let recovered = space.una >= space.recover;
        let frto = cx.profile.frto != Frto::Off && self.spurious != Spurious::Settled;
        // Without SACK what was sent once may lie behind a repair.
        let news = &self.log.news;
        let original = news.original && (space.sacks() || !news.resent);
        if (said.advances && self.shows_delay(space, true, cx)) || (frto && original) {
            let by_original = frto && original;
            self.take_back(space, true, cx);
            if !by_original && !space.sacks() {
                space.recovery_state = RecoveryState::Loss;
            }
            return;
        }
        if frto {
            let has_sent = space.max > space.recover;
            if has_sent {
                if said.duplicate || self.log.news.sacked {
                    self.spurious = Spurious::Settled;
                }
            } else if said.advances && !recovered {
                space.recover = space.max;
                if space.end > space.max {
                    self.spurious = Spurious::Probing(u8::MAX);
                    return;
                }
                self.spurious = Spurious::Settled;
            }
        }
        if recovered {
            self.leave_loss(space, cx);
            return;
        }
        if !space.sacks() && said.advances {
            self.dup_acks = 0;
        }
    }

    fn leave_loss(&mut self, space: &mut Space, cx: &Context<'_>) {
        if self.shows_delay(space, true, cx) {
            self.take_back(space, false, cx);
            space.recovery_state = RecoveryState::Loss;
        }
        if space.una > space.recover || space.sacks() {
            space.recovery_state = RecoveryState::Open;
            self.spurious = Spurious::Settled;
        }
    }

    /// An ACK up to `end`, where the probe of the tail ended, or beyond it: what became of the probe.
    pub(super) fn end_probe_as_linux(
        &mut self,
        space: &mut Space,
        (ack, end): (u64, u64),
        advances: bool,
        cx: &Context<'_>,
    ) {
        if !self.probe.is_resend || self.duplicate_end == Some(end) {
            self.probe.end = None;
        } else if ack > end {
            // The probe has repaired a loss: the window is reduced at once.
            self.begin_reduction(space, Cause::Loss, cx);
            self.is_reducing = false;
            self.close_to_ssthresh(space, cx);
        } else if !advances && !self.log.news.sacked {
            self.probe.end = None;
        }
    }

    /// A reduction begins: ssthresh falls, and what is out now ends it.
    fn begin_reduction(&mut self, space: &mut Space, cause: Cause, cx: &Context<'_>) -> u64 {
        let window = space.control.window();
        let pipe = self.pipe(space, cx);
        let cwnd = space.cut(pipe, cause, cx);
        space.recover = space.max;
        self.counted = 0;
        self.prr = Prr::begin(window.max(cx.profile.mss.0));
        self.probe.end = None;
        cwnd
    }

    /// An echo takes the window down to ssthresh over a round trip.
    fn reduce_for_mark(&mut self, space: &mut Space, cx: &Context<'_>) {
        let cwnd = self.begin_reduction(space, Cause::Echo, cx);
        if cx.profile.rate_reduction == RateReduction::Proportional {
            self.is_reducing = true;
        } else if !cx.profile.congestion_control.owns_window() {
            space.control.set_window(cwnd);
        }
    }

    /// Something is lost. What a mark has begun to reduce is not reduced again.
    pub(super) fn begin_recovery(&mut self, space: &mut Space, echo: bool, cx: &Context<'_>) {
        let repairs = self.log.repairs();
        // What is under way of an earlier repair goes on to be the first one.
        let first = self.undo.first_resent().filter(|_| repairs > 0);
        let resent = repairs + u32::from(self.probe.is_undecided());
        self.undo = self.memory(space, resent, cx).since(first);
        if std::mem::take(&mut self.is_reducing) {
            self.undo.forbid();
        } else {
            let cwnd = self.begin_reduction(space, Cause::Loss, cx);
            let at_once = cx.profile.rate_reduction == RateReduction::AtOnce;
            if at_once && !cx.profile.congestion_control.owns_window() {
                space.control.set_window(cwnd);
            }
        }
        if echo {
            self.undo.forbid();
        }
        self.counts.fast_retransmits += 1;
        space.recovery_state = RecoveryState::Recovery;
        self.restart_rto(space, cx);
    }

    /// What a reduction that begins now may have to give back, where `resent` segments have been sent again
    /// and are out.
    pub(super) fn memory(&self, space: &Space, resent: u32, cx: &Context<'_>) -> Undo {
        let (cwnd, ssthresh) = (space.control.window(), space.control.ssthresh());
        let held = self.is_reducing || space.recovery_state == RecoveryState::Recovery;
        let kept = if held {
            ssthresh
        } else {
            ssthresh.max(three_quarters(cwnd, cx))
        };
        Undo::new(space.una, cwnd, kept).with_resent(resent)
    }

    /// Something is to be sent after nothing was out: the window halves for each time-out that has passed
    /// since data was sent, down to the initial one.
    pub(super) fn restart_as_linux(&self, space: &mut Space, cx: &Context<'_>) {
        let idle_for = cx.now.saturating_sub(self.log.delivery.last_sent());
        let timeout = space.rto.timeout(cx.profile);
        if idle_for <= timeout {
            return;
        }
        space.control.on_idle();
        let (mss, window) = (cx.profile.mss.0, space.control.window());
        let restart = u64::from(cx.profile.initial_window) * mss;
        if !cx.profile.restart_after_idle {
            return;
        }
        let kept = space.control.ssthresh();
        space
            .control
            .set_ssthresh(kept.max(three_quarters(window, cx)));
        let (mut left, mut halved) = (idle_for, window);
        loop {
            left = left.saturating_sub(timeout);
            if left == Time::ZERO || halved <= restart {
                break;
            }
            halved = halved / mss / 2 * mss;
        }
        space.control.set_window(halved.max(restart.min(window)));
    }

    /// Pacing holds back what is to follow a time-out. Linux sends what is lost when its time has come; the next
    /// ACKs say all the same whether the time-out was spurious, if new data is out.
    pub(super) fn put_off(&mut self) {
        self.spurious = match self.spurious {
            Spurious::Probing(u8::MAX) => Spurious::Settled,
            Spurious::Probing(_) | Spurious::Second => Spurious::Paced,
            other => other,
        };
    }

    /// Duplicate ACKs that mean a loss where the peer sends no SACK: as many as segments have come late.
    pub(super) fn dup_thresh(&self, cx: &Context<'_>) -> u32 {
        let late = match rules::applies(cx) {
            true => self.rack.latest().div_ceil(cx.profile.mss.0) as u32,
            false => 0,
        };
        DUP_THRESH.max(late)
    }

    /// A timer that stood in the place of that of retransmissions is over: this one runs from when the oldest
    /// segment was sent.
    pub(super) fn count_from_oldest(&mut self, space: &Space, cx: &Context<'_>) {
        if let Some(oldest) = self.log.oldest_sent_at() {
            self.rto_at = (oldest + space.rto.timeout(cx.profile)).max(cx.now);
        }
    }

    /// RACK's timer has expired: what it finds lost goes again.
    pub(super) fn repair_overdue(&mut self, space: &mut Space, cx: &Context<'_>) {
        let before = self.log.holes();
        self.log.begin();
        self.find_losses(space, false, cx);
        if self.log.holes() == before || space.recovery_state == RecoveryState::Recovery {
            return;
        }
        self.begin_recovery(space, false, cx);
        self.arrived = 1;
        self.reduce_as_linux(space, false, cx);
    }

    /// The retransmission timer has expired: whether that is congestion of its own, and whether the next
    /// ACKs are to say if it was spurious.
    pub(super) fn judges_timeout(&self, space: &Space, repeated: bool) -> (bool, bool) {
        let is_over = space.una >= space.recover;
        let (is_open, first) = match space.recovery_state {
            RecoveryState::Open => (!self.is_reducing, true),
            RecoveryState::Recovery => (false, false),
            RecoveryState::Loss => (!repeated, false),
        };
        (is_open || is_over, first || repeated)
    }

    /// The window follows the states.
    pub(super) fn move_as_linux(&mut self, space: &mut Space, advances: bool, cx: &Context<'_>) {
        let acked = self.arrived * cx.profile.mss.0;
        let lost = !self.log.news.losses.is_empty();
        if space.recovery_state == RecoveryState::Recovery || self.is_reducing {
            if acked > 0 && advances {
                space.pass(acked, cx);
            }
            self.reduce_as_linux(space, advances && !lost, cx);
            return;
        }
        let arrives = advances || (acked > 0 && self.opens_by_sack(cx));
        if !arrives {
            return;
        }
        if space.uses_window(cx) && !self.open_by_hystart(space, acked, cx) {
            let counted = Cell::new(self.counted);
            let news = Ack {
                counted: Some(&counted),
                ..space.news(acked, cx)
            };
            space.control.on_ack(&news);
            self.counted = counted.get();
        } else {
            space.pass(acked, cx);
        }
    }

    /// Proportional rate reduction in segments.
    pub(super) fn reduce_as_linux(&mut self, space: &mut Space, safe: bool, cx: &Context<'_>) {
        if !self.spreads_reductions(cx) || self.arrived == 0 {
            return;
        }
        let mss = cx.profile.mss.0;
        let (ssthresh, pipe) = (space.control.ssthresh(), self.pipe(space, cx));
        let news = self.arrived * mss;
        let allowed = self.prr.on_delivered(news, pipe, ssthresh, safe, mss);
        space.control.set_window(pipe + allowed);
    }
}
