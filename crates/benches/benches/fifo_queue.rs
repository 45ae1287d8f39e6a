//! What each AQM costs per packet, through the fifo: an arrival and, as far as it was let in, its
//! departure, on a link with an offered load of 105 % from 100 flows.

use std::collections::VecDeque;
use std::hint::black_box;

use aqmlab_aqm::{Discipline, FifoQueue, LinkFacts, Outcome};
use aqmlab_benches::{SIZE, arrivals};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, Packet, RandomStream, Rate, Time};
use criterion::{Criterion, criterion_group, criterion_main};
use toml::Table;

const FLOWS: usize = 100;

/// The AQMs, by kind, as a scenario states them. Controllers aim at a queue of 60 packets.
const LAWS: &[(&str, &str)] = &[
    ("droptail", r#"kind = "droptail""#),
    (
        "red",
        r#"kind = "red", min_th = "30 packets", max_th = "90 packets", mean_packet = "1500 bytes""#,
    ),
    (
        "red-gentle-bytes-ecn",
        r#"kind = "red", min_th = "30 packets", max_th = "90 packets", mean_packet = "1500 bytes",
           gentle = true, unit = "bytes", scale_by_size = true, ecn = true"#,
    ),
    (
        "ared-feng",
        r#"kind = "ared-feng", min_th = "30 packets", max_th = "90 packets",
           mean_packet = "1500 bytes""#,
    ),
    (
        "ared",
        r#"kind = "ared", min_th = "30 packets", max_th = "90 packets",
           mean_packet = "1500 bytes""#,
    ),
    ("pi", r#"kind = "pi", q_ref = "60 packets""#),
    (
        "rem",
        r#"kind = "rem", q_ref = "60 packets", mean_packet = "1500 bytes""#,
    ),
    (
        "avq",
        r#"kind = "avq", virtual_buffer = "60 packets", mean_packet = "1500 bytes""#,
    ),
    ("sred", r#"kind = "sred""#),
    ("blue", r#"kind = "blue""#),
    ("lqd", r#"kind = "lqd", q_ref = "60 packets""#),
    ("pie", r#"kind = "pie""#),
    (
        "dcn",
        r#"kind = "dcn", q_ref = "60 packets", mean_packet = "1500 bytes""#,
    ),
    ("afd", r#"kind = "afd", q_ref = "60 packets""#),
    // Every packet is In, or every packet is Out.
    (
        "rio-in",
        r#"kind = "rio", in_codepoints = [0], mean_packet = "1500 bytes""#,
    ),
    ("rio", r#"kind = "rio", mean_packet = "1500 bytes""#),
    (
        "rio-ps",
        r#"kind = "rio-ps", short_min_th = "30 packets", short_max_th = "90 packets",
           long_min_th = "30 packets", long_max_th = "90 packets", mean_packet = "1500 bytes""#,
    ),
    ("fred", r#"kind = "fred", mean_packet = "1500 bytes""#),
    ("sfb", r#"kind = "sfb""#),
    ("sfb-8x16", r#"kind = "sfb", levels = 8, bins = 16"#),
    (
        "red-pd",
        r#"kind = "red-pd", min_th = "30 packets", max_th = "90 packets",
           mean_packet = "1500 bytes""#,
    ),
];

fn discipline(aqm: &str) -> Discipline {
    let table: Table = format!("law = {{ {aqm}, limit = \"240 packets\" }}")
        .parse()
        .expect("a table");
    tagged::from_value(table["law"].clone()).unwrap_or_else(|error| panic!("{aqm}: {error}"))
}

/// A queue in front of a wire.
struct Link {
    fifo: FifoQueue,
    /// The packets that wait, and when they came.
    waiting: VecDeque<(Packet, Time)>,
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
        let link = LinkFacts { rate, framing };
        Self {
            fifo: FifoQueue::new(discipline, link, 1).expect("an AQM"),
            waiting: VecDeque::with_capacity(256),
            draws: RandomStream::new(1, "law", 0),
            now: Time::ZERO,
            wire_free: Time::ZERO,
            transmission: rate.transmission_time(u64::from(SIZE)),
        }
    }

    fn arrive(&mut self, gap: Time, packet: &Packet) -> Outcome {
        self.now += gap;
        while self.wire_free <= self.now
            && let Some((packet, arrived)) = self.waiting.pop_front()
        {
            self.fifo.depart(self.wire_free, &packet, arrived);
            self.wire_free += self.transmission;
        }
        while self.fifo.next_tick() <= self.now {
            self.fifo.tick();
        }
        if self.wire_free <= self.now {
            self.fifo.idle(self.wire_free);
            self.wire_free = self.now;
        }
        let draws = &mut self.draws;
        let outcome = self.fifo.arrive(self.now, packet, &mut || draws.uniform());
        if !matches!(outcome, Outcome::Drop(_)) {
            self.waiting.push_back((*packet, self.now));
        }
        outcome
    }
}

fn laws(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fifo");
    for &(name, aqm) in LAWS {
        let mut link = Link::new(&discipline(aqm));
        let packets = arrivals(link.transmission, FLOWS, Ecn::Ect0);
        let mut packets = packets.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let (gap, packet) = packets.next().expect("a cycle has no end");
                link.arrive(*gap, black_box(packet))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, laws);
criterion_main!(benches);
