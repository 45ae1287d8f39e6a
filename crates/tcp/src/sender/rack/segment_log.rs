//! What is out, segment by segment: when it was sent, whether it has arrived, what the connection had
//! delivered by then. From it follow the round trip of each ACK, samples of the delivery rate and the
//! bytes in flight.

use std::collections::VecDeque;

use aqmlab_net::Time;

use super::detection::Rack;
use crate::rate::{Delivery, Loss, Rate, Then};
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
    /// RACK has found it lost: in Linux it looks at it no more before it is sent again, whatever is taken back.
    forgotten: bool,
    /// It left a little later than the one before it.
    pub(crate) apart: bool,
    /// What the connection was like when it was sent last.
    then: Then,
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
            forgotten: false,
            apart: false,
            then: Then::default(),
        }
    }
}

/// What an ACK reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// Bytes delivered.
    pub(crate) delivered: u64,
    /// Segments delivered.
    pub(crate) segments: u64,
    /// Segments that have arrived once more.
    pub(crate) duplicates: u64,
    /// Something has been reported beyond a gap.
    pub(crate) sacked: bool,
    /// Something has been acknowledged that was sent more than once.
    pub(crate) resent: bool,
    /// The round trip of the newest segment that was sent once.
    pub(crate) rtt: Option<Time>,
    /// The same of the oldest one beyond a gap, and of the oldest one acknowledged: with the time for which the
    /// peer has delayed its ACK.
    pub(crate) sacked_rtt: Option<Time>,
    pub(crate) acked_rtt: Option<Time>,
    /// A segment that was sent once, before the last congestion, has arrived.
    pub(crate) original: bool,
    /// The segment sent last of those that have arrived.
    newest: Option<Sent>,
    /// Segments found lost.
    pub(crate) losses: Vec<Loss>,
}

impl News {
    /// The longest round trip of an ACK. `linux`: what it acknowledges comes first, and counts only if all
    /// of it was sent once.
    #[inline]
    pub(crate) fn longest_rtt(&self, linux: bool) -> Option<Time> {
        if linux {
            let acked = self.acked_rtt.filter(|_| !self.resent);
            acked.or(self.sacked_rtt)
        } else {
            self.sacked_rtt.or(self.acked_rtt)
        }
    }
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
    /// Segments that are lost, whether sent again or not; and how often a repair was lost.
    pub(crate) lost_segments: u64,
    pub(crate) lost_repairs: u64,
    /// What is sent now leaves one by one: the application writes it. What an ACK releases has one time.
    pub(crate) apart: bool,
    /// Behind the highest segment that was sent again.
    resent_end: u64,
    /// There is no hole below.
    no_hole_below: u64,
    pub(crate) delivery: Delivery,
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

    /// Segments that are under way once more.
    pub(crate) fn under_way_again(&self) -> usize {
        let again = |sent: &&Sent| sent.resent && !sent.sacked && !sent.is_hole();
        self.sent.iter().filter(again).count()
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

    /// `[seq, end)` is sent for the first time, with `pipe` bytes on their way.
    pub(crate) fn on_send(&mut self, seq: u64, end: u64, pipe: u64, now: Time) {
        let len = end - seq;
        let then = self.delivery.on_send(pipe, len, now);
        self.sent.push_back(Sent {
            end,
            len,
            at: now,
            sacked: false,
            lost: false,
            repaired: false,
            resent: false,
            forgotten: false,
            apart: self.apart,
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
        let then = self.delivery.on_send(pipe, len, now);
        let sent = &mut self.sent[index];
        if sent.is_hole() {
            self.holes -= len;
            self.hole_segments -= 1;
        }
        (sent.at, sent.resent, sent.then) = (now, true, then);
        sent.forgotten = false;
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

    // ---- arrivals ----

    /// An ACK begins.
    pub(crate) fn begin(&mut self) {
        let news = &mut self.news;
        (news.delivered, news.segments, news.duplicates) = (0, 0, 0);
        news.rtt = None;
        (news.sacked_rtt, news.acked_rtt) = (None, None);
        (news.original, news.sacked, news.resent) = (false, false, false);
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
            self.news.resent |= first.resent;
            if first.sacked {
                self.sacked -= first.len;
                self.sacked_segments -= 1;
            } else {
                self.arrive(first, recover, now, rack, rack.fack_before);
                if !first.resent && self.news.acked_rtt.is_none() {
                    self.news.acked_rtt = Some(now - first.at);
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
            self.delivery.on_arrival(part, now);
            self.news.delivered += part;
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
                self.news.sacked = true;
                if !before.resent && self.news.sacked_rtt.is_none() {
                    self.news.sacked_rtt = Some(now - before.at);
                }
            }
            index += 1;
        }
    }

    /// A segment of `mss` bytes has arrived once more: a spurious retransmission is delivered, too (Linux).
    pub(crate) fn on_duplicate(&mut self, mss: u64) {
        self.delivery.delivered += mss;
        self.news.delivered += mss;
        self.news.duplicates += 1;
    }

    /// What the ACK at hand delivers is so many bytes.
    pub(crate) fn recount(&mut self, delivered: u64, now: Time) {
        let other = self.delivery.delivered - self.news.delivered;
        self.delivery.delivered = other;
        self.news.delivered = delivered;
        if delivered > 0 {
            self.delivery.on_arrival(delivered, now);
        }
    }

    /// Whether the segment at `seq` has been sent again and reported: a further report of it shows that the
    /// first one was late.
    pub(crate) fn has_repaired_and_seen(&self, seq: u64) -> bool {
        let found = self.sent.get(self.below(seq));
        found.is_some_and(|sent| sent.start() == seq && sent.resent && sent.sacked)
    }

    /// Repairs that are under way.
    pub(crate) fn repairs(&self) -> u32 {
        let is_repair = |sent: &&Sent| sent.repaired && !sent.sacked;
        self.sent.iter().filter(is_repair).count() as u32
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
        if sent.lost {
            self.lost_segments -= 1;
            if !sent.repaired {
                self.holes -= sent.len;
                self.hole_segments -= 1;
            }
        }
        self.delivery.on_arrival(sent.len, now);
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

    /// The ACK is taken in: the sample of the delivery rate, if there is one.
    pub(crate) fn rate(&mut self, min_rtt: Option<Time>) -> Option<Rate> {
        let newest = self.news.newest.map(|sent| (sent.at, sent.then));
        self.delivery.sample(newest, min_rtt)
    }

    // ---- losses ----

    fn mark_lost(&mut self, index: usize) {
        let sent = &mut self.sent[index];
        self.lost_segments += u64::from(!sent.lost);
        self.lost_repairs += u64::from(sent.repaired);
        (sent.lost, sent.repaired) = (true, false);
        self.holes += sent.len;
        self.hole_segments += 1;
        self.no_hole_below = self.no_hole_below.min(sent.start());
        let loss = self.delivery.on_loss(sent.len, &sent.then);
        self.news.losses.push(loss);
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
            if is_before && !sent.is_hole() && !sent.forgotten {
                let due = sent.at + patience;
                if rack.is_late(sent, due, now) {
                    self.mark_lost(index);
                    self.sent[index].forgotten = rack.forgets();
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
        (self.holes, self.hole_segments, self.lost_segments) = (0, 0, 0);
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
            (log.news.delivered, log.delivery.delivered)
        };
        assert_eq!(acknowledge(400), (400, 400));
        assert_eq!(acknowledge(1300), (900, 1300));
        assert_eq!(acknowledge(2000), (700, 2000));
    }
}
