//! A network that loses, duplicates and reorders as a random stream says, and carries sequence
//! numbers cut to 32 bits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{Ecn, RandomStream, Time};
use aqmlab_tcp::{Context, Endpoint, Events, HostClock, Options, Profile, RecoveryState, Segment};

/// What the network does to segments: probabilities, and the largest extra delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Harm {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) marking: f64,
    pub(crate) jitter: Time,
}

impl Harm {
    pub(crate) const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        marking: 0.0,
        jitter: Time::ZERO,
    };
}

/// No transfer of these tests needs as many events.
const STEPS: u64 = 2_000_000;

const DELAY: Time = Time::from_millis(20);

/// Two ends, each of which writes so many bytes, then closes.
pub(crate) struct Net<'a> {
    profiles: [&'a Profile; 2],
    hosts: [HostClock; 2],
    pub(crate) ends: [Endpoint; 2],
    pub(crate) received: [u64; 2],
    pub(crate) eof: [bool; 2],
    pub(crate) failed: bool,
    pub(crate) now: Time,
    writes: [u64; 2],
    harm: Harm,
    draws: RandomStream,
    arrivals: BinaryHeap<Reverse<(Time, usize, usize)>>,
    segments: Vec<Segment>,
    free: Vec<usize>,
    /// Segments lost so far.
    pub(crate) lost: u64,
}

impl<'a> Net<'a> {
    pub(crate) fn new(profiles: [&'a Profile; 2], writes: [u64; 2], harm: Harm, seed: u64) -> Self {
        Self {
            profiles,
            hosts: [
                HostClock::default(),
                HostClock {
                    slow: Time::from_millis(3),
                    fast: Time::from_millis(7),
                    offset: u32::MAX - 5,
                    drift: 400,
                },
            ],
            ends: profiles.map(Endpoint::listen),
            received: [0; 2],
            eof: [false; 2],
            failed: false,
            now: Time::ZERO,
            writes,
            harm,
            draws: RandomStream::new(seed, "net", 0),
            arrivals: BinaryHeap::new(),
            segments: Vec::new(),
            free: Vec::new(),
            lost: 0,
        }
    }

    fn act(
        &mut self,
        end: usize,
        what: impl FnOnce(&mut Endpoint, Context<'_>, &mut Vec<Segment>) -> Events,
    ) {
        let cx = Context {
            now: self.now,
            profile: self.profiles[end],
            host: &self.hosts[end],
        };
        let mut out = Vec::new();
        let mut events = what(&mut self.ends[end], cx, &mut out);
        if events.established {
            self.ends[end].write(self.writes[end], cx, &mut out);
            self.ends[end].close(cx, &mut out);
            events.established = false;
        }
        self.received[end] += events.received;
        assert!(!(events.eof && self.eof[end]), "the end is reported once");
        self.eof[end] |= events.eof;
        self.failed |= events.failed;
        for segment in &out {
            self.check(end, segment);
            self.send(end, segment);
        }
    }

    /// Nobody acknowledges what was not sent, nor sends beyond its windows.
    fn check(&self, end: usize, segment: &Segment) {
        let (this, peer) = (&self.ends[end], &self.ends[1 - end]);
        let sent = peer.oldest_unacknowledged() + peer.in_flight();
        assert!(segment.ack <= sent, "{segment:?} but only {sent} sent");
        let profile = self.profiles[end];
        let to = segment.seq + u64::from(segment.len);
        assert!(to <= self.writes[end] + 1 || segment.len == 0);
        let out = to.saturating_sub(this.oldest_unacknowledged());
        assert!(out <= profile.receive_buffer.0, "beyond the peer's window");
        // The retransmission itself aside, and what limited transmit allows.
        if this.probe(profile).recovery_state != RecoveryState::Recovery && segment.len > 0 {
            let window = this.cwnd().max(profile.mss.0) + 2 * profile.mss.0;
            assert!(out <= window.max(this.in_flight()), "{out} beyond {window}");
        }
    }

    fn send(&mut self, from: usize, segment: &Segment) {
        if self.draws.uniform() < self.harm.loss {
            self.lost += 1;
            return;
        }
        let copies = 1 + u32::from(self.draws.uniform() < self.harm.duplication);
        let mut arriving = *segment;
        if segment.ecn.is_capable() && self.draws.uniform() < self.harm.marking {
            arriving.ecn = Ecn::Ce;
        }
        for _ in 0..copies {
            let extra = self.draws.uniform() * self.harm.jitter.as_secs_f64();
            let arrival = self.now + DELAY + Time::from_secs_f64(extra);
            let slot = self.free.pop().unwrap_or(self.segments.len());
            if slot == self.segments.len() {
                self.segments.push(arriving);
            }
            self.segments[slot] = arriving;
            self.arrivals.push(Reverse((arrival, slot, 1 - from)));
        }
    }

    /// A segment as a carrier of 32-bit numbers hands it over.
    fn restored(&self, segment: &Segment, to: usize) -> Segment {
        let end = &self.ends[to];
        Segment {
            seq: Segment::unwrap_seq(segment.seq as u32, end.next_expected()),
            ack: Segment::unwrap_seq(segment.ack as u32, end.oldest_unacknowledged()),
            ..*segment
        }
    }

    /// Runs until both ends are finished, one has failed, or `until`.
    pub(crate) fn run(&mut self, until: Time) {
        if self.profiles[0].handshake {
            self.act(0, |end, cx, out| {
                *end = Endpoint::connect(cx, out);
                Events::default()
            });
        } else {
            self.act(0, |end, cx, out| {
                *end = Endpoint::connect(cx, out);
                Events {
                    established: true,
                    ..Events::default()
                }
            });
        }
        let mut steps = 0;
        while !self.failed && !self.ends.iter().all(Endpoint::is_finished) {
            steps += 1;
            assert!(steps < STEPS, "no end at {}", self.now);
            let arrival = self
                .arrivals
                .peek()
                .map_or(Time::NEVER, |Reverse((time, ..))| *time);
            let wakes = [self.ends[0].wake_at(), self.ends[1].wake_at()];
            let next = arrival.min(wakes[0]).min(wakes[1]);
            if next > until {
                return;
            }
            self.now = self.now.max(next);
            if arrival == next {
                let Some(Reverse((_, slot, to))) = self.arrivals.pop() else {
                    return;
                };
                self.free.push(slot);
                let segment = self.restored(&self.segments[slot], to);
                self.act(to, |end, cx, out| end.on_segment(&segment, cx, out));
            } else {
                let due = usize::from(wakes[1] < wakes[0]);
                self.act(due, |end, cx, out| end.on_timer(cx, out));
            }
        }
    }
}

/// Options with these SACK blocks.
pub(crate) fn blocks(blocks: &[(u32, u32)]) -> Options {
    let mut options = Options::NONE;
    for &(from, to) in blocks {
        options.push_sack_block(u64::from(from), u64::from(to));
    }
    options
}
