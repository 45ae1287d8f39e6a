//! QUIC end points in simulated time (RFC 9000, 9001 and 9002), with the congestion controls of
//! `aqmlab-tcp`.
//!
//! A [`Connection`] is one end. It is sans-I/O: it reads no clock and touches no queue, and has no
//! randomness. Datagrams have the sizes of the real ones: frames, headers, packet numbers and tags are
//! counted to the byte. What nobody looks at is not carried (see `wire.rs`).
//!
//! Not modelled: cryptography, versions and Retry, migration, key updates,
//! the search for larger datagrams, the order of frames within a packet that others choose. Both ends
//! know the other's transport parameters; the lengths of the messages count them.

mod config;
mod congestion;
mod connection;
mod error;
mod insight;
mod rtt;
mod send;
mod space;
mod streams;
mod table;
#[cfg(test)]
mod tests;
mod wire;

pub use config::{Config, Early};
pub use connection::{Connection, Datagram};
pub use error::Error;
pub use insight::{Carried, Inspector, Numbered, Stated, Timers, Waits};
pub use streams::{Event, Limits};
pub use wire::Kind as PacketKind;
