//! Acknowledgements and the round trips that they measure.

use super::*;

/// An acknowledgement of these packets that nobody has sent.
fn acknowledgement(number: u64, ranges: &[(u64, u64)]) -> Vec<u8> {
    let ranges: Vec<_> = ranges.iter().rev().copied().collect();
    datagram(number, |writer| {
        writer.ack(0, ranges.into_iter(), None, 1000);
    })
}

#[test]
fn pn03_a_packet_that_comes_twice_is_taken_once() {
    let mut pair = Pair::connected(config());
    pair.set_rule(|seen| {
        if seen.data() > 0 {
            Wire::Twice
        } else {
            Wire::Pass
        }
    });
    pair.send(SERVER, 10_000);
    pair.run(ms(1_000));
    assert_eq!(pair.read[CLIENT], 10_000);
    let packets = pair
        .of(SERVER)
        .into_iter()
        .filter(|it| it.data() > 0)
        .count();
    assert_eq!(pair.ends[CLIENT].duplicates(), packets as u32);
    assert_eq!(pair.of(CLIENT).len(), packets.div_ceil(2));
}

#[test]
fn ak02_a_lone_packet_is_acknowledged_after_the_longest_delay() {
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 100);
    pair.run(ms(1_000));
    let acks = pair.of(CLIENT);
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0].at, ms(300) + WAY + ms(25));
    // It says for how long it was held, in units of 8 us.
    assert_eq!(acks[0].ack().unwrap().delay, 25_000 / 8);
}

#[test]
fn ak03_every_second_packet_is_acknowledged() {
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 11_000);
    pair.run(ms(360));
    let sent = pair.of(SERVER).len();
    assert_eq!((sent, pair.of(CLIENT).len()), (10, 5));
}

#[test]
fn ak06_nobody_acknowledges_acknowledgements() {
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 3_000);
    pair.run(ms(10_000));
    let last = pair.seen.last().unwrap();
    assert!(last.at < ms(400) && last.from == CLIENT);
    let answers = pair.of(CLIENT);
    assert!(
        answers
            .iter()
            .all(|it| it.frames().count() == 0 && it.ack().is_some())
    );
    assert!(answers.len() <= pair.of(SERVER).len());
}

#[test]
fn ak10_an_acknowledgement_of_what_was_never_sent_closes() {
    let mut pair = Pair::connected(config());
    pair.inject(CLIENT, &acknowledgement(500, &[(0, 1_001)]));
    assert!(pair.ends[CLIENT].is_closed());
    let error = crate::Error::ProtocolViolation as u64;
    assert!(
        pair.seen[0]
            .frames()
            .any(|it| *it == Frame::Close { error })
    );
    pair.run(ms(400));
    assert!(pair.has(SERVER, Event::Closed { error }));
}

#[test]
fn ak11_acknowledgements_ride_with_data() {
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 100);
    pair.run(ms(330));
    // An acknowledgement waits for a second packet; data does not wait for it.
    assert_eq!(pair.of(CLIENT).len(), 0);
    pair.send(CLIENT, 100);
    pair.run(ms(349));
    let sent = pair.of(CLIENT);
    assert_eq!((sent.len(), sent[0].at, sent[0].data()), (1, ms(330), 100));
    assert_eq!(sent[0].ack().unwrap().delay, 10_000 / 8);
}

#[test]
fn rt01_an_acknowledgement_that_says_nothing_new_is_no_sample() {
    let mut pair = Pair::connected(config());
    pair.set_rule(|seen| {
        if seen.from == SERVER {
            Wire::Drop
        } else {
            Wire::Pass
        }
    });
    pair.send(SERVER, 100);
    let number = pair.seen[0].packets[0].number;
    pair.ends[SERVER].take_sample();
    pair.run(ms(330));
    pair.inject(SERVER, &acknowledgement(500, &[(number, number + 1)]));
    assert_eq!(pair.ends[SERVER].take_sample(), Some(ms(30)));
    pair.run(ms(350));
    pair.inject(SERVER, &acknowledgement(501, &[(number, number + 1)]));
    assert_eq!(pair.ends[SERVER].take_sample(), None);
    // A client that has sent nothing but acknowledgements measures nothing by them.
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 2_000);
    pair.run(ms(330));
    let of_client = pair.of(CLIENT)[0].packets[0].number;
    pair.ends[CLIENT].take_sample();
    pair.inject(CLIENT, &acknowledgement(500, &[(of_client, of_client + 1)]));
    assert_eq!(pair.ends[CLIENT].take_sample(), None);
}
