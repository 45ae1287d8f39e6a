//! One direction of a link: discipline, device ring, wire.

use aqmlab_aqm::{Backlog, Context, Counters, Details, FifoQueue, Known, Queue};
use aqmlab_net::{Ecn, Packet, RandomStream, Rate, Time};
use aqmlab_record::{LinkDirection, LinkStats, MeasuredSpan, RunError, check_queue};
use aqmlab_scenario::{Link, LinkChange, Measure};

use crate::fifo_service::FifoService;
use crate::gate::Gate;
use crate::queue_service::QueueService;
use crate::wire::{Dropped, Served, Transmission, Wire, timed};

/// One direction of a link. `T` is what a packet is to its owner, which gets it back.
///
/// Where a packet's outcome is decided on arrival and the order is first come, first served, the
/// port computes when a packet leaves as soon as it is let in: [`arrive`](Self::arrive) has the
/// answer. Where it is decided on departure, packets overtake each other, the rate changes or the
/// link cannot always send, the port stores the packets ([`take_in`](Self::take_in)) and is woken
/// when its wire falls free ([`depart`](Self::depart) at
/// [`next_departure`](Self::next_departure)). Packets bypass the queue of such a discipline as long
/// as it decides nothing, because few of them wait: the port has the answer on arrival, too. Both
/// give the same times, drops, marks and statistics.
///
/// Packets have a class of traffic, by which their sojourn times are counted; disciplines do not
/// see it.
///
/// The caller states the time of each call. Times never go back; at equal times departures come
/// first, then arrivals. Changes of the rate, ticks of the discipline and samples of the queue
/// happen inside, at their times, in this order, between departures and arrivals.
#[derive(Debug)]
pub struct Port<T> {
    service: Service<T>,
    aqm_draws: RandomStream,
    /// Seed of the discipline's hash functions.
    hashes: u64,
    wire: Wire,
    stats: LinkStats,
}

/// What a discipline may ask about an arrival.
pub(crate) struct Arrival<'a, D> {
    pub(crate) draws: &'a mut RandomStream,
    pub(crate) details: D,
}

impl<D: Known> Context for Arrival<'_, D> {
    #[inline]
    fn draw(&mut self) -> f64 {
        self.draws.uniform()
    }

    fn details(&self) -> Option<Details> {
        Some(self.details.details())
    }

    #[inline]
    fn client(&self) -> Option<u32> {
        self.details.client()
    }
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few ports")]
enum Service<T> {
    Fifo(FifoService),
    Queue(QueueService<T>),
}

/// What a port is doing at some moment, and what it did since time 0.
#[derive(Clone, Debug)]
pub struct PortState {
    /// What waits in the discipline.
    pub backlog: Backlog,
    /// What it counted.
    pub counters: Counters,
    /// Names and values of the discipline's inner variables.
    pub probes: Vec<(&'static str, f64)>,
    /// When the discipline is woken next; never if it waits for nothing.
    pub next_tick: Time,
    /// Bits per second on the wire.
    pub rate: Rate,
    /// How long it takes at this rate to send all that waits, the packet on the wire and those in
    /// the device ring included.
    pub drain: Time,
}

impl<T> Port<T> {
    /// The port of a link's direction, quiet since time 0. Departures are computed where that is
    /// exact.
    ///
    /// `seed` is that of the run: the random numbers of a port depend on it and on the port's
    /// `name`. `measure` says what is measured, and how often the queue is sampled.
    pub fn new(name: &LinkDirection, link: &Link, seed: u64, measure: &Measure) -> Self {
        let fifo = |wire: &Wire, hashes| match Self::computes(link) {
            true => FifoQueue::new(&link.discipline, wire.facts(), hashes),
            false => None,
        };
        Self::with_fifo(name, link, (seed, true), measure, fifo)
    }

    /// Whether departures can be computed: packets leave as they come, at any time and at one rate.
    pub fn computes(link: &Link) -> bool {
        link.discipline.is_aqm()
            && link.rate_changes.is_empty()
            && !link.is_gated()
            && !link.waits_for_phases()
    }

    /// A port that stores its packets whatever its discipline.
    pub fn stored(name: &LinkDirection, link: &Link, seed: u64, measure: &Measure) -> Self {
        Self::with_fifo(name, link, (seed, false), measure, |_, _| None)
    }

    /// A port whose rate and delay can [`change`](Self::change): it stores its packets.
    pub fn changeable(name: &LinkDirection, link: &Link, seed: u64, measure: &Measure) -> Self {
        let mut port = Self::stored(name, link, seed, measure);
        port.wire = port.wire.with_changes();
        port
    }

    /// `fifo` gives the queue whose departures are computed, if all are; with `computing` others are
    /// where that is possible.
    fn with_fifo(
        name: &LinkDirection,
        link: &Link,
        (seed, computing): (u64, bool),
        measure: &Measure,
        fifo: impl FnOnce(&Wire, u64) -> Option<FifoQueue>,
    ) -> Self {
        let random = |purpose: &str| name.random_stream(seed, purpose);
        let wire = Wire::new(link, random("loss"), random("reordering"));
        let hashes = random("hash").uniform().to_bits();
        let ring = link.hidden_ring();
        let (service, probes) = match fifo(&wire, hashes) {
            Some(fifo) => {
                let probes = fifo.probe_names();
                (Service::Fifo(FifoService::new(fifo, ring)), probes)
            }
            None => {
                let queue = Queue::new(&link.discipline, wire.facts(), hashes);
                let probes = queue.probe_names();
                let changes = timed(&link.rate_changes, |it| Some((it.at?, it.rate)));
                let computing = computing
                    && wire.is_perfect()
                    && link.rate_changes.is_empty()
                    && !link.is_gated();
                let gate = Gate::of(link);
                let service = QueueService::new(queue, (ring, changes), (computing, gate));
                (Service::Queue(service), probes)
            }
        };
        let (span, period) = (MeasuredSpan::of(measure), measure.queue_sample);
        let mut stats = LinkStats::new(name.clone(), probes, span, period);
        if link.packet_time == Some(Time::ZERO) {
            stats.set_instant();
        }
        Self {
            service,
            aqm_draws: random("law"),
            hashes,
            wire,
            stats,
        }
    }

    /// A packet of a class arrives: what becomes of it. If it [waits](Transmission::Waits), the port wants
    /// to [`take_in`](Self::take_in) it.
    #[inline(always)]
    pub fn arrive(&mut self, now: Time, packet: Packet, class: u16) -> Transmission {
        let service = match &mut self.service {
            Service::Fifo(service) => service,
            Service::Queue(service) => {
                let packet = (packet, class);
                let bypassed = service.bypass(now, packet, &mut self.wire, &mut self.stats);
                return bypassed.unwrap_or(Transmission::Waits);
            }
        };
        let draws = &mut self.aqm_draws;
        let mut draw = || draws.uniform();
        service.catch_up_with_arrival(now, &mut self.stats);
        let packet = (packet, class);
        service.arrive(now, packet, &mut self.wire, &mut self.stats, &mut draw)
    }

    /// Stores a packet that [`arrive`](Self::arrive) said would wait. Gives the packet whose
    /// transmission begins, if one does, and what becomes of it. What the discipline drops joins
    /// `dropped`, with the time. `details` is what else is known of the packet; few disciplines ask.
    ///
    /// Where nothing begins, a shaper may still have moved
    /// [`next_departure`](Self::next_departure).
    #[inline(always)]
    pub fn take_in(
        &mut self,
        now: Time,
        (packet, class): (Packet, u16),
        item: T,
        details: impl Known,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<(T, Transmission)> {
        let Service::Queue(service) = &mut self.service else {
            return None;
        };
        let draws = &mut self.aqm_draws;
        let (wire, stats) = (&mut self.wire, &mut self.stats);
        let just_after = now + Time::from_nanos(1);
        service.observe_before(just_after, wire, stats);
        let mut arrival = Arrival {
            draws: &mut *draws,
            details,
        };
        service.arrive(now, (packet, class), item, &mut arrival, stats, dropped);
        if service.can_serve() {
            let mut draw = || draws.uniform();
            service.serve(now, wire, &mut draw, stats, dropped)
        } else {
            None
        }
    }

    /// The wire falls free at `now`, which is [`next_departure`](Self::next_departure). Gives and
    /// drops like [`take_in`](Self::take_in).
    #[inline(always)]
    pub fn depart(
        &mut self,
        now: Time,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<(T, Transmission)> {
        let Service::Queue(service) = &mut self.service else {
            return None;
        };
        let draws = &mut self.aqm_draws;
        let (wire, stats) = (&mut self.wire, &mut self.stats);
        service.observe_before(now, wire, stats);
        let mut draw = || draws.uniform();
        service.wire_falls_free(now, stats);
        service.serve(now, wire, &mut draw, stats, dropped)
    }

    /// Whether [`next_departure`](Self::next_departure) has come with a packet that was taken in and
    /// waits; once.
    #[inline(always)]
    pub fn has_woken(&mut self) -> bool {
        match &mut self.service {
            Service::Fifo(_) => false,
            Service::Queue(service) => service.has_woken(),
        }
    }

    /// How it has served the packet that it sent last, which has `size` IP bytes and arrived at
    /// `arrived`.
    pub fn last_served(&self, arrived: Time, size: u32) -> Served {
        let end = match &self.service {
            Service::Fifo(service) => service.wire_free(),
            Service::Queue(service) => service.wire_free(Time::ZERO),
        };
        // An opportunity to send may last less than the packet does at the mean rate.
        let transmission = self.transmission_time(size).min(end - arrived);
        let begin = end - transmission;
        let (left, holder) = match &self.service {
            Service::Fifo(service) => (service.last_left(begin), None),
            Service::Queue(service) => (service.last_left(begin), service.last_holder()),
        };
        Served {
            holder,
            left: left.clamp(arrived, begin),
            end,
            transmission,
            delay: self.wire.delay(),
        }
    }

    /// When a packet of `size` IP bytes that arrived at `arrived` leaves the discipline, as
    /// [`arrive`](Self::arrive) has just computed it, and how long it is in the device ring, if there
    /// is one.
    pub fn computed(&self, arrived: Time, size: u32) -> (Time, Option<Time>) {
        let served = self.last_served(arrived, size);
        let ring = served.end - served.transmission - served.left;
        (served.left, self.has_ring().then_some(ring))
    }

    /// When the stored packet whose transmission begins `now` leaves, and its time in the device
    /// ring.
    pub fn begun(&self, now: Time) -> (Time, Option<Time>) {
        let left = self.left_discipline(now);
        (left, self.has_ring().then(|| now - left))
    }

    /// The names of the discipline's parts, by their numbers. From now on it notes which of them
    /// held a packet.
    pub fn watch_holders(&mut self) -> Vec<String> {
        match &mut self.service {
            Service::Fifo(_) => Vec::new(),
            Service::Queue(service) => service.queue_mut().watch_holders(),
        }
    }

    /// What waits in the discipline at `now`, before anything arrives then. All departures and
    /// arrivals before `now` have been reported.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        match &mut self.service {
            Service::Fifo(service) => {
                service.catch_up(now, &mut self.stats);
                service.fifo().backlog()
            }
            Service::Queue(service) => {
                service.catch_up(now);
                service.backlog()
            }
        }
    }

    /// When the packet whose transmission begins `now` left the discipline, in a port that stores
    /// its packets.
    fn left_discipline(&self, now: Time) -> Time {
        match &self.service {
            Service::Fifo(_) => now,
            Service::Queue(service) => service.last_left(now),
        }
    }

    /// Whether there is a device ring behind the discipline.
    const fn has_ring(&self) -> bool {
        match &self.service {
            Service::Fifo(service) => service.has_ring(),
            Service::Queue(service) => service.has_ring(),
        }
    }

    /// What is in the device ring of a port that stores its packets, when it left the discipline, and
    /// its ECN field.
    pub fn in_ring(&self) -> impl Iterator<Item = (Time, &T, Ecn)> {
        let service = match &self.service {
            Service::Fifo(_) => None,
            Service::Queue(service) => Some(service),
        };
        service.into_iter().flat_map(QueueService::in_ring)
    }

    /// How long a packet of `size` IP bytes occupies the wire.
    pub fn transmission_time(&self, size: u32) -> Time {
        self.wire.transmission_time(size)
    }

    /// When the port wants to [`depart`](Self::depart): the wire falls free, or a shaper lets the next
    /// packet go; [`Time::NEVER`] if neither is to come or departures are computed.
    #[inline]
    pub fn next_departure(&self) -> Time {
        match &self.service {
            Service::Fifo(_) => Time::NEVER,
            Service::Queue(service) => service.next_departure(),
        }
    }

    /// Whether a shaper holds the wire, which is free: packets wait and none is sent.
    pub fn is_held(&self) -> bool {
        match &self.service {
            Service::Fifo(_) => false,
            Service::Queue(service) => service.is_held(),
        }
    }

    /// Does what falls due before `now` inside: changes of the rate, ticks, samples. All
    /// departures and arrivals before `now` have been reported.
    pub fn catch_up(&mut self, now: Time) {
        match &mut self.service {
            Service::Fifo(service) => service.catch_up(now, &mut self.stats),
            Service::Queue(service) => {
                service.observe_before(now, &mut self.wire, &mut self.stats);
            }
        }
    }

    /// How many departures before `end` it has computed although its discipline decides on departure: in
    /// a port that stores its packets each of them is one for which it is woken.
    pub fn computed_departures(&mut self, end: Time) -> u64 {
        match &mut self.service {
            Service::Fifo(_) => 0,
            Service::Queue(service) => service.computed_departures(end),
        }
    }

    /// Does what falls due before `now` inside, and nothing that falls due then.
    fn catch_up_before(&mut self, now: Time) {
        match &mut self.service {
            Service::Fifo(service) => {
                let last = now.saturating_sub(Time::from_nanos(1));
                service.catch_up(last, &mut self.stats);
            }
            Service::Queue(service) => {
                service.observe_before(now, &mut self.wire, &mut self.stats);
                service.catch_up(now.saturating_sub(Time::from_nanos(1)));
            }
        }
    }

    /// Something about the link changes at `now`, before anything else that happens then. All
    /// departures and arrivals before `now` have been reported.
    ///
    /// # Panics
    ///
    /// Where the change concerns departures that the port has computed, and it is not
    /// [`changeable`](Self::changeable).
    pub fn change(&mut self, now: Time, change: &LinkChange) {
        const DECIDED: &str = "a port that computes departures has decided them";
        self.catch_up_before(now);
        if let Service::Queue(service) = &self.service {
            assert!(!service.computes(), "{DECIDED}");
        }
        let (facts, hashes) = (self.wire.facts(), self.hashes);
        match (&mut self.service, change) {
            (Service::Queue(service), LinkChange::Rate(rate)) => {
                service.set_rate(*rate, &mut self.wire);
            }
            (Service::Queue(_), LinkChange::Delay(delay)) => self.wire.set_delay(*delay),
            (Service::Queue(_), LinkChange::Loss(loss)) => self.wire.set_loss(*loss),
            (Service::Queue(service), LinkChange::Discipline(discipline)) => {
                let queue = service.queue_mut();
                queue.set_parameters(discipline, facts, hashes);
            }
            (Service::Fifo(service), LinkChange::Discipline(discipline)) => {
                let fifo = service.fifo_mut();
                fifo.set_parameters(discipline, facts, hashes);
            }
            (Service::Fifo(_), _) => {
                panic!("{DECIDED}");
            }
        }
    }

    /// What the port is doing at `now`. All departures and arrivals before `now` have been reported.
    pub fn observe(&mut self, now: Time) -> PortState {
        self.catch_up_before(now);
        let mut probes = Vec::new();
        let (backlog, names, wire_free, next_tick) = match &self.service {
            Service::Fifo(service) => {
                let fifo = service.fifo();
                fifo.probe(&mut probes);
                let free = service.wire_free();
                (fifo.backlog(), fifo.probe_names(), free, fifo.next_tick())
            }
            Service::Queue(service) => {
                let queue = service.queue();
                queue.probe(&mut probes);
                let (backlog, ring) = (queue.backlog(), service.ring_bytes());
                let packets = u64::from(backlog.packets) + ring.0;
                let bytes = backlog.bytes + ring.1 + packets * self.wire.facts().framing.0;
                let waiting = self.wire.facts().rate.transmission_time(bytes);
                let free = service.wire_free(now);
                let names = queue.probe_names();
                (service.backlog(), names, free + waiting, queue.next_tick())
            }
        };
        PortState {
            backlog,
            counters: self.counters(),
            probes: names.iter().copied().zip(probes).collect(),
            next_tick,
            rate: self.wire.facts().rate,
            drain: wire_free.saturating_sub(now),
        }
    }

    /// The measured span ends. All departures and arrivals before `end` have been reported, and none
    /// of `end` or later.
    pub fn close(&mut self, end: Time) {
        self.catch_up_before(end);
        let mut parts = None;
        if let Service::Queue(service) = &mut self.service {
            service.account(end, &mut self.stats);
            parts = service.queue_mut().parts(end);
        }
        let counters = self.counters();
        self.stats.close(&counters, parts);
    }

    fn counters(&self) -> Counters {
        match &self.service {
            Service::Fifo(service) => service.fifo().counters(),
            Service::Queue(service) => service.counters(),
        }
    }

    /// What is counted, and the samples that wait to be recorded.
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Counts and samples, mutable, to record the samples.
    pub const fn stats_mut(&mut self) -> &mut LinkStats {
        &mut self.stats
    }

    /// The port is of no more use: what was counted.
    pub fn into_stats(self) -> LinkStats {
        self.stats
    }

    /// Packets that the port stores, in the discipline and in the device ring. Where departures
    /// are computed it stores none: their owner has them.
    pub fn stored_packets(&self) -> u64 {
        match &self.service {
            Service::Fifo(_) => 0,
            Service::Queue(service) => service.stored_packets(),
        }
    }

    /// What came in must have gone out, been dropped, or wait.
    pub fn check_conservation(&self) -> Result<(), RunError> {
        let (waiting, backlog) = match &self.service {
            Service::Fifo(service) => (service.waiting(), service.fifo().backlog()),
            Service::Queue(service) => {
                let backlog = service.backlog();
                (u64::from(backlog.packets), backlog)
            }
        };
        let name = self.stats.name().stream();
        check_queue(&name, &self.counters(), waiting, u64::from(backlog.packets))
    }
}
