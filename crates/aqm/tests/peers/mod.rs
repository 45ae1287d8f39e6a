//! The same packets through a queue of ns-2 or ns-3 and through ours: what the peers did stands in
//! `data/peers`, whose README says how it was made. Where a peer parts from ours, a few lines
//! that compute as the peer does must follow it, and the same lines with our arithmetic must
//! follow ours to the last packet: then nothing else differs.

mod exact;
mod random;
mod red;

use std::sync::LazyLock;

use aqmlab_aqm::{Discipline, LinkFacts, Queue};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, RandomStream, Rate, Time};

use crate::model::once::Numbered;

const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(0),
};

/// Bytes of the packets of each flow.
const SIZES: [u32; 10] = [1000, 1000, 1000, 1000, 1000, 1000, 500, 500, 40, 1500];

/// The queue is averaged over so long.
const BIN: Time = Time::from_millis(100);

/// An inner variable is looked at so long before the end of a bin, where ticks may fall.
const BEFORE: Time = Time::from_millis(1);

/// The table of a file of `data/peers`.
fn table(name: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let path = format!("{}/tests/data/peers/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut reader = csv::Reader::from_path(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let head = texts(reader.headers().unwrap());
    let rows = reader.records().map(|record| texts(&record.unwrap()));
    (head, rows.collect())
}

/// Times and flows of the packets.
static ARRIVALS: LazyLock<Vec<(Time, u32)>> = LazyLock::new(|| {
    let mut now = Time::ZERO;
    let number = |text: &String| text.parse::<u64>().unwrap();
    let (_, rows) = table("arrivals.csv");
    rows.iter()
        .map(|row| {
            now += Time::from_nanos(100 * number(&row[0]));
            (now, number(&row[1]) as u32)
        })
        .collect()
});

/// What one run did.
#[derive(Default)]
struct Run {
    /// Numbers of packets.
    dropped: Vec<usize>,
    marked: Vec<usize>,
    /// The time average in each bin, in packets.
    queue: Vec<f64>,
    /// An inner variable shortly before the end of each.
    variable: Vec<f64>,
}

/// What keeps the packets in front of a wire.
trait Buffer {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        number: usize,
        draw: &mut dyn FnMut() -> f64,
        dropped: &mut Vec<usize>,
    );

    /// The next packet and its number.
    fn dequeue(&mut self, now: Time, dropped: &mut Vec<usize>) -> Option<(Packet, usize)>;

    /// A dequeue found nothing.
    fn idle(&mut self, now: Time);

    fn next_tick(&self) -> Time;

    fn tick(&mut self);

    fn packets(&self) -> u32;

    /// The inner variable that is compared.
    fn variable(&self) -> f64;
}

/// One of our disciplines, and the place of its inner variable.
struct Ours(Queue<usize>, Option<usize>);

impl Buffer for Ours {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        number: usize,
        draw: &mut dyn FnMut() -> f64,
        dropped: &mut Vec<usize>,
    ) {
        let on_drop = &mut |number, _| dropped.push(number);
        self.0.put(now, packet, number, draw, on_drop);
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<usize>) -> Option<(Packet, usize)> {
        let mut draw = || unreachable!("none of these draws at a departure");
        let next = self
            .0
            .take(now, &mut draw, &mut |number, _| dropped.push(number))?;
        Some((next.packet, next.item))
    }

    fn idle(&mut self, now: Time) {
        self.0.idle(now);
    }

    fn next_tick(&self) -> Time {
        self.0.next_tick()
    }

    fn tick(&mut self) {
        self.0.tick();
    }

    fn packets(&self) -> u32 {
        self.0.backlog().packets
    }

    fn variable(&self) -> f64 {
        let mut values = Vec::new();
        self.0.probe(&mut values);
        self.1.map_or(f64::NAN, |place| values[place])
    }
}

/// A buffer and its wire.
struct Port<B> {
    buffer: B,
    busy_until: Option<Time>,
    /// Packets times seconds since the bin began, up to `accounted`.
    area: f64,
    accounted: Time,
    run: Run,
}

impl<B: Buffer> Port<B> {
    /// Sends all packets through a buffer; they are ECN-capable or not.
    fn play(buffer: B, ecn: bool, seed: u64) -> Run {
        let mut port = Self {
            buffer,
            busy_until: None,
            area: 0.0,
            accounted: Time::ZERO,
            run: Run::default(),
        };
        let mut random = RandomStream::new(seed, "peers", 0);
        for (number, &(now, flow)) in ARRIVALS.iter().enumerate() {
            let packet = Packet {
                size: SIZES[flow as usize],
                ecn: if ecn { Ecn::Ect0 } else { Ecn::NotEct },
                dscp: 0,
                flow: FlowKey(u64::from(flow)),
            };
            port.catch_up(now);
            port.account(now);
            let dropped = &mut port.run.dropped;
            port.buffer
                .enqueue(now, packet, number, &mut || random.uniform(), dropped);
            port.serve(now);
        }
        port.catch_up(ARRIVALS[ARRIVALS.len() - 1].0 + Time::from_secs(10));
        port.run
    }

    fn account(&mut self, now: Time) {
        let waiting = f64::from(self.buffer.packets());
        self.area += waiting * (now - self.accounted).as_secs_f64();
        self.accounted = now;
    }

    /// Departures, ticks, looks at the variable and ends of bins up to now.
    fn catch_up(&mut self, now: Time) {
        loop {
            let departure = self.busy_until.unwrap_or(Time::NEVER);
            let tick = self.buffer.next_tick();
            let look = BIN * (self.run.variable.len() as u64 + 1) - BEFORE;
            let end = BIN * (self.run.queue.len() as u64 + 1);
            let next = departure.min(tick).min(look).min(end);
            if next > now {
                break;
            }
            self.account(next);
            if departure == next {
                self.busy_until = None;
                self.serve(next);
            } else if tick == next {
                self.buffer.tick();
            } else if look == next {
                self.run.variable.push(self.buffer.variable());
            } else {
                self.run.queue.push(self.area / BIN.as_secs_f64());
                self.area = 0.0;
            }
        }
    }

    fn serve(&mut self, now: Time) {
        if self.busy_until.is_some() {
            return;
        }
        let Some((packet, number)) = self.buffer.dequeue(now, &mut self.run.dropped) else {
            self.buffer.idle(now);
            return;
        };
        if packet.ecn == Ecn::Ce {
            self.run.marked.push(number);
        }
        let time = LINK.rate.transmission_time(u64::from(packet.size));
        self.busy_until = Some(now + time);
    }
}

/// A case of `data/peers` and our discipline for it.
struct Case {
    name: &'static str,
    table: String,
    /// Our name of the inner variable that the peer shows.
    variable: &'static str,
    /// Whether all packets are ECN-capable.
    ecn: bool,
}

impl Case {
    const fn new(name: &'static str, table: String, variable: &'static str) -> Self {
        Self {
            name,
            table,
            variable,
            ecn: false,
        }
    }

    fn with_ecn(self, ecn: bool) -> Self {
        Self { ecn, ..self }
    }

    fn play(&self, seed: u64) -> Run {
        let parsed = toml::Value::Table(self.table.parse().unwrap());
        let discipline: Discipline = tagged::from_value(parsed).unwrap();
        assert_eq!(discipline.check(), Ok(()), "{}", self.name);
        let queue = Queue::new(&discipline, LINK, seed);
        let names = queue.probe_names();
        let place = names.iter().position(|name| *name == self.variable);
        Port::play(Ours(queue, place), self.ecn, seed)
    }
}
