//! Acknowledgements, and what follows: round trips, losses, marks (RFC 9002, appendix A.7 to B.9).

use aqmlab_net::{Role, Time};

use super::{Connection, DATA, HANDSHAKE};
use crate::config::ACK_DELAY_EXPONENT;
use crate::error::Error;
use crate::space::{Fate, Space};
use crate::streams::{Content, Contents, Streams};

/// kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;

/// kPersistentCongestionThreshold.
const PERSISTENT: u64 = 3;

/// What an acknowledgement newly reports.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    packets: u64,
    elicits: bool,
    /// Packets that were sent as ECN-capable.
    capable: u64,
    /// When the largest number that it names was sent, if that is new.
    largest_at: Option<Time>,
}

/// What a packet carried has arrived.
#[inline]
fn acknowledge(content: Content, space: &mut Space, streams: &mut Streams) {
    match content {
        Content::Crypto { offset, len } => space.crypto.acknowledge(offset, offset + len, false),
        Content::Ack { largest } => space.forget_received(largest),
        other => streams.acknowledge(other),
    }
}

impl Connection {
    /// What a packet carried is to go again.
    pub(super) fn repeat(&mut self, index: usize, content: Content) {
        match content {
            Content::Crypto { offset, len } => {
                self.spaces[index].crypto.lose(offset, offset + len, false);
            }
            Content::HandshakeDone => self.done_is_due = true,
            Content::Ack { .. } => {}
            other => self.streams.lose(other),
        }
    }

    /// Takes the acknowledgement that the buffer has.
    pub(super) fn on_ack(&mut self, index: usize, now: Time) -> Result<(), Error> {
        let largest = self.ack.ranges.first().map_or(0, |range| range.1 - 1);
        if largest >= self.spaces[index].next_number() {
            return Err(Error::ProtocolViolation);
        }
        self.take_ack(index, largest, now);
        Ok(())
    }

    fn take_ack(&mut self, index: usize, largest: u64, now: Time) {
        self.congestion.begin();
        let is_newest = self.spaces[index]
            .largest_acked
            .is_none_or(|it| largest > it);
        let news = self.take_arrivals(index, largest, now);
        if news.packets == 0 {
            return;
        }
        let space = &mut self.spaces[index];
        space.largest_acked = space.largest_acked.max(Some(largest));
        let mut sample = None;
        if let Some(sent) = news.largest_at.filter(|_| news.elicits) {
            let latest = now - sent;
            let micros = self.ack.delay.min(1 << 37) << ACK_DELAY_EXPONENT;
            let delay = match (index, self.is_confirmed) {
                (DATA, true) => Time::from_micros(micros).min(self.config.max_ack_delay),
                (DATA, false) => Time::from_micros(micros),
                _ => Time::ZERO,
            };
            self.rtt.sample(latest, delay, now);
            sample = Some(latest);
            self.sample = sample;
        }
        if self.role == Role::Client && index == HANDSHAKE {
            self.is_validated = true;
        }
        let marks = match is_newest {
            true => self.count_marks(index, &news),
            false => 0,
        };
        if marks > 0
            && !self.congestion.law.answers_marks()
            && let Some(sent) = news.largest_at
        {
            self.congestion.on_congestion(sent, false, now);
        }
        self.find_losses(index, now);
        if self.role == Role::Server || self.is_validated {
            self.expiries = 0;
        }
        self.congestion.finish(marks, sample, &self.rtt, now);
        let before = now.saturating_sub(self.rtt.timeout() * 2);
        self.spaces[index].tidy(before);
    }

    fn take_arrivals(&mut self, index: usize, largest: u64, now: Time) -> News {
        let mut news = News::default();
        let Self {
            spaces,
            streams,
            congestion,
            ack,
            ..
        } = self;
        let space = &mut spaces[index];
        for &(from, to) in ack.ranges.iter().rev() {
            let (first, behind) = (space.index(from).unwrap_or(0), space.index(to).unwrap_or(0));
            for place in first..behind {
                let sent = &mut space.sent[place];
                let fate = std::mem::replace(&mut sent.fate, Fate::Arrived);
                if fate == Fate::Arrived {
                    continue;
                }
                if fate == Fate::Out {
                    if sent.bytes > 0 {
                        congestion.acknowledge(sent, now);
                    }
                    space.eliciting_out -= u32::from(sent.elicits);
                }
                news.packets += 1;
                news.elicits |= sent.elicits;
                news.capable += u64::from(sent.is_capable);
                news.largest_at = Some(sent.at);
                let (first, more) = sent.contents.take();
                if let Some(content) = first {
                    acknowledge(content, space, streams);
                }
                for content in more.into_iter().flatten() {
                    acknowledge(content, space, streams);
                }
            }
        }
        // The ranges were taken from the oldest: the last packet is the largest, if that is new.
        let place = space.index(largest).and_then(|place| space.sent.get(place));
        news.largest_at = news
            .largest_at
            .filter(|at| place.is_some_and(|it| it.at == *at));
        news
    }

    /// Marks that the peer newly reports; ECN is given up if its counts cannot be right (RFC 9000,
    /// section 13.4.2.1).
    fn count_marks(&mut self, index: usize, news: &News) -> u64 {
        if !self.is_capable {
            return 0;
        }
        let space = &mut self.spaces[index];
        let Some(counts) = self.ack.ecn else {
            self.is_capable = news.capable == 0;
            return 0;
        };
        let of_ours = match self.congestion.law.code_point() {
            aqmlab_net::Ecn::Ect1 => 1,
            _ => 0,
        };
        let sum = |counts: [u64; 3]| counts[of_ours] + counts[2];
        let reported = space.reported;
        let is_right = sum(counts) >= sum(reported) + news.capable
            && sum(counts) <= space.sent_capable
            && counts[1 - of_ours] == 0
            && counts[2] >= reported[2];
        if !is_right {
            self.is_capable = false;
            return 0;
        }
        space.reported = counts;
        counts[2] - reported[2]
    }

    // ---- losses ----

    /// Declares packets lost, and finds out when the next one will be.
    pub(super) fn find_losses(&mut self, index: usize, now: Time) {
        let patience = self.rtt.patience();
        let after = self.rtt.first_at;
        let span = (self.rtt.timeout() + self.config.max_ack_delay) * PERSISTENT;
        let space = &mut self.spaces[index];
        space.loss_at = Time::NEVER;
        let Some(largest) = space.largest_acked else {
            return;
        };
        if space.next_number() == largest + 1 && space.eliciting_out == 0 {
            return;
        }
        let behind = space.index(largest).unwrap_or(0);
        let mut newest = None;
        // The first ack-eliciting packet of a row of lost ones.
        let mut row: Option<Time> = None;
        let mut is_persistent = false;
        for place in 0..behind {
            let sent = &mut self.spaces[index].sent[place];
            match sent.fate {
                Fate::Arrived => row = None,
                Fate::Lost => {}
                Fate::Out => {
                    let is_far = (behind - place) as u64 >= PACKET_THRESHOLD;
                    let due = sent.at + patience;
                    if !is_far && due > now {
                        self.spaces[index].loss_at = due;
                        break;
                    }
                    if sent.elicits && after.is_some_and(|after| sent.at > after) {
                        let start = *row.get_or_insert(sent.at);
                        is_persistent |= sent.at - start > span;
                    }
                    if self.lose(index, place) {
                        newest = Some(self.spaces[index].sent[place].at);
                    }
                }
            }
        }
        if let Some(sent) = newest {
            self.congestion.on_congestion(sent, true, now);
        }
        if is_persistent {
            self.congestion.collapse(now);
            self.rtt.forget_least();
        }
    }

    /// A packet is lost; whether it was in flight.
    fn lose(&mut self, index: usize, place: usize) -> bool {
        let space = &mut self.spaces[index];
        let sent = &mut space.sent[place];
        sent.fate = Fate::Lost;
        let was_in_flight = sent.bytes > 0;
        if was_in_flight {
            self.congestion.lose(sent);
            self.lost += 1;
        }
        space.eliciting_out -= u32::from(sent.elicits);
        let contents = sent.contents.clone();
        for content in contents.iter() {
            self.repeat(index, content);
        }
        was_in_flight
    }

    /// The probe time-out of a space has expired: old data goes again if there is no new (RFC 9002,
    /// section 6.2.4). How many packets had some.
    pub(super) fn repeat_oldest(&mut self, index: usize, packets: usize) -> u32 {
        let out = self.spaces[index]
            .sent
            .iter()
            .filter(|sent| sent.fate == Fate::Out && sent.elicits && !sent.contents.is_empty());
        let oldest: Vec<_> = out
            .take(packets)
            .map(|sent| sent.contents.clone())
            .collect();
        for content in oldest.iter().flat_map(Contents::iter) {
            self.repeat(index, content);
        }
        oldest.len() as u32
    }

    /// Ack-eliciting packets that are out, of all spaces that have a probe timer: data has none before the handshake
    /// is confirmed (RFC 9002, section 6.2.1), and 0-RTT alone must not keep a client from asking.
    pub(crate) fn has_eliciting_out(&self) -> bool {
        let has = |index: usize| self.spaces[index].eliciting_out > 0;
        let mut spaces = self.open_spaces();
        spaces.any(|index| has(index) && (index != DATA || self.is_confirmed))
    }
}
