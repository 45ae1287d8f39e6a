//! Closed loop: sessions that fetch a transfer, think, fetch the next.
//!
//! The web sessions of Y. Zhang, L. Qiu, "Understanding the End-to-End Performance Impact of RED in
//! a Heterogeneous Environment", Cornell CS Technical Report 2000-1802, 2000: transfers of 30 KB,
//! think times between 1 and 3 s. Every transfer has a connection of its own.

use aqmlab_declare::check::{Problem, problem, within};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, RandomStream, Role, Time};

use crate::error::{PopulationUnset, SourceError};
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::rtt::Rtt;
use crate::script::{Action, Connect, Exchange, Script};
use crate::setting::{Pair, Setting};
use crate::sizes::{SizeDraws, Sizes};

/// Sessions after Zhang and Qiu 2000: fetch a transfer, think, fetch the next.
#[parameters]
pub struct WebSessions {
    /// Number of sessions. Default: computed from `load`.
    #[param(least = 1, unwritten)]
    pub sessions: Option<u32>,
    /// Distribution of transfer sizes.
    #[param(default = Sizes::Constant {
        size: Bytes(30_000),
    })]
    pub transfer: Sizes,
    /// Minimum think time.
    #[param(default = "1 s")]
    pub think_min: Time,
    /// Maximum think time. Think times are uniform between the two.
    #[param(default = "3 s")]
    pub think_max: Time,
    /// Number of transfers on a connection. The connection keeps its window and path metrics
    /// between transfers, as an agent of ns does.
    #[param(default = 1, least = 1, most = MOST_TRANSFERS, unwritten)]
    pub transfers_per_connection: u32,
    /// Each session starts its first transfer at a random time within this span.
    #[param(default = "3 s")]
    pub start_within: Time,
}

/// Most transfers over a connection: they are drawn when it is opened.
const MOST_TRANSFERS: u32 = 100_000;

/// Bytes that ask for a transfer.
const REQUEST: u64 = 1;

impl Parameters for WebSessions {
    const ABOUT: About = About {
        title: "Web sessions",
        paper: "Y. Zhang, L. Qiu, Understanding the End-to-End Performance Impact of RED in a \
                Heterogeneous Environment, Cornell CS Technical Report 2000-1802, 2000",
        purpose: "Closed loop: a fixed number of sessions, each of which fetches a transfer over a \
                  new connection, thinks, and so on.",
        departures: &[
            "The request is one byte, as in bulk transfers.",
            "Every transfer has its own connection. `transfers_per_connection = 100000` gives one \
             per session, as in the paper (section IV-C).",
            "A session thinks from the last byte's arrival; in the paper from its acknowledgement \
             (section V.A), half a round trip later.",
        ],
        memory: "one entry for each session",
    };

    fn check_together(&self) -> Result<(), Problem> {
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

    population!(sessions in "sessions", ClosedLoop, Members);

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

impl WebSessionsSource {
    /// How long a session thinks before its next transfer.
    fn think(&mut self, token: u32) -> Time {
        let stream = &mut self.sessions[token as usize].stream;
        let [low, high] = [self.params.think_min, self.params.think_max].map(Time::as_secs_f64);
        Time::from_secs_f64(stream.uniform_in(low, high))
    }

    /// The next transfers of a session, over a connection.
    fn script(&mut self, token: u32) -> Script {
        let last = self.params.transfers_per_connection - 1;
        let exchanges = (0..=last).map(|number| {
            let stream = &mut self.sessions[token as usize].stream;
            let transfer = Exchange::new(REQUEST, self.transfer.sample(stream));
            // It thinks after the last one, too, but without the connection.
            let pause = if number < last {
                self.think(token)
            } else {
                Time::ZERO
            };
            Exchange { pause, ..transfer }
        });
        Script::new(exchanges.collect(), Role::Server)
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
        let script = self.script(token);
        let session = &mut self.sessions[token as usize];
        let pair = session.pair;
        actions.push(Action::Connect(Connect {
            token,
            client: pair.client,
            server: pair.server,
            rtt: self.rtt.sample(pair, &mut session.rtts),
            flipped: pair.flipped,
            script,
            limits: None,
            begins_with_tls: false,
        }));
    }

    /// The transfer is complete, or has failed.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let at = now.saturating_add(self.think(token));
        actions.push(Action::WakeAt { at, token });
    }
}
