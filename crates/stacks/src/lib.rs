//! End points that are not ours: other people's stacks of datagrams, in simulated time.
//!
//! A stack is sans-I/O: it is fed a datagram and the time, and gives datagrams, the next timer and
//! what its application has to know. [`Stack`] is that interface, for one end of one connection;
//! [`End`] is an end with one of the stacks that this build has. Nothing here reads a clock, and all
//! randomness comes from the seed: the same calls give the same bytes.

mod end;
#[cfg(feature = "quinn")]
mod quinn;
mod settings;

pub use end::{Burst, End, Progress, Stack, State};
pub use settings::{Control, HAS_QUINN, Quinn};

/// Bytes of the IPv4 and UDP headers that every datagram has on the wire.
pub const HEADER: u32 = 28;
