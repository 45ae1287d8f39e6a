//! A run that is stepped from Python.

use std::path::Path;
use std::sync::Mutex;

use aqmlab_net::Time;
use aqmlab_plugin::failure;
use aqmlab_record::LinkDirection;
use aqmlab_sim::Simulation;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::{RunError, ScenarioError, bound, plugins, read_effective, run_error};

/// A run under way. Times are seconds since its start.
#[pyclass(module = "aqmlab._native")]
pub(crate) struct Stepper {
    /// Nothing once it has ended. The lock is never waited for: Python calls one method at a time.
    simulation: Mutex<Option<Simulation>>,
    classes: Vec<String>,
    /// It has callbacks that need the interpreter.
    holding: bool,
}

/// Signals such as Ctrl-C are seen after so much simulated time.
const STRETCH: Time = Time::from_secs(1);

impl Stepper {
    fn simulation(&mut self) -> PyResult<&mut Simulation> {
        self.slot().as_mut().ok_or_else(finished)
    }

    fn slot(&mut self) -> &mut Option<Simulation> {
        match self.simulation.get_mut() {
            Ok(slot) => slot,
            Err(poisoned) => poisoned.into_inner(),
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
        let records = aqmlab_parquet::recorder(out_dir.map(Path::new), &scenario.measure, 1);
        let _ = failure::take(); // of whoever did not look
        let started = Simulation::start_changeable(&scenario, records, bound(memory));
        plugins::raise(py)?;
        Ok(Self {
            simulation: Mutex::new(Some(started.map_err(run_error)?)),
            holding: plugins::interpreted(effective),
            classes: scenario
                .traffic
                .into_iter()
                .map(|class| class.name)
                .collect(),
        })
    }

    fn now(&mut self) -> PyResult<f64> {
        Ok(self.simulation()?.now().as_secs_f64())
    }

    fn end_time(&mut self) -> PyResult<f64> {
        Ok(self.simulation()?.end_time().as_secs_f64())
    }

    fn run_until(&mut self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let holding = self.holding;
        let simulation = self.simulation()?;
        let time = Time::from_secs_f64(seconds).min(simulation.end_time());
        while simulation.now() < time {
            let next = time.min(simulation.now().saturating_add(STRETCH));
            let stepped = match holding {
                true => simulation.run_until(next),
                false => py.detach(|| simulation.run_until(next)),
            };
            plugins::raise(py)?;
            stepped.map_err(run_error)?;
            py.check_signals()?;
        }
        Ok(())
    }

    fn set(&mut self, py: Python<'_>, key: &str, value: &str) -> PyResult<()> {
        let set = self.simulation()?.set(key, value);
        plugins::raise(py)?;
        set.map_err(|error| ScenarioError::new_err(error.to_string()))
    }

    fn changeable(&mut self) -> PyResult<Vec<String>> {
        Ok(self.simulation()?.changeable())
    }

    fn scenario(&mut self) -> PyResult<String> {
        Ok(self.simulation()?.scenario().to_toml())
    }

    /// Links by name and direction, and the open connections, as columns.
    fn observe<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let seen = self.simulation()?.observe();
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

    /// Simulates what is left: the summary as JSON.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        let end = self.end_time()?;
        self.run_until(py, end)?;
        let simulation = self.slot().take().ok_or_else(finished)?;
        let summary = match self.holding {
            true => simulation.end(),
            false => py.detach(|| simulation.end()),
        };
        plugins::raise(py)?;
        let summary = summary.map_err(run_error)?;
        Ok(serde_json::to_string(&summary).expect("a summary holds only what JSON can say"))
    }
}

/// A link's direction as keys of changes have it.
fn direction(name: &LinkDirection) -> String {
    format!("{}.{}", name.link, name.direction)
}

fn finished() -> PyErr {
    RunError::new_err("the simulation is finished")
}
