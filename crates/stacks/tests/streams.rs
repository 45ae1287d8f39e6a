//! Messages on streams of their own, as HTTP/3 has them.
#![cfg(feature = "quic")]

use crate::wire;

use aqmlab_net::{Bytes, Role, Time};
use aqmlab_stacks::{Class, EarlyData, Quic};
use wire::{BYTE, Pair};

/// One way of the path.
const WAY: Time = Time::from_millis(20);

/// All that is asked for leaves at once.
fn settings() -> Quic {
    Quic {
        server_flight: Bytes(300),
        connection_ids: 0,
        initial_window: Some(Bytes(200_000)),
        burst: 64,
        ..Quic::default()
    }
}

fn run(settings: &Quic, answers: &[(u64, u8)], lost: impl Fn(u64) -> bool + 'static) -> Pair {
    let class = Class::quic(settings);
    Pair::new(&class, (1, WAY), 0, lost)
        .with_answers(answers)
        .run()
}

fn arrived(pair: &Pair) -> Vec<Time> {
    pair.arrived.iter().map(|it| it.unwrap()).collect()
}

/// Numbers of the answers in the order of their arrival.
fn order(pair: &Pair) -> Vec<usize> {
    let times = arrived(pair);
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|number| times[*number]);
    order
}

/// A datagram of 1,200 bytes on the server's wire.
const FULL: Time = Time::from_nanos(1_228 * BYTE);

/// Datagrams of the server before its answers.
fn before(pair: &Pair) -> u64 {
    let sent = pair.log.iter().filter(|it| it.1 == Role::Server);
    sent.take_while(|it| it.0 < Time::from_millis(60)).count() as u64
}

#[test]
fn a_lost_datagram_delays_the_streams_whose_bytes_it_had_and_no_other() {
    let answers = [(4_000, 3); 8];
    let whole = run(&settings(), &answers, |_| false);
    let expected = arrived(&whole);
    assert!(expected.is_sorted() && whole.received == 32_000);
    let before = before(&whole);
    let mut delayed = Vec::new();
    for number in 1..=28 {
        let pair = run(&settings(), &answers, move |it| it == before + number);
        assert_eq!(pair.received, 32_000);
        let found = arrived(&pair);
        let late: Vec<usize> = (0..8).filter(|it| found[*it] != expected[*it]).collect();
        // A datagram has bytes of one answer, or the end of one and the beginning of the next.
        assert!((1..=2).contains(&late.len()), "{number}: {late:?}");
        assert!(late.iter().all(|it| found[*it] > expected[*it]));
        // The ACK of the third datagram behind it says that it is lost; the wire is free by then.
        if let Some(third) = whole
            .reach
            .get((before + number + 2) as usize)
            .filter(|_| number > 1)
        {
            let repaired = *third + WAY + FULL + WAY;
            match late[..] {
                [late] => assert_eq!(found[late], repaired, "{number}"),
                // The heads of two pieces may push a few bytes into another datagram.
                _ => assert!(
                    found[late[1]] < repaired + Time::from_nanos(100 * BYTE),
                    "{number}"
                ),
            }
        }
        delayed.extend(late);
    }
    delayed.dedup();
    assert_eq!(delayed, (0..8).collect::<Vec<_>>());
}

#[test]
fn urgent_answers_go_first_and_others_in_the_order_of_their_requests() {
    let answers = [(5_000, 3), (5_000, 1), (5_000, 3), (5_000, 1), (5_000, 0)];
    let pair = run(&settings(), &answers, |_| false);
    assert_eq!(order(&pair), [4, 1, 3, 0, 2]);
}

#[test]
fn more_requests_than_streams_wait_for_streams() {
    let answers = vec![(500, 3); 350];
    let pair = run(&settings(), &answers, |it| it % 41 == 7);
    assert_eq!(pair.received, 350 * 500);
    assert!(pair.arrived.iter().all(Option::is_some));
}

/// Bytes of a packet beside its frames: the first byte, the connection id, the packet number and the tag. A long
/// header has the version, a second id, their lengths, and the packet's length besides; an Initial packet the
/// length of a token, too (RFC 9000, section 17; RFC 9001, section 5.3).
const SHORT: u64 = 1 + 8 + 1 + 16;
const LONG: u64 = SHORT + 4 + (1 + 8 + 1) + 2;
const INITIAL: u64 = LONG + 1;
/// An ACK of one range with three ECN counts, and the bytes in front of what a CRYPTO frame of up to 16,383 bytes
/// or a STREAM frame from offset 0 on carries (RFC 9000, sections 19.3, 19.6 and 19.8).
const ACK: u64 = 1 + 4 + 3;
const CRYPTO: u64 = 1 + 1 + 2;
const STREAM: u64 = 1 + 1;

#[test]
fn early_requests_are_answered_a_round_trip_earlier_and_rejected_ones_are_not() {
    let answers = [800, 500];
    let finished = |early_data| {
        let settings = Quic {
            early_data,
            ..settings()
        };
        let answers = answers.map(|bytes| (bytes, 3));
        run(&settings, &answers, |_| false).finished.unwrap()
    };
    let [off, accepted, rejected] =
        [EarlyData::Off, EarlyData::Accepted, EarlyData::Rejected].map(finished);
    let round_trip = WAY + WAY;
    let wire = |payload: u64| Time::from_nanos((payload + 2 * 28) * BYTE);
    // A second piece of an answer in another datagram: its stream, its offset, and its length again.
    let piece = STREAM + 2 + 2;
    let together: u64 = answers.iter().map(|bytes| STREAM + 2 + bytes).sum();

    // The server's part of the handshake fills one datagram (RFC 9000, section 14.1). A round trip later follow, in
    // two: an ACK, HANDSHAKE_DONE, two tickets of 178 bytes, and the answers. The first of these datagrams is full
    // with a piece of the second answer, which goes to its end and needs no length.
    let behind = 2 * SHORT + ACK + 1 + (CRYPTO + 178) + (together - 2) + piece;
    assert_eq!(off, round_trip + FULL + round_trip + wire(behind));
    // Early requests go again with the client's last message.
    assert_eq!(rejected, off);

    // The answers leave with the hello of 90 bytes, and with 73 bytes of transport parameters beside the flight of
    // 300. HTTP/3 has three streams of its own. The first datagram is full with a piece of the first answer.
    let hello = INITIAL + ACK + CRYPTO + 90;
    let flight = LONG + CRYPTO + 300 + 73;
    let control: u64 = [16, 1, 1].iter().map(|bytes| STREAM + 1 + bytes).sum();
    let first = hello + flight + SHORT + ACK + control;
    let all = first + SHORT + (together - 2) + piece;
    assert_eq!(accepted, round_trip + wire(all));
}

/// Whatever is lost of the server's first datagrams, its answers arrive.
#[test]
fn any_loss_among_the_first_datagrams_is_repaired() {
    for early_data in [EarlyData::Off, EarlyData::Accepted, EarlyData::Rejected] {
        for lost in 0_u64..256 {
            let settings = Quic {
                early_data,
                ..settings()
            };
            let pair = run(&settings, &[(30_000, 1)], move |it| {
                it <= 8 && lost >> (it - 1) & 1 > 0
            });
            assert_eq!(pair.received, 30_000, "{early_data:?} {lost:08b}");
        }
    }
}
