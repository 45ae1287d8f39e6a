//! Closed loop: sessions that fetch a transfer, think, fetch the next.
//!
//! The web sessions of Y. Zhang, L. Qiu, "Understanding the End-to-End Performance Impact of RED in
//! a Heterogeneous Environment", Cornell CS Technical Report 2000-1802, 2000: transfers of 30 KB,
//! think times between 1 and 3 s. Every transfer has a connection of its own.

use aqmlab_declare::check::{Problem, at_least_one, problem, within};
use aqmlab_declare::{About, Parameters};
use aqmlab_net::{Bytes, RandomStream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{
    Changing, ModelParameters, ModelSource, OpenFile, Opening, PopulationKey, whole,
};
use crate::rtt::Rtt;
use crate::script::{Action, Connect, Script};
use crate::setting::{Pair, Setting};
use crate::sizes::{SizeDraws, Sizes};

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

impl Parameters for WebSessions {
    const ABOUT: About = About {
        title: "Web sessions",
        paper: "Y. Zhang, L. Qiu, Understanding the End-to-End Performance Impact of RED in a \
                Heterogeneous Environment, Cornell CS Technical Report 2000-1802, 2000",
        purpose: "Closed loop: a fixed number of sessions, each of which fetches a transfer over a \
                  connection of its own, thinks, and fetches the next.",
        departures: &[
            "The request is one byte, as for bulk transfers.",
            "The paper does not say whether a session keeps its connection: here every transfer \
             has its own.",
        ],
        memory: "one entry for each session",
    };

    fn check(&self) -> Result<(), Problem> {
        at_least_one("sessions", self.sessions.unwrap_or(1))?;
        within("transfer", self.transfer.check())?;
        let (least, most) = (self.think_min, self.think_max);
        if most < least {
            let message = format!("found {most}; it must not be below think_min, {least}");
            return problem("think_max", message);
        }
        if most == Time::ZERO {
            let message = "found 0 s; with no time to think a session would never stop asking";
            return problem("think_max", message);
        }
        Ok(())
    }
}

impl ModelParameters for WebSessions {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "web-sessions"
sessions = 30
rtt = { kind = "constant", rtt = "104 ms" }
"#
    }

    fn population_key(&self) -> PopulationKey {
        PopulationKey::SESSIONS
    }

    fn population(&self) -> Option<f64> {
        self.sessions.map(f64::from)
    }

    fn set_population(&mut self, population: f64) {
        self.sessions = Some(whole(population));
    }

    fn changing(&self) -> Changing {
        Changing::Members
    }

    fn opening(&self) -> Opening {
        Opening::ClosedLoop
    }

    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        vec![("transfer", &mut self.transfer)]
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        Ok(Box::new(WebSessionsSource::new(self, setting)?))
    }
}

/// All sessions of a class; a session's token is its number.
#[derive(Clone, Debug)]
struct WebSessionsSource {
    sessions: Vec<Session>,
    transfer: SizeDraws,
    params: WebSessions,
    rtt: Rtt,
}

#[derive(Clone, Debug)]
struct Session {
    token: u32,
    pair: Pair,
    stream: RandomStream,
    /// Apart from `stream`, so that other round-trip times meet the same transfers.
    rtts: RandomStream,
}

impl WebSessionsSource {
    fn new(params: &WebSessions, setting: &Setting<'_>) -> Result<Self, PopulationUnset> {
        let number = params
            .sessions
            .ok_or(PopulationUnset { field: "sessions" })?;
        let session = |token| Session {
            token,
            pair: setting.pair(token, number),
            stream: setting.stream("session", token),
            rtts: setting.stream("rtts", token),
        };
        Ok(Self {
            sessions: (0..number).map(session).collect(),
            transfer: SizeDraws::new(&params.transfer),
            params: params.clone(),
            rtt: setting.rtt.clone(),
        })
    }
}

impl ModelSource for WebSessionsSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        let within = self.params.start_within.as_secs_f64();
        for session in &mut self.sessions {
            actions.push(Action::WakeAt {
                at: Time::from_secs_f64(session.stream.uniform() * within),
                token: session.token,
            });
        }
    }

    fn on_wake(&mut self, _now: Time, token: u32, actions: &mut Vec<Action>) {
        let session = &mut self.sessions[token as usize];
        let pair = session.pair;
        actions.push(Action::Connect(Connect {
            token,
            client: pair.client,
            server: pair.server,
            rtt: self.rtt.sample(pair, &mut session.rtts),
            flipped: pair.flipped,
            script: Script::single(REQUEST, self.transfer.sample(&mut session.stream)),
            limits: None,
        }));
    }

    /// The transfer is complete, or has failed.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let stream = &mut self.sessions[token as usize].stream;
        let [low, high] = [self.params.think_min, self.params.think_max].map(Time::as_secs_f64);
        let think = Time::from_secs_f64(stream.uniform_in(low, high));
        let at = now.saturating_add(think);
        actions.push(Action::WakeAt { at, token });
    }
}
