//! One direction of the bottleneck: discipline, device ring, wire, in the time at which things
//! should happen. Nothing here reads a clock: however late the router is told of a packet, what
//! becomes of it is decided as if it had come in time, so rates do not drift.

use std::collections::VecDeque;

use aqmlab_aqm::{LinkFacts, Queue, Queued, Reason};
use aqmlab_net::{Bytes, Packet, RandomStream, Time};
use aqmlab_record::{LinkDirection, LinkStats, MeasuredSpan};
use aqmlab_scenario::{Link, RateChange, Reordering, Scenario};

/// Names of the directions, in results and, as in the simulator, of random streams.
const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// The name of a dumbbell's link in results.
const LINK: &str = "bottleneck";

/// Discipline, device ring and wire. `T` is what the packets are to their owner.
#[derive(Debug)]
pub(crate) struct Port<T> {
    queue: Queue<T>,
    ring: VecDeque<Queued<T>>,
    ring_size: usize,
    facts: LinkFacts,
    delay: Time,
    loss: f64,
    reordering: Option<Reordering>,
    /// Changes of the rate that are still to come.
    changes: VecDeque<RateChange>,
    aqm_draws: RandomStream,
    loss_draws: RandomStream,
    reordering_draws: RandomStream,
    /// When the transmission under way ends.
    busy_until: Option<Time>,
    /// Up to when the packets that wait are accounted for.
    accounted: Time,
    stats: LinkStats,
}

/// What a port does with packets.
pub(crate) trait Beyond<T> {
    /// The packet reaches the far end of the link at this time.
    fn arrives(&mut self, at: Time, packet: Packet, item: T);
    /// The discipline dropped it, or the wire lost it.
    fn lost(&mut self, at: Time, item: T);
}

impl<T> Port<T> {
    /// Direction 0 is forward, 1 reverse.
    pub(crate) fn new(scenario: &Scenario, link: &Link, direction: usize) -> Self {
        let name = DIRECTIONS[direction];
        let stream = |what: &str| RandomStream::new(scenario.seed, &format!("{what}/{name}"), 0);
        let facts = LinkFacts {
            rate: link.rate,
            framing: Bytes(u64::from(link.framing.0)),
        };
        let hashes = stream("hash").uniform().to_bits();
        let queue = Queue::new(&link.discipline, facts, hashes);
        Self {
            stats: LinkStats::new(
                LinkDirection {
                    link: LINK.to_owned(),
                    direction: name,
                },
                queue.probe_names(),
                MeasuredSpan::of(&scenario.measure),
                scenario.measure.queue_sample,
            ),
            queue,
            ring: VecDeque::new(),
            ring_size: link.device_ring.0 as usize,
            facts,
            delay: link.delay,
            loss: link.loss,
            reordering: link.reordering,
            changes: link.rate_changes.iter().copied().collect(),
            aqm_draws: stream("law"),
            loss_draws: stream("loss"),
            reordering_draws: stream("reordering"),
            busy_until: None,
            accounted: Time::ZERO,
        }
    }

    pub(crate) const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// When the port wants to [`depart`](Self::depart).
    pub(crate) fn next_departure(&self) -> Time {
        self.busy_until.unwrap_or(Time::NEVER)
    }

    /// A packet comes. Times never go back.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        beyond: &mut impl Beyond<T>,
    ) {
        self.observe_before(now + Time::from_nanos(1));
        self.account(now);
        let draws = &mut self.aqm_draws;
        self.queue
            .enqueue(now, packet, item, &mut || draws.uniform(), |queued, _| {
                beyond.lost(now, queued.item);
            });
        self.serve(now, beyond);
    }

    /// The wire falls free.
    pub(crate) fn depart(&mut self, now: Time, beyond: &mut impl Beyond<T>) {
        self.observe_before(now);
        self.busy_until = None;
        self.serve(now, beyond);
    }

    /// The changes of the rate, ticks and samples that come before `time`.
    pub(crate) fn observe_before(&mut self, time: Time) {
        loop {
            let (tick, sample) = (self.queue.next_tick(), self.stats.next_sample());
            let change = self.changes.front().map_or(Time::NEVER, |change| change.at);
            if tick.min(sample).min(change) >= time {
                break;
            }
            if change <= tick.min(sample) {
                self.change_rate();
            } else if tick <= sample {
                self.queue.tick();
            } else {
                let queue = &self.queue;
                self.stats
                    .on_sample(queue.backlog(), queue.counters(), |out| queue.probe(out));
            }
        }
    }

    fn change_rate(&mut self) {
        if let Some(RateChange { rate, .. }) = self.changes.pop_front() {
            self.facts.rate = rate;
            self.queue.set_link(self.facts);
        }
    }

    /// The measured span ends.
    pub(crate) fn close(mut self, end: Time) -> LinkStats {
        self.observe_before(end);
        self.account(end);
        self.stats.close(self.queue.counters());
        self.stats
    }

    /// Keeps the wire busy and the device ring full, as far as there are packets.
    fn serve(&mut self, now: Time, beyond: &mut impl Beyond<T>) {
        self.account(now);
        loop {
            if self.busy_until.is_none() {
                let next = self.ring.pop_front().or_else(|| self.dequeue(now, beyond));
                let Some(next) = next else {
                    self.queue.idle(now);
                    break;
                };
                self.transmit(now, next, beyond);
            } else if self.ring.len() < self.ring_size {
                let Some(next) = self.dequeue(now, beyond) else {
                    break;
                };
                self.ring.push_back(next);
            } else {
                break;
            }
        }
        self.stats.on_length(now, self.queue.backlog().packets);
    }

    fn dequeue(&mut self, now: Time, beyond: &mut impl Beyond<T>) -> Option<Queued<T>> {
        let dropped = |queued: Queued<T>, _: Reason| beyond.lost(now, queued.item);
        let next = self.queue.dequeue(now, dropped)?;
        self.stats.on_leave(next.arrived, now);
        Some(next)
    }

    fn transmit(&mut self, now: Time, queued: Queued<T>, beyond: &mut impl Beyond<T>) {
        let size = queued.packet.size;
        let wire_bytes = u64::from(size) + self.facts.framing.0;
        let end = now + self.facts.rate.transmission_time(wire_bytes);
        self.busy_until = Some(end);
        self.stats.on_transmission(now, end, size);
        if self.loss > 0.0 && self.loss_draws.uniform() < self.loss {
            self.stats.on_wire_loss(end);
            beyond.lost(end, queued.item);
        } else {
            let held_up = match self.reordering {
                Some(Reordering { share, delay }) if self.reordering_draws.uniform() < share => {
                    delay
                }
                _ => Time::ZERO,
            };
            beyond.arrives(end + self.delay + held_up, queued.packet, queued.item);
        }
    }

    /// Adds the time that packets waited since the last change of their number.
    fn account(&mut self, now: Time) {
        let packets = self.queue.backlog().packets;
        self.stats.on_queue(self.accounted, now, packets);
        self.accounted = now;
    }
}
