//! Drop-tail: admit until the buffer is full. The baseline of every study.
//!
//! The AQM admits everything; the limit that every FIFO has does the rest.

use aqmlab_net::{Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks};
use crate::check;
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of drop-tail.
#[parameters]
pub struct Params {
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Drop-tail never signals early, so it has nothing to mark.
    #[serde(skip)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Drop-tail",
        paper: "RFC 2309 (Braden et al., 1998), section 2, describes it and its faults",
        purpose: "The baseline of every study: drop-tail admits packets until the buffer is full, \
                  then drops arrivals.",
        departures: &[],
        memory: "nothing",
    };
}

impl AqmParameters for Params {
    type Aqm = DropTail;

    const REASONS: &'static [Reason] = &[Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> DropTail {
        DropTail
    }
}

/// The AQM of drop-tail: it never signals.
#[derive(Clone, Debug)]
pub struct DropTail;

impl Aqm for DropTail {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        _packet: &Packet,
        _queue: Backlog,
        _draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        Decision::Admit
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            arrivals: false,
            ..Hooks::ARRIVALS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_packet_costs_a_call() {
        let none = Hooks {
            arrivals: false,
            outcomes: false,
            overflows: false,
            departures: false,
        };
        assert_eq!(DropTail.hooks(), none);
    }
}
