//! Queue disciplines: who is dropped, who is marked.
//!
//! An AQM ([`Aqm`]) decides the outcome of one arriving packet over a single FIFO; a [`FifoQueue`]
//! is the door of that FIFO: it asks the AQM, turns its signal into a mark or a drop, enforces
//! the limit and counts. A [`Scheduler`] owns its packets, because it decides when it hands them
//! out or keeps more than one queue. A [`Queue`] is any discipline with its packets.
//!
//! Nothing here reads a clock or draws random numbers by itself. Each discipline is one file; to
//! add one takes a line in the list below.

// The worked examples are read by the same code in unit tests and from outside.
#[cfg(test)]
extern crate self as aqmlab_aqm;

mod aqm;
#[cfg(feature = "shapers")]
mod bucket;
mod bypass;
mod check;
mod context;
mod counters;
mod fifo_queue;
mod flow_map;
mod flow_queues;
mod fq;
#[cfg(feature = "shapers")]
mod leaf;
mod link;
mod native;
mod parts;
mod presets;
mod queue;
mod registry;
#[cfg(test)]
mod worked;

use aqmlab_net::{Packet, QueueSize, Rate, Time};

pub use aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome};
pub use bypass::Room;
pub use context::{Ack, Context, Details, Known};
pub use counters::{Counters, Reason};
pub use fifo_queue::FifoQueue;
pub use link::{Backlog, LinkFacts};
pub use parts::{Held, Holder, NodePart, Parts, SubscriberPart, Tally};
pub use presets::Preset;
use queue::StoredFifo;
pub use queue::{Queue, Queued, Scheduler, SchedulerParameters, Stats};

pub mod afd;
pub mod ared;
pub mod ared_feng;
pub mod avq;
pub mod bernoulli;
pub mod blue;
pub mod cake;
#[cfg(feature = "shapers")]
pub mod cake_mq;
pub mod choke;
pub mod cobalt;
pub mod codel;
pub mod dcn;
pub mod droptail;
pub mod drr;
pub mod dualpi2;
pub mod fq_codel;
pub mod fq_pie;
pub mod fred;
#[cfg(feature = "shapers")]
pub mod htb;
pub mod l4s_marking;
pub mod lqd;
pub mod pi;
pub mod pie;
pub mod plugin;
#[cfg(feature = "shapers")]
pub mod policer;
pub mod red;
pub mod red_pd;
pub mod rem;
pub mod rio;
pub mod rio_ps;
pub mod sfb;
pub mod sfq;
#[cfg(feature = "shapers")]
pub mod shaper;
pub mod sred;
pub mod step;

registry::disciplines! {
    aqms {
        /// Admits packets until the buffer is full.
        Droptail(droptail),
        /// Random early detection: signals more often the longer the average queue is.
        Red(red),
        /// Marks every arrival that finds the queue above a threshold.
        Step(step),
        /// Adaptive RED after Feng et al. 1999: max_p is multiplied and divided.
        AredFeng(ared_feng),
        /// Adaptive RED after Floyd et al. 2001; byte mode and "new gentle" of Le 2005.
        Ared(ared),
        /// Proportional-integral controller of the queue length.
        Pi(pi),
        /// Random exponential marking: signals by a price that follows queue and rate.
        Rem(rem),
        /// Adaptive virtual queue: signals before the link is full.
        Avq(avq),
        /// Stabilized RED: estimates the number of flows from a list of recent packets.
        Sred(sred),
        /// Signals more often after an overflow and less often when idle.
        Blue(blue),
        /// Loss and queueing delay controller: weighs queue length against loss rate.
        Lqd(lqd),
        /// Proportional integral controller enhanced: controls the queueing delay.
        Pie(pie),
        /// Differential congestion notification: signals only to large and fast flows.
        Dcn(dcn),
        /// Approximate fair dropping: limits every flow to a fair share.
        Afd(afd),
        /// RED with In and Out: protects packets within their sender's profile.
        Rio(rio),
        /// RIO with preference for short flows: protects the first packets of a flow.
        RioPs(rio_ps),
        /// Flow random early drop: RED that counts the waiting packets of each flow.
        Fred(fred),
        /// Stochastic fair BLUE: finds unresponsive flows with a few counters.
        Sfb(sfb),
        /// RED with preferential dropping: filters the fastest flows before RED.
        RedPd(red_pd),
        /// Drops or marks every arrival with the same probability.
        Bernoulli(bernoulli),
        /// Drops packets for which a token bucket has too few tokens.
        #[cfg(feature = "shapers")]
        Policer(policer),
    }
    schedulers {
        /// Shaper, traffic classes, host and flow fairness, with COBALT for each flow.
        Cake(cake),
        /// RED that drops an arrival and a waiting packet if both are of one flow.
        Choke(choke),
        /// CoDel with a memory that decays, and BLUE against unresponsive flows.
        Cobalt(cobalt),
        /// Controlled delay: keeps the standing queueing delay below a target.
        Codel(codel),
        /// Deficit round robin: flows take turns and share the link in bytes.
        Drr(drr),
        /// Two queues under one controller, one of them for L4S.
        Dualpi2(dualpi2),
        /// CoDel for each flow; flows take turns.
        FqCodel(fq_codel),
        /// PIE for each flow; flows take turns.
        FqPie(fq_pie),
        /// Marks by the delay of the queue, at a step or along a ramp.
        L4sMarking(l4s_marking),
        /// Stochastic fairness queueing: flows take turns, hashed to buckets.
        Sfq(sfq),
        /// Token bucket over any discipline.
        #[cfg(feature = "shapers")]
        Shaper(shaper),
        /// Tree of rates with a queue for each subscriber.
        #[cfg(feature = "shapers")]
        Htb(htb),
        /// CAKE over several queues of a device, which share one rate.
        #[cfg(feature = "shapers")]
        CakeMq(cake_mq),
    }
    either {
        /// A discipline of your own: a plug-in.
        Plugin(plugin),
    }
}

impl Discipline {
    /// The client hosts of a plan of a tree of rates: the first and their number.
    #[cfg_attr(
        not(feature = "shapers"),
        expect(unused_variables, reason = "there are no trees")
    )]
    pub fn plan(&self, name: &str) -> Option<(u32, u32)> {
        match self {
            #[cfg(feature = "shapers")]
            Self::Htb(tree) => tree.plan(name),
            _ => None,
        }
    }

    /// What may be said of a tree of rates and hardly anybody wants, before a link and with packets of
    /// at most so many IP bytes: fields and messages.
    #[cfg_attr(
        not(feature = "shapers"),
        expect(unused_variables, reason = "there are no trees")
    )]
    pub fn notes(&self, link: Rate, packet: u32) -> Vec<(String, String)> {
        match self {
            #[cfg(feature = "shapers")]
            Self::Htb(tree) => tree.notes(link, packet),
            _ => Vec::new(),
        }
    }

    /// What can change during a run: parameters, and rates within them.
    pub fn changing(&self) -> Vec<String> {
        let parameters = self.changeable().into_iter().map(str::to_owned);
        let within = match self {
            #[cfg(feature = "shapers")]
            Self::Htb(tree) => tree.rates(),
            #[cfg(feature = "shapers")]
            Self::CakeMq(queues) => queues.within(),
            _ => Vec::new(),
        };
        parameters.chain(within).collect()
    }
}
