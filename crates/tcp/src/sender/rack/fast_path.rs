//! The fast path: the next data, and the acknowledgement of new data while nothing is lost, in doubt, or
//! probed.

use aqmlab_net::{Ecn, Time};

use super::RackSender;
use super::ack::Before;
use super::rules;
use crate::accecn;
use crate::agreed::Agreed;
use crate::context::Context;
use crate::control::Marks;
use crate::receiver::{Delivered, Receiver};
use crate::recovery::RecoveryState;
use crate::segment::{Flags, NO_NUMBER, Outbox, Segment};
use crate::sender::space::Space;

impl RackSender {
    /// Whether an ACK without options or flags can only report what has arrived in order.
    #[inline]
    fn is_calm(&self, space: &Space, undoes: bool) -> bool {
        self.log.is_in_order(space.una, &self.rack)
            && self.probe.end.is_none()
            && !(undoes && self.undo.marker.is_some() && self.undo.is_shown_by_duplicates())
    }

    /// Takes a segment of an established connection without options whose only flags are ACK and perhaps
    /// FIN, and with accurate ECN those of the counter, if nothing unusual is going on: what the
    /// application gets. Else nothing has changed.
    #[inline(never)]
    pub(in crate::sender) fn fast_path(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<Delivered> {
        let eof = segment.flags.has(Flags::FIN);
        let flags = segment.flags.without(Flags::FIN);
        let received = u64::from(segment.len);
        let carries = (segment.len > 0) | eof;
        let advances = segment.ack > space.una;
        let accurate = space.agreed.has(Agreed::ACCURATE);
        let is_plain = (flags == Flags::ACK || (accurate && accecn::is_ack_with_counter(flags)))
            && !space.ecn.holds()
            && (space.sacks() & !receiver.needs_slow_path())
            && space.is_open()
            && (space.una..=space.max).contains(&segment.ack)
            && segment.seq <= NO_NUMBER;
        // With accurate ECN the counter of a segment that acknowledges nothing reports nothing.
        if !(is_plain & (advances | carries)) || (accurate && advances) {
            return None;
        }
        if carries {
            let is_next = receiver.is_next(segment.seq, received, cx.profile);
            if !is_next || (segment.ecn == Ecn::Ce && !accurate) {
                return None;
            }
        }
        if !self.is_calm(space, cx.profile.undo) {
            return None;
        }
        if received == 0 || advances || !cx.profile.idle_since_ack {
            space.last_received = cx.now;
        }
        self.on_calm_ack(space, segment, advances, cx, out);
        receiver.count_mark(segment);
        if eof {
            receiver.on_next_and_fin(received);
        } else if carries {
            receiver.on_next(received, cx);
        }
        self.output(space, receiver, cx, out);
        Some(Delivered { received, eof })
    }

    /// [`on_ack`](Self::on_ack) without what cannot be.
    #[inline(always)]
    fn on_calm_ack(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        advances: bool,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) {
        let (una, max, recover) = (space.una, space.max, space.recover);
        let pipe = self.pipe(space, cx);
        let before = Before {
            una,
            pipe,
            window_limited: space.uses_window(cx),
            state: RecoveryState::Open,
            undone: false,
        };
        self.log.begin();
        self.rack.begin(None, cx.profile.rack_rules);
        if advances {
            self.log
                .acknowledge(segment.ack, recover, cx.now, &mut self.rack);
        }
        self.rack.on_ack(segment.ack, max, false, advances);
        self.reo_at = Time::NEVER;
        if advances {
            self.measure_arrivals(space, segment, cx, out);
            space.una = segment.ack;
            space.nxt = space.nxt.max(segment.ack);
        }
        let linux = rules::applies(cx);
        if linux {
            self.arrived = self.log.news.segments;
            self.log.recount(self.arrived * cx.profile.mss.0, cx.now);
        }
        let marks = Marks::default();
        let is_idle = una == max && space.nxt >= space.end && space.hold_until == Time::NEVER;
        if !advances && is_idle && !space.control.samples_when_idle(cx.profile, cx.now) {
            return; // Pace and timers are as they were, too.
        }
        if linux {
            self.end_reduction(space, cx);
            self.sample_control(space, &before, marks, cx);
            self.move_as_linux(space, advances, cx);
        } else {
            self.sample_control(space, &before, marks, cx);
            self.move_window(space, &before, advances, marks, cx);
        }
        self.set_pace(space, cx);
        self.restart_timers(space, advances, cx);
    }
}
