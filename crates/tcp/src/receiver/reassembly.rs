//! Data that waits for what is missing before it, and its report: SACK blocks (RFC 2018) and D-SACK
//! (RFC 2883).

use aqmlab_net::Ranges;

use crate::segment::Options;

/// Data beyond the next sequence number expected.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    islands: Ranges,
    /// A byte of each island, the one that an arrival touched last at the end.
    touched: Vec<u64>,
    /// What arrived for the second time, for the next ACK to report (RFC 2883).
    duplicate: Option<(u64, u64)>,
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
        let newest = self.touched.iter().rev().take(most as usize);
        for (from, to) in newest.filter_map(|byte| self.islands.around(*byte)) {
            options.push_sack_block(from, to);
        }
    }

    pub(super) fn insert(&mut self, from: u64, to: u64) {
        self.islands.insert(from, to);
        let (begin, end) = self.islands.around(from).unwrap_or((from, to));
        self.touched.retain(|byte| !(begin..end).contains(byte));
        self.touched.push(from);
    }

    /// Everything below `next` has arrived: drops the islands that this reaches, and returns the
    /// end of the last of them.
    pub(super) fn absorb(&mut self, next: u64) -> u64 {
        let end = self.islands.absorb(next);
        self.touched.retain(|byte| *byte >= end);
        end
    }

    /// A segment `[seq, end)` arrives while `next` is expected: RFC 2883, section 4, reports the part of
    /// it that had arrived before.
    pub(super) fn note_duplicate(&mut self, next: u64, seq: u64, end: u64) {
        let duplicate = if seq < next {
            Some((seq, end.min(next)))
        } else {
            let overlap = |(from, to)| (seq.max(from), end.min(to));
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
