//! The simulated world: event loop, ports, hosts.
//!
//! [`run`] takes a scenario and returns its [`Summary`]; on the way it streams what happens to
//! [`Records`]. One thread, integer nanoseconds, ties in order of insertion: the same scenario
//! and seed give the same bytes on every machine.

use aqmlab_record::{Records, RunError, Summary};
use aqmlab_scenario::Scenario;

mod activity;
mod build;
mod capture;
mod connection;
mod conservation;
mod datagrams;
mod event;
mod event_queue;
mod hosts;
mod limits;
mod network;
mod options;
#[cfg(test)]
mod oracle;
mod trace;
pub mod vectors;
pub mod wheel;
mod world;

use event_queue::WheelQueue;
use world::{Shortcuts, World};

/// The name of what the engine does: the same name, the same results. It changes when a hash of
/// `tests/behaviour/hashes.txt` does, and is renewed by the test that compares them.
pub const ENGINE: &str = include_str!("engine.txt").trim_ascii();

/// Runs a scenario, and writes what it asks for to `records`.
///
/// `progress` is told the share of the simulated time that has passed, some 200 times a run, and
/// returns false to stop.
pub fn run(
    scenario: &Scenario,
    records: Box<dyn Records>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Summary, RunError> {
    let mut world = World::<WheelQueue>::new(scenario, Shortcuts::default(), records)?;
    world.run(progress)?;
    world.finish(scenario)
}
