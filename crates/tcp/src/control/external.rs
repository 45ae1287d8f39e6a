//! A window that somebody else sets: a schedule of changes, or an agent that learns.

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Rate, Time};

use super::congestion_control::{
    Ack, Congestion, CongestionControl, ControlParameters, Decrease, Sample,
};
use super::window::Window;
use crate::profile::Profile;

/// Parameters of a window that is set from outside. They can change during a run.
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Congestion window in segments. A change takes effect at the next ACK.
    #[param(default = 10.0, least = 1.0, changeable)]
    pub cwnd: f64,
    /// Pacing rate, headers included. Default: no pacing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(changeable)]
    pub pacing_rate: Option<Rate>,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "A window that is set from outside",
        paper: "None: an interface for a schedule of changes, and for agents that learn",
        purpose: "Keeps the window and pacing rate that `changes`, a stepping program or an agent \
                  sets. Losses and marks do not change them. Needs `recovery = \"rack-tlp\"`.",
        departures: &[],
        memory: "nothing",
    };
}

impl ControlParameters for Params {
    type Control = External;

    const OWNS_WINDOW: bool = true;
    const ANSWERS_MARKS: bool = true;
}

/// It remembers nothing: the window is a parameter.
#[derive(Clone, Debug, Default)]
pub(crate) struct External;

impl CongestionControl for External {
    type Params = Params;

    /// The sample of the same ACK has set the window.
    fn on_ack(&mut self, _: &Params, _: &mut Window, _: &Ack<'_>) {}

    fn on_sample(&mut self, params: &Params, window: &mut Window, sample: &Sample<'_>) {
        window.cwnd = params.cwnd * sample.profile.mss.0 as f64;
        window.ssthresh = window.cwnd;
    }

    /// Somebody may have set another window.
    fn samples_when_idle(&self, _: &Params, _: &Window, _: &Profile, _: Time) -> bool {
        true
    }

    fn on_congestion(&mut self, _: &Params, window: &Window, _: &Congestion<'_>) -> Decrease {
        Decrease::Bytes(window.cwnd)
    }

    fn pacing_rate(
        &self,
        params: &Params,
        _: &Window,
        _: &Profile,
        _: Option<Time>,
    ) -> Option<f64> {
        params.pacing_rate.map(|rate| rate.bps() as f64 / 8.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::congestion_control::Cause;
    use crate::control::tests::{Feed, segments};

    #[test]
    fn the_window_is_what_was_set_whatever_happens() {
        let mut feed = Feed::default();
        let (mut control, mut window) = (External, segments(40.0));
        for cwnd in [7.5, 120.0, 1.0] {
            let params = Params {
                cwnd,
                ..Params::default()
            };
            control.on_sample(&params, &mut window, &feed.acks(1, 1));
            let congestion = Congestion {
                now: Time::ZERO,
                profile: &feed.profile,
                flight: 10_000,
                window: 20_000,
                cause: Cause::Loss,
                whole: false,
            };
            let kept = control.on_congestion(&params, &window, &congestion);
            let bytes = cwnd * Feed::MSS as f64;
            assert_eq!(kept, Decrease::Bytes(bytes));
            assert_eq!((window.cwnd, window.ssthresh), (bytes, bytes));
        }
    }

    #[test]
    fn segments_are_paced_where_a_rate_is_set() {
        let feed = Feed::default();
        let rate = |pacing_rate| {
            let params = Params {
                pacing_rate,
                ..Params::default()
            };
            External.pacing_rate(&params, &segments(1.0), &feed.profile, None)
        };
        assert_eq!(rate(None), None);
        assert_eq!(rate(Some(Rate::from_bps(8_000_000))), Some(1_000_000.0));
    }

    #[test]
    fn less_than_a_segment_is_refused() {
        let params = Params {
            cwnd: 0.5,
            ..Params::default()
        };
        assert_eq!(params.check().unwrap_err().0, "cwnd");
    }
}
