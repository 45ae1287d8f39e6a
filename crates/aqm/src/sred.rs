//! SRED: T. Ott, T. Lakshman, L. Wong, "SRED: Stabilized RED", IEEE INFOCOM 1999. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{FlowKey, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision, happens};
use crate::check;
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of SRED.
#[parameters]
pub struct Params {
    /// Buffer size (B). Its unit is also the unit of the queue length; the paper uses bytes.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Whether a hit raises the drop probability. An arrival hits if a random entry of the zombie
    /// list has its flow.
    #[param(default)]
    pub rule: Rule,
    /// Length of the list of recent flows, the zombies (M). It should be longer than the buffer.
    #[param(default = 1000, least = 1, most = MOST_ZOMBIES)]
    pub zombies: u32,
    /// Probability that an arrival without a hit replaces the compared entry (p_o).
    #[param(default = 0.25, above = 0.0, most = 1.0)]
    pub overwrite: f64,
    /// Weight of the newest arrival in the hit frequency. Default: `overwrite` / `zombies`. With
    /// the default, the frequency forgets as fast as the list.
    #[param(above = 0.0, most = 1.0)]
    pub alpha: Option<f64>,
    /// Drop probability with many flows when the queue fills a third of the buffer or more. From a
    /// sixth to a third it is a quarter of this value, below a sixth it is 0.
    #[param(default = 0.15, above = 0.0, most = 1.0)]
    pub p_max: f64,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default)]
    pub ecn: bool,
}

/// SRED's two drop rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// All packets have the same probability. Only the number of flows matters.
    Simple,
    /// A hit multiplies the probability by 1 + 1 / P (P: hit frequency), so a flow pays for its
    /// share.
    #[default]
    Full,
}

/// With so many flows or more the probability no longer grows with their number.
const SATURATION_FLOWS: f64 = 256.0;

/// Bound of the zombie list.
const MOST_ZOMBIES: u32 = 100_000;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Stabilized RED",
        paper: "T. Ott, T. Lakshman, L. Wong, SRED: Stabilized RED, IEEE INFOCOM 1999",
        purpose: "Stabilizes the buffer occupancy for any number of flows, which SRED estimates by \
                  comparing arrivals with a list of recent packets.",
        departures: &[],
        memory: "16 bytes for each of the M zombies, at most 1.6 MB",
    };
}

impl AqmParameters for Params {
    type Aqm = Sred;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Sred {
        let (in_bytes, buffer) = match self.limit {
            QueueSize::Packets(packets) => (false, packets),
            QueueSize::Bytes(bytes) => (true, bytes as f64),
        };
        Sred {
            alpha: self.alpha(),
            in_bytes,
            buffer,
            params: self.clone(),
            zombies: Vec::with_capacity(self.zombies as usize),
            state: State::default(),
        }
    }
}

impl Params {
    fn alpha(&self) -> f64 {
        let forgetting = self.overwrite / f64::from(self.zombies);
        self.alpha.unwrap_or(forgetting)
    }
}

/// A flow that was seen lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zombie {
    /// The flow.
    pub flow: FlowKey,
    /// How often an arrival of the flow has hit it.
    pub count: u32,
}

/// The AQM of SRED.
#[derive(Clone, Debug)]
pub struct Sred {
    params: Params,
    alpha: f64,
    /// Whether the buffer and what waits in it are counted in bytes.
    in_bytes: bool,
    /// B, in packets or bytes.
    buffer: f64,
    zombies: Vec<Zombie>,
    state: State,
}

/// What SRED remembers beside the zombies.
#[derive(Clone, Debug, Default)]
struct State {
    /// Whether the last arrival hit.
    hit: bool,
    /// P: average frequency of hits; 1 / P estimates the number of flows.
    frequency: f64,
    /// Probability used at the last arrival, p_zap.
    p_zap: f64,
}

impl Sred {
    /// The zombie list. A flow that stands there with a high count takes more than its share.
    pub fn zombies(&self) -> &[Zombie] {
        &self.zombies
    }

    /// Compares an arrival with a zombie: whether they are of the same flow.
    #[inline]
    fn compare(&mut self, flow: FlowKey, draw: &mut impl FnMut() -> f64) -> bool {
        let seen = Zombie { flow, count: 0 };
        if self.zombies.len() < self.params.zombies as usize {
            self.zombies.push(seen);
            return false;
        }
        let index = (draw() * self.zombies.len() as f64) as usize;
        let zombie = &mut self.zombies[index];
        if zombie.flow == flow {
            zombie.count = zombie.count.saturating_add(1);
            return true;
        }
        if happens(self.params.overwrite, draw) {
            *zombie = seen;
        }
        false
    }

    /// The probability that the buffer's occupation asks for, p_sap.
    #[inline]
    fn occupation_probability(&self, queue: Backlog) -> f64 {
        let q = if self.in_bytes {
            queue.bytes as f64
        } else {
            f64::from(queue.packets)
        };
        if q < self.buffer / 6.0 {
            0.0
        } else if q < self.buffer / 3.0 {
            self.params.p_max / 4.0
        } else {
            self.params.p_max
        }
    }

    /// The share of it that the number of flows, 1 / P, asks for: its square over 256 squared.
    #[inline]
    fn load(&self) -> f64 {
        let saturation = SATURATION_FLOWS * self.state.frequency;
        if saturation > 1.0 {
            (saturation * saturation).recip()
        } else {
            1.0
        }
    }
}

impl Aqm for Sred {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let hit = self.compare(packet.flow, draw);
        self.state.hit = hit;
        let weight = if hit { self.alpha } else { 0.0 };
        self.state.frequency = (1.0 - self.alpha) * self.state.frequency + weight;
        let p = self.occupation_probability(queue) * self.load();
        self.state.p_zap = match self.params.rule {
            // p (1 + Hit / P), which is 0 at p = 0 however small P is.
            Rule::Full if hit => (p + p / self.state.frequency).min(1.0),
            Rule::Full | Rule::Simple => p,
        };
        Decision::by_chance(self.state.p_zap, draw)
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["hit", "P", "p_zap"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let State {
            hit,
            frequency,
            p_zap,
        } = self.state;
        out.extend([f64::from(u8::from(hit)), frequency, p_zap]);
    }
}
