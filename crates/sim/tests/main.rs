//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod behaviour;
mod breakdown;
mod common;
mod http3;
mod latency;
mod packets;
mod phases;
mod quic;
mod quinn;
mod records;
mod stepping;
mod traffic;
mod users;
mod vectors;
mod world;
