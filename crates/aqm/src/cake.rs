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
    /// The rate to which CAKE shapes, in bytes as `link_layer` charges them. Not given: whatever
    /// the link takes.
    #[param(least = "64 kbit/s")]
    pub bandwidth: Option<Rate>,
    /// A typical long round trip: COBALT's interval.
    #[param(default = "100 ms", above = Time::ZERO, changeable)]
    pub rtt: Time,
    /// Acceptable standing queueing delay of a flow. Not given: a twentieth of `rtt`.
    #[param(above = Time::ZERO, changeable)]
    pub target: Option<Time>,
    /// Classes of traffic, by code point.
    #[param(default)]
    pub tins: Tins,
    /// Among whom the link is shared.
    #[param(default)]
    pub isolation: Isolation,
    /// The link behind the shaper: sets `overhead`, `mpu` and `cells`, each of which may be given
    /// instead.
    #[param(default)]
    pub link_layer: LinkLayer,
    /// Bytes that a packet is charged beside its IP bytes; may be negative.
    #[param(least = -64, most = 256, changeable)]
    pub overhead: Option<i32>,
    /// Bytes that a packet is charged at least, overhead included.
    #[param(most = 256, changeable)]
    pub mpu: Option<u32>,
    /// How the link cuts packets up.
    pub cells: Option<Cells>,
    /// Whether ACKs that later ones cover are dropped.
    #[param(default)]
    pub ack_filter: AckFilter,
    /// Buffer size in IP bytes; when an arrival exceeds it, the longest queue loses its head. Not
    /// given: four times `bandwidth` times `rtt` and at least 4 MiB, but at most 10240 `mtu`; without
    /// `bandwidth` the latter.
    #[param(least = Bytes(1), changeable)]
    pub memory: Option<Bytes>,
    /// Whether the shaper counts what was dropped: the bottleneck lies in front of it.
    #[param(default, changeable)]
    pub ingress: bool,
    /// Queues of each tin, a multiple of 8.
    #[param(default = 1024, least = 8, most = 65_536)]
    pub flows: u32,
    /// The largest packet, as charged for quanta and delays.
    #[param(default = "1514 bytes", check = check::packet_size, changeable)]
    pub mtu: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[param(default = true, changeable)]
    pub ecn: bool,
    /// How COBALT divides its interval by the square root of the count.
    #[param(default)]
    pub root: Root,
}

/// Among whom the link is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nobody: one queue.
    Flowblind,
    /// Sending hosts.
    Srchost,
    /// Receiving hosts.
    Dsthost,
    /// Pairs of hosts.
    Hosts,
    /// Flows.
    Flows,
    /// Flows, and sending hosts before them.
    DualSrchost,
    /// Flows, and receiving hosts before them.
    DualDsthost,
    /// Flows, and hosts at both ends before them.
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
    meaning: "a later ACK of the flow said all that this one did",
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
        purpose: "The home gateway in one: shapes to the rate of the link behind it, shares it among \
                  hosts, flows and classes of traffic, and keeps the delay of each flow short by \
                  COBALT.",
        departures: &[
            "Linux's sch_cake without NAT lookup, marks by the firewall, washing of code points and \
             the estimate of the incoming rate. Packets are never split.",
            "What a host with many flows may send in a turn is an exact share, not one rounded up \
             and down by chance.",
            "Memory counts IP bytes, not a kernel's bookkeeping.",
            "The ACK filter keeps an ACK whose ECN bits differ from those of the next, Accurate \
             ECN's counter included; it does not look at time stamps. Linux drops ACKs of Accurate \
             ECN by the value of the counter.",
            "The ACK filter drops an ACK with SACK blocks that the number of a later one covers; \
             Linux keeps it where the later one has no blocks. Only pure ACKs are compared; in Linux \
             ECE and CWR of any TCP packet in between count as a change.",
            "An ACK with a block below its own number reports a duplicate and stays. A duplicate \
             above that number (RFC 2883, section 4.2) is not recognized, as in Linux.",
            "Linux does otherwise: the first signal of a fresh queue may come an interval sooner, as \
             with `root = \"linux\"` (see `cobalt`).",
            "Of queues with equally many bytes the first of the first tin makes room.",
            "`ecn = false` drops what would be marked; Linux always marks.",
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
