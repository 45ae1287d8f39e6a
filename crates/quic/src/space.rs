//! A packet number space (RFC 9000, section 12.3): what was sent and what has arrived, with its
//! acknowledgements.

use std::collections::VecDeque;

use aqmlab_net::{Ecn, Ranges, Time};
use aqmlab_tcp::Stamp;

use crate::send::Outgoing;
use crate::streams::{Content, Contents};
use crate::wire;

/// Most ranges of packet numbers that are remembered.
const MOST_RANGES: usize = 256;

/// Ack-eliciting packets that are acknowledged at once (RFC 9000, section 13.2.2).
const ACK_EVERY: u32 = 2;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Out,
    Lost,
    Arrived,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    /// Bytes that count as in flight; 0: none.
    pub(crate) bytes: u16,
    pub(crate) fate: Fate,
    pub(crate) elicits: bool,
    pub(crate) is_capable: bool,
    pub(crate) stamp: Stamp,
    pub(crate) contents: Contents,
}

/// A packet number space.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// There are keys to send, and no longer.
    pub(crate) has_keys: bool,
    pub(crate) is_discarded: bool,
    // ---- sending ----
    /// Packets from `base` on.
    pub(crate) sent: VecDeque<Sent>,
    base: u64,
    pub(crate) largest_acked: Option<u64>,
    /// Ack-eliciting packets that are out.
    pub(crate) eliciting_out: u32,
    pub(crate) last_eliciting_at: Time,
    /// When the next packet will be lost, if it does not arrive before.
    pub(crate) loss_at: Time,
    /// Probes that are to be sent, whatever the window.
    pub(crate) probes: u32,
    pub(crate) crypto: Outgoing,
    /// Packets sent with a code point of ECN, and what the peer has reported.
    pub(crate) sent_capable: u64,
    pub(crate) reported: [u64; 3],
    // ---- receiving ----
    received: Ranges,
    /// Everything below has been received, or is treated so.
    floor: u64,
    largest_at: Time,
    largest_eliciting: Option<u64>,
    /// Ack-eliciting packets that are not acknowledged.
    unacknowledged: u32,
    /// When they have to be.
    pub(crate) ack_at: Time,
    counts: [u64; 3],
    /// Bytes of the handshake that have arrived.
    pub(crate) crypto_received: Ranges,
}

impl Default for Space {
    fn default() -> Self {
        Self {
            has_keys: false,
            is_discarded: false,
            sent: VecDeque::new(),
            base: 0,
            largest_acked: None,
            eliciting_out: 0,
            last_eliciting_at: Time::ZERO,
            loss_at: Time::NEVER,
            probes: 0,
            crypto: Outgoing::new(u64::MAX),
            sent_capable: 0,
            reported: [0; 3],
            received: Ranges::default(),
            floor: 0,
            largest_at: Time::ZERO,
            largest_eliciting: None,
            unacknowledged: 0,
            ack_at: Time::NEVER,
            counts: [0; 3],
            crypto_received: Ranges::default(),
        }
    }
}

impl Space {
    // ---- sending ----

    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// The place of a packet among those that are remembered.
    pub(crate) fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.base).map(|it| it as usize)
    }

    #[inline]
    pub(crate) fn push(&mut self, sent: Sent) {
        if sent.elicits {
            self.eliciting_out += 1;
            self.last_eliciting_at = sent.at;
        }
        self.sent.push_back(sent);
    }

    /// Forgets packets that arrived, and lost ones that were sent before `before`.
    pub(crate) fn tidy(&mut self, before: Time) {
        while let Some(first) = self.sent.front() {
            let is_over = match first.fate {
                Fate::Arrived => true,
                Fate::Lost => first.at < before,
                Fate::Out => false,
            };
            if !is_over {
                break;
            }
            self.sent.pop_front();
            self.base += 1;
        }
    }

    /// The handshake has this to say.
    pub(crate) fn say(&mut self, bytes: u64) {
        self.crypto.written += bytes;
    }

    /// Bytes of the handshake that have arrived in order.
    pub(crate) fn crypto_in_order(&self) -> u64 {
        self.crypto_received
            .first()
            .filter(|it| it.0 == 0)
            .map_or(0, |it| it.1)
    }

    // ---- receiving ----

    /// The packet number that is expected next.
    pub(crate) fn expected(&self) -> u64 {
        self.received.last().map_or(0, |range| range.1)
    }

    pub(crate) fn is_duplicate(&self, number: u64) -> bool {
        // Mostly it is newer than all others.
        number < self.expected() && (number < self.floor || self.received.contains(number))
    }

    /// A packet has arrived: when it has to be acknowledged, if at all. `patience`: how long an
    /// acknowledgement may wait.
    pub(crate) fn on_arrival(
        &mut self,
        number: u64,
        elicits: bool,
        ecn: Ecn,
        patience: Time,
        now: Time,
    ) {
        if number >= self.expected() {
            self.largest_at = now;
        }
        let gap = self
            .largest_eliciting
            .is_some_and(|largest| number > largest + 1)
            && !self.received.contains(number - 1);
        self.received.insert(number, number + 1);
        if self.received.len() > MOST_RANGES {
            self.floor = self.received.first().map_or(0, |range| range.1);
            self.received.forget_first();
        }
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.counts[0] += 1,
            Ecn::Ect1 => self.counts[1] += 1,
            Ecn::Ce => self.counts[2] += 1,
        }
        if !elicits {
            return;
        }
        self.unacknowledged += 1;
        let is_late = self
            .largest_eliciting
            .is_some_and(|largest| number < largest);
        self.largest_eliciting = self.largest_eliciting.max(Some(number));
        let at_once = self.unacknowledged >= ACK_EVERY || is_late || gap || ecn == Ecn::Ce;
        let due = if at_once { now } else { now + patience };
        self.ack_at = self.ack_at.min(due);
    }

    /// Whether anything ack-eliciting waits for its acknowledgement.
    pub(crate) fn owes_ack(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Writes an acknowledgement of all that has arrived into at most `room` bytes.
    pub(crate) fn write_ack(
        &mut self,
        writer: &mut wire::Writer<'_>,
        exponent: u32,
        room: usize,
        now: Time,
    ) -> Option<Content> {
        let micros = now.saturating_sub(self.largest_at).as_nanos() / 1000;
        let ecn = (self.counts != [0; 3]).then_some(self.counts);
        writer.ack(micros >> exponent, self.received.iter().rev(), ecn, room)?;
        self.unacknowledged = 0;
        self.ack_at = Time::NEVER;
        Some(Content::Ack {
            largest: self.expected() - 1,
        })
    }

    /// The peer has an acknowledgement of all up to `largest`: what is below need not be said again.
    pub(crate) fn forget_received(&mut self, largest: u64) {
        // The range that has it goes on.
        let keep = self
            .received
            .last()
            .map_or(0, |range| range.1 - 1)
            .min(largest);
        self.received.forget_below(keep);
        self.floor = self.floor.max(keep);
    }

    /// Ranges of packet numbers that the next acknowledgement has.
    #[cfg(test)]
    pub(crate) fn ranges(&self) -> usize {
        self.received.len()
    }

    /// What has been counted of each code point.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> [u64; 3] {
        self.counts
    }

    /// The keys are gone, and all that was to be done with them.
    pub(crate) fn discard(&mut self) {
        *self = Self {
            is_discarded: true,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Time = Time::from_millis(25);

    fn arrive(space: &mut Space, number: u64, ecn: Ecn) -> bool {
        let now = Time::from_millis(100);
        space.on_arrival(number, true, ecn, PATIENCE, now);
        space.ack_at == now
    }

    fn acknowledge(space: &mut Space, delay_ms: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = wire::Writer {
            out: &mut out,
            wire: 0,
        };
        let now = Time::from_millis(100 + delay_ms);
        space.write_ack(&mut writer, 3, 1000, now).unwrap();
        out
    }

    #[test]
    fn ak02_ak03_every_second_packet_is_acknowledged_at_once_and_a_lone_one_in_time() {
        let mut space = Space::default();
        for pair in 0..5 {
            assert!(!arrive(&mut space, 2 * pair, Ecn::NotEct));
            assert_eq!(space.ack_at, Time::from_millis(125));
            assert!(arrive(&mut space, 2 * pair + 1, Ecn::NotEct));
            acknowledge(&mut space, 0);
            assert_eq!(space.ack_at, Time::NEVER);
        }
    }

    #[test]
    fn ak04_ak05_gaps_late_packets_and_marks_are_reported_at_once() {
        let mut space = Space::default();
        arrive(&mut space, 1, Ecn::NotEct);
        arrive(&mut space, 2, Ecn::NotEct);
        acknowledge(&mut space, 0);
        assert!(arrive(&mut space, 4, Ecn::NotEct), "a gap");
        acknowledge(&mut space, 0);
        assert!(arrive(&mut space, 3, Ecn::NotEct), "a late one");
        acknowledge(&mut space, 0);
        assert!(!arrive(&mut space, 5, Ecn::Ect0));
        acknowledge(&mut space, 0);
        assert!(arrive(&mut space, 6, Ecn::Ce));
    }

    #[test]
    fn ak09_the_delay_is_the_time_for_which_the_packet_was_held() {
        let mut space = Space::default();
        arrive(&mut space, 0, Ecn::NotEct);
        let out = acknowledge(&mut space, 40);
        // 40 ms in units of 8 us, although an acknowledgement may wait 25 ms only.
        let mut read = wire::AckFrame::default();
        wire::Reader(&out).frame(&mut read).unwrap();
        assert_eq!(read.delay, 5000);
    }

    #[test]
    fn pn03_what_was_received_is_a_duplicate_however_old() {
        let mut space = Space::default();
        for number in 0..600 {
            arrive(&mut space, 2 * number, Ecn::NotEct);
        }
        assert_eq!(space.ranges(), MOST_RANGES);
        for number in 0..600 {
            assert!(space.is_duplicate(2 * number));
        }
        assert!(!space.is_duplicate(1199) && !space.is_duplicate(1200));
    }

    #[test]
    fn ak08_ranges_are_forgotten_once_their_acknowledgement_is_acknowledged() {
        let mut space = Space::default();
        for number in 0..300 {
            arrive(&mut space, 2 * number, Ecn::NotEct);
        }
        space.forget_received(560);
        assert_eq!(space.ranges(), 20);
        assert!(space.is_duplicate(100) && space.is_duplicate(101));
    }

    #[test]
    fn ec01_the_fields_of_packets_are_counted() {
        let mut space = Space::default();
        for (number, ecn) in [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ect0]
            .into_iter()
            .enumerate()
        {
            arrive(&mut space, number as u64, ecn);
        }
        assert_eq!(space.counts(), [3, 0, 1]);
    }
}
