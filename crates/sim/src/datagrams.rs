//! Flows of datagrams: sent without asking, counted where they arrive.

use aqmlab_net::{Role, Time};
use aqmlab_record::{Flow, MeasuredSpan, Metrics};

use crate::connections;
use crate::event::Event;
use crate::event_queue::EventQueue;
use crate::network::Network;

/// Bytes of the IP and UDP headers.
pub(crate) const HEADER: u32 = 28;

/// Bytes of memory of a flow, about, in vectors that are as large as what they hold.
pub(crate) const FLOW_BYTES: usize = size_of::<DatagramFlow>() + connections::SLOT_BYTES;

/// One flow of datagrams, from a server to a client.
#[derive(Clone, Debug)]
struct DatagramFlow {
    slot: u32,
    record: Flow,
    /// In the measured span: datagrams sent, and lost on the way.
    sent: u64,
    lost: u64,
}

/// All flows of datagrams of a world.
#[derive(Debug)]
pub(crate) struct DatagramFlows {
    span: MeasuredSpan,
    flows: Vec<DatagramFlow>,
    /// Their numbers, by class and by the source's token.
    by_token: Vec<Vec<u32>>,
}

impl DatagramFlows {
    pub(crate) fn new(span: MeasuredSpan, classes: usize) -> Self {
        Self {
            span,
            flows: Vec::new(),
            by_token: vec![Vec::new(); classes],
        }
    }

    /// A flow begins now: number `flow` of a class, with this minimum round trip, in a slot of its
    /// own.
    pub(crate) fn open(&mut self, slot: u32, (flow, class): (u64, usize), rtt: Time, now: Time) {
        self.by_token[class].push(self.flows.len() as u32);
        self.flows.push(DatagramFlow {
            slot,
            record: Flow {
                flow,
                class,
                start: now,
                rtt,
                end: now,
                ..Flow::default()
            },
            sent: 0,
            lost: 0,
        });
    }

    /// Sends a datagram with `size` bytes, headers included, on the flow that the source of a class
    /// calls `token`.
    pub(crate) fn send<Q: EventQueue>(
        &mut self,
        (class, token): (usize, u32),
        size: u32,
        now: Time,
        network: &mut Network<Q>,
    ) {
        let number = self.by_token[class][token as usize];
        let flow = &mut self.flows[number as usize];
        flow.sent += u64::from(self.span.contains(now));
        let len = (size - HEADER) as u16;
        network.send(now, Event::datagram(Role::Server, flow.slot, number, len));
    }

    /// A datagram has arrived.
    pub(crate) fn on_received(&mut self, event: &Event, now: Time) {
        let bytes = u64::from(event.len);
        let record = &mut self.flows[event.seq as usize].record;
        record.end = now;
        record.response_bytes += bytes;
        if self.span.contains(now) {
            record.measured_bytes += bytes;
        }
    }

    /// A datagram was dropped or lost.
    pub(crate) fn on_lost(&mut self, event: &Event, time: Time) {
        let measured = self.span.contains(time);
        self.flows[event.seq as usize].lost += u64::from(measured);
    }

    /// The end of the run: the flows are counted and recorded.
    pub(crate) fn close(&self, metrics: &mut Metrics) {
        for flow in &self.flows {
            metrics.on_datagram_flow(&flow.record, flow.sent, flow.lost);
        }
    }
}
