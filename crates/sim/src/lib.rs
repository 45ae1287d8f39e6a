//! The simulated world: event loop, ports, hosts.
//!
//! [`run`] takes a scenario and returns its [`Summary`]; on the way it streams what happens to
//! [`Records`]. [`Simulation`] does the same step by step. One thread, integer nanoseconds, ties in order of insertion: the same scenario
//! and seed give the same bytes on every machine.

use aqmlab_net::Time;
use aqmlab_record::{MeasuredSpan, Records, RunError, Summary};
use aqmlab_scenario::{Change, HAS_BREAKDOWN, Record, Scenario, ScenarioError};
use aqmlab_traffic::Quality;

mod air;
mod asked;
mod breakdown;
mod capture;
mod connection;
mod connections;
mod datagrams;
mod engine;
mod event;
mod event_queue;
#[cfg(test)]
mod fingerprint;
mod hints;
mod hosts;
mod memory;
mod network;
mod options;
#[cfg(test)]
mod oracle;
mod outgoing;
mod packet_log;
#[cfg(test)]
mod pages;
mod payloads;
mod peer_cache;
mod route;
mod sockets;
mod stack;
mod trace;
mod transports;
mod watch;
pub mod wheel;
mod world;

use engine::{Explained, Logged, Plain};
use event_queue::WheelQueue;
pub use memory::Memory;
pub use world::{FlowState, Observation};
use world::{Shortcuts, Steps, World};

/// The name of what the engine does: the same name, the same results. It changes when a hash of
/// `tests/behaviour/hashes.txt` does, and is renewed by the test that compares them.
pub const ENGINE: &str = include_str!("engine.txt").trim_ascii();

/// The world of a scenario, of the kind that it needs.
fn world(
    scenario: &Scenario,
    shortcuts: Shortcuts,
    records: Box<dyn Records>,
    memory: Memory,
) -> Result<Box<dyn Steps + Send>, RunError> {
    let measure = &scenario.measure;
    // What a build leaves out is no world of it, and the linker drops it.
    Ok(if HAS_BREAKDOWN && measure.breakdown {
        Box::new(World::<Explained<WheelQueue>>::new(
            scenario, shortcuts, records, memory,
        )?)
    } else if cfg!(feature = "packets") && measure.record.contains(&Record::Packets) {
        Box::new(World::<Logged<WheelQueue>>::new(
            scenario, shortcuts, records, memory,
        )?)
    } else {
        Box::new(World::<Plain<WheelQueue>>::new(
            scenario, shortcuts, records, memory,
        )?)
    })
}

/// A run under way, one stretch of time after another: the same results as in one go.
pub struct Simulation {
    world: Box<dyn Steps + Send>,
    scenario: Scenario,
    /// All earlier events have happened, and nothing of this time.
    now: Time,
    end: Time,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

impl Simulation {
    /// A scenario at time 0, which writes what it asks for to `records`. It ends with an error
    /// before it takes more than `memory`. Nothing changes but what the scenario says.
    pub fn start(
        scenario: &Scenario,
        records: Box<dyn Records>,
        memory: Memory,
    ) -> Result<Self, RunError> {
        Self::with(scenario, Shortcuts::default(), records, memory)
    }

    /// The same, where [`set`](Self::set) can change something. It takes somewhat longer.
    pub fn start_changeable(
        scenario: &Scenario,
        records: Box<dyn Records>,
        memory: Memory,
    ) -> Result<Self, RunError> {
        let shortcuts = Shortcuts {
            changeable: true,
            ..Shortcuts::default()
        };
        Self::with(scenario, shortcuts, records, memory)
    }

    fn with(
        scenario: &Scenario,
        shortcuts: Shortcuts,
        records: Box<dyn Records>,
        memory: Memory,
    ) -> Result<Self, RunError> {
        memory.check(scenario)?;
        Ok(Self {
            world: world(scenario, shortcuts, records, memory)?,
            scenario: scenario.clone(),
            now: Time::ZERO,
            end: MeasuredSpan::of(&scenario.measure).end,
        })
    }

    /// Simulates up to `time`, which does not go back, and at most to the end of the measured span.
    /// What happens at `time` is still to come.
    pub fn run_until(&mut self, time: Time) -> Result<(), RunError> {
        self.now = self.now.max(time.min(self.end));
        self.world.run_until(self.now)
    }

    /// Up to when it has been simulated.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The end of the measured span.
    pub const fn end_time(&self) -> Time {
        self.end
    }

    /// Gives `key` another value from now on; keys and values are those of [`Change`]. Nothing
    /// happens if it has this value already.
    ///
    /// # Panics
    ///
    /// Where the simulation was not [started for that](Self::start_changeable).
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        if self.now >= self.end {
            let message = format!(
                "the run is over at {}; nothing can change any more",
                self.end
            );
            return Err(ScenarioError::of(key, message));
        }
        let change = Change {
            at: Some(self.now),
            when: None,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        self.world.change_due(self.now)?;
        self.world.change(change)
    }

    /// The keys that can change.
    pub fn changeable(&self) -> Vec<String> {
        self.world.changeable()
    }

    /// The scenario with all that was changed: it gives the same results in one go.
    pub fn scenario(&self) -> Scenario {
        Scenario {
            changes: self.world.changes(),
            ..self.scenario.clone()
        }
    }

    /// What links and connections are doing now.
    pub fn observe(&mut self) -> Observation {
        self.world.observe(self.now)
    }

    /// By class: what its users got so far in the measured span, where the class keeps an account of
    /// that. Calls are rated in windows of 10 s, 3 s after their end.
    pub fn quality(&self) -> Vec<Option<Quality>> {
        self.world.quality(self.now)
    }

    /// Simulates what is left, writes what is left of the records, and sums up.
    pub fn end(mut self) -> Result<Summary, RunError> {
        self.world.run_until(Time::NEVER)?;
        let scenario = self.scenario();
        self.world.end(&scenario)
    }
}

/// How often a run reports its progress.
const REPORTS: u64 = 200;

/// Runs a scenario, and writes what it asks for to `records`.
///
/// `progress` gets the share of the simulated time that has passed, some 200 times a run, and
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
