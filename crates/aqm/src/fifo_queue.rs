//! The FIFO's door: one AQM, the limit, ECN and the counters, written once for all AQMs.

use aqmlab_net::{Packet, Time};

use crate::aqm::{Aqm, Hooks, Outcome};
use crate::counters::{Counters, Reason};
use crate::link::{Backlog, Limit, LinkFacts};
use crate::{AnyAqm, Discipline};

/// Decides which arrivals enter a FIFO, and knows its backlog without owning its packets: the
/// caller keeps those, or only the times at which they depart.
///
/// At equal times departures come first, then ticks, then [`idle`](Self::idle), then the arrival.
#[derive(Clone, Debug)]
pub struct FifoQueue {
    aqm: AnyAqm,
    limit: Limit,
    ecn: bool,
    backlog: Backlog,
    hooks: Hooks,
    last_arrival: Time,
    next_tick: Time,
    /// Arrivals, drops and marks. What departed, and bytes, are added when somebody asks.
    counted: Counters,
    arrived_bytes: u64,
    dropped_bytes: u64,
}

impl FifoQueue {
    /// The fifo of an empty queue in front of `link`, quiet since time 0; nothing if the
    /// discipline is more than an AQM over a FIFO. `seed` is for hash functions.
    pub fn new(discipline: &Discipline, link: LinkFacts, seed: u64) -> Option<Self> {
        let (aqm, limit, ecn) = discipline.aqm(link, seed)?;
        Some(Self {
            next_tick: aqm.next_tick(),
            hooks: aqm.hooks(),
            aqm,
            limit: Limit::new(limit),
            ecn,
            backlog: Backlog::default(),
            last_arrival: Time::ZERO,
            counted: Counters::new(discipline.reasons()),
            arrived_bytes: 0,
            dropped_bytes: 0,
        })
    }

    /// Decides about an arrival and counts it. A packet that stays is part of the backlog until
    /// [`depart`](Self::depart).
    #[inline(always)]
    pub fn arrive(
        &mut self,
        now: Time,
        packet: &Packet,
        draw: &mut impl FnMut() -> f64,
    ) -> Outcome {
        self.counted.arrived_packets += 1;
        self.arrived_bytes += u64::from(packet.size);
        if self.hooks.arrivals {
            // A copy, so that a packet that nobody judges need not be in memory.
            return self.judge(now, &{ *packet }, draw);
        }
        if !self.limit.admits(self.backlog, packet.size) {
            return self.drop(packet, Reason::OVERFLOW);
        }
        self.backlog.add(packet.size);
        Outcome::Enqueue
    }

    /// Whether the AQM admits everything and hears of nothing: all that counts is whether there is
    /// room.
    pub fn only_limits(&self) -> bool {
        !(self.hooks.arrivals | self.hooks.departures)
    }

    /// Whether there is room for a packet of this size.
    #[inline(always)]
    pub fn has_room(&self, size: u32) -> bool {
        self.limit.admits(self.backlog, size)
    }

    /// [`arrive`](Self::arrive) where the queue [only limits](Self::only_limits): whether the packet
    /// is let in. One that does not wait is not part of the backlog.
    #[inline(always)]
    pub fn admit(&mut self, size: u32, waits: bool) -> bool {
        self.counted.arrived_packets += 1;
        self.arrived_bytes += u64::from(size);
        let is_let_in = self.has_room(size);
        if !is_let_in {
            self.refuse(size);
        } else if waits {
            self.backlog.add(size);
        }
        is_let_in
    }

    #[cold]
    fn refuse(&mut self, size: u32) {
        self.counted.dropped[Reason::OVERFLOW.index()] += 1;
        self.dropped_bytes += u64::from(size);
    }

    /// Asks the AQM about an arrival.
    #[inline(never)]
    fn judge(&mut self, now: Time, packet: &Packet, draw: &mut impl FnMut() -> f64) -> Outcome {
        self.last_arrival = now;
        let queue = self.backlog;
        let decision = self.aqm.on_arrival(now, packet, queue, draw);
        let fits = self.limit.admits(queue, packet.size);
        let outcome = decision.outcome(packet, self.ecn, fits);
        if self.hooks.outcomes {
            self.aqm.on_outcome(now, packet, queue, outcome);
        }
        match outcome {
            Outcome::Drop(reason) => {
                if self.hooks.overflows && reason.index() == Reason::OVERFLOW.index() {
                    self.aqm.on_outcome(now, packet, queue, outcome);
                }
                return self.drop(packet, reason);
            }
            Outcome::Mark(reason) => self.counted.marked[reason.index()] += 1,
            Outcome::Enqueue => {}
        }
        self.backlog.add(packet.size);
        outcome
    }

    /// Counts a drop.
    #[inline]
    fn drop(&mut self, packet: &Packet, reason: Reason) -> Outcome {
        self.counted.dropped[reason.index()] += 1;
        self.dropped_bytes += u64::from(packet.size);
        Outcome::Drop(reason)
    }

    /// Whether the AQM looks at departures; else it need not learn which packet leaves.
    #[inline]
    pub fn wants_departures(&self) -> bool {
        self.hooks.departures
    }

    /// A packet that came at `arrived` leaves the discipline: its transmission starts, or it
    /// enters the device ring.
    #[inline]
    pub fn depart(&mut self, now: Time, packet: &Packet, arrived: Time) {
        self.release(packet.size);
        if self.hooks.departures {
            self.aqm.on_departure(now, packet, arrived, self.backlog);
        }
    }

    /// [`depart`](Self::depart) where the AQM does not watch departures: a packet of so many bytes
    /// leaves.
    #[inline]
    pub fn release(&mut self, size: u32) {
        self.backlog.remove(size);
    }

    /// [`release`](Self::release) of all packets that wait.
    #[inline]
    pub fn release_all(&mut self) {
        self.backlog = Backlog::default();
    }

    /// The queue is empty and the wire has been quiet since then. May be called again before every
    /// arrival that finds the wire quiet: time before the last arrival is not counted twice.
    #[inline]
    pub fn idle(&mut self, since: Time) {
        if self.hooks.arrivals {
            self.aqm.on_idle(since.max(self.last_arrival));
        }
    }

    /// When the AQM wants to be woken next.
    #[inline]
    pub fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// It is [`next_tick`](Self::next_tick).
    pub fn tick(&mut self) {
        self.aqm.on_tick(self.next_tick, self.backlog);
        self.next_tick = self.aqm.next_tick();
    }

    /// The link has changed.
    pub fn set_link(&mut self, link: LinkFacts) {
        self.aqm.set_link(link);
    }

    /// The parameters have changed to those of `discipline`, which is of the same kind. The rest is
    /// as for [`new`](Self::new).
    pub fn set_parameters(&mut self, discipline: &Discipline, link: LinkFacts, seed: u64) {
        if let Some(fresh) = Self::new(discipline, link, seed) {
            self.adopt(fresh);
        }
    }

    /// The same, with what a run with the new parameters begins with.
    pub(crate) fn adopt(&mut self, fresh: Self) {
        (self.limit, self.ecn) = (fresh.limit, fresh.ecn);
        self.aqm.adopt(fresh.aqm);
        self.next_tick = self.aqm.next_tick();
    }

    /// What waits now.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// What was counted so far. What neither waits nor was dropped has departed.
    pub fn counters(&self) -> Counters {
        let Backlog { packets, bytes } = self.backlog;
        let stayed = self.counted.arrived_packets - self.counted.dropped_packets();
        Counters {
            arrived_bytes: self.arrived_bytes,
            departed_packets: stayed - u64::from(packets),
            departed_bytes: self.arrived_bytes - self.dropped_bytes - bytes,
            ..self.counted.clone()
        }
    }

    /// Names of the AQM's inner variables.
    pub fn probe_names(&self) -> &'static [&'static str] {
        self.aqm.probe_names()
    }

    /// Appends the AQM's inner variables to `out`.
    pub fn probe(&self, out: &mut Vec<f64>) {
        self.aqm.probe(out);
    }
}
