//! Signals with a probability that somebody else sets: every arrival by itself. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_net::{Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision};
use crate::check;
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of Bernoulli signals.
#[parameters]
pub struct Params {
    /// Probability that an arrival is dropped or marked.
    #[param(default, least = 0.0, most = 1.0, changeable)]
    pub p: f64,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Bernoulli signals",
        paper: "no paper; for TCP under independent losses: J. Padhye, V. Firoiu, D. Towsley, J. \
                Kurose, Modeling TCP Throughput: A Simple Model and its Empirical Validation, \
                SIGCOMM 1998",
        purpose: "Drops or marks every arrival with the same probability, which a controller \
                  outside the engine can set during the run.",
        departures: &[],
        memory: "nothing",
    };
}

impl AqmParameters for Params {
    type Aqm = Bernoulli;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Bernoulli {
        Bernoulli { p: self.p }
    }
}

/// The AQM: it remembers nothing.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    p: f64,
}

impl Aqm for Bernoulli {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        _packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        Decision::by_chance(self.p, draw)
    }

    fn adopt(&mut self, fresh: Self) {
        *self = fresh;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["p"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.push(self.p);
    }
}
