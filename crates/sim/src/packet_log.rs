//! Every packet that reaches a queue, as a row of the run's records.
//!
//! A row is made when a packet arrives and is complete when it has left the discipline, or was
//! dropped there. Rows go out in the order of arrival, so those behind an incomplete one wait for
//! it. No more wait than packets are in the queues and what arrived behind the oldest of them; where
//! that becomes [too many](MOST_ROWS), the oldest one is set aside and goes out late.
//!
//! A segment is known by the ticket of its options: every segment has one where packets are logged.
//! A datagram of a stack has one, too; others are known by their flow and number.

use std::collections::{BTreeMap, HashMap, VecDeque};

use aqmlab_aqm::{Backlog, Reason};
use aqmlab_link::Transmission;
use aqmlab_net::{FlowKey, Packet, Role, Time};
use aqmlab_record::{MeasuredSpan, Metrics, PacketKind, PacketOutcome, PacketRow, SentPackets};
use aqmlab_tcp::Flags;

use crate::breakdown::Causes;
use crate::event::Event;
use crate::options::{NO_OPTIONS, Ticket};
use crate::route::Route;

/// So many rows wait in order, at most.
const MOST_ROWS: usize = 1 << 20;

/// What one end has sent, of its connection that used the slot last.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    flow: FlowKey,
    sent: SentPackets,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Trip {
    number: u32,
    is_again: bool,
    /// Its row at the port at which it is, if there is one.
    row: Option<u64>,
}

/// A row, complete or not.
#[derive(Clone, Copy, Debug)]
struct Entry {
    row: PacketRow,
    is_complete: bool,
}

/// The packets of a run.
#[derive(Debug)]
pub(crate) struct PacketLog {
    span: MeasuredSpan,
    /// By slot: client, server.
    senders: Vec<[Sender; 2]>,
    /// By ticket.
    trips: Vec<Trip>,
    /// Rows of datagrams without a ticket, by slot and number.
    datagrams: HashMap<(u32, u32), u64>,
    /// In the order of arrival; the first has the number `first`.
    rows: VecDeque<Entry>,
    first: u64,
    /// Rows that were set aside, by number.
    late: BTreeMap<u64, PacketRow>,
    /// Those of them that are complete.
    ready: Vec<PacketRow>,
    most: usize,
}

impl PacketLog {
    fn trip(&mut self, ticket: Ticket) -> &mut Trip {
        let place = ticket as usize;
        if self.trips.len() <= place {
            self.trips.resize(place + 1, Trip::default());
        }
        &mut self.trips[place]
    }

    /// Takes the row of a packet at the port at which it is.
    fn take_row(&mut self, event: &Event) -> Option<u64> {
        match event.ticket() {
            NO_OPTIONS => self.datagrams.remove(&(event.conn, event.ack)),
            ticket => self.trip(ticket).row.take(),
        }
    }

    /// Nothing more becomes of a packet at the port at which it is.
    fn complete(&mut self, number: u64, fill: impl FnOnce(&mut PacketRow)) {
        if let Some(place) = number.checked_sub(self.first) {
            let entry = &mut self.rows[place as usize];
            fill(&mut entry.row);
            entry.is_complete = true;
        } else if let Some(mut row) = self.late.remove(&number) {
            fill(&mut row);
            self.ready.push(row);
        }
    }

    /// The oldest row waits for too long.
    #[cold]
    fn set_aside(&mut self) {
        if let Some(entry) = self.rows.pop_front() {
            match entry.is_complete {
                true => self.ready.push(entry.row),
                false => drop(self.late.insert(self.first, entry.row)),
            }
            self.first += 1;
        }
    }
}

fn kind(event: &Event, route: &Route) -> PacketKind {
    if route.are_datagrams {
        return PacketKind::Datagram;
    }
    let has = |flag| event.flags().has(flag);
    let [syn, fin, rst] = [Flags::SYN, Flags::FIN, Flags::RST].map(has);
    PacketKind::of_segment(event.len.into(), syn, fin, rst)
}

impl Causes for PacketLog {
    const ON: bool = true;
    const LOGS: bool = true;

    fn new(_ports: usize) -> Self {
        Self {
            span: MeasuredSpan {
                start: Time::ZERO,
                end: Time::NEVER,
            },
            senders: Vec::new(),
            trips: Vec::new(),
            datagrams: HashMap::new(),
            rows: VecDeque::new(),
            first: 0,
            late: BTreeMap::new(),
            ready: Vec::new(),
            most: MOST_ROWS,
        }
    }

    fn log(&mut self, span: MeasuredSpan) {
        self.span = span;
    }

    fn sends(&mut self, event: &Event, route: &Route) {
        let slot = event.conn as usize;
        if self.senders.len() <= slot {
            self.senders.resize(slot + 1, Default::default());
        }
        let sender = &mut self.senders[slot][event.sender() as usize];
        let flags = event.flags();
        let numbered = u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
        if sender.flow != route.flow {
            *sender = Sender {
                flow: route.flow,
                sent: SentPackets::default(),
            };
        }
        let segment = (event.seq, u32::from(event.len) + numbered);
        let (number, is_again) = sender.sent.send((!route.are_datagrams).then_some(segment));
        if event.ticket() != NO_OPTIONS {
            *self.trip(event.ticket()) = Trip {
                number,
                is_again,
                row: None,
            };
        }
    }

    fn enters_port(
        &mut self,
        event: &Event,
        route: &Route,
        (port, now): (usize, Time),
        packet: &Packet,
        backlog: Backlog,
    ) {
        if !self.span.contains(now) {
            return;
        }
        let place = self.first + self.rows.len() as u64;
        let (number, is_again) = match event.ticket() {
            NO_OPTIONS => {
                self.datagrams.insert((event.conn, event.ack), place);
                (event.ack, false)
            }
            ticket => {
                let trip = self.trip(ticket);
                trip.row = Some(place);
                (trip.number, trip.is_again)
            }
        };
        let row = PacketRow {
            port: port as u16,
            class: route.class,
            size: packet.size,
            arrived: now,
            waited: None,
            in_ring: None,
            flow: route.flow.0 >> 1,
            number,
            is_from_client: event.sender() == Role::Client,
            kind: kind(event, route),
            is_again,
            ecn: packet.ecn,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            outcome: PacketOutcome::Waiting,
        };
        self.rows.push_back(Entry {
            row,
            is_complete: false,
        });
        if self.rows.len() > self.most {
            self.set_aside();
        }
    }

    fn leaves_port(
        &mut self,
        event: &Event,
        (left, ring): (Time, Option<Time>),
        transmission: Transmission,
    ) {
        let outcome = match transmission.outcome() {
            None | Some(PacketOutcome::Dropped(_)) => return,
            Some(outcome) => outcome,
        };
        let Some(number) = self.take_row(event) else {
            return;
        };
        let end = self.span.end;
        // It may be known already that it leaves after the end.
        self.complete(number, |row| row.leave(left, ring, outcome, end));
    }

    fn dropped(&mut self, event: &Event, _now: Time, _port: Option<usize>, reason: Option<Reason>) {
        // One that was lost has left the port, so its row is complete.
        if let Some(reason) = reason
            && let Some(number) = self.take_row(event)
        {
            let outcome = PacketOutcome::Dropped(reason.name());
            self.complete(number, |row| row.outcome = outcome);
        }
    }

    #[inline]
    fn write_packets(&mut self, metrics: &mut Metrics) {
        while let Some(entry) = self.rows.front()
            && entry.is_complete
        {
            metrics.on_packet(&entry.row);
            self.rows.pop_front();
            self.first += 1;
        }
        for row in self.ready.drain(..) {
            metrics.on_packet(&row);
        }
    }

    fn write_all_packets(&mut self, metrics: &mut Metrics) {
        self.write_packets(metrics);
        for row in std::mem::take(&mut self.late).values() {
            metrics.on_packet(row);
        }
        for entry in self.rows.drain(..) {
            metrics.on_packet(&entry.row);
        }
    }
}
