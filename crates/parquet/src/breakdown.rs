//! Where the time of each response went: a table whose columns depend on the links.

use aqmlab_record::{Breakdown, Exchange, PARTS_OF_PORT, Part, PathCount, PortParts};

use crate::chunk::Encoded;
use crate::column::{
    Buffer, ClassNames, Column, Columns, FixedColumns, Layout, TableAbout, Values, Words, columns,
};
use crate::schema::{Field, Kind};

columns! {
    /// An exchange that ended in the measured span, with the parts of its response time. All
    /// columns in nanoseconds add up to `response_ns`. Counts are of the critical path. The rows
    /// match `responses.parquet`.
    Exchanges("breakdown.parquet", Large) of (&'a Exchange) |row| {
        /// Number of the connection.
        flow: Values<u64> = row.flow,
        /// Class of traffic.
        class: ClassNames = row.class,
        /// Start time: of the connection for its first exchange, of the request for others.
        start_s ["s"]: Values<f64> = row.start.as_secs_f64(),
        /// Number of the client's host.
        client: Values<u32> = row.client,
        /// Number of the server's host.
        server: Values<u32> = row.server,
        /// Application bytes of the response.
        response_bytes ["bytes"]: Values<u64> = row.response_bytes,
        /// Response time: until the client has the whole response.
        response_ns ["ns"]: Values<u64> = row.response_time().as_nanos(),
    }
}

columns! {
    /// The loss that cost most on the path of a response.
    Losses("breakdown.parquet", Large) of ((&'a Breakdown<'a>, &'a [PortParts]))
        |(breakdown, ports)|
    {
        /// Longest loss repair on the path, from the first transmission to the retransmission. 0:
        /// no loss.
        loss_s ["s"]: Values<f64> = breakdown.loss.map_or(0.0, |loss| loss.time.as_secs_f64()),
        /// What was lost: `syn` (or SYN-ACK), `data`, `fin`; empty: nothing.
        loss_segment: Words = breakdown.loss.map_or("", |loss| loss.segment.name()),
        /// Link where it was lost. Also empty for losses that the connection itself makes.
        loss_link: Words = place(breakdown, ports).map_or("", |port| &port.name.link),
        /// The direction of that link.
        loss_direction: Words = place(breakdown, ports).map_or("", |port| port.name.direction),
        /// The discipline's reason to drop it; `wire`: lost at random.
        loss_reason: Words = breakdown.loss.map_or("", |loss| loss.reason),
    }
}

fn place<'a>(breakdown: &Breakdown<'_>, ports: &'a [PortParts]) -> Option<&'a PortParts> {
    ports.get(usize::from(breakdown.loss?.port?))
}

/// The column of a part at a port: wait, device ring, or transmission.
pub(crate) fn column_at(port: &PortParts, part: usize) -> String {
    let name = OF_PORT[part].0.replace("<link>", &port.name.link);
    name.replace("<direction>", port.name.direction)
}

/// What is said of the columns of each link's direction.
const OF_PORT: [(&str, &str); PARTS_OF_PORT] = [
    (
        "wait_<link>_<direction>_ns",
        "Waiting in the discipline of one direction of a link, also for earlier packets of the \
         same connection.",
    ),
    (
        "ring_<link>_<direction>_ns",
        "Waiting in the device ring, if there is one.",
    ),
    (
        "transmission_<link>_<direction>_ns",
        "Transmission on the link, framing included, or processing time in a router.",
    ),
];

const HEADS: &[Column] = Exchanges::ABOUT.columns;
const TAILS: &[Column] = Losses::ABOUT.columns;
const COUNT: usize =
    HEADS.len() + Part::ALL.len() + PARTS_OF_PORT + PathCount::ALL.len() + TAILS.len();

const fn nanoseconds(name: &'static str, meaning: &'static str) -> Column {
    Column {
        name,
        kind: <Values<u64> as Buffer>::KIND,
        unit: Some("ns"),
        meaning,
        is_nullable: false,
    }
}

/// All columns. Those of the links stand for one direction.
const ABOUT_COLUMNS: [Column; COUNT] = {
    let mut all = [HEADS[0]; COUNT];
    let mut at = 0;
    while at < HEADS.len() {
        all[at] = HEADS[at];
        at += 1;
    }
    let mut part = 0;
    while part < Part::ALL.len() {
        let about = Part::ALL[part];
        all[at] = nanoseconds(about.column(), about.meaning());
        (part, at) = (part + 1, at + 1);
    }
    let mut part = 0;
    while part < PARTS_OF_PORT {
        all[at] = nanoseconds(OF_PORT[part].0, OF_PORT[part].1);
        (part, at) = (part + 1, at + 1);
    }
    let mut count = 0;
    while count < PathCount::ALL.len() {
        all[at] = Column {
            name: PathCount::ALL[count].column(),
            kind: <Values<u32> as Buffer>::KIND,
            unit: None,
            meaning: PathCount::ALL[count].meaning(),
            is_nullable: false,
        };
        (count, at) = (count + 1, at + 1);
    }
    let mut tail = 0;
    while tail < TAILS.len() {
        all[at] = TAILS[tail];
        (tail, at) = (tail + 1, at + 1);
    }
    all
};

/// Breakdowns of response times: columns for each direction of each link, too.
pub(crate) struct Breakdowns {
    exchanges: Exchanges,
    parts: Vec<Values<u64>>,
    /// Which of the parts have a column: not the ring where there is none.
    shown: Vec<usize>,
    counts: Vec<Values<u32>>,
    losses: Losses,
    ports: Vec<PortParts>,
}

impl Breakdowns {
    pub(crate) fn with_ports(classes: &[String], ports: &[PortParts]) -> (Self, Vec<Field>) {
        let mut shown: Vec<usize> = (0..Part::ALL.len()).collect();
        let mut names: Vec<String> = Part::ALL.map(|part| part.column().to_owned()).to_vec();
        for (number, port) in ports.iter().enumerate() {
            let first = Part::ALL.len() + PARTS_OF_PORT * number;
            let of_ring = [false, true, false];
            for (part, of_ring) in of_ring.into_iter().enumerate() {
                if port.has_ring || !of_ring {
                    shown.push(first + part);
                    names.push(column_at(port, part));
                }
            }
        }
        let mut fields = Exchanges::fields();
        let part = |name: &String| Field::new(name, Kind::UInt64, false);
        fields.extend(names.iter().map(part));
        let count = |count: PathCount| Field::new(count.column(), Kind::UInt32, false);
        fields.extend(PathCount::ALL.map(count));
        fields.extend(Losses::fields());
        let columns = Self {
            exchanges: Exchanges::new(classes),
            parts: shown.iter().map(|_| Values::default()).collect(),
            shown,
            counts: PathCount::ALL.iter().map(|_| Values::default()).collect(),
            losses: Losses::new(classes),
            ports: ports.to_vec(),
        };
        (columns, fields)
    }
}

impl Columns for Breakdowns {
    type Row<'a> = (&'a Exchange, &'a Breakdown<'a>);

    const ABOUT: TableAbout = TableAbout {
        columns: &ABOUT_COLUMNS,
        ..Exchanges::ABOUT
    };

    fn push(&mut self, (exchange, breakdown): Self::Row<'_>) {
        self.exchanges.push(exchange);
        for (column, part) in self.parts.iter_mut().zip(&self.shown) {
            column.push(breakdown.parts[*part]);
        }
        for (column, count) in self.counts.iter_mut().zip(breakdown.counts) {
            column.push(*count as u32);
        }
        self.losses.push((breakdown, &self.ports));
    }

    fn pages(&mut self) -> Vec<Encoded> {
        let mut pages = self.exchanges.pages();
        pages.extend(self.parts.iter_mut().map(Buffer::page));
        pages.extend(self.counts.iter_mut().map(Buffer::page));
        pages.extend(self.losses.pages());
        pages
    }

    fn dictionaries(&self) -> Vec<Option<Encoded>> {
        let mut dictionaries = self.exchanges.dictionaries();
        let plain = self.parts.len() + self.counts.len();
        dictionaries.extend((0..plain).map(|_| None));
        dictionaries.extend(self.losses.dictionaries());
        dictionaries
    }
}
