//! Departures that are computed on arrival.
//!
//! An AQM decides on arrival and the order is first come, first served, so the time at which a
//! packet leaves is known as soon as it is let in. The port keeps the leave times of what waits
//! and forgets what has left when it is next looked at: nothing can see it in between.

use std::collections::VecDeque;

use aqmlab_aqm::{FifoQueue, Outcome, Reason};
use aqmlab_net::{Ecn, Packet, Time};
use aqmlab_record::LinkStats;

use crate::ring_buffer::{Leaving, RingBuffer};
use crate::wire::{Transmission, Wire};

/// An AQM over a FIFO with computed departures.
#[derive(Debug)]
pub(crate) struct FifoService {
    fifo: FifoQueue,
    waiting: RingBuffer<Leaving>,
    /// What waits, and since when, for AQMs that hook departures.
    hooked: VecDeque<(Time, Packet)>,
    /// When the last packets, as many as the device ring holds, begin transmission.
    ring: VecDeque<Time>,
    ring_size: usize,
    /// The driver refills the ring in batches.
    batch: Option<Batch>,
    /// No device ring, and no hook on departures.
    is_plain: bool,
    /// Besides, no AQM judges arrivals: packets that have left are forgotten only when it matters.
    is_lazy: bool,
    wire_free: Time,
    /// When the last packet left the discipline, where that may be before its transmission.
    last_left: Time,
    /// The next tick or sample comes at this time or later.
    observe_at: Time,
    /// The next tick, sample or departure comes at this time or later.
    quiet_until: Time,
}

/// Packets that enter the device ring together.
#[derive(Debug)]
struct Batch {
    size: usize,
    /// When the present one does.
    leaves: Time,
    /// How many packets may still join it.
    room: usize,
}

impl FifoService {
    /// `ring_size` places, refilled when `batch` of them are free.
    pub(crate) fn new(fifo: FifoQueue, [ring_size, batch]: [usize; 2]) -> Self {
        Self {
            is_plain: ring_size == 0 && !fifo.wants_departures(),
            is_lazy: ring_size == 0 && fifo.only_limits(),
            fifo,
            waiting: RingBuffer::new(),
            hooked: VecDeque::new(),
            ring: VecDeque::new(),
            ring_size,
            batch: (batch > 1).then_some(Batch {
                size: batch,
                leaves: Time::ZERO,
                room: 0,
            }),
            wire_free: Time::ZERO,
            last_left: Time::ZERO,
            observe_at: Time::ZERO,
            quiet_until: Time::ZERO,
        }
    }

    pub(crate) const fn fifo(&self) -> &FifoQueue {
        &self.fifo
    }

    /// Its parameters may change: what is due is looked up again.
    pub(crate) const fn fifo_mut(&mut self) -> &mut FifoQueue {
        (self.observe_at, self.quiet_until) = (Time::ZERO, Time::ZERO);
        &mut self.fifo
    }

    /// When the last of the packets will have been sent.
    pub(crate) const fn wire_free(&self) -> Time {
        self.wire_free
    }

    /// When the packet that was sent last leaves the discipline; its transmission begins then.
    pub(crate) const fn last_left(&self, begin: Time) -> Time {
        if self.ring_size == 0 {
            return begin;
        }
        self.last_left
    }

    pub(crate) const fn has_ring(&self) -> bool {
        self.ring_size > 0
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        (packet, class): (Packet, u16),
        wire: &mut Wire,
        stats: &mut LinkStats,
        draw: &mut impl FnMut() -> f64,
    ) -> Transmission {
        let is_idle = self.wire_free <= now;
        let begin = if is_idle { now } else { self.wire_free };
        let ecn = if self.is_lazy {
            if !self.admit(now, packet.size, is_idle, stats) {
                return Transmission::Dropped(Reason::OVERFLOW);
            }
            packet.ecn
        } else {
            if is_idle {
                self.fifo.idle(self.wire_free);
            }
            match self.fifo.arrive(now, &packet, draw) {
                Outcome::Drop(reason) => return Transmission::Dropped(reason),
                Outcome::Mark(_) => Ecn::Ce,
                Outcome::Enqueue => packet.ecn,
            }
        };
        let end = begin + wire.transmission_time(packet.size);
        self.wire_free = end;
        let mut leaves = begin;
        if !self.is_plain {
            leaves = self.keep(now, begin, &{ packet }, stats);
        } else if leaves > now {
            stats.on_length(now, self.fifo.backlog().packets);
            self.wait(leaves, packet.size);
        } else if !self.is_lazy {
            self.fifo.release(packet.size);
        }
        stats.on_transit(now, leaves, (begin, end), (class, packet.size));
        wire.carry(end, ecn, stats)
    }

    /// Whether a packet of this size is let in, by a queue that [only
    /// limits](FifoQueue::only_limits). Its backlog may contain packets that have left, and so is an
    /// upper bound. If the bound leaves room and sets no new maximum, the exact count does the same.
    #[inline(always)]
    fn admit(&mut self, now: Time, size: u32, is_idle: bool, stats: &LinkStats) -> bool {
        if is_idle {
            self.waiting.clear();
            self.fifo.release_all();
        } else if !self.fifo.has_room(size) || stats.is_longest(self.fifo.backlog().packets + 1) {
            self.depart_until(now);
        }
        self.fifo.admit(size, !is_idle)
    }

    /// A packet of this size waits until it `leaves`.
    #[inline(always)]
    fn wait(&mut self, leaves: Time, size: u32) {
        self.waiting.push(Leaving { at: leaves, size });
        if !self.is_lazy {
            self.quiet_until = self.quiet_until.min(leaves);
        }
    }

    /// A packet that is let in stays, if only until the hook on departures can be called. When it
    /// leaves.
    fn keep(&mut self, now: Time, begin: Time, packet: &Packet, stats: &mut LinkStats) -> Time {
        let leaves = self.leave_time(now, begin);
        let is_hooked = self.fifo.wants_departures();
        if leaves > now {
            stats.on_length(now, self.fifo.backlog().packets);
        } else if !is_hooked {
            self.fifo.release(packet.size);
            return leaves;
        }
        self.wait(leaves, packet.size);
        if is_hooked {
            self.hooked.push_back((now, *packet));
        }
        leaves
    }

    /// When a packet leaves the discipline: when its transmission begins, or, with a device ring
    /// of N packets, when that of the packet N places before it does. In batches: when that of the
    /// packet N places before the last of its batch does.
    fn leave_time(&mut self, now: Time, begin: Time) -> Time {
        if self.ring_size == 0 {
            return begin;
        }
        self.last_left = self.leave_time_into_ring(now, begin);
        self.last_left
    }

    fn leave_time_into_ring(&mut self, now: Time, begin: Time) -> Time {
        self.ring.push_back(begin);
        if self.ring.len() <= self.ring_size {
            return now;
        }
        if let Some(batch) = &mut self.batch {
            let is_full = self.ring[0] > now;
            let others_wait = batch.leaves > now;
            if others_wait && batch.room > 0 {
                batch.room -= 1;
            } else if others_wait || is_full {
                batch.leaves = self.ring[batch.size - 1];
                batch.room = batch.size - 1;
            } else {
                batch.leaves = now;
            }
            self.ring.pop_front();
            return batch.leaves;
        }
        self.ring.pop_front().map_or(now, |frees| frees.max(now))
    }

    /// Brings everything up to `now`: what has left is forgotten; ticks and samples come at their
    /// times on the way.
    pub(crate) fn catch_up(&mut self, now: Time, stats: &mut LinkStats) {
        if self.observe_at <= now {
            self.observe_until(now, stats);
        }
        let next = self.depart_until(now);
        let departure = if self.is_lazy { Time::NEVER } else { next };
        self.quiet_until = departure.min(self.observe_at);
    }

    /// The same before an arrival, as far as it matters for that.
    #[inline(always)]
    pub(crate) fn catch_up_with_arrival(&mut self, now: Time, stats: &mut LinkStats) {
        if self.quiet_until > now {
            return;
        }
        if self.is_lazy {
            return self.catch_up(now, stats);
        }
        if self.observe_at <= now {
            self.observe_until(now, stats);
        }
        let next = self.depart_until(now);
        self.quiet_until = next.min(self.observe_at);
    }

    /// The ticks and samples that fall due by `now`.
    fn observe_until(&mut self, now: Time, stats: &mut LinkStats) {
        loop {
            let (tick, sample) = (self.fifo.next_tick(), stats.next_sample());
            let time = tick.min(sample);
            if time > now {
                self.observe_at = time;
                break;
            }
            self.depart_until(time);
            if tick <= sample {
                self.fifo.tick();
            } else {
                let fifo = &self.fifo;
                stats.on_sample(fifo.backlog(), || fifo.counters(), |out| fifo.probe(out));
            }
        }
    }

    /// What leaves by `now` has left. When the next does.
    #[inline(always)]
    fn depart_until(&mut self, now: Time) -> Time {
        loop {
            let Some(first) = self.waiting.front() else {
                return Time::NEVER;
            };
            if first.at > now {
                return first.at;
            }
            self.waiting.pop();
            if self.is_plain || !self.fifo.wants_departures() {
                self.fifo.release(first.size);
            } else {
                self.depart_hooked(first.at);
            }
        }
    }

    fn depart_hooked(&mut self, now: Time) {
        if let Some((arrived, packet)) = self.hooked.pop_front() {
            self.fifo.depart(now, &packet, arrived);
        }
    }
}
