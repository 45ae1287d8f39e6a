//! From TCP headers to connection vectors.

use aqmlab_net::Time;
use aqmlab_traffic::vector::{Body, ConnectionVector};

use crate::connection::{Connection, Ending, Ends, Phase};
use crate::decode::{Endpoint, FIN, RST, SYN, TcpHeader};
use crate::packet::Packet;
use crate::reasons::Part;
use crate::record::Record;
use crate::report::Report;
use crate::table::{Place, Table};
use crate::tidy::Notes;
use crate::{Omission, Skip};

/// What to do with connections of which the capture lacks the beginning, the end or a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// Make vectors of what there is: the load stays what it was.
    #[default]
    Keep,
    /// Leave them out: every vector is a whole connection.
    Drop,
}

/// How connections are told apart.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Longest silence within an ADU.
    pub idle: Time,
    /// Connections that are silent for longer are aborted.
    pub timeout: Time,
    /// What happens to those that were not captured whole.
    pub partial: Partial,
}

impl Default for Options {
    /// 500 ms as in the papers; ten minutes.
    fn default() -> Self {
        Self {
            idle: Time::from_millis(500),
            timeout: Time::from_secs(600),
            partial: Partial::Keep,
        }
    }
}

/// How long a SYN is repeated: Linux gives up after 127 s.
const OPENING_TIMEOUT: Time = Time::from_secs(130);

/// How long after its end packets of a connection may come: as TIME-WAIT of common systems.
const LINGER: Time = Time::from_secs(60);

/// How often time-outs are looked for.
const EXPIRY_INTERVAL: Time = Time::from_secs(1);

/// Makes connection vectors of packets.
pub struct Extractor {
    options: Options,
    table: Table,
    report: Report,
    /// Times of the first packet and of the latest one.
    origin: Option<Time>,
    last: Time,
    expired_at: Time,
    ready: Vec<(ConnectionVector, [Endpoint; 2])>,
}

impl Extractor {
    /// One that has not seen a packet.
    pub fn new(options: Options) -> Self {
        let timeouts = [
            OPENING_TIMEOUT.min(options.timeout),
            options.timeout,
            LINGER,
            LINGER,
        ];
        Self {
            options,
            table: Table::new(timeouts),
            report: Report::default(),
            origin: None,
            last: Time::ZERO,
            expired_at: Time::ZERO,
            ready: Vec::new(),
        }
    }

    /// Takes a packet of a capture.
    #[inline]
    pub fn on_record(&mut self, record: &Record<'_>) {
        self.on_packet(&Packet::read(record));
    }

    /// Takes a packet whose headers have been read.
    #[inline]
    pub fn on_packet(&mut self, packet: &Packet) {
        self.report.packets.read += 1;
        let Some(now) = packet.time else {
            self.report.packets.skipped.add(Skip::NoTime);
            return;
        };
        self.on_time(now);
        match packet.header {
            Ok(header) => self.on_header(now, &header),
            Err(skip) => self.report.packets.skipped.add(skip),
        }
    }

    /// Vectors of connections that have ended, in no order; they are handed out once.
    pub fn ready(&mut self) -> impl Iterator<Item = ConnectionVector> {
        self.ready.drain(..).map(|made| made.0)
    }

    /// Vectors of connections that have ended, with the ends that opened and accepted each.
    pub(crate) fn ready_with_ends(
        &mut self,
    ) -> impl Iterator<Item = (ConnectionVector, [Endpoint; 2])> {
        self.ready.drain(..)
    }

    /// Adds what the pass in front of this has found.
    pub(crate) fn note(&mut self, notes: Notes, outside: u64) {
        self.report.packets.found = self.report.packets.skipped.in_words();
        self.report.packets.notes = notes;
        self.report.connections.opened_outside = outside;
    }

    /// Ends all connections. Their vectors are then [`Extractor::ready`].
    pub fn finish(&mut self) {
        while let Some(place) = self.table.any() {
            self.end(place, Ending::Cut);
        }
        let first = self.origin.unwrap_or_default();
        self.report.packets.duration_s = self.last.saturating_sub(first).as_secs_f64();
    }

    /// What has been read and made.
    pub const fn report(&self) -> &Report {
        &self.report
    }

    #[inline]
    fn on_time(&mut self, now: Time) {
        self.origin.get_or_insert(now);
        if now < self.last {
            self.report.packets.time_went_back += 1;
        }
        self.last = now;
        // Clocks may be set back, too.
        let (early, late) = (now.min(self.expired_at), now.max(self.expired_at));
        if late - early >= EXPIRY_INTERVAL {
            self.expired_at = now;
            while let Some(place) = self.table.expired(now) {
                self.end(place, Ending::Silence);
            }
        }
    }

    #[inline]
    fn on_header(&mut self, now: Time, header: &TcpHeader) {
        self.report.packets.tcp += 1;
        let (source, destination) = (header.source, header.destination);
        let (ends, from) = match source < destination {
            true => (Ends([source, destination]), 0),
            false => (Ends([destination, source]), 1),
        };
        let Some(place) = self.place(ends, from, header, now) else {
            self.report.packets.stray += 1;
            return;
        };
        let connection = self.table.get_mut(place);
        let packets = &mut self.report.packets;
        connection.on_packet(header, from, now, self.options.idle, packets);
        if connection.phase == Phase::Over {
            self.conclude(place, Ending::Closed);
        }
        self.table.requeue(place, now);
    }

    /// The connection that a packet belongs to, a new one if need be; `None` if it is of none.
    #[inline]
    fn place(&mut self, ends: Ends, from: usize, header: &TcpHeader, now: Time) -> Option<Place> {
        if let Some(place) = self.table.find(&ends) {
            let connection = self.table.get_mut(place);
            if !connection.is_reopened_by(header, from) {
                return (connection.phase != Phase::Over).then_some(place);
            }
            self.end(place, Ending::Cut);
        } else {
            let opens = header.flags & SYN != 0;
            let goes_on = header.payload > 0 || header.flags & FIN == 0;
            if header.flags & RST != 0 || !(opens || goes_on) || ends.0[0] == ends.0[1] {
                return None;
            }
        }
        let connections = &mut self.report.connections;
        connections.seen += 1;
        let place = self.table.insert(Connection::new(ends, now), now);
        connections.live_max = connections.live_max.max(self.table.len() as u64);
        Some(place)
    }

    /// Forgets a connection.
    fn end(&mut self, place: Place, ending: Ending) {
        // One that is over has already been made a vector of.
        if self.table.get_mut(place).phase != Phase::Over {
            self.conclude(place, ending);
        }
        self.table.remove(place);
    }

    /// Makes a vector of a connection, or counts why not.
    fn conclude(&mut self, place: Place, ending: Ending) {
        let connections = &mut self.report.connections;
        let origin = self.origin.unwrap_or_default();
        let id = connections.made + 1;
        let connection = self.table.get_mut(place);
        let made = match connection.finish(id, origin, ending, self.options.idle) {
            Ok(made) => made,
            Err(omission) => return connections.skipped.add(omission),
        };
        let is_partial = made
            .parts
            .iter()
            .any(|part| matches!(part, Part::Beginning | Part::End | Part::Direction));
        if is_partial && self.options.partial == Partial::Drop {
            return connections.skipped.add(Omission::Partial);
        }
        connections.made += 1;
        for part in &made.parts {
            connections.partial.add(*part);
        }
        connections.initiator_by.add(made.origin);
        let vectors = &mut self.report.vectors;
        match made.vector.body {
            Body::Sequential(_) => vectors.sequential += 1,
            Body::Concurrent(_) => vectors.concurrent += 1,
        }
        vectors.adus += made.adus() as u64;
        let [initiator, acceptor] = made.vector.bytes();
        vectors.initiator_bytes += initiator;
        vectors.acceptor_bytes += acceptor;
        vectors.with_rtt += u64::from(made.vector.rtt.is_some());
        self.ready.push((made.vector, made.ends));
    }
}
