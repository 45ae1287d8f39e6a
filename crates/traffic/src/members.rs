//! A class whose users, sessions or flows become more or fewer during a run.

use aqmlab_net::Time;

use crate::Model;
use crate::model::{ModelSource, whole};
use crate::rtt::Rtt;
use crate::script::Action;
use crate::setting::{Direction, HostCounts, Setting};
use crate::source::no_files;

/// All that it takes to make the source of a model again.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    model: Model,
    rtt: Rtt,
    direction: Direction,
    hosts: HostCounts,
    seed: u64,
    class: String,
}

impl Recipe {
    pub(crate) fn new(model: &Model, setting: &Setting<'_>) -> Self {
        Self {
            model: model.clone(),
            rtt: setting.rtt.clone(),
            direction: setting.direction,
            hosts: setting.hosts,
            seed: setting.seed,
            class: setting.class.to_owned(),
        }
    }

    /// The members of the model.
    pub(crate) fn members(&self) -> u32 {
        let population = self.model.parameters().population();
        population.map_or(0, |members| members as u32)
    }

    /// The source of the same model with so many members.
    fn source(&self, members: u32) -> Option<Box<dyn ModelSource>> {
        let mut model = self.model.clone();
        model.parameters_mut().set_population(members.into());
        let setting = Setting {
            rtt: &self.rtt,
            direction: self.direction,
            hosts: self.hosts,
            seed: self.seed,
            class: &self.class,
        };
        model.parameters().source(&setting, &mut no_files).ok()
    }
}

/// Members that came at the same time.
struct Batch {
    model: Box<dyn ModelSource>,
    /// Number of the first of them in their model; its token there.
    first: u32,
    /// How many are left.
    left: u32,
    /// The token of the first of them outside. No token is used twice.
    token: u32,
}

impl Batch {
    /// The model's token of a member that is here.
    fn member(&self, token: u32) -> Option<u32> {
        let place = token.checked_sub(self.token)?;
        (place < self.left).then_some(self.first + place)
    }

    /// What the model asked for from `actions[from]` on is passed on with the tokens outside.
    fn rename(&self, from: usize, actions: &mut [Action]) {
        for action in &mut actions[from..] {
            if let Some(token) = action.token_mut() {
                *token = *token - self.first + self.token;
            }
        }
    }
}

/// Members of a class who came at different times. One who comes is the one whom a class of that
/// size has beyond the others: the same random numbers, from the beginning. The last who came go
/// first, and do not come back: a user who comes then has their random numbers, and is a new one.
pub(crate) struct Members {
    batches: Vec<Batch>,
    next_token: u32,
    /// The connections of those who go end with them.
    end_at_once: bool,
    recipe: Box<Recipe>,
}

impl Members {
    /// All members of `model`, which follows the recipe. With `end_at_once` the connections of
    /// those who go end with them.
    pub(crate) fn new(model: Box<dyn ModelSource>, recipe: Box<Recipe>, end_at_once: bool) -> Self {
        let members = recipe.members();
        let first = Batch {
            model,
            first: 0,
            left: members,
            token: 0,
        };
        Self {
            batches: vec![first],
            next_token: members,
            end_at_once,
            recipe,
        }
    }

    fn count(&self) -> u32 {
        self.batches.iter().map(|batch| batch.left).sum()
    }

    /// There are so many from `now` on.
    fn resize(&mut self, members: u32, now: Time, actions: &mut Vec<Action>) {
        let before = self.count();
        for _ in members..before {
            let Some(last) = self.batches.last_mut() else {
                break;
            };
            last.left -= 1;
            if self.end_at_once {
                let token = last.token + last.left;
                actions.push(Action::EndConnection { token });
            }
            if last.left == 0 {
                self.batches.pop();
            }
        }
        if members > before {
            self.join(before, members, now, actions);
        }
    }

    fn join(&mut self, before: u32, members: u32, now: Time, actions: &mut Vec<Action>) {
        let Some(model) = self.recipe.source(members) else {
            return;
        };
        let mut batch = Batch {
            model,
            first: before,
            left: members - before,
            token: self.next_token,
        };
        self.next_token += batch.left;
        let from = actions.len();
        batch.model.start(actions);
        let mut place = 0;
        actions.retain_mut(|action| {
            place += 1;
            place <= from || action.token_mut().is_some_and(|token| *token >= before)
        });
        batch.rename(from, actions);
        for action in &mut actions[from..] {
            if let Action::WakeAt { at, .. } = action {
                *at = at.saturating_add(now);
            }
        }
        self.batches.push(batch);
    }

    /// What the model of a member asks for, if the member is still there.
    fn ask(
        &mut self,
        token: u32,
        actions: &mut Vec<Action>,
        ask: impl FnOnce(&mut dyn ModelSource, u32, &mut Vec<Action>),
    ) {
        let mut batches = self.batches.iter_mut();
        let found = batches.find_map(|batch| Some((batch.member(token)?, batch)));
        let Some((member, batch)) = found else {
            return;
        };
        let from = actions.len();
        ask(&mut *batch.model, member, actions);
        batch.rename(from, actions);
    }
}

impl ModelSource for Members {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for batch in &mut self.batches {
            batch.model.start(actions);
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        self.ask(token, actions, |model, member, actions| {
            model.on_wake(now, member, actions);
        });
    }

    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        self.ask(token, actions, |model, member, actions| {
            model.on_finished(now, member, actions);
        });
    }

    /// Those who come begin with `now` as their time 0; those who go leave at once.
    fn set_population(&mut self, population: f64, now: Time, actions: &mut Vec<Action>) -> bool {
        self.resize(whole(population), now, actions);
        true
    }
}
