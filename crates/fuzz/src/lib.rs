//! What fuzzing feeds: the body of each target, and what must hold whatever comes.
//!
//! A target takes any bytes and panics where something does not hold. `make fuzz` lets libFuzzer
//! look for such bytes, guided by coverage; the tests of this crate replay what is kept in
//! `fuzz/corpus` and `fuzz/regressions`.

mod captures;
mod conversation;
mod datagrams;
mod discipline;
mod layers;
mod run;
mod scenario;
mod segments;
mod stack;
mod stream;
mod vectors;

/// Each target as a function: an executable that calls one has the code of no other, and little
/// coverage to look through after each input.
pub use captures::{check_pcap as pcap, check_pcapng as pcapng};
pub use conversation::check as conversation;
pub use datagrams::check as datagrams;
pub use discipline::check as discipline;
pub use layers::check as layers;
pub use run::check as run;
pub use scenario::check as scenario;
pub use segments::check as segments;
pub use stream::check as stream;
pub use vectors::check as vectors;

/// A body, and what it is for.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of its folders in `fuzz/corpus` and `fuzz/regressions`.
    pub name: &'static str,
    /// Panics if what must hold does not.
    pub check: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("scenario", scenario),
    target("vectors", vectors),
    target("pcap", pcap),
    target("pcapng", pcapng),
    target("layers", layers),
    target("conversation", conversation),
    target("segments", segments),
    target("stream", stream),
    target("datagrams", datagrams),
    target("discipline", discipline),
    target("run", run),
];

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}
