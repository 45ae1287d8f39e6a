//! What fuzzing feeds: the body of each target, and what must hold whatever comes.
//!
//! A target takes any bytes and panics where something does not hold. `make fuzz` lets libFuzzer
//! look for such bytes, guided by coverage; the tests of this crate replay what is kept in
//! `fuzz/corpus` and `fuzz/regressions`.

mod captures;
mod conversation;
mod discipline;
mod run;
mod scenario;
mod segments;
mod stack;
mod stream;
mod vectors;

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
    target("scenario", scenario::check),
    target("vectors", vectors::check),
    target("pcap", captures::check_pcap),
    target("pcapng", captures::check_pcapng),
    target("conversation", conversation::check),
    target("segments", segments::check),
    target("stream", stream::check),
    target("discipline", discipline::check),
    target("run", run::check),
];

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// The target of a name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
