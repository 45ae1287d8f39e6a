//! Viewers of streamed video who choose the bit rate of each segment (DASH).
//!
//! Buffer-based: T. Huang, R. Johari, N. McKeown, M. Trunnell, M. Watson, "A Buffer-Based Approach to
//! Rate Adaptation: Evidence from a Large Video Streaming Service", SIGCOMM 2014 (BBA-0). By
//! throughput: the harmonic mean of the last segments. BOLA: K. Spiteri, R. Urgaonkar, R. Sitaraman,
//! "BOLA: Near-Optimal Bitrate Adaptation for Online Videos", INFOCOM 2016.

use std::collections::VecDeque;
use std::ops::Range;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{RandomStream, Rate, Time};
use serde::{Deserialize, Serialize};

use crate::error::SourceError;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::quality::{Quality, Video};
use crate::rtt::Rtt;
use crate::script::{Action, Connect, Exchange, Script};
use crate::setting::{Pair, Setting};

/// Viewers of streamed video with an adaptive bit rate.
#[parameters]
pub struct AbrVideo {
    /// Number of viewers.
    #[param(least = 1)]
    pub viewers: u32,
    /// Bit rates of the encodings, in ascending order.
    #[param(default = ladder())]
    pub ladder: Vec<Rate>,
    /// Playing time of one segment.
    #[param(default = "4 s", above = Time::ZERO)]
    pub segment: Time,
    /// Coefficient of variation of segment sizes at one bit rate: log-normal, at most twice the
    /// mean.
    #[param(default = 0.25, least = 0.0)]
    pub variation: f64,
    /// Maximum playing time in the buffer. The player requests a segment when it has room.
    #[param(default = "30 s")]
    pub buffer: Time,
    /// Number of segments that the player needs to start, and to start again after a stall.
    #[param(default = 1, least = 1)]
    pub start_segments: u32,
    /// How a player chooses the bit rate of the next segment.
    #[param(default)]
    pub adaptation: Adaptation,
    /// Each viewer starts at a random time within this span.
    #[param(default = "4 s")]
    pub start_within: Time,
}

fn ladder() -> Vec<Rate> {
    let kilobits = [300, 750, 1200, 1850, 2850, 4300];
    kilobits.map(|rate| Rate::from_bps(rate * 1000)).to_vec()
}

/// How a player chooses the bit rate of the next segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Adaptation {
    /// By buffer level (BBA-0): lowest rate below 0.375 of `buffer`, highest rate above 0.9, linear
    /// between them. The rate changes when the linear value passes the next rate of the ladder.
    #[default]
    Bba,
    /// By throughput: the highest rate that is at most 0.9 of the harmonic mean over the last five
    /// segments.
    Throughput,
    /// BOLA: the segment with the best utility per bit for the present buffer, with gamma p = 5.
    Bola,
}

/// Bytes that ask for a segment.
const REQUEST: u64 = 350;
/// A player whose connection failed opens a new connection after this time.
const RETRY: Time = Time::from_secs(1);
/// BBA-0's reservoir, and the end of its cushion, as shares of the largest buffer: 90 and 216 s of
/// 240 s.
const RESERVOIR: f64 = 0.375;
const CUSHION_END: f64 = 0.9;
/// Segments behind an estimate of the throughput, and how much of it is used.
const ESTIMATED: usize = 5;
const USED: f64 = 0.9;
/// BOLA's weight of playing without stalls.
const GAMMA_P: f64 = 5.0;

impl Parameters for AbrVideo {
    const ABOUT: About = About {
        title: "Streamed video with an adaptive bit rate",
        paper: "T. Huang et al., A Buffer-Based Approach to Rate Adaptation, SIGCOMM 2014; K. \
                Spiteri et al., BOLA, INFOCOM 2016; ladder: H. Mao et al., Pensieve, SIGCOMM 2017",
        purpose: "Closed loop: viewers fetch segments over one connection each, at a bit rate \
                  chosen by buffer or throughput. Results: stalled time and mean bit rate.",
        departures: &[
            "Reservoir and cushion of BBA-0 scale with `buffer`.",
            "Viewers watch until the end of the run.",
        ],
        memory: "one entry for each viewer and for each segment in the measured span",
    };

    fn check_together(&self) -> Result<(), Problem> {
        if self.ladder.is_empty() || !self.ladder.is_sorted() || self.ladder[0].bps() == 0 {
            let found: Vec<_> = self.ladder.iter().map(Rate::to_string).collect();
            let message = format!("found [{}]; rates above 0 must ascend", found.join(", "));
            return problem("ladder", message);
        }
        let segments = self.segment.as_secs_f64() * f64::from(self.start_segments.max(2));
        if self.buffer.as_secs_f64() < segments {
            let message = format!(
                "found {}; it must hold two segments, and start_segments of them: {segments} s",
                self.buffer
            );
            return problem("buffer", message);
        }
        Ok(())
    }
}

impl ModelParameters for AbrVideo {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "abr-video"
viewers = 3
rtt = { kind = "constant", rtt = "40 ms" }
"#
    }

    population!(viewers in "viewers", ClosedLoop);

    fn is_endless(&self) -> bool {
        true
    }

    fn is_adaptive(&self) -> bool {
        true
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let viewer = |token| Viewer {
            token,
            pair: setting.pair(token, self.viewers),
            draws: setting.stream("segments", token),
            rtts: setting.stream("rtts", token),
            is_connected: false,
            buffer_s: 0.0,
            is_playing: false,
            began: Time::ZERO,
            has_started: false,
            at: Time::ZERO,
            asked: None,
            rung: 0,
            rates: VecDeque::new(),
        };
        Ok(Box::new(AbrVideoSource {
            viewers: (0..self.viewers).map(viewer).collect(),
            params: self.clone(),
            rtt: setting.rtt.clone(),
            span: Time::NEVER..Time::NEVER,
            video: Video::default(),
        }))
    }
}

/// All viewers of a class; a viewer's token is its number.
#[derive(Clone, Debug)]
struct AbrVideoSource {
    viewers: Vec<Viewer>,
    params: AbrVideo,
    rtt: Rtt,
    span: Range<Time>,
    video: Video,
}

#[derive(Clone, Debug)]
struct Viewer {
    token: u32,
    pair: Pair,
    draws: RandomStream,
    rtts: RandomStream,
    is_connected: bool,
    /// Seconds that can be played.
    buffer_s: f64,
    is_playing: bool,
    /// When the first segment was asked for.
    began: Time,
    /// Something has been played.
    has_started: bool,
    /// Up to when playing and standing still are counted.
    at: Time,
    /// When the segment under way was asked for, and its bytes.
    asked: Option<(Time, u64)>,
    /// Number of its bit rate.
    rung: usize,
    /// Throughputs of the last segments in bits per second.
    rates: VecDeque<f64>,
}

/// How many of these seconds lie in the span.
fn measured(span: &Range<Time>, from_s: f64, to_s: f64) -> f64 {
    let [start, end] = [span.start, span.end].map(Time::as_secs_f64);
    (to_s.min(end) - from_s.max(start)).max(0.0)
}

impl Viewer {
    /// Plays, or stands still, up to `now`.
    fn advance(&mut self, now: Time, span: &Range<Time>, video: &mut Video) {
        let [from, to] = [self.at, now].map(Time::as_secs_f64);
        self.at = now;
        let mut still_from = from;
        if self.is_playing {
            let played = self.buffer_s.min(to - from);
            video.played_s += measured(span, from, from + played);
            self.buffer_s -= played;
            still_from = from + played;
            // Less than that is the rounding of the time.
            if to - still_from > 1e-9 {
                self.is_playing = false;
                let begins = Time::from_secs_f64(still_from);
                video.stalls += u64::from(span.contains(&begins));
            }
        }
        if self.has_started && !self.is_playing {
            video.stalled_s += measured(span, still_from, to);
        }
    }

    /// The bit rate of the next segment.
    fn choose(&self, params: &AbrVideo) -> usize {
        let ladder: Vec<f64> = params.ladder.iter().map(|rate| rate.bps() as f64).collect();
        let top = ladder.len() - 1;
        match params.adaptation {
            Adaptation::Bba => {
                let full = params.buffer.as_secs_f64();
                let [low, high] = [RESERVOIR * full, CUSHION_END * full];
                let share = ((self.buffer_s - low) / (high - low)).clamp(0.0, 1.0);
                let map = ladder[0] + share * (ladder[top] - ladder[0]);
                let [above, below] = [(self.rung + 1).min(top), self.rung.saturating_sub(1)];
                if share <= 0.0 {
                    0
                } else if share >= 1.0 {
                    top
                } else if map >= ladder[above] {
                    ladder.iter().rposition(|&rate| rate < map).unwrap_or(0)
                } else if map <= ladder[below] {
                    ladder.iter().position(|&rate| rate > map).unwrap_or(top)
                } else {
                    self.rung
                }
            }
            Adaptation::Throughput => {
                let inverse: f64 = self.rates.iter().map(|rate| 1.0 / rate).sum();
                let mean = self.rates.len() as f64 / inverse;
                let fits = ladder.iter().rposition(|&rate| rate <= USED * mean);
                fits.unwrap_or(0)
            }
            Adaptation::Bola => {
                let segment = params.segment.as_secs_f64();
                let utility = |rate: f64| libm::log(rate / ladder[0]);
                let most = params.buffer.as_secs_f64() / segment;
                let weight = (most - 1.0) / (utility(ladder[top]) + GAMMA_P);
                let waiting = self.buffer_s / segment;
                let score = |rate: f64| (weight * (utility(rate) + GAMMA_P) - waiting) / rate;
                let scored = ladder.iter().map(|&rate| score(rate)).enumerate();
                let best = scored.max_by(|one, two| one.1.total_cmp(&two.1));
                best.map_or(0, |(rung, _)| rung)
            }
        }
    }

    /// Asks for a segment now.
    fn ask(&mut self, now: Time, source: (&AbrVideo, &Rtt), actions: &mut Vec<Action>) {
        let (params, rtt) = source;
        let bits = params.ladder[self.rung].bps() as f64 * params.segment.as_secs_f64();
        // Log-normal with mean 1.
        let variance = libm::log(1.0 + params.variation * params.variation);
        let factor = libm::exp(variance.sqrt() * self.draws.normal() - variance / 2.0);
        let bytes = (bits / 8.0 * factor.min(2.0)).ceil() as u64;
        self.asked = Some((now, bytes));
        let exchange = Exchange::new(REQUEST, bytes);
        let token = self.token;
        if self.is_connected {
            actions.push(Action::Ask { token, exchange });
            return;
        }
        self.is_connected = true;
        actions.push(Action::Connect(Connect {
            token,
            client: self.pair.client,
            server: self.pair.server,
            rtt: rtt.sample(self.pair, &mut self.rtts),
            flipped: self.pair.flipped,
            script: Script::Open(vec![exchange]),
            limits: None,
            begins_with_tls: false,
        }));
    }
}

impl ModelSource for AbrVideoSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        let within = self.params.start_within.as_secs_f64();
        for viewer in &mut self.viewers {
            let at = Time::from_secs_f64(viewer.draws.uniform() * within);
            let token = viewer.token;
            viewer.began = Time::NEVER;
            actions.push(Action::WakeAt { at, token });
        }
    }

    /// There is room for the next segment, or it is time to try again.
    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let viewer = &mut self.viewers[token as usize];
        if viewer.asked.is_some() {
            return;
        }
        if viewer.began == Time::NEVER {
            (viewer.began, viewer.at) = (now, now);
        }
        viewer.advance(now, &self.span, &mut self.video);
        viewer.ask(now, (&self.params, &self.rtt), actions);
    }

    fn listens(&self) -> bool {
        true
    }

    /// A segment is there.
    fn on_answered(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let Self {
            params,
            span,
            video,
            rtt,
            ..
        } = self;
        let viewer = &mut self.viewers[token as usize];
        let Some((asked_at, bytes)) = viewer.asked.take() else {
            return;
        };
        viewer.advance(now, span, video);
        let segment = params.segment.as_secs_f64();
        viewer.buffer_s += segment;
        if !viewer.is_playing && viewer.buffer_s >= segment * f64::from(params.start_segments) {
            viewer.is_playing = true;
            if !viewer.has_started && span.contains(&now) {
                video.startup_delays.add_time(now - viewer.began);
            }
            viewer.has_started = true;
        }
        let seconds = (now - asked_at).as_secs_f64().max(1e-9);
        if viewer.rates.len() == ESTIMATED {
            viewer.rates.pop_front();
        }
        viewer.rates.push_back(bytes as f64 * 8.0 / seconds);
        if span.contains(&now) {
            video.bitrates.add(params.ladder[viewer.rung].bps() as f64);
        }
        let chosen = viewer.choose(params);
        let before = std::mem::replace(&mut viewer.rung, chosen);
        video.switches += u64::from(viewer.rung != before && span.contains(&now));
        // While it plays, room comes at the pace of time.
        let room = params.buffer.as_secs_f64() - segment;
        let wait = viewer.buffer_s - room;
        if wait > 0.0 {
            let at = now.saturating_add(Time::from_secs_f64(wait));
            actions.push(Action::WakeAt { at, token });
        } else {
            viewer.ask(now, (params, rtt), actions);
        }
    }

    /// The connection failed.
    fn on_finished(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let viewer = &mut self.viewers[token as usize];
        (viewer.is_connected, viewer.asked) = (false, None);
        let at = now.saturating_add(RETRY);
        actions.push(Action::WakeAt { at, token });
    }

    fn measure(&mut self, span: &Range<Time>) {
        self.span = span.clone();
    }

    fn quality(&self, now: Time, stop: Time) -> Option<Quality> {
        let end = now.min(stop);
        let mut video = self.video.clone();
        // A viewer who is looked at goes on as if nobody had looked.
        for viewer in &self.viewers {
            if viewer.began != Time::NEVER && viewer.at < end {
                viewer.clone().advance(end, &self.span, &mut video);
            }
        }
        Some(Quality {
            video,
            ..Quality::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> AbrVideo {
        toml::from_str(&format!("viewers = 1\n{text}")).expect("a table")
    }

    fn viewer(rung: usize, buffer_s: f64) -> Viewer {
        Viewer {
            token: 0,
            pair: Pair {
                client: 0,
                server: 0,
                flipped: false,
                rank: crate::rtt::Rank::Arrival(0),
            },
            draws: RandomStream::new(1, "t", 0),
            rtts: RandomStream::new(1, "t", 1),
            is_connected: false,
            buffer_s,
            is_playing: false,
            began: Time::ZERO,
            has_started: false,
            at: Time::ZERO,
            asked: None,
            rung,
            rates: VecDeque::new(),
        }
    }

    /// 240 s: a reservoir of 90 s, the top from 216 s on, linear from 300 to 4300 kbit/s.
    #[test]
    fn bba_0_keeps_its_rate_until_the_map_passes_the_next() {
        let params = params("buffer = '240 s'");
        let at = |rung, buffer_s| viewer(rung, buffer_s).choose(&params);
        assert_eq!(at(3, 90.0), 0);
        assert_eq!(at(0, 216.0), 5);
        // The map is 1000 kbit/s.
        let buffer_s = 90.0 + 126.0 * 0.175;
        assert_eq!([0, 1, 2].map(|rung| at(rung, buffer_s)), [1, 1, 2]);
        // Down from 1850: 1200 is not passed; from 2850 the lowest above the map.
        assert_eq!([3, 4].map(|rung| at(rung, buffer_s)), [2, 2]);
    }

    #[test]
    fn throughput_is_a_harmonic_mean() {
        let params = params("adaptation = 'throughput'");
        let mut viewer = viewer(0, 10.0);
        viewer.rates = VecDeque::from([1e6, 4e6]);
        // 1.6 Mbit/s; 0.9 of it.
        assert_eq!(viewer.choose(&params), 2);
    }

    #[test]
    fn bola_takes_the_lowest_rate_of_an_empty_buffer_and_the_highest_of_a_full_one() {
        let params = params("adaptation = 'bola'");
        assert_eq!(viewer(3, 0.0).choose(&params), 0);
        assert_eq!(viewer(0, 26.0).choose(&params), 5);
        let rungs: Vec<_> = (0..8)
            .map(|n| viewer(0, 4.0 * f64::from(n)).choose(&params))
            .collect();
        assert!(rungs.is_sorted(), "{rungs:?}");
    }

    #[test]
    fn an_empty_buffer_is_a_stall() {
        let s = Time::from_secs;
        let (span, mut video) = (s(10)..s(100), Video::default());
        let mut viewer = viewer(0, 12.0);
        viewer.is_playing = true;
        viewer.has_started = true;
        // Played until 12, empty until 15; from 10 on counts.
        viewer.advance(s(15), &span, &mut video);
        assert_eq!(
            (video.played_s, video.stalled_s, video.stalls),
            (2.0, 3.0, 1)
        );
        viewer.advance(s(16), &span, &mut video);
        assert_eq!(
            (video.played_s, video.stalled_s, video.stalls),
            (2.0, 4.0, 1)
        );
    }
}
