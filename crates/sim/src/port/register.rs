//! A port that keeps its packets and takes the next one when its wire falls free.
//!
//! For disciplines that decide on departure, keep several queues or take packets out of the
//! middle. There is at most one transmission at a time, so one register, the time at which the
//! wire falls free, replaces events.

use std::collections::VecDeque;

use aqmlab_aqm::{Queue, Queued};
use aqmlab_net::{Packet, Time};
use aqmlab_scenario::RateChange;

use super::{Observer, Passage, Wire};
use crate::event::Event;
use crate::stats::PortStats;

/// A discipline with its packets, the device ring, and the state of the wire.
#[derive(Debug)]
pub(super) struct Register {
    queue: Queue<Event>,
    ring: VecDeque<Queued<Event>>,
    ring_size: usize,
    /// Changes of the link's rate that are still to come.
    changes: VecDeque<RateChange>,
    /// When the transmission under way ends.
    busy_until: Option<Time>,
    /// Up to when the packets that wait are accounted for.
    accounted: Time,
}

impl Register {
    pub(super) fn new(queue: Queue<Event>, ring_size: usize, changes: &[RateChange]) -> Self {
        Self {
            queue,
            ring: VecDeque::new(),
            ring_size,
            changes: changes.iter().copied().collect(),
            busy_until: None,
            accounted: Time::ZERO,
        }
    }

    pub(super) const fn queue(&self) -> &Queue<Event> {
        &self.queue
    }

    pub(super) fn kept(&self) -> u64 {
        u64::from(self.queue.backlog().packets) + self.ring.len() as u64
    }

    #[inline]
    pub(super) fn next_departure(&self) -> Time {
        self.busy_until.unwrap_or(Time::NEVER)
    }

    #[inline]
    pub(super) const fn wire_falls_free(&mut self) {
        self.busy_until = None;
    }

    #[inline]
    pub(super) fn arrive(
        &mut self,
        now: Time,
        packet: Packet,
        event: Event,
        draw: &mut impl FnMut() -> f64,
        stats: &mut PortStats,
        others: &mut Vec<(Event, Passage)>,
    ) {
        self.account(now, stats);
        self.queue.enqueue(now, packet, event, draw, |queued, _| {
            others.push((queued.item, Passage::Dropped));
        });
    }

    /// Keeps the wire busy and the device ring full, as far as there are packets.
    #[inline]
    pub(super) fn serve(
        &mut self,
        now: Time,
        wire: &mut Wire,
        stats: &mut PortStats,
        others: &mut Vec<(Event, Passage)>,
    ) {
        self.account(now, stats);
        loop {
            if self.busy_until.is_none() {
                let next = match self.ring.pop_front() {
                    Some(queued) => queued,
                    None => match self.dequeue(now, stats, others) {
                        Some(queued) => queued,
                        None => {
                            self.queue.idle(now);
                            break;
                        }
                    },
                };
                self.transmit(now, next, wire, stats, others);
            } else if self.ring.len() < self.ring_size {
                match self.dequeue(now, stats, others) {
                    Some(queued) => self.ring.push_back(queued),
                    None => break,
                }
            } else {
                break;
            }
        }
        stats.on_length(now, self.queue.backlog().packets);
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut PortStats,
        others: &mut Vec<(Event, Passage)>,
    ) -> Option<Queued<Event>> {
        let next = self.queue.dequeue(now, |queued, _| {
            others.push((queued.item, Passage::Dropped));
        });
        if let Some(queued) = &next {
            stats.on_leave(queued.arrived, now);
        }
        next
    }

    #[inline]
    fn transmit(
        &mut self,
        now: Time,
        queued: Queued<Event>,
        wire: &mut Wire,
        stats: &mut PortStats,
        others: &mut Vec<(Event, Passage)>,
    ) {
        let Packet { size, ecn, .. } = queued.packet;
        let end = now + wire.transmission_time(size);
        self.busy_until = Some(end);
        stats.on_transmission(now, end, size);
        others.push((queued.item, wire.carry(end, ecn, stats)));
    }

    #[cold]
    fn change_rate(&mut self, wire: &mut Wire) {
        if let Some(RateChange { rate, .. }) = self.changes.pop_front() {
            wire.facts.rate = rate;
            self.queue.set_link(wire.facts);
        }
    }

    /// Adds the time that packets waited since the last change of their number.
    #[inline]
    pub(super) fn account(&mut self, now: Time, stats: &mut PortStats) {
        stats.on_queue(self.accounted, now, self.queue.backlog().packets);
        self.accounted = now;
    }

    /// The changes of the rate, ticks and samples that come before `time`.
    #[inline]
    pub(super) fn observe_before(
        &mut self,
        time: Time,
        wire: &mut Wire,
        stats: &mut PortStats,
        observer: &mut impl Observer,
    ) {
        loop {
            let (tick, sample) = (self.queue.next_tick(), stats.next_sample());
            let change = self.changes.front().map_or(Time::NEVER, |change| change.at);
            if tick.min(sample).min(change) >= time {
                break;
            }
            if change <= tick.min(sample) {
                self.change_rate(wire);
            } else if tick <= sample {
                self.queue.tick();
            } else {
                let backlog = self.queue.backlog();
                stats.on_sample(backlog, self.queue.counters());
                observer.observe(sample, backlog, |out| self.queue.probe(out));
            }
        }
    }
}
