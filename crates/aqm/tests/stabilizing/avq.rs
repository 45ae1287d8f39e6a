//! AVQ.

use aqmlab_aqm::{LinkFacts, Outcome};
use aqmlab_net::{Bytes, Ecn, Rate, Time};
use proptest::prelude::*;

use crate::model::once::Judged;
use crate::stabilizing::{fifo, packet, play, probe, send};

#[test]
fn avq_can_follow_the_accepted_rate() {
    // C = 1 250 000 bytes per second, packets as large as the virtual buffer.
    let table = "kind = \"avq\"\nvirtual_buffer = \"5000 bytes\"\nlimit = \"100 packets\"\n\
                 count_signalled = false\n";
    let mut fifo = fifo(table);
    let mut arrive = |us, virtual_queue: f64, virtual_capacity: f64| {
        let large = packet(5000, Ecn::NotEct);
        let outcome = fifo.come(Time::from_micros(us), &large, &mut || unreachable!());
        assert!((probe(&fifo, "virtual_queue") - virtual_queue).abs() < 1e-9);
        assert!((probe(&fifo, "virtual_capacity") - virtual_capacity).abs() < 1e-6);
        outcome == Outcome::Enqueue
    };
    assert!(arrive(0, 5000.0, 1_249_250.0));
    // Served by 1249.25 bytes per ms; what is dropped changes nothing else.
    assert!(!arrive(2000, 2501.5, 1_249_250.0));
    assert!(!arrive(4000, 3.0, 1_249_250.0));
    assert!(!arrive(4002, 0.5015, 1_249_250.0));
    // Empty: the credit of all 4.004 ms, 0.15 0.98 C, comes now.
    assert!(arrive(4004, 5000.0, 1_249_250.0 + 735.735 - 750.0));
}

/// The share of the link that a source of constant rate, `load` times the link, gets accepted in
/// the last 20 of 80 seconds.
fn accepted_by_avq(load: f64, table: &str) -> f64 {
    let table = format!("kind = \"avq\"\nlimit = \"1000000 packets\"\n{table}");
    let mut fifo = fifo(&table);
    let gap = Time::from_secs_f64(4e-4 / load);
    let from = Time::from_secs(60);
    let (mut now, mut accepted) = (Time::ZERO, 0);
    while now < Time::from_secs(80) {
        now += gap;
        let outcome = fifo.come(now, &packet(500, Ecn::NotEct), &mut || unreachable!());
        accepted += u32::from(now >= from && outcome == Outcome::Enqueue);
    }
    f64::from(accepted) * 4e-4 / 20.0
}

#[test]
fn avq_holds_the_rate_that_it_follows_at_gamma() {
    for gamma in [0.9, 0.98] {
        let share = accepted_by_avq(1.5, &format!("gamma = {gamma}\ncount_signalled = false"));
        assert!((share - gamma).abs() < 0.005, "{share}");
    }
    // The offered rate does not give in, and is starved.
    assert!(accepted_by_avq(1.5, "") < 0.01);
    assert!((accepted_by_avq(0.9, "") - 0.9).abs() < 0.005);
}

#[test]
fn avq_keeps_the_virtual_share_of_a_link_that_changes() {
    let mut fifo = fifo("kind = \"avq\"\nlimit = \"100 packets\"\nalpha = 100.0");
    send(&mut fifo, Time::ZERO, 10, 0.5);
    assert!((probe(&fifo, "virtual_capacity") - 750_000.0).abs() < 1e-6);
    fifo.set_link(LinkFacts {
        rate: Rate::from_mbps(100),
        framing: Bytes(500),
    });
    assert!((probe(&fifo, "virtual_capacity") - 3_750_000.0).abs() < 1e-6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn avq_stays_within_the_link_and_its_buffer(
        seed: u64,
        load in 0.3..3.0,
        alpha in 0.01..1000.0,
        count_signalled: bool,
    ) {
        let table = format!(
            "kind = \"avq\"\nlimit = \"60 packets\"\nvirtual_buffer = \"9 packets\"\n\
             alpha = {alpha:?}\ncount_signalled = {count_signalled}\necn = true"
        );
        play(&table, seed, load, |fifo, _| {
            assert!((0.0..=1_250_000.0).contains(&probe(fifo, "virtual_capacity")));
            assert!((0.0..=4500.0).contains(&probe(fifo, "virtual_queue")));
        });
    }
}
