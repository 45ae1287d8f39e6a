//! CAKE: T. Hoeiland-Joergensen, D. Taht, J. Morton, "Piece of CAKE: A Comprehensive Queue Management
//! Solution for Home Gateways", IEEE LANMAN 2018; Linux's sch_cake. Departures:
//! [`Parameters::ABOUT`].

mod ack_filter;
mod flow_table;
mod link_layer;
mod scheduler;
#[cfg(test)]
mod tests;
mod tins;

use aqmlab_net::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{self, Problem};
use crate::cobalt::BLUE;
use crate::codel::Root;
use crate::counters::{Reason, ReasonText};
use crate::link::LinkFacts;
use crate::queue::SchedulerParameters;
pub use ack_filter::AckFilter;
use aqmlab_declare::{About, Declared, Parameters, parameters};
use link_layer::Charge;
pub use link_layer::{Cells, LinkLayer};
pub use scheduler::Cake;
use tins::Shape;
pub use tins::Tins;

/// Parameters of CAKE.
#[parameters]
pub struct Params {
    /// Rate to which CAKE shapes the traffic. `link_layer` sets which bytes count. Not given: no
    /// shaping.
    #[param(least = "64 kbit/s")]
    pub bandwidth: Option<Rate>,
    /// Typical long round-trip time. COBALT uses it as its interval.
    #[param(default = "100 ms", above = Time::ZERO, changeable)]
    pub rtt: Time,
    /// Acceptable standing queueing delay of a flow. Not given: `rtt` / 20.
    #[param(above = Time::ZERO, changeable)]
    pub target: Option<Time>,
    /// Traffic classes (tins) by DSCP.
    #[param(default)]
    pub tins: Tins,
    /// What shares the link fairly: flows, hosts, both, or nothing.
    #[param(default)]
    pub isolation: Isolation,
    /// Framing of the link after the shaper. It sets `overhead`, `mpu` and `cells`. These three
    /// keys replace single values.
    #[param(default)]
    pub link_layer: LinkLayer,
    /// The shaper adds these bytes to the IP size of each packet when it computes what the packet
    /// costs. May be negative.
    #[param(least = -64, most = 256, changeable)]
    pub overhead: Option<i32>,
    /// Minimum size that the shaper counts for a packet, overhead included.
    #[param(most = 256, changeable)]
    pub mpu: Option<u32>,
    /// How the link splits packets into cells.
    pub cells: Option<Cells>,
    /// Whether CAKE drops ACKs that later ACKs of the same flow make redundant.
    #[param(default)]
    pub ack_filter: AckFilter,
    /// Buffer size in IP bytes. When it is full, the longest queue drops its oldest packet. Not
    /// given: 4 x `bandwidth` x `rtt`, at least 4 MiB, at most 10240 x `mtu`. Without `bandwidth`:
    /// the maximum.
    #[param(least = Bytes(1), changeable)]
    pub memory: Option<Bytes>,
    /// If true, the shaper also charges dropped packets. Use it when the real bottleneck lies
    /// upstream.
    #[param(default, changeable)]
    pub ingress: bool,
    /// Number of queues in each tin, a multiple of 8.
    #[param(default = 1024, least = 8, most = 65_536)]
    pub flows: u32,
    /// Largest packet, used for quanta and delay limits.
    #[param(default = "1514 bytes", check = check::packet_size, changeable)]
    pub mtu: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default = true, changeable)]
    pub ecn: bool,
    /// How COBALT divides its interval by the square root of the count.
    #[param(default)]
    pub root: Root,
}

/// What shares the link fairly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing: one queue.
    Flowblind,
    /// Source hosts.
    Srchost,
    /// Destination hosts.
    Dsthost,
    /// Pairs of source and destination host.
    Hosts,
    /// Flows.
    Flows,
    /// Source hosts first, then the flows of each.
    DualSrchost,
    /// Destination hosts first, then the flows of each.
    DualDsthost,
    /// Source and destination hosts first, then the flows of each.
    #[default]
    Triple,
}

impl Isolation {
    /// Whether flows weigh less where their sender, their receiver has many.
    const fn weighs(self) -> [bool; 2] {
        match self {
            Self::DualSrchost => [true, false],
            Self::DualDsthost => [false, true],
            Self::Triple => [true, true],
            _ => [false, false],
        }
    }
}

/// A later ACK of its flow said all that this one did.
const ACK_FILTER: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN + 1,
    name: "ack_filter",
    meaning: "a later ACK of the same flow made this ACK redundant",
    marks: false,
});

impl Params {
    /// Bytes per second of the shaper; 0 without one.
    pub(crate) fn rate(&self) -> u64 {
        self.bandwidth.map_or(0, |rate| rate.bps() / 8)
    }

    fn charge(&self) -> Charge {
        let named = self.link_layer.charge();
        Charge {
            overhead: self.overhead.unwrap_or(named.overhead),
            mpu: self.mpu.unwrap_or(named.mpu),
            cells: self.cells.unwrap_or(named.cells),
        }
    }

    fn target(&self) -> Time {
        let twentieth = Time::from_nanos(self.rtt.as_nanos() / 20);
        self.target.unwrap_or(twentieth)
    }

    fn shapes(&self) -> Vec<Shape> {
        self.shapes_at(self.rate())
    }

    /// What the tins are at a rate in bytes per second.
    fn shapes_at(&self, rate: u64) -> Vec<Shape> {
        let shares = self.tins.shares(rate).into_iter();
        let shape = |share| Shape::new(share, self.mtu.0 as u32, self.target(), self.rtt);
        shares.map(shape).collect()
    }

    fn memory(&self) -> Bytes {
        const LEAST: u64 = 4 << 20;
        const MOST_PACKETS: u64 = 10_240;
        let most = MOST_PACKETS * self.mtu.0;
        let by_rate = match self.rate() {
            0 => most,
            rate => (4.0 * rate as f64 * self.rtt.as_secs_f64()) as u64,
        };
        self.memory.unwrap_or(Bytes(by_rate.max(LEAST).min(most)))
    }
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "CAKE",
        paper: "T. Hoeiland-Joergensen, D. Taht, J. Morton, Piece of CAKE: A Comprehensive Queue \
                Management Solution for Home Gateways, IEEE LANMAN 2018",
        purpose: "A home gateway in one discipline: a shaper, fair shares for hosts, flows and \
                  traffic classes, and a short delay of each flow with COBALT.",
        departures: &[
            "CAKE follows Linux's sch_cake, without NAT lookup, firewall marks, DSCP washing and \
             estimated incoming rate. It never splits packets.",
            "The ACK filter keeps ACKs with Accurate ECN counters or SACK blocks by rules of its \
             own (records/discipline-rules.md).",
            "In Linux the first signal of a new queue can come one interval earlier than here. \
             `root = \"linux\"` does the same (see `cobalt`).",
            "With `ecn = false`, CAKE drops the packets that it otherwise marks. Linux always marks them.",
        ],
        memory: "the packets that wait, and about 150 bytes per queue and tin",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::positive("target", self.target())?;
        check::shorter(("target", Some(self.target())), ("rtt", self.rtt))?;
        if !self.flows.is_multiple_of(8) {
            let message = format!("found {}; it must be a multiple of 8", self.flows);
            return check::problem("flows", message);
        }
        Ok(())
    }
}

impl SchedulerParameters for Params {
    type Scheduler<T> = Cake<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, BLUE, ACK_FILTER, Reason::OVERFLOW];

    /// A shaper that is there can have another rate.
    fn changeable(&self) -> Vec<&'static str> {
        let shaper = self.bandwidth.map(|_| "bandwidth");
        shaper
            .into_iter()
            .chain(Self::CHANGEABLE.iter().copied())
            .collect()
    }

    fn scheduler<T>(&self, _link: LinkFacts, seed: u64) -> Cake<T> {
        Cake::new(self, seed)
    }
}
