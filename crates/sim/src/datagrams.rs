//! Flows of datagrams: sent without asking, counted where they arrive.

use aqmlab_net::{Role, Time};
use aqmlab_record::Flow;
use aqmlab_traffic::OpenDatagrams;

use crate::connection::{Common, Routes};
use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::world::{Slot, World};

/// Bytes of the IP and UDP headers.
const HEADER: u32 = 28;

/// One flow of datagrams, from a server to a client.
#[derive(Clone, Debug)]
pub(crate) struct DatagramFlow {
    class: usize,
    slot: u32,
    flow: u64,
    start: Time,
    last: Time,
    /// In the measured span: datagrams sent, and lost on the way.
    sent: u64,
    lost: u64,
    received_bytes: u64,
    measured_bytes: u64,
}

impl<A: EventQueue> World<A> {
    pub(crate) fn open_datagrams(&mut self, class: usize, open: &OpenDatagrams) {
        let path = self.classes[class].path;
        let nodes = self.hosts_of(path, open.client, open.server, open.flipped);
        self.flows_opened += 1;
        let flow = self.flows_opened;
        let common = Common {
            flow,
            rtt: open.rtt,
            delay_at: self.delay_at,
            flipped: open.flipped,
            nodes,
            class: class as u16,
            dscp: self.classes[class].dscp,
            headers: [HEADER, HEADER],
            are_datagrams: true,
        };
        let routes = Routes::new(&common, &self.paths[path]);
        let slot = self.slots.len() as u32;
        self.slots.push(Slot {
            connection: None,
            generation: 0,
        });
        self.network.routes.push(routes);
        self.classes[class]
            .datagrams
            .push(self.datagrams.len() as u32);
        debug_assert_eq!(self.classes[class].datagrams.len(), open.token as usize + 1);
        self.datagrams.push(DatagramFlow {
            class,
            slot,
            flow,
            start: self.now,
            last: self.now,
            sent: 0,
            lost: 0,
            received_bytes: 0,
            measured_bytes: 0,
        });
    }

    /// Sends a datagram with `size` bytes, headers included.
    pub(crate) fn send_datagram(&mut self, class: usize, token: u32, size: u32) {
        let number = self.classes[class].datagrams[token as usize];
        let flow = &mut self.datagrams[number as usize];
        flow.sent += u64::from(self.window.contains(self.now));
        let len = (size - HEADER) as u16;
        let event = Event::datagram(Role::Server, flow.slot, number, len);
        self.network.send(self.now, event);
        self.notify_losses(None);
    }

    /// A datagram has arrived.
    pub(crate) fn datagram_received(&mut self, event: &Event) {
        self.network.conservation.delivered += 1;
        let flow = &mut self.datagrams[event.seq as usize];
        flow.last = self.now;
        flow.received_bytes += u64::from(event.len);
        if self.window.contains(self.now) {
            flow.measured_bytes += u64::from(event.len);
        }
    }

    /// A datagram was dropped or lost.
    pub(crate) fn datagram_lost(&mut self, time: Time, event: &Event) {
        let measured = self.window.contains(time);
        self.datagrams[event.seq as usize].lost += u64::from(measured);
    }

    /// The end of the run: the flows of datagrams are counted and recorded.
    pub(crate) fn close_datagrams(&mut self) {
        for flow in std::mem::take(&mut self.datagrams) {
            let record = Flow {
                flow: flow.flow,
                class: flow.class,
                start: flow.start,
                rtt: self.rtt_of(flow.slot, flow.class),
                end: flow.last,
                response_bytes: flow.received_bytes,
                measured_bytes: flow.measured_bytes,
                ..Flow::default()
            };
            self.metrics.on_datagram_flow(&record, flow.sent, flow.lost);
        }
    }
}
