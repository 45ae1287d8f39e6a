//! Datagrams at a constant rate that nothing slows down.

use aqmlab_declare::check::{Problem, at_least_one};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};
use schemars::JsonSchema;
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
    /// Bits per second of each flow, IP headers included.
    #[param(check = datagrams::check_rate)]
    pub rate: Rate,
    /// Length of each datagram in IP bytes, headers included: 29 bytes to 65,535.
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
    /// The ECN field of the datagrams; nobody slows down for a mark.
    #[param(default, unwritten)]
    pub ect: Ect,
    /// Flows start at random within this time.
    #[param(default = "1 s")]
    pub start_within: Time,
}

/// The ECN field of a sender's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ect {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, classic.
    Ect0,
    /// ECN-capable, as L4S senders say it (RFC 9331).
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
    /// All the same.
    #[default]
    Constant,
    /// Uniform between half and one and a half of the mean (the random CBR of ns-2).
    Uniform,
    /// Exponential: a Poisson process.
    Exponential,
}

impl Parameters for Cbr {
    const ABOUT: About = About {
        title: "Datagrams at a constant rate",
        paper: "no paper; Y. Zhang, L. Qiu, Understanding the End-to-End Performance Impact of RED \
                in a Heterogeneous Environment, Cornell CS Technical Report 2000-1802, 2000, have \
                such flows among TCP; the uniform gaps are those of ns-2's random CBR source",
        purpose: "Flows of UDP datagrams that send at their rate whatever happens to them: they \
                  show whether a discipline protects others from a sender that does not react.",
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
