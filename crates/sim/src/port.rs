//! One direction of a link: discipline, device ring, wire.
//!
//! Where a packet's outcome is decided on arrival and the order is first come, first served, the port
//! computes when a packet leaves as soon as it is let in ([`AnalyticService`]). Where it is decided on
//! departure, or packets overtake each other, the port keeps the packets and is woken when its
//! wire falls free ([`StoredService`]). At equal times: departures, then changes of the rate, then
//! ticks of the discipline, then samples, then arrivals.

mod analytic;
mod ring;
mod stored;

use aqmlab_aqm::{Counters, FifoQueue, LinkFacts, Queue};
use aqmlab_net::{Bytes, Ecn, Packet, RandomStream, Rate, Time};
use aqmlab_record::{LinkDirection, LinkStats, MeasuredSpan, RunError, check_queue};
use aqmlab_scenario::{Link, Reordering};

use crate::event::Event;
use analytic::AnalyticService;
use stored::StoredService;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Port {
    service: Service,
    aqm_draws: RandomStream,
    wire: Wire,
    pub(crate) stats: LinkStats,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few ports")]
enum Service {
    Analytic(AnalyticService),
    Stored(StoredService),
}

/// Packets of so many IP bytes and more are rare.
const COMMON_SIZES: usize = 1 << 11;

fn transmission_times(link: LinkFacts) -> Box<[Time]> {
    (0..COMMON_SIZES)
        .map(|size| transmission_time(link, size))
        .collect()
}

fn transmission_time(link: LinkFacts, size: usize) -> Time {
    link.rate.transmission_time(size as u64 + link.framing.0)
}

/// The link behind the queue.
#[derive(Debug)]
struct Wire {
    facts: LinkFacts,
    /// How long packets occupy it, by their size: a look-up is shorter than a division.
    times: Box<[Time]>,
    delay: Time,
    loss: f64,
    loss_draws: RandomStream,
    reordering: Option<Reordering>,
    reordering_draws: RandomStream,
}

impl Wire {
    #[inline(always)]
    fn transmission_time(&self, size: u32) -> Time {
        match self.times.get(size as usize) {
            Some(time) => *time,
            None => transmission_time(self.facts, size as usize),
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.facts.rate = rate;
        self.times = transmission_times(self.facts);
    }

    /// A transmission ends at `end`: where the packet goes.
    #[inline]
    fn carry(&mut self, end: Time, ecn: Ecn, stats: &mut LinkStats) -> Transmission {
        if self.loss > 0.0 && self.loss_draws.uniform() < self.loss {
            stats.on_wire_loss(end);
            return Transmission::Dropped;
        }
        let held_up = match self.reordering {
            Some(Reordering { share, delay }) if self.reordering_draws.uniform() < share => delay,
            _ => Time::ZERO,
        };
        Transmission::Arrives(end + self.delay + held_up, ecn)
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transmission {
    /// It reaches the far end of the link then, with this ECN field.
    Arrives(Time, Ecn),
    /// The discipline dropped it, or it was lost at random on the wire.
    Dropped,
    /// It waits; its transmission is told later.
    Waits,
}

impl Port {
    /// `compute`: departures are computed where that is exact.
    pub(crate) fn new(
        link: &Link,
        name: &LinkDirection,
        seed: u64,
        window: MeasuredSpan,
        sample: Time,
        compute: bool,
    ) -> Self {
        let facts = LinkFacts {
            rate: link.rate,
            framing: Bytes(u64::from(link.framing.0)),
        };
        let stream = &name.stream();
        let hashes = hash_seed(seed, stream);
        let ring = link.device_ring.0 as usize;
        // When a packet leaves can be computed only while the rate stands.
        let compute = compute && link.rate_changes.is_empty();
        let fifo = FifoQueue::new(&link.discipline, facts, hashes).filter(|_| compute);
        let service = match fifo {
            Some(fifo) => Service::Analytic(AnalyticService::new(fifo, ring)),
            None => {
                let queue = Queue::new(&link.discipline, facts, hashes);
                Service::Stored(StoredService::new(queue, ring, &link.rate_changes))
            }
        };
        let probes = match &service {
            Service::Analytic(line) => line.fifo().probe_names(),
            Service::Stored(stored) => stored.queue().probe_names(),
        };
        Self {
            service,
            aqm_draws: RandomStream::new(seed, &format!("law/{stream}"), 0),
            wire: Wire {
                facts,
                times: transmission_times(facts),
                delay: link.delay,
                loss: link.loss,
                loss_draws: RandomStream::new(seed, &format!("loss/{stream}"), 0),
                reordering: link.reordering,
                reordering_draws: RandomStream::new(seed, &format!("reordering/{stream}"), 0),
            },
            stats: LinkStats::new(name.clone(), probes, window, sample),
        }
    }

    /// A packet arrives: what becomes of it. It waits for [`take_in`](Self::take_in) if the port
    /// keeps its packets.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now: Time, packet: Packet) -> Transmission {
        let Service::Analytic(line) = &mut self.service else {
            return Transmission::Waits;
        };
        let draws = &mut self.aqm_draws;
        let mut draw = || draws.uniform();
        line.catch_up(now, &mut self.stats);
        line.arrive(now, packet, &mut self.wire, &mut self.stats, &mut draw)
    }

    /// A packet arrives that the port keeps. Gives the packet whose transmission begins, if one
    /// does, and what becomes of it; what is dropped joins those that were `dropped`.
    pub(crate) fn take_in(
        &mut self,
        now: Time,
        packet: Packet,
        event: Event,
        dropped: &mut Vec<(Time, Event)>,
    ) -> Option<(Event, Transmission)> {
        let Service::Stored(stored) = &mut self.service else {
            return None;
        };
        let draws = &mut self.aqm_draws;
        let mut draw = || draws.uniform();
        let (wire, stats) = (&mut self.wire, &mut self.stats);
        let just_after = now + Time::from_nanos(1);
        stored.observe_before(just_after, wire, stats);
        stored.arrive(now, packet, event, &mut draw, stats, dropped);
        if stored.can_serve() {
            stored.serve(now, wire, stats, dropped)
        } else {
            None
        }
    }

    /// The wire falls free. Gives and drops like [`take_in`](Self::take_in).
    pub(crate) fn depart(
        &mut self,
        now: Time,
        dropped: &mut Vec<(Time, Event)>,
    ) -> Option<(Event, Transmission)> {
        let Service::Stored(stored) = &mut self.service else {
            return None;
        };
        let (wire, stats) = (&mut self.wire, &mut self.stats);
        stored.observe_before(now, wire, stats);
        stored.wire_falls_free(now, stats);
        stored.serve(now, wire, stats, dropped)
    }

    /// When the port that keeps its packets wants to [`depart`](Self::depart).
    #[inline]
    pub(crate) fn next_departure(&self) -> Time {
        match &self.service {
            Service::Analytic(_) => Time::NEVER,
            Service::Stored(stored) => stored.next_departure(),
        }
    }

    /// Takes the samples that fell due by `now`, where the port's departures have come.
    #[inline(never)]
    pub(crate) fn catch_up(&mut self, now: Time) {
        let stats = &mut self.stats;
        match &mut self.service {
            Service::Analytic(line) => line.catch_up(now, stats),
            Service::Stored(stored) => {
                stored.observe_before(now, &mut self.wire, stats);
            }
        }
    }

    /// The measured span ends.
    pub(crate) fn close(&mut self, end: Time) {
        self.catch_up(end);
        if let Service::Stored(stored) = &mut self.service {
            stored.account(end, &mut self.stats);
        }
        let counters = self.counters().clone();
        self.stats.close(&counters);
    }

    fn counters(&self) -> &Counters {
        match &self.service {
            Service::Analytic(line) => line.fifo().counters(),
            Service::Stored(stored) => stored.queue().counters(),
        }
    }

    /// Packets that the port keeps, in the discipline and in the device ring.
    pub(crate) fn kept(&self) -> u64 {
        match &self.service {
            Service::Analytic(_) => 0,
            Service::Stored(stored) => stored.kept(),
        }
    }

    /// What came in must have gone out, been dropped, or wait.
    pub(crate) fn check_conservation(&self, name: &str) -> Result<(), RunError> {
        let (waiting, backlog) = match &self.service {
            Service::Analytic(line) => (line.waiting(), line.fifo().backlog()),
            Service::Stored(stored) => {
                let backlog = stored.queue().backlog();
                (u64::from(backlog.packets), backlog)
            }
        };
        check_queue(name, self.counters(), waiting, u64::from(backlog.packets))
    }
}

/// The seed of a discipline's hash functions.
fn hash_seed(seed: u64, name: &str) -> u64 {
    RandomStream::new(seed, &format!("hash/{name}"), 0)
        .uniform()
        .to_bits()
}
