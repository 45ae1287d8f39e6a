//! Interactive sessions: a keystroke, its echo, a pause.
//!
//! The pauses are those of tcplib: P. Danzig, S. Jamin, "tcplib: A Library of TCP Internetwork
//! Traffic Characteristics", University of Southern California, 1991 (`data/tcplib/README.md`).
//!
//! Departure: tcplib's times are those between the packets of the one who types. Here they begin
//! when the echo has come, so that every keystroke is an exchange whose response time is measured.

use aqmlab_net::{Bytes, RandomStream, Role, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bulk;
use crate::curve;
use crate::params::Rtt;
use crate::script::{Action, Connect, Exchange, Script};
use crate::source::Setting;

/// Interactive sessions with the pauses of tcplib's telnet: a keystroke, its echo, a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Telnet {
    /// Number of sessions.
    pub sessions: u32,
    /// Bytes of a keystroke.
    #[serde(default = "default_byte")]
    pub keystroke: Bytes,
    /// Bytes of its echo, which goes the way of the responses.
    #[serde(default = "default_byte")]
    pub echo: Bytes,
    /// Keystrokes on a connection; then the session opens the next.
    #[serde(default = "default_keystrokes")]
    pub keystrokes: u32,
    /// Sessions begin at random within this time.
    #[serde(default = "default_start")]
    pub start_within: Time,
}

fn default_byte() -> Bytes {
    Bytes(1)
}

fn default_keystrokes() -> u32 {
    1000
}

fn default_start() -> Time {
    Time::from_secs(1)
}

/// All sessions of a class; a session's token is its number.
#[derive(Clone, Debug)]
pub(crate) struct Terminals {
    terminals: Vec<Terminal>,
    params: Telnet,
    rtt: Rtt,
    /// Quantiles of the pauses, seconds.
    pauses_s: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Terminal {
    token: u32,
    flipped: bool,
    client: u32,
    server: u32,
    stream: RandomStream,
    /// Apart from `stream`, so that other round-trip times meet the same typing.
    rtts: RandomStream,
}

impl Terminals {
    pub(crate) fn new(params: &Telnet, setting: &Setting<'_>) -> Self {
        let terminal = |token| {
            let (flipped, ordinal) = setting.direction.place(token);
            let (client, server) = bulk::pair(ordinal, setting.hosts.as_seen(flipped));
            let stream = |name: &str| {
                let name = format!("{}/{name}", setting.class);
                RandomStream::new(setting.seed, &name, u64::from(token))
            };
            Terminal {
                token,
                flipped,
                client,
                server,
                stream: stream("telnet"),
                rtts: stream("rtts"),
            }
        };
        Self {
            terminals: (0..params.sessions).map(terminal).collect(),
            params: params.clone(),
            rtt: setting.rtt.clone(),
            pauses_s: curve::rows(include_str!("../data/tcplib/telnet_interarrival.csv")),
        }
    }

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        let within = self.params.start_within.as_secs_f64();
        for terminal in &mut self.terminals {
            actions.push(Action::WakeAt {
                at: Time::from_secs_f64(terminal.stream.uniform() * within),
                token: terminal.token,
            });
        }
    }

    pub(crate) fn on_wake(&mut self, token: u32, actions: &mut Vec<Action>) {
        let terminal = &mut self.terminals[token as usize];
        let &mut Terminal {
            flipped,
            client,
            server,
            ..
        } = terminal;
        let stream = &mut terminal.stream;
        let keystroke = |_| Exchange {
            pause: Time::from_secs_f64(self.pauses_s[stream.below(self.pauses_s.len())]),
            ..Exchange::new(self.params.keystroke.0, self.params.echo.0)
        };
        let keystrokes = (0..self.params.keystrokes).map(keystroke);
        let script = Script::new(keystrokes.collect(), Role::Client);
        actions.push(Action::Connect(Connect {
            token,
            client,
            server,
            rtt: self.rtt.sample(client, server, flipped, &mut terminal.rtts),
            flipped,
            script,
            limits: None,
        }));
    }

    /// The connection is over: the next keystroke, after a pause, needs another.
    pub(crate) fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let stream = &mut self.terminals[token as usize].stream;
        let pause = self.pauses_s[stream.below(self.pauses_s.len())];
        let at = now.saturating_add(Time::from_secs_f64(pause));
        actions.push(Action::WakeAt { at, token });
    }
}
