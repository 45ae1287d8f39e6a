//! A tree of rates with a queue for each subscriber: the hierarchical token bucket, as Linux's `sch_htb`
//! keeps it. Departures: [`Parameters::ABOUT`].

mod notes;
mod plans;
mod ring;
mod scheduler;
#[cfg(test)]
mod tests;
mod tree;

use aqmlab_net::{Bytes, Rate};

use crate::check::Problem;
use crate::counters::Reason;
use crate::leaf::Leaf;
use crate::link::LinkFacts;
use crate::queue::SchedulerParameters;
use aqmlab_declare::{About, Parameters, parameters};
pub use plans::{Assured, Named, Node, Plan, Quantum};
pub use scheduler::Htb;

/// Parameters of a tree of rates.
#[parameters]
pub struct Params {
    /// Discipline of each subscriber's queue: a preset, a kind, or a table. A plan can set its own.
    pub leaf: Leaf,
    /// Bytes per turn of a leaf that borrows: a number of bytes, "linux" or "plan". "linux": a
    /// tenth of the bytes that its assured rate carries in a second, from 1000 to 200000. "plan":
    /// in proportion to its ceiling, at least 1522.
    #[param(default)]
    pub quantum: Quantum,
    /// Each node has one credit for its rate and one for its ceiling. Each credit holds at most
    /// these bytes.
    #[param(default = "1600 bytes", least = Bytes(1), changeable)]
    pub burst: Bytes,
    /// HTB adds these bytes to the IP size of each packet when it computes what the packet
    /// costs.
    #[param(default = 14, most = 256, changeable)]
    pub overhead: u32,
    /// What happens to packets of hosts without a plan. "pass": they go first and are not charged.
    /// "drop": they are dropped. The name of a plan: they share one more leaf of this plan.
    #[param(default = "pass".to_owned())]
    pub unknown: String,
    /// If true, assured rates that together exceed the rate of their parent are an error.
    #[param(default)]
    pub strict: bool,
    /// Nodes between the link and the subscribers, by name.
    #[param(default)]
    pub nodes: Named<Node>,
    /// Subscribers, by plan. aqmlab assigns the client hosts to the subscribers in order.
    #[param(default)]
    pub plans: Named<Plan>,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "A tree of rates",
        paper: "M. Devera, HTB Linux queuing discipline manual: user guide, 2002; the order and the \
                times are those of Linux's sch_htb",
        purpose: "Shapes the subscribers of an access network. Each has a queue, an assured rate \
                  and a ceiling, and borrows spare capacity.",
        departures: &[
            "Hysteresis, offload and timer latency are not modelled. Packets are never split.",
            "A node must come before its children in the file.",
            "The queue of a subscriber is created at its first packet and removed after 10 s \
             without packets.",
            "At most 1000 packets of hosts without a plan can wait.",
        ],
        memory: "about 250 bytes per node and subscriber, and the queues active in the last 10 s",
    };

    fn check_together(&self) -> Result<(), Problem> {
        self.leaf.check("leaf")?;
        plans::check(&self.network())
    }
}

impl SchedulerParameters for Params {
    type Scheduler<T> = Htb<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

    fn scheduler<T>(&self, link: LinkFacts, seed: u64) -> Htb<T> {
        Htb::new(self, link, seed)
    }
}

impl Params {
    const fn network(&self) -> plans::Network<'_> {
        plans::Network {
            nodes: &self.nodes,
            plans: &self.plans,
            burst: self.burst,
            quantum: self.quantum,
            unknown: self.unknown.as_str(),
            strict: self.strict,
        }
    }

    /// Client hosts of all plans.
    pub fn hosts(&self) -> u64 {
        let plans = self.plans.0.iter();
        plans
            .map(|(_, plan)| u64::from(plan.count) * u64::from(plan.hosts))
            .sum()
    }

    /// The client hosts of a plan: the first and their number.
    pub(crate) fn plan(&self, name: &str) -> Option<(u32, u32)> {
        let mut first = 0;
        for (plan, it) in &self.plans.0 {
            let hosts = it.count * it.hosts;
            if plan == name {
                return Some((first, hosts));
            }
            first += hosts;
        }
        None
    }

    /// What the tree may be and hardly anybody wants: fields and messages.
    pub(crate) fn notes(&self, link: Rate, packet: u32) -> Vec<Problem> {
        notes::notes(&self.network(), link, packet + self.overhead)
    }

    /// Rates of nodes and plans, which can change during a run.
    pub(crate) fn rates(&self) -> Vec<String> {
        let nodes = self.nodes.0.iter().map(|(name, _)| format!("nodes.{name}"));
        let plans = self.plans.0.iter().map(|(name, _)| format!("plans.{name}"));
        nodes
            .chain(plans)
            .flat_map(|path| ["rate", "ceil"].map(|key| format!("{path}.{key}")))
            .collect()
    }
}
