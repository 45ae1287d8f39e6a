//! The simulated world: event loop, ports, hosts, recorder.
//!
//! [`run`] takes a scenario and returns its [`Summary`]; on the way it streams what happened to
//! Parquet files. One thread, integer nanoseconds, ties in order of insertion: the same scenario
//! and seed give the same bytes on every machine.

use std::path::Path;

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
mod metrics;
mod network;
mod options;
#[cfg(test)]
mod oracle;
mod port;
mod recorder;
mod stats;
mod summary;
mod times;
mod trace;
pub mod vectors;
pub mod wheel;
mod world;

pub use metrics::{ExchangeRecord, FlowRecord, LinkMetrics, Metrics};
pub use summary::{FlowSummary, LinkSummary, ResponseSummary, RetransmissionShares, Summary};

use capture::Capture;
use event_queue::WheelQueue;
use recorder::Recorder;
use world::{Shortcuts, World};

/// The name of what the engine does: the same name, the same results. It changes when a hash of
/// `tests/behaviour/hashes.txt` does, and is renewed by the test that compares them.
pub const ENGINE: &str = include_str!("engine.txt").trim_ascii();

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A class of traffic has neither users nor a rate: it must be calibrated first.
    #[error("{0}")]
    Population(String),
    /// A file of connection vectors could not be read to its end.
    #[error("{0}")]
    Vectors(String),
    /// A record could not be written.
    #[error("cannot write {0}")]
    Record(String),
    /// The books do not balance: an error of the simulator. Nothing of the run can be trusted.
    #[error("conservation violated, please report this: {0}")]
    Conservation(String),
    /// The caller asked for it.
    #[error("the run was stopped")]
    Stopped,
}

impl From<parquet::errors::ParquetError> for RunError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Record(error.to_string())
    }
}

/// Runs a scenario.
///
/// Writes `distribution.parquet` into `directory`, and `responses.parquet`, `flows.parquet`, `queue.parquet`,
/// `flow_trace.parquet` and `capture.pcapng` as far as the scenario's `measure` asks for them; no directory, no files. `progress` is told the
/// share of the simulated time that has passed, some 200 times a run, and returns false to stop.
pub fn run(
    scenario: &Scenario,
    directory: Option<&Path>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<Summary, RunError> {
    let mut world = World::<WheelQueue>::new(scenario, Shortcuts::default(), |classes, probes| {
        Recorder::new(directory, &scenario.measure, classes, probes)
    })?;
    if let (Some(directory), Some(wanted)) = (directory, &scenario.measure.capture) {
        let path = directory.join("capture.pcapng");
        let profiles = world.classes.iter().map(|class| &class.profiles);
        let capture = Capture::create(&path, wanted, &world.network.port_names, profiles)?;
        world.network.capture = Some(Box::new(capture));
    }
    world.run(progress)?;
    let summary = Summary::new(scenario, &world);
    world.finish()?;
    Ok(summary)
}
