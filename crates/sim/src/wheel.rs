//! The event queue: a timing wheel of three rings with a tree beyond, FIFO among equal times.
//!
//! With fine buckets of 16.4 us the finest ring holds the next 268 ms, coarse buckets (1.05 ms) the
//! 4.3 s behind that, distant ones (67 ms) 4.6 minutes, a tree the rest. A coarse or distant bucket moves
//! over whole as time reaches it; a fine one is sorted, stably, when its turn comes. Most hold one
//! event then.
//!
//! Why equal times stay in order of insertion: an event goes to the finest ring that covers its
//! time *now*; a ring's cover only grows, and whatever waited in the coarser ring for the newly
//! covered span moves over, in order, at the moment the cover grows. So of two events with equal
//! times the earlier one is never behind the later one in a bucket, and sorting keeps them so.
//!
//! Only what the finest ring covers has a node. So nodes are few, are used again soon, and stay in the
//! processor's caches, however many timers and pauses wait.

use std::collections::BTreeMap;

use aqmlab_net::Time;

use crate::hints;

mod ring;

use ring::{Occupied, Ring};

/// The least fine buckets per coarse bucket, as a power of two.
const FINE_PER_COARSE: u32 = 6;
/// The least width of a coarse bucket, as a power of two of nanoseconds.
const COARSE_SHIFT: u32 = 20;
/// Coarse buckets per distant bucket, as a power of two.
const COARSE_PER_DISTANT: u32 = 6;
/// Coarse buckets, and distant ones, as a power of two.
const COARSE_BUCKETS: u32 = 12;
/// The fine wheel covers this span at least, as a power of two of nanoseconds (268 ms): most round
/// trips, so that most events are handled once.
const FINE_SPAN: u32 = 28;
/// The least and the most fine buckets, as powers of two.
const FINE_BUCKETS: (u32, u32) = (14, 20);
/// Width of a fine bucket, as a power of two of nanoseconds.
const FINE_SHIFT: u32 = 14;

/// Buckets of up to so many events are sorted by insertion.
const INSERTION: usize = 16;

/// So many buckets before its turn the first event of a bucket is fetched from memory, then the
/// second, and then what the events are about. A bucket holds one or two events, which take some
/// 100 ns each; memory takes as long.
const LOOKS: [u64; 3] = [24, 16, 8];

const NIL: u32 = u32::MAX;

/// A queue of `E`, earliest first, equal times in order of insertion.
#[derive(Debug)]
pub struct Wheel<E> {
    nodes: Vec<Node<E>>,
    free: u32,
    /// The events of the fine bucket whose turn it is, in order. What is pushed into this bucket
    /// (or before it) goes here.
    current: u32,
    fine_shift: u32,
    /// Fine buckets per coarse bucket, as a power of two.
    per_coarse: u32,
    /// The fine bucket behind the current one (counted from time 0). Those before are empty.
    cursor: u64,
    /// The fine wheel covers fine buckets below this one, the first of a coarse bucket.
    horizon: u64,
    /// With this bucket, the first of a coarse one, the cover moves.
    advances_at: u64,
    fine: Fine,
    coarse: Ring<E>,
    distant: Ring<E>,
    /// What no ring covers; among equal times by the order in which it came.
    far: BTreeMap<(Time, u64), E>,
    pushed_far: u64,
    /// The cursor at the last [`look_ahead`](Self::look_ahead).
    looked: u64,
}

/// Two of them fill a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Node<E> {
    time: Time,
    next: u32,
    event: E,
}

/// The finest ring: linked lists, newest first, and which of them are not empty.
#[derive(Debug)]
struct Fine {
    heads: Vec<u32>,
    occupied: Occupied,
}

impl Fine {
    fn new(buckets: u32) -> Self {
        let mut heads = vec![NIL; 1 << buckets];
        hints::use_large_pages(&mut heads);
        Self {
            heads,
            occupied: Occupied::new(buckets),
        }
    }

    const fn len(&self) -> u64 {
        self.heads.len() as u64
    }

    const fn slot(&self, bucket: u64) -> usize {
        bucket as usize & (self.heads.len() - 1)
    }

    /// Makes a node, which knows what was first so far, the first of the bucket in this slot.
    #[inline(always)]
    fn put(&mut self, slot: usize, node: u32) {
        self.heads[slot] = node;
        self.occupied.set(slot);
    }

    /// Empties the bucket in this slot; returns the newest of its nodes.
    #[inline(always)]
    fn take(&mut self, slot: usize) -> u32 {
        self.occupied.clear(slot);
        std::mem::replace(&mut self.heads[slot], NIL)
    }

    /// The first bucket that is not empty, from `bucket` on and less than a turn away.
    #[inline]
    fn next_occupied(&self, bucket: u64) -> Option<u64> {
        let distance = self.occupied.distance(self.slot(bucket))?;
        Some(bucket + distance)
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
        let (least, most) = FINE_BUCKETS;
        let fine = Fine::new(FINE_SPAN.saturating_sub(shift).clamp(least, most));
        let coarse_shift = COARSE_SHIFT.max(shift + FINE_PER_COARSE);
        let per_coarse = coarse_shift - shift;
        let mut coarse = Ring::new(COARSE_BUCKETS, coarse_shift, COARSE_PER_DISTANT);
        let distant_shift = coarse_shift + COARSE_PER_DISTANT;
        let mut distant = Ring::new(COARSE_BUCKETS, distant_shift, 0);
        let horizon = fine.len();
        coarse.advance(Time::from_nanos(horizon << shift));
        distant.advance(coarse.end());
        Self {
            nodes: Vec::with_capacity(1 << 12),
            free: NIL,
            current: NIL,
            fine_shift: shift,
            per_coarse,
            cursor: 0,
            horizon,
            advances_at: 1 << per_coarse,
            fine,
            coarse,
            distant,
            far: BTreeMap::new(),
            pushed_far: 0,
            looked: 0,
        }
    }

    /// Events that wait. They are not counted as they come and go: this takes time.
    pub fn len(&self) -> usize {
        let in_nodes = self.nodes.len() - self.list(self.free).count();
        in_nodes + self.coarse.len() + self.distant.len() + self.far.len()
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. `time` must not be earlier than that of the last event popped.
    #[inline(always)]
    pub fn push(&mut self, time: Time, event: E) {
        let bucket = self.fine_bucket(time);
        if bucket < self.cursor || bucket >= self.horizon {
            return self.push_apart(time, &{ event });
        }
        self.push_fine(bucket, time, event);
    }

    /// Adds an event to a fine bucket that the finest ring covers.
    #[inline(always)]
    fn push_fine(&mut self, bucket: u64, time: Time, event: E) {
        let slot = self.fine.slot(bucket);
        let next = self.fine.heads[slot];
        let node = self.allocate(Node { time, next, event });
        self.fine.put(slot, node);
    }

    /// Adds an event to the current bucket, or where the finest ring does not reach.
    fn push_apart(&mut self, time: Time, event: &E) {
        if self.fine_bucket(time) >= self.cursor {
            return self.push_beyond(time, event);
        }
        let (next, event) = (NIL, *event);
        let node = self.allocate(Node { time, next, event });
        self.insert(node);
    }

    /// Adds an event where the finest ring does not reach.
    #[inline]
    fn push_beyond(&mut self, time: Time, event: &E) {
        if self.coarse.covers(time) {
            self.coarse.add(time, *event);
        } else if self.distant.covers(time) {
            self.distant.add(time, *event);
        } else {
            self.pushed_far += 1;
            self.far.insert((time, self.pushed_far), *event);
        }
    }

    /// Adds an event to the finest ring that covers it; its bucket is not the current one.
    #[inline]
    fn place(&mut self, time: Time, event: &E) {
        let bucket = self.fine_bucket(time);
        if bucket < self.horizon {
            self.push_fine(bucket, time, *event);
        } else {
            self.push_beyond(time, event);
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
        if self.current == NIL && !self.open_bucket(limit) {
            return None;
        }
        let index = self.current;
        let node = &mut self.nodes[index as usize];
        let (time, event) = (node.time, node.event);
        if time >= limit {
            return None;
        }
        self.current = std::mem::replace(&mut node.next, self.free);
        self.free = index;
        Some((time, event))
    }

    /// Has the processor fetch the events of the next buckets, and tells `soon` of those that come
    /// soon, so that what they are about can be fetched, too. This is a hint, on which nothing may
    /// depend: it leaves out what is pushed into buckets that are nearer.
    #[inline(always)]
    pub fn look_ahead(&mut self, soon: impl FnMut(&E)) {
        if self.looked < self.cursor {
            self.look_on(soon);
        }
    }

    /// [`look_ahead`](Self::look_ahead) over as many buckets as the cursor has gone on.
    fn look_on(&mut self, mut soon: impl FnMut(&E)) {
        let [first, second, all] = LOOKS;
        for bucket in self.looked.max(self.cursor.saturating_sub(all))..self.cursor {
            if let Some(node) = self.newest(bucket + first) {
                hints::prefetch(node);
            }
            if let Some(node) = self.newest(bucket + second)
                && let Some(node) = self.nodes.get(node.next as usize)
            {
                hints::prefetch(node);
            }
            let mut next = self.newest(bucket + all);
            while let Some(node) = next {
                soon(&node.event);
                next = self.nodes.get(node.next as usize);
            }
        }
        self.looked = self.cursor;
    }

    /// The newest event of a fine bucket.
    #[inline(always)]
    fn newest(&self, bucket: u64) -> Option<&Node<E>> {
        let newest = self.fine.heads[self.fine.slot(bucket)];
        self.nodes.get(newest as usize)
    }

    /// Makes the next fine bucket that is not empty the current one, if it begins before `limit`.
    /// (Buckets are not opened ahead of time, or what comes before them would have to be sorted in
    /// one by one.)
    #[inline(always)]
    fn open_bucket(&mut self, limit: Time) -> bool {
        let start = self.fine.slot(self.cursor);
        let occupied = self.fine.occupied.near(start);
        if occupied == 0 {
            return self.open_far_bucket(limit);
        }
        // Mostly it stands in the same word of the bitmap.
        let ahead = occupied.trailing_zeros();
        let bucket = self.cursor + u64::from(ahead);
        if bucket > limit.as_nanos() >> self.fine_shift {
            return false;
        }
        let newest = self.fine.take(start + ahead as usize);
        self.open(bucket, newest)
    }

    /// [`open_bucket`](Self::open_bucket) where the next one is not near.
    fn open_far_bucket(&mut self, limit: Time) -> bool {
        match self.next_bucket(limit) {
            Some(bucket) if bucket <= self.fine_bucket(limit) => {
                let newest = self.fine.take(self.fine.slot(bucket));
                self.open(bucket, newest)
            }
            _ => false,
        }
    }

    /// Makes a bucket that has been emptied the current one; `newest` was its first node.
    #[inline(always)]
    fn open(&mut self, bucket: u64, newest: u32) -> bool {
        self.cursor = bucket + 1;
        self.current = newest;
        let Node { time, next, .. } = self.nodes[newest as usize];
        // Of most buckets this is all.
        if next == NIL && bucket < self.advances_at {
            return true;
        }
        self.open_fully(bucket, newest, time, next)
    }

    /// The rest of [`open`](Self::open): puts the nodes in order, moves the wheel's cover.
    fn open_fully(&mut self, bucket: u64, newest: u32, time: Time, next: u32) -> bool {
        if next != NIL {
            self.current = self.ordered(newest, time, next);
        }
        let horizon = (bucket >> self.per_coarse << self.per_coarse) + self.fine.len();
        if horizon > self.horizon {
            self.advance(horizon);
        }
        true
    }

    /// The next fine bucket that is not empty; the wheel's cover moves there if that is before
    /// `limit`.
    #[inline]
    fn next_bucket(&mut self, limit: Time) -> Option<u64> {
        loop {
            let next = self.fine.next_occupied(self.cursor);
            // What a distant bucket held may be coarse still.
            if next.is_some() || !self.jump(limit) {
                return next;
            }
        }
    }

    /// Puts a node into the sorted list of the current bucket, behind all that are not later.
    fn insert(&mut self, node: u32) {
        let time = self.nodes[node as usize].time;
        let (mut before, mut behind) = (NIL, self.current);
        while behind != NIL && self.nodes[behind as usize].time <= time {
            (before, behind) = (behind, self.nodes[behind as usize].next);
        }
        self.link(before, node, behind);
    }

    /// The first node of a bucket of at least two, in order: `newest`, with its time, and `next`.
    #[inline(always)]
    fn ordered(&mut self, newest: u32, time: Time, next: u32) -> u32 {
        let older = &mut self.nodes[next as usize];
        if older.next != NIL {
            return self.sorted(newest);
        }
        if time < older.time {
            return newest;
        }
        older.next = newest;
        self.nodes[newest as usize].next = NIL;
        next
    }

    /// Sorts a list whose nodes are newest first.
    fn sorted(&mut self, newest: u32) -> u32 {
        self.current = NIL;
        let mut node = newest;
        for _ in 0..INSERTION {
            if node == NIL {
                return self.current;
            }
            // It is older than all that are sorted: before those of the same time.
            let Node { time, next, .. } = self.nodes[node as usize];
            let (mut before, mut behind) = (NIL, self.current);
            while behind != NIL && self.nodes[behind as usize].time < time {
                (before, behind) = (behind, self.nodes[behind as usize].next);
            }
            self.link(before, node, behind);
            node = next;
        }
        self.sort_many(node)
    }

    /// Sorts the list `newest`, whose nodes are newest first, and the current bucket together.
    fn sort_many(&mut self, newest: u32) -> u32 {
        let mut older: Vec<u32> = self.list(newest).collect();
        older.reverse();
        older.extend(self.list(self.current));
        older.sort_by_key(|&node| self.nodes[node as usize].time);
        older.iter().rev().fold(NIL, |behind, &node| {
            self.nodes[node as usize].next = behind;
            node
        })
    }

    fn list(&self, first: u32) -> impl Iterator<Item = u32> {
        let present = |node: u32| (node != NIL).then_some(node);
        std::iter::successors(present(first), move |&node| {
            present(self.nodes[node as usize].next)
        })
    }

    /// Puts a node between two neighbours of the current bucket.
    #[inline]
    fn link(&mut self, before: u32, node: u32, behind: u32) {
        self.nodes[node as usize].next = behind;
        if before == NIL {
            self.current = node;
        } else {
            self.nodes[before as usize].next = node;
        }
    }

    #[inline]
    const fn fine_bucket(&self, time: Time) -> u64 {
        time.as_nanos() >> self.fine_shift
    }

    #[inline(always)]
    fn allocate(&mut self, node: Node<E>) -> u32 {
        let index = self.free;
        if let Some(free) = self.nodes.get_mut(index as usize) {
            self.free = std::mem::replace(free, node).next;
            index
        } else {
            hints::push(&mut self.nodes, node);
            (self.nodes.len() - 1) as u32
        }
    }

    /// Nothing is left in the finest ring: moves its cover to where the next event is, if that is
    /// not behind `limit`.
    fn jump(&mut self, limit: Time) -> bool {
        // Rings hold what comes before all that coarser ones do.
        let coarse = self.coarse.next().or_else(|| self.distant.next());
        let Some(next) = coarse.or_else(|| Some(self.far.first_key_value()?.0.0)) else {
            return false;
        };
        let first = self.fine_bucket(next) >> self.per_coarse << self.per_coarse;
        if first > self.fine_bucket(limit) {
            return false;
        }
        self.cursor = first;
        self.advance(first + self.fine.len());
        true
    }

    /// Lets the finest ring cover fine buckets below `horizon`, and the others what follows.
    fn advance(&mut self, horizon: u64) {
        let covered = Time::from_nanos(horizon << self.fine_shift);
        self.horizon = horizon;
        self.advances_at = horizon - self.fine.len() + (1 << self.per_coarse);
        while let Some(list) = self.coarse.take_before(covered) {
            for &(time, event) in &list {
                self.push_fine(self.fine_bucket(time), time, event);
            }
            self.coarse.reuse(list);
        }
        if self.coarse.advance(covered) {
            self.advance_distant();
        }
    }

    /// The coarse ring has moved its end.
    fn advance_distant(&mut self) {
        while let Some(list) = self.distant.take_before(self.coarse.end()) {
            for (time, event) in &list {
                self.place(*time, event);
            }
            self.distant.reuse(list);
        }
        self.distant.advance(self.coarse.end());
        while let Some(first) = self.far.first_entry()
            && self.distant.covers(first.key().0)
        {
            let ((time, _), event) = first.remove_entry();
            self.place(time, &event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

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
        LookAhead,
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
        let step = prop_oneof![
            6 => delay.prop_map(Step::Push),
            4 => (1..5usize).prop_map(Step::Pop),
            1 => Just(Step::LookAhead),
        ];
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
                    Step::LookAhead => wheel.look_ahead(|_| ()),
                }
                prop_assert_eq!(wheel.len(), heap.heap.len());
            }
            while let Some(expected) = heap.pop() {
                prop_assert_eq!(wheel.pop(), Some(expected));
            }
            prop_assert!(wheel.is_empty());
        }
    }

    #[test]
    fn tells_of_events_before_their_turn() {
        let mut wheel = Wheel::with_bucket_shift(10);
        for event in 0..1000_u64 {
            wheel.push(Time::from_nanos(event * 700), event);
        }
        let mut announced = vec![false; 1000];
        while let Some((_, event)) = wheel.pop() {
            // Those of the first buckets come before anybody looks.
            assert!(announced[event as usize] || (event * 700) >> 10 <= LOOKS[2]);
            wheel.look_ahead(|&event| announced[event as usize] = true);
        }
    }
}
