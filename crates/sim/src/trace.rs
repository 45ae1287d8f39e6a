//! The inner state of chosen connections over time.

use aqmlab_net::Time;
use aqmlab_scenario::FlowTrace;
use aqmlab_traffic::Script;

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
    pub(crate) fn wants(&mut self, class: usize, now: Time, script: &Script) -> bool {
        let Some(wanted) = &self.wanted else {
            return false;
        };
        let [_, bytes] = script.bytes();
        let is_wanted = self.taken[class] < wanted.flows
            && now >= wanted.after
            && bytes >= wanted.min_response.0;
        self.taken[class] += u32::from(is_wanted);
        is_wanted
    }

    pub(crate) fn follow(&mut self, slot: u32) {
        let next_row = Time::ZERO;
        self.followed.push(Followed { slot, next_row });
    }

    pub(crate) fn forget(&mut self, slot: u32) {
        self.followed.retain(|followed| followed.slot != slot);
    }

    /// Whether this connection gets a row now.
    pub(crate) fn is_due(&mut self, slot: u32, now: Time) -> bool {
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
