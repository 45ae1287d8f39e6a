//! Things by the time at which they are due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use aqmlab_net::Time;

/// Something that is due at a time; among equal times in the order of insertion.
#[derive(Debug)]
struct Due<T> {
    at: Time,
    serial: u64,
    what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    /// The earliest is the greatest, for a heap that hands out the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

/// Things by the time at which they are due.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    heap: BinaryHeap<Due<T>>,
    serial: u64,
}

impl<T> EventQueue<T> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            serial: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Time, what: T) {
        self.serial += 1;
        let serial = self.serial;
        self.heap.push(Due { at, serial, what });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// When the first of them is due.
    pub(crate) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |due| due.at)
    }

    /// The first of them, if it is due by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|due| (due.at, due.what))
    }
}
