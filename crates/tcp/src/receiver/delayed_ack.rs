//! When an acknowledgement goes out: RFC 5681, section 4.2; RFC 1122, section 4.2.3.2.

use aqmlab_net::Time;

use super::Receiver;
use crate::context::Context;
use crate::profile::DelayedAck;
use crate::rto::nth_tick_after;

impl Receiver {
    /// When a delayed ACK falls due.
    #[inline]
    pub(crate) fn wake_at(&self) -> Time {
        self.delayed_until
    }

    /// A delayed ACK that is due goes out with the next output.
    pub(crate) fn on_timer(&mut self, now: Time) {
        if self.delayed_until <= now {
            self.ack_now = true;
            self.delayed_until = Time::NEVER;
        }
    }

    /// Nothing is acknowledged any more.
    pub(crate) fn stop(&mut self) {
        self.delayed_until = Time::NEVER;
    }

    /// Whether an ACK must go out with the next output.
    #[inline]
    pub(crate) fn wants_ack(&self) -> bool {
        self.ack_now
    }

    /// The next output acknowledges, whatever there is to send.
    pub(crate) fn ack_at_once(&mut self) {
        self.ack_now = true;
    }

    /// In-order data: every second full segment is acknowledged at once, a lone one waits. The
    /// second rule is BSD's window update: half of the buffer has been read.
    #[inline]
    pub(super) fn delay_ack(&mut self, cx: &Context<'_>) {
        let profile = cx.profile;
        let unacked = self.next - self.acked;
        if unacked >= u64::from(profile.ack_every) * profile.mss.0
            || 2 * unacked >= profile.receive_buffer.0
        {
            self.ack_now = true;
        } else if self.quick_acks < profile.quick_acks {
            self.quick_acks += 1;
            self.ack_now = true;
        } else if self.delayed_until == Time::NEVER {
            match profile.delayed_ack {
                DelayedAck::Off => self.ack_now = true,
                DelayedAck::Grid { period } => {
                    self.delayed_until = nth_tick_after(1, cx.now, cx.host.fast, period);
                }
                DelayedAck::Timer { delay } => self.delayed_until = cx.now + delay,
            }
        }
    }
}
