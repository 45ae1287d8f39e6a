//! Packets of one station in one direction: from their queue into aggregates, and at the receiver
//! back into their order.

use std::collections::VecDeque;

use aqmlab_aqm::{Backlog, Queue, Queued};
use aqmlab_net::{Packet, Time};

use super::contention::Timing;
use super::phy::{Nanos, PhyRate};
use crate::queue_service::Item;

/// The numbers of the packets in an aggregate lie within so many.
const WINDOW: u64 = 64;

/// A packet that has left its queue.
#[derive(Debug)]
pub(super) struct Mpdu<T> {
    pub(super) queued: Queued<Item<T>>,
    /// When it was handed over for the first time.
    pub(super) handed: Option<Time>,
    number: u64,
    /// How often it was sent in vain.
    tries: u32,
}

impl<T> Mpdu<T> {
    pub(super) const fn packet(&self) -> &Packet {
        &self.queued.packet
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}

/// Packets that are sent together. One alone is no aggregate.
#[derive(Debug)]
pub(super) struct Aggregate<T> {
    pub(super) station: usize,
    pub(super) mpdus: Vec<Mpdu<T>>,
    /// How long its transmission lasts.
    pub(super) duration: Nanos,
}

impl<T> Aggregate<T> {
    /// The bytes of its transmission.
    pub(super) fn bytes(&self, rate: &PhyRate) -> u64 {
        match &self.mpdus[..] {
            [only] => rate.alone(only.packet().size),
            all => {
                let sizes = all.iter().map(|mpdu| mpdu.packet().size);
                sizes.map(|size| rate.in_aggregate(size)).sum()
            }
        }
    }

    /// Those are left of it.
    pub(super) fn measure(&mut self, rate: &PhyRate) {
        self.duration = rate.ppdu(self.bytes(rate));
    }

    /// All were sent in vain: those that were so too often leave it.
    pub(super) fn fail(&mut self, retries: u32, mut given_up: impl FnMut(Mpdu<T>)) {
        for mpdu in &mut self.mpdus {
            mpdu.tries += 1;
        }
        for mpdu in self.mpdus.extract_if(.., |mpdu| mpdu.tries > retries) {
            given_up(mpdu);
        }
    }
}

/// What an aggregate holds at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) subframes: usize,
    pub(super) bytes: u64,
    pub(super) time: Nanos,
    /// How long its sender may have the air, until it is acknowledged; 0 if that is no matter.
    pub(super) txop: Nanos,
    /// How often a packet is sent again.
    pub(super) retries: u32,
}

/// What becomes of a packet that the receiver did not understand.
pub(super) enum Retry<T> {
    /// It is sent again.
    Again,
    /// It was sent too often.
    GivenUp(Mpdu<T>),
}

/// The packets for one station, or from it.
#[derive(Debug)]
pub(super) struct Line<T> {
    /// In order: those that are sent again, the one that did not fit, those that stand in the driver.
    front: VecDeque<Mpdu<T>>,
    /// Nothing where they come from the queue of all stations.
    pub(super) queue: Option<Queue<Item<T>>>,
    next_number: u64,
    order: Order<T>,
}

impl<T> Line<T> {
    pub(super) fn new(queue: Option<Queue<Item<T>>>) -> Self {
        Self {
            front: VecDeque::new(),
            queue,
            next_number: 0,
            order: Order::default(),
        }
    }

    pub(super) fn has_packets(&self) -> bool {
        let waits = |queue: &Queue<_>| queue.backlog().packets > 0;
        !self.front.is_empty() || self.queue.as_ref().is_some_and(waits)
    }

    /// Packets in its queue.
    pub(super) fn backlog(&self) -> Backlog {
        let queue = self.queue.as_ref();
        queue.map_or_else(Backlog::default, Queue::backlog)
    }

    /// Packets that have left the queue and are not on their way, and those that wait for others.
    pub(super) fn kept(&self) -> u64 {
        self.front.len() as u64 + self.order.kept()
    }

    /// A packet comes from the queue of all stations.
    pub(super) fn push(&mut self, queued: Queued<Item<T>>) {
        let mpdu = self.numbered(queued);
        self.front.push_back(mpdu);
    }

    fn numbered(&mut self, queued: Queued<Item<T>>) -> Mpdu<T> {
        let number = self.next_number;
        self.next_number += 1;
        Mpdu {
            queued,
            handed: None,
            number,
            tries: 0,
        }
    }

    fn pop(
        &mut self,
        dequeue: &mut impl FnMut(&mut Queue<Item<T>>) -> Option<Queued<Item<T>>>,
    ) -> Option<Mpdu<T>> {
        if let Some(first) = self.front.pop_front() {
            return Some(first);
        }
        let queued = dequeue(self.queue.as_mut()?)?;
        Some(self.numbered(queued))
    }

    /// Fills an aggregate with its next packets; returns how long that lasts on the air, or nothing if
    /// there are none.
    pub(super) fn fill(
        &mut self,
        now: Time,
        mpdus: &mut Vec<Mpdu<T>>,
        (rate, limits): (&PhyRate, &Limits),
        mut dequeue: impl FnMut(&mut Queue<Item<T>>) -> Option<Queued<Item<T>>>,
    ) -> Option<Nanos> {
        let mut first = self.pop(&mut dequeue)?;
        first.handed.get_or_insert(now);
        let size = first.packet().size;
        let (mut bytes, number) = (rate.in_aggregate(size), first.number);
        let mut duration = rate.ppdu(rate.alone(size));
        mpdus.push(first);
        while mpdus.len() < limits.subframes {
            let Some(mut next) = self.pop(&mut dequeue) else {
                break;
            };
            let more = bytes + rate.in_aggregate(next.packet().size);
            let lasts = rate.ppdu(more);
            let fits = next.number - number < WINDOW && more <= limits.bytes;
            let answered = lasts + Timing::OF_5_GHZ.sifs + rate.block_ack;
            let is_in_txop = limits.txop == 0 || answered <= limits.txop;
            if !fits || lasts > limits.time || !is_in_txop {
                self.front.push_front(next);
                break;
            }
            (bytes, duration) = (more, lasts);
            next.handed.get_or_insert(now);
            mpdus.push(next);
        }
        Some(duration)
    }

    /// A packet was not understood: it waits in front of the others, in its order, unless that happened
    /// too often.
    pub(super) fn retry(&mut self, mut mpdu: Mpdu<T>, retries: u32) -> Retry<T> {
        mpdu.tries += 1;
        if mpdu.tries > retries {
            return Retry::GivenUp(mpdu);
        }
        let later = self.front.iter().position(|it| it.number > mpdu.number);
        let place = later.unwrap_or(self.front.len());
        self.front.insert(place, mpdu);
        Retry::Again
    }

    /// The receiver has a packet: it and those that waited for it go on.
    pub(super) fn receive(
        &mut self,
        mpdu: Mpdu<T>,
        duration: Nanos,
        mut on: impl FnMut(Mpdu<T>, Nanos),
    ) {
        if mpdu.number == self.order.next && self.order.slots.is_empty() {
            self.order.next += 1;
            return on(mpdu, duration);
        }
        self.order.put(mpdu.number, Slot::Here(mpdu, duration));
        self.order.release(on);
    }

    /// The receiver need not wait for a packet.
    pub(super) fn skip(&mut self, number: u64, on: impl FnMut(Mpdu<T>, Nanos)) {
        self.order.put(number, Slot::Skipped);
        self.order.release(on);
    }
}

/// What a receiver has that came before an earlier packet.
#[derive(Debug)]
struct Order<T> {
    /// The number of the packet that goes on next.
    next: u64,
    slots: VecDeque<Slot<T>>,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self {
            next: 0,
            slots: VecDeque::new(),
        }
    }
}

#[derive(Debug)]
enum Slot<T> {
    Missing,
    /// With the duration of its transmission.
    Here(Mpdu<T>, Nanos),
    Skipped,
}

impl<T> Order<T> {
    fn put(&mut self, number: u64, slot: Slot<T>) {
        let place = (number - self.next) as usize;
        while self.slots.len() <= place {
            self.slots.push_back(Slot::Missing);
        }
        self.slots[place] = slot;
    }

    fn release(&mut self, mut on: impl FnMut(Mpdu<T>, Nanos)) {
        while let Some(first) = self.slots.pop_front() {
            match first {
                Slot::Missing => return self.slots.push_front(Slot::Missing),
                Slot::Here(mpdu, duration) => on(mpdu, duration),
                Slot::Skipped => {}
            }
            self.next += 1;
        }
    }

    fn kept(&self) -> u64 {
        let here = |slot: &&Slot<T>| matches!(slot, Slot::Here(..));
        self.slots.iter().filter(here).count() as u64
    }
}
