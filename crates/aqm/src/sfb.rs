//! SFB, stochastic fair BLUE: W. Feng, D. Kandlur, D. Saha, K. Shin, "Stochastic Fair Blue: A Queue
//! Management Algorithm for Enforcing Fairness", IEEE INFOCOM 2001. Departures:
//! [`Parameters::ABOUT`].

use std::collections::VecDeque;

use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::about::{About, Parameters};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::law::{Fate, Law, LawParameters, Verdict, happens};
use crate::link::{Backlog, LinkFacts};
use crate::red::{self, Unit};

/// Parameters of SFB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// L: levels, each with a hash function of its own; from 1 to 16.
    #[serde(default = "default_levels")]
    #[schemars(range(min = 1, max = MOST_LEVELS))]
    pub levels: u32,
    /// N: bins per level, from 1 to 65536. With B unresponsive flows, (1 - (1 - 1/N)^B)^L of the
    /// others share all their bins with some of them.
    #[serde(default = "default_bins")]
    #[schemars(range(min = 1, max = MOST_BINS))]
    pub bins: u32,
    /// Packets waiting from which a bin is full; at least 1. Left out: 1.5 times `limit` over
    /// `bins`.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub bin_size: Option<u32>,
    /// Buffer size; an arrival that would exceed it is dropped.
    pub limit: QueueSize,
    /// Step by which the probability of a full bin rises; above 0 and at most 1, and above `d2`.
    #[serde(default = "default_d1")]
    #[schemars(range(max = 1.0))]
    pub d1: f64,
    /// Step by which the probability of an empty bin falls; above 0 and at most 1.
    #[serde(default = "default_d2")]
    #[schemars(range(max = 1.0))]
    pub d2: f64,
    /// Shortest time between two steps of a bin.
    #[serde(default = "default_freeze")]
    pub freeze: Time,
    /// How often the hash functions change, at least 10 us; 0 s: never.
    #[serde(default = "default_rehash")]
    pub rehash: Time,
    /// What all flows in the penalty box, those whose bins are all at probability 1, may send
    /// together. Left out: 0.16 Mbit/s of every 45.
    #[serde(default)]
    pub penalty_rate: Option<Rate>,
    /// How much of that they may send at once; it must hold the largest packet, or none passes.
    #[serde(default = "default_penalty_burst")]
    pub penalty_burst: Bytes,
    /// Whether one full bin is enough to drop a packet, instead of all of its flow's.
    #[serde(default)]
    pub drop_any_bin: bool,
    /// Mean packet size: converts a `limit` in bytes to packets.
    #[serde(default = "red::default_mean_packet")]
    pub mean_packet: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[serde(default)]
    pub ecn: bool,
}

const MOST_LEVELS: u32 = 16;
const MOST_BINS: u32 = 1 << 16;

fn default_levels() -> u32 {
    2
}

fn default_bins() -> u32 {
    23
}

fn default_d1() -> f64 {
    0.005
}

fn default_d2() -> f64 {
    0.001
}

fn default_freeze() -> Time {
    Time::from_millis(100)
}

fn default_rehash() -> Time {
    Time::from_secs(20)
}

fn default_penalty_burst() -> Bytes {
    Bytes(3000)
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Stochastic Fair BLUE",
        paper: "W. Feng, D. Kandlur, D. Saha, K. Shin, Stochastic Fair Blue: A Queue Management \
                Algorithm for Enforcing Fairness, IEEE INFOCOM 2001; figure 2.11 of L. Le, \
                dissertation, 2005",
        purpose: "Finds flows that do not answer to signals with a few counters: BLUE in bins \
                  into which flows hash at several levels; a flow is punished only if all of \
                  its bins are.",
        departures: &[
            "A packet is dropped if all bins of its flow are full (Linux). The figure drops \
             where any is, which punishes whoever shares one bin with an offender; \
             `drop_any_bin` follows it.",
            "A bin is full from `bin_size` packets on (the figure: above).",
            "A departure lowers a bin's probability by `d2` where it leaves it empty, an arrival \
             where it finds it empty. The figure has one step for both directions.",
            "While one set of bins decides, the next, with other hash functions, counts the \
             packets too; its probabilities move for flows that are being punished. A packet \
             lowers the bins that it raised, whatever became of the hash functions since.",
            "d1, d2 and freeze are those of Apple's XNU, as is the order of `rehash` (10 to 29 \
             s): probability 1 takes 200 steps. The paper's 2 s suit a shorter freeze.",
            "Flows in the penalty box share one token bucket; 3000 bytes of it are ours.",
        ],
        memory: "2 L N bins of 24 bytes, and 16 bytes per packet that waits",
    };

    fn check(&self) -> Result<(), Problem> {
        check::limit(self.limit)?;
        check::mean_packet(self.mean_packet)?;
        check::count("levels", self.levels, 1, MOST_LEVELS)?;
        check::count("bins", self.bins, 1, MOST_BINS)?;
        check::count("bin_size", self.bin_size.unwrap_or(1), 1, u32::MAX)?;
        check::in_unit_interval("d1", self.d1)?;
        check::in_unit_interval("d2", self.d2)?;
        check::ascending(("d2", self.d2), ("d1", self.d1))?;
        if self.rehash > Time::ZERO {
            check::interval("rehash", self.rehash)?;
        }
        Ok(())
    }
}

impl LawParameters for Params {
    type Law = Sfb;

    fn law(&self, link: LinkFacts, seed: u64) -> Sfb {
        Sfb::new(self, link, seed)
    }

    fn limit(&self) -> QueueSize {
        self.limit
    }

    fn ecn(&self) -> bool {
        self.ecn
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

/// The law of SFB.
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
    /// The packets that wait: their flows, and the generation that let them in.
    waiting: VecDeque<(FlowKey, u64)>,
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
    /// Bins per level.
    width: usize,
    seed: u64,
}

impl Bins {
    fn new(params: &Params, seed: u64) -> Self {
        let width = params.bins as usize;
        Self {
            bins: vec![Bin::default(); width * params.levels as usize],
            width,
            seed,
        }
    }

    /// Shows the flow's bin at every level. Half a hash picks a bin: one hash does for two levels.
    #[inline]
    fn for_each(&mut self, flow: FlowKey, mut visit: impl FnMut(&mut Bin)) {
        let mut hash = 0;
        for (level, bins) in self.bins.chunks_exact_mut(self.width).enumerate() {
            hash = if level % 2 == 0 {
                flow.hash(self.seed.wrapping_add(level as u64))
            } else {
                hash >> 32
            };
            let index = ((hash & 0xffff_ffff) * bins.len() as u64) >> 32;
            visit(&mut bins[index as usize]);
        }
    }
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
                freeze: params.freeze,
            },
            seed,
            current: Bins::new(params, generation_seed(seed, 0)),
            next: rehashes.then(|| Bins::new(params, generation_seed(seed, 1))),
            generation: 0,
            next_rehash: if rehashes { params.rehash } else { Time::NEVER },
            waiting: VecDeque::new(),
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

impl Law for Sfb {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Verdict {
        let steps = self.steps;
        let (mut p_min, mut emptiest, mut fullest) = (1.0_f64, u32::MAX, 0);
        self.current.for_each(packet.flow, |bin| {
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
            next.for_each(packet.flow, |bin| bin.arrive(now, steps));
        }
        if full {
            Verdict::Drop(Reason::Bin)
        } else if p_min >= 1.0 {
            if self.penalty.admits(now, packet.size) {
                Verdict::Admit
            } else {
                Verdict::Drop(Reason::Penalty)
            }
        } else if happens(p_min, draw) {
            Verdict::Signal(Reason::Early)
        } else {
            Verdict::Admit
        }
    }

    #[inline]
    fn on_fate(&mut self, _now: Time, packet: &Packet, _queue: Backlog, fate: Fate) {
        if let Fate::Drop(_) = fate {
            return;
        }
        self.waiting.push_back((packet.flow, self.generation));
        self.current.for_each(packet.flow, |bin| bin.qlen += 1);
        if let Some(next) = &mut self.next {
            next.for_each(packet.flow, |bin| bin.qlen += 1);
        }
    }

    #[inline]
    fn on_departure(&mut self, now: Time, _packet: &Packet, _arrived: Time, _queue: Backlog) {
        let departed = self.waiting.pop_front();
        let (flow, generation) = departed.expect("what leaves was let in");
        let steps = self.steps;
        // It raised the bins that decided then and those that were to decide next.
        if self.generation - generation <= 1 {
            self.current.for_each(flow, |bin| bin.depart(now, steps));
        }
        if let Some(next) = &mut self.next
            && generation == self.generation
        {
            next.for_each(flow, |bin| bin.depart(now, steps));
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
mod tests {
    use aqmlab_net::Ecn;
    use proptest::prelude::*;

    use super::*;
    use crate::worked::{self, Row};

    /// The parameters of the example.
    fn params() -> Params {
        Params {
            levels: 2,
            bins: 3,
            bin_size: Some(2),
            limit: QueueSize::Packets(50.0),
            d1: 0.25,
            d2: 0.05,
            freeze: Time::ZERO,
            rehash: Time::ZERO,
            penalty_rate: None,
            penalty_burst: Bytes(3000),
            drop_any_bin: false,
            mean_packet: Bytes(500),
            ecn: true,
        }
    }

    fn law(params: &Params) -> Sfb {
        Sfb::new(params, worked::link(1000, 500), 1)
    }

    /// A flow with these bins, level by level.
    fn flow_in(law: &Sfb, bins: &[usize]) -> FlowKey {
        let hashes_there = |flow: &FlowKey| {
            let mut empty = law.current.clone();
            empty.bins.fill(Bin::default());
            empty.for_each(*flow, |bin| bin.qlen = 1);
            let levels = empty.bins.chunks(empty.width);
            let places = levels.map(|level| level.iter().position(|bin| bin.qlen == 1).unwrap());
            places.eq(bins.iter().copied())
        };
        (1..).map(FlowKey).find(hashes_there).unwrap()
    }

    fn compare_bins(law: &Sfb, row: &Row) {
        let columns = row.text("bins").split(['/', '|']);
        assert_eq!(columns.clone().count(), law.current.bins.len());
        for (index, (bin, column)) in law.current.bins.iter().zip(columns).enumerate() {
            let what = format!("row {}, bin {index}", row.step());
            let (qlen, p_m) = column.split_once(':').unwrap();
            assert_eq!(bin.qlen.to_string(), qlen, "{what}");
            worked::assert_close(bin.p_m, p_m.parse().unwrap(), &what);
        }
    }

    #[test]
    fn sfb() {
        let mut law = law(&params());
        let flows = [[0, 1], [0, 2], [2, 1]].map(|bins| flow_in(&law, &bins));
        for row in worked::rows(include_str!("../tests/data/sfb.csv")) {
            let packet = Packet {
                flow: match row.text("flow") {
                    "a" => flows[0],
                    "b" => flows[1],
                    _ => flows[2],
                },
                ..row.packet()
            };
            worked::play_packet(&mut law, &row, &packet, true);
            if row.event() == "arrive" {
                worked::compare(&law, &row, &["p_min"]);
            }
            compare_bins(&law, &row);
        }
    }

    /// SFB with a clock; packets have 500 bytes.
    struct Played {
        law: Sfb,
        now: Time,
    }

    impl Played {
        fn new(params: &Params) -> Self {
            Self {
                law: law(params),
                now: Time::ZERO,
            }
        }

        fn arrive(&mut self, flow: FlowKey, u: f64) -> Verdict {
            let (packet, queue) = (packet(flow), Backlog::default());
            let verdict = self.law.on_arrival(self.now, &packet, queue, &mut || u);
            let fate = match verdict {
                Verdict::Admit => Fate::Enqueue,
                Verdict::Signal(reason) | Verdict::Drop(reason) => Fate::Drop(reason),
            };
            self.law.on_fate(self.now, &packet, queue, fate);
            verdict
        }

        fn depart(&mut self) {
            let queue = Backlog::default();
            self.law
                .on_departure(self.now, &packet(FlowKey(0)), self.now, queue);
        }

        fn tick(&mut self) {
            self.now = self.law.next_tick();
            self.law.on_tick(self.now, Backlog::default());
        }

        fn rows_of_bins(&self) -> Vec<u32> {
            self.law.current.bins.iter().map(|bin| bin.qlen).collect()
        }
    }

    fn packet(flow: FlowKey) -> Packet {
        Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow,
        }
    }

    #[test]
    fn a_flow_is_signalled_with_the_smallest_probability_of_its_bins() {
        let mut played = Played::new(&params());
        let flow = flow_in(&played.law, &[0, 1]);
        played.law.current.bins[0].p_m = 0.8;
        played.law.current.bins[4].p_m = 0.35;
        for bin in [0, 4] {
            played.law.current.bins[bin].qlen = 1;
        }
        assert_eq!(played.arrive(flow, 0.36), Verdict::Admit);
        for bin in [0, 4] {
            played.law.current.bins[bin].qlen = 1;
        }
        assert_eq!(played.arrive(flow, 0.34), Verdict::Signal(Reason::Early));
        assert_eq!(played.law.p_min, 0.35);
    }

    #[test]
    fn the_letter_of_the_figure_drops_where_one_bin_is_full() {
        for (drop_any_bin, expected) in
            [(false, Verdict::Admit), (true, Verdict::Drop(Reason::Bin))]
        {
            let mut played = Played::new(&Params {
                drop_any_bin,
                ..params()
            });
            let flow = flow_in(&played.law, &[0, 1]);
            played.law.current.bins[0].qlen = 2;
            assert_eq!(played.arrive(flow, 0.999), expected);
        }
    }

    #[test]
    fn the_penalty_box_lets_a_trickle_through() {
        let mut played = Played::new(&Params {
            bin_size: Some(1000),
            penalty_rate: Some(Rate::from_bps(40_000)),
            penalty_burst: Bytes(1000),
            ..params()
        });
        let flow = FlowKey(1);
        played
            .law
            .current
            .for_each(flow, |bin| (bin.p_m, bin.qlen) = (1.0, 1));
        let dropped = Verdict::Drop(Reason::Penalty);
        // 1000 bytes at once, then 5 a millisecond: a packet per 100 ms.
        let admitted: Vec<_> = (0..400)
            .filter(|ms| {
                played.now = Time::from_millis(*ms);
                let verdict = played.arrive(flow, 0.999);
                assert!(verdict == Verdict::Admit || verdict == dropped);
                verdict == Verdict::Admit
            })
            .collect();
        assert_eq!(admitted, [0, 1, 100, 200, 300]);
    }

    #[test]
    fn a_bin_moves_once_per_freeze_time() {
        let steps = Steps {
            bin_size: 2,
            d1: 0.25,
            d2: 0.05,
            freeze: Time::from_millis(100),
        };
        let mut bin = Bin {
            qlen: 2,
            ..Bin::default()
        };
        for (ms, p_m) in [(0, 0.25), (99, 0.25), (100, 0.5), (250, 0.75), (349, 0.75)] {
            bin.arrive(Time::from_millis(ms), steps);
            assert_eq!(bin.p_m, p_m, "at {ms} ms");
        }
        // Down under the same clock: at 349 ms nothing, at 350 ms a step.
        bin.qlen = 1;
        bin.depart(Time::from_millis(349), steps);
        assert_eq!(bin.p_m, 0.75);
        bin.arrive(Time::from_millis(350), steps);
        worked::assert_close(bin.p_m, 0.7, "after a step down");
        // Between empty and full nothing moves.
        bin.qlen = 1;
        bin.arrive(Time::from_millis(900), steps);
        worked::assert_close(bin.p_m, 0.7, "between empty and full");
    }

    #[test]
    fn new_hash_functions_keep_what_they_learned_of_punished_flows() {
        let mut played = Played::new(&Params {
            rehash: Time::from_secs(2),
            ..params()
        });
        let flow = FlowKey(1);
        // Two are let in and fill all bins, four are dropped: four steps in both sets of bins.
        for _ in 0..6 {
            played.arrive(flow, 0.999);
        }
        assert_eq!(played.law.next_tick(), Time::from_secs(2));
        let before = played.law.current.seed;
        played.tick();
        assert_ne!(played.law.current.seed, before);
        assert_eq!(played.law.next_tick(), Time::from_secs(4));
        assert_eq!(played.arrive(flow, 0.999), Verdict::Drop(Reason::Bin));
        assert_eq!(played.law.p_min, 1.0);
        // The set after it has seen one more drop than packets, and no packet.
        let next = played.law.next.as_ref().unwrap();
        assert!(next.bins.iter().all(|bin| bin.qlen == 0));
    }

    #[test]
    fn a_packet_lowers_the_bins_that_it_raised() {
        let mut played = Played::new(&Params {
            rehash: Time::from_secs(2),
            bin_size: Some(100),
            ..params()
        });
        let sum = |played: &Played| played.rows_of_bins().iter().sum::<u32>();
        for flow in 0..5 {
            played.arrive(FlowKey(flow), 0.999);
        }
        played.tick();
        assert_eq!(sum(&played), 10, "the next bins had counted all five");
        played.depart();
        assert_eq!(sum(&played), 8);
        played.arrive(FlowKey(9), 0.999);
        played.tick();
        // Bins that never saw the first five: they leave without a trace.
        assert_eq!(sum(&played), 2);
        for _ in 0..4 {
            played.depart();
        }
        assert_eq!(sum(&played), 2);
        played.depart();
        assert_eq!(sum(&played), 0);
    }

    #[test]
    fn levels_hash_apart() {
        // 23 bins at 4 levels: 2000 flows spread evenly at each, and pairs that share a bin at one
        // level share it at another as often as strangers do, one in 23.
        let wide = Params {
            levels: 4,
            bins: 23,
            ..params()
        };
        let mut bins = law(&wide).current;
        let places: Vec<Vec<usize>> = (0..2000)
            .map(|flow| {
                bins.bins.fill(Bin::default());
                bins.for_each(FlowKey(flow), |bin| bin.qlen = 1);
                let levels = bins.bins.chunks(23);
                levels
                    .map(|level| level.iter().position(|bin| bin.qlen == 1).unwrap())
                    .collect()
            })
            .collect();
        for level in 0..4 {
            let in_bin = |bin| places.iter().filter(|place| place[level] == bin).count();
            // Five standard deviations of 2000 throws into 23 bins: 87 +- 46.
            assert!((0..23).all(|bin| in_bin(bin).abs_diff(87) < 46));
            for other in 0..level {
                let same = places
                    .iter()
                    .filter(|place| place[level] == place[other])
                    .count();
                assert!(same.abs_diff(87) < 46, "levels {level} and {other}: {same}");
            }
        }
    }

    #[test]
    fn bin_size_and_penalty_rate_follow_buffer_and_link_unless_they_are_set() {
        let by_rule = Params {
            bin_size: None,
            bins: 23,
            limit: QueueSize::Packets(200.0),
            ..params()
        };
        assert_eq!(by_rule.bin_size(), 13);
        let tiny = Params {
            limit: QueueSize::Packets(1.0),
            ..by_rule
        };
        assert_eq!(tiny.bin_size(), 1);
        // 45 Mbit/s let 0.16 Mbit/s, 20000 bytes a second, pass.
        let mut law = law(&by_rule);
        law.set_link(worked::link(11_250, 500));
        worked::assert_close(law.penalty.bytes_per_second, 20_000.0, "penalty rate");
    }

    proptest! {
        #[test]
        fn every_level_counts_all_packets_that_wait(
            events in prop::collection::vec((0_u64..30, any::<bool>(), 0.0..1.0_f64), 0..300),
        ) {
            let mut played = Played::new(&Params { bin_size: Some(4), ..params() });
            let mut waiting = 0;
            for (flow, leave, u) in events {
                played.now += Time::from_millis(1);
                if !leave {
                    waiting += u32::from(played.arrive(FlowKey(flow), u) == Verdict::Admit);
                } else if waiting > 0 {
                    waiting -= 1;
                    played.depart();
                }
                for level in played.rows_of_bins().chunks(3) {
                    prop_assert_eq!(level.iter().sum::<u32>(), waiting);
                }
                for bin in &played.law.current.bins {
                    prop_assert!((0.0..=1.0).contains(&bin.p_m));
                }
            }
        }
    }
}
