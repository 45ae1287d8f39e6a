//! When each segment in flight was sent: what congestion controls that measure every round trip need.

use std::collections::VecDeque;

use aqmlab_net::Time;

/// A segment in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Behind its last byte.
    pub(crate) end: u64,
    /// When it was sent last.
    pub(crate) at: Time,
    /// It was sent more than once.
    pub(crate) resent: bool,
}

/// The segments in flight, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    sent: VecDeque<Sent>,
}

impl History {
    /// `[seq, end)` is sent.
    pub(crate) fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        if !resent {
            self.sent.push_back(Sent {
                end,
                at: now,
                resent,
            });
            return;
        }
        let first = self.sent.partition_point(|sent| sent.end <= seq);
        for sent in self.sent.range_mut(first..) {
            if sent.end > end {
                break;
            }
            (sent.at, sent.resent) = (now, true);
        }
    }

    /// Everything below `una` is acknowledged: the newest segment of that, if it was in flight.
    pub(crate) fn acknowledge(&mut self, una: u64) -> Option<Sent> {
        let mut newest = None;
        while let Some(sent) = self.sent.front()
            && sent.end <= una
        {
            newest = self.sent.pop_front();
        }
        newest
    }

    /// As [`Self::acknowledge`]; nothing if a segment below `una` was sent again: the others then
    /// waited at the receiver for its repair.
    pub(crate) fn acknowledge_unrepaired(&mut self, una: u64) -> Option<Sent> {
        let below = self.sent.partition_point(|sent| sent.end <= una);
        let repaired = self.sent.range(..below).any(|sent| sent.resent);
        self.acknowledge(una).filter(|_| !repaired)
    }

    /// The oldest segment in flight.
    pub(crate) fn oldest(&self) -> Option<Sent> {
        self.sent.front().copied()
    }

    /// Whether the segment at `una` was sent more than `limit_s` seconds ago. The limit goes by the
    /// round trips that were measured. Before there is one it is 0, and a segment is overdue once:
    /// each duplicate ACK would send it once more otherwise, and breed further ones.
    pub(crate) fn is_overdue(&self, una: u64, now: Time, limit_s: f64) -> bool {
        self.oldest().is_some_and(|oldest| {
            oldest.end > una
                && (now - oldest.at).as_secs_f64() > limit_s
                && (limit_s > 0.0 || !oldest.resent)
        })
    }

    /// Segments in flight.
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_sent_again_keeps_its_place_and_is_marked() {
        let ms = Time::from_millis;
        let mut history = History::default();
        for n in 0..3 {
            history.on_send(100 * n, 100 * n + 100, false, ms(n));
        }
        history.on_send(0, 100, true, ms(9));
        let oldest = history.oldest().unwrap();
        assert_eq!((oldest.at, oldest.resent, history.len()), (ms(9), true, 3));
        let newest = history.acknowledge(200).unwrap();
        assert_eq!((newest.at, newest.resent, history.len()), (ms(1), false, 1));
        assert_eq!(history.acknowledge(200), None);
    }

    #[test]
    fn an_ack_behind_a_repair_measures_nothing() {
        let ms = Time::from_millis;
        let mut history = History::default();
        for n in 0..3 {
            history.on_send(100 * n, 100 * n + 100, false, ms(n));
        }
        history.on_send(0, 100, true, ms(9));
        assert_eq!(history.acknowledge_unrepaired(200), None);
        assert_eq!(history.acknowledge_unrepaired(300).unwrap().at, ms(2));
    }
}
