//! Datagrams in bursts of Pareto length.
//!
//! The bursty UDP sources of Y. Zhang, L. Qiu, "Understanding the End-to-End Performance Impact of RED
//! in a Heterogeneous Environment", Cornell CS Technical Report 2000-1802, 2000: many of them
//! together make self-similar traffic (W. Willinger, M. Taqqu, R. Sherman, D. Wilson,
//! "Self-Similarity Through High-Variability", SIGCOMM 1995).

use aqmlab_declare::check::{Problem, at_least_one, problem};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};

use crate::datagrams::{self, Flows, Gaps};
use crate::error::SourceError;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::setting::Setting;

/// Flows of datagrams with on and off times, both Pareto.
#[parameters]
pub struct OnOff {
    /// Number of flows.
    #[param(check = at_least_one)]
    pub flows: u32,
    /// Bit rate of each flow while it is on, IP headers included.
    #[param(check = datagrams::check_rate)]
    pub rate: Rate,
    /// Size of each datagram in IP bytes, headers included: 29 to 65,535 bytes.
    #[param(
        default = "210 bytes",
        least = datagrams::SHORTEST,
        most = datagrams::LONGEST,
        words = datagrams::LENGTHS
    )]
    pub packet: Bytes,
    /// Mean time that a flow is on.
    #[param(default = "1 s", above = Time::ZERO)]
    pub mean_on: Time,
    /// Mean time that a flow is off.
    #[param(default = "2 s", above = Time::ZERO)]
    pub mean_off: Time,
    /// Shape of both Pareto distributions, above 1. Up to 2 the variance is infinite; a smaller
    /// shape means longer bursts.
    #[param(default = 1.5)]
    pub shape: f64,
    /// Each flow starts at a random time within this span.
    #[param(default = "3 s")]
    pub start_within: Time,
}

impl Parameters for OnOff {
    const ABOUT: About = About {
        title: "Datagrams in bursts",
        paper: "Y. Zhang, L. Qiu, Understanding the End-to-End Performance Impact of RED in a \
                Heterogeneous Environment, Cornell CS Technical Report 2000-1802, 2000",
        purpose: "UDP datagrams in bursts and silences of Pareto times. Many such flows are \
                  self-similar together (Willinger et al., SIGCOMM 1995).",
        departures: &["The rate of bursts is exact. ns-2 rounds bursts to whole datagrams."],
        memory: "one entry for each flow",
    };

    fn check_together(&self) -> Result<(), Problem> {
        datagrams::check_together(self.rate, self.packet)?;
        if self.shape.is_finite() && self.shape > 1.0 {
            return Ok(());
        }
        let right = "a Pareto distribution has a mean only if its shape is above 1";
        problem("shape", format!("found {}; {right}", self.shape))
    }
}

impl ModelParameters for OnOff {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "on-off"
flows = 20
rate = "24 kbit/s"
rtt = { kind = "constant", rtt = "104 ms" }
"#
    }

    population!(flows in "flows", Fixed, Members);

    fn packets_per_s(&self) -> f64 {
        let [on, off] = [self.mean_on, self.mean_off].map(Time::as_secs_f64);
        datagrams::per_second(self.flows, self.rate, self.packet) * on / (on + off)
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let [on, off] =
            [self.mean_on, self.mean_off].map(|mean| Pareto::with_mean(mean, self.shape));
        let gap_s = self.rate.transmission_time(self.packet.0).as_secs_f64();
        let bursts = |draws: &mut RandomStream| Bursts {
            gap_s,
            on,
            off,
            left_s: on.sample(draws),
        };
        let flows = Flows::new(
            setting,
            ("bursts", self.flows),
            self.start_within,
            (self.packet, Ecn::NotEct),
            bursts,
        );
        Ok(Box::new(flows))
    }
}

/// P(X > x) = (least / x)^shape.
#[derive(Clone, Copy, Debug)]
struct Pareto {
    least: f64,
    shape: f64,
}

impl Pareto {
    fn with_mean(mean: Time, shape: f64) -> Self {
        Self {
            least: mean.as_secs_f64() * (shape - 1.0) / shape,
            shape,
        }
    }

    fn sample(&self, draws: &mut RandomStream) -> f64 {
        self.least * libm::pow(draws.uniform_positive(), -1.0 / self.shape)
    }
}

/// The gaps of a flow that is on and off in turn.
struct Bursts {
    /// Seconds between datagrams while the flow is on.
    gap_s: f64,
    on: Pareto,
    off: Pareto,
    /// Seconds that the flow stays on after the datagram that it has sent last.
    left_s: f64,
}

impl Gaps for Bursts {
    /// The next datagram follows when the flow has been on for a gap's time: what a burst leaves of
    /// a gap counts in the next one, so the rate while on is exact.
    fn next(&mut self, draws: &mut RandomStream) -> Time {
        let (mut wait_s, mut gap_s) = (0.0, self.gap_s);
        while gap_s > self.left_s {
            wait_s += self.left_s + self.off.sample(draws);
            gap_s -= self.left_s;
            self.left_s = self.on.sample(draws);
        }
        self.left_s -= gap_s;
        Time::from_secs_f64(wait_s + gap_s)
    }
}
