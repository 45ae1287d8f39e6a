//! Congestion control: how the window grows and what congestion does to it. Bytes throughout.
//!
//! Reno after RFC 5681; where BSD's integer arithmetic differs, a profile says so.

use crate::profile::{CutFrom, Profile};

/// The congestion window of one end point and how it moves.
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    cwnd: u64,
    ssthresh: u64,
}

/// BSD's largest window without the window-scale option.
const MAX_WINDOW: u64 = 65_535;

impl Reno {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            cwnd: profile.mss.0,
            ssthresh: profile.initial_ssthresh.0,
        }
    }

    /// The congestion window in bytes.
    pub(crate) fn window(&self) -> u64 {
        self.cwnd
    }

    /// The slow-start threshold in bytes.
    pub(crate) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// The handshake is complete: the window is the initial one.
    pub(crate) fn start(&mut self, segments: u32, profile: &Profile) {
        self.cwnd = u64::from(segments) * profile.mss.0;
    }

    /// New data was acknowledged: RFC 5681, section 3.1.
    pub(crate) fn on_ack(&mut self, acked: u64, profile: &Profile) {
        let mss = profile.mss.0;
        let slow_start = self.cwnd < self.ssthresh
            || (profile.slow_start_at_ssthresh && self.cwnd == self.ssthresh);
        self.cwnd += match slow_start {
            true if profile.byte_counting => acked.min(mss),
            true => mss,
            false => (mss * mss / self.cwnd).max(1),
        };
        if profile.window_growth_limited {
            self.cwnd = self.cwnd.min(MAX_WINDOW);
        }
    }

    /// Congestion: ssthresh becomes half of what was in use. The window is the caller's affair,
    /// because it depends on how the loss was found.
    pub(crate) fn cut(&mut self, flight: u64, peer_window: u64, profile: &Profile) {
        let mss = profile.mss.0;
        let half = match profile.cut_from {
            CutFrom::Flight => flight / 2,
            CutFrom::Window => self.cwnd.min(peer_window) / 2 / mss * mss,
        };
        self.ssthresh = half.max(2 * mss);
    }

    /// Sets ssthresh in bytes (a SYN was lost).
    pub(crate) fn set_ssthresh(&mut self, bytes: u64) {
        self.ssthresh = bytes;
    }

    /// Sets the window to `bytes` (after a time-out, in fast recovery, after idling).
    pub(crate) fn set_window(&mut self, bytes: u64) {
        self.cwnd = bytes;
    }

    /// Fast recovery: one more segment has left the network.
    pub(crate) fn inflate(&mut self, profile: &Profile) {
        self.cwnd += profile.mss.0;
    }
}
