//! What a packet costs: makes a capture in memory and turns it into vectors.
//!
//! `cargo run --release -p aqmlab-capture --example speed [CONNECTIONS [ROUNDS]]`. Where a tool
//! counts instructions, the difference between 2 rounds and 1 is the cost itself.

use std::io::Cursor;
use std::net::SocketAddr;
use std::time::Instant;

use aqmlab_capture::{
    ACK, CaptureWriter, Checksums, FIN, Format, Options, PacketImage, Plan, SYN, TcpImage,
    Transport, convert,
};
use aqmlab_net::{Ecn, Time};

/// Segments of a connection: what a client and a server with a response of 12 segments send.
const SEGMENTS: [(usize, u8, u32, u32, u32); 26] = {
    let mut segments = [(0, ACK, 301, 1, 0); 26];
    segments[0] = (0, SYN, 0, 0, 0);
    segments[1] = (1, SYN | ACK, 0, 1, 0);
    segments[2] = (0, ACK, 1, 1, 0);
    segments[3] = (0, ACK, 1, 1, 300);
    let mut n = 0;
    while n < 12 {
        segments[4 + 3 * n / 2] = (1, ACK, 1 + 1460 * n as u32, 301, 1460);
        if n % 2 == 1 {
            segments[3 + 3 * (n + 1) / 2] = (0, ACK, 301, 1 + 1460 * (n as u32 + 1), 0);
        }
        n += 1;
    }
    segments[22] = (1, ACK | FIN, 17521, 301, 0);
    segments[23] = (0, ACK, 301, 17522, 0);
    segments[24] = (0, ACK | FIN, 301, 17522, 0);
    segments[25] = (1, ACK, 17522, 302, 0);
    segments
};

/// So many connections at once, `waves` times.
fn capture(connections: u32, waves: u32) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), &["tap"], 96, Checksums::Valid).unwrap();
    let mut time = Time::from_secs(1_700_000_000);
    for wave in 0..waves {
        for (side, flags, seq, ack, payload) in SEGMENTS {
            for number in 0..connections {
                // Neither neighbours in the table nor in memory.
                let number = number.wrapping_mul(7919) % connections;
                let port = 1024 + (number % 60_000) as u16;
                let client = SocketAddr::from(([10, wave as u8, (number / 60_000) as u8, 1], port));
                let server = SocketAddr::from(([192, 168, 1, (number % 200) as u8], 80));
                let ends = [client, server];
                time += Time::from_micros(10);
                writer
                    .write(&PacketImage {
                        time,
                        interface: 0,
                        source: ends[side],
                        destination: ends[1 - side],
                        ecn: Ecn::NotEct,
                        dscp: 0,
                        transport: Transport::Tcp(TcpImage {
                            seq,
                            ack,
                            flags,
                            window: 65_535,
                            timestamps: Some((1, 2)),
                            ..TcpImage::default()
                        }),
                        payload,
                    })
                    .unwrap();
            }
        }
    }
    writer.into_inner().unwrap()
}

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number"));
    let connections = numbers.next().unwrap_or(10_000);
    let rounds = numbers.next().unwrap_or(1);
    let file = capture(connections, 4);
    for _ in 0..rounds {
        let begin = Instant::now();
        let mut out = Vec::new();
        let scratch = || Ok(Cursor::new(Vec::new()));
        let options = Options::default();
        let plan = Plan::read(&file[..], &mut |_| true).unwrap();
        let report = convert(
            &file[..],
            &plan,
            &mut out,
            None,
            scratch,
            options,
            Format::Original,
            &mut |_| true,
        )
        .unwrap();
        let packets = report.packets.read;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{packets} packets, {} vectors, {:.2} million packets per second",
            report.connections.made,
            packets as f64 / seconds / 1e6
        );
    }
}
