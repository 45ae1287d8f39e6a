//! Captures of anything: an error, or vectors that can be read, counts that add up and bins that
//! hold every packet.

use std::io::Cursor;

use aqmlab_capture::{By, ConvertError, Format, Options, Plan, Report, arrivals, convert};
use aqmlab_net::Time;
use aqmlab_traffic::vector::VectorReader;

/// The type of a pcapng file's first block; the same from both ends.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A capture in the format of pcap.
pub fn check_pcap(capture: &[u8]) {
    if !capture.starts_with(&SECTION_HEADER) {
        check(capture);
    }
}

/// A capture in the format of pcapng.
pub fn check_pcapng(capture: &[u8]) {
    if capture.starts_with(&SECTION_HEADER) {
        check(capture);
    }
}

/// What holds for every capture.
pub(crate) fn check(capture: &[u8]) {
    let mut text = Vec::new();
    let scratch = || Ok(Cursor::new(Vec::new()));
    let format = Format::Alternate;
    let plan = match Plan::read(capture, &mut |_| true) {
        Ok(plan) => plan,
        Err(error) => return assert!(error.to_string().starts_with("packet "), "{error}"),
    };
    let made = convert(
        capture,
        &plan,
        &mut text,
        None,
        scratch,
        Options::default(),
        format,
        &mut |_| true,
    );
    match made {
        Ok(report) => {
            let vectors: Result<Vec<_>, _> = VectorReader::new(&text[..]).collect();
            let vectors = vectors.expect("what is written can be read");
            assert_eq!(vectors.len() as u64, report.connections.made);
            assert!(vectors.is_sorted_by_key(|vector| vector.start));
            adds_up(&report);
        }
        Err(ConvertError::NoVectors(report)) => {
            assert_eq!(report.connections.made, 0);
            adds_up(&report);
        }
        Err(error) => assert!(error.to_string().starts_with("packet "), "{error}"),
    }
    // Smaller bins would only take time: time stamps are anywhere in 584 years.
    let day = Time::from_secs(86_400);
    let Ok(found) = arrivals(capture, &plan, day, By::Direction, &mut |_| true) else {
        return;
    };
    let bins = found
        .interfaces
        .first()
        .map_or(0, |series| series.packets.len());
    for series in &found.interfaces {
        assert_eq!((series.packets.len(), series.bytes.len()), (bins, bins));
        assert!(series.packets.iter().all(|packets| *packets >= 0.0));
    }
}

fn adds_up(report: &Report) {
    let (packets, connections) = (&report.packets, &report.connections);
    assert_eq!(packets.tcp + packets.skipped.total(), packets.read);
    assert_eq!(
        connections.made + connections.skipped.total(),
        connections.seen
    );
    assert_eq!(connections.initiator_by.total(), connections.made);
    let vectors = &report.vectors;
    assert_eq!(vectors.sequential + vectors.concurrent, connections.made);
}
