//! What a segment costs in TCP: a response of 10 MB between two end points with nothing but a
//! constant delay between them, with and without losses. The throughput is in segments.

use std::collections::VecDeque;

use aqmlab_net::Time;
use aqmlab_tcp::{Context, Endpoint, Events, HostClock, Profile, Segment};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const RESPONSE: u64 = 10_000_000;
const DELAY: Time = Time::from_millis(5);
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// A client, a server, and what is on its way between them.
struct Exchange<'a> {
    profile: &'a Profile,
    host: HostClock,
    now: Time,
    ends: [Endpoint; 2],
    /// (arrival, receiver, segment); the delay is constant, so this is in order of time.
    in_flight: VecDeque<(Time, usize, Segment)>,
    out: Vec<Segment>,
    /// Segments sent, by sender.
    sent: [u64; 2],
    /// One segment of this many from the server is lost; 0: none is.
    loses_one_of: u64,
}

impl<'a> Exchange<'a> {
    fn new(profile: &'a Profile, loses_one_of: u64) -> Self {
        Self {
            profile,
            host: HostClock::default(),
            now: Time::ZERO,
            ends: [Endpoint::listen(profile), Endpoint::listen(profile)],
            in_flight: VecDeque::new(),
            out: Vec::new(),
            sent: [0; 2],
            loses_one_of,
        }
    }

    /// Runs from the SYN to the last ACK; returns the number of segments.
    fn run(mut self) -> u64 {
        let cx = Context {
            now: self.now,
            profile: self.profile,
            host: &self.host,
        };
        if self.profile.handshake {
            self.ends[CLIENT] = Endpoint::connect(cx, &mut self.out);
            self.transmit(CLIENT);
        } else {
            self.ends[SERVER] = Endpoint::connect(cx, &mut self.out);
            let established = Events {
                established: true,
                ..Events::default()
            };
            self.tell_application(SERVER, established);
            self.transmit(SERVER);
        }
        while let Some((time, receiver)) = self.next() {
            self.now = time;
            self.step(receiver);
        }
        assert!(self.ends.iter().all(Endpoint::is_finished));
        self.sent.iter().sum()
    }

    /// When something happens next, and to whom.
    fn next(&self) -> Option<(Time, usize)> {
        let arrival = self
            .in_flight
            .front()
            .map(|(time, receiver, _)| (*time, *receiver));
        let timers = [CLIENT, SERVER].map(|end| (self.ends[end].wake_at(), end));
        let next = arrival.into_iter().chain(timers).min()?;
        (next.0 < Time::NEVER).then_some(next)
    }

    fn step(&mut self, end: usize) {
        let cx = Context {
            now: self.now,
            profile: self.profile,
            host: &self.host,
        };
        let events = match self.in_flight.front().copied() {
            Some((time, receiver, segment)) if (time, receiver) == (self.now, end) => {
                self.in_flight.pop_front();
                self.ends[end].on_segment(&segment, cx, &mut self.out)
            }
            _ => self.ends[end].on_timer(cx, &mut self.out),
        };
        self.tell_application(end, events);
        self.transmit(end);
    }

    fn tell_application(&mut self, end: usize, events: Events) {
        let cx = Context {
            now: self.now,
            profile: self.profile,
            host: &self.host,
        };
        if end == SERVER && events.established {
            self.ends[end].write(RESPONSE, cx, &mut self.out);
            self.ends[end].close(cx, &mut self.out);
        }
        if end == CLIENT && events.eof {
            self.ends[end].close(cx, &mut self.out);
        }
    }

    fn transmit(&mut self, sender: usize) {
        for segment in self.out.drain(..) {
            self.sent[sender] += 1;
            let lost = self.loses_one_of > 0
                && sender == SERVER
                && self.sent[SERVER].is_multiple_of(self.loses_one_of);
            if !lost {
                self.in_flight
                    .push_back((self.now + DELAY, CLIENT + SERVER - sender, segment));
            }
        }
    }
}

fn response(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("response");
    for name in Profile::NAMES {
        let profile = Profile::named(name).expect("a name from the list");
        for (loss, loses_one_of) in [("without loss", 0), ("with 1 % loss", 100)] {
            let segments = Exchange::new(&profile, loses_one_of).run();
            group.throughput(Throughput::Elements(segments));
            group.bench_function(BenchmarkId::new(name, loss), |bencher| {
                bencher.iter(|| Exchange::new(&profile, loses_one_of).run());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, response);
criterion_main!(benches);
