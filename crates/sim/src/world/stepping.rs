//! A run that is looked at, and changed, while it is under way.

use std::collections::VecDeque;

use aqmlab_link::PortState;
use aqmlab_net::{Role, Time};
use aqmlab_record::{LinkDirection, RunError, Summary};
use aqmlab_scenario::{Change, Changed, Changes, Scenario, ScenarioError};
use aqmlab_tcp::Probe;
use aqmlab_traffic::Quality;

use super::World;
use crate::engine::Engine;
use crate::event::{Event, Kind};
use crate::watch::wrong;

/// What changes during a run.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The links and populations of this moment.
    state: Changes,
    /// What is still to come.
    due: VecDeque<Change>,
    /// What has changed.
    done: Vec<Change>,
    /// As long as nothing has changed that could: which ports would compute their departures if
    /// nothing could.
    computing: Vec<bool>,
    /// Departures from these ports: they do not count as events.
    uncounted: u64,
}

impl Schedule {
    /// That of a scenario; `computing` says which ports would compute their departures if nothing
    /// could change, and is empty if nothing can.
    pub(super) fn new(scenario: &Scenario, computing: Vec<bool>) -> Self {
        let scheduled = scenario.changes.iter().filter(|it| it.at.is_some());
        Self {
            state: Changes::new(scenario),
            due: scheduled.cloned().collect(),
            done: Vec::new(),
            computing,
            uncounted: 0,
        }
    }

    /// When the next change comes.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.front()?.at
    }

    /// A packet departs from a port.
    #[inline]
    pub(super) fn on_departure(&mut self, port: usize) {
        self.uncounted += u64::from(self.computing.get(port).copied().unwrap_or_default());
    }

    /// Events that a run in which nothing could change would not have.
    pub(super) const fn uncounted(&self) -> u64 {
        self.uncounted
    }
}

/// A flow of a run under way: a connection, as the sender of its responses knows it.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Its serial number.
    pub flow: u64,
    /// Number of its class.
    pub class: usize,
    /// IP-level payload bytes that its client has received so far.
    pub received: u64,
    /// Data segments that its server has sent again so far.
    pub retransmitted: u64,
    /// Its sender's state.
    pub probe: Probe,
}

/// What the world does at some moment.
#[derive(Clone, Debug)]
pub struct Observation {
    /// When.
    pub time: Time,
    /// The links' directions, forward first, in the order of the links' names.
    pub links: Vec<(LinkDirection, PortState)>,
    /// The open connections.
    pub flows: Vec<FlowState>,
    /// By class: application bytes that clients have received so far in the measured span.
    pub received: Vec<u64>,
}

/// A world of any kind, one stretch of time after another.
pub(crate) trait Steps {
    /// Handles everything that happens before `time`, and at most up to the end of the measured
    /// span.
    fn run_until(&mut self, time: Time) -> Result<(), RunError>;

    /// Makes the changes of the schedule whose time is now: they come before others of this time.
    fn change_due(&mut self, now: Time) -> Result<(), ScenarioError>;

    /// Changes something, at a time before which everything has happened, and nothing of it.
    fn change(&mut self, change: Change) -> Result<(), ScenarioError>;

    /// What has changed, and what is still to change.
    fn changes(&self) -> Vec<Change>;

    /// The keys that can change.
    fn changeable(&self) -> Vec<String>;

    /// What the world does at `time`, before which everything has happened, and nothing of it.
    fn observe(&mut self, time: Time) -> Observation;

    /// By class: what its users got so far, where it keeps an account of that.
    fn quality(&self, time: Time) -> Vec<Option<Quality>>;

    /// Ends the run at the end of the measured span, which time has reached: writes what is left of
    /// the records, and sums up.
    fn end(self: Box<Self>, scenario: &Scenario) -> Result<Summary, RunError>;
}

impl<E: Engine> Steps for World<E> {
    fn run_until(&mut self, time: Time) -> Result<(), RunError> {
        let end = time.min(self.span.end);
        while let Some(change) = self.schedule.next()
            && change < end
        {
            self.advance(change)?;
            self.change_next()?;
        }
        self.advance(end)?;
        self.watch.check()
    }

    fn change_due(&mut self, now: Time) -> Result<(), ScenarioError> {
        while self.schedule.next() == Some(now) {
            if let Some(change) = self.schedule.due.pop_front() {
                self.change(change)?;
            }
        }
        Ok(())
    }

    fn change(&mut self, mut change: Change) -> Result<(), ScenarioError> {
        let state = &mut self.schedule.state;
        let mut changed = state.change(&change.key, &change.value);
        if changed.as_ref().is_err_and(|error| error.path.is_empty())
            && let Some(full) = state.full(&change.key)
        {
            change.key = full;
            changed = state.change(&change.key, &change.value);
        }
        let Some(changed) = changed? else {
            return Ok(());
        };
        let now = change.at.expect("its time has come");
        // One that a phase causes comes again in a run of the same scenario.
        if change.when.is_none() {
            self.schedule.done.push(change);
        }
        // In the run of the scenario that this makes, all ports store their packets.
        self.schedule.computing.clear();
        self.schedule.uncounted = 0;
        self.record_samples_before(now);
        match changed {
            Changed::Link { port, change } => {
                self.network.change_port(now, port, &change);
            }
            Changed::Population { class, population } => {
                self.now = now;
                let source = &mut self.classes[class].source;
                let can = source.set_population(population, now, &mut self.actions);
                debug_assert!(can, "the scenario says which populations can change");
                self.act(class);
            }
            Changed::CongestionControl { class, controls } => {
                self.connections.set_controls(class, controls);
            }
        }
        Ok(())
    }

    fn changes(&self) -> Vec<Change> {
        let Schedule { done, due, .. } = &self.schedule;
        let stated = done.iter().chain(due).chain(self.watch.changes());
        stated.cloned().collect()
    }

    fn changeable(&self) -> Vec<String> {
        self.schedule.state.keys()
    }

    fn observe(&mut self, time: Time) -> Observation {
        self.record_samples_before(time);
        let open: Vec<u32> = self.connections.iter().map(|(index, _)| index).collect();
        let flows = open.into_iter().filter_map(|index| {
            let (class, probe) = self.connections.probe(index, Role::Server, time)?;
            let connection = self.connections.get(index)?;
            Some(FlowState {
                flow: self.network.routes(index).flow(),
                class,
                received: connection.app.received().0,
                retransmitted: connection.ends.retransmissions().data.into(),
                probe,
            })
        });
        let flows = flows.collect();
        Observation {
            time,
            links: self.network.observe(time),
            flows,
            received: self.received(),
        }
    }

    fn quality(&self, time: Time) -> Vec<Option<Quality>> {
        let classes = self.classes.iter();
        classes.map(|class| class.source.quality(time)).collect()
    }

    fn end(mut self: Box<Self>, scenario: &Scenario) -> Result<Summary, RunError> {
        self.close()?;
        // What is computed ahead of a queue that is short counts as what it stands for.
        let computed = self.network.computed_departures();
        let events = self.events + computed - self.schedule.uncounted();
        let mut links = self.network.finish(&mut self.metrics)?;
        self.metrics.finish(scenario, &mut links, events)
    }
}

impl<E: Engine> World<E> {
    /// Makes the next change of the schedule, whose time has come.
    pub(super) fn change_next(&mut self) -> Result<(), RunError> {
        let Some(change) = self.schedule.due.pop_front() else {
            return Ok(());
        };
        self.change(change).map_err(|error| wrong(&error))
    }

    /// Ports that are looked at take their samples up to then: those of earlier checkpoints are
    /// written out before, so that rows have the order that they would have had.
    pub(super) fn record_samples_before(&mut self, time: Time) {
        while self.checkpoint < time {
            self.record_samples();
        }
    }

    /// The connection of a class with this token ends at `now`, at both ends.
    pub(super) fn end_connection(&mut self, class: usize, token: u32) {
        let mut open = self.connections.of_class(class);
        let found = open.find(|(_, connection)| connection.app.token == token);
        if let Some(index) = found.map(|(index, _)| index) {
            let (kind, now) = (Kind::Stop, self.now);
            let network = &mut self.network;
            self.connections.push(kind, index, now, network);
        }
    }

    /// The time has come for a connection to end.
    #[cold]
    pub(super) fn stop(&mut self, time: Time, event: &Event) {
        if let Some(now) = self.connections.on_resume(time, event, &self.network) {
            self.now = now;
            if let Some(connection) = self.connections.get_mut(event.conn) {
                connection.stop(now);
            }
            self.report(event.conn);
            self.release_if_over(event.conn);
        }
    }

    /// By class, of connections that have ended, of open ones, and of flows of datagrams.
    fn received(&self) -> Vec<u64> {
        let classes = self.metrics.classes().iter();
        let mut received: Vec<u64> = classes.map(|it| it.flows().measured_bytes()).collect();
        for (_, connection) in self.connections.iter() {
            received[usize::from(connection.class)] += connection.app.measured_bytes;
        }
        for (class, bytes) in self.datagrams.received() {
            received[class] += bytes;
        }
        received
    }
}
