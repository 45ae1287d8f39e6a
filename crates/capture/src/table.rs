//! Live connections: found by their ends, aborted when they fall silent.
//!
//! Memory is what the live ones need: they stand in blocks that never move, are found through a
//! table of numbers, and are queued by phase to be looked at when their time-out may have come.

use aqmlab_net::Time;
use hashbrown::HashTable;

use crate::connection::{Connection, Ends, Phase};

/// Connections in a block.
const BLOCK: usize = 1024;

const NONE: u32 = u32::MAX;

/// Places of connections are numbers.
pub(crate) type Place = u32;

/// All live connections.
pub(crate) struct Table {
    places: HashTable<Place>,
    slots: Slots,
    /// Taken places whose connections are gone.
    free: Vec<Place>,
    /// By phase, in the order in which they were queued.
    queues: [Queue; 4],
    timeouts: [Time; 4],
}

struct Slots(Vec<Vec<Slot>>);

struct Slot {
    connection: Connection,
    queue: u8,
    before: Place,
    behind: Place,
    queued: Time,
}

#[derive(Clone, Copy)]
struct Queue {
    first: Place,
    last: Place,
}

impl Slots {
    #[inline]
    fn at(&self, place: Place) -> &Slot {
        &self.0[place as usize / BLOCK][place as usize % BLOCK]
    }

    #[inline]
    fn at_mut(&mut self, place: Place) -> &mut Slot {
        &mut self.0[place as usize / BLOCK][place as usize % BLOCK]
    }

    /// Adds a slot behind the others.
    fn push(&mut self, slot: Slot) -> Place {
        if self.0.last().is_none_or(|block| block.len() == BLOCK) {
            self.0.push(Vec::with_capacity(BLOCK));
        }
        let blocks = self.0.len();
        let block = self.0.last_mut().expect("there is one now");
        block.push(slot);
        ((blocks - 1) * BLOCK + block.len() - 1) as Place
    }
}

impl Table {
    /// An empty table; time-outs by [`Phase`].
    pub(crate) fn new(timeouts: [Time; 4]) -> Self {
        Self {
            places: HashTable::new(),
            slots: Slots(Vec::new()),
            free: Vec::new(),
            queues: [Queue {
                first: NONE,
                last: NONE,
            }; 4],
            timeouts,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    #[inline]
    pub(crate) fn find(&self, ends: &Ends) -> Option<Place> {
        let is_same = |&place: &Place| self.slots.at(place).connection.ends == *ends;
        self.places.find(hash(ends), is_same).copied()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> &mut Connection {
        &mut self.slots.at_mut(place).connection
    }

    pub(crate) fn insert(&mut self, connection: Connection, now: Time) -> Place {
        let ends = connection.ends;
        let slot = Slot {
            queue: connection.phase as u8,
            connection,
            before: NONE,
            behind: NONE,
            queued: now,
        };
        let place = match self.free.pop() {
            Some(place) => {
                *self.slots.at_mut(place) = slot;
                place
            }
            None => self.slots.push(slot),
        };
        let slots = &self.slots;
        self.places.insert_unique(hash(&ends), place, |&place| {
            hash(&slots.at(place).connection.ends)
        });
        self.append(place, now);
        place
    }

    pub(crate) fn remove(&mut self, place: Place) {
        self.detach(place);
        let ends = self.slots.at(place).connection.ends;
        if let Ok(found) = self.places.find_entry(hash(&ends), |&other| other == place) {
            found.remove();
        }
        self.free.push(place);
    }

    /// Moves a connection whose phase has changed to the queue of its new one.
    #[inline]
    pub(crate) fn requeue(&mut self, place: Place, now: Time) {
        let slot = self.slots.at(place);
        if slot.queue != slot.connection.phase as u8 {
            self.detach(place);
            self.append(place, now);
        }
    }

    /// A connection that has been silent for longer than its phase's time-out, if one is due. It
    /// may take up to twice the time-out until a connection is.
    pub(crate) fn expired(&mut self, now: Time) -> Option<Place> {
        for (queue, timeout) in self.timeouts.into_iter().enumerate() {
            while self.queues[queue].first != NONE {
                let place = self.queues[queue].first;
                let slot = self.slots.at(place);
                if slot.queued.saturating_add(timeout) > now {
                    break;
                }
                if slot.connection.last.saturating_add(timeout) <= now {
                    return Some(place);
                }
                self.detach(place);
                self.append(place, now);
            }
        }
        None
    }

    /// Any connection, as long as there are some.
    pub(crate) fn any(&self) -> Option<Place> {
        let mut firsts = self.queues.iter().map(|queue| queue.first);
        firsts.find(|&place| place != NONE)
    }

    fn append(&mut self, place: Place, now: Time) {
        let slot = self.slots.at_mut(place);
        slot.queue = slot.connection.phase as u8;
        slot.queued = now;
        let queue = &mut self.queues[usize::from(slot.queue)];
        (slot.before, slot.behind) = (queue.last, NONE);
        let last = std::mem::replace(&mut queue.last, place);
        match last {
            NONE => queue.first = place,
            last => self.slots.at_mut(last).behind = place,
        }
    }

    fn detach(&mut self, place: Place) {
        let Slot {
            queue,
            before,
            behind,
            ..
        } = *self.slots.at(place);
        let queue = &mut self.queues[usize::from(queue)];
        match before {
            NONE => queue.first = behind,
            before => self.slots.at_mut(before).behind = behind,
        }
        match behind {
            NONE => queue.last = before,
            behind => self.slots.at_mut(behind).before = before,
        }
    }
}

// A closed connection is kept without its ADUs.
const _: () = assert!(Phase::Over as usize == 3);

/// Multiplicative hashing, each step with the high bits folded into the low ones.
#[inline]
fn hash(ends: &Ends) -> u64 {
    /// 2^64 over the golden ratio.
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let [one, two] = ends.0;
    let ports = u64::from(one.port) << 16 | u64::from(two.port);
    let words = [
        one.address[0] ^ two.address[0].rotate_left(32),
        one.address[1],
        two.address[1],
        ports,
    ];
    words.into_iter().fold(0, |hash, word| {
        let product = (hash ^ word).wrapping_mul(MULTIPLIER);
        product ^ product >> 32
    })
}
