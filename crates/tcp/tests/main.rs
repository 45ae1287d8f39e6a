//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod behaviour;
mod conformance;
mod fall_floyd;
mod fast_path;
mod law;
mod net;
mod scripts;
mod stream;
