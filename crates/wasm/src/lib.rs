//! The simulator for a browser: one world, which is stepped, changed, and looked at between steps.
//!
//! All that a world is stands in the linear memory: a copy of the memory is a copy of the world.

#[cfg(feature = "breakdown")]
mod breakdowns;
mod records;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aqmlab_net::Time;
use aqmlab_scenario::Scenario;
use aqmlab_sim::{Memory, Observation, Simulation};
use aqmlab_traffic::Samples;
use wasm_bindgen::prelude::*;

use records::{Kept, MemoryRecords};

/// Columns of [`Lab::samples`] for each direction of the link.
const LINK_COLUMNS: usize = 8;
/// How often users are asked what they get.
const QUALITY_STEP: Time = Time::from_secs(1);

/// A run under way. Times are seconds since its start.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Lab {
    /// Nothing once it has ended.
    simulation: Option<Simulation>,
    kept: Arc<Mutex<Kept>>,
    classes: Vec<String>,
    samples: Vec<f64>,
    flows: Vec<f64>,
    qualities: Vec<f64>,
}

#[wasm_bindgen]
impl Lab {
    /// A scenario at time 0. It states how many users there are, and names one file at most, whose
    /// text is `file`.
    ///
    /// With `all_rows` every row that it records is kept for [`rows`](Self::rows); else only
    /// response times are.
    #[wasm_bindgen(constructor)]
    pub fn new(scenario: &str, all_rows: bool, file: Option<String>) -> Result<Self, String> {
        let mut read = move |_: &str| {
            let missing = || io::Error::other("there are no files here");
            file.clone().ok_or_else(missing)
        };
        let scenario = Scenario::parse(scenario, &[], &mut read).map_err(to_text)?;
        let kept = Arc::new(Mutex::new(Kept::new(all_rows)));
        let records = Box::new(MemoryRecords(Arc::clone(&kept)));
        let started = Simulation::start_changeable(&scenario, records, Memory::UNLIMITED);
        let classes = scenario.traffic.into_iter().map(|class| class.name);
        Ok(Self {
            simulation: Some(started.map_err(to_text)?),
            kept,
            classes: classes.collect(),
            samples: Vec::new(),
            flows: Vec::new(),
            qualities: Vec::new(),
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

    /// Simulates up to `until`, and takes a sample of the link every `step` seconds, one of the
    /// first connections every `flow_step` and one of what users get every second, all at multiples
    /// of their period. Samples of before are forgotten.
    pub fn advance(&mut self, until: f64, step: f64, flow_step: f64) -> Result<(), String> {
        self.samples.clear();
        self.flows.clear();
        self.qualities.clear();
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
            simulation.run_until(next.min(until)).map_err(to_text)?;
            if next > until {
                return Ok(());
            }
            let seen = simulation.observe();
            self.sample(&seen);
            if next.as_nanos().is_multiple_of(flow_step) {
                self.sample_flows(&seen);
            }
            if next.as_nanos().is_multiple_of(QUALITY_STEP.as_nanos()) {
                self.sample_qualities(next)?;
            }
        }
    }

    fn sample(&mut self, seen: &Observation) {
        self.samples.push(seen.time.as_secs_f64());
        for (_, port) in seen.links.iter().take(2) {
            let counters = &port.counters;
            let columns: [f64; LINK_COLUMNS] = [
                port.drain.as_secs_f64(),
                f64::from(port.backlog.packets),
                port.backlog.bytes as f64,
                port.rate.bps() as f64,
                counters.departed_bytes as f64,
                counters.departed_packets as f64,
                counters.dropped_packets() as f64,
                counters.marked_packets() as f64,
            ];
            self.samples.extend(columns);
        }
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

    /// What users of calls and videos got so far: sums and counts that grow.
    fn sample_qualities(&mut self, now: Time) -> Result<(), String> {
        let classes = self.running()?.quality().into_iter().enumerate();
        for (class, quality) in classes {
            let Some(quality) = quality else { continue };
            let (voice, video) = (quality.voice, quality.video);
            let sum = |samples: &Samples| samples.mean().unwrap_or(0.0) * samples.count() as f64;
            self.qualities.extend([
                now.as_secs_f64(),
                class as f64,
                voice.scores.count() as f64,
                sum(&voice.scores),
                voice.packets as f64,
                voice.lost as f64,
                video.played_s,
                video.stalled_s,
                video.stalls as f64,
                video.bitrates.count() as f64,
                sum(&video.bitrates),
            ]);
        }
        Ok(())
    }

    /// Samples of the first link since the last step began, row by row: time; for each direction,
    /// forward first, delay of an arrival in s, packets and bytes that wait, rate in bit/s, bytes and
    /// packets that departed, packets dropped and marked since the run began; for each class
    /// application bytes received so far.
    pub fn samples(&self) -> Vec<f64> {
        self.samples.clone()
    }

    /// Samples of the oldest connections since the last step began, row by row: time, serial number,
    /// class, congestion window in bytes, smoothed round trip in s (or NaN), bytes received.
    pub fn flows(&self) -> Vec<f64> {
        self.flows.clone()
    }

    /// What users of calls and videos got, at each whole second since the last step began, row by
    /// row: time, class; windows of calls that were rated, and the sum of their opinion scores; their
    /// packets, and those that came too late or never; seconds of video that were played and in which
    /// it stood still, and how often it stopped; segments that arrived, and the sum of their bit
    /// rates. All since the run began.
    pub fn qualities(&self) -> Vec<f64> {
        self.qualities.clone()
    }

    /// Response times since this was called last, row by row: end, class, s.
    pub fn responses(&mut self) -> Vec<f64> {
        self.kept().take_responses()
    }

    /// Gives a key another value from now on.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        self.running_mut()?.set(key, value).map_err(to_text)
    }

    /// The keys that can change.
    pub fn changeable(&self) -> Result<Vec<String>, String> {
        Ok(self.running()?.changeable())
    }

    /// Simulates what is left: the summary as JSON.
    pub fn finish(&mut self) -> Result<String, String> {
        let simulation = self.simulation.take().ok_or_else(finished)?;
        let summary = simulation.end().map_err(to_text)?;
        Ok(serde_json::to_string(&summary).expect("a summary holds only what JSON can say"))
    }

    /// Every field of every row that was recorded, in its order: integers and numbers as 8 bytes,
    /// least first.
    pub fn rows(&self) -> Vec<u8> {
        self.kept().rows().to_vec()
    }
}

/// What the second engine can say besides.
#[cfg(feature = "breakdown")]
#[wasm_bindgen]
impl Lab {
    /// The names of the columns of [`breakdowns`](Self::breakdowns): end in s, class, connection,
    /// bytes, response time, the parts that add up to it, counts on its path, and the loss that cost
    /// most. Times that end in `_ns` are nanoseconds. None if the scenario asks for no breakdown.
    pub fn columns(&self) -> Vec<String> {
        self.kept().breakdowns.columns()
    }

    /// The words whose numbers are in the columns `loss_segment`, `loss_port` and `loss_reason`.
    pub fn words(&self) -> Vec<String> {
        self.kept().breakdowns.words()
    }

    /// Where the time of responses went since this was called last, row by row.
    pub fn breakdowns(&mut self) -> Vec<f64> {
        self.kept().breakdowns.take()
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

fn to_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn finished() -> String {
    "the simulation is finished".to_owned()
}
