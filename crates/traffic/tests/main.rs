//! The integration tests of this crate: one binary, because linking takes longer than most of them.

mod packmime;
mod scripts;
mod sessions;
mod sources;
mod subsets;
mod vectors;
mod web;
