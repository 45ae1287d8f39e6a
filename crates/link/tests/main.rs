//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod agree;
mod changes;
mod device_ring;
mod plain;
mod sojourn;
mod variable;
mod watched;

/// What is known of a packet, asked by reference: a closure has a type of its own, with which each
/// test would compile all disciplines anew.
type Known<'a> = &'a dyn Fn() -> aqmlab_aqm::Details;
