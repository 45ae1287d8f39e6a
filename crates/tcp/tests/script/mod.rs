//! The language of packet scripts and its interpreter.

use std::collections::VecDeque;
use std::fmt::Write;

use aqmlab_declare::tagged::{self, Located};
use aqmlab_net::{Ecn, Time};
use aqmlab_tcp::{
    AccEcnOption, Context, Endpoint, Events, Flags, HostClock, Options, Profile, RecoveryState,
    Segment, Timestamps,
};
use toml::{Table, Value};

/// Letters of the control bits, in the order in which they are written.
const FLAGS: [(char, Flags); 7] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('A', Flags::ACK),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('N', Flags::AE),
];

/// Plays a script; an error says in which line it does not hold, and why.
pub(crate) fn play(text: &str) -> Result<(), String> {
    let mut player = Player::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            player
                .line(line)
                .map_err(|error| format!("line {number} ({line}): {error}"))?;
        }
    }
    player
        .quiet()
        .map_err(|error| format!("at the end: {error}"))
}

struct Player {
    overlay: Table,
    profile: Option<Profile>,
    host: HostClock,
    now: Time,
    end: Option<Endpoint>,
    /// What was sent and not yet looked at.
    sent: VecDeque<(Time, Segment)>,
    /// What the peer's SYN offers: flags and options.
    peer: String,
    received: u64,
    established: bool,
    eof: bool,
    failed: bool,
}

type Outcome = Result<(), String>;

impl Player {
    fn new() -> Self {
        Self {
            overlay: Table::new(),
            profile: None,
            host: HostClock::default(),
            now: Time::ZERO,
            end: None,
            sent: VecDeque::new(),
            peer: String::new(),
            received: 0,
            established: false,
            eof: false,
            failed: false,
        }
    }

    fn line(&mut self, line: &str) -> Outcome {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "profile" => {
                self.overlay.insert("profile".to_owned(), Value::from(rest));
                Ok(())
            }
            "set" => {
                let pair: Table = rest.parse().map_err(|error| format!("{error}"))?;
                self.overlay.extend(pair);
                Ok(())
            }
            "peer" => {
                self.peer = rest.to_owned();
                Ok(())
            }
            "open" => self.open(rest),
            "accept" => self.accept(rest),
            _ => self.at(word, rest),
        }
    }

    /// A line that begins with a time.
    fn at(&mut self, time: &str, rest: &str) -> Outcome {
        let time = if time == "." {
            self.now
        } else {
            seconds(time)?
        };
        if time < self.now {
            return Err("time goes back".to_owned());
        }
        self.advance(time)?;
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if word == ">" {
            return self.expect(rest);
        }
        self.quiet()?;
        match word {
            "<" => self.inject(rest),
            "connect" => self.connect(),
            "listen" => self.listen(),
            "write" => {
                let bytes = number(rest)?;
                self.act(|end, cx, out| {
                    end.write(bytes, cx, out);
                    Events::default()
                })
            }
            "write-last" => {
                let bytes = number(rest)?;
                self.act(|end, cx, out| {
                    end.write_last(bytes, cx, out);
                    Events::default()
                })
            }
            "close" => self.act(|end, cx, out| {
                end.close(cx, out);
                Events::default()
            }),
            "abort" => self.act(|end, cx, out| {
                end.abort(cx, out);
                Events::default()
            }),
            "quiet" => Ok(()),
            _ => self.check(word, rest),
        }
    }

    // ---- opening ----

    fn profile(&mut self) -> Result<Profile, String> {
        if self.profile.is_none() {
            let overlay = Value::Table(self.overlay.clone());
            let profile: Profile =
                tagged::from_value(overlay).map_err(|error: Located| error.to_string())?;
            profile.check().map_err(|error| format!("{error:?}"))?;
            self.profile = Some(profile);
        }
        self.profile.clone().ok_or_else(|| "no profile".to_owned())
    }

    fn connect(&mut self) -> Outcome {
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

    fn listen(&mut self) -> Outcome {
        self.end = Some(Endpoint::listen(&self.profile()?));
        Ok(())
    }

    /// Connects at 0; the SYN-ACK comes after a round trip.
    fn open(&mut self, rtt: &str) -> Outcome {
        self.connect()?;
        self.sent.clear();
        let (flags, options) = self.peer_says("SA");
        self.at(rtt, &format!("< {flags} 0 ack 1 {options}"))?;
        self.sent.clear();
        Ok(())
    }

    /// Listens; a SYN comes at 0, the ACK of the SYN-ACK after a round trip.
    fn accept(&mut self, rtt: &str) -> Outcome {
        self.listen()?;
        let (flags, options) = self.peer_says("S");
        self.at("0", &format!("< {flags} 0 {options}"))?;
        self.sent.clear();
        self.at(rtt, "< A 1 ack 1")
    }

    fn peer_says(&self, flags: &str) -> (String, String) {
        let (more, options) = self.peer.split_once(' ').unwrap_or((&self.peer, ""));
        match more.chars().all(|letter| letter.is_ascii_uppercase()) {
            true => (format!("{flags}{more}"), options.to_owned()),
            false => (flags.to_owned(), self.peer.clone()),
        }
    }

    // ---- time ----

    /// Lets the end point's timers fire up to `time`.
    fn advance(&mut self, time: Time) -> Outcome {
        while let Some(wake) = self.end.as_ref().map(Endpoint::wake_at)
            && wake <= time
        {
            self.now = wake.max(self.now);
            self.act(|end, cx, out| end.on_timer(cx, out))?;
        }
        self.now = time;
        Ok(())
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
        self.sent
            .extend(out.into_iter().map(|segment| (now, segment)));
    }

    // ---- segments ----

    fn inject(&mut self, words: &str) -> Outcome {
        let (mut segment, times) = parse(words)?;
        for _ in 0..times {
            self.act(|end, cx, out| end.on_segment(&segment, cx, out))?;
            segment.seq += u64::from(segment.len);
        }
        Ok(())
    }

    fn expect(&mut self, words: &str) -> Outcome {
        let (mut expected, times) = parse(words)?;
        let stamped = words.contains(" ts ");
        for _ in 0..times {
            let Some((time, found)) = self.sent.pop_front() else {
                return Err("nothing was sent".to_owned());
            };
            let shown = show(&found);
            if !stamped && let Some(stamps) = found.options.timestamps() {
                expected.options.set_timestamps(stamps);
            }
            if time != self.now {
                return Err(format!("found {shown} at {time}"));
            }
            if found != expected {
                return Err(format!("found {shown}"));
            }
            expected.seq += u64::from(expected.len);
        }
        Ok(())
    }

    /// Nothing was sent that the script has not looked at.
    fn quiet(&self) -> Outcome {
        if self.sent.is_empty() {
            return Ok(());
        }
        let mut message = "unexpected:".to_owned();
        for (time, segment) in &self.sent {
            let _ = write!(message, " {time}: {};", show(segment));
        }
        Err(message)
    }

    // ---- what the end point shows of itself ----

    fn check(&mut self, word: &str, rest: &str) -> Outcome {
        let profile = self.profile()?;
        let end = self.end.as_ref().ok_or("there is no end point yet")?;
        let probe = end.probe(&profile);
        let segments = |bytes: u64| bytes as f64 / profile.mss.0 as f64;
        let again = end.retransmissions();
        let found = match word {
            "cwnd" => segments(probe.cwnd),
            "ssthresh" => segments(probe.ssthresh),
            "inflight" => probe.in_flight as f64,
            "srtt" => probe.round_trip.map_or(f64::NAN, Time::as_secs_f64),
            "rto" => probe.timeout.as_secs_f64(),
            "timeouts" => f64::from(again.timeouts),
            "resent" => f64::from(again.data),
            "received" => self.received as f64,
            "established" => f64::from(u8::from(self.established)),
            "eof" => f64::from(u8::from(self.eof)),
            "failed" => f64::from(u8::from(self.failed)),
            "finished" => f64::from(u8::from(end.is_finished())),
            "recovering" => f64::from(u8::from(probe.recovery_state == RecoveryState::Recovery)),
            _ => return Err(format!("unknown word {word}")),
        };
        let expected: f64 = rest.parse().map_err(|_| format!("{rest} is no number"))?;
        if (found - expected).abs() < 0.0006 {
            Ok(())
        } else {
            Err(format!("{word} is {found}, not {expected}"))
        }
    }
}

fn seconds(word: &str) -> Result<Time, String> {
    let seconds: f64 = word
        .parse()
        .map_err(|_| format!("unknown word {word}, or no time"))?;
    // To the nearest nanosecond: a script's times are decimal.
    Ok(Time::from_nanos((seconds * 1e9).round() as u64))
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word:?} is no number"))
}

/// `FLAGS SEQ[+LEN] [ack N] [sack A-B,C-D] [sackok] [ts VALUE/ECHO] [accecn|accecn1 N/N/N] [ect|ect1|ce] [xTIMES]`.
fn parse(words: &str) -> Result<(Segment, u32), String> {
    let mut words = words.split_whitespace();
    let letters = words.next().unwrap_or_default();
    let mut flags = Flags::default();
    for letter in letters.chars() {
        let (_, flag) = FLAGS
            .iter()
            .find(|(known, _)| *known == letter)
            .ok_or_else(|| format!("unknown flag {letter}"))?;
        flags = flags.with(*flag);
    }
    let numbers = words.next().unwrap_or_default();
    let (seq, len) = numbers.split_once('+').unwrap_or((numbers, "0"));
    let (seq, len) = (number(seq)?, number(len)?);
    let mut segment = Segment {
        seq,
        ack: 0,
        len: len as u32,
        flags,
        ecn: Ecn::NotEct,
        options: Options::NONE,
    };
    let mut times = 1;
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .ok_or_else(|| format!("{word} lacks its value"))
        };
        match word {
            "ack" => segment.ack = number(value()?)?,
            "sackok" => segment.options.permit_sack(),
            "ect" => segment.ecn = Ecn::Ect0,
            "ect1" => segment.ecn = Ecn::Ect1,
            "ce" => segment.ecn = Ecn::Ce,
            "sack" => {
                for block in value()?.split(',') {
                    let (from, to) = block.split_once('-').ok_or("a block is FROM-TO")?;
                    segment.options.push_sack_block(number(from)?, number(to)?);
                }
            }
            "accecn" | "accecn1" => {
                let fields = value()?.split('/').map(|field| Ok(number(field)? as u32));
                let fields: Vec<u32> = fields.collect::<Result<_, String>>()?;
                let mut all = [0; 3];
                all[..fields.len()].copy_from_slice(&fields);
                let ect1_first = word == "accecn1";
                if ect1_first {
                    all.reverse();
                }
                let mut option = AccEcnOption::new(ect1_first, all);
                option.truncate(fields.len());
                segment.options.set_accecn(option);
            }
            "ts" => {
                let (value, echo) = value()?.split_once('/').ok_or("time stamps are V/E")?;
                segment.options.set_timestamps(Timestamps {
                    value: number(value)? as u32,
                    echo: number(echo)? as u32,
                    transit: None,
                });
            }
            _ => match word.strip_prefix('x') {
                Some(count) => times = number(count)? as u32,
                None => return Err(format!("unknown word {word}")),
            },
        }
    }
    Ok((segment, times))
}

pub(crate) fn show(segment: &Segment) -> String {
    let mut shown: String = FLAGS
        .iter()
        .filter(|(_, flag)| segment.flags.has(*flag))
        .map(|(letter, _)| *letter)
        .collect();
    let _ = write!(shown, " {}", segment.seq);
    if segment.len > 0 {
        let _ = write!(shown, "+{}", segment.len);
    }
    if segment.flags.has(Flags::ACK) {
        let _ = write!(shown, " ack {}", segment.ack);
    }
    if segment.options.sack_permitted() {
        shown += " sackok";
    }
    let blocks: Vec<_> = segment
        .options
        .sack_blocks()
        .map(|(from, to)| format!("{from}-{to}"))
        .collect();
    if !blocks.is_empty() {
        let _ = write!(shown, " sack {}", blocks.join(","));
    }
    if let Some(option) = segment.options.accecn() {
        let fields: Vec<_> = option.fields().iter().map(u32::to_string).collect();
        let order = if option.is_ect1_first() { "1" } else { "" };
        let _ = write!(shown, " accecn{order} {}", fields.join("/"));
    }
    if let Some(stamps) = segment.options.timestamps() {
        let _ = write!(shown, " ts {}/{}", stamps.value, stamps.echo);
    }
    match segment.ecn {
        Ecn::NotEct => {}
        Ecn::Ce => shown += " ce",
        Ecn::Ect1 => shown += " ect1",
        _ => shown += " ect",
    }
    shown
}
