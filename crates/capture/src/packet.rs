//! A packet of which the headers have been read, and the marks by which it is known again.

use aqmlab_net::Time;

use crate::decode::{Endpoint, SYN, Skip, TcpHeader, UDP, ticks, transport};
use crate::hash::{Map, step};
use crate::layers::{datagram, u16_at};
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
    /// The sender's clock in a TCP segment's time stamp (RFC 7323).
    pub(crate) ticks: Option<u32>,
    /// Bytes behind the IP headers, on the wire.
    pub(crate) carried: u32,
    /// Whether it may be the first datagram of a QUIC connection.
    pub(crate) may_begin_quic: bool,
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
            ticks: None,
            carried: 0,
            may_begin_quic: false,
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
        packet.carried = found.len as u32;
        if packet.header.is_ok() {
            packet.ticks = ticks(found.payload);
        }
        if let Some(frame) = found.mirrored {
            packet.original = u32::try_from(frame).unwrap_or(packet.original);
        }
        let ports = match packet.header {
            Ok(header) => [header.source.port, header.destination.port],
            Err(_) if found.protocol == UDP && found.payload.len() >= 4 => {
                let port =
                    |at: usize| u16::from_be_bytes([found.payload[at], found.payload[at + 1]]);
                packet.may_begin_quic = may_begin_quic(found.payload);
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
        // Behind a short address of cooked frames stand bytes without meaning.
        let shown = |at: usize| {
            record
                .data
                .get(at)
                .map_or(0, |len| usize::from(*len).min(8))
        };
        let (link, kind) = match record.link {
            1 => (record.data.get(..12), usize::MAX),
            113 => (record.data.get(..6 + shown(5)), 14),
            276 => (record.data.get(..12 + shown(11)), 0),
            _ => (None, usize::MAX),
        };
        let protocol = u16_at(record.data, kind).unwrap_or_default();
        let place =
            u64::from(protocol) << 40 | u64::from(record.interface) << 8 | u64::from(found.ttl);
        packet.place = mixed(place, link.unwrap_or_default());
        packet
    }
}

impl Packet {
    /// Gives a client the name that it had in front of a translator.
    #[inline]
    pub(crate) fn rename(&mut self, aliases: &Map<[Endpoint; 2], Endpoint>) {
        if aliases.is_empty() {
            return;
        }
        self.ends = self.ends.map(|ends| renamed(aliases, ends));
        if let (Ok(header), Some([source, destination])) = (&mut self.header, self.ends) {
            (header.source, header.destination) = (source, destination);
        }
    }
}

/// Length of a TCP header that was captured in part at least.
fn header_len(segment: &[u8]) -> usize {
    let stated = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    stated.min(segment.len())
}

/// Whether a UDP datagram may begin a QUIC connection: a long header with a version of RFC 9000, RFC
/// 9369 or a draft. Zeros and what was not captured say nothing.
fn may_begin_quic(datagram: &[u8]) -> bool {
    let Some(&[flags, a, b, c, d]) = datagram.get(8..13) else {
        return true;
    };
    match (flags, u32::from_be_bytes([a, b, c, d])) {
        (0, 0) => true,
        (_, 1 | 0x6b33_43cf | 0xff00_0000..=0xff00_00ff) => flags & 0xc0 == 0xc0,
        _ => false,
    }
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

/// The ends of a packet, with the names that clients had first.
#[inline]
fn renamed(aliases: &Map<[Endpoint; 2], Endpoint>, ends: [Endpoint; 2]) -> [Endpoint; 2] {
    if aliases.is_empty() {
        return ends;
    }
    let [source, destination] = ends;
    if let Some(first) = aliases.get(&[source, destination]) {
        return [*first, destination];
    }
    match aliases.get(&[destination, source]) {
        Some(first) => [source, *first],
        None => ends,
    }
}

#[cfg(test)]
mod tests {
    use super::may_begin_quic;

    #[test]
    fn a_quic_connection_begins_with_a_long_header() {
        let cases: [(&[u8], bool); 7] = [
            (&[0xc3, 0, 0, 0, 1], true),
            (&[0xd3, 0x6b, 0x33, 0x43, 0xcf], true),
            (&[0, 0, 0, 0, 0], true),        // payload replaced by zeros
            (&[0xc3], true),                 // not captured
            (&[0x43, 0, 0, 0, 1], false),    // a short header
            (&[0x80, 0x60, 0, 0, 1], false), // RTP
            (&[4, 0, 0, 0, 9], false),       // WireGuard
        ];
        for (first, expected) in cases {
            let datagram = [&[0; 8], first].concat();
            assert_eq!(may_begin_quic(&datagram), expected, "{first:02x?}");
        }
    }
}
