//! What each law costs per packet, through the gate: an arrival and, as far as it was let in, its
//! departure, on a link with an offered load of 105 %.

use std::hint::black_box;

use aqmlab_aqm::{Discipline, Fate, Gate, LinkFacts, droptail, red};
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, QueueSize, RandomStream, Rate, Time};
use criterion::{Criterion, criterion_group, criterion_main};

const SIZE: u32 = 1500;
const LOAD: f64 = 1.05;
const PACKET: Packet = Packet {
    size: SIZE,
    ecn: Ecn::Ect0,
    dscp: 0,
    flow: FlowKey(1),
};

fn laws() -> [(&'static str, Discipline); 3] {
    let red = red::Params {
        min_th: QueueSize::Packets(30.0),
        max_th: QueueSize::Packets(90.0),
        limit: QueueSize::Packets(240.0),
        w_q: 0.002,
        max_p: 0.1,
        gentle: false,
        gap: red::Gap::Uniform,
        unit: red::Unit::Packets,
        scale_by_size: false,
        mean_packet: Bytes(1500),
        ecn: false,
    };
    let gentle = red::Params {
        gentle: true,
        unit: red::Unit::Bytes,
        scale_by_size: true,
        ecn: true,
        ..red
    };
    let limit = QueueSize::Packets(240.0);
    [
        ("droptail", Discipline::Droptail(droptail::Params { limit })),
        ("red", Discipline::Red(red)),
        ("red-gentle-bytes-ecn", Discipline::Red(gentle)),
    ]
}

/// A queue of packets of one size: their departures need no more than a count.
struct Link {
    gate: Gate,
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
            gate: Gate::new(discipline, link, 1).expect("a law"),
            draws: RandomStream::new(1, "law", 0),
            now: Time::ZERO,
            wire_free: Time::ZERO,
            transmission: rate.transmission_time(u64::from(SIZE)),
        }
    }

    fn arrive(&mut self, gap: Time, packet: &Packet) -> Fate {
        self.now += gap;
        while self.gate.backlog().packets > 0 && self.wire_free <= self.now {
            self.gate.depart(self.now, &PACKET, self.now);
            self.wire_free += self.transmission;
        }
        if self.wire_free <= self.now {
            self.gate.idle(self.wire_free);
            self.wire_free = self.now;
        }
        let draws = &mut self.draws;
        self.gate.arrive(self.now, packet, &mut || draws.uniform())
    }
}

fn arrivals(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gate");
    for (name, discipline) in laws() {
        let mut link = Link::new(&discipline);
        let mean_gap = link.transmission.as_secs_f64() / LOAD;
        let mut draws = RandomStream::new(1, "gaps", 0);
        let gaps: Vec<_> = (0..1 << 16)
            .map(|_| Time::from_secs_f64(draws.exponential(mean_gap)))
            .collect();
        let mut gaps = gaps.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let gap = *gaps.next().expect("a cycle has no end");
                link.arrive(gap, black_box(&PACKET))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, arrivals);
criterion_main!(benches);
