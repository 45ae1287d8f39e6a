//! The event queue under the hold model: pop the earliest event, push one at a random distance
//! behind it, so that the number of waiting events stays the same. A binary heap for comparison.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use aqmlab_net::{RandomStream, Time};
use aqmlab_sim::wheel::Wheel;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// As large as an event of the simulator.
type Event = [u64; 3];

/// Distances between an event and the one that it causes, as in a run: mostly propagation, some
/// timers.
fn delays() -> Vec<Time> {
    let mut draws = RandomStream::new(1, "delays", 0);
    let mut delay = || match draws.below(100) {
        0 => draws.uniform_in(1.0, 10.0),
        1..=9 => draws.uniform_in(0.2, 1.0),
        _ => draws.uniform_in(0.005, 0.075),
    };
    (0..1 << 16).map(|_| Time::from_secs_f64(delay())).collect()
}

fn hold(criterion: &mut Criterion) {
    let delays = delays();
    let mut group = criterion.benchmark_group("hold");
    for waiting in [1_000, 100_000, 1_000_000_u64] {
        group.bench_function(BenchmarkId::new("wheel", waiting), |bencher| {
            let mut wheel = Wheel::default();
            let mut next_delay = delays.iter().cycle();
            for (number, delay) in (0..waiting).zip(&mut next_delay) {
                wheel.push(*delay, [number; 3]);
            }
            bencher.iter(|| {
                let (now, event): (Time, Event) = wheel.pop().expect("as many as were pushed");
                let delay = *next_delay.next().expect("a cycle has no end");
                wheel.push(now + delay, black_box(event));
            });
        });
        group.bench_function(BenchmarkId::new("heap", waiting), |bencher| {
            let mut heap = BinaryHeap::new();
            let mut next_delay = delays.iter().cycle();
            for (number, delay) in (0..waiting).zip(&mut next_delay) {
                heap.push(Reverse((*delay, number, [number; 3])));
            }
            let mut pushed = waiting;
            bencher.iter(|| {
                let Reverse((now, _, event)): Reverse<(Time, u64, Event)> =
                    heap.pop().expect("as many as were pushed");
                let delay = *next_delay.next().expect("a cycle has no end");
                pushed += 1;
                heap.push(Reverse((now + delay, pushed, black_box(event))));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
