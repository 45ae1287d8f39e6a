//! Reno: additive increase, multiplicative decrease. V. Jacobson, "Congestion Avoidance and Control",
//! SIGCOMM 1988; RFC 5681, section 3.1.

use aqmlab_declare::{About, Parameters, Problem, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion_control::{Ack, Congestion, CongestionControl, ControlParameters, Decrease};
use super::window::Window;

/// Parameters of Reno: AIMD(a, b).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Segments by which the window grows in a round trip of congestion avoidance.
    pub increase: f64,
    /// Share of the window that congestion leaves.
    pub decrease: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            increase: 1.0,
            decrease: 0.5,
        }
    }
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Reno",
        paper: "V. Jacobson, Congestion Avoidance and Control, SIGCOMM 1988; RFC 5681, section 3.1",
        purpose: "Slow start, then one segment more per round trip; half of the window on \
                  congestion. The measure of all other controls.",
        departures: &[
            "Increase and decrease are parameters: AIMD(a, b) of S. Floyd, M. Handley, J. Padhye, A \
             Comparison of Equation-Based and AIMD Congestion Control, 2000.",
        ],
        memory: "none beside the window",
    };

    fn check(&self) -> Result<(), Problem> {
        check::above("increase", self.increase, 0.0)?;
        check::share("decrease", self.decrease)
    }
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
