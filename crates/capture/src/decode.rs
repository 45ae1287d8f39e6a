//! From captured bytes to TCP headers.
//!
//! Only headers are looked at, and of TCP's only the fixed 20 bytes must have been captured:
//! lengths come from the IP header, so a snap length of 96 bytes is enough. Checksums are not
//! checked: network cards fill them in behind the tap.

use crate::counts::{Counts, Reason};

/// The sender or receiver of packets: address (IPv4 ones mapped into IPv6, RFC 4291, section
/// 2.5.5.2) and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address, in two big-endian halves.
    pub address: [u64; 2],
    /// The port.
    pub port: u16,
}

/// What a TCP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Who sends it.
    pub source: Endpoint,
    /// Who is to receive it.
    pub destination: Endpoint,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number; meaningful with [`ACK`].
    pub ack: u32,
    /// Control bits as in the header: [`FIN`], [`SYN`], ...
    pub flags: u8,
    /// The window field, not scaled.
    pub window: u16,
    /// Bytes of payload on the wire.
    pub payload: u32,
    /// Of a SYN: maximum segment size and window scale.
    pub options: SynOptions,
}

/// Control bit: no more data.
pub const FIN: u8 = 1;
/// Control bit: opens a connection.
pub const SYN: u8 = 2;
/// Control bit: the connection is gone.
pub const RST: u8 = 4;
/// Control bit: the acknowledgement number is valid.
pub const ACK: u8 = 16;

/// What a SYN may announce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size (RFC 9293, section 3.7.1).
    pub segment_size: Option<u16>,
    /// Window scale (RFC 7323, section 2), at most 14.
    pub window_scale: Option<u8>,
}

/// Why a packet is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The format of the link's headers is none of ours.
    UnknownLink,
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// Neither TCP nor a header in front of it.
    NotTcp,
    /// Part of a fragmented datagram.
    Fragment,
    /// Headers are not wholly captured.
    SnapTooShort,
    /// Lengths of headers contradict each other.
    Malformed,
    /// A packet without a time stamp (simple packet block).
    NoTime,
}

impl Reason for Skip {
    const NAMES: &[&str] = &[
        "unknown link type",
        "not IP",
        "not TCP",
        "IP fragment",
        "headers cut by the snap length",
        "malformed headers",
        "no time stamp",
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// How many packets were skipped, and why.
pub type Skipped = Counts<Skip>;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;

/// The TCP header of a packet whose captured bytes are `data`.
#[inline]
pub fn decode(link: u16, data: &[u8], original: u32) -> Result<TcpHeader, Skip> {
    let (protocol, offset) = network_layer(link, data)?;
    let packet = data.get(offset..).ok_or(Skip::SnapTooShort)?;
    let on_wire = (original as usize).max(data.len()) - offset;
    let version = *packet.first().ok_or(Skip::SnapTooShort)? >> 4;
    match (protocol, version) {
        (IPV4, 4) => ipv4(packet, on_wire),
        (IPV6, 6) => ipv6(packet, on_wire),
        (IPV4 | IPV6, _) => Err(Skip::Malformed),
        _ => Err(Skip::NotIp),
    }
}

/// The EtherType of what the frame carries, and where that begins.
#[inline]
fn network_layer(link: u16, data: &[u8]) -> Result<(u16, usize), Skip> {
    const NULL: u16 = 0;
    const ETHERNET: u16 = 1;
    const RAW: [u16; 5] = [101, 12, 14, 228, 229];
    const LOOP: u16 = 108;
    const LINUX_SLL: u16 = 113;
    const LINUX_SLL2: u16 = 276;
    match link {
        ETHERNET => behind_tags(data, 12, 14),
        LINUX_SLL => behind_tags(data, 14, 16),
        LINUX_SLL2 => behind_tags(data, 0, 20),
        // Four bytes name the address family, whose numbers differ between systems.
        NULL | LOOP => by_version(data, 4),
        _ if RAW.contains(&link) => by_version(data, 0),
        _ => Err(Skip::UnknownLink),
    }
}

/// Passes over VLAN tags (IEEE 802.1Q and 802.1ad), any number of them.
#[inline]
fn behind_tags(data: &[u8], at: usize, offset: usize) -> Result<(u16, usize), Skip> {
    const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
    let mut protocol = u16_at(data, at)?;
    let mut offset = offset;
    while TAGS.contains(&protocol) {
        protocol = u16_at(data, offset + 2)?;
        offset += 4;
    }
    Ok((protocol, offset))
}

/// Where nothing else says so, the first bits of the IP header tell its version.
fn by_version(data: &[u8], offset: usize) -> Result<(u16, usize), Skip> {
    match data.get(offset).ok_or(Skip::SnapTooShort)? >> 4 {
        4 => Ok((IPV4, offset)),
        6 => Ok((IPV6, offset)),
        _ => Err(Skip::NotIp),
    }
}

#[inline]
fn ipv4(packet: &[u8], on_wire: usize) -> Result<TcpHeader, Skip> {
    let header = packet.get(..20).ok_or(Skip::SnapTooShort)?;
    let header_len = usize::from(header[0] & 15) * 4;
    // Captured before the network card cuts it into segments, a packet may state no length.
    let total = match usize::from(u16_at(header, 2)?) {
        0 => on_wire,
        total => total,
    };
    // More fragments follow, or this is not the first.
    let fragment = u16_at(header, 6)? & 0x3fff != 0;
    if fragment {
        return Err(Skip::Fragment);
    }
    if header[9] != TCP {
        return Err(Skip::NotTcp);
    }
    if header_len < 20 || total < header_len {
        return Err(Skip::Malformed);
    }
    let mapped = |at| [0, 0xffff_0000_0000 | u64::from(u32_of(header, at))];
    let segment = packet.get(header_len..).ok_or(Skip::SnapTooShort)?;
    tcp(segment, total - header_len, mapped(12), mapped(16))
}

fn ipv6(packet: &[u8], on_wire: usize) -> Result<TcpHeader, Skip> {
    let header = packet.get(..40).ok_or(Skip::SnapTooShort)?;
    let end = match usize::from(u16_at(header, 4)?) {
        0 => on_wire,
        payload => 40 + payload,
    };
    let offset = behind_extensions(packet, header[6])?;
    let segment = packet.get(offset..).ok_or(Skip::SnapTooShort)?;
    let len = end.checked_sub(offset).ok_or(Skip::Malformed)?;
    let address = |at| {
        let half = |at| u64::from(u32_of(header, at)) << 32 | u64::from(u32_of(header, at + 4));
        [half(at), half(at + 8)]
    };
    tcp(segment, len, address(8), address(24))
}

/// Where the TCP header begins behind IPv6 extension headers (RFC 8200, section 4).
fn behind_extensions(packet: &[u8], next: u8) -> Result<usize, Skip> {
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    let (mut next, mut offset) = (next, 40);
    loop {
        match next {
            TCP => return Ok(offset),
            // Hop-by-hop, routing, destination options, mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 | FRAGMENT | AUTHENTICATION => {}
            _ => return Err(Skip::NotTcp),
        }
        let header = packet.get(offset..offset + 8).ok_or(Skip::SnapTooShort)?;
        offset += match next {
            // A fragment that is the whole packet (RFC 6946) may pass.
            FRAGMENT if u16_at(header, 2)? & 0xfff9 != 0 => return Err(Skip::Fragment),
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        next = header[0];
    }
}

#[inline]
fn tcp(
    segment: &[u8],
    len: usize,
    source: [u64; 2],
    destination: [u64; 2],
) -> Result<TcpHeader, Skip> {
    let header = segment.get(..20).ok_or(Skip::SnapTooShort)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < 20 || len < header_len {
        return Err(Skip::Malformed);
    }
    let flags = header[13];
    let options = match flags & SYN {
        0 => SynOptions::default(),
        _ => SynOptions::read(&segment[20..header_len.min(segment.len())]),
    };
    let endpoint = |address, at| Endpoint {
        address,
        port: u16::from_be_bytes([header[at], header[at + 1]]),
    };
    Ok(TcpHeader {
        source: endpoint(source, 0),
        destination: endpoint(destination, 2),
        seq: u32_of(header, 4),
        ack: u32_of(header, 8),
        flags,
        window: u16_at(header, 14)?,
        payload: (len - header_len) as u32,
        options,
    })
}

impl SynOptions {
    /// Reads what has been captured of a SYN's options; stops at what makes no sense.
    fn read(mut options: &[u8]) -> Self {
        let mut found = Self::default();
        loop {
            match *options {
                [1, ref rest @ ..] => options = rest,
                [2, 4, high, low, ref rest @ ..] => {
                    found.segment_size = Some(u16::from_be_bytes([high, low]));
                    options = rest;
                }
                [3, 3, scale, ref rest @ ..] => {
                    found.window_scale = Some(scale.min(14));
                    options = rest;
                }
                [2..=255, len @ 2..=255, ..] if options.len() > usize::from(len) => {
                    options = &options[usize::from(len)..];
                }
                _ => return found,
            }
        }
    }
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Skip> {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(Skip::SnapTooShort),
    }
}

/// Of a header whose length has been checked.
#[inline]
fn u32_of(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
