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

/// Parameters of HTB.
#[parameters]
pub struct Params {
    /// Queue discipline of each subscriber: the name of a discipline or preset, or a table such as
    /// `{ kind = "cake", rtt = "50 ms" }`. A plan can set another discipline.
    pub leaf: Leaf,
    /// Bytes that a subscriber sends in one turn: a data size, "linux" or "plan". With "linux", a
    /// turn is the data of 0.1 s at the assured rate (1000 to 200000 bytes). With "plan", a turn is
    /// the data of 0.1 s at the plan's `ceil`, but at most 60000 bytes x `ceil` / link rate. With
    /// "plan", the minimum is 1522 bytes.
    #[param(default)]
    pub quantum: Quantum,
    /// Size of each token bucket. With a larger size, a node can send more bytes at once.
    #[param(default = "1600 bytes", least = Bytes(1), changeable)]
    pub burst: Bytes,
    /// Bytes that HTB adds to the IP size of each packet.
    #[param(default = 14, most = 256, changeable)]
    pub overhead: u32,
    /// What HTB does with packets of hosts without a plan. With "pass", these packets leave before
    /// all other packets and use no tokens. With "drop", HTB drops them. If the value is a plan's
    /// name, these hosts count as one additional subscriber of this plan.
    #[param(default = "pass".to_owned())]
    pub unknown: String,
    /// If true, aqmlab refuses a tree in which the assured rates of children add up to more than
    /// the assured rate of their parent. The check ignores nodes and plans with the default
    /// `rate = "fit"`.
    #[param(default)]
    pub strict: bool,
    /// Nodes between the link and the subscribers. Each table `nodes.NAME` describes one node or
    /// several equal nodes. Default: no nodes.
    #[param(default)]
    pub nodes: Named<Node>,
    /// Plans of the subscribers. Each table `plans.NAME` describes one plan. Default: none; at
    /// least one plan is needed.
    #[param(default)]
    pub plans: Named<Plan>,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Hierarchical Token Bucket",
        paper: "M. Devera, HTB Linux queuing discipline manual: user guide, 2002; the order and \
                the departure times of packets follow Linux's sch_htb",
        purpose: "Shapes the traffic of subscribers in an access network. Each subscriber has a \
                  queue, an assured rate and a maximum rate (ceiling), and can borrow spare \
                  capacity.",
        departures: &[
            "aqmlab does not model hysteresis, offload or timer latency. It never splits packets.",
            "HTB creates the queue of a subscriber at the first packet and removes it after 10 s \
             without packets.",
            "With `unknown = \"pass\"`, at most 1000 packets of hosts without a plan can wait.",
        ],
        memory: "about 250 bytes for each node and each subscriber, plus the queues in use",
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
