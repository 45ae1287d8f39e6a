//! What a congestion control gets, and what it answers.

use std::cell::Cell;

use aqmlab_declare::Parameters;
use aqmlab_net::Time;

use super::window::Window;
use crate::profile::{EcnEcho, Ect, Profile};
use crate::rate::{Loss, Rate};
use crate::recovery::RecoveryState;
use crate::segment::{Stamps, Timestamps};
use crate::sender::rack::pace;

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
    /// Where the window is a whole number of segments (Linux): how many have been acknowledged on the way to
    /// the next one.
    pub(crate) counted: Option<&'a Cell<u32>>,
}

/// What an ACK reports of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) bytes: u64,
    pub(crate) segments: u64,
}

/// All that an ACK reports, whatever state the connection is in: from senders that keep a log of each
/// segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) now: Time,
    pub(crate) profile: &'a Profile,
    /// The state that it leaves.
    pub(crate) state: RecoveryState,
    /// The oldest byte not acknowledged, from now on, and behind the highest byte sent.
    pub(crate) una: u64,
    pub(crate) max: u64,
    /// Bytes newly delivered, by acknowledgement or by SACK.
    pub(crate) acked: u64,
    /// It acknowledges new data.
    pub(crate) advances: bool,
    /// Marks newly reported.
    pub(crate) marks: Marks,
    /// Segments newly found lost.
    pub(crate) losses: &'a [Loss],
    /// The round trip of the newest segment delivered that was sent once.
    pub(crate) rtt: Option<Time>,
    /// The smoothed round trip.
    pub(crate) srtt: Option<Time>,
    pub(crate) rate: Option<Rate>,
    /// Bytes delivered and lost since the connection began.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    /// Bytes in flight before and after it.
    pub(crate) in_flight_before: u64,
    pub(crate) in_flight: u64,
    /// The window was used before it.
    pub(crate) window_limited: bool,
}

/// Something is sent after nothing was out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart<'a> {
    pub(crate) now: Time,
    pub(crate) profile: &'a Profile,
    pub(crate) srtt: Option<Time>,
    /// Bytes delivered since the connection began.
    pub(crate) delivered: u64,
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
    /// The window is a whole number of segments (Linux).
    pub(crate) whole: bool,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Duplicate ACKs.
    Loss,
    /// The receiver has echoed a mark.
    Echo,
    /// The retransmission timer has expired: what follows starts from one segment.
    Timeout,
}

/// How far congestion reduces ssthresh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decrease {
    /// To this share of what the profile takes it from.
    Share(f64),
    /// To this many bytes.
    Bytes(f64),
}

impl Decrease {
    /// Reno's (RFC 5681, equation 4).
    pub(crate) const HALF: Self = Self::Share(0.5);
}

/// What a congestion control shows of itself in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControlMetrics {
    /// The queueing delay that it sees; one that looks only at losses sees none.
    pub queueing_delay: Option<Time>,
    /// Segments that it counts in the queue, or adds per round trip.
    pub segments: Option<f64>,
}

/// The inner state of a congestion control, for traces: none where it has no such thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControlState {
    /// What it is doing.
    pub phase: &'static str,
    /// The bandwidth that it has seen and the one that it uses, in bytes of payload per second.
    pub max_bw: Option<f64>,
    /// See `max_bw`.
    pub bw: Option<f64>,
    /// The smallest round trip of late.
    pub min_rtt: Option<Time>,
    /// Bytes per second, headers included, at which segments leave.
    pub pacing_rate: Option<f64>,
    /// Bounds of what is in flight, in bytes, and of the bandwidth.
    pub inflight_longterm: Option<f64>,
    /// See `inflight_longterm`.
    pub inflight_shortterm: Option<f64>,
    /// See `inflight_longterm`.
    pub bw_shortterm: Option<f64>,
    /// Bytes that are acknowledged beyond what the bandwidth explains.
    pub extra_acked: Option<f64>,
    /// Whether it has found the pipe full.
    pub full_bw_reached: Option<bool>,
    /// Rounds since the connection began, and how often it has probed, or where in the cycle it is.
    pub round: Option<u64>,
    /// See `round`.
    pub cycle: Option<u64>,
}

/// A congestion control: how the window grows and what congestion does to it.
///
/// It holds what a connection remembers; parameters are those of the stack and come with each
/// event that moves the window. Events have a default of Reno's or none, except the opening of the
/// window.
pub(crate) trait CongestionControl: Default {
    /// Its parameters, as a scenario states them.
    type Params: ControlParameters<Control = Self>;

    /// `[seq, end)` is sent; `resent`: not for the first time.
    #[inline]
    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        let _ = (seq, end, resent, now);
    }

    /// The time stamps of an ACK, new or duplicate, in recovery or not; `of_data`: something is
    /// in flight that it may acknowledge. Only for those that ask for time stamps of their own
    /// ([`ControlParameters::STAMPS`]).
    #[inline]
    fn on_timestamps(&mut self, stamps: &Timestamps, of_data: bool) {
        let _ = (stamps, of_data);
    }

    /// New data is acknowledged and no loss is being repaired: open the window.
    fn on_ack(&mut self, params: &Self::Params, window: &mut Window, ack: &Ack<'_>);

    /// New data is acknowledged while a loss is repaired, or by an ACK that opens no window.
    #[inline]
    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        let _ = ack;
    }

    /// A duplicate ACK, or one of new data: whether the segment at `una` is overdue and goes
    /// again at once.
    #[inline]
    fn is_overdue(&mut self, una: u64, now: Time, new_ack: bool) -> bool {
        let _ = (una, now, new_ack);
        false
    }

    /// The connection has been idle for longer than the retransmission time-out.
    fn on_idle(&mut self) {}

    /// Congestion: how far ssthresh falls. It stays at two segments at least.
    fn on_congestion(
        &mut self,
        params: &Self::Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        let _ = (params, window, congestion);
        Decrease::HALF
    }

    /// The retransmission timer has expired, whether or not that is congestion of its own: Linux's state Loss.
    #[inline]
    fn on_loss_state(&mut self, params: &Self::Params, window: &Window) {
        let _ = (params, window);
    }

    /// An ACK, whatever state the connection is in. Comes from senders that keep a log of each
    /// segment (`recovery = "rack-tlp"`), before [`on_ack`](Self::on_ack).
    #[inline]
    fn on_sample(&mut self, params: &Self::Params, window: &mut Window, sample: &Sample<'_>) {
        let _ = (params, window, sample);
    }

    /// The sender has had nothing out, and sends again.
    #[inline]
    fn on_restart(&mut self, params: &Self::Params, window: &mut Window, restart: &Restart<'_>) {
        let _ = (params, window, restart);
    }

    /// Whether it wants a sample of data that comes in order while nothing is out. Else the sample, which
    /// reports nothing, would change nothing.
    #[inline]
    fn samples_when_idle(
        &self,
        params: &Self::Params,
        window: &Window,
        profile: &Profile,
        now: Time,
    ) -> bool {
        let _ = (params, window, profile, now);
        false
    }

    /// The last congestion was none: the window and ssthresh of before it are in force again.
    #[inline]
    fn on_undo(&mut self, params: &Self::Params, window: &mut Window) {
        let _ = (params, window);
    }

    /// Bytes per second, headers included, at which segments are to leave; none: as the window allows.
    #[inline]
    fn pacing_rate(
        &self,
        params: &Self::Params,
        window: &Window,
        profile: &Profile,
        srtt: Option<Time>,
    ) -> Option<f64> {
        let _ = (params, window, profile, srtt);
        None
    }

    /// Whether it sends less than it could for reasons of its own: samples say nothing about the bandwidth.
    #[inline]
    fn limits_samples(&self) -> bool {
        false
    }

    /// How many segments of `len` bytes, headers included, Linux lets go at once at a pacing rate in bytes
    /// per second. `min_rtt`: the smallest round trip.
    fn linux_burst(&self, rate: f64, min_rtt: Option<Time>, len: u64) -> u32 {
        pace::linux_burst(rate, min_rtt, len, 2)
    }

    /// For traces.
    fn metrics(&self) -> ControlMetrics {
        ControlMetrics::default()
    }

    /// Its inner state, for traces; none: slow start or avoidance.
    fn state(&self) -> Option<ControlState> {
        None
    }

    /// The phases that [`state`](Self::state) names.
    const PHASES: &'static [&'static str] = &["slow-start", "avoidance"];
}

/// Parameters of a congestion control, and what it asks of the stack and of the live bed.
pub(crate) trait ControlParameters: Parameters {
    /// The congestion control that they are for.
    type Control: CongestionControl<Params = Self>;

    /// Time stamps that the segments of both ends carry for it; none: those of the profile, if any.
    const STAMPS: Option<Stamps> = None;

    /// It sets the window itself, in recovery and after an idle time too; it needs samples.
    const OWNS_WINDOW: bool = false;

    /// It answers marks itself, by the samples that it needs.
    const ANSWERS_MARKS: bool = false;

    /// The echo of marks that it is made for: what a scenario has that states none.
    const ECHO: EcnEcho = EcnEcho::UntilCwr;

    /// The code point of its data, likewise.
    const ECT: Ect = Ect::Ect0;

    /// It goes by samples, though it leaves window and marks to the stack.
    const NEEDS_SAMPLES: bool = false;

    /// What Linux calls it, if its kernels have it.
    const LINUX: Option<&'static str> = None;
}
