//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod pair;
mod streams;
mod wire;
mod witness;
