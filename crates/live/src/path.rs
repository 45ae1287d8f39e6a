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
use crate::ends::Numbers;
use crate::ip::{self, Headers};
use crate::ledger::Ledger;
use crate::packet_log::{PacketLog, Trip};
use crate::routes::{Route, Routes, Side};
use crate::tap::{Fate, Tap};

/// A packet inside the router.
#[derive(Debug)]
struct Frame {
    bytes: Box<[u8]>,
    /// The side that has sent it.
    from: Side,
    /// The connection of the scenario that it belongs to; nothing if a program sent it.
    route: Option<Arc<Route>>,
    /// The number of its class of traffic.
    class: u16,
    /// Key by which disciplines tell flows apart.
    flow: FlowKey,
    /// The host that it goes to, on its side.
    receiver: usize,
    is_datagram: bool,
    /// When it reached the port.
    reached: Time,
    /// Propagation behind the link that the connection has beside the link's own.
    behind: Time,
    /// Where packets are recorded.
    trip: Option<Trip>,
}

impl Frame {
    /// What disciplines see of it.
    fn packet(&self) -> Packet {
        Packet {
            size: self.bytes.len() as u32,
            ecn: Ecn::from_bits(self.bytes[1]),
            dscp: self.bytes[1] >> 2,
            flow: self.flow,
        }
    }
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
    leaving: EventQueue<Frame>,
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
                self.leaving.push(out + frame.behind, frame);
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
    /// Whether the clients are stations on the air, which their delays lie behind.
    is_at_air: bool,
    /// What is known of a program's connections.
    ledger: Option<Ledger>,
    /// Where packets are recorded.
    log: Option<PacketLog>,
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
            is_at_air: false,
            ledger: None,
            log: None,
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
        numbers: Arc<Numbers>,
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
            is_at_air: dumbbell.wifi.is_some(),
            ledger: Some(Ledger::new(from, numbers)),
            log: None,
            strays: 0,
        }
    }

    /// Has a capture take what crosses the link.
    pub(crate) fn set_tap(&mut self, tap: Tap) {
        self.exit.tap = Some(tap);
    }

    /// Has every packet that reaches the link's queue, or that of its input, recorded.
    pub(crate) fn set_log(&mut self, log: PacketLog) {
        self.log = Some(log);
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
            from: self.from,
            route: None,
            class: 0,
            flow: packet.flow,
            receiver: 0,
            is_datagram: false,
            reached: now,
            behind: Time::ZERO,
            trip: None,
        };
        if let Some(log) = &mut self.log {
            let user = user.as_ref();
            let route = user.map(|(route, sender, _)| (route.as_ref(), *sender));
            frame.trip = Some(log.sends(bytes, route));
        }
        if let Some((route, sender, headers)) = user {
            if let Some(segment) = &headers.segment {
                route.note_sent(sender, segment);
            }
            packet.flow = FlowKey(route.flow << 1 | sender as u64);
            frame.flow = packet.flow;
            let delay = route.access_delays[sender as usize];
            match self.is_at_air && self.from == Side::Clients {
                true => frame.behind = delay,
                false => frame.reached = now + delay,
            }
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
            from: self.from,
            class: route.class as u16,
            flow: packet.flow,
            receiver,
            is_datagram: headers.segment.is_none(),
            reached: reaches,
            behind: Time::ZERO,
            trip: self
                .log
                .as_mut()
                .map(|log| log.sends(bytes, Some((&route, sender)))),
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
                self.depart(departure);
            } else if let Some((at, (packet, frame))) = self.delayed.pop(now) {
                self.arrive(at, packet, frame);
            } else {
                break;
            }
        }
        self.port.catch_up(now);
    }

    /// The port sends a packet.
    fn depart(&mut self, at: Time) {
        let sent = self.port.depart(at, &mut self.dropped);
        self.pass(at, sent);
    }

    /// A packet reaches the port.
    fn arrive(&mut self, at: Time, packet: Packet, mut frame: Frame) {
        let class = frame.class;
        if let (Some(log), Some(trip)) = (&mut self.log, &mut frame.trip) {
            let backlog = self.port.backlog(at);
            log.arrives(trip, (0, at), (&packet, class), backlog);
        }
        match self.port.arrive(at, packet, class) {
            Transmission::Waits => {
                let details = ip::details(&frame.bytes);
                let packet = (packet, class);
                let dropped = &mut self.dropped;
                let sent = self
                    .port
                    .take_in(at, packet, frame, || details.clone(), dropped);
                self.pass(at, sent);
            }
            transmission => {
                if let Some(log) = &mut self.log {
                    let left = || self.port.computed(at, packet.size);
                    log.leaves(frame.trip.take(), left, transmission);
                }
                self.pass(at, Some((frame, transmission)));
            }
        }
    }

    /// The input takes what has reached it by `now`. It depends on nothing behind it, so that it may
    /// go ahead of the port: what it lets through gets there later than it came.
    fn pass_input(&mut self, now: Time) {
        let Some(input) = &mut self.input else {
            return;
        };
        while let Some((at, (packet, mut frame))) = input.arriving.pop(now) {
            if let (Some(log), Some(trip)) = (&mut self.log, &mut frame.trip) {
                let backlog = input.port.backlog(at);
                log.arrives(trip, (1, at), (&packet, frame.class), backlog);
            }
            let transmission = input.port.arrive(at, packet, frame.class);
            if let Some(log) = &mut self.log {
                let left = || input.port.computed(at, packet.size);
                log.leaves(frame.trip, left, transmission);
            }
            match transmission {
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
        if let Some(log) = &mut self.log {
            if let Some((frame, transmission)) = &sent {
                log.leaves(frame.trip, || self.port.begun(now), *transmission);
            }
            for Dropped { item, reason, .. } in &self.dropped {
                if let Some(reason) = reason {
                    log.leaves(item.trip, || (now, None), Transmission::Dropped(*reason));
                }
            }
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
        let (due, frame) = self.exit.leaving.pop(now)?;
        Some((due, self.deliver(due, frame)))
    }

    /// A packet goes out.
    fn deliver(&mut self, due: Time, frame: Frame) -> Box<[u8]> {
        if let Some(ledger) = &mut self.ledger {
            ledger.note_delivered(due, &frame.bytes);
        }
        frame.bytes
    }

    /// What is known of a program's connections; nothing of a scenario's.
    pub(crate) fn take_ledger(&mut self) -> Option<Ledger> {
        self.ledger.take()
    }

    /// The run is over at `end`, which is not part of it. What was counted, as in
    /// [`stats`](Self::stats).
    pub(crate) fn close(mut self, end: Time) -> Vec<LinkStats> {
        self.advance(end.saturating_sub(Time::from_nanos(1)));
        self.end(end)
    }

    /// What was counted, when all is done at `end`.
    fn end(self, end: Time) -> Vec<LinkStats> {
        if let Some(mut log) = self.log {
            // What is in the device ring has left the discipline.
            for (left, frame, ecn) in self.port.in_ring() {
                let arrives = Transmission::Arrives(Time::NEVER, ecn);
                log.leaves(frame.trip, || (left, None), arrives);
            }
            log.close();
        }
        let input = self.input.map(|input| input.port);
        let ports = [Some(self.port), input].into_iter().flatten();
        let closed = ports.map(|mut port| {
            port.close(end);
            port.into_stats()
        });
        closed.collect()
    }
}

pub(crate) mod on_air;
#[cfg(test)]
mod tests;
