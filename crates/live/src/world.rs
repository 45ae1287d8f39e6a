//! A run's threads: one for each direction of the router, one for each side's sockets, one for the
//! users, and the caller's, which reports the progress.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use aqmlab_net::Time;
use aqmlab_record::{LinkStats, Metrics};
use aqmlab_scenario::Scenario;
use rustix::thread::{Pid, gettid, set_name};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::bed::Bed;
use crate::clock::Clock;
use crate::error::LiveError;
use crate::kernel;
use crate::lane::Lane;
use crate::load::{Load, Setting};
use crate::measure::{Health, LoadReport, Meter, ThreadReport};
use crate::path::Path;
use crate::router::{Direction, Routed};
use crate::routes::{Routes, Side};
use crate::side::{self, Command, Report};

/// Time between the making of the bed and time zero, in which the threads get ready.
pub(crate) const GET_READY: Duration = Duration::from_secs(1);

/// How often progress is reported and a wish to stop is noticed.
const PROGRESS: Duration = Duration::from_millis(200);

/// Real-time priorities: packets come before those who send them, and these before everything
/// else on the machine.
pub(crate) const ROUTER_PRIORITY: i32 = 2;
pub(crate) const LOAD_PRIORITY: i32 = 1;

/// What the threads of a run share.
pub(crate) struct World<'a> {
    bed: &'a Bed,
    /// The servers' device and the clients'.
    devices: &'a [File; 2],
    pub(crate) clock: Clock,
    /// The measured span; the run ends with it.
    pub(crate) measured: (Time, Time),
    pub(crate) routes: Arc<Routes>,
    pub(crate) stop: AtomicBool,
}

/// What the links saw, how well the run went, what the connections did, and how many events the
/// load generator had.
type Outcome = (Vec<LinkStats>, Health, (Metrics, u64));

/// What the load generator's thread has to say.
type Loaded = (
    (Metrics, LoadReport, u64),
    (BTreeMap<String, ThreadReport>, f64),
);

/// Tells the other threads to stop when this one is done, even if it panics.
struct StopAll<'a>(&'a AtomicBool);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl<'a> World<'a> {
    pub(crate) fn new(
        bed: &'a Bed,
        devices: &'a [File; 2],
        scenario: &Scenario,
        routes: Arc<Routes>,
    ) -> Self {
        let start = scenario.measure.warm_up;
        Self {
            bed,
            devices,
            clock: Clock::starting_in(GET_READY),
            measured: (start, start + scenario.measure.duration),
            routes,
            stop: AtomicBool::new(false),
        }
    }

    /// Runs to the end. `progress` gets the share that is done, and returns false to stop.
    pub(crate) fn run(
        &self,
        paths: [Path; 2],
        setting: Setting<'_>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Outcome, LiveError> {
        let (reporting, reports) = channel();
        let (introducing, introduced) = channel();
        let ids = &introducing;
        thread::scope(|scope| {
            let stop = StopAll(&self.stop);
            let [servers, clients] = Side::BOTH.map(|side| {
                let (commands, inbox) = unbounded_channel();
                let (classes, reporting) = (setting.classes.clone(), reporting.clone());
                let ids = ids.clone();
                let work = move || {
                    let sockets = side::Side {
                        classes: Rc::from(classes),
                        routes: self.routes.clone(),
                        clock: self.clock,
                        measured: self.measured,
                        reports: reporting,
                    };
                    work_as(side, self.bed, sockets, inbox, &ids)
                };
                (commands, scope.spawn(work))
            });
            drop(reporting);
            let routers = paths.into_iter().zip(Side::BOTH).map(|(path, from)| {
                let ids = ids.clone();
                scope.spawn(move || self.router(path, from, &ids))
            });
            let routers: Vec<_> = routers.collect();
            let commands = [servers.0, clients.0];
            let ids = ids.clone();
            let load =
                scope.spawn(move || self.load(setting, commands, reports, &introduced, &ids));
            let harm = self.watch(&load, progress);
            // Either the load generator is done, or nobody wants to wait for it.
            drop(stop);
            let loaded = load.join().expect("the load generator does not panic");
            // The sides end when nobody can send them a command any more.
            for side in [servers.1, clients.1] {
                side.join().expect("sides do not panic")?;
            }
            let routed = routers
                .into_iter()
                .map(|router| router.join().expect("routers do not panic"));
            Ok(outcome(loaded?, routed.collect(), harm))
        })
    }

    /// Reports the progress until the load generator is done. Returns what happened to the bed
    /// meanwhile.
    fn watch<T>(
        &self,
        load: &ScopedJoinHandle<'_, T>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Vec<String> {
        let end = self.measured.1;
        let mut harm = [const { None }; 2];
        loop {
            let is_last = load.is_finished();
            let now = self.clock.now().as_secs_f64();
            for side in Side::BOTH {
                let seen = &mut harm[side as usize];
                if seen.is_none() {
                    *seen = self.bed.harm(side).map(|what| {
                        let name = side.name();
                        format!("bed: the device of the {name} {what} {now:.1} s into the run")
                    });
                }
            }
            if is_last || !progress((now / end.as_secs_f64()).min(1.0)) {
                return harm.into_iter().flatten().collect();
            }
            thread::park_timeout(self.clock.until(end).clamp(PROGRESS / 10, PROGRESS));
        }
    }

    fn load(
        &self,
        setting: Setting<'_>,
        commands: [UnboundedSender<Command>; 2],
        reports: Receiver<Report>,
        introduced: &Receiver<(&'static str, Pid)>,
        ids: &Sender<(&'static str, Pid)>,
    ) -> Result<Loaded, LiveError> {
        introduce("load users", LOAD_PRIORITY, ids);
        let mut meter = Meter::new(await_ready(&reports, introduced)?);
        let mut load = Load::new(setting, commands, reports);
        load.run(&mut meter)?;
        Ok((load.finish(), meter.finish()))
    }

    fn router(&self, path: Path, from: Side, ids: &Sender<(&'static str, Pid)>) -> Routed {
        let name = match from {
            Side::Servers => "router forward",
            Side::Clients => "router reverse",
        };
        introduce(name, ROUTER_PRIORITY, ids);
        let direction = Direction {
            lane: Lane::Alone(Box::new(path)),
            input: &self.devices[from as usize],
            output: &self.devices[from.other() as usize],
            clock: self.clock,
            start: self.measured.0,
            end: &AtomicU64::new(self.measured.1.as_nanos()),
            stop: &self.stop,
            gauge: None,
        };
        direction.run()
    }
}

/// One side's sockets, on this thread, until nobody can send a command any more.
pub(crate) fn work_as(
    side: Side,
    bed: &Bed,
    sockets: side::Side,
    commands: UnboundedReceiver<Command>,
    ids: &Sender<(&'static str, Pid)>,
) -> Result<(), LiveError> {
    bed.enter(side)?;
    let name = match side {
        Side::Servers => "load servers",
        Side::Clients => "load clients",
    };
    introduce(name, LOAD_PRIORITY, ids);
    sockets
        .run(commands)
        .map_err(|error| LiveError::Bed(format!("{name}: {error}")))
}

/// Threads of a run but the caller's.
const THREADS: usize = 5;

/// A thread takes its place before others and says who it is.
pub(crate) fn introduce(name: &'static str, priority: i32, ids: &Sender<(&'static str, Pid)>) {
    // A container may forbid it: then the run's own measurements show whether it mattered.
    let _ = kernel::run_first(priority);
    // By its name others find it, and the namespace that it is in.
    let _ = CString::new(name).map(|name| set_name(&name));
    let _ = ids.send((name, gettid()));
}

/// Waits until both sides listen and every thread has said who it is.
fn await_ready(
    reports: &Receiver<Report>,
    introduced: &Receiver<(&'static str, Pid)>,
) -> Result<Vec<(&'static str, Pid)>, LiveError> {
    let late = || LiveError::Bed("the threads of the run did not get ready".to_owned());
    let patience = 20 * GET_READY;
    for _ in Side::BOTH {
        reports.recv_timeout(patience).map_err(|_| late())?;
    }
    let thread = |_| introduced.recv_timeout(patience).map_err(|_| late());
    (0..THREADS).map(thread).collect()
}

fn outcome(
    ((metrics, load, events), (threads, machine_busy_share)): Loaded,
    routed: Vec<Routed>,
    harm: Vec<String>,
) -> Outcome {
    let routed = routed.into_iter().map(|it| (it.links, it.pacing));
    let (links, pacing): (Vec<_>, Vec<_>) = routed.unzip();
    let mut links: Vec<LinkStats> = links.into_iter().flatten().collect();
    // As the simulator records them.
    links.sort_by_cached_key(|link| (link.name().link.clone(), link.name().direction));
    let directions = Side::BOTH.map(|from| from.direction().to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let health = Health {
        valid: false,
        reasons: Vec::new(),
        router: directions.into_iter().zip(pacing).collect(),
        load,
        outside: None,
        program: None,
        threads,
        machine_busy_share,
        device_drops: 0,
        harm,
        kernel: kernel.trim().to_owned(),
    };
    (links, health, (metrics, events))
}
