//! A source: one class of traffic at work.

use std::ops::Range;
use std::{fmt, io};

use aqmlab_net::Time;

use crate::Model;
use crate::error::SourceError;
use crate::members::{Members, Recipe};
use crate::model::{Changing, ModelSource, OpenFile, Opening, Received};
use crate::quality::Quality;
use crate::script::Action;
use crate::setting::Setting;
use crate::starts::Starts;
use crate::subset::{Dealer, Subset};
use crate::vectors::{VectorFile, Vectors};

/// A class of traffic at work: says which connections to open and when to wake it.
///
/// It has no clock and no network. What it does depends on the seed, the class's name and the
/// order of events inside one user, never on other classes or on random numbers of a queue.
pub struct Source {
    model: Box<dyn ModelSource>,
    opening: Opening,
    is_endless: bool,
    activity: Activity,
    /// Connections that are open.
    open: u32,
    /// What has the rest of the model's connections, if others do.
    dealer: Option<Box<Dealer>>,
    /// Of a model with members whose number has not changed yet.
    recipe: Option<Box<Recipe>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// When a class acts, and how much it may do at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// It is silent until then: its model's own time begins here, or each of its flows does.
    pub start: Starts,
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
            start: Starts::default(),
            stop: Time::NEVER,
            max_connections: u32::MAX,
        }
    }
}

/// The token of the wake-up at which a class stops.
const STOP: u32 = u32::MAX;

impl Source {
    /// The source of a class, which reads no file.
    pub fn new(model: &Model, setting: &Setting<'_>) -> Result<Self, SourceError> {
        Self::with_files(model, setting, &mut no_files)
    }

    /// The source of a class. Its model has passed its check. The file of a model that replays one
    /// is opened through `files`.
    pub fn with_files(
        model: &Model,
        setting: &Setting<'_>,
        files: &mut OpenFile<'_>,
    ) -> Result<Self, SourceError> {
        let parameters = model.parameters();
        let recipe = (parameters.changing() == Changing::Members)
            .then(|| Box::new(Recipe::new(model, setting)));
        Ok(Self {
            recipe,
            model: parameters.source(setting, files)?,
            opening: parameters.opening(),
            is_endless: parameters.is_endless(),
            activity: Activity::default(),
            open: 0,
            dealer: None,
        })
    }

    /// The same source, acting at certain times or within limits. To be called before
    /// [`start`](Self::start).
    #[must_use]
    pub fn with_activity(mut self, activity: Activity) -> Self {
        self.activity = activity;
        self
    }

    /// The same source, with only a subset of its connections: it was made with the seed and with
    /// the name of the whole. To be called before [`start`](Self::start).
    #[must_use]
    pub fn with_subset(mut self, subset: Option<&Subset>, seed: u64) -> Self {
        self.dealer = subset.map(|subset| Box::new(Dealer::new(subset, seed)));
        self
    }

    /// The run begins, at time 0.
    pub fn start(&mut self, actions: &mut Vec<Action>) {
        let first = actions.len();
        self.model.start(actions);
        // A model with flows, sessions or users begins with a wake-up for each, in their order.
        let wakes = actions[first..]
            .iter_mut()
            .filter_map(|action| match action {
                Action::WakeAt { at, .. } => Some(at),
                _ => None,
            });
        for (index, at) in wakes.enumerate() {
            *at = self.activity.start.of(index, *at);
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
            self.model.on_wake(now, token, actions);
            self.deal(first, actions);
            self.admit(first, now, actions);
        } else if token == STOP && self.is_endless {
            actions.push(Action::EndConnections);
        }
    }

    /// A connection with this token is over: its client has seen the end, or it failed.
    pub fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        self.open -= 1;
        if now < self.activity.stop {
            let first = actions.len();
            self.model.on_finished(now, token, actions);
            self.admit(first, now, actions);
        }
    }

    /// Whether it wants to hear of answers and of datagrams that arrive.
    pub fn listens(&self) -> bool {
        self.model.listens()
    }

    /// The client of a connection with this token has all of a response.
    pub fn on_answered(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        if now < self.activity.stop {
            let first = actions.len();
            self.model.on_answered(now, token, actions);
            self.admit(first, now, actions);
        }
    }

    /// The client of a connection with this token has an object of its page.
    pub fn on_object(&mut self, now: Time, token: u32) {
        self.model.on_object(now, token);
    }

    /// A datagram of one of its flows has arrived.
    pub fn on_datagram(&mut self, now: Time, datagram: &Received, actions: &mut Vec<Action>) {
        if now < self.activity.stop {
            self.model.on_datagram(now, datagram, actions);
        }
    }

    /// The run measures between these times. To be called before [`start`](Self::start).
    pub fn measure(&mut self, span: &Range<Time>) {
        self.model.measure(span);
    }

    /// What its users got so far within what is measured.
    pub fn quality(&self, now: Time) -> Option<Quality> {
        self.model.quality(now, self.activity.stop)
    }

    /// The number of users, sessions or flows, or the rate of connections, changes.
    /// Those who come begin as the model has it, with `now` as their time 0; those who go finish
    /// what is under way, except endless transfers, which end. True if the model can.
    pub fn set_population(
        &mut self,
        population: f64,
        now: Time,
        actions: &mut Vec<Action>,
    ) -> bool {
        if let Some(recipe) = self.recipe.take() {
            let model = std::mem::replace(&mut self.model, Box::new(Silent));
            self.model = Box::new(Members::new(model, recipe, self.is_endless));
        }
        let first = actions.len();
        let can = self.model.set_population(population, now, actions);
        let start = self.activity.start.first();
        for action in &mut actions[first..] {
            if let Action::WakeAt { at, .. } = action {
                *at = (*at).max(start);
            }
        }
        can
    }

    /// Leaves the connections outside of the subset out.
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
    /// those beyond the limit. A model that waits for a refused one learns that it is over.
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
            self.model.on_finished(now, token, actions);
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
        self.opening == Opening::ClosedLoop || stop < Time::NEVER || max_connections < u32::MAX
    }

    /// Why the source fell silent before its time: its file could not be read to the end.
    pub fn failure(&self) -> Option<&str> {
        self.model.failure()
    }
}

/// Has nothing to say: another speaks in its place.
struct Silent;

impl ModelSource for Silent {
    fn start(&mut self, _actions: &mut Vec<Action>) {}

    fn on_wake(&mut self, _now: Time, _token: u32, _actions: &mut Vec<Action>) {}
}

/// For models that read no file.
pub(crate) fn no_files(vectors: &Vectors) -> io::Result<Box<dyn VectorFile>> {
    let message = format!("{:?} is not read here", vectors.file);
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}
