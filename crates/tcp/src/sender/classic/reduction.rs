//! Proportional rate reduction ([`crate::sender::prr`]) by what the scoreboard shows.

use std::mem;

use super::ClassicSender;
use crate::context::Context;
use crate::profile::{RateReduction, Recovery};
use crate::recovery::RecoveryState;
use crate::sender::space::Space;

/// What was known of the receiver before an ACK: bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Acknowledged.
    una: u64,
    /// Delivered: acknowledged, or reported by SACK.
    delivered: u64,
    /// What has not arrived below this is lost.
    lost_below: u64,
}

impl ClassicSender {
    /// Bytes that have arrived at the receiver.
    fn delivered(&self, space: &Space) -> u64 {
        let sacked = self
            .repairs
            .as_ref()
            .map_or(0, |repairs| repairs.board.bytes());
        space.una + sacked
    }

    /// What is known when an ACK comes, if it may be asked for later: in recovery, or if the ACK
    /// may begin one.
    #[inline]
    pub(super) fn before_ack(
        &self,
        space: &Space,
        tells_more: bool,
        cx: &Context<'_>,
    ) -> Option<Before> {
        let matters = tells_more || space.recovery_state == RecoveryState::Recovery;
        (matters && space.reduces_proportionally(cx)).then(|| Before {
            una: space.una,
            delivered: self.delivered(space),
            lost_below: self.lost_below(cx),
        })
    }

    fn lost_below(&self, cx: &Context<'_>) -> u64 {
        let board = self.repairs.as_ref().map(|repairs| &repairs.board);
        board.map_or(0, |board| board.lost_below(cx.profile.mss.0))
    }

    /// An ACK in recovery: the window is what is in flight and what the ACK allows beside it.
    #[inline(never)]
    pub(super) fn reduce(&mut self, space: &mut Space, before: Before, cx: &Context<'_>) {
        let mss = cx.profile.mss.0;
        let (una, max, ssthresh) = (space.una, space.max, space.control.ssthresh());
        let (delivered, lost_below) = (self.delivered(space), self.lost_below(cx));
        let news = delivered.saturating_sub(before.delivered);
        if news == 0 {
            return;
        }
        let repairs = self.repairs_mut();
        let mut resent = 0;
        if repairs.prr.recover_fs == 0 {
            // Earlier arrivals count neither as delivered nor as in flight.
            repairs.prr.recover_fs = max.saturating_sub(before.delivered).max(mss);
            // The fast retransmit is part of what this ACK allows.
            resent = mem::take(&mut repairs.prr.out);
        }
        repairs.prr.delivered += news;
        let loses = repairs
            .board
            .missing_between(before.lost_below.max(una), lost_below)
            > 0;
        let pipe = repairs.board.set_pipe(una, max, mss);
        let in_flight = pipe.saturating_sub(resent);
        let safe = una > before.una && !loses;
        let allowed = repairs.prr.allowance(news, in_flight, ssthresh, safe, mss);
        repairs.prr.out += resent;
        space.control.set_window(in_flight + allowed.max(resent));
    }

    /// Recovery is over, or a time-out ends it: the window is ssthresh.
    pub(super) fn end_reduction(&mut self, space: &mut Space, cx: &Context<'_>) {
        if space.reduces_proportionally(cx) {
            space.control.set_window(space.control.ssthresh());
        }
    }
}

impl Space {
    /// Whether a recovery would go by this rule.
    fn reduces_proportionally(&self, cx: &Context<'_>) -> bool {
        self.sacks()
            && cx.profile.rate_reduction == RateReduction::Proportional
            && cx.profile.recovery == Recovery::Sack
    }
}
