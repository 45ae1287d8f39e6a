//! Queue disciplines: who is dropped, who is marked.
//!
//! A marking law ([`Law`]) decides the fate of one arriving packet over a single FIFO; a [`Gate`]
//! is the door of that FIFO: it asks the law, turns its signal into a mark or a drop, enforces
//! the limit and counts. Neither owns packets, reads a clock or draws random numbers by itself.

mod check;
pub mod droptail;
mod gate;
mod law;
pub mod red;

pub use gate::{Counters, Fate, Gate, Reason};
pub use law::{Backlog, Law, LinkFacts, Verdict};

aqmlab_net::tagged! {
    /// A discipline and its parameters, as a scenario states them.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Discipline {
        /// Admit until the buffer is full.
        Droptail(droptail::Params),
        /// Random early detection.
        Red(red::Params),
    }
}

impl Discipline {
    /// Refuses parameters that contradict each other or mean nothing. The error names the field
    /// and says what was found and what would be right.
    pub fn check(&self) -> Result<(), (String, String)> {
        match self {
            Self::Droptail(params) => params.check(),
            Self::Red(params) => params.check(),
        }
    }
}
