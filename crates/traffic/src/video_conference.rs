//! Interactive video: frames whose rate follows the path, by Google congestion control.

use std::collections::VecDeque;
use std::ops::Range;

use aqmlab_declare::check::{Problem, problem};
use aqmlab_declare::{About, Parameters, parameters};
use aqmlab_net::{RandomStream, Rate, Time};

use crate::datagrams;
use crate::error::SourceError;
use crate::gcc::{Detector, RateControl, by_loss};
use crate::model::Received;
use crate::model::{ModelParameters, ModelSource, OpenFile, population};
use crate::quality::Quality;
use crate::script::{Action, OpenDatagrams};
use crate::setting::Setting;

/// Streams of interactive video from servers to clients, with feedback in the other direction.
#[parameters]
pub struct VideoConference {
    /// Number of streams. With `direction = "both"` half of them go each way.
    #[param(least = 1)]
    pub streams: u32,
    /// Frames per second.
    #[param(default = 30.0, least = 1.0, most = 240.0)]
    pub frame_rate: f64,
    /// Initial bit rate of a stream.
    #[param(default = Rate::from_bps(300_000))]
    pub start_rate: Rate,
    /// Minimum bit rate.
    #[param(default = Rate::from_bps(50_000))]
    pub min_rate: Rate,
    /// Maximum bit rate.
    #[param(default = Rate::from_bps(2_500_000))]
    pub max_rate: Rate,
    /// Each stream starts at a random time within this span.
    #[param(default = "1 s")]
    pub start_within: Time,
}

/// Most bytes of video in a packet, and bytes of the headers of IP, UDP and RTP.
const PAYLOAD: u32 = 1200;
const HEADERS: u32 = 40;
/// Bytes of a report with its headers, and the time from one to the next.
const REPORT_BYTES: u32 = 80;
const REPORT_GAP: Time = Time::from_millis(100);
/// The packets of a frame leave at so many times the rate.
const PACING: f64 = 2.5;
/// A key frame comes each so many seconds and is so many times as large.
const KEY_FRAME_S: f64 = 10.0;
const KEY_FRAME: f64 = 4.0;
/// Standard deviation of the sizes of frames.
const VARIATION: f64 = 0.15;
/// Losses let the rate grow once in this time.
const GROWTH_GAP: Time = Time::from_secs(1);
/// The picture is frozen between two complete frames that come later than 3 frame times, and than a
/// frame time and this.
const FREEZE_S: f64 = 0.150;

impl Parameters for VideoConference {
    const ABOUT: About = About {
        title: "Interactive video",
        paper: "S. Holmer et al., A Google Congestion Control Algorithm for Real-Time \
                Communication, draft-ietf-rmcat-gcc-02, 2016",
        purpose: "Video frames over RTP at a bit rate that follows reported delay and loss. \
                  Results: frame delay, freezes and bit rate.",
        departures: &[
            "Lost packets are not repaired. A frame without all its packets is not shown.",
        ],
        memory: "one entry for each stream, for each packet in flight and for each frame in the \
                 measured span",
    };

    fn check_together(&self) -> Result<(), Problem> {
        if self.min_rate.bps() == 0 {
            return problem("min_rate", "found 0 bit/s; a rate must be above 0");
        }
        for (field, rate) in [("start_rate", self.start_rate), ("max_rate", self.max_rate)] {
            if rate < self.min_rate {
                let message = format!(
                    "found {rate}; it must not be below min_rate, {}",
                    self.min_rate
                );
                return problem(field, message);
            }
        }
        if self.start_rate > self.max_rate {
            let (found, most) = (self.start_rate, self.max_rate);
            let message = format!("found {found}; it must not be above max_rate, {most}");
            return problem("start_rate", message);
        }
        Ok(())
    }
}

impl ModelParameters for VideoConference {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "video-conference"
streams = 2
direction = "both"
rtt = { kind = "constant", rtt = "40 ms" }
"#
    }

    population!(streams in "streams", Fixed);

    fn packets_per_s(&self) -> f64 {
        let packets = self.max_rate.bps() as f64 / 8.0 / f64::from(PAYLOAD);
        f64::from(self.streams) * packets.max(self.frame_rate)
    }

    fn is_adaptive(&self) -> bool {
        true
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        let rate = self.start_rate.bps() as f64;
        let stream = |number| {
            let mut draws = setting.stream("frames", number);
            let place = (number, self.streams);
            let (open, start) = datagrams::flow(setting, place, self.start_within, &mut draws);
            Stream {
                open: OpenDatagrams {
                    token: FLOWS * number,
                    ..open
                },
                start,
                draws,
                rate,
                by_loss: rate,
                grown: Time::ZERO,
                to_next_key_s: 0.0,
                frames: VecDeque::new(),
                first_frame: 0,
                waiting: VecDeque::new(),
                sent: VecDeque::new(),
                first_sent: 0,
                reports: VecDeque::new(),
                first_report: 0,
                receiver: Receiver::new(rate),
            }
        };
        Ok(Box::new(VideoConferenceSource {
            streams: (0..self.streams).map(stream).collect(),
            params: self.clone(),
            span: Time::NEVER..Time::NEVER,
            quality: Quality {
                streams: self.streams,
                ..Quality::default()
            },
        }))
    }
}

/// Flows of a stream: video, reports.
const FLOWS: u32 = 2;
/// Timers of a stream: the next frame, the next packet, the next report.
const TIMERS: u32 = 3;

#[derive(Clone, Debug)]
struct VideoConferenceSource {
    streams: Vec<Stream>,
    params: VideoConference,
    span: Range<Time>,
    quality: Quality,
}

#[derive(Clone, Debug)]
struct Stream {
    open: OpenDatagrams,
    start: Time,
    draws: RandomStream,
    /// Bits per second: what is sent at, and what losses allow.
    rate: f64,
    by_loss: f64,
    /// When that grew last.
    grown: Time,
    to_next_key_s: f64,
    /// Frames that may still be completed, from number `first_frame` on.
    frames: VecDeque<Frame>,
    first_frame: u32,
    /// Packets that wait for their turn: frame and size.
    waiting: VecDeque<(u32, u32)>,
    /// Frame and size of the packets on their way, from number `first_sent` on.
    sent: VecDeque<(u32, u32)>,
    first_sent: u32,
    /// Reports on their way, from number `first_report` on.
    reports: VecDeque<Report>,
    first_report: u32,
    receiver: Receiver,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    captured: Time,
    packets: u32,
    bits: f64,
}

/// What a receiver tells the sender.
#[derive(Clone, Copy, Debug)]
struct Report {
    /// Bits per second that the delay allows.
    rate: f64,
    /// Share of the packets that did not come.
    lost: f64,
}

#[derive(Clone, Debug)]
struct Receiver {
    detector: Detector,
    control: RateControl,
    /// Seconds that a packet took last.
    delay_s: f64,
    /// Packets that came since the last report; numbers behind the last that had come by then, and
    /// behind the last that has come.
    came: u32,
    reported: u32,
    next: u32,
    /// When the last frame was complete.
    shown: Option<Time>,
}

impl Receiver {
    fn new(rate: f64) -> Self {
        Self {
            detector: Detector::default(),
            control: RateControl::new(rate),
            delay_s: 0.0,
            came: 0,
            reported: 0,
            next: 0,
            shown: None,
        }
    }
}

impl Stream {
    /// The camera has a frame.
    fn capture(&mut self, now: Time, params: &VideoConference) {
        let mean = self.rate / params.frame_rate;
        let mut factor = (1.0 + VARIATION * self.draws.normal()).max(0.2);
        if self.to_next_key_s <= 0.0 {
            self.to_next_key_s += KEY_FRAME_S;
            factor *= KEY_FRAME;
        }
        self.to_next_key_s -= 1.0 / params.frame_rate;
        let mut bytes = (mean * factor / 8.0).ceil().max(1.0) as u32;
        let number = self.first_frame + self.frames.len() as u32;
        self.frames.push_back(Frame {
            captured: now,
            packets: bytes.div_ceil(PAYLOAD),
            bits: f64::from(bytes) * 8.0,
        });
        while bytes > 0 {
            let part = bytes.min(PAYLOAD);
            self.waiting.push_back((number, part + HEADERS));
            bytes -= part;
        }
    }

    /// Sends the next packet; how long until the one after it, if one waits.
    fn send(&mut self, actions: &mut Vec<Action>) -> Option<Time> {
        let (frame, size) = self.waiting.pop_front()?;
        self.sent.push_back((frame, size));
        let token = self.open.token;
        actions.push(Action::Datagram { token, size });
        let gap = f64::from(size) * 8.0 / (PACING * self.rate);
        (!self.waiting.is_empty()).then(|| Time::from_secs_f64(gap))
    }

    /// The receiver says what it knows.
    fn report(&mut self, now: Time, actions: &mut Vec<Action>) {
        let receiver = &mut self.receiver;
        let sent = receiver.next - receiver.reported;
        let lost = 1.0 - f64::from(receiver.came.min(sent)) / f64::from(sent.max(1));
        let lost = if sent == 0 { 0.0 } else { lost };
        let response_s = 2.0 * receiver.delay_s + 0.1;
        let usage = receiver.detector.usage();
        let elapsed = REPORT_GAP.as_secs_f64();
        let packet = f64::from(PAYLOAD) * 8.0;
        let control = &mut receiver.control;
        let rate = control.update(now, elapsed, usage, response_s, packet);
        (receiver.came, receiver.reported) = (0, receiver.next);
        self.reports.push_back(Report { rate, lost });
        actions.push(Action::Datagram {
            token: self.open.token + 1,
            size: REPORT_BYTES,
        });
    }

    /// The sender hears of the receiver.
    fn hear(&mut self, number: u32, now: Time, params: &VideoConference) {
        let place = number.wrapping_sub(self.first_report) as usize;
        let Some(&report) = self.reports.get(place) else {
            return;
        };
        self.reports.drain(..=place);
        self.first_report = number + 1;
        let grows = report.lost < 0.02;
        if !grows || now - self.grown >= GROWTH_GAP {
            self.by_loss = by_loss(self.by_loss, report.lost);
            if grows {
                self.grown = now;
            }
        }
        let [least, most] = [params.min_rate, params.max_rate].map(|rate| rate.bps() as f64);
        self.by_loss = self.by_loss.clamp(least, most);
        self.rate = self.by_loss.min(report.rate).clamp(least, most);
    }

    /// A packet of video arrives. The frame, if it is complete with it.
    fn receive(&mut self, datagram: &Received, now: Time) -> Option<Frame> {
        let number = datagram.number;
        let place = number.wrapping_sub(self.first_sent) as usize;
        let &(frame, size) = self.sent.get(place)?;
        // What was sent long before will not come any more; some packets may be overtaken.
        if place > 1000 {
            self.sent.drain(..500);
            self.first_sent += 500;
        }
        let receiver = &mut self.receiver;
        receiver.came += 1;
        receiver.next = receiver.next.max(number + 1);
        receiver.delay_s = datagram.delay.as_secs_f64();
        receiver.control.on_packet(now, f64::from(size) * 8.0);
        receiver.detector.on_packet(now - datagram.delay, now);
        let place = frame.checked_sub(self.first_frame)? as usize;
        let found = self.frames.get_mut(place)?;
        found.packets -= 1;
        let found = *found;
        (found.packets == 0).then(|| {
            // A frame before it is not shown any more.
            self.frames.drain(..=place);
            self.first_frame = frame + 1;
            found
        })
    }
}

impl VideoConferenceSource {
    fn show(&mut self, stream: usize, frame: &Frame, now: Time) {
        let shown = self.streams[stream].receiver.shown.replace(now);
        if !self.span.contains(&now) {
            return;
        }
        self.quality.frame_delays.add_time(now - frame.captured);
        self.quality.frame_bits += frame.bits;
        let Some(shown) = shown else {
            return;
        };
        let gap = (now - shown.max(self.span.start)).as_secs_f64();
        let frame_s = 1.0 / self.params.frame_rate;
        self.quality.watched_s += gap;
        if gap > (3.0 * frame_s).max(frame_s + FREEZE_S) {
            self.quality.frozen_s += gap;
        }
    }
}

impl ModelSource for VideoConferenceSource {
    fn start(&mut self, actions: &mut Vec<Action>) {
        for (stream, number) in self.streams.iter().zip(0..) {
            actions.push(Action::OpenDatagrams(stream.open.clone()));
            let back = datagrams::back(&stream.open, stream.open.token + 1);
            actions.push(Action::OpenDatagrams(back));
            let (at, token) = (stream.start, TIMERS * number);
            actions.push(Action::WakeAt { at, token });
        }
    }

    fn on_wake(&mut self, now: Time, token: u32, actions: &mut Vec<Action>) {
        let stream = &mut self.streams[(token / TIMERS) as usize];
        let mut wake = |at, token| actions.push(Action::WakeAt { at, token });
        match token % TIMERS {
            0 => {
                if stream.first_frame == 0 && stream.frames.is_empty() {
                    wake(now + REPORT_GAP, token + 2);
                }
                let idle = stream.waiting.is_empty();
                stream.capture(now, &self.params);
                self.quality.frames += u64::from(self.span.contains(&now));
                let gap = Time::from_secs_f64(1.0 / self.params.frame_rate);
                wake(now + gap, token);
                if idle {
                    wake(now, token + 1);
                }
            }
            1 => {
                if let Some(gap) = stream.send(actions) {
                    let at = now + gap;
                    actions.push(Action::WakeAt { at, token });
                }
            }
            _ => {
                stream.report(now, actions);
                let at = now + REPORT_GAP;
                actions.push(Action::WakeAt { at, token });
            }
        }
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_datagram(&mut self, now: Time, datagram: &Received, _actions: &mut Vec<Action>) {
        let number = (datagram.token / FLOWS) as usize;
        let stream = &mut self.streams[number];
        if datagram.token % FLOWS == 1 {
            stream.hear(datagram.number, now, &self.params);
        } else if let Some(frame) = stream.receive(datagram, now) {
            self.show(number, &frame, now);
        }
    }

    fn measure(&mut self, span: &Range<Time>) {
        self.span = span.clone();
    }

    fn quality(&self, _now: Time, _stop: Time) -> Option<Quality> {
        Some(self.quality.clone())
    }
}
