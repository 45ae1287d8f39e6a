//! The queues, their turns and the shaper.

use aqmlab_net::{FlowKey, Packet, Time};

use super::ack_filter::{AckFilter, superfluous};
use super::flow_table::{Found, Hosts, Ways};
use super::link_layer::Charge;
use super::tins::{MOST, Shape};
use super::{ACK_FILTER, Isolation, Params};
use crate::aqm::Outcome;
use crate::cobalt::{self, Control, DECREMENT, Head, INCREMENT};
use crate::context::{Ack, Context};
use crate::counters::Reason;
use crate::flow_queues::{Chain, FlowQueues, Links, Sizes};
use crate::link::{Backlog, Limit};
use crate::queue::{Queued, Scheduler, Stats};

/// What waits beside its packet.
#[derive(Debug)]
struct Carried<T> {
    item: T,
    /// What the packet acknowledges, where the ACK filter is on.
    ack: Option<Box<Ack>>,
}

/// In which rotation a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    /// It has nothing to send and nothing to remember.
    #[default]
    None,
    /// It has just woken, or sends little.
    Sparse,
    /// It was sparse and found empty when its turn was over.
    SparseWait,
    /// It has more to send than a turn.
    Bulk,
    /// It is empty, and COBALT remembers.
    Decaying,
}

/// A queue of a tin.
#[derive(Clone, Debug, Default)]
struct Flow {
    /// What it may still send, in charged bytes.
    deficit: f64,
    control: Control,
    set: Set,
    /// The chain that it is in.
    list: List,
    /// Its sender and its receiver, as places of the tables.
    hosts: [u32; 2],
}

/// A chain of queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum List {
    New,
    Old,
    Decaying,
    #[default]
    Nowhere,
}

/// A class of traffic.
#[derive(Debug)]
struct Tin {
    shape: Shape,
    settings: cobalt::Settings,
    ways: Ways,
    hosts: [Hosts; 2],
    /// The chains of its queues, by [`List`].
    lists: [Chain; 3],
    sparse: u32,
    bulk: u32,
    decaying: u32,
    backlog: Backlog,
    time_next: Time,
    /// Where nothing is shaped, what it may still send.
    deficit: i64,
    sent: u64,
    /// Delays of its packets, in seconds: average, peak and base.
    delays: [f64; 3],
}

/// What follows from the parameters.
#[derive(Clone, Debug)]
struct Settings {
    tin_of: [u8; 64],
    /// Whether flows weigh less where their sender, their receiver has many.
    weighs: [bool; 2],
    weighs_any: bool,
    charge: Charge,
    memory: Limit,
    /// Nanoseconds that a byte takes; 0 without a shaper.
    ns_per_byte: f64,
    hash_seed: u64,
}

/// CAKE.
#[derive(Debug)]
pub struct Cake<T> {
    params: Params,
    settings: Settings,
    tins: Vec<Tin>,
    /// The packets: those of a queue in the line of its number, counted through all tins.
    lines: FlowQueues<Carried<T>>,
    flows: Vec<Flow>,
    links: Links,
    /// Bytes that wait in each queue.
    sizes: Sizes,
    /// When the shaper lets the next packet go: by what was sent, and at the latest.
    time_next: Time,
    failsafe_next: Time,
    /// The tin whose turn it is, where nothing is shaped.
    turn: usize,
    /// Flows that had to share a queue.
    collisions: u64,
}

impl<T> Cake<T> {
    pub(super) fn new(params: &Params, seed: u64) -> Self {
        let tin = |shape: Shape| Tin {
            settings: cobalt::Settings {
                target: shape.target,
                interval: shape.interval,
                mtu_time: shape.mtu_time,
                increment: INCREMENT,
                decrement: DECREMENT,
                ecn: params.ecn,
                root: params.root,
            },
            shape,
            ways: Ways::new(params.flows),
            hosts: [Hosts::new(params.flows), Hosts::new(params.flows)],
            lists: [Chain::default(); 3],
            sparse: 0,
            bulk: 0,
            decaying: 0,
            backlog: Backlog::default(),
            time_next: Time::ZERO,
            deficit: 0,
            sent: 0,
            delays: [0.0; 3],
        };
        let tins: Vec<Tin> = params.shapes().into_iter().map(tin).collect();
        let queues = tins.len() as u32 * params.flows;
        let weighs = params.isolation.weighs();
        Self {
            params: params.clone(),
            settings: Settings {
                tin_of: params.tins.map(),
                weighs,
                weighs_any: weighs != [false, false],
                charge: params.charge(),
                memory: Limit::Bytes(params.memory().0),
                ns_per_byte: match params.rate() {
                    0 => 0.0,
                    rate => 1e9 / rate as f64,
                },
                hash_seed: seed,
            },
            tins,
            lines: FlowQueues::new(queues),
            flows: vec![Flow::default(); queues as usize],
            links: Links::new(queues),
            sizes: Sizes::new(queues),
            time_next: Time::ZERO,
            failsafe_next: Time::ZERO,
            turn: 0,
            collisions: 0,
        }
    }

    /// Another rate in bytes per second, of those of `params`: targets, intervals and memory stay.
    #[cfg(feature = "shapers")]
    pub(crate) fn set_rate(&mut self, params: &Params, rate: u64) {
        self.settings.ns_per_byte = 1e9 / rate as f64;
        for (tin, fresh) in self.tins.iter_mut().zip(params.shapes_at(rate)) {
            tin.shape.ns_per_byte = fresh.ns_per_byte;
            tin.shape.flow_quantum = fresh.flow_quantum;
        }
    }

    fn is_shaped(&self) -> bool {
        self.settings.ns_per_byte > 0.0
    }

    /// The tin of a queue.
    #[inline]
    fn tin_of(&self, queue: u32) -> usize {
        (queue / self.params.flows) as usize
    }

    /// The queue of a packet.
    #[inline]
    fn classify(&mut self, tin: usize, packet: &Packet, context: &impl Context) -> u32 {
        let first = tin as u32 * self.params.flows;
        let hash = match self.params.isolation {
            Isolation::Flowblind => 0,
            Isolation::Srchost | Isolation::Dsthost | Isolation::Hosts => {
                self.hash_of_hosts(packet, context)
            }
            _ => (packet.flow.hash(self.settings.hash_seed) >> 32) as u32,
        };
        let flows = &self.flows[first as usize..];
        let in_use = |place: u32| flows[place as usize].set != Set::None;
        let (place, found) = self.tins[tin].ways.find(hash, in_use);
        let queue = first + place;
        if found != Found::Known {
            self.collisions += u64::from(found == Found::Shared);
            if self.settings.weighs_any {
                self.find_hosts(tin, queue, packet, context);
            }
        }
        queue
    }

    /// The hash by which flows of the same hosts share a queue.
    fn hash_of_hosts(&self, packet: &Packet, context: &impl Context) -> u32 {
        let [sender, receiver] = hosts_of(packet, context);
        let seed = self.settings.hash_seed;
        let [sender, receiver] = [sender, receiver].map(|host| FlowKey(host).hash(seed));
        let hash = match self.params.isolation {
            Isolation::Srchost => sender,
            Isolation::Dsthost => receiver,
            _ => FlowKey(sender.rotate_left(1) ^ receiver).hash(seed),
        };
        (hash >> 32) as u32
    }

    /// A queue is taken over by a flow, whose hosts are looked up.
    #[inline(never)]
    fn find_hosts(&mut self, tin: usize, queue: u32, packet: &Packet, context: &impl Context) {
        let hosts = hosts_of(packet, context);
        let is_bulk = self.flows[queue as usize].set == Set::Bulk;
        if is_bulk {
            self.count_hosts(queue, false);
        }
        for (side, host) in hosts.into_iter().enumerate() {
            if self.settings.weighs[side] {
                let hash = (FlowKey(host).hash(self.settings.hash_seed) >> 32) as u32;
                let place = self.tins[tin].hosts[side].find(hash);
                self.flows[queue as usize].hosts[side] = place;
            }
        }
        if is_bulk {
            self.count_hosts(queue, true);
        }
    }

    /// A queue joins the bulk flows of its hosts, or leaves them.
    fn count_hosts(&mut self, queue: u32, joins: bool) {
        let tin = self.tin_of(queue);
        let hosts = self.flows[queue as usize].hosts;
        let tables = self.tins[tin].hosts.iter_mut();
        for ((table, host), weighs) in tables.zip(hosts).zip(self.settings.weighs) {
            match (weighs, joins) {
                (true, true) => table.add(host),
                (true, false) => table.remove(host),
                (false, _) => {}
            }
        }
    }

    /// What a turn adds to what a flow may send.
    #[inline]
    fn quantum(&self, tin: usize, queue: u32) -> f64 {
        let quantum = f64::from(self.tins[tin].shape.flow_quantum);
        if !self.settings.weighs_any {
            return quantum;
        }
        let hosts = self.flows[queue as usize].hosts;
        let bulk = |side: usize| match self.settings.weighs[side] {
            true => self.tins[tin].hosts[side].bulk(hosts[side]),
            false => 0,
        };
        quantum / f64::from(bulk(0).max(bulk(1)).max(1))
    }

    /// Moves a queue to the end of a chain of its tin, from wherever it is.
    #[inline]
    fn move_to(&mut self, tin: usize, queue: u32, list: List) {
        let old = std::mem::replace(&mut self.flows[queue as usize].list, list);
        let lists = &mut self.tins[tin].lists;
        if old == list && list != List::Nowhere {
            return self.links.move_to_end(&mut lists[list as usize], queue);
        }
        if old != List::Nowhere {
            self.links.remove(&mut lists[old as usize], queue);
        }
        if list != List::Nowhere {
            self.links.push_back(&mut lists[list as usize], queue);
        }
    }

    /// Changes the rotation of a queue, and the counts that go with it.
    fn set(&mut self, tin: usize, queue: u32, set: Set) {
        let old = std::mem::replace(&mut self.flows[queue as usize].set, set);
        let tin = &mut self.tins[tin];
        match old {
            Set::Sparse | Set::SparseWait => tin.sparse -= 1,
            Set::Bulk => tin.bulk -= 1,
            Set::Decaying => tin.decaying -= 1,
            Set::None => {}
        }
        match set {
            Set::Sparse | Set::SparseWait => tin.sparse += 1,
            Set::Bulk => tin.bulk += 1,
            Set::Decaying => tin.decaying += 1,
            Set::None => {}
        }
        if (old == Set::Bulk) != (set == Set::Bulk) {
            self.count_hosts(queue, set == Set::Bulk);
        }
    }

    /// Takes a packet out of the head of a queue.
    #[inline]
    fn pop(&mut self, tin: usize, queue: u32) -> Option<Queued<Carried<T>>> {
        let queued = self.lines.pop(queue)?;
        self.sizes.set(queue, self.lines.backlog(queue).bytes);
        self.tins[tin].backlog.remove(queued.packet.size);
        Some(queued)
    }

    /// While too much waits, the longest queue loses its head.
    #[inline(never)]
    fn make_room(&mut self, now: Time, stats: &mut Stats<T>) {
        while self.settings.memory.is_exceeded(self.lines.total()) {
            let queue = self.sizes.largest();
            let tin = self.tin_of(queue);
            let Some(queued) = self.pop(tin, queue) else {
                return;
            };
            let control = &mut self.flows[queue as usize].control;
            control.on_overflow(&self.tins[tin].settings, now);
            if self.params.ingress {
                let charged = self.settings.charge.of(queued.packet.size);
                self.advance(now, tin, charged, true);
            }
            stats.drop(uncarried(queued), Reason::OVERFLOW);
        }
    }

    /// Drops an ACK that the newcomer at the end of its queue makes superfluous.
    #[inline(never)]
    fn filter_acks(&mut self, tin: usize, queue: u32, flow: FlowKey, stats: &mut Stats<T>) {
        let newcomer = self.lines.tail(queue);
        let Some(newcomer) = newcomer.and_then(|queued| queued.item.ack.as_deref()) else {
            return;
        };
        let before = self.lines.backlog(queue).packets as usize - 1;
        let waiting = self.lines.waiting(queue).take(before);
        let waiting = waiting.map(|(place, queued)| {
            let ack = queued.item.ack.as_deref();
            (place, queued.packet.flow == flow, ack)
        });
        let Some(place) = superfluous(self.params.ack_filter, newcomer, waiting) else {
            return;
        };
        if let Some(queued) = self.lines.remove(queue, place) {
            self.sizes.set(queue, self.lines.backlog(queue).bytes);
            self.tins[tin].backlog.remove(queued.packet.size);
            stats.drop(uncarried(queued), ACK_FILTER);
        }
    }

    /// The tin that sends next; something waits.
    #[inline]
    fn next_tin(&mut self, now: Time) -> Option<usize> {
        if self.tins.len() == 1 {
            return Some(0);
        }
        if self.is_shaped() {
            return self.scheduled_tin(now);
        }
        // Each round adds to what each may send: somebody will.
        loop {
            let tin = &mut self.tins[self.turn];
            let is_active = tin.sparse + tin.bulk > 0;
            if tin.deficit >= 0 && is_active {
                return Some(self.turn);
            }
            if tin.deficit <= 0 {
                tin.deficit += i64::from(tin.shape.weight);
            }
            self.turn = (self.turn + 1) % self.tins.len();
        }
    }

    /// The last of the tins that are due, or the one that will be first; of equals the last.
    fn scheduled_tin(&self, now: Time) -> Option<usize> {
        let mut best: Option<(Time, usize)> = None;
        for (number, tin) in self.tins.iter().enumerate() {
            if tin.sparse + tin.bulk == 0 {
                continue;
            }
            let earliest = best.is_none_or(|(time, _)| tin.time_next <= time);
            if tin.time_next <= now || earliest {
                best = Some((tin.time_next, number));
            }
        }
        best.map(|(_, number)| number)
    }

    /// Charges the shaper and the tin for a packet.
    #[inline]
    fn advance(&mut self, now: Time, tin: usize, charged: u32, is_dropped: bool) {
        if !self.is_shaped() {
            return;
        }
        let tin = &mut self.tins[tin];
        let nanos = |ns_per_byte: f64| Time::from_nanos((f64::from(charged) * ns_per_byte) as u64);
        let of_tin = nanos(tin.shape.ns_per_byte);
        if tin.time_next < now {
            tin.time_next += of_tin;
        } else if tin.time_next < now + of_tin {
            tin.time_next = now + of_tin;
        }
        let of_all = nanos(self.settings.ns_per_byte);
        self.time_next += of_all;
        if !is_dropped {
            self.failsafe_next += of_all + Time::from_nanos(of_all.as_nanos() / 2);
        }
    }

    /// A packet goes: what it is charged, and how long it waited.
    #[inline]
    fn send(&mut self, now: Time, tin: usize, queue: u32, queued: Queued<Carried<T>>) -> Queued<T> {
        let charged = self.settings.charge.of(queued.packet.size);
        self.flows[queue as usize].deficit -= f64::from(charged);
        self.advance(now, tin, charged, false);
        let tin = &mut self.tins[tin];
        tin.deficit -= i64::from(charged);
        tin.sent += 1;
        let delay = (now - queued.arrived).as_secs_f64();
        let [average, peak, base] = &mut tin.delays;
        *average += (delay - *average) / 256.0;
        *peak += (delay - *peak) / if delay > *peak { 4.0 } else { 256.0 };
        *base += (delay - *base) / if delay < *base { 4.0 } else { 256.0 };
        uncarried(queued)
    }

    /// The next packet of a queue, and what COBALT says; nothing if the queue has none, or if the
    /// dropped packets count as sent and others are to have their turn.
    fn take(
        &mut self,
        now: Time,
        tin: usize,
        queue: u32,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Taken<T> {
        let mut dropped = false;
        while let Some(queued) = self.pop(tin, queue) {
            let bulk = match self.params.ingress {
                true => self.tins[tin].bulk,
                false => 0,
            };
            let head = Head {
                sojourn: now - queued.arrived,
                is_capable: queued.packet.ecn.is_capable(),
                is_last: self.lines.backlog(queue).packets == 0,
            };
            let control = &mut self.flows[queue as usize].control;
            let outcome = control.judge(&self.tins[tin].settings, now, head, bulk, draw);
            match outcome {
                Outcome::Drop(reason) => {
                    let charged = self.settings.charge.of(queued.packet.size);
                    stats.drop(uncarried(queued), reason);
                    if self.params.ingress {
                        self.advance(now, tin, charged, true);
                        self.flows[queue as usize].deficit -= f64::from(charged);
                        self.tins[tin].deficit -= i64::from(charged);
                        return Taken::OthersFirst;
                    }
                    dropped = true;
                }
                Outcome::Mark(reason) => {
                    stats.count_mark(reason);
                    let mut queued = queued;
                    queued.packet.ecn = aqmlab_net::Ecn::Ce;
                    return Taken::Packet(queued);
                }
                Outcome::Enqueue => return Taken::Packet(queued),
            }
        }
        debug_assert!(!dropped, "the last packet is sent");
        Taken::Nothing
    }

    /// A queue whose turn it is has nothing to send.
    fn found_empty(&mut self, now: Time, tin: usize, queue: u32) {
        let control = &mut self.flows[queue as usize].control;
        control.on_empty(&self.tins[tin].settings, now);
        let (set, list) = match control.is_at_rest(now) {
            true => (Set::None, List::Nowhere),
            false => (Set::Decaying, List::Decaying),
        };
        self.set(tin, queue, set);
        self.move_to(tin, queue, list);
    }

    /// The queue of a tin whose turn it is, if one has something to send or to forget.
    #[inline]
    fn next_queue(&mut self, tin: usize, is_first_look: &mut bool) -> Option<u32> {
        loop {
            let [new, old, decaying] = self.tins[tin].lists.map(Chain::first);
            let forgetting = decaying.filter(|_| std::mem::take(is_first_look));
            *is_first_look = false;
            let queue = forgetting.or(new).or(old).or(decaying)?;
            let flow = &self.flows[queue as usize];
            if flow.deficit > 0.0 {
                return Some(queue);
            }
            if flow.set == Set::Sparse {
                let set = match self.lines.backlog(queue).packets {
                    0 => Set::SparseWait,
                    _ => Set::Bulk,
                };
                self.set(tin, queue, set);
            }
            let quantum = self.quantum(tin, queue);
            self.flows[queue as usize].deficit += quantum;
            self.move_to(tin, queue, List::Old);
        }
    }
}

/// What a queue gave.
enum Taken<T> {
    Packet(Queued<Carried<T>>),
    Nothing,
    /// A packet was dropped and counts as sent.
    OthersFirst,
}

/// The hosts of a packet; where nobody knows them, each flow has its own.
fn hosts_of(packet: &Packet, context: &impl Context) -> [u64; 2] {
    let details = context.details();
    details.map_or([packet.flow.0; 2], |details| details.hosts)
}

fn uncarried<T>(queued: Queued<Carried<T>>) -> Queued<T> {
    Queued::new(queued.arrived, queued.packet, queued.item.item)
}

impl<T> Scheduler<T> for Cake<T> {
    /// Queues, tins and the flows' deficits stay; what is due at the old rate goes then.
    fn adopt(&mut self, fresh: Self) {
        (self.params, self.settings) = (fresh.params, fresh.settings);
        for (tin, fresh) in self.tins.iter_mut().zip(fresh.tins) {
            (tin.shape, tin.settings) = (fresh.shape, fresh.settings);
        }
    }

    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let tin = usize::from(self.settings.tin_of[usize::from(packet.dscp & 63)]);
        let queue = self.classify(tin, &packet, context);
        if self.tins[tin].backlog.packets == 0 {
            let time_next = &mut self.tins[tin].time_next;
            *time_next = (*time_next).max(now);
            if self.lines.total().packets == 0 && self.time_next < now {
                (self.time_next, self.failsafe_next) = (now, now);
            }
        }
        let filters = self.params.ack_filter != AckFilter::Off;
        let ack = filters.then(|| context.details().and_then(|details| details.ack));
        let ack = ack.flatten().map(Box::new);
        self.lines
            .push(queue, Queued::new(now, packet, Carried { item, ack }));
        self.sizes.set(queue, self.lines.backlog(queue).bytes);
        self.tins[tin].backlog.add(packet.size);
        if filters && self.lines.backlog(queue).packets > 1 {
            self.filter_acks(tin, queue, packet.flow, stats);
        }
        match self.flows[queue as usize].set {
            Set::None | Set::Decaying => {
                self.set(tin, queue, Set::Sparse);
                self.flows[queue as usize].deficit = self.quantum(tin, queue);
                self.move_to(tin, queue, List::New);
            }
            Set::SparseWait => self.set(tin, queue, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
        if self.settings.memory.is_exceeded(self.lines.total()) {
            self.make_room(now, stats);
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        let mut is_first_look = true;
        while self.lines.total().packets > 0 {
            if self.is_shaped() && self.time_next > now && self.failsafe_next > now {
                return None;
            }
            let tin = self.next_tin(now)?;
            while let Some(queue) = self.next_queue(tin, &mut is_first_look) {
                match self.take(now, tin, queue, stats, draw) {
                    Taken::Packet(queued) => return Some(self.send(now, tin, queue, queued)),
                    Taken::OthersFirst => {}
                    Taken::Nothing => {
                        self.found_empty(now, tin, queue);
                        break;
                    }
                }
            }
        }
        None
    }

    fn next_release(&self) -> Time {
        self.time_next.min(self.failsafe_next)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.lines.total()
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &NAMES[..COMMON + PER_TIN * self.tins.len()]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let unresponsive = self.flows.iter().filter(|flow| flow.control.p_blue > 0.0);
        let sum = |count: fn(&Tin) -> u32| f64::from(self.tins.iter().map(count).sum::<u32>());
        out.extend([
            sum(|tin| tin.sparse),
            sum(|tin| tin.bulk),
            sum(|tin| tin.decaying),
            unresponsive.count() as f64,
            self.collisions as f64,
        ]);
        for tin in &self.tins {
            out.push(f64::from(tin.backlog.packets));
            out.push(tin.sent as f64);
            out.extend(tin.delays);
        }
    }
}

/// Inner variables beside those of each tin.
const COMMON: usize = 5;
const PER_TIN: usize = 5;

/// Names of the inner variables: those of all tins, then those of each.
const NAMES: [&str; COMMON + PER_TIN * MOST] = [
    "sparse_flows",
    "bulk_flows",
    "decaying_flows",
    "unresponsive_flows",
    "collisions",
    "tin0_packets",
    "tin0_sent",
    "tin0_delay_s",
    "tin0_peak_delay_s",
    "tin0_base_delay_s",
    "tin1_packets",
    "tin1_sent",
    "tin1_delay_s",
    "tin1_peak_delay_s",
    "tin1_base_delay_s",
    "tin2_packets",
    "tin2_sent",
    "tin2_delay_s",
    "tin2_peak_delay_s",
    "tin2_base_delay_s",
    "tin3_packets",
    "tin3_sent",
    "tin3_delay_s",
    "tin3_peak_delay_s",
    "tin3_base_delay_s",
    "tin4_packets",
    "tin4_sent",
    "tin4_delay_s",
    "tin4_peak_delay_s",
    "tin4_base_delay_s",
    "tin5_packets",
    "tin5_sent",
    "tin5_delay_s",
    "tin5_peak_delay_s",
    "tin5_base_delay_s",
    "tin6_packets",
    "tin6_sent",
    "tin6_delay_s",
    "tin6_peak_delay_s",
    "tin6_base_delay_s",
    "tin7_packets",
    "tin7_sent",
    "tin7_delay_s",
    "tin7_peak_delay_s",
    "tin7_base_delay_s",
];

#[cfg(test)]
impl<T> Cake<T> {
    /// Queues in which BLUE is at work.
    pub(super) fn unresponsive(&self) -> usize {
        let unresponsive = self.flows.iter().filter(|flow| flow.control.p_blue > 0.0);
        unresponsive.count()
    }

    pub(super) fn largest_blue(&self) -> f64 {
        let probabilities = self.flows.iter().map(|flow| flow.control.p_blue);
        probabilities.fold(0.0, f64::max)
    }

    pub(super) fn largest_count(&self) -> u32 {
        let counts = self.flows.iter().map(|flow| flow.control.count);
        counts.max().unwrap_or(0)
    }
}
