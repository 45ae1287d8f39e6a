//! Many lines of packets in one store, and lists of the lines themselves: doubly linked lists over
//! tables. Every step costs the same however much waits, and nothing is allocated once the store
//! has grown to the most packets that ever waited.

use aqmlab_net::FlowKey;

use crate::link::Backlog;
use crate::queue::Queued;

/// The line of a flow, one of `lines`: flows are spread by a hash.
#[inline]
pub(crate) fn queue_of(flow: FlowKey, seed: u64, lines: u32) -> u32 {
    (((flow.hash(seed) >> 32) * u64::from(lines)) >> 32) as u32
}

const NONE: u32 = u32::MAX;

/// The neighbours of each place of a table. A place is in one [`Chain`] at most.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

const LOOSE: Link = Link {
    previous: NONE,
    next: NONE,
};

/// A list of places of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    first: u32,
    last: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

impl Chain {
    #[inline]
    pub(crate) fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    fn last(self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }
}

impl Links {
    /// Links for a table of this many places.
    pub(crate) fn new(places: u32) -> Self {
        Self(vec![LOOSE; places as usize])
    }

    /// A place more.
    fn grow(&mut self) {
        self.0.push(LOOSE);
    }

    /// Appends a place that is in no chain.
    #[inline]
    pub(crate) fn push_back(&mut self, chain: &mut Chain, place: u32) {
        let previous = std::mem::replace(&mut chain.last, place);
        self.0[place as usize] = Link {
            previous,
            next: NONE,
        };
        match previous {
            NONE => chain.first = place,
            _ => self.0[previous as usize].next = place,
        }
    }

    /// Takes a place out of the chain that it is in.
    #[inline]
    pub(crate) fn remove(&mut self, chain: &mut Chain, place: u32) {
        let Link { previous, next } = self.0[place as usize];
        match previous {
            NONE => chain.first = next,
            _ => self.0[previous as usize].next = next,
        }
        match next {
            NONE => chain.last = previous,
            _ => self.0[next as usize].previous = previous,
        }
    }

    /// Moves a place to the end of the chain that it is in.
    #[inline]
    pub(crate) fn move_to_end(&mut self, chain: &mut Chain, place: u32) {
        if chain.last != place {
            self.remove(chain, place);
            self.push_back(chain, place);
        }
    }

    /// The places of a chain, in order.
    pub(crate) fn places(&self, chain: Chain) -> impl Iterator<Item = u32> + Clone {
        std::iter::successors(chain.first(), |&place| {
            let next = self.0[place as usize].next;
            (next != NONE).then_some(next)
        })
    }
}

/// Packets that wait in many lines, counted.
#[derive(Debug)]
pub(crate) struct FlowQueues<T> {
    lines: Vec<(Chain, Backlog)>,
    total: Backlog,
    /// The packets of all lines, and what links those of one line.
    store: Vec<Option<Queued<T>>>,
    links: Links,
    /// Empty places of the store.
    free: Vec<u32>,
}

impl<T> FlowQueues<T> {
    pub(crate) fn new(lines: u32) -> Self {
        Self {
            lines: vec![Default::default(); lines as usize],
            total: Backlog::default(),
            store: Vec::new(),
            links: Links::default(),
            free: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, line: u32, queued: Queued<T>) {
        let size = queued.packet.size;
        let place = self.free.pop().unwrap_or_else(|| {
            self.store.push(None);
            self.links.grow();
            (self.store.len() - 1) as u32
        });
        self.store[place as usize] = Some(queued);
        let (chain, backlog) = &mut self.lines[line as usize];
        self.links.push_back(chain, place);
        backlog.add(size);
        self.total.add(size);
    }

    /// The packet at the head of a line.
    #[inline]
    pub(crate) fn head(&self, line: u32) -> Option<&Queued<T>> {
        let place = self.lines[line as usize].0.first()?;
        self.store[place as usize].as_ref()
    }

    /// Takes the packet at the head of a line.
    #[inline]
    pub(crate) fn pop(&mut self, line: u32) -> Option<Queued<T>> {
        let place = self.lines[line as usize].0.first()?;
        self.take(line, place)
    }

    /// The packets of a line from the head on, and their places.
    pub(crate) fn waiting(&self, line: u32) -> impl Iterator<Item = (u32, &Queued<T>)> + Clone {
        let places = self.links.places(self.lines[line as usize].0);
        places.filter_map(|place| Some((place, self.store[place as usize].as_ref()?)))
    }

    /// Takes the packet at a place of a line.
    pub(crate) fn remove(&mut self, line: u32, place: u32) -> Option<Queued<T>> {
        self.take(line, place)
    }

    /// The packet at the tail of a line.
    pub(crate) fn tail(&self, line: u32) -> Option<&Queued<T>> {
        let place = self.lines[line as usize].0.last()?;
        self.store[place as usize].as_ref()
    }

    /// Takes the packet at the tail of a line.
    #[inline]
    pub(crate) fn pop_tail(&mut self, line: u32) -> Option<Queued<T>> {
        let place = self.lines[line as usize].0.last()?;
        self.take(line, place)
    }

    #[inline]
    fn take(&mut self, line: u32, place: u32) -> Option<Queued<T>> {
        let (chain, backlog) = &mut self.lines[line as usize];
        self.links.remove(chain, place);
        self.free.push(place);
        let queued = self.store[place as usize].take()?;
        backlog.remove(queued.packet.size);
        self.total.remove(queued.packet.size);
        Some(queued)
    }

    /// What waits in one line.
    #[inline]
    pub(crate) fn backlog(&self, line: u32) -> Backlog {
        self.lines[line as usize].1
    }

    /// What waits in all lines.
    #[inline]
    pub(crate) const fn total(&self) -> Backlog {
        self.total
    }
}

/// The sizes of many lines, of which the largest is wanted now and then: side by side, so that a
/// look at all of them is quick (a tenth of a microsecond for a thousand) and a change costs nothing.
#[derive(Debug)]
pub(crate) struct Sizes(Vec<u32>);

impl Sizes {
    /// The sizes of so many empty lines.
    pub(crate) fn new(lines: u32) -> Self {
        Self(vec![0; lines as usize])
    }

    /// The size of a line has changed.
    #[inline]
    pub(crate) fn set(&mut self, line: u32, size: u64) {
        self.0[line as usize] = u32::try_from(size).unwrap_or(u32::MAX);
    }

    pub(crate) fn largest_size(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0)
    }

    /// The largest line; of equals the one of the lowest number.
    pub(crate) fn largest(&self) -> u32 {
        let largest = self.largest_size();
        let line = self.0.iter().position(|&size| size == largest);
        line.unwrap_or(0) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use aqmlab_net::{Ecn, Packet, RandomStream, Time};

    use super::*;

    fn queued(size: u32) -> Queued<()> {
        let packet = Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(0),
        };
        Queued::new(Time::ZERO, packet, ())
    }

    #[test]
    fn lines_keep_their_order_and_their_counts() {
        let mut stream = RandomStream::new(1, "lines", 0);
        let mut lines = FlowQueues::new(3);
        let mut expected = [const { VecDeque::new() }; 3];
        for step in 1..20_000 {
            let line = stream.below(3);
            let index = line as u32;
            match stream.below(4) {
                0 | 1 if lines.total().packets < 40 => {
                    lines.push(index, queued(step));
                    expected[line].push_back(step);
                }
                2 => {
                    let head = lines.head(index).map(|queued| queued.packet.size);
                    assert_eq!(head, expected[line].front().copied());
                    let head = lines.pop(index).map(|queued| queued.packet.size);
                    assert_eq!(head, expected[line].pop_front());
                }
                _ => {
                    let tail = lines.pop_tail(index).map(|queued| queued.packet.size);
                    assert_eq!(tail, expected[line].pop_back());
                }
            }
            let backlog = lines.backlog(index);
            assert_eq!(backlog.packets as usize, expected[line].len());
            let bytes: u32 = expected[line].iter().sum();
            assert_eq!(backlog.bytes, u64::from(bytes));
            let total: usize = expected.iter().map(VecDeque::len).sum();
            assert_eq!(lines.total().packets as usize, total);
        }
        assert_eq!(lines.store.len(), 40, "freed places are used again");
    }

    #[test]
    fn a_place_leaves_a_chain_from_anywhere() {
        let mut links = Links::new(5);
        let mut chain = Chain::default();
        for place in 0..5 {
            links.push_back(&mut chain, place);
        }
        links.remove(&mut chain, 2);
        links.move_to_end(&mut chain, 0);
        links.move_to_end(&mut chain, 0);
        links.remove(&mut chain, 1);
        assert_eq!(links.places(chain).collect::<Vec<_>>(), [3, 4, 0]);
        for place in [0, 3, 4] {
            links.remove(&mut chain, place);
        }
        assert_eq!((chain.first(), chain.last()), (None, None));
    }

    #[test]
    fn the_largest_line_is_the_largest() {
        for lines in [1, 2, 3, 5, 8, 13] {
            let mut stream = RandomStream::new(1, "largest", u64::from(lines));
            let mut sizes = Sizes::new(lines);
            let mut expected = vec![0; lines as usize];
            assert_eq!(sizes.largest(), 0);
            for _ in 0..5000 {
                let (line, size) = (stream.below(lines as usize), stream.below(6) as u64);
                expected[line] = size;
                sizes.set(line as u32, size);
                let size = *expected.iter().max().unwrap();
                let line = expected.iter().position(|&found| found == size).unwrap();
                assert_eq!(sizes.largest(), line as u32);
                assert_eq!(u64::from(sizes.largest_size()), size);
            }
        }
    }

    #[test]
    fn flows_are_spread_over_all_lines() {
        let mut flows = [0; 7];
        for flow in 0..7000 {
            flows[queue_of(FlowKey(flow), 3, 7) as usize] += 1;
        }
        // Five standard deviations: sqrt(7000 (1/7) (6/7)) = 29.
        assert!(flows.iter().all(|&count| (1000_i32 - count).abs() < 150));
    }
}
