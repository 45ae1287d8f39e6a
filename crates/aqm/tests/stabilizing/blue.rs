//! BLUE.

use aqmlab_aqm::{Fate, Gate, Reason};
use aqmlab_net::{Ecn, Time};

use crate::{depart, gate, packet, probe, send};

const BLUE: &str = "kind = \"blue\"\nlimit = \"3 packets\"\nd1 = 0.3\nd2 = 0.1\n\
                    freeze_time = \"10 ms\"\n";

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A gate whose probability is 0.6, empty and idle since 100 ms.
fn idle_at_06(more: &str) -> Gate {
    let mut gate = gate(&format!("{BLUE}{more}"));
    send(&mut gate, ms(50), 4, 0.999_999);
    send(&mut gate, ms(70), 1, 0.999_999);
    assert!((probe(&gate, "p_m") - 0.6).abs() < 1e-12);
    depart(&mut gate, ms(90), 3);
    gate.idle(ms(100));
    gate
}

/// The probability after an arrival, which is let in.
fn p_m_at(gate: &mut Gate, now: Time) -> f64 {
    assert_eq!(send(gate, now, 1, 0.999_999), [Fate::Enqueue]);
    depart(gate, now, 1);
    probe(gate, "p_m")
}

#[test]
fn blue_rises_to_1_with_overflows_that_are_far_enough_apart() {
    let mut gate = gate(BLUE);
    let mut p_m = vec![];
    // 10 ms after a change the probability is still frozen.
    for now in [0, 5, 10, 11, 21, 22, 33, 44] {
        send(&mut gate, ms(now), 4, 0.999_999);
        p_m.push((probe(&gate, "p_m") * 10.0).round());
    }
    assert_eq!(p_m, [3.0, 3.0, 3.0, 6.0, 6.0, 9.0, 10.0, 10.0]);
    // At 1 nothing is left to chance, and an early drop is no overflow.
    let sent = packet(500, Ecn::NotEct);
    let fate = gate.arrive(ms(90), &sent, &mut || unreachable!());
    assert_eq!(fate, Fate::Drop(Reason::Early));
    assert_eq!(probe(&gate, "last_update_s"), 0.033);
}

#[test]
fn blue_falls_once_as_the_link_falls_idle_however_long() {
    let mut gate = idle_at_06("");
    assert!((probe(&gate, "p_m") - 0.5).abs() < 1e-12);
    // The same silence told again changes nothing; hours of it neither.
    gate.idle(ms(100));
    assert!((p_m_at(&mut gate, Time::from_secs(7200)) - 0.5).abs() < 1e-12);
}

#[test]
fn blue_may_decay_through_the_silence() {
    let mut gate = idle_at_06("on_idle = \"decay\"");
    assert!((probe(&gate, "p_m") - 0.5).abs() < 1e-12);
    // 39 ms: three times 10.
    assert!((p_m_at(&mut gate, ms(139)) - 0.2).abs() < 1e-12);
    // Idle again: frozen, for the last change was at 139 ms.
    gate.idle(ms(145));
    assert!((p_m_at(&mut gate, ms(150)) - 0.2).abs() < 1e-12);
    gate.idle(ms(150));
    assert_eq!(p_m_at(&mut gate, Time::from_secs(7200)), 0.0);
}

#[test]
fn blue_of_altq_measures_the_silence_at_its_end() {
    let mut gate = idle_at_06("on_idle = \"altq\"");
    assert!((probe(&gate, "p_m") - 0.6).abs() < 1e-12);
    gate.idle(ms(105));
    assert!((p_m_at(&mut gate, ms(111)) - 0.5).abs() < 1e-12);
    gate.idle(ms(130));
    assert!((p_m_at(&mut gate, ms(140)) - 0.5).abs() < 1e-12);
    // More than a second: d2, whatever it was.
    gate.idle(ms(200));
    assert!((p_m_at(&mut gate, ms(1201)) - 0.1).abs() < 1e-12);
    // The clock restarted as the link fell idle: an overflow within 10 ms of that is frozen.
    gate.idle(ms(1300));
    send(&mut gate, ms(1309), 4, 0.999_999);
    assert!((probe(&gate, "p_m") - 0.1).abs() < 1e-12);
    send(&mut gate, ms(1311), 1, 0.999_999);
    assert!((probe(&gate, "p_m") - 0.4).abs() < 1e-12);
}

#[test]
fn blue_may_take_a_long_queue_for_an_overflow() {
    let mut gate = gate(&format!("{BLUE}threshold = \"1 packets\""));
    // The third arrival is the first that finds more than 1 packet.
    let fates = send(&mut gate, ms(1), 2, 0.999_999);
    assert_eq!(fates, [Fate::Enqueue; 2]);
    assert_eq!(probe(&gate, "p_m"), 0.0);
    assert_eq!(send(&mut gate, ms(1), 1, 0.999_999), [Fate::Enqueue]);
    assert!((probe(&gate, "p_m") - 0.3).abs() < 1e-12);
    // An overflow that finds it too counts once.
    send(&mut gate, ms(20), 1, 0.999_999);
    assert!((probe(&gate, "p_m") - 0.6).abs() < 1e-12);
}

#[test]
fn blue_may_spare_short_queues() {
    let early = Fate::Drop(Reason::Early);
    let mut spared = idle_at_06("min_queue = 2");
    let fates = send(&mut spared, ms(101), 3, 0.0);
    assert_eq!(fates, [Fate::Enqueue, Fate::Enqueue, early]);
    assert_eq!(send(&mut idle_at_06(""), ms(101), 1, 0.0), [early]);
}
