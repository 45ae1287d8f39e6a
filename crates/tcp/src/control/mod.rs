//! Congestion control: how the window grows and what congestion does to it.
//!
//! A congestion control (the trait `CongestionControl`) is one file; to add one takes a line in the
//! list below. `Control` keeps the window and applies what a profile says about every reduction.
//! Bytes throughout, as `f64`: fractions of a segment need them, whole bytes are exact below 2^53.

mod congestion_control;
mod history;
mod registry;
mod window;

mod bbr;
pub mod bbr1;
pub mod bbr3;
pub mod cubic;
pub mod dctcp;
pub mod external;
pub mod fast;
pub mod ledbat_plus_plus;
pub mod plugin;
#[cfg(feature = "linux")]
mod policer;
pub mod prague;
pub mod reno;
pub mod santa_cruz;
pub mod scalable;
pub mod sync_tcp;
pub mod vegas;

use aqmlab_net::Time;

pub(crate) use congestion_control::{Ack, Cause, Congestion, Marks, Restart, Sample};
use congestion_control::{CongestionControl, ControlParameters, Decrease};
pub use congestion_control::{ControlMetrics, ControlState};
use window::Window;

use crate::profile::{DecreaseBase, EcnEcho, Ect, Profile, WindowGrowth};
use crate::segment::{Stamps, Timestamps};

registry::congestion_controls! {
    /// Slow start, then one segment per round trip; halves the window on congestion.
    Reno(reno),
    /// Keeps a few segments in the queue: the window follows their number.
    Vegas(vegas),
    /// Sets the window so that a given number of segments stays in the queue.
    Fast(fast),
    /// The window is a cubic function of the time since the last congestion.
    Cubic(cubic),
    /// Reno that reacts early to the trend of the one-way delay.
    SyncTcp(sync_tcp),
    /// The window follows the queue that the spacing of arrivals shows.
    SantaCruz(santa_cruz),
    /// Cuts the window in proportion to the share of marks; for data centres.
    Dctcp(dctcp),
    /// Paces at the largest recent delivery rate and ignores losses.
    Bbr1(bbr1),
    /// Paces at the largest recent delivery rate, within bounds that losses set.
    Bbr3(bbr3),
    /// DCTCP for the Internet: paced, with fractional windows.
    Prague(prague),
    /// Grows by a share of the window; for large windows.
    Scalable(scalable),
    /// For background traffic: holds a small queueing delay and yields to other flows.
    LedbatPlusPlus(ledbat_plus_plus),
    /// The window is set from outside.
    External(external),
    ---
    /// A control of your own: a plug-in.
    Plugin(plugin),
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

    /// Whether the window is to grow exponentially.
    pub(crate) fn in_slow_start(&self, profile: &Profile) -> bool {
        self.window.in_slow_start(profile)
    }

    /// The window opens by so many bytes.
    pub(crate) fn open_by(&mut self, bytes: f64) {
        self.window.cwnd += bytes;
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

    /// The retransmission timer of a stack with Linux's rules has expired.
    pub(crate) fn on_loss_state(&mut self, profile: &Profile) {
        with_control!(&mut self.state, profile, control, params => {
            control.on_loss_state(params, &self.window);
        });
    }

    /// Sets ssthresh in bytes (a SYN was lost).
    pub(crate) fn set_ssthresh(&mut self, bytes: u64) {
        self.window.ssthresh = bytes as f64;
    }

    /// Sets the window to `bytes` (after a time-out, in fast recovery, after idling).
    pub(crate) fn set_window(&mut self, bytes: u64) {
        self.window.cwnd = bytes as f64;
    }

    /// All that an ACK shows; whether what is sent now says nothing about the path's bandwidth.
    pub(crate) fn on_sample(&mut self, sample: &Sample<'_>) -> bool {
        with_control!(&mut self.state, sample.profile, control, params => {
            control.on_sample(params, &mut self.window, sample);
            control.limits_samples()
        })
    }

    /// Something is sent after nothing was out.
    #[inline(never)]
    pub(crate) fn on_restart(&mut self, restart: &Restart<'_>) {
        with_control!(&mut self.state, restart.profile, control, params => {
            control.on_restart(params, &mut self.window, restart);
        });
    }

    /// Whether data that comes in order while nothing is out matters to it.
    #[inline]
    pub(crate) fn samples_when_idle(&self, profile: &Profile, now: Time) -> bool {
        with_control!(&self.state, profile, control, params => {
            control.samples_when_idle(params, &self.window, profile, now)
        })
    }

    /// The last congestion was none: the window and ssthresh of before it, in bytes.
    pub(crate) fn on_undo(&mut self, cwnd: u64, ssthresh: u64, profile: &Profile) {
        let window = &mut self.window;
        window.cwnd = window.cwnd.max(cwnd as f64);
        window.ssthresh = window.ssthresh.max(ssthresh as f64);
        with_control!(&mut self.state, profile, control, params => {
            control.on_undo(params, window);
        });
    }

    /// How many segments of `len` bytes leave at once as Linux paces.
    #[inline(never)]
    pub(crate) fn linux_burst(&self, rate: f64, min_rtt: Option<Time>, len: u64) -> u32 {
        with_control!(&self.state, control => control.linux_burst(rate, min_rtt, len))
    }

    /// Bytes per second at which segments are to leave.
    pub(crate) fn pacing_rate(&self, profile: &Profile, srtt: Option<Time>) -> Option<f64> {
        with_control!(&self.state, profile, control, params => {
            control.pacing_rate(params, &self.window, profile, srtt)
        })
    }

    /// The inner state, for traces.
    pub(crate) fn state(&self, profile: &Profile, srtt: Option<Time>) -> ControlState {
        let own = with_control!(&self.state, control => control.state());
        let mut state = own.unwrap_or_else(|| ControlState {
            phase: if self.in_slow_start(profile) {
                "slow-start"
            } else {
                "avoidance"
            },
            ..ControlState::default()
        });
        state.pacing_rate = state
            .pacing_rate
            .or_else(|| self.pacing_rate(profile, srtt));
        state
    }

    /// For traces.
    pub(crate) fn metrics(&self) -> ControlMetrics {
        with_control!(&self.state, control => control.metrics())
    }
}

#[cfg(test)]
mod replayed;

#[cfg(test)]
pub(crate) mod tests {
    use aqmlab_net::{Bytes, Time};

    use super::*;
    use crate::rate::Rate;
    use crate::recovery::RecoveryState;

    /// A window of so many segments, in congestion avoidance.
    pub(crate) fn segments(count: f64) -> Window {
        Window {
            cwnd: count * Feed::MSS as f64,
            ssthresh: 0.0,
        }
    }

    /// Makes samples of ACKs, one after the other.
    pub(crate) struct Feed {
        pub(crate) profile: Profile,
        pub(crate) now: Time,
        pub(crate) una: u64,
        pub(crate) max: u64,
        pub(crate) delivered: u64,
        pub(crate) rtt: Option<Time>,
        pub(crate) rate: Option<Rate>,
    }

    impl Default for Feed {
        fn default() -> Self {
            Self {
                profile: Profile {
                    mss: Bytes(Self::MSS),
                    ..Profile::named("linux").unwrap()
                },
                now: Time::ZERO,
                una: 1,
                max: 1,
                delivered: 0,
                rtt: None,
                rate: None,
            }
        }
    }

    impl Feed {
        pub(crate) const MSS: u64 = 1000;

        /// So many segments are sent.
        pub(crate) fn send(&mut self, count: u64) {
            self.max += count * Self::MSS;
        }

        /// So many segments are sent and acknowledged by one ACK, `ce` of them marked.
        pub(crate) fn acks(&mut self, count: u64, ce: u64) -> Sample<'_> {
            self.send(count);
            self.acks_of_what_is_out(count, ce)
        }

        /// So many segments of what is out are acknowledged by one ACK, `ce` of them marked.
        pub(crate) fn acks_of_what_is_out(&mut self, count: u64, ce: u64) -> Sample<'_> {
            let bytes = count * Self::MSS;
            let in_flight_before = self.max - self.una;
            self.una += bytes;
            self.delivered += bytes;
            Sample {
                now: self.now,
                profile: &self.profile,
                state: RecoveryState::Open,
                una: self.una,
                max: self.max,
                acked: bytes,
                advances: count > 0,
                marks: Marks {
                    bytes: ce * Self::MSS,
                    segments: ce,
                },
                losses: &[],
                rtt: self.rtt,
                srtt: self.rtt,
                rate: self.rate,
                delivered: self.delivered,
                lost: 0,
                in_flight_before,
                in_flight: self.max - self.una,
                window_limited: true,
            }
        }
    }
}
