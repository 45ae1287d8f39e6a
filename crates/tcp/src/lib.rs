//! TCP end points as the studied stacks behaved: handshake, data, loss recovery, congestion
//! control, close.
//!
//! Loss recovery, congestion control and ECN are orthogonal choices; a [`Profile`] names them and
//! every constant in which two stacks of the same algorithms still differ. An [`Endpoint`] is
//! sans-IO: it reads no clock and touches no queue.
//!
//! Not modelled: wrapping sequence numbers (see [`Segment`]), RST (an end point that gives up
//! falls silent), closed windows (readers are prompt), urgent data, simultaneous open.

mod control;
mod endpoint;
mod profile;
mod receive;
mod rto;
mod segment;

pub use endpoint::{Context, Endpoint, Events, Retransmissions};
pub use profile::{Clock, CongestionControl, CutFrom, DelayedAck, Profile, Recovery};
pub use rto::HostClock;
pub use segment::{Flags, Segment};
