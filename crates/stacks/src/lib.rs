//! Stacks of datagrams in simulated time: QUIC that is not ours, and QUIC of our own.
//!
//! A stack is sans-I/O: it is fed a datagram and the time, and gives datagrams, the next timer and
//! what its application has to know. [`Stack`] is that interface, for one end of one connection;
//! [`End`] is an end with one of the stacks. Nothing here reads a clock, and all
//! randomness comes from the seed: the same calls give the same bytes.

mod end;
mod http3;
#[cfg(feature = "quic")]
mod own;
#[cfg(not(feature = "quic"))]
#[path = "no_own.rs"]
mod own;
mod quic;
#[cfg(feature = "quinn")]
mod quinn;
mod settings;
mod stack;

pub use aqmlab_quic::{
    Carried, Connection as QuicConnection, Inspector, Numbered, PacketKind, Stated,
    Timers as QuicTimers, Waits,
};
pub use end::{Class, End};
pub use own::{EarlyData, Quic};
pub use settings::{Control, HAS_QUIC, HAS_QUINN, HAS_STACKS, Quinn};
pub use stack::{Burst, Progress, Stack, State};

/// Bytes of the IPv4 and UDP headers that every datagram has on the wire.
pub const HEADER: u32 = 28;
