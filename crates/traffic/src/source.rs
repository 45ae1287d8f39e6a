//! A source: one class of traffic at work.

use std::{fmt, io};

use aqmlab_net::Time;

use crate::bulk::Transfers;
use crate::cbr::Streams;
use crate::mah::WebUsers;
use crate::on_off::Bursts;
use crate::packmime::Clouds;
use crate::params::{Model, Rtt, Vectors};
use crate::part::{Dealer, Part};
use crate::poisson::Arrivals;
use crate::replay::{Replay, VectorFile};
use crate::script::{Action, Direction, HostCounts};
use crate::session::Sessions;
use crate::telnet::Terminals;
use crate::unc::UncUsers;

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
    activity: Activity,
    /// Connections that are open.
    open: u32,
    /// What has the rest of the model's connections, if others do.
    dealer: Option<Box<Dealer>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// When a class acts, and how much it may do at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Before this it is silent; its model's own time begins here.
    pub start: Time,
    /// From then on it begins nothing new: requests under way are answered, endless transfers end,
    /// datagrams cease. [`Time::NEVER`] if it goes on to the end of the run.
    pub stop: Time,
    /// Most connections at a time, counted from the opening until the client has seen the end.
    /// Those beyond it are refused, which [`Action::Refused`] tells; their user takes them for
    /// failed.
    pub max_connections: u32,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            start: Time::ZERO,
            stop: Time::NEVER,
            max_connections: u32::MAX,
        }
    }
}

/// The token of the wake-up at which a class stops.
const STOP: u32 = u32::MAX;

enum Active {
    Web(WebUsers),
    Unc(UncUsers),
    Sessions(Sessions),
    Telnet(Terminals),
    Poisson(Arrivals),
    Replay(Box<Replay>),
    PackMime(Clouds),
    Bulk(Transfers),
    Cbr(Streams),
    OnOff(Bursts),
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
            Model::UncWeb(params) => Active::Unc(UncUsers::new(params, &setting)?),
            Model::WebSessions(params) => Active::Sessions(Sessions::new(params, &setting)?),
            Model::Telnet(params) => Active::Telnet(Terminals::new(params, &setting)),
            Model::Poisson(params) => Active::Poisson(Arrivals::new(params, &setting)?),
            Model::Vectors(params) => {
                let file = files(params).map_err(SourceError::File)?;
                Active::Replay(Box::new(Replay::of_file(params, file, &setting)?))
            }
            Model::GeneralTcp(params) => {
                Active::Replay(Box::new(Replay::of_generator(params, &setting)?))
            }
            Model::Packmime(params) => Active::PackMime(Clouds::new(params, &setting)?),
            Model::Bulk(params) => Active::Bulk(Transfers::new(params, &setting)),
            Model::Cbr(params) => Active::Cbr(Streams::new(params, &setting)),
            Model::OnOff(params) => Active::OnOff(Bursts::new(params, &setting)),
        };
        Ok(Self {
            model,
            activity: Activity::default(),
            open: 0,
            dealer: None,
        })
    }

    /// The same source, acting at certain times or within limits. To be called before
    /// [`start`](Self::start).
    #[must_use]
    pub const fn with_activity(mut self, activity: Activity) -> Self {
        self.activity = activity;
        self
    }

    /// The same source, with only a part of its connections: it was made with the seed and with
    /// the name of the whole. To be called before [`start`](Self::start).
    #[must_use]
    pub fn with_part(mut self, part: Option<&Part>, seed: u64) -> Self {
        self.dealer = part.map(|part| Box::new(Dealer::new(part, seed)));
        self
    }

    /// The run begins, at time 0.
    pub fn start(&mut self, actions: &mut Vec<Action>) {
        let first = actions.len();
        self.start_model(actions);
        for action in &mut actions[first..] {
            if let Action::WakeAt { at, .. } = action {
                *at = at.saturating_add(self.activity.start);
            }
        }
        if self.activity.stop < Time::NEVER {
            let (at, token) = (self.activity.stop, STOP);
            actions.push(Action::WakeAt { at, token });
        }
    }

    /// The time of an [`Action::WakeAt`] has come.
    pub fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        if now < self.activity.stop {
            let first = actions.len();
            self.wake_model(now, token, actions);
            self.deal(first, actions);
            self.admit(first, now, actions);
        } else if token == STOP && self.is_endless() {
            actions.push(Action::EndConnections);
        }
    }

    /// A connection with this token is over: its client has seen the end, or it failed.
    pub fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        self.open -= 1;
        if now < self.activity.stop {
            let first = actions.len();
            self.finish_model(now, token, actions);
            self.admit(first, now, actions);
        }
    }

    /// Whether connections of the model go on for good, if nobody ends them.
    fn is_endless(&self) -> bool {
        match &self.model {
            Active::Bulk(transfers) => transfers.is_endless(),
            Active::Telnet(_) => true,
            _ => false,
        }
    }

    /// Leaves the connections of other parts out.
    fn deal(&mut self, first: usize, actions: &mut Vec<Action>) {
        if let Some(dealer) = &mut self.dealer {
            let mut place = 0;
            actions.retain(|action| {
                place += 1;
                place <= first || !matches!(action, Action::Connect(_)) || dealer.takes()
            });
        }
    }

    /// Counts the connections that the model wants to open from `actions[first]` on, and refuses
    /// those beyond the limit. Whoever waits for a refused one is told that it is over.
    fn admit(&mut self, first: usize, now: Time, actions: &mut Vec<Action>) {
        let mut next = first;
        while let Some(action) = actions.get_mut(next) {
            next += 1;
            let Action::Connect(connect) = action else {
                continue;
            };
            if self.open < self.activity.max_connections {
                self.open += 1;
                continue;
            }
            let token = connect.token;
            *action = Action::Refused;
            self.finish_model(now, token, actions);
        }
    }

    fn start_model(&mut self, actions: &mut Vec<Action>) {
        match &mut self.model {
            Active::Web(users) => users.start(actions),
            Active::Unc(users) => users.start(actions),
            Active::Sessions(sessions) => sessions.start(actions),
            Active::Telnet(terminals) => terminals.start(actions),
            Active::Poisson(arrivals) => arrivals.start(actions),
            Active::PackMime(clouds) => clouds.start(actions),
            Active::Replay(replay) => replay.start(actions),
            Active::Bulk(transfers) => transfers.start(actions),
            Active::Cbr(streams) => streams.start(actions),
            Active::OnOff(bursts) => bursts.start(actions),
        }
    }

    fn wake_model(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        match &mut self.model {
            Active::Web(users) => users.on_wake(token, actions),
            Active::Unc(users) => users.on_wake(token, actions),
            Active::Sessions(sessions) => sessions.on_wake(token, actions),
            Active::Telnet(terminals) => terminals.on_wake(token, actions),
            Active::Poisson(arrivals) => arrivals.on_wake(now, actions),
            Active::PackMime(clouds) => clouds.on_wake(now, token, actions),
            Active::Replay(replay) => replay.on_wake(now, actions),
            Active::Bulk(transfers) => transfers.on_wake(token, actions),
            Active::Cbr(streams) => streams.on_wake(now, token, actions),
            Active::OnOff(bursts) => bursts.on_wake(now, token, actions),
        }
    }

    fn finish_model(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        match &mut self.model {
            Active::Web(users) => users.on_finished(now, token, actions),
            Active::Unc(users) => users.on_finished(now, token, actions),
            Active::Sessions(sessions) => sessions.on_finished(now, token, actions),
            Active::Telnet(terminals) => terminals.on_finished(now, token, actions),
            Active::Poisson(_)
            | Active::PackMime(_)
            | Active::Replay(_)
            | Active::Bulk(_)
            | Active::Cbr(_)
            | Active::OnOff(_) => {}
        }
    }

    /// Whether what the source does next depends on when its connections end (closed loop, or a
    /// limit), or what its connections do on the source (it stops).
    pub fn waits_for_connections(&self) -> bool {
        let Activity {
            stop,
            max_connections,
            ..
        } = self.activity;
        let is_closed_loop = matches!(
            self.model,
            Active::Web(_) | Active::Unc(_) | Active::Sessions(_) | Active::Telnet(_)
        );
        is_closed_loop || stop < Time::NEVER || max_connections < u32::MAX
    }

    /// Why the source fell silent before its time: its file could not be read to the end.
    pub fn failure(&self) -> Option<&str> {
        match &self.model {
            Active::Replay(replay) => replay.failure(),
            _ => None,
        }
    }
}
