//! One direction of the bottleneck: discipline, device ring, wire.
//!
//! Departures are computed, not scheduled. Where a packet's fate is decided on arrival and the
//! order is FIFO, the time at which it leaves is known as soon as it is admitted; the port keeps
//! the (leave time, size) of what waits and forgets what has left when it is next looked at.
//! At equal times: departures, then samples, then the arrival.

use std::collections::VecDeque;

use aqmlab_aqm::{Backlog, Fate, Gate, LinkFacts};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Rate, Time};
use aqmlab_scenario::Link;

use crate::RunError;
use crate::stats::{PortStats, Window};

/// One direction of the bottleneck.
#[derive(Debug)]
pub(crate) struct Port {
    gate: Gate,
    rate: Rate,
    framing: u64,
    delay: Time,
    loss: f64,
    ring_size: usize,
    /// What the discipline holds: when it leaves (for the device ring, or the wire) and its size.
    waiting: VecDeque<(Time, u32)>,
    /// When the last `ring_size` packets begin transmission.
    ring: VecDeque<Time>,
    wire_free: Time,
    law_draws: RandomStream,
    loss_draws: RandomStream,
    pub(crate) sampler: Sampler,
    pub(crate) stats: PortStats,
}

/// When the queue is looked at next.
#[derive(Debug)]
pub(crate) struct Sampler {
    next: Time,
    period: Time,
    end: Time,
}

impl Sampler {
    pub(crate) fn new(window: Window, period: Time) -> Self {
        Self {
            next: window.start,
            period,
            end: window.end,
        }
    }

    fn due(&mut self, now: Time) -> Option<Time> {
        if self.next > now || self.next >= self.end {
            return None;
        }
        let time = self.next;
        self.next += self.period;
        Some(time)
    }
}

/// Looks at the queue: (time, backlog, the law's inner variables).
pub(crate) trait Observer {
    fn observe(&mut self, time: Time, backlog: Backlog, gate: &Gate);
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// It reaches the far end of the link then, with this ECN field.
    Arrives(Time, Ecn),
    /// The discipline dropped it.
    Dropped,
    /// It was lost at random on the wire.
    Lost,
}

impl Port {
    pub(crate) fn new(link: &Link, name: &str, seed: u64, window: Window, sample: Time) -> Self {
        Self {
            gate: Gate::new(&link.discipline, LinkFacts { rate: link.rate }),
            rate: link.rate,
            framing: u64::from(link.framing.0),
            delay: link.delay,
            loss: link.loss,
            ring_size: link.device_ring.0 as usize,
            waiting: VecDeque::new(),
            ring: VecDeque::new(),
            wire_free: Time::ZERO,
            law_draws: RandomStream::new(seed, &format!("law/{name}"), 0),
            loss_draws: RandomStream::new(seed, &format!("loss/{name}"), 0),
            sampler: Sampler::new(window, sample),
            stats: PortStats::new(window),
        }
    }

    /// A packet arrives. Returns when it reaches the far end of the link.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        size: u32,
        ecn: Ecn,
        flow: FlowKey,
        observer: &mut impl Observer,
    ) -> Passage {
        self.catch_up(now, observer);
        if self.wire_free <= now {
            self.gate.idle(self.wire_free);
        }
        let packet = Packet { size, ecn, flow };
        let draws = &mut self.law_draws;
        let fate = self.gate.arrive(now, &packet, &mut || draws.uniform());
        self.stats.on_arrival(now, fate);
        let ecn = match fate {
            Fate::Drop(_) => return Passage::Dropped,
            Fate::EnqueueMarked => Ecn::Ce,
            Fate::Enqueue => ecn,
        };
        let begin = now.max(self.wire_free);
        let end = begin + self.rate.transmission_time(u64::from(size) + self.framing);
        self.wire_free = end;
        let leave = self.leave_time(now, begin);
        self.waiting.push_back((leave, size));
        self.stats
            .on_admission(now, leave, (begin, end), size, self.gate.backlog());
        if self.loss > 0.0 && self.loss_draws.uniform() < self.loss {
            self.stats.on_wire_loss(end);
            return Passage::Lost;
        }
        Passage::Arrives(end + self.delay, ecn)
    }

    /// When a packet leaves the discipline: when its transmission begins, or, with a device ring
    /// of N packets, when that of the packet N places before it does.
    fn leave_time(&mut self, now: Time, begin: Time) -> Time {
        if self.ring_size == 0 {
            return begin;
        }
        self.ring.push_back(begin);
        if self.ring.len() <= self.ring_size {
            return now;
        }
        self.ring.pop_front().map_or(now, |frees| frees.max(now))
    }

    /// Forgets what has left by `now` and takes the samples that fell due.
    pub(crate) fn catch_up(&mut self, now: Time, observer: &mut impl Observer) {
        while let Some(time) = self.sampler.due(now) {
            self.depart_until(time);
            let backlog = self.gate.backlog();
            self.stats.on_sample(backlog);
            observer.observe(time, backlog, &self.gate);
        }
        self.depart_until(now);
    }

    #[inline]
    fn depart_until(&mut self, now: Time) {
        while let Some(&(leave, size)) = self.waiting.front()
            && leave <= now
        {
            self.waiting.pop_front();
            self.gate.depart(size);
        }
    }

    /// Names of the law's inner variables.
    pub(crate) fn probe_names(&self) -> &'static [&'static str] {
        self.gate.probe_names()
    }

    /// What came in must have gone out, been dropped, or wait.
    pub(crate) fn check_conservation(&self, name: &str) -> Result<(), RunError> {
        let counters = self.gate.counters();
        let (arrived, dropped) = (counters.arrived_packets, counters.dropped_packets());
        let (departed, waiting) = (counters.departed_packets, self.waiting.len() as u64);
        let backlog = u64::from(self.gate.backlog().packets);
        if arrived != dropped + departed + waiting || backlog != waiting {
            return Err(RunError::Conservation(format!(
                "{name} queue: {arrived} packets arrived, but {dropped} dropped + {departed} \
                 departed + {waiting} waiting (the discipline counts {backlog})"
            )));
        }
        Ok(())
    }
}
