//! Users of a scenario beside a program: the models of the simulator over real sockets, behind the
//! same link.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use aqmlab_record::{Metrics, RunError};
use aqmlab_scenario::{Dumbbell, Scenario};
use rustix::thread::Pid;
use tokio::sync::mpsc::unbounded_channel;

use crate::bed::{Bed, DEVICE};
use crate::clock::Clock;
use crate::ends::Numbers;
use crate::error::LiveError;
use crate::load::{Load, Setting};
use crate::measure::{LoadReport, Meter};
use crate::preflight;
use crate::routes::{Routes, Side};
use crate::side::{self, ClassSockets, Report};
use crate::stack::Stack;
use crate::world::{GET_READY, LOAD_PRIORITY, introduce, work_as};

/// The first class stands for the program: no user has it.
const ABSENT: usize = 1;

/// Servers of class n listen on this port + n: hardly any program asks for one of these, so that the
/// gateway has no use for them.
const FIRST_PORT: u16 = 990;

/// Threads of the users: of both sides' sockets, and of what asks the models.
pub(super) const THREADS: usize = 3;

/// Whether a scenario has users beside the program, which a kernel can stand for.
pub(super) fn are_in(scenario: &Scenario, dumbbell: &Dumbbell) -> Result<bool, LiveError> {
    let found = scenario.traffic.len() > ABSENT;
    if found {
        preflight::check_hosts(scenario, dumbbell)?;
        Stack::new(scenario)?;
    }
    Ok(found)
}

/// What `ip` is asked in the namespaces of servers and clients: each side's addresses are its own, and
/// the other's are behind the link.
pub(super) fn addresses() -> [String; 2] {
    Side::BOTH.map(|side| {
        let (here, there) = (side.prefix(), side.other().prefix());
        // Before the rules by which a gateway's end has every other address.
        format!(
            "route add local {here} dev lo table local\n\
             route add {there} dev {DEVICE} table local\n"
        )
    })
}

/// What the users share with the run.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) dumbbell: &'a Dumbbell,
    pub(super) bed: &'a Bed,
    pub(super) clock: Clock,
    pub(super) end: &'a AtomicU64,
    pub(super) stop: &'a AtomicBool,
}

/// What the users did.
pub(super) struct Loaded {
    pub(super) metrics: Metrics,
    pub(super) report: LoadReport,
    pub(super) events: u64,
    pub(super) result: Result<(), LiveError>,
}

impl Loaded {
    /// There were none.
    pub(super) fn none(metrics: Metrics) -> Self {
        Self {
            metrics,
            report: LoadReport::default(),
            events: 0,
            result: Ok(()),
        }
    }
}

/// Starts the users; returns when both sides listen. They begin at time zero.
pub(super) fn start<'scope, 'run: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: Run<'run>,
    (routes, numbers): (&Arc<Routes>, &Arc<Numbers>),
    metrics: Metrics,
    introducing: &Sender<(&'static str, Pid)>,
) -> Result<ScopedJoinHandle<'scope, Loaded>, LiveError> {
    let Run {
        scenario,
        dumbbell,
        bed,
        clock,
        ..
    } = run;
    let sources = scenario.sources().map_err(RunError::from)?;
    let classes = ClassSockets::of(scenario, FIRST_PORT);
    let bottleneck = &dumbbell.bottleneck;
    let begin = scenario.measure.warm_up;
    let measured = (begin, begin + scenario.measure.duration);
    let (reporting, reports) = channel();
    let sides = Side::BOTH.map(|side| {
        let (commands, inbox) = unbounded_channel();
        let (classes, reports) = (classes.clone(), reporting.clone());
        let (routes, ids) = (routes.clone(), introducing.clone());
        scope.spawn(move || {
            let sockets = side::Side {
                classes: Rc::from(classes),
                routes,
                clock,
                measured,
                reports,
            };
            work_as(side, bed, sockets, inbox, &ids)
        });
        commands
    });
    drop(reporting);
    await_ready(&reports)?;
    let setting = Setting {
        bed,
        clock,
        measured,
        end: run.end,
        stop: run.stop,
        routes: routes.clone(),
        numbers: numbers.clone(),
        metrics,
        absent: ABSENT,
        sources,
        classes,
        bottleneck_delay: bottleneck.forward.delay + bottleneck.reverse.delay,
        delay_at: dumbbell.hosts.delay_at,
    };
    let ids = introducing.clone();
    Ok(scope.spawn(move || {
        introduce("load users", LOAD_PRIORITY, &ids);
        drop(ids);
        let mut load = Load::new(setting, sides, reports);
        let result = load.run(&mut Meter::new(Vec::new()));
        if result.is_err() {
            // Who waits for the program sees it.
            run.end.fetch_min(clock.now().as_nanos(), Relaxed);
        }
        let (metrics, report, events) = load.finish();
        Loaded {
            metrics,
            report,
            events,
            result,
        }
    }))
}

/// Waits until both sides listen.
fn await_ready(reports: &Receiver<Report>) -> Result<(), LiveError> {
    for _ in Side::BOTH {
        reports
            .recv_timeout(20 * GET_READY)
            .map_err(|_| LiveError::Bed("the users' sockets did not get ready".to_owned()))?;
    }
    Ok(())
}
