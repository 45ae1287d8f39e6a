//! REM.

use aqmlab_aqm::{Fate, Gate, LinkFacts, Reason};
use aqmlab_net::{Bytes, Ecn, Rate, Time};

use crate::{catch_up, depart, gate, packet, probe, read, send};

const REM: &str = "kind = \"rem\"\nq_ref = \"5 packets\"\nlimit = \"12 packets\"\n\
                   gamma = 0.1\nphi = 1.1\n";

#[test]
fn rem_counts_every_arrival_and_rests_where_queue_and_rate_match() {
    let mut gate = gate(REM);
    // 2500 packets per second: 5 per tick of 2 ms. 20 arrive, 12 fit.
    let fates = send(&mut gate, Time::ZERO, 20, 0.999_999);
    assert_eq!(fates[12], Fate::Drop(Reason::Overflow));
    assert_eq!(probe(&gate, "x"), 20.0);
    gate.tick();
    // 0.1 (0.1 (12 - 5) + 20 - 5)
    let price = 1.57;
    assert!((probe(&gate, "price") - price).abs() < 1e-12);
    let p = 1.0 - f64::powf(1.1, -price);
    assert!((probe(&gate, "p") - p).abs() < 1e-12);
    // What is signalled counts too.
    let fates = send(&mut gate, Time::from_millis(3), 5, 0.0);
    assert_eq!(fates, [Fate::Drop(Reason::Early); 5]);
    depart(&mut gate, Time::from_millis(3), 7);
    gate.tick();
    assert!((probe(&gate, "price") - price).abs() < 1e-12);
    // An empty link gives the price back: 0.55 per tick of silence, and not below 0.
    depart(&mut gate, Time::from_millis(4), 5);
    gate.tick();
    assert!((probe(&gate, "price") - 1.02).abs() < 1e-12);
    catch_up(&mut gate, Time::from_secs(7200));
    assert_eq!((probe(&gate, "price"), probe(&gate, "p")), (0.0, 0.0));
}

#[test]
fn rem_measured_in_packets_counts_packets_of_any_size() {
    let mut gate = gate(REM);
    for size in [40, 1500, 1500] {
        gate.arrive(Time::ZERO, &packet(size, Ecn::NotEct), &mut || 0.5);
    }
    assert_eq!(probe(&gate, "x"), 3.0);
}

#[test]
fn rem_knows_what_framing_leaves_of_the_link_also_when_it_changes() {
    let framed = |mbps| LinkFacts {
        rate: Rate::from_mbps(mbps),
        framing: Bytes(125),
    };
    let discipline = read(REM);
    let mut gate = Gate::new(&discipline, framed(10), 1).unwrap();
    // 500 + 125 bytes: 2000 packets per second, 4 per tick.
    send(&mut gate, Time::ZERO, 5, 0.5);
    gate.tick();
    assert!((probe(&gate, "price") - 0.1).abs() < 1e-12);
    gate.set_link(framed(20));
    send(&mut gate, Time::from_millis(3), 8, 0.999_999);
    let waiting = gate.backlog().packets as usize;
    depart(&mut gate, Time::from_millis(3), waiting - 5);
    gate.tick();
    assert!((probe(&gate, "price") - 0.1).abs() < 1e-12);
}
