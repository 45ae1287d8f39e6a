//! A well-formed capture of any segments on a few connections: the bytes go past the readers'
//! checks, straight to what makes vectors of a conversation.

use std::net::SocketAddr;

use aqmlab_capture::{CaptureWriter, Checksums, PacketImage, TcpImage, Transport};
use aqmlab_net::{Ecn, Time};
use arbitrary::{Result, Unstructured};

/// When captures begin.
const EPOCH: Time = Time::from_secs(1_700_000_000);

/// Segments of a few connections, in a capture without faults.
pub fn check(input: &[u8]) {
    if let Ok(capture) = capture(&mut Unstructured::new(input)) {
        crate::captures::check(&capture);
    }
}

fn capture(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let snap = *input.choose(&[96, 54, 65_535])?;
    let mut writer = CaptureWriter::new(Vec::new(), &["tap"], snap, Checksums::Valid)
        .expect("memory takes everything");
    let mut time = EPOCH;
    while !input.is_empty() {
        let packet = segment(input, &mut time)?;
        writer.write(&packet).expect("memory takes everything");
    }
    Ok(writer.into_inner().expect("memory takes everything"))
}

/// A segment of one of four connections, mostly near the beginning of its stream.
fn segment(input: &mut Unstructured<'_>, time: &mut Time) -> Result<PacketImage<'static>> {
    let which: u8 = input.arbitrary()?;
    let pause = Time::from_nanos(u64::from(input.arbitrary::<u16>()?) << (which & 31));
    // Captures of several cards are not in order.
    *time = if which & 32 == 0 {
        *time + pause
    } else {
        time.saturating_sub(pause)
    };
    let ends = [(1, 4000 + u16::from(which >> 6)), (2, 80)]
        .map(|(host, port)| SocketAddr::new([10, 0, 0, host].into(), port));
    let flags: u8 = input.arbitrary()?;
    let side = usize::from(flags >> 7);
    let number = |input: &mut Unstructured<'_>| match flags & 0x40 {
        0 => input.arbitrary::<u16>().map(u32::from),
        _ => input.arbitrary::<u32>(),
    };
    let (seq, ack) = (number(input)?, number(input)?);
    let syn = flags & aqmlab_capture::SYN != 0;
    let stamps = if flags & 0x20 == 0 {
        None
    } else {
        Some((seq, ack))
    };
    Ok(PacketImage {
        time: *time,
        interface: 0,
        source: ends[side],
        destination: ends[1 - side],
        ecn: Ecn::NotEct,
        dscp: 0,
        transport: Transport::Tcp(TcpImage {
            seq,
            ack,
            flags: flags & 0x1f,
            window: 1000,
            segment_size: syn.then_some(1460),
            window_scale: syn.then_some(3),
            timestamps: stamps,
            ..TcpImage::default()
        }),
        payload: u32::from(input.arbitrary::<u16>()? & 0x7ff),
    })
}
