//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod clock;
mod common;
mod connections;
mod formats;
mod lossy;
mod places;
mod robust;
mod segments;
mod tidy;
mod writer;
