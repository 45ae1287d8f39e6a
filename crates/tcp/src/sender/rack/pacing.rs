//! The rate at which segments leave ([`super::pace`]).

use super::RackSender;
use crate::context::Context;
use crate::profile::{Pacing, PacingBurst};
use crate::sender::space::Space;

/// Linux's factors of the pacing rate: while the window is below half of ssthresh, and later.
const EARLY: f64 = 2.0;
const LATER: f64 = 1.2;

impl RackSender {
    /// The rate follows the window: that of the congestion control, or Linux's.
    pub(in crate::sender) fn set_pace(&mut self, space: &mut Space, cx: &Context<'_>) {
        let srtt = space.rto.smoothed(cx.profile);
        let own = space.control.pacing_rate(cx.profile, srtt);
        let rate = own.or_else(|| match (cx.profile.pacing, srtt) {
            (Pacing::Linux, Some(srtt)) => {
                let mss = cx.profile.mss.0;
                let wire = (mss + cx.profile.header.0) as f64 / mss as f64;
                let (cwnd, ssthresh) = (space.control.window(), space.control.ssthresh());
                let factor = if cwnd < ssthresh / 2 { EARLY } else { LATER };
                let window = cwnd.max(space.in_flight()) as f64;
                Some(factor * window * wire / srtt.as_secs_f64())
            }
            _ => None,
        });
        let followers = match (rate, cx.profile.pacing_burst) {
            (Some(rate), PacingBurst::Linux) => {
                let len = cx.profile.mss.0 + cx.profile.header.0;
                let min_rtt = self.rack.min_rtt();
                space.control.linux_burst(rate, min_rtt, len) - 1
            }
            _ => 0,
        };
        self.pace.set(rate, followers);
    }
}
