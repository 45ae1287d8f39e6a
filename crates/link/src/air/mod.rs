//! Wi-Fi: a medium that an access point and its stations share.
//!
//! An [`Air`] speaks as a [`Port`](crate::Port) that stores its packets: it takes them in, says when
//! something happens next, and hands them out then. All stations hear each other and equally loud.
//! Time is whole nanoseconds. A channel access is two moments: it begins, and its exchange ends with
//! all packets that it delivers. Slots cost nothing. If its sender is surely alone and understood, the
//! first moment costs nothing either: nothing but the next packet that comes could tell.
//!
//! At equal times the medium comes first, then arrivals, as departures do elsewhere.

use std::collections::VecDeque;

use aqmlab_aqm::{Backlog, Counters, Known, LinkFacts, Queue};
use aqmlab_net::{Bytes, Packet, RandomStream, Rate, Time};
use aqmlab_record::{AirTally, LinkDirection, LinkStats, MeasuredSpan, RunError, check_queue};
use aqmlab_scenario::{AccessPointQueue, Edca, Measure, Wifi};

use crate::port::Arrival;
use crate::queue_service::Item;
use crate::wire::{Dropped, Served, Transmission, Way};
use access_point::Turns;
use aggregate::{Aggregate, Limits, Line, Mpdu, Retry};
use category::Categories;
use contention::{Contention, Timing};
use draws::Draws;
use hardware::HARDWARE;
use ledger::{Delivered, Side, deliver, give_up};
use phy::{Nanos, PhyRate};

mod access_point;
mod aggregate;
mod category;
mod contention;
mod draws;
#[cfg(test)]
mod edca_tests;
mod foreseen;
mod hardware;
mod ledger;
mod phy;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod worked;

/// Who sends, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sender {
    contender: usize,
    category: usize,
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
    /// Until when its sender may go on.
    txop: Nanos,
}

/// A queue of `queue = "fifo"`, with packets of all stations.
#[derive(Debug)]
struct Fifo<T> {
    queue: Queue<Item<T>>,
    /// Packets in the driver.
    driver: usize,
}

/// The shared medium, with the queues of all who send. `T` is what a packet is to its owner.
#[derive(Debug)]
pub struct Air<T> {
    categories: Categories,
    /// A contender for each category of the access point, then of each station.
    contention: Contention,
    /// Of each contender.
    hardware: Vec<VecDeque<Aggregate<T>>>,
    /// Of each category of each station, down and up.
    lines: [Vec<Line<T>>; 2],
    /// Of each category.
    turns: Vec<Turns>,
    /// Of each category; none with a queue for each station.
    fifos: Vec<Fifo<T>>,
    rates: Vec<PhyRate>,
    /// Probability that a packet is spoilt, by station.
    errors: Vec<f64>,
    loss_draws: Draws,
    /// Of each category.
    limits: Vec<Limits>,
    exchange: Option<Exchange>,
    /// Who sends next, and when that exchange ends, where it is known that it delivers all: then its
    /// begin is no [departure](Self::depart).
    foreseen: Option<(usize, Nanos)>,
    /// Such exchanges that have begun.
    unseen: u64,
    #[cfg(test)]
    is_step_by_step: bool,
    senders: Vec<Sender>,
    sending: Vec<usize>,
    overtaken: Vec<usize>,
    /// Which packets of the only sender are understood, where some are not.
    understood: Vec<bool>,
    batch: VecDeque<Delivered<T>>,
    batch_at: Time,
    /// When the packet that was handed out last left its queue, and how long its transmission took.
    last: (Time, Time),
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
        let categories = Categories::new(wifi.edca, wifi.phy);
        let span = MeasuredSpan::of(measure);
        let names = LinkDirection::of_air();
        // What one of many has, in their order.
        let each = |owner: usize| (owner / categories.count(), owner % categories.count());
        let hash = |way: usize, category: usize, station: usize| {
            let what = format!("hash/{}", names[way].stream());
            let mut hash = categories.all()[category].draws(seed, &what, station as u64);
            hash.uniform().to_bits()
        };
        let queue = |way: usize, (station, category)| {
            let discipline = [&wifi.discipline, &wifi.station_queue][way];
            let hash = hash(way, category, station);
            let mut queue = Queue::new(discipline, facts(&rates[station]), hash);
            // No dequeue comes before the first arrival, but the medium is quiet.
            queue.idle(Time::ZERO);
            queue
        };
        let is_fifo = wifi.queue == AccessPointQueue::Fifo;
        let lines = [0, 1].map(|way| {
            let has_queue = way == 1 || !is_fifo;
            let lines = 0..count * categories.count();
            let lines = lines.map(|line| Line::new(has_queue.then(|| queue(way, each(line)))));
            lines.collect()
        });
        let fifos = (0..categories.count()).filter(|_| is_fifo);
        let fifos = fifos.map(|category| Fifo {
            queue: Queue::new(&wifi.fifo(), facts(&rates[0]), hash(0, category, count)),
            driver: 0,
        });
        let contenders = (0..(count + 1) * categories.count()).map(|contender| {
            let (node, category) = each(contender);
            let category = &categories.all()[category];
            let draws = category.draws(seed, "backoff/wifi", node as u64);
            (category.access, Draws::Stream(draws))
        });
        let limits = categories.all().iter().map(|category| Limits {
            subframes: if category.has_aggregates {
                subframes as usize
            } else {
                1
            },
            bytes,
            time: time.as_nanos(),
            txop: category.txop,
            retries: wifi.retries,
        });
        let turns = || Turns::new(count, wifi.airtime_fairness && !is_fifo);
        let tally = AirTally {
            internal_collisions: (wifi.edca != Edca::Off).then_some(0),
            ..AirTally::default()
        };
        let sides = [0, 1].map(|way: usize| Side {
            stats: LinkStats::new(names[way].clone(), &[], span, measure.queue_sample),
            waiting: 0,
            accounted: Time::ZERO,
            law_draws: names[way].random_stream(seed, "law"),
        });
        Self {
            contention: Contention::new(Timing::OF_5_GHZ, categories.count(), contenders),
            hardware: (0..(count + 1) * categories.count())
                .map(|_| VecDeque::with_capacity(HARDWARE))
                .collect(),
            lines,
            turns: categories.all().iter().map(|_| turns()).collect(),
            fifos: fifos.collect(),
            loss_draws: Draws::Stream(RandomStream::new(seed, "loss/wifi", 0)),
            limits: limits.collect(),
            tallies: vec![[tally; 2]; count],
            rates,
            errors,
            categories,
            exchange: None,
            foreseen: None,
            unseen: 0,
            #[cfg(test)]
            is_step_by_step: false,
            senders: Vec::new(),
            sending: Vec::new(),
            overtaken: Vec::new(),
            understood: Vec::new(),
            batch: VecDeque::new(),
            batch_at: Time::ZERO,
            last: (Time::ZERO, Time::ZERO),
            sides,
            span,
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
        details: impl Known,
        dropped: &mut Vec<Dropped<T>>,
    ) {
        let just_after = now + Time::from_nanos(1);
        self.catch_up(just_after);
        let category = self.categories.of(packet.dscp);
        let line = self.line(station, category);
        let side = &mut self.sides[way as usize];
        side.account(now);
        let mut arrival = Arrival {
            draws: &mut side.law_draws,
            details,
        };
        let item = Item {
            item,
            class,
            station: station as u16,
        };
        let fifo = self.fifos.get_mut(category);
        if let (Way::Down, Some(Fifo { queue, .. })) = (way, fifo) {
            let before = queue.backlog().packets;
            queue.enqueue(now, packet, item, &mut arrival, |queued, reason| {
                dropped.push(Dropped {
                    at: now,
                    item: queued.item.item,
                    reason: Some(reason),
                });
            });
            side.waiting = side.waiting + queue.backlog().packets - before;
            self.fill_driver(now, category, dropped);
        } else if let Some(queue) = &mut self.lines[way as usize][line].queue {
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
                self.turns[category].wake(station);
            }
        }
        let contender = match way {
            Way::Down => category,
            Way::Up => self.line(station + 1, category),
        };
        let had_something = !self.hardware[contender].is_empty();
        if self.hardware[contender].len() < HARDWARE {
            self.hand_over(now, contender, dropped);
        }
        let side = &mut self.sides[way as usize];
        side.stats.on_length(now, side.waiting);
        if !had_something && !self.hardware[contender].is_empty() {
            if self.foreseen.is_some() && self.contention.next() <= now.as_nanos() {
                self.begin_foreseen(dropped);
            }
            let _drawn = self.contention.ready(contender, now.as_nanos());
            self.foresee();
            #[cfg(test)]
            if let Some(drawn) = _drawn {
                self.log_draw(now.as_nanos(), contender, drawn);
            }
        }
    }

    /// Where a category of a station stands among all of them.
    const fn line(&self, station: usize, category: usize) -> usize {
        station * self.categories.count() + category
    }

    /// When the air wants to [`depart`](Self::depart).
    #[inline]
    pub fn next_departure(&self) -> Time {
        if !self.batch.is_empty() {
            return self.batch_at;
        }
        let next = match (&self.exchange, self.foreseen) {
            (Some(exchange), _) => exchange.end,
            (None, Some((_, end))) => end,
            (None, None) => self.contention.next(),
        };
        Time::from_nanos(next)
    }

    /// Something happens at `now`, which is [`next_departure`](Self::next_departure). Gives a packet
    /// that has come, if any has; others may follow at the same time.
    pub fn depart(
        &mut self,
        now: Time,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<(T, Transmission)> {
        let mut first = None;
        if self.batch.is_empty() {
            self.catch_up(now);
            match (self.foreseen, self.exchange.take()) {
                (Some((sender, _)), _) => first = self.end_foreseen(now, sender, dropped),
                (None, Some(exchange)) => self.end(now, &exchange, dropped),
                (None, None) => self.begin(now, dropped),
            }
        }
        let Delivered {
            item,
            ecn,
            left,
            transmission,
        } = first.or_else(|| self.batch.pop_front())?;
        self.last = (left, transmission);
        Some((item, Transmission::Arrives(self.batch_at, ecn)))
    }

    /// How the packet was served that was handed out last.
    pub const fn last_served(&self) -> Served {
        let (left, transmission) = self.last;
        Served {
            left,
            end: self.batch_at,
            transmission,
            delay: Time::ZERO,
            holder: None,
        }
    }

    /// How long a packet of `size` IP bytes with this code point takes on an idle medium, from its
    /// arrival until it is acknowledged.
    pub fn transmission_time(&self, station: usize, size: u32, dscp: u8) -> Time {
        let rate = &self.rates[station];
        let Timing { slot, sifs, .. } = *self.contention.timing();
        let category = &self.categories.all()[self.categories.of(dscp)];
        let aifs = sifs + category.access.slots * slot;
        let sent = rate.ppdu(rate.alone(size));
        Time::from_nanos(aifs + sent + sifs + rate.ack)
    }

    /// The time has come to begin a transmission, or several that collide.
    fn begin(&mut self, now: Time, dropped: &mut Vec<Dropped<T>>) {
        let (sending, overtaken) = (&mut self.sending, &mut self.overtaken);
        self.contention.begin(sending, overtaken);
        let limit = match sending[..] {
            [only] => self.limits[only % self.categories.count()].txop,
            _ => 0,
        };
        self.send(now.as_nanos(), now.as_nanos() + limit);
        let overtaken = std::mem::take(&mut self.overtaken);
        for &contender in &overtaken {
            self.overtake(now, contender, dropped);
        }
        self.overtaken = overtaken;
    }

    /// Puts on the air what those in `sending` have ready; one alone may go on until the end of its
    /// `txop`.
    fn send(&mut self, begin: Nanos, txop: Nanos) {
        self.senders.clear();
        let categories = self.categories.count();
        let mut last = 0;
        for &contender in &self.sending {
            let aggregate = &self.hardware[contender][0];
            let way = if contender < categories {
                Way::Down
            } else {
                Way::Up
            };
            let end = begin + aggregate.duration;
            last = last.max(end);
            self.senders.push(Sender {
                contender,
                category: contender % categories,
                station: aggregate.station,
                way,
                end,
            });
        }
        let mut exchange = Exchange {
            begin,
            end: last,
            is_good: false,
            txop,
        };
        if let [only] = self.senders[..] {
            let aggregate = &self.hardware[only.contender][0];
            let (error, draws) = (self.errors[only.station], &mut self.loss_draws);
            self.understood.clear();
            if error > 0.0 {
                let mpdus = aggregate.mpdus.iter();
                self.understood
                    .extend(mpdus.map(|_| draws.uniform() >= error));
            }
            exchange.is_good = error == 0.0 || self.understood.contains(&true);
            if exchange.is_good {
                exchange.end += self.answer(aggregate);
            }
        }
        self.exchange = Some(exchange);
        #[cfg(test)]
        self.log_begin(begin);
    }

    /// How long it takes until an aggregate is acknowledged, from its end on.
    fn answer(&self, aggregate: &Aggregate<T>) -> Nanos {
        let rate = &self.rates[aggregate.station];
        let is_alone = aggregate.mpdus.len() == 1;
        let answer = if is_alone { rate.ack } else { rate.block_ack };
        self.contention.timing().sifs + answer
    }

    /// Whether the only sender goes on without contention, as its category may for some time: then it
    /// has the air.
    fn goes_on(&mut self, exchange: &Exchange) -> bool {
        let Some(sender) = self.senders.first().copied().filter(|_| exchange.is_good) else {
            return false;
        };
        let begin = exchange.end + self.contention.timing().sifs;
        let next = self.hardware[sender.contender].front();
        let lasts = |next: &Aggregate<T>| next.duration + self.answer(next);
        let goes_on = next.is_some_and(|next| begin + lasts(next) <= exchange.txop);
        if goes_on {
            self.sending.clear();
            self.sending.push(sender.contender);
            self.contention.hold();
            self.send(begin, exchange.txop);
        }
        goes_on
    }

    /// What was on the air has ended.
    fn end(&mut self, now: Time, exchange: &Exchange, dropped: &mut Vec<Dropped<T>>) {
        self.contention.end(exchange.end);
        let is_measured = self.span.contains(now);
        let senders = std::mem::take(&mut self.senders);
        for sender in &senders {
            let Sender {
                category,
                station,
                way,
                end,
                ..
            } = *sender;
            let stats = &mut self.sides[way as usize].stats;
            stats.on_busy(Time::from_nanos(exchange.begin), Time::from_nanos(end));
            // An access point cannot say whose the transmission was that it did not understand.
            if exchange.is_good || way == Way::Down {
                self.turns[category].charge(station, end - exchange.begin);
            }
            if is_measured {
                let tally = &mut self.tallies[station][way as usize];
                tally.airtime += Time::from_nanos(end - exchange.begin);
                tally.transmissions += 1;
                tally.packets += self.hardware[sender.contender][0].mpdus.len() as u64;
                tally.collisions += u64::from(senders.len() > 1);
            }
        }
        match (exchange.is_good, &senders[..]) {
            (true, [only]) => self.succeed(now, only, dropped),
            _ => self.fail(now, &senders, exchange, dropped),
        }
        self.senders = senders;
        if !self.goes_on(exchange) {
            self.contention.resume();
            self.foresee();
        }
        for side in &mut self.sides {
            side.stats.on_length(now, side.waiting);
        }
    }

    /// Some packets of the only sender were understood.
    fn succeed(&mut self, now: Time, sender: &Sender, dropped: &mut Vec<Dropped<T>>) {
        let Sender {
            contender,
            category,
            station,
            way,
            ..
        } = *sender;
        let aggregate = self.hardware[contender].pop_front();
        let Aggregate {
            mut mpdus,
            duration,
            ..
        } = aggregate.expect("it has sent one");
        #[cfg(test)]
        self.log_success(now.as_nanos(), station, &mpdus);
        let is_measured = self.span.contains(now);
        let retries = self.limits[category].retries;
        let line = self.line(station, category);
        let line = &mut self.lines[way as usize][line];
        let side = &mut self.sides[way as usize];
        let batch = &mut self.batch;
        let (mut done, mut again) = (0, false);
        #[cfg(test)]
        let mut noted = (Vec::new(), Vec::new());
        if self.understood.is_empty() {
            done = mpdus.len();
            let mut receive = |mpdu| {
                line.receive(mpdu, duration, |mpdu, duration| {
                    #[cfg(test)]
                    noted.1.push(mpdu.packet().flow.0);
                    deliver(now, (&mut *batch, &mut side.stats), mpdu, duration);
                });
            };
            // To drain a list of one costs more.
            match done {
                1 => mpdus.pop().into_iter().for_each(receive),
                _ => mpdus.drain(..).for_each(&mut receive),
            }
        } else {
            for (mpdu, is_understood) in mpdus.drain(..).zip(self.understood.drain(..)) {
                if is_understood {
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
                match line.retry(mpdu, retries) {
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
        }
        self.batch_at = now;
        self.spare.push(mpdus);
        if way == Way::Down {
            if again {
                self.turns[category].wake(station);
            }
            self.leaves_driver(category, done);
        }
        let _drawn = self.contention.succeeded(contender);
        #[cfg(test)]
        {
            let (again, released) = noted;
            self.log_delivery(now.as_nanos(), station, &again, &released);
            self.log_idle(now.as_nanos());
            self.log_draw(now.as_nanos(), contender, _drawn);
        }
        self.hand_over_next(now, contender, dropped);
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
                .wait_for_answer(sender.contender, exchange.end, sender.end);
        }
        #[cfg(test)]
        self.log_failure(now.as_nanos(), senders);
        let is_measured = self.span.contains(now);
        for sender in senders {
            let (station, way) = (sender.station, sender.way);
            let [left, lost] = self.try_again(now, sender.contender, dropped);
            if is_measured {
                let tally = &mut self.tallies[station][way as usize];
                tally.retries += left;
                tally.lost += lost;
            }
        }
    }

    /// A contender would have sent, but a higher category of its node does: as after a collision it
    /// doubles its window.
    fn overtake(&mut self, now: Time, contender: usize, dropped: &mut Vec<Dropped<T>>) {
        let station = self.hardware[contender][0].station;
        let way = usize::from(contender >= self.categories.count());
        let [_, lost] = self.try_again(now, contender, dropped);
        if self.span.contains(now) {
            let tally = &mut self.tallies[station][way];
            *tally.internal_collisions.get_or_insert_default() += 1;
            tally.lost += lost;
        }
        let side = &mut self.sides[way];
        side.stats.on_length(now, side.waiting);
    }

    /// What a contender wanted to send did not come: how many packets it will send again, and how many
    /// are given up.
    fn try_again(
        &mut self,
        now: Time,
        contender: usize,
        dropped: &mut Vec<Dropped<T>>,
    ) -> [u64; 2] {
        let category = contender % self.categories.count();
        let way = usize::from(contender >= self.categories.count());
        let station = self.hardware[contender][0].station;
        let line = self.line(station, category);
        let aggregate = &mut self.hardware[contender][0];
        let line = &mut self.lines[way][line];
        let side = &mut self.sides[way];
        let batch = &mut self.batch;
        let sent = aggregate.mpdus.len();
        let mut given_up = Vec::new();
        aggregate.fail(self.limits[category].retries, |mpdu| given_up.push(mpdu));
        let left = aggregate.mpdus.len();
        if left > 0 && left < sent {
            aggregate.measure(&self.rates[station]);
        }
        for mpdu in given_up {
            give_up(now, (batch, &mut side.stats), line, mpdu, dropped);
        }
        self.batch_at = now;
        let _drawn = if left == 0 {
            let empty = self.hardware[contender].pop_front();
            self.spare.extend(empty.map(|it| it.mpdus));
            self.contention.succeeded(contender)
        } else {
            self.contention.failed(contender)
        };
        #[cfg(test)]
        self.log_draw(now.as_nanos(), contender, _drawn);
        if way == Way::Down as usize {
            self.leaves_driver(category, sent - left);
        }
        self.hand_over_next(now, contender, dropped);
        [left as u64, (sent - left) as u64]
    }

    /// Samples that fall due before `time`.
    #[inline]
    pub fn catch_up(&mut self, time: Time) {
        let [down, up] = &self.sides;
        if down.stats.next_sample().min(up.stats.next_sample()) < time {
            self.sample(time);
        }
    }

    #[cold]
    fn sample(&mut self, time: Time) {
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
        let fifos = self.fifos.iter().filter(|_| way == Way::Down);
        fifos.fold(all, |all, fifo| all.with(fifo.queue.backlog()))
    }

    /// What the queues of one way counted.
    pub fn counters(&self, way: Way) -> Counters {
        let queues = self.lines[way as usize].iter();
        let of_lines = queues.filter_map(|line| Some(line.queue.as_ref()?.counters()));
        let fifos = self.fifos.iter().filter(|_| way == Way::Down);
        let mut all = of_lines.chain(fifos.map(|it| it.queue.counters())).cloned();
        let first = all.next().unwrap_or_default();
        all.fold(first, |sum, next| sum.with(&next))
    }

    /// Bits per second that a station is sent, and sends, while a transmission lasts.
    pub fn rate(&self, station: usize) -> Rate {
        Rate::from_bps(self.rates[station].bits_per_second())
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

    /// Counts and samples of both directions, mutable, to record the samples.
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
