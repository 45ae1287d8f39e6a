//! Which connections are watched for the phases of their congestion controls, and what waits for these.

use aqmlab_net::Time;
use aqmlab_record::RunError;
use aqmlab_scenario::{Change, Effect, Scenario, ScenarioError, Watched};

/// What waits for phases.
#[derive(Debug)]
pub(crate) struct Watch {
    waiting: Vec<Waiting>,
    /// The first change that could not be made.
    failed: Option<ScenarioError>,
}

#[derive(Debug)]
struct Waiting {
    watched: Watched,
    /// Slot of the connection, while that is open.
    slot: Option<u32>,
    /// Its congestion control is in the phase.
    is_in: bool,
    /// An entry has counted.
    has_come: bool,
}

impl Watch {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let watched = scenario.watched().map_err(|error| wrong(&error))?;
        let waiting = watched.into_iter().map(|watched| Waiting {
            watched,
            slot: None,
            is_in: false,
            has_come: false,
        });
        Ok(Self {
            waiting: waiting.collect(),
            failed: None,
        })
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A connection opens: whether something waits for its phases.
    #[inline]
    pub(crate) fn wants(&mut self, class: usize, token: u32, slot: u32) -> bool {
        let mut is_wanted = false;
        for it in &mut self.waiting {
            if (it.watched.class, it.watched.token) == (class, token) {
                it.slot = Some(slot);
                is_wanted = true;
            }
        }
        is_wanted
    }

    pub(crate) fn forget(&mut self, slot: u32) {
        let waiting = self.waiting.iter_mut();
        for it in waiting.filter(|it| it.slot == Some(slot)) {
            it.slot = None;
        }
    }

    /// The congestion control of a connection is in this phase at `now`: numbers and times of what
    /// happens by that.
    pub(crate) fn see(&mut self, slot: u32, phase: &str, now: Time) -> Vec<(u32, Time)> {
        let mut due = Vec::new();
        for (number, it) in (0..).zip(&mut self.waiting) {
            let when = &it.watched.when;
            if it.slot != Some(slot) {
                continue;
            }
            let enters = !std::mem::replace(&mut it.is_in, when.phase == phase) && it.is_in;
            if enters && now >= when.after && (when.every || !it.has_come) {
                it.has_come = true;
                due.push((number, now + when.wait));
            }
        }
        due
    }

    /// What happens by the number.
    pub(crate) fn effect(&self, number: u32) -> Effect {
        self.waiting[number as usize].watched.effect.clone()
    }

    /// A change could not be made.
    #[cold]
    pub(crate) fn fail(&mut self, error: ScenarioError) {
        self.failed.get_or_insert(error);
    }

    /// Values that wait for a phase to change.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &Change> {
        let effects = self.waiting.iter().map(|it| &it.watched.effect);
        effects.filter_map(|effect| match effect {
            Effect::Value(change) => Some(change),
            Effect::Link(..) | Effect::Pause(..) => None,
        })
    }

    /// Whether everything that was due could be made.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        self.failed
            .as_ref()
            .map_or(Ok(()), |error| Err(wrong(error)))
    }
}

/// A change that the scenario has, and that the run as it has become cannot make.
pub(crate) fn wrong(error: &ScenarioError) -> RunError {
    RunError::Change(error.to_string())
}
