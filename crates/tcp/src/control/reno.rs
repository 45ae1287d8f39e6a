//! Reno: additive increase, multiplicative decrease. V. Jacobson, "Congestion Avoidance and Control",
//! SIGCOMM 1988; RFC 5681, section 3.1.

use aqmlab_declare::{About, Parameters, parameters};

use super::congestion_control::{Ack, Congestion, CongestionControl, ControlParameters, Decrease};
use super::window::Window;

/// Parameters of Reno: AIMD(a, b).
#[parameters]
#[derive(Copy)]
pub struct Params {
    /// Segments added to the window per round trip in congestion avoidance.
    #[param(default = 1.0, above = 0.0)]
    pub increase: f64,
    /// Factor on the window at congestion.
    #[param(default = 0.5, above = 0.0, below = 1.0)]
    pub decrease: f64,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Reno",
        paper: "V. Jacobson, Congestion Avoidance and Control, SIGCOMM 1988; RFC 5681, section 3.1",
        purpose: "Slow start, then one more segment per round trip; congestion halves the window. \
                  The reference for all other controls.",
        departures: &["`increase` and `decrease` make AIMD(a, b)."],
        memory: "nothing",
    };
}

impl ControlParameters for Params {
    type Control = Reno;

    const LINUX: Option<&'static str> = Some("reno");
}

/// Reno remembers nothing but the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reno;

impl CongestionControl for Reno {
    type Params = Params;

    #[inline]
    fn on_ack(&mut self, params: &Params, window: &mut Window, ack: &Ack<'_>) {
        window.grow_as_reno(params.increase, ack);
    }

    fn on_congestion(&mut self, params: &Params, _: &Window, _: &Congestion<'_>) -> Decrease {
        Decrease::Share(params.decrease)
    }
}
