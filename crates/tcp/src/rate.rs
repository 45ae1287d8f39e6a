//! What a connection has delivered and lost, and samples of its delivery rate: draft-ietf-ccwg-bbr,
//! section 4.1, which took in draft-cheng-iccrg-delivery-rate-estimation.

use aqmlab_net::Time;

/// What a packet remembers of the connection when it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Then {
    /// Bytes delivered, and when the last of them was.
    delivered: u64,
    delivered_at: Time,
    /// When the packet was sent whose arrival was known last.
    first_sent: Time,
    /// Bytes in flight, its own included.
    in_flight: u64,
    /// Bytes lost.
    lost: u64,
    /// The application had less to send than the window allowed.
    app_limited: bool,
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// Bytes delivered, and in which time: the longer of those of sending and of acknowledging.
    pub(crate) delivered: u64,
    pub(crate) interval: Time,
    /// Bytes delivered when the packet was sent that the sample is of.
    pub(crate) prior_delivered: u64,
    /// Bytes in flight when it was sent, its own included.
    pub(crate) in_flight: u64,
    /// Bytes lost since it was sent.
    pub(crate) lost: u64,
    /// The application was the limit.
    pub(crate) app_limited: bool,
}

impl Rate {
    /// Bytes per second.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

/// A packet that has been found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) len: u64,
    /// Bytes in flight when it was sent, its own included.
    pub(crate) in_flight: u64,
    /// Bytes lost since it was sent, its own included.
    pub(crate) lost: u64,
    /// The application was the limit when it was sent.
    pub(crate) app_limited: bool,
}

/// What a connection has delivered and lost since it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    /// Bytes delivered, and lost.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Samples are limited by the application until this much is delivered; 0: they are not.
    app_limited_until: u64,
}

impl Delivery {
    /// When the packet was sent whose arrival is known last.
    pub(crate) fn last_sent(&self) -> Time {
        self.first_sent
    }

    /// A packet of `len` bytes is sent, with `in_flight` bytes on their way before it.
    #[inline]
    pub(crate) fn on_send(&mut self, in_flight: u64, len: u64, now: Time) -> Then {
        if in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Then {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            in_flight: in_flight + len,
            lost: self.lost,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// So many bytes have arrived.
    #[inline]
    pub(crate) fn on_arrival(&mut self, bytes: u64, now: Time) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    /// A packet of `len` bytes is lost.
    pub(crate) fn on_loss(&mut self, len: u64, then: &Then) -> Loss {
        self.lost += len;
        Loss {
            len,
            in_flight: then.in_flight,
            lost: self.lost - then.lost,
            app_limited: then.app_limited,
        }
    }

    /// The application has nothing to send though the window would allow it, with `in_flight` bytes on
    /// their way.
    #[inline]
    pub(crate) fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// An acknowledgement is taken in: the sample of the delivery rate, if there is one. `newest`: of the
    /// packets that have arrived the one sent last. Shorter than `min_rtt` an interval shows compressed
    /// ACKs, not a rate.
    pub(crate) fn sample(
        &mut self,
        newest: Option<(Time, Then)>,
        min_rtt: Option<Time>,
    ) -> Option<Rate> {
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let (sent, then) = newest?;
        self.first_sent = sent;
        let sending = sent.saturating_sub(then.first_sent);
        let acknowledging = self.delivered_at.saturating_sub(then.delivered_at);
        let interval = sending.max(acknowledging);
        let is_valid = interval > Time::ZERO && min_rtt.is_none_or(|least| interval >= least);
        is_valid.then_some(Rate {
            delivered: self.delivered - then.delivered,
            interval,
            prior_delivered: then.delivered,
            in_flight: then.in_flight,
            lost: self.lost - then.lost,
            app_limited: then.app_limited,
        })
    }
}
