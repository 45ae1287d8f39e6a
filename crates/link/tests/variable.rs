//! Links that vary: departures and arrivals against sums by hand.

use crate::{Known, plain};

use aqmlab_aqm::Details;
use aqmlab_link::{Port, Transmission};
use aqmlab_net::{Ecn, FlowKey, Packet, Time};
use aqmlab_record::LinkDirection;
use aqmlab_scenario::{DelayChange, Framing, Link, LossChange, Measure, Outage, Trace};

const MS: fn(u64) -> Time = Time::from_millis;

fn link() -> Link {
    plain::link(12, 100)
}

fn traced(opportunities: &[u32], aggregate: u32) -> Link {
    Link {
        trace: Some(Trace {
            file: None,
            opportunities: opportunities.to_vec(),
            aggregate,
        }),
        ..link()
    }
}

/// Packets of (arrival in ms, bytes): when each reaches the far end, in ms.
fn arrivals(link: &Link, packets: &[(u64, u32)]) -> Vec<u64> {
    let measure = Measure {
        warm_up: Time::ZERO,
        duration: Time::from_secs(10),
        ..Measure::default()
    };
    let name = LinkDirection {
        link: "bottleneck".to_owned(),
        direction: "forward",
    };
    let mut port: Port<usize> = Port::new(&name, link, 1, &measure);
    let mut arrived = vec![0; packets.len()];
    let mut dropped = Vec::new();
    let mut note = |sent: Option<(usize, Transmission)>| match sent {
        Some((number, Transmission::Arrives(at, _))) => {
            assert_eq!(at.as_nanos() % 1_000_000, 0, "{at}");
            arrived[number] = at.as_nanos() / 1_000_000;
        }
        // What is lost on the wire arrives never.
        Some((_, Transmission::Lost(_))) => {}
        Some(other) => panic!("{other:?}"),
        None => {}
    };
    let depart_before = |port: &mut Port<usize>, end: Time, note: &mut dyn FnMut(_)| {
        while port.next_departure() < end {
            let now = port.next_departure();
            note(port.depart(now, &mut Vec::new()));
        }
    };
    for (number, &(at, size)) in packets.iter().enumerate() {
        let now = MS(at);
        // At equal times departures come first.
        depart_before(&mut port, now + Time::from_nanos(1), &mut note);
        let packet = Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        };
        match port.arrive(now, packet, 0) {
            Transmission::Waits => {
                let details: Known<'_> = &Details::default;
                note(port.take_in(now, (packet, 0), number, details, &mut dropped));
            }
            transmission => note(Some((number, transmission))),
        }
    }
    depart_before(&mut port, Time::NEVER, &mut note);
    port.close(Time::from_secs(10));
    port.check_conservation().expect("a balance");
    assert_eq!(port.stored_packets(), 0);
    assert!(dropped.is_empty());
    arrived
}

#[test]
fn full_packets_leave_at_opportunities_and_the_trace_begins_again() {
    // Two at 3 ms, one at 7, one at 10, which is the end: then 13, 13, 17, 20.
    let link = traced(&[3, 3, 7, 10], 1);
    let found = arrivals(&link, &[(0, 1500); 7]);
    assert_eq!(found, [3, 3, 7, 10, 13, 13, 17]);
}

#[test]
fn what_nobody_uses_is_lost() {
    let link = traced(&[3, 3, 7, 10], 1);
    // The first opportunity at 3 ms is used, the second is not; at 7 ms one comes in time.
    assert_eq!(
        arrivals(&link, &[(1, 1500), (4, 1500), (7, 1500)]),
        [3, 7, 10]
    );
    // One that comes at the moment of an opportunity gets it.
    assert_eq!(arrivals(&link, &[(7, 1500)]), [7]);
}

#[test]
fn packets_share_opportunities_and_large_ones_take_several() {
    let link = traced(&[2, 5, 6], 1);
    // 500 + 500 + 500 bytes at 2 ms; 40 at 5 ms, and 1460 of the next 1500, whose rest goes at 6 ms.
    let packets = [500, 500, 500, 40, 1500, 1460].map(|size| (0, size));
    assert_eq!(arrivals(&link, &packets), [2, 2, 2, 5, 6, 6]);
}

#[test]
fn framing_takes_its_part_of_opportunities() {
    let mut link = traced(&[2, 5, 6], 1);
    link.framing = Framing(38);
    // Ten of 150 bytes on the wire.
    let packets = [(0, 112); 25];
    let expected = [[2; 10].as_slice(), &[5; 10], &[6; 5]].concat();
    assert_eq!(arrivals(&link, &packets), expected);
}

#[test]
fn aggregated_opportunities_come_when_the_last_of_them_does() {
    let link = traced(&[1, 2, 3, 4, 5, 6, 7, 10], 3);
    // Granted at 3, 6 and, what is left, at 10 ms.
    let found = arrivals(&link, &[(0, 1500); 9]);
    assert_eq!(found, [3, 3, 3, 6, 6, 6, 10, 10, 13]);
}

#[test]
fn packets_of_a_batch_leave_together() {
    let mut link = link();
    (link.ack_batch, link.delay) = (MS(4), MS(1));
    // Their transmissions end at 1, 2, 3, 4 and 5 ms; one that ends at a multiple leaves at once.
    assert_eq!(arrivals(&link, &[(0, 1500); 5]), [5, 5, 5, 5, 9]);
}

#[test]
fn loss_begins_and_ends_at_its_times() {
    let mut link = link();
    link.loss_changes = [(3, 0.999_999), (6, 0.0)]
        .map(|(at, loss)| LossChange {
            at: Some(MS(at)),
            when: None,
            loss,
        })
        .to_vec();
    // Transmissions end at 1 to 7 ms: those that end at 3, 4 and 5 ms are lost.
    assert_eq!(arrivals(&link, &[(0, 1500); 7]), [1, 2, 0, 0, 0, 6, 7]);
}

#[test]
fn nothing_begins_in_an_outage() {
    // 1500 bytes take 1 ms. The one under way at 2.5 ms ends at 3 ms.
    let mut link = link();
    link.outages = [(2, 3), (8, 1)]
        .map(|(at, duration)| Outage {
            at: MS(at) + Time::from_micros(500),
            duration: MS(duration) - Time::from_micros(500),
        })
        .to_vec();
    let found = arrivals(&link, &[(0, 1500); 7]);
    // Out from 2.5 to 5 and from 8.5 to 9 ms.
    assert_eq!(found, [1, 2, 3, 6, 7, 8, 9]);
    assert_eq!(arrivals(&link, &[(0, 1500), (3, 1500)]), [1, 6]);
    // Opportunities within an outage are lost.
    let mut traced = traced(&[1, 2, 3, 4, 5], 1);
    traced.outages = vec![Outage {
        at: MS(2),
        duration: MS(2),
    }];
    assert_eq!(arrivals(&traced, &[(0, 1500); 4]), [1, 4, 5, 6]);
}

#[test]
fn a_delay_that_falls_keeps_the_order() {
    let mut link = link();
    link.delay = MS(10);
    link.delay_changes = vec![
        DelayChange {
            when: None,
            at: Some(MS(2)),
            delay: MS(20),
        },
        DelayChange {
            when: None,
            at: Some(MS(4)),
            delay: MS(5),
        },
    ];
    // They leave at 1, 2, 3, 4, 5 and 30 ms.
    let packets = [0, 0, 0, 0, 0, 29].map(|at| (at, 1500));
    assert_eq!(arrivals(&link, &packets), [11, 22, 23, 23, 23, 35]);
}
