//! Between the hosts: their own links, the ports of their path, and the ways between them.

use aqmlab_net::{FlowKey, Packet, Time};

use crate::agenda::Agenda;
use crate::event::{Event, Side};
use crate::port::Passage;
use crate::world::World;

impl<A: Agenda> World<A> {
    /// Puts what an end point wants to send on its host's link, towards the bottleneck.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, index: u32, sender: Side) {
        if self.outgoing.is_empty() {
            return;
        }
        if let Some(connection) = self.slots[index as usize].connection.as_mut() {
            connection.in_network += self.outgoing.len() as u32;
        }
        // What the port does makes nobody send, so the list does not change meanwhile.
        for number in 0..self.outgoing.len() {
            self.send(sender, self.outgoing[number]);
        }
        self.outgoing.clear();
    }

    /// Sends a packet now, from its host towards the bottleneck.
    #[inline(always)]
    pub(crate) fn send(&mut self, sender: Side, event: Event) {
        self.tally.sent += 1;
        let route = &self.routes[event.conn as usize];
        let mut leaves = self.now;
        if let Some(link) = self.access {
            let node = &mut self.nodes[route.nodes[sender as usize] as usize];
            let size = route.ip_size(&event) + self.options.len(event.options);
            let occupied = link.transmission_time(size);
            leaves = leaves.max(node.up_free) + occupied;
            node.up_free = leaves;
        }
        let reaches = leaves + route.access_delay;
        if !route.is_shifted {
            self.agenda.push(reaches, event);
            return;
        }
        if reaches >= self.window.end {
            self.tally.in_flight += 1;
            return;
        }
        self.enter_port(reaches, sender, event, Some(event.conn));
    }

    /// A packet reaches a port. `acting` is the connection that is at work just now, if
    /// any: it looks after its own end.
    #[inline(always)]
    pub(crate) fn enter_port(
        &mut self,
        time: Time,
        sender: Side,
        event: Event,
        acting: Option<u32>,
    ) {
        let route = &self.routes[event.conn as usize];
        let port = usize::from(self.hops[route.hop(sender, event.hop())]);
        let packet = Packet {
            size: route.ip_size(&event) + self.options.len(event.options),
            ecn: event.ecn(),
            dscp: route.dscp,
            flow: FlowKey(route.flow << 1 | sender as u64),
        };
        #[cfg(test)]
        self.fingerprint.add(time, port, &packet, event.seq);
        if self.capture.is_some() {
            self.capture(time, port, sender, &event);
        }
        let samples = &mut self.samples[port];
        let others = &mut self.passages;
        let passage = self.ports[port].arrive(time, packet, event, samples, others);
        if passage == Passage::Waits {
            self.served(time, port, acting);
        } else {
            self.pass(time, event, passage, acting);
        }
    }

    /// The wire of a port falls free.
    pub(crate) fn depart(&mut self, time: Time, port: usize) {
        self.ports[port].depart(time, &mut self.samples[port], &mut self.passages);
        self.served(time, port, None);
    }

    /// A port that keeps its packets has done something: sends on what it let go.
    fn served(&mut self, now: Time, port: usize, acting: Option<u32>) {
        if let Some(time) = self.ports[port].next_departure() {
            self.agenda.set_departure(port, time);
        }
        let mut passages = std::mem::take(&mut self.passages);
        for (event, passage) in passages.drain(..) {
            self.pass(now, event, passage, acting);
        }
        self.passages = passages;
    }

    /// The port has decided what becomes of a packet.
    #[inline(always)]
    fn pass(&mut self, now: Time, event: Event, passage: Passage, acting: Option<u32>) {
        match passage {
            Passage::Arrives(time, ecn) => {
                let sender = event.sender();
                let route = &self.routes[event.conn as usize];
                let hop = event.hop() + 1;
                if hop < route.hops(sender) {
                    return self.agenda.push(time, event.hopped_on(sender, ecn, hop));
                }
                let mut arrives = time + route.shift;
                if let Some(link) = self.access {
                    let size = route.ip_size(&event) + self.options.len(event.options);
                    let node = &mut self.nodes[route.nodes[sender.other() as usize] as usize];
                    let occupied = link.transmission_time(size);
                    arrives = arrives.max(node.down_free) + occupied;
                    node.down_free = arrives;
                }
                self.agenda.push(arrives, event.passed_on(sender, ecn));
                return;
            }
            Passage::Waits => return,
            Passage::Dropped => self.tally.dropped += 1,
            Passage::Lost => self.tally.lost += 1,
        }
        self.options.take(event.options);
        match self.slots[event.conn as usize].connection.as_mut() {
            Some(connection) => {
                connection.in_network -= 1;
                let class = usize::from(connection.class);
                self.segment_lost(now, class, &event);
            }
            None => self.datagram_lost(now, &event),
        }
        if acting == Some(event.conn) {
            return;
        }
        self.release_if_over(event.conn);
    }
}
