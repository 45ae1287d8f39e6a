//! A queue in a ring of a power of two of places: what every packet goes through needs no more
//! than a mask to find its place.

use aqmlab_net::Time;

/// A packet that waits, and leaves the queue at a time that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    pub(crate) at: Time,
    /// IP bytes.
    pub(crate) size: u32,
}

/// First in, first out. It grows as needed.
#[derive(Debug)]
pub(crate) struct RingBuffer<T> {
    places: Box<[T]>,
    /// How many have come and gone: the places are these numbers modulo their count.
    pushed: usize,
    popped: usize,
}

impl<T: Copy + Default> RingBuffer<T> {
    pub(crate) fn new() -> Self {
        Self {
            places: vec![T::default(); 64].into_boxed_slice(),
            pushed: 0,
            popped: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.pushed - self.popped
    }

    #[inline(always)]
    fn place(&mut self, number: usize) -> &mut T {
        let mask = self.places.len() - 1;
        &mut self.places[number & mask]
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        *self.place(self.pushed) = item;
        self.pushed += 1;
    }

    /// The first, if there is one.
    #[inline(always)]
    pub(crate) fn front(&mut self) -> Option<T> {
        (self.popped != self.pushed).then(|| *self.place(self.popped))
    }

    /// Forgets the first.
    #[inline(always)]
    pub(crate) const fn pop(&mut self) {
        self.popped += 1;
    }

    /// Forgets all.
    #[inline(always)]
    pub(crate) const fn clear(&mut self) {
        self.popped = self.pushed;
    }

    #[cold]
    fn grow(&mut self) {
        let mut places = vec![T::default(); 2 * self.places.len()].into_boxed_slice();
        let mask = places.len() - 1;
        for number in self.popped..self.pushed {
            places[number & mask] = *self.place(number);
        }
        self.places = places;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_queue(steps in prop::collection::vec(0..3u32, 1..2000)) {
            let (mut ring, mut queue) = (RingBuffer::new(), VecDeque::new());
            for (number, step) in (0u32..).zip(steps) {
                if step == 0 {
                    prop_assert_eq!(ring.front(), queue.pop_front());
                    if ring.front().is_some() {
                        ring.pop();
                    }
                } else {
                    ring.push(number);
                    queue.push_back(number);
                }
                prop_assert_eq!(ring.len(), queue.len());
                prop_assert_eq!(ring.front(), queue.front().copied());
            }
        }
    }
}
