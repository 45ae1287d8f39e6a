//! Every driver of a port gets the same answers.
//!
//! The simulator tells a port of everything in time, event by event. The live bed's router looks up
//! late: it learns of arrivals in batches, and makes up for departures that have passed. Both drive
//! the same port over common arrivals here, with every discipline. The same packets must be
//! dropped, marked, lost and delivered at the same nanoseconds, and the statistics must be the same.
//!
//! The same holds for departures that a port computes and those of packets that it stores.

mod arrivals;
mod disciplines;
mod drivers;

use std::cell::Cell;

use aqmlab_aqm::Discipline;
use aqmlab_link::Port;
use aqmlab_net::{Ecn, Rate, Time};
use aqmlab_record::LinkDirection;
use aqmlab_scenario::{Framing, Link, Measure, Packets, RateChange, Reordering};

use arrivals::{Arrival, arrivals};
use disciplines::{Case, cases};
use drivers::{Fate, Outcome, event_by_event, late};

const SEED: u64 = 18;

/// What can lie between a discipline and the far end of its link.
#[derive(Clone, Copy, Debug)]
struct Condition {
    ring: u32,
    batch: u32,
    rate_changes: bool,
    loss: bool,
    reordering: bool,
}

impl Condition {
    /// All combinations.
    fn all() -> impl Iterator<Item = Self> {
        (0..24).map(|bits| Self {
            ring: if bits & 1 == 0 && bits < 16 { 0 } else { 8 },
            batch: match bits {
                0..16 => 1,
                _ => {
                    if bits & 1 == 0 {
                        3
                    } else {
                        8
                    }
                }
            },
            rate_changes: bits & 2 != 0,
            loss: bits & 4 != 0,
            reordering: bits & 8 != 0,
        })
    }

    fn link(self, case: &Case) -> Link {
        let ms = Time::from_millis;
        let change = |at, mbps| RateChange {
            at: Some(ms(at)),
            when: None,
            rate: Rate::from_mbps(mbps),
        };
        Link {
            rate: Rate::from_mbps(10),
            delay: ms(3),
            framing: Framing::NONE,
            device_ring: Packets(self.ring),
            device_ring_batch: Packets(self.batch),
            device_ring_counted: false,
            input: None,
            policer: None,
            packet_time: None,
            loss: if self.loss { 0.02 } else { 0.0 },
            reordering: self.reordering.then_some(Reordering {
                share: 0.05,
                delay: ms(2),
            }),
            rate_changes: if self.rate_changes {
                vec![change(300, 4), change(700, 12), change(1300, 7)]
            } else {
                Vec::new()
            },
            delay_changes: Vec::new(),
            loss_changes: Vec::new(),
            ack_batch: Time::ZERO,
            outages: Vec::new(),
            trace: None,
            discipline: case.discipline.clone(),
        }
    }
}

/// It begins before the queue is at its longest: the length is noted when packets come and go, so
/// ports whose largest queue is that of the first moment may note a different one.
fn measure() -> Measure {
    Measure {
        warm_up: Time::from_millis(50),
        duration: Time::from_millis(1350),
        queue_sample: Time::from_millis(10),
        ..Measure::default()
    }
}

fn name() -> LinkDirection {
    LinkDirection {
        link: "bottleneck".to_owned(),
        direction: "forward",
    }
}

/// Runs a check for each discipline: the small queues under every condition, the presets under four
/// of them that differ from preset to preset.
fn for_all(check: impl Fn(&str, &Link)) {
    for (number, case) in cases().iter().enumerate() {
        for (bits, condition) in Condition::all().enumerate() {
            if case.is_small || bits % 4 == number % 4 {
                let what = format!("{} {condition:?}", case.name);
                check(&what, &condition.link(case));
            }
        }
    }
}

/// The first difference, in words.
fn assert_same(what: &str, found: &Outcome, expected: &Outcome, arrivals: &[Arrival]) {
    for (number, (one, other)) in found.fates.iter().zip(&expected.fates).enumerate() {
        let arrival = arrivals[number];
        assert_eq!(one, other, "{what}: packet {number}, {arrival:?}");
    }
    let mut lines = found.stats.lines().zip(expected.stats.lines());
    if let Some(number) = lines.position(|(one, other)| one != other) {
        let above: Vec<&str> = found.stats.lines().take(number).collect();
        let above = above[number.saturating_sub(6)..].join("\n");
        let [one, other] = [&found.stats, &expected.stats].map(|stats| stats.lines().nth(number));
        assert_eq!(one, other, "{what}, statistics below\n{above}");
    }
    assert_eq!(found.stats.len(), expected.stats.len(), "{what}");
}

#[test]
fn a_late_router_and_an_event_loop_get_the_same_answers() {
    let (arrivals, measure) = (arrivals(), measure());
    let polls = Cell::new(0);
    for_all(|what, link| {
        let port = || Port::new(&name(), link, SEED, &measure);
        let expected = event_by_event(port(), &arrivals, &measure);
        polls.set(polls.get() + 1);
        let found = late(port(), &arrivals, &measure, polls.get());
        assert_same(what, &found, &expected, &arrivals);
    });
}

#[test]
fn computed_departures_are_those_of_stored_packets() {
    let (arrivals, measure) = (arrivals(), measure());
    for_all(|what, link| {
        let computed = Port::new(&name(), link, SEED, &measure);
        let stored = Port::stored(&name(), link, SEED, &measure);
        let mut found = event_by_event(computed, &arrivals, &measure);
        let mut expected = event_by_event(stored, &arrivals, &measure);
        if matches!(link.discipline, Discipline::Blue(_)) {
            // A port that computes departures reports a silence at the arrival that ends it. Until
            // then samples show BLUE's variables as they were before.
            found.forget_probes();
            expected.forget_probes();
        }
        assert_same(what, &found, &expected, &arrivals);
        let is_codel = matches!(link.discipline, Discipline::Codel(_));
        let is_plain = link.device_ring.0 == 0 && link.rate_changes.is_empty();
        let is_perfect = link.loss == 0.0 && link.reordering.is_none();
        let some = is_codel && is_plain && is_perfect;
        assert_eq!(found.computed > 0, some, "{what}: {}", found.computed);
        assert_eq!(expected.computed, 0, "{what}");
        if some {
            assert_eq!(found.computed + found.woken, expected.woken, "{what}");
        }
    });
}

#[test]
fn the_arrivals_bring_out_every_decision() {
    let (arrivals, measure) = (arrivals(), measure());
    let everything = Condition {
        ring: 8,
        batch: 1,
        rate_changes: false,
        loss: true,
        reordering: true,
    };
    let unlike: Vec<String> = cases()
        .iter()
        .filter(|case| case.is_small)
        .filter_map(|case| {
            let port = Port::new(&name(), &everything.link(case), SEED, &measure);
            let fates = event_by_event(port, &arrivals, &measure).fates;
            let count = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
            let marked = count(|fate| matches!(fate, Fate::Arrived(_, Ecn::Ce)));
            let dropped = count(|fate| matches!(fate, Fate::Dropped(_)));
            let lost = count(|fate| matches!(fate, Fate::Lost(_)));
            let can_mark = !["small droptail", "small drr", "small sfq"].contains(&&*case.name);
            let is_good = (marked > 0) == can_mark && dropped > 20 && lost > 10;
            let difference = format!(
                "{}: {marked} marked, {dropped} dropped, {lost} lost",
                case.name
            );
            (!is_good).then_some(difference)
        })
        .collect();
    assert!(unlike.is_empty(), "{unlike:#?}");
}
