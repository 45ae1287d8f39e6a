//! Datagrams that no correct end sends: each closes the connection with the error of RFC 9000, and none
//! panics.

use super::*;
use crate::error::Error;

/// Numbers of a frame behind its type, as they are carried.
fn carried(number: u64, kind: u8, values: &[u64]) -> Vec<u8> {
    let mut out = vec![0x04, 0xb0, 0x41];
    out.extend(number.to_le_bytes());
    out.push(kind);
    values
        .iter()
        .for_each(|value| out.extend(value.to_le_bytes()));
    out
}

const MAX: u64 = (1 << 62) - 1;

#[test]
fn frames_with_impossible_numbers_are_refused() {
    let encoding: &[(&str, u8, &[u64])] = &[
        ("CRYPTO beyond 2^64", 0x06, &[u64::MAX, 1]),
        ("CRYPTO beyond 2^62", 0x06, &[MAX, 1]),
        ("CRYPTO with a length of 2^62", 0x06, &[0, MAX + 1]),
        ("STREAM beyond 2^64", 0x0e, &[1, u64::MAX, 1]),
        ("STREAM beyond 2^62", 0x0e, &[1, MAX, 1]),
        ("RESET_STREAM of 2^62", 0x04, &[1, 0, MAX + 1]),
        ("MAX_STREAMS beyond 2^60", 0x12, &[(1 << 60) + 1]),
        ("MAX_DATA of 2^62", 0x10, &[MAX + 1]),
        ("ACK of an empty range", 0x02, &[0, 0, 0, 0]),
        ("ACK of a range that runs down", 0x02, &[0, 0, 2, 1]),
        ("ACK of ranges that grow", 0x02, &[1, 0, 0, 1, 0, 9]),
        ("ACK of ranges that touch", 0x02, &[1, 0, 1, 2, 0, 1]),
        ("ACK of a second empty range", 0x02, &[1, 0, 1, 2, 0, 0]),
        ("ACK with a delay of 2^64", 0x02, &[0, u64::MAX, 0, 1]),
        (
            "ACK with counts of 2^64",
            0x03,
            &[0, 0, 0, 1, u64::MAX, 0, 0],
        ),
        ("ACK that is cut off", 0x02, &[5, 0, 0, 1]),
        ("a frame of an unknown type", 0x1f, &[]),
    ];
    for (what, kind, values) in encoding {
        assert_eq!(
            closed_by(*kind, values),
            Some(Error::FrameEncoding),
            "{what}"
        );
    }
    let violation: &[(&str, u8, &[u64])] = &[
        ("ACK of what was never sent", 0x02, &[0, 0, 0, 1 << 40]),
        ("ACK of the largest number", 0x02, &[0, 0, MAX - 1, MAX]),
    ];
    for (what, kind, values) in violation {
        assert_eq!(
            closed_by(*kind, values),
            Some(Error::ProtocolViolation),
            "{what}"
        );
    }
    let flow: &[(&str, u8, &[u64])] = &[
        ("STREAM up to the largest offset", 0x0e, &[1, MAX - 1, 1]),
        ("RESET_STREAM of the largest size", 0x04, &[1, 0, MAX]),
    ];
    for (what, kind, values) in flow {
        assert_eq!(closed_by(*kind, values), Some(Error::FlowControl), "{what}");
    }
}

/// With what error a client that has an ordinary connection closes it when such a frame comes.
fn closed_by(kind: u8, values: &[u64]) -> Option<Error> {
    let mut pair = Pair::connected(config());
    pair.send(SERVER, 3_000);
    pair.inject(CLIENT, &carried(40_000, kind, values));
    let errors = [
        Error::FrameEncoding,
        Error::ProtocolViolation,
        Error::FlowControl,
        Error::StreamLimit,
        Error::StreamState,
        Error::FinalSize,
    ];
    let frames: Vec<Frame> = pair
        .of(CLIENT)
        .iter()
        .flat_map(|seen| seen.packets.iter())
        .flat_map(|packet| packet.frames.clone())
        .collect();
    errors.into_iter().find(|error| {
        frames.contains(&Frame::Close {
            error: *error as u64,
        })
    })
}

/// Acknowledgements of what may be acknowledged are taken, however long they are said to have waited.
#[test]
fn the_longest_delay_and_the_largest_counts_are_taken() {
    assert_eq!(closed_by(0x02, &[0, MAX, 0, 1]), None);
    assert_eq!(closed_by(0x03, &[0, 0, 0, 1, MAX, MAX, MAX]), None);
}
