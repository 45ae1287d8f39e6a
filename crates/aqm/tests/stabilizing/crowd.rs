//! The headline behaviour of the AQMs, in a closed loop: a crowd of senders that add and halve.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_aqm::Queue;
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};

use crate::model::once::Numbered;
use crate::stabilizing::{LINK, read};

/// What happens at some time, to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Depart,
    Send(usize),
    Acknowledge(usize),
    Reduce(usize),
}

/// A sender whose window grows by a packet per round trip and halves at most once in one.
#[derive(Clone, Debug)]
struct Sender {
    /// In packets.
    window: f64,
    /// Without queueing.
    rtt: Time,
    reduced: Time,
}

/// What a crowd made of a link of 2500 packets per second in the second half of a run.
#[derive(Debug)]
struct Observed {
    /// Mean queue that arrivals found, in packets.
    queue: f64,
    /// Mean of the AQM's first inner variable.
    variable: f64,
    /// The largest and smallest of its means over 12 500 arrivals.
    extremes: [f64; 2],
    /// Share of the link that was used.
    utilization: f64,
    /// Share of the arrivals that were dropped.
    loss: f64,
}

struct Crowd {
    queue: Queue<usize>,
    senders: Vec<Sender>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    busy: bool,
    random: RandomStream,
}

impl Crowd {
    fn new(table: &str, senders: usize) -> Self {
        let mut random = RandomStream::new(1, "crowd", senders as u64);
        let mut crowd = Self {
            queue: Queue::new(&read(table), LINK, 1),
            senders: Vec::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
            busy: false,
            random: RandomStream::new(1, "law", 0),
        };
        for sender in 0..senders {
            crowd.senders.push(Sender {
                window: 2.0,
                rtt: Time::from_secs_f64(random.uniform_in(0.06, 0.14)),
                reduced: Time::ZERO,
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

    fn send(&mut self, now: Time, sender: usize) {
        let packet = Packet {
            size: 500,
            ecn: Ecn::Ect0,
            dscp: 0,
            flow: FlowKey(sender as u64),
        };
        let random = &mut self.random;
        let mut dropped = false;
        self.queue.put(
            now,
            packet,
            sender,
            &mut || random.uniform(),
            &mut |_, _| {
                dropped = true;
            },
        );
        let Sender { window, rtt, .. } = self.senders[sender];
        if dropped {
            self.at(now + rtt, Event::Reduce(sender));
        }
        if !self.busy {
            self.depart(now);
        }
        let delay = f64::from(self.queue.backlog().packets) * 4e-4;
        let gap = (rtt.as_secs_f64() + delay) / window * self.random.uniform_in(0.5, 1.5);
        self.at(now + Time::from_secs_f64(gap), Event::Send(sender));
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
        self.at(now + LINK.rate.transmission_time(500), Event::Depart);
        let answer = if sent.packet.ecn == Ecn::Ce {
            Event::Reduce(sent.item)
        } else {
            Event::Acknowledge(sent.item)
        };
        self.at(now + self.senders[sent.item].rtt, answer);
    }

    fn reduce(&mut self, now: Time, sender: usize) {
        let sender = &mut self.senders[sender];
        if now.saturating_sub(sender.reduced) > sender.rtt {
            sender.reduced = now;
            sender.window = (sender.window / 2.0).max(1.0);
        }
    }

    fn run(mut self, seconds: u64) -> Observed {
        let half = Time::from_secs(seconds / 2);
        let mut means = Vec::new();
        let (mut found, mut arrivals) = (0.0, 0.0);
        let (mut sum, mut count, mut probed) = (0.0, 0.0, Vec::new());
        let mut at_half = None;
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            while self.queue.next_tick() <= now {
                self.queue.tick();
            }
            if now >= Time::from_secs(seconds) {
                break;
            }
            if now >= half && at_half.is_none() {
                at_half = Some(self.queue.counters().clone());
            }
            match event {
                Event::Depart => self.depart(now),
                Event::Acknowledge(sender) => {
                    let window = &mut self.senders[sender].window;
                    *window += window.recip();
                }
                Event::Reduce(sender) => self.reduce(now, sender),
                Event::Send(sender) => {
                    if now >= half {
                        found += f64::from(self.queue.backlog().packets);
                        arrivals += 1.0;
                        probed.clear();
                        self.queue.probe(&mut probed);
                        sum += probed[0];
                        count += 1.0;
                        if count == 12_500.0 {
                            means.push(sum / count);
                            (sum, count) = (0.0, 0.0);
                        }
                    }
                    self.send(now, sender);
                }
            }
        }
        let (before, after) = (at_half.unwrap(), self.queue.counters());
        let departed = (after.departed_packets - before.departed_packets) as f64;
        let dropped = (after.dropped_packets() - before.dropped_packets()) as f64;
        Observed {
            queue: found / arrivals,
            variable: means.iter().sum::<f64>() / means.len() as f64,
            extremes: [f64::max, f64::min].map(|pick| means.iter().copied().reduce(pick).unwrap()),
            utilization: departed / (2500.0 * (seconds / 2) as f64),
            loss: dropped / arrivals,
        }
    }
}

/// A crowd of `senders` before an AQM, with as much buffer as it may want.
fn crowd(aqm: &str, senders: usize) -> Observed {
    Crowd::new(&format!("{aqm}\nlimit = \"1500 packets\"\n"), senders).run(120)
}

const RED: &str = "kind = \"red\"\nmin_th = \"20 packets\"\nmax_th = \"80 packets\"\necn = true";

#[test]
fn pi_and_rem_hold_their_queue_for_small_and_large_crowds_and_red_does_not() {
    let pi = "kind = \"pi\"\nq_ref = \"50 packets\"\necn = true\n\
              design = { flows = 30, rtt = \"150 ms\" }";
    let rem = "kind = \"rem\"\nq_ref = \"50 packets\"\necn = true";
    for senders in [15, 50, 70] {
        for aqm in [pi, rem] {
            let outcome = crowd(aqm, senders);
            assert!((outcome.queue / 50.0 - 1.0).abs() < 0.15, "{outcome:?}");
            assert!(outcome.utilization > 0.99, "{outcome:?}");
        }
    }
    let [few, many] = [15, 70].map(|senders| crowd(RED, senders).queue);
    assert!(many > 2.0 * few, "{few}, {many}");
}

#[test]
fn ared_holds_its_average_in_the_band_where_red_does_not() {
    let ared = RED.replace("\"red\"", "\"ared\"");
    // 40 to 60 % of the way from 20 to 80 packets.
    let in_band = |aqm: &str, senders| (44.0..=56.0).contains(&crowd(aqm, senders).variable);
    for senders in [25, 50, 100] {
        assert!(in_band(&ared, senders), "{senders} senders");
    }
    assert!(!in_band(RED, 25) && !in_band(RED, 100));
}

#[test]
fn avq_reaches_its_utilization_with_a_small_queue() {
    for (gamma, senders) in [(0.9, 25), (0.9, 50), (0.98, 25), (0.98, 50)] {
        let avq =
            format!("kind = \"avq\"\nvirtual_buffer = \"50 packets\"\ngamma = {gamma}\necn = true");
        let outcome = crowd(&avq, senders);
        assert!((outcome.utilization - gamma).abs() < 0.005, "{outcome:?}");
        assert!(outcome.queue < 25.0, "{outcome:?}");
    }
}

#[test]
fn blue_settles_and_loses_less_than_red() {
    for senders in [50, 100] {
        let blue = crowd("kind = \"blue\"\necn = true", senders);
        let [most, least] = blue.extremes;
        assert!(blue.variable > 0.0 && most - least <= 0.02, "{blue:?}");
        assert!(blue.loss < crowd(RED, senders).loss / 2.0, "{blue:?}");
    }
}

#[test]
fn sred_holds_its_buffer_whatever_the_number_of_senders() {
    // Windows of about sqrt(2 / p) packets, with p about the square of the number of senders,
    // make for a total that does not depend on it.
    let queues = [10, 25, 100].map(|senders| crowd("kind = \"sred\"", senders).queue);
    let mean = queues.iter().sum::<f64>() / 3.0;
    assert!(
        queues.iter().all(|queue| (queue / mean - 1.0).abs() < 0.1),
        "{queues:?}"
    );
}

#[test]
fn lqd_rests_where_queue_and_loss_balance() {
    for senders in [50, 100, 200] {
        let outcome = crowd("kind = \"lqd\"\nq_ref = \"50 packets\"", senders);
        // a (q - q_ref) = b l
        let balance = 1e-4 * (outcome.queue - 50.0) / (0.1 * outcome.loss);
        assert!((balance - 1.0).abs() < 0.1, "{outcome:?}");
    }
}
