//! LQD.

use aqmlab_aqm::{FifoQueue, Outcome, Reason};
use aqmlab_net::{Ecn, Time};

use crate::model::once::Judged;
use crate::stabilizing::{depart, fifo, packet, probe, send};

const LQD: &str = "kind = \"lqd\"\nq_ref = \"4 packets\"\nlimit = \"8 packets\"\n\
                   a = 0.01\nb = 0.2\n";

#[test]
fn lqd_counts_every_loss_and_rests_where_queue_and_loss_balance() {
    let mut fifo = fifo(LQD);
    // 8 of 10 fit: 0.01 (8 - 4) - 0.2 (2 / 10)
    send(&mut fifo, Time::ZERO, 10, 0.999_999);
    fifo.tick();
    assert_eq!(probe(&fifo, "loss_rate"), 0.2);
    assert!(probe(&fifo, "p").abs() < 1e-15);
    // Without loss the queue counts alone, and nothing arrived is no loss.
    fifo.tick();
    assert!((probe(&fifo, "p") - 0.04).abs() < 1e-12);
    // One of five is dropped early; the balance holds at any probability.
    let early =
        |fifo: &mut FifoQueue, u| fifo.come(Time::ZERO, &packet(500, Ecn::NotEct), &mut || u);
    depart(&mut fifo, Time::ZERO, 4);
    assert_eq!(early(&mut fifo, 0.0), Outcome::Drop(Reason::EARLY));
    for _ in 0..4 {
        assert_eq!(early(&mut fifo, 0.999_999), Outcome::Enqueue);
    }
    fifo.tick();
    assert!((probe(&fifo, "p") - 0.04).abs() < 1e-12);
}

#[test]
fn lqd_at_its_references_does_not_move() {
    let mut fifo = fifo(&format!("{LQD}p_ref = 0.25"));
    // 8 of 10 fit; the probability becomes 0.01 4 - 0.2 (0.2 - 0.25).
    send(&mut fifo, Time::ZERO, 10, 0.999_999);
    fifo.tick();
    assert!((probe(&fifo, "p") - 0.05).abs() < 1e-12);
    depart(&mut fifo, Time::ZERO, 7);
    let packet = packet(500, Ecn::NotEct);
    for u in [0.0, 0.9, 0.9, 0.9] {
        fifo.come(Time::ZERO, &packet, &mut || u);
    }
    assert_eq!(fifo.backlog().packets, 4);
    fifo.tick();
    assert!((probe(&fifo, "p") - 0.05).abs() < 1e-12);
}

#[test]
fn lqd_counts_marks_as_losses_if_it_is_told_to() {
    for (count_marks, losses) in [(false, 0.0), (true, 1.0)] {
        let mut fifo = fifo(&format!("{LQD}ecn = true\ncount_marks = {count_marks}"));
        send(&mut fifo, Time::ZERO, 6, 0.999_999);
        fifo.tick();
        let outcome = fifo.come(Time::ZERO, &packet(500, Ecn::Ect0), &mut || 0.0);
        assert_eq!(outcome, Outcome::Mark(Reason::EARLY));
        assert_eq!(probe(&fifo, "losses"), losses);
    }
}

#[test]
fn lqd_in_bytes_weighs_packets_by_their_size_and_spares_small_ones() {
    let mut fifo = fifo(&format!("{LQD}unit = \"bytes\"\nscale_by_size = true"));
    for size in [1500, 1500, 500] {
        fifo.come(Time::ZERO, &packet(size, Ecn::NotEct), &mut || 0.999_999);
    }
    fifo.tick();
    // 3500 bytes are 7 packets of 500: 0.01 (7 - 4)
    assert!((probe(&fifo, "p") - 0.03).abs() < 1e-12);
    // A draw of 0.02: below 0.03, the probability of 500 bytes, and above 0.0024, that of 40.
    let outcome = |fifo: &mut FifoQueue, size| {
        fifo.come(Time::ZERO, &packet(size, Ecn::NotEct), &mut || 0.02)
    };
    assert_eq!(outcome(&mut fifo, 40), Outcome::Enqueue);
    assert_eq!(outcome(&mut fifo, 500), Outcome::Drop(Reason::EARLY));
}
