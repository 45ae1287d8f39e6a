//! Any datagrams at any times, to an end of a QUIC connection: it never panics, and the application
//! reads no more than what streams carried.

use std::sync::Arc;

use aqmlab_net::{Bytes, Ecn, Role, Time};
use aqmlab_quic::{Config, Connection, Limits};
use aqmlab_tcp::{CongestionControlKind, Law, SlowStartExit};

/// Bytes of the input that make a datagram with one packet of one frame.
const CHUNK: usize = 32;

/// Numbers of the longest frame.
const NUMBERS: usize = 5;

/// Datagrams to an end point.
pub fn check(input: &[u8]) {
    let Some((&[setup, control], chunks)) = input.split_first_chunk::<2>() else {
        return;
    };
    let [mut client, mut server] = Role::BOTH.map(|role| {
        let config = Arc::new(config(control, setup & 4 > 0));
        Connection::new(config, role, Time::ZERO)
    });
    let mut now = Time::ZERO;
    // The handshake, or a part of it, and data on its way.
    for _ in 0..setup >> 4 {
        now += Time::from_millis(10);
        exchange(&mut client, &mut server, now);
        now += Time::from_millis(10);
        exchange(&mut server, &mut client, now);
    }
    for end in [&mut client, &mut server] {
        if let Some(stream) = end.open(false) {
            end.write(stream, 50_000, false);
        }
    }
    let end = if setup & 1 == 0 {
        &mut client
    } else {
        &mut server
    };
    let mut out = Vec::new();
    let mut number = 0;
    for chunk in chunks.chunks(CHUNK) {
        now += Time::from_millis(u64::from(chunk[0]));
        if end.deadline() <= now {
            end.expire(now);
        }
        number += 1;
        end.receive(now, Ecn::Ect0, &datagram(chunk, number + u64::from(setup)));
        while let Some(event) = end.next_event() {
            if let aqmlab_quic::Event::Readable(stream) = event {
                let there = end.readable(stream);
                assert!(end.read(stream, u64::MAX) <= there);
            }
        }
        out.clear();
        while end.transmit(now, &mut out).is_some() {
            out.clear();
        }
    }
}

/// What one end sends reaches the other.
fn exchange(from: &mut Connection, to: &mut Connection, now: Time) {
    let mut carried = Vec::new();
    while let Some(sent) = from.transmit(now, &mut carried) {
        to.receive(now, sent.ecn, &carried);
        carried.clear();
    }
}

fn config(control: u8, ecn: bool) -> Config {
    let kinds = CongestionControlKind::all();
    let kind = kinds[usize::from(control) % kinds.len()];
    Config {
        stack: Law::stack(kind, SlowStartExit::Control, Bytes(1200)),
        datagram: 1200,
        initial_window: 12_000,
        ecn,
        burst: 10,
        in_bursts: false,
        connection_ids: 2,
        server_flight: 560,
        limits: Limits {
            data: 1 << 24,
            stream: 1 << 22,
            streams: [10, 10],
        },
        max_ack_delay: Time::from_millis(25),
        idle_timeout: Time::from_secs(30),
        early: None,
    }
}

/// A datagram in its carried form: a packet with a frame of the chunk's type and numbers, then the rest
/// of the chunk unchanged.
fn datagram(chunk: &[u8], number: u64) -> Vec<u8> {
    let byte = |at: usize| chunk.get(at).copied().unwrap_or(0);
    let first = [0x40, 0x41, 0xc1, 0xd1, 0xe1, 0x40, 0x43, 0x40][usize::from(byte(1) & 7)];
    let mut out = vec![0x04, 0xb0, first];
    let packet = match byte(1) >> 6 {
        0 => u64::from(byte(2)),
        1 => u64::MAX - u64::from(byte(2)),
        _ => number,
    };
    out.extend(packet.to_le_bytes());
    out.push(byte(3) & 0x1f);
    for place in 0..NUMBERS {
        let at = 4 + 5 * place;
        let low = u64::from(u32::from_le_bytes([
            byte(at + 1),
            byte(at + 2),
            byte(at + 3),
            byte(at + 4),
        ]));
        let value = match byte(at) & 7 {
            0 => low & 0xff,
            1 => (1 << 62) - 1 - (low & 0xffff),
            2 => u64::MAX - (low & 0xffff),
            3 => low << 30,
            4 => u64::from(byte(at) >> 4),
            _ => low & 0xffff,
        };
        out.extend(value.to_le_bytes());
    }
    out.extend(chunk.iter().skip(4 + 5 * NUMBERS));
    out
}
