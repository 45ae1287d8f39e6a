//! The fast path: header prediction (Van Jacobson, 1990). Two kinds of segments are nearly all that an end
//! point sees, the next data, which may end with a FIN, and the acknowledgement of new data. The fast path
//! leaves out what cannot matter for them, and calls the code of the slow path for the rest. New data
//! leaves in bursts whose checks are made once.

use aqmlab_net::{Ecn, Time};

use super::ClassicSender;
use crate::agreed::Agreed;
use crate::context::Context;
use crate::profile::Ect;
use crate::receiver::{Delivered, Receiver};
use crate::segment::{Flags, NO_NUMBER, Outbox, Segment};
use crate::sender::space::Space;

impl ClassicSender {
    /// Takes a segment of an established connection if it is one of the two kinds and nothing
    /// unusual is going on: what the application gets. Else nothing has changed.
    #[inline(always)]
    pub(in crate::sender) fn fast_path(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<Delivered> {
        let eof = segment.flags.has(Flags::FIN);
        if segment.flags.without(Flags::FIN) != Flags::ACK
            || receiver.needs_slow_path()
            || space.ecn.holds()
        {
            return None;
        }
        let received = u64::from(segment.len);
        if (received == 0) & !eof {
            // An ACK of new data, while none is lost.
            if !space.is_plain_ack(segment) || segment.seq > NO_NUMBER {
                return None;
            }
            space.last_received = cx.now;
            self.on_new_ack(space, segment, false, receiver, cx, out);
        } else {
            // The next data, which may be the first to acknowledge what it answers.
            let is_next = receiver.is_next(segment.seq, received, cx.profile);
            if !is_next || segment.ecn == Ecn::Ce {
                return None;
            }
            if segment.ack > space.una {
                if !space.is_plain_ack(segment) {
                    return None;
                }
                space.last_received = cx.now;
                self.on_new_ack_out_of_line(space, segment, false, receiver, cx, out);
            } else if received == 0 || !cx.profile.idle_since_ack {
                space.last_received = cx.now;
            }
            self.dup_acks = 0;
            if eof {
                receiver.on_next_and_fin(received);
            } else {
                receiver.on_next(received, cx);
            }
        }
        self.output(space, receiver, cx, out);
        Some(Delivered { received, eof })
    }

    // ---- sending ----

    /// Whether all that can go is new data and a FIN, in segments without options or ECN flags.
    #[inline(always)]
    pub(super) fn sends_bursts(
        &self,
        space: &Space,
        receiver: &Receiver,
        cx: &Context<'_>,
    ) -> bool {
        let unusual = space.ecn.owes_cwr() | space.ecn.holds();
        !unusual
            && receiver.adds_nothing()
            && space.nxt == space.max
            && self.dup_acks == 0
            && space.is_open()
            && cx.profile.random_send_delay == Time::ZERO
            && !cx.profile.strict_nagle
    }

    /// What [`send_any`](Self::send_any) does where [`sends_bursts`](Self::sends_bursts) holds: what
    /// every segment would check and note is checked and noted once.
    #[inline(always)]
    pub(super) fn send_burst(
        &mut self,
        space: &mut Space,
        idle: bool,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let mss = cx.profile.mss.0;
        let (edge, first) = (space.end.min(self.send_limit(space, cx)), space.nxt);
        let mut seq = first;
        loop {
            let len = edge.saturating_sub(seq).min(mss);
            let fin = space.closed && seq + len == space.end;
            if len < mss && !fin && !space.may_send_short(seq, len, idle, cx) {
                break;
            }
            let is_capable =
                space.agreed.has(Agreed::ECN) && (len > 0 || cx.profile.ect_on.covers_control(false));
            let ecn = match cx.profile.ect {
                _ if !is_capable => Ecn::NotEct,
                Ect::Ect0 => Ecn::Ect0,
                Ect::Ect1 => Ecn::Ect1,
            };
            let flags = if fin { Flags::FIN } else { Flags::default() };
            out.send_common(receiver.segment(seq, len, flags, ecn));
            let end = seq + len + u64::from(fin);
            space.control.on_send(seq, end, false, cx.now);
            seq = end;
        }
        if seq == first {
            return;
        }
        (space.nxt, space.max) = (seq, seq);
        receiver.on_ack_sent();
        if space.timed_at == Time::NEVER {
            space.start_timing(first, cx.now);
        }
        if space.retransmit_at == Time::NEVER {
            space.arm(cx);
        }
    }
}

impl Space {
    /// Whether new data is acknowledged, and none is lost.
    #[inline(always)]
    fn is_plain_ack(&self, segment: &Segment) -> bool {
        self.una < segment.ack && segment.ack <= self.max && self.is_open()
    }

    /// Whether new data that does not fill a segment may go: `next_segment`, for the rest.
    #[inline(always)]
    fn may_send_short(&self, seq: u64, len: u64, idle: bool, cx: &Context<'_>) -> bool {
        let last = seq + len == self.end.min(self.una + cx.profile.send_buffer.0);
        len > 0 && ((last && (idle || !cx.profile.nagle)) || 2 * len >= cx.profile.peer_window())
    }
}
