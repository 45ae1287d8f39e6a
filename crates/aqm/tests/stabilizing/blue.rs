//! BLUE.

use aqmlab_aqm::{FifoQueue, Outcome, Reason};
use aqmlab_net::{Ecn, Time};

use crate::model::once::Judged;
use crate::stabilizing::{depart, fifo, packet, probe, send};

const BLUE: &str = "kind = \"blue\"\nlimit = \"3 packets\"\nd1 = 0.3\nd2 = 0.1\n\
                    freeze_time = \"10 ms\"\n";

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A fifo whose probability is 0.6, empty and idle since 100 ms.
fn idle_at_06(more: &str) -> FifoQueue {
    let mut fifo = fifo(&format!("{BLUE}{more}"));
    send(&mut fifo, ms(50), 4, 0.999_999);
    send(&mut fifo, ms(70), 1, 0.999_999);
    assert!((probe(&fifo, "p_m") - 0.6).abs() < 1e-12);
    depart(&mut fifo, ms(90), 3);
    fifo.idle(ms(100));
    fifo
}

/// The probability after an arrival, which is let in.
fn p_m_at(fifo: &mut FifoQueue, now: Time) -> f64 {
    assert_eq!(send(fifo, now, 1, 0.999_999), [Outcome::Enqueue]);
    depart(fifo, now, 1);
    probe(fifo, "p_m")
}

#[test]
fn blue_rises_to_1_with_overflows_that_are_far_enough_apart() {
    let mut fifo = fifo(BLUE);
    let mut p_m = vec![];
    // 10 ms after a change the probability is still frozen.
    for now in [0, 5, 10, 11, 21, 22, 33, 44] {
        send(&mut fifo, ms(now), 4, 0.999_999);
        p_m.push((probe(&fifo, "p_m") * 10.0).round());
    }
    assert_eq!(p_m, [3.0, 3.0, 3.0, 6.0, 6.0, 9.0, 10.0, 10.0]);
    // At 1 nothing is left to chance, and an early drop is no overflow.
    let sent = packet(500, Ecn::NotEct);
    let outcome = fifo.come(ms(90), &sent, &mut || unreachable!());
    assert_eq!(outcome, Outcome::Drop(Reason::EARLY));
    assert_eq!(probe(&fifo, "last_update_s"), 0.033);
}

#[test]
fn blue_falls_once_as_the_link_falls_idle_however_long() {
    let mut fifo = idle_at_06("");
    assert!((probe(&fifo, "p_m") - 0.5).abs() < 1e-12);
    // The same silence reported again changes nothing; hours of it neither.
    fifo.idle(ms(100));
    assert!((p_m_at(&mut fifo, Time::from_secs(7200)) - 0.5).abs() < 1e-12);
}

#[test]
fn blue_may_decay_through_the_silence() {
    let mut fifo = idle_at_06("on_idle = \"decay\"");
    assert!((probe(&fifo, "p_m") - 0.5).abs() < 1e-12);
    // 39 ms: three times 10.
    assert!((p_m_at(&mut fifo, ms(139)) - 0.2).abs() < 1e-12);
    // Idle again: frozen, for the last change was at 139 ms.
    fifo.idle(ms(145));
    assert!((p_m_at(&mut fifo, ms(150)) - 0.2).abs() < 1e-12);
    fifo.idle(ms(150));
    assert_eq!(p_m_at(&mut fifo, Time::from_secs(7200)), 0.0);
}

#[test]
fn blue_of_altq_measures_the_silence_at_its_end() {
    let mut fifo = idle_at_06("on_idle = \"altq\"");
    assert!((probe(&fifo, "p_m") - 0.6).abs() < 1e-12);
    fifo.idle(ms(105));
    assert!((p_m_at(&mut fifo, ms(111)) - 0.5).abs() < 1e-12);
    fifo.idle(ms(130));
    assert!((p_m_at(&mut fifo, ms(140)) - 0.5).abs() < 1e-12);
    // More than a second: d2, whatever it was.
    fifo.idle(ms(200));
    assert!((p_m_at(&mut fifo, ms(1201)) - 0.1).abs() < 1e-12);
    // The clock restarted as the link fell idle: an overflow within 10 ms of that is frozen.
    fifo.idle(ms(1300));
    send(&mut fifo, ms(1309), 4, 0.999_999);
    assert!((probe(&fifo, "p_m") - 0.1).abs() < 1e-12);
    send(&mut fifo, ms(1311), 1, 0.999_999);
    assert!((probe(&fifo, "p_m") - 0.4).abs() < 1e-12);
}

#[test]
fn blue_may_take_a_long_queue_for_an_overflow() {
    let mut fifo = fifo(&format!("{BLUE}threshold = \"1 packets\""));
    // The third arrival is the first that finds more than 1 packet.
    let outcomes = send(&mut fifo, ms(1), 2, 0.999_999);
    assert_eq!(outcomes, [Outcome::Enqueue; 2]);
    assert_eq!(probe(&fifo, "p_m"), 0.0);
    assert_eq!(send(&mut fifo, ms(1), 1, 0.999_999), [Outcome::Enqueue]);
    assert!((probe(&fifo, "p_m") - 0.3).abs() < 1e-12);
    // An overflow that finds it too counts once.
    send(&mut fifo, ms(20), 1, 0.999_999);
    assert!((probe(&fifo, "p_m") - 0.6).abs() < 1e-12);
}

#[test]
fn blue_may_spare_short_queues() {
    let early = Outcome::Drop(Reason::EARLY);
    let mut spared = idle_at_06("min_queue = 2");
    let outcomes = send(&mut spared, ms(101), 3, 0.0);
    assert_eq!(outcomes, [Outcome::Enqueue, Outcome::Enqueue, early]);
    assert_eq!(send(&mut idle_at_06(""), ms(101), 1, 0.0), [early]);
}
