//! Whatever the bytes: an error or vectors, never a panic, and counts that add up.

use crate::common;

use aqmlab_capture::{ConvertError, Options, Report};
use common::{ACK, FIN, Pair, RST, SYN, Tap, try_vectors};
use proptest::prelude::*;

fn assert_adds_up(report: &Report) {
    let (packets, connections) = (&report.packets, &report.connections);
    assert_eq!(packets.tcp + packets.skipped.total(), packets.read);
    assert_eq!(
        connections.made + connections.skipped.total(),
        connections.seen
    );
    assert_eq!(connections.initiator_by.total(), connections.made);
    assert_eq!(
        report.vectors.sequential + report.vectors.concurrent,
        connections.made
    );
}

fn check(capture: &[u8]) {
    match try_vectors(capture, Options::default()) {
        Ok((vectors, report)) => {
            assert_eq!(vectors.len() as u64, report.connections.made);
            assert!(vectors.is_sorted_by_key(|vector| vector.start));
            assert_adds_up(&report);
        }
        Err(ConvertError::NoVectors(report)) => assert_adds_up(&report),
        Err(error) => assert!(error.to_string().starts_with("packet "), "{error}"),
    }
}

/// Any segments at all on a few connections.
fn segments() -> impl Strategy<Value = Vec<(u16, f64, common::Seg)>> {
    let flags = prop_oneof![
        4 => Just(ACK),
        1 => Just(SYN),
        1 => Just(SYN | ACK),
        1 => Just(FIN | ACK),
        1 => Just(RST),
        1 => any::<u8>(),
    ];
    let number = || prop_oneof![0_u64..5000, any::<u32>().prop_map(u64::from)];
    let segment = (0_usize..2, flags, number(), number(), 0_u32..3000);
    proptest::collection::vec((0_u16..3, 0.0..1e6, segment), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }

    #[test]
    fn arbitrary_segments(segments in segments(), in_order: bool) {
        let mut segments = segments;
        if in_order {
            segments.sort_by(|one, two| one.1.total_cmp(&two.1));
        }
        let mut tap = Tap::new();
        for (port, at, segment) in segments {
            tap.at(at, &Pair::new(4000 + port), segment);
        }
        check(&tap.bytes());
    }

    #[test]
    fn corrupted_captures(
        segments in segments(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut: prop::sample::Index,
    ) {
        let mut tap = Tap::new();
        for (port, at, segment) in segments {
            tap.at(at, &Pair::new(4000 + port), segment);
        }
        let mut bytes = tap.bytes();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        check(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        check(&bytes);
    }
}
