//! The ring of a network card lies behind the discipline, which cannot see it.

use crate::{Known, plain};

use aqmlab_aqm::Details;
use aqmlab_link::{Port, Transmission};
use aqmlab_net::{Ecn, FlowKey, Packet, Time};
use aqmlab_record::LinkDirection;
use aqmlab_scenario::{Link, Measure, Packets};

fn port(
    make: fn(&LinkDirection, &Link, u64, &Measure) -> Port<usize>,
    [ring, batch]: [u32; 2],
) -> Port<usize> {
    let link = Link {
        device_ring: Packets(ring),
        device_ring_batch: Packets(batch),
        device_ring_counted: false,
        ..plain::link(8, 2)
    };
    let measure = Measure {
        warm_up: Time::ZERO,
        duration: Time::from_secs(1),
        ..Measure::default()
    };
    let name = LinkDirection {
        link: "bottleneck".to_owned(),
        direction: "forward",
    };
    make(&name, &link, 1, &measure)
}

/// Eight packets of 1 ms arrive at once: in which millisecond they reach the far end, if they do.
fn burst(mut port: Port<usize>) -> Vec<Option<u64>> {
    let packet = Packet {
        size: 1000,
        ecn: Ecn::NotEct,
        dscp: 0,
        flow: FlowKey(1),
    };
    let (mut arrived, mut dropped) = (vec![None; 8], Vec::new());
    let mut note = |sent: Option<(usize, Transmission)>| {
        if let Some((number, Transmission::Arrives(at, _))) = sent {
            arrived[number] = Some(at.as_nanos() / 1_000_000);
        }
    };
    for number in 0..8 {
        match port.arrive(Time::ZERO, packet, 0) {
            Transmission::Waits => {
                let details: Known<'_> = &Details::default;
                note(port.take_in(Time::ZERO, (packet, 0), number, details, &mut dropped));
            }
            transmission => note(Some((number, transmission))),
        }
    }
    while port.next_departure() < Time::NEVER {
        let now = port.next_departure();
        note(port.depart(now, &mut dropped));
    }
    port.check_conservation().expect("a balance");
    assert_eq!(port.stored_packets(), 0);
    arrived
}

#[test]
fn a_ring_holds_packets_beyond_the_limit_of_the_discipline() {
    for make in [Port::new, Port::stored] {
        // One on the wire and two that wait.
        let alone = [Some(1), Some(2), Some(3), None, None, None, None, None];
        assert_eq!(burst(port(make, [0, 1])), alone);
        // And three in the ring.
        let with_ring = [
            Some(1),
            Some(2),
            Some(3),
            Some(4),
            Some(5),
            Some(6),
            None,
            None,
        ];
        assert_eq!(burst(port(make, [3, 1])), with_ring);
    }
}
