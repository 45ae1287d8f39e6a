//! The headline behaviour of the AQMs, in a closed loop: senders that add and reduce, among them
//! greedy ones, floods that answer to nothing, and short transfers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_aqm::{Queue, Reason};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};

use crate::fairness::{LINK, read};
use crate::model::once::Numbered;

/// How a sender behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Its window grows by so many packets per round trip and halves at most once in one.
    Adaptive { increase: f64 },
    /// So many packets per second, whatever happens.
    Flood { rate: f64 },
    /// Adaptive with an increase of 1; every so many packets are a flow of their own.
    Short { packets: u64 },
}

const RENO: Kind = Kind::Adaptive { increase: 1.0 };

/// A sender and what became of its packets in the second half of a run.
#[derive(Clone, Debug)]
struct Sender {
    kind: Kind,
    window: f64,
    /// Without queueing.
    rtt: Time,
    reduced: Time,
    sent: u64,
    arrived: f64,
    departed: f64,
    /// Signalled or dropped, without overflows.
    signalled: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Depart,
    Send(usize),
    Acknowledge(usize),
    Reduce(usize),
}

/// Senders in front of a link of 2500 packets per second.
struct Crowd {
    queue: Queue<usize>,
    senders: Vec<Sender>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    busy: bool,
    measuring: bool,
    random: RandomStream,
}

const RUN: Time = Time::from_secs(60);

impl Crowd {
    fn new(table: &str, kinds: &[Kind]) -> Self {
        let mut random = RandomStream::new(1, "crowd", kinds.len() as u64);
        let mut crowd = Self {
            queue: Queue::new(&read(table), LINK, 1),
            senders: Vec::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
            busy: false,
            measuring: false,
            random: RandomStream::new(1, "law", 0),
        };
        for (sender, &kind) in kinds.iter().enumerate() {
            crowd.senders.push(Sender {
                kind,
                window: 2.0,
                rtt: Time::from_secs_f64(random.uniform_in(0.06, 0.14)),
                reduced: Time::ZERO,
                sent: 0,
                arrived: 0.0,
                departed: 0.0,
                signalled: 0.0,
            });
            let start = Time::from_secs_f64(random.uniform());
            crowd.at(start, Event::Send(sender));
        }
        crowd
    }

    fn at(&mut self, time: Time, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    fn send(&mut self, now: Time, index: usize) {
        let sender = &mut self.senders[index];
        let transfer = match sender.kind {
            Kind::Short { packets } => sender.sent / packets,
            _ => 0,
        };
        sender.sent += 1;
        let packet = Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey((index as u64) << 32 | transfer),
        };
        let random = &mut self.random;
        let mut dropped = None;
        let mut draw = || random.uniform();
        self.queue
            .put(now, packet, index, &mut draw, &mut |_, reason| {
                dropped = Some(reason);
            });
        let sender = &mut self.senders[index];
        if self.measuring {
            sender.arrived += 1.0;
            let signalled = dropped.is_some_and(|reason| reason != Reason::OVERFLOW);
            sender.signalled += f64::from(u8::from(signalled));
        }
        let (kind, window, rtt) = (sender.kind, sender.window, sender.rtt);
        if dropped.is_some() {
            self.at(now + rtt, Event::Reduce(index));
        }
        if !self.busy {
            self.depart(now);
        }
        let delay = f64::from(self.queue.backlog().packets) * 4e-4;
        let gap = match kind {
            Kind::Flood { rate } => rate.recip(),
            _ => (rtt.as_secs_f64() + delay) / window,
        };
        let gap = gap * self.random.uniform_in(0.5, 1.5);
        self.at(now + Time::from_secs_f64(gap), Event::Send(index));
    }

    /// The wire is free.
    fn depart(&mut self, now: Time) {
        let random = &mut self.random;
        let sent = self
            .queue
            .take(now, &mut || random.uniform(), &mut |_, _| {});
        self.busy = sent.is_some();
        let Some(sent) = sent else {
            self.queue.idle(now);
            return;
        };
        let sender = &mut self.senders[sent.item];
        sender.departed += f64::from(u8::from(self.measuring));
        let answer = now + sender.rtt;
        self.at(answer, Event::Acknowledge(sent.item));
        self.at(now + LINK.rate.transmission_time(500), Event::Depart);
    }

    fn answer(&mut self, now: Time, index: usize, reduce: bool) {
        let sender = &mut self.senders[index];
        let increase = match sender.kind {
            Kind::Adaptive { increase } => increase,
            Kind::Short { .. } => 1.0,
            Kind::Flood { .. } => return,
        };
        if !reduce {
            sender.window += increase / sender.window;
        } else if now.saturating_sub(sender.reduced) > sender.rtt {
            sender.reduced = now;
            sender.window = (sender.window / 2.0).max(1.0);
        }
    }

    /// Runs on until `end`.
    fn run_to(&mut self, end: Time) {
        while let Some(&Reverse((now, _, event))) = self.events.peek() {
            if now >= end {
                break;
            }
            self.events.pop();
            while self.queue.next_tick() <= now {
                self.queue.tick();
            }
            match event {
                Event::Depart => self.depart(now),
                Event::Send(sender) => self.send(now, sender),
                Event::Acknowledge(sender) => self.answer(now, sender, false),
                Event::Reduce(sender) => self.answer(now, sender, true),
            }
        }
    }

    /// The value of an inner variable of the AQM.
    fn probe(&self, name: &str) -> f64 {
        let mut values = Vec::new();
        self.queue.probe(&mut values);
        let mut names = self.queue.probe_names().iter();
        values[names.position(|inner| *inner == name).unwrap()]
    }
}

/// The senders after a run of a minute, of which the second half counts.
fn crowd(table: &str, kinds: &[Kind]) -> Vec<Sender> {
    let mut crowd = Crowd::new(table, kinds);
    crowd.run_to(Time::from_nanos(RUN.as_nanos() / 2));
    crowd.measuring = true;
    crowd.run_to(RUN);
    crowd.senders
}

/// Jain's index of the senders' rates: 1 if all are alike.
fn fairness(senders: &[Sender]) -> f64 {
    let rates = senders.iter().map(|sender| sender.departed);
    let squares: f64 = rates.clone().map(|rate| rate * rate).sum();
    let sum: f64 = rates.sum();
    sum * sum / (senders.len() as f64 * squares)
}

/// A sender's part of all that left.
fn share(senders: &[Sender], index: usize) -> f64 {
    let all: f64 = senders.iter().map(|sender| sender.departed).sum();
    senders[index].departed / all
}

/// The share of the packets of some senders that the AQM signalled to.
fn signals(senders: &[Sender]) -> f64 {
    let arrived: f64 = senders.iter().map(|sender| sender.arrived).sum();
    let signalled: f64 = senders.iter().map(|sender| sender.signalled).sum();
    signalled / arrived
}

const RED: &str = "kind = 'red'\nmin_th = '20 packets'\nmax_th = '60 packets'\ngentle = true\n\
                   limit = '200 packets'";
const AFD: &str = "kind = 'afd'\nq_ref = '40 packets'\nlimit = '200 packets'";
const FRED: &str = "kind = 'fred'\nmin_th = '20 packets'\nmax_th = '60 packets'\n\
                    limit = '200 packets'";

#[test]
fn afd_and_fred_are_fairer_than_red_to_senders_of_different_aggressiveness() {
    let mut kinds = [RENO; 20];
    kinds[..5].fill(Kind::Adaptive { increase: 8.0 });
    let [red, afd, fred] = [RED, AFD, FRED].map(|table| fairness(&crowd(table, &kinds)));
    assert!(red < 0.75, "RED {red}");
    assert!(afd > 0.95, "AFD {afd}");
    assert!(fred > red + 0.07, "FRED {fred}, RED {red}");
}

#[test]
fn a_flood_gets_little_more_than_its_share_from_laws_that_know_flows() {
    // A flood of 60 % of the link among 20 that adapt: 1/21 would be fair.
    let mut kinds = [RENO; 21];
    kinds[20] = Kind::Flood { rate: 1500.0 };
    let share_of_flood = |table| share(&crowd(table, &kinds), 20);
    assert!(share_of_flood(RED) > 0.5);
    // AFD caps a flow at a fair share that senders who back off stay below on average.
    let sfb = "kind = 'sfb'\nlimit = '200 packets'";
    for (table, most) in [(AFD, 0.12), (FRED, 0.08), (sfb, 0.08)] {
        let share = share_of_flood(table);
        assert!(share < most, "{table}: {share}");
    }
}

#[test]
fn red_pd_finds_a_flow_of_high_bandwidth_within_a_second_and_holds_it() {
    let mut kinds = [RENO; 21];
    kinds[20] = Kind::Flood { rate: 1500.0 };
    let table = RED.replace("'red'", "'red-pd'");
    let mut found = Crowd::new(&table, &kinds);
    // All start within the first second.
    let mut at = Time::from_secs(1);
    while found.probe("filtered_flows") == 0.0 {
        at += Time::from_millis(10);
        found.run_to(at);
    }
    assert!(at <= Time::from_secs(2), "found at {at}");
    let share = share(&crowd(&table, &kinds), 20);
    assert!(share < 0.2, "{share}");
}

#[test]
fn dcn_signals_to_none_but_large_and_fast_flows() {
    let mut kinds = [RENO; 15];
    kinds[10..].fill(Kind::Short { packets: 60 });
    let dcn = "kind = 'dcn'\nq_ref = '40 packets'\nlimit = '1000 packets'";
    let senders = crowd(dcn, &kinds);
    assert_eq!(signals(&senders[10..]), 0.0);
    assert!(signals(&senders[..10]) > 0.0);
}

#[test]
fn rio_ps_spares_short_flows() {
    let mut kinds = [RENO; 30];
    kinds[10..].fill(Kind::Short { packets: 8 });
    let rio_ps = "kind = 'rio-ps'\nshort_min_th = '20 packets'\nshort_max_th = '80 packets'\n\
                  long_min_th = '20 packets'\nlong_max_th = '60 packets'\nlimit = '200 packets'";
    let senders = crowd(rio_ps, &kinds);
    let [long, short] = [&senders[..10], &senders[10..]].map(signals);
    assert!(short < long / 2.0, "short {short}, long {long}");
    let senders = crowd(RED, &kinds);
    let [long, short] = [&senders[..10], &senders[10..]].map(signals);
    assert!(
        (short / long - 1.0).abs() < 0.2,
        "RED: short {short}, long {long}"
    );
}

#[test]
fn red_pd_tells_flows_that_respond_from_a_flood() {
    let table = RED.replace("'red'", "'red-pd'") + "\nunresponsive_test = true";
    let mut kinds = [RENO; 21];
    let share_of_unresponsive = |kinds: &[Kind]| {
        let mut crowd = Crowd::new(&table, kinds);
        let (mut filtered, mut unresponsive) = (0.0, 0.0);
        for second in 10..=60 {
            crowd.run_to(Time::from_secs(second));
            filtered += crowd.probe("filtered_flows");
            unresponsive += crowd.probe("unresponsive_flows");
        }
        (unresponsive / 51.0, unresponsive / filtered)
    };
    // By chance a few senders that halve their windows seem not to.
    let (_, share) = share_of_unresponsive(&kinds);
    assert!(share < 0.12, "{share}");
    kinds[20] = Kind::Flood { rate: 1500.0 };
    let (mean, _) = share_of_unresponsive(&kinds);
    assert!((0.9..1.5).contains(&mean), "{mean}");
}
