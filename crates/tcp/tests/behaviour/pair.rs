//! Two end points, a link between them and a virtual clock: the smallest network that shows what
//! a TCP does. The server answers the client's request with a response and closes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{Ecn, Rate, Time};
use aqmlab_tcp::{Context, Endpoint, Flags, HostClock, Profile, Segment};

/// Which way a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// What the network does with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Mark,
    Drop,
}

/// Decides what the network does with each segment.
type Decide<'a> = dyn FnMut(Way, &Segment) -> Fate + 'a;

/// A segment that was sent, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) time: Time,
    pub(crate) way: Way,
    pub(crate) segment: Segment,
}

/// A chain of store-and-forward links, one way.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// (rate, or none for infinite; propagation delay; when the link is free).
    links: Vec<(Option<Rate>, Time, Time)>,
}

impl Path {
    pub(crate) fn new(links: &[(Option<Rate>, Time)]) -> Self {
        Self {
            links: links
                .iter()
                .map(|&(rate, delay)| (rate, delay, Time::ZERO))
                .collect(),
        }
    }

    /// When a packet of `bytes` that enters at `now` has crossed.
    fn cross(&mut self, now: Time, bytes: u64) -> Time {
        self.links.iter_mut().fold(now, |at, (rate, delay, free)| {
            let begin = at.max(*free);
            *free = begin + rate.map_or(Time::ZERO, |rate| rate.transmission_time(bytes));
            *free + *delay
        })
    }
}

/// The network and its two ends.
pub(crate) struct Pair<'a> {
    pub(crate) profile: Profile,
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) hosts: [HostClock; 2],
    pub(crate) paths: [Path; 2],
    pub(crate) now: Time,
    pub(crate) log: Vec<Sent>,
    /// (time, whether the client saw it): connections given up.
    pub(crate) failures: Vec<(Time, Way)>,
    /// When the client had received everything, the server's FIN included.
    pub(crate) complete_at: Option<Time>,
    decide: Box<Decide<'a>>,
    request: u64,
    response: u64,
    answered: bool,
    arrivals: BinaryHeap<Reverse<(Time, u64, Way)>>,
    in_flight: Vec<Segment>,
}

impl<'a> Pair<'a> {
    /// A pair over a path of `links` (client to server; the way back is its mirror image).
    pub(crate) fn new(
        profile: &Profile,
        links: &[(Option<Rate>, Time)],
        decide: impl FnMut(Way, &Segment) -> Fate + 'a,
    ) -> Self {
        let mirrored: Vec<_> = links.iter().rev().copied().collect();
        Self {
            profile: profile.clone(),
            client: Endpoint::listen(profile),
            server: Endpoint::listen(profile),
            hosts: [HostClock::default(); 2],
            paths: [Path::new(links), Path::new(&mirrored)],
            now: Time::ZERO,
            log: Vec::new(),
            failures: Vec::new(),
            complete_at: None,
            decide: Box::new(decide),
            request: 0,
            response: 0,
            answered: false,
            arrivals: BinaryHeap::new(),
            in_flight: Vec::new(),
        }
    }

    /// Connects, asks with `request` bytes, answers with `response` bytes, closes; stops at
    /// `until` if that is not over by then.
    pub(crate) fn exchange(&mut self, request: u64, response: u64, until: Time) {
        (self.request, self.response) = (request, response);
        let mut out = Vec::new();
        let cx = Context {
            now: self.now,
            profile: &self.profile,
            host: &self.hosts[0],
        };
        self.client = Endpoint::connect(cx, &mut out);
        if self.client.is_established() {
            self.client.write(request, cx, &mut out); // There is no handshake.
        }
        self.send(Way::ToServer, &out);
        self.go_on(until);
    }

    /// Goes on with an exchange that was stopped.
    pub(crate) fn go_on(&mut self, until: Time) {
        while let Some(next) = self.next_time()
            && next <= until
        {
            self.now = next;
            self.step();
        }
    }

    /// Data segments that the server sent: (time, byte offset in segments of `mss`, is it the
    /// first time?).
    pub(crate) fn server_data(&self) -> Vec<(Time, u64, bool)> {
        let mut highest = 0;
        let data = self
            .log
            .iter()
            .filter(|sent| sent.way == Way::ToClient && sent.segment.len > 0);
        data.map(|sent| {
            let new = sent.segment.seq >= highest;
            highest = highest.max(sent.segment.seq + u64::from(sent.segment.len));
            (sent.time, (sent.segment.seq - 1) / self.profile.mss.0, new)
        })
        .collect()
    }

    fn next_time(&self) -> Option<Time> {
        let arrival = self
            .arrivals
            .peek()
            .map_or(Time::NEVER, |Reverse((time, ..))| *time);
        let next = arrival
            .min(self.client.wake_at())
            .min(self.server.wake_at());
        (next < Time::NEVER).then_some(next)
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        if let Some(&Reverse((time, index, way))) = self.arrivals.peek()
            && time <= self.now
        {
            self.arrivals.pop();
            let segment = self.in_flight[index as usize];
            self.deliver(way, &segment);
            return;
        }
        for (way, end) in [(Way::ToServer, 0), (Way::ToClient, 1)] {
            let cx = Context {
                now: self.now,
                profile: &self.profile,
                host: &self.hosts[end],
            };
            let endpoint = if end == 0 {
                &mut self.client
            } else {
                &mut self.server
            };
            if endpoint.wake_at() <= self.now {
                let events = endpoint.on_timer(cx, &mut out);
                if events.failed {
                    self.failures.push((self.now, way));
                }
                self.send(way, &out);
                out.clear();
            }
        }
    }

    fn deliver(&mut self, way: Way, segment: &Segment) {
        let mut out = Vec::new();
        match way {
            Way::ToServer => {
                let cx = Context {
                    now: self.now,
                    profile: &self.profile,
                    host: &self.hosts[1],
                };
                self.server.on_segment(segment, cx, &mut out);
                let received = self.server.next_expected().saturating_sub(1);
                if received >= self.request && received > 0 && !self.answered {
                    self.answered = true;
                    self.server.write(self.response, cx, &mut out);
                    self.server.close(cx, &mut out);
                }
                self.send(Way::ToClient, &out);
            }
            Way::ToClient => {
                let cx = Context {
                    now: self.now,
                    profile: &self.profile,
                    host: &self.hosts[0],
                };
                let events = self.client.on_segment(segment, cx, &mut out);
                if events.established {
                    self.client.write(self.request, cx, &mut out);
                }
                if events.eof {
                    self.complete_at = Some(self.now);
                    self.client.close(cx, &mut out);
                }
                self.send(Way::ToServer, &out);
            }
        }
    }

    fn send(&mut self, way: Way, segments: &[Segment]) {
        for &segment in segments {
            let fate = (self.decide)(way, &segment);
            self.log.push(Sent {
                time: self.now,
                way,
                segment,
            });
            let mut arriving = segment;
            match fate {
                Fate::Drop => continue,
                Fate::Mark if segment.ecn.is_capable() => arriving.ecn = Ecn::Ce,
                _ => {}
            }
            let header = if segment.flags.has(Flags::SYN) {
                self.profile.syn_header.0
            } else {
                self.profile.header.0
            };
            let path = usize::from(way == Way::ToClient);
            let bytes = u64::from(segment.len) + header;
            let arrival = self.paths[path].cross(self.now, bytes);
            self.arrivals
                .push(Reverse((arrival, self.in_flight.len() as u64, way)));
            self.in_flight.push(arriving);
        }
    }
}

/// A long transfer over 100 ms without a queue loses its 400th segment: when the repair begins, with the
/// server's window up to then, and the time.
pub(crate) fn at_first_repair(stack: &Profile) -> (Pair<'static>, u64, Time) {
    let mut sent = 0;
    let path = [(None, Time::from_millis(50))];
    let mut pair = Pair::new(stack, &path, move |way, segment| {
        let is_data = way == Way::ToClient && segment.len > 0;
        sent += u32::from(is_data);
        match is_data && sent == 400 {
            true => Fate::Drop,
            false => Fate::Pass,
        }
    });
    let (mut before, mut now) = (0, Time::from_millis(10));
    pair.exchange(100, u64::MAX / 4, now);
    while pair.server.fast_retransmits() == 0 {
        before = pair.server.cwnd();
        now += Time::from_millis(1);
        pair.go_on(now);
    }
    (pair, before, now)
}

/// A time in milliseconds, for comparison.
pub(crate) fn ms(time: Time) -> f64 {
    time.as_secs_f64() * 1e3
}
