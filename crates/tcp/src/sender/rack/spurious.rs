//! When a time-out or a reduction is taken back ([`super::undo`]).

use super::RackSender;
use super::rules;
use super::undo::{Spurious, Undo};
use crate::context::Context;
use crate::profile::Frto;
use crate::recovery::RecoveryState;
use crate::sender::space::Space;

/// New segments that the first ACK after a time-out releases.
pub(super) const NEW_SEGMENTS: u8 = 2;

impl RackSender {
    /// Keeps what a reduction that begins now may have to give back.
    pub(super) fn remember_window(&mut self, space: &mut Space, cx: &Context<'_>) {
        if rules::applies(cx) {
            self.undo = self.memory(space, self.probe.is_undecided().into(), cx);
            return;
        }
        let control = &space.control;
        self.undo = Undo::new(space.una, control.window(), control.ssthresh());
    }

    /// A time-out: whether the next ACKs are to decide if it was spurious. Not while an earlier one
    /// is repaired (RFC 5682, section 3.1).
    pub(super) fn begin_judging(&mut self, may: bool, cx: &Context<'_>) {
        let wanted = cx.profile.frto != Frto::Off && may;
        self.spurious = if wanted {
            Spurious::First
        } else {
            Spurious::Settled
        };
    }

    /// An ACK after a time-out: what it says of that; and whether the repair is over.
    pub(super) fn judge_timeout(&mut self, space: &mut Space, advances: bool, cx: &Context<'_>) {
        let recovered = space.una >= space.recover;
        let linux = cx.profile.frto == Frto::Linux;
        let may_send = space.end > space.max;
        let news = &self.log.news;
        let (original, delivers) = (news.original, news.segments > 0);
        match self.spurious {
            Spurious::Settled | Spurious::Paced => {}
            Spurious::First | Spurious::Probing(_) if linux && original => {
                self.undo(space, cx);
                return;
            }
            Spurious::First => {
                self.spurious = if advances && !recovered && may_send {
                    Spurious::Probing(NEW_SEGMENTS)
                } else {
                    Spurious::Settled
                };
            }
            Spurious::Probing(_) | Spurious::Second if original => {
                self.undo(space, cx);
                return;
            }
            Spurious::Probing(_) | Spurious::Second if delivers || !advances => {
                self.spurious = Spurious::Settled;
            }
            Spurious::Probing(_) | Spurious::Second => {}
        }
        if recovered {
            space.recovery_state = RecoveryState::Open;
            self.spurious = Spurious::Settled;
        }
    }

    /// D-SACK blocks, or a time stamp, may show that nothing was lost; whether they do.
    pub(super) fn undo_by_reports(
        &mut self,
        space: &mut Space,
        advances: bool,
        state: RecoveryState,
        cx: &Context<'_>,
    ) -> bool {
        if !cx.profile.undo || self.undo.marker.is_none() {
            return false;
        }
        let was_open = state == RecoveryState::Open;
        let by_stamp = advances && !was_open && self.undo.is_shown_by_stamp(self.rack.echoed);
        let is_shown = by_stamp || self.undo.is_shown_by_duplicates();
        if is_shown {
            self.undo(space, cx);
        }
        is_shown
    }

    /// Nothing was lost: the window is the one of before, and nothing is left to repair.
    fn undo(&mut self, space: &mut Space, cx: &Context<'_>) {
        let undo = std::mem::take(&mut self.undo);
        self.log.unmark();
        self.rack.on_undo();
        self.spurious = Spurious::Settled;
        space.recovery_state = RecoveryState::Open;
        self.dup_acks = 0;
        if undo.marker.is_some() {
            space.control.on_undo(undo.cwnd, undo.ssthresh, cx.profile);
        }
    }
}
