//! What a discipline lists as changeable does change: a queue that is given another value before
//! anything has come is the queue that began with it. Its own values change nothing at any time.

use crate::model;

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_aqm::{Discipline, Queue};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};
use model::{CASES, Case, Door, Entry, Event, Guarded, LINK, case, play};
use toml::{Table, Value};

/// Parameters that need others beside them.
const MORE: &[&str] = &[
    "kind = 'codel'
     limit = '12 packets'
     ecn = true
     ce_threshold = '1 ms'
     ce_threshold_selector = 1
     ce_threshold_mask = 3",
    "kind = 'ared'
     limit = '12 packets'
     min_th = '2 packets'
     max_th = '5 packets'
     w_q = 0.001",
    "kind = 'ared'
     limit = '240 packets'
     w_q = 0.2",
    "kind = 'dualpi2'
     limit = '12 packets'
     typical_rtt = '4 ms'
     max_rtt = '20 ms'",
    "kind = 'pie'
     limit = '240 packets'
     alpha = 100.0
     qdelay_ref = '100 us'
     t_update = '1 ms'
     max_burst = '0 ms'
     mark_ecnth = 1.0
     rules = 'linux'",
    "kind = 'fq-pie'
     limit = '240 packets'
     alpha = 100.0
     qdelay_ref = '100 us'
     t_update = '1 ms'
     max_burst = '0 ms'
     mark_ecnth = 1.0
     rules = 'linux'",
];

/// Values of every sort: which of them a parameter takes, its discipline decides.
fn candidates() -> Vec<Value> {
    let words = [
        "3 packets",
        "5 packets",
        "20 packets",
        "1500 bytes",
        "4000 bytes",
        "300 bytes",
        "1 ms",
        "20 ms",
        "100 us",
        "2 Mbit/s",
        "flow",
        "all",
    ];
    let words = words.into_iter().map(Value::from);
    let numbers = [0.03, 0.5, 1.5, 40.0].into_iter().map(Value::from);
    let whole = [1, 2, 5, 50, 200].into_iter().map(Value::from);
    let flags = [false, true].into_iter().map(Value::from);
    words.chain(numbers).chain(whole).chain(flags).collect()
}

/// The wire asks the empty queue, which is too full at times from then on, and empty at others.
fn events() -> Vec<Event> {
    let mut stream = RandomStream::new(7, "events", 0);
    let mut events = vec![Event::Depart];
    for burst in 0..40_usize {
        let wait = [400, 1500][burst % 2];
        for _ in 0..25 {
            events.push(Event::Arrive(Packet {
                size: [100, 500, 1500][stream.below(3)],
                ecn: Ecn::from_bits(stream.below(4) as u8),
                dscp: [0, 10, 46][stream.below(3)],
                flow: FlowKey(stream.below(5) as u64),
            }));
            events.push(Event::Pause(Time::from_micros(stream.below(wait) as u64)));
            if stream.below(10) < [4, 9][burst % 2] {
                events.push(Event::Depart);
            }
        }
        events.extend((0..10 * (burst % 4)).map(|_| Event::Depart));
    }
    events
}

/// What became of the packets, and the inner variables and the backlog at the end.
type Outcome = (Vec<Entry>, Vec<f64>, u64);

fn outcome(discipline: &Discipline, events: &[Event]) -> Outcome {
    let queue: Queue<usize> = Queue::new(discipline, LINK, 1);
    let outcome = behind(queue, events);
    if let Some(fifo) = Guarded::new(discipline) {
        assert_eq!(behind(fifo, events), outcome, "a fifo does the same");
    }
    outcome
}

fn behind(mut door: impl Door, events: &[Event]) -> Outcome {
    let log = play(&mut door, events, |_, _, _, _| ());
    (log, door.probe().1, door.backlog().bytes)
}

/// The cases as tables, those that know ECN with and without it.
fn tables() -> Vec<Table> {
    let with = |table: &Table, ecn: bool| {
        let mut table = table.clone();
        table.insert("ecn".to_owned(), ecn.into());
        table
    };
    let tables = CASES
        .iter()
        .chain(MORE)
        .map(|text| text.parse::<Table>().unwrap());
    let tables = tables.flat_map(|table| match table.contains_key("ecn") {
        true => vec![table],
        false => vec![with(&table, true), with(&table, false), table],
    });
    let mut tables: Vec<_> = tables.filter(|table| case(table).is_ok()).collect();
    tables.dedup();
    tables
}

/// The same discipline with another value of a parameter, wherever that is allowed.
fn variants(table: &Table, key: &str) -> Vec<Case> {
    let other = |value| {
        let mut table = table.clone();
        table.insert(key.to_owned(), value);
        case(&table).ok()
    };
    candidates().into_iter().filter_map(other).collect()
}

/// They set when ticks come. The tick that is due stays due, so that what follows is not what it is in
/// a queue that began with the value.
const FROM_THE_NEXT_TICK: [(&str, &str); 3] = [
    ("dualpi2", "max_rtt"),
    ("dualpi2", "t_update"),
    ("dualpi2", "typical_rtt"),
];

#[test]
fn a_changed_interval_counts_from_the_next_tick() {
    for (before, after) in [
        ("t_update = '2 ms'", "t_update = '5 ms'"),
        ("typical_rtt = '2 ms'", "typical_rtt = '5 ms'"),
        ("max_rtt = '12 ms'", "max_rtt = '30 ms'"),
    ] {
        let of = |key: &str| {
            let table = format!("kind = 'dualpi2'\nlimit = '12 packets'\n{key}");
            case(&table.parse().unwrap()).unwrap().discipline
        };
        let mut queue: Queue<usize> = Queue::new(&of(before), LINK, 1);
        Door::set_parameters(&mut queue, &of(after));
        let due = [(); 3].map(|()| {
            let due = queue.next_tick();
            queue.tick();
            due
        });
        assert_eq!(due, [2, 7, 12].map(Time::from_millis), "{after}");
    }
}

#[test]
fn a_changed_parameter_takes_effect() {
    let events = events();
    let (mut changeable, mut effective) = (BTreeSet::new(), BTreeSet::new());
    let mut wrong: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for table in tables() {
        let kind = table["kind"].as_str().unwrap().to_owned();
        let discipline = case(&table).unwrap().discipline;
        let before = outcome(&discipline, &events);
        for key in discipline.changeable() {
            changeable.insert((kind.clone(), key));
            for variant in variants(&table, key) {
                let change = [Event::Parameters(variant.discipline.clone())];
                let changed = [&change[..], &events].concat();
                let expected = outcome(&variant.discipline, &events);
                let found = outcome(&discipline, &changed);
                if found != before {
                    effective.insert((kind.clone(), key));
                }
                let is_later = FROM_THE_NEXT_TICK.contains(&(&*kind, key));
                if !is_later && found != expected {
                    *wrong.entry((kind.clone(), key)).or_default() += 1;
                }
            }
        }
    }
    assert_eq!(wrong, BTreeMap::new());
    let idle: Vec<_> = changeable.difference(&effective).collect();
    assert!(
        idle.is_empty(),
        "no value of these differs from another: {idle:?}"
    );
}

#[test]
fn the_same_parameters_change_nothing() {
    let events = events();
    for table in tables() {
        let case = case(&table).unwrap();
        let own = Event::Parameters(case.discipline.clone());
        let changed = events.iter().enumerate().flat_map(|(number, event)| {
            let own = (number % 13 == 0).then(|| own.clone());
            own.into_iter().chain([event.clone()])
        });
        let changed: Vec<_> = changed.collect();
        let [plain, changed] = [&events, &changed].map(|events| outcome(&case.discipline, events));
        assert_eq!(changed, plain, "{}", case.name);
    }
}
