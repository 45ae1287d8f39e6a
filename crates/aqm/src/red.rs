//! RED: S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993, figure 2; and its gentle variant: S. Floyd,
//! "Recommendation on using the gentle variant of RED", 2000. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome, for_size, happens};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of RED.
#[parameters]
pub struct Params {
    /// Minimum threshold of the average queue length. Below it, there are no early drops and no
    /// marks.
    #[param(changeable)]
    pub min_th: QueueSize,
    /// Maximum threshold of the average queue length. At or above it, every arriving packet is
    /// dropped. With `gentle = true`, this limit is twice `max_th`.
    #[param(changeable)]
    pub max_th: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Weight of the newest sample in the average. With a larger weight, the average follows the
    /// queue faster.
    #[param(default = 0.002, above = 0.0, most = 1.0, changeable)]
    pub w_q: f64,
    /// Drop or mark probability when the average reaches `max_th`.
    #[param(default = 0.1, above = 0.0, most = 1.0, changeable)]
    pub max_p: f64,
    /// If true, the probability rises from `max_p` at `max_th` to 1 at twice `max_th` (Floyd 2000).
    #[param(default, changeable)]
    pub gentle: bool,
    /// How RED spaces its drops and marks. The base probability p_b sets the mean gap.
    #[param(default)]
    pub gap: Gap,
    /// Unit of the queue length.
    #[param(default)]
    pub unit: Unit,
    /// If true, the probability is multiplied by packet size / `mean_packet`.
    #[param(default)]
    pub scale_by_size: bool,
    /// Mean packet size. It converts thresholds between packets and bytes. While the link is idle,
    /// the average falls as if packets of this size arrived at the link rate and found an empty
    /// queue.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
}

/// How RED spaces its drops and marks, given the basic probability p_b and the packets since the
/// last one (count).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// As in Floyd and Jacobson 1993. The gap between two drops or marks is uniform between 1 and
    /// 1/p_b packets.
    #[default]
    Uniform,
    /// As in ns-2 since 2001. The gap is uniform between 1/p_b and 2/p_b packets.
    Wait,
    /// As in ALTQ on FreeBSD. The gap is uniform between 1 and 2/p_b packets.
    Altq,
    /// No spacing: the probability of each packet is p_b.
    None,
}

/// Unit of a queue length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Packets.
    #[default]
    Packets,
    /// IP bytes.
    Bytes,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Random Early Detection",
        paper: "S. Floyd, V. Jacobson, Random Early Detection Gateways for Congestion Avoidance, \
                IEEE/ACM Transactions on Networking 1(4), 1993, figure 2; gentle: S. Floyd, \
                Recommendation on using the gentle variant of RED, 2000",
        purpose: "Keeps the average queue short, admits bursts, and spreads drops and marks evenly \
                  over arrivals.",
        departures: &[
            "While fewer than two packets wait, RED admits every arriving packet, as in ns-2 and \
             ALTQ.",
            "At or above `max_th`, RED drops ECN-capable packets instead of marking them. With \
             `gentle`, RED drops them at random between `max_th` and twice `max_th`. RFC 3168 \
             (section 7) and ns-3 (without `gentle`) also drop them. The paper marks them. So does \
             Linux without its option `harddrop`.",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::thresholds(
            ("min_th", self.min_th),
            ("max_th", self.max_th),
            ("gentle", self.gentle),
            self.limit,
            self.mean_packet,
        )
    }
}

impl AqmParameters for Params {
    type Aqm = Red;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Red {
        Red::new(self, link)
    }
}

impl Params {
    /// A threshold in the unit in which the queue is measured.
    fn in_unit(&self, size: QueueSize) -> f64 {
        self.unit.threshold(size, self.mean_packet)
    }
}

impl Unit {
    /// A threshold in this unit, packets being of `mean` bytes.
    pub(crate) fn threshold(self, size: QueueSize, mean: Bytes) -> f64 {
        let mean = mean.0 as f64;
        match (self, size) {
            (Self::Packets, QueueSize::Packets(packets)) => packets,
            (Self::Packets, QueueSize::Bytes(bytes)) => bytes as f64 / mean,
            (Self::Bytes, QueueSize::Packets(packets)) => packets * mean,
            (Self::Bytes, QueueSize::Bytes(bytes)) => bytes as f64,
        }
    }

    /// The length of a queue in this unit.
    #[inline]
    pub(crate) fn length(self, queue: Backlog) -> f64 {
        match self {
            Self::Packets => f64::from(queue.packets),
            Self::Bytes => queue.bytes as f64,
        }
    }

    /// The length of a queue in packets, its bytes counted as packets of `mean` bytes.
    #[inline]
    pub(crate) fn packets(self, queue: Backlog, mean: f64) -> f64 {
        match self {
            Self::Packets => f64::from(queue.packets),
            Self::Bytes => queue.bytes as f64 / mean,
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

/// C as RED has it: packets of `mean` bytes that the link's rate amounts to per second.
pub(crate) fn packets_per_second(link: LinkFacts, mean: Bytes) -> f64 {
    link.rate.bps() as f64 / (8 * mean.0) as f64
}

/// The average queue length of RED and its kin: an exponentially weighted moving average of what
/// arrivals find, which ages while the wire is quiet.
#[derive(Clone, Debug)]
pub(crate) struct Average {
    /// The average, in the unit of the samples.
    pub(crate) avg: f64,
    /// Start of the idle time (the paper's q_time), while idle.
    idle_since: Option<Time>,
    /// Weight of the newest sample.
    pub(crate) w_q: f64,
    /// C: how many samples of 0 a second of idle time stands for.
    pub(crate) packets_per_second: f64,
}

impl Average {
    /// The average of an empty queue that has been idle since time 0.
    pub(crate) const fn new(w_q: f64, packets_per_second: f64) -> Self {
        Self {
            avg: 0.0,
            idle_since: Some(Time::ZERO),
            w_q,
            packets_per_second,
        }
    }

    /// Takes a sample of the queue, `q`, or ages by the idle time that this arrival ends.
    #[inline]
    pub(crate) fn sample(&mut self, now: Time, q: f64) {
        if !self.end_idle(now) {
            self.avg = (1.0 - self.w_q) * self.avg + self.w_q * q;
        }
    }

    /// Ages by the idle time, which ends now; whether there was any.
    #[inline]
    pub(crate) fn end_idle(&mut self, now: Time) -> bool {
        let Some(since) = self.idle_since.take() else {
            return false;
        };
        let idle = now.saturating_sub(since).as_secs_f64();
        self.avg *= libm::pow(1.0 - self.w_q, idle * self.packets_per_second);
        true
    }

    /// The wire has been quiet since then.
    #[inline]
    pub(crate) fn idle(&mut self, since: Time) {
        self.idle_since.get_or_insert(since);
    }
}

/// Fewer packets waiting than these are never signalled.
const GUARD_PACKETS: u32 = 2;

/// The AQM of RED.
#[derive(Clone, Debug)]
pub struct Red {
    pub(crate) settings: Settings,
    pub(crate) average: Average,
    /// Signal probability as the average reaches `max_th`: RED's constant, moved by adaptive RED.
    pub(crate) max_p: f64,
    state: State,
}

/// The parameters in the units of the arithmetic: lengths in packets or bytes, as `unit` says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) min_th: f64,
    pub(crate) max_th: f64,
    /// Average from which every arrival is dropped.
    pub(crate) forced_th: f64,
    /// Average from which signals are drops.
    pub(crate) mark_below: f64,
    /// `max_p` that the gentle slope starts from, if that is not the present one.
    pub(crate) gentle_max_p: Option<f64>,
    pub(crate) gap: Gap,
    pub(crate) unit: Unit,
    /// Mean packet size, if the probability is scaled by size.
    pub(crate) scale_mean: Option<f64>,
    pub(crate) mean_packet: Bytes,
}

/// What RED remembers beside the average, in the paper's words.
#[derive(Clone, Debug)]
struct State {
    /// Packets since the last signal; -1: the average is below `min_th`.
    count: i64,
    /// Basic probability at the last arrival.
    p_b: f64,
    /// Probability used at the last arrival.
    p_a: f64,
}

impl Settings {
    pub(crate) fn new(params: &Params) -> Self {
        let max_th = params.in_unit(params.max_th);
        Self {
            min_th: params.in_unit(params.min_th),
            max_th,
            forced_th: if params.gentle { 2.0 * max_th } else { max_th },
            mark_below: max_th,
            gentle_max_p: None,
            gap: params.gap,
            unit: params.unit,
            scale_mean: params.scale_by_size.then_some(params.mean_packet.0 as f64),
            mean_packet: params.mean_packet,
        }
    }
}

impl Red {
    /// RED with an empty queue that has been idle since time 0.
    pub fn new(params: &Params, link: LinkFacts) -> Self {
        Self {
            settings: Settings::new(params),
            average: Average::new(params.w_q, packets_per_second(link, params.mean_packet)),
            max_p: params.max_p,
            state: State {
                count: -1,
                p_b: 0.0,
                p_a: 0.0,
            },
        }
    }

    /// First half of an arrival: the average takes a sample or ages.
    #[inline]
    pub(crate) fn observe(&mut self, now: Time, queue: Backlog) {
        self.average.sample(now, self.settings.unit.length(queue));
    }

    /// Second half of an arrival: the outcome that the average has for this packet.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let avg = self.average.avg;
        if avg < self.settings.min_th || queue.packets < GUARD_PACKETS {
            self.state.count = -1;
            (self.state.p_b, self.state.p_a) = (0.0, 0.0);
            return Decision::Admit;
        }
        if avg >= self.settings.forced_th {
            self.state.count = 0;
            (self.state.p_b, self.state.p_a) = (1.0, 1.0);
            return Decision::Drop(Reason::FORCED);
        }
        self.state.count += 1;
        self.state.p_b = self.basic_probability(packet.size);
        self.state.p_a = self
            .settings
            .gap
            .signal_probability(self.state.p_b, self.state.count);
        if !happens(self.state.p_a, draw) {
            return Decision::Admit;
        }
        self.state.count = 0;
        if avg < self.settings.mark_below {
            Decision::Signal(Reason::EARLY)
        } else {
            Decision::Drop(Reason::EARLY)
        }
    }

    /// p_b: linear from 0 at `min_th` to `max_p` at `max_th`, then (gentle) to 1 at twice that.
    #[inline]
    fn basic_probability(&self, size: u32) -> f64 {
        let Settings {
            min_th,
            max_th,
            scale_mean,
            gentle_max_p,
            ..
        } = self.settings;
        let (avg, max_p) = (self.average.avg, self.max_p);
        let p_b = if avg < max_th {
            max_p * (avg - min_th) / (max_th - min_th)
        } else {
            let max_p = gentle_max_p.unwrap_or(max_p);
            max_p + (1.0 - max_p) * (avg - max_th) / max_th
        };
        for_size(p_b, size, scale_mean)
    }
}

impl Aqm for Red {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        self.observe(now, queue);
        self.decide(packet, queue, draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::OVERFLOWS
    }

    #[inline]
    fn on_outcome(&mut self, _now: Time, _packet: &Packet, _queue: Backlog, outcome: Outcome) {
        if outcome == Outcome::Drop(Reason::OVERFLOW) {
            self.state.count = 0;
        }
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.average.idle(since);
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.average.packets_per_second = packets_per_second(link, self.settings.mean_packet);
    }

    fn adopt(&mut self, fresh: Self) {
        self.settings = fresh.settings;
        self.average.w_q = fresh.average.w_q;
        self.max_p = fresh.max_p;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["avg", "count", "p_b", "p_a"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let State { count, p_b, p_a } = self.state;
        out.extend([self.average.avg, count as f64, p_b, p_a]);
    }
}
