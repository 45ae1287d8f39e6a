//! Between the hosts: their own links, the ports of their paths, and the ways between them.

use aqmlab_aqm::Reason;
use aqmlab_link::{AccessLinks, Dropped, Port, PortState, Transmission, Way};
use aqmlab_net::{Packet, Role, Time};
use aqmlab_record::{
    Conservation, LinkDirection, LinkStats, MeasuredSpan, Metrics, RunError, SenderStats,
};
use aqmlab_scenario::LinkChange;
use aqmlab_tcp::{Options, RoundTrip, SegmentKind};

use crate::air::Wifi;
use crate::asked::Asked;
use crate::breakdown::Causes;
use crate::capture::Capture;
use crate::engine::Engine;
use crate::event::Event;
use crate::event_queue::{EventQueue, Next};
use crate::hints;
use crate::options::{MARKS, OptionsAside, Ticket};
use crate::route::{DelayPlacement, Route, Routes};

/// Everything between the hosts, with the event queue by which its packets reach their next place.
pub(crate) struct Network<E: Engine> {
    event_queue: E::Queue,
    causes: E::Causes,
    /// By slot of the connections and datagram flows.
    routes: Vec<Routes>,
    options: OptionsAside,
    /// The hosts' own links, up and down, if their rate is limited.
    access: Option<[AccessLinks; 2]>,
    /// The ports of all ways of all paths.
    hops: Vec<u16>,
    /// Servers of a path, and all its hosts.
    hosts: [u32; 2],
    /// Two for each link, forward first.
    ports: Vec<Port<Event>>,
    /// The air, whose number is that behind the last port.
    wifi: Option<Box<Wifi>>,
    capture: Option<Box<Capture>>,
    /// Hosts have no links of their own, every way is a single hop, and neither a capture nor a log
    /// sees packets.
    is_plain: bool,
    conservation: Conservation,
    /// What reaches its first port at its end or later is on its way when the run ends.
    span: MeasuredSpan,
    /// By slot: the round trip of a connection on idle links.
    idle: Vec<Time>,
    /// What the ends of connections measure and send again, by class.
    senders: Vec<SenderStats>,
    /// Packets that were dropped or lost, and when; their connections do not know yet.
    dropped: Vec<Dropped<Event>>,
    #[cfg(test)]
    fingerprint: crate::fingerprint::Fingerprint,
    /// Which segments of each end are dropped as they leave, counted from 1 among all of this end.
    #[cfg(test)]
    doomed: [(u32, Vec<u32>); 2],
}

impl<E: Engine> Network<E> {
    /// A network that is quiet, for so many classes of traffic. `hops` are the ports of all ways of
    /// all paths, and whether each way has only one; `access` the hosts' own links in one direction.
    pub(crate) fn new(
        event_queue: E::Queue,
        (ports, wifi): (Vec<Port<Event>>, Option<Wifi>),
        (hops, has_single_hops): (Vec<u16>, bool),
        access: Option<AccessLinks>,
        capture: Option<Box<Capture>>,
        (span, classes): (MeasuredSpan, usize),
    ) -> Self {
        // The air has two directions.
        let mut causes = E::Causes::new(ports.len() + 2 * usize::from(wifi.is_some()));
        causes.log(span);
        Self {
            is_plain: access.is_none()
                && capture.is_none()
                && wifi.is_none()
                && has_single_hops
                && !E::Causes::LOGS,
            event_queue,
            causes,
            routes: Vec::with_capacity(1 << 10),
            options: OptionsAside::default(),
            access: access.map(|up| [up.clone(), up]),
            hops,
            hosts: [0, 1],
            ports,
            wifi: wifi.map(Box::new),
            capture,
            conservation: Conservation::default(),
            span,
            idle: Vec::with_capacity(1 << 10),
            senders: vec![SenderStats::default(); classes],
            dropped: Vec::new(),
            #[cfg(test)]
            fingerprint: Default::default(),
            #[cfg(test)]
            doomed: Default::default(),
        }
    }

    /// Each path has so many hosts: servers, then clients.
    pub(crate) fn with_hosts(mut self, servers: u32, clients: u32) -> Self {
        self.hosts = [servers, servers + clients];
        self
    }

    /// What happens next, if that is before `end`.
    #[inline(always)]
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, Next)> {
        self.event_queue.next(end)
    }

    /// Has the processor fetch what the next events need of the network, and hands their connections
    /// to `soon`.
    #[inline(always)]
    pub(crate) fn look_ahead(&mut self, mut soon: impl FnMut(u32)) {
        let (routes, idle) = (&self.routes, &self.idle);
        self.event_queue.look_ahead(|index| {
            let slot = index as usize;
            if let (Some(routes), Some(idle)) = (routes.get(slot), idle.get(slot)) {
                hints::prefetch(routes);
                hints::prefetch(idle);
            }
            soon(index);
        });
    }

    /// An event that comes at `time`.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Time, event: Event) {
        self.event_queue.push(time, event);
    }

    /// An event of a connection, at a time of its hosts.
    #[inline(always)]
    pub(crate) fn push_at_hosts(&mut self, time: Time, event: Event) {
        let shift = self.clock_shift(event.conn);
        self.event_queue.push(time + shift, event);
    }

    /// The host of an end, and the time there at `time` of the bottleneck.
    #[inline(always)]
    pub(crate) fn at_host(&self, time: Time, index: u32, role: Role) -> (usize, Time) {
        let route = self.routes[index as usize].of(role);
        (route.node as usize, time - route.shift())
    }

    /// The host of an end.
    pub(crate) fn host_of(&self, index: u32, role: Role) -> usize {
        self.routes[index as usize].of(role).node as usize
    }

    /// How far the clocks of a connection's hosts are behind.
    #[inline(always)]
    pub(crate) fn clock_shift(&self, index: u32) -> Time {
        self.routes[index as usize].shift()
    }

    /// The route of what has this slot.
    pub(crate) fn routes(&self, index: u32) -> &Routes {
        &self.routes[index as usize]
    }

    /// The route of a slot, mutable, to shift its clocks.
    pub(crate) fn routes_mut(&mut self, index: u32) -> &mut Routes {
        &mut self.routes[index as usize]
    }

    /// The route of one more slot.
    pub(crate) fn add_routes(&mut self, routes: Routes) {
        hints::push(&mut self.routes, routes);
        hints::push(&mut self.idle, Time::ZERO);
    }

    /// Learns how long a round trip of a connection takes on idle links, which has `propagation`:
    /// a segment of the server's and the client's ACK of it have so many IP bytes.
    pub(crate) fn set_idle_round_trip(
        &mut self,
        index: u32,
        propagation: Time,
        [segment, ack]: [u32; 2],
    ) {
        let routes = &self.routes[index as usize];
        let mut time = propagation;
        for (sender, size) in [(Role::Server, segment), (Role::Client, ack)] {
            let route = routes.of(sender);
            if self.is_plain {
                time += self.ports[route.only_port()].transmission_time(size);
                continue;
            }
            for hop in 0..route.hops {
                let port = route.port(hop, &self.hops);
                time += match (self.ports.get(port), &self.wifi) {
                    (None, Some(wifi)) => {
                        let (station, _) = wifi.address(routes, sender);
                        wifi.air
                            .transmission_time(station, size, routes.of(sender).dscp)
                    }
                    _ => self.ports[port].transmission_time(size),
                };
            }
            for links in self.access.iter().flatten() {
                time += links.transmission_time(size);
            }
        }
        self.idle[index as usize] = time;
    }

    /// The server of a connection has measured a round trip.
    pub(crate) fn on_round_trip(&mut self, now: Time, index: u32, sample: &RoundTrip) {
        if self.span.contains(now) {
            let class = usize::from(self.routes[index as usize].of(Role::Server).class);
            self.senders[class].on_round_trip(sample, self.idle[index as usize]);
        }
    }

    /// An end of a connection sends a segment again.
    pub(crate) fn on_retransmission(&mut self, now: Time, index: u32, kind: SegmentKind) {
        if self.span.contains(now) {
            let class = usize::from(self.routes[index as usize].of(Role::Server).class);
            self.senders[class].on_retransmission(kind);
        }
    }

    /// Hands on what the ends of connections have measured and sent again.
    pub(crate) fn count_senders(&self, metrics: &mut Metrics) {
        for (class, senders) in self.senders.iter().enumerate() {
            metrics.on_senders(class, senders);
        }
    }

    /// Keeps the options of a segment that leaves.
    #[inline(always)]
    pub(crate) fn put_options(&mut self, options: &Options) -> Ticket {
        match E::Causes::ON {
            // Its trip is known by the ticket.
            true => self.options.put_always(options),
            false => self.options.put(options),
        }
    }

    /// Whether a segment has any options.
    #[inline(always)]
    pub(crate) const fn has_options(event: &Event) -> bool {
        match E::Causes::ON {
            true => !event.is_bare(),
            false => event.has_options(),
        }
    }

    /// Hands back the options of a segment that has arrived, or is not to.
    #[inline(always)]
    pub(crate) fn take_options(&mut self, ticket: Ticket) -> Options {
        self.causes.forgets(ticket & !MARKS);
        self.options.take(ticket)
    }

    /// A segment that has none has arrived, and its cause is known.
    #[inline(always)]
    pub(crate) fn take_bare(&mut self, ticket: Ticket) {
        if E::Causes::ON {
            self.options.take_bare(ticket);
        }
    }

    /// What is remembered of the causes of events.
    #[inline(always)]
    pub(crate) const fn causes_mut(&mut self) -> &mut E::Causes {
        &mut self.causes
    }

    /// A packet has been delivered to its receiver.
    #[inline(always)]
    pub(crate) fn count_delivered(&mut self) {
        self.conservation.delivered += 1;
    }

    /// A packet was dropped, or lost.
    pub(crate) fn count_dropped(&mut self) {
        self.conservation.dropped += 1;
    }

    /// A packet is on its way when the run ends.
    pub(crate) fn count_in_flight(&mut self) {
        self.conservation.in_flight += 1;
    }

    /// Whether packets were dropped or lost whose connections do not know yet.
    #[inline(always)]
    pub(crate) fn has_drops(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// These packets. Hand the list back with [`reuse_drops`](Self::reuse_drops).
    pub(crate) fn take_drops(&mut self) -> Vec<Dropped<Event>> {
        std::mem::take(&mut self.dropped)
    }

    /// Keeps the room of an empty list.
    pub(crate) fn reuse_drops(&mut self, list: Vec<Dropped<Event>>) {
        self.dropped = list;
    }

    /// Brings the ports' statistics up to `time`, and records their samples.
    pub(crate) fn record_samples(&mut self, time: Time, metrics: &mut Metrics) {
        for port in &mut self.ports {
            port.catch_up(time);
        }
        for port in &mut self.ports {
            metrics.record_samples(port.stats_mut());
        }
        if let Some(wifi) = &mut self.wifi {
            wifi.air.catch_up(time);
            for stats in wifi.air.stats_mut() {
                metrics.record_samples(stats);
            }
        }
    }

    /// Something about a link's direction changes.
    pub(crate) fn change_port(&mut self, now: Time, port: usize, change: &LinkChange) {
        self.ports[port].change(now, change);
    }

    /// What the links' directions do at `now`.
    pub(crate) fn observe(&mut self, now: Time) -> Vec<(LinkDirection, PortState)> {
        let ports = self.ports.iter_mut();
        let ports = ports.map(|port| (port.stats().name().clone(), port.observe(now)));
        ports.collect()
    }

    /// The end of the measured span: nothing departs any more.
    pub(crate) fn close(&mut self) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.close(self.span.end);
            self.event_queue.set_departure(number, Time::NEVER);
        }
        if let Some(wifi) = &mut self.wifi {
            wifi.air.close(self.span.end);
            wifi.departure = Time::NEVER;
            self.event_queue
                .set_departure(self.ports.len(), Time::NEVER);
        }
    }

    /// How many departures were computed that are events where packets are stored.
    pub(crate) fn computed_departures(&mut self) -> u64 {
        let end = self.span.end;
        let ports = self.ports.iter_mut();
        let computed: u64 = ports.map(|port| port.computed_departures(end)).sum();
        let wifi = self.wifi.as_ref();
        computed + wifi.map_or(0, |wifi| wifi.air.unseen_begins(end))
    }

    /// Every packet that was sent is somewhere; `claimed` are those that connections count as on
    /// their way.
    pub(crate) fn check_conservation(&self, claimed: u64) -> Result<(), RunError> {
        let stored: u64 = self.ports.iter().map(Port::stored_packets).sum();
        let wifi = self.wifi.as_ref();
        let on_air = wifi.map_or(0, |wifi| wifi.air.stored_packets());
        self.conservation.check(stored + on_air, claimed)?;
        if let Some(wifi) = wifi {
            wifi.air.check_conservation()?;
        }
        for port in &self.ports {
            let checked = port.check_conservation();
            checked.map_err(|error| RunError::Conservation(error.to_string()))?;
        }
        Ok(())
    }

    /// What the ports and stations counted. Writes what is left of the capture.
    pub(crate) fn finish(self, metrics: &mut Metrics) -> Result<Vec<LinkStats>, RunError> {
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        let mut stats: Vec<_> = self.ports.into_iter().map(Port::into_stats).collect();
        if let Some(wifi) = self.wifi {
            let (links, stations) = wifi.into_stats();
            stats.extend(links);
            metrics.on_air(stations);
        }
        Ok(stats)
    }

    /// Hash of what reached the ports.
    #[cfg(test)]
    pub(crate) const fn fingerprint(&self) -> crate::fingerprint::Fingerprint {
        self.fingerprint
    }

    /// These segments of an end are dropped as they leave.
    #[cfg(test)]
    pub(crate) fn doom(&mut self, sender: Role, numbers: &[u32]) {
        self.doomed[sender as usize].1.extend(numbers);
    }

    /// Sends a packet now, from its host towards its first port.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Time, event: Event) {
        self.conservation.sent += 1;
        #[cfg(test)]
        {
            let (sent, doomed) = &mut self.doomed[event.sender() as usize];
            *sent += 1;
            if doomed.contains(sent) {
                return self.lose(now, event, 0, Some(Reason::FORCED));
            }
        }
        let route = self.routes[event.conn as usize].of(event.sender());
        self.causes.sends(&event, route);
        if !self.is_plain || route.placement == DelayPlacement::Before {
            return self.send_to_port(now, event);
        }
        let reaches = now + route.delay_before();
        if reaches >= self.span.end {
            self.conservation.in_flight += 1;
            return;
        }
        let (packet, behind) = (self.packet(&event, route), route.delay_behind());
        let (port, class) = (route.only_port(), route.class);
        #[cfg(test)]
        self.fingerprint.add(reaches, port, &packet, event.seq);
        match self.ports[port].arrive(reaches, packet, class) {
            Transmission::Arrives(time, ecn) => {
                if E::Causes::ON {
                    let served = self.ports[port].last_served(reaches, packet.size);
                    let causes = &mut self.causes;
                    causes.crosses_port(event.ticket(), port, reaches, &served, time);
                }
                let event = event.passed_on(event.sender(), ecn);
                self.event_queue.push(time + behind, event);
            }
            // Copies, so that packets that do not come here need not be in memory.
            Transmission::Waits => {
                self.causes.reaches_port(event.ticket(), reaches);
                self.store(reaches, port, &({ packet }, class), &{ event });
            }
            Transmission::Dropped(reason) => {
                self.causes.reaches_port(event.ticket(), reaches);
                self.lose(reaches, event, port, Some(reason));
            }
            Transmission::Lost(_) => {
                self.causes.reaches_port(event.ticket(), reaches);
                self.lose(reaches, event, port, None);
            }
        }
    }

    /// A packet was dropped, or without a `reason` lost at random on the wire; its connection does
    /// not know yet.
    #[cold]
    fn lose(&mut self, at: Time, item: Event, port: usize, reason: Option<Reason>) {
        self.causes.dropped(&item, at, Some(port), reason);
        self.dropped.push(Dropped { at, item, reason });
    }

    /// A port has served a packet of `size` IP bytes, which arrives behind the link then.
    #[inline(always)]
    fn note_served(&mut self, port: usize, size: u32, event: &Event, arrives: Time) {
        if E::Causes::ON {
            let ticket = event.ticket();
            if let (true, Some(wifi)) = (port == self.ports.len(), &self.wifi) {
                let served = wifi.air.last_served();
                let way = port + usize::from(self.is_up(event));
                return self.causes.passes_port(ticket, way, &served, arrives);
            }
            let served = self.ports[port].last_served(self.causes.reached(ticket), size);
            self.causes.passes_port(ticket, port, &served, arrives);
        }
    }

    /// The discipline of a port has dropped what stands in the list from here on.
    #[inline(always)]
    fn note_dropped(&mut self, port: usize, from: usize) {
        if E::Causes::ON {
            for dropped in &self.dropped[from..] {
                let Dropped { at, item, reason } = dropped;
                self.causes.dropped(item, *at, Some(port), *reason);
            }
        }
    }

    /// What the port of a packet knows of it.
    #[inline(always)]
    fn packet(&self, event: &Event, route: &Route) -> Packet {
        Packet {
            size: route.ip_size(event) + self.options.len(event.options),
            ecn: event.ecn(),
            dscp: route.dscp,
            flow: route.flow,
        }
    }

    /// [`send`](Self::send) in any network, over any route.
    fn send_to_port(&mut self, now: Time, event: Event) {
        let sender = event.sender();
        let route = *self.routes[event.conn as usize].of(sender);
        let mut leaves = now;
        if let Some([up, _]) = &mut self.access {
            let size = route.ip_size(&event) + self.options.len(event.options);
            leaves = up.transmit(route.node as usize, now, size);
            let transmission = up.transmission_time(size);
            let causes = &mut self.causes;
            causes.passes_host_link(event.ticket(), leaves, transmission);
        }
        let reaches = leaves + route.delay_before();
        // There, others can come between; else it is there already.
        if route.placement == DelayPlacement::Before || leaves > now {
            self.event_queue.push(reaches, event);
        } else if reaches >= self.span.end {
            self.conservation.in_flight += 1;
        } else {
            self.enter_port(reaches, event, &route);
        }
    }

    /// A packet reaches a port of its path.
    pub(crate) fn at_port(&mut self, time: Time, event: Event) {
        let route = *self.routes[event.conn as usize].of(event.sender());
        self.enter_port(time, event, &route);
    }

    #[inline(always)]
    fn enter_port(&mut self, time: Time, event: Event, route: &Route) {
        let port = route.port(event.hop(), &self.hops);
        let packet = self.packet(&event, route);
        self.causes.reaches_port(event.ticket(), time);
        #[cfg(test)]
        self.fingerprint.add(time, port, &packet, event.seq);
        if self.capture.is_some() {
            self.capture(time, port, &event);
        }
        if port == self.ports.len() {
            return self.store_on_air(time, (packet, route.class), event);
        }
        if E::Causes::LOGS {
            let backlog = self.ports[port].backlog(time);
            let causes = &mut self.causes;
            causes.enters_port(&event, route, (port, time), &packet, backlog);
        }
        match self.ports[port].arrive(time, packet, route.class) {
            Transmission::Waits => self.store(time, port, &(packet, route.class), &event),
            transmission => {
                if E::Causes::LOGS {
                    self.log_computed(port, (time, packet.size), &event, transmission);
                }
                self.pass(time, event, (port, transmission), route);
            }
        }
    }

    /// A port has computed how it serves a packet that came at `arrived`, and its log wants to know.
    fn log_computed(
        &mut self,
        port: usize,
        (arrived, size): (Time, u32),
        event: &Event,
        transmission: Transmission,
    ) {
        if matches!(transmission, Transmission::Dropped(_)) {
            return;
        }
        let port = &self.ports[port];
        let left = port.computed(arrived, size);
        self.causes.leaves_port(event, left, transmission);
    }

    /// Writes the packets of which all is known.
    #[inline(always)]
    pub(crate) fn write_packets(&mut self, metrics: &mut Metrics) {
        self.causes.write_packets(metrics);
    }

    /// The run is over: what is in device rings has left the disciplines.
    pub(crate) fn write_all_packets(&mut self, metrics: &mut Metrics) {
        for port in &self.ports {
            for (left, event, ecn) in port.in_ring() {
                let arrives = Transmission::Arrives(Time::NEVER, ecn);
                self.causes.leaves_port(event, (left, None), arrives);
            }
        }
        self.causes.write_all_packets(metrics);
    }

    /// A packet reaches the air.
    fn store_on_air(&mut self, time: Time, packet: (Packet, u16), event: Event) {
        let Some(wifi) = &mut self.wifi else { return };
        let routes = &self.routes[event.conn as usize];
        let details = Asked {
            routes,
            event: &event,
            options: &self.options,
            hosts: self.hosts,
        };
        let from = self.dropped.len();
        let address = wifi.address(routes, event.sender());
        wifi.air
            .take_in(time, packet, event, address, details, &mut self.dropped);
        self.settle_air(from);
    }

    /// An access to the air begins or ends, or gives one of the packets that have come.
    fn depart_from_air(&mut self, time: Time) {
        let Some(wifi) = &mut self.wifi else { return };
        let from = self.dropped.len();
        let sent = wifi.air.depart(time, &mut self.dropped);
        self.settle_air(from);
        if let Some((event, transmission)) = sent {
            let route = *self.routes[event.conn as usize].of(event.sender());
            self.pass(time, event, (self.ports.len(), transmission), &route);
        }
    }

    /// Something has happened on the air, and what stands in the list from here on was dropped there.
    fn settle_air(&mut self, from: usize) {
        let Some(wifi) = &mut self.wifi else { return };
        let departure = wifi.air.next_departure();
        // Most arrivals move nothing: they wait while others send.
        if departure != wifi.departure {
            wifi.departure = departure;
            self.event_queue.set_departure(self.ports.len(), departure);
        }
        if E::Causes::ON {
            for Dropped { at, item, reason } in &self.dropped[from..] {
                let port = self.ports.len() + usize::from(self.is_up(item));
                self.causes.dropped(item, *at, Some(port), *reason);
            }
        }
    }

    /// Whether a packet on the air goes up.
    fn is_up(&self, event: &Event) -> bool {
        let routes = &self.routes[event.conn as usize];
        let wifi = self.wifi.as_ref();
        wifi.is_some_and(|wifi| wifi.address(routes, event.sender()).1 == Way::Up)
    }

    /// A packet arrives at a port that stores its packets.
    fn store(&mut self, time: Time, port: usize, packet: &(Packet, u16), event: &Event) {
        let details = Asked {
            routes: &self.routes[event.conn as usize],
            event,
            options: &self.options,
            hosts: self.hosts,
        };
        let from = self.dropped.len();
        let sent = self.ports[port].take_in(time, *packet, *event, details, &mut self.dropped);
        self.note_dropped(port, from);
        if let Some((event, transmission)) = sent {
            self.served(time, port, event, transmission);
        } else if self.ports[port].is_held() {
            self.depart_later(port);
        } else if self.ports[port].has_woken() {
            let departure = self.ports[port].next_departure();
            self.event_queue.set_departure(port, departure);
        }
        // Else the wire is as busy, or as idle, as it was.
    }

    /// The wire of a port falls free.
    pub(crate) fn depart(&mut self, time: Time, port: usize) {
        if port == self.ports.len() {
            return self.depart_from_air(time);
        }
        let from = self.dropped.len();
        let sent = self.ports[port].depart(time, &mut self.dropped);
        self.note_dropped(port, from);
        match sent {
            Some((event, transmission)) => self.served(time, port, event, transmission),
            None => self.depart_later(port),
        }
    }

    /// The next departure of a port that has begun to send nothing.
    fn depart_later(&mut self, port: usize) {
        let departure = self.ports[port].next_departure();
        self.event_queue.set_departure(port, departure);
    }

    /// A port that stores its packets has begun to send one of them.
    #[inline(always)]
    fn served(&mut self, time: Time, port: usize, event: Event, transmission: Transmission) {
        let departure = self.ports[port].next_departure();
        self.event_queue.set_departure(port, departure);
        if E::Causes::LOGS {
            let left = self.ports[port].begun(time);
            self.causes.leaves_port(&event, left, transmission);
        }
        let route = *self.routes[event.conn as usize].of(event.sender());
        self.pass(time, event, (port, transmission), &route);
    }

    /// The port has decided what becomes of a packet.
    #[inline(always)]
    fn pass(
        &mut self,
        now: Time,
        event: Event,
        (port, transmission): (usize, Transmission),
        route: &Route,
    ) {
        match transmission {
            Transmission::Arrives(time, ecn) => {
                if E::Causes::ON {
                    let size = route.ip_size(&event) + self.options.len(event.options);
                    self.note_served(port, size, &event, time);
                }
                let sender = event.sender();
                let hop = event.hop() + 1;
                if hop < route.hops {
                    return self
                        .event_queue
                        .push(time, event.hopped_on(sender, ecn, hop));
                }
                let mut arrives = time;
                if let Some([_, down]) = &mut self.access {
                    let receiver = self.routes[event.conn as usize].of(sender.other());
                    let size = route.ip_size(&event) + self.options.len(event.options);
                    arrives = down.transmit(receiver.node as usize, time, size);
                    let transmission = down.transmission_time(size);
                    let causes = &mut self.causes;
                    causes.passes_host_link(event.ticket(), arrives, transmission);
                }
                // The host is behind its link, which serves in the order of arrival.
                arrives += route.delay_behind();
                self.event_queue.push(arrives, event.passed_on(sender, ecn));
            }
            Transmission::Waits => {}
            Transmission::Dropped(reason) => self.lose(now, event, port, Some(reason)),
            Transmission::Lost(_) => self.lose(now, event, port, None),
        }
    }

    /// A packet arrives at a port, and there is a capture of some link.
    #[cold]
    fn capture(&mut self, time: Time, port: usize, event: &Event) {
        if let Some(capture) = &mut self.capture {
            let routes = &self.routes[event.conn as usize];
            let options = self.options.peek(event.options);
            capture.take(time, port, event, routes, &options);
        }
    }
}
