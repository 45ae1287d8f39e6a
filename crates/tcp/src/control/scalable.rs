//! Scalable TCP. T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM
//! SIGCOMM Computer Communication Review 33(2), 2003: a window that grows by a share of itself recovers
//! from a loss in the same number of round trips, however large it is.

use aqmlab_declare::{About, Parameters, parameters};

use super::congestion_control::{Ack, Congestion, CongestionControl, ControlParameters, Decrease};
use super::window::Window;

/// Parameters of Scalable TCP.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Segments added to the window for each acknowledged segment (a in the paper).
    #[param(default = 0.01, above = 0.0)]
    pub increase: f64,
    /// Factor on the window at congestion (1 - b in the paper).
    #[param(default = 0.875, above = 0.0, below = 1.0)]
    pub decrease: f64,
    /// Up to this window, in segments, the control behaves like Reno.
    #[param(default = 16)]
    pub low_window: u32,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Scalable TCP",
        paper: "T. Kelly, Scalable TCP: Improving Performance in Highspeed Wide Area Networks, CCR \
                33(2), 2003",
        purpose: "Adds 1 % of the acknowledged data to the window and loses one eighth at \
                  congestion.",
        departures: &[
            "Growth counts acknowledged bytes, so delayed ACKs do not halve it. The paper adds \
             `increase` once per ACK.",
        ],
        memory: "nothing",
    };
}

impl ControlParameters for Params {
    type Control = Scalable;

    const LINUX: Option<&'static str> = Some("scalable");
}

/// Scalable TCP remembers nothing but the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scalable;

impl Params {
    fn is_low(&self, window: &Window, mss: u64) -> bool {
        window.cwnd <= f64::from(self.low_window) * mss as f64
    }
}

impl CongestionControl for Scalable {
    type Params = Params;

    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        let profile = ack.profile;
        if window.in_slow_start(profile) || params.is_low(window, profile.mss.0) {
            window.grow_as_reno(1.0, ack);
        } else {
            window.cwnd += params.increase * ack.acked as f64;
        }
    }

    fn on_congestion(
        &mut self,
        params: &Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        if params.is_low(window, congestion.profile.mss.0) {
            Decrease::HALF
        } else {
            Decrease::Share(params.decrease)
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Time;

    use super::*;
    use crate::control::tests::{Feed, segments};
    use crate::control::{Cause, congestion_control::Decrease};

    fn ack(feed: &Feed, count: u64) -> Ack<'_> {
        Ack {
            now: Time::ZERO,
            profile: &feed.profile,
            acked: count * Feed::MSS,
            una: 1,
            max: 1,
            counted: None,
        }
    }

    fn loss(feed: &Feed, window: &Window) -> Decrease {
        let congestion = Congestion {
            now: Time::ZERO,
            profile: &feed.profile,
            flight: window.cwnd as u64,
            window: window.cwnd as u64,
            cause: Cause::Loss,
            whole: false,
        };
        Scalable.on_congestion(&Params::default(), window, &congestion)
    }

    #[test]
    fn a_window_of_data_adds_a_hundredth_and_a_loss_takes_an_eighth() {
        let (feed, params) = (Feed::default(), Params::default());
        let mut window = segments(200.0);
        for _ in 0..100 {
            Scalable.on_ack(&params, &mut window, &ack(&feed, 2));
        }
        assert!((window.cwnd - 202_000.0).abs() < 1e-6, "{}", window.cwnd);
        assert_eq!(loss(&feed, &window), Decrease::Share(0.875));
    }

    #[test]
    fn up_to_sixteen_segments_it_is_reno() {
        let (feed, params) = (Feed::default(), Params::default());
        let mut window = segments(16.0);
        Scalable.on_ack(&params, &mut window, &ack(&feed, 1));
        assert!((window.cwnd - 16_062.5).abs() < 1e-6, "{}", window.cwnd);
        assert_eq!(loss(&feed, &segments(16.0)), Decrease::HALF);
        // Above, the same ACK adds a hundredth of a segment.
        Scalable.on_ack(&params, &mut window, &ack(&feed, 1));
        assert!((window.cwnd - 16_072.5).abs() < 1e-6, "{}", window.cwnd);
    }

    /// With a loss every 1 / p segments, a / p = b W: W = 0.08 / p just before one.
    #[test]
    fn regular_losses_hold_the_window_at_eight_hundredths_over_their_rate() {
        let (feed, params) = (Feed::default(), Params::default());
        let mut window = segments(20.0);
        for period in [1_000_u64, 10_000] {
            let mut before = 0.0;
            for _ in 0..200 {
                for _ in 0..period {
                    Scalable.on_ack(&params, &mut window, &ack(&feed, 1));
                }
                before = window.cwnd / Feed::MSS as f64;
                let Decrease::Share(share) = loss(&feed, &window) else {
                    panic!("a share");
                };
                window.cwnd *= share;
            }
            let expected = 0.08 * period as f64;
            assert!((before / expected - 1.0).abs() < 1e-3, "{before}");
        }
    }
}
