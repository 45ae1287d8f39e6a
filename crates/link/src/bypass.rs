//! Packets that bypass a queue: their departures are computed on arrival, and the port does not
//! store them.
//!
//! CoDel signals no packet and remembers nothing while packets wait for less than its target. How
//! long a packet waits behind such packets is known when it arrives. So as long as the queue is
//! short, nothing needs to be decided on departure. The first packet that would wait for longer
//! closes the bypass: it and those behind it are stored, until nothing is stored any more.

use aqmlab_aqm::{Backlog, Queue, Room};
use aqmlab_net::{Packet, Time};
use aqmlab_record::LinkStats;

use crate::ring_buffer::{Leaving, RingBuffer};
use crate::wire::{Transmission, Wire};

/// The way past a queue, and the packets on it.
#[derive(Debug)]
pub(crate) struct Bypass {
    /// Packets that wait for less than this may take it.
    below: Time,
    /// What may wait.
    room: Room,
    /// Nothing is stored.
    is_open: bool,
    /// When the last packet on it leaves the wire.
    free_at: Time,
    waiting: RingBuffer<Leaving>,
    /// The packets in `waiting`, of which some may have left.
    backlog: Backlog,
    /// Departures for which the port is not woken, up to now or later.
    computed: u64,
}

impl Bypass {
    /// `below` is [`Queue::bypass_below`], `room` is [`Queue::bypass_room`].
    pub(crate) fn new(below: Time, room: Room) -> Self {
        Self {
            below,
            room,
            is_open: below > Time::ZERO,
            free_at: Time::ZERO,
            waiting: RingBuffer::new(),
            backlog: Backlog::default(),
            computed: 0,
        }
    }

    /// Departures for which the port is not woken: those of all packets that took the bypass.
    pub(crate) const fn computed(&self) -> u64 {
        self.computed
    }

    /// Counts a stored packet for whose departure the port is not woken.
    pub(crate) const fn count_departure(&mut self) {
        self.computed += 1;
    }

    /// When the last of its packets departs. The port is woken for that departure.
    pub(crate) const fn wake_for_last(&mut self) -> Time {
        self.computed -= 1;
        self.free_at
    }

    /// Whether nothing is stored, and the next packet may bypass the queue.
    #[inline(always)]
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// When the last packet on it leaves the wire.
    pub(crate) const fn free_at(&self) -> Time {
        self.free_at
    }

    /// What waits after all departures up to `now`.
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

    /// What waited at the time of the last [`leave`](Self::leave).
    pub(crate) const fn last_backlog(&self) -> Backlog {
        self.backlog
    }

    /// A packet arrives: what becomes of it, if it bypasses the queue. Else the bypass closes.
    #[inline(always)]
    pub(crate) fn take<T>(
        &mut self,
        now: Time,
        (packet, class): (Packet, u16),
        queue: &mut Queue<T>,
        wire: &mut Wire,
        stats: &mut LinkStats,
    ) -> Option<Transmission> {
        let begin = self.free_at.max(now);
        let is_short = begin - now < self.below;
        if !(is_short && self.has_room(now, packet.size, stats)) {
            self.is_open = false;
            return None;
        }
        queue.count_bypassed(now, packet.size);
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

    /// Whether a packet fits. The bypass forgets packets that have left only when it matters.
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

    /// Nothing is stored any more, and the wire falls free at `free_at`.
    #[inline(always)]
    pub(crate) const fn reopen(&mut self, free_at: Time) {
        self.is_open = true;
        self.free_at = free_at;
    }
}
