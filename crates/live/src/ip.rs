//! IPv4 packets as a router reads them: what a queue needs to know, and the mark.

use std::net::{Ipv4Addr, SocketAddrV4};

use aqmlab_aqm::{Ack, Details};
use aqmlab_capture::tcp_options;
use aqmlab_net::{Ecn, FNV_BASIS, FlowKey, Packet, fnv1a};

use crate::routes::Side;
use crate::shell::NEAR;

const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;
/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// The fields of a TCP segment that show whether it was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    /// Bytes of data.
    pub(crate) len: u32,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
}

/// The headers of a packet of TCP or UDP over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) source: SocketAddrV4,
    pub(crate) destination: SocketAddrV4,
    pub(crate) ecn: Ecn,
    /// Differentiated services code point.
    pub(crate) dscp: u8,
    /// Nothing if it is a datagram of UDP.
    pub(crate) segment: Option<Segment>,
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from(word(bytes, at)) << 16 | u32::from(word(bytes, at + 2))
}

impl Headers {
    /// Reads them; nothing if the packet is no whole TCP or UDP packet over IPv4.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let rest = payload(packet).filter(|_| !is_fragment(packet))?;
        let segment = match packet[9] {
            TCP => Some(read_segment(rest)?),
            UDP if rest.len() >= UDP_HEADER => None,
            _ => return None,
        };
        let address = |at: usize, port: usize| {
            SocketAddrV4::new(double_word(packet, at).into(), word(rest, port))
        };
        Some(Self {
            source: address(12, 0),
            destination: address(16, 2),
            ecn: Ecn::from_bits(packet[1]),
            dscp: packet[1] >> 2,
            segment,
        })
    }
}

/// What a queue sees of any packet; nothing if it is no whole one of IPv4. Packets of one flow have
/// the same addresses, protocol and ports.
pub(crate) fn packet(bytes: &[u8]) -> Option<Packet> {
    let rest = payload(bytes)?;
    // Only the first fragment has ports, so that no fragment goes by them.
    let has_ports = matches!(bytes[9], TCP | UDP) && !is_fragment(bytes) && rest.len() >= 4;
    let ports = if has_ports { double_word(rest, 0) } else { 0 };
    let fields = [double_word(bytes, 12), double_word(bytes, 16), ports];
    // FNV-1a: the disciplines hash it again, with a seed of their own.
    let hashed = fields.into_iter().chain([u32::from(bytes[9])]);
    let flow = fnv1a(FNV_BASIS, hashed.flat_map(u32::to_be_bytes));
    Some(Packet {
        size: bytes.len() as u32,
        ecn: Ecn::from_bits(bytes[1]),
        dscp: bytes[1] >> 2,
        flow: FlowKey(flow),
    })
}

/// What a whole IPv4 packet carries.
pub(crate) fn payload(packet: &[u8]) -> Option<&[u8]> {
    if packet.len() < IP_HEADER || packet[0] >> 4 != 4 {
        return None;
    }
    let header = usize::from(packet[0] & 15) * 4;
    if header < IP_HEADER || usize::from(word(packet, 2)) != packet.len() {
        return None;
    }
    packet.get(header..)
}

/// Who sent a packet; nothing if it is no whole one of IPv4.
pub(crate) fn source(packet: &[u8]) -> Option<Ipv4Addr> {
    payload(packet).map(|_| double_word(packet, 12).into())
}

/// Who sent a whole packet of IPv4, and who gets it.
pub(crate) fn hosts(packet: &[u8]) -> [Ipv4Addr; 2] {
    [12, 16].map(|at| double_word(packet, at).into())
}

/// Whether it is a part of a larger packet.
fn is_fragment(packet: &[u8]) -> bool {
    word(packet, 6) & 0x3fff != 0
}

/// A packet that may be the first of its kind between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The SYN of a client.
    Tcp(SocketAddrV4, SocketAddrV4),
    /// A datagram, or the first fragment of one.
    Udp(SocketAddrV4, SocketAddrV4),
    /// A whole echo request of ICMP, from and to these addresses.
    Echo(Ipv4Addr, Ipv4Addr),
}

impl Opening {
    /// Reads one; nothing if the packet opens nothing.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        const SYN_ACK: u8 = 0x12;
        const SYN: u8 = 2;
        const ECHO_REQUEST: u8 = 8;
        let rest = payload(packet)?;
        let is_later_fragment = word(packet, 6) & 0x1fff != 0;
        if is_later_fragment || rest.len() < UDP_HEADER {
            return None;
        }
        let [from, to] = [12, 16].map(|at| Ipv4Addr::from(double_word(packet, at)));
        let source = SocketAddrV4::new(from, word(rest, 0));
        let destination = SocketAddrV4::new(to, word(rest, 2));
        match packet[9] {
            TCP if rest.len() >= TCP_HEADER && rest[13] & SYN_ACK == SYN => {
                Some(Self::Tcp(source, destination))
            }
            UDP => Some(Self::Udp(source, destination)),
            ICMP if rest[0] == ECHO_REQUEST && !is_fragment(packet) => Some(Self::Echo(from, to)),
            _ => None,
        }
    }
}

/// What a discipline may ask of a whole IPv4 packet, beside what it sees of every one.
pub(crate) fn details(packet: &[u8]) -> Details {
    let hosts = [12, 16].map(|at| double_word(packet, at));
    let mut ends = hosts.iter().copied().map(Ipv4Addr::from);
    let client = ends.find_map(|end| match end {
        // The program behind a link is the first client.
        NEAR => Some(0),
        end => Side::Clients
            .has(end)
            .then(|| Side::Clients.host(end) as u32),
    });
    let header = usize::from(packet[0] & 15) * 4;
    let tcp = packet.get(header..);
    let tcp = tcp.filter(|_| packet[9] == TCP && !is_fragment(packet));
    let ack = tcp.filter(|tcp| read_segment(tcp).is_some());
    Details {
        hosts: hosts.map(u64::from),
        client,
        ack: ack.and_then(acknowledgement),
    }
}

/// What a segment acknowledges.
fn acknowledgement(tcp: &[u8]) -> Option<Ack> {
    const ACK: u8 = 16;
    const SYN: u8 = 2;
    const ECN: u8 = 0xc0;
    let flags = tcp[13];
    if flags & (ACK | SYN) != ACK {
        return None;
    }
    let header = usize::from(tcp[12] >> 4) * 4;
    Some(Ack {
        number: double_word(tcp, 8),
        is_pure: header == tcp.len() && flags & !ECN == ACK,
        // With AE, the lowest bit of the byte before.
        ecn: flags & ECN | tcp[12] & 1,
        sack: sack_blocks(&tcp[TCP_HEADER..header]),
    })
}

/// The SACK blocks among the options of a segment.
fn sack_blocks(options: &[u8]) -> Vec<(u32, u32)> {
    const SACK: u8 = 5;
    let blocks = tcp_options(options).find_map(|option| option.strip_prefix(&[SACK]));
    let blocks = blocks
        .map_or(&[][..], |blocks| &blocks[1..])
        .chunks_exact(8);
    blocks
        .map(|block| (double_word(block, 0), double_word(block, 4)))
        .collect()
}

fn read_segment(tcp: &[u8]) -> Option<Segment> {
    if tcp.len() < TCP_HEADER {
        return None;
    }
    let header = usize::from(tcp[12] >> 4) * 4;
    if header < TCP_HEADER || header > tcp.len() {
        return None;
    }
    Some(Segment {
        seq: double_word(tcp, 4),
        len: (tcp.len() - header) as u32,
        syn: tcp[13] & 2 != 0,
        fin: tcp[13] & 1 != 0,
        rst: tcp[13] & 4 != 0,
    })
}

/// Bytes of data in a whole datagram of UDP.
pub(crate) fn datagram_bytes(packet: &[u8]) -> u64 {
    let bytes = payload(packet).map_or(0, <[u8]>::len);
    bytes.saturating_sub(UDP_HEADER) as u64
}

/// Bytes of data in a fragment of a datagram of UDP; 0 if the packet is none.
pub(crate) fn datagram_in_fragments(packet: &[u8]) -> u64 {
    match payload(packet).filter(|_| packet[9] == UDP && is_fragment(packet)) {
        Some(rest) if word(packet, 6) & 0x1fff != 0 => rest.len() as u64,
        Some(rest) => rest.len().saturating_sub(UDP_HEADER) as u64,
        None => 0,
    }
}

/// Sets congestion experienced in a packet whose headers were [read](Headers::read), and brings
/// the header's checksum up to date (RFC 1624, equation 3). TCP's own checksum does not cover it.
pub(crate) fn set_ce(packet: &mut [u8]) {
    let old = word(packet, 0);
    packet[1] |= Ecn::Ce as u8;
    let new = word(packet, 0);
    let sum = u32::from(!word(packet, 10)) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use aqmlab_capture::checksum;
    use aqmlab_net::RandomStream;

    use super::*;

    /// A packet of `len` bytes of TCP data with a right IP checksum.
    pub(crate) fn tcp(
        source: SocketAddrV4,
        destination: SocketAddrV4,
        tos: u8,
        (seq, flags, len): (u32, u8, usize),
    ) -> Vec<u8> {
        let size = IP_HEADER + TCP_HEADER + len;
        let mut packet = vec![0; size];
        packet[0] = 0x45;
        packet[1] = tos;
        packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        packet[6] = 0x40;
        packet[8] = 64;
        packet[9] = TCP;
        packet[12..16].copy_from_slice(&source.ip().octets());
        packet[16..20].copy_from_slice(&destination.ip().octets());
        let sum = checksum(&packet[..IP_HEADER]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet[20..22].copy_from_slice(&source.port().to_be_bytes());
        packet[22..24].copy_from_slice(&destination.port().to_be_bytes());
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet[32] = 5 << 4;
        packet[33] = flags;
        packet
    }

    /// A datagram with so many bytes of data.
    pub(crate) fn udp(source: SocketAddrV4, destination: SocketAddrV4, len: usize) -> Vec<u8> {
        let mut packet = tcp(source, destination, 0, (0, 0, len));
        let size = IP_HEADER + UDP_HEADER + len;
        packet.truncate(size);
        packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        packet[9] = UDP;
        packet[10..12].fill(0);
        let sum = checksum(&packet[..IP_HEADER]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn ends() -> (SocketAddrV4, SocketAddrV4) {
        (
            "10.0.0.1:80".parse().unwrap(),
            "10.128.0.2:2000".parse().unwrap(),
        )
    }

    #[test]
    fn readers_take_any_bytes() {
        let mut draws = RandomStream::new(3, "bytes", 0);
        for _ in 0..100_000 {
            let mut bytes: Vec<u8> = (0..draws.below(90))
                .map(|_| draws.below(256) as u8)
                .collect();
            // Most have what a whole packet needs, so that readers go on.
            if bytes.len() >= 10 && draws.below(8) > 0 {
                bytes[0] = 0x45 + draws.below(3) as u8;
                let size = bytes.len() as u16;
                bytes[2..4].copy_from_slice(&size.to_be_bytes());
                bytes[6] = [0, 0x40, 0x20][draws.below(3)];
                bytes[9] = [ICMP, TCP, UDP, 99][draws.below(4)];
            }
            let whole = packet(&bytes).is_some();
            assert_eq!(whole, source(&bytes).is_some());
            assert!(whole || Headers::read(&bytes).is_none() && Opening::read(&bytes).is_none());
            if whole {
                details(&bytes);
                let size = bytes.len() as u64;
                assert!(datagram_bytes(&bytes) < size && datagram_in_fragments(&bytes) < size);
                if Headers::read(&bytes).is_some() {
                    set_ce(&mut bytes);
                }
            }
        }
    }

    #[test]
    fn headers_of_a_segment() {
        let (source, destination) = ends();
        let packet = tcp(source, destination, 46 << 2 | 2, (77, 0x11, 100));
        let read = Headers::read(&packet).unwrap();
        assert_eq!((read.source, read.destination), (source, destination));
        assert_eq!((read.dscp, read.ecn), (46, Ecn::Ect0));
        let segment = Segment {
            seq: 77,
            len: 100,
            syn: false,
            fin: true,
            rst: false,
        };
        assert_eq!(read.segment, Some(segment));
    }

    #[test]
    fn what_an_ack_says() {
        let (source, destination) = ends();
        let mut packet = tcp(source, destination, 0, (1, 16, 0));
        packet[28..32].copy_from_slice(&77_u32.to_be_bytes());
        let found = details(&packet);
        assert_eq!(found.hosts, [0x0a00_0001, 0x0a80_0002]);
        assert_eq!(found.client, Some(1));
        let ack = found.ack.unwrap();
        assert_eq!((ack.number, ack.is_pure, ack.ecn), (77, true, 0));
        assert_eq!(ack.sack, []);
        // ECE, CWR and AE.
        packet[32] |= 1;
        packet[33] |= 0xc0;
        assert_eq!(details(&packet).ack.unwrap().ecn, 0xc1);
        // Two no-operations and a SACK block.
        packet[32] = 8 << 4;
        packet.extend([1, 1, 5, 10, 0, 0, 0, 100, 0, 0, 0, 200]);
        let ack = details(&packet).ack.unwrap();
        assert_eq!((ack.is_pure, ack.sack), (true, vec![(100, 200)]));
        // Data, a reset, a SYN, and options that are cut off.
        packet.push(0);
        assert!(!details(&packet).ack.unwrap().is_pure);
        packet.pop();
        packet[33] = 16 | 4;
        assert!(!details(&packet).ack.unwrap().is_pure);
        packet[33] = 16 | 2;
        assert_eq!(details(&packet).ack, None);
        packet[33] = 16;
        packet[43] = 99;
        assert_eq!(details(&packet).ack.unwrap().sack, []);
    }

    #[test]
    fn what_is_no_whole_packet_is_refused() {
        let (source, destination) = ends();
        let packet = tcp(source, destination, 0, (0, 2, 10));
        for len in 0..packet.len() {
            assert_eq!(Headers::read(&packet[..len]), None, "{len}");
        }
        for (at, wrong) in [(0, 0x65), (0, 0x42), (6, 0x20), (9, 1), (32, 0xf0), (32, 0)] {
            let mut packet = packet.clone();
            packet[at] = wrong;
            assert_eq!(Headers::read(&packet), None, "byte {at}");
        }
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        let (source, destination) = ends();
        for tos in 0..=255 {
            for len in [0, 1, 999] {
                let mut packet = tcp(source, destination, tos, (1, 16, len));
                set_ce(&mut packet);
                assert_eq!(packet[1], tos | 3);
                assert_eq!(checksum(&packet[..IP_HEADER]), 0, "tos {tos}, {len} bytes");
            }
        }
    }

    #[test]
    fn what_opens_a_flow() {
        let (source, destination) = ends();
        let syn = tcp(source, destination, 0, (1, 2, 0));
        assert_eq!(Opening::read(&syn), Some(Opening::Tcp(source, destination)));
        for flags in [0x12, 0x10, 4] {
            let other = tcp(source, destination, 0, (1, flags, 0));
            assert_eq!(Opening::read(&other), None);
        }
        let mut datagram = syn;
        datagram[9] = UDP;
        let opening = Some(Opening::Udp(source, destination));
        assert_eq!(Opening::read(&datagram), opening);
        datagram[6] = 0x20;
        assert_eq!(Opening::read(&datagram), opening);
        datagram[7] = 1;
        assert_eq!(Opening::read(&datagram), None);
        let mut echo = tcp(source, destination, 0, (1, 2, 0));
        echo[9] = ICMP;
        assert_eq!(Opening::read(&echo), None);
        echo[20] = 8;
        let opening = Opening::Echo(*source.ip(), *destination.ip());
        assert_eq!(Opening::read(&echo), Some(opening));
    }
}
