//! Changes of a link while it works, hold-ups, losses and who is asked about a packet.

use crate::{Known, plain};

use aqmlab_aqm::{Details, Discipline};
use aqmlab_declare::tagged;
use aqmlab_link::{Dropped, Port, Transmission};
use aqmlab_net::{Ecn, FlowKey, Packet, Rate, Time};
use aqmlab_record::LinkDirection;
use aqmlab_scenario::{Link, LinkChange, Measure, Outage, Packets, RateChange, Reordering};
use toml::{Table, Value};

const MS: fn(u64) -> Time = Time::from_millis;

fn discipline(text: &str) -> Discipline {
    let table: Table = text.parse().expect("TOML");
    tagged::from_value(Value::Table(table)).expect("valid")
}

fn measure() -> Measure {
    Measure {
        warm_up: Time::ZERO,
        duration: Time::from_secs(1000),
        queue_sample: MS(10),
        ..Measure::default()
    }
}

type Make = fn(&LinkDirection, &Link, u64, &Measure) -> Port<usize>;

fn port(make: Make, link: &Link) -> Port<usize> {
    let name = LinkDirection {
        link: "bottleneck".to_owned(),
        direction: "forward",
    };
    make(&name, link, 1, &measure())
}

/// A packet of a flow, which has so many IP bytes.
fn packet(flow: u64, size: u32) -> Packet {
    Packet {
        size,
        ecn: Ecn::NotEct,
        dscp: 0,
        flow: FlowKey(flow),
    }
}

/// What a port has sent: what the packet is to its owner, and what became of it.
type Sent = Vec<(usize, Transmission)>;

/// A packet comes, which is its flow to its owner.
fn come(port: &mut Port<usize>, now: Time, packet: Packet, sent: &mut Sent) {
    let FlowKey(flow) = packet.flow;
    let details: Known<'_> = &|| Details {
        hosts: [flow % 2, 0],
        ack: None,
        client: None,
    };
    let mut dropped = Vec::new();
    match port.arrive(now, packet, 0) {
        Transmission::Waits => {
            sent.extend(port.take_in(now, (packet, 0), flow as usize, details, &mut dropped));
        }
        decided => sent.push((flow as usize, decided)),
    }
    for Dropped { item, reason, .. } in dropped {
        sent.push((item, Transmission::Dropped(reason.expect("a discipline's"))));
    }
}

/// All departures before `end`.
fn depart_before(port: &mut Port<usize>, end: Time, sent: &mut Sent) {
    while port.next_departure() < end {
        let now = port.next_departure();
        sent.extend(port.depart(now, &mut Vec::new()));
    }
}

/// When packets reached the far end; nothing: they were dropped or lost.
fn arrivals(sent: &Sent) -> Vec<Option<Time>> {
    let arrival = |transmission: &Transmission| match transmission {
        Transmission::Arrives(at, _) => Some(*at),
        _ => None,
    };
    sent.iter()
        .map(|(_, transmission)| arrival(transmission))
        .collect()
}

#[test]
fn rate_delay_and_limit_change_while_packets_wait() {
    let mut link = plain::link(8, 2);
    link.delay = MS(10);
    let mut port = port(Port::changeable, &link);
    let mut sent = Vec::new();
    for flow in 0..4 {
        come(&mut port, Time::ZERO, packet(flow, 1000), &mut sent);
    }
    // One is sent, two wait, one is dropped.
    assert_eq!(arrivals(&sent), [Some(MS(11)), None]);
    // The transmission under way ends as it began; the others take twice as long.
    port.change(
        Time::from_micros(500),
        &LinkChange::Rate(Rate::from_mbps(4)),
    );
    assert_eq!(port.transmission_time(1000), MS(2));
    assert_eq!(
        port.observe(Time::from_micros(500)).drain,
        Time::from_micros(4500)
    );
    depart_before(&mut port, MS(2), &mut sent);
    // The delay falls, but nothing overtakes the first packet.
    port.change(MS(2), &LinkChange::Delay(MS(1)));
    depart_before(&mut port, MS(6), &mut sent);
    let change = LinkChange::Discipline(Box::new(discipline(
        "kind = \"droptail\"\nlimit = \"4 packets\"",
    )));
    port.change(MS(6), &change);
    for flow in 0..6 {
        come(&mut port, MS(20), packet(flow, 1000), &mut sent);
    }
    depart_before(&mut port, Time::NEVER, &mut sent);
    // The second left at 1 ms with the long delay, the third at 3 ms with the short one.
    let expected = [11, 0, 13, 13, 23, 0, 25, 27, 29, 31];
    let expected = expected.map(|ms| (ms > 0).then_some(MS(ms)));
    assert_eq!(arrivals(&sent), expected);
    port.check_conservation().expect("a balance");
}

#[test]
#[should_panic(expected = "has decided them")]
fn a_port_that_has_computed_departures_keeps_its_rate() {
    let mut port = port(Port::new, &plain::link(8, 2));
    port.change(MS(1), &LinkChange::Rate(Rate::from_mbps(4)));
}

#[test]
#[should_panic(expected = "has decided them")]
fn a_port_past_whose_queue_packets_go_keeps_its_rate() {
    let mut link = plain::link(8, 2);
    link.discipline = discipline("kind = \"codel\"");
    let mut port = port(Port::new, &link);
    port.change(MS(1), &LinkChange::Rate(Rate::from_mbps(4)));
}

#[test]
fn departures_are_computed_where_nothing_can_change_them() {
    let plain = plain::link(8, 2);
    assert!(Port::<usize>::computes(&plain));
    let mut codel = plain.clone();
    codel.discipline = discipline("kind = \"codel\"");
    let mut varying = plain.clone();
    varying.rate_changes = vec![RateChange {
        at: Some(MS(5)),
        when: None,
        rate: Rate::from_mbps(4),
    }];
    let mut gated = plain;
    gated.outages = vec![Outage {
        at: MS(2),
        duration: MS(3),
    }];
    for link in [codel, varying, gated] {
        assert!(!Port::<usize>::computes(&link), "{link:?}");
    }
}

/// What falls due at a moment has not happened when that is looked at; what fell due earlier has.
#[test]
fn ticks_and_samples_have_come_up_to_now() {
    let pie = "kind = \"pie\"\nt_update = \"15 ms\"";
    let fq_pie = "kind = \"fq-pie\"\nt_update = \"15 ms\"";
    for text in [pie, fq_pie] {
        for make in [Port::new, Port::stored] {
            let mut link = plain::link(8, 2);
            link.discipline = discipline(text);
            let mut port = port(make, &link);
            for now in [1, 14, 15, 16, 45, 60, 61, 200].map(MS) {
                let state = port.observe(now);
                let tick = state.next_tick;
                assert!(now <= tick && tick < now + MS(15), "{now} {tick} {text}");
                let next = port.stats().next_sample();
                assert!(now <= next && next < now + MS(10), "{now} {next} {text}");
                let samples = port.stats().samples().rows().len() as u64;
                assert_eq!(MS(10 * samples), next);
                assert!(!state.probes.is_empty());
            }
        }
    }
}

#[test]
fn an_outage_holds_what_waits_and_nothing_else() {
    let codel = discipline("kind = \"codel\"");
    let droptail = plain::link(8, 9).discipline;
    for (discipline, ring) in [(droptail.clone(), 0), (droptail, 2), (codel, 0)] {
        for make in [Port::new, Port::stored] {
            let mut link = plain::link(8, 9);
            (link.discipline, link.device_ring) = (discipline.clone(), Packets(ring));
            link.outages = vec![Outage {
                at: MS(2),
                duration: MS(3),
            }];
            let mut port = port(make, &link);
            let mut sent = Vec::new();
            come(&mut port, MS(1), packet(0, 1000), &mut sent);
            assert!(!port.is_held());
            depart_before(&mut port, MS(3), &mut sent);
            // Nothing waits: nobody is woken.
            assert_eq!(
                (port.is_held(), port.next_departure()),
                (false, Time::NEVER)
            );
            for flow in 1..4 {
                come(&mut port, MS(3), packet(flow, 1000), &mut sent);
                assert!(port.is_held() && port.next_departure() == MS(5));
            }
            assert_eq!(port.stored_packets(), 3);
            // Three packets of 1 ms, once the outage is over.
            assert_eq!(port.observe(MS(4)).drain, MS(4));
            sent.extend(port.depart(MS(5), &mut Vec::new()));
            assert!(!port.is_held());
            depart_before(&mut port, Time::NEVER, &mut sent);
            assert_eq!(arrivals(&sent), [2, 6, 7, 8].map(|ms| Some(MS(ms))));
            // One that comes when an outage ends is not held.
            let mut port = self::port(make, &link);
            come(&mut port, MS(5), packet(0, 1000), &mut sent);
            assert!(!port.is_held() && port.next_departure() == MS(6));
        }
    }
}

#[test]
fn a_shaper_holds_the_wire() {
    let mut link = plain::link(80, 9);
    // A packet of 1000 bytes takes 0.1 ms, and 1 ms of what the shaper gives.
    link.discipline = discipline("kind = \"cake\"\nbandwidth = \"8 Mbit/s\"");
    let mut port = port(Port::new, &link);
    let mut sent = Vec::new();
    for flow in 0..4 {
        come(&mut port, MS(1), packet(flow, 1000), &mut sent);
    }
    assert!(!port.is_held());
    let mut held = 0;
    while port.next_departure() < Time::NEVER {
        let now = port.next_departure();
        sent.extend(port.depart(now, &mut Vec::new()));
        held += u32::from(port.is_held());
    }
    assert_eq!((sent.len(), held), (4, 3));
    assert!(!port.is_held() && port.stored_packets() == 0);
}

#[test]
fn packets_are_lost_and_held_up_in_their_shares() {
    const COUNT: u64 = 20_000;
    for (loss, share) in [(0.1, 0.25), (0.1, 0.0), (0.0, 0.25)] {
        for make in [Port::new, Port::stored] {
            let mut link = plain::link(8, 9);
            (link.delay, link.loss) = (MS(3), loss);
            link.reordering = (share > 0.0).then_some(Reordering {
                share,
                delay: MS(2),
            });
            let mut port = port(make, &link);
            let (mut lost, mut held_up) = (0, 0);
            for number in 0..COUNT {
                let now = MS(10 * number);
                let mut sent = Vec::new();
                come(&mut port, now, packet(0, 1000), &mut sent);
                depart_before(&mut port, now + MS(10), &mut sent);
                match sent[..] {
                    [(_, Transmission::Lost(at))] => {
                        assert_eq!(at, now + MS(1));
                        lost += 1;
                    }
                    [(_, Transmission::Arrives(at, _))] => {
                        let beyond = at - now;
                        assert!([MS(4), MS(6)].contains(&beyond), "{beyond}");
                        held_up += u64::from(beyond == MS(6));
                    }
                    _ => panic!("{sent:?}"),
                }
            }
            // Five standard deviations.
            let near = |found: u64, of: u64, share: f64| {
                let mean = of as f64 * share;
                (found as f64 - mean).abs() <= 5.0 * (mean * (1.0 - share)).sqrt()
            };
            assert!(near(lost, COUNT, loss), "{lost}");
            assert!(near(held_up, COUNT - lost, share), "{held_up}");
            let counted = format!("wire_lost_packets: {lost},");
            assert!(format!("{:?}", port.into_stats()).contains(&counted));
        }
    }
}

/// A packet is lost, or held up, if its draw lies below the probability. A probability that is a
/// draw itself shows which side that draw is on.
#[test]
fn a_packet_whose_draw_is_the_probability_is_spared() {
    const COUNT: usize = 200;
    let name = LinkDirection {
        link: "bottleneck".to_owned(),
        direction: "forward",
    };
    let draws = |purpose: &str| {
        let mut stream = name.random_stream(1, purpose);
        (0..COUNT).map(|_| stream.uniform()).collect::<Vec<f64>>()
    };
    let (losses, delays) = (draws("loss"), draws("reordering"));
    for place in [3, 50, 199] {
        let (loss, share) = (losses[place], delays[COUNT - 1 - place]);
        for make in [Port::new, Port::stored] {
            let mut link = plain::link(8, 9);
            link.loss = loss;
            link.reordering = Some(Reordering {
                share,
                delay: MS(2),
            });
            let mut port = port(make, &link);
            let mut arrived = 0;
            for (number, draw) in (0..).zip(&losses) {
                let now = MS(10 * number);
                let mut sent = Vec::new();
                come(&mut port, now, packet(0, 1000), &mut sent);
                depart_before(&mut port, now + MS(10), &mut sent);
                let expected = if *draw < loss {
                    None
                } else {
                    let is_held_up = delays[arrived] < share;
                    arrived += 1;
                    Some(now + MS(if is_held_up { 3 } else { 1 }))
                };
                assert_eq!(arrivals(&sent), [expected], "{number}");
            }
        }
    }
}

#[test]
fn a_processor_takes_its_time_for_packets_of_any_size() {
    let mut link = plain::link(8, 9);
    link.packet_time = Some(MS(7));
    for make in [Port::new, Port::stored] {
        let mut port = port(make, &link);
        let times = [40, 2047, 2048, 65_535].map(|size| port.transmission_time(size));
        assert_eq!(times, [MS(7); 4]);
        let mut sent = Vec::new();
        for size in [40, 60_000] {
            come(&mut port, Time::ZERO, packet(0, size), &mut sent);
        }
        depart_before(&mut port, Time::NEVER, &mut sent);
        assert_eq!(arrivals(&sent), [7, 14].map(|ms| Some(MS(ms))));
    }
}

/// CAKE learns from the port's owner whose packet it is: one host with a flow gets as much as one
/// with nine.
#[test]
fn a_discipline_that_asks_for_hosts_is_told() {
    let mut link = plain::link(8, 9);
    link.discipline = discipline("kind = \"cake\"\nisolation = \"dual-srchost\"");
    let mut port = port(Port::new, &link);
    let mut sent = Vec::new();
    for _ in 0..100 {
        // Flow 1 is of host 1, the others of host 0.
        for flow in [1, 2, 4, 6, 8, 10, 12, 14, 16, 18] {
            come(&mut port, Time::ZERO, packet(flow, 1000), &mut sent);
        }
    }
    depart_before(&mut port, MS(150), &mut sent);
    let alone = sent.iter().filter(|(flow, _)| *flow == 1).count();
    assert!((60..=90).contains(&alone), "{alone} of {}", sent.len());
}
