//! Signals with a probability that somebody else sets: every arrival by itself. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_net::{Packet, QueueSize, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use aqmlab_declare::{About, Parameters};

/// Parameters of Bernoulli signals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Probability with which an arrival is signalled, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p: f64,
    /// Buffer size; an arrival that would exceed it is dropped.
    pub limit: QueueSize,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[serde(default)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Bernoulli signals",
        paper: "no paper; an independent trial for every arrival, as J. Padhye, V. Firoiu, \
                D. Towsley, J. Kurose, Modeling TCP Throughput: A Simple Model and its Empirical \
                Validation, SIGCOMM 1998, and others assume of losses",
        purpose: "Signals every arrival with the same probability, which somebody else sets while \
                  the run is under way: the actuator of a controller outside of the engine, and a \
                  link on which TCP's throughput is known from theory.",
        departures: &[],
        memory: "none",
    };

    fn check(&self) -> Result<(), Problem> {
        check::limit(self.limit)?;
        check::between("p", self.p, 0.0, 1.0)
    }
}

impl AqmParameters for Params {
    type Aqm = Bernoulli;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    const CHANGEABLE: &'static [&'static str] = &["p", "limit", "ecn"];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Bernoulli {
        Bernoulli { p: self.p }
    }

    fn limit(&self) -> QueueSize {
        self.limit
    }

    fn ecn(&self) -> bool {
        self.ecn
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
