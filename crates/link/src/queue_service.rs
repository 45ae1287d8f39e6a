//! Packets that are stored and leave one after another when the wire falls free.
//!
//! For disciplines that decide on departure, keep several queues or take packets out of the middle,
//! and for links whose rate changes. There is at most one transmission at a time, so one register,
//! the time at which the wire falls free, replaces events. Packets that [`Bypass`] the queue are not
//! stored.

use std::collections::VecDeque;

use aqmlab_aqm::{Backlog, Context, Counters, Holder, Queue, Queued};
use aqmlab_net::{Ecn, Packet, Rate, Time};
use aqmlab_record::LinkStats;

use crate::bypass::Bypass;
use crate::gate::Gate;
use crate::wire::{Dropped, Transmission, Wire};

/// What a discipline keeps with a packet, on a wire and on the air: one type, so that the compiler
/// makes each discipline once.
#[derive(Debug)]
pub(crate) struct Item<T> {
    /// What the packet is to the owner of the port or of the air.
    pub(crate) item: T,
    /// Number of its class of traffic.
    pub(crate) class: u16,
    /// Its station on the air; 0 on a wire.
    pub(crate) station: u16,
}

/// A discipline with its packets, the device ring, and the state of the wire.
#[derive(Debug)]
pub(crate) struct QueueService<T> {
    queue: Queue<Item<T>>,
    /// Packets that need not be stored.
    bypass: Bypass,
    /// There may be some.
    computes: bool,
    /// Some of them may still wait, and packets are stored behind them.
    has_bypassed: bool,
    /// The first departure that is not computed is to be noted.
    has_woken: bool,
    /// The device ring, and when each packet entered it.
    ring: VecDeque<(Time, Queued<Item<T>>)>,
    /// When the packet on the wire left the discipline, where there is a ring.
    last_left: Time,
    ring_size: usize,
    /// So many places must be free before the ring is filled again.
    batch: usize,
    /// When the link may send, where it cannot always.
    gate: Option<Box<Gate>>,
    /// There is neither ring nor gate.
    is_plain: bool,
    /// The last arrival found an empty queue: it need not wait for a batch.
    came_first: bool,
    /// Changes of the link's rate that are still to come.
    changes: VecDeque<(Time, Rate)>,
    /// When the transmission under way ends, or the discipline's shaper lets the next packet go;
    /// [`Time::NEVER`]: there is none.
    busy_until: Time,
    /// It is a shaper that holds the wire until then, not a transmission.
    is_held: bool,
    /// Packets that wait in the discipline.
    waiting: u32,
    /// Up to when they are accounted for.
    accounted: Time,
    /// The next change of the rate, tick or sample comes at this time or later.
    observe_at: Time,
}

impl<T> QueueService<T> {
    /// A device ring of so many places, refilled when a batch of them is free. Departures are
    /// computed where that is possible if it is `computing`; `gate` says when the link may send.
    pub(crate) fn new(
        mut queue: Queue<Item<T>>,
        ([ring_size, batch], changes): ([usize; 2], VecDeque<(Time, Rate)>),
        (computing, gate): (bool, Option<Gate>),
    ) -> Self {
        // No dequeue comes before the first arrival, but the wire is quiet.
        queue.idle(Time::ZERO);
        let bound = match computing && ring_size == 0 {
            true => queue.bypass_below(),
            false => Time::ZERO,
        };
        let bypass = Bypass::new(bound, queue.bypass_room());
        Self {
            queue,
            bypass,
            computes: bound > Time::ZERO,
            has_bypassed: false,
            has_woken: false,
            ring: VecDeque::new(),
            last_left: Time::ZERO,
            ring_size,
            batch,
            is_plain: ring_size == 0 && gate.is_none(),
            gate: gate.map(Box::new),
            came_first: false,
            changes,
            busy_until: Time::NEVER,
            is_held: false,
            waiting: 0,
            accounted: Time::ZERO,
            observe_at: Time::ZERO,
        }
    }

    pub(crate) const fn queue(&self) -> &Queue<Item<T>> {
        &self.queue
    }

    /// Whether departures may be computed.
    pub(crate) const fn computes(&self) -> bool {
        self.computes
    }

    /// How many departures before `end` were computed, so that the port was not woken for them.
    pub(crate) fn computed_departures(&mut self, end: Time) -> u64 {
        let last = end.saturating_sub(Time::from_nanos(1));
        let waiting = u64::from(self.bypass.leave(last).packets);
        let is_busy = self.bypass.free_at() >= end;
        // Once packets are stored, the departure of the last one wakes.
        let wakes = is_busy && !self.bypass.is_open();
        self.bypass.computed() + u64::from(wakes) - u64::from(is_busy) - waiting
    }

    /// When the wire falls free of what is on it, or of packets whose departures are computed.
    pub(crate) fn wire_free(&self, now: Time) -> Time {
        match self.busy_until {
            Time::NEVER => self.bypass.free_at().max(now),
            busy_until => busy_until,
        }
    }

    /// When the packet that was sent last left the discipline; its transmission began then.
    pub(crate) const fn last_left(&self, begin: Time) -> Time {
        if self.ring_size == 0 {
            return begin;
        }
        self.last_left
    }

    /// Which part of the discipline held the packet that was sent last; behind a device ring nobody
    /// knows.
    pub(crate) fn last_holder(&self) -> Option<Holder> {
        (self.ring_size == 0).then(|| self.queue.last_holder())?
    }

    /// What waits, up to the last look.
    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog().with(self.bypass.last_backlog())
    }

    /// What the discipline has counted, up to the last look.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = self.queue.counters().clone();
        let Backlog { packets, bytes } = self.bypass.last_backlog();
        counters.departed_packets -= u64::from(packets);
        counters.departed_bytes -= bytes;
        counters
    }

    /// What has left by `now` has left.
    pub(crate) fn catch_up(&mut self, now: Time) {
        self.bypass.leave(now);
    }

    /// A packet arrives: what becomes of it, if it bypasses the queue.
    #[inline(always)]
    pub(crate) fn bypass(
        &mut self,
        now: Time,
        packet: (Packet, u16),
        wire: &mut Wire,
        stats: &mut LinkStats,
    ) -> Option<Transmission> {
        if !self.bypass.is_open() {
            return None;
        }
        self.observe_before(now + Time::from_nanos(1), wire, stats);
        let bypassed = self.bypass.take(now, packet, &mut self.queue, wire, stats);
        if bypassed.is_none() {
            self.wake(now);
        }
        bypassed
    }

    /// From now on packets are stored; the wire is busy with those that bypassed the queue.
    #[cold]
    fn wake(&mut self, now: Time) {
        self.has_bypassed = true;
        if self.bypass.free_at() > now {
            self.busy_until = self.bypass.wake_for_last();
            self.has_woken = true;
        }
    }

    /// Nothing is stored, and the wire falls free at `free_at`: whether departures are computed from
    /// now on.
    #[inline]
    fn rest(&mut self, free_at: Time) -> bool {
        let rests = self.computes && self.queue.bypass_below() > Time::ZERO;
        if rests {
            self.bypass.reopen(free_at);
        }
        rests
    }

    /// Whether the next departure is to be noted, although no transmission has begun.
    #[inline(always)]
    pub(crate) fn has_woken(&mut self) -> bool {
        std::mem::take(&mut self.has_woken)
    }

    /// Lets the limit of the queue count the packets that bypassed it and still wait.
    #[cold]
    fn set_bypassed(&mut self, now: Time) {
        let waiting = self.bypass.leave(now);
        self.queue.set_bypassed(waiting);
        self.has_bypassed = waiting.packets > 0;
    }

    /// Its parameters may change: what is due is looked up again.
    pub(crate) const fn queue_mut(&mut self) -> &mut Queue<Item<T>> {
        self.observe_at = Time::ZERO;
        &mut self.queue
    }

    pub(crate) const fn has_ring(&self) -> bool {
        self.ring_size > 0
    }

    /// What is in the device ring, when it left the discipline, and its ECN field.
    pub(crate) fn in_ring(&self) -> impl Iterator<Item = (Time, &T, Ecn)> {
        let ring = self.ring.iter();
        ring.map(|(left, queued)| (*left, &queued.item.item, queued.packet.ecn))
    }

    /// Packets and IP bytes in the device ring.
    pub(crate) fn ring_bytes(&self) -> (u64, u64) {
        let bytes = self.ring.iter().map(|(_, it)| u64::from(it.packet.size));
        (self.ring.len() as u64, bytes.sum())
    }

    pub(crate) fn stored_packets(&self) -> u64 {
        u64::from(self.queue.backlog().packets) + self.ring.len() as u64
    }

    #[inline]
    pub(crate) fn next_departure(&self) -> Time {
        self.busy_until
    }

    #[inline]
    pub(crate) const fn is_held(&self) -> bool {
        self.is_held
    }

    #[inline]
    pub(crate) fn wire_falls_free(&mut self, now: Time, stats: &mut LinkStats) {
        self.account(now, stats);
        self.busy_until = Time::NEVER;
        self.is_held = false;
        self.came_first = false;
    }

    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        (packet, class): (Packet, u16),
        item: T,
        context: &mut impl Context,
        stats: &mut LinkStats,
        dropped: &mut Vec<Dropped<T>>,
    ) {
        self.account(now, stats);
        if self.has_bypassed {
            self.set_bypassed(now);
        }
        let item = Item {
            item,
            class,
            station: 0,
        };
        self.came_first = self.waiting == 0;
        self.queue
            .enqueue(now, packet, item, context, |queued, reason| {
                let item = queued.item.item;
                dropped.push(Dropped {
                    at: now,
                    item,
                    reason: Some(reason),
                });
            });
        self.waiting = self.queue.backlog().packets;
        if self.is_held && self.queue.arrivals_release() {
            // What holds the others may let this one pass.
            (self.busy_until, self.is_held) = (Time::NEVER, false);
        }
        if !self.can_serve() {
            stats.on_length(now, self.waiting + self.bypass.last_backlog().packets);
        }
    }

    /// Whether a packet can go on: to the wire, or into the device ring.
    #[inline(always)]
    pub(crate) fn can_serve(&self) -> bool {
        self.is_free() || self.takes_into_ring()
    }

    /// Whether packets that wait go on into the device ring.
    #[inline(always)]
    fn takes_into_ring(&self) -> bool {
        let free = self.ring_size - self.ring.len();
        free >= self.batch || (free > 0 && self.came_first)
    }

    /// Whether nothing is on the wire, and no shaper holds it.
    #[inline(always)]
    fn is_free(&self) -> bool {
        self.busy_until == Time::NEVER
    }

    /// Keeps the wire busy and the device ring full, as far as there are packets. Gives the packet
    /// whose transmission begins, and what becomes of it.
    #[inline(always)]
    pub(crate) fn serve(
        &mut self,
        now: Time,
        wire: &mut Wire,
        draw: &mut impl FnMut() -> f64,
        stats: &mut LinkStats,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<(T, Transmission)> {
        if !self.is_plain {
            return self.serve_through_ring(now, wire, draw, stats, dropped);
        }
        let next = self.dequeue(now, draw, stats, dropped);
        stats.on_length(now, self.waiting);
        let Some(Queued { packet, item, .. }) = next else {
            self.find_nothing(now);
            self.rest(now);
            return None;
        };
        let transmission = self.transmit(now, packet, wire, stats);
        if self.waiting == 0 && self.rest(self.busy_until) {
            self.bypass.count_departure();
            self.busy_until = Time::NEVER;
        }
        Some((item.item, transmission))
    }

    /// [`serve`](Self::serve) where there is a device ring, or the link cannot always send.
    fn serve_through_ring(
        &mut self,
        now: Time,
        wire: &mut Wire,
        draw: &mut impl FnMut() -> f64,
        stats: &mut LinkStats,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<(T, Transmission)> {
        let mut sent = None;
        if self.is_free() && !self.waits_for_gate(now) {
            let next = match self.ring.pop_front() {
                Some(first) => Some(first),
                None => {
                    let next = self.dequeue(now, draw, stats, dropped);
                    next.map(|queued| (now, queued))
                }
            };
            match next {
                Some((left, queued)) => {
                    self.last_left = left;
                    let transmission = self.transmit_through_gate(now, queued.packet, wire, stats);
                    sent = Some((queued.item.item, transmission));
                }
                None => self.find_nothing(now),
            }
        }
        let takes = !self.is_free() && self.takes_into_ring();
        while takes && self.ring.len() < self.ring_size {
            match self.dequeue(now, draw, stats, dropped) {
                Some(queued) => self.ring.push_back((now, queued)),
                None => break,
            }
        }
        stats.on_length(now, self.waiting);
        sent
    }

    /// The wire is free and the discipline has handed out nothing: it has nothing, or its shaper
    /// holds the wire until later.
    fn find_nothing(&mut self, now: Time) {
        if self.waiting == 0 {
            self.queue.idle(now);
        } else {
            self.busy_until = self.queue.next_release();
            self.is_held = true;
            debug_assert!(self.busy_until > now, "what is held back is released later");
        }
    }

    #[inline(always)]
    fn dequeue(
        &mut self,
        now: Time,
        draw: &mut impl FnMut() -> f64,
        stats: &mut LinkStats,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<Queued<Item<T>>> {
        let next = self.queue.dequeue(now, draw, |queued, reason| {
            let item = queued.item.item;
            dropped.push(Dropped {
                at: now,
                item,
                reason: Some(reason),
            });
        });
        self.waiting = self.queue.backlog().packets;
        if let Some(queued) = &next {
            let packet = (queued.item.class, queued.packet.size);
            stats.on_leave(queued.arrived, now, packet);
            if let Some(cell) = self.queue.last_cell() {
                stats.on_leave_cell(queued.arrived, now, (cell, queued.packet.size));
            }
        }
        next
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        now: Time,
        packet: Packet,
        wire: &mut Wire,
        stats: &mut LinkStats,
    ) -> Transmission {
        let Packet { size, ecn, .. } = packet;
        let end = now + wire.transmission_time(size);
        self.busy_until = end;
        stats.on_transmission(now, end, size);
        wire.carry(end, ecn, stats)
    }

    /// Whether something waits and the link cannot send: then it is held until it can.
    fn waits_for_gate(&mut self, now: Time) -> bool {
        let Some(gate) = &mut self.gate else {
            return false;
        };
        if self.waiting == 0 && self.ring.is_empty() {
            return false;
        }
        let opens_at = gate.opens_at(now);
        let waits = opens_at > now;
        if waits {
            self.busy_until = opens_at;
            self.is_held = true;
        }
        waits
    }

    /// [`transmit`](Self::transmit) where opportunities may say how long it takes.
    fn transmit_through_gate(
        &mut self,
        now: Time,
        packet: Packet,
        wire: &mut Wire,
        stats: &mut LinkStats,
    ) -> Transmission {
        let Packet { size, ecn, .. } = packet;
        let bytes = u64::from(size) + wire.facts().framing.0;
        let sent = self.gate.as_mut().and_then(|gate| gate.send(now, bytes));
        let Some((begin, end)) = sent else {
            return self.transmit(now, packet, wire, stats);
        };
        self.busy_until = end;
        stats.on_transmission(begin, end, size);
        wire.carry(end, ecn, stats)
    }

    #[cold]
    fn change_rate(&mut self, wire: &mut Wire) {
        if let Some((_, rate)) = self.changes.pop_front() {
            self.set_rate(rate, wire);
        }
    }

    /// The link's rate changes. A transmission under way ends as it began.
    pub(crate) fn set_rate(&mut self, rate: Rate, wire: &mut Wire) {
        wire.set_rate(rate);
        self.queue.set_link(wire.facts());
    }

    /// Adds the time that packets waited since the last change of their number.
    #[inline]
    pub(crate) fn account(&mut self, now: Time, stats: &mut LinkStats) {
        if self.waiting > 0 && self.accounted < now {
            stats.on_queue(self.accounted, now, self.waiting);
        }
        self.accounted = now;
    }

    /// The changes of the rate, ticks and samples that come before `time`.
    #[inline]
    pub(crate) fn observe_before(&mut self, time: Time, wire: &mut Wire, stats: &mut LinkStats) {
        if self.observe_at < time {
            self.observe_all_before(time, wire, stats);
        }
    }

    fn observe_all_before(&mut self, time: Time, wire: &mut Wire, stats: &mut LinkStats) {
        while self.next_observation(stats) < time {
            self.observe_next(wire, stats);
        }
        self.observe_at = self.next_observation(stats);
    }

    /// When the rate changes, the discipline ticks or the queue is sampled next.
    fn next_observation(&self, stats: &LinkStats) -> Time {
        let change = self.changes.front().map_or(Time::NEVER, |change| change.0);
        change.min(self.queue.next_tick()).min(stats.next_sample())
    }

    /// The next change of the rate, tick or sample.
    fn observe_next(&mut self, wire: &mut Wire, stats: &mut LinkStats) {
        let (tick, sample) = (self.queue.next_tick(), stats.next_sample());
        let change = self.changes.front().map_or(Time::NEVER, |change| change.0);
        if change <= tick.min(sample) {
            self.change_rate(wire);
        } else if tick <= sample {
            self.queue.tick();
        } else {
            self.bypass.leave(sample);
            if stats.is_first_sample() {
                self.queue.begin_parts(sample);
            }
            let (backlog, counters) = (self.backlog(), || self.counters());
            stats.on_sample(backlog, counters, |out| self.queue.probe(out));
        }
    }
}
