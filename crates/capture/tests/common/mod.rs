//! Connections written packet by packet, and what is made of them.
#![allow(dead_code, reason = "each test uses some of it")]

use std::io::Cursor;
use std::net::SocketAddr;

use aqmlab_capture::{
    CaptureWriter, Checksums, ConvertError, Format, Options, PacketImage, Plan, Report, TcpImage,
    Transport, convert,
};
use aqmlab_net::{Ecn, Role, Time};
use aqmlab_traffic::vector::{Adu, Body, ConnectionVector, VectorReader};

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// A capture that is being made, with times in milliseconds.
pub(crate) struct Tap {
    writer: CaptureWriter<Vec<u8>>,
}

/// One connection's packets, with sequence numbers relative to the first byte of data.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// Sequence numbers of the SYNs of client and server.
    pub(crate) isn: [u32; 2],
}

impl Pair {
    pub(crate) fn new(port: u16) -> Self {
        Self {
            client: SocketAddr::new([10, 0, 0, 1].into(), port),
            server: SocketAddr::new([10, 0, 0, 2].into(), 80),
            isn: [1000, 5000],
        }
    }
}

/// A segment: which side (0 the client), flags, relative sequence and acknowledgement number,
/// payload.
pub(crate) type Seg = (usize, u8, u64, u64, u32);

impl Tap {
    pub(crate) fn new() -> Self {
        Self::snapping(96)
    }

    pub(crate) fn snapping(snap: u32) -> Self {
        let writer = CaptureWriter::new(Vec::new(), &["tap"], snap, Checksums::Valid).unwrap();
        Self { writer }
    }

    /// A segment with the options that its SYN needs.
    pub(crate) fn at(&mut self, ms: f64, pair: &Pair, (side, flags, seq, ack, len): Seg) {
        let syn = flags & SYN != 0;
        let number = |side: usize, relative: u64| (u64::from(pair.isn[side]) + 1 + relative) as u32;
        self.image(
            ms,
            pair,
            side,
            TcpImage {
                seq: number(side, seq).wrapping_sub(u32::from(syn)),
                ack: if flags & ACK == 0 {
                    0
                } else {
                    number(1 - side, ack)
                },
                flags,
                window: 1000,
                segment_size: syn.then_some(1460),
                window_scale: syn.then_some(3),
                ..TcpImage::default()
            },
            len,
        );
    }

    pub(crate) fn image(
        &mut self,
        ms: f64,
        pair: &Pair,
        side: usize,
        tcp: TcpImage<'_>,
        payload: u32,
    ) {
        let ends = [pair.client, pair.server];
        self.writer
            .write(&PacketImage {
                time: EPOCH + Time::from_nanos((ms * 1e6).round() as u64),
                interface: 0,
                source: ends[side],
                destination: ends[1 - side],
                ecn: Ecn::NotEct,
                dscp: 0,
                transport: Transport::Tcp(tcp),
                payload,
            })
            .unwrap();
    }

    /// SYN at `ms`, SYN-ACK 20 ms later, ACK 30 ms later: the tap is near the client.
    pub(crate) fn handshake(&mut self, ms: f64, pair: &Pair) {
        self.at(ms, pair, (0, SYN, 0, 0, 0));
        self.at(ms + 20.0, pair, (1, SYN | ACK, 0, 0, 0));
        self.at(ms + 30.0, pair, (0, ACK, 0, 0, 0));
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.writer.into_inner().unwrap()
    }

    pub(crate) fn vectors(self) -> (Vec<ConnectionVector>, Report) {
        vectors(&self.bytes(), Options::default())
    }
}

/// When captures begin.
const EPOCH: Time = Time::from_secs(1_700_000_000);

pub(crate) fn try_vectors(
    capture: &[u8],
    options: Options,
) -> Result<(Vec<ConnectionVector>, Report), ConvertError> {
    let mut text = Vec::new();
    let scratch = || Ok(Cursor::new(Vec::new()));
    let plan = Plan::read(capture, &mut |_| true)?;
    let report = convert(
        capture,
        &plan,
        &mut text,
        None,
        scratch,
        options,
        Format::Original,
        &mut |_| true,
    )?;
    let read: Result<Vec<_>, _> = VectorReader::new(&text[..]).collect();
    Ok((read.expect("what is written can be read"), report))
}

pub(crate) fn vectors(capture: &[u8], options: Options) -> (Vec<ConnectionVector>, Report) {
    try_vectors(capture, options).expect("a good capture")
}

/// ADUs of a sequential vector as letter, bytes and pause in milliseconds, rounded to 10 us.
pub(crate) fn spoken(vector: &ConnectionVector) -> Vec<(char, u64, f64)> {
    let Body::Sequential(adus) = &vector.body else {
        panic!("concurrent: {vector:?}");
    };
    let letter = |party| match party {
        Role::Client => 'I',
        Role::Server => 'A',
    };
    adus.iter()
        .map(|(party, adu)| (letter(*party), adu.bytes, ms(adu.pause)))
        .collect()
}

/// ADUs of both sides of a concurrent vector.
pub(crate) fn at_once(vector: &ConnectionVector) -> [Vec<(u64, f64)>; 2] {
    let Body::Concurrent(sides) = &vector.body else {
        panic!("sequential: {vector:?}");
    };
    let both = |adu: &Adu| (adu.bytes, ms(adu.pause));
    [0, 1].map(|side| sides[side].iter().map(both).collect())
}

fn ms(time: Time) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}
