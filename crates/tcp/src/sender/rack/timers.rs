//! The three timers, of which the next one runs: retransmission, RACK's reordering, tail loss probe.

use aqmlab_net::Time;

use super::RackSender;
use super::rules;
use crate::context::Context;
use crate::receiver::Receiver;
use crate::segment::Outbox;
use crate::sender::space::Space;

impl RackSender {
    /// When the timers of retransmission, of reordering and of the probe expire.
    pub(in crate::sender) fn timers(&self) -> [Time; 3] {
        [self.rto_at, self.reo_at, self.pto_at]
    }

    pub(super) fn restart_rto(&mut self, space: &mut Space, cx: &Context<'_>) {
        self.rto_at = space.deadline(cx);
    }

    pub(super) fn restart_timers(&mut self, space: &mut Space, advances: bool, cx: &Context<'_>) {
        let by_rack = self.reo_at < Time::NEVER && rules::applies(cx);
        if (advances || self.overtakes_repair(cx)) && !by_rack {
            self.restart_rto(space, cx);
            self.schedule_probe(space, false, cx);
        }
        if by_rack {
            self.rto_at = self.rto_at.max(self.reo_at); // One timer runs.
        }
        let is_open = space.is_open();
        if !is_open || self.reo_at < Time::NEVER {
            self.pto_at = Time::NEVER; // What is known to be late is not probed.
        }
        self.set_timer(space, cx);
    }

    /// The next of the timers is the one that runs.
    pub(super) fn set_timer(&mut self, space: &mut Space, cx: &Context<'_>) {
        let outstanding = space.una < space.max;
        if outstanding && self.rto_at == Time::NEVER {
            self.restart_rto(space, cx);
        }
        if !outstanding {
            (self.rto_at, self.reo_at) = (Time::NEVER, Time::NEVER);
            self.pto_at = Time::NEVER;
        }
        let next = self.rto_at.min(self.reo_at).min(self.pto_at);
        space.retransmit_at = next;
        if space.ecn.holds() && next == Time::NEVER {
            space.arm(cx);
        }
    }

    /// One of the timers has expired; false: that of retransmissions, once too often for the same data.
    #[inline(never)]
    pub(in crate::sender) fn on_timer(
        &mut self,
        space: &mut Space,
        receiver: &mut Receiver,
        cx: &Context<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        space.ecn.release();
        let before = self.pipe(space, cx);
        if self.reo_at <= cx.now {
            if rules::applies(cx) {
                self.repair_overdue(space, cx);
                self.count_from_oldest(space, cx);
            } else {
                self.log.begin();
                self.find_losses(space, false, cx);
            }
            if !rules::applies(cx) && space.is_open() && self.log.holes() > 0 {
                self.enter_recovery(space, before, cx);
                self.reduce(space, false, cx);
            }
        } else if self.pto_at <= cx.now {
            self.send_probe(space, receiver, cx, out);
        } else if self.rto_at <= cx.now {
            return self.on_timeout(space, cx);
        }
        self.set_timer(space, cx);
        true
    }

    fn on_timeout(&mut self, space: &mut Space, cx: &Context<'_>) -> bool {
        if !space.on_expiry(cx) {
            return false;
        }
        self.counts.retransmissions.timeouts += 1;
        space.arm(cx);
        self.lose_by_timeout(space, cx);
        true
    }
}
