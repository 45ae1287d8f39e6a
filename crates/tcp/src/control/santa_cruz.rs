//! TCP Santa Cruz. C. Parsa, J. J. Garcia-Luna-Aceves, "Improving TCP Congestion Control over Internets
//! with Heterogeneous Transmission Media", ICNP 1999. The receiver's clock, which is in every ACK, shows
//! how the spacing of segments changed on the way forward alone. The sum of these changes over a
//! window, divided by the mean time between arrivals, is the number of segments by which the queue
//! at the bottleneck grew. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::{About, Parameters, Problem, check, parameters};
use aqmlab_net::Time;

use super::congestion_control::{Ack, CongestionControl, ControlMetrics, ControlParameters};
use super::history::History;
use super::window::Window;
use crate::segment::{Stamps, Timestamps};

/// The operating point of TCP Santa Cruz.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Target number of segments in the queue of the bottleneck.
    #[param(default = 4.0, above = 0.0)]
    pub target: f64,
    /// The window does not change while the queue is this close to `target`, in segments.
    #[param(default = 0.5)]
    pub tolerance: f64,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "TCP Santa Cruz",
        paper: "C. Parsa, J. J. Garcia-Luna-Aceves, Improving TCP Congestion Control over Internets with \
                Heterogeneous Transmission Media, ICNP 1999",
        purpose: "Holds a number of segments in the bottleneck's queue, counted from the spacing \
                  of arrivals in the forward direction. Both ends take part.",
        departures: &[
            "The SACK recovery of the stack takes the place of the paper's ACK window.",
            "Every segment measures the round trip, including retransmissions.",
            "Congestion halves the window.",
        ],
        memory: "the send time of each segment in flight",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::between("tolerance", self.tolerance, 0.0, self.target)
    }
}

impl ControlParameters for Params {
    type Control = SantaCruz;

    const STAMPS: Option<Stamps> = Some(Stamps::Microseconds);
}

/// The state of TCP Santa Cruz.
#[derive(Clone, Debug, Default)]
pub(crate) struct SantaCruz {
    history: History,
    /// Smoothed round trip in seconds; 0: none yet.
    srtt: f64,
    /// Sending and arrival time of the segment before, in microseconds.
    last: Option<(u32, u32)>,
    /// Sum of the relative delays of this window of ACKs, in microseconds.
    delays: i64,
    /// Sum of the times between arrivals, and their number.
    spacing: i64,
    arrivals: i64,
    /// The largest single relative delay of this window, in microseconds.
    largest: i64,
    /// Segments in the queue.
    backlog: f64,
    /// The window of ACKs ends when this is acknowledged.
    round_end: u64,
    /// Segments that the window grows by per round trip.
    step: f64,
}

impl SantaCruz {
    fn measure(&mut self, una: u64, now: Time) {
        if let Some(sent) = self.history.acknowledge(una) {
            let rtt = (now - sent.at).as_secs_f64();
            self.srtt = if self.srtt == 0.0 {
                rtt
            } else {
                self.srtt + (rtt - self.srtt) / 8.0
            };
        }
    }

    /// The mean time between arrivals in this window of ACKs, in microseconds.
    fn mean_spacing(&self) -> Option<f64> {
        (self.spacing > 0).then(|| self.spacing as f64 / self.arrivals as f64)
    }

    fn end_round(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        let mss = ack.profile.mss.0 as f64;
        if let Some(spacing) = self.mean_spacing() {
            self.backlog = (self.backlog + self.delays as f64 / spacing).max(0.0);
        }
        self.step = 0.0;
        if !window.in_slow_start(ack.profile) {
            if self.backlog < params.target - params.tolerance {
                self.step = 1.0;
            } else if self.backlog > params.target + params.tolerance {
                window.cwnd = (window.cwnd - mss).max(2.0 * mss);
            }
        }
        self.round_end = ack.max;
        (self.delays, self.spacing, self.arrivals, self.largest) = (0, 0, 0, 0);
    }

    /// Slow start ends when half of the target stands in the queue.
    fn queue_builds(&self, target: f64) -> bool {
        let burst = self.mean_spacing().map_or(0.0, |r| self.largest as f64 / r);
        self.backlog.max(burst) > target / 2.0
    }
}

impl CongestionControl for SantaCruz {
    type Params = Params;

    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        self.history.on_send(seq, end, resent, now);
    }

    fn on_timestamps(&mut self, stamps: &Timestamps, of_data: bool) {
        let (sent, arrived) = (stamps.echo, stamps.value);
        if let Some((last_sent, last_arrived)) = self.last {
            let between_sends = i64::from(sent.wrapping_sub(last_sent) as i32);
            let between_arrivals = i64::from(arrived.wrapping_sub(last_arrived) as i32);
            if between_sends < 0 || between_arrivals <= 0 {
                return; // Reordered, or the echo of a segment reported earlier.
            }
            if of_data {
                let delay = between_arrivals - between_sends;
                self.delays += delay;
                self.largest = self.largest.max(delay);
                self.spacing += between_arrivals;
                self.arrivals += 1;
            }
        }
        self.last = Some((sent, arrived));
    }

    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        self.measure(ack.una, ack.now);
        if window.in_slow_start(ack.profile) && self.queue_builds(params.target) {
            window.ssthresh = window.cwnd;
        }
        if ack.una >= self.round_end {
            self.end_round(params, window, ack);
        }
        if window.in_slow_start(ack.profile) {
            window.slow_start(ack.acked, ack.profile);
        } else {
            let mss = ack.profile.mss.0 as f64;
            window.cwnd += self.step * mss * mss / window.cwnd;
        }
    }

    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        self.measure(ack.una, ack.now);
    }

    /// A hole goes again on the first duplicate once it is older than a round trip.
    fn is_overdue(&mut self, una: u64, now: Time, new_ack: bool) -> bool {
        !new_ack && self.history.is_overdue(una, now, self.srtt)
    }

    fn metrics(&self) -> ControlMetrics {
        ControlMetrics {
            queueing_delay: None,
            segments: Some(self.backlog),
        }
    }
}
