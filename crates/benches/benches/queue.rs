//! What each discipline that owns its packets costs per packet, beside drop-tail kept the same way:
//! an arrival of one of 64 flows and, as far as packets wait, the departures that are due, on a
//! link with an offered load of 105 %.

use std::hint::black_box;

use aqmlab_aqm::{Discipline, LinkFacts, Queue};
use aqmlab_benches::{SIZE, arrivals};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, Packet, RandomStream, Rate, Time};
use criterion::{Criterion, criterion_group, criterion_main};
use toml::{Table, Value};

const FLOWS: usize = 64;

/// Disciplines by the names under which they are measured.
const DISCIPLINES: &[(&str, &str)] = &[
    ("droptail", "kind = 'droptail'\nlimit = '240 packets'"),
    (
        "choke",
        "kind = 'choke'\nmin_th = '30 packets'\nmax_th = '90 packets'\nlimit = '240 packets'",
    ),
    ("codel", "kind = 'codel'\nlimit = '240 packets'"),
    ("pie", "kind = 'pie'\nlimit = '240 packets'"),
    ("sfq", "kind = 'sfq'\nlimit = '240 packets'"),
    (
        "drr",
        "kind = 'drr'\nlimit = '240 packets'\nquantum = '1500 bytes'",
    ),
    ("cobalt", "kind = 'cobalt'\nlimit = '240 packets'"),
    ("cake", "kind = 'cake'\nmemory = '360 kB'"),
    ("dualpi2", "kind = 'dualpi2'\nlimit = '240 packets'"),
    ("fq-codel", "kind = 'fq-codel'\nlimit = '240 packets'"),
    ("fq-pie", "kind = 'fq-pie'\nlimit = '240 packets'"),
];

/// A queue and the wire behind it.
struct Link {
    queue: Queue<u32>,
    draws: RandomStream,
    now: Time,
    /// When the packet on the wire has left it.
    wire_free: Time,
    transmission: Time,
}

impl Link {
    fn new(discipline: &Discipline) -> Self {
        let rate = Rate::from_mbps(100);
        let framing = Bytes(0);
        Self {
            queue: Queue::new(discipline, LinkFacts { rate, framing }, 1),
            draws: RandomStream::new(1, "law", 0),
            now: Time::ZERO,
            wire_free: Time::ZERO,
            transmission: rate.transmission_time(u64::from(SIZE)),
        }
    }

    fn arrive(&mut self, gap: Time, packet: Packet) {
        self.now += gap;
        while self.wire_free <= self.now {
            let draws = &mut self.draws;
            let mut draw = || draws.uniform();
            let next = self.queue.dequeue(self.wire_free, &mut draw, |dropped, _| {
                black_box(dropped);
            });
            if black_box(next).is_none() {
                self.queue.idle(self.wire_free);
                self.wire_free = self.now;
                break;
            }
            self.wire_free += self.transmission;
        }
        while self.queue.next_tick() <= self.now {
            self.queue.tick();
        }
        let draws = &mut self.draws;
        let mut draw = || draws.uniform();
        self.queue
            .enqueue(self.now, packet, 0, &mut draw, |dropped, _| {
                black_box(dropped);
            });
    }
}

fn disciplines(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    for (name, text) in DISCIPLINES {
        let table: Table = text.parse().expect("TOML");
        let discipline: Discipline = tagged::from_value(Value::Table(table)).expect("legal");
        let mut link = Link::new(&discipline);
        let packets = arrivals(link.transmission, FLOWS, Ecn::NotEct);
        let mut packets = packets.iter().cycle();
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                let (gap, packet) = *packets.next().expect("a cycle has no end");
                link.arrive(gap, black_box(packet));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, disciplines);
criterion_main!(benches);
