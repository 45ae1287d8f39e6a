//! The window, pacing, ECN.

use super::*;
use crate::congestion::Congestion;

const DATAGRAM: u64 = 1200;

/// Window of the server in datagrams.
fn window(pair: &Pair) -> f64 {
    pair.ends[SERVER].window().0 as f64 / DATAGRAM as f64
}

#[test]
fn cc01_the_first_window_is_that_of_the_rfc() {
    for (datagram, window) in [(1200, 12_000), (1472, 14_720), (9000, 18_000)] {
        assert_eq!(Config::standard_window(datagram), window);
    }
    let small = Config {
        initial_window: 1,
        ..config()
    };
    assert_eq!(window(&Pair::new(small)), 2.0, "the least");
}

#[test]
fn cc02_slow_start_adds_what_is_acknowledged() {
    let mut pair = Pair::connected(config());
    let before = pair.ends[SERVER].window().0;
    pair.send(SERVER, 1_000_000);
    pair.run(ms(345));
    let first: u64 = pair
        .seen
        .iter()
        .filter(|it| it.at == ms(300))
        .map(|it| it.size as u64)
        .sum();
    assert!(first > 10_000);
    assert_eq!(pair.ends[SERVER].window().0, before + first);
}

#[test]
fn cc03_losses_of_one_window_halve_it_once() {
    let mut pair = Pair::connected(config());
    let mut count = 0;
    pair.set_rule(move |seen| {
        count += u64::from(seen.data() > 0);
        match seen.data() > 0 && [2, 4, 6].contains(&count) {
            true => Wire::Drop,
            false => Wire::Pass,
        }
    });
    let before = window(&pair);
    pair.send(SERVER, 200_000);
    pair.run(ms(300) + ms(79));
    assert!(pair.ends[SERVER].take_losses() >= 3);
    let (half, threshold) = pair.ends[SERVER].window();
    // Acknowledgements before the loss is found open the window by two packets.
    let most = (before + 2.0) / 2.0 * DATAGRAM as f64;
    assert!(
        (half as f64) <= most && half as f64 >= before / 2.0 * DATAGRAM as f64,
        "{half}"
    );
    assert_eq!(threshold, Some(half));
    pair.run(ms(1_000));
    let later = pair.ends[SERVER].window().0;
    assert!(later > half, "what was sent later ends it");
}

#[test]
fn cc04_avoidance_adds_a_datagram_for_a_window() {
    let mut pair = Pair::connected(config());
    let mut count = 0;
    pair.set_rule(move |seen| {
        count += u64::from(seen.data() > 0);
        if count == 30 && seen.data() > 0 {
            Wire::Drop
        } else {
            Wire::Pass
        }
    });
    pair.send(SERVER, 3_000_000);
    pair.run(ms(600));
    let (before, threshold) = pair.ends[SERVER].window();
    assert!(threshold.is_some_and(|it| it <= before));
    pair.run(ms(1_000));
    // Ten round trips of 40 ms.
    let grown = window(&pair) - before as f64 / DATAGRAM as f64;
    assert!((8.0..10.1).contains(&grown), "{grown}");
}

#[test]
fn cc05_no_more_is_in_flight_than_the_window_has() {
    let mut count = 0;
    let mut pair = Pair::with(config(), move |_| {
        count += 1;
        if hash(count).is_multiple_of(25) {
            Wire::Drop
        } else {
            Wire::Pass
        }
    });
    pair.run(ms(4_000));
    pair.seen.clear();
    pair.send(SERVER, 2_000_000);
    pair.run(ms(60_000));
    assert_eq!(pair.read[CLIENT], 2_000_000);
    let mut beyond = 0;
    for seen in pair.of(SERVER).into_iter().filter(|it| it.data() > 0) {
        beyond += usize::from(seen.in_flight > seen.window);
    }
    // Probes alone go beyond: two for each expiry, which are few.
    assert!(beyond <= 12, "{beyond}");
    // Acknowledgements do not count.
    assert_eq!(pair.ends[CLIENT].in_flight(), 0);
}

/// The server's window after all that it sends is lost for so many probe time-outs.
fn black_out(timeouts: u64) -> (u64, u64) {
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 3_000_000);
    pair.run(ms(520));
    let before = pair.ends[SERVER].window().0;
    pair.set_rule(|seen| {
        if seen.from == SERVER {
            Wire::Drop
        } else {
            Wire::Pass
        }
    });
    pair.run(ms(530));
    let timeout = pair.ends[SERVER].recovery_deadline() - ms(530);
    pair.run(ms(530) + timeout * timeouts + ms(10));
    pair.set_rule(|_| Wire::Pass);
    let mut least = u64::MAX;
    for step in 0..4_000 {
        pair.run(pair.now + ms(1));
        least = least.min(pair.ends[SERVER].window().0);
        if step > 1000 {
            break;
        }
    }
    (before, least)
}

#[test]
fn cc06_persistent_congestion_leaves_the_least_window() {
    let (_, least) = black_out(7);
    assert_eq!(least, 2 * DATAGRAM);
    let (before, least) = black_out(1);
    assert!(least >= before / 2 && least < before, "{before} {least}");
}

/// A pair whose server has sent 13 small packets, 40 ms apart. These arrive, and the last one.
fn after_a_row(arrived: &[u64]) -> Pair {
    let mut pair = Pair::connected(config());
    pair.set_rule(|_| Wire::Drop);
    for _ in 0..13 {
        pair.send(SERVER, 100);
        pair.run(pair.now + ms(40));
    }
    let sent = pair.of(SERVER);
    assert_eq!(sent.len(), 13, "no probe has left");
    let first = sent[0].packets[0].number;
    let ranges: Vec<_> = [&[12], arrived]
        .concat()
        .iter()
        .map(|place| (first + place, first + place + 1))
        .collect();
    let ack = datagram(500, |writer| {
        writer.ack(0, ranges.into_iter(), None, 1000);
    });
    pair.ends[SERVER].take_losses();
    pair.inject(SERVER, &ack);
    assert_eq!(pair.ends[SERVER].take_losses() as usize, 12 - arrived.len());
    pair
}

/// The row spans 440 ms, more than three probe time-outs. Its halves span 200 ms.
#[test]
fn cc06_an_arrival_in_between_ends_persistent_congestion() {
    assert_eq!(window(&after_a_row(&[])), 2.0);
    let pair = after_a_row(&[6]);
    assert!(window(&pair) >= 4.0, "{}", window(&pair));
    // An arrival at the edge leaves nearly all of it.
    assert_eq!(window(&after_a_row(&[0])), 2.0);
}

/// The round trip rises from 40 to 100 ms, 25 ms of which the peer says that it held the
/// acknowledgement. What is taken off depends on the least round trip.
#[test]
fn rt04_persistent_congestion_starts_the_least_round_trip_anew() {
    for (arrived, adjusted) in [(&[][..], 100), (&[6], 75)] {
        let mut pair = after_a_row(arrived);
        let number = pair.of(SERVER)[13].packets[0].number;
        pair.run(pair.now + ms(100));
        let before = pair.ends[SERVER].round_trip();
        let ack = datagram(501, |writer| {
            writer.ack(25_000 / 8, [(number, number + 1)].into_iter(), None, 1000);
        });
        pair.inject(SERVER, &ack);
        assert_eq!(pair.ends[SERVER].take_sample(), Some(ms(100)));
        let part = |time: Time, count| Time::from_nanos(time.as_nanos() * count / 8);
        let expected = part(before, 7) + part(ms(adjusted), 1);
        assert_eq!(pair.ends[SERVER].round_trip(), expected, "{arrived:?}");
    }
}

/// A window after two congestions: one found at 100 ms, and what a packet sent at `sent` shows.
fn after_two(sent: Time) -> (u64, u64) {
    let law = Law::new(config().stack, 24_000);
    let mut congestion = Congestion::new(law, DATAGRAM, (10, false));
    for _ in 0..20 {
        congestion.on_send(DATAGRAM, ms(50));
    }
    congestion.on_congestion(ms(50), true, ms(100));
    let first = congestion.window();
    congestion.on_congestion(sent, true, ms(140));
    (first, congestion.window())
}

#[test]
fn cc03_a_packet_of_the_moment_in_which_recovery_began_shows_no_other_congestion() {
    let (first, second) = after_two(ms(100));
    assert_eq!((first, second), (12_000, 12_000));
    let (first, second) = after_two(ms(100) + Time::from_nanos(1));
    assert!(second < first, "{second}");
}

#[test]
fn cc07_after_an_idle_time_no_burst_is_above_ten() {
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 600_000);
    pair.run(ms(2_000));
    assert!(window(&pair) > 40.0);
    pair.seen.clear();
    pair.send(SERVER, 600_000);
    pair.run(ms(2_039));
    let mut largest = 0;
    for seen in pair.of(SERVER) {
        let at_once = pair.of(SERVER).into_iter().filter(|it| it.at == seen.at);
        largest = largest.max(at_once.count());
    }
    assert_eq!(largest, 10);
    // The others follow at 1.25 windows for a round trip.
    let times: Vec<Time> = pair.of(SERVER).iter().map(|it| it.at).collect();
    let gap = (times[times.len() - 1] - times[20]).as_secs_f64() / (times.len() - 21) as f64;
    let expected = pair.ends[SERVER].round_trip().as_secs_f64() / (1.25 * window(&pair));
    assert!((gap / expected - 1.0).abs() < 0.05, "{gap} {expected}");
}

#[test]
fn a_sender_that_paces_bursts_waits_until_all_of_a_burst_may_leave() {
    let paced = |in_bursts| {
        let mut pair = Pair::connected(Config {
            in_bursts,
            burst: 4,
            ..config()
        });
        pair.send(SERVER, 600_000);
        pair.run(ms(2_000));
        pair.seen.clear();
        pair.send(SERVER, 600_000);
        // No acknowledgement comes within a round trip.
        pair.run(ms(2_039));
        let mut times: Vec<Time> = pair.of(SERVER).iter().map(|it| it.at).collect();
        let count = times.len();
        times.dedup();
        (count, times.len())
    };
    let (each, times) = paced(false);
    assert_eq!(each, times + 3, "only the first four leave at once");
    let (in_bursts, bursts) = paced(true);
    assert!(
        in_bursts.div_ceil(4) == bursts && bursts > 5,
        "{in_bursts} {bursts}"
    );
    assert!(in_bursts.abs_diff(each) <= 4, "the rate is the same");
}

#[test]
fn the_time_of_the_handshake_refills_the_pacer() {
    let mut pair = Pair::connected(Config {
        initial_window: 24_000,
        ..config()
    });
    pair.send(SERVER, 60_000);
    let first = pair.of(SERVER)[0].at;
    let at_once = pair.of(SERVER).iter().filter(|it| it.at == first).count();
    assert_eq!(at_once, 10);
}

#[test]
fn cc08_a_window_that_is_not_used_does_not_grow() {
    let mut pair = Pair::connected(config());
    let before = window(&pair);
    let stream = pair.ends[SERVER].open(true).unwrap();
    for round in 0..20 {
        pair.write(SERVER, stream, 2_200, false);
        pair.run(ms(300) + ms(40) * (round + 1));
    }
    assert_eq!(window(&pair), before);
}

/// A pair with ECN, and what its wire makes of the field.
fn with_ecn(rule: impl FnMut(&Seen) -> Wire + 'static) -> Pair {
    let mut pair = Pair::connected(Config {
        ecn: true,
        ..config()
    });
    assert!(pair.seen.is_empty());
    pair.set_rule(rule);
    pair
}

#[test]
fn ec01_marks_are_counted_and_reported_by_one_who_sends_none() {
    let mut count = 0;
    let mut pair = with_ecn(move |seen| {
        count += u64::from(seen.data() > 0);
        if seen.data() > 0 && count == 3 {
            Wire::Write(Ecn::Ce)
        } else {
            Wire::Pass
        }
    });
    pair.send(SERVER, 4_400);
    pair.run(ms(1_000));
    let last = pair.of(CLIENT).last().unwrap().ack().unwrap().ecn.unwrap();
    let sent = pair
        .of(SERVER)
        .iter()
        .filter(|it| it.ecn == Ecn::Ect0)
        .count() as u64;
    assert_eq!((last[1], last[2]), (0, 1));
    assert!(last[0] >= sent - 1);
}

#[test]
fn ec02_ec03_a_field_that_is_rewritten_ends_ecn() {
    for wrong in [Ecn::NotEct, Ecn::Ect1] {
        let mut pair = with_ecn(move |_| Wire::Write(wrong));
        pair.send(SERVER, 200_000);
        pair.run(ms(1_000));
        let sent = pair.of(SERVER);
        assert_eq!(sent[0].ecn, Ecn::Ect0);
        let after = sent.iter().filter(|it| it.at > ms(345));
        assert!(after.clone().count() > 10);
        for seen in after {
            assert_eq!(seen.ecn, Ecn::NotEct, "{wrong:?} at {}", seen.at);
        }
    }
    // Reordered acknowledgements are no reason.
    let mut count = 0;
    let mut pair = with_ecn(move |seen| {
        count += 1;
        match seen.from == CLIENT && count % 3 == 0 {
            true => Wire::Late(ms(15)),
            false => Wire::Pass,
        }
    });
    pair.send(SERVER, 300_000);
    pair.run(ms(3_000));
    assert!(pair.of(SERVER).iter().all(|it| it.ecn == Ecn::Ect0));
}

#[test]
fn ec04_marks_of_one_window_halve_it_once() {
    let mut count = 0;
    let mut pair = with_ecn(move |seen| {
        count += u64::from(seen.data() > 0);
        match seen.data() > 0 && [4, 7].contains(&count) {
            true => Wire::Write(Ecn::Ce),
            false => Wire::Pass,
        }
    });
    let before = window(&pair);
    pair.send(SERVER, 200_000);
    pair.run(ms(300) + ms(79));
    let after = window(&pair);
    assert!(
        after >= before / 2.0 && after <= (before + 3.0) / 2.0,
        "{before} {after}"
    );
    assert_eq!(pair.ends[SERVER].take_losses(), 0);
}
