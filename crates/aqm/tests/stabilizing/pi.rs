//! PI.

use aqmlab_aqm::LinkFacts;
use aqmlab_net::{Ecn, Rate, Time};

use crate::model::once::Judged;
use crate::stabilizing::{LINK, catch_up, depart, fifo, packet, probe, send};

#[test]
fn pi_rests_where_the_queue_is_and_was_at_its_target() {
    let table = "kind = \"pi\"\nq_ref = \"6 packets\"\nlimit = \"100 packets\"\n";
    let mut fifo = fifo(table);
    // Half of the time above the target: the probability is no longer 0.
    send(&mut fifo, Time::ZERO, 40, 0.999_999);
    catch_up(&mut fifo, Time::from_secs(2));
    depart(&mut fifo, Time::from_secs(2), 34);
    fifo.tick();
    let p = probe(&fifo, "p");
    assert!(p > 0.0 && p < 1.0);
    catch_up(&mut fifo, Time::from_secs(60));
    assert_eq!(probe(&fifo, "p"), p);
    // An empty queue lowers it to 0, and hours of silence leave it there.
    depart(&mut fifo, Time::from_secs(60), 6);
    catch_up(&mut fifo, Time::from_secs(7200));
    assert_eq!(probe(&fifo, "p"), 0.0);
    // The stored probability did not wind up: one packet above the target raises it at once.
    send(&mut fifo, Time::from_secs(7200), 7, 0.999_999);
    fifo.tick();
    fifo.tick();
    assert!(probe(&fifo, "p") > 0.0);
}

#[test]
fn pi_measured_in_packets_counts_packets_of_any_size() {
    let table = "kind = \"pi\"\nq_ref = \"2 packets\"\nlimit = \"100 packets\"\na = 0.2\nb = 0.1\n";
    let mut fifo = fifo(table);
    for size in [40, 40, 1500, 1500] {
        fifo.come(Time::ZERO, &packet(size, Ecn::NotEct), &mut || 0.5);
    }
    fifo.tick();
    // 0.2 (4 - 2) - 0.1 (0 - 2)
    assert!((probe(&fifo, "p") - 0.6).abs() < 1e-12);
    fifo.come(Time::ZERO, &packet(40, Ecn::NotEct), &mut || 0.5);
    assert!((probe(&fifo, "p_packet") - 0.6).abs() < 1e-12);
}

#[test]
fn pi_by_design_follows_the_link() {
    let table = "kind = \"pi\"\nq_ref = \"2 packets\"\nlimit = \"100 packets\"\n\
                 design = { flows = 60, rtt = \"246 ms\" }\n";
    let p_after_one_tick = |mbps| {
        let mut fifo = fifo(table);
        fifo.set_link(LinkFacts {
            rate: Rate::from_mbps(mbps),
            ..LINK
        });
        send(&mut fifo, Time::ZERO, 4, 0.5);
        fifo.tick();
        probe(&fifo, "p")
    };
    // a = 1.85278090634e-5, b = 1.84666773191e-5, then a tenth of the capacity of the third row.
    assert!((p_after_one_tick(15) / (2.0 * 3.69944863825e-5) - 1.0).abs() < 1e-9);
    assert!((p_after_one_tick(100) / (2.0 * 1.238368213e-7) - 1.0).abs() < 1e-8);
}
