//! Open loop: connection vectors start at their times, whatever becomes of those before.
//!
//! M. Weigle, P. Adurthi, F. Hernandez-Campos, K. Jeffay, F. D. Smith, "Tmix: A Tool for Generating
//! Realistic TCP Application Workloads in ns-2", CCR 36(3), 2006. Two ways to more or less load,
//! both of which leave each connection as it was:
//!
//! - by population (L. Le, dissertation, University of North Carolina, 2005, section 3.3.2):
//!   vectors are dropped, or replayed several times at once (`copies`);
//! - by time (the common TCP evaluation suite): start times are stretched (`stretch`).
//!
//! The vectors come from a file, read as time goes on, or from a generator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, Seek};

use aqmlab_net::{RandomStream, Time};

use crate::general_tcp::Generator;
use crate::params::{GeneralTcp, Rtt, Vectors};
use crate::script::{Action, Connect, Direction, HostCounts, Limits, Script};
use crate::source::{PopulationUnset, Setting};
use crate::vector::{CLOSE_AFTER, ConnectionVector, VectorReader};

/// A file of connection vectors, open.
pub trait VectorFile: BufRead + Seek + Send {}

impl<T: BufRead + Seek + Send> VectorFile for T {}

/// Where vectors come from.
enum Feed {
    File(Box<FileFeed>),
    Generator(Box<Generator>),
    /// It ended, or could not be read any further.
    End,
}

/// A file that is read as time goes on, again and again if it is to be repeated.
struct FileFeed {
    reader: VectorReader<Box<dyn VectorFile>>,
    repeat: bool,
    /// Start of this pass, and of the last vector in it; how many vectors it has had.
    begin: Time,
    last: Time,
    count: u64,
}

impl FileFeed {
    fn next(&mut self) -> Result<Option<ConnectionVector>, String> {
        loop {
            match self.reader.next() {
                Some(Ok(mut vector)) => {
                    vector.start = self.begin.saturating_add(vector.start);
                    self.last = vector.start;
                    self.count += 1;
                    return Ok(Some(vector));
                }
                Some(Err(error)) => return Err(error.to_string()),
                None if self.repeat => self.rewind().map_err(|error| error.to_string())?,
                None => return Ok(None),
            }
        }
    }

    /// Begins anew, a mean gap behind the last vector.
    fn rewind(&mut self) -> io::Result<()> {
        let span = self.last.saturating_sub(self.begin);
        let gap = match self.count {
            0 | 1 => CLOSE_AFTER,
            count => Time::from_nanos(span.as_nanos() / (count - 1) + 1),
        };
        self.begin = self.last.saturating_add(gap);
        self.count = 0;
        self.reader.rewind()
    }
}

/// A connection that waits for its time.
struct Pending {
    at: Time,
    serial: u64,
    vector: ConnectionVector,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.serial) == (other.at, other.serial)
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

/// All connections of a class that replays vectors.
pub(crate) struct Replay {
    feed: Feed,
    failure: Option<String>,
    /// The next vector of the feed.
    ahead: Option<ConnectionVector>,
    /// Copies of vectors before it, the earliest on top.
    pending: BinaryHeap<Reverse<Pending>>,
    copies: Copies,
    stretch: f64,
    windows: bool,
    losses: bool,
    rtt: Rtt,
    direction: Direction,
    hosts: HostCounts,
    host_draws: RandomStream,
    rtt_draws: RandomStream,
    /// What the run's clock shows when the first vectors' clock shows 0; known when it first wakes.
    origin: Option<Time>,
    /// Copies so far, and connections opened.
    serial: u64,
    opened: u32,
}

/// How often each vector is replayed.
struct Copies {
    mean: f64,
    spread: Time,
    seed: u64,
    name: String,
    vector: u64,
}

impl Copies {
    /// How much later than the vector each of its copies starts. Fewer copies are the first of
    /// more: what a higher load adds takes nothing away.
    fn delays(&mut self) -> impl Iterator<Item = Time> + use<> {
        let mut draws = RandomStream::new(self.seed, &self.name, self.vector);
        self.vector += 1;
        let whole = self.mean.floor();
        let number = whole as u32 + u32::from(draws.uniform() < self.mean - whole);
        let spread = self.spread.as_secs_f64();
        (0..number).map(move |copy| match copy {
            0 => Time::ZERO,
            _ => Time::from_secs_f64(draws.uniform() * spread),
        })
    }
}

impl Replay {
    /// The vectors of an open file.
    pub(crate) fn of_file(
        params: &Vectors,
        file: Box<dyn VectorFile>,
        setting: &Setting<'_>,
    ) -> Result<Self, PopulationUnset> {
        let copies = params.copies.ok_or(PopulationUnset { field: "copies" })?;
        let feed = FileFeed {
            reader: VectorReader::new(file),
            repeat: params.repeat,
            begin: Time::ZERO,
            last: Time::ZERO,
            count: 0,
        };
        let mut replay = Self::new(Feed::File(Box::new(feed)), copies, params.spread, setting);
        replay.stretch = params.stretch;
        replay.windows = params.windows;
        replay.losses = params.losses;
        Ok(replay)
    }

    /// Vectors that a generator makes.
    pub(crate) fn of_generator(
        params: &GeneralTcp,
        setting: &Setting<'_>,
    ) -> Result<Self, PopulationUnset> {
        let rate = params.rate.ok_or(PopulationUnset { field: "rate" })?;
        let generator = Generator::new(params, rate.0, setting.seed, setting.class);
        let feed = Feed::Generator(Box::new(generator));
        Ok(Self::new(feed, 1.0, Time::ZERO, setting))
    }

    fn new(feed: Feed, copies: f64, spread: Time, setting: &Setting<'_>) -> Self {
        let name = |what| format!("{}/{what}", setting.class);
        let stream = |what| RandomStream::new(setting.seed, &name(what), 0);
        Self {
            feed,
            failure: None,
            ahead: None,
            pending: BinaryHeap::new(),
            copies: Copies {
                mean: copies,
                spread,
                seed: setting.seed,
                name: name("copies"),
                vector: 0,
            },
            stretch: 1.0,
            windows: false,
            losses: false,
            rtt: setting.rtt.clone(),
            direction: setting.direction,
            hosts: setting.hosts,
            host_draws: stream("hosts"),
            rtt_draws: stream("rtts"),
            origin: None,
            serial: 0,
            opened: 0,
        }
    }

    pub(crate) fn start(&mut self, actions: &mut Vec<Action>) {
        self.ahead = self.read();
        self.wait(actions);
    }

    /// Starts what is due.
    pub(crate) fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        let first = self.pending.peek().map_or(now, |Reverse(first)| first.at);
        let origin = *self.origin.get_or_insert(now.saturating_sub(first));
        let now = now.saturating_sub(origin);
        while self
            .pending
            .peek()
            .is_some_and(|Reverse(due)| due.at <= now)
        {
            if let Some(Reverse(due)) = self.pending.pop() {
                let connect = self.connect(&due.vector);
                actions.push(Action::Connect(connect));
            }
        }
        self.wait(actions);
    }

    /// Why the vectors ended before their time, if they did.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Wants to be woken when the next connection is due.
    fn wait(&mut self, actions: &mut Vec<Action>) {
        while let Some(ahead) = &self.ahead {
            // No copy of a later vector can be earlier than this vector.
            let first = self.pending.peek();
            if first.is_some_and(|Reverse(first)| first.at < ahead.start) {
                break;
            }
            let next = self.read();
            if let Some(vector) = std::mem::replace(&mut self.ahead, next) {
                self.add_copies(&vector);
            }
        }
        if let Some(Reverse(first)) = self.pending.peek() {
            let at = first.at.saturating_add(self.origin.unwrap_or_default());
            actions.push(Action::WakeAt { at, token: 0 });
        }
    }

    fn add_copies(&mut self, vector: &ConnectionVector) {
        for delay in self.copies.delays() {
            self.serial += 1;
            self.pending.push(Reverse(Pending {
                at: vector.start.saturating_add(delay),
                serial: self.serial,
                vector: vector.clone(),
            }));
        }
    }

    /// The next vector, at the time at which it is to start.
    fn read(&mut self) -> Option<ConnectionVector> {
        let next = match &mut self.feed {
            Feed::File(file) => file.next(),
            Feed::Generator(generator) => Ok(Some(generator.generate())),
            Feed::End => Ok(None),
        };
        match next {
            Ok(Some(mut vector)) => {
                if self.stretch != 1.0 {
                    let start = vector.start.as_secs_f64() * self.stretch;
                    vector.start = Time::from_secs_f64(start);
                }
                return Some(vector);
            }
            Ok(None) => {}
            Err(failure) => self.failure = Some(failure),
        }
        self.feed = Feed::End;
        None
    }

    fn connect(&mut self, vector: &ConnectionVector) -> Connect {
        let token = self.opened;
        self.opened = self.opened.wrapping_add(1);
        let (flipped, _) = self.direction.place(token);
        let hosts = self.hosts.as_seen(flipped);
        let client = self.host_draws.below(hosts.clients as usize) as u32;
        let server = self.host_draws.below(hosts.servers as usize) as u32;
        let rtt = match (&self.rtt, vector.rtt) {
            (Rtt::Vector { .. }, Some(rtt)) => rtt,
            (rtt, _) => rtt.sample(client, server, flipped, &mut self.rtt_draws),
        };
        Connect {
            token,
            client,
            server,
            rtt,
            flipped,
            script: Script::from(&vector.body),
            limits: self.limits(vector),
        }
    }

    /// What the vector says of its hosts and its path, as far as it is wanted.
    fn limits(&self, vector: &ConnectionVector) -> Option<Box<Limits>> {
        let mut limits = Limits::default();
        if self.windows {
            limits.windows = vector.windows;
            // Both ends use the larger one, as the evaluation suite's two-way TCP does.
            limits.segment = vector.segments.into_iter().flatten().max();
        }
        if self.losses {
            limits.loss = vector.loss.unwrap_or_default();
        }
        (limits != Limits::default()).then(|| Box::new(limits))
    }
}
