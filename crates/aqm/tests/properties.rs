//! What holds for every discipline, whatever happens to it: nothing is lost or made up, limits
//! hold, flows keep their order, marks are only for the capable, no number goes astray, and the
//! same events with the same random numbers end the same way.

use crate::model;

use aqmlab_aqm::{Discipline, Queue, Reason};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};
use model::{Event, LINK, cases, check, checked, play};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn every_discipline_has_a_case() {
    let cases = cases();
    for about in Discipline::ABOUT {
        // `aqmlab check` puts the same questions to a plug-in; tests/test_plugins.py runs it.
        if about.title == "A discipline of your own" {
            continue;
        }
        let covered = cases.iter().any(|case| case.discipline.about() == *about);
        assert!(covered, "{} has no case in this file", about.title);
    }
}

/// Draws one of a list; what stands there several times is so much likelier.
fn one_of<T: Copy>(stream: &mut RandomStream, list: &[T]) -> T {
    list[stream.below(list.len())]
}

fn random_packet(stream: &mut RandomStream) -> Packet {
    let any_size = 40 + stream.below(1461) as u32;
    let any_flow = (stream.uniform() * 1e18) as u64;
    let few_flows = stream.below(5) as u64;
    let flows = [few_flows, few_flows, few_flows, any_flow];
    Packet {
        size: one_of(stream, &[1, any_size, any_size, 1500]),
        ecn: Ecn::from_bits(stream.below(4) as u8),
        dscp: one_of(stream, &[0, 10, 12]),
        flow: FlowKey(one_of(stream, &flows)),
    }
}

/// The first `count` of the events that belong to a seed.
fn random_events(seed: u64, count: usize) -> Vec<Event> {
    let mut stream = RandomStream::new(seed, "events", 0);
    let event = |_| match stream.below(140) {
        0 => Event::Rate(one_of(&mut stream, &[100_000, 10_000_000, 10_000_000_000])),
        1..=60 => Event::Arrive(random_packet(&mut stream)),
        61..=100 => Event::Depart,
        101..=105 => Event::Pause(Time::from_nanos(stream.below(50_000_000) as u64)),
        _ => Event::Pause(Time::from_nanos(stream.below(1_000_000) as u64)),
    };
    (0..count).map(event).collect()
}

#[test]
fn a_discipline_names_each_of_its_reasons_once() {
    for case in cases() {
        let reasons = case.discipline.reasons();
        assert!(reasons.contains(&Reason::OVERFLOW), "{:?}", case.discipline);
        for (number, reason) in reasons.iter().enumerate() {
            assert!(reason.index() < Reason::MOST, "{reason:?}");
            for other in &reasons[..number] {
                assert_ne!(reason.index(), other.index(), "{reason:?} and {other:?}");
                assert_ne!(reason.name(), other.name());
            }
        }
    }
}

#[test]
fn whatever_happens() {
    for case in cases() {
        let config = Config {
            cases: 256,
            failure_persistence: None,
            ..Config::default()
        };
        let runs = (any::<u64>(), 0_usize..500);
        let outcome = TestRunner::new(config).run(&runs, |(seed, count)| {
            check(&case, &random_events(seed, count));
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{}: {error}", case.name);
        }
    }
}

#[test]
fn hours_of_silence() {
    let packet = |id: u64| Packet {
        size: 1000,
        ecn: Ecn::Ect0,
        dscp: 0,
        flow: FlowKey(id % 3),
    };
    let millisecond = Event::Pause(Time::from_millis(1));
    let busy = (0..200).flat_map(|id| {
        let departs = (id % 3 < 2).then_some(Event::Depart);
        let arrives = [Event::Arrive(packet(id)), millisecond.clone()];
        arrives.into_iter().chain(departs)
    });
    let busy: Vec<_> = busy.collect();
    let drained = vec![Event::Depart; 250];
    let silence = vec![Event::Pause(Time::from_secs(3600))];
    for case in cases() {
        // Silence with packets waiting, and with none.
        let events = [&busy, &silence, &busy, &drained, &silence, &busy].map(Vec::as_slice);
        checked(&case, &events.concat());
    }
}

#[test]
fn disciplines_that_know_ecn_mark_and_signal_what_they_drop_without_it() {
    let packet = |ecn, id: u64| Packet {
        size: 500,
        ecn,
        dscp: 0,
        flow: FlowKey(id % 8),
    };
    for case in cases() {
        let signals = |ecn: Ecn| {
            let mut queue: Queue<usize> = Queue::new(&case.discipline, LINK, 1);
            // Packets leave at about the link's rate, and five come for four that leave.
            let events: Vec<_> = (0..4000)
                .flat_map(|id| {
                    let departs = (id % 5 < 4).then_some(Event::Depart);
                    let pause = Event::Pause(Time::from_micros(340));
                    [Event::Arrive(packet(ecn, id)), pause]
                        .into_iter()
                        .chain(departs)
                })
                .collect();
            play(&mut queue, &events, |_, _, _, _| ());
            queue.counters().clone()
        };
        let [capable, incapable] = [Ecn::Ect0, Ecn::NotEct].map(signals);
        assert_eq!(capable.marked_packets() > 0, case.ecn, "{}", case.name);
        assert_eq!(incapable.marked_packets(), 0, "{}", case.name);
        assert!(incapable.dropped_packets() > 0, "{}", case.name);
    }
}
