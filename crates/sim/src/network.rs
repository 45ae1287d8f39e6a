//! Between the hosts: their own links, the ports of their paths, and the ways between them.

use aqmlab_net::{Packet, Rate, Time};
use aqmlab_record::{Conservation, LinkDirection};

use crate::capture::Capture;
use crate::connection::{DelayPlacement, Route, Routes};
use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::options::OptionsAside;
use crate::port::{Port, Transmission};

/// A host's own link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessLink {
    pub(crate) rate: Rate,
    pub(crate) framing: u64,
}

impl AccessLink {
    /// How long a packet of `size` IP bytes occupies it.
    fn transmission_time(&self, size: u32) -> Time {
        let bytes = u64::from(size) + self.framing;
        self.rate.transmission_time(bytes)
    }
}

/// When a host's own link falls free, both ways.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostLink {
    up_free: Time,
    down_free: Time,
}

/// Everything between the hosts, with the event queue by which its packets reach their next place.
pub(crate) struct Network<A> {
    pub(crate) event_queue: A,
    /// By slot of the connections and datagram flows.
    pub(crate) routes: Vec<Routes>,
    pub(crate) options: OptionsAside,
    pub(crate) access: Option<AccessLink>,
    /// By host.
    pub(crate) links: Vec<HostLink>,
    /// The ports of all ways of all paths.
    pub(crate) hops: Vec<u16>,
    /// Two for each link, forward first.
    pub(crate) ports: Vec<Port>,
    pub(crate) port_names: Vec<LinkDirection>,
    pub(crate) capture: Option<Box<Capture>>,
    pub(crate) conservation: Conservation,
    /// What reaches its first port then or later is on its way when the run ends.
    pub(crate) end: Time,
    /// Packets that were dropped or lost, and when; their connections have not been told yet.
    pub(crate) dropped: Vec<(Time, Event)>,
    #[cfg(test)]
    pub(crate) fingerprint: crate::oracle::Fingerprint,
}

impl<A: EventQueue> Network<A> {
    /// Sends a packet now, from its host towards its first port.
    #[inline(never)]
    pub(crate) fn send(&mut self, now: Time, event: Event) {
        self.conservation.sent += 1;
        let sender = event.sender();
        let route = *self.routes[event.conn as usize].of(sender);
        let mut leaves = now;
        if let Some(link) = self.access {
            let up_free = &mut self.links[route.node as usize].up_free;
            let size = route.ip_size(&event) + self.options.len(event.options);
            leaves = leaves.max(*up_free) + link.transmission_time(size);
            *up_free = leaves;
        }
        let reaches = leaves + route.delay_before();
        // There, others can come between; else it is there already.
        if route.placement == DelayPlacement::Before || leaves > now {
            self.event_queue.push(reaches, event);
        } else if reaches >= self.end {
            self.conservation.in_flight += 1;
        } else {
            self.enter_port(reaches, event, &route);
        }
    }

    /// A packet reaches a port of its path.
    #[inline(never)]
    pub(crate) fn at_port(&mut self, time: Time, event: Event) {
        let route = *self.routes[event.conn as usize].of(event.sender());
        self.enter_port(time, event, &route);
    }

    #[inline(always)]
    fn enter_port(&mut self, time: Time, event: Event, route: &Route) {
        let port = usize::from(self.hops[route.hop(event.hop())]);
        let packet = Packet {
            size: route.ip_size(&event) + self.options.len(event.options),
            ecn: event.ecn(),
            dscp: route.dscp,
            flow: route.flow,
        };
        #[cfg(test)]
        self.fingerprint.add(time, port, &packet, event.seq);
        if self.capture.is_some() {
            self.capture(time, port, &event);
        }
        match self.ports[port].arrive(time, packet) {
            Transmission::Waits => self.keep(time, port, packet, event),
            transmission => self.pass(time, event, transmission, route),
        }
    }

    /// A packet arrives at a port that keeps its packets.
    #[inline(never)]
    fn keep(&mut self, time: Time, port: usize, packet: Packet, event: Event) {
        let sent = self.ports[port].take_in(time, packet, event, &mut self.dropped);
        // Else the wire is as busy, or as idle, as it was.
        if let Some((event, transmission)) = sent {
            self.served(time, port, event, transmission);
        }
    }

    /// The wire of a port falls free.
    #[inline(never)]
    pub(crate) fn depart(&mut self, time: Time, port: usize) {
        match self.ports[port].depart(time, &mut self.dropped) {
            Some((event, transmission)) => self.served(time, port, event, transmission),
            None => self.event_queue.set_departure(port, Time::NEVER),
        }
    }

    /// A port that keeps its packets has begun to send one of them.
    #[inline(always)]
    fn served(&mut self, time: Time, port: usize, event: Event, transmission: Transmission) {
        let departure = self.ports[port].next_departure();
        self.event_queue.set_departure(port, departure);
        let route = *self.routes[event.conn as usize].of(event.sender());
        self.pass(time, event, transmission, &route);
    }

    /// The port has decided what becomes of a packet.
    #[inline(always)]
    fn pass(&mut self, now: Time, event: Event, transmission: Transmission, route: &Route) {
        match transmission {
            Transmission::Arrives(time, ecn) => {
                let sender = event.sender();
                let hop = event.hop() + 1;
                if hop < route.hops {
                    return self
                        .event_queue
                        .push(time, event.hopped_on(sender, ecn, hop));
                }
                let mut arrives = time;
                if let Some(link) = self.access {
                    let receiver = self.routes[event.conn as usize].of(sender.other());
                    let down_free = &mut self.links[receiver.node as usize].down_free;
                    let size = route.ip_size(&event) + self.options.len(event.options);
                    arrives = arrives.max(*down_free) + link.transmission_time(size);
                    *down_free = arrives;
                }
                // The host is behind its link, which serves in the order of arrival.
                arrives += route.delay_behind();
                self.event_queue.push(arrives, event.passed_on(sender, ecn));
            }
            Transmission::Waits => {}
            Transmission::Dropped => self.dropped.push((now, event)),
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

    /// Brings the ports' statistics up to `time`.
    pub(crate) fn catch_up(&mut self, time: Time) {
        for port in &mut self.ports {
            port.catch_up(time);
        }
    }
}
