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
//! The vectors come from a file, read as time goes on, or from a generator: a [`Feed`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{RandomStream, Time};

use crate::rtt::{Rank, Rtt};
use crate::script::{Action, Connect, Limits, Script};
use crate::setting::{Direction, HostCounts, Pair, Setting};
use crate::vector::ConnectionVector;

/// Where connection vectors come from, in order of their start times.
pub(crate) trait Feed: Send {
    /// The next one; nothing if there are no more. An error is why there are no more before their
    /// time.
    fn next(&mut self) -> Result<Option<ConnectionVector>, String>;
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
pub(crate) struct Replay<F> {
    /// Nothing when it has ended, or cannot be read any further.
    feed: Option<F>,
    failure: Option<String>,
    /// The next vector of the feed.
    ahead: Option<ConnectionVector>,
    /// Copies of vectors before it, the earliest on top.
    pending: BinaryHeap<Reverse<Pending>>,
    options: Options,
    copies: Copies,
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

/// How vectors are replayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// How often each vector, on average.
    pub(crate) copies: f64,
    /// Further copies start at random within this time.
    pub(crate) spread: Time,
    /// Factor on start times.
    pub(crate) stretch: f64,
    /// Connections keep to the windows and segment sizes of their vectors.
    pub(crate) windows: bool,
    /// Packets are lost at random as the vectors say.
    pub(crate) losses: bool,
}

impl Options {
    /// Each vector once, at its time, over a network that decides alone.
    pub(crate) const PLAIN: Self = Self {
        copies: 1.0,
        spread: Time::ZERO,
        stretch: 1.0,
        windows: false,
        losses: false,
    };
}

impl<F: Feed> Replay<F> {
    pub(crate) fn new(feed: F, options: Options, setting: &Setting<'_>) -> Self {
        Self {
            feed: Some(feed),
            failure: None,
            ahead: None,
            pending: BinaryHeap::new(),
            options,
            copies: Copies {
                mean: options.copies,
                spread: options.spread,
                seed: setting.seed,
                name: format!("{}/copies", setting.class),
                vector: 0,
            },
            rtt: setting.rtt.clone(),
            direction: setting.direction,
            hosts: setting.hosts,
            host_draws: setting.stream("hosts", 0),
            rtt_draws: setting.stream("rtts", 0),
            origin: None,
            serial: 0,
            opened: 0,
        }
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
        let next = self.feed.as_mut().map_or(Ok(None), F::next);
        match next {
            Ok(Some(mut vector)) => {
                if self.options.stretch != 1.0 {
                    let start = vector.start.as_secs_f64() * self.options.stretch;
                    vector.start = Time::from_secs_f64(start);
                }
                return Some(vector);
            }
            Ok(None) => {}
            Err(failure) => self.failure = Some(failure),
        }
        self.feed = None;
        None
    }

    fn connect(&mut self, vector: &ConnectionVector) -> Connect {
        let token = self.opened;
        self.opened = self.opened.wrapping_add(1);
        let (flipped, _) = self.direction.place(token);
        let hosts = self.hosts.as_seen(flipped);
        let client = self.host_draws.below(hosts.clients as usize) as u32;
        let server = self.host_draws.below(hosts.servers as usize) as u32;
        let pair = Pair {
            client,
            server,
            flipped,
            rank: Rank::Arrival(token),
        };
        let rtt = match (&self.rtt, vector.rtt) {
            (Rtt::Vector { .. }, Some(rtt)) => rtt,
            (rtt, _) => rtt.sample(pair, &mut self.rtt_draws),
        };
        Connect {
            token,
            client,
            server,
            rtt,
            flipped,
            script: Script::from(&vector.body),
            limits: self.limits(vector),
            begins_with_tls: false,
        }
    }

    /// What the vector says of its hosts and its path, as far as it is wanted.
    fn limits(&self, vector: &ConnectionVector) -> Option<Box<Limits>> {
        let mut limits = Limits::default();
        if self.options.windows {
            limits.windows = vector.windows;
            // Both ends use the larger one, as the evaluation suite's two-way TCP does.
            limits.segment = vector.segments.into_iter().flatten().max();
        }
        if self.options.losses {
            limits.loss = vector.loss.unwrap_or_default();
        }
        (limits != Limits::default()).then(|| Box::new(limits))
    }
}

impl<F: Feed> Replay<F> {
    /// The class begins.
    pub(crate) fn begin(&mut self, actions: &mut Vec<Action>) {
        self.ahead = self.read();
        self.wait(actions);
    }

    /// Starts what is due.
    pub(crate) fn start_due(&mut self, now: Time, actions: &mut Vec<Action>) {
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
    pub(crate) fn feed_failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
