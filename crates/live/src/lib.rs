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
//! they go when the run ends, however it ends; [`clean`] removes what a killed run left.

mod bed;
mod clock;
mod ip;
mod kernel;
mod load;
mod measure;
mod path;
mod player;
mod port;
mod preflight;
mod router;
mod routes;
mod side;
mod stack;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use aqmlab_net::Time;
use aqmlab_scenario::{Dumbbell, Scenario, Topology};
use aqmlab_sim::{Accounts, LinkAccounts, RunError, Summary};
use aqmlab_traffic::Source;
use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{Pid, gettid};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub use measure::{Health, LoadReport, PacingReport, ThreadReport};

use bed::Bed;
use clock::Clock;
use load::{FIRST_SERVER_PORT, Load, Setting};
use measure::Meter;
use path::Path;
use router::Direction;
use routes::{Routes, Side};
use side::{ClassSockets, Command, Report};
use stack::Stack;

/// Why a live run did not end well.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// This machine, or this scenario, can have no live run.
    #[error("{0}")]
    Refused(String),
    /// The bed could not be made or broke down.
    #[error("the live bed failed: {0}")]
    Bed(String),
    /// What can also happen to a simulated run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What a live run showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveSummary {
    /// The same as of a simulated run.
    #[serde(flatten)]
    pub summary: Summary,
    /// How well the run went.
    pub live: Health,
}

/// What this machine lacks for a live run, as one sentence; nothing if it can have one.
pub fn missing() -> Option<String> {
    preflight::missing()
}

/// Removes the namespaces of runs that were killed; returns their names.
pub fn clean() -> Result<Vec<String>, LiveError> {
    match preflight::missing() {
        Some(what) => Err(LiveError::Refused(what)),
        None => bed::clean(),
    }
}

/// Time between the making of the bed and time zero, in which the threads get ready.
const GET_READY: Duration = Duration::from_secs(1);

/// Nice value of the load generator's threads: what else goes on on the machine comes later.
const LOAD_PRIORITY: i32 = -10;

/// Runs a scenario on the live bed, in real time. As [`aqmlab_sim::run`] otherwise.
pub fn run(
    scenario: &Scenario,
    directory: Option<&std::path::Path>,
    progress: &mut dyn FnMut(f64) -> bool,
) -> Result<LiveSummary, LiveError> {
    let Topology::Dumbbell(dumbbell) = &scenario.topology;
    preflight::check(scenario, dumbbell)?;
    let stack = Stack::new(scenario)?;
    if let Some(what) = preflight::missing() {
        return Err(LiveError::Refused(what));
    }
    raise_file_limit();
    let routes = Arc::new(Routes::default());
    let paths = Side::BOTH.map(|from| Path::new(scenario, dumbbell, from, routes.clone()));
    let accounts = Accounts::new(scenario, directory, [0, 1].map(|i| paths[i].accounts()))?;
    let sources = load::sources(scenario, dumbbell)?;
    let (bed, devices) = Bed::new(&stack)?;
    let start = scenario.measure.warm_up;
    let world = World {
        bed: &bed,
        devices: &devices,
        clock: Clock::starting_in(GET_READY),
        measured: (start, start + scenario.measure.duration),
        routes,
        stop: AtomicBool::new(false),
    };
    let (links, mut health, (accounts, events)) =
        world.run(scenario, dumbbell, paths, accounts, sources, progress)?;
    health.device_drops = Side::BOTH.iter().map(|side| bed.device_drops(*side)).sum();
    health.judge();
    let summary = accounts.finish(scenario, links, events)?;
    Ok(LiveSummary {
        summary,
        live: health,
    })
}

/// What the threads of a run share.
struct World<'a> {
    bed: &'a Bed,
    devices: &'a [File; 2],
    clock: Clock,
    measured: (Time, Time),
    routes: Arc<Routes>,
    stop: AtomicBool,
}

/// Tells the other threads to stop when this one is done, even if it panics.
struct StopAll<'a>(&'a AtomicBool);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

type Outcome = ([LinkAccounts; 2], Health, (Accounts, u64));

impl World<'_> {
    fn run(
        &self,
        scenario: &Scenario,
        dumbbell: &Dumbbell,
        paths: [Path; 2],
        accounts: Accounts,
        sources: Vec<Source>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Outcome, LiveError> {
        let classes = class_sockets(scenario);
        let (reporting, reports) = channel();
        let (ids, started) = channel();
        thread::scope(|scope| {
            let stop = StopAll(&self.stop);
            let mut sides = Vec::new();
            let mut side_threads = Vec::new();
            for side in Side::BOTH {
                let (commands, inbox) = unbounded_channel();
                sides.push(commands);
                let (classes, reporting, ids) = (classes.clone(), reporting.clone(), ids.clone());
                side_threads
                    .push(scope.spawn(move || self.side(side, classes, inbox, reporting, &ids)));
            }
            drop(reporting);
            let routers = paths.into_iter().zip(Side::BOTH).map(|(path, from)| {
                let ids = ids.clone();
                scope.spawn(move || self.router(path, from, &ids))
            });
            let routers: Vec<_> = routers.collect();
            let load = await_ready(&reports, &started).and_then(|threads| {
                let mut meter = Meter::new(threads);
                let mut load = Load::new(Setting {
                    bed: self.bed,
                    clock: self.clock,
                    measured: self.measured,
                    routes: self.routes.clone(),
                    accounts,
                    sources,
                    classes,
                    bottleneck_delay: dumbbell.bottleneck.forward.delay
                        + dumbbell.bottleneck.reverse.delay,
                    sides: both(std::mem::take(&mut sides)),
                    reports,
                });
                load.run(&mut meter, progress)?;
                Ok((load.finish(), meter.finish()))
            });
            // Sides end when nobody can send them a command any more.
            drop(sides);
            drop(stop);
            for side in side_threads {
                side.join().expect("sides do not panic")?;
            }
            let results: Vec<_> = routers
                .into_iter()
                .map(|router| router.join().expect("routers do not panic"))
                .collect();
            let ((accounts, load, events), (threads, machine_busy_share)) = load?;
            let mut router = BTreeMap::new();
            let mut links = Vec::new();
            for ((link, pacing), name) in results.into_iter().zip(["forward", "reverse"]) {
                router.insert(name.to_owned(), pacing);
                links.push(link);
            }
            let health = Health {
                valid: false,
                reasons: Vec::new(),
                router,
                load,
                threads,
                machine_busy_share,
                device_drops: 0,
                kernel: kernel_release(),
            };
            Ok((both(links), health, (accounts, events)))
        })
    }

    fn router(
        &self,
        path: Path,
        from: Side,
        ids: &Sender<(&'static str, Pid)>,
    ) -> (LinkAccounts, PacingReport) {
        let name = match from {
            Side::Servers => "router forward",
            Side::Clients => "router reverse",
        };
        // A container may forbid it: then the run's own measurements tell whether it mattered.
        let _ = kernel::run_first();
        introduce(name, ids);
        let direction = Direction {
            path,
            input: &self.devices[from as usize],
            output: &self.devices[from.other() as usize],
            clock: self.clock,
            measured: self.measured,
            stop: &self.stop,
        };
        direction.run()
    }

    fn side(
        &self,
        side: Side,
        classes: Vec<ClassSockets>,
        commands: UnboundedReceiver<Command>,
        reports: Sender<Report>,
        ids: &Sender<(&'static str, Pid)>,
    ) -> Result<(), LiveError> {
        self.bed.enter(side)?;
        let name = match side {
            Side::Servers => "load servers",
            Side::Clients => "load clients",
        };
        // As above.
        let _ = setpriority_process(Some(gettid()), LOAD_PRIORITY);
        introduce(name, ids);
        let side = side::Side {
            classes: Rc::from(classes),
            routes: self.routes.clone(),
            clock: self.clock,
            measured: self.measured,
            reports,
        };
        side.run(commands)
            .map_err(|error| LiveError::Bed(format!("{name}: {error}")))
    }
}

/// A thread says who it is.
fn introduce(name: &'static str, ids: &Sender<(&'static str, Pid)>) {
    let _ = ids.send((name, gettid()));
}

/// Waits until both sides listen and every thread has said who it is.
fn await_ready(
    reports: &Receiver<Report>,
    started: &Receiver<(&'static str, Pid)>,
) -> Result<Vec<(&'static str, Pid)>, LiveError> {
    let late = || LiveError::Bed("the load generator's threads did not get ready".to_owned());
    let patience = 20 * GET_READY;
    for _ in Side::BOTH {
        reports.recv_timeout(patience).map_err(|_| late())?;
    }
    let thread = |_| started.recv_timeout(patience).map_err(|_| late());
    (0..4).map(thread).collect()
}

fn both<T>(two: Vec<T>) -> [T; 2] {
    let array: Result<[T; 2], _> = two.try_into();
    array.ok().expect("there are two directions and two sides")
}

fn class_sockets(scenario: &Scenario) -> Vec<ClassSockets> {
    let sockets = |(class, port): (&aqmlab_scenario::Traffic, u16)| ClassSockets {
        port,
        congestion_control: stack::congestion_control(&class.tcp).unwrap_or("reno"),
        dscp: class.dscp,
    };
    scenario
        .traffic
        .iter()
        .zip(FIRST_SERVER_PORT..)
        .map(sockets)
        .collect()
}

/// A connection takes two files, one at each end.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Without it connections fail sooner, and the run says so.
    let _ = setrlimit(Resource::Nofile, raised);
}

fn kernel_release() -> String {
    let release: io::Result<String> = fs::read_to_string("/proc/sys/kernel/osrelease");
    release.unwrap_or_default().trim().to_owned()
}
