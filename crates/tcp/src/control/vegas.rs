//! TCP Vegas. L. S. Brakmo, S. W. O'Malley, L. L. Peterson, "TCP Vegas: New Techniques for Congestion
//! Detection and Avoidance", SIGCOMM 1994. Once per round trip the throughput that the window would
//! reach on an empty path (window / base) is compared with the actual one; the difference, in
//! segments, is what the connection keeps in the queue. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, Problem, check, parameters};
use aqmlab_net::Time;

use super::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlMetrics, ControlParameters, Decrease,
};
use super::history::History;
use super::window::Window;

/// Thresholds of Vegas, in segments in the queue.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// With fewer segments in the queue, the window grows by one segment per round trip.
    #[param(default = 1.0, above = 0.0)]
    pub alpha: f64,
    /// With more segments in the queue, the window shrinks by one segment per round trip.
    #[param(default = 3.0, above = 0.0)]
    pub beta: f64,
    /// Number of segments in the queue at which slow start ends.
    #[param(default = 1.0, above = 0.0)]
    pub gamma: f64,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "TCP Vegas",
        paper: "L. S. Brakmo, S. W. O'Malley, L. L. Peterson, TCP Vegas: New Techniques for Congestion \
                Detection and Avoidance, SIGCOMM 1994",
        purpose: "Keeps a few segments in the queue. Vegas computes their number once per round \
                  trip from the throughput.",
        departures: &[
            "Where the paper is silent, Vegas follows ns-2.",
            "A time-out acts as in Reno.",
        ],
        memory: "the send time of each segment in flight",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::not_below(("alpha", self.alpha), ("beta", self.beta))
    }
}

impl ControlParameters for Params {
    type Control = Vegas;

    const LINUX: Option<&'static str> = Some("vegas");
}

/// New ACKs after a retransmission that look once more whether a segment is overdue.
const RECHECKS: u8 = 2;

/// The state of Vegas.
#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    history: History,
    /// The smallest round trip seen, in seconds.
    base: f64,
    /// Smoothed round trip and its deviation, in seconds; 0: none yet.
    srtt: f64,
    deviation: f64,
    /// The round ends when this is acknowledged.
    round_end: u64,
    round_start: Time,
    /// Bytes sent for the first time in this round, so far.
    sent: u64,
    /// Segments in the queue, as seen at the end of the last round.
    backlog: f64,
    /// Segments that the window grows by in this round.
    step: f64,
    /// In slow start the window grows in every second round only.
    doubles: bool,
    rechecks: u8,
    last_cut: Time,
}

impl Default for Vegas {
    fn default() -> Self {
        Self {
            history: History::default(),
            base: f64::INFINITY,
            srtt: 0.0,
            deviation: 0.0,
            round_end: 0,
            round_start: Time::ZERO,
            sent: 0,
            backlog: 0.0,
            step: 0.0,
            doubles: true,
            rechecks: 0,
            last_cut: Time::ZERO,
        }
    }
}

impl Vegas {
    /// Takes what an ACK says about the round trip.
    fn measure(&mut self, una: u64, now: Time) {
        let Some(sent) = self.history.acknowledge(una) else {
            return;
        };
        if sent.resent {
            return;
        }
        let rtt = (now - sent.at).as_secs_f64();
        // A segment alone on the path has seen no queue of ours.
        self.base = if self.history.len() == 0 {
            rtt
        } else {
            self.base.min(rtt)
        };
        if self.srtt == 0.0 {
            (self.srtt, self.deviation) = (rtt, rtt / 2.0);
        } else {
            let error = rtt - self.srtt;
            self.srtt += error / 8.0;
            self.deviation += (error.abs() - self.deviation) / 4.0;
        }
    }

    fn begin_round(&mut self, max: u64, now: Time) {
        self.round_end = max;
        self.round_start = now;
        self.sent = 0;
    }

    /// The decision at the end of a round.
    fn end_round(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        let profile = ack.profile;
        let mss = profile.mss.0 as f64;
        let took = (ack.now - self.round_start).as_secs_f64();
        let slow_start = window.in_slow_start(profile);
        self.step = 0.0;
        if self.base.is_finite() && took > 0.0 {
            let expected = window.cwnd / self.base;
            let actual = self.sent as f64 / took;
            self.backlog = (expected - actual) * self.base / mss;
            if slow_start && self.backlog > params.gamma {
                window.ssthresh = 2.0 * mss;
                window.cwnd = (window.cwnd * 7.0 / 8.0).max(2.0 * mss);
            } else if !slow_start && self.backlog > params.beta {
                window.cwnd = (window.cwnd - mss).max(2.0 * mss);
            } else if !slow_start && self.backlog < params.alpha {
                self.step = 1.0;
            }
        }
        self.doubles = !self.doubles;
        self.begin_round(ack.max, ack.now);
    }
}

impl CongestionControl for Vegas {
    type Params = Params;

    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        if resent {
            self.rechecks = RECHECKS;
        } else {
            if self.round_end == 0 {
                self.begin_round(end, now);
            }
            self.sent += end - seq;
        }
        self.history.on_send(seq, end, resent, now);
    }

    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        self.measure(ack.una, ack.now);
        if ack.una >= self.round_end {
            self.end_round(params, window, ack);
        }
        if window.in_slow_start(ack.profile) {
            if self.doubles {
                window.slow_start(ack.acked, ack.profile);
            }
        } else {
            let mss = ack.profile.mss.0 as f64;
            window.cwnd += self.step * mss * mss / window.cwnd;
        }
    }

    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        self.measure(ack.una, ack.now);
        if ack.una >= self.round_end {
            // What was sent in a repair says nothing about the path.
            self.begin_round(ack.max, ack.now);
        }
    }

    fn is_overdue(&mut self, una: u64, now: Time, new_ack: bool) -> bool {
        if new_ack {
            if self.rechecks == 0 {
                return false;
            }
            self.rechecks -= 1;
        }
        let limit = (self.srtt + 2.0 * self.deviation) * 17.0 / 16.0;
        self.history.is_overdue(una, now, limit)
    }

    fn on_congestion(
        &mut self,
        _: &Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        if congestion.cause == Cause::Timeout {
            return Decrease::HALF;
        }
        let oldest = self.history.oldest();
        if oldest.is_some_and(|oldest| oldest.at < self.last_cut) {
            return Decrease::Bytes(window.cwnd); // Sent before the last cut: that was the answer to it.
        }
        self.last_cut = congestion.now;
        let left = match oldest {
            Some(oldest) if oldest.resent => 0.5,
            _ => 0.75,
        };
        Decrease::Bytes(left * window.cwnd)
    }

    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: (self.srtt > self.base)
                .then(|| Time::from_secs_f64(self.srtt - self.base)),
            segments: Some(self.backlog),
        }
    }
}
