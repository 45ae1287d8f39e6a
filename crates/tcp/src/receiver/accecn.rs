//! The receiver's half of accurate ECN feedback (RFC 9768, sections 3.2.1 to 3.2.3): it counts marks
//! and reports the counters in three flags of every segment and in an option.

use aqmlab_net::Ecn;

use crate::accecn::{FIRST_CEP, MARKS_WITHOUT_DATA, ace, code};
use crate::context::Context;
use crate::segment::{AccEcnOption, Flags, Segment};

const FIRST: Counters = Counters {
    cep: FIRST_CEP,
    ceb: 0,
    e0b: 1,
    e1b: 1,
};
/// Marks since the last ACK that call for one while data waits for its own (section 3.2.2.5).
const MARKS_WITH_DATA: u64 = 2;
/// Fields of the option that fit beside two SACK blocks and time stamps.
const FIELDS_BESIDE_SACK: usize = 2;

/// What has arrived: marked packets, and bytes of payload by code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    cep: u64,
    ceb: u64,
    e0b: u64,
    e1b: u64,
}

/// What a connection with accurate feedback counts.
#[derive(Clone, Debug)]
pub(super) struct MarkCounter {
    /// What has arrived, and the part that the last segment sent has reported.
    received: Counters,
    reported: Counters,
    /// The last packet was marked.
    after_mark: bool,
    /// The ECN field of the peer's SYN or SYN-ACK, which the answer reports.
    opening: Ecn,
    /// Segments that are to carry the option whether a counter has moved or not.
    options_due: u8,
}

impl MarkCounter {
    /// Both ends have agreed on accurate feedback; `opening` is the ECN field of the peer's SYN or
    /// SYN-ACK, which counts if it is `marked`, and so many segments are to carry the option.
    pub(super) fn new(opening: Ecn, marked: bool, options_due: u8) -> Self {
        let mut received = FIRST;
        received.cep += u64::from(marked);
        Self {
            received,
            reported: FIRST,
            after_mark: false,
            opening,
            options_due,
        }
    }

    /// How the handshake reports the ECN field of the peer's opening segment.
    pub(super) fn opening_code(&self) -> Flags {
        ace(code(self.opening))
    }

    /// The counter, in the flags of a segment.
    pub(super) fn flags(&self) -> Flags {
        ace(self.received.cep)
    }

    /// The option that reports the counters: the code point that the peer uses first, without what may
    /// be left out.
    pub(super) fn option(&self) -> AccEcnOption {
        let now = &self.received;
        let low = |count: u64| count as u32 & AccEcnOption::MASK;
        let (e0b, ceb, e1b) = (low(now.e0b), low(now.ceb), low(now.e1b));
        let mut option = AccEcnOption::new(now.e1b > now.e0b, [e0b, ceb, e1b]);
        if now.e0b == FIRST.e0b || now.e1b == FIRST.e1b {
            option.truncate(2);
        }
        option
    }

    /// Counts the mark of a segment; whether it calls for an ACK (section 3.2.2.5). `waits`: data waits
    /// for its own. A pure ACK that is marked is not to be answered each time.
    pub(super) fn count(&mut self, segment: &Segment, waits: bool) -> bool {
        let len = u64::from(segment.len);
        let marked = segment.ecn == Ecn::Ce;
        let counters = &mut self.received;
        match segment.ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => counters.e0b += len,
            Ecn::Ect1 => counters.e1b += len,
            Ecn::Ce => {
                counters.cep += 1;
                counters.ceb += len;
            }
        }
        let is_change = marked && len > 0 && !self.after_mark;
        self.after_mark = marked;
        let most = if waits {
            MARKS_WITH_DATA
        } else {
            MARKS_WITHOUT_DATA
        };
        marked && (is_change || self.received.cep - self.reported.cep >= most)
    }

    /// Whether the last segment has reported all.
    #[inline]
    pub(super) fn is_reported(&self) -> bool {
        self.options_due == 0 && self.received == self.reported
    }

    /// A segment leaves and reports all: the option, if the counters of bytes have moved. `beside_sack`:
    /// SACK blocks find room for two.
    pub(super) fn report(&mut self, beside_sack: bool, cx: &Context<'_>) -> Option<AccEcnOption> {
        let bytes = |counters: Counters| Counters { cep: 0, ..counters };
        let is_due = self.options_due > 0 || bytes(self.received) != bytes(self.reported);
        self.reported = self.received;
        if !is_due || !cx.profile.accecn_option {
            return None;
        }
        self.options_due = self.options_due.saturating_sub(1);
        let mut option = self.option();
        if beside_sack {
            option.truncate(FIELDS_BESIDE_SACK);
        }
        Some(option)
    }

    /// Marked packets that have arrived.
    #[cfg(test)]
    pub(super) fn marked_packets(&self) -> u64 {
        self.received.cep - FIRST_CEP
    }
}
