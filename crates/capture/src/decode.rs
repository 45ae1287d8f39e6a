//! From captured bytes to TCP headers.
//!
//! Only headers are looked at, and of TCP's only the fixed 20 bytes must have been captured:
//! lengths come from the IP header, so a snap length of 96 bytes is enough. Checksums are not
//! checked: network cards fill them in behind the tap.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::counts::{Counts, Reason};
use crate::layers::{Datagram, datagram, u16_at};

/// The sender or receiver of packets: address (IPv4 ones mapped into IPv6, RFC 4291, section
/// 2.5.5.2) and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// What a frame carries that is not IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inside {
    /// By its EtherType.
    EtherType(u16),
    /// By its number in the point-to-point protocol.
    Ppp(u16),
    /// By its service access point.
    Sap(u8),
    /// In words.
    Frame(&'static str),
    /// Where a version of IP should be.
    Version(u8),
}

/// Why a packet is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// The format of the link's headers is none of ours.
    UnknownLink(u16),
    /// Neither IPv4 nor IPv6.
    NotIp(Inside),
    /// Neither TCP nor a header in front of it: the number of the protocol.
    NotTcp(u8),
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
        match self {
            Self::UnknownLink(_) => 0,
            Self::NotIp(_) => 1,
            Self::NotTcp(_) => 2,
            Self::Fragment => 3,
            Self::SnapTooShort => 4,
            Self::Malformed => 5,
            Self::NoTime => 6,
        }
    }
}

/// How many packets were skipped, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    counts: Counts<Skip>,
    kinds: BTreeMap<Skip, u64>,
}

/// Kinds that are counted by name, at most: a made-up capture may hold any number.
const MOST_KINDS: usize = 64;

impl Skipped {
    #[inline]
    pub(crate) fn add(&mut self, reason: Skip) {
        self.counts.add(reason);
        if let Some(count) = self.kinds.get_mut(&reason) {
            *count += 1;
        } else if self.kinds.len() < MOST_KINDS {
            self.kinds.insert(reason, 1);
        }
    }

    /// How many packets were skipped for this very reason.
    pub fn of(&self, reason: Skip) -> u64 {
        self.kinds.get(&reason).copied().unwrap_or_default()
    }

    /// Of all reasons.
    pub fn total(&self) -> u64 {
        self.counts.total()
    }

    /// What has been counted, by the name of its reason.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.named()
    }

    /// What has been counted, by what was found: numbers of link types and protocols.
    pub fn kinds(&self) -> impl Iterator<Item = (Skip, u64)> {
        self.kinds.iter().map(|(skip, count)| (*skip, *count))
    }

    /// The kinds in words.
    pub(crate) fn in_words(&self) -> BTreeMap<String, u64> {
        self.kinds()
            .map(|(skip, count)| (skip.to_string(), count))
            .collect()
    }
}

impl Serialize for Skipped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.counts.serialize(serializer)
    }
}

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// The TCP header of a packet whose captured bytes are `data`.
#[inline]
pub fn decode(link: u16, data: &[u8], original: u32) -> Result<TcpHeader, Skip> {
    transport(&datagram(link, data, original)?)
}

/// The TCP header of an IP packet.
#[inline]
pub(crate) fn transport(packet: &Datagram<'_>) -> Result<TcpHeader, Skip> {
    if packet.protocol != TCP {
        return Err(Skip::NotTcp(packet.protocol));
    }
    tcp(
        packet.payload,
        packet.len,
        packet.source,
        packet.destination,
    )
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
    /// Reads what has been captured of a SYN's options.
    fn read(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        for option in tcp_options(bytes) {
            match *option {
                [2, 4, high, low] => found.segment_size = Some(u16::from_be_bytes([high, low])),
                [3, 3, scale] => found.window_scale = Some(scale.min(14)),
                _ => {}
            }
        }
        found
    }
}

/// The sender's clock in the time stamp of a captured segment.
#[inline]
pub(crate) fn ticks(segment: &[u8]) -> Option<u32> {
    let end = usize::from(segment.get(12)? >> 4) * 4;
    let bytes = segment.get(20..end.min(segment.len()))?;
    tcp_options(bytes).find_map(|option| match *option {
        [8, 10, a, b, c, d, ..] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    })
}

/// The options of a TCP header, as far as they are captured; stops at what makes no sense.
#[inline]
pub fn tcp_options(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        while let [1, rest @ ..] = bytes {
            bytes = rest;
        }
        let [2..=255, len @ 2..=255, ..] = *bytes else {
            return None;
        };
        let (option, rest) = bytes.split_at_checked(usize::from(len))?;
        bytes = rest;
        Some(option)
    })
}

/// Of a header whose length has been checked.
#[inline]
fn u32_of(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
