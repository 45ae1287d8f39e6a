//! Interactive sessions: a keystroke, its echo, a pause.
//!
//! The pauses are those of tcplib: P. Danzig, S. Jamin, "tcplib: A Library of TCP Internetwork
//! Traffic Characteristics", University of Southern California, 1991 (`data/tcplib/README.md`).

use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{Bytes, RandomStream, Role, Time};

use crate::error::SourceError;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::rtt::Rtt;
use crate::script::{Action, Connect, Exchange, Script};
use crate::setting::{Pair, Setting};
use crate::shipped;

/// Interactive sessions with the pauses of tcplib's telnet: a keystroke, its echo, a pause.
#[parameters]
pub struct Telnet {
    /// Number of sessions.
    #[param(least = 1)]
    pub sessions: u32,
    /// Bytes per keystroke.
    #[param(default = "1 bytes", least = Bytes(1))]
    pub keystroke: Bytes,
    /// Bytes per echo.
    #[param(default = "1 bytes", least = Bytes(1))]
    pub echo: Bytes,
    /// Keystrokes per connection.
    #[param(default = 1000, least = 1, most = MOST_KEYSTROKES)]
    pub keystrokes: u32,
    /// Each session starts at a random time within this span.
    #[param(default = "1 s")]
    pub start_within: Time,
}

/// All keystrokes of a connection are kept in memory.
const MOST_KEYSTROKES: u32 = 100_000;

impl Parameters for Telnet {
    const ABOUT: About = About {
        title: "Telnet",
        paper: "P. Danzig, S. Jamin, tcplib: A Library of TCP Internetwork Traffic \
                Characteristics, University of Southern California, 1991",
        purpose: "Interactive sessions: a keystroke, its echo, a pause. The response time is the \
                  delay that a typist notices.",
        departures: &[
            "tcplib's times lie between the typist's packets. Here a pause starts at the echo.",
        ],
        memory: "one entry for each session, and the keystrokes of its connection",
    };
}

impl ModelParameters for Telnet {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "telnet"
sessions = 6
rtt = { kind = "constant", rtt = "104 ms" }
"#
    }

    population!(sessions in "sessions", ClosedLoop, Members);

    fn is_endless(&self) -> bool {
        true
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        if cfg!(target_family = "wasm") {
            return Err(SourceError::NoTables);
        }
        Ok(Box::new(TelnetSource::new(self, setting)))
    }
}

/// All sessions of a class; a session's token is its number.
#[derive(Clone, Debug)]
struct TelnetSource {
    terminals: Vec<Terminal>,
    params: Telnet,
    rtt: Rtt,
    /// Quantiles of the pauses, seconds.
    pauses_s: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Terminal {
    token: u32,
    pair: Pair,
    stream: RandomStream,
    /// Apart from `stream`, so that other round-trip times meet the same typing.
    rtts: RandomStream,
}

impl TelnetSource {
    fn new(params: &Telnet, setting: &Setting<'_>) -> Self {
        let pauses = shipped::rows(include_str!("../data/tcplib/telnet_interarrival.csv"));
        let terminal = |token| Terminal {
            token,
            pair: setting.pair(token, params.sessions),
            stream: setting.stream("telnet", token),
            rtts: setting.stream("rtts", token),
        };
        Self {
            terminals: (0..params.sessions).map(terminal).collect(),
            params: params.clone(),
            rtt: setting.rtt.clone(),
            pauses_s: pauses.into_iter().map(|[pause_s]| pause_s).collect(),
        }
    }
}

impl ModelSource for TelnetSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        let within = self.params.start_within.as_secs_f64();
        for terminal in &mut self.terminals {
            actions.push(Action::WakeAt {
                at: Time::from_secs_f64(terminal.stream.uniform() * within),
                token: terminal.token,
            });
        }
    }

    fn on_wake(&mut self, _now: Time, token: u32, actions: &mut Vec<Action>) {
        let terminal = &mut self.terminals[token as usize];
        let pair = terminal.pair;
        let stream = &mut terminal.stream;
        let keystroke = |_| Exchange {
            pause: Time::from_secs_f64(self.pauses_s[stream.below(self.pauses_s.len())]),
            ..Exchange::new(self.params.keystroke.0, self.params.echo.0)
        };
        let keystrokes = (0..self.params.keystrokes).map(keystroke);
        let script = Script::new(keystrokes.collect(), Role::Client);
        actions.push(Action::Connect(Connect {
            token,
            client: pair.client,
            server: pair.server,
            rtt: self.rtt.sample(pair, &mut terminal.rtts),
            flipped: pair.flipped,
            script,
            limits: None,
            begins_with_tls: false,
        }));
    }

    /// The connection is over: the next keystroke, after a pause, needs another.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let stream = &mut self.terminals[token as usize].stream;
        let pause = self.pauses_s[stream.below(self.pauses_s.len())];
        let at = now.saturating_add(Time::from_secs_f64(pause));
        actions.push(Action::WakeAt { at, token });
    }
}
