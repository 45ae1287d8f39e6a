//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod common;
mod connections;
mod formats;
mod lossy;
mod robust;
mod segments;
mod tidy;
mod writer;
