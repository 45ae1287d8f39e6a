//! Whoever drives a port gets the same answers.
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
    rate_changes: bool,
    loss: bool,
    reordering: bool,
}

impl Condition {
    /// All combinations.
    fn all() -> impl Iterator<Item = Self> {
        (0..16).map(|bits| Self {
            ring: if bits & 1 == 0 { 0 } else { 8 },
            rate_changes: bits & 2 != 0,
            loss: bits & 4 != 0,
            reordering: bits & 8 != 0,
        })
    }

    fn link(self, case: &Case) -> Link {
        let ms = Time::from_millis;
        let change = |at, mbps| RateChange {
            at: ms(at),
            rate: Rate::from_mbps(mbps),
        };
        Link {
            rate: Rate::from_mbps(10),
            delay: ms(3),
            framing: Framing::NONE,
            device_ring: Packets(self.ring),
            loss: if self.loss { 0.02 } else { 0.0 },
            reordering: self.reordering.then_some(Reordering {
                share: 0.05,
                delay: ms(2),
            }),
            rate_changes: if self.rate_changes {
                vec![change(700, 4), change(1400, 12), change(2600, 7)]
            } else {
                Vec::new()
            },
            discipline: case.discipline.clone(),
        }
    }
}

fn measure() -> Measure {
    Measure {
        warm_up: Time::from_millis(400),
        duration: Time::from_millis(2500),
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

/// Runs a check for each discipline under each condition.
fn for_all(check: impl Fn(&Case, Condition, &Link)) {
    for case in cases() {
        for condition in Condition::all() {
            check(&case, condition, &condition.link(&case));
        }
    }
}

/// The first difference, in words.
fn assert_same(what: &str, found: &Outcome, expected: &Outcome, arrivals: &[Arrival]) {
    for (number, (one, other)) in found.fates.iter().zip(&expected.fates).enumerate() {
        let arrival = arrivals[number];
        assert_eq!(one, other, "{what}: packet {number}, {arrival:?}");
    }
    assert_eq!(found.stats, expected.stats, "{what}");
}

#[test]
fn a_late_router_and_an_event_loop_get_the_same_answers() {
    let (arrivals, measure) = (arrivals(), measure());
    for_all(|case, condition, link| {
        let port = || Port::new(&name(), link, SEED, &measure);
        let expected = event_by_event(port(), &arrivals, &measure);
        for polls in [1, 2, 3] {
            let found = late(port(), &arrivals, &measure, polls);
            let what = format!("{} {condition:?} polls {polls}", case.name);
            assert_same(&what, &found, &expected, &arrivals);
        }
    });
}

#[test]
fn computed_departures_are_those_of_stored_packets() {
    let (arrivals, measure) = (arrivals(), measure());
    for_all(|case, condition, link| {
        let computed = Port::new(&name(), link, SEED, &measure);
        let stored = Port::stored(&name(), link, SEED, &measure);
        let found = event_by_event(computed, &arrivals, &measure);
        let expected = event_by_event(stored, &arrivals, &measure);
        let what = format!("{} {condition:?}", case.name);
        assert_same(&what, &found, &expected, &arrivals);
    });
}

#[test]
fn the_arrivals_bring_out_every_decision() {
    let (arrivals, measure) = (arrivals(), measure());
    for case in cases().iter().filter(|case| case.is_small) {
        let condition = Condition {
            ring: 8,
            rate_changes: false,
            loss: true,
            reordering: true,
        };
        let port = Port::new(&name(), &condition.link(case), SEED, &measure);
        let outcome = event_by_event(port, &arrivals, &measure);
        let count = |is: fn(&Fate) -> bool| outcome.fates.iter().filter(|fate| is(fate)).count();
        let marked = count(|fate| matches!(fate, Fate::Arrived(_, Ecn::Ce)));
        let dropped = count(|fate| matches!(fate, Fate::Dropped(_)));
        let lost = count(|fate| matches!(fate, Fate::Lost(_)));
        let marks = !matches!(
            case.name.as_str(),
            "small droptail" | "small drr" | "small sfq"
        );
        let counts = (marked, dropped, lost);
        assert_eq!(marked > 20, marks, "{}: {counts:?}", case.name);
        assert!(dropped > 20 && lost > 20, "{}: {counts:?}", case.name);
    }
}
