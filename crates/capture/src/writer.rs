//! Writes captures: pcapng, raw IP, time stamps in nanoseconds.
//!
//! Payloads are zeros, so checksums cost no more than their headers. What Wireshark needs to follow
//! a connection is there: sequence and acknowledgement numbers, windows, ECN bits, and the options
//! of RFC 9293, 2018 and 7323.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use aqmlab_net::{Ecn, Time};

use crate::pcapng::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, IF_TSRESOL, INTERFACE, SECTION_HEADER};

/// Content of the checksum fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// What they should.
    #[default]
    Valid,
    /// Zeros, as in captures taken before a network card fills them in.
    Zero,
}

/// A packet to write.
#[derive(Clone, Copy, Debug)]
pub struct PacketImage<'a> {
    /// When it passed; any origin.
    pub time: Time,
    /// Which of the interfaces it passed, from 0.
    pub interface: u32,
    /// Who sends it.
    pub source: SocketAddr,
    /// Who is to receive it; of the same IP version.
    pub destination: SocketAddr,
    /// The ECN field.
    pub ecn: Ecn,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Its transport header.
    pub transport: Transport<'a>,
    /// Bytes of payload, at most 65,400.
    pub payload: u32,
}

/// A transport header.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// TCP.
    Tcp(TcpImage<'a>),
    /// UDP.
    Udp,
}

/// A TCP header.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpImage<'a> {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Control bits as in the header.
    pub flags: u8,
    /// The bit beside them, AE (RFC 9768).
    pub ae: bool,
    /// The window field, scaled.
    pub window: u16,
    /// Maximum segment size, on a SYN.
    pub segment_size: Option<u16>,
    /// Window scale, on a SYN.
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted, on a SYN.
    pub sack_permitted: bool,
    /// Time stamps: own and echoed.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks, as many as fit: three beside time stamps, else four.
    pub sack: &'a [(u32, u32)],
    /// The option of Accurate ECN: its kind, and its fields of 24 bits.
    pub accecn: Option<(u8, &'a [u32])>,
    /// Bytes of options at least, a multiple of four: no-operations fill them up.
    pub room: u8,
}

/// Writes packets.
pub struct CaptureWriter<W> {
    out: W,
    snap: u32,
    checksums: Checksums,
    /// Headers of the packet being written.
    headers: Vec<u8>,
}

/// Raw IP: the version stands in the first bits.
const LINK_RAW: u16 = 101;

/// Zeros for payloads.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl<W: Write> CaptureWriter<W> {
    /// Begins a file with interfaces of these names. Of each packet at most `snap` bytes are
    /// written.
    pub fn new(
        mut out: W,
        interfaces: &[&str],
        snap: u32,
        checksums: Checksums,
    ) -> io::Result<Self> {
        let mut section = Vec::new();
        section.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        section.extend(1_u16.to_le_bytes());
        section.extend(0_u16.to_le_bytes());
        // The length of the section is not known.
        section.extend(u64::MAX.to_le_bytes());
        write_block(&mut out, SECTION_HEADER, &section)?;
        for name in interfaces {
            let mut body = Vec::new();
            body.extend(LINK_RAW.to_le_bytes());
            body.extend(0_u16.to_le_bytes());
            body.extend(snap.to_le_bytes());
            push_option(&mut body, IF_NAME, name.as_bytes());
            push_option(&mut body, IF_TSRESOL, &[9]);
            push_option(&mut body, END_OF_OPTIONS, &[]);
            write_block(&mut out, INTERFACE, &body)?;
        }
        Ok(Self {
            out,
            snap,
            checksums,
            headers: Vec::new(),
        })
    }

    /// Writes a packet.
    pub fn write(&mut self, packet: &PacketImage<'_>) -> io::Result<()> {
        self.write_headers(packet)?;
        let headers = &self.headers;
        let original = headers.len() as u32 + packet.payload;
        let captured = original.min(self.snap);
        let padded = captured.next_multiple_of(4);
        let len = 32 + padded;
        let head = head_of_packet(len, (packet.time, packet.interface), captured, original);
        self.out.write_all(&head)?;
        let of_headers = headers.len().min(captured as usize);
        self.out.write_all(&headers[..of_headers])?;
        self.out.write_all(&ZEROS[..padded as usize - of_headers])?;
        self.out.write_all(&len.to_le_bytes())
    }

    /// Writes a packet that is there in bytes, from its IP header on, with a comment. It passed an
    /// interface at some time; `original` is its length, of which `bytes` may be the first part.
    pub fn write_bytes(
        &mut self,
        passed: (Time, u32),
        bytes: &[u8],
        original: u32,
        comment: &str,
    ) -> io::Result<()> {
        let captured = (bytes.len() as u32).min(self.snap);
        let mut options = Vec::with_capacity(comment.len() + 12);
        push_option(&mut options, COMMENT, comment.as_bytes());
        push_option(&mut options, END_OF_OPTIONS, &[]);
        let padded = captured.next_multiple_of(4);
        let len = 32 + padded + options.len() as u32;
        self.out
            .write_all(&head_of_packet(len, passed, captured, original))?;
        self.out.write_all(&bytes[..captured as usize])?;
        self.out.write_all(&ZEROS[..(padded - captured) as usize])?;
        self.out.write_all(&options)?;
        self.out.write_all(&len.to_le_bytes())
    }

    /// Writes out what is held back.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes out what is held back and returns what was written to.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// IP and transport header.
    fn write_headers(&mut self, packet: &PacketImage<'_>) -> io::Result<()> {
        let invalid = |message| io::Error::new(io::ErrorKind::InvalidInput, message);
        let mut options = [0; MAX_OPTIONS];
        let (protocol, options) = match &packet.transport {
            Transport::Tcp(tcp) => (TCP, tcp.options(&mut options)),
            Transport::Udp => (UDP, &[][..]),
        };
        let transport_len = match protocol {
            TCP => 20 + options.len(),
            _ => 8,
        };
        if packet.payload as usize > MAX_PAYLOAD {
            return Err(invalid(
                "a payload of more than 65,400 bytes fits into no packet",
            ));
        }
        let len = (transport_len + packet.payload as usize) as u16;
        let traffic_class = packet.dscp << 2 | packet.ecn as u8;
        let headers = &mut self.headers;
        headers.clear();
        let mut sum = Sum::default();
        match (packet.source.ip(), packet.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                headers.extend([0x45, traffic_class]);
                headers.extend((20 + len).to_be_bytes());
                // Identification 0, don't fragment, 64 hops.
                headers.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
                headers.extend(source.octets());
                headers.extend(destination.octets());
                if self.checksums == Checksums::Valid {
                    let check = checksum(headers);
                    headers[10..12].copy_from_slice(&check.to_be_bytes());
                }
                sum = sum.add(&headers[12..20]);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                headers.extend([0x60 | traffic_class >> 4, traffic_class << 4, 0, 0]);
                headers.extend(len.to_be_bytes());
                headers.extend([protocol, 64]);
                headers.extend(source.octets());
                headers.extend(destination.octets());
                sum = sum.add(&headers[8..40]);
            }
            _ => return Err(invalid("source and destination have different IP versions")),
        }
        let begin = headers.len();
        headers.extend(packet.source.port().to_be_bytes());
        headers.extend(packet.destination.port().to_be_bytes());
        let check_at = match &packet.transport {
            Transport::Tcp(tcp) => {
                headers.extend(tcp.seq.to_be_bytes());
                headers.extend(tcp.ack.to_be_bytes());
                headers.extend([
                    ((transport_len as u8 / 4) << 4) | u8::from(tcp.ae),
                    tcp.flags,
                ]);
                headers.extend(tcp.window.to_be_bytes());
                headers.extend([0; 4]);
                headers.extend(options);
                begin + 16
            }
            Transport::Udp => {
                headers.extend(len.to_be_bytes());
                headers.extend([0; 2]);
                begin + 6
            }
        };
        if self.checksums == Checksums::Valid {
            // The pseudo-header, whose addresses have been added already (RFC 9293, section 3.1).
            sum = sum.add(&[0, protocol]).add(&len.to_be_bytes());
            // A sum of zero would say that there is none (RFC 768).
            let check = match sum.add(&headers[begin..]).fold() {
                0 if protocol == UDP => u16::MAX,
                check => check,
            };
            headers[check_at..check_at + 2].copy_from_slice(&check.to_be_bytes());
        }
        Ok(())
    }
}

/// What comes before a packet's bytes, in a block of `len` bytes.
fn head_of_packet(
    len: u32,
    (time, interface): (Time, u32),
    captured: u32,
    original: u32,
) -> [u8; 28] {
    let stamp = time.as_nanos();
    let mut head = [0; 28];
    for (field, value) in head.chunks_exact_mut(4).zip([
        ENHANCED_PACKET,
        len,
        interface,
        (stamp >> 32) as u32,
        stamp as u32,
        captured,
        original,
    ]) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    head
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Leaves room for the longest headers in 16 bits of length.
const MAX_PAYLOAD: usize = 65_400;

/// Bytes that TCP options may take.
const MAX_OPTIONS: usize = 40;
const NO_OPERATION: u8 = 1;

impl TcpImage<'_> {
    /// Its options, padded to whole words.
    fn options<'a>(&self, space: &'a mut [u8; MAX_OPTIONS]) -> &'a [u8] {
        let mut len = 0;
        let mut push = |bytes: &[u8]| {
            space[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
            len
        };
        if let Some(size) = self.segment_size {
            push(&[2, 4]);
            push(&size.to_be_bytes());
        }
        if let Some(scale) = self.window_scale {
            push(&[1, 3, 3, scale]);
        }
        if self.sack_permitted {
            push(&[1, 1, 4, 2]);
        }
        if let Some((own, echo)) = self.timestamps {
            push(&[1, 1, 8, 10]);
            push(&own.to_be_bytes());
            push(&echo.to_be_bytes());
        }
        if let Some((kind, fields)) = self.accecn {
            push(&[kind, 2 + 3 * fields.len() as u8]);
            for field in fields {
                push(&field.to_be_bytes()[1..]);
            }
            let end = push(&[]);
            push(&[NO_OPERATION; 3][..end.next_multiple_of(4) - end]);
        }
        let used = push(&[]);
        let blocks = self
            .sack
            .len()
            .min((MAX_OPTIONS - used).saturating_sub(4) / 8);
        if blocks > 0 {
            push(&[1, 1, 5, 2 + 8 * blocks as u8]);
            for &(from, to) in &self.sack[..blocks] {
                push(&from.to_be_bytes());
                push(&to.to_be_bytes());
            }
        }
        let len = push(&[]);
        let filled = len.max(usize::from(self.room).min(MAX_OPTIONS));
        space[len..filled].fill(NO_OPERATION);
        &space[..filled]
    }
}

/// The internet checksum (RFC 1071) of at most 65,535 bytes.
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::default().add(bytes).fold()
}

/// The internet checksum in the making.
#[derive(Clone, Copy, Default)]
struct Sum(u32);

impl Sum {
    /// Adds bytes: an even number, or the last ones, which a zero follows.
    fn add(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<2>();
        let words = words
            .iter()
            .map(|&word| u32::from(u16::from_be_bytes(word)));
        let last = rest.iter().map(|&byte| u32::from(byte) << 8);
        Self(words.chain(last).fold(self.0, |sum, word| sum + word))
    }

    const fn fold(self) -> u16 {
        let sum = (self.0 & 0xffff) + (self.0 >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        !(sum as u16)
    }
}

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;

fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let len = (body.len() + 12) as u32;
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(body)?;
    out.write_all(&len.to_le_bytes())
}
