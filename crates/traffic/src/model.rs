//! What every traffic model says of itself, and what its source does.

use std::io;
use std::ops::Range;

use aqmlab_net::{Frequency, Time};

use crate::error::SourceError;
use crate::quality::Quality;
use crate::script::Action;
use crate::setting::Setting;
use crate::sizes::Sizes;
use crate::vectors::{VectorFile, Vectors};

/// The parameters of a traffic model. Their [`Parameters`](aqmlab_declare::Parameters) say what the
/// model is and refuse what means nothing.
pub trait ModelParameters {
    /// A small class of this model as a scenario file has it, `[[traffic]]` and `rtt` included. Its
    /// population is given.
    fn example() -> &'static str
    where
        Self: Sized;

    /// The key that says how many users, connections per second or flows there are.
    fn population_key(&self) -> PopulationKey;

    /// What stands there; `None` if it is to be calibrated from the load.
    fn population(&self) -> Option<f64>;

    /// Puts a number there. There is no fraction of a user: what is counted is rounded, to at
    /// least one.
    fn set_population(&mut self, population: f64);

    /// How its population can change during a run.
    fn changing(&self) -> Changing {
        Changing::Never
    }

    /// What makes the model open its connections.
    fn opening(&self) -> Opening;

    /// Whether its connections go on for good if nobody ends them.
    fn is_endless(&self) -> bool {
        false
    }

    /// Datagrams per second that its flows send together, on average; 0 where it opens connections.
    fn packets_per_s(&self) -> f64 {
        0.0
    }

    /// Whether what it sends depends on what it hears, so that only a simulation can play it.
    fn is_adaptive(&self) -> bool {
        false
    }

    /// Whether it is made for streams: its connections have QUIC where the class names no transport.
    fn is_for_streams() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether its connections can have round-trip times of their own, `rtt.kind = "vector"`.
    fn has_round_trips(&self) -> bool {
        false
    }

    /// The distributions of sizes among its parameters, by their keys.
    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        Vec::new()
    }

    /// The file of connection vectors that it replays.
    fn vectors_mut(&mut self) -> Option<&mut Vectors> {
        None
    }

    /// Its source. The parameters have passed their check; `files` opens the file of a model that
    /// replays one.
    fn source(
        &self,
        setting: &Setting<'_>,
        files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError>;
}

/// The population of a model in `ModelParameters`: the key that has it, what is counted, what opens
/// its connections, and how it changes, if it can.
macro_rules! population {
    ($key:ident in $unit:literal, $opening:ident $(, $changing:ident)?) => {
        fn population_key(&self) -> crate::model::PopulationKey {
            crate::model::PopulationKey::new(stringify!($key), $unit)
        }

        fn population(&self) -> Option<f64> {
            crate::model::Population::get(&self.$key)
        }

        fn set_population(&mut self, population: f64) {
            crate::model::Population::set(&mut self.$key, population);
        }

        fn opening(&self) -> crate::model::Opening {
            crate::model::Opening::$opening
        }

        $(fn changing(&self) -> crate::model::Changing {
            crate::model::Changing::$changing
        })?
    };
}

pub(crate) use population;

/// A parameter that holds a population.
pub(crate) trait Population {
    /// What stands there.
    fn get(&self) -> Option<f64>;

    /// Puts a number there.
    fn set(&mut self, population: f64);
}

impl Population for u32 {
    fn get(&self) -> Option<f64> {
        Some((*self).into())
    }

    fn set(&mut self, population: f64) {
        *self = whole(population);
    }
}

impl Population for Option<u32> {
    fn get(&self) -> Option<f64> {
        self.map(f64::from)
    }

    fn set(&mut self, population: f64) {
        *self = Some(whole(population));
    }
}

impl Population for Option<f64> {
    fn get(&self) -> Option<f64> {
        *self
    }

    fn set(&mut self, population: f64) {
        *self = Some(population);
    }
}

impl Population for Option<Frequency> {
    fn get(&self) -> Option<f64> {
        self.map(|rate| rate.0)
    }

    fn set(&mut self, population: f64) {
        *self = Some(Frequency(population));
    }
}

/// Opens the file that holds a model's connection vectors.
pub type OpenFile<'a> = dyn FnMut(&Vectors) -> io::Result<Box<dyn VectorFile>> + 'a;

/// A model at work: says which connections to open and when to wake it.
///
/// It is asked once for each connection, page or datagram, never for a segment.
pub trait ModelSource: Send {
    /// The class begins, at time 0 of the model.
    fn start(&mut self, actions: &mut Vec<Action>);

    /// The time of an [`Action::WakeAt`] has come.
    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>);

    /// A connection with this token is over: its client has seen the end, or it failed.
    fn on_finished(&mut self, _now: Time, _token: u32, _actions: &mut Vec<Action>) {}

    /// Whether it wants to learn of answers ([`on_answered`](Self::on_answered)) and of datagrams
    /// that arrive ([`on_datagram`](Self::on_datagram)). Where nobody listens that costs nothing.
    fn listens(&self) -> bool {
        false
    }

    /// The client of a connection with this token has all of a response.
    fn on_answered(&mut self, _now: Time, _token: u32, _actions: &mut Vec<Action>) {}

    /// The client of a connection with this token has an object of its page.
    fn on_object(&mut self, _now: Time, _token: u32) {}

    /// A datagram of one of its flows has arrived.
    fn on_datagram(&mut self, _now: Time, _datagram: &Received, _actions: &mut Vec<Action>) {}

    /// The run measures between these times: said before it begins.
    fn measure(&mut self, _span: &Range<Time>) {}

    /// What its users got so far within what is measured, up to `now` and to `stop`, when the class
    /// begins nothing new any more; `None` if it keeps no account of that. What is only known
    /// later is left out.
    fn quality(&self, _now: Time, _stop: Time) -> Option<Quality> {
        None
    }

    /// The population changes at `now`; false if the model cannot do that. See
    /// [`Changing`].
    fn set_population(&mut self, _population: f64, _now: Time, _actions: &mut Vec<Action>) -> bool {
        false
    }

    /// Why it fell silent before its time.
    fn failure(&self) -> Option<&str> {
        None
    }
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The token of its flow.
    pub token: u32,
    /// Number of the datagram in its flow, in the order of sending, from 0.
    pub number: u32,
    /// Time from its sending to its arrival.
    pub delay: Time,
}

/// What makes a model open its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Closed loop: a user opens the next one when an earlier one is over.
    ClosedLoop,
    /// Open loop: they arrive, whatever becomes of those before.
    OpenLoop,
    /// There is a fixed number of transfers or flows, each opened once.
    Fixed,
}

/// How the population of a model can change during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changing {
    /// It cannot.
    Never,
    /// It has members, numbered from 0: their numbers are their tokens, each begins with a wake-up
    /// of its own, and what one does depends on no other.
    Members,
    /// Connections arrive at a rate, which holds from the next one on.
    Rate,
}

/// The key of a model that says how many users, connections per second or flows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopulationKey {
    /// The key.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
}

impl PopulationKey {
    /// A number of users.
    pub const USERS: Self = Self::new("users", "users");
    /// A number of sessions.
    pub const SESSIONS: Self = Self::new("sessions", "sessions");
    /// A number of flows.
    pub const FLOWS: Self = Self::new("flows", "flows");
    /// A rate of connections.
    pub const RATE: Self = Self::new("rate", "connections/s");

    /// Whether it is a rate of connections.
    pub fn counts_per_second(&self) -> bool {
        *self == Self::RATE
    }

    /// A key and what it counts.
    pub const fn new(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit }
    }
}

/// A population that is counted: there is no fraction of a user, and a class has at least one.
pub(crate) fn whole(population: f64) -> u32 {
    population.round().max(1.0) as u32
}

/// A rate of connections, where it is given, is above zero.
pub(crate) fn check_rate(rate: Option<Frequency>) -> Result<(), aqmlab_declare::Problem> {
    match rate {
        Some(rate) if !(rate.0.is_finite() && rate.0 > 0.0) => aqmlab_declare::check::problem(
            PopulationKey::RATE.name,
            format!("found {rate}; it must be above 0 /s"),
        ),
        _ => Ok(()),
    }
}
