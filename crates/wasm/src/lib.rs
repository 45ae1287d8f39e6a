//! The simulator for a browser: one world, which is stepped, changed, and looked at between steps.
//!
//! All that a world is stands in the linear memory: a copy of the memory is a copy of the world.

mod records;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aqmlab_net::Time;
use aqmlab_scenario::Scenario;
use aqmlab_sim::{Memory, Observation, Simulation};
use wasm_bindgen::prelude::*;

use records::{Kept, MemoryRecords};

/// Columns of [`Lab::samples`] before those of the classes.
const LINK_COLUMNS: usize = 9;

/// A run under way. Times are seconds since its start.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Lab {
    /// Nothing once it has ended.
    simulation: Option<Simulation>,
    kept: Arc<Mutex<Kept>>,
    classes: Vec<String>,
    /// Number of the direction of a link that is looked at.
    port: usize,
    samples: Vec<f64>,
    flows: Vec<f64>,
}

#[wasm_bindgen]
impl Lab {
    /// A scenario at time 0. It names no files, and states how many users there are.
    ///
    /// With `all_rows` every row that it records is kept for [`rows`](Self::rows); else only
    /// response times are.
    #[wasm_bindgen(constructor)]
    pub fn new(scenario: &str, all_rows: bool) -> Result<Self, String> {
        let mut read = |_: &str| Err(io::Error::other("there are no files here"));
        let scenario = Scenario::parse(scenario, &[], &mut read).map_err(told)?;
        let kept = Arc::new(Mutex::new(Kept::new(all_rows)));
        let records = Box::new(MemoryRecords(Arc::clone(&kept)));
        let started = Simulation::start_changeable(&scenario, records, Memory::UNLIMITED);
        let classes = scenario.traffic.into_iter().map(|class| class.name);
        Ok(Self {
            simulation: Some(started.map_err(told)?),
            kept,
            classes: classes.collect(),
            port: 0,
            samples: Vec::new(),
            flows: Vec::new(),
        })
    }

    /// The end of the measured span.
    pub fn end(&self) -> Result<f64, String> {
        Ok(self.running()?.end_time().as_secs_f64())
    }

    /// Up to when it has been simulated.
    pub fn now(&self) -> Result<f64, String> {
        Ok(self.running()?.now().as_secs_f64())
    }

    /// The names of the classes of traffic.
    pub fn classes(&self) -> Vec<String> {
        self.classes.clone()
    }

    /// The directions of links, as `LINK.DIRECTION`.
    pub fn directions(&mut self) -> Result<Vec<String>, String> {
        let links = self.running_mut()?.observe().links.into_iter();
        let names = links.map(|(name, _)| format!("{}.{}", name.link, name.direction));
        Ok(names.collect())
    }

    /// Which of the [directions](Self::directions) [`samples`](Self::samples) are of.
    pub fn look_at(&mut self, direction: usize) {
        self.port = direction;
    }

    /// Simulates up to `until`, and takes a sample of the link every `step` seconds and one of the
    /// first connections every `flow_step`, all multiples of their period. Samples of before are
    /// forgotten.
    pub fn advance(&mut self, until: f64, step: f64, flow_step: f64) -> Result<(), String> {
        self.samples.clear();
        self.flows.clear();
        let [step, flow_step] = [step, flow_step].map(|it| Time::from_secs_f64(it).as_nanos());
        if step == 0 || flow_step == 0 {
            return Err("found a step of 0 s; expected more".to_owned());
        }
        let simulation = self.running_mut()?;
        let until = Time::from_secs_f64(until).min(simulation.end_time());
        loop {
            let simulation = self.running_mut()?;
            let now = simulation.now().as_nanos();
            let next = Time::from_nanos((now / step + 1) * step);
            simulation.run_until(next.min(until)).map_err(told)?;
            if next > until {
                return Ok(());
            }
            let seen = simulation.observe();
            self.sample(&seen);
            if next.as_nanos().is_multiple_of(flow_step) {
                self.sample_flows(&seen);
            }
        }
    }

    fn sample(&mut self, seen: &Observation) {
        let Some((_, port)) = seen.links.get(self.port) else {
            return;
        };
        let counters = &port.counters;
        let row: [f64; LINK_COLUMNS] = [
            seen.time.as_secs_f64(),
            port.drain.as_secs_f64(),
            f64::from(port.backlog.packets),
            port.backlog.bytes as f64,
            port.rate.bps() as f64,
            counters.departed_bytes as f64,
            counters.departed_packets as f64,
            counters.dropped_packets() as f64,
            counters.marked_packets() as f64,
        ];
        self.samples.extend(row);
        let received = seen.received.iter();
        self.samples.extend(received.map(|&bytes| bytes as f64));
    }

    /// The oldest connections: as many as a chart can tell apart.
    fn sample_flows(&mut self, seen: &Observation) {
        const MOST: usize = 12;
        let mut oldest: Vec<_> = seen.flows.iter().collect();
        oldest.sort_by_key(|flow| flow.flow);
        for flow in oldest.into_iter().take(MOST) {
            let rtt = flow.probe.round_trip;
            self.flows.extend([
                seen.time.as_secs_f64(),
                flow.flow as f64,
                flow.class as f64,
                flow.probe.cwnd as f64,
                rtt.map_or(f64::NAN, Time::as_secs_f64),
                flow.received as f64,
            ]);
        }
    }

    /// Samples of the link since the last step began, row by row: time, delay of an arrival in s,
    /// packets and bytes that wait, rate in bit/s, bytes and packets that departed, packets dropped
    /// and marked since the run began, and for each class application bytes received so far.
    pub fn samples(&self) -> Vec<f64> {
        self.samples.clone()
    }

    /// Samples of the oldest connections since the last step began, row by row: time, serial number,
    /// class, congestion window in bytes, smoothed round trip in s (or NaN), bytes received.
    pub fn flows(&self) -> Vec<f64> {
        self.flows.clone()
    }

    /// Response times since this was called last, row by row: end, class, s.
    pub fn responses(&mut self) -> Vec<f64> {
        self.kept().take_responses()
    }

    /// Gives a key another value from now on.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        self.running_mut()?.set(key, value).map_err(told)
    }

    /// The keys that can change.
    pub fn changeable(&self) -> Result<Vec<String>, String> {
        Ok(self.running()?.changeable())
    }

    /// Simulates what is left: the summary as JSON.
    pub fn finish(&mut self) -> Result<String, String> {
        let simulation = self.simulation.take().ok_or_else(finished)?;
        let summary = simulation.end().map_err(told)?;
        Ok(serde_json::to_string(&summary).expect("a summary holds only what JSON can say"))
    }

    /// Every field of every row that was recorded, in its order: integers and numbers as 8 bytes,
    /// least first.
    pub fn rows(&self) -> Vec<u8> {
        self.kept().rows().to_vec()
    }
}

impl Lab {
    fn running(&self) -> Result<&Simulation, String> {
        self.simulation.as_ref().ok_or_else(finished)
    }

    fn running_mut(&mut self) -> Result<&mut Simulation, String> {
        self.simulation.as_mut().ok_or_else(finished)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of what the engine does: the same name, the same results.
#[wasm_bindgen]
pub fn engine() -> String {
    aqmlab_sim::ENGINE.to_owned()
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn finished() -> String {
    "the simulation is finished".to_owned()
}
