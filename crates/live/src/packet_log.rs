//! Every packet that reaches a queue, as a row of the run's records. The same rows as the
//! simulator's, from what a router sees.

use std::collections::HashMap;
use std::sync::Arc;

use aqmlab_aqm::Backlog;
use aqmlab_link::Transmission;
use aqmlab_net::{Packet, Role, Time};
use aqmlab_record::{
    LinkDirection, MeasuredSpan, Metrics, PacketKind, PacketOutcome, PacketRecords, PacketRow,
    RunError, SentPackets,
};
use aqmlab_scenario::{Record, Scenario};

use crate::ends::{Ends, Numbers};
use crate::ip::Headers;
use crate::path::Path;
use crate::routes::{Route, Side};
use crate::writing::{Feed, Sink, Writing};

/// A packet on its way through the router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    flow: u64,
    sender: Role,
    number: u32,
    kind: PacketKind,
    is_again: bool,
    /// Its row at the port at which it is, if there is one.
    row: Option<u64>,
}

/// What has been sent one way between two ends.
#[derive(Debug)]
struct Sender {
    flow: u64,
    /// Number of the SYN that came last: a new connection has another number.
    opening: Option<u32>,
    sent: SentPackets,
}

/// The packets of one direction.
#[derive(Debug)]
pub(crate) struct PacketLog {
    from: Side,
    span: MeasuredSpan,
    numbers: Arc<Numbers>,
    senders: HashMap<Ends, Sender>,
    /// Rows of packets that are at a port.
    rows: HashMap<u64, PacketRow>,
    last: u64,
    feed: Feed<PacketRow>,
}

impl PacketLog {
    pub(crate) fn new(
        from: Side,
        span: MeasuredSpan,
        numbers: Arc<Numbers>,
        feed: Feed<PacketRow>,
    ) -> Self {
        Self {
            from,
            span,
            numbers,
            senders: HashMap::new(),
            rows: HashMap::new(),
            last: 0,
            feed,
        }
    }

    /// A whole IPv4 packet was sent, by an end of a scenario's connection or by any program.
    pub(crate) fn sends(&mut self, bytes: &[u8], route: Option<(&Route, Role)>) -> Trip {
        let headers = Headers::read(bytes);
        let segment = headers.and_then(|it| it.segment);
        let ends = match &headers {
            Some(headers) => Ends::of(self.from, headers),
            None => Ends::of_any(self.from, bytes),
        };
        let of_program = match self.from {
            Side::Clients => Role::Client,
            Side::Servers => Role::Server,
        };
        let (flow, sender) = match route {
            Some((route, sender)) => (Some(route.flow), sender),
            None => (None, of_program),
        };
        let new = || Sender {
            flow: flow.unwrap_or_else(|| self.numbers.of(ends)),
            opening: None,
            sent: SentPackets::default(),
        };
        let known = self.senders.entry(ends).or_insert_with(new);
        if flow.is_some_and(|flow| flow != known.flow) {
            *known = new();
        }
        if let Some(segment) = segment
            && segment.syn
            && known.opening.replace(segment.seq) != Some(segment.seq)
        {
            known.sent.reopen(segment.seq);
        }
        let (number, is_again) = known.sent.send(segment.map(|it| {
            let flags = u32::from(it.syn) + u32::from(it.fin);
            (it.seq, it.len + flags)
        }));
        Trip {
            flow: known.flow,
            sender,
            number,
            kind: segment.map_or(PacketKind::Datagram, |it| {
                PacketKind::of_segment(it.len, it.syn, it.fin, it.rst)
            }),
            is_again,
            row: None,
        }
    }

    /// A packet of a class reaches a port, by its place on the way, where so much waits.
    pub(crate) fn arrives(
        &mut self,
        trip: &mut Trip,
        (place, now): (usize, Time),
        (packet, class): (&Packet, u16),
        backlog: Backlog,
    ) {
        trip.row = None;
        if !self.span.contains(now) {
            return;
        }
        self.last += 1;
        trip.row = Some(self.last);
        let row = PacketRow {
            port: (Side::BOTH.len() * place) as u16 + self.from as u16,
            class,
            size: packet.size,
            arrived: now,
            waited: None,
            in_ring: None,
            flow: trip.flow,
            number: trip.number,
            is_from_client: trip.sender == Role::Client,
            kind: trip.kind,
            is_again: trip.is_again,
            ecn: packet.ecn,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            outcome: PacketOutcome::Waiting,
        };
        self.rows.insert(self.last, row);
    }

    /// It leaves the discipline then, and is so long in the device ring, if there is one; or the
    /// discipline drops it.
    pub(crate) fn leaves(
        &mut self,
        trip: Option<Trip>,
        left: impl FnOnce() -> (Time, Option<Time>),
        transmission: Transmission,
    ) {
        let row = trip.and_then(|trip| self.rows.remove(&trip.row?));
        if let (Some(mut row), Some(outcome)) = (row, transmission.outcome()) {
            if let PacketOutcome::Dropped(_) = outcome {
                row.outcome = outcome;
            } else {
                let (left, ring) = left();
                row.leave(left, ring, outcome, self.span.end);
            }
            self.feed.put(row.arrived, row);
        }
    }

    /// The run is over: what is still there waits.
    pub(crate) fn close(self) {
        for row in self.rows.into_values() {
            self.feed.put(row.arrived, row);
        }
    }
}

/// The table.
struct Table(Box<dyn PacketRecords>);

impl Sink<PacketRow> for Table {
    type Error = RunError;

    fn put(&mut self, _at: Time, row: PacketRow) -> Result<(), RunError> {
        self.0.packet(&row);
        self.0.check()
    }

    fn end(self) -> Result<(), RunError> {
        self.0.finish()
    }
}

/// Has the packets of both ways recorded, if the scenario wants them; the thread that writes.
pub(crate) fn start(
    scenario: &Scenario,
    metrics: &mut Metrics,
    paths: &mut [Path; 2],
    numbers: &Arc<Numbers>,
) -> Result<Option<Writing<RunError>>, RunError> {
    if !scenario.measure.record.contains(&Record::Packets) {
        return Ok(None);
    }
    let ports = LinkDirection::all(&scenario.topology.network());
    let Some(records) = metrics.packets(&ports)? else {
        return Ok(None);
    };
    let (feeds, writing) = Writing::start(Table(records));
    let span = MeasuredSpan::of(&scenario.measure);
    for ((path, feed), from) in paths.iter_mut().zip(feeds).zip(Side::BOTH) {
        path.set_log(PacketLog::new(from, span, numbers.clone(), feed));
    }
    Ok(Some(writing))
}
