//! Traces of `data/kernel`, decision by decision: each packet meets the fate that its row states, at
//! the stated time, and leaves with the stated ECN field. Format: `data/README.md`.

use std::collections::BTreeMap;
use std::path::Path;

use aqmlab_aqm::{Ack, Context, Details, Discipline, LinkFacts, Queue};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, Rate, Time};
use toml::{Table, Value};

use crate::model::once::Numbered;

/// A row: what came, and what is to become of it.
struct Row {
    arrival: Time,
    packet: Packet,
    ack: Option<Ack>,
    fate: Fate,
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Sent(Time, Ecn),
    DroppedOnDequeue(Time),
    DroppedOnArrival(Time),
    Waits,
}

/// When packets may leave.
enum Service {
    /// A link that begins the next packet when it has sent the last one.
    Link(Rate),
    /// So many dequeues at each of these times.
    Times(BTreeMap<Time, usize>),
}

struct Trace {
    disciplines: Vec<Discipline>,
    rows: Vec<Row>,
    service: Service,
}

fn ecn(text: &str) -> Ecn {
    match text {
        "not-ect" => Ecn::NotEct,
        "ect0" => Ecn::Ect0,
        "ect1" => Ecn::Ect1,
        "ce" => Ecn::Ce,
        _ => panic!("{text:?} is no ECN field"),
    }
}

/// `ack 20000 sack 15000-16448 18000-19000`; `ece` and `cwr` are flags.
fn ack(text: &str) -> Ack {
    let mut ack = Ack {
        is_pure: true,
        ..Ack::default()
    };
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "ack" => ack.number = words.next().unwrap().parse().unwrap(),
            "sack" => {}
            "ece" => ack.ecn |= 1,
            "cwr" => ack.ecn |= 2,
            block => {
                let (from, to) = block.split_once('-').expect("a SACK block");
                ack.sack.push((from.parse().unwrap(), to.parse().unwrap()));
            }
        }
    }
    ack
}

impl Trace {
    fn read(text: &str) -> Self {
        let mut disciplines = Vec::new();
        let mut link = None;
        for line in text.lines().filter_map(|line| line.strip_prefix("# ")) {
            if let Some(line) = line.strip_prefix("discipline: ") {
                let table: Table = line.replace("; ", "\n").parse().unwrap();
                let discipline: Discipline = tagged::from_value(Value::Table(table)).unwrap();
                assert_eq!(discipline.check(), Ok(()), "{line}");
                disciplines.push(discipline);
            } else if let Some(line) = line.strip_prefix("service: link of ") {
                let (rate, _) = line.split_once(" (").unwrap();
                link = Some(rate.parse().unwrap());
            }
        }
        assert!(!disciplines.is_empty(), "a line names the discipline");
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.comment(Some(b'#')).from_reader(text.as_bytes());
        let rows = reader.deserialize().map(|row| Row::read(&row.unwrap()));
        let rows: Vec<_> = rows.collect();
        let service = match link {
            Some(rate) => Service::Link(rate),
            None => Service::Times(dequeues(&rows)),
        };
        Self {
            disciplines,
            rows,
            service,
        }
    }

    /// What becomes of the packets behind a discipline.
    fn play(&self, discipline: &Discipline) -> Vec<Fate> {
        let rate = match self.service {
            Service::Link(rate) => rate,
            Service::Times(_) => Rate::from_mbps(1_000_000),
        };
        let link = LinkFacts {
            rate,
            framing: Bytes(0),
        };
        let mut bench = Bench {
            queue: Queue::new(discipline, link, 1),
            fates: vec![Fate::Waits; self.rows.len()],
        };
        let mut times = match &self.service {
            Service::Times(times) => times.clone(),
            Service::Link(_) => BTreeMap::new(),
        };
        let mut wire_free = Some(Time::ZERO);
        for id in 0..=self.rows.len() {
            let next = self.rows.get(id);
            let now = next.map_or(Time::NEVER, |row| row.arrival);
            // At equal times departures come first.
            while let Some(entry) = times.first_entry().filter(|entry| *entry.key() <= now) {
                let (time, count) = entry.remove_entry();
                for _ in 0..count {
                    bench.depart(time);
                }
            }
            while let (Service::Link(rate), Some(free)) = (&self.service, wire_free) {
                if free > now || free == Time::NEVER {
                    break;
                }
                wire_free = bench.depart(free).map(|size| free + time_of(*rate, size));
            }
            let Some(row) = next else {
                break;
            };
            bench.arrive(id, row);
            if let (Service::Link(rate), None) = (&self.service, wire_free) {
                wire_free = bench.depart(now).map(|size| now + time_of(*rate, size));
            }
        }
        bench.fates
    }
}

/// A packet's time, rounded up to whole nanoseconds.
fn time_of(rate: Rate, size: u32) -> Time {
    let bits = u128::from(size) * 8_000_000_000;
    Time::from_nanos(bits.div_ceil(u128::from(rate.bps())) as u64)
}

/// A dequeue for each packet that is sent, and one where all were dropped.
fn dequeues(rows: &[Row]) -> BTreeMap<Time, usize> {
    let mut sent: BTreeMap<Time, usize> = BTreeMap::new();
    for row in rows {
        match row.fate {
            Fate::Sent(time, _) => *sent.entry(time).or_default() += 1,
            Fate::DroppedOnDequeue(time) => {
                sent.entry(time).or_default();
            }
            Fate::DroppedOnArrival(_) | Fate::Waits => {}
        }
    }
    sent.values_mut().for_each(|count| *count = (*count).max(1));
    sent
}

impl Row {
    fn read(row: &BTreeMap<String, String>) -> Self {
        let nanos = |key: &str| Time::from_nanos(row[key].parse().unwrap());
        Self {
            arrival: nanos("arrival_ns"),
            packet: Packet {
                size: row["bytes"].parse().unwrap(),
                ecn: ecn(&row["ecn"]),
                dscp: 0,
                flow: FlowKey(row["flow"].parse().unwrap()),
            },
            ack: row.get("acknowledges").map(|text| ack(text)),
            fate: match row["fate"].as_str() {
                "sent" => Fate::Sent(nanos("fate_ns"), ecn(&row["ecn_out"])),
                "dropped-on-dequeue" => Fate::DroppedOnDequeue(nanos("fate_ns")),
                "dropped-on-arrival-of-a-packet" => Fate::DroppedOnArrival(nanos("fate_ns")),
                "waits" => Fate::Waits,
                fate => panic!("{fate:?} is no fate"),
            },
        }
    }
}

/// What is known of a packet; nothing is left to chance.
struct Known(Details);

impl Context for Known {
    fn draw(&mut self) -> f64 {
        unreachable!("nothing is left to chance")
    }

    fn details(&self) -> Option<Details> {
        Some(self.0.clone())
    }
}

struct Bench {
    queue: Queue<usize>,
    fates: Vec<Fate>,
}

impl Bench {
    fn arrive(&mut self, id: usize, row: &Row) {
        let details = Details {
            hosts: [row.packet.flow.0; 2],
            ack: row.ack.clone(),
            client: None,
        };
        let (now, fates) = (row.arrival, &mut self.fates);
        self.queue
            .enqueue(now, row.packet, id, &mut Known(details), |queued, _| {
                fates[queued.item] = Fate::DroppedOnArrival(now);
            });
    }

    /// The size of the packet that leaves.
    fn depart(&mut self, now: Time) -> Option<u32> {
        let fates = &mut self.fates;
        let mut draw = || unreachable!("nothing is left to chance");
        let sent = self.queue.take(now, &mut draw, &mut |id, _| {
            fates[id] = Fate::DroppedOnDequeue(now);
        })?;
        self.fates[sent.item] = Fate::Sent(now, sent.packet.ecn);
        Some(sent.packet.size)
    }
}

#[test]
fn every_row_of_every_trace_is_met() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernel");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "csv") {
            continue;
        }
        files += 1;
        let trace = Trace::read(&std::fs::read_to_string(&path).unwrap());
        for discipline in &trace.disciplines {
            let found = trace.play(discipline);
            for (id, (found, row)) in found.iter().zip(&trace.rows).enumerate() {
                let name = path.file_name().unwrap().display();
                assert_eq!(*found, row.fate, "{name}, packet {id}, {discipline:?}");
            }
        }
    }
    assert!(files > 0, "there are traces");
}
