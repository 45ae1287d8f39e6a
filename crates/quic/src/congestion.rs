//! The window, and when packets may leave (RFC 9002, section 7): a control of TCP's, and a pacer.

use aqmlab_net::Time;
use aqmlab_tcp::{Law, Report, Stamp};

use crate::rtt::Rtt;
use crate::space::Sent;

/// N of RFC 9002, section 7.7.
const AHEAD: f64 = 1.25;

/// kMinimumWindow in datagrams.
const LEAST: u64 = 2;

/// The sender's window.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    pub(crate) law: Law,
    datagram: u64,
    /// That of the control, and not below the least.
    window: u64,
    pub(crate) in_flight: u64,
    /// When the last congestion was found; what was sent until then shows no other.
    pub(crate) recovery_from: Option<Time>,
    /// There was nothing to send though the window had room.
    pub(crate) app_limited: bool,
    /// Bytes that may leave at once, and how many more since when.
    burst: f64,
    /// What has to be there before anything leaves, once there was not enough.
    refill: f64,
    tokens: f64,
    refilled_at: Time,
    /// Bytes per second; none: as the window allows.
    pub(crate) rate: Option<f64>,
    /// In flight, and the window, when the acknowledgement at hand began.
    before: u64,
    reduced: bool,
    /// Nothing that was sent after the last congestion has arrived.
    pub(crate) recovering: bool,
}

impl Congestion {
    pub(crate) fn new(law: Law, datagram: u64, (burst, in_bursts): (u32, bool)) -> Self {
        let burst = u64::from(burst) * datagram;
        let refill = if in_bursts { burst } else { datagram };
        Self {
            window: law.window().max(LEAST * datagram),
            law,
            datagram,
            in_flight: 0,
            recovery_from: None,
            app_limited: true,
            burst: burst as f64,
            refill: refill as f64,
            tokens: burst as f64,
            refilled_at: Time::ZERO,
            rate: None,
            before: 0,
            reduced: false,
            recovering: false,
        }
    }

    const fn least(&self) -> u64 {
        LEAST * self.datagram
    }

    /// The window in bytes.
    #[inline]
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// The control has taken something in.
    #[inline]
    fn renew_window(&mut self) {
        self.window = self.law.window().max(self.least());
    }

    /// Whether the window has room for a full datagram.
    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.in_flight + self.datagram <= self.window
    }

    // ---- pacing ----

    /// When the next datagram may leave; now, or before: at once.
    pub(crate) fn ready_at(&mut self, now: Time) -> Time {
        let Some(rate) = self.rate else {
            return now;
        };
        let since = now.saturating_sub(self.refilled_at).as_secs_f64();
        self.tokens = (self.tokens + since * rate).min(self.burst);
        self.refilled_at = now;
        if self.tokens >= self.datagram as f64 {
            return now;
        }
        let missing = self.refill - self.tokens;
        // Rounded up: then there is enough.
        now + Time::from_nanos((missing / rate * 1e9) as u64 + 1)
    }

    /// A packet leaves that counts as in flight.
    #[inline]
    pub(crate) fn on_send(&mut self, bytes: u64, now: Time) -> Stamp {
        let stamp = self.law.on_send(bytes, self.in_flight, now);
        self.renew_window();
        self.in_flight += bytes;
        self.tokens -= bytes as f64;
        // The time from here on counts, also if the pace is not known.
        if self.rate.is_none() {
            self.refilled_at = now;
        }
        stamp
    }

    fn set_pace(&mut self, rtt: &Rtt) {
        let srtt = rtt.first_at.map(|_| rtt.smoothed);
        let own = self.law.pacing_rate(srtt);
        let rate = own.or_else(|| {
            let srtt = srtt.filter(|it| *it > Time::ZERO)?;
            Some(AHEAD * self.window() as f64 / srtt.as_secs_f64())
        });
        self.rate = rate;
    }

    // ---- what an acknowledgement reports ----

    pub(crate) fn begin(&mut self) {
        self.before = self.in_flight;
        self.reduced = false;
    }

    fn is_in_recovery(&self, sent: Time) -> bool {
        self.recovery_from.is_some_and(|from| sent <= from)
    }

    /// A packet has arrived.
    #[inline]
    pub(crate) fn acknowledge(&mut self, sent: &Sent, now: Time) {
        let bytes = u64::from(sent.bytes);
        self.in_flight -= bytes;
        let opens = !self.is_in_recovery(sent.at);
        if opens {
            self.recovering = false;
        }
        self.law
            .acknowledge(bytes, sent.at, &sent.stamp, opens, now);
    }

    /// A packet that was sent so is thought to be lost.
    pub(crate) fn lose(&mut self, sent: &Sent) {
        let bytes = u64::from(sent.bytes);
        self.in_flight -= bytes;
        self.law.lose(bytes, &sent.stamp);
    }

    /// Congestion that the packet sent at `sent` shows, by its loss or by a mark: once for all that was
    /// out.
    pub(crate) fn on_congestion(&mut self, sent: Time, is_loss: bool, now: Time) {
        if self.is_in_recovery(sent) {
            return;
        }
        self.recovery_from = Some(now);
        self.reduced = true;
        self.recovering = true;
        self.law.reduce(is_loss, self.least(), now);
        self.renew_window();
    }

    /// Persistent congestion (RFC 9002, section 7.6).
    pub(crate) fn collapse(&mut self, now: Time) {
        self.recovery_from = None;
        self.recovering = false;
        self.reduced = true;
        self.law.collapse(self.least(), now);
        self.renew_window();
    }

    /// The acknowledgement is taken in.
    pub(crate) fn finish(&mut self, marks: u64, sample: Option<Time>, rtt: &Rtt, now: Time) {
        self.law.finish(&Report {
            now,
            marks,
            rtt: sample,
            srtt: rtt.first_at.map(|_| rtt.smoothed),
            min_rtt: rtt.least,
            in_flight: (self.before, self.in_flight),
            window_limited: !self.app_limited,
            recovering: self.recovering,
            reduced: self.reduced,
        });
        self.renew_window();
        self.set_pace(rtt);
    }
}
