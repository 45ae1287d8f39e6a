//! REM.

use aqmlab_aqm::{FifoQueue, LinkFacts, Outcome, Reason};
use aqmlab_net::{Bytes, Ecn, Rate, Time};

use crate::model::once::Judged;
use crate::stabilizing::{catch_up, depart, fifo, packet, probe, read, send};

const REM: &str = "kind = \"rem\"\nq_ref = \"5 packets\"\nlimit = \"12 packets\"\n\
                   gamma = 0.1\nphi = 1.1\n";

#[test]
fn rem_counts_every_arrival_and_rests_where_queue_and_rate_match() {
    let mut fifo = fifo(REM);
    // 2500 packets per second: 5 per tick of 2 ms. 20 arrive, 12 fit.
    let outcomes = send(&mut fifo, Time::ZERO, 20, 0.999_999);
    assert_eq!(outcomes[12], Outcome::Drop(Reason::OVERFLOW));
    assert_eq!(probe(&fifo, "x"), 20.0);
    fifo.tick();
    // 0.1 (0.1 (12 - 5) + 20 - 5)
    let price = 1.57;
    assert!((probe(&fifo, "price") - price).abs() < 1e-12);
    let p = 1.0 - f64::powf(1.1, -price);
    assert!((probe(&fifo, "p") - p).abs() < 1e-12);
    // What is signalled counts too.
    let outcomes = send(&mut fifo, Time::from_millis(3), 5, 0.0);
    assert_eq!(outcomes, [Outcome::Drop(Reason::EARLY); 5]);
    depart(&mut fifo, Time::from_millis(3), 7);
    fifo.tick();
    assert!((probe(&fifo, "price") - price).abs() < 1e-12);
    // An empty link gives the price back: 0.55 per tick of silence, and not below 0.
    depart(&mut fifo, Time::from_millis(4), 5);
    fifo.tick();
    assert!((probe(&fifo, "price") - 1.02).abs() < 1e-12);
    catch_up(&mut fifo, Time::from_secs(7200));
    assert_eq!((probe(&fifo, "price"), probe(&fifo, "p")), (0.0, 0.0));
}

#[test]
fn rem_measured_in_packets_counts_packets_of_any_size() {
    let mut fifo = fifo(REM);
    for size in [40, 1500, 1500] {
        fifo.come(Time::ZERO, &packet(size, Ecn::NotEct), &mut || 0.5);
    }
    assert_eq!(probe(&fifo, "x"), 3.0);
}

#[test]
fn rem_knows_what_framing_leaves_of_the_link_also_when_it_changes() {
    let framed = |mbps| LinkFacts {
        rate: Rate::from_mbps(mbps),
        framing: Bytes(125),
    };
    let discipline = read(REM);
    let mut fifo = FifoQueue::new(&discipline, framed(10), 1).unwrap();
    // 500 + 125 bytes: 2000 packets per second, 4 per tick.
    send(&mut fifo, Time::ZERO, 5, 0.5);
    fifo.tick();
    assert!((probe(&fifo, "price") - 0.1).abs() < 1e-12);
    fifo.set_link(framed(20));
    send(&mut fifo, Time::from_millis(3), 8, 0.999_999);
    let waiting = fifo.backlog().packets as usize;
    depart(&mut fifo, Time::from_millis(3), waiting - 5);
    fifo.tick();
    assert!((probe(&fifo, "price") - 0.1).abs() < 1e-12);
}
