//! The same world on real kernels: Linux's own TCP end points in two network namespaces, and
//! between them a router in user space that has our queue disciplines decide about their packets.
//!
//! ```text
//!   namespace of the servers        this process          namespace of the clients
//!   sockets, kernel's TCP, TUN  ->  router: forward   ->  TUN, kernel's TCP, sockets
//!                               <-  router: reverse   <-
//! ```
//!
//! [`run`] takes a scenario as the simulator does, and returns the same summary with the run's own
//! account of how well it went ([`Health`]). Nothing outside the two namespaces is touched, and
//! they go with the process at the latest, however it ends.

mod bed;
mod clock;
mod due;
mod ends;
mod error;
mod gauge;
mod ip;
mod kernel;
mod lane;
mod ledger;
mod load;
mod measure;
mod outside;
mod packet_log;
mod path;
mod player;
mod preflight;
mod program_report;
mod router;
mod routes;
mod shell;
mod side;
mod stack;
mod tap;
mod world;
mod writing;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use aqmlab_record::{Metrics, Records, RunError, View};
use aqmlab_scenario::Scenario;

pub use error::LiveError;
pub use gauge::LinkView;
pub use measure::{Health, LiveSummary, LoadReport, PacingReport, ThreadReport};

pub use outside::OutsideReport;
pub use program_report::{NotReached, ProgramReport};
pub use shell::{Order, Program, Reach, ShellSettings, ShellSummary, TcpSettings, shell};

use bed::{Bed, FileLimit};
use ends::Numbers;
use load::{FIRST_SERVER_PORT, Setting};
use path::Path;
use routes::{Routes, Side};
use side::ClassSockets;
use stack::Stack;
use world::World;
use writing::Writing;

/// What this machine lacks for a live run, as one sentence; nothing if it can have one.
pub fn missing() -> Option<String> {
    preflight::missing()
}

/// Whether this process may make network namespaces and devices in them.
pub fn is_privileged() -> bool {
    preflight::is_privileged()
}

/// Runs a scenario on the live bed, in real time, and writes what it asks for to `records`.
///
/// `progress` gets the share of the time that has passed, and returns false to stop.
pub fn run(
    scenario: &Scenario,
    records: Box<dyn Records>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<LiveSummary, LiveError> {
    let dumbbell = preflight::check(scenario)?;
    let stack = Stack::new(scenario)?;
    if let Some(what) = preflight::missing() {
        return Err(LiveError::Refused(what));
    }
    let _raised = FileLimit::raise();
    let routes = Arc::new(Routes::default());
    let mut paths = Side::BOTH.map(|from| Path::new(scenario, dumbbell, from, routes.clone()));
    let links = paths.iter().flat_map(Path::stats);
    let mut metrics = Metrics::new(scenario, View::Sockets, links, records)?;
    let numbers = Arc::<Numbers>::default();
    let packets = packet_log::start(scenario, &mut metrics, &mut paths, &numbers)?;
    let sources = scenario.sources().map_err(RunError::from)?;
    let (bed, devices) = Bed::new(&stack)?;
    let world = World::new(&bed, &devices, scenario, routes);
    let end = AtomicU64::new(world.measured.1.as_nanos());
    let setting = Setting {
        bed: &bed,
        clock: world.clock,
        measured: world.measured,
        end: &end,
        stop: &world.stop,
        routes: world.routes.clone(),
        numbers,
        metrics,
        sources,
        absent: 0,
        classes: ClassSockets::of(scenario, FIRST_SERVER_PORT),
        bottleneck_delay: dumbbell.bottleneck.forward.delay + dumbbell.bottleneck.reverse.delay,
        delay_at: dumbbell.hosts.delay_at,
    };
    // A table that cannot be written ends the run.
    let has_failed = || packets.as_ref().is_some_and(Writing::is_over);
    let ran = world.run(paths, setting, &mut |share| {
        !has_failed() && progress(share)
    });
    let missing = packets.map(|it| it.finish("packets.parquet")).transpose()?;
    let (mut links, mut health, (metrics, events)) = ran?;
    health.harm.extend(missing.flatten());
    health.device_drops = Side::BOTH.iter().map(|side| bed.device_drops(*side)).sum();
    health.judge();
    let summary = metrics.finish(scenario, &mut links, events)?;
    Ok(LiveSummary {
        summary,
        live: health,
    })
}
