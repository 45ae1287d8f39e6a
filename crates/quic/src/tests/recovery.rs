//! Losses, probes, what goes again.

use super::*;

fn acknowledge(pair: &mut Pair, number: u64, ranges: &[(u64, u64)]) {
    let ranges: Vec<_> = ranges.iter().rev().copied().collect();
    let carried = datagram(number, |writer| {
        writer.ack(0, ranges.into_iter(), None, 1000);
    });
    pair.inject(SERVER, &carried);
}

/// A pair whose server has sent so many full packets just now, which nobody gets; the number of the
/// first one.
fn unanswered(packets: u64) -> (Pair, u64) {
    let mut pair = Pair::connected(config());
    pair.set_rule(|_| Wire::Drop);
    pair.send(SERVER, packets * 1100);
    let number = pair.seen[0].packets[0].number;
    pair.ends[SERVER].take_losses();
    (pair, number)
}

/// The server's probe time-out where every round trip was 40 ms.
fn timeout(pair: &Pair) -> Time {
    pair.ends[SERVER].recovery_deadline() - pair.of(SERVER).last().unwrap().at
}

#[test]
fn rt05_the_first_probe_comes_after_999_ms() {
    let mut pair = Pair::with(config(), |seen| match seen.at {
        Time::ZERO => Wire::Drop,
        _ => Wire::Pass,
    });
    pair.run(ms(5_000));
    assert_eq!(pair.of(CLIENT)[1].at, ms(999));
    assert!(pair.has(CLIENT, Event::Established));
}

#[test]
fn ld01_a_packet_is_lost_when_the_third_one_behind_it_arrives() {
    let (mut pair, n) = unanswered(5);
    pair.run(ms(310));
    acknowledge(&mut pair, 500, &[(n, n + 1), (n + 4, n + 5)]);
    assert_eq!(
        pair.ends[SERVER].take_losses(),
        1,
        "and not the two that are nearer"
    );
}

#[test]
fn ld02_a_packet_is_lost_an_eighth_of_a_round_trip_after_a_later_one() {
    let (mut pair, n) = unanswered(2);
    pair.run(ms(340));
    acknowledge(&mut pair, 500, &[(n + 1, n + 2)]);
    assert_eq!(pair.ends[SERVER].take_losses(), 0);
    let smoothed = pair.ends[SERVER].round_trip();
    let due = ms(300) + Time::from_nanos(smoothed.max(ms(40)).as_nanos() * 9 / 8);
    assert_eq!(pair.ends[SERVER].recovery_deadline(), due);
    pair.run(due);
    assert_eq!(pair.ends[SERVER].take_losses(), 1);
}

#[test]
fn ld03_ld08_a_probe_carries_the_tail_and_loses_nothing() {
    let (mut pair, n) = unanswered(1);
    let in_flight = pair.ends[SERVER].in_flight();
    let due = pair.ends[SERVER].recovery_deadline();
    pair.run(due);
    let probe = pair.of(SERVER)[1].clone();
    assert_eq!(
        (probe.at, probe.data()),
        (due, 1100),
        "what has not arrived goes again"
    );
    assert_eq!(pair.ends[SERVER].take_losses(), 0);
    let size = probe.size as u64;
    assert_eq!(pair.ends[SERVER].in_flight(), in_flight + size);
    // The first one has arrived after all: its data is there, the stream over.
    acknowledge(&mut pair, 500, &[(n, n + 1)]);
    assert!(pair.has(SERVER, Event::Delivered(3)));
    assert_eq!(pair.ends[SERVER].in_flight(), size);
}

#[test]
fn ld04_the_longest_delay_counts_for_data_only() {
    let (pair, _) = unanswered(1);
    let smoothed = pair.ends[SERVER].round_trip();
    assert!(timeout(&pair) >= smoothed + ms(25) + ms(1));
    // In the handshake spaces it does not: 40 ms, and four times half of it.
    let mut pair = Pair::with(config(), |seen| match seen.at > ms(30) {
        true => Wire::Drop,
        false => Wire::Pass,
    });
    pair.run(ms(45));
    assert_eq!(pair.ends[CLIENT].recovery_deadline(), ms(40 + 120));
}

#[test]
fn ld05_each_expiry_doubles_the_time_and_an_acknowledgement_ends_that() {
    let (mut pair, _) = unanswered(1);
    let timeout = timeout(&pair);
    pair.run(ms(300) + timeout * 16);
    let mut times: Vec<Time> = pair.of(SERVER).iter().map(|it| it.at).collect();
    times.dedup();
    let expected = [0, 1, 3, 7, 15].map(|it| ms(300) + timeout * it);
    assert_eq!(times, expected);
    let last = pair.of(SERVER).last().unwrap().packets[0].number;
    acknowledge(&mut pair, 500, &[(last, last + 1)]);
    pair.send(SERVER, 100);
    let again = pair.ends[SERVER].recovery_deadline() - pair.now;
    assert!(again < timeout * 16, "{again}");
}

#[test]
fn ld06_ld07_there_is_one_timer_and_it_begins_anew() {
    let (mut pair, n) = unanswered(1);
    let first = pair.ends[SERVER].recovery_deadline();
    pair.run(ms(310));
    pair.send(SERVER, 100);
    assert_eq!(
        pair.ends[SERVER].recovery_deadline(),
        first + ms(10),
        "with each packet"
    );
    pair.run(ms(330));
    // An acknowledgement of the second one leaves the first in doubt: the loss timer alone.
    acknowledge(&mut pair, 500, &[(n + 1, n + 2)]);
    let doubtful = pair.ends[SERVER].recovery_deadline();
    assert!(doubtful < first);
    pair.run(doubtful);
    assert_eq!(pair.ends[SERVER].take_losses(), 1);
    // Before the handshake is confirmed there is none for data.
    let mut pair = Pair::with(config(), |seen| {
        match seen.from == SERVER && seen.at > ms(50) {
            true => Wire::Drop,
            false => Wire::Pass,
        }
    });
    pair.run(ms(40));
    pair.send(CLIENT, 100);
    let of_handshake = pair.ends[CLIENT].recovery_deadline();
    assert_eq!(of_handshake, ms(40 + 120), "the Finished's");
}

#[test]
fn ld09_a_probe_is_not_held_by_the_window() {
    let (mut pair, _) = unanswered(50);
    let (window, _) = pair.ends[SERVER].window();
    assert!(pair.ends[SERVER].in_flight() + 1200 > window);
    let due = pair.ends[SERVER].recovery_deadline();
    let before = pair.of(SERVER).len();
    pair.run(due);
    assert_eq!(pair.of(SERVER).len(), before + 2);
    assert!(pair.ends[SERVER].in_flight() > window);
}

#[test]
fn ld12_a_late_arrival_is_not_sent_again() {
    let (mut pair, n) = unanswered(10);
    pair.run(ms(310));
    // Packet 0 is declared lost; it goes again at once. Packet 1 is, too, but arrives before it can.
    acknowledge(&mut pair, 500, &[(n + 3, n + 4)]);
    assert_eq!(pair.ends[SERVER].take_losses(), 1);
    acknowledge(&mut pair, 501, &[(n, n + 10)]);
    pair.run(ms(5_000));
    let zero = pair.of(SERVER).into_iter().filter(|it| {
        it.frames()
            .any(|frame| matches!(frame, Frame::Stream { offset: 0, .. }))
    });
    assert!(zero.count() <= 2);
    assert!(pair.has(SERVER, Event::Delivered(3)));
    assert_eq!(pair.at(SERVER, Event::Delivered(3)), Some(ms(310)));
}
