//! Queues that own their packets: an AQM over a FIFO, or a scheduler that decides when it hands a
//! packet out, keeps several queues, or takes packets out of the middle.

use std::collections::VecDeque;

use aqmlab_net::{Ecn, FlowKey, Packet, Time};

use crate::aqm::{Decision, Outcome};
use crate::bypass::{Bypass, Room};
use crate::context::Context;
use crate::counters::{Counters, Reason};
use crate::fifo_queue::FifoQueue;
use crate::link::{Backlog, LinkFacts};
use crate::parts::{Holder, Parts};
use crate::{AnyScheduler, Discipline};
use aqmlab_declare::Parameters;

/// A packet that waits; `item` is what its owner wants back with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<T> {
    /// What a discipline may know of it.
    pub packet: Packet,
    /// When it came.
    pub arrived: Time,
    /// The owner's own.
    pub item: T,
}

impl<T> Queued<T> {
    pub(crate) const fn new(arrived: Time, packet: Packet, item: T) -> Self {
        Self {
            packet,
            arrived,
            item,
        }
    }
}

/// Packets that wait in line, counted.
#[derive(Debug)]
pub(crate) struct PacketQueue<T> {
    packets: VecDeque<Queued<T>>,
    backlog: Backlog,
}

impl<T> Default for PacketQueue<T> {
    fn default() -> Self {
        Self {
            packets: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }
}

impl<T> PacketQueue<T> {
    #[inline]
    pub(crate) fn push(&mut self, queued: Queued<T>) {
        self.backlog.add(queued.packet.size);
        self.packets.push_back(queued);
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Queued<T>> {
        let queued = self.packets.pop_front()?;
        self.backlog.remove(queued.packet.size);
        Some(queued)
    }

    /// The packet at the head.
    #[inline]
    pub(crate) fn head(&self) -> Option<&Queued<T>> {
        self.packets.front()
    }

    /// The flow of a packet, counted from the head.
    #[inline]
    pub(crate) fn flow(&self, index: usize) -> FlowKey {
        self.packets[index].packet.flow
    }

    /// Takes a packet out of the middle; the shorter side closes up.
    pub(crate) fn remove(&mut self, index: usize) -> Option<Queued<T>> {
        let queued = self.packets.remove(index)?;
        self.backlog.remove(queued.packet.size);
        Some(queued)
    }

    #[inline]
    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }
}

/// Where schedulers account for what they drop and mark, and hand back what they drop.
#[derive(Debug)]
pub struct Stats<T> {
    counters: Counters,
    dropped: Vec<(Queued<T>, Reason)>,
}

impl<T> Stats<T> {
    /// Those of a discipline that drops and marks for these reasons.
    pub(crate) fn new(reasons: &'static [Reason]) -> Self {
        Self {
            counters: Counters::new(reasons),
            dropped: Vec::new(),
        }
    }

    /// Gives a packet up.
    #[inline]
    pub fn drop(&mut self, queued: Queued<T>, reason: Reason) {
        self.counters.dropped[reason.index()] += 1;
        self.dropped.push((queued, reason));
    }

    /// Signals congestion to a packet: marks and returns it where `ecn` is on and it is capable,
    /// else gives it up.
    #[inline]
    pub fn signal(&mut self, queued: Queued<T>, ecn: bool, reason: Reason) -> Option<Queued<T>> {
        let outcome = Decision::Signal(reason).outcome(&queued.packet, ecn, true);
        self.settle(queued, outcome)
    }

    /// Does to a packet what became of it, and returns it if it waits.
    #[inline]
    pub fn settle(&mut self, mut queued: Queued<T>, outcome: Outcome) -> Option<Queued<T>> {
        match outcome {
            Outcome::Enqueue => {}
            Outcome::Mark(reason) => {
                queued.packet.ecn = Ecn::Ce;
                self.count_mark(reason);
            }
            Outcome::Drop(reason) => {
                self.drop(queued, reason);
                return None;
            }
        }
        Some(queued)
    }

    /// Counts a mark.
    #[inline]
    pub(crate) fn count_mark(&mut self, reason: Reason) {
        self.counters.marked[reason.index()] += 1;
    }

    /// What was dropped and marked so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Hands all that was dropped and marked since then on to other stats, under other reasons. Gives
    /// their numbers.
    #[inline]
    #[cfg(feature = "shapers")]
    pub(crate) fn fold_into(
        &mut self,
        other: &mut Self,
        reason: impl Fn(Reason) -> Reason,
    ) -> (u64, u64) {
        let marked: u64 = self.counters.marked.iter().sum();
        if marked > 0 {
            // All that can be marked is a signal.
            other.counters.marked[Reason::EARLY.index()] += marked;
            self.counters.marked = Default::default();
        }
        let dropped = self.dropped.len() as u64;
        self.hand_back(|queued, why| other.drop(queued, reason(why)));
        (dropped, marked)
    }

    /// Tells `dropped` of the packets dropped since it was called last.
    #[inline]
    pub(crate) fn hand_back(&mut self, mut dropped: impl FnMut(Queued<T>, Reason)) {
        if self.dropped.is_empty() {
            return; // Nearly always: a drain would cost more than the look.
        }
        for (queued, reason) in self.dropped.drain(..) {
            dropped(queued, reason);
        }
    }
}

/// A discipline that owns its packets. Random numbers come from `draw`, as for a
/// [`Aqm`](crate::Aqm); what is dropped or marked goes through the stats.
pub trait Scheduler<T> {
    /// A packet arrives: it waits, or the stats has it.
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    );

    /// Hands out the next packet. With packets waiting there is one, unless all were dropped now or
    /// a shaper holds them back until [`next_release`](Self::next_release).
    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>>;

    /// When a dequeue that handed out nothing although packets wait is to be tried again.
    fn next_release(&self) -> Time {
        Time::NEVER
    }

    /// Whether a dequeue may hand out something sooner than [`next_release`](Self::next_release) because
    /// a packet has come.
    #[inline]
    fn arrivals_release(&self) -> bool {
        false
    }

    /// The size of the packet that a dequeue hands out next, if that is sure before it.
    fn head_size(&self) -> Option<u32> {
        None
    }

    /// The wire has been quiet since then: a dequeue found nothing.
    fn on_idle(&mut self, _since: Time) {}

    /// When the discipline wants to be woken next, whatever arrives.
    fn next_tick(&self) -> Time {
        Time::NEVER
    }

    /// It is [`next_tick`](Self::next_tick), which moves on.
    fn on_tick(&mut self, _now: Time) {}

    /// The link has changed.
    fn set_link(&mut self, _link: LinkFacts) {}

    /// Its parameters have changed: `fresh` is what a run with the new ones begins with. The
    /// packets that wait, and what the discipline has learned, stay.
    fn adopt(&mut self, _fresh: Self)
    where
        Self: Sized,
    {
    }

    /// What waits.
    fn backlog(&self) -> Backlog;

    /// Its parts are counted from now on.
    fn begin_parts(&mut self, _now: Time) {}

    /// What was counted of its parts up to now; nothing if it has none.
    fn parts(&mut self, _now: Time) -> Option<Parts> {
        None
    }

    /// The cell of the packet that it handed out last: its place in [`Parts::cells`].
    fn last_cell(&self) -> Option<u16> {
        None
    }

    /// Which of its parts held that packet longest, if one did and somebody
    /// [watches](Self::watch_holders).
    fn last_holder(&self) -> Option<Holder> {
        None
    }

    /// The names of its parts, by their numbers. From now on it notes which of them held a packet.
    fn watch_holders(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Names of the inner variables that [`probe`](Self::probe) shows, in its order.
    fn probe_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Appends the inner variables, as they are after the last event.
    fn probe(&self, _out: &mut Vec<f64>) {}
}

/// Parameters from which a scheduler is made.
pub trait SchedulerParameters: Parameters {
    /// The scheduler that they are for.
    type Scheduler<T>: Scheduler<T>;

    /// Why it can drop or mark a packet.
    const REASONS: &'static [Reason];

    /// The reasons of these parameters, which may rule some of them out.
    fn reasons(&self) -> &'static [Reason] {
        Self::REASONS
    }

    /// Which of these parameters can change during a run; see [`Scheduler::adopt`].
    fn changeable(&self) -> Vec<&'static str> {
        Self::CHANGEABLE.to_vec()
    }

    /// The empty queue in front of `link`. `seed` is for hash functions.
    fn scheduler<T>(&self, link: LinkFacts, seed: u64) -> Self::Scheduler<T>;
}

/// A single queue, served in order, behind the fifo of an AQM.
#[derive(Debug)]
pub(crate) struct StoredFifo<T> {
    fifo: FifoQueue,
    waiting: VecDeque<Queued<T>>,
}

impl<T> StoredFifo<T> {
    const fn new(fifo: FifoQueue) -> Self {
        Self {
            fifo,
            waiting: VecDeque::new(),
        }
    }
}

impl<T> Scheduler<T> for StoredFifo<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let outcome = self.fifo.arrive(now, &packet, &mut || context.draw());
        let settled = stats.settle(Queued::new(now, packet, item), outcome);
        self.waiting.extend(settled);
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        _stats: &mut Stats<T>,
        _draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        let queued = self.waiting.pop_front()?;
        self.fifo.depart(now, &queued.packet, queued.arrived);
        Some(queued)
    }

    fn head_size(&self) -> Option<u32> {
        self.waiting.front().map(|queued| queued.packet.size)
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.fifo.idle(since);
    }

    fn next_tick(&self) -> Time {
        self.fifo.next_tick()
    }

    fn on_tick(&mut self, _now: Time) {
        self.fifo.tick();
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.fifo.set_link(link);
    }

    fn adopt(&mut self, fresh: Self) {
        self.fifo.adopt(fresh.fifo);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn probe_names(&self) -> &'static [&'static str] {
        self.fifo.probe_names()
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.fifo.probe(out);
    }
}

impl<T> AnyScheduler<T> {
    /// Any discipline with its packets, of which there are none.
    pub(crate) fn new(discipline: &Discipline, link: LinkFacts, seed: u64) -> Self {
        discipline.scheduler(link, seed).unwrap_or_else(|| {
            let fifo = FifoQueue::new(discipline, link, seed);
            Self::StoredFifo(StoredFifo::new(
                fifo.expect("what is no scheduler is an AQM"),
            ))
        })
    }
}

/// Any discipline with its packets and its counters.
///
/// At equal times departures come first, then ticks, then [`idle`](Self::idle), then the arrival.
#[derive(Debug)]
pub struct Queue<T> {
    scheduler: AnyScheduler<T>,
    stats: Stats<T>,
    last_arrival: Time,
    next_tick: Time,
}

impl<T> Queue<T> {
    /// An empty queue in front of `link`, quiet since time 0. `seed` is for hash functions.
    pub fn new(discipline: &Discipline, link: LinkFacts, seed: u64) -> Self {
        let scheduler = AnyScheduler::new(discipline, link, seed);
        Self {
            next_tick: scheduler.next_tick(),
            scheduler,
            last_arrival: Time::ZERO,
            stats: Stats::new(discipline.reasons()),
        }
    }

    /// A packet arrives. `dropped` is called with what is dropped, which may be other packets.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        context: &mut impl Context,
        dropped: impl FnMut(Queued<T>, Reason),
    ) {
        self.last_arrival = now;
        self.stats.counters.arrive(packet.size);
        self.scheduler
            .enqueue(now, packet, item, &mut self.stats, context);
        self.stats.hand_back(dropped);
    }

    /// Hands out the next packet, with the mark that it got. `dropped` is called with what is dropped.
    #[inline(always)]
    pub fn dequeue(
        &mut self,
        now: Time,
        draw: &mut impl FnMut() -> f64,
        dropped: impl FnMut(Queued<T>, Reason),
    ) -> Option<Queued<T>> {
        let next = self.scheduler.dequeue(now, &mut self.stats, draw);
        if let Some(queued) = &next {
            self.stats.counters.depart(queued.packet.size);
        }
        self.stats.hand_back(dropped);
        next
    }

    /// When to dequeue again where that handed out nothing although packets wait: a shaper holds
    /// them back.
    pub fn next_release(&self) -> Time {
        self.scheduler.next_release()
    }

    /// Whether a packet that has come may be handed out sooner than that.
    pub fn arrivals_release(&self) -> bool {
        self.scheduler.arrivals_release()
    }

    /// The queue is empty and the wire has been quiet since then. Time before the last arrival is
    /// not counted twice.
    #[inline]
    pub fn idle(&mut self, since: Time) {
        self.scheduler.on_idle(since.max(self.last_arrival));
    }

    /// When the discipline wants to be woken next.
    #[inline]
    pub fn next_tick(&self) -> Time {
        self.next_tick
    }

    /// It is [`next_tick`](Self::next_tick).
    pub fn tick(&mut self) {
        self.scheduler.on_tick(self.next_tick);
        self.next_tick = self.scheduler.next_tick();
    }

    /// The link has changed.
    pub fn set_link(&mut self, link: LinkFacts) {
        self.scheduler.set_link(link);
    }

    /// The parameters have changed to those of `discipline`, which is of the same kind. The rest is
    /// as for [`new`](Self::new).
    pub fn set_parameters(&mut self, discipline: &Discipline, link: LinkFacts, seed: u64) {
        self.scheduler
            .adopt(AnyScheduler::new(discipline, link, seed));
        self.next_tick = self.scheduler.next_tick();
    }

    /// What waits now.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.scheduler.backlog()
    }

    /// Packets that arrive at the empty queue and wait for less than this may bypass it: they leave
    /// unmarked, whatever arrives behind them, and leave no trace. [`Time::ZERO`]: there are none.
    #[inline]
    pub fn bypass_below(&self) -> Time {
        let bypass = self.scheduler.bypass();
        bypass.map_or(Time::ZERO, Bypass::bypass_below)
    }

    /// How much may wait before the empty queue.
    pub fn bypass_room(&self) -> Room {
        self.scheduler.bypass().map_or(Room::NONE, Bypass::room)
    }

    /// These packets have bypassed the queue and still wait: they count towards its limit.
    pub fn set_bypassed(&mut self, waiting: Backlog) {
        if let Some(bypass) = self.scheduler.bypass_mut() {
            bypass.set_bypassed(waiting);
        }
    }

    /// Counts a packet of this size that arrives and bypasses the queue.
    #[inline]
    pub fn count_bypassed(&mut self, now: Time, size: u32) {
        self.last_arrival = now;
        self.stats.counters.arrive(size);
        self.stats.counters.depart(size);
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        self.stats.counters()
    }

    /// Its parts are counted from now on.
    pub fn begin_parts(&mut self, now: Time) {
        self.scheduler.begin_parts(now);
    }

    /// What was counted of its parts up to now; nothing if it has none.
    pub fn parts(&mut self, now: Time) -> Option<Parts> {
        self.scheduler.parts(now)
    }

    /// The cell of the packet that it handed out last: its place in [`Parts::cells`].
    #[inline]
    pub fn last_cell(&self) -> Option<u16> {
        self.scheduler.last_cell()
    }

    /// Which of its parts held that packet longest, if one did.
    pub fn last_holder(&self) -> Option<Holder> {
        self.scheduler.last_holder()
    }

    /// The names of its parts, by their numbers. From now on it notes which of them held a packet.
    pub fn watch_holders(&mut self) -> Vec<String> {
        self.scheduler.watch_holders()
    }

    /// Names of the discipline's inner variables.
    pub fn probe_names(&self) -> &'static [&'static str] {
        self.scheduler.probe_names()
    }

    /// Appends the discipline's inner variables to `out`.
    pub fn probe(&self, out: &mut Vec<f64>) {
        self.scheduler.probe(out);
    }
}
