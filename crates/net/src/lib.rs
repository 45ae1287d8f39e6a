//! The words that every part of aqmlab shares.
//!
//! - [`Time`], [`Rate`], [`Bytes`], [`QueueSize`], [`Frequency`]: quantities with units, read from
//!   and written to strings such as `"50 ms"` or `"10 Mbit/s"`;
//! - [`Packet`], [`Ecn`], [`FlowKey`]: what a queue discipline may know of a packet;
//! - [`Role`]: the two ends of a connection;
//! - [`Ranges`]: sets of sequence numbers;
//! - [`RandomStream`]: named, portable random numbers.
//!
//! Nothing here reads a clock, a file or a global: time comes in as an argument.

mod fnv;
mod packet;
mod quantity;
mod random;
mod ranges;
mod role;
mod time;

pub use fnv::{FNV_BASIS, fnv1a};
pub use packet::{Ecn, FlowKey, Packet};
pub use quantity::{Bytes, Frequency, QuantityError, QueueSize, Rate};
pub use random::RandomStream;
pub use ranges::Ranges;
pub use role::Role;
pub use time::Time;
