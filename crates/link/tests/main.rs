//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod agree;
mod changes;
mod device_ring;
mod plain;
mod sojourn;
mod variable;
mod watched;
