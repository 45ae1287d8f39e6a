//! What each place of a path saw of each stream of data.
//!
//! Network cards and kernels put segments together and take them apart, so that two places see
//! packets of other lengths. Where several places saw nearly all data of a stream, one is enough.

use crate::decode::{Endpoint, SYN, TcpHeader};
use crate::hash::Map;

/// Streams that are remembered.
const MOST: usize = 1 << 18;
/// Places that are counted one by one for a stream.
const MOST_PLACES: usize = 8;
/// A place saw a stream if it saw so many tenths of its bytes.
const NEARLY_ALL: u64 = 9;

/// The streams of a capture, by sender and receiver.
#[derive(Debug, Default)]
pub(crate) struct Streams(Map<[Endpoint; 2], Stream>);

#[derive(Debug, Default)]
struct Stream {
    /// Behind the highest byte that was seen.
    high: Option<u32>,
    /// Bytes of its sequence space, those of holes included.
    span: u64,
    /// Bytes that each place saw, sent again or not, in the order in which they saw data first.
    places: Vec<(u64, u64)>,
    /// Packets with data, and those of them that came twice at once at one place.
    data: u64,
    copies: u64,
}

impl Stream {
    fn reach(&mut self, header: &TcpHeader) {
        if header.flags & SYN != 0 {
            self.high = Some(header.seq.wrapping_add(1));
            return;
        }
        let end = header.seq.wrapping_add(header.payload);
        let high = *self.high.get_or_insert(header.seq);
        let ahead = end.wrapping_sub(high);
        if ahead.cast_signed() > 0 {
            self.span += u64::from(ahead);
            self.high = Some(end);
        }
    }
}

/// What is read of streams that several places saw, or one place twice.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    of: Map<[Endpoint; 2], Choice>,
    /// Share of all bytes that several places saw.
    pub(crate) doubled: f64,
    /// Whether a good part of all data came twice at once at one place.
    drops_copies: bool,
}

#[derive(Debug)]
struct Choice {
    kept: u64,
    left: Vec<u64>,
    drops_copies: bool,
}

/// What a choice says of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is read.
    Kept,
    /// Another place is read.
    Left,
    /// Nothing.
    Open,
}

impl Choices {
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty() && !self.drops_copies
    }

    /// What a place is to a stream.
    pub(crate) fn role(&self, ends: [Endpoint; 2], place: u64) -> Role {
        match self.of.get(&ends) {
            Some(choice) if choice.left.contains(&place) => Role::Left,
            Some(choice) if choice.kept == place && !choice.left.is_empty() => Role::Kept,
            _ => Role::Open,
        }
    }

    /// Whether packets of a stream, or what answers it, count once that come twice at once.
    pub(crate) fn drops_copies(&self, [source, destination]: [Endpoint; 2]) -> bool {
        let of = |ends| self.of.get(&ends).is_some_and(|one| one.drops_copies);
        self.drops_copies || of([source, destination]) || of([destination, source])
    }
}

impl Streams {
    /// A packet of a stream passes a place; `is_copy`: it did so just now.
    pub(crate) fn add(&mut self, header: &TcpHeader, place: u64, is_copy: bool) {
        let opens = header.flags & SYN != 0;
        if header.payload == 0 && !opens {
            return;
        }
        let ends = [header.source, header.destination];
        if self.0.len() >= MOST && !self.0.contains_key(&ends) {
            return;
        }
        let stream = self.0.entry(ends).or_default();
        stream.data += u64::from(header.payload > 0);
        stream.copies += u64::from(is_copy && header.payload > 0);
        stream.reach(header);
        let bytes = u64::from(header.payload);
        let places = &mut stream.places;
        if let Some(one) = places.iter_mut().find(|one| one.0 == place) {
            one.1 += bytes;
        } else if places.len() < MOST_PLACES && bytes > 0 {
            places.push((place, bytes));
        }
    }

    /// What is read of each stream; `others` are packets without numbers, and those of them that
    /// came twice.
    pub(crate) fn choices(self, others: [u64; 2]) -> Choices {
        let mut found = Choices::default();
        let [mut packets, mut copies] = others;
        let (mut bytes, mut doubled) = (0, 0);
        for (ends, stream) in self.0 {
            packets += stream.data;
            copies += stream.copies;
            bytes += stream.span;
            let saw_all = |one: &&(u64, u64)| one.1 * 10 >= stream.span * NEARLY_ALL;
            let mut places = stream.places.iter().filter(saw_all).map(|one| one.0);
            let Some(kept) = places.next() else {
                continue;
            };
            let left: Vec<u64> = places.collect();
            doubled += u64::from(!left.is_empty()) * stream.span;
            let drops_copies = stream.copies * 4 > stream.data;
            if drops_copies || !left.is_empty() {
                let choice = Choice {
                    kept,
                    left,
                    drops_copies,
                };
                found.of.insert(ends, choice);
            }
        }
        found.doubled = doubled as f64 / (bytes as f64).max(1.0);
        found.drops_copies = copies * 4 > packets;
        found
    }
}
