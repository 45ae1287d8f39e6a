//! The sending half of a stream. What it carries are bytes that nobody looks at: only how many there
//! are, which were sent, lost and acknowledged.

use aqmlab_net::Ranges;

/// A piece of a stream that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) fin: bool,
    /// Bytes of it that are sent for the first time.
    pub(crate) new: u64,
}

/// Which limit holds data back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    Stream,
    /// The connection's, and what it is.
    Connection(u64),
}

/// The sending half of a stream, or what a level of the handshake sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    /// Bytes that the application has written, and whether they are all.
    pub(crate) written: u64,
    pub(crate) closed: bool,
    /// Behind the last byte that was sent.
    pub(crate) sent: u64,
    /// The peer's limit, and the limit that a BLOCKED frame has reported.
    pub(crate) limit: u64,
    pub(crate) blocked_at: Option<u64>,
    /// What has to go again.
    lost: Ranges,
    /// Everything below is acknowledged, and these are beyond.
    acked_below: u64,
    acked: Ranges,
    fin_sent: bool,
    fin_lost: bool,
    fin_acked: bool,
    /// It was reset: with so many bytes sent, of which the peer has to know.
    pub(crate) reset: Option<u64>,
    pub(crate) reset_acked: bool,
    /// It waits for its turn.
    pub(crate) is_queued: bool,
    /// When that comes: the lowest first. Those with the same take turns.
    pub(crate) rank: u64,
}

impl Outgoing {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Whether anything is to be sent that the stream's own limit lets go, with `credit` bytes of the
    /// connection's.
    #[inline]
    pub(crate) fn has_work(&self, credit: u64) -> bool {
        if self.reset.is_some() {
            return false;
        }
        let new = self.written.min(self.limit).min(self.sent + credit) > self.sent;
        new || !self.lost.is_empty() || self.fin_is_due()
    }

    /// Whether a level of the handshake, which has no limits and no end, has anything to send.
    #[inline]
    pub(crate) fn has_handshake_work(&self) -> bool {
        self.written > self.sent || !self.lost.is_empty()
    }

    fn fin_is_due(&self) -> bool {
        let unsent = !self.fin_sent || self.fin_lost;
        self.closed && unsent && self.sent == self.written && self.reset.is_none()
    }

    /// Whether the stream's own limit holds data back.
    pub(crate) fn is_blocked(&self) -> bool {
        self.written > self.limit && self.sent == self.limit && self.reset.is_none()
    }

    /// What holds data back, if no frame has said so: with `credit` bytes of the connection's limit
    /// left, and that limit.
    #[inline]
    pub(crate) fn report_blocked(
        &mut self,
        (credit, limit): (u64, u64),
        reported: &mut Option<u64>,
    ) -> Option<Blocked> {
        if self.is_blocked() && self.blocked_at != Some(self.limit) {
            self.blocked_at = Some(self.limit);
            return Some(Blocked::Stream);
        }
        if credit > 0 || self.written <= self.sent || limit == 0 || *reported == Some(limit) {
            return None;
        }
        *reported = Some(limit);
        Some(Blocked::Connection(limit))
    }

    /// The next piece of at most `most` bytes, `credit` of them new; what was lost goes first.
    #[inline]
    pub(crate) fn next(&mut self, most: u64, credit: u64) -> Option<Piece> {
        if self.reset.is_some() {
            return None;
        }
        if let Some((from, to)) = self.lost.first() {
            let to = to.min(from + most);
            if to > from {
                self.lost.remove(from, to);
                return Some(self.piece(from, to, 0));
            }
        }
        let from = self.sent;
        let to = self.written.min(self.limit).min(from + credit.min(most));
        if to > from {
            self.sent = to;
            return Some(self.piece(from, to, to - from));
        }
        self.fin_is_due().then(|| self.piece(from, from, 0))
    }

    fn piece(&mut self, from: u64, to: u64, new: u64) -> Piece {
        let fin = self.closed && to == self.written;
        if fin {
            (self.fin_sent, self.fin_lost) = (true, false);
        }
        Piece {
            offset: from,
            len: to - from,
            fin,
            new,
        }
    }

    /// `[from, to)` is to go again, and the end, except for what has arrived.
    pub(crate) fn lose(&mut self, from: u64, to: u64, fin: bool) {
        let from = from.max(self.acked_below);
        self.lost.insert(from, to.max(from));
        if !self.acked.is_empty() {
            let inside = self
                .acked
                .iter()
                .filter(|range| range.0 < to && range.1 > from);
            let arrived: Vec<_> = inside.collect();
            for (low, high) in arrived {
                self.lost.remove(low, high);
            }
        }
        self.fin_lost |= fin && !self.fin_acked;
    }

    /// `[from, to)` has arrived, and the end.
    #[inline]
    pub(crate) fn acknowledge(&mut self, from: u64, to: u64, fin: bool) {
        self.fin_acked |= fin;
        if fin {
            self.fin_lost = false;
        }
        if !self.lost.is_empty() {
            self.lost.remove(from, to);
        }
        if from <= self.acked_below {
            self.acked_below = self.acked.absorb(self.acked_below.max(to));
        } else {
            self.acked.insert(from, to);
        }
    }

    /// 0-RTT was rejected: nothing has been sent (RFC 9001, section 4.6.2).
    pub(crate) fn start_over(&mut self, limit: u64) {
        *self = Self {
            written: self.written,
            closed: self.closed,
            is_queued: self.is_queued,
            rank: self.rank,
            ..Self::new(limit)
        };
    }

    /// Everything below is acknowledged.
    pub(crate) const fn acknowledged(&self) -> u64 {
        self.acked_below
    }

    /// The peer has everything, or knows that it will not get it.
    pub(crate) fn is_done(&self) -> bool {
        let all = self.fin_acked && self.acked_below == self.written;
        all || self.reset_acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, len: u64, fin: bool, new: u64) -> Option<Piece> {
        Some(Piece {
            offset,
            len,
            fin,
            new,
        })
    }

    #[test]
    fn ld12_what_was_lost_goes_first_and_what_arrived_late_does_not_go() {
        let mut stream = Outgoing::new(10_000);
        stream.written = 5000;
        for from in [0, 1000, 2000] {
            assert_eq!(
                stream.next(1000, u64::MAX / 2),
                piece(from, 1000, false, 1000)
            );
        }
        stream.lose(0, 1000, false);
        stream.lose(1000, 2000, false);
        stream.acknowledge(1000, 2000, false);
        assert_eq!(stream.next(600, 9000), piece(0, 600, false, 0));
        assert_eq!(stream.next(600, 9000), piece(600, 400, false, 0));
        stream.closed = true;
        assert_eq!(stream.next(5000, 9000), piece(3000, 2000, true, 2000));
        assert_eq!(stream.next(5000, 9000), None);
        stream.lose(3000, 5000, true);
        stream.acknowledge(0, 3000, false);
        stream.acknowledge(4000, 5000, true);
        assert!(!stream.is_done());
        assert_eq!(stream.next(5000, 9000), piece(3000, 1000, false, 0));
        stream.acknowledge(3000, 4000, false);
        assert!(stream.is_done());
    }

    #[test]
    fn fc01_a_limit_holds_new_data_and_none_that_goes_again() {
        let mut stream = Outgoing::new(10_000);
        stream.written = 20_000;
        assert_eq!(stream.next(15_000, 15_000), piece(0, 10_000, false, 10_000));
        assert!(stream.is_blocked() && !stream.has_work(15_000));
        stream.lose(2000, 3000, false);
        assert_eq!(stream.next(15_000, 0), piece(2000, 1000, false, 0));
        stream.limit = 12_000;
        assert_eq!(
            stream.next(15_000, 500),
            piece(10_000, 500, false, 500),
            "the connection's"
        );
    }
}
