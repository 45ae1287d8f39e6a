//! A source: one class of traffic at work.

use std::{fmt, io};

use aqmlab_net::Time;

use crate::bulk::Transfers;
use crate::cbr::Streams;
use crate::mah::WebUsers;
use crate::params::{Model, Rtt, Vectors};
use crate::poisson::Arrivals;
use crate::replay::{Replay, VectorFile};
use crate::script::{Action, Direction, HostCounts};

/// A model without its number of users (or its rate): it has to be calibrated first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopulationUnset {
    /// The field that is missing.
    pub field: &'static str,
}

impl fmt::Display for PopulationUnset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not set; give it, or a load to calibrate it to",
            self.field
        )
    }
}

impl std::error::Error for PopulationUnset {}

/// Why a source cannot be made.
#[derive(Debug)]
pub enum SourceError {
    /// It has to be calibrated first.
    PopulationUnset(PopulationUnset),
    /// A file that it needs cannot be opened.
    File(io::Error),
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PopulationUnset(unset) => unset.fmt(f),
            Self::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SourceError {}

impl From<PopulationUnset> for SourceError {
    fn from(unset: PopulationUnset) -> Self {
        Self::PopulationUnset(unset)
    }
}

/// Opens the file that holds a model's connection vectors.
pub type OpenFile<'a> = dyn FnMut(&Vectors) -> io::Result<Box<dyn VectorFile>> + 'a;

/// A class of traffic at work: says which connections to open and when to wake it.
///
/// It has no clock and no network. What it does depends on the seed, the class's name and the
/// order of events inside one user, never on other classes or on random numbers of a queue.
pub struct Source {
    model: Active,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

enum Active {
    Web(WebUsers),
    Poisson(Arrivals),
    Replay(Box<Replay>),
    Bulk(Transfers),
    Cbr(Streams),
}

/// Where the connections of a class go and what their random numbers are called.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) rtt: &'a Rtt,
    pub(crate) direction: Direction,
    pub(crate) hosts: HostCounts,
    pub(crate) seed: u64,
    pub(crate) class: &'a str,
}

impl Source {
    /// The source of class `class`, which reads no file.
    pub fn new(
        model: &Model,
        rtt: &Rtt,
        direction: Direction,
        hosts: HostCounts,
        seed: u64,
        class: &str,
    ) -> Result<Self, SourceError> {
        let files = &mut |vectors: &Vectors| {
            let message = format!("{:?} is not read here", vectors.file);
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        };
        Self::with_files(model, rtt, direction, hosts, seed, class, files)
    }

    /// The source of class `class`. Model and round-trip times have passed their `check`. The file
    /// of a model that replays one is opened through `files`.
    pub fn with_files(
        model: &Model,
        rtt: &Rtt,
        direction: Direction,
        hosts: HostCounts,
        seed: u64,
        class: &str,
        files: &mut OpenFile<'_>,
    ) -> Result<Self, SourceError> {
        let setting = Setting {
            rtt,
            direction,
            hosts,
            seed,
            class,
        };
        let model = match model {
            Model::MahWeb(params) => Active::Web(WebUsers::new(params, &setting)?),
            Model::Poisson(params) => Active::Poisson(Arrivals::new(params, &setting)?),
            Model::Vectors(params) => {
                let file = files(params).map_err(SourceError::File)?;
                Active::Replay(Box::new(Replay::of_file(params, file, &setting)?))
            }
            Model::GeneralTcp(params) => {
                Active::Replay(Box::new(Replay::of_generator(params, &setting)?))
            }
            Model::Bulk(params) => Active::Bulk(Transfers::new(params, &setting)),
            Model::Cbr(params) => Active::Cbr(Streams::new(params, &setting)),
        };
        Ok(Self { model })
    }

    /// The run begins, at time 0.
    pub fn start(&mut self, actions: &mut Vec<Action>) {
        match &mut self.model {
            Active::Web(users) => users.start(actions),
            Active::Poisson(arrivals) => arrivals.start(actions),
            Active::Replay(replay) => replay.start(actions),
            Active::Bulk(transfers) => transfers.start(actions),
            Active::Cbr(streams) => streams.start(actions),
        }
    }

    /// The time of an [`Action::WakeAt`] has come.
    pub fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        match &mut self.model {
            Active::Web(users) => users.on_wake(token, actions),
            Active::Poisson(arrivals) => arrivals.on_wake(now, actions),
            Active::Replay(replay) => replay.on_wake(now, actions),
            Active::Bulk(transfers) => transfers.on_wake(token, actions),
            Active::Cbr(streams) => streams.on_wake(now, token, actions),
        }
    }

    /// A connection with this token is over: its client has seen the end, or it failed.
    pub fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        match &mut self.model {
            Active::Web(users) => users.on_finished(now, token, actions),
            Active::Poisson(_) | Active::Replay(_) | Active::Bulk(_) | Active::Cbr(_) => {}
        }
    }

    /// Whether what the source does next depends on when its connections end (closed loop).
    pub const fn waits_for_connections(&self) -> bool {
        matches!(self.model, Active::Web(_))
    }

    /// Why the source fell silent before its time: its file could not be read to the end.
    pub fn failure(&self) -> Option<&str> {
        match &self.model {
            Active::Replay(replay) => replay.failure(),
            _ => None,
        }
    }
}
