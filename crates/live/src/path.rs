//! One way through the router, without the reading and writing: the hosts' own links, the delay of
//! each connection of a scenario or the jitter of any program's packets, the router's processor if
//! the scenario has one, the port, and the packets that wait for their moment to go out.
//!
//! What becomes of a packet is decided in the time at which things should happen. Nothing here
//! reads a clock: however late the router learns of a packet, it treats the packet as if it had come in
//! time, so rates do not drift.

use std::sync::Arc;

use aqmlab_link::{AccessLinks, Dropped, Port, PortState, Transmission};
use aqmlab_net::{Ecn, FlowKey, Packet, RandomStream, Role, Time};
use aqmlab_record::{LinkDirection, LinkStats, MeasuredSpan};
use aqmlab_scenario::{Dumbbell, Scenario};

use crate::due::EventQueue;
use crate::ip::{self, Headers};
use crate::ledger::Ledger;
use crate::routes::{Route, Routes, Side};
use crate::tap::{Fate, Tap};

/// A packet inside the router.
#[derive(Debug)]
struct Frame {
    bytes: Box<[u8]>,
    /// The connection of the scenario that it belongs to; nothing if a program sent it.
    route: Option<Arc<Route>>,
    /// The number of its class of traffic.
    class: u16,
    /// The host that it goes to, on its side.
    receiver: usize,
    is_datagram: bool,
    /// When it reached the port.
    reached: Time,
}

/// A delay that varies from packet to packet, behind the link. Packets keep their order.
#[derive(Debug)]
struct Jitter {
    most: Time,
    draws: RandomStream,
    last: Time,
}

impl Jitter {
    fn new(most: Time, seed: u64, from: Side) -> Option<Self> {
        (most > Time::ZERO).then(|| Self {
            most,
            draws: RandomStream::new(seed, "jitter", from as u64),
            last: Time::ZERO,
        })
    }

    /// When a packet leaves that would leave at `at` without it.
    fn out(&mut self, at: Time) -> Time {
        let more = Time::from_secs_f64(self.draws.uniform() * self.most.as_secs_f64());
        self.last = (at + more).max(self.last);
        self.last
    }
}

/// Whose packets a path takes.
#[derive(Debug)]
enum Carried {
    /// Those of a scenario's connections, and how many hosts send, and how many receive.
    Scripted(Arc<Routes>, [usize; 2]),
    /// Every IPv4 packet, of any sender. Users beside a program have these connections.
    Any(Option<Arc<Routes>>),
}

/// What lies behind the port: the receivers' links, and the way out.
#[derive(Debug)]
struct Exit {
    /// The links of the receivers.
    links: Option<AccessLinks>,
    jitter: Option<Jitter>,
    leaving: EventQueue<Box<[u8]>>,
    /// Lost datagrams count in it.
    measured: MeasuredSpan,
    /// Where a capture is wanted.
    tap: Option<Tap>,
}

impl Exit {
    /// The port has decided at `now` what becomes of a packet.
    fn pass(&mut self, now: Time, mut frame: Frame, transmission: Transmission) {
        match transmission {
            Transmission::Arrives(at, ecn) => {
                if let Some(tap) = &mut self.tap {
                    let marked = ecn == Ecn::Ce && Ecn::from_bits(frame.bytes[1]) != Ecn::Ce;
                    let fate = Fate::Sent { marked };
                    tap.take((frame.reached, now), &frame.bytes, fate);
                }
                if ecn == Ecn::Ce {
                    ip::set_ce(&mut frame.bytes);
                }
                let size = frame.bytes.len() as u32;
                let out = match &mut self.links {
                    Some(links) => links.transmit(frame.receiver, at, size),
                    None => at,
                };
                let out = match &mut self.jitter {
                    Some(jitter) => jitter.out(out),
                    None => out,
                };
                self.leaving.push(out, frame.bytes);
            }
            Transmission::Dropped(_) => self.drop(now, &frame),
            Transmission::Lost(at) => {
                if let Some(tap) = &mut self.tap {
                    tap.take((frame.reached, now), &frame.bytes, Fate::Lost);
                }
                self.count_loss(at, &frame);
            }
            Transmission::Waits => unreachable!("the port has the packet"),
        }
    }

    /// The discipline has dropped a packet.
    fn drop(&mut self, at: Time, frame: &Frame) {
        if let Some(tap) = &mut self.tap {
            tap.take((frame.reached, at), &frame.bytes, Fate::Dropped);
        }
        self.count_loss(at, frame);
    }

    /// A packet was dropped, or lost on the wire.
    fn count_loss(&self, at: Time, frame: &Frame) {
        if let Some(route) = &frame.route
            && frame.is_datagram
            && self.measured.contains(at)
        {
            route.note_lost();
        }
    }
}

/// The processor that the scenario puts before the port: a limited queue, and a time that each packet
/// takes.
#[derive(Debug)]
struct Input {
    arriving: EventQueue<(Packet, Frame)>,
    port: Port<Frame>,
    /// Of a router with a processor for one direction results have both: nothing crosses the other.
    is_crossed: bool,
}

/// One way through the router.
#[derive(Debug)]
pub(crate) struct Path {
    carried: Carried,
    from: Side,
    /// The links of the senders.
    links: Option<AccessLinks>,
    input: Option<Input>,
    /// What is on its way to the port, and when it gets there.
    delayed: EventQueue<(Packet, Frame)>,
    port: Port<Frame>,
    /// What the discipline has dropped, and when; empty between calls.
    dropped: Vec<Dropped<Frame>>,
    exit: Exit,
    /// What is known of a program's connections.
    ledger: Option<Ledger>,
    /// Packets of no connection, which are thrown away.
    strays: u64,
}

impl Path {
    /// The way of the packets that the hosts of one side send.
    pub(crate) fn new(
        scenario: &Scenario,
        dumbbell: &Dumbbell,
        from: Side,
        routes: Arc<Routes>,
    ) -> Self {
        let hosts = &dumbbell.hosts;
        let (link, [senders, receivers]) = match from {
            Side::Servers => (&dumbbell.bottleneck.forward, [hosts.servers, hosts.clients]),
            Side::Clients => (&dumbbell.bottleneck.reverse, [hosts.clients, hosts.servers]),
        };
        let [senders, receivers] = [senders, receivers].map(|count| count as usize);
        // Of each link two directions: first those of the bottleneck, then those of its input.
        let network = scenario.topology.network();
        let names = LinkDirection::all(&network);
        let links = network.links.values();
        let links = links.flat_map(|link| [&link.forward, &link.reverse]);
        let mut ports = names
            .iter()
            .zip(links)
            .skip(from as usize)
            .step_by(2)
            .map(|(name, link)| Port::new(name, link, scenario.seed, &scenario.measure));
        let port = ports.next().expect("a dumbbell has a bottleneck");
        let input = ports.next().map(|port| Input {
            arriving: EventQueue::new(),
            port,
            is_crossed: link.input.is_some(),
        });
        Self {
            carried: Carried::Scripted(routes, [senders, receivers]),
            from,
            links: AccessLinks::new(hosts, senders),
            input,
            delayed: EventQueue::new(),
            port,
            dropped: Vec::new(),
            exit: Exit {
                links: AccessLinks::new(hosts, receivers),
                jitter: None,
                leaving: EventQueue::new(),
                measured: MeasuredSpan::of(&scenario.measure),
                tap: None,
            },
            ledger: None,
            strays: 0,
        }
    }

    /// The way of any program's packets over the bottleneck of a scenario. Each packet takes up to
    /// `jitter` longer than the link's delay. Departures are made at their time, so that the run can
    /// end at any. The connections of `users` have delays of their own beside that.
    pub(crate) fn open(
        scenario: &Scenario,
        dumbbell: &Dumbbell,
        from: Side,
        jitter: Time,
        users: Option<Arc<Routes>>,
    ) -> Self {
        let link = match from {
            Side::Servers => &dumbbell.bottleneck.forward,
            Side::Clients => &dumbbell.bottleneck.reverse,
        };
        let names = LinkDirection::all(&scenario.topology.network());
        let name = &names[from as usize];
        Self {
            carried: Carried::Any(users),
            from,
            links: None,
            input: None,
            delayed: EventQueue::new(),
            port: Port::stored(name, link, scenario.seed, &scenario.measure),
            dropped: Vec::new(),
            exit: Exit {
                links: None,
                jitter: Jitter::new(jitter, scenario.seed, from),
                leaving: EventQueue::new(),
                measured: MeasuredSpan::of(&scenario.measure),
                tap: None,
            },
            ledger: Some(Ledger::new(from)),
            strays: 0,
        }
    }

    /// Has a capture take what crosses the link.
    pub(crate) fn set_tap(&mut self, tap: Tap) {
        self.exit.tap = Some(tap);
    }

    /// What is counted of the link, and of its input if it has one.
    pub(crate) fn stats(&self) -> impl Iterator<Item = &LinkStats> {
        let input = self.input.as_ref().map(|input| &input.port);
        [Some(&self.port), input]
            .into_iter()
            .flatten()
            .map(Port::stats)
    }

    pub(crate) const fn strays(&self) -> u64 {
        self.strays
    }

    /// A host has sent a packet.
    pub(crate) fn enter(&mut self, now: Time, bytes: &[u8]) {
        let entered = match &self.carried {
            Carried::Scripted(..) => self.enter_scripted(now, bytes),
            Carried::Any(users) => {
                let user = users.as_ref().and_then(|routes| {
                    let headers = Headers::read(bytes)?;
                    let (route, sender) = routes.find(headers.source, headers.destination)?;
                    Some((route, sender, headers))
                });
                self.enter_any(now, bytes, user)
            }
        };
        if entered.is_none() {
            self.strays += 1;
        }
    }

    /// A packet of any program, or of a user beside it: nothing if it is no whole IPv4 packet.
    fn enter_any(
        &mut self,
        now: Time,
        bytes: &[u8],
        user: Option<(Arc<Route>, Role, Headers)>,
    ) -> Option<()> {
        let mut packet = ip::packet(bytes)?;
        let mut frame = Frame {
            bytes: bytes.into(),
            route: None,
            class: 0,
            receiver: 0,
            is_datagram: false,
            reached: now,
        };
        if let Some((route, sender, headers)) = user {
            if let Some(segment) = &headers.segment {
                route.note_sent(sender, segment);
            }
            packet.flow = FlowKey(route.flow << 1 | sender as u64);
            frame.reached = now + route.access_delays[sender as usize];
            frame.class = route.class as u16;
            frame.is_datagram = headers.segment.is_none();
            frame.route = Some(route);
        } else if let Some(ledger) = &mut self.ledger {
            ledger.note_sent(now, bytes);
        }
        self.delayed.push(frame.reached, (packet, frame));
        Some(())
    }

    /// A packet of a connection of the scenario: nothing if it is none.
    fn enter_scripted(&mut self, now: Time, bytes: &[u8]) -> Option<()> {
        let Carried::Scripted(routes, hosts) = &self.carried else {
            return None;
        };
        let headers = Headers::read(bytes)?;
        let (route, sender) = routes.find(headers.source, headers.destination)?;
        let host = self.from.host(*headers.source.ip());
        let receiver = self.from.other().host(*headers.destination.ip());
        if host >= hosts[0] || receiver >= hosts[1] {
            return None;
        }
        if let Some(segment) = &headers.segment {
            route.note_sent(sender, segment);
        }
        let packet = Packet {
            size: bytes.len() as u32,
            ecn: headers.ecn,
            dscp: headers.dscp,
            flow: FlowKey(route.flow << 1 | sender as u64),
        };
        let leaves = match &mut self.links {
            Some(links) => links.transmit(host, now, packet.size),
            None => now,
        };
        let reaches = leaves + route.access_delays[sender as usize];
        let frame = Frame {
            bytes: bytes.into(),
            class: route.class as u16,
            receiver,
            is_datagram: headers.segment.is_none(),
            reached: reaches,
            route: Some(route),
        };
        let arriving = match &mut self.input {
            Some(input) if input.is_crossed => &mut input.arriving,
            _ => &mut self.delayed,
        };
        arriving.push(reaches, (packet, frame));
        Some(())
    }

    /// Does what had to be done by `now`, in its order: departures before arrivals.
    pub(crate) fn advance(&mut self, now: Time) {
        self.pass_input(now);
        loop {
            let departure = self.port.next_departure();
            if departure <= now.min(self.delayed.next()) {
                let sent = self.port.depart(departure, &mut self.dropped);
                self.pass(departure, sent);
            } else if let Some((at, (packet, frame))) = self.delayed.pop(now) {
                let class = frame.class;
                let sent = match self.port.arrive(at, packet, class) {
                    Transmission::Waits => {
                        let details = ip::details(&frame.bytes);
                        let packet = (packet, class);
                        let dropped = &mut self.dropped;
                        self.port
                            .take_in(at, packet, frame, || details.clone(), dropped)
                    }
                    transmission => Some((frame, transmission)),
                };
                self.pass(at, sent);
            } else {
                break;
            }
        }
        self.port.catch_up(now);
    }

    /// The input takes what has reached it by `now`. It depends on nothing behind it, so that it may
    /// go ahead of the port: what it lets through gets there later than it came.
    fn pass_input(&mut self, now: Time) {
        let Some(input) = &mut self.input else {
            return;
        };
        while let Some((at, (packet, frame))) = input.arriving.pop(now) {
            match input.port.arrive(at, packet, frame.class) {
                // A drop-tail queue leaves the ECN field unchanged.
                Transmission::Arrives(reaches, _) => self.delayed.push(reaches, (packet, frame)),
                Transmission::Dropped(_) => self.exit.count_loss(at, &frame),
                Transmission::Lost(_) | Transmission::Waits => {
                    unreachable!("an input is drop-tail, and nothing is lost behind it")
                }
            }
        }
    }

    /// What the link is doing at `now`, up to which it has [advanced](Self::advance).
    pub(crate) fn observe(&mut self, now: Time) -> PortState {
        self.port.observe(now)
    }

    /// The port has sent a packet, and dropped others.
    fn pass(&mut self, now: Time, sent: Option<(Frame, Transmission)>) {
        if let Some(tap) = &mut self.exit.tap
            && Tap::wants_reasons(sent.as_ref().map(|(_, sent)| sent), &self.dropped)
        {
            tap.note(&self.port.observe(now).counters);
        }
        if let Some((frame, transmission)) = sent {
            self.exit.pass(now, frame, transmission);
        }
        for Dropped { at, item, .. } in self.dropped.drain(..) {
            self.exit.drop(at, &item);
        }
    }

    /// When [`advance`](Self::advance) or [`pop`](Self::pop) has something to do next.
    pub(crate) fn next(&self) -> Time {
        let input = self.input.as_ref();
        let arrival = input.map_or(Time::NEVER, |input| input.arriving.next());
        let inside = self.port.next_departure().min(self.delayed.next());
        arrival.min(inside).min(self.exit.leaving.next())
    }

    /// A packet that should be out by `now`, and since when.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Box<[u8]>)> {
        let (due, packet) = self.exit.leaving.pop(now)?;
        if let Some(ledger) = &mut self.ledger {
            ledger.note_delivered(due, &packet);
        }
        Some((due, packet))
    }

    /// What is known of a program's connections; nothing of a scenario's.
    pub(crate) fn take_ledger(&mut self) -> Option<Ledger> {
        self.ledger.take()
    }

    /// The run is over at `end`, which is not part of it. What was counted, as in
    /// [`stats`](Self::stats).
    pub(crate) fn close(mut self, end: Time) -> Vec<LinkStats> {
        self.advance(end.saturating_sub(Time::from_nanos(1)));
        let input = self.input.map(|input| input.port);
        let ports = [Some(self.port), input].into_iter().flatten();
        let closed = ports.map(|mut port| {
            port.close(end);
            port.into_stats()
        });
        closed.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use aqmlab_aqm::Discipline;
    use aqmlab_net::RandomStream;
    use aqmlab_scenario::Topology;

    use super::*;
    use crate::ip::tests::tcp;

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
        let step =
            "discipline = { kind = \"step\", threshold = \"1 packets\", limit = \"9 packets\" }";
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
}
