//! What becomes of packets that cross a link and the air.

use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};

use aqmlab_net::RandomStream;
use aqmlab_scenario::Topology;

use super::*;
use crate::ip::tests::udp;
use crate::lane::Lane;
use crate::routes::{Route, Routes};
use crate::shell::NEAR;

const FAR: &str = "100.64.0.1:7";

/// A program and a user, each with a station of its own.
struct Bench {
    on_air: OnAir,
    program: SocketAddrV4,
    user: SocketAddrV4,
}

impl Bench {
    /// With such Wi-Fi, whose stations have these MCS.
    fn new(wifi: &str, [program, user]: [u32; 2]) -> Self {
        let class = |name: &str| {
            format!(
                "[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\nflows = 1\n\
                 rtt = {{ kind = \"constant\", rtt = \"20 ms\" }}\n"
            )
        };
        let text = format!(
            "[measure]\nwarm_up = \"0 s\"\nduration = \"10 s\"\n\
             [topology]\nkind = \"dumbbell\"\n[topology.bottleneck]\nrate = \"1 Gbit/s\"\n\
             framing = \"none\"\ndelay = \"2 ms\"\n\
             discipline = {{ kind = \"droptail\", limit = \"5000 packets\" }}\n\
             [topology.wifi]\n{wifi}\nstations = [{{ mcs = {program}, class = \"program\" }}, \
             {{ mcs = {user} }}]\n{}{}",
            class("program"),
            class("user")
        );
        let scenario = Scenario::parse(&text, &[], &mut |_| unreachable!()).unwrap();
        let Topology::Dumbbell(dumbbell) = &scenario.topology else {
            unreachable!("it says so above");
        };
        let user = SocketAddrV4::new(Side::Clients.address(3), 2000);
        let routes = Arc::new(Routes::default());
        let delays = [Time::from_millis(5), Time::from_millis(3)];
        let route = Route::new(9, 1, Time::from_millis(20), delays, None);
        routes.insert(user, Arc::new(route));
        let paths = Side::BOTH.map(|from| {
            let routes = Some(routes.clone());
            Path::open(
                &scenario,
                dumbbell,
                from,
                Time::ZERO,
                routes,
                Arc::default(),
            )
        });
        let wifi = dumbbell.wifi.as_ref().expect("it has some");
        Self {
            on_air: OnAir::new(&scenario, wifi, paths),
            program: SocketAddrV4::new(NEAR, 5000),
            user,
        }
    }

    /// A packet of so many IP bytes of the program or the user crosses everything one way.
    fn send(&mut self, from: Side, at: Time, is_user: bool, size: usize) {
        let (near, far) = match is_user {
            true => (self.user, SocketAddrV4::new(Side::Servers.address(2), 990)),
            false => (self.program, FAR.parse().unwrap()),
        };
        let packet = match from {
            Side::Servers => udp(far, near, size - 28),
            Side::Clients => udp(near, far, size - 28),
        };
        self.on_air.enter(from, at, &packet);
    }

    /// What has gone out by `now`: way, time in nanoseconds and size.
    fn out(&mut self, now: Time, out: &mut Vec<(Side, u64, usize)>) {
        self.on_air.advance(now);
        for from in Side::BOTH {
            while let Some((due, packet)) = self.on_air.pop(from, now) {
                assert!(due <= now);
                out.push((from, due.as_nanos(), packet.len()));
            }
        }
    }
}

#[test]
fn a_lone_packet_takes_its_links_and_an_idle_medium() {
    let mut bench = Bench::new("", [15, 0]);
    let air = |size| bench.on_air.air.transmission_time(0, size, 0).as_nanos();
    let [down, up] = [air(1500), air(100)];
    let mut out = Vec::new();
    bench.send(Side::Servers, Time::ZERO, false, 1500);
    bench.out(Time::from_millis(50), &mut out);
    bench.send(Side::Clients, Time::from_millis(60), false, 100);
    bench.out(Time::from_millis(99), &mut out);
    // The medium has been idle for longer than the 43 us before a transmission, which begins with a
    // slot of 9 us.
    let came = |out: &(Side, u64, usize), expected: (Side, u64, usize)| {
        assert_eq!((out.0, out.2), (expected.0, expected.2));
        let early = expected.1 - out.1;
        assert!((34_000..=43_000).contains(&early), "{early}");
    };
    // 12 us, and 0.8 us, on the wire of 1 Gbit/s, 2 ms behind it.
    came(&out[0], (Side::Servers, 2_012_000 + down, 1500));
    came(&out[1], (Side::Clients, 60_000_000 + up + 2_000_800, 100));
    // A station far away: its delays are before the link down, and behind the link up.
    let far = bench.on_air.air.transmission_time(1, 1500, 0).as_nanos();
    assert!(far > 6 * down, "{far} {down}");
    out.clear();
    bench.send(Side::Servers, Time::from_millis(100), true, 1500);
    bench.out(Time::from_millis(190), &mut out);
    bench.send(Side::Clients, Time::from_millis(200), true, 1500);
    bench.out(Time::from_millis(299), &mut out);
    let down = 100_000_000 + 3_000_000 + 2_012_000 + far;
    let up = 200_000_000 + far + 2_012_000 + 5_000_000;
    came(&out[0], (Side::Servers, down, 1500));
    came(&out[1], (Side::Clients, up, 1500));
}

#[test]
fn a_router_that_looks_late_does_the_same() {
    for wifi in ["", "queue = \"fifo\"\nfifo = \"30 packets\""] {
        let mut seen = Vec::new();
        for step in [Time::from_micros(20), Time::from_millis(40)] {
            let mut bench = Bench::new(wifi, [15, 4]);
            let mut draws = RandomStream::new(5, "sent", 0);
            let (mut at, mut looked, mut out) = (Time::ZERO, Time::ZERO, Vec::new());
            for _ in 0..6000 {
                at += Time::from_secs_f64(draws.exponential(0.12e-3));
                while looked + step < at {
                    looked += step;
                    bench.out(looked, &mut out);
                }
                let from = Side::BOTH[draws.below(2)];
                bench.send(
                    from,
                    at,
                    draws.below(3) == 0,
                    [40, 576, 1500][draws.below(3)],
                );
            }
            let end = Time::from_secs(10);
            bench.out(end.saturating_sub(Time::from_nanos(1)), &mut out);
            out.sort_by_key(|it| (it.0 as usize, it.1));
            let (links, stations) = bench.on_air.close(end);
            seen.push((out, format!("{links:?}"), format!("{stations:?}")));
        }
        assert!(seen[0].0.len() > 4000, "{}", seen[0].0.len());
        assert!(seen[0].0 == seen[1].0, "{wifi}: other packets");
        assert!(seen[0].1 == seen[1].1, "{wifi}: other links");
        assert_eq!(seen[0].2, seen[1].2);
    }
}

#[test]
fn both_directions_close_together() {
    let mut bench = Bench::new("queue = \"fifo\"\nfifo = \"20 packets\"", [15, 0]);
    for number in 0..400 {
        bench.send(Side::Servers, Time::from_micros(12 * number), false, 1500);
    }
    let mut out = Vec::new();
    bench.out(Time::from_secs(1), &mut out);
    let shared = Arc::new(Mutex::new(bench.on_air));
    let [down, up] = Side::BOTH.map(|from| Lane::Shared(shared.clone(), from));
    drop(shared);
    let end = Time::from_secs(10);
    let [first, last] = [up.close(end), down.close(end)];
    assert!(first.links.is_empty() && first.stations.is_empty());
    assert!(first.ledger.is_some() && last.ledger.is_some());
    let names: Vec<_> = last.links.iter().map(|it| it.name().stream()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names[2].contains("wifi"), "{names:?}");
    // 143 have room in the one queue and in the driver, more in the hardware; the rest is lost.
    assert!((143..300).contains(&out.len()), "{}", out.len());
    let [down, up] = last.stations[0].tallies;
    assert_eq!(down.packets, out.len() as u64);
    // 32 full packets in a transmission of 4 ms.
    assert!(down.transmissions < 20, "{}", down.transmissions);
    assert_eq!(up.transmissions, 0);
}
