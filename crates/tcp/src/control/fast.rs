//! FAST TCP. C. Jin, D. X. Wei, S. H. Low, "FAST TCP: Motivation, Architecture, Algorithms, Performance",
//! INFOCOM 2004, equation 6: every update period
//! `w = min(2 w, (1 - gamma) w + gamma (base / RTT * w_old + alpha))`. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, Problem, check, parameters};
use aqmlab_net::Time;

use super::congestion_control::{Ack, CongestionControl, ControlMetrics, ControlParameters};
use super::history::History;
use super::window::Window;

/// Parameters of FAST.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Target number of segments in the queue. The paper uses 8 to 200, more for faster paths.
    #[param(default = 100.0, above = 0.0)]
    pub alpha: f64,
    /// While `alpha` to `beta` segments are in the queue, the window does not change.
    #[param(default = 100.0, above = 0.0)]
    pub beta: f64,
    /// Share of the distance from the present to the target window that one update covers.
    #[param(default = 0.5, above = 0.0, below = 1.0)]
    pub gamma: f64,
    /// Time between two updates.
    #[param(default = "20 ms", above = Time::ZERO)]
    pub period: Time,
    /// Below this queueing delay the window doubles every round trip.
    #[param(default = "750 us")]
    pub empty_below: Time,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "FAST TCP",
        paper: "C. Jin, D. X. Wei, S. H. Low, FAST TCP: Motivation, Architecture, Algorithms, \
                Performance, INFOCOM 2004, equation 6",
        purpose: "Sets the window so that a given number of its segments stays in the queue. It \
                  fills fast paths without losses.",
        departures: &[
            "w_old is the window one round trip ago. The paper does not define it.",
            "An increase of more than one segment is spread over the following ACKs.",
            "A duplicate ACK retransmits a segment older than two round trips, as in ns-2.",
            "Congestion halves the window.",
        ],
        memory: "the send time of each segment in flight",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::not_below(("alpha", self.alpha), ("beta", self.beta))
    }
}

impl ControlParameters for Params {
    type Control = Fast;
}

/// The state of FAST.
#[derive(Clone, Debug)]
pub(crate) struct Fast {
    history: History,
    /// The smallest round trip seen, and the average one, in seconds.
    base: f64,
    rtt: f64,
    /// Bytes of window one round ago, and now: rotated when a round ends.
    old: f64,
    current: f64,
    round_end: u64,
    updated_at: Time,
    /// Bytes of an increase that the next ACKs will add.
    owed: f64,
}

impl Default for Fast {
    fn default() -> Self {
        Self {
            history: History::default(),
            base: f64::INFINITY,
            rtt: 0.0,
            old: 0.0,
            current: 0.0,
            round_end: 0,
            updated_at: Time::ZERO,
            owed: 0.0,
        }
    }
}

impl Fast {
    /// Takes the round trip that an ACK shows; without a window (in recovery) only the smallest.
    fn measure(&mut self, cwnd: Option<f64>, ack: &Ack<'_>) {
        let Some(sent) = self.history.acknowledge(ack.una) else {
            return;
        };
        if sent.resent {
            return;
        }
        let rtt = (ack.now - sent.at).as_secs_f64();
        self.base = self.base.min(rtt);
        let segments = cwnd.map_or(f64::INFINITY, |cwnd| cwnd / ack.profile.mss.0 as f64);
        let gain = (3.0 / segments).min(0.25);
        self.rtt = if self.rtt == 0.0 {
            rtt
        } else {
            self.rtt + gain * (rtt - self.rtt)
        };
    }

    /// Equation 6, in bytes; none while the queue holds what it should.
    fn target(&self, params: &Params, window: &Window, ack: &Ack<'_>) -> Option<f64> {
        let mss = ack.profile.mss.0 as f64;
        let queued = window.cwnd / mss * (self.rtt - self.base) / self.rtt;
        if params.alpha <= queued && queued < params.beta {
            return None;
        }
        let wanted = self.base / self.rtt * self.old + params.alpha * mss;
        let moved = (1.0 - params.gamma) * window.cwnd + params.gamma * wanted;
        Some(moved.min(2.0 * window.cwnd).max(2.0 * mss))
    }
}

impl CongestionControl for Fast {
    type Params = Params;

    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        self.history.on_send(seq, end, resent, now);
    }

    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        self.measure(Some(window.cwnd), ack);
        if ack.una >= self.round_end {
            self.round_end = ack.max;
            self.old = if self.current == 0.0 {
                window.cwnd
            } else {
                self.current
            };
            self.current = window.cwnd;
        }
        let mss = ack.profile.mss.0 as f64;
        if self.rtt - self.base < params.empty_below.as_secs_f64() {
            self.owed = 0.0;
            window.cwnd += mss;
            return;
        }
        if self.base.is_finite() && ack.now >= self.updated_at + params.period {
            self.updated_at = ack.now;
            if let Some(target) = self.target(params, window, ack) {
                window.cwnd = window.cwnd.min(target);
                self.owed = target - window.cwnd;
            }
        }
        let step = self.owed.min(mss);
        self.owed -= step;
        window.cwnd += step;
    }

    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        self.measure(None, ack);
        self.owed = 0.0;
    }

    fn is_overdue(&mut self, una: u64, now: Time, new_ack: bool) -> bool {
        !new_ack && self.history.is_overdue(una, now, 2.0 * self.rtt)
    }

    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: (self.rtt > self.base)
                .then(|| Time::from_secs_f64(self.rtt - self.base)),
            segments: None,
        }
    }
}
