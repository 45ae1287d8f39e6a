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

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Rate, Time};
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
    /// Rate of the shaper. Default: CAKE does not shape.
    #[param(least = "64 kbit/s")]
    pub bandwidth: Option<Rate>,
    /// Round-trip time that most flows do not exceed. It is the interval of COBALT: with a larger
    /// value, COBALT signals later.
    #[param(default = "100 ms", above = Time::ZERO, changeable)]
    pub rtt: Time,
    /// Acceptable standing queueing delay of a flow. Default: `rtt` / 20.
    #[param(above = Time::ZERO, changeable)]
    pub target: Option<Time>,
    /// Traffic classes (tins). The DSCP of a packet selects its tin.
    #[param(default)]
    pub tins: Tins,
    /// Units that get fair shares of a tin: flows, hosts, or both.
    #[param(default)]
    pub isolation: Isolation,
    /// Framing of the link after the shaper. It sets the defaults of `overhead`, `mpu` and `cells`.
    #[param(default)]
    pub link_layer: LinkLayer,
    /// Bytes that the shaper adds to the IP size of each packet. A negative value reduces the size.
    /// Default: from `link_layer`.
    #[param(least = -64, most = 256, changeable)]
    pub overhead: Option<i32>,
    /// The shaper counts a packet, with its `overhead`, as at least this many bytes. Default: from
    /// `link_layer`.
    #[param(most = 256, changeable)]
    pub mpu: Option<u32>,
    /// How the link splits packets into cells. Default: from `link_layer`.
    pub cells: Option<Cells>,
    /// Whether CAKE drops waiting ACKs that a later packet of the same flow makes redundant.
    #[param(default)]
    pub ack_filter: AckFilter,
    /// Buffer size in IP bytes. If the buffer is full, CAKE drops the oldest packet of the queue
    /// with the most bytes. Default: 4 x `bandwidth` x `rtt`, but at least 4 MiB and at most
    /// 10240 x `mtu`. Without `bandwidth`, the value is 10240 x `mtu`.
    #[param(least = Bytes(1), changeable)]
    pub memory: Option<Bytes>,
    /// If true, the shaper also counts dropped packets, except ACKs that the ACK filter drops. Set
    /// `true` if packets cross the real bottleneck before CAKE.
    #[param(default, changeable)]
    pub ingress: bool,
    /// Number of queues in each tin, a multiple of 8.
    #[param(default = 1024, least = 8, most = 65_536)]
    pub flows: u32,
    /// Largest packet, and maximum quantum (bytes that a flow sends in one turn). With a shaper,
    /// each tin raises a shorter `target` to the time for 1.5 x `mtu` bytes at its share of
    /// `bandwidth`.
    #[param(default = "1514 bytes", check = check::packet_size, changeable)]
    pub mtu: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default = true, changeable)]
    pub ecn: bool,
    /// How COBALT computes the time between two drops or marks, `rtt` / sqrt(count). count is the
    /// number of recent drops and marks.
    #[param(default)]
    pub root: Root,
}

/// Units that get fair shares of a tin: flows, hosts, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// No isolation: each tin has one queue.
    Flowblind,
    /// One queue for each source host.
    Srchost,
    /// One queue for each destination host.
    Dsthost,
    /// One queue for each pair of source and destination host.
    Hosts,
    /// One queue for each flow.
    Flows,
    /// Fair shares for source hosts, and for the flows of each source host.
    DualSrchost,
    /// Fair shares for destination hosts, and for the flows of each destination host.
    DualDsthost,
    /// Fair shares for source hosts and for destination hosts, and for the flows of each host.
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
        purpose: "Manages the queue of a home gateway. CAKE can shape the traffic, divides the \
                  rate among traffic classes, and gives fair shares to hosts and flows. COBALT \
                  controls the delay of each queue.",
        departures: &[
            "CAKE follows Linux's sch_cake, without NAT lookup, firewall marks, DSCP washing, the \
             estimate of the incoming rate and the split of large packets.",
            "For ACKs with Accurate ECN counters or SACK blocks, the ACK filter differs from \
             Linux. With `ingress`, Linux's shaper also counts ACKs that the filter drops.",
            "Linux always marks ECN-capable packets: it has no `ecn = false`.",
        ],
        memory: "about 150 bytes for each queue of each tin",
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
