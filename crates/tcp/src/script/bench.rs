//! An end point alone on a bench: what it is sent, what it sends, what it shows.

use std::collections::VecDeque;

use aqmlab_declare::tagged::{self, Located};
use aqmlab_net::Time;
use toml::{Table, Value};

use super::words;
use crate::context::Context;
use crate::counters::Counters;
use crate::endpoint::{Endpoint, Events};
use crate::profile::Profile;
use crate::recovery::RecoveryState;
use crate::rto::HostClock;
use crate::segment::{Flags, Segment};

/// The most timers that fire in one stretch of time: more of them would never end.
const MOST_TIMERS: u32 = 1_000_000;
/// The most bytes that a connection carries here: sequence numbers do not wrap.
const MOST_BYTES: u64 = 1 << 31;

/// An end point alone, its stack and its time.
#[derive(Debug, Default)]
pub struct Bench {
    overlay: Table,
    profile: Option<Profile>,
    host: HostClock,
    now: Time,
    end: Option<Endpoint>,
    /// What was sent and not yet looked at.
    pub(super) sent: VecDeque<(Time, Segment)>,
    /// Segments sent once at least, and behind the last of them.
    segments: u64,
    highest: u64,
    written: u64,
    duplicates: u64,
    received: u64,
    established: bool,
    eof: bool,
    failed: bool,
}

type Outcome = Result<(), String>;

impl Bench {
    /// Replaces values of the stack, in TOML. An end point that is there goes on with another `nagle`.
    ///
    /// # Errors
    ///
    /// There are no such values, or an end point is there that has others.
    pub fn set(&mut self, settings: &str) -> Outcome {
        let pairs: Table = settings.parse().map_err(|error: toml::de::Error| {
            let message = error.message().lines().collect::<Vec<_>>().join(" ");
            format!("found {settings:?}; expected KEY = VALUE ({message})")
        })?;
        let kept = pairs.keys().find(|key| *key != "nagle");
        if let (Some(key), Some(_)) = (kept, &self.end) {
            return Err(format!(
                "found {key} behind connect or listen; expected it before"
            ));
        }
        self.overlay.extend(pairs);
        self.profile = None;
        Ok(())
    }

    pub(super) fn name_profile(&mut self, name: &str) -> Outcome {
        if self.end.is_some() {
            return Err("found profile behind connect or listen; expected it before".to_owned());
        }
        self.overlay.insert("profile".to_owned(), Value::from(name));
        self.profile = None;
        Ok(())
    }

    /// The stack.
    ///
    /// # Errors
    ///
    /// Its values are none.
    pub fn profile(&mut self) -> Result<Profile, String> {
        if self.profile.is_none() {
            let overlay = Value::Table(self.overlay.clone());
            let profile: Profile =
                tagged::from_value(overlay).map_err(|error: Located| error.to_string())?;
            profile.check().map_err(|error| format!("{error:?}"))?;
            self.profile = Some(profile);
        }
        self.profile.clone().ok_or_else(|| "no profile".to_owned())
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the next timer fires; none: no timer runs.
    pub fn wake_at(&self) -> Option<Time> {
        let wake = self.end.as_ref().map(Endpoint::wake_at);
        wake.filter(|&wake| wake < Time::NEVER)
    }

    /// Lets the end point's timers fire up to `time`.
    ///
    /// # Errors
    ///
    /// Time goes back, or timers fire without end.
    pub fn advance(&mut self, time: Time) -> Outcome {
        if time < self.now {
            return Err("time goes back".to_owned());
        }
        for _ in 0..MOST_TIMERS {
            let Some(wake) = self.wake_at().filter(|&wake| wake <= time) else {
                self.now = time;
                return Ok(());
            };
            self.now = wake.max(self.now);
            self.act(|end, cx, out| end.on_timer(cx, out))?;
        }
        Err(format!(
            "found {MOST_TIMERS} timers up to this time; expected fewer"
        ))
    }

    /// The application does something: `connect`, `listen`, `close`, `abort`, or `write` and `write-last` with
    /// a number of bytes.
    ///
    /// # Errors
    ///
    /// It knows no such thing, or has no end point yet.
    pub fn perform(&mut self, word: &str, bytes: u64) -> Outcome {
        if word.starts_with("write") {
            self.written = self.written.saturating_add(bytes);
            if self.written > MOST_BYTES {
                return Err(format!(
                    "found {bytes} bytes; expected less than 2 GiB in all"
                ));
            }
        }
        if matches!(word, "connect" | "listen") && self.end.is_some() {
            return Err(format!("found a second {word}; expected one"));
        }
        match word {
            "connect" => {
                let profile = self.profile()?;
                let mut out = Vec::new();
                let cx = Context {
                    now: self.now,
                    profile: &profile,
                    host: &self.host,
                };
                self.end = Some(Endpoint::connect(cx, &mut out));
                self.note(out);
                Ok(())
            }
            "listen" => {
                self.end = Some(Endpoint::listen(&self.profile()?));
                Ok(())
            }
            "write" => self.act(|end, cx, out| {
                end.write(bytes, cx, out);
                Events::default()
            }),
            "write-last" => self.act(|end, cx, out| {
                end.write_last(bytes, cx, out);
                Events::default()
            }),
            "close" => self.act(|end, cx, out| {
                end.close(cx, out);
                Events::default()
            }),
            "abort" => self.act(|end, cx, out| {
                end.abort(cx, out);
                Events::default()
            }),
            _ => Err(format!("unknown word {word}")),
        }
    }

    fn act(
        &mut self,
        what: impl FnOnce(&mut Endpoint, Context<'_>, &mut Vec<Segment>) -> Events,
    ) -> Outcome {
        let profile = self.profile()?;
        let cx = Context {
            now: self.now,
            profile: &profile,
            host: &self.host,
        };
        let mut out = Vec::new();
        let end = self.end.as_mut().ok_or("there is no end point yet")?;
        let events = what(end, cx, &mut out);
        self.received += events.received;
        self.established |= events.established;
        self.eof |= events.eof;
        self.failed |= events.failed;
        self.note(out);
        Ok(())
    }

    fn note(&mut self, out: Vec<Segment>) {
        let now = self.now;
        for segment in &out {
            let fin = u64::from(segment.flags.has(Flags::FIN));
            let behind = segment.seq + u64::from(segment.len) + fin;
            if behind > segment.seq && behind > self.highest {
                self.segments += 1;
                self.highest = behind;
            }
        }
        self.sent
            .extend(out.into_iter().map(|segment| (now, segment)));
    }

    /// What was sent since the last look, in the words of scripts.
    pub fn take_sent(&mut self) -> Vec<(Time, String)> {
        let sent = self.sent.drain(..);
        sent.map(|(time, segment)| (time, words::show(&segment)))
            .collect()
    }

    /// A segment arrives, in the words of scripts.
    ///
    /// # Errors
    ///
    /// It is none, or there is no end point yet.
    pub fn inject(&mut self, text: &str) -> Outcome {
        let (mut segment, times) = words::parse(text)?;
        let end = self.end.as_ref().ok_or("there is no end point yet")?;
        segment.seq = Segment::unwrap_seq(segment.seq as u32, end.next_expected());
        segment.ack = Segment::unwrap_seq(segment.ack as u32, end.oldest_unacknowledged());
        for _ in 0..times {
            self.act(|end, cx, out| end.on_segment(&segment, cx, out))?;
            if segment.options.sack_blocks().len() > 0 {
                self.duplicates += self.counters().map_or(0, |counters| counters.duplicates);
            }
            segment.seq = segment.seq.wrapping_add(segment.len.into());
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        self.end.as_ref()?.counters()
    }

    /// What the end point shows of itself; none: it shows nothing by that name.
    ///
    /// # Errors
    ///
    /// There is no end point yet.
    pub fn show(&mut self, word: &str) -> Result<Option<f64>, String> {
        let profile = self.profile()?;
        let end = self.end.as_ref().ok_or("there is no end point yet")?;
        let probe = end.probe(&profile);
        let segments = |bytes: u64| bytes as f64 / profile.mss.0 as f64;
        let flag = |is: bool| f64::from(u8::from(is));
        let again = end.retransmissions();
        let counters = end.counters();
        let of = |what: fn(&Counters) -> u64| counters.as_ref().map(|all| what(all) as f64);
        Ok(Some(match word {
            "cwnd" => segments(probe.cwnd),
            "ssthresh" => segments(probe.ssthresh),
            "inflight" => probe.in_flight as f64,
            "unsent" => end.unsent() as f64,
            "srtt" => probe.round_trip.map_or(f64::NAN, Time::as_secs_f64),
            "rto" => probe.timeout.as_secs_f64(),
            "timeouts" => f64::from(again.timeouts),
            "resent" => f64::from(again.data),
            "resent-in-all" => f64::from(again.data) + f64::from(again.syn),
            "received" => self.received as f64,
            "established" => flag(self.established),
            "eof" => flag(self.eof),
            "failed" => flag(self.failed),
            "finished" => flag(end.is_finished()),
            "recovering" => flag(probe.recovery_state == RecoveryState::Recovery),
            "going-back" => flag(probe.recovery_state == RecoveryState::Loss),
            "mss" => profile.mss.0 as f64,
            "unacked" => return Ok(of(|all| all.unacked)),
            "sacked" => return Ok(of(|all| all.sacked)),
            "lost" => return Ok(of(|all| all.lost)),
            "retrans" => return Ok(of(|all| all.retrans)),
            "reducing" => return Ok(of(|all| all.reducing.into())),
            "delivered" => {
                // Linux counts the SYN, and what has arrived twice.
                let mine = 1 + self.segments + self.duplicates;
                return Ok(counters.map(|all| (mine + all.sacked - all.unacked) as f64));
            }
            "marks" => {
                let marks = counters.and_then(|all| all.marks);
                return Ok(marks.map(|marks| marks as f64));
            }
            _ => return Ok(None),
        }))
    }
}
