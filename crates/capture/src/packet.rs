//! A packet of which the headers have been read, and the marks by which it is known again.

use aqmlab_net::Time;

use crate::decode::{Endpoint, SYN, Skip, TcpHeader, transport};
use crate::hash::step;
use crate::layers::datagram;
use crate::record::Record;

/// A packet with its headers read.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Since 1970; simple packet blocks have no time.
    pub time: Option<Time>,
    /// Where it was captured.
    pub interface: u32,
    /// Length on the wire.
    pub original: u32,
    /// The TCP header, or why there is none.
    pub header: Result<TcpHeader, Skip>,
    /// Of every IP packet: who sends it, and who is to receive it; ports of TCP and UDP.
    pub ends: Option<[Endpoint; 2]>,
    /// Whether the file says that it came from this side of the tap.
    pub outward: Option<bool>,
    /// Mark of what tells sights of a packet apart: interface, addresses of the link, hops left.
    pub(crate) place: u64,
    /// Mark of what stays on the way: identification, length, options.
    pub(crate) content: u64,
    /// Whether it has an identification, which a retransmission does not share.
    pub(crate) is_numbered: bool,
}

impl Packet {
    /// Reads the headers of a captured packet.
    #[inline]
    pub fn read(record: &Record<'_>) -> Self {
        let mut packet = Self {
            time: record.time,
            interface: record.interface,
            original: record.original,
            header: Err(Skip::NoTime),
            ends: None,
            outward: record.outward.or_else(|| cooked_direction(record)),
            place: 0,
            content: 0,
            is_numbered: false,
        };
        let found = match datagram(record.link, record.data, record.original) {
            Ok(found) => found,
            Err(skip) => {
                packet.header = Err(skip);
                return packet;
            }
        };
        packet.header = transport(&found);
        let ports = match packet.header {
            Ok(header) => [header.source.port, header.destination.port],
            Err(_) if found.protocol == 17 && found.payload.len() >= 4 => {
                let port =
                    |at: usize| u16::from_be_bytes([found.payload[at], found.payload[at + 1]]);
                [port(0), port(2)]
            }
            Err(_) => [0, 0],
        };
        let end = |address, port| Endpoint { address, port };
        packet.ends = Some([
            end(found.source, ports[0]),
            end(found.destination, ports[1]),
        ]);
        packet.is_numbered = found.id != 0;
        let numbers =
            u64::from(found.id) << 32 | (found.len as u64) << 8 | u64::from(found.protocol);
        // A router may change the segment size that a SYN announces, and a translator addresses,
        // ports and the checksum; numbers, windows and other options pass.
        let stays = match packet.header {
            Ok(header) if header.flags & SYN == 0 => {
                found.payload.get(20..60.min(header_len(found.payload)))
            }
            Ok(_) => None,
            Err(_) => found.payload.get(8..24.min(found.payload.len())),
        };
        packet.content = mixed(numbers, stays.unwrap_or_default());
        let link = match record.link {
            1 => record.data.get(..12),
            113 => record.data.get(..2),
            276 => record.data.get(4..11),
            _ => None,
        };
        let place = u64::from(record.interface) << 8 | u64::from(found.ttl);
        packet.place = mixed(place, link.unwrap_or_default());
        packet
    }
}

/// Length of a TCP header that was captured in part at least.
fn header_len(segment: &[u8]) -> usize {
    let stated = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    stated.min(segment.len())
}

/// What Linux's cooked frames say: to this host, or from it.
fn cooked_direction(record: &Record<'_>) -> Option<bool> {
    let kind = match record.link {
        113 => *record.data.get(1)?,
        276 => *record.data.get(10)?,
        _ => return None,
    };
    match kind {
        0 => Some(false),
        4 => Some(true),
        _ => None,
    }
}

/// A mark of numbers and bytes.
pub(crate) fn mixed(number: u64, bytes: &[u8]) -> u64 {
    let mut hash = step(0x5851_f42d_4c95_7f2d, number);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = step(hash, u64::from_le_bytes(word) ^ (chunk.len() as u64) << 59);
    }
    hash
}
