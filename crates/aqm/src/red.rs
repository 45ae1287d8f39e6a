//! RED: S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993, figure 2; and its gentle variant: S. Floyd,
//! "Recommendation on using the gentle variant of RED", 2000. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::about::{About, Parameters};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::law::{Fate, Law, LawParameters, Verdict, happens};
use crate::link::{Backlog, LinkFacts};

/// Parameters of RED.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Average queue below which nothing is signalled.
    pub min_th: QueueSize,
    /// Average queue from which every arrival is signalled (or the gentle slope begins).
    pub max_th: QueueSize,
    /// Buffer size; an arrival that would exceed it is dropped.
    pub limit: QueueSize,
    /// Weight of the newest sample in the average queue length.
    #[serde(default = "default_w_q")]
    pub w_q: f64,
    /// Signal probability as the average reaches `max_th`.
    #[serde(default = "default_max_p")]
    pub max_p: f64,
    /// Whether the probability rises from `max_p` to 1 between `max_th` and twice `max_th`
    /// (Floyd 2000) instead of jumping.
    #[serde(default)]
    pub gentle: bool,
    /// How signals are spaced.
    #[serde(default)]
    pub gap: Gap,
    /// What the queue is measured in.
    #[serde(default)]
    pub unit: Unit,
    /// Whether the probability is multiplied by packet size over `mean_packet`.
    #[serde(default)]
    pub scale_by_size: bool,
    /// Mean packet size: converts packets to bytes and sets how fast an idle queue ages.
    #[serde(default = "default_mean_packet")]
    pub mean_packet: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[serde(default)]
    pub ecn: bool,
}

/// How RED spaces its signals, given the basic probability p_b and the packets since the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// Floyd and Jacobson 1993: p_b / (1 - count p_b); gaps uniform on 1..1/p_b.
    #[default]
    Uniform,
    /// ns-2 since 2001: no signal while count p_b < 1; gaps uniform on 1/p_b..2/p_b.
    Wait,
    /// ALTQ on FreeBSD: p_b / (2 - count p_b) throughout.
    Altq,
    /// No spacing: p_b, independent of the past.
    None,
}

/// What a queue is measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Packets.
    #[default]
    Packets,
    /// IP bytes.
    Bytes,
}

fn default_w_q() -> f64 {
    0.002
}

fn default_max_p() -> f64 {
    0.1
}

fn default_mean_packet() -> Bytes {
    Bytes(500)
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Random Early Detection",
        paper: "S. Floyd, V. Jacobson, Random Early Detection Gateways for Congestion Avoidance, \
                IEEE/ACM Transactions on Networking 1(4), 1993, figure 2; gentle: S. Floyd, \
                Recommendation on using the gentle variant of RED, 2000",
        purpose: "Keeps the average queue short, lets bursts pass, and spreads its signals evenly \
                  over arrivals.",
        departures: &[
            "Fewer than two packets waiting: always admit. Without this guard a stale \
             high average drops packets into an empty queue; ns-2 and ALTQ have it too.",
            "An average at or above `max_th` (gentle: twice `max_th`) drops even what ECN \
             would let it mark, as RFC 3168 and every later implementation do; the paper \
             marks. In the gentle region signals are drops for the same reason.",
            "The spacing of signals is a choice, `gap`; the paper's is the default.",
            "Idle time ages the average by m = C (time since idle) packets, with m a real \
             number, C = link rate / (8 `mean_packet`), and no further sample at the \
             arrival that ends it. The paper leaves the rounding open; implementations \
             differ.",
            "The queue is idle when the wire falls quiet, not when the last packet is \
             handed to it.",
            "The size factor is applied before the spacing rule, as in the paper (ns-2: \
             after it).",
        ],
        memory: "a few numbers",
    };

    fn check(&self) -> Result<(), Problem> {
        check::limit(self.limit)?;
        check::in_unit_interval("w_q", self.w_q)?;
        check::in_unit_interval("max_p", self.max_p)?;
        if self.mean_packet.0 == 0 {
            return check::problem(
                "mean_packet",
                format!("found {}; a packet has bytes", self.mean_packet),
            );
        }
        let [min_th, max_th, limit] =
            [self.min_th, self.max_th, self.limit].map(|size| self.in_unit(size));
        if max_th <= min_th {
            return check::problem(
                "max_th",
                format!(
                    "found {}; it must exceed min_th, {}",
                    self.max_th, self.min_th
                ),
            );
        }
        if limit <= min_th {
            return check::problem(
                "limit",
                format!(
                    "found {}, which the average cannot exceed, so nothing would ever be \
                     signalled; it must exceed min_th, {}",
                    self.limit, self.min_th
                ),
            );
        }
        if self.gentle && limit <= 2.0 * max_th {
            return check::problem(
                "limit",
                format!(
                    "found {}; with gentle = true it must exceed twice max_th, {}",
                    self.limit, self.max_th
                ),
            );
        }
        Ok(())
    }
}

impl LawParameters for Params {
    type Law = Red;

    fn law(&self, link: LinkFacts, _seed: u64) -> Red {
        Red::new(self, link)
    }

    fn limit(&self) -> QueueSize {
        self.limit
    }

    fn ecn(&self) -> bool {
        self.ecn
    }
}

impl Params {
    /// A threshold in the unit in which the queue is measured.
    fn in_unit(&self, size: QueueSize) -> f64 {
        let mean = self.mean_packet.0 as f64;
        match (self.unit, size) {
            (Unit::Packets, QueueSize::Packets(packets)) => packets,
            (Unit::Packets, QueueSize::Bytes(bytes)) => bytes as f64 / mean,
            (Unit::Bytes, QueueSize::Packets(packets)) => packets * mean,
            (Unit::Bytes, QueueSize::Bytes(bytes)) => bytes as f64,
        }
    }
}

impl Gap {
    /// The probability p_a of signalling now, given the basic probability `p_b` and the `count`
    /// of packets since the last signal.
    #[inline]
    pub fn signal_probability(self, p_b: f64, count: i64) -> f64 {
        let expected = count as f64 * p_b;
        let p_a = match self {
            Self::None => p_b,
            Self::Wait if expected < 1.0 => 0.0,
            Self::Uniform if expected < 1.0 => p_b / (1.0 - expected),
            Self::Wait | Self::Altq if expected < 2.0 => p_b / (2.0 - expected),
            _ => 1.0,
        };
        p_a.min(1.0)
    }
}

/// Fewer packets waiting than these are never signalled.
const GUARD_PACKETS: u32 = 2;

/// The law of RED.
#[derive(Clone, Debug)]
pub struct Red {
    settings: Settings,
    state: State,
}

/// The parameters in the units of the arithmetic: lengths in packets or bytes, as `unit` says.
#[derive(Clone, Debug)]
struct Settings {
    min_th: f64,
    max_th: f64,
    /// Average from which every arrival is dropped.
    forced_th: f64,
    max_p: f64,
    w_q: f64,
    gap: Gap,
    unit: Unit,
    /// Mean packet size, if the probability is scaled by size.
    scale_mean: Option<f64>,
    mean: f64,
    /// C: mean-sized packets per second.
    packets_per_second: f64,
}

/// What RED remembers, in the paper's words.
#[derive(Clone, Debug)]
struct State {
    /// Average queue length.
    avg: f64,
    /// Packets since the last signal; -1: the average is below `min_th`.
    count: i64,
    /// Start of the idle time (the paper's q_time), while idle.
    idle_since: Option<Time>,
    /// Basic probability at the last arrival.
    p_b: f64,
    /// Probability used at the last arrival.
    p_a: f64,
}

impl Red {
    /// RED with an empty queue that has been idle since time 0.
    pub fn new(params: &Params, link: LinkFacts) -> Self {
        let mean = params.mean_packet.0 as f64;
        let max_th = params.in_unit(params.max_th);
        Self {
            settings: Settings {
                min_th: params.in_unit(params.min_th),
                max_th,
                forced_th: if params.gentle { 2.0 * max_th } else { max_th },
                max_p: params.max_p,
                w_q: params.w_q,
                gap: params.gap,
                unit: params.unit,
                scale_mean: params.scale_by_size.then_some(mean),
                mean,
                packets_per_second: link.rate.bps() as f64 / (8.0 * mean),
            },
            state: State {
                avg: 0.0,
                count: -1,
                idle_since: Some(Time::ZERO),
                p_b: 0.0,
                p_a: 0.0,
            },
        }
    }

    /// The average takes a sample of the queue, or ages by the idle time that this arrival ends.
    #[inline]
    fn update_average(&mut self, now: Time, queue: Backlog) {
        let keep = 1.0 - self.settings.w_q;
        if let Some(since) = self.state.idle_since.take() {
            let idle = now.saturating_sub(since).as_secs_f64();
            self.state.avg *= libm::pow(keep, idle * self.settings.packets_per_second);
        } else {
            let length = match self.settings.unit {
                Unit::Packets => f64::from(queue.packets),
                Unit::Bytes => queue.bytes as f64,
            };
            self.state.avg = keep * self.state.avg + self.settings.w_q * length;
        }
    }

    /// p_b: linear from 0 at `min_th` to `max_p` at `max_th`, then (gentle) to 1 at twice that.
    #[inline]
    fn basic_probability(&self, size: u32) -> f64 {
        let Settings {
            min_th,
            max_th,
            max_p,
            scale_mean,
            ..
        } = self.settings;
        let avg = self.state.avg;
        let p_b = if avg < max_th {
            max_p * (avg - min_th) / (max_th - min_th)
        } else {
            max_p + (1.0 - max_p) * (avg - max_th) / max_th
        };
        match scale_mean {
            Some(mean) => (p_b * f64::from(size) / mean).min(1.0),
            None => p_b,
        }
    }
}

impl Law for Red {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Verdict {
        self.update_average(now, queue);
        if self.state.avg < self.settings.min_th || queue.packets < GUARD_PACKETS {
            self.state.count = -1;
            (self.state.p_b, self.state.p_a) = (0.0, 0.0);
            return Verdict::Admit;
        }
        if self.state.avg >= self.settings.forced_th {
            self.state.count = 0;
            (self.state.p_b, self.state.p_a) = (1.0, 1.0);
            return Verdict::Drop(Reason::Forced);
        }
        self.state.count += 1;
        self.state.p_b = self.basic_probability(packet.size);
        self.state.p_a = self
            .settings
            .gap
            .signal_probability(self.state.p_b, self.state.count);
        if !happens(self.state.p_a, draw) {
            return Verdict::Admit;
        }
        self.state.count = 0;
        if self.state.avg < self.settings.max_th {
            Verdict::Signal(Reason::Early)
        } else {
            Verdict::Drop(Reason::Early)
        }
    }

    #[inline]
    fn on_fate(&mut self, _now: Time, _packet: &Packet, _queue: Backlog, fate: Fate) {
        if fate == Fate::Drop(Reason::Overflow) {
            self.state.count = 0;
        }
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.state.idle_since.get_or_insert(since);
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.settings.packets_per_second = link.rate.bps() as f64 / (8.0 * self.settings.mean);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["avg", "count", "p_b", "p_a"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let State {
            avg,
            count,
            p_b,
            p_a,
            ..
        } = self.state;
        out.extend([avg, count as f64, p_b, p_a]);
    }
}
