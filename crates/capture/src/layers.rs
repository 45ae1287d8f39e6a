//! From captured bytes to the innermost IP packet that is read.
//!
//! Link headers, tags, labels and tunnels are passed over; only lengths that were captured are
//! believed. A tunnel whose inside cannot be read counts as what it is outside.

use crate::decode::{Inside, Skip};

/// An IP packet and what it carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    /// IPv4 addresses are mapped into IPv6.
    pub(crate) source: [u64; 2],
    pub(crate) destination: [u64; 2],
    pub(crate) protocol: u8,
    /// Identification; 0 in IPv6.
    pub(crate) id: u16,
    /// Time to live, or hop limit.
    pub(crate) ttl: u8,
    /// What was captured behind the IP headers.
    pub(crate) payload: &'a [u8],
    /// How long that is on the wire.
    pub(crate) len: usize,
    /// Length of the frame on its link, if a mirror sent it in packets of its own.
    pub(crate) mirrored: Option<usize>,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ETHERNET: u16 = 0x6558;
const PPPOE: u16 = 0x8864;
const MPLS: [u16; 2] = [0x8847, 0x8848];
const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const PPP: u16 = 0x880b;

const IP_IN_IP: u8 = 4;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// So many headers of tunnels are passed over; more would let a made-up packet cost much time.
const MOST_TUNNELS: usize = 4;
/// So many tags or labels.
const MOST_TAGS: usize = 16;

/// The innermost IP packet of a captured one.
#[inline]
pub(crate) fn datagram(link: u16, data: &[u8], original: u32) -> Result<Datagram<'_>, Skip> {
    let (protocol, offset) = network(link, data)?;
    let packet = data.get(offset..).ok_or(Skip::SnapTooShort)?;
    let on_wire = (original as usize).max(data.len()) - offset;
    let mut found = ip(protocol, packet, on_wire)?;
    for _ in 0..MOST_TUNNELS {
        match inside(&found) {
            Some(inner) => found = inner,
            None => break,
        }
    }
    Ok(found)
}

/// What a tunnel carries, if it is one and can be read.
#[inline]
fn inside<'a>(outer: &Datagram<'a>) -> Option<Datagram<'a>> {
    let data = outer.payload;
    let frame = match outer.protocol {
        GRE => erspan(data),
        UDP => tzsp(data),
        _ => None,
    };
    let (protocol, offset) = match (frame, outer.protocol) {
        (Some(offset), _) => behind(data, ETHERNET, offset).ok()?,
        (_, IP_IN_IP) => (IPV4, 0),
        (_, IPV6_IN_IP) => (IPV6, 0),
        (_, GRE) => gre(data)?,
        (_, UDP) => over_udp(data)?,
        _ => return None,
    };
    let packet = data.get(offset..)?;
    let mut found = ip(protocol, packet, outer.len.checked_sub(offset)?).ok()?;
    found.mirrored = frame.map_or(outer.mirrored, |offset| outer.len.checked_sub(offset));
    Some(found)
}

/// Where a mirrored frame begins behind GRE and the header of ERSPAN, whose first version has none.
fn erspan(data: &[u8]) -> Option<usize> {
    let (flags, protocol) = (u16_at(data, 0).ok()?, u16_at(data, 2).ok()?);
    let has_number = flags & 0x1000 != 0;
    match protocol {
        0x88be => Some(gre_len(flags) + if has_number { 8 } else { 0 }),
        0x22eb => Some(gre_len(flags) + 12),
        _ => None,
    }
}

/// Where a mirrored frame begins in a packet of TaZmen's sniffer protocol, which MikroTik's
/// routers send to port 37008: four bytes, then tags up to the one that ends them.
fn tzsp(data: &[u8]) -> Option<usize> {
    const HEAD: usize = 12;
    let ethernet = [1, 0, 0, 1];
    if u16_at(data, 2).ok()? != 37008 || data.get(8..HEAD)? != ethernet {
        return None;
    }
    let mut at = HEAD;
    for _ in 0..MOST_TAGS {
        match *data.get(at)? {
            0 => at += 1,
            1 => return Some(at + 1),
            _ => at += 2 + usize::from(*data.get(at + 1)?),
        }
    }
    None
}

/// Generic routing encapsulation (RFC 2784, 2890), with point-to-point packets (RFC 2637) too.
fn gre(data: &[u8]) -> Option<(u16, usize)> {
    let (flags, protocol) = (u16_at(data, 0).ok()?, u16_at(data, 2).ok()?);
    behind(data, protocol, gre_len(flags)).ok()
}

/// Length of a GRE header with these flags.
fn gre_len(flags: u16) -> usize {
    let has = |bit: u16| usize::from(flags & bit != 0) * 4;
    let len = 4 + has(0x8000) + has(0x2000) + has(0x1000);
    match flags & 7 {
        1 => len + has(0x0080),
        _ => len,
    }
}

/// VXLAN (RFC 7348), Geneve (RFC 8926) and GTP-U, by the port that they are sent to.
fn over_udp(data: &[u8]) -> Option<(u16, usize)> {
    let flags = *data.get(8)?;
    match u16_at(data, 2).ok()? {
        4789 | 8472 if flags & 8 != 0 => behind(data, ETHERNET, 16).ok(),
        6081 if flags >> 6 == 0 => {
            let options = usize::from(flags & 0x3f) * 4;
            behind(data, u16_at(data, 10).ok()?, 16 + options).ok()
        }
        // Version 1 of the protocol that carries user data, message type 255.
        2152 if flags >> 4 == 3 && *data.get(9)? == 255 => {
            let mut offset = 16;
            if flags & 7 != 0 {
                offset += 4;
                let mut next = *data.get(offset - 1)?;
                for _ in 0..MOST_TAGS {
                    if flags & 4 == 0 || next == 0 {
                        break;
                    }
                    let len = usize::from(*data.get(offset)?) * 4;
                    if len == 0 {
                        return None;
                    }
                    offset += len;
                    next = *data.get(offset - 1)?;
                }
            }
            by_version(data, offset).ok()
        }
        _ => None,
    }
}

/// The EtherType of what the frame carries, and where that begins.
#[inline]
fn network(link: u16, data: &[u8]) -> Result<(u16, usize), Skip> {
    match link {
        1 => behind(data, ETHERNET, 0),
        113 => cooked(data, u16_at(data, 14)?, 16),
        276 => cooked(data, u16_at(data, 0)?, 20),
        // Four bytes name the address family, whose numbers differ between systems.
        0 | 108 => by_version(data, 4),
        12 | 14 | 101 | 228 | 229 => by_version(data, 0),
        9 | 50 => ppp(data, 0),
        166 | 204 => ppp(data, 1),
        51 => behind(data, PPPOE, 0),
        104 => behind(data, u16_at(data, 2)?, 4),
        8 => by_version(data, 16),
        10 => llc(data, 13),
        100 => llc(data, 0),
        242 => behind(data, u16_at(data, 40)?, 44),
        105 => wifi(data, 0, false),
        119 => wifi(data, 144, false),
        127 => {
            let len = usize::from(u16_le(data, 2)?);
            wifi(data, len, radiotap_pads(data).unwrap_or(false))
        }
        163 => wifi(data, u32_at(data, 4)? as usize, false),
        192 => {
            let (len, inner) = (usize::from(u16_le(data, 2)?), u16_le(data, 4)?);
            match inner {
                1 => behind(data, ETHERNET, len),
                105 => wifi(data, len, false),
                _ => Err(Skip::UnknownLink(inner)),
            }
        }
        239 => nflog(data),
        _ => Err(Skip::UnknownLink(link)),
    }
}

/// Linux's cooked frames say 1 or 4 where frames have no EtherType.
fn cooked(data: &[u8], protocol: u16, offset: usize) -> Result<(u16, usize), Skip> {
    match protocol {
        4 => llc(data, offset),
        _ => behind(data, protocol, offset),
    }
}

/// Passes over whatever stands between an EtherType and IP.
#[inline]
fn behind(data: &[u8], protocol: u16, offset: usize) -> Result<(u16, usize), Skip> {
    let (mut protocol, mut offset) = (protocol, offset);
    for _ in 0..MOST_TAGS {
        match protocol {
            IPV4 | IPV6 => return Ok((protocol, offset)),
            ETHERNET => (protocol, offset) = (u16_at(data, offset + 12)?, offset + 14),
            _ if TAGS.contains(&protocol) => {
                (protocol, offset) = (u16_at(data, offset + 2)?, offset + 4);
            }
            PPPOE => return ppp(data, offset + 6),
            PPP => return ppp(data, offset),
            _ if MPLS.contains(&protocol) => {
                let is_last = byte(data, offset + 2)? & 1 == 1;
                offset += 4;
                if is_last {
                    (protocol, offset) = match byte(data, offset)? >> 4 {
                        4 => (IPV4, offset),
                        6 => (IPV6, offset),
                        // A pseudowire with its control word.
                        0 => (ETHERNET, offset + 4),
                        _ => (ETHERNET, offset),
                    };
                }
            }
            0..=1500 => return llc(data, offset),
            _ => return Err(Skip::NotIp(Inside::EtherType(protocol))),
        }
    }
    Err(Skip::Malformed)
}

/// The point-to-point protocol (RFC 1661), with or without address and control bytes, and with a
/// protocol number of one byte or two.
fn ppp(data: &[u8], offset: usize) -> Result<(u16, usize), Skip> {
    let offset = match u16_at(data, offset)? {
        0xff03 => offset + 2,
        _ => offset,
    };
    let first = byte(data, offset)?;
    let (protocol, offset) = match first & 1 {
        1 => (u16::from(first), offset + 1),
        _ => (u16_at(data, offset)?, offset + 2),
    };
    match protocol {
        0x21 => Ok((IPV4, offset)),
        0x57 => Ok((IPV6, offset)),
        0x281 => behind(data, MPLS[0], offset),
        _ => Err(Skip::NotIp(Inside::Ppp(protocol))),
    }
}

/// Logical link control: SNAP names an EtherType.
fn llc(data: &[u8], offset: usize) -> Result<(u16, usize), Skip> {
    match u16_at(data, offset)? {
        0xaaaa => behind(data, u16_at(data, offset + 6)?, offset + 8),
        0x0606 => Ok((IPV4, offset + 3)),
        saps => Err(Skip::NotIp(Inside::Sap((saps >> 8) as u8))),
    }
}

/// A frame of 802.11, all of whose numbers are little-endian.
fn wifi(data: &[u8], at: usize, pads: bool) -> Result<(u16, usize), Skip> {
    let control = u16_le(data, at)?;
    let skipped = |what| Err(Skip::NotIp(Inside::Frame(what)));
    match control >> 2 & 3 {
        0 => return skipped("802.11 management frame"),
        1 => return skipped("802.11 control frame"),
        2 => {}
        _ => return skipped("802.11 extension frame"),
    }
    let is_qos = control & 0x80 != 0;
    if control & 0x40 != 0 {
        return skipped("802.11 frame without data");
    }
    if control & 0x4000 != 0 {
        return skipped("encrypted 802.11 frame");
    }
    let mut len = if control & 0x300 == 0x300 { 30 } else { 24 };
    let mut holds_several = false;
    if is_qos {
        holds_several = byte(data, at + len)? & 0x80 != 0;
        len += if control & 0x8000 != 0 { 6 } else { 2 };
    }
    if pads {
        len = len.next_multiple_of(4);
    }
    match holds_several {
        true => llc(data, at + len + 14),
        false => llc(data, at + len),
    }
}

/// Whether a radiotap header says that the frame's header is padded to four bytes.
fn radiotap_pads(data: &[u8]) -> Option<bool> {
    let word = |at: usize| {
        let bytes = data.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let present = word(4)?;
    let mut at = 8;
    let mut more = present;
    while more >> 31 == 1 {
        more = word(at)?;
        at += 4;
    }
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    Some(present & 2 != 0 && data.get(at)? & 0x20 != 0)
}

/// Netfilter's log: pieces with length and kind in the byte order of the host, the packet among
/// them.
fn nflog(data: &[u8]) -> Result<(u16, usize), Skip> {
    const PACKET: u16 = 9;
    let is_big = u16_le(data, 4)? > u16_at(data, 4)?;
    let number = |at| {
        if is_big {
            u16_at(data, at)
        } else {
            u16_le(data, at)
        }
    };
    let mut at = 4;
    loop {
        let (len, kind) = (usize::from(number(at)?), number(at + 2)?);
        if kind == PACKET {
            return by_version(data, at + 4);
        }
        if len < 4 {
            return Err(Skip::Malformed);
        }
        at += len.next_multiple_of(4);
    }
}

/// Where nothing else says so, the first bits of the IP header tell its version.
#[inline]
fn by_version(data: &[u8], offset: usize) -> Result<(u16, usize), Skip> {
    match byte(data, offset)? >> 4 {
        4 => Ok((IPV4, offset)),
        6 => Ok((IPV6, offset)),
        other => Err(Skip::NotIp(Inside::Version(other))),
    }
}

/// The headers of IP.
#[inline]
fn ip(protocol: u16, packet: &[u8], on_wire: usize) -> Result<Datagram<'_>, Skip> {
    let version = byte(packet, 0)? >> 4;
    match (protocol, version) {
        (IPV4, 4) => ipv4(packet, on_wire),
        (IPV6, 6) => ipv6(packet, on_wire),
        (IPV4 | IPV6, _) => Err(Skip::Malformed),
        _ => Err(Skip::NotIp(Inside::EtherType(protocol))),
    }
}

#[inline]
fn ipv4(packet: &[u8], on_wire: usize) -> Result<Datagram<'_>, Skip> {
    let header = packet.get(..20).ok_or(Skip::SnapTooShort)?;
    let header_len = usize::from(header[0] & 15) * 4;
    // Captured before the network card cuts it into segments, a packet may state no length.
    let total = match usize::from(u16_at(header, 2)?) {
        0 => on_wire,
        total => total,
    };
    // More fragments follow, or this is not the first.
    if u16_at(header, 6)? & 0x3fff != 0 {
        return Err(Skip::Fragment);
    }
    if header_len < 20 || total < header_len {
        return Err(Skip::Malformed);
    }
    let mapped = |at| {
        let address =
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        [0, 0xffff_0000_0000 | u64::from(address)]
    };
    Ok(Datagram {
        source: mapped(12),
        destination: mapped(16),
        protocol: header[9],
        id: u16_at(header, 4)?,
        ttl: header[8],
        payload: packet.get(header_len..).unwrap_or_default(),
        len: total - header_len,
        mirrored: None,
    })
}

#[inline]
fn ipv6(packet: &[u8], on_wire: usize) -> Result<Datagram<'_>, Skip> {
    let header = packet.get(..40).ok_or(Skip::SnapTooShort)?;
    let end = match usize::from(u16_at(header, 4)?) {
        0 => on_wire,
        payload => 40 + payload,
    };
    let (protocol, offset) = behind_extensions(packet, header[6])?;
    let address = |at: usize| {
        let half = |at: usize| {
            let bytes = header[at..at + 8].try_into().unwrap_or_default();
            u64::from_be_bytes(bytes)
        };
        [half(at), half(at + 8)]
    };
    Ok(Datagram {
        source: address(8),
        destination: address(24),
        protocol,
        id: 0,
        ttl: header[7],
        payload: packet.get(offset..).unwrap_or_default(),
        len: end.checked_sub(offset).ok_or(Skip::Malformed)?,
        mirrored: None,
    })
}

/// What stands behind IPv6 extension headers (RFC 8200, section 4), and where.
#[inline]
fn behind_extensions(packet: &[u8], next: u8) -> Result<(u8, usize), Skip> {
    let (mut next, mut offset) = (next, 40);
    loop {
        match next {
            // Hop-by-hop, routing, destination options, mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 | FRAGMENT | AUTHENTICATION => {}
            protocol => return Ok((protocol, offset)),
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
fn byte(bytes: &[u8], at: usize) -> Result<u8, Skip> {
    bytes.get(at).copied().ok_or(Skip::SnapTooShort)
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Skip> {
    match bytes.get(at..at.saturating_add(2)) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(Skip::SnapTooShort),
    }
}

fn u16_le(bytes: &[u8], at: usize) -> Result<u16, Skip> {
    u16_at(bytes, at).map(u16::swap_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Skip> {
    Ok(u32::from(u16_at(bytes, at)?) << 16 | u32::from(u16_at(bytes, at.saturating_add(2))?))
}
