//! What the peer has reported by SACK blocks, and what follows for recovery: RFC 6675, section 4.

use aqmlab_net::Ranges;

/// Segments that must be known to have arrived above a loss (RFC 6675: DupThresh).
const DUP_THRESH: usize = 3;

/// The sender's scoreboard. All sequence numbers are full; ends are exclusive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// Received beyond the cumulative acknowledgement.
    sacked: Ranges,
    /// Behind the highest byte resent in this recovery (HighRxt).
    pub(crate) high_rxt: u64,
    /// Behind the highest byte resent as a rescue (RescueRxt).
    pub(crate) rescue_rxt: u64,
    /// Of the older `pipe` rule: bytes thought to be on their way.
    pub(crate) pipe: i64,
}

impl Scoreboard {
    /// Notes that `[from, to)` has arrived; whether any of it is news.
    pub(crate) fn insert(&mut self, from: u64, to: u64) -> bool {
        self.sacked.insert(from, to)
    }

    /// Everything below `una` is acknowledged.
    #[inline]
    pub(crate) fn advance(&mut self, una: u64) {
        if !self.sacked.is_empty() {
            self.sacked.forget_below(una); // Rarely.
        }
    }

    /// Forgets what the peer reported (RFC 2018, section 8: after a time-out the data may be gone).
    pub(crate) fn clear(&mut self) {
        self.sacked.clear();
        self.high_rxt = 0;
        self.rescue_rxt = 0;
    }

    /// A recovery begins at `una`.
    pub(crate) fn begin(&mut self, una: u64) {
        self.high_rxt = una;
        self.rescue_rxt = una;
    }

    /// Behind the highest byte known to have arrived; `una` if there is none.
    pub(crate) fn highest(&self, una: u64) -> u64 {
        self.sacked.last().map_or(una, |(_, to)| to)
    }

    /// The first sequence number at or above `seq` that is not known to have arrived.
    pub(crate) fn skip(&self, seq: u64) -> u64 {
        self.sacked.around(seq).map_or(seq, |(_, to)| to)
    }

    /// The same for numbers that ascend from one call to the next: `island` is the first that may
    /// matter, at first 0.
    #[inline]
    pub(crate) fn skip_from(&self, island: &mut usize, seq: u64) -> u64 {
        while let Some(&(from, to)) = self.sacked.as_slice().get(*island) {
            if to > seq {
                return if from <= seq { to } else { seq };
            }
            *island += 1;
        }
        seq
    }

    /// Where the first island at or behind `seq` begins.
    pub(crate) fn begins_at_or_behind(&self, seq: u64) -> Option<u64> {
        self.sacked.next_from(seq).map(|(from, _)| from)
    }

    /// IsLost: what has not arrived below this is lost, because three separate blocks or more than
    /// two segments' worth of bytes lie above it.
    pub(crate) fn lost_below(&self, mss: u64) -> u64 {
        let mut bytes = 0;
        for (count, (from, to)) in self.sacked.iter().rev().enumerate() {
            bytes += to - from;
            if count + 1 >= DUP_THRESH || bytes > (DUP_THRESH as u64 - 1) * mss {
                return from;
            }
        }
        0
    }

    /// SetPipe: bytes that are thought to be on their way.
    pub(crate) fn set_pipe(&self, una: u64, max: u64, mss: u64) -> u64 {
        let resent = self.missing_between(una, self.high_rxt.max(una));
        resent + self.missing_between(self.lost_below(mss).max(una), max)
    }

    /// Bytes that are known to have arrived beyond the cumulative acknowledgement.
    pub(crate) fn bytes(&self) -> u64 {
        self.sacked.iter().map(|(from, to)| to - from).sum()
    }

    /// Bytes of `[from, to)` that are not known to have arrived.
    pub(crate) fn missing_between(&self, from: u64, to: u64) -> u64 {
        let arrived = self
            .sacked
            .iter()
            .map(|(begin, end)| end.min(to).saturating_sub(begin.max(from)));
        to.saturating_sub(from) - arrived.sum::<u64>()
    }

    /// The first hole at or above `seq` and below what has arrived: `[from, to)`.
    pub(crate) fn hole(&self, seq: u64) -> Option<(u64, u64)> {
        let from = self.skip(seq);
        self.sacked.next_from(from).map(|(to, _)| (from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scoreboard in segments of 1 byte.
    fn board(sacked: &[(u64, u64)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(from, to) in sacked {
            board.insert(from, to);
        }
        board
    }

    #[test]
    fn what_is_acknowledged_is_forgotten() {
        let mut board = board(&[(10, 40)]);
        board.advance(15);
        assert_eq!(board.bytes(), 25);
        assert_eq!((board.skip(15), board.highest(15)), (40, 40));
    }

    #[test]
    fn lost_is_what_has_three_blocks_or_more_than_two_segments_above() {
        assert_eq!(
            board(&[(5, 6), (8, 9)]).lost_below(1),
            0,
            "two blocks of one"
        );
        assert_eq!(board(&[(5, 8)]).lost_below(1), 5, "one block of three");
        assert_eq!(board(&[(3, 4), (5, 6), (8, 9)]).lost_below(1), 3);
        assert_eq!(board(&[(3, 4), (6, 9)]).lost_below(1), 6);
    }

    #[test]
    fn pipe_counts_what_is_not_lost_and_what_was_resent() {
        // Out: 1 to 14. Arrived: 3, 5, 8-10. Lost: 1, 2, 4, 6, 7; on their way: 11 to 14.
        let mut board = board(&[(3, 4), (5, 6), (8, 11)]);
        board.begin(1);
        assert_eq!(board.set_pipe(1, 15, 1), 4);
        // 1 and 2 are sent again.
        board.high_rxt = 3;
        assert_eq!(board.set_pipe(1, 15, 1), 6);
        // Two blocks of one: nothing above una counts as lost.
        let mut few = self::board(&[(3, 4), (5, 6)]);
        few.begin(1);
        assert_eq!(few.set_pipe(1, 7, 1), 4);
    }

    #[test]
    fn holes_lie_below_what_has_arrived() {
        let board = board(&[(3, 4), (5, 6)]);
        assert_eq!(board.hole(1), Some((1, 3)));
        assert_eq!(board.hole(3), Some((4, 5)));
        assert_eq!(board.hole(5), None);
    }
}
