//! What is out, segment by segment: when it was sent, whether it has arrived, what the connection had
//! delivered by then. From it follow the round trip of each ACK, samples of the delivery rate
//! (draft-ietf-ccwg-bbr, section 4.1, which took in draft-cheng-iccrg-delivery-rate-estimation) and
//! the bytes in flight.

use std::collections::VecDeque;

use aqmlab_net::Time;

use super::detection::Rack;
use crate::sender::scoreboard::Scoreboard;

/// A segment that is out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Behind its last byte.
    pub(crate) end: u64,
    pub(crate) len: u64,
    /// When it was sent last.
    pub(crate) at: Time,
    /// The peer has reported by SACK that it has arrived.
    sacked: bool,
    /// It is thought to be lost: it waits to be sent again, or has been ([`Self::repaired`]).
    lost: bool,
    /// What went again of it is under way.
    repaired: bool,
    /// It was sent more than once.
    pub(crate) resent: bool,
    /// What the connection was like when it was sent last.
    then: Then,
}

/// What a segment remembers of the connection when it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Then {
    /// Bytes delivered, and when the last of them was.
    pub(crate) delivered: u64,
    delivered_at: Time,
    /// When the segment was sent whose arrival was known last.
    first_sent: Time,
    /// Bytes in flight, its own included.
    pub(crate) in_flight: u64,
    /// Bytes lost.
    pub(crate) lost: u64,
    /// The application had less to send than the window allowed.
    pub(crate) app_limited: bool,
}

impl Sent {
    /// Counts neither as in flight nor as delivered.
    fn is_hole(&self) -> bool {
        self.lost && !self.repaired
    }

    fn start(&self) -> u64 {
        self.end - self.len
    }

    /// A segment of 1,000 bytes.
    #[cfg(test)]
    pub(crate) fn at(end: u64, at: Time, resent: bool) -> Self {
        Self {
            end,
            len: 1000,
            at,
            sacked: false,
            lost: false,
            repaired: false,
            resent,
            then: Then::default(),
        }
    }
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// Bytes delivered, and in which time: the longer of those of sending and of acknowledging.
    pub(crate) delivered: u64,
    pub(crate) interval: Time,
    /// Bytes delivered when the segment was sent that the sample is of.
    pub(crate) prior_delivered: u64,
    /// Bytes in flight when it was sent, its own included.
    pub(crate) in_flight: u64,
    /// Bytes lost since it was sent.
    pub(crate) lost: u64,
    /// The application was the limit.
    pub(crate) app_limited: bool,
}

impl Rate {
    /// Bytes per second.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

/// A segment that has been found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) len: u64,
    /// Bytes in flight when it was sent, its own included.
    pub(crate) in_flight: u64,
    /// Bytes lost since it was sent, its own included.
    pub(crate) lost: u64,
    /// The application was the limit when it was sent.
    pub(crate) app_limited: bool,
}

/// What an ACK reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// Bytes delivered.
    pub(crate) delivered: u64,
    /// Segments delivered.
    pub(crate) segments: u64,
    /// The round trip of the newest segment that was sent once.
    pub(crate) rtt: Option<Time>,
    /// The same of the oldest: with the time for which the peer has delayed its ACK.
    pub(crate) longest_rtt: Option<Time>,
    /// A segment that was sent once, before the last congestion, has arrived.
    pub(crate) original: bool,
    /// The segment sent last of those that have arrived.
    newest: Option<Sent>,
    /// Segments found lost.
    pub(crate) losses: Vec<Loss>,
}

/// The segments that are out, oldest first, and what follows from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentLog {
    sent: VecDeque<Sent>,
    board: Scoreboard,
    /// Segments reported by SACK; bytes of them; bytes of holes; segments that are holes.
    pub(crate) sacked_segments: u64,
    sacked: u64,
    holes: u64,
    hole_segments: u64,
    /// Behind the highest segment that was sent again.
    resent_end: u64,
    /// There is no hole below.
    no_hole_below: u64,
    /// Bytes delivered and lost since the connection began.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Samples are limited by the application until this much is delivered; 0: they are not.
    app_limited_until: u64,
    /// What the ACK at hand reports.
    pub(crate) news: News,
}

impl SegmentLog {
    /// Bytes on their way: neither delivered nor lost, or sent again since.
    #[inline]
    pub(crate) fn pipe(&self, una: u64, max: u64) -> u64 {
        max - una - self.sacked - self.holes
    }

    /// Segments on their way.
    pub(crate) fn packets(&self) -> u64 {
        self.sent.len() as u64 - self.sacked_segments - self.hole_segments
    }

    /// Bytes that are lost and not sent again.
    #[inline]
    pub(crate) fn holes(&self) -> u64 {
        self.holes
    }

    /// Whether anything is known that time alone may show to be lost: something was sent before what has
    /// arrived (RFC 8985, section 6.2, step 5).
    pub(crate) fn is_doubtful(&self, una: u64, rack: &Rack) -> bool {
        self.sacked > 0 || self.resent_end > una || self.is_overtaken(rack)
    }

    /// Whether nothing is lost, beyond a gap, sent again or overtaken among what is out.
    #[inline]
    pub(crate) fn is_in_order(&self, una: u64, rack: &Rack) -> bool {
        (self.sacked | self.holes) == 0 && self.resent_end <= una && !self.is_overtaken(rack)
    }

    /// Whether the oldest segment was sent before one that has arrived.
    #[inline]
    fn is_overtaken(&self, rack: &Rack) -> bool {
        let first = self.sent.front();
        first.is_some_and(|sent| (sent.at, sent.end) < (rack.at, rack.end))
    }

    /// Whether the peer has reported anything beyond a gap.
    pub(crate) fn has_gaps(&self) -> bool {
        self.sacked > 0
    }

    /// Segments that are out, however they fare.
    pub(crate) fn segments(&self) -> usize {
        self.sent.len()
    }

    /// The newest segment that is out: where it begins, and where it ends.
    pub(crate) fn newest(&self) -> Option<(u64, u64)> {
        self.sent.back().map(|sent| (sent.start(), sent.end))
    }

    /// How many of the segments end at or below `seq`. Nearly all are of one length, so that the answer
    /// is guessed.
    fn below(&self, seq: u64) -> usize {
        let (Some(first), Some(second)) = (self.sent.front(), self.sent.get(1)) else {
            return usize::from(self.sent.front().is_some_and(|sent| sent.end <= seq));
        };
        if seq < first.end {
            return 0;
        }
        if let Some(more) = (seq - first.end).checked_div(second.len) {
            let guess = more as usize + 1;
            if self.sent.get(guess).is_some_and(|sent| sent.start() == seq) {
                return guess;
            }
        }
        self.sent.partition_point(|sent| sent.end <= seq)
    }

    // ---- sending ----

    fn now(&mut self, now: Time, pipe: u64, len: u64) -> Then {
        if pipe == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Then {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            in_flight: pipe + len,
            lost: self.lost,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// `[seq, end)` is sent for the first time, with `pipe` bytes on their way.
    pub(crate) fn on_send(&mut self, seq: u64, end: u64, pipe: u64, now: Time) {
        let len = end - seq;
        let then = self.now(now, pipe, len);
        self.sent.push_back(Sent {
            end,
            len,
            at: now,
            sacked: false,
            lost: false,
            repaired: false,
            resent: false,
            then,
        });
    }

    /// The segment that ends at `end` is sent again.
    pub(crate) fn on_resend(&mut self, end: u64, pipe: u64, now: Time) {
        let behind = self.below(end);
        let is_last = |&before: &usize| self.sent.get(before).is_some_and(|sent| sent.end == end);
        let index = behind.checked_sub(1).filter(is_last).unwrap_or(behind);
        let Some(len) = self.sent.get(index).map(|sent| sent.len) else {
            return;
        };
        let then = self.now(now, pipe, len);
        let sent = &mut self.sent[index];
        if sent.is_hole() {
            self.holes -= len;
            self.hole_segments -= 1;
        }
        (sent.at, sent.resent, sent.then) = (now, true, then);
        sent.repaired = sent.lost;
        self.no_hole_below = end;
        self.resent_end = self.resent_end.max(end);
    }

    /// The first segment that is lost and not sent again: where it begins, and where it ends.
    pub(crate) fn first_hole(&self) -> Option<(u64, u64)> {
        if self.holes == 0 {
            return None;
        }
        let first = self.below(self.no_hole_below);
        let hole = self.sent.range(first..).find(|sent| sent.is_hole());
        hole.map(|sent| (sent.start(), sent.end))
    }

    /// The application has nothing to send though the window would allow it, with `pipe` bytes on
    /// their way.
    pub(crate) fn limit_by_application(&mut self, pipe: u64) {
        self.app_limited_until = (self.delivered + pipe).max(1);
    }

    // ---- arrivals ----

    /// An ACK begins.
    pub(crate) fn begin(&mut self) {
        let news = &mut self.news;
        (news.delivered, news.segments) = (0, 0);
        (news.rtt, news.longest_rtt) = (None, None);
        news.original = false;
        news.newest = None;
        news.losses.clear();
    }

    /// Everything below `ack` has arrived.
    pub(crate) fn acknowledge(&mut self, ack: u64, recover: u64, now: Time, rack: &mut Rack) {
        while let Some(&first) = self.sent.front() {
            if first.end > ack {
                self.acknowledge_part(ack, now);
                break;
            }
            self.sent.pop_front();
            if first.sacked {
                self.sacked -= first.len;
                self.sacked_segments -= 1;
            } else {
                self.arrive(first, recover, now, rack, rack.fack_before);
                if !first.resent && self.news.longest_rtt.is_none() {
                    self.news.longest_rtt = Some(now - first.at);
                }
            }
        }
        self.board.advance(ack);
    }

    /// The ACK ends within the oldest segment.
    fn acknowledge_part(&mut self, ack: u64, now: Time) {
        let Some(first) = self.sent.front_mut() else {
            return;
        };
        let part = ack.saturating_sub(first.start());
        first.len -= part;
        if part == 0 {
            return;
        }
        if first.is_hole() {
            self.holes -= part;
        }
        if first.sacked {
            self.sacked -= part;
        } else {
            self.delivered += part;
            self.news.delivered += part;
            self.delivered_at = now;
        }
    }

    /// The peer reports that `[from, to)` has arrived.
    pub(crate) fn on_sack(&mut self, from: u64, to: u64, recover: u64, now: Time, rack: &mut Rack) {
        let mut seq = self.board.skip(from);
        while seq < to {
            let gap_end = self.board.begins_at_or_behind(seq).unwrap_or(to).min(to);
            self.take_sacked(seq, gap_end, recover, now, rack);
            seq = self.board.skip(gap_end);
        }
        self.board.insert(from, to);
    }

    fn take_sacked(&mut self, from: u64, to: u64, recover: u64, now: Time, rack: &mut Rack) {
        let mut index = self.below(from);
        if self.sent.get(index).is_some_and(|sent| sent.start() < from) {
            index += 1; // Reported in part.
        }
        while let Some(sent) = self.sent.get_mut(index)
            && sent.end <= to
        {
            if !sent.sacked {
                let before = *sent;
                (sent.sacked, sent.lost) = (true, false);
                self.sacked += before.len;
                self.sacked_segments += 1;
                self.arrive(before, recover, now, rack, rack.fack);
                if !before.resent && self.news.longest_rtt.is_none() {
                    self.news.longest_rtt = Some(now - before.at);
                }
            }
            index += 1;
        }
    }

    /// A segment of `mss` bytes has arrived once more: a spurious retransmission is delivered, too (Linux).
    pub(crate) fn on_duplicate(&mut self, mss: u64) {
        self.delivered += mss;
        self.news.delivered += mss;
    }

    /// When the oldest segment that is out was sent last.
    pub(crate) fn oldest_sent_at(&self) -> Option<Time> {
        self.sent.front().map(|sent| sent.at)
    }

    /// The peer has dropped what it reported (RFC 2018, section 8): only what it acknowledges counts.
    pub(crate) fn forget_sacks(&mut self) {
        self.board.clear();
        for sent in &mut self.sent {
            sent.sacked = false;
        }
        (self.sacked, self.sacked_segments) = (0, 0);
    }

    /// Whether the peer has reported the oldest segment, and does not acknowledge it.
    pub(crate) fn is_reneged(&self) -> bool {
        self.sent.front().is_some_and(|sent| sent.sacked)
    }

    /// A segment has arrived.
    #[inline(never)]
    fn arrive(&mut self, sent: Sent, recover: u64, now: Time, rack: &mut Rack, fack: u64) {
        if sent.is_hole() {
            self.holes -= sent.len;
            self.hole_segments -= 1;
        }
        self.delivered += sent.len;
        self.delivered_at = now;
        let news = &mut self.news;
        news.delivered += sent.len;
        news.segments += 1;
        if !sent.resent {
            let rtt = now - sent.at;
            news.rtt = Some(news.rtt.map_or(rtt, |other| rtt.min(other)));
            news.original |= sent.end <= recover;
        }
        let later = |other: Sent| (sent.at, sent.end) > (other.at, other.end);
        if news.newest.is_none_or(later) {
            news.newest = Some(sent);
        }
        rack.on_delivered(&sent, fack, now);
    }

    /// The ACK is taken in: the sample of the delivery rate, if there is one. Shorter than
    /// `min_rtt` an interval shows compressed ACKs, not a rate.
    pub(crate) fn rate(&mut self, min_rtt: Option<Time>) -> Option<Rate> {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = self.news.newest?;
        let then = newest.then;
        self.first_sent = newest.at;
        let sending = newest.at.saturating_sub(then.first_sent);
        let acknowledging = self.delivered_at.saturating_sub(then.delivered_at);
        let interval = sending.max(acknowledging);
        let is_valid = interval > Time::ZERO && min_rtt.is_none_or(|least| interval >= least);
        is_valid.then_some(Rate {
            delivered: self.delivered - then.delivered,
            interval,
            prior_delivered: then.delivered,
            in_flight: then.in_flight,
            lost: self.lost - then.lost,
            app_limited: then.app_limited,
        })
    }

    // ---- losses ----

    fn mark_lost(&mut self, index: usize) {
        let sent = &mut self.sent[index];
        (sent.lost, sent.repaired) = (true, false);
        self.holes += sent.len;
        self.hole_segments += 1;
        self.lost += sent.len;
        self.no_hole_below = self.no_hole_below.min(sent.start());
        self.news.losses.push(Loss {
            len: sent.len,
            in_flight: sent.then.in_flight,
            lost: self.lost - sent.then.lost,
            app_limited: sent.then.app_limited,
        });
    }

    /// Marks the segments lost that were sent before the newest one delivered, and longer ago than
    /// `patience`. The time at which the last one of the others will be, if any: one timer serves all.
    pub(crate) fn detect(&mut self, rack: &Rack, patience: Time, now: Time) -> Option<Time> {
        let mut next: Option<Time> = None;
        let (mut index, mut island) = (0, 0);
        while let Some(sent) = self.sent.get(index) {
            let is_before = (sent.at, sent.end) < (rack.at, rack.end);
            if !is_before && sent.end > self.resent_end {
                break;
            }
            if sent.sacked {
                let to = self.board.skip_from(&mut island, sent.start());
                index = self.below(to).max(index + 1);
                continue;
            }
            if is_before && !sent.is_hole() {
                let due = sent.at + patience;
                if due <= now {
                    self.mark_lost(index);
                } else {
                    next = next.max(Some(due));
                }
            }
            index += 1;
        }
        next
    }

    /// Marks the oldest segment lost.
    pub(crate) fn lose_oldest(&mut self) {
        if let Some(sent) = self.sent.front()
            && !sent.sacked
            && !sent.is_hole()
        {
            self.mark_lost(0);
        }
    }

    /// Marks all segments lost that were sent longer ago than `patience`, the newest delivered one
    /// or not; without patience all.
    pub(crate) fn lose_overdue(&mut self, patience: Option<Time>, now: Time) {
        for index in 0..self.sent.len() {
            let sent = &self.sent[index];
            let overdue = patience.is_none_or(|patience| sent.at + patience <= now);
            if overdue && !sent.sacked && !sent.is_hole() {
                self.mark_lost(index);
            }
        }
    }

    /// Nothing is lost after all.
    pub(crate) fn unmark(&mut self) {
        for sent in &mut self.sent {
            (sent.lost, sent.repaired) = (false, false);
        }
        (self.holes, self.hole_segments) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 1,000 bytes; the last two are sent 100 ms apart, and their ACKs come together.
    #[test]
    fn b301_a_rate_is_of_the_longer_interval_and_of_a_round_trip_at_least() {
        let ms = Time::from_millis;
        let mut log = SegmentLog::default();
        let mut rack = Rack::default();
        let mut acknowledge = |log: &mut SegmentLog, ack, at| {
            log.begin();
            log.acknowledge(ack, 0, ms(at), &mut rack);
            log.rate(None).map(|rate| (rate.delivered, rate.interval))
        };
        log.on_send(0, 1000, 0, ms(0));
        log.on_send(1000, 2000, 1000, ms(50));
        assert_eq!(acknowledge(&mut log, 1000, 150), Some((1000, ms(150))));
        assert_eq!(acknowledge(&mut log, 2000, 151), Some((2000, ms(151))));
        log.on_send(2000, 3000, 1000, ms(152));
        log.on_send(3000, 4000, 2000, ms(252));
        let _ = acknowledge(&mut log, 3000, 300);
        let sending = ms(252 - 50);
        assert_eq!(
            acknowledge(&mut log, 4000, 301),
            Some((2000, sending)),
            "compressed ACKs make no rate beyond that of sending"
        );
        assert!(log.rate(Some(sending)).is_some());
        assert_eq!(log.rate(Some(sending + ms(1))), None);
    }

    #[test]
    fn an_ack_within_a_segment_delivers_its_part() {
        let mut log = SegmentLog::default();
        let mut rack = Rack::default();
        log.on_send(0, 1000, 0, Time::ZERO);
        log.on_send(1000, 2000, 1000, Time::ZERO);
        let mut acknowledge = |ack| {
            log.begin();
            log.acknowledge(ack, 0, Time::from_millis(100), &mut rack);
            (log.news.delivered, log.delivered)
        };
        assert_eq!(acknowledge(400), (400, 400));
        assert_eq!(acknowledge(1300), (900, 1300));
        assert_eq!(acknowledge(2000), (700, 2000));
    }
}
