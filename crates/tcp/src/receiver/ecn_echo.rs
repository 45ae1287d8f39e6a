//! What the flags of every segment say of marks: ECE until CWR (RFC 3168, section 6.1.3), ECE for marked
//! data alone (RFC 8257, section 3.2), or a counter (RFC 9768).

use aqmlab_net::{Ecn, Time};

use super::Receiver;
use crate::agreed::Agreed;
use crate::segment::{Flags, Segment};

impl Receiver {
    /// Whether the echo changes with this segment while an ACK is being delayed: that ACK leaves first, with
    /// the old state (RFC 8257, section 3.2).
    pub(crate) fn owes_old_echo(&self, segment: &Segment) -> bool {
        self.changes_echo(segment) && self.delayed_until < Time::NEVER
    }

    fn changes_echo(&self, segment: &Segment) -> bool {
        let marked = self.agreed.has(Agreed::ECN) && segment.ecn == Ecn::Ce;
        self.agreed.has(Agreed::EACH_CHANGE) && segment.len > 0 && marked == self.echo.is_empty()
    }

    /// An accepted segment with data or a FIN: CWR is processed before the CE mark of the same segment.
    /// Marks on data that has arrived before say nothing new (RFC 3168, section 6.1.5). Accurate feedback
    /// counts by [`count_mark`](Self::count_mark).
    pub(crate) fn note_mark(&mut self, segment: &Segment) {
        if self.agreed.has(Agreed::ACCURATE) {
            return;
        }
        if self.agreed.has(Agreed::EACH_CHANGE) {
            if self.changes_echo(segment) {
                self.echo = match segment.ecn {
                    Ecn::Ce => Flags::ECE,
                    _ => Flags::default(),
                };
                self.ack_now = true;
            }
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.echo = Flags::default();
        }
        let end = segment.seq + u64::from(segment.len);
        if segment.ecn == Ecn::Ce && self.agreed.has(Agreed::ECN) && end > self.next {
            self.echo = Flags::ECE;
        }
    }

    /// An accepted segment: with accurate feedback its mark is counted.
    #[inline]
    pub(crate) fn count_mark(&mut self, segment: &Segment) {
        if self.agreed.has(Agreed::ACCURATE) {
            self.count_mark_of(segment);
        }
    }

    fn count_mark_of(&mut self, segment: &Segment) {
        let waits = segment.len > 0 || self.next > self.acked;
        let rare = self.rare.as_mut();
        let Some(marks) = rare.and_then(|rare| rare.marks.as_deref_mut()) else {
            return;
        };
        self.ack_now |= marks.count(segment, waits);
        self.echo = marks.flags();
    }
}
