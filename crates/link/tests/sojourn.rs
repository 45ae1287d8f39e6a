//! Sojourn times against theory, whichever way a port finds departures.

use crate::{Known, plain};

use aqmlab_aqm::Details;
use aqmlab_link::{Port, Transmission};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Time};
use aqmlab_record::{LinkDirection, LinkStats};
use aqmlab_scenario::{Link, Measure};

type Make = fn(&LinkDirection, &Link, u64, &Measure) -> Port<usize>;

const MAKES: [Make; 2] = [Port::new, Port::stored];

/// Every packet takes a millisecond to send.
const SERVICE: Time = Time::from_millis(1);

/// What a drop-tail port without a limit that matters counts from `warm_up` on, of packets that
/// come at these times with these classes.
fn stats(make: Make, warm_up: Time, arrivals: &[(Time, u16)]) -> LinkStats {
    let link = plain::link(8, 1_000_000);
    let (last, _) = arrivals[arrivals.len() - 1];
    let measure = Measure {
        warm_up,
        duration: last + Time::from_secs(10) - warm_up,
        ..Measure::default()
    };
    let name = LinkDirection {
        link: "bottleneck".to_owned(),
        direction: "forward",
    };
    let packet = Packet {
        size: 1000,
        ecn: Ecn::NotEct,
        dscp: 0,
        flow: FlowKey(1),
    };
    let mut port = make(&name, &link, 1, &measure);
    let mut dropped = Vec::new();
    for &(at, class) in arrivals {
        while port.next_departure() <= at {
            port.depart(port.next_departure(), &mut dropped);
        }
        if port.arrive(at, packet, class) == Transmission::Waits {
            let details: Known<'_> = &Details::default;
            port.take_in(at, (packet, class), 0, details, &mut dropped);
        }
    }
    while port.next_departure() < Time::NEVER {
        port.depart(port.next_departure(), &mut dropped);
    }
    port.close(warm_up + measure.duration);
    assert!(dropped.is_empty());
    port.into_stats()
}

#[test]
fn of_bursts_computed_by_hand() {
    // Ten packets at once every 20 ms wait for 0 to 9 ms. The first half of each burst belongs to
    // class 0, the second to class 2. The first burst is not measured.
    let arrivals: Vec<_> = (0..101)
        .flat_map(|burst| (0..10).map(move |n| (Time::from_millis(20 * burst), n / 5 * 2)))
        .collect();
    for make in MAKES {
        let stats = stats(make, Time::from_millis(20), &arrivals);
        let all = stats.sojourn();
        assert_eq!((all.count(), all.max_s()), (1000, Some(0.009)));
        assert!((all.mean_s().expect("packets") - 0.0045).abs() < 1e-12);
        let found = all.quantiles_s([0.1, 0.5, 0.9, 0.95, 0.999]);
        for (found, ms) in found.into_iter().zip([0.0, 4.0, 8.0, 9.0, 9.0]) {
            let error = 1e3 * found.expect("packets") - ms;
            assert!((0.0..=ms / 128.0).contains(&error), "{found:?} {ms}");
        }
        let classes: Vec<_> = stats
            .by_class()
            .map(|(class, it)| (class, it.delays.count(), it.delays.max_s()))
            .collect();
        assert_eq!(classes, [(0, 500, Some(0.004)), (2, 500, Some(0.009))]);
    }
}

/// Waiting times of M/D/1 at a load of one half: Erlang 1909; Iversen and Staalhagen, "Waiting time
/// distribution in M/D/1 queueing systems" (Electronics Letters 35, 1999).
#[test]
fn of_poisson_arrivals_at_half_load() {
    let load: f64 = 0.5;
    let mut draws = RandomStream::new(3, "arrivals", 0);
    let mut now = 0.0;
    let arrivals: Vec<_> = (0..400_000)
        .map(|_| {
            now += draws.exponential(SERVICE.as_secs_f64() / load);
            (Time::from_secs_f64(now), 0)
        })
        .collect();
    for make in MAKES {
        let sojourn = stats(make, Time::from_secs(10), &arrivals).sojourn();
        let mean = sojourn.mean_s().expect("packets");
        let expected = SERVICE.as_secs_f64() * load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} {expected}");
        let within = |times: f64| {
            let bins = sojourn.bins();
            let below = bins.filter(|(end, _)| *end <= times * SERVICE.as_secs_f64() * 1.004);
            below.map(|(_, count)| count).sum::<u64>() as f64 / sojourn.count() as f64
        };
        let idle = 1.0 - load;
        let expected = [
            (0.0001, idle),
            (0.5, idle * (load / 2.0).exp()),
            (1.0, idle * load.exp()),
            (2.0, idle * ((2.0 * load).exp() - load * load.exp())),
        ];
        for (times, expected) in expected {
            let found = within(times);
            assert!(
                (found - expected).abs() < 0.005,
                "{times} {found} {expected}"
            );
        }
    }
}
