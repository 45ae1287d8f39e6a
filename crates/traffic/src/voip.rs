//! Voice calls, and what the listener thinks of them.
//!
//! Talk spurts and silences: ITU-T P.59. Playout: R. Ramjee, J. Kurose, D. Towsley, H. Schulzrinne,
//! "Adaptive Playout Mechanisms for Packetized Audio Applications in Wide-Area Networks", INFOCOM
//! 1994. Opinion: the E-model, [`e_model`](crate::e_model).

use std::ops::Range;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{RandomStream, Time};
use serde::{Deserialize, Serialize};

use crate::datagrams;
use crate::e_model::{self, Codec, Facts};
use crate::error::SourceError;
use crate::model::Received;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::quality::{Quality, Voice};
use crate::script::{Action, OpenDatagrams};
use crate::setting::Setting;

/// Voice calls. Talkers are at the servers, listeners at the clients.
#[parameters]
pub struct Voip {
    /// Number of calls, each in one direction. With `direction = "both"` half of them go each way.
    #[param(least = 1)]
    pub calls: u32,
    /// The codec.
    #[param(default)]
    pub codec: Codec,
    /// Mean length of a talk spurt, exponential.
    #[param(default = "1.004 s", above = Time::ZERO)]
    pub talk: Time,
    /// Mean length of a silence (no packets), exponential. 0 s: continuous talk.
    #[param(default = "1.587 s")]
    pub silence: Time,
    /// How the playout buffer sets its delay.
    #[param(default)]
    pub playout: Playout,
    /// Delay that a fixed playout buffer adds to the first packet of a spurt.
    #[param(default = "60 ms")]
    pub playout_delay: Time,
    /// Each call starts at a random time within this span.
    #[param(default = "1 s")]
    pub start_within: Time,
}

/// How the playout buffer sets its delay at the start of each talk spurt. Later packets count as
/// lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Playout {
    /// A delay of d + 4 v, where d and v are moving averages (weight 0.998) of the delay and its
    /// deviation.
    #[default]
    Adaptive,
    /// `playout_delay` after the first packet of the spurt.
    Fixed,
}

/// Bytes of the headers of IP, UDP and RTP.
const HEADERS: u32 = 40;
/// A call is rated for each so much of it.
const WINDOW: Time = Time::from_secs(10);
/// What is sent later than that before the end is not rated: it may still be on its way.
const GRACE: Time = Time::from_secs(1);
/// As long as the span lasts, a window is rated so much later.
const SETTLED: Time = Time::from_secs(3);
/// Seconds that an adaptive playout waits more than d + 4 v, so that an even delay is met.
const LEAST: f64 = 1e-3;
/// Weight of the past in the moving averages.
const PAST: f64 = 0.998;

impl Parameters for Voip {
    const ABOUT: About = About {
        title: "Voice calls and their mean opinion score",
        paper: "ITU-T G.107, The E-model, 2015; ITU-T P.59, Artificial conversational speech, 1993; R. \
                Ramjee et al., Adaptive Playout Mechanisms for Packetized Audio Applications in \
                Wide-Area Networks, INFOCOM 1994",
        purpose: "Calls of RTP packets in talk spurts. Result: the opinion score by the E-model, \
                  from mouth-to-ear delay and lost or late packets.",
        departures: &[
            "Talkers do not react to each other.",
            "Only delay and loss differ from the default terms of the E-model. Echo is cancelled.",
            "Moving averages have a weight of 0.1 for the first 500 packets. Adaptive playout \
             waits 1 ms longer than in the paper.",
        ],
        memory: "one entry for each call and for each measured 10 s of a call",
    };
}

impl ModelParameters for Voip {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "voip"
calls = 2
direction = "both"
rtt = { kind = "constant", rtt = "40 ms" }
"#
    }

    population!(calls in "calls", Fixed);

    fn packets_per_s(&self) -> f64 {
        let [talk, silence] = [self.talk, self.silence].map(Time::as_secs_f64);
        let interval = self.codec.facts().interval.as_secs_f64();
        f64::from(self.calls) * talk / (talk + silence) / interval
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let call = |token| {
            let mut draws = setting.stream("spurts", token);
            let (open, start) =
                datagrams::flow(setting, (token, self.calls), self.start_within, &mut draws);
            Call {
                open,
                start,
                draws,
                spurt_ends: Time::ZERO,
                spurts: Vec::new(),
                sent: 0,
                ear: Ear::default(),
            }
        };
        Ok(Box::new(VoipSource {
            calls: (0..self.calls).map(call).collect(),
            facts: self.codec.facts(),
            params: self.clone(),
            span: Time::NEVER..Time::NEVER,
        }))
    }
}

#[derive(Clone, Debug)]
struct VoipSource {
    /// A call's token is its number.
    calls: Vec<Call>,
    facts: Facts,
    params: Voip,
    span: Range<Time>,
}

#[derive(Clone, Debug)]
struct Call {
    open: OpenDatagrams,
    start: Time,
    draws: RandomStream,
    /// When the talk spurt under way ends.
    spurt_ends: Time,
    /// Numbers of the first packets of the spurts of which packets may still arrive.
    spurts: Vec<u32>,
    /// Packets sent.
    sent: u32,
    ear: Ear,
}

/// The listener of a call.
#[derive(Clone, Debug, Default)]
struct Ear {
    /// Moving averages of the delay and of its deviation in seconds, and packets behind them.
    delay_s: f64,
    deviation_s: f64,
    heard: u32,
    /// First packet of the spurt that is played, and how long after its sending a packet of it is
    /// played.
    spurt: Option<u32>,
    playout_s: f64,
    /// Number behind the last packet that was played.
    next: u32,
    windows: Vec<Window>,
}

/// What was sent within a time of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    sent: u32,
    played: u32,
    /// Sum of the times from sending to playing.
    playout_s: f64,
    /// Runs of packets that came too late or never.
    runs: u32,
}

impl Ear {
    /// A packet arrives that was sent in this spurt and in this window, if it is measured.
    fn hear(
        &mut self,
        params: &Voip,
        (number, spurt): (u32, u32),
        delay: Time,
        window: Option<usize>,
    ) {
        let delay_s = delay.as_secs_f64();
        if self.spurt != Some(spurt) {
            self.spurt = Some(spurt);
            self.playout_s = match params.playout {
                Playout::Adaptive if self.heard > 0 => {
                    self.delay_s + 4.0 * self.deviation_s + LEAST
                }
                _ => delay_s + params.playout_delay.as_secs_f64(),
            };
        }
        let past = if self.heard == 0 {
            0.0
        } else if self.heard < 500 {
            0.9
        } else {
            PAST
        };
        self.heard += 1;
        self.delay_s = past * self.delay_s + (1.0 - past) * delay_s;
        let deviation = (delay_s - self.delay_s).abs();
        self.deviation_s = past * self.deviation_s + (1.0 - past) * deviation;
        // A packet that a later one has overtaken is no use to a player in sequence.
        if delay_s <= self.playout_s && number >= self.next {
            if let Some(window) = window {
                let window = &mut self.windows[window];
                window.played += 1;
                window.playout_s += self.playout_s;
                window.runs += u32::from(number > self.next);
            }
            self.next = number + 1;
        }
    }
}

impl VoipSource {
    /// The window in which something is sent at `time`, if it is rated.
    fn window(&self, time: Time) -> Option<usize> {
        let rated = self.span.start..self.span.end.saturating_sub(GRACE);
        rated.contains(&time).then(|| {
            let since = time - self.span.start;
            (since.as_nanos() / WINDOW.as_nanos()) as usize
        })
    }

    fn rate(&self, window: &Window, voice: &mut Voice) {
        let lost = window.sent - window.played.min(window.sent);
        let share = f64::from(lost) / f64::from(window.sent);
        // The mean run of random loss has 1 / (1 - p) packets.
        let run = f64::from(lost) / f64::from(window.runs.max(1));
        let burst_ratio = (run * (1.0 - share)).max(1.0);
        let playout_s = window.playout_s / f64::from(window.played.max(1));
        let mouth_to_ear = self.facts.delay + Time::from_secs_f64(playout_s);
        let rating = e_model::rating(&self.facts, mouth_to_ear, share, burst_ratio);
        voice.ratings.add(rating);
        voice.scores.add(e_model::opinion(rating));
        if window.played > 0 {
            voice.mouth_to_ear.add_time(mouth_to_ear);
        }
        voice.packets += u64::from(window.sent);
        voice.lost += u64::from(lost);
    }
}

impl ModelSource for VoipSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for call in &self.calls {
            let (at, token) = (call.start, call.open.token);
            actions.push(Action::OpenDatagrams(call.open.clone()));
            actions.push(Action::WakeAt { at, token });
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let window = self.window(now);
        let call = &mut self.calls[token as usize];
        if now >= call.spurt_ends {
            let talk = call.draws.exponential(self.params.talk.as_secs_f64());
            call.spurt_ends = now.saturating_add(Time::from_secs_f64(talk));
            call.spurts.push(call.sent);
        }
        call.sent += 1;
        if let Some(window) = window {
            let windows = &mut call.ear.windows;
            windows.resize_with(windows.len().max(window + 1), Window::default);
            windows[window].sent += 1;
        }
        let size = self.facts.payload + HEADERS;
        actions.push(Action::Datagram { token, size });
        let mut at = now.saturating_add(self.facts.interval);
        if at >= call.spurt_ends && self.params.silence > Time::ZERO {
            let silence = call.draws.exponential(self.params.silence.as_secs_f64());
            at = at.saturating_add(Time::from_secs_f64(silence));
        }
        actions.push(Action::WakeAt { at, token });
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_datagram(&mut self, now: Time, datagram: &Received, _actions: &mut Vec<Action>) {
        let window = self.window(now.saturating_sub(datagram.delay));
        let call = &mut self.calls[datagram.token as usize];
        let later = call
            .spurts
            .partition_point(|&first| first <= datagram.number);
        let spurt = call.spurts[later.max(1) - 1];
        // Nothing of much older spurts will come.
        if later > 100 {
            call.spurts.drain(..50);
        }
        let heard = (datagram.number, spurt);
        call.ear.hear(&self.params, heard, datagram.delay, window);
    }

    fn measure(&mut self, span: &Range<Time>) {
        self.span = span.clone();
    }

    fn quality(&self, now: Time, _stop: Time) -> Option<Quality> {
        let mut quality = Quality::default();
        // As long as the span lasts only windows count of which nothing is still on its way.
        let reported = match now >= self.span.end {
            true => usize::MAX,
            false => {
                let since = now.saturating_sub(self.span.start);
                (since.saturating_sub(SETTLED).as_nanos() / WINDOW.as_nanos()) as usize
            }
        };
        let calls = self.calls.iter();
        let windows = calls.flat_map(|call| call.ear.windows.iter().take(reported));
        for window in windows.filter(|window| window.sent > 0) {
            self.rate(window, &mut quality.voice);
        }
        Some(quality)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ear(params: &Voip, delays: &[Option<u64>]) -> Window {
        let mut ear = Ear {
            windows: vec![Window::default()],
            ..Ear::default()
        };
        for (delay, number) in delays.iter().zip(0..) {
            ear.windows[0].sent += 1;
            if let Some(delay) = *delay {
                ear.hear(params, (number, 0), Time::from_millis(delay), Some(0));
            }
        }
        ear.windows[0]
    }

    fn params(text: &str) -> Voip {
        toml::from_str(&format!("calls = 1\n{text}")).expect("a table")
    }

    #[test]
    fn what_comes_later_than_its_playout_is_lost() {
        let params = params("playout = 'fixed'");
        // Played 80 ms after sending: the third comes too late, the fifth never.
        let window = ear(
            &params,
            &[20, 80, 81, 20, 0, 30].map(|it| (it > 0).then_some(it)),
        );
        assert_eq!((window.sent, window.played, window.runs), (6, 4, 2));
        assert!((window.playout_s - 4.0 * 0.080).abs() < 1e-9);
    }

    #[test]
    fn an_adaptive_playout_follows_the_delay() {
        let params = params("");
        let mut ear = Ear::default();
        for number in 0..1000 {
            ear.hear(&params, (number, number / 50), Time::from_millis(40), None);
        }
        assert!((ear.playout_s - 0.041).abs() < 1e-6, "{}", ear.playout_s);
        for number in 1000..4000 {
            let delay = Time::from_millis(40 + 20 * u64::from(number % 2));
            ear.hear(&params, (number, number / 50), delay, None);
        }
        // A mean of 50 ms, four times 10 ms from it, and 1 ms.
        assert!((ear.playout_s - 0.091).abs() < 0.003, "{}", ear.playout_s);
    }
}
