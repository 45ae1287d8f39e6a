//! Closed loop: sessions that fetch a transfer, think, fetch the next.
//!
//! The web sessions of Y. Zhang, L. Qiu, "Understanding the End-to-End Performance Impact of RED in
//! a Heterogeneous Environment", Cornell CS Technical Report 2000-1802, 2000: transfers of 30 KB,
//! think times between 1 and 3 s. Every transfer has a connection of its own.

use aqmlab_net::{Bytes, RandomStream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bulk;
use crate::params::{Rtt, Sizes};
use crate::script::{Action, Connect, Script};
use crate::sizes::SizeDraws;
use crate::source::{PopulationUnset, Setting};

/// Sessions after Zhang and Qiu 2000: fetch a transfer, think, fetch the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSessions {
    /// Number of sessions; left out: calibrated from `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// Distribution of the transfers' sizes.
    #[serde(default = "default_transfer")]
    pub transfer: Sizes,
    /// Shortest think time.
    #[serde(default = "default_think_min")]
    pub think_min: Time,
    /// Longest think time; between them it is uniform.
    #[serde(default = "default_think_max")]
    pub think_max: Time,
    /// Sessions begin their first transfer at random within this time.
    #[serde(default = "default_start")]
    pub start_within: Time,
}

fn default_transfer() -> Sizes {
    Sizes::Constant {
        size: Bytes(30_000),
    }
}

fn default_think_min() -> Time {
    Time::from_secs(1)
}

fn default_think_max() -> Time {
    Time::from_secs(3)
}

fn default_start() -> Time {
    Time::from_secs(3)
}

/// Bytes that ask for a transfer.
const REQUEST: u64 = 1;

/// All sessions of a class; a session's token is its number.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    sessions: Vec<Session>,
    transfer: SizeDraws,
    params: WebSessions,
    rtt: Rtt,
}

#[derive(Clone, Debug)]
struct Session {
    token: u32,
    flipped: bool,
    client: u32,
    server: u32,
    stream: RandomStream,
    /// Apart from `stream`, so that other round-trip times meet the same transfers.
    rtts: RandomStream,
}

impl Sessions {
    pub(crate) fn new(
        params: &WebSessions,
        setting: &Setting<'_>,
    ) -> Result<Self, PopulationUnset> {
        let number = params
            .sessions
            .ok_or(PopulationUnset { field: "sessions" })?;
        let session = |token| {
            let (flipped, ordinal) = setting.direction.place(token);
            let (client, server) = bulk::pair(ordinal, setting.hosts.as_seen(flipped));
            let stream = |name: &str| {
                let name = format!("{}/{name}", setting.class);
                RandomStream::new(setting.seed, &name, u64::from(token))
            };
            Session {
                token,
                flipped,
                client,
                server,
                stream: stream("session"),
                rtts: stream("rtts"),
            }
        };
        Ok(Self {
            sessions: (0..number).map(session).collect(),
            transfer: SizeDraws::new(&params.transfer),
            params: params.clone(),
            rtt: setting.rtt.clone(),
        })
    }

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        let within = self.params.start_within.as_secs_f64();
        for session in &mut self.sessions {
            actions.push(Action::WakeAt {
                at: Time::from_secs_f64(session.stream.uniform() * within),
                token: session.token,
            });
        }
    }

    pub(crate) fn on_wake(&mut self, token: u32, actions: &mut Vec<Action>) {
        let session = &mut self.sessions[token as usize];
        let &mut Session {
            flipped,
            client,
            server,
            ..
        } = session;
        actions.push(Action::Connect(Connect {
            token,
            client,
            server,
            rtt: self.rtt.sample(client, server, flipped, &mut session.rtts),
            flipped,
            script: Script::single(REQUEST, self.transfer.sample(&mut session.stream)),
            limits: None,
        }));
    }

    /// The transfer is complete, or has failed.
    pub(crate) fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let stream = &mut self.sessions[token as usize].stream;
        let [low, high] = [self.params.think_min, self.params.think_max].map(Time::as_secs_f64);
        let think = Time::from_secs_f64(stream.uniform_in(low, high));
        let at = now.saturating_add(think);
        actions.push(Action::WakeAt { at, token });
    }
}
