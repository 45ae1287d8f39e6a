//! What happened on a connection that was followed.

use aqmlab_net::Role;
use aqmlab_record::{PARTS_OF_PORT, Part, PortParts, StoryRow};

use crate::breakdown::column_at;
use crate::chunk::Encoded;
use crate::column::{
    Buffer, Column, Columns, FixedColumns, Layout, TableAbout, Values, Words, columns,
};
use crate::schema::Field;

columns! {
    /// An event of the connection that `measure.story` follows, in an exchange that ended.
    Events("story.parquet", Small) of ((&'a StoryRow, &'a [PortParts])) |(row, ports)| {
        /// Its number, from 1.
        number: Values<u64> = row.number,
        /// The number of the event that caused it; 0: no event of the connection. From `answered`
        /// back to `asked` the causes are the response's critical path.
        cause: Values<u64> = row.cause,
        /// When.
        time_ns ["ns"]: Values<u64> = row.time.as_nanos(),
        /// `asked`, `sent`, `at-port`, `dropped`, `arrived`, `part` or `answered`.
        event: Words = row.event.name(),
        /// The end that sent the segment: `client` or `server`; empty: no segment.
        sender: Words = row.sender.map_or("", name),
        /// Sequence number of the segment; of QUIC, offset in the stream or in the handshake.
        seq: Values<u64> = row.segment[0],
        /// Its acknowledgement number.
        ack: Values<u64> = row.segment[1],
        /// Its payload.
        payload_bytes ["bytes"]: Values<u64> = row.segment[2],
        /// Its control bits; of QUIC, its packets and frames.
        flags: Words = &row.flag_words(),
        /// Whether its bytes had been sent before.
        again: Values<bool> = row.is_again,
        /// The link where it was dropped.
        link: Words = place(row, ports).map_or("", |port| &port.name.link),
        /// The direction of that link.
        direction: Words = place(row, ports).map_or("", |port| port.name.direction),
        /// The discipline's reason to drop it; `wire`: lost at random.
        reason: Words = row.reason,
        /// The column of `breakdown.parquet` that this event adds to.
        part: Words = &part(row, ports),
        /// What it adds.
        duration_ns ["ns"]: Values<u64> = row.duration.as_nanos(),
        /// The node or subscriber that held the packet for most of its wait in a tree of rates,
        /// with `(ceil)` for its ceiling or `(rate)` for its assured rate; empty: none.
        held_by: Words = &held_by(row, ports),
    }
}

const fn name(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

fn place<'a>(row: &StoryRow, ports: &'a [PortParts]) -> Option<&'a PortParts> {
    ports.get(usize::from(row.port?))
}

fn held_by(row: &StoryRow, ports: &[PortParts]) -> String {
    let port = row
        .part
        .and_then(|part| usize::from(part).checked_sub(Part::ALL.len()));
    let (Some(holder), Some(part)) = (row.holder, port) else {
        return String::new();
    };
    let name = &ports[part / PARTS_OF_PORT].holders[holder.part as usize];
    let why = if holder.by_ceiling { "ceil" } else { "rate" };
    format!("{name} ({why})")
}

fn part(row: &StoryRow, ports: &[PortParts]) -> String {
    let Some(part) = row.part.map(usize::from) else {
        return String::new();
    };
    match Part::ALL.get(part) {
        Some(part) => part.column().to_owned(),
        None => {
            let part = part - Part::ALL.len();
            column_at(&ports[part / PARTS_OF_PORT], part % PARTS_OF_PORT)
        }
    }
}

/// Events, with the names of the ports.
pub(crate) struct Stories {
    events: Events,
    ports: Vec<PortParts>,
}

impl Stories {
    pub(crate) fn with_ports(ports: &[PortParts]) -> (Self, Vec<Field>) {
        let columns = Self {
            events: Events::new(&[]),
            ports: ports.to_vec(),
        };
        (columns, Events::fields())
    }
}

impl Columns for Stories {
    type Row<'a> = &'a StoryRow;

    const ABOUT: TableAbout = Events::ABOUT;

    fn push(&mut self, row: &StoryRow) {
        self.events.push((row, &self.ports));
    }

    fn pages(&mut self) -> Vec<Encoded> {
        self.events.pages()
    }

    fn dictionaries(&self) -> Vec<Option<Encoded>> {
        self.events.dictionaries()
    }
}
