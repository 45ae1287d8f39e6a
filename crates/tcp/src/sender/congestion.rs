//! What congestion does to a sender, however it was found: losses, and echoes of marks (RFC 3168,
//! section 6.1.2).

use super::space::Space;
use crate::agreed::Agreed;
use crate::context::Context;
use crate::control::{Cause, Congestion};
use crate::profile::{EcnReaction, RackRules};

/// The sender's side of RFC 3168, section 6.1.2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnResponse {
    /// The last cut answered an echo: a loss in the same window cuts no further.
    cut_by_echo: bool,
    /// The next new data segment says that the window has been reduced.
    cwr_pending: bool,
    /// An echo found a window of one segment: nothing new is sent until the timer fires.
    hold: bool,
}

impl EcnResponse {
    #[inline(always)]
    pub(super) fn holds(&self) -> bool {
        self.hold
    }

    pub(super) fn release(&mut self) {
        self.hold = false;
    }

    #[inline(always)]
    pub(super) fn owes_cwr(&self) -> bool {
        self.cwr_pending
    }

    /// Whether the segment that leaves says CWR.
    #[inline(always)]
    pub(super) fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_pending)
    }
}

impl Space {
    /// The window that a loss leaves; the present one if an echo has cut it for the same data.
    pub(super) fn cut_for_loss(&mut self, flight: u64, cx: &Context<'_>) -> u64 {
        if self.ecn.cut_by_echo && self.una <= self.cut_until {
            return self.control.window();
        }
        self.cut(flight, Cause::Loss, cx)
    }

    /// A congestion event: ssthresh falls, and echoes of this window are ignored. Returns the
    /// window that goes with it.
    pub(super) fn cut(&mut self, flight: u64, cause: Cause, cx: &Context<'_>) -> u64 {
        let cwnd = self.control.on_congestion(&Congestion {
            now: cx.now,
            profile: cx.profile,
            flight,
            window: self.control.window().min(cx.profile.peer_window()),
            cause,
            whole: cx.profile.rack_rules == RackRules::Linux,
        });
        self.cut_until = self.max;
        self.ecn.cut_by_echo = false;
        self.ecn.cwr_pending = self.says_cwr();
        cwnd
    }

    /// The next new data says CWR, although nothing is reduced.
    pub(super) fn say_cwr(&mut self) {
        self.ecn.cwr_pending = self.says_cwr();
    }

    /// Whether the peer echoes marks until the sender says CWR.
    fn says_cwr(&self) -> bool {
        self.agreed.has(Agreed::ECN) && !self.agreed.has(Agreed::ACCURATE)
    }

    /// An echo halves the window, at once and at most once per window of data.
    pub(super) fn on_echo(&mut self, ack: u64, cx: &Context<'_>) {
        if let Some(cwnd) = self.cut_for_echo(ack, cx) {
            self.control.set_window(cwnd);
        }
    }

    /// The window that an echo leaves; none if it takes nothing.
    pub(super) fn cut_for_echo(&mut self, ack: u64, cx: &Context<'_>) -> Option<u64> {
        if ack <= self.cut_until {
            return None;
        }
        let (window, mss) = (self.control.window(), cx.profile.mss.0);
        let reaction = cx.profile.ecn_reaction;
        if reaction == EcnReaction::Kame && window < 2 * mss {
            return None;
        }
        let fractional = reaction == EcnReaction::Fractional;
        if window <= mss && !fractional {
            self.ecn.hold = reaction == EcnReaction::Rfc3168;
            self.cut_until = self.max;
            self.ecn.cwr_pending = !self.agreed.has(Agreed::ACCURATE);
            return None;
        }
        let cwnd = self.cut(self.in_flight(), Cause::Echo, cx);
        self.ecn.cut_by_echo = true;
        self.ecn.hold = fractional && window < 2 * mss;
        Some(cwnd)
    }

    /// The congestion control answers the echo itself, and the next new data says so once per window of
    /// data: a classic receiver echoes until then (RFC 8257, section 3.3, which leaves CWR as it is in
    /// RFC 3168).
    pub(super) fn answer_echo(&mut self, ack: u64) {
        if !self.agreed.has(Agreed::ACCURATE) && ack > self.cut_until {
            self.cut_until = self.max;
            self.ecn.cwr_pending = true;
        }
    }
}
