//! Congestion control: how the window grows and what congestion does to it.
//!
//! A congestion control (the trait `CongestionControl`) is one file; to add one takes a line in the
//! list below. `Control` keeps the window and applies what a profile says about every reduction.
//! Bytes throughout, as `f64`: fractions of a segment need them, whole bytes are exact below 2^53.

mod congestion_control;
mod history;
mod registry;
mod window;

pub mod cubic;
pub mod fast;
pub mod reno;
pub mod santa_cruz;
pub mod sync_tcp;
pub mod vegas;

use aqmlab_net::Time;

pub use congestion_control::ControlMetrics;
pub(crate) use congestion_control::{Ack, Cause, Congestion};
use congestion_control::{CongestionControl, ControlParameters, Decrease};
use window::Window;

use crate::profile::{DecreaseBase, Profile, WindowGrowth};
use crate::segment::{Stamps, Timestamps};

registry::congestion_controls! {
    /// Slow start, then one segment per round trip; half on congestion.
    Reno(reno),
    /// The window follows the segments that it keeps in the queue.
    Vegas(vegas),
    /// The window goes to where a set number of segments stands in the queue.
    Fast(fast),
    /// The window is a cubic function of the time since the last congestion.
    Cubic(cubic),
    /// Reno that reacts early to the trend of the one-way delay.
    SyncTcp(sync_tcp),
    /// The window follows the queue that the spacing of arrivals shows.
    SantaCruz(santa_cruz),
}

/// The congestion window of one end point and how it moves.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    window: Window,
    state: AnyControl,
}

/// BSD's largest window without the window-scale option.
const MAX_WINDOW: f64 = 65_535.0;

impl Control {
    #[inline]
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            window: Window {
                cwnd: profile.mss.0 as f64,
                ssthresh: profile.initial_ssthresh.0 as f64,
            },
            state: AnyControl::new(&profile.congestion_control),
        }
    }

    /// The congestion window in bytes.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window.cwnd as i64 as u64
    }

    /// The slow-start threshold in bytes.
    pub(crate) fn ssthresh(&self) -> u64 {
        self.window.ssthresh as i64 as u64
    }

    /// The handshake is complete: the window is the initial one.
    pub(crate) fn start(&mut self, segments: u32, profile: &Profile) {
        self.set_window(u64::from(segments) * profile.mss.0);
    }

    /// New data was acknowledged and nothing is being repaired.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &Ack<'_>) {
        with_control!(&mut self.state, ack.profile, control, params => {
            control.on_ack(params, &mut self.window, ack);
        });
        if ack.profile.window_growth == WindowGrowth::HeaderPrediction {
            self.window.cwnd = self.window.cwnd.min(MAX_WINDOW);
        }
    }

    /// New data was acknowledged while a loss is repaired.
    pub(crate) fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        with_control!(&mut self.state, control => control.on_recovery_ack(ack));
    }

    /// A segment leaves.
    #[inline]
    pub(crate) fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        with_control!(&mut self.state, control => control.on_send(seq, end, resent, now));
    }

    /// The peer has stamped an ACK.
    pub(crate) fn on_timestamps(&mut self, stamps: &Timestamps, of_data: bool) {
        with_control!(&mut self.state, control => control.on_timestamps(stamps, of_data));
    }

    /// An ACK: whether the oldest segment is to be sent again at once.
    #[inline]
    pub(crate) fn is_overdue(&mut self, una: u64, now: Time, new_ack: bool) -> bool {
        with_control!(&mut self.state, control => control.is_overdue(una, now, new_ack))
    }

    /// Nothing was sent or received for longer than the retransmission time-out.
    pub(crate) fn on_idle(&mut self) {
        with_control!(&mut self.state, control => control.on_idle());
    }

    /// Congestion: ssthresh falls. Returns the window that goes with it; whether that becomes the
    /// window is the caller's affair, because it depends on how the loss was found.
    pub(crate) fn on_congestion(&mut self, congestion: &Congestion<'_>) -> u64 {
        let profile = congestion.profile;
        let window = &mut self.window;
        let least = match congestion.cause {
            Cause::Echo => profile.ecn_reaction.least_ssthresh(),
            Cause::Loss | Cause::Timeout => 2,
        };
        let floor = f64::from(least) * profile.mss.0 as f64;
        let decrease = with_control!(&mut self.state, profile, control, params => {
            control.on_congestion(params, window, congestion)
        });
        let share = match decrease {
            Decrease::Bytes(ssthresh) => {
                window.ssthresh = ssthresh.max(floor);
                return window.ssthresh as u64;
            }
            Decrease::Share(share) => share,
        };
        let mss = profile.mss.0;
        let (ssthresh, cwnd) = match profile.multiplicative_decrease_base {
            DecreaseBase::FlightSize => {
                let left = (share * congestion.flight as f64) as u64;
                (left, left)
            }
            DecreaseBase::Cwnd => {
                let left = (share * congestion.window as f64) as u64 / mss * mss;
                (left, left)
            }
            DecreaseBase::FractionalCwnd => {
                let left = (share * congestion.window as f64) as u64;
                (left / mss * mss, left.max(mss))
            }
        };
        window.ssthresh = (ssthresh as f64).max(floor);
        match profile.multiplicative_decrease_base {
            DecreaseBase::FractionalCwnd => cwnd,
            _ => window.ssthresh as u64,
        }
    }

    /// Sets ssthresh in bytes (a SYN was lost).
    pub(crate) fn set_ssthresh(&mut self, bytes: u64) {
        self.window.ssthresh = bytes as f64;
    }

    /// Sets the window to `bytes` (after a time-out, in fast recovery, after idling).
    pub(crate) fn set_window(&mut self, bytes: u64) {
        self.window.cwnd = bytes as f64;
    }

    /// For traces.
    pub(crate) fn metrics(&self) -> ControlMetrics {
        with_control!(&self.state, control => control.metrics())
    }
}
