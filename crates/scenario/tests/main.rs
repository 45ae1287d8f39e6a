//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod broken;
mod mutations;
mod refused;
mod shipped;
