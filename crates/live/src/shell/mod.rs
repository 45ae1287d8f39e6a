//! Any program behind the router: it runs in the clients' namespace, what it may reach is in the
//! servers' or beyond.
//!
//! ```text
//!   program, kernel's TCP, TUN  ->  router: reverse  ->  gate, TUN, kernel's TCP, built-in services
//!                               <-  router: forward  <-                 |
//!                                                      gateway, sockets of the broker, outside
//! ```

mod addresses;
mod broker;
mod datagrams;
mod echoes;
mod either;
mod far;
mod gate;
mod gateway;
mod listening;
mod program;
mod reach;
mod replies;
mod services;
mod users;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use aqmlab_net::Time;
use aqmlab_record::{Flow, LinkStats, Metrics, Records, RunError, View};
use aqmlab_scenario::{Dumbbell, Scenario};
use rustix::process::Pid;

use crate::bed::{Bed, DEVICE, FileLimit, Place};
use crate::clock::Clock;
use crate::ends::Numbers;
use crate::error::LiveError;
use crate::gauge::{Gauge, LinkView};
use crate::lane::Lane;
use crate::ledger::Account;
use crate::measure::{Health, LiveSummary, Meter, ThreadReport};
use crate::outside::Outside;
use crate::packet_log;
use crate::path::Path;
use crate::preflight;
use crate::program_report::{NotReached, ProgramReport};
use crate::router::{Direction, Output, Routed};
use crate::routes::{Routes, Side};
use crate::tap::Tap;
use crate::world::{GET_READY, ROUTER_PRIORITY, introduce};
use crate::writing::Writing;

pub(crate) use addresses::NEAR;
use addresses::{FAR, TEST};
use broker::Broker;
use gate::{Errand, Gate};
use gateway::Gateway;
pub use program::Program;
use program::Running;
pub use reach::Reach;
use replies::Replies;

/// How often the caller is asked, and the program's end is seen.
const LOOK_UP: Duration = Duration::from_millis(50);

/// A run lasts a whole number of these.
const GRAIN: Time = Time::from_millis(1);

/// What a program that was asked to end has, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Errands of the gateway that wait: what comes faster is lost.
const MOST_ERRANDS: usize = 4096;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// The program.
    pub program: Program,
    /// Most of the time that a packet takes longer than the link's delay, each way.
    pub jitter: Time,
    /// Whether the far end offers the built-in services.
    pub services: bool,
    /// What the program reaches outside.
    pub reach: Reach,
    /// How the kernel's TCP is set.
    pub tcp: TcpSettings,
}

/// How the kernel's TCP is set; what is left out is as the kernel has it.
#[derive(Clone, Debug, Default)]
pub struct TcpSettings {
    /// Whether connections ask for ECN (RFC 3168).
    pub ecn: Option<bool>,
    /// The congestion control of the program, by the name that the kernel has for it.
    pub control: Option<String>,
    /// That of the far end.
    pub far_control: Option<String>,
}

/// What the caller of a [`shell`] wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Go on.
    Continue,
    /// Send the program a signal.
    Signal(i32),
    /// Kill the program, and all that it has started.
    Kill,
}

/// Gets the time that has passed and what the directions to the program and from it are doing; says what
/// to do with the program.
type Tell<'a> = dyn FnMut(Time, [LinkView; 2]) -> Order + 'a;

/// What a program's run showed.
#[derive(Clone, Debug, PartialEq)]
pub struct ShellSummary {
    /// The summary, as of a live run.
    pub summary: LiveSummary,
    /// How long it was measured.
    pub measured: Time,
    /// Exit status of the program, as shells have it; nothing if the measured time ended before it.
    pub status: Option<i32>,
}

/// Runs a program behind the bottleneck of a scenario: until the program ends, at most for the
/// measured time of the scenario. The program has the place of the first class; the users of the
/// others are beside it. They begin at once, the program after the scenario's warm-up.
///
/// `tell` gets the time that has passed and what the directions to the program and from it are
/// doing, and says what to do with the program.
pub fn shell(
    scenario: &Scenario,
    records: Box<dyn Records>,
    settings: &ShellSettings,
    tell: &mut dyn FnMut(Time, [LinkView; 2]) -> Order,
) -> Result<ShellSummary, LiveError> {
    let (session, parts, tables) = Session::prepare(scenario, records, settings)?;
    let ran = session.run(parts, &mut |now, links| match &tables.packets {
        // A table that cannot be written ends the run.
        Some(packets) if packets.is_over() => Order::Kill,
        _ => tell(now, links),
    });
    session.summarize(ran, tables)
}

/// Why there was no program.
const NOT_WARM: &str = "the run was stopped in its warm-up: the program did not begin";

/// The program's exit status, unless the time was over first, and what was done to the bed.
type Watched = (Option<i32>, Vec<String>);

/// What all threads of a run share. What is dropped first stands first.
struct Session<'a> {
    scenario: &'a Scenario,
    dumbbell: &'a Dumbbell,
    settings: &'a ShellSettings,
    gate: Option<Arc<Gate>>,
    outside: Arc<Outside>,
    devices: [File; 2],
    bed: Bed,
    gauges: [Gauge; 2],
    numbers: Arc<Numbers>,
    /// Of the users beside the program, if there are any.
    routes: Option<Arc<Routes>>,
    file_limit: FileLimit,
    clock: Clock,
    /// When the measured span begins.
    start: Time,
    /// When it ends, and the run with it, in nanoseconds.
    end: AtomicU64,
    stop: AtomicBool,
}

/// What single threads of a run have for themselves.
struct Parts {
    lanes: [Lane; 2],
    metrics: Metrics,
    errands: Option<tokio::sync::mpsc::Receiver<Errand>>,
}

/// What is written while it runs.
struct Tables {
    packets: Option<Writing<RunError>>,
    capture: Option<Writing<io::Error>>,
}

/// What a run showed.
struct Ran {
    routed: [Routed; 2],
    load: users::Loaded,
    status: Option<i32>,
    harm: Vec<String>,
    /// How long the program ran.
    took: Duration,
    threads: BTreeMap<String, ThreadReport>,
    machine_busy_share: f64,
}

impl<'a> Session<'a> {
    /// Checks everything, and makes the bed.
    fn prepare(
        scenario: &'a Scenario,
        records: Box<dyn Records>,
        settings: &'a ShellSettings,
    ) -> Result<(Self, Parts, Tables), LiveError> {
        let dumbbell = preflight::check_link(scenario)?;
        if let Some(what) = preflight::missing() {
            return Err(LiveError::Refused(what));
        }
        let has_users = users::are_in(scenario, dumbbell)?;
        let file_limit = FileLimit::raise();
        let routes = has_users.then(Arc::<Routes>::default);
        let numbers = Arc::<Numbers>::default();
        let mut paths = Side::BOTH.map(|from| {
            let (routes, numbers) = (routes.clone(), numbers.clone());
            Path::open(scenario, dumbbell, from, settings.jitter, routes, numbers)
        });
        let links = paths.iter().flat_map(Path::stats);
        let mut metrics = Metrics::new(scenario, View::Sockets, links, records)?;
        let packets = packet_log::start(scenario, &mut metrics, &mut paths, &numbers)?;
        let capture = match &scenario.measure.capture {
            Some(wanted) => match metrics.capture()? {
                Some(out) => Some(tap_paths(&mut paths, out, wanted.snap_length.0)?),
                None => None,
            },
            None => None,
        };
        let lanes = Lane::both(scenario, dumbbell.wifi.as_ref(), paths);
        let (bed, devices) = Bed::of(&places(settings, has_users))?;
        let (gate, errands) = match settings.reach.is_closed() {
            true => (None, None),
            false => {
                let (gate, errands) = open_gate(&bed, &devices, settings.reach, has_users)?;
                (Some(gate), Some(errands))
            }
        };
        let start = scenario.measure.warm_up;
        let session = Self {
            scenario,
            dumbbell,
            settings,
            gate,
            outside: Arc::default(),
            devices,
            bed,
            gauges: Default::default(),
            numbers,
            routes,
            file_limit,
            clock: Clock::starting_in(match has_users {
                true => GET_READY,
                false => Duration::ZERO,
            }),
            start,
            end: AtomicU64::new((start + scenario.measure.duration).as_nanos()),
            stop: AtomicBool::new(false),
        };
        let parts = Parts {
            lanes,
            metrics,
            errands,
        };
        Ok((session, parts, Tables { packets, capture }))
    }

    /// Runs the program, until it or the time ends.
    fn run(&self, parts: Parts, tell: &mut Tell<'_>) -> Result<Ran, LiveError> {
        let Parts {
            lanes,
            metrics,
            errands,
        } = parts;
        let has_services = self.settings.services;
        let (introducing, introduced) = channel();
        thread::scope(|scope| {
            let gateway = self
                .gate
                .clone()
                .zip(errands)
                .map(|(gate, errands)| Gateway {
                    gate,
                    broker: Broker::start(scope, self.settings.reach),
                    has_services,
                    errands,
                    outside: self.outside.clone(),
                });
            let served = match has_services || gateway.is_some() {
                true => {
                    let (introducing, outside) = (introducing.clone(), self.outside.clone());
                    let bed = &self.bed;
                    let started =
                        far::start(scope, bed, has_services, gateway, outside, introducing);
                    Some(started?)
                }
                false => None,
            };
            let users = match &self.routes {
                Some(routes) => {
                    let run = users::Run {
                        scenario: self.scenario,
                        dumbbell: self.dumbbell,
                        bed: &self.bed,
                        clock: self.clock,
                        end: &self.end,
                        stop: &self.stop,
                    };
                    let shared = (routes, &self.numbers);
                    Ok(users::start(scope, run, shared, metrics, &introducing)?)
                }
                None => Err(metrics),
            };
            let [down, up] = lanes;
            let routers = [(down, Side::Servers), (up, Side::Clients)];
            let routers =
                routers.map(|(lane, from)| self.start_router(scope, lane, from, &introducing));
            let of_users = users.as_ref().map_or(0, |_| users::THREADS);
            let threads = Side::BOTH.len() + usize::from(served.is_some()) + of_users;
            let threads = (0..threads).filter_map(|_| introduced.recv().ok());
            let mut meter = Meter::new(threads.collect());
            let warmed = self.warm_up(tell);
            meter.begin(self.clock.now());
            let running = warmed.and_then(|()| {
                let limit = self.file_limit.of_caller();
                Running::start(scope, &self.bed, &self.settings.program, limit)
            });
            let outcome = running.and_then(|mut running| {
                let status = self.watch(&mut running, tell);
                meter.end(self.clock.now());
                status.map(|status| (status, running.took()))
            });
            // Whatever happened, the threads end.
            self.end_now();
            self.stop.store(outcome.is_err(), Relaxed);
            drop(served);
            let routed = routers.map(|router| router.join().expect("routers do not panic"));
            let mut load = match users {
                Ok(users) => users.join().expect("users do not panic"),
                Err(metrics) => users::Loaded::none(metrics),
            };
            if matches!(&outcome, Err(LiveError::Refused(what)) if what == NOT_WARM)
                && !matches!(load.result, Err(LiveError::Run(RunError::Stopped)))
            {
                // The users failed first.
                std::mem::replace(&mut load.result, Ok(()))?;
            }
            let ((status, harm), took) = outcome?;
            let (threads, machine_busy_share) = meter.finish();
            Ok(Ran {
                routed,
                load,
                status,
                harm,
                took,
                threads,
                machine_busy_share,
            })
        })
    }

    /// The direction of the link from a side.
    fn start_router<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        lane: Lane,
        from: Side,
        introducing: &Sender<(&'static str, Pid)>,
    ) -> ScopedJoinHandle<'scope, Routed> {
        let introducing = introducing.clone();
        let output: &dyn Output = match (&self.gate, from) {
            (Some(gate), Side::Clients) => gate.as_ref(),
            _ => &self.devices[from.other() as usize],
        };
        scope.spawn(move || {
            let name = match from {
                Side::Servers => "router forward",
                Side::Clients => "router reverse",
            };
            introduce(name, ROUTER_PRIORITY, &introducing);
            let direction = Direction {
                lane,
                input: &self.devices[from as usize],
                output,
                clock: self.clock,
                start: self.start,
                end: &self.end,
                stop: &self.stop,
                gauge: Some(&self.gauges[from as usize]),
            };
            direction.run()
        })
    }

    /// Waits until the users beside the program have had the link for themselves. A signal ends the run.
    fn warm_up(&self, tell: &mut Tell<'_>) -> Result<(), LiveError> {
        loop {
            thread::sleep(self.clock.until(self.start).min(LOOK_UP));
            let now = self.clock.now();
            if self.clock.until(self.start).is_zero() {
                return Ok(());
            }
            let is_lost = now.as_nanos() >= self.end.load(Relaxed);
            if is_lost || tell(now, self.views()) != Order::Continue {
                return Err(LiveError::Refused(NOT_WARM.to_owned()));
            }
        }
    }

    /// Waits until the program or the time ends; then nothing of the program is left.
    fn watch(&self, running: &mut Running, tell: &mut Tell<'_>) -> Result<Watched, LiveError> {
        let mut harm = [const { None }; 2];
        loop {
            let last = Time::from_nanos(self.end.load(Relaxed));
            let left = self.clock.until(last).min(LOOK_UP);
            if let Some(status) = running.wait(left)? {
                self.end_now();
                return Ok((Some(status), harm.into_iter().flatten().collect()));
            }
            let now = self.clock.now();
            for side in Side::BOTH {
                let seen = &mut harm[side as usize];
                if seen.is_none() {
                    let name = side.name();
                    *seen = self.bed.harm(side).map(|what| {
                        let now = now.as_secs_f64();
                        format!("bed: the device of the {name} {what} {now:.1} s into the run")
                    });
                }
            }
            if now >= last {
                running.end(GRACE)?;
                return Ok((None, harm.into_iter().flatten().collect()));
            }
            match tell(now, self.views()) {
                Order::Continue => {}
                Order::Signal(number) => running.signal(number),
                Order::Kill => running.kill(),
            }
        }
    }

    /// The run ends as soon as it may: both directions have still to get there.
    fn end_now(&self) {
        let grain = GRAIN.as_nanos();
        let end = (self.clock.now().as_nanos() / grain + 2) * grain;
        self.end.fetch_min(end, Relaxed);
    }

    /// What both directions are doing.
    fn views(&self) -> [LinkView; 2] {
        self.gauges.each_ref().map(Gauge::read)
    }

    /// What the run showed.
    fn summarize(
        self,
        ran: Result<Ran, LiveError>,
        tables: Tables,
    ) -> Result<ShellSummary, LiveError> {
        let Tables { packets, capture } = tables;
        let missing = packets.map(|it| it.finish("packets.parquet")).transpose()?;
        let ran = ran?;
        let mut health = self.health(&ran)?;
        let Ran {
            routed,
            mut load,
            status,
            ..
        } = ran;
        load.result?;
        let metrics = &mut load.metrics;
        let ledgers = routed.each_ref().map(|it| it.ledger.as_ref());
        let [Some(down), Some(up)] = ledgers else {
            unreachable!("both directions keep a ledger of programs");
        };
        let account = Account::new(down, up);
        health.harm.extend(missing.flatten());
        if let Some(capture) = capture {
            let harm = capture.finish("capture");
            let harm = harm.unwrap_or_else(|error| Some(format!("capture: {error}")));
            health.harm.extend(harm);
        }
        let (links, stations): (Vec<_>, Vec<_>) =
            routed.into_iter().map(|it| (it.links, it.stations)).unzip();
        metrics.on_air(stations.into_iter().flatten().collect());
        let mut links: Vec<LinkStats> = links.into_iter().flatten().collect();
        let report = self.outside.report();
        health.load.local_failures += report.local_failures;
        let first = &mut health.load.first_failure;
        *first = first.take().or(report.first_failure.clone());
        health.outside = self.gate.is_some().then_some(report);
        health.judge();
        let end = Time::from_nanos(self.end.load(Relaxed));
        let measured = end.saturating_sub(self.start);
        metrics.bring_end_forward(end);
        let bottleneck = &self.dumbbell.bottleneck;
        let rtt = bottleneck.forward.delay + bottleneck.reverse.delay;
        enter_account(metrics, &account, rtt);
        if let Some(program) = &mut health.program {
            program.not_reached = not_reached(&account, self.settings);
        }
        let mut scenario = self.scenario.clone();
        scenario.measure.duration = measured;
        let departures: u64 = health.router.values().map(|pacing| pacing.departures).sum();
        let events = departures + load.events;
        let summary = load.metrics.finish(&scenario, &mut links, events)?;
        Ok(ShellSummary {
            summary: LiveSummary {
                summary,
                live: health,
            },
            measured,
            status,
        })
    }

    /// How well the run went, as far as that is known before it is judged.
    fn health(&self, ran: &Ran) -> Result<Health, LiveError> {
        let pacing = ran.routed.iter().map(|it| it.pacing.clone());
        let names = Side::BOTH.map(|from| from.direction().to_owned());
        Ok(Health {
            valid: false,
            reasons: Vec::new(),
            router: names.into_iter().zip(pacing).collect(),
            load: ran.load.report.clone(),
            outside: None,
            program: Some(ProgramReport {
                time_s: ran.took.as_secs_f64(),
                controls: controls(&self.bed, &self.settings.tcp)?,
                not_reached: Vec::new(),
            }),
            threads: ran.threads.clone(),
            machine_busy_share: ran.machine_busy_share,
            device_drops: Side::BOTH.iter().map(|it| self.bed.device_drops(*it)).sum(),
            harm: ran.harm.clone(),
            kernel: kernel_release(),
        })
    }
}

/// Places that a program asked for and that did not answer. Datagrams need no answer: of these only
/// the places count that it may not reach.
fn not_reached(account: &Account, settings: &ShellSettings) -> Vec<NotReached> {
    let mut found = BTreeMap::new();
    for connection in &account.connections {
        let (place, is_tcp) = (connection.far, connection.is_tcp);
        if connection.is_answered {
            continue;
        }
        // What the far end itself has needs no other network, whatever kept it from answering.
        let is_service = *place.ip() == FAR && services::have(is_tcp, place.port());
        let needs = settings
            .reach
            .needed(place)
            .filter(|_| settings.services && !is_service);
        if is_tcp || needs.is_some() {
            let entry = found.entry((place, is_tcp)).or_insert(NotReached {
                place,
                is_tcp,
                count: 0,
                refused: false,
                needs,
            });
            entry.count += 1;
            entry.refused |= connection.is_reset;
        }
    }
    found.into_values().collect()
}

/// The congestion control that senders of each direction have, unless they ask for another.
fn controls(bed: &Bed, tcp: &TcpSettings) -> Result<BTreeMap<String, String>, LiveError> {
    let mut found = BTreeMap::new();
    for (from, wanted) in Side::BOTH.into_iter().zip([&tcp.far_control, &tcp.control]) {
        let name = match wanted {
            Some(name) => name.clone(),
            None => bed.inside(from, || {
                let path = "/proc/sys/net/ipv4/tcp_congestion_control";
                fs::read_to_string(path).unwrap_or_default()
            })?,
        };
        found.insert(from.direction().to_owned(), name.trim().to_owned());
    }
    Ok(found)
}

/// The number of the class that stands for the program.
const CLASS: usize = 0;

/// Enters the connections of a program whose empty link has such a round trip.
fn enter_account(metrics: &mut Metrics, account: &Account, rtt: Time) {
    for connection in &account.connections {
        let flow = Flow {
            flow: connection.number,
            class: CLASS,
            start: connection.start,
            rtt,
            end: connection.end,
            request_bytes: connection.sent,
            response_bytes: connection.received,
            measured_bytes: connection.received,
            retransmissions: connection.again,
            delayed_by: connection.again.into(),
            failed: connection.is_reset,
            ..Flow::default()
        };
        metrics.on_uploaded(CLASS, connection.sent);
        match (connection.is_tcp, connection.is_over) {
            (true, true) => metrics.on_closed(&flow),
            (true, false) => metrics.on_still_open(&flow, None),
            (false, _) => metrics.on_datagram_flow(&flow, 0, 0),
        }
    }
    let [received, sent] = account.in_fragments;
    metrics.on_downloaded(CLASS, received);
    metrics.on_uploaded(CLASS, sent);
}

/// Has a capture take what crosses the link; the thread that writes it.
fn tap_paths(
    paths: &mut [Path; 2],
    out: Box<dyn Write + Send>,
    snap: u64,
) -> Result<Writing<io::Error>, LiveError> {
    let started = Tap::start(out, snap as u32);
    let (taps, writing) =
        started.map_err(|error| LiveError::Bed(format!("capture.pcapng: {error}")))?;
    for (path, tap) in paths.iter_mut().zip(taps) {
        path.set_tap(tap);
    }
    Ok(writing)
}

/// The gate at the end of the link, and the errands that it gives.
fn open_gate(
    bed: &Bed,
    devices: &[File; 2],
    reach: Reach,
    has_users: bool,
) -> Result<(Arc<Gate>, tokio::sync::mpsc::Receiver<Errand>), LiveError> {
    let failed = |error: io::Error| LiveError::Bed(format!("the gateway: {error}"));
    let replies = bed.inside(Side::Servers, Replies::open)?.map_err(failed)?;
    let device = devices[Side::Servers as usize].try_clone();
    let (giving, errands) = tokio::sync::mpsc::channel(MOST_ERRANDS);
    let gate = Gate::new(reach, has_users, device.map_err(failed)?, giving, replies);
    Ok((Arc::new(gate), errands))
}

/// Both namespaces: their addresses, and routes to the other's.
fn places(wanted: &ShellSettings, has_users: bool) -> [Place; 2] {
    let TcpSettings {
        ecn,
        control,
        far_control,
    } = &wanted.tcp;
    let settings = || {
        let ecn = ecn.map(|ecn| ("ipv4/tcp_ecn", u8::from(ecn).to_string()));
        let fixed = [
            // A connection learns nothing from an earlier one.
            ("ipv4/tcp_no_metrics_save", "1"),
            // What is accepted answers with the code point that it was asked with.
            ("ipv4/tcp_reflect_tos", "1"),
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/default/rp_filter", "0"),
            ("ipv6/conf/all/disable_ipv6", "1"),
            ("ipv6/conf/default/disable_ipv6", "1"),
        ]
        .map(|(key, value)| (key, value.to_owned()));
        fixed.into_iter().chain(ecn).collect()
    };
    // A route sets the control of all connections over it, of accepted ones too.
    let by = |control: &Option<String>| match control {
        Some(name) => format!(" congctl {name}"),
        None => String::new(),
    };
    let (by, far_by) = (by(control), by(far_control));
    let mut far =
        format!("address add {FAR}/32 dev {DEVICE}\naddress add {TEST}/32 dev {DEVICE}\n");
    let mut near = format!("address add {NEAR}/32 dev {DEVICE}\n");
    far += &format!("route add {NEAR} dev {DEVICE} src {FAR}{far_by}\n");
    if wanted.reach.is_closed() {
        for there in [FAR, TEST] {
            near += &format!("route add {there} dev {DEVICE} src {NEAR}{by}\n");
        }
    } else {
        // The far end has every address but the program's, so that its kernel accepts connections
        // to each.
        far += &format!(
            "route add {NEAR} dev {DEVICE} src {FAR} table local{far_by}\n\
             route add local default dev lo\n"
        );
        near += &format!("route add default dev {DEVICE} src {NEAR}{by}\n");
    }
    if has_users {
        let [servers, clients] = users::addresses();
        far += &servers;
        near += &clients;
    }
    let [far, mut near] = [far, near].map(|commands| Place {
        settings: settings(),
        mtu: 1500,
        commands,
    });
    // Everybody in the program's group may ping.
    let group = rustix::process::getegid().as_raw();
    near.settings
        .push(("ipv4/ping_group_range", format!("{group} {group}")));
    [far, near]
}

fn kernel_release() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}
