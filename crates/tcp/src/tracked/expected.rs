//! Header prediction (see [`predicted`](crate::predicted)) for such a sender: the next data, and the
//! acknowledgement of new data while nothing is lost, in doubt, or probed.

use aqmlab_net::{Ecn, Time};

use super::Tracked;
use crate::context::Context;
use crate::control::Marks;
use crate::endpoint::Endpoint;
use crate::receiver::Delivered;
use crate::recovery::RecoveryState;
use crate::segment::{Flags, NO_NUMBER, Outbox, Segment};
use crate::tracked::ack::Before;

impl Tracked {
    /// Whether an ACK without options or flags tells of nothing but what has arrived in order.
    #[inline]
    fn is_calm(&self, una: u64, undoes: bool) -> bool {
        self.flight.is_in_order(una)
            && self.probe.end.is_none()
            && !(undoes && self.undo.marker.is_some() && self.undo.is_shown_by_duplicates())
    }
}

impl Endpoint {
    /// Takes a segment without options whose only flags are ACK and perhaps FIN, and with accurate ECN
    /// those of the counter, if nothing unusual is going on: what that told the application. Else nothing
    /// has changed.
    #[inline(never)]
    pub(crate) fn on_expected(
        &mut self,
        segment: &Segment,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<Delivered> {
        let eof = segment.flags.has(Flags::FIN);
        let received = u64::from(segment.len);
        let carries = (segment.len > 0) | eof;
        let advances = segment.ack > self.una;
        let accurate = self.ecn.accurate;
        let is_plain = (self.keeps_records & self.sacking & !self.receiver.reads_headers())
            && self.recovery_state == RecoveryState::Open
            && (self.una..=self.max).contains(&segment.ack)
            && segment.seq <= NO_NUMBER;
        // With accurate ECN the counter of what acknowledges nothing tells nothing.
        if !(is_plain & (advances | carries)) || (accurate && advances) {
            return None;
        }
        if carries {
            let is_next = self.receiver.is_next(segment.seq, received, cx.profile);
            if !is_next || (segment.ecn == Ecn::Ce && !accurate) {
                return None;
            }
        }
        let cold = self.cold.as_ref();
        let tracked = cold.and_then(|cold| cold.tracked.as_ref())?;
        if !tracked.is_calm(self.una, cx.profile.undo) {
            return None;
        }
        if received == 0 || advances || !cx.profile.idle_since_ack {
            self.last_received = cx.now;
        }
        self.take_expected_ack(segment, advances, cx, out);
        self.receiver.count_mark(segment);
        if eof {
            self.receiver.on_next_and_fin(received);
        } else if carries {
            self.receiver.on_next(received, cx);
        }
        self.output(cx, out);
        Some(Delivered { received, eof })
    }

    /// [`on_tracked_ack`](Self::on_tracked_ack) without what cannot be.
    #[inline(always)]
    fn take_expected_ack(
        &mut self,
        segment: &Segment,
        advances: bool,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let (una, max, recover) = (self.una, self.max, self.recover);
        let before = Before {
            una,
            pipe: max - una,
            window_limited: self.uses_window(max - una, cx),
            state: RecoveryState::Open,
        };
        let tracked = self.tracked();
        let (flight, rack) = (&mut tracked.flight, &mut tracked.rack);
        flight.begin();
        rack.echoed = None;
        if advances {
            flight.acknowledge(segment.ack, recover, cx.now, rack);
        }
        rack.on_ack(segment.ack, max, false);
        tracked.reo_at = Time::NEVER;
        if advances {
            self.measure_arrivals(segment, cx, out);
            self.una = segment.ack;
            self.nxt = self.nxt.max(segment.ack);
        }
        let marks = Marks::default();
        let is_idle = una == max && self.nxt >= self.end && self.hold_until == Time::NEVER;
        if !advances && is_idle && !self.control.heeds_silence(cx.profile, cx.now) {
            return; // Pace and timers are as they were, too.
        }
        self.tell_control(&before, marks, cx);
        self.move_window(&before, advances, marks, cx);
        self.set_pace(cx);
        self.restart_timers(advances, cx);
    }
}
