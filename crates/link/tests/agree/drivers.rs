//! Two callers of a port: one that is always in time, one that is late.

use crate::Known;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use aqmlab_aqm::Details;
use aqmlab_link::{Dropped, Port, Transmission};
use aqmlab_net::{Ecn, RandomStream, Time};
use aqmlab_record::MeasuredSpan;
use aqmlab_scenario::Measure;

use crate::agree::arrivals::Arrival;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It reached the far end then.
    Arrived(Time, Ecn),
    /// The discipline dropped it then.
    Dropped(Time),
    /// It was lost on the wire at the end of its transmission.
    Lost(Time),
}

/// What a port did with the arrivals.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// By the number of the arrival.
    pub(crate) fates: Vec<Fate>,
    /// The statistics at the end of the measured span, samples included.
    pub(crate) stats: String,
    /// Departures until then for which the port was not woken though it can be.
    pub(crate) computed: u64,
    /// Departures until then for which it was woken.
    pub(crate) woken: u64,
}

impl Outcome {
    /// Leaves the discipline's inner variables out of the samples.
    pub(crate) fn forget_probes(&mut self) {
        let (before, rest) = self.stats.split_once("values: [").expect("samples");
        let (_, after) = rest.split_once(']').expect("a list ends");
        self.stats = format!("{before}{after}");
    }
}

/// Classes of traffic that take turns.
const CLASSES: usize = 3;

/// A port under test, whose packets are the numbers of their arrivals.
struct Driven<'a> {
    port: Port<usize>,
    arrivals: &'a [Arrival],
    fates: Vec<Option<Fate>>,
    dropped: Vec<Dropped<usize>>,
    stats: Option<String>,
    computed: u64,
    woken: u64,
}

impl<'a> Driven<'a> {
    fn new(port: Port<usize>, arrivals: &'a [Arrival]) -> Self {
        Self {
            port,
            arrivals,
            fates: vec![None; arrivals.len()],
            dropped: Vec::new(),
            stats: None,
            computed: 0,
            woken: 0,
        }
    }

    fn arrive(&mut self, number: usize) {
        let Arrival { at, packet } = self.arrivals[number];
        let class = (number % CLASSES) as u16;
        match self.port.arrive(at, packet, class) {
            Transmission::Waits => {
                let packet = (packet, class);
                let details: Known<'_> = &|| Details {
                    hosts: [packet.0.flow.0 % 3, packet.0.flow.0 % 2],
                    ack: None,
                    client: None,
                };
                let dropped = &mut self.dropped;
                let sent = self.port.take_in(at, packet, number, details, dropped);
                self.sent(at, sent);
            }
            transmission => self.sent(at, Some((number, transmission))),
        }
    }

    fn depart(&mut self, at: Time) {
        self.woken += u64::from(self.stats.is_none());
        let sent = self.port.depart(at, &mut self.dropped);
        self.sent(at, sent);
    }

    fn sent(&mut self, now: Time, sent: Option<(usize, Transmission)>) {
        if let Some((number, transmission)) = sent {
            let fate = match transmission {
                Transmission::Arrives(at, ecn) => Fate::Arrived(at, ecn),
                Transmission::Dropped(_) => Fate::Dropped(now),
                Transmission::Lost(at) => Fate::Lost(at),
                Transmission::Waits => unreachable!("the port has answered"),
            };
            self.settle(number, fate);
        }
        for Dropped { at, item, .. } in std::mem::take(&mut self.dropped) {
            self.settle(item, Fate::Dropped(at));
        }
    }

    fn settle(&mut self, number: usize, fate: Fate) {
        let before = self.fates[number].replace(fate);
        assert_eq!(before, None, "packet {number} had a fate");
        self.port.check_conservation().expect("a balance");
    }

    fn close(&mut self, end: Time) {
        self.port.close(end);
        self.computed = self.port.computed_departures(end);
        self.stats = Some(format!("{:#?}", self.port.stats()));
    }

    /// Every packet has met its fate.
    fn finish(self) -> Outcome {
        assert_eq!(self.port.stored_packets(), 0);
        Outcome {
            fates: self
                .fates
                .into_iter()
                .map(|fate| fate.expect("every packet has a fate"))
                .collect(),
            stats: self.stats.expect("the measured span has ended"),
            computed: self.computed,
            woken: self.woken,
        }
    }
}

/// As the simulator does: events in the order of their times, departures before arrivals.
pub(crate) fn event_by_event(
    port: Port<usize>,
    arrivals: &[Arrival],
    measure: &Measure,
) -> Outcome {
    let end = MeasuredSpan::of(measure).end;
    let checkpoint = Time::from_nanos(end.as_nanos() / 50 + 1);
    let mut driven = Driven::new(port, arrivals);
    let mut events: BinaryHeap<_> = (0..arrivals.len())
        .map(|number| Reverse((arrivals[number].at, number)))
        .collect();
    let mut next_checkpoint = checkpoint;
    loop {
        let departure = driven.port.next_departure();
        let arrival = events.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        let now = departure.min(arrival);
        while next_checkpoint <= now.min(end) {
            driven.port.catch_up(next_checkpoint);
            next_checkpoint += checkpoint;
        }
        if now >= end && driven.stats.is_none() {
            driven.close(end);
        }
        if now == Time::NEVER {
            return driven.finish();
        }
        if departure <= arrival {
            driven.depart(departure);
        } else if let Some(Reverse((_, number))) = events.pop() {
            driven.arrive(number);
        }
    }
}

/// As the live bed's router does: it looks up at times of its own, up to 40 ms late, and does what
/// should have been done since, in its order. `polls` names the times.
pub(crate) fn late(
    port: Port<usize>,
    arrivals: &[Arrival],
    measure: &Measure,
    polls: u64,
) -> Outcome {
    let end = MeasuredSpan::of(measure).end;
    // The measured span is half open.
    let last = end.saturating_sub(Time::from_nanos(1));
    let mut draws = RandomStream::new(polls, "polls", 0);
    let mut driven = Driven::new(port, arrivals);
    let mut unread = 0;
    let mut delayed: VecDeque<usize> = VecDeque::new();
    let mut now = Time::ZERO;
    loop {
        now += Time::from_secs_f64(draws.uniform_in(0.0, 0.04));
        let until = if driven.stats.is_none() {
            now.min(last)
        } else {
            now
        };
        while unread < arrivals.len() && arrivals[unread].at <= until {
            delayed.push_back(unread);
            unread += 1;
        }
        loop {
            let arrival = delayed
                .front()
                .map_or(Time::NEVER, |&number| arrivals[number].at);
            let departure = driven.port.next_departure();
            if departure <= until.min(arrival) {
                driven.depart(departure);
            } else if let Some(number) = delayed.pop_front() {
                driven.arrive(number);
            } else {
                break;
            }
        }
        driven.port.catch_up(until);
        if now >= end && driven.stats.is_none() {
            driven.close(end);
        }
        let is_idle = driven.port.next_departure() == Time::NEVER;
        if unread == arrivals.len() && is_idle && driven.stats.is_some() {
            return driven.finish();
        }
    }
}
