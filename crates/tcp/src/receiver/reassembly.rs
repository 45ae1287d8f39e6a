//! Data that waits for what is missing before it, and its report: SACK blocks (RFC 2018) and D-SACK
//! (RFC 2883).

use crate::segment::Options;

/// Data beyond the next sequence number expected.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    /// Disjoint, ascending, not adjacent.
    islands: Vec<Island>,
    /// Arrivals out of order so far.
    arrivals: u64,
    /// What arrived for the second time, for the next ACK to report (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

/// A piece of data between two holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Island {
    from: u64,
    to: u64,
    /// Which arrival touched it last: the newest is reported first.
    touched: u64,
}

impl Reassembly {
    #[inline]
    pub(super) fn has_holes(&self) -> bool {
        !self.islands.is_empty()
    }

    #[inline]
    pub(super) fn has_reports(&self) -> bool {
        !self.islands.is_empty() || self.duplicate.is_some()
    }

    /// RFC 2018, section 4: the block of the last arrival first, then the others, newest first; a
    /// duplicate before them, once.
    pub(super) fn report(&mut self, most: u32, options: &mut Options) {
        let mut most = most;
        if let Some((from, to)) = self.duplicate.take() {
            options.push_sack_block(from, to);
            most -= 1;
        }
        let mut before = u64::MAX;
        for _ in 0..most {
            let older = self.islands.iter().filter(|island| island.touched < before);
            let Some(island) = older.max_by_key(|island| island.touched) else {
                return;
            };
            options.push_sack_block(island.from, island.to);
            before = island.touched;
        }
    }

    pub(super) fn insert(&mut self, from: u64, to: u64) {
        self.arrivals += 1;
        let islands = &mut self.islands;
        let first = islands.partition_point(|island| island.to < from);
        let last = islands.partition_point(|island| island.from <= to);
        let mut merged = Island {
            from,
            to,
            touched: self.arrivals,
        };
        if first == last {
            islands.insert(first, merged);
        } else {
            merged.from = from.min(islands[first].from);
            merged.to = to.max(islands[last - 1].to);
            islands.drain(first + 1..last);
            islands[first] = merged;
        }
    }

    /// Everything below `next` has arrived: drops the islands that this reaches, and returns the
    /// end of the last of them.
    pub(super) fn absorb(&mut self, next: u64) -> u64 {
        let reached = self.islands.partition_point(|island| island.from <= next);
        let end = self.islands[..reached].last().map_or(next, |last| last.to);
        self.islands.drain(..reached);
        next.max(end)
    }

    /// A segment `[seq, end)` arrives while `next` is expected: RFC 2883, section 4, reports the part of
    /// it that had arrived before.
    pub(super) fn note_duplicate(&mut self, next: u64, seq: u64, end: u64) {
        let duplicate = if seq < next {
            Some((seq, end.min(next)))
        } else {
            let overlap = |island: &Island| (seq.max(island.from), end.min(island.to));
            let mut overlaps = self.islands.iter().map(overlap);
            overlaps.find(|(from, to)| from < to)
        };
        self.duplicate = duplicate.filter(|(from, to)| from < to);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::receiver::Receiver;
    use crate::receiver::tests::{data, receiver};

    pub(in crate::receiver) fn blocks(r: &mut Receiver, most: u32) -> Vec<(u32, u32)> {
        let mut options = Options::NONE;
        r.rare().reassembly.report(most, &mut options);
        options.sack_blocks().collect()
    }

    #[test]
    fn sack_blocks_come_newest_first_and_merge() {
        let (mut r, p) = receiver();
        for seq in [201, 401, 601, 801, 1001] {
            data(&mut r, &p, seq, 100);
        }
        assert_eq!(blocks(&mut r, 3), [(1001, 1101), (801, 901), (601, 701)]);
        assert_eq!(blocks(&mut r, 4).len(), 4);
        // An arrival in the second island brings that to the front; one between two merges them.
        data(&mut r, &p, 451, 50);
        assert_eq!(blocks(&mut r, 2), [(401, 501), (1001, 1101)]);
        data(&mut r, &p, 501, 100);
        assert_eq!(blocks(&mut r, 2), [(401, 701), (1001, 1101)]);
        // The hole before the first island is filled: no block reports what is acknowledged.
        data(&mut r, &p, 1, 200);
        assert_eq!(r.next, 301);
        assert_eq!(blocks(&mut r, 4), [(401, 701), (1001, 1101), (801, 901)]);
    }
}
