//! Flows of datagrams: sent without asking, counted where they arrive.

use aqmlab_net::{Ecn, Role, Time};
use aqmlab_record::{DatagramFlow, DatagramStats, Flow, MeasuredSpan, Metrics};
use aqmlab_stacks::HEADER;
use aqmlab_traffic::Received;

use crate::connections;
use crate::engine::Engine;
use crate::event::Event;
use crate::network::Network;

/// Bytes of memory of a flow, about, in vectors that are as large as what they hold.
pub(crate) const FLOW_BYTES: usize = size_of::<DatagramFlow>() + connections::SLOT_BYTES;

/// One flow of datagrams, from a server to a client.
#[derive(Clone, Debug)]
struct Stream {
    slot: u32,
    record: Flow,
    datagrams: DatagramFlow,
    /// Of its datagrams.
    ecn: Ecn,
    /// How much later its datagrams arrive than they seem to.
    hidden_delay: Time,
    /// What its source calls it, if that wants to know of arrivals.
    notified_as: Option<u32>,
}

/// All flows of datagrams of a world.
#[derive(Debug)]
pub(crate) struct DatagramFlows {
    span: MeasuredSpan,
    flows: Vec<Stream>,
    /// Their numbers, by class and by the source's token.
    by_token: Vec<Vec<u32>>,
    /// By class.
    stats: Vec<DatagramStats>,
}

impl DatagramFlows {
    pub(crate) fn new(span: MeasuredSpan, classes: usize) -> Self {
        Self {
            span,
            flows: Vec::new(),
            by_token: vec![Vec::new(); classes],
            stats: vec![DatagramStats::default(); classes],
        }
    }

    /// A flow begins now: number `flow` of a class, with this minimum round trip and hidden delay,
    /// in a slot of its own. With `notifies` its source is notified of arrivals.
    pub(crate) fn open(
        &mut self,
        (slot, notifies, ecn): (u32, bool, Ecn),
        (flow, class): (u64, usize),
        (rtt, hidden_delay): (Time, Time),
        now: Time,
    ) {
        let by_token = &mut self.by_token[class];
        let token = by_token.len() as u32;
        by_token.push(self.flows.len() as u32);
        self.flows.push(Stream {
            slot,
            record: Flow {
                flow,
                class,
                start: now,
                rtt,
                end: now,
                ..Flow::default()
            },
            datagrams: DatagramFlow::default(),
            hidden_delay,
            ecn,
            notified_as: notifies.then_some(token),
        });
    }

    /// Sends a datagram with `size` bytes, headers included, on the flow that the source of a class
    /// calls `token`.
    pub(crate) fn send<E: Engine>(
        &mut self,
        (class, token): (usize, u32),
        size: u32,
        now: Time,
        network: &mut Network<E>,
    ) {
        let flow = self.by_token[class][token as usize];
        let stream = &mut self.flows[flow as usize];
        let number = stream.datagrams.on_sent(now, self.span);
        let len = (size - HEADER) as u16;
        let packet = (len, stream.ecn);
        let event = Event::datagram(Role::Server, stream.slot, (flow, number), packet);
        network.send(now, event);
    }

    /// A datagram has arrived. Its class and the notice for its source, if that wants one.
    pub(crate) fn on_received(&mut self, event: &Event, now: Time) -> Option<(usize, Received)> {
        let stream = &mut self.flows[event.seq as usize];
        let (bytes, record) = (u64::from(event.len), &mut stream.record);
        record.end = now;
        record.response_bytes += bytes;
        if self.span.contains(now) {
            record.measured_bytes += bytes;
        }
        let stats = &mut self.stats[record.class];
        let at = (now, stream.hidden_delay);
        let delay = stream
            .datagrams
            .on_received(event.ack, at, self.span, stats);
        let (class, number) = (record.class, event.ack);
        let notice = stream.notified_as.map(|token| Received {
            token,
            number,
            delay,
        });
        notice.map(|received| (class, received))
    }

    /// A datagram was dropped or lost.
    pub(crate) fn on_lost(&mut self, event: &Event, time: Time) {
        let stream = &mut self.flows[event.seq as usize];
        let stats = &mut self.stats[stream.record.class];
        stream.datagrams.on_lost(event.ack, time, self.span, stats);
    }

    /// The class of each flow, and what it received so far in the measured span.
    pub(crate) fn received(&self) -> impl Iterator<Item = (usize, u64)> {
        let records = self.flows.iter().map(|stream| &stream.record);
        records.map(|record| (record.class, record.measured_bytes))
    }

    /// The end of the run: the flows are counted and recorded.
    pub(crate) fn close(&mut self, metrics: &mut Metrics) {
        for stream in &mut self.flows {
            let stats = &mut self.stats[stream.record.class];
            let (sent, lost) = stream.datagrams.close(stats);
            metrics.on_datagram_flow(&stream.record, sent, lost);
        }
        for (class, stats) in self.stats.iter().enumerate() {
            metrics.on_datagrams(class, stats);
        }
    }
}
