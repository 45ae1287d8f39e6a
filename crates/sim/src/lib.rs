//! The simulated world: event loop, ports, hosts.
//!
//! [`run`] takes a scenario and returns its [`Summary`]; on the way it streams what happens to
//! [`Records`]. [`Simulation`] does the same step by step. One thread, integer nanoseconds, ties in order of insertion: the same scenario
//! and seed give the same bytes on every machine.

use aqmlab_net::Time;
use aqmlab_record::{MeasuredSpan, Records, RunError, Summary};
use aqmlab_scenario::Scenario;

mod capture;
mod connection;
mod connections;
mod datagrams;
mod event;
mod event_queue;
#[cfg(test)]
mod fingerprint;
mod hosts;
mod memory;
mod network;
mod options;
#[cfg(test)]
mod oracle;
mod outgoing;
mod route;
mod stack;
mod trace;
pub mod wheel;
mod world;

use event_queue::WheelQueue;
pub use memory::Memory;
use world::{Shortcuts, World};

/// The name of what the engine does: the same name, the same results. It changes when a hash of
/// `tests/behaviour/hashes.txt` does, and is renewed by the test that compares them.
pub const ENGINE: &str = include_str!("engine.txt").trim_ascii();

/// A run under way, one stretch of time after another: the same results as in one go.
pub struct Simulation {
    world: World<WheelQueue>,
    scenario: Scenario,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

impl Simulation {
    /// A scenario at time 0, which writes what it asks for to `records`. It ends with an error
    /// before it takes more than `memory`.
    pub fn start(
        scenario: &Scenario,
        records: Box<dyn Records>,
        memory: Memory,
    ) -> Result<Self, RunError> {
        memory.check(scenario)?;
        Ok(Self {
            world: World::new(scenario, Shortcuts::default(), records, memory)?,
            scenario: scenario.clone(),
        })
    }

    /// Simulates up to `time`, which does not go back, and at most to the end of the measured span.
    pub fn run_until(&mut self, time: Time) -> Result<(), RunError> {
        self.world.run_until(time)
    }

    /// Simulates what is left, writes what is left of the records, and sums up.
    pub fn end(mut self) -> Result<Summary, RunError> {
        self.world.run_until(Time::NEVER)?;
        self.world.end(&self.scenario)
    }
}

/// How often a run tells of its progress.
const REPORTS: u64 = 200;

/// Runs a scenario, and writes what it asks for to `records`.
///
/// `progress` is told the share of the simulated time that has passed, some 200 times a run, and
/// returns false to stop. The run may take most of the memory that is free.
pub fn run(
    scenario: &Scenario,
    records: Box<dyn Records>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Summary, RunError> {
    run_within(Memory::free(), scenario, records, progress)
}

/// Runs a scenario as [`run`] does, within a bound on memory.
pub fn run_within(
    memory: Memory,
    scenario: &Scenario,
    records: Box<dyn Records>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Summary, RunError> {
    let mut simulation = Simulation::start(scenario, records, memory)?;
    let end = MeasuredSpan::of(&scenario.measure).end.as_nanos();
    for report in 1..REPORTS {
        simulation.run_until(Time::from_nanos(end / REPORTS * report))?;
        if !progress(report as f64 / REPORTS as f64) {
            return Err(RunError::Stopped);
        }
    }
    simulation.end()
}
