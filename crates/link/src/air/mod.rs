//! Wi-Fi: a medium that an access point and its stations share.
//!
//! An [`Air`] speaks as a [`Port`](crate::Port) that stores its packets: it takes them in, says when
//! something happens next, and hands them out then. All stations hear each other and equally loud.
//! Time is whole nanoseconds. A channel access is two moments: it begins, and its exchange ends with
//! all packets that it delivers. Slots cost nothing.
//!
//! At equal times the medium comes first, then arrivals, as departures do elsewhere.

use std::collections::VecDeque;

use aqmlab_aqm::{Backlog, Counters, Details, LinkFacts, Queue, Queued};
use aqmlab_net::{Bytes, Packet, RandomStream, Rate, Time};
use aqmlab_record::{AirTally, LinkDirection, LinkStats, MeasuredSpan, RunError, check_queue};
use aqmlab_scenario::{AccessPointQueue, Measure, Phy, Wifi};

use crate::port::Arrival;
use crate::wire::{Dropped, Served, Transmission};
use access_point::Turns;
use aggregate::{Aggregate, Item, Limits, Line, Mpdu, Retry};
use contention::{Contention, Timing};
use draws::Draws;
use ledger::{Delivered, Side, deliver, give_up};
use phy::{Nanos, PhyRate};

mod access_point;
mod aggregate;
mod contention;
mod draws;
mod ledger;
mod phy;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod worked;

/// Aggregates that are handed over and not sent yet, of the access point and of each station: what
/// ath9k has.
const HARDWARE: usize = 2;

/// Packets that the driver behind `queue = "fifo"` holds, those in the hardware included: what ath9k
/// has.
const DRIVER: usize = 123;

/// The way of a packet on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the access point to a station.
    Down,
    /// From a station to the access point.
    Up,
}

/// Who sends, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sender {
    node: usize,
    station: usize,
    way: Way,
    /// When its own transmission ends.
    end: Nanos,
}

/// What is on the air.
#[derive(Debug)]
struct Exchange {
    begin: Nanos,
    end: Nanos,
    /// Some packet of its only sender is understood.
    is_good: bool,
}

/// The one queue of `queue = "fifo"`, with packets of all stations.
#[derive(Debug)]
struct Fifo<T> {
    queue: Queue<Addressed<T>>,
    /// Packets in the driver.
    driver: usize,
}

/// A packet and its station.
#[derive(Debug)]
struct Addressed<T> {
    item: Item<T>,
    station: usize,
}

/// The shared medium, with the queues of all who send. `T` is what a packet is to its owner.
#[derive(Debug)]
pub struct Air<T> {
    contention: Contention,
    /// Of the access point, then of each station.
    hardware: Vec<VecDeque<Aggregate<T>>>,
    /// Of each station, down and up.
    lines: [Vec<Line<T>>; 2],
    turns: Turns,
    fifo: Option<Fifo<T>>,
    rates: Vec<PhyRate>,
    /// Probability that a packet is spoilt, by station.
    errors: Vec<f64>,
    loss_draws: Draws,
    limits: Limits,
    exchange: Option<Exchange>,
    senders: Vec<Sender>,
    sending: Vec<usize>,
    /// Which packets of the only sender are understood, where some are not.
    understood: Vec<bool>,
    batch: VecDeque<Delivered<T>>,
    batch_at: Time,
    last: Served,
    sides: [Side; 2],
    span: MeasuredSpan,
    /// By station, down and up.
    tallies: Vec<[AirTally; 2]>,
    /// Lists to use again.
    spare: Vec<Vec<Mpdu<T>>>,
    #[cfg(test)]
    log: tests::Log,
}

impl<T> Air<T> {
    /// The air of a scenario, quiet since time 0. The rest is as for [`Port::new`](crate::Port::new).
    pub fn new(wifi: &Wifi, seed: u64, measure: &Measure) -> Self {
        let mut rates = Vec::new();
        let mut errors = Vec::new();
        for stations in &wifi.stations {
            let modulation = stations.modulation(wifi.phy);
            let rate = PhyRate::new(wifi.phy, modulation.expect("it is checked"));
            let count = stations.count as usize;
            rates.extend(std::iter::repeat_n(rate, count));
            errors.extend(std::iter::repeat_n(stations.frame_error, count));
        }
        Self::with_rates(wifi, rates, errors, seed, measure)
    }

    fn with_rates(
        wifi: &Wifi,
        rates: Vec<PhyRate>,
        errors: Vec<f64>,
        seed: u64,
        measure: &Measure,
    ) -> Self {
        let count = rates.len();
        let (subframes, bytes, time) = wifi.aggregation();
        let slots = if wifi.phy == Phy::A { 2 } else { 3 };
        let backoff = |node| Draws::Stream(RandomStream::new(seed, "backoff/wifi", node));
        let span = MeasuredSpan::of(measure);
        let names = LinkDirection::of_air();
        let hashes = |way: usize, station| {
            let mut hash =
                RandomStream::new(seed, &format!("hash/{}", names[way].stream()), station);
            hash.uniform().to_bits()
        };
        let queue = |way: usize, station: usize| {
            let discipline = [&wifi.discipline, &wifi.station_queue][way];
            let hash = hashes(way, station as u64);
            let mut queue = Queue::new(discipline, facts(&rates[station]), hash);
            // No dequeue comes before the first arrival, but the medium is quiet.
            queue.idle(Time::ZERO);
            queue
        };
        let is_fifo = wifi.queue == AccessPointQueue::Fifo;
        let lines = [0, 1].map(|way| {
            let has_queue = way == 1 || !is_fifo;
            let lines = (0..count).map(|station| Line::new(has_queue.then(|| queue(way, station))));
            lines.collect()
        });
        let fifo = is_fifo.then(|| Fifo {
            queue: Queue::new(&wifi.fifo(), facts(&rates[0]), hashes(0, count as u64)),
            driver: 0,
        });
        let sides = [0, 1].map(|way: usize| Side {
            stats: LinkStats::new(names[way].clone(), &[], span, measure.queue_sample),
            waiting: 0,
            accounted: Time::ZERO,
            law_draws: names[way].random_stream(seed, "law"),
        });
        Self {
            contention: Contention::new(Timing::of_5_ghz(slots), (0..=count as u64).map(backoff)),
            hardware: (0..=count)
                .map(|_| VecDeque::with_capacity(HARDWARE))
                .collect(),
            lines,
            turns: Turns::new(count, wifi.airtime_fairness && !is_fifo),
            fifo,
            rates,
            errors,
            loss_draws: Draws::Stream(RandomStream::new(seed, "loss/wifi", 0)),
            limits: Limits {
                subframes: subframes as usize,
                bytes,
                time: time.as_nanos(),
                retries: wifi.retries,
            },
            exchange: None,
            senders: Vec::new(),
            sending: Vec::new(),
            understood: Vec::new(),
            batch: VecDeque::new(),
            batch_at: Time::ZERO,
            last: Served {
                left: Time::ZERO,
                end: Time::ZERO,
                transmission: Time::ZERO,
                delay: Time::ZERO,
                holder: None,
            },
            sides,
            span,
            tallies: vec![Default::default(); count],
            spare: Vec::new(),
            #[cfg(test)]
            log: tests::Log::default(),
        }
    }

    /// A packet of a class comes for a station, or from it. What disciplines drop joins `dropped`. Look
    /// at [`next_departure`](Self::next_departure) then.
    pub fn take_in(
        &mut self,
        now: Time,
        (packet, class): (Packet, u16),
        item: T,
        (station, way): (usize, Way),
        details: impl Fn() -> Details,
        dropped: &mut Vec<Dropped<T>>,
    ) {
        let just_after = now + Time::from_nanos(1);
        self.catch_up(just_after);
        let side = &mut self.sides[way as usize];
        side.account(now);
        let mut arrival = Arrival {
            draws: &mut side.law_draws,
            details,
        };
        let item = Item { item, class };
        if let (Way::Down, Some(Fifo { queue, .. })) = (way, &mut self.fifo) {
            let item = Addressed { item, station };
            let before = queue.backlog().packets;
            queue.enqueue(now, packet, item, &mut arrival, |queued, reason| {
                dropped.push(Dropped {
                    at: now,
                    item: queued.item.item.item,
                    reason: Some(reason),
                });
            });
            side.waiting = side.waiting + queue.backlog().packets - before;
            self.fill_driver(now, dropped);
        } else if let Some(queue) = &mut self.lines[way as usize][station].queue {
            while queue.next_tick() <= now {
                queue.tick();
            }
            let before = queue.backlog().packets;
            queue.enqueue(now, packet, item, &mut arrival, |queued, reason| {
                dropped.push(Dropped {
                    at: now,
                    item: queued.item.item,
                    reason: Some(reason),
                });
            });
            side.waiting = side.waiting + queue.backlog().packets - before;
            if way == Way::Down {
                self.turns.wake(station);
            }
        }
        let node = match way {
            Way::Down => 0,
            Way::Up => station + 1,
        };
        let had_something = !self.hardware[node].is_empty();
        self.hand_over(now, node, dropped);
        let side = &mut self.sides[way as usize];
        side.stats.on_length(now, side.waiting);
        if !had_something && !self.hardware[node].is_empty() {
            let _drawn = self.contention.ready(node, now.as_nanos());
            #[cfg(test)]
            if let Some(drawn) = _drawn {
                self.log_draw(now.as_nanos(), node, drawn);
            }
        }
    }

    /// When the air wants to [`depart`](Self::depart).
    #[inline]
    pub fn next_departure(&self) -> Time {
        if !self.batch.is_empty() {
            return self.batch_at;
        }
        match &self.exchange {
            Some(exchange) => Time::from_nanos(exchange.end),
            None => Time::from_nanos(self.contention.next()),
        }
    }

    /// Something happens at `now`, which is [`next_departure`](Self::next_departure). Gives a packet
    /// that has come, if any has; others may follow at the same time.
    pub fn depart(
        &mut self,
        now: Time,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<(T, Transmission)> {
        if self.batch.is_empty() {
            self.catch_up(now);
            match self.exchange.take() {
                Some(exchange) => self.end(now, &exchange, dropped),
                None => self.begin(now.as_nanos()),
            }
        }
        let delivered = self.batch.pop_front()?;
        self.last = delivered.served;
        Some((delivered.item, delivered.transmission))
    }

    /// How the packet was served that was handed out last.
    pub const fn last_served(&self) -> Served {
        self.last
    }

    /// How long a packet of `size` IP bytes takes on an idle medium, from its arrival until it is
    /// acknowledged.
    pub fn transmission_time(&self, station: usize, size: u32) -> Time {
        let rate = &self.rates[station];
        let timing = self.contention.timing();
        let sent = rate.ppdu(rate.alone(size));
        Time::from_nanos(timing.aifs + sent + timing.sifs + rate.ack)
    }

    /// The time has come to begin a transmission, or several that collide.
    fn begin(&mut self, now: Nanos) {
        let mut sending = std::mem::take(&mut self.sending);
        self.contention.begin(&mut sending);
        self.senders.clear();
        for &node in &sending {
            let aggregate = self.hardware[node]
                .front()
                .expect("it has something to send");
            let way = if node == 0 { Way::Down } else { Way::Up };
            self.senders.push(Sender {
                node,
                station: aggregate.station,
                way,
                end: now + aggregate.duration,
            });
        }
        self.sending = sending;
        let last = self.senders.iter().map(|it| it.end).max();
        let mut exchange = Exchange {
            begin: now,
            end: last.expect("somebody sends"),
            is_good: false,
        };
        if let [only] = self.senders[..] {
            let aggregate = &self.hardware[only.node][0];
            let (error, draws) = (self.errors[only.station], &mut self.loss_draws);
            self.understood.clear();
            if error > 0.0 {
                let mpdus = aggregate.mpdus.iter();
                self.understood
                    .extend(mpdus.map(|_| draws.uniform() >= error));
            }
            exchange.is_good = error == 0.0 || self.understood.contains(&true);
            if exchange.is_good {
                let rate = &self.rates[only.station];
                let is_alone = aggregate.mpdus.len() == 1;
                let answer = if is_alone { rate.ack } else { rate.block_ack };
                exchange.end += self.contention.timing().sifs + answer;
            }
        }
        self.exchange = Some(exchange);
        #[cfg(test)]
        self.log_begin(now);
    }

    /// What was on the air has ended.
    fn end(&mut self, now: Time, exchange: &Exchange, dropped: &mut Vec<Dropped<T>>) {
        self.contention.end(exchange.end);
        let is_measured = self.span.contains(now);
        let senders = std::mem::take(&mut self.senders);
        for sender in &senders {
            let Sender {
                station, way, end, ..
            } = *sender;
            let stats = &mut self.sides[way as usize].stats;
            stats.on_busy(Time::from_nanos(exchange.begin), Time::from_nanos(end));
            // An access point cannot say whose the transmission was that it did not understand.
            if exchange.is_good || way == Way::Down {
                self.turns.charge(station, end - exchange.begin);
            }
            if is_measured {
                let tally = &mut self.tallies[station][way as usize];
                tally.airtime += Time::from_nanos(end - exchange.begin);
                tally.transmissions += 1;
                tally.packets += self.hardware[sender.node][0].mpdus.len() as u64;
                tally.collisions += u64::from(senders.len() > 1);
            }
        }
        match (exchange.is_good, &senders[..]) {
            (true, [only]) => self.succeed(now, only, dropped),
            _ => self.fail(now, &senders, exchange, dropped),
        }
        self.senders = senders;
        self.contention.resume();
        for side in &mut self.sides {
            side.stats.on_length(now, side.waiting);
        }
    }

    /// Some packets of the only sender were understood.
    fn succeed(&mut self, now: Time, sender: &Sender, dropped: &mut Vec<Dropped<T>>) {
        let Sender {
            node, station, way, ..
        } = *sender;
        let aggregate = self.hardware[node].pop_front();
        let Aggregate {
            mut mpdus,
            duration,
            ..
        } = aggregate.expect("it has sent one");
        #[cfg(test)]
        self.log_success(now.as_nanos(), station, &mpdus);
        let is_measured = self.span.contains(now);
        let line = &mut self.lines[way as usize][station];
        let side = &mut self.sides[way as usize];
        let batch = &mut self.batch;
        let (mut done, mut again) = (0, false);
        #[cfg(test)]
        let mut noted = (Vec::new(), Vec::new());
        for (index, mpdu) in mpdus.drain(..).enumerate() {
            if self.understood.get(index).copied().unwrap_or(true) {
                done += 1;
                line.receive(mpdu, duration, |mpdu, duration| {
                    #[cfg(test)]
                    noted.1.push(mpdu.packet().flow.0);
                    deliver(now, (batch, &mut side.stats), mpdu, duration);
                });
                continue;
            }
            #[cfg(test)]
            noted.0.push(mpdu.packet().flow.0);
            match line.retry(mpdu, self.limits.retries) {
                Retry::Again => {
                    again = true;
                    self.tallies[station][way as usize].retries += u64::from(is_measured);
                }
                Retry::GivenUp(mpdu) => {
                    done += 1;
                    self.tallies[station][way as usize].lost += u64::from(is_measured);
                    give_up(now, (batch, &mut side.stats), line, mpdu, dropped);
                }
            }
        }
        self.understood.clear();
        self.batch_at = now;
        self.spare.push(mpdus);
        if way == Way::Down {
            if again {
                self.turns.wake(station);
            }
            self.leaves_driver(done);
        }
        let _drawn = self.contention.succeeded(node);
        #[cfg(test)]
        {
            let (again, released) = noted;
            self.log_delivery(now.as_nanos(), station, &again, &released);
            self.log_idle(now.as_nanos());
            self.log_draw(now.as_nanos(), node, _drawn);
        }
        self.go_on(now, node, way, dropped);
    }

    /// Nobody was understood.
    fn fail(
        &mut self,
        now: Time,
        senders: &[Sender],
        exchange: &Exchange,
        dropped: &mut Vec<Dropped<T>>,
    ) {
        for sender in senders {
            self.contention
                .wait_for_answer(sender.node, exchange.end, sender.end);
        }
        #[cfg(test)]
        self.log_failure(now.as_nanos(), senders);
        let is_measured = self.span.contains(now);
        for sender in senders {
            let Sender {
                node, station, way, ..
            } = *sender;
            let aggregate = &mut self.hardware[node][0];
            let line = &mut self.lines[way as usize][station];
            let side = &mut self.sides[way as usize];
            let batch = &mut self.batch;
            let sent = aggregate.mpdus.len();
            let mut given_up = Vec::new();
            aggregate.fail(self.limits.retries, |mpdu| given_up.push(mpdu));
            let left = aggregate.mpdus.len();
            if left > 0 && left < sent {
                aggregate.measure(&self.rates[station]);
            }
            for mpdu in given_up {
                give_up(now, (batch, &mut side.stats), line, mpdu, dropped);
            }
            self.batch_at = now;
            if is_measured {
                let tally = &mut self.tallies[station][way as usize];
                tally.retries += left as u64;
                tally.lost += (sent - left) as u64;
            }
            let _drawn = if left == 0 {
                let empty = self.hardware[node].pop_front();
                self.spare.extend(empty.map(|it| it.mpdus));
                self.contention.succeeded(node)
            } else {
                self.contention.failed(node)
            };
            #[cfg(test)]
            self.log_draw(now.as_nanos(), node, _drawn);
            if way == Way::Down {
                self.leaves_driver(sent - left);
            }
            self.go_on(now, node, way, dropped);
        }
    }

    /// So many packets for stations are over, come or given up.
    const fn leaves_driver(&mut self, packets: usize) {
        if let Some(fifo) = &mut self.fifo {
            fifo.driver -= packets;
        }
    }

    /// A sender hands over what comes next.
    fn go_on(&mut self, now: Time, node: usize, way: Way, dropped: &mut Vec<Dropped<T>>) {
        if way == Way::Down {
            self.fill_driver(now, dropped);
        }
        self.hand_over(now, node, dropped);
        if self.hardware[node].is_empty() {
            self.contention.quiet(node);
        }
    }

    /// Moves packets from the one queue into the driver while it has room.
    fn fill_driver(&mut self, now: Time, dropped: &mut Vec<Dropped<T>>) {
        let Some(fifo) = &mut self.fifo else {
            return;
        };
        let side = &mut self.sides[Way::Down as usize];
        while fifo.driver < DRIVER && fifo.queue.backlog().packets > 0 {
            let next = side.dequeue(&mut fifo.queue, now, |queued, reason| {
                dropped.push(Dropped {
                    at: now,
                    item: queued.item.item.item,
                    reason: Some(reason),
                });
            });
            let Some(Queued {
                packet,
                arrived,
                item,
            }) = next
            else {
                return;
            };
            let Addressed { item, station } = item;
            fifo.driver += 1;
            self.lines[Way::Down as usize][station].push(Queued {
                packet,
                arrived,
                item,
            });
            self.turns.wake(station);
        }
    }

    /// Fills the hardware of a node as far as it has packets.
    fn hand_over(&mut self, now: Time, node: usize, dropped: &mut Vec<Dropped<T>>) {
        while self.hardware[node].len() < HARDWARE {
            let (way, station) = match node {
                0 => {
                    let lines = &self.lines[Way::Down as usize];
                    match self.turns.next(|station| lines[station].has_packets()) {
                        Some(station) => (Way::Down, station),
                        None => return,
                    }
                }
                _ => (Way::Up, node - 1),
            };
            let mut mpdus = self.spare.pop().unwrap_or_default();
            let line = &mut self.lines[way as usize][station];
            let side = &mut self.sides[way as usize];
            let filled = line.fill(
                now,
                &mut mpdus,
                (&self.rates[station], &self.limits),
                |queue| {
                    side.dequeue(queue, now, |queued, reason| {
                        dropped.push(Dropped {
                            at: now,
                            item: queued.item.item,
                            reason: Some(reason),
                        });
                    })
                },
            );
            let Some(duration) = filled else {
                self.spare.push(mpdus);
                if way == Way::Up {
                    return;
                }
                self.turns.unlist();
                continue;
            };
            self.hardware[node].push_back(Aggregate {
                station,
                mpdus,
                duration,
            });
            if way == Way::Down {
                self.turns.handed();
                #[cfg(test)]
                self.log_hand(now.as_nanos());
            }
        }
    }

    /// Samples that fall due before `time`.
    pub fn catch_up(&mut self, time: Time) {
        for way in [Way::Down, Way::Up] {
            while self.sides[way as usize].stats.next_sample() < time {
                let backlog = self.backlog(way);
                let counters = self.counters(way);
                let stats = &mut self.sides[way as usize].stats;
                stats.on_sample(backlog, || counters, |_| {});
            }
        }
    }

    /// What waits in the queues of one way.
    pub fn backlog(&self, way: Way) -> Backlog {
        let lines = self.lines[way as usize].iter().map(Line::backlog);
        let all = lines.fold(Backlog::default(), Backlog::with);
        match (way, &self.fifo) {
            (Way::Down, Some(fifo)) => all.with(fifo.queue.backlog()),
            _ => all,
        }
    }

    /// What the queues of one way counted.
    fn counters(&self, way: Way) -> Counters {
        let queues = self.lines[way as usize].iter();
        let of_lines = queues.filter_map(|line| Some(line.queue.as_ref()?.counters()));
        let fifo = self.fifo.as_ref().filter(|_| way == Way::Down);
        let mut all = of_lines.chain(fifo.map(|it| it.queue.counters())).cloned();
        let first = all.next().unwrap_or_default();
        all.fold(first, |sum, next| sum.with(&next))
    }

    /// The measured span ends: nothing departs any more.
    pub fn close(&mut self, end: Time) {
        self.catch_up(end);
        for way in [Way::Down, Way::Up] {
            let counters = self.counters(way);
            let side = &mut self.sides[way as usize];
            side.account(end);
            side.stats.close(&counters, None);
        }
    }

    /// What is counted down and up, and the samples that wait to be recorded.
    pub fn stats(&self) -> [&LinkStats; 2] {
        self.sides.each_ref().map(|side| &side.stats)
    }

    /// The same, to record the samples.
    pub fn stats_mut(&mut self) -> [&mut LinkStats; 2] {
        self.sides.each_mut().map(|side| &mut side.stats)
    }

    /// The air is of no more use: what was counted.
    pub fn into_stats(self) -> ([LinkStats; 2], Vec<[AirTally; 2]>) {
        (self.sides.map(|side| side.stats), self.tallies)
    }

    /// What each station did in the measured span, down and up.
    pub fn tallies(&self) -> &[[AirTally; 2]] {
        &self.tallies
    }

    /// Packets that the air stores: in queues, in drivers and hardware, and at receivers.
    pub fn stored_packets(&self) -> u64 {
        let queues = [Way::Down, Way::Up].map(|way| u64::from(self.backlog(way).packets));
        let lines = self.lines.iter().flatten().map(Line::kept);
        let hardware = self.hardware.iter().flatten();
        let handed = hardware.map(|aggregate| aggregate.mpdus.len() as u64);
        let batch = self.batch.len() as u64;
        queues.into_iter().chain(lines).chain(handed).sum::<u64>() + batch
    }

    /// What came in must have gone out, been dropped, or wait.
    pub fn check_conservation(&self) -> Result<(), RunError> {
        for way in [Way::Down, Way::Up] {
            let side = &self.sides[way as usize];
            let (waiting, backlog) = (side.waiting, self.backlog(way).packets);
            let name = side.stats.name().stream();
            check_queue(&name, &self.counters(way), waiting.into(), backlog.into())?;
        }
        Ok(())
    }
}

/// The link that a station's queue serves: what it is while it sends.
fn facts(rate: &PhyRate) -> LinkFacts {
    LinkFacts {
        rate: Rate::from_bps(rate.bits_per_second()),
        framing: Bytes(rate.alone(0)),
    }
}
