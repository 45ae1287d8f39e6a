//! Datagrams at a constant rate that nothing slows down.

use aqmlab_declare::check::Problem;
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::datagrams;
use crate::error::SourceError;
use crate::model::{
    Changing, ModelParameters, ModelSource, OpenFile, Opening, PopulationKey, whole,
};
use crate::script::{Action, OpenDatagrams};
use crate::setting::Setting;

/// Flows of datagrams at a constant rate, from servers to clients.
#[parameters]
pub struct Cbr {
    /// Number of flows.
    pub flows: u32,
    /// Bits per second of each flow, IP headers included.
    pub rate: Rate,
    /// Length of each datagram in IP bytes, headers included: 29 bytes to 65,535.
    #[param(default = "500 bytes")]
    pub packet: Bytes,
    /// Distribution of the gaps between datagrams.
    #[param(default)]
    pub gaps: Gaps,
    /// The ECN field of the datagrams; nobody slows down for a mark.
    #[serde(skip_serializing_if = "Ect::is_default")]
    #[param(default)]
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

impl Ect {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
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
        datagrams::check(self.flows, self.rate, self.packet)
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

    fn population_key(&self) -> PopulationKey {
        PopulationKey::FLOWS
    }

    fn population(&self) -> Option<f64> {
        Some(self.flows.into())
    }

    fn set_population(&mut self, population: f64) {
        self.flows = whole(population);
    }

    fn changing(&self) -> Changing {
        Changing::Members
    }

    fn opening(&self) -> Opening {
        Opening::Fixed
    }

    fn packets_per_s(&self) -> f64 {
        datagrams::per_second(self.flows, self.rate, self.packet)
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        Ok(Box::new(CbrSource::new(self, setting)))
    }
}

#[derive(Clone, Debug)]
struct CbrSource {
    flows: Vec<Flow>,
    /// Mean time between datagrams of a flow.
    gap: Time,
    gaps: Gaps,
    size: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    open: OpenDatagrams,
    start: Time,
    draws: RandomStream,
}

impl CbrSource {
    fn new(params: &Cbr, setting: &Setting<'_>) -> Self {
        let flow = |token| {
            let mut draws = setting.stream("datagrams", token);
            let (open, start) = datagrams::flow(
                setting,
                (token, params.flows),
                params.start_within,
                &mut draws,
            );
            let open = OpenDatagrams {
                ecn: params.ect.into(),
                ..open
            };
            Flow { open, start, draws }
        };
        Self {
            flows: (0..params.flows).map(flow).collect(),
            gap: params.rate.transmission_time(params.packet.0),
            gaps: params.gaps,
            size: params.packet.0 as u32,
        }
    }
}

impl ModelSource for CbrSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for flow in &self.flows {
            let (at, token) = (flow.start, flow.open.token);
            actions.push(Action::OpenDatagrams(flow.open.clone()));
            actions.push(Action::WakeAt { at, token });
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let size = self.size;
        actions.push(Action::Datagram { token, size });
        let draws = &mut self.flows[token as usize].draws;
        let factor = match self.gaps {
            Gaps::Constant => 1.0,
            Gaps::Uniform => draws.uniform_in(0.5, 1.5),
            Gaps::Exponential => draws.exponential(1.0),
        };
        let gap = Time::from_secs_f64(self.gap.as_secs_f64() * factor);
        actions.push(Action::WakeAt {
            at: now + gap,
            token,
        });
    }
}
