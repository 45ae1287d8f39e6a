//! Datagrams at a constant rate that nothing slows down.

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, at_least_one};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};
use serde::{Deserialize, Serialize};

use crate::datagrams::{self, Flows};
use crate::error::SourceError;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::setting::Setting;

/// Flows of datagrams at a constant rate, from servers to clients.
#[parameters]
pub struct Cbr {
    /// Number of flows.
    #[param(check = at_least_one)]
    pub flows: u32,
    /// Bit rate of each flow, IP headers included.
    #[param(check = datagrams::check_rate)]
    pub rate: Rate,
    /// Size of each datagram in IP bytes, headers included: 29 to 65,535 bytes.
    #[param(
        default = "500 bytes",
        least = datagrams::SHORTEST,
        most = datagrams::LONGEST,
        words = datagrams::LENGTHS
    )]
    pub packet: Bytes,
    /// Distribution of the gaps between datagrams.
    #[param(default)]
    pub gaps: Gaps,
    /// ECN field of the datagrams. Marks do not slow the sender down.
    #[param(default, unwritten)]
    pub ect: Ect,
    /// Each flow starts at a random time within this span.
    #[param(default = "1 s")]
    pub start_within: Time,
}

/// ECN field of the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ect {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, ECT(0): classic ECN.
    Ect0,
    /// ECN-capable, ECT(1): L4S (RFC 9331).
    Ect1,
}

impl From<Ect> for Ecn {
    fn from(ect: Ect) -> Self {
        match ect {
            Ect::NotEct => Self::NotEct,
            Ect::Ect0 => Self::Ect0,
            Ect::Ect1 => Self::Ect1,
        }
    }
}

/// Distribution of the gaps between the datagrams of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// All gaps are equal.
    #[default]
    Constant,
    /// Uniform between 0.5 and 1.5 times the mean (the random CBR of ns-2).
    Uniform,
    /// Exponential: a Poisson process.
    Exponential,
}

impl Parameters for Cbr {
    const ABOUT: About = About {
        title: "Datagrams at a constant rate",
        paper: "no paper; uniform gaps: ns-2's random CBR source, used by Y. Zhang, L. Qiu, \
                Cornell CS Technical Report 2000-1802, 2000",
        purpose: "UDP datagrams at a constant rate, without a reaction to loss or marks. They show \
                  whether a discipline protects other flows.",
        departures: &[],
        memory: "one entry for each flow",
    };

    fn check_together(&self) -> Result<(), Problem> {
        datagrams::check_together(self.rate, self.packet)
    }
}

impl ModelParameters for Cbr {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "cbr"
flows = 1
rate = "2 Mbit/s"
packet = "500 bytes"
rtt = { kind = "constant", rtt = "60 ms" }
"#
    }

    population!(flows in "flows", Fixed, Members);

    fn packets_per_s(&self) -> f64 {
        datagrams::per_second(self.flows, self.rate, self.packet)
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let gaps = Around {
            mean_s: self.rate.transmission_time(self.packet.0).as_secs_f64(),
            gaps: self.gaps,
        };
        let flows = Flows::new(
            setting,
            ("datagrams", self.flows),
            self.start_within,
            (self.packet, self.ect.into()),
            |_| gaps,
        );
        Ok(Box::new(flows))
    }
}

/// The gaps of a flow, around their mean.
#[derive(Clone, Copy)]
struct Around {
    mean_s: f64,
    gaps: Gaps,
}

impl datagrams::Gaps for Around {
    fn next(&mut self, draws: &mut RandomStream) -> Time {
        let factor = match self.gaps {
            Gaps::Constant => 1.0,
            Gaps::Uniform => draws.uniform_in(0.5, 1.5),
            Gaps::Exponential => draws.exponential(1.0),
        };
        Time::from_secs_f64(self.mean_s * factor)
    }
}
