//! The same packets in every format and behind every link's header give the same vectors.

use crate::common;

use aqmlab_capture::{CaptureReader, Inside, Options, Skip, decode};
use aqmlab_traffic::vector::ConnectionVector;
use common::{ACK, FIN, Pair, SYN, Tap, try_vectors, vectors};
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

/// A raw IP packet.
struct Raw {
    nanos: u64,
    data: Vec<u8>,
    original: u32,
}

/// A short connection of raw IP packets, and what is made of it.
fn sample() -> (Vec<Raw>, Vec<ConnectionVector>) {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(30.5, &pair, (0, ACK, 0, 0, 300));
    tap.at(90.25, &pair, (1, ACK, 0, 300, 1460));
    tap.at(90.5, &pair, (1, ACK | FIN, 1460, 300, 40));
    tap.at(100.75, &pair, (0, ACK | FIN, 300, 1501, 0));
    tap.at(130.0, &pair, (1, ACK, 1501, 301, 0));
    let bytes = tap.bytes();
    let (expected, _) = vectors(&bytes, Options::default());
    let mut reader = CaptureReader::new(&bytes[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_packet().unwrap() {
        packets.push(Raw {
            nanos: record.time.unwrap().as_nanos(),
            data: record.data.to_vec(),
            original: record.original,
        });
    }
    (packets, expected)
}

/// Puts a link's header in front of every packet.
fn framed(packets: &[Raw], header: &[u8]) -> Vec<Raw> {
    packets
        .iter()
        .map(|packet| Raw {
            nanos: packet.nanos,
            data: [header, &packet.data].concat(),
            original: packet.original + header.len() as u32,
        })
        .collect()
}

/// Writes numbers in either byte order.
struct Numbers {
    bytes: Vec<u8>,
    big: bool,
}

impl Numbers {
    fn new(big: bool) -> Self {
        let bytes = Vec::new();
        Self { bytes, big }
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        let le = value.to_le_bytes();
        self.bytes
            .extend(if self.big { value.to_be_bytes() } else { le });
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        let le = value.to_le_bytes();
        self.bytes
            .extend(if self.big { value.to_be_bytes() } else { le });
        self
    }

    /// A pcapng block.
    fn block(&mut self, kind: u32, body: &[u8]) -> &mut Self {
        let padded = body.len().next_multiple_of(4);
        self.u32(kind).u32(padded as u32 + 12);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.u32(padded as u32 + 12)
    }
}

fn pcap(packets: &[Raw], link: u32, big: bool, nanos: bool) -> Vec<u8> {
    let mut file = Numbers::new(big);
    file.u32(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
    file.u16(2).u16(4).u32(0).u32(0).u32(96).u32(link);
    for packet in packets {
        let unit = if nanos { 1 } else { 1000 };
        file.u32((packet.nanos / 1_000_000_000) as u32);
        file.u32((packet.nanos % 1_000_000_000 / unit) as u32);
        file.u32(packet.data.len() as u32).u32(packet.original);
        file.bytes.extend(&packet.data);
    }
    file.bytes
}

/// An interface: link type, `if_tsresol`, `if_tsoffset` in seconds.
type Interface = (u16, Option<u8>, Option<i64>);

/// A section whose packets go round the interfaces.
fn pcapng(packets: &[Raw], interfaces: &[Interface], big: bool, end_mark: bool) -> Vec<u8> {
    let mut file = Numbers::new(big);
    let mut section = Numbers::new(big);
    section
        .u32(0x1a2b_3c4d)
        .u16(1)
        .u16(0)
        .u32(u32::MAX)
        .u32(u32::MAX);
    file.block(0x0a0d_0d0a, &section.bytes);
    for &(link, resolution, offset) in interfaces {
        let mut body = Numbers::new(big);
        body.u16(link).u16(0).u32(96);
        if let Some(resolution) = resolution {
            body.u16(9).u16(1).bytes.extend([resolution, 0, 0, 0]);
        }
        if let Some(offset) = offset {
            body.u16(14).u16(8);
            let le = offset.to_le_bytes();
            body.bytes
                .extend(if big { offset.to_be_bytes() } else { le });
        }
        if end_mark {
            body.u16(0).u16(0);
        }
        file.block(1, &body.bytes);
    }
    // Blocks of other kinds: name resolution, interface statistics, one that nobody knows.
    for kind in [4, 5, 0x0bad] {
        file.block(kind, &[1, 2, 3]);
    }
    for (index, packet) in packets.iter().enumerate() {
        let (_, resolution, offset) = interfaces[index % interfaces.len()];
        let nanos = packet
            .nanos
            .saturating_add_signed(-1_000_000_000 * offset.unwrap_or(0));
        let stamp = match resolution {
            None => nanos / 1000,
            Some(exponent @ 0..=9) => nanos / 10_u64.pow(9 - u32::from(exponent)),
            Some(20..0x80) => 0, // no such unit
            Some(exponent @ 10..20) => nanos * 10_u64.pow(u32::from(exponent) - 9),
            Some(power) => ((u128::from(nanos) << (power & 0x7f)) / 1_000_000_000) as u64,
        };
        let mut body = Numbers::new(big);
        body.u32((index % interfaces.len()) as u32);
        body.u32((stamp >> 32) as u32).u32(stamp as u32);
        body.u32(packet.data.len() as u32).u32(packet.original);
        body.bytes.extend(&packet.data);
        body.bytes.resize(body.bytes.len().next_multiple_of(4), 0);
        // epb_flags, without an end mark.
        body.u16(2).u16(4).u32(1);
        file.block(6, &body.bytes);
    }
    file.bytes
}

fn assert_same(capture: &[u8], expected: &[ConnectionVector], what: &str) {
    let (found, report) = vectors(capture, Options::default());
    assert_eq!(found, expected, "{what}");
    assert_eq!(report.packets.skipped.total(), 0, "{what}");
}

const RAW: u32 = 101;

#[test]
fn pcap_of_either_order_and_resolution() {
    let (packets, expected) = sample();
    for big in [false, true] {
        for nanos in [false, true] {
            let capture = pcap(&packets, RAW, big, nanos);
            assert_same(&capture, &expected, &format!("big {big}, nanos {nanos}"));
        }
    }
}

#[test]
fn pcapng_of_several_interfaces_and_resolutions() {
    let (packets, expected) = sample();
    let cases: [&[Interface]; 4] = [
        &[(101, None, None)],
        &[
            (101, Some(9), None),
            (101, Some(6), None),
            (101, Some(10), Some(1_600_000_000)),
        ],
        &[(101, Some(0x80 | 32), None)],
        &[(101, None, Some(-5)), (101, Some(9), None)],
    ];
    for interfaces in cases {
        for (big, end_mark) in [(false, true), (true, true), (false, false)] {
            let capture = pcapng(&packets, interfaces, big, end_mark);
            let (found, _) = vectors(&capture, Options::default());
            // Units of 2^-32 s cut times by less than a microsecond.
            let rounded = interfaces[0].1 == Some(0x80 | 32);
            if rounded {
                assert_eq!(found[0].bytes(), expected[0].bytes());
                let [found, expected] =
                    [&found[0], &expected[0]].map(|vector| vector.rtt.unwrap().as_nanos());
                assert!(found.abs_diff(expected) <= 1000, "{found} {expected}");
            } else {
                assert_same(
                    &capture,
                    &expected,
                    &format!("{interfaces:?} {big} {end_mark}"),
                );
            }
        }
    }
}

#[test]
fn sections_follow_each_other_with_interfaces_of_their_own() {
    let (packets, expected) = sample();
    let (first, second) = packets.split_at(3);
    let ethernet = framed(second, &[[0; 12].as_slice(), &[8, 0]].concat());
    let capture = [
        pcapng(first, &[(101, Some(9), None)], false, true),
        pcapng(&ethernet, &[(1, None, None)], true, true),
    ];
    assert_same(&capture.concat(), &expected, "two sections");
}

#[test]
fn every_link_type() {
    let (packets, expected) = sample();
    let macs = [0; 12].as_slice();
    let cases: [(&str, u32, Vec<u8>); 12] = [
        ("ethernet", 1, [macs, &[8, 0]].concat()),
        ("vlan", 1, [macs, &[0x81, 0, 0, 7, 8, 0]].concat()),
        (
            "double vlan",
            1,
            [macs, &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0]].concat(),
        ),
        ("raw", 101, vec![]),
        ("raw, BSD", 12, vec![]),
        ("raw IPv4", 228, vec![]),
        ("null, little-endian", 0, vec![2, 0, 0, 0]),
        ("null, big-endian", 0, vec![0, 0, 0, 2]),
        ("loop", 108, vec![0, 0, 0, 2]),
        ("cooked", 113, [&[0; 14][..], &[8, 0]].concat()),
        (
            "cooked, vlan",
            113,
            [&[0; 14][..], &[0x81, 0, 0, 7, 8, 0]].concat(),
        ),
        ("cooked 2", 276, [&[8, 0][..], &[0; 18]].concat()),
    ];
    for (name, link, header) in cases {
        assert_same(
            &pcap(&framed(&packets, &header), link, false, true),
            &expected,
            name,
        );
    }
    // The upper half of a pcap's link type holds other things.
    assert_same(
        &pcap(&packets, 0x5400_0000 | RAW, false, true),
        &expected,
        "FCS length",
    );
}

/// IPv6 instead of IPv4: the header, and extension headers behind it.
fn in_ipv6(packets: &[Raw], extensions: &[u8], first: u8) -> Vec<Raw> {
    packets
        .iter()
        .map(|packet| {
            let tcp = &packet.data[20..];
            let payload = packet.original - 20 + extensions.len() as u32;
            let mut data = vec![0x60, 0, 0, 0];
            data.extend((payload as u16).to_be_bytes());
            data.extend([first, 64]);
            for address in [&packet.data[12..16], &packet.data[16..20]] {
                data.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
                data.extend(address);
            }
            data.extend(extensions);
            data.extend(tcp);
            Raw {
                nanos: packet.nanos,
                data,
                original: 40 + payload,
            }
        })
        .collect()
}

#[test]
fn ipv6_with_extension_headers() {
    let (packets, expected) = sample();
    // Hop-by-hop of 8 bytes, destination options of 16, an authentication header of 12, a
    // fragment header of a whole packet, then TCP.
    let mut extensions = vec![60, 0, 1, 4, 0, 0, 0, 0];
    extensions.extend([51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    extensions.extend([44, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    extensions.extend([6, 0, 0, 0, 0, 0, 0, 9]);
    for (packets, what) in [
        (in_ipv6(&packets, &[], 6), "plain"),
        (in_ipv6(&packets, &extensions, 0), "extension headers"),
    ] {
        assert_same(&pcap(&packets, RAW, false, true), &expected, what);
    }
}

#[test]
fn packets_that_tell_nothing_are_skipped_with_a_reason() {
    let (packets, _) = sample();
    let good = &packets[3].data;
    let changed = |at: usize, byte: u8| {
        let mut data = good.clone();
        data[at] = byte;
        data
    };
    let ipv6 = in_ipv6(&packets, &[6, 0, 0, 8, 0, 0, 0, 9], 44);
    let cases: [(&[u8], u16, Option<Skip>); 12] = [
        (good, 101, None),
        (good, 147, Some(Skip::UnknownLink(147))),
        (
            &[[0; 12].as_slice(), &[8, 6], good].concat(),
            1,
            Some(Skip::NotIp(Inside::EtherType(0x0806))),
        ),
        (
            &changed(0, 0x75),
            101,
            Some(Skip::NotIp(Inside::Version(7))),
        ),
        (&changed(9, 17), 101, Some(Skip::NotTcp(17))),
        // More fragments; a later fragment; a later fragment in IPv6.
        (&changed(6, 0x20), 101, Some(Skip::Fragment)),
        (&changed(7, 1), 101, Some(Skip::Fragment)),
        (&ipv6[3].data, 101, Some(Skip::Fragment)),
        (&good[..39], 101, Some(Skip::SnapTooShort)),
        (&[], 101, Some(Skip::SnapTooShort)),
        // Header lengths: TCP's too short, IP's total less than the headers.
        (&changed(32, 0x40), 101, Some(Skip::Malformed)),
        (
            &[&changed(2, 0)[..3], &[30], &good[4..]].concat(),
            101,
            Some(Skip::Malformed),
        ),
    ];
    for (data, link, skip) in cases {
        assert_eq!(decode(link, data, 340).err(), skip, "{data:02x?}");
    }
}

/// Before the network card cuts it, a packet states a length of 0.
#[test]
fn lengths_of_uncut_packets_come_from_the_capture() {
    let (packets, _) = sample();
    let mut data = packets[3].data.clone();
    data[2..4].fill(0);
    assert_eq!(decode(101, &data, 70_040).unwrap().payload, 70_000);
}

#[test]
fn options_cut_by_the_snap_length_do_not_hide_a_header() {
    let (packets, _) = sample();
    let syn = &packets[0].data;
    let whole = decode(101, syn, syn.len() as u32).unwrap();
    assert_eq!(
        (whole.options.segment_size, whole.options.window_scale),
        (Some(1460), Some(3))
    );
    let cut = decode(101, &syn[..42], syn.len() as u32).unwrap();
    assert_eq!((cut.seq, cut.flags, cut.payload), (whole.seq, SYN, 0));
    assert_eq!(cut.options.segment_size, None);
}

#[test]
fn broken_files_are_refused_with_the_packet() {
    let (packets, _) = sample();
    let good = pcap(&packets, RAW, false, true);
    let ng = pcapng(&packets, &[(101, None, None)], false, true);
    let message = |capture: &[u8]| match try_vectors(capture, Options::default()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted"),
    };
    let changed = |capture: &[u8], at: usize, byte: u8| {
        let mut capture = capture.to_vec();
        capture[at] = byte;
        capture
    };
    let second = 24 + 16 + packets[0].data.len();
    let (_, end) = good.split_at(good.len() - 3);
    assert_eq!(end.len(), 3);
    for (capture, words) in [
        (vec![], "packet 1: the file is empty"),
        (
            b"{\"a\": 1}".to_vec(),
            "packet 1: the file begins with the bytes 7b 22 61 22",
        ),
        (
            good[..10].to_vec(),
            "packet 1: the file ends inside the file header",
        ),
        (
            good[..24].to_vec(),
            "no connection vector can be made of its 0 packets",
        ),
        (changed(&good, second + 7, 0xff), "packet 2: its time stamp"),
        (changed(&good, second + 11, 0xff), "packet 2: it claims"),
        (changed(&good, 4, 9), "version 9"),
        (changed(&ng, ng.len() - 4, 0), "packet 8: a block of"),
        (
            changed(&ng, 4, 255),
            "packet 1: a block of type 0xa0d0d0a states a length of 255",
        ),
        (changed(&ng, 9, 0), "packet 1: a section header has"),
        (
            pcapng(&packets, &[(101, Some(0x7f), None)], false, true),
            "10^-127",
        ),
        (
            pcap(&packets, 147, false, true),
            "8 packets: link type 147 (user 0)",
        ),
    ] {
        let found = message(&capture);
        assert!(found.contains(words), "{words}: {found}");
    }
    let mut orphan = pcapng(&packets[..1], &[(101, None, None)], false, true);
    let at = orphan
        .windows(4)
        .rposition(|word| word == [6, 0, 0, 0])
        .unwrap()
        + 8;
    orphan[at] = 1;
    assert!(
        message(&orphan).contains("packet 1: it names interface 1, but the file has described 1")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Another decoder finds the same in packets that it made.
    #[test]
    fn agrees_with_etherparse(
        ipv6: bool,
        vlan: bool,
        ports: (u16, u16),
        numbers: (u32, u32, u16),
        flags in 0_u8..64,
        segment_size in proptest::option::of(any::<u16>()),
        payload in 0_usize..1460,
        snap in 60_usize..1600,
    ) {
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]);
        let builder = if vlan {
            let id = 5.try_into().unwrap();
            if ipv6 {
                builder.single_vlan(id).ipv6([3; 16], [4; 16], 64)
            } else {
                builder.single_vlan(id).ipv4([10, 1, 2, 3], [10, 4, 5, 6], 64)
            }
        } else if ipv6 {
            builder.ipv6([3; 16], [4; 16], 64)
        } else {
            builder.ipv4([10, 1, 2, 3], [10, 4, 5, 6], 64)
        };
        let mut tcp = builder.tcp(ports.0, ports.1, numbers.0, numbers.2);
        for (bit, set) in [(FIN, 0), (SYN, 1), (4, 2), (8, 3), (ACK, 4), (32, 5)] {
            if flags & 1 << set == 0 {
                continue;
            }
            tcp = match bit {
                FIN => tcp.fin(),
                SYN => tcp.syn(),
                4 => tcp.rst(),
                8 => tcp.psh(),
                ACK => tcp.ack(numbers.1),
                _ => tcp.urg(0),
            };
        }
        if let Some(size) = segment_size {
            let option = etherparse::TcpOptionElement::MaximumSegmentSize(size);
            tcp = tcp.options(&[option]).unwrap();
        }
        let mut packet = Vec::new();
        tcp.write(&mut packet, &vec![0; payload]).unwrap();
        let captured = &packet[..snap.min(packet.len())];
        let ours = decode(1, captured, packet.len() as u32);
        let sliced = SlicedPacket::from_ethernet(&packet).unwrap();
        let Some(TransportSlice::Tcp(theirs)) = sliced.transport else {
            panic!("no TCP");
        };
        let headers = packet.len() - payload;
        if snap < headers - usize::from(theirs.data_offset() - 5) * 4 {
            prop_assert_eq!(ours, Err(Skip::SnapTooShort));
            return Ok(());
        }
        let ours = ours.unwrap();
        prop_assert_eq!(ours.source.port, theirs.source_port());
        prop_assert_eq!(ours.destination.port, theirs.destination_port());
        prop_assert_eq!(ours.seq, theirs.sequence_number());
        prop_assert_eq!(ours.ack, theirs.acknowledgment_number());
        prop_assert_eq!(ours.window, theirs.window_size());
        prop_assert_eq!(ours.payload as usize, theirs.payload().len());
        let announced = ours.options.segment_size;
        prop_assert_eq!(announced, segment_size.filter(|_| theirs.syn() && snap >= headers));
    }
}
