//! Departures that are computed on arrival.
//!
//! An AQM decides on arrival and the order is first come, first served, so the time at which a
//! packet leaves is known as soon as it is let in. The port keeps the leave times of what waits
//! and forgets what has left when it is next looked at: nothing can see it in between.

use std::collections::VecDeque;

use aqmlab_aqm::{FifoQueue, Outcome};
use aqmlab_net::{Ecn, Packet, Time};
use aqmlab_record::LinkStats;

use crate::ring_buffer::RingBuffer;
use crate::wire::{Transmission, Wire};

/// A packet in the discipline: when it leaves (for the device ring, or the wire), and its size.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    at: Time,
    size: u32,
}

/// An AQM over a FIFO with computed departures.
#[derive(Debug)]
pub(crate) struct AnalyticService {
    fifo: FifoQueue,
    waiting: RingBuffer<Leaving>,
    /// What waits, and since when, for AQMs that hook departures.
    hooked: VecDeque<(Time, Packet)>,
    /// When the last packets, as many as the device ring holds, begin transmission.
    ring: VecDeque<Time>,
    ring_size: usize,
    wire_free: Time,
    /// No tick or sample comes before this.
    observe_at: Time,
}

impl AnalyticService {
    pub(crate) fn new(fifo: FifoQueue, ring_size: usize) -> Self {
        Self {
            fifo,
            waiting: RingBuffer::new(),
            hooked: VecDeque::new(),
            ring: VecDeque::new(),
            ring_size,
            wire_free: Time::ZERO,
            observe_at: Time::ZERO,
        }
    }

    pub(crate) const fn fifo(&self) -> &FifoQueue {
        &self.fifo
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
        if self.wire_free <= now {
            self.fifo.idle(self.wire_free);
        }
        let ecn = match self.fifo.arrive(now, &packet, draw) {
            Outcome::Drop(_) => return Transmission::Dropped,
            Outcome::Mark(_) => Ecn::Ce,
            Outcome::Enqueue => packet.ecn,
        };
        let begin = now.max(self.wire_free);
        let end = begin + wire.transmission_time(packet.size);
        self.wire_free = end;
        let leaves = self.leave_time(now, begin);
        self.waiting.push(Leaving {
            at: leaves,
            size: packet.size,
        });
        if self.fifo.wants_departures() {
            self.hooked.push_back((now, packet));
        }
        stats.on_length(now, self.fifo.backlog().packets - u32::from(leaves == now));
        stats.on_transit(now, leaves, (begin, end), (class, packet.size));
        wire.carry(end, ecn, stats)
    }

    /// When a packet leaves the discipline: when its transmission begins, or, with a device ring
    /// of N packets, when that of the packet N places before it does.
    #[inline(always)]
    fn leave_time(&mut self, now: Time, begin: Time) -> Time {
        if self.ring_size == 0 {
            begin
        } else {
            self.leave_for_ring(now, begin)
        }
    }

    fn leave_for_ring(&mut self, now: Time, begin: Time) -> Time {
        self.ring.push_back(begin);
        if self.ring.len() <= self.ring_size {
            return now;
        }
        self.ring.pop_front().map_or(now, |frees| frees.max(now))
    }

    /// Forgets what has left by `now`; ticks and samples come at their times on the way.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self, now: Time, stats: &mut LinkStats) {
        if self.observe_at <= now {
            self.observe_until(now, stats);
        }
        self.depart_until(now);
    }

    /// The ticks and samples that fall due by `now`.
    #[inline(never)]
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
                stats.on_sample(fifo.backlog(), fifo.counters(), |out| fifo.probe(out));
            }
        }
    }

    #[inline(always)]
    fn depart_until(&mut self, now: Time) {
        while let Some(first) = self.waiting.front()
            && first.at <= now
        {
            self.waiting.pop();
            if self.fifo.wants_departures() {
                self.depart_hooked(first.at);
            } else {
                self.fifo.release(first.size);
            }
        }
    }

    #[inline(never)]
    fn depart_hooked(&mut self, now: Time) {
        if let Some((arrived, packet)) = self.hooked.pop_front() {
            self.fifo.depart(now, &packet, arrived);
        }
    }
}
