//! Proportional rate reduction: RFC 9937 (M. Mathis, N. Cardwell, Y. Cheng, N. Dukkipati, 2025), which
//! took the place of RFC 6937.
//!
//! RFC 6675 sends nothing until as much has arrived as the window has lost. Here what is sent keeps
//! to a share of what arrives, so that the window is down to ssthresh when the round trip is over;
//! and where losses have taken more than that, what arrives is replaced, and a segment more for each
//! ACK that shows progress.
//!
//! Whole segments are sent, so that the RFC's bytes are rounded up to them. Only with SACK.

use std::mem;

use crate::endpoint::{Context, Endpoint, RecoveryState};
use crate::profile::{RateReduction, Recovery};

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

/// The state of a recovery, in bytes; the names are the RFC's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: in flight when the recovery began; 0: no ACK has been counted yet.
    recover_fs: u64,
    /// prr_delivered: delivered since then.
    delivered: u64,
    /// prr_out: sent since then.
    pub(crate) out: u64,
}

impl Prr {
    /// SndCnt: what an ACK that delivered `news` bytes allows to be sent, with `in_flight` on the way.
    fn allowance(&self, news: u64, in_flight: u64, ssthresh: u64, safe: bool, mss: u64) -> u64 {
        if in_flight > ssthresh {
            let target = (self.delivered * ssthresh).div_ceil(self.recover_fs * mss) * mss;
            return target.saturating_sub(self.out);
        }
        let most = self.delivered.saturating_sub(self.out).max(news) + if safe { mss } else { 0 };
        most.min(ssthresh - in_flight)
    }
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
        let in_flight = cold.board.set_pipe(una, max, mss) - resent;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments that an ACK of one segment allows, with 20 in flight at the start of the recovery
    /// and an ssthresh of 10.
    fn allowed(delivered: u64, out: u64, in_flight: u64, safe: bool) -> u64 {
        let prr = Prr {
            recover_fs: 20,
            delivered,
            out,
        };
        prr.allowance(1, in_flight, 10, safe, 1)
    }

    #[test]
    fn above_the_threshold_one_goes_for_two_that_arrive() {
        let mut out = 0;
        let sent = (1..=10).map(|delivered| {
            let now = allowed(delivered, out, 19, false);
            out += now;
            now
        });
        assert_eq!(sent.collect::<Vec<_>>(), [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn below_it_what_arrives_is_replaced_and_progress_adds_a_segment() {
        assert_eq!(allowed(5, 5, 4, false), 1, "as much as has arrived");
        assert_eq!(allowed(5, 5, 4, true), 2, "slow start while all goes well");
        assert_eq!(allowed(5, 2, 4, false), 3, "what was not sent is not lost");
        assert_eq!(allowed(5, 2, 9, true), 1, "never beyond the threshold");
        assert_eq!(allowed(5, 2, 10, true), 0);
    }

    #[test]
    fn shares_are_rounded_up_to_whole_segments() {
        let prr = Prr {
            recover_fs: 20_000,
            delivered: 1,
            out: 0,
        };
        assert_eq!(prr.allowance(1, 19_000, 10_000, false, 1000), 1000);
    }
}
