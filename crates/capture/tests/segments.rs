//! The segments of a capture: who sends them, and to which connection they belong.

use crate::common;

use aqmlab_capture::{Plan, SegmentList, WORDS_OF_SEGMENT, segments};
use common::{ACK, FIN, Pair, SYN, Tap};

fn read(tap: Tap) -> SegmentList {
    segments(&tap.bytes()[..], &Plan::default(), &mut |_| true).unwrap()
}

/// Of each segment: milliseconds since the first, connection, sender, control bits, payload.
fn rows_of(found: &SegmentList) -> Vec<(u64, u64, u64, u8, u64)> {
    let rows = found.words.chunks(WORDS_OF_SEGMENT);
    rows.map(|row| {
        let since = (row[0] - found.words[0]) / 1_000_000;
        (since, row[1], row[2], row[5] as u8, row[5] >> 8)
    })
    .collect()
}

#[test]
fn segments_have_a_connection_a_sender_and_numbers() {
    let mut tap = Tap::new();
    let (one, other) = (Pair::new(40000), Pair::new(40001));
    tap.handshake(0.0, &one);
    tap.handshake(31.0, &other);
    tap.at(70.0, &one, (0, ACK, 0, 0, 400));
    tap.at(90.0, &one, (1, ACK | FIN, 0, 400, 1460));
    let found = read(tap);
    assert_eq!(
        rows_of(&found),
        [
            (0, 0, 0, SYN, 0),
            (20, 0, 1, SYN | ACK, 0),
            (30, 0, 0, ACK, 0),
            (31, 1, 0, SYN, 0),
            (51, 1, 1, SYN | ACK, 0),
            (61, 1, 0, ACK, 0),
            (70, 0, 0, ACK, 400),
            (90, 0, 1, ACK | FIN, 1460),
        ]
    );
    let last = &found.words[7 * WORDS_OF_SEGMENT..];
    let [_, _, _, seq, ack, _, way] = last[..] else {
        panic!("one segment");
    };
    assert_eq!((seq, ack), (5001, 1401));
    assert_eq!(
        way, 0,
        "the only pair of addresses, and nothing shows the sides"
    );
    assert_eq!(found.skipped.total(), 0);
}

#[test]
fn a_repeated_syn_is_of_the_same_connection_and_another_one_is_not() {
    let mut tap = Tap::new();
    let first = Pair::new(40000);
    tap.at(0.0, &first, (0, SYN, 0, 0, 0));
    tap.handshake(1000.0, &first);
    let again = Pair {
        isn: [700_000, 800_000],
        ..first
    };
    tap.handshake(9000.0, &again);
    let numbers: Vec<u64> = rows_of(&read(tap)).iter().map(|row| row.1).collect();
    assert_eq!(numbers, [0, 0, 0, 0, 1, 1, 1]);
}

#[test]
fn without_a_syn_its_answer_tells_who_opens() {
    let mut tap = Tap::new();
    let pair = Pair::new(40000);
    tap.at(0.0, &pair, (1, SYN | ACK, 0, 0, 0));
    tap.at(10.0, &pair, (0, ACK, 0, 0, 0));
    let senders: Vec<u64> = rows_of(&read(tap)).iter().map(|row| row.2).collect();
    assert_eq!(senders, [1, 0]);
}

#[test]
fn what_is_no_capture_is_refused() {
    assert!(
        segments(
            &b"hello, world, and more than that"[..],
            &Plan::default(),
            &mut |_| true
        )
        .is_err()
    );
}
