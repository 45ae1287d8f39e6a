//! Packets that a discipline lets go whatever comes behind them: when they leave is computed when
//! they come, and they need not be stored.
//!
//! CoDel signals nobody and remembers nothing while packets wait for less than its target. How long
//! a packet waits behind such packets is known when it comes. So as long as the queue is short,
//! nothing needs to be decided on departure. The first packet that would wait for longer ends this:
//! it and those behind it are stored, until nothing is stored any more.

use aqmlab_aqm::{Backlog, Queue, Room};
use aqmlab_net::{Packet, Time};
use aqmlab_record::LinkStats;

use crate::ring_buffer::RingBuffer;
use crate::wire::{Transmission, Wire};

/// A packet that waits: when it leaves, and its size.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    at: Time,
    size: u32,
}

/// The packets that wait, but whose departures are computed.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Packets that wait for less than this need not be stored.
    bound: Time,
    /// What may wait.
    room: Room,
    /// Nothing is stored.
    is_alone: bool,
    /// The wire falls free of those whose departures are computed.
    free_at: Time,
    waiting: RingBuffer<Leaving>,
    /// What waits; some of them may have left.
    backlog: Backlog,
    /// Departures for which nobody is woken, up to now or later.
    computed: u64,
}

impl Ahead {
    /// `bound` as [`Queue::passes_below`] has it, `room` as [`Queue::room`] has it.
    pub(crate) fn new(bound: Time, room: Room) -> Self {
        Self {
            bound,
            room,
            is_alone: bound > Time::ZERO,
            free_at: Time::ZERO,
            waiting: RingBuffer::new(),
            backlog: Backlog::default(),
            computed: 0,
        }
    }

    /// Departures for which nobody is woken: of all that were let go.
    pub(crate) const fn computed(&self) -> u64 {
        self.computed
    }

    /// One more: of a packet that was stored.
    pub(crate) const fn count_departure(&mut self) {
        self.computed += 1;
    }

    /// Somebody is woken when the last of them departs: when that is.
    pub(crate) const fn wake_last(&mut self) -> Time {
        self.computed -= 1;
        self.free_at
    }

    /// Whether no packets are stored, and the next may be let go.
    #[inline(always)]
    pub(crate) const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// When the wire falls free of its packets.
    pub(crate) const fn free_at(&self) -> Time {
        self.free_at
    }

    /// What has not left by `now`.
    #[inline]
    pub(crate) fn leave(&mut self, now: Time) -> Backlog {
        while let Some(first) = self.waiting.front() {
            if first.at > now {
                break;
            }
            self.waiting.pop();
            self.backlog.remove(first.size);
        }
        self.backlog
    }

    /// What has not left by the time at which somebody asked last.
    pub(crate) const fn last_backlog(&self) -> Backlog {
        self.backlog
    }

    /// A packet comes: what becomes of it, if it can be let go. Else all that come are stored from
    /// now on.
    #[inline(always)]
    pub(crate) fn pass<T>(
        &mut self,
        now: Time,
        (packet, class): (Packet, u16),
        queue: &mut Queue<T>,
        wire: &mut Wire,
        stats: &mut LinkStats,
    ) -> Option<Transmission> {
        let begin = self.free_at.max(now);
        let is_short = begin - now < self.bound;
        if !(is_short && self.has_room(now, packet.size, stats)) {
            self.is_alone = false;
            return None;
        }
        queue.pass(now, packet.size);
        self.computed += 1;
        let end = begin + wire.transmission_time(packet.size);
        self.free_at = end;
        if begin > now {
            self.backlog.add(packet.size);
            self.waiting.push(Leaving {
                at: begin,
                size: packet.size,
            });
            stats.on_length(now, self.backlog.packets);
        }
        stats.on_transit(now, begin, (begin, end), (class, packet.size));
        Some(wire.carry(end, packet.ecn, stats))
    }

    /// Whether a packet fits. Those that have left are forgotten when it matters.
    #[inline(always)]
    fn has_room(&mut self, now: Time, size: u32, stats: &LinkStats) -> bool {
        if self.free_at <= now {
            self.waiting.clear();
            self.backlog = Backlog::default();
            return self.room.admits(self.backlog, size);
        }
        let fits = self.room.admits(self.backlog, size);
        if fits & !stats.is_longest(self.backlog.packets + 1) {
            return true;
        }
        self.leave(now);
        self.room.admits(self.backlog, size)
    }

    /// Nothing is stored any more, and the wire falls free then.
    #[inline(always)]
    pub(crate) const fn resume(&mut self, free_at: Time) {
        self.is_alone = true;
        self.free_at = free_at;
    }
}
