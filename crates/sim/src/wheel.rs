//! The event queue: a two-level timing wheel with a heap beyond, FIFO among equal times.
//!
//! With fine buckets of 16.4 us they hold the next 268 ms, coarse buckets (1.05 ms) the 4 s behind
//! that, a heap the rest. Buckets are unsorted lists. Coarse ones move over whole as time reaches them; a
//! fine one is sorted, stably, into a short array when its turn comes.
//!
//! Why equal times stay in order of insertion: an event goes to the finest level that covers its
//! time *now*; a level's cover only grows, and whatever waited in the coarser level for the newly
//! covered span moves over, in order, at the moment the cover grows. So of two events with equal
//! times the earlier one is never behind the later one in a bucket, and sorting keeps them so.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::Time;

/// Fine buckets per coarse bucket, as a power of two.
const FINE_PER_COARSE: u32 = 6;
/// Coarse buckets that the fine wheel covers.
const COVERED: u64 = 256;
const FINE: usize = (COVERED as usize) << FINE_PER_COARSE;
const COARSE: usize = 4096;
/// Width of a fine bucket, as a power of two of nanoseconds.
const FINE_SHIFT: u32 = 14;

/// Buckets of up to so many events are sorted by insertion.
const INSERTION: usize = 16;

const NIL: u32 = u32::MAX;

/// A queue of `E`, earliest first, equal times in order of insertion.
#[derive(Debug)]
pub struct Wheel<E> {
    nodes: Vec<Node<E>>,
    free: u32,
    fine: Level<FINE>,
    coarse: Level<COARSE>,
    far: BinaryHeap<Reverse<(Time, u64, u32)>>,
    /// Orders equal times in the heap.
    pushed_far: u64,
    fine_shift: u32,
    /// The events of the fine bucket whose turn it is, latest first, so that the next one is at
    /// the end. What is pushed into this bucket (or before it) goes here.
    current: Vec<(Time, E)>,
    /// The fine bucket behind the current one (counted from time 0). Those before are empty.
    cursor: u64,
    /// The fine wheel covers coarse buckets below this one (counted from time 0).
    horizon: u64,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node<E> {
    time: Time,
    next: u32,
    event: E,
}

/// One ring of buckets: linked lists and a bitmap of those that are not empty.
#[derive(Debug)]
struct Level<const N: usize> {
    buckets: Vec<(u32, u32)>,
    occupied: Vec<u64>,
}

impl<const N: usize> Level<N> {
    fn new() -> Self {
        Self {
            buckets: vec![(NIL, NIL); N],
            occupied: vec![0; N / 64],
        }
    }

    const fn slot(bucket: u64) -> usize {
        bucket as usize & (N - 1)
    }

    /// Puts a node behind all others of a bucket.
    #[inline]
    fn append<E>(&mut self, nodes: &mut [Node<E>], node: u32, bucket: u64) {
        let slot = Self::slot(bucket);
        nodes[node as usize].next = NIL;
        let (head, tail) = self.buckets[slot];
        if head == NIL {
            self.buckets[slot] = (node, node);
            self.occupied[slot / 64] |= 1 << (slot % 64);
        } else {
            nodes[tail as usize].next = node;
            self.buckets[slot].1 = node;
        }
    }

    /// Empties a bucket; returns the first of its nodes.
    fn take(&mut self, bucket: u64) -> u32 {
        let slot = Self::slot(bucket);
        let (head, _) = std::mem::replace(&mut self.buckets[slot], (NIL, NIL));
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        head
    }

    /// The first bucket that is not empty, from `bucket` on and less than a turn away.
    #[inline]
    fn next_occupied(&self, bucket: u64) -> Option<u64> {
        let start = Self::slot(bucket);
        let first = self.occupied[start / 64] >> (start % 64);
        if first != 0 {
            return Some(bucket + u64::from(first.trailing_zeros()));
        }
        let words = N / 64;
        let mut ahead = (64 - start % 64) as u64;
        for step in 1..=words {
            let word = self.occupied[(start / 64 + step) % words];
            if word != 0 {
                return Some(bucket + ahead + u64::from(word.trailing_zeros()));
            }
            ahead += 64;
        }
        None
    }
}

impl<E: Copy> Default for Wheel<E> {
    fn default() -> Self {
        Self::with_bucket_shift(FINE_SHIFT)
    }
}

impl<E: Copy> Wheel<E> {
    /// A wheel whose fine buckets are 2^`shift` nanoseconds wide. The order of events does not
    /// depend on it, only the speed.
    pub fn with_bucket_shift(shift: u32) -> Self {
        Self {
            nodes: Vec::new(),
            free: NIL,
            fine: Level::new(),
            coarse: Level::new(),
            far: BinaryHeap::new(),
            pushed_far: 0,
            fine_shift: shift,
            current: Vec::new(),
            cursor: 0,
            horizon: COVERED,
            len: 0,
        }
    }

    /// Events that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event. `time` must not be earlier than that of the last event popped.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        self.len += 1;
        if self.fine_bucket(time) < self.cursor {
            // Behind all events that are not later: they are at the end.
            let place = self.current.partition_point(|&(other, _)| other > time);
            self.current.insert(place, (time, event));
            return;
        }
        let node = self.allocate(time, event);
        let bucket = self.coarse_bucket(time);
        if bucket < self.horizon {
            let bucket = self.fine_bucket(time);
            self.fine.append(&mut self.nodes, node, bucket);
        } else if bucket < self.horizon + COARSE as u64 {
            self.coarse.append(&mut self.nodes, node, bucket);
        } else {
            self.pushed_far += 1;
            self.far.push(Reverse((time, self.pushed_far, node)));
        }
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.pop_before(Time::NEVER)
    }

    /// Takes the earliest event, if its time is before `limit`.
    #[inline(always)]
    pub fn pop_before(&mut self, limit: Time) -> Option<(Time, E)> {
        if self.current.is_empty() {
            self.next_bucket();
        }
        let &(time, event) = self.current.last()?;
        if time >= limit {
            return None;
        }
        self.current.pop();
        self.len -= 1;
        let reached = self.coarse_bucket(time) + COVERED;
        if reached > self.horizon {
            self.advance(reached);
        }
        Some((time, event))
    }

    /// Makes the next fine bucket that is not empty the current one.
    #[inline(never)]
    fn next_bucket(&mut self) {
        if self.len == 0 {
            return;
        }
        let bucket = match self.fine.next_occupied(self.cursor) {
            Some(bucket) => bucket,
            None => {
                self.jump();
                match self.fine.next_occupied(self.cursor) {
                    Some(bucket) => bucket,
                    None => return,
                }
            }
        };
        self.cursor = bucket + 1;
        let mut index = self.fine.take(bucket);
        while index != NIL {
            let Node { time, next, event } = self.nodes[index as usize];
            self.current.push((time, event));
            self.nodes[index as usize].next = self.free;
            self.free = index;
            index = next;
        }
        self.sort_current();
    }

    /// Latest first; of equal times the one that was added first is nearest to the end.
    fn sort_current(&mut self) {
        if self.current.len() > INSERTION {
            self.current.sort_by_key(|&(time, _)| time);
            self.current.reverse();
            return;
        }
        for added in 1..self.current.len() {
            let (time, event) = self.current[added];
            let mut place = added;
            while place > 0 && self.current[place - 1].0 <= time {
                self.current[place] = self.current[place - 1];
                place -= 1;
            }
            self.current[place] = (time, event);
        }
    }

    const fn fine_bucket(&self, time: Time) -> u64 {
        time.as_nanos() >> self.fine_shift
    }

    const fn coarse_bucket(&self, time: Time) -> u64 {
        time.as_nanos() >> (self.fine_shift + FINE_PER_COARSE)
    }

    #[inline]
    fn allocate(&mut self, time: Time, event: E) -> u32 {
        let node = Node {
            time,
            next: NIL,
            event,
        };
        if self.free == NIL {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        }
    }

    /// Nothing is left in the fine wheel: moves its cover to where the next event is.
    fn jump(&mut self) {
        let near = self.coarse.next_occupied(self.horizon);
        let far = self
            .far
            .peek()
            .map(|Reverse((time, ..))| self.coarse_bucket(*time));
        let next = match (near, far) {
            (Some(near), Some(far)) => near.min(far),
            (Some(bucket), None) | (None, Some(bucket)) => bucket,
            (None, None) => return,
        };
        self.cursor = next << FINE_PER_COARSE;
        self.advance(next + COVERED);
    }

    /// Lets the fine wheel cover coarse buckets below `horizon`.
    fn advance(&mut self, horizon: u64) {
        let covered_by_coarse = horizon + COARSE as u64;
        while let Some(bucket) = self.coarse.next_occupied(self.horizon) {
            if bucket >= horizon {
                break;
            }
            let mut node = self.coarse.take(bucket);
            while node != NIL {
                let Node { time, next, .. } = self.nodes[node as usize];
                let bucket = self.fine_bucket(time);
                self.fine.append(&mut self.nodes, node, bucket);
                node = next;
            }
        }
        self.horizon = horizon;
        while let Some(&Reverse((time, _, node))) = self.far.peek() {
            let bucket = self.coarse_bucket(time);
            if bucket >= covered_by_coarse {
                break;
            }
            self.far.pop();
            if bucket < horizon {
                let bucket = self.fine_bucket(time);
                self.fine.append(&mut self.nodes, node, bucket);
            } else {
                self.coarse.append(&mut self.nodes, node, bucket);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slow, obvious queue that the wheel must agree with.
    #[derive(Default)]
    struct Heap {
        heap: BinaryHeap<Reverse<(Time, u64)>>,
        pushed: u64,
    }

    impl Heap {
        fn push(&mut self, time: Time) -> u64 {
            self.pushed += 1;
            self.heap.push(Reverse((time, self.pushed)));
            self.pushed
        }

        fn pop(&mut self) -> Option<(Time, u64)> {
            self.heap.pop().map(|Reverse(event)| event)
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Push this far after the last event popped.
        Push(u64),
        Pop(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let delay = prop_oneof![
            Just(0),
            0..20u64,
            0..100_000u64,
            0..300_000_000u64,
            0..6_000_000_000u64,
            0..500_000_000_000u64,
            (0..5_000u64).prop_map(|k| k << 20),
        ];
        let step =
            prop_oneof![3 => delay.prop_map(Step::Push), 2 => (1..5usize).prop_map(Step::Pop)];
        prop::collection::vec(step, 1..400)
    }

    proptest! {
        #[test]
        fn agrees_with_a_heap(steps in steps(), shift in 4u32..20) {
            let mut wheel = Wheel::with_bucket_shift(shift);
            let mut heap = Heap::default();
            let mut now = Time::ZERO;
            for step in steps {
                match step {
                    Step::Push(delay) => {
                        let time = now + Time::from_nanos(delay);
                        let id = heap.push(time);
                        wheel.push(time, id);
                    }
                    Step::Pop(n) => for _ in 0..n {
                        let expected = heap.pop();
                        prop_assert_eq!(wheel.pop(), expected);
                        now = expected.map_or(now, |(time, _)| time);
                    }
                }
                prop_assert_eq!(wheel.len(), heap.heap.len());
            }
            while let Some(expected) = heap.pop() {
                prop_assert_eq!(wheel.pop(), Some(expected));
            }
            prop_assert!(wheel.is_empty());
        }
    }
}
