//! The inner state of chosen connections over time.

use aqmlab_net::{Role, Time};
use aqmlab_record::TraceRow;
use aqmlab_scenario::FlowTrace;
use aqmlab_traffic::Script;

use crate::event_queue::EventQueue;
use crate::limits;
use crate::world::World;

/// Which connections are followed, and when each had its last row.
#[derive(Debug)]
pub(crate) struct Tracer {
    wanted: Option<FlowTrace>,
    /// How many connections of each class are chosen already.
    taken: Vec<u32>,
    /// The connections that are followed just now.
    followed: Vec<Followed>,
}

#[derive(Debug)]
struct Followed {
    slot: u32,
    next_row: Time,
}

impl Tracer {
    pub(crate) fn new(wanted: Option<FlowTrace>, classes: usize) -> Self {
        Self {
            wanted,
            taken: vec![0; classes],
            followed: Vec::new(),
        }
    }

    /// Whether a connection that opens now is to be followed.
    pub(crate) fn takes(&mut self, class: usize, now: Time, script: &Script) -> bool {
        let Some(wanted) = &self.wanted else {
            return false;
        };
        let [_, bytes] = script.bytes();
        let takes = self.taken[class] < wanted.flows
            && now >= wanted.after
            && bytes >= wanted.min_response.0;
        self.taken[class] += u32::from(takes);
        takes
    }

    pub(crate) fn follow(&mut self, slot: u32) {
        let next_row = Time::ZERO;
        self.followed.push(Followed { slot, next_row });
    }

    pub(crate) fn forget(&mut self, slot: u32) {
        self.followed.retain(|followed| followed.slot != slot);
    }

    /// Whether this connection gets a row now.
    fn is_due(&mut self, slot: u32, now: Time) -> bool {
        let period = self
            .wanted
            .as_ref()
            .map_or(Time::NEVER, |wanted| wanted.period);
        let mut followed = self.followed.iter_mut();
        match followed.find(|followed| followed.slot == slot) {
            Some(followed) if followed.next_row <= now => {
                followed.next_row = now + period;
                true
            }
            _ => false,
        }
    }
}

impl<A: EventQueue> World<A> {
    /// Something has happened at this end of a connection that is followed.
    #[cold]
    pub(crate) fn trace(&mut self, index: u32, side: Role) {
        if side == Role::Client || !self.tracer.is_due(index, self.now) {
            return;
        }
        if let Some(connection) = &self.slots[index as usize].connection {
            let overrides = connection.overrides.as_deref();
            let profile = limits::profile(&self.classes, connection.class, overrides, side);
            self.metrics.trace(&TraceRow {
                flow: self.network.routes[index as usize].flow(),
                class: usize::from(connection.class),
                time: self.now,
                probe: connection.ends[side as usize].probe(profile),
            });
        }
    }
}
