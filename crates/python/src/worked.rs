//! A discipline that is played event by event, without a network: worked traces of plug-ins.

use std::collections::VecDeque;

use aqmlab_aqm::{FifoQueue, LinkFacts, Outcome};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, Time};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::effective::read_effective;
use crate::modules::Modules;
use crate::{AqmlabError, plugins};

/// The queue of a scenario's bottleneck, towards the clients.
#[pyclass(module = "aqmlab._native")]
pub(crate) struct Worked {
    fifo: FifoQueue,
    /// The packets that wait, and when they came.
    waiting: VecDeque<(Packet, Time)>,
}

impl Worked {
    /// Wakes the AQM as often as it is due up to `time`, or before it.
    fn tick_until(&mut self, py: Python<'_>, time: Time, at_it: bool) -> PyResult<()> {
        while self.fifo.next_tick() < time || (at_it && self.fifo.next_tick() == time) {
            self.fifo.tick();
            plugins::raise(py)?;
        }
        Ok(())
    }
}

#[pymethods]
impl Worked {
    #[new]
    fn new(py: Python<'_>, effective: &str) -> PyResult<Self> {
        let network = read_effective(effective)?.topology.network();
        let link = network.links.get("bottleneck").map(|link| &link.forward);
        let link = link.ok_or_else(|| AqmlabError::new_err("found no link bottleneck"))?;
        let facts = LinkFacts {
            rate: link.rate,
            framing: Bytes(u64::from(link.framing.0)),
        };
        let fifo = Modules::default().within(|| FifoQueue::new(&link.discipline, facts, 1));
        plugins::raise(py)?;
        let fifo = fifo.ok_or_else(|| {
            AqmlabError::new_err("a trace is for disciplines that judge arrivals, over one queue")
        })?;
        Ok(Self {
            fifo,
            waiting: VecDeque::new(),
        })
    }

    /// A packet arrives: what is done with it, and how many of the draws were left.
    fn arrive(
        &mut self,
        py: Python<'_>,
        seconds: f64,
        flow: u64,
        size: u32,
        ect: bool,
        draws: Vec<f64>,
    ) -> PyResult<(String, usize)> {
        let now = Time::from_secs_f64(seconds);
        self.tick_until(py, now, true)?;
        let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
        let mut packet = Packet {
            size,
            ecn,
            dscp: 0,
            flow: FlowKey(flow),
        };
        let mut draws: VecDeque<f64> = draws.into();
        let mut lacking = false;
        let outcome = self.fifo.arrive(now, &packet, &mut || {
            draws.pop_front().unwrap_or_else(|| {
                lacking = true;
                1.0
            })
        });
        plugins::raise(py)?;
        if lacking {
            let message = "random_draw: found fewer numbers than are drawn";
            return Err(AqmlabError::new_err(message));
        }
        let word = match outcome {
            Outcome::Enqueue => "enqueue".to_owned(),
            Outcome::Mark(_) => "mark".to_owned(),
            Outcome::Drop(reason) => format!("drop_{}", reason.name()),
        };
        if let Outcome::Mark(_) = outcome {
            packet.ecn = Ecn::Ce;
        }
        if !matches!(outcome, Outcome::Drop(_)) {
            self.waiting.push_back((packet, now));
        }
        Ok((word, draws.len()))
    }

    /// The packet that has waited longest leaves; whether there was one.
    fn depart(&mut self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let now = Time::from_secs_f64(seconds);
        self.tick_until(py, now, false)?;
        let Some((packet, arrived)) = self.waiting.pop_front() else {
            return Ok(false);
        };
        self.fifo.depart(now, &packet, arrived);
        plugins::raise(py)?;
        Ok(true)
    }

    /// Nothing waits, and the wire is quiet.
    fn idle(&mut self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let now = Time::from_secs_f64(seconds);
        self.tick_until(py, now, true)?;
        self.fifo.idle(now);
        plugins::raise(py)
    }

    /// Time passes.
    fn tick(&mut self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        self.tick_until(py, Time::from_secs_f64(seconds), true)
    }

    /// Packets and bytes that wait.
    fn backlog(&self) -> (u32, u64) {
        let backlog = self.fifo.backlog();
        (backlog.packets, backlog.bytes)
    }

    /// The discipline's variables.
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut values = Vec::new();
        self.fifo.probe(&mut values);
        plugins::raise(py)?;
        let variables = PyDict::new(py);
        for (name, value) in self.fifo.probe_names().iter().zip(values) {
            variables.set_item(name, value)?;
        }
        Ok(variables)
    }
}
