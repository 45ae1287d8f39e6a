//! What a way through the router does with packets.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddrV4;
use std::sync::Mutex;

use aqmlab_aqm::Discipline;
use aqmlab_net::RandomStream;
use aqmlab_record::{PacketOutcome, PacketRow};
use aqmlab_scenario::Topology;

use super::*;
use crate::ip::tests::tcp;
use crate::writing::{Sink, Writing};

const LINK: &str = "rate = \"8 Mbit/s\"\ndelay = \"3 ms\"\n";

/// The forward path of a link with such queue and hosts, and one connection on it with a
/// delay of 10 ms to the port.
struct Bench {
    scenario: Scenario,
    path: Path,
    client: SocketAddrV4,
    route: Arc<Route>,
}

impl Bench {
    fn new(link: &str, hosts: &str) -> Self {
        let text = format!(
            "[measure]\nwarm_up = \"0 s\"\nduration = \"10 s\"\n\
             [topology]\nkind = \"dumbbell\"\n[topology.hosts]\n{hosts}\n\
             [topology.bottleneck]\n{link}\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n\
             rtt = {{ kind = \"constant\", rtt = \"26 ms\" }}\n"
        );
        let scenario = Scenario::parse(&text, &[], &mut |_| unreachable!()).unwrap();
        let Topology::Dumbbell(dumbbell) = &scenario.topology else {
            unreachable!("it says so above");
        };
        let routes = Arc::new(Routes::default());
        let client = SocketAddrV4::new(Side::Clients.address(1), 2000);
        let route = Arc::new(Route::new(
            7,
            0,
            Time::from_millis(26),
            [Time::from_millis(10); 2],
            None,
        ));
        routes.insert(client, route.clone());
        Self {
            path: Path::new(&scenario, dumbbell, Side::Servers, routes),
            scenario: scenario.clone(),
            client,
            route,
        }
    }

    /// A server sends a packet with so many IP bytes.
    fn send(&mut self, now: Time, tos: u8, size: usize) {
        let server = SocketAddrV4::new(Side::Servers.address(2), 80);
        let packet = tcp(server, self.client, tos, (1, 16, size - 40));
        self.path.enter(now, &packet);
    }

    /// A server sends a datagram with so many IP bytes.
    fn send_datagram(&mut self, now: Time, size: usize) {
        let server = SocketAddrV4::new(Side::Servers.address(2), 80);
        let mut packet = tcp(server, self.client, 0, (1, 0, size - 40));
        packet[9] = ip::UDP;
        self.path.enter(now, &packet);
    }

    /// How many packets came to the input, and to the port, and how many were dropped there.
    fn counted(&mut self, now: Time) -> [(u64, u64); 2] {
        let input = self.path.input.as_mut().expect("its scenario has one");
        [&mut input.port, &mut self.path.port].map(|port| {
            let counters = port.observe(now).counters;
            (counters.arrived_packets, counters.dropped.iter().sum())
        })
    }

    /// When packets leave, in microseconds, and their ECN fields, if the router looks up every
    /// `step`.
    fn out(&mut self, step: Time) -> Vec<(u64, u8)> {
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        while now < Time::from_secs(1) {
            now += step;
            self.path.advance(now);
            while let Some((due, packet)) = self.path.pop(now) {
                out.push((due.as_nanos() / 1000, packet[1] & 3));
            }
        }
        out
    }
}

const DROPTAIL: &str = "discipline = { kind = \"droptail\", limit = \"2 packets\" }";

#[test]
fn packets_leave_at_their_time_however_late_the_router_looks() {
    let mut seen = Vec::new();
    for step in [
        Time::from_micros(7),
        Time::from_millis(1),
        Time::from_millis(50),
    ] {
        let mut bench = Bench::new(&format!("{LINK}framing = \"none\"\n{DROPTAIL}"), "");
        for at in [0, 0, 0, 0, 20] {
            bench.send(Time::from_millis(at), 0, 1000);
        }
        seen.push(bench.out(step));
    }
    // 10 ms to the port, 1 ms for each packet on the wire, 3 ms behind it; one on the wire and
    // two waiting leave no room for the fourth.
    let expected = [14_000, 15_000, 16_000, 34_000].map(|at| (at, 0));
    assert_eq!(seen, [expected; 3]);
}

#[test]
fn framing_and_the_hosts_links_cost_time() {
    let link = format!("{LINK}framing = \"ethernet\"\n{DROPTAIL}");
    let mut bench = Bench::new(&link, "rate = \"16 Mbit/s\"\nframing = \"ethernet\"");
    bench.send(Time::ZERO, 0, 962);
    bench.send(Time::ZERO, 0, 962);
    // 500 us on the sender's link, 10 ms, 1 ms on the wire, 3 ms, 500 us on the receiver's.
    let expected = [15_000, 16_000].map(|at| (at, 0));
    assert_eq!(bench.out(Time::from_micros(100)), expected);
}

#[test]
fn marks_of_the_discipline_are_written_into_the_packets() {
    let step = "discipline = { kind = \"step\", threshold = \"1 packets\", limit = \"9 packets\" }";
    let mut bench = Bench::new(&format!("{LINK}framing = \"none\"\n{step}"), "");
    for _ in 0..4 {
        bench.send(Time::ZERO, 2, 1000);
    }
    let out = bench.out(Time::from_millis(1));
    // The first is on the wire, the next two find at most one waiting.
    let marks: Vec<u8> = out.iter().map(|(_, ecn)| *ecn).collect();
    assert_eq!(marks, [2, 2, 2, 3]);
}

const INPUT: &str = "input = { packet_time = \"1 ms\", limit = \"2 packets\" }";

#[test]
fn the_input_takes_its_time_and_counts_its_own_drops() {
    for step in [
        Time::from_micros(7),
        Time::from_millis(1),
        Time::from_millis(50),
    ] {
        let link = format!("rate = \"80 Mbit/s\"\ndelay = \"3 ms\"\n{DROPTAIL}\n{INPUT}");
        let mut bench = Bench::new(&format!("{link}\nframing = \"none\""), "");
        for size in [1000, 40, 500, 1000] {
            bench.send(Time::ZERO, 0, size);
        }
        bench.send_datagram(Time::ZERO, 1000);
        bench.send(Time::from_millis(20), 0, 1000);
        // 10 ms to the input, 1 ms there for each packet of any size, 100 us on the wire for
        // 1000 bytes, 3 ms behind it; one in work and two waiting leave no room for more.
        let expected = [14_100, 15_004, 16_050, 34_100].map(|at| (at, 0));
        assert_eq!(bench.out(step), expected);
        assert_eq!(bench.counted(Time::from_secs(1)), [(6, 2), (4, 0)]);
        assert_eq!(bench.route.lost(), 1);
        assert_eq!(bench.path.next(), Time::NEVER);
    }
}

#[test]
fn the_router_is_told_of_an_arrival_at_the_input() {
    let link = format!("{LINK}framing = \"none\"\n{DROPTAIL}\n{INPUT}");
    let mut bench = Bench::new(&link, "");
    bench.send(Time::ZERO, 0, 1000);
    // At the input, at the port, out.
    for due in [10, 11, 15].map(Time::from_millis) {
        assert_eq!(bench.path.next(), due);
        bench.path.advance(due);
    }
}

#[test]
fn a_packet_leaves_the_port_before_another_comes_from_the_input() {
    let room = "discipline = { kind = \"droptail\", limit = \"1 packets\" }";
    // Departures that are computed, and those for which the port is woken.
    for stored in [
        "",
        "\nrate_changes = [{ at = \"9 s\", rate = \"8 Mbit/s\" }]",
    ] {
        let link = format!("{LINK}framing = \"none\"\n{room}\n{INPUT}{stored}");
        let mut bench = Bench::new(&link, "");
        for size in [2000, 1000, 1000] {
            bench.send(Time::ZERO, 0, size);
        }
        // The third finds room, because the first has been sent in that moment.
        let expected = [16_000, 17_000, 18_000].map(|at| (at, 0));
        assert_eq!(bench.out(Time::from_millis(50)), expected, "{stored}");
    }
}

#[test]
fn results_have_both_directions_of_an_input_and_packets_cross_the_stated_ones() {
    for (at, crossed) in [
        ("", [true, true]),
        ("[topology.bottleneck.forward]\n", [true, false]),
        ("[topology.bottleneck.reverse]\n", [false, true]),
    ] {
        let bench = Bench::new(&format!("{LINK}{DROPTAIL}\n{at}{INPUT}"), "");
        let Topology::Dumbbell(dumbbell) = &bench.scenario.topology else {
            unreachable!("it says so above");
        };
        for from in Side::BOTH {
            let path = Path::new(&bench.scenario, dumbbell, from, Arc::default());
            let names = ["bottleneck", "bottleneck-input"].map(|link| LinkDirection {
                link: link.to_owned(),
                direction: from.direction(),
            });
            assert!(path.stats().map(LinkStats::name).eq(&names));
            let input = path.input.expect("results have it");
            assert_eq!(input.is_crossed, crossed[from as usize], "{at}");
        }
    }
    let bench = Bench::new(&format!("{LINK}{DROPTAIL}"), "");
    assert_eq!(bench.path.stats().count(), 1);
}

/// What ports do that learn of every packet in time: when packets are out, in nanoseconds,
/// their ECN fields, and the statistics.
fn in_time(scenario: &Scenario, sent: &[(Time, Packet)]) -> (Vec<(u64, u8)>, String) {
    let network = scenario.topology.network();
    let names = LinkDirection::all(&network);
    let port_of = |name: &LinkDirection| -> Port<()> {
        let link = &network.links[&name.link].forward;
        Port::new(name, link, scenario.seed, &scenario.measure)
    };
    let mut port = port_of(&names[0]);
    // The forward direction of the input, if there is one.
    let mut input = names.get(2).map(port_of);
    let through_input = |&(at, packet): &(Time, Packet)| match &mut input {
        None => Some((at, packet)),
        Some(input) => match input.arrive(at, packet, 0) {
            Transmission::Arrives(reaches, _) => Some((reaches, packet)),
            _ => None,
        },
    };
    let sent: Vec<_> = sent.iter().filter_map(through_input).collect();
    let (mut out, mut dropped) = (Vec::new(), Vec::new());
    let mut note = |sent: Option<((), Transmission)>| {
        if let Some(((), Transmission::Arrives(at, ecn))) = sent {
            out.push((at.as_nanos(), ecn as u8));
        }
    };
    let mut arrivals = sent.iter().peekable();
    loop {
        let departure = port.next_departure();
        let arrival = arrivals.peek().map_or(Time::NEVER, |(at, _)| *at);
        if departure <= arrival && departure < Time::NEVER {
            note(port.depart(departure, &mut dropped));
        } else if let Some(&(at, packet)) = arrivals.next() {
            match port.arrive(at, packet, 0) {
                Transmission::Waits => {
                    let details = aqmlab_aqm::Details::default;
                    note(port.take_in(at, (packet, 0), (), details, &mut dropped));
                }
                transmission => note(Some(((), transmission))),
            }
        } else {
            break;
        }
    }
    out.sort_unstable();
    let ports = [Some(port), input].into_iter().flatten();
    let stats = ports.map(|mut port| {
        port.close(MeasuredSpan::of(&scenario.measure).end);
        port.into_stats()
    });
    (out, format!("{:?}", stats.collect::<Vec<_>>()))
}

#[test]
fn a_router_that_looks_late_does_what_a_port_in_time_does() {
    for preset in Discipline::presets() {
        let link = format!(
            "{LINK}device_ring = \"3 packets\"\nloss = 0.02\n\
             reordering = {{ share = 0.1, delay = \"2 ms\" }}\ndiscipline = \"{}\"",
            preset.name
        );
        for changes in [
            "",
            "\nrate_changes = [{ at = \"300 ms\", rate = \"5 Mbit/s\" }]",
            "\ninput = { packet_time = \"500 us\", limit = \"3 packets\" }",
        ] {
            let mut bench = Bench::new(&format!("{link}{changes}"), "");
            let mut draws = RandomStream::new(5, "sent", 0);
            let mut now = Time::ZERO;
            let mut sent = Vec::new();
            for _ in 0..1200 {
                now += Time::from_secs_f64(draws.exponential(0.6e-3));
                let size = [40, 576, 1500][draws.below(3)];
                bench.send(now, 2, size);
                let packet = Packet {
                    size: size as u32,
                    ecn: Ecn::Ect0,
                    dscp: 0,
                    flow: FlowKey(7 << 1 | 1),
                };
                sent.push((now + Time::from_millis(10), packet));
            }
            let (expected, stats) = in_time(&bench.scenario, &sent);
            let mut out = Vec::new();
            let mut now = Time::ZERO;
            while now < Time::from_secs(9) {
                now += Time::from_secs_f64(draws.uniform_in(0.0, 0.05));
                bench.path.advance(now);
                while let Some((due, packet)) = bench.path.pop(now) {
                    out.push((due.as_nanos(), packet[1] & 3));
                }
            }
            out.sort_unstable();
            let end = MeasuredSpan::of(&bench.scenario.measure).end;
            assert_eq!(out, expected, "{}{changes}", preset.name);
            let found = format!("{:?}", bench.path.close(end));
            assert!(found == stats, "{}{changes}: other statistics", preset.name);
        }
    }
}

#[test]
fn packets_of_nobody_are_thrown_away() {
    let mut bench = Bench::new(&format!("{LINK}{DROPTAIL}"), "");
    bench.client.set_port(2001);
    bench.send(Time::ZERO, 0, 100);
    bench.path.enter(Time::ZERO, &[0x60; 40]);
    assert_eq!(bench.path.strays(), 2);
    assert_eq!(bench.path.next(), Time::NEVER);
}

type Rows = Arc<Mutex<Vec<PacketRow>>>;

/// Keeps what would be written.
struct Keep(Rows);

impl Sink<PacketRow> for Keep {
    type Error = Infallible;

    fn put(&mut self, at: Time, row: PacketRow) -> Result<(), Infallible> {
        assert_eq!(at, row.arrived);
        self.0.lock().unwrap().push(row);
        Ok(())
    }

    fn end(self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Has packets cross a link, too many, up to the end; its statistics, and what was counted of
/// the input if there is one, and of the port: arrivals, drops, marks, and what waits.
fn crossed(link: &str, end: Time, rows: Option<&Rows>) -> (String, Vec<(u64, u64, u64, u64)>) {
    let mut bench = Bench::new(link, "");
    let writing = rows.map(|rows| {
        let ([feed, _], writing) = Writing::start(Keep(rows.clone()));
        let measured = MeasuredSpan::of(&bench.scenario.measure);
        let span = MeasuredSpan { end, ..measured };
        let log = PacketLog::new(Side::Servers, span, Arc::default(), feed);
        bench.path.set_log(log);
        writing
    });
    let mut draws = RandomStream::new(5, "sent", 0);
    let mut now = Time::ZERO;
    while now < end {
        bench.path.advance(now);
        bench.send(now, 2, [40, 576, 1500][draws.below(3)]);
        now += Time::from_secs_f64(draws.exponential(0.6e-3));
    }
    let last = end.saturating_sub(Time::from_nanos(1));
    bench.path.advance(last);
    let input = bench.path.input.as_mut().map(|input| &mut input.port);
    let ports = [Some(&mut bench.path.port), input];
    let counted = ports.into_iter().flatten().map(|port| {
        let state = port.observe(last);
        let counters = state.counters;
        let [dropped, marked] = [counters.dropped, counters.marked].map(|it| it.iter().sum());
        let waits = u64::from(state.backlog.packets);
        (counters.arrived_packets, dropped, marked, waits)
    });
    let counted = counted.collect();
    let stats = format!("{:?}", bench.path.close(end));
    if let Some(writing) = writing {
        assert_eq!(writing.finish("packets"), Ok(None));
    }
    (stats, counted)
}

#[test]
fn every_packet_is_a_row_and_nothing_else_changes() {
    let end = Time::from_millis(600);
    let mut outcomes = BTreeMap::<_, u64>::new();
    for preset in Discipline::presets() {
        for more in [
            "",
            "device_ring = \"3 packets\"\nloss = 0.02",
            "rate_changes = [{ at = \"300 ms\", rate = \"5 Mbit/s\" }]",
            INPUT,
        ] {
            let name = format!("{} {more}", preset.name);
            let link = format!("{LINK}{more}\ndiscipline = \"{}\"", preset.name);
            let rows = Rows::default();
            let (stats, counted) = crossed(&link, end, Some(&rows));
            assert!(
                crossed(&link, end, None) == (stats, counted.clone()),
                "{name}"
            );
            let rows = rows.lock().unwrap();
            assert!(rows.is_sorted_by_key(|row| row.arrived), "{name}");
            for (port, counted) in [0, 2].into_iter().zip(counted) {
                let here = rows.iter().filter(|row| row.port == port);
                let (mut found, mut lost) = ((0, 0, 0, 0), 0);
                for row in here {
                    *outcomes.entry(row.outcome.name()).or_default() += 1;
                    found.0 += 1;
                    let is_there = match row.outcome {
                        PacketOutcome::Waiting => &mut found.3,
                        PacketOutcome::Dropped(_) => &mut found.1,
                        PacketOutcome::Marked => &mut found.2,
                        PacketOutcome::Lost => &mut lost,
                        PacketOutcome::Left => &mut 0,
                    };
                    *is_there += 1;
                    let has_left = !matches!(
                        row.outcome,
                        PacketOutcome::Waiting | PacketOutcome::Dropped(_)
                    );
                    assert_eq!(row.waited.is_some(), has_left, "{name}: {row:?}");
                    assert_eq!((row.flow, row.is_from_client), (7, false), "{name}");
                }
                // What still waits or is lost on the wire may have been marked.
                let marked = found.2..=found.2 + found.3 + lost;
                assert!(marked.contains(&counted.2), "{name}, port {port}");
                found.2 = counted.2;
                assert_eq!(found, counted, "{name}, port {port}");
            }
        }
    }
    for word in ["waiting", "left", "marked", "wire", "overflow", "early"] {
        assert!(outcomes.get(word) > Some(&100), "{outcomes:?}");
    }
}
