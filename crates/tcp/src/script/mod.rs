//! Packet scripts: one end point, what it is sent and when, and what it must send.
//!
//! [`play`] interprets the language that `tests/scripts/README.md` explains. A [`Bench`] is the end point
//! alone, for readers of other languages.

mod bench;
mod words;

use std::fmt::{self, Display, Write};

use aqmlab_net::Time;

pub use bench::Bench;
pub use words::show;
use words::{number, parse};

/// Why a script does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be read.
    Unreadable(String),
    /// What happens is not what the script says.
    Differs {
        /// What the script says.
        expected: String,
        /// What happens.
        found: String,
    },
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(message) => f.write_str(message),
            Self::Differs { expected, found } => write!(f, "expected {expected}; found {found}"),
        }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Unreadable(message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Self::Unreadable(message.to_owned())
    }
}

/// A [`Fault`] and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the line, and its text; none: the end of the script.
    pub line: Option<(usize, String)>,
    /// What is wrong.
    pub fault: Fault,
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            Some((number, text)) => write!(f, "line {number} ({text}): {}", self.fault),
            None => write!(f, "at the end: {}", self.fault),
        }
    }
}

/// Plays a script.
///
/// # Errors
///
/// It does not hold: in which line, and why.
pub fn play(text: &str) -> Result<(), Failure> {
    let mut player = Player::default();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            player.line(line).map_err(|fault| Failure {
                line: Some((number, line.to_owned())),
                fault,
            })?;
        }
    }
    if player.is_empty {
        let fault = "found no line; expected a script".into();
        return Err(Failure { line: None, fault });
    }
    player
        .quiet()
        .map_err(|fault| Failure { line: None, fault })
}

struct Player {
    bench: Bench,
    /// What the peer's SYN offers: flags and options.
    peer: String,
    is_empty: bool,
}

impl Default for Player {
    fn default() -> Self {
        Self {
            bench: Bench::default(),
            peer: String::new(),
            is_empty: true,
        }
    }
}

type Outcome = Result<(), Fault>;

impl Player {
    fn line(&mut self, line: &str) -> Outcome {
        self.is_empty = false;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "profile" => Ok(self.bench.name_profile(rest)?),
            "set" => Ok(self.bench.set(rest)?),
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
            self.bench.now()
        } else {
            seconds(time)?
        };
        self.bench.advance(time)?;
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if word == ">" {
            return self.expect(rest);
        }
        self.quiet()?;
        match word {
            "<" => Ok(self.bench.inject(rest)?),
            "write" | "write-last" => Ok(self.bench.perform(word, number(rest)?.into())?),
            "connect" | "listen" | "close" | "abort" => Ok(self.bench.perform(word, 0)?),
            "quiet" => Ok(()),
            _ => self.check(word, rest),
        }
    }

    // ---- opening ----

    /// Connects at 0; the SYN-ACK comes after a round trip.
    fn open(&mut self, rtt: &str) -> Outcome {
        self.bench.perform("connect", 0)?;
        self.bench.sent.clear();
        let (flags, options) = self.peer_says("SA");
        self.at(rtt, &format!("< {flags} 0 ack 1 {options}"))?;
        self.bench.sent.clear();
        Ok(())
    }

    /// Listens; a SYN comes at 0, the ACK of the SYN-ACK after a round trip.
    fn accept(&mut self, rtt: &str) -> Outcome {
        self.bench.perform("listen", 0)?;
        let (flags, options) = self.peer_says("S");
        self.at("0", &format!("< {flags} 0 {options}"))?;
        self.bench.sent.clear();
        self.at(rtt, "< A 1 ack 1")
    }

    fn peer_says(&self, flags: &str) -> (String, String) {
        let (more, options) = self.peer.split_once(' ').unwrap_or((&self.peer, ""));
        match more.chars().all(|letter| letter.is_ascii_uppercase()) {
            true => (format!("{flags}{more}"), options.to_owned()),
            false => (flags.to_owned(), self.peer.clone()),
        }
    }

    // ---- segments ----

    fn expect(&mut self, words: &str) -> Outcome {
        let (mut expected, times) = parse(words)?;
        let stamped = words.contains(" ts ");
        for _ in 0..times {
            let now = self.bench.now();
            let differs = |found| Fault::Differs {
                expected: format!("{words} at {now}"),
                found,
            };
            let Some((time, found)) = self.bench.sent.pop_front() else {
                return Err(differs("nothing".to_owned()));
            };
            let shown = show(&found);
            if !stamped && let Some(stamps) = found.options.timestamps() {
                expected.options.set_timestamps(stamps);
            }
            if time != now || found != expected {
                return Err(differs(format!("{shown} at {time}")));
            }
            expected.seq += u64::from(expected.len);
        }
        Ok(())
    }

    /// Nothing was sent that the script has not looked at.
    fn quiet(&self) -> Outcome {
        let mut found = String::new();
        for (time, segment) in &self.bench.sent {
            let comma = if found.is_empty() { "" } else { ", " };
            let _ = write!(found, "{comma}{} at {time}", show(segment));
        }
        if found.is_empty() {
            return Ok(());
        }
        let expected = "nothing".to_owned();
        Err(Fault::Differs { expected, found })
    }

    // ---- what the end point shows of itself ----

    fn check(&mut self, word: &str, rest: &str) -> Outcome {
        let found = self.bench.show(word)?;
        let found = found.ok_or_else(|| format!("unknown word {word}"))?;
        let expected: f64 = rest
            .parse()
            .map_err(|_| format!("found {word} {rest}; expected a number"))?;
        if (found - expected).abs() < 0.0006 {
            return Ok(());
        }
        Err(Fault::Differs {
            expected: format!("{word} {expected}"),
            found: format!("{word} {found}"),
        })
    }
}

/// The longest time of a script, in seconds.
const LONGEST: f64 = 1e6;

fn seconds(word: &str) -> Result<Time, Fault> {
    let seconds: f64 = word
        .parse()
        .map_err(|_| format!("unknown word {word}, or no time"))?;
    if !(0.0..=LONGEST).contains(&seconds) {
        return Err(format!("found time {word}; expected 0 to {LONGEST} seconds").into());
    }
    // To the nearest nanosecond: a script's times are decimal.
    Ok(Time::from_nanos((seconds * 1e9).round() as u64))
}
