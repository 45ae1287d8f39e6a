//! Buckets in a ring: which of them hold something, and events that wait for a finer ring.

use aqmlab_net::Time;

/// One bit for each place of a ring of 2^n buckets, which are counted from time 0 on.
#[derive(Debug)]
pub(super) struct Occupied {
    words: Vec<u64>,
}

impl Occupied {
    /// Of an empty ring of 2^`buckets` buckets, 64 at least.
    pub(super) fn new(buckets: u32) -> Self {
        Self {
            words: vec![0; 1 << (buckets - 6)],
        }
    }

    #[inline(always)]
    pub(super) fn set(&mut self, slot: usize) {
        self.words[slot / 64] |= 1 << (slot % 64);
    }

    #[inline(always)]
    pub(super) fn clear(&mut self, slot: usize) {
        self.words[slot / 64] &= !(1 << (slot % 64));
    }

    /// The bits of the word with this place, from this place on; mostly the next bucket is among them.
    #[inline(always)]
    pub(super) fn near(&self, slot: usize) -> u64 {
        self.words[slot / 64] >> (slot % 64)
    }

    /// How far behind this place the next occupied one is, less than a turn.
    #[inline]
    pub(super) fn distance(&self, start: usize) -> Option<u64> {
        let first = self.near(start);
        if first != 0 {
            return Some(u64::from(first.trailing_zeros()));
        }
        let count = self.words.len();
        let mut ahead = (64 - start % 64) as u64;
        for step in 1..=count {
            let word = self.words[(start / 64 + step) & (count - 1)];
            if word != 0 {
                return Some(ahead + u64::from(word.trailing_zeros()));
            }
            ahead += 64;
        }
        None
    }
}

/// A ring of buckets whose events wait until a finer ring covers their times. A bucket keeps them
/// side by side, in order of insertion: they are read once, all together.
#[derive(Debug)]
pub(super) struct Ring<E> {
    buckets: Vec<Vec<(Time, E)>>,
    occupied: Occupied,
    /// Width of a bucket, as a power of two of nanoseconds.
    shift: u32,
    /// Buckets below this one are covered, by this ring or by a finer one. A multiple of the buckets in
    /// one of the next ring.
    end: u64,
    /// Buckets in one of the next ring, as a power of two.
    per_next: u32,
    /// Room of buckets that have been read.
    spare: Vec<Vec<(Time, E)>>,
}

impl<E: Copy> Ring<E> {
    /// 2^`buckets` of them, 2^`shift` nanoseconds wide, from time 0 on. 2^`per_next` take the time of one
    /// of the next ring's.
    pub(super) fn new(buckets: u32, shift: u32, per_next: u32) -> Self {
        Self {
            buckets: (0..1 << buckets).map(|_| Vec::new()).collect(),
            occupied: Occupied::new(buckets),
            shift,
            end: 1 << buckets,
            per_next,
            spare: Vec::new(),
        }
    }

    /// The bucket of a time.
    #[inline]
    pub(super) const fn bucket(&self, time: Time) -> u64 {
        time.as_nanos() >> self.shift
    }

    const fn slot(&self, bucket: u64) -> usize {
        bucket as usize & (self.buckets.len() - 1)
    }

    /// Whether a time is below the ring's end.
    #[inline]
    pub(super) const fn covers(&self, time: Time) -> bool {
        self.bucket(time) < self.end
    }

    /// Adds an event whose time it [covers](Self::covers), and no finer ring does.
    #[inline]
    pub(super) fn add(&mut self, time: Time, event: E) {
        let slot = self.slot(self.bucket(time));
        let bucket = &mut self.buckets[slot];
        if bucket.is_empty() {
            self.occupied.set(slot);
            if bucket.capacity() == 0
                && let Some(room) = self.spare.pop()
            {
                *bucket = room;
            }
        }
        bucket.push((time, event));
    }

    /// The first time that the next bucket with an event covers.
    pub(super) fn next(&self) -> Option<Time> {
        let first = self.end - self.buckets.len() as u64;
        let distance = self.occupied.distance(self.slot(first))?;
        Some(Time::from_nanos((first + distance) << self.shift))
    }

    /// Takes the events of the next bucket, if that begins before `limit`. Hand the list back with
    /// [`reuse`](Self::reuse).
    pub(super) fn take_before(&mut self, limit: Time) -> Option<Vec<(Time, E)>> {
        let next = self.next().filter(|&next| next < limit)?;
        let slot = self.slot(self.bucket(next));
        self.occupied.clear(slot);
        Some(std::mem::take(&mut self.buckets[slot]))
    }

    /// Keeps the room of a list that has been read.
    pub(super) fn reuse(&mut self, mut list: Vec<(Time, E)>) {
        list.clear();
        self.spare.push(list);
    }

    /// A finer ring covers everything below `time`: whether this one's end moves.
    pub(super) const fn advance(&mut self, time: Time) -> bool {
        let end = self.bucket(time) + self.buckets.len() as u64;
        let end = end >> self.per_next << self.per_next;
        let grows = end > self.end;
        if grows {
            self.end = end;
        }
        grows
    }

    /// Times below this one are covered.
    pub(super) const fn end(&self) -> Time {
        Time::from_nanos(self.end << self.shift)
    }

    /// Events that wait.
    pub(super) fn len(&self) -> usize {
        self.buckets.iter().map(Vec::len).sum()
    }
}
