//! Between the hosts: their own links, the ports of their paths, and the ways between them.

use aqmlab_link::{AccessLinks, Port, Transmission};
use aqmlab_net::{Packet, Time};
use aqmlab_record::Conservation;

use crate::capture::Capture;
use crate::connection::{DelayPlacement, Route, Routes};
use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::options::OptionsAside;

/// Everything between the hosts, with the event queue by which its packets reach their next place.
pub(crate) struct Network<A> {
    pub(crate) event_queue: A,
    /// By slot of the connections and datagram flows.
    pub(crate) routes: Vec<Routes>,
    pub(crate) options: OptionsAside,
    /// The hosts' own links, up and down, if their rate is limited.
    pub(crate) access: Option<[AccessLinks; 2]>,
    /// The ports of all ways of all paths.
    pub(crate) hops: Vec<u16>,
    /// Two for each link, forward first.
    pub(crate) ports: Vec<Port<Event>>,
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
        if let Some([up, _]) = &mut self.access {
            let size = route.ip_size(&event) + self.options.len(event.options);
            leaves = up.transmit(route.node as usize, now, size);
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
            Transmission::Waits => self.store(time, port, packet, event),
            transmission => self.pass(time, event, transmission, route),
        }
    }

    /// A packet arrives at a port that stores its packets.
    #[inline(never)]
    fn store(&mut self, time: Time, port: usize, packet: Packet, event: Event) {
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

    /// A port that stores its packets has begun to send one of them.
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
                if let Some([_, down]) = &mut self.access {
                    let receiver = self.routes[event.conn as usize].of(sender.other());
                    let size = route.ip_size(&event) + self.options.len(event.options);
                    arrives = down.transmit(receiver.node as usize, time, size);
                }
                // The host is behind its link, which serves in the order of arrival.
                arrives += route.delay_behind();
                self.event_queue.push(arrives, event.passed_on(sender, ecn));
            }
            Transmission::Waits => {}
            Transmission::Dropped | Transmission::Lost(_) => self.dropped.push((now, event)),
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
