//! SFB, stochastic fair BLUE: W. Feng, D. Kandlur, D. Saha, K. Shin, "Stochastic Fair Blue: A Queue
//! Management Algorithm for Enforcing Fairness", IEEE INFOCOM 2001. Departures:
//! [`Parameters::ABOUT`].

use std::collections::VecDeque;

use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Rate, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome, happens};
use crate::check::{self, Problem};
use crate::counters::{Reason, ReasonText};
use crate::link::{Backlog, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of SFB.
#[parameters]
pub struct Params {
    /// Number of levels (L), each with its own hash function.
    #[param(default = 2, least = 1, most = MOST_LEVELS)]
    pub levels: u32,
    /// Bins per level (N). With B unresponsive flows, a share (1 - (1 - 1/N)^B)^L of the other
    /// flows is punished, too.
    #[param(default = 23, least = 1, most = MOST_BINS)]
    pub bins: u32,
    /// A bin is full when this many packets wait in it. Default: 1.5 x `limit` / `bins`.
    #[param(least = 1)]
    pub bin_size: Option<u32>,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Increase of the probability of a full bin. Must be above `d2`.
    #[param(default = 0.005, above = 0.0, most = 1.0)]
    pub d1: f64,
    /// Decrease of the probability of an empty bin.
    #[param(default = 0.001, above = 0.0, most = 1.0)]
    pub d2: f64,
    /// Minimum time between two changes of a bin.
    #[param(default = "100 ms")]
    pub freeze_time: Time,
    /// How often the hash functions change, at least 10 us. 0 s: never.
    #[param(default = "20 s")]
    pub rehash: Time,
    /// Rate that all flows in the penalty box share. Default: 0.16/45 of the link rate.
    pub penalty_rate: Option<Rate>,
    /// Bytes that the penalty box may send at once.
    #[param(default = "3000 bytes")]
    pub penalty_burst: Bytes,
    /// If true, one full bin of a flow is enough to drop its packet.
    #[param(default)]
    pub drop_any_bin: bool,
    /// Mean packet size. It converts bytes to packets.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default)]
    pub ecn: bool,
}

const MOST_LEVELS: u32 = 16;
const MOST_BINS: u32 = 1 << 12;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Stochastic Fair BLUE",
        paper: "W. Feng, D. Kandlur, D. Saha, K. Shin, Stochastic Fair Blue: A Queue Management \
                Algorithm for Enforcing Fairness, IEEE INFOCOM 2001",
        purpose: "Finds unresponsive flows with a few counters: flows hash to a bin at each of \
                  several levels, and each bin runs BLUE.",
        departures: &[
            "As in Linux, a packet is dropped if all bins of its flow are full. `drop_any_bin` \
             follows figure 2.11 of Le 2005.",
            "d1, d2, `freeze_time` and `rehash` follow Apple's XNU.",
            "Linux drops ECN-capable packets early above a probability of 1/2. It has no freeze \
             time, and 8 levels of 16 bins.",
        ],
        memory: "2 L N bins of 24 bytes, and 24 bytes for each waiting packet",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::ascending(("d2", self.d2), ("d1", self.d1))?;
        if self.rehash > Time::ZERO {
            check::interval("rehash", self.rehash)?;
        }
        Ok(())
    }
}

const FULL_BIN: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "bin",
    meaning: "the bins of the flow were full",
    marks: false,
});

const PENALTY: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN + 1,
    name: "penalty",
    meaning: "the flow was in the penalty box",
    marks: false,
});

impl AqmParameters for Params {
    type Aqm = Sfb;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW, FULL_BIN, PENALTY];

    fn aqm(&self, link: LinkFacts, seed: u64) -> Sfb {
        Sfb::new(self, link, seed)
    }
}

impl Params {
    fn bin_size(&self) -> u32 {
        self.bin_size.unwrap_or_else(|| {
            let limit = Unit::Packets.threshold(self.limit, self.mean_packet);
            // 13 for 200 packets over 23 bins.
            ((1.5 * limit / f64::from(self.bins)) as u32).max(1)
        })
    }

    /// Bytes per second that pass the penalty box.
    fn penalty_rate(&self, link: LinkFacts) -> f64 {
        let rule = link.rate.bps() as f64 * PENALTY_SHARE;
        self.penalty_rate.map_or(rule, |rate| rate.bps() as f64) / 8.0
    }
}

/// The paper's penalty rate over its link: 0.16 of 45 Mbit/s.
const PENALTY_SHARE: f64 = 0.16 / 45.0;

/// The AQM of SFB.
#[derive(Clone, Debug)]
pub struct Sfb {
    params: Params,
    steps: Steps,
    seed: u64,
    /// The bins that decide.
    current: Bins,
    /// The bins that decide next, warming up; none if the hash functions never change.
    next: Option<Bins>,
    /// How often the hash functions have changed.
    generation: u64,
    next_rehash: Time,
    /// The packets that wait: their hashes, and the generation that let them in.
    waiting: VecDeque<(Hashes, u64)>,
    /// The hashes of the last arrival.
    hashes: Hashes,
    penalty: Bucket,
    /// Smallest probability of the bins of the last arrival's flow.
    p_min: f64,
}

/// How the probability of a bin moves.
#[derive(Clone, Copy, Debug)]
struct Steps {
    bin_size: u32,
    d1: f64,
    d2: f64,
    freeze: Time,
}

/// What SFB knows of the flows that hash into a bin.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    /// Their packets in the queue.
    qlen: u32,
    /// Their signal probability, the paper's p_m.
    p_m: f64,
    /// When the probability may move again.
    frozen_until: Time,
}

impl Bin {
    #[inline]
    fn step(&mut self, now: Time, by: f64, freeze: Time) {
        if now >= self.frozen_until {
            self.p_m = (self.p_m + by).clamp(0.0, 1.0);
            self.frozen_until = now + freeze;
        }
    }

    /// A packet arrives, whatever becomes of it.
    #[inline]
    fn arrive(&mut self, now: Time, steps: Steps) {
        if self.qlen >= steps.bin_size {
            self.step(now, steps.d1, steps.freeze);
        } else if self.qlen == 0 {
            self.step(now, -steps.d2, steps.freeze);
        }
    }

    #[inline]
    fn depart(&mut self, now: Time, steps: Steps) {
        self.qlen -= 1;
        if self.qlen == 0 {
            self.step(now, -steps.d2, steps.freeze);
        }
    }
}

/// All levels of bins under one set of hash functions.
#[derive(Clone, Debug)]
struct Bins {
    /// Level by level.
    bins: Vec<Bin>,
    levels: usize,
    /// Bins per level.
    width: usize,
    seed: u64,
}

impl Bins {
    fn new(params: &Params, seed: u64) -> Self {
        let (levels, width) = (params.levels as usize, params.bins as usize);
        Self {
            bins: vec![Bin::default(); width * levels],
            levels,
            width,
            seed,
        }
    }

    #[inline]
    const fn hash(&self, flow: FlowKey) -> u64 {
        flow.hash(self.seed)
    }

    /// Shows the bin at every level of a flow with this hash. 16 bits pick a bin: one hash does
    /// for four levels.
    #[inline]
    fn for_each(&mut self, hash: u64, mut visit: impl FnMut(&mut Bin)) {
        let mut bits = hash;
        for level in 0..self.levels {
            if level > 0 && level % 4 == 0 {
                bits = FlowKey(hash).hash(level as u64);
            }
            let place = ((bits & 0xffff) * self.width as u64) >> 16;
            visit(&mut self.bins[level * self.width + place as usize]);
            bits >>= 16;
        }
    }
}

/// The hashes of a packet's flow.
#[derive(Clone, Copy, Debug, Default)]
struct Hashes {
    /// For the bins that decide.
    current: u64,
    /// For those that decide next.
    next: u64,
}

/// A token bucket.
#[derive(Clone, Debug)]
struct Bucket {
    bytes_per_second: f64,
    depth: f64,
    tokens: f64,
    filled: Time,
}

impl Bucket {
    fn admits(&mut self, now: Time, size: u32) -> bool {
        let gained = self.bytes_per_second * (now - self.filled).as_secs_f64();
        self.tokens = (self.tokens + gained).min(self.depth);
        self.filled = now;
        let size = f64::from(size);
        let admits = self.tokens >= size;
        if admits {
            self.tokens -= size;
        }
        admits
    }
}

impl Sfb {
    /// SFB with an empty queue; `seed` is for its hash functions.
    pub fn new(params: &Params, link: LinkFacts, seed: u64) -> Self {
        let rehashes = params.rehash > Time::ZERO;
        let depth = params.penalty_burst.0 as f64;
        Self {
            steps: Steps {
                bin_size: params.bin_size(),
                d1: params.d1,
                d2: params.d2,
                freeze: params.freeze_time,
            },
            seed,
            current: Bins::new(params, generation_seed(seed, 0)),
            next: rehashes.then(|| Bins::new(params, generation_seed(seed, 1))),
            generation: 0,
            next_rehash: if rehashes { params.rehash } else { Time::NEVER },
            waiting: VecDeque::new(),
            hashes: Hashes::default(),
            penalty: Bucket {
                bytes_per_second: params.penalty_rate(link),
                depth,
                tokens: depth,
                filled: Time::ZERO,
            },
            p_min: 0.0,
            params: params.clone(),
        }
    }
}

/// The seed of the hash functions of a generation.
const fn generation_seed(seed: u64, generation: u64) -> u64 {
    FlowKey(generation).hash(seed)
}

impl Aqm for Sfb {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let steps = self.steps;
        self.hashes = Hashes {
            current: self.current.hash(packet.flow),
            next: self.next.as_ref().map_or(0, |next| next.hash(packet.flow)),
        };
        let (mut p_min, mut emptiest, mut fullest) = (1.0_f64, u32::MAX, 0);
        self.current.for_each(self.hashes.current, |bin| {
            bin.arrive(now, steps);
            p_min = p_min.min(bin.p_m);
            emptiest = emptiest.min(bin.qlen);
            fullest = fullest.max(bin.qlen);
        });
        self.p_min = p_min;
        let qlen = if self.params.drop_any_bin {
            fullest
        } else {
            emptiest
        };
        let full = qlen >= steps.bin_size;
        let punished = full || p_min >= 1.0;
        if let Some(next) = &mut self.next
            && punished
        {
            next.for_each(self.hashes.next, |bin| bin.arrive(now, steps));
        }
        if full {
            Decision::Drop(FULL_BIN)
        } else if p_min >= 1.0 {
            if self.penalty.admits(now, packet.size) {
                Decision::Admit
            } else {
                Decision::Drop(PENALTY)
            }
        } else if happens(p_min, draw) {
            Decision::Signal(Reason::EARLY)
        } else {
            Decision::Admit
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks::BOTH
    }

    #[inline]
    fn on_outcome(&mut self, _now: Time, _packet: &Packet, _queue: Backlog, outcome: Outcome) {
        if let Outcome::Drop(_) = outcome {
            return;
        }
        let hashes = self.hashes;
        self.waiting.push_back((hashes, self.generation));
        self.current.for_each(hashes.current, |bin| bin.qlen += 1);
        if let Some(next) = &mut self.next {
            next.for_each(hashes.next, |bin| bin.qlen += 1);
        }
    }

    #[inline]
    fn on_departure(&mut self, now: Time, _packet: &Packet, _arrived: Time, _queue: Backlog) {
        let departed = self.waiting.pop_front();
        let (hashes, generation) = departed.expect("what leaves was let in");
        let steps = self.steps;
        match self.generation - generation {
            0 => {
                let current = &mut self.current;
                current.for_each(hashes.current, |bin| bin.depart(now, steps));
                if let Some(next) = &mut self.next {
                    next.for_each(hashes.next, |bin| bin.depart(now, steps));
                }
            }
            // What was to decide next decides now.
            1 => {
                let current = &mut self.current;
                current.for_each(hashes.next, |bin| bin.depart(now, steps));
            }
            // The bins that it raised are gone.
            _ => {}
        }
    }

    fn next_tick(&self) -> Time {
        self.next_rehash
    }

    fn on_tick(&mut self, _now: Time, _queue: Backlog) {
        self.next_rehash += self.params.rehash;
        self.generation += 1;
        if let Some(next) = &mut self.next {
            std::mem::swap(&mut self.current, next);
            next.bins.fill(Bin::default());
            next.seed = generation_seed(self.seed, self.generation + 1);
        }
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.penalty.bytes_per_second = self.params.penalty_rate(link);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["p_min", "p_m_max", "bin_qlen_max"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let bins = &self.current.bins;
        let p_m_max = bins.iter().map(|bin| bin.p_m).fold(0.0, f64::max);
        let qlen_max = bins.iter().map(|bin| bin.qlen).max().unwrap_or(0);
        out.extend([self.p_min, p_m_max, f64::from(qlen_max)]);
    }
}

#[cfg(test)]
mod tests;
