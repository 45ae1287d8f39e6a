//! Proportional rate reduction ([`crate::prr`]) by what the scoreboard shows.

use std::mem;

use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::profile::{RateReduction, Recovery};
use crate::recovery::RecoveryState;

/// What was known of the receiver before an ACK: bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Acknowledged.
    una: u64,
    /// Delivered: acknowledged, or told by SACK.
    delivered: u64,
    /// What has not arrived below this is lost.
    lost_below: u64,
}

impl Endpoint {
    /// Whether a recovery would go by this rule.
    fn reduces_proportionally(&self, cx: &Context<'_>) -> bool {
        self.sacking
            && cx.profile.rate_reduction == RateReduction::Proportional
            && cx.profile.recovery == Recovery::Sack
    }

    /// Bytes that have arrived at the receiver.
    fn delivered(&self) -> u64 {
        let sacked = self.cold.as_ref().map_or(0, |cold| cold.board.bytes());
        self.una + sacked
    }

    /// What is known when an ACK comes, if it may be asked for later: in recovery, or if the ACK
    /// may begin one.
    #[inline]
    pub(crate) fn before_ack(&self, tells_more: bool, cx: &Context<'_>) -> Option<Before> {
        let matters = tells_more || self.recovery_state == RecoveryState::Recovery;
        (matters && self.reduces_proportionally(cx)).then(|| Before {
            una: self.una,
            delivered: self.delivered(),
            lost_below: self.lost_below(cx),
        })
    }

    fn lost_below(&self, cx: &Context<'_>) -> u64 {
        let board = self.cold.as_ref().map(|cold| &cold.board);
        board.map_or(0, |board| board.lost_below(cx.profile.mss.0))
    }

    /// An ACK in recovery: the window is what is in flight and what the ACK allows beside it.
    #[inline(never)]
    pub(crate) fn reduce(&mut self, before: Before, cx: &Context<'_>) {
        let mss = cx.profile.mss.0;
        let (una, max, ssthresh) = (self.una, self.max, self.control.ssthresh());
        let (delivered, lost_below) = (self.delivered(), self.lost_below(cx));
        let news = delivered.saturating_sub(before.delivered);
        if news == 0 {
            return;
        }
        let cold = self.cold_mut();
        let mut resent = 0;
        if cold.prr.recover_fs == 0 {
            // What had arrived before this ACK is not counted as delivered, nor as in flight.
            cold.prr.recover_fs = max.saturating_sub(before.delivered).max(mss);
            // The fast retransmit is part of what this ACK allows.
            resent = mem::take(&mut cold.prr.out);
        }
        cold.prr.delivered += news;
        let loses = cold
            .board
            .missing_between(before.lost_below.max(una), lost_below)
            > 0;
        let pipe = cold.board.set_pipe(una, max, mss);
        let in_flight = pipe.saturating_sub(resent);
        let safe = una > before.una && !loses;
        let allowed = cold.prr.allowance(news, in_flight, ssthresh, safe, mss);
        cold.prr.out += resent;
        self.control.set_window(in_flight + allowed.max(resent));
    }

    /// Recovery is over, or a time-out ends it: the window is ssthresh.
    pub(crate) fn end_reduction(&mut self, cx: &Context<'_>) {
        if self.reduces_proportionally(cx) {
            self.control.set_window(self.control.ssthresh());
        }
    }
}
