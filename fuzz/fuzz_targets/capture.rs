//! A capture of anything: an error, or vectors that can be read and counts that add up.
#![no_main]

use std::io::Cursor;

use aqmlab_capture::{ConvertError, Format, Options, convert};
use aqmlab_traffic::vector::VectorReader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|capture: &[u8]| {
    let mut text = Vec::new();
    let scratch = || Ok(Cursor::new(Vec::new()));
    let format = Format::Alternate;
    let made = convert(capture, &mut text, scratch, Options::default(), format, &mut |_| true);
    match made {
        Ok(report) => {
            let vectors: Result<Vec<_>, _> = VectorReader::new(&text[..]).collect();
            let vectors = vectors.expect("what is written can be read");
            assert_eq!(vectors.len() as u64, report.connections.made);
            let packets = &report.packets;
            assert_eq!(packets.tcp + packets.skipped.total(), packets.read);
        }
        Err(ConvertError::NoVectors(report)) => assert_eq!(report.connections.made, 0),
        Err(error) => assert!(error.to_string().starts_with("packet ")),
    }
});
