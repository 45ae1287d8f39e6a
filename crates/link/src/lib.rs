//! One direction of a link: queue discipline, device ring, wire.
//!
//! A [`Port`] takes the packets that arrive at a link and reports what becomes of them: dropped by
//! the discipline, lost on the wire, or at the far end at such a time with such an ECN field. It
//! reads no clock and keeps no events. Its caller states the time at which each thing happens, so
//! an event loop that is always in time and a router that looks up late get the same answers.
//!
//! [`AccessLinks`] are the hosts' own links, which have no discipline and never drop.
//!
//! Times are nanoseconds since the start of the run ([`Time`](aqmlab_net::Time)), sizes are IP
//! bytes; the framing is added here.

mod access;
mod bypass;
mod fifo_service;
mod gate;
mod port;
mod queue_service;
mod ring_buffer;
mod wire;

pub use access::AccessLinks;
pub use port::{Port, PortState};
pub use wire::Transmission;
