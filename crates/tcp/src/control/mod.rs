//! Congestion control: how the window grows and what congestion does to it.
//!
//! [`Control`] keeps the window and does what all laws share: slow start, Reno's additive increase
//! and multiplicative decrease (RFC 5681), and BSD's and ns's departures from it as a profile
//! names them. Every other law is a [`Law`] in a file of its own. Bytes throughout, as `f64`: laws
//! with fractions of a segment need them, whole bytes are exact below 2^53.

mod cubic;
mod fast;
mod history;
mod santa_cruz;
mod sync_tcp;
mod vegas;

use aqmlab_net::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cubic::CubicParameters;
pub use fast::FastParameters;
pub use santa_cruz::SantaCruzParameters;
pub use sync_tcp::{DecreaseRule, SlowStartRule, SyncTcpParameters};
pub use vegas::VegasParameters;

use crate::profile::{CongestionControl, CutFrom, Profile};
use crate::segment::Timestamps;
use cubic::Cubic;
use fast::Fast;
use santa_cruz::SantaCruz;
use sync_tcp::SyncTcp;
use vegas::Vegas;

/// AIMD(a, b): `a / cwnd` per ACK, `b` times the window on congestion (Reno: 1 and 1/2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AimdParameters {
    /// Segments by which the window grows in a round trip of congestion avoidance.
    pub increase: f64,
    /// Share of the window that congestion leaves.
    pub decrease: f64,
}

impl Default for AimdParameters {
    fn default() -> Self {
        Self {
            increase: 1.0,
            decrease: 0.5,
        }
    }
}

/// What the laws move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// The congestion window in bytes.
    pub(crate) cwnd: f64,
    /// The slow-start threshold in bytes.
    pub(crate) ssthresh: f64,
}

impl Window {
    /// Reno's growth on an ACK of `acked` new bytes (RFC 5681, section 3.1).
    #[inline]
    pub(crate) fn grow(&mut self, acked: u64, profile: &Profile) {
        if self.in_slow_start(profile) {
            self.slow_start(acked, profile);
        } else {
            let acks = if profile.avoidance_counts_bytes {
                acked as f64 / profile.mss.0 as f64
            } else {
                1.0
            };
            self.avoid(acks * profile.aimd.increase, profile);
        }
    }

    /// Whether the window is to grow exponentially.
    #[inline]
    pub(crate) fn in_slow_start(&self, profile: &Profile) -> bool {
        self.cwnd < self.ssthresh || (profile.slow_start_at_ssthresh && self.cwnd == self.ssthresh)
    }

    /// Slow start: a segment per ACK, or what was acknowledged up to a limit (RFC 3465).
    #[inline]
    pub(crate) fn slow_start(&mut self, acked: u64, profile: &Profile) {
        let mss = profile.mss.0;
        let opened = if profile.byte_counting {
            acked.min(mss * u64::from(profile.byte_counting_limit))
        } else {
            mss
        };
        self.cwnd += opened as f64;
    }

    /// Congestion avoidance: `increase` segments per round trip, spread over its ACKs.
    #[inline]
    pub(crate) fn avoid(&mut self, increase: f64, profile: &Profile) {
        let mss = profile.mss.0 as f64;
        let step = increase * mss * mss / self.cwnd;
        self.cwnd += if profile.whole_bytes {
            ((step as i64) as f64).max(1.0)
        } else {
            step
        };
    }
}

/// An ACK of new data outside of loss recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    pub(crate) now: Time,
    pub(crate) profile: &'a Profile,
    /// Bytes that it acknowledges.
    pub(crate) acked: u64,
    /// The oldest byte not acknowledged, from now on.
    pub(crate) una: u64,
    /// Behind the highest byte sent.
    pub(crate) max: u64,
}

/// Congestion: a loss found by duplicate ACKs or by the timer, or an ECN echo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion<'a> {
    pub(crate) now: Time,
    pub(crate) profile: &'a Profile,
    /// Bytes in flight.
    pub(crate) flight: u64,
    /// The smaller of the window in use and the peer's, in bytes.
    pub(crate) window: u64,
    pub(crate) cause: Cause,
}

/// What tells of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Duplicate ACKs.
    Loss,
    /// The receiver has echoed a mark.
    Echo,
    /// The retransmission timer has expired: what follows starts from one segment.
    Timeout,
}

/// What a law shows of itself in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LawMetrics {
    /// The queueing delay that the law sees; laws that look only at losses see none.
    pub queueing_delay: Option<Time>,
    /// Segments that the law counts in the queue, or adds per round trip.
    pub segments: Option<f64>,
}

/// A law of congestion control other than Reno's. All events have an empty default but the opening
/// of the window: a law says only where it departs from Reno.
pub(crate) trait Law {
    /// `[seq, end)` is sent; `resent`: not for the first time.
    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        let _ = (seq, end, resent, now);
    }

    /// The time stamps of an ACK, new or duplicate, in recovery or not; `of_data`: something is
    /// in flight that it may acknowledge.
    fn on_timestamps(&mut self, stamps: &Timestamps, of_data: bool) {
        let _ = (stamps, of_data);
    }

    /// New data is acknowledged and no loss is being repaired: open the window.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack<'_>);

    /// New data is acknowledged while a loss is repaired.
    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        let _ = ack;
    }

    /// A duplicate ACK, or one of new data: whether the segment at `una` is overdue and goes
    /// again at once.
    fn is_overdue(&mut self, una: u64, now: Time, new_ack: bool) -> bool {
        let _ = (una, now, new_ack);
        false
    }

    /// The connection has been idle for longer than the retransmission time-out.
    fn on_idle(&mut self) {}

    /// Congestion: the new ssthresh in bytes, at least two segments; none: Reno's.
    fn on_congestion(&mut self, window: &Window, congestion: &Congestion<'_>) -> Option<f64> {
        let _ = (window, congestion);
        None
    }

    /// For traces.
    fn metrics(&self) -> LawMetrics;
}

/// Reno, or a law with a state of its own.
#[derive(Clone, Debug)]
enum State {
    Reno,
    Vegas(Box<Vegas>),
    Fast(Box<Fast>),
    Cubic(Box<Cubic>),
    SyncTcp(Box<SyncTcp>),
    SantaCruz(Box<SantaCruz>),
}

/// Calls a law's method; Reno has none and gives the second value.
macro_rules! law {
    ($state:expr, $law:ident => $call:expr, $reno:expr) => {
        match $state {
            State::Reno => $reno,
            State::Vegas($law) => $call,
            State::Fast($law) => $call,
            State::Cubic($law) => $call,
            State::SyncTcp($law) => $call,
            State::SantaCruz($law) => $call,
        }
    };
}

/// The congestion window of one end point and how it moves.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    window: Window,
    state: State,
}

/// BSD's largest window without the window-scale option.
const MAX_WINDOW: f64 = 65_535.0;

impl Control {
    #[inline]
    pub(crate) fn new(profile: &Profile) -> Self {
        let state = match profile.congestion_control {
            CongestionControl::Reno => State::Reno,
            CongestionControl::Vegas => State::Vegas(Box::default()),
            CongestionControl::Fast => State::Fast(Box::default()),
            CongestionControl::Cubic => State::Cubic(Box::default()),
            CongestionControl::SyncTcp => State::SyncTcp(Box::default()),
            CongestionControl::SantaCruz => State::SantaCruz(Box::default()),
        };
        Self {
            window: Window {
                cwnd: profile.mss.0 as f64,
                ssthresh: profile.initial_ssthresh.0 as f64,
            },
            state,
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
        law!(&mut self.state, law => law.on_ack(&mut self.window, ack),
            self.window.grow(ack.acked, ack.profile));
        if ack.profile.window_growth_limited {
            self.window.cwnd = self.window.cwnd.min(MAX_WINDOW);
        }
    }

    /// New data was acknowledged while a loss is repaired.
    pub(crate) fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        law!(&mut self.state, law => law.on_recovery_ack(ack), ());
    }

    /// A segment leaves.
    #[inline]
    pub(crate) fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        law!(&mut self.state, law => law.on_send(seq, end, resent, now), ());
    }

    /// The peer has stamped an ACK.
    pub(crate) fn on_timestamps(&mut self, stamps: &Timestamps, of_data: bool) {
        law!(&mut self.state, law => law.on_timestamps(stamps, of_data), ());
    }

    /// An ACK: whether the law wants the oldest segment sent again at once.
    #[inline]
    pub(crate) fn is_overdue(&mut self, una: u64, now: Time, new_ack: bool) -> bool {
        law!(&mut self.state, law => law.is_overdue(una, now, new_ack), false)
    }

    /// Nothing was sent or received for longer than the retransmission time-out.
    pub(crate) fn on_idle(&mut self) {
        law!(&mut self.state, law => law.on_idle(), ());
    }

    /// Congestion: ssthresh falls. Returns the window that goes with it; whether that becomes the
    /// window is the caller's affair, because it depends on how the loss was found.
    pub(crate) fn cut(&mut self, congestion: &Congestion<'_>) -> u64 {
        let profile = congestion.profile;
        let window = &mut self.window;
        let least = match congestion.cause {
            Cause::Echo => profile.ecn_least_ssthresh,
            Cause::Loss | Cause::Timeout => 2,
        };
        let floor = f64::from(least) * profile.mss.0 as f64;
        let own = law!(&mut self.state, law => law.on_congestion(window, congestion), None);
        if let Some(ssthresh) = own {
            window.ssthresh = ssthresh.max(floor);
            return window.ssthresh as u64;
        }
        let mss = profile.mss.0;
        let share = profile.aimd.decrease;
        let (ssthresh, cwnd) = match profile.cut_from {
            CutFrom::Flight => {
                let left = (share * congestion.flight as f64) as u64;
                (left, left)
            }
            CutFrom::Window => {
                let left = (share * congestion.window as f64) as u64 / mss * mss;
                (left, left)
            }
            CutFrom::FractionalWindow => {
                let left = (share * congestion.window as f64) as u64;
                (left / mss * mss, left.max(mss))
            }
        };
        window.ssthresh = (ssthresh as f64).max(floor);
        match profile.cut_from {
            CutFrom::FractionalWindow => cwnd,
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
    pub(crate) fn metrics(&self) -> LawMetrics {
        law!(&self.state, law => law.metrics(), LawMetrics::default())
    }
}
