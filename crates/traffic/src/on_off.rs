//! Datagrams in bursts of Pareto length.
//!
//! The bursty UDP sources of Y. Zhang, L. Qiu, "Understanding the End-to-End Performance Impact of RED
//! in a Heterogeneous Environment", Cornell CS Technical Report 2000-1802, 2000: many of them
//! together make self-similar traffic (W. Willinger, M. Taqqu, R. Sherman, D. Wilson,
//! "Self-Similarity Through High-Variability", SIGCOMM 1995).

use aqmlab_net::{Bytes, RandomStream, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bulk;
use crate::script::{Action, OpenDatagrams};
use crate::source::Setting;

/// Flows of datagrams that are on and off in turn, each time for a Pareto time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Number of flows.
    pub flows: u32,
    /// Bits per second of each flow while it is on, IP headers included.
    pub rate: Rate,
    /// Length of each datagram in IP bytes, headers included: 29 bytes to 65,535.
    #[serde(default = "default_datagram")]
    pub packet: Bytes,
    /// Mean time that a flow is on.
    #[serde(default = "default_on")]
    pub mean_on: Time,
    /// Mean time that a flow is off.
    #[serde(default = "default_off")]
    pub mean_off: Time,
    /// Shape of both Pareto distributions, above 1: up to 2 the variance is infinite.
    #[serde(default = "default_shape")]
    pub shape: f64,
    /// Flows start at random within this time.
    #[serde(default = "default_start")]
    pub start_within: Time,
}

fn default_datagram() -> Bytes {
    Bytes(210)
}

fn default_on() -> Time {
    Time::from_secs(1)
}

fn default_off() -> Time {
    Time::from_secs(2)
}

fn default_shape() -> f64 {
    1.5
}

fn default_start() -> Time {
    Time::from_secs(3)
}

#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    flows: Vec<Flow>,
    /// Seconds between datagrams while a flow is on.
    gap_s: f64,
    size: u32,
    on: Pareto,
    off: Pareto,
}

#[derive(Clone, Debug)]
struct Flow {
    open: OpenDatagrams,
    start: Time,
    /// Seconds that the flow stays on after the datagram that it has sent last.
    left_s: f64,
    draws: RandomStream,
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

impl Bursts {
    pub(crate) fn new(params: &OnOff, setting: &Setting<'_>) -> Self {
        let name = format!("{}/bursts", setting.class);
        let flow = |token| {
            let mut draws = RandomStream::new(setting.seed, &name, u64::from(token));
            let start = draws.uniform() * params.start_within.as_secs_f64();
            let (flipped, ordinal) = setting.direction.place(token);
            let (client, server) = bulk::pair(ordinal, setting.hosts.as_seen(flipped));
            Flow {
                open: OpenDatagrams {
                    token,
                    client,
                    server,
                    rtt: setting.rtt.sample(client, server, flipped, &mut draws),
                    flipped,
                },
                start: Time::from_secs_f64(start),
                left_s: 0.0,
                draws,
            }
        };
        Self {
            flows: (0..params.flows).map(flow).collect(),
            gap_s: params.rate.transmission_time(params.packet.0).as_secs_f64(),
            size: params.packet.0 as u32,
            on: Pareto::with_mean(params.mean_on, params.shape),
            off: Pareto::with_mean(params.mean_off, params.shape),
        }
    }

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        for flow in &mut self.flows {
            flow.left_s = self.on.sample(&mut flow.draws);
            let (at, token) = (flow.start, flow.open.token);
            actions.push(Action::OpenDatagrams(flow.open.clone()));
            actions.push(Action::WakeAt { at, token });
        }
    }

    /// Sends a datagram. The next one follows when the flow has been on for a gap's time: what a
    /// burst leaves of a gap counts in the next one, so the rate while on is exact.
    pub(crate) fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let size = self.size;
        actions.push(Action::Datagram { token, size });
        let flow = &mut self.flows[token as usize];
        let (mut wait_s, mut gap_s) = (0.0, self.gap_s);
        while gap_s > flow.left_s {
            wait_s += flow.left_s + self.off.sample(&mut flow.draws);
            gap_s -= flow.left_s;
            flow.left_s = self.on.sample(&mut flow.draws);
        }
        flow.left_s -= gap_s;
        let at = now.saturating_add(Time::from_secs_f64(wait_s + gap_s));
        actions.push(Action::WakeAt { at, token });
    }
}
