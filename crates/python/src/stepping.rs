//! A run that is stepped from Python.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use aqmlab_net::Time;
use aqmlab_parquet::json_text;
use aqmlab_plugin::failure::{self, Failure};
use aqmlab_record::LinkDirection;
use aqmlab_scenario::ScenarioError as WrongValue;
use aqmlab_sim::Simulation;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::effective::read_effective;
use crate::failures::run_error;
use crate::modules::Modules;
use crate::work::bound;
use crate::{RunError, ScenarioError, plugins};

/// A run under way. Times are seconds since its start.
#[pyclass(frozen, module = "aqmlab._native")]
pub(crate) struct Stepper {
    /// Nothing once it has ended. The lock is never waited for: one thread uses a simulation.
    simulation: Mutex<Option<Simulation>>,
    /// Modules of its plug-ins.
    modules: Modules,
    classes: Vec<String>,
    /// It has callbacks that need the interpreter.
    holding: bool,
}

/// Signals such as Ctrl-C are seen after so much simulated time.
const STRETCH: Time = Time::from_secs(1);

/// A run that this thread uses.
struct Used<'a>(MutexGuard<'a, Option<Simulation>>);

impl Deref for Used<'_> {
    type Target = Simulation;
    fn deref(&self) -> &Simulation {
        self.0.as_ref().expect("it was there when it was taken")
    }
}

impl DerefMut for Used<'_> {
    fn deref_mut(&mut self) -> &mut Simulation {
        self.0.as_mut().expect("it was there when it was taken")
    }
}

impl Stepper {
    fn simulation(&self) -> PyResult<Used<'_>> {
        let slot = self.slot()?;
        match *slot {
            Some(_) => Ok(Used(slot)),
            None => Err(RunError::new_err("the simulation is finished")),
        }
    }

    fn slot(&self) -> PyResult<MutexGuard<'_, Option<Simulation>>> {
        match self.simulation.try_lock() {
            Ok(slot) => Ok(slot),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(RunError::new_err(
                "the simulation is in use: by another thread, or by this call itself; use each \
                 simulation in one thread at a time",
            )),
        }
    }
}

#[pymethods]
impl Stepper {
    #[new]
    #[pyo3(signature = (effective, out_dir, memory=None))]
    fn new(
        py: Python<'_>,
        effective: &str,
        out_dir: Option<&str>,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let scenario = read_effective(effective)?;
        let records = aqmlab_parquet::recorder(out_dir.map(Path::new), &scenario.measure);
        let _ = failure::take(); // of a caller that did not look
        let modules = Modules::default();
        let start = || Simulation::start_changeable(&scenario, records, bound(memory));
        let started = modules.within(start);
        plugins::raise(py)?;
        Ok(Self {
            simulation: Mutex::new(Some(started.map_err(run_error)?)),
            modules,
            holding: plugins::interpreted(effective),
            classes: scenario
                .traffic
                .into_iter()
                .map(|class| class.name)
                .collect(),
        })
    }

    fn now(&self) -> PyResult<f64> {
        Ok(self.simulation()?.now().as_secs_f64())
    }

    fn end_time(&self) -> PyResult<f64> {
        Ok(self.simulation()?.end_time().as_secs_f64())
    }

    fn run_until(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let holding = self.holding;
        let mut used = self.simulation()?;
        let simulation: &mut Simulation = &mut used;
        let time = Time::from_secs_f64(seconds).min(simulation.end_time());
        while simulation.now() < time {
            let next = time.min(simulation.now().saturating_add(STRETCH));
            let stepped = match holding {
                true => self.modules.within(|| simulation.run_until(next)),
                false => py.detach(|| simulation.run_until(next)),
            };
            plugins::raise(py)?;
            stepped.map_err(run_error)?;
            py.check_signals()?;
        }
        Ok(())
    }

    fn set(&self, py: Python<'_>, key: &str, value: &str) -> PyResult<()> {
        let mut simulation = self.simulation()?;
        let set = self.modules.within(|| simulation.set(key, value));
        plugins::raise(py)?;
        set.map_err(|error| ScenarioError::new_err(error.to_string()))
    }

    fn changeable(&self) -> PyResult<Vec<String>> {
        Ok(self.simulation()?.changeable())
    }

    fn scenario(&self) -> PyResult<String> {
        Ok(self.simulation()?.scenario().to_toml())
    }

    /// Links by name and direction, and the open connections, as columns.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let seen = self.simulation()?.observe();
        plugins::raise(py)?;
        let links = PyDict::new(py);
        for (name, port) in &seen.links {
            let link = PyDict::new(py);
            let counters = &port.counters;
            link.set_item("backlog_packets", port.backlog.packets)?;
            link.set_item("backlog_bytes", port.backlog.bytes)?;
            link.set_item("delay_s", port.drain.as_secs_f64())?;
            link.set_item("rate_bps", port.rate.bps())?;
            link.set_item("arrived_packets", counters.arrived_packets)?;
            link.set_item("departed_packets", counters.departed_packets)?;
            link.set_item("departed_bytes", counters.departed_bytes)?;
            link.set_item("dropped_packets", counters.dropped_packets())?;
            link.set_item("marked_packets", counters.marked_packets())?;
            let probes = PyDict::new(py);
            for (probe, value) in &port.probes {
                probes.set_item(probe, value)?;
            }
            link.set_item("variables", probes)?;
            links.set_item(direction(name), link)?;
        }
        let flows = &seen.flows;
        let columns = PyDict::new(py);
        let put =
            |name: &str, column: PyResult<Bound<'py, PyList>>| columns.set_item(name, column?);
        put("flow", PyList::new(py, flows.iter().map(|it| it.flow)))?;
        let classes = &self.classes;
        put(
            "class",
            PyList::new(py, flows.iter().map(|it| classes[it.class].as_str())),
        )?;
        put(
            "cwnd_bytes",
            PyList::new(py, flows.iter().map(|it| it.probe.cwnd)),
        )?;
        put(
            "ssthresh_bytes",
            PyList::new(py, flows.iter().map(|it| it.probe.ssthresh)),
        )?;
        put(
            "in_flight_bytes",
            PyList::new(py, flows.iter().map(|it| it.probe.in_flight)),
        )?;
        let seconds = |time: Time| time.as_secs_f64();
        put(
            "rtt_s",
            PyList::new(py, flows.iter().map(|it| it.probe.round_trip.map(seconds))),
        )?;
        put(
            "rto_s",
            PyList::new(py, flows.iter().map(|it| seconds(it.probe.timeout))),
        )?;
        put(
            "state",
            PyList::new(py, flows.iter().map(|it| it.probe.recovery_state.name())),
        )?;
        put(
            "received_bytes",
            PyList::new(py, flows.iter().map(|it| it.received)),
        )?;
        put(
            "retransmitted",
            PyList::new(py, flows.iter().map(|it| it.retransmitted)),
        )?;
        Ok((links, columns))
    }

    /// A direction of a link: packets and bytes that wait, its delay and rate, then what it counted
    /// since the start of the run, and the discipline's variables.
    fn link<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<LinkTotals<'py>>> {
        let seen = self.simulation()?.observe();
        plugins::raise(py)?;
        let mut links = seen.links.iter();
        let Some((_, port)) = links.find(|(link, _)| direction(link) == name) else {
            return Ok(None);
        };
        let variables = PyDict::new(py);
        for (variable, value) in &port.probes {
            variables.set_item(variable, value)?;
        }
        let counters = &port.counters;
        Ok(Some((
            (
                u64::from(port.backlog.packets),
                port.backlog.bytes,
                port.drain.as_secs_f64(),
                port.rate.bps(),
            ),
            (
                counters.arrived_packets,
                counters.departed_packets,
                counters.departed_bytes,
                counters.dropped_packets(),
                counters.marked_packets(),
            ),
            variables,
        )))
    }

    /// When the discipline of a link's direction is woken next, in seconds; none: never.
    fn next_tick(&self, name: &str) -> PyResult<Option<f64>> {
        let seen = self.simulation()?.observe();
        let mut links = seen.links.iter();
        let found = links.find(|(link, _)| direction(link) == name);
        let tick = found.map_or(Time::NEVER, |(_, port)| port.next_tick);
        Ok((tick != Time::NEVER).then(|| tick.as_secs_f64()))
    }

    /// The open connections of a class: serial number, bytes received and segments sent again since
    /// it began, window in bytes, smoothed round trip in seconds.
    fn flows(&self, class: &str) -> PyResult<Vec<FlowTotals>> {
        let class = self.classes.iter().position(|name| name == class);
        let seen = self.simulation()?.observe();
        let flows = seen.flows.iter().filter(|it| Some(it.class) == class);
        let row = |it: &aqmlab_sim::FlowState| {
            let rtt = it.probe.round_trip.map(Time::as_secs_f64);
            (it.flow, it.received, it.retransmitted, it.probe.cwnd, rtt)
        };
        Ok(flows.map(row).collect())
    }

    /// Simulates what is left: the summary as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let end = self.end_time()?;
        self.run_until(py, end)?;
        let simulation = self.slot()?.take();
        let simulation =
            simulation.ok_or_else(|| RunError::new_err("the simulation is finished"))?;
        let summary = match self.holding {
            true => self.modules.within(|| simulation.end()),
            false => py.detach(|| simulation.end()),
        };
        plugins::raise(py)?;
        let summary = summary.map_err(run_error)?;
        Ok(json_text(&summary))
    }
}

/// State, counters and variables of a link's direction.
type LinkTotals<'py> = (
    (u64, u64, f64, u64),
    (u64, u64, u64, u64, u64),
    Bound<'py, PyDict>,
);

/// An open connection.
type FlowTotals = (u64, u64, u64, u64, Option<f64>);

/// What a thread is given of a run: itself, what changes, and what came of it.
struct Part<'a> {
    simulation: &'a mut Simulation,
    modules: Modules,
    changes: Vec<(String, String)>,
    done: Result<(), Wrong>,
}

/// Why a step could not be made.
enum Wrong {
    Value(WrongValue),
    Run(aqmlab_record::RunError),
    Plugin(Failure),
}

impl Part<'_> {
    fn step(&mut self, seconds: f64) {
        let modules = self.modules.clone();
        let made = modules.within(|| self.made(seconds));
        // Failures are those of a thread, and this one may be another run's next.
        self.done = failure::take().map_or(made, |failure| Err(Wrong::Plugin(failure)));
    }

    fn made(&mut self, seconds: f64) -> Result<(), Wrong> {
        for (key, value) in &self.changes {
            self.simulation.set(key, value).map_err(Wrong::Value)?;
        }
        let time = Time::from_secs_f64(self.simulation.now().as_secs_f64() + seconds);
        self.simulation.run_until(time).map_err(Wrong::Run)
    }
}

/// What is left takes at least so long where threads are begun for it: to begin them takes tens of
/// microseconds, and on a busy machine they wait for a processor.
const WORTH_THREADS: Duration = Duration::from_millis(1);

/// Makes each run's changes and then simulates `seconds` of it, on up to `threads` threads which do
/// not hold the interpreter.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "Python's values come by value"
)]
pub(crate) fn step_all(
    py: Python<'_>,
    steppers: Vec<Py<Stepper>>,
    changes: Vec<Vec<(String, String)>>,
    seconds: f64,
    threads: usize,
) -> PyResult<()> {
    let holding = steppers.iter().any(|stepper| stepper.get().holding);
    let used: PyResult<Vec<_>> = steppers.iter().map(|it| it.get().simulation()).collect();
    let mut used = used?;
    let mut parts = Vec::with_capacity(steppers.len());
    for ((simulation, stepper), changes) in used.iter_mut().zip(&steppers).zip(changes) {
        parts.push(Part {
            simulation,
            modules: stepper.get().modules.clone(),
            changes,
            done: Ok(()),
        });
    }
    match holding {
        true => parts.iter_mut().for_each(|part| part.step(seconds)),
        false => py.detach(|| step_parts(&mut parts, seconds, threads)),
    }
    for part in parts {
        match part.done {
            Ok(()) => {}
            Err(Wrong::Value(error)) => return Err(ScenarioError::new_err(error.to_string())),
            Err(Wrong::Run(error)) => return Err(run_error(error)),
            Err(Wrong::Plugin(failure)) => {
                failure::set(failure);
                plugins::raise(py)?;
            }
        }
    }
    py.check_signals()
}

/// The first run is stepped at once: how long that takes says whether threads are worth it.
fn step_parts(parts: &mut [Part<'_>], seconds: f64, threads: usize) {
    let began = Instant::now();
    let Some((first, rest)) = parts.split_first_mut() else {
        return;
    };
    first.step(seconds);
    let left = began.elapsed() * rest.len() as u32;
    if left < WORTH_THREADS || threads < 2 {
        rest.iter_mut().for_each(|part| part.step(seconds));
        return;
    }
    let helpers = (threads - 1).min(rest.len() - 1);
    let rest: Vec<_> = rest.iter_mut().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(part) = rest.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Ok(mut part) = part.lock() {
                part.step(seconds);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(work);
        }
        work();
    });
}

/// A link's direction as keys of changes have it.
fn direction(name: &LinkDirection) -> String {
    format!("{}.{}", name.link, name.direction)
}
