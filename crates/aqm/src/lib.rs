//! Queue disciplines: who is dropped, who is marked.
//!
//! A marking law ([`Law`]) decides the fate of one arriving packet over a single FIFO; a [`Gate`]
//! is the door of that FIFO: it asks the law, turns its signal into a mark or a drop, enforces
//! the limit and counts. A [`Scheduler`] owns its packets, because it decides when it hands them
//! out or keeps more than one queue. A [`Queue`] is any discipline with its packets.
//!
//! Nothing here reads a clock or draws random numbers by itself. Each discipline is one file; to
//! add one takes a line in the list below.

mod about;
mod check;
mod counters;
mod gate;
mod law;
mod link;
mod queue;
mod registry;

use aqmlab_net::{Packet, QueueSize, Time};

pub use about::{About, Parameters};
pub use counters::{Counters, Reason};
pub use gate::Gate;
pub use law::{Fate, Law, LawParameters, Verdict};
pub use link::{Backlog, LinkFacts};
use queue::Fifo;
pub use queue::{Ledger, Queue, Queued, Scheduler, SchedulerParameters};

pub mod codel;
pub mod droptail;
pub mod red;

registry::disciplines! {
    laws {
        /// Admit until the buffer is full.
        Droptail(droptail),
        /// Random early detection.
        Red(red),
    }
    queues {
        /// Controlled delay.
        Codel(codel),
    }
}
