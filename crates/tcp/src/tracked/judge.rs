//! When a time-out or a reduction is taken back ([`super::undo`]).

use super::undo::{Spurious, Undo};
use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::profile::Frto;
use crate::recovery::RecoveryState;

/// New segments that the first ACK after a time-out releases.
const NEW_SEGMENTS: u8 = 2;

impl Endpoint {
    /// Keeps what a reduction that begins now may have to give back.
    pub(super) fn remember_window(&mut self) {
        let undo = Undo::new(self.una, self.control.window(), self.control.ssthresh());
        self.tracked().undo = undo;
    }

    /// A time-out: whether the next ACKs are to decide if it was spurious. Not while an earlier one
    /// is repaired (RFC 5682, section 3.1).
    pub(super) fn begin_judging(&mut self, state: RecoveryState, cx: &Context<'_>) {
        let wanted = cx.profile.frto != Frto::Off && state == RecoveryState::Open;
        self.tracked().spurious = if wanted {
            Spurious::First
        } else {
            Spurious::Settled
        };
    }

    /// An ACK after a time-out: what it says of that; and whether the repair is over.
    pub(super) fn judge_timeout(&mut self, advances: bool, cx: &Context<'_>) {
        let recovered = self.una >= self.recover;
        let linux = cx.profile.frto == Frto::Linux;
        let may_send = self.end > self.max;
        let tracked = self.tracked();
        let (original, told) = (
            tracked.flight.news.original,
            tracked.flight.news.segments > 0,
        );
        match tracked.spurious {
            Spurious::Settled => {}
            Spurious::First | Spurious::Probing(_) if linux && original => {
                self.undo(cx);
                return;
            }
            Spurious::First => {
                tracked.spurious = if advances && !recovered && may_send {
                    Spurious::Probing(NEW_SEGMENTS)
                } else {
                    Spurious::Settled
                };
            }
            Spurious::Probing(_) | Spurious::Second if original => {
                self.undo(cx);
                return;
            }
            Spurious::Probing(_) | Spurious::Second if told || !advances => {
                tracked.spurious = Spurious::Settled;
            }
            Spurious::Probing(_) | Spurious::Second => {}
        }
        if recovered {
            self.recovery_state = RecoveryState::Open;
            self.tracked().spurious = Spurious::Settled;
        }
    }

    /// D-SACK blocks, or a time stamp, may show that nothing was lost.
    pub(super) fn undo_by_reports(
        &mut self,
        advances: bool,
        state: RecoveryState,
        cx: &Context<'_>,
    ) {
        if !cx.profile.undo {
            return;
        }
        let is_open = state == RecoveryState::Open;
        let tracked = self.tracked();
        if tracked.undo.marker.is_none() {
            return;
        }
        let by_stamp = advances && !is_open && tracked.undo.is_shown_by_stamp(tracked.rack.echoed);
        if by_stamp || tracked.undo.is_shown_by_duplicates() {
            self.undo(cx);
        }
    }

    /// Nothing was lost: the window is the one of before, and nothing is left to repair.
    fn undo(&mut self, cx: &Context<'_>) {
        let tracked = self.tracked();
        let undo = std::mem::take(&mut tracked.undo);
        tracked.flight.unmark();
        tracked.rack.on_undo();
        tracked.spurious = Spurious::Settled;
        self.recovery_state = RecoveryState::Open;
        self.dup_acks = 0;
        if undo.marker.is_some() {
            self.control.on_undo(undo.cwnd, undo.ssthresh, cx.profile);
        }
    }
}
