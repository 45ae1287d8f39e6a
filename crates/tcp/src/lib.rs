//! TCP end points as the studied stacks behaved: handshake, data, loss recovery, congestion
//! control, close.
//!
//! Loss recovery, congestion control and ECN are orthogonal choices; a [`Profile`] names them and
//! every constant in which two stacks of the same algorithms still differ. An [`Endpoint`] is
//! sans-IO: it reads no clock and touches no queue.
//!
//! Not modelled: the wire format of options, initial sequence numbers other than 0 (numbers wrap
//! only where segments are carried, see [`Segment`]), windows that close (readers are prompt), the
//! time that TIME-WAIT lasts, urgent data. An end point that aborts falls silent.

mod accecn;
mod agreed;
mod context;
pub mod control;
mod counters;
mod endpoint;
mod filter;
mod handshake;
mod law;
mod peer_metrics;
mod profile;
mod rate;
mod receiver;
mod recovery;
mod rto;
pub mod script;
mod segment;
mod sender;

pub use context::Context;
pub use control::{CongestionControlKind, ControlMetrics, ControlState};
pub use counters::Counters;
pub use endpoint::{Endpoint, Events, SendLimit, Timers};
pub use law::{Law, Report, Stamp};
pub use peer_metrics::PeerMetrics;
pub use profile::{
    AtSsthresh, BackoffEnd, Clock, CongestionAvoidance, CwndArithmetic, DecreaseBase, DelayedAck,
    EcnEcho, EcnReaction, Ect, EctOn, FastRetransmitGuard, Frto, InitialRecover, NewRenoExit,
    NewRenoVariant, Pacing, PacingBurst, PeerCache, Profile, RackRules, RateReduction, Recovery,
    RepeatedTimeout, RtoMinBounds, SackAtTimeout, SlowStart, SlowStartExit, TailLossProbe,
    WindowCounts, WindowGrowth,
};
pub use receiver::Delivered;
pub use recovery::RecoveryState;
pub use rto::HostClock;
pub use segment::{
    AccEcnOption, Flags, MAX_SACK_BLOCKS, Options, Outbox, RoundTrip, Segment, SegmentKind,
    Timestamps,
};
pub use sender::{Probe, Retransmissions};
