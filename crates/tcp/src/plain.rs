//! What an end point sends while nothing unusual goes on: new data, and behind it a FIN. A short way
//! through [`output`](crate::output), as header prediction is one through what arrives.

use aqmlab_net::{Ecn, Time};

use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::profile::{Ect, EctOn};
use crate::recovery::RecoveryState;
use crate::segment::{Flags, Outbox};

impl Endpoint {
    /// Whether all that can go is new data and a FIN, in segments without options or ECN flags.
    #[inline(always)]
    pub(crate) fn sends_plainly(&self, cx: &Context<'_>) -> bool {
        let unusual = self.ecn.cwr_pending | self.ecn.hold;
        !unusual
            && self.receiver.adds_nothing()
            && self.nxt == self.max
            && self.dup_acks == 0
            && self.recovery_state == RecoveryState::Open
            && cx.profile.random_send_delay == Time::ZERO
            && !cx.profile.strict_nagle
    }

    /// What [`send_anything`](Self::send_anything) does where [`sends_plainly`](Self::sends_plainly)
    /// holds: what every segment would check and note is checked and noted once.
    #[inline(always)]
    pub(crate) fn send_plainly(&mut self, idle: bool, cx: &Context<'_>, out: &mut impl Outbox) {
        let mss = cx.profile.mss.0;
        let (edge, first) = (self.end.min(self.send_limit(cx)), self.nxt);
        let mut seq = first;
        loop {
            let len = edge.saturating_sub(seq).min(mss);
            let fin = self.closed && seq + len == self.end;
            if len < mss && !fin && !self.may_send_short(seq, len, idle, cx) {
                break;
            }
            let is_capable = self.ecn.agreed && (len > 0 || cx.profile.ect_on == EctOn::AllPackets);
            let ecn = match cx.profile.ect {
                _ if !is_capable => Ecn::NotEct,
                Ect::Ect0 => Ecn::Ect0,
                Ect::Ect1 => Ecn::Ect1,
            };
            let flags = if fin { Flags::FIN } else { Flags::default() };
            out.send_common(self.receiver.segment(seq, len, flags, ecn));
            let end = seq + len + u64::from(fin);
            self.control.on_send(seq, end, false, cx.now);
            seq = end;
        }
        if seq == first {
            return;
        }
        (self.nxt, self.max) = (seq, seq);
        self.receiver.on_ack_sent();
        if self.timed_at == Time::NEVER {
            (self.timed_seq, self.timed_at) = (first, cx.now);
        }
        if self.retransmit_at == Time::NEVER {
            self.arm(cx);
        }
    }

    /// Whether new data that does not fill a segment may go: `next_segment`, for the rest.
    #[inline(always)]
    fn may_send_short(&self, seq: u64, len: u64, idle: bool, cx: &Context<'_>) -> bool {
        let last = seq + len == self.end.min(self.una + cx.profile.send_buffer.0);
        len > 0 && ((last && (idle || !cx.profile.nagle)) || 2 * len >= self.peer_window(cx))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::segment::{RoundTrip, Segment, SegmentKind};

    /// Hands everything on, and keeps a copy of the segments.
    pub(crate) struct Copying<'a, O> {
        out: &'a mut O,
        pub(crate) sent: Vec<Segment>,
    }

    impl<'a, O> Copying<'a, O> {
        pub(crate) const fn new(out: &'a mut O) -> Self {
            Self {
                out,
                sent: Vec::new(),
            }
        }
    }

    impl<O: Outbox> Outbox for Copying<'_, O> {
        fn send(&mut self, segment: Segment) {
            self.sent.push(segment);
            self.out.send(segment);
        }

        fn on_round_trip(&mut self, sample: &RoundTrip) {
            self.out.on_round_trip(sample);
        }

        fn on_retransmission(&mut self, kind: SegmentKind) {
            self.out.on_retransmission(kind);
        }
    }

    impl Endpoint {
        /// In the tests of this crate whatever goes the short way goes the long one as well: what is
        /// sent and what is left are equal.
        pub(crate) fn send_both_ways(
            &mut self,
            idle: bool,
            cx: &Context<'_>,
            out: &mut impl Outbox,
        ) {
            let (mut other, mut expected) = (self.clone(), Vec::new());
            other.send_anything(idle, cx, &mut expected);
            let mut copying = Copying::new(out);
            self.send_plainly(idle, cx, &mut copying);
            assert_eq!(copying.sent, expected);
            assert_eq!(format!("{self:?}"), format!("{other:?}"));
        }
    }
}
