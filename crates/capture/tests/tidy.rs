//! The pass in front of everything: order, second sights, sides, and what stands round IP.

use crate::common;

use aqmlab_capture::{
    By, CaptureReader, Inside, Options, Plan, Shown, Skip, Tidy, arrivals, decode,
};
use aqmlab_net::Time;
use common::{try_vectors, vectors};

pub(crate) const HOME: [u8; 4] = [192, 0, 2, 10];
pub(crate) const FAR: [u8; 4] = [198, 51, 100, 20];
pub(crate) const SYN: u8 = 2;
pub(crate) const ACK: u8 = 16;

/// A segment of a connection: microseconds, from the client, numbers, flags, payload, and the
/// client's port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seg {
    pub(crate) at: u64,
    pub(crate) out: bool,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) len: u16,
    pub(crate) port: u16,
}

/// A request and its response of 30 segments, a packet each millisecond.
pub(crate) fn talk(start: u64, port: u16) -> Vec<Seg> {
    let seg = |at, out, seq, ack, flags, len| Seg {
        at: start + at,
        out,
        seq,
        ack,
        flags,
        len,
        port,
    };
    let mut all = vec![
        seg(0, true, 1000, 0, SYN, 0),
        seg(40_000, false, 5000, 1001, SYN | ACK, 0),
        seg(41_000, true, 1001, 5001, ACK, 0),
        seg(41_500, true, 1001, 5001, ACK, 200),
    ];
    for number in 0..30 {
        let (at, seq) = (82_000 + 2000 * number, 5001 + 1460 * number as u32);
        all.push(seg(at, false, seq, 1201, ACK, 1460));
        all.push(seg(at + 1000, true, 1201, seq + 1460, ACK, 0));
    }
    all
}

pub(crate) fn conversations() -> Vec<Seg> {
    let mut all: Vec<Seg> = (0..6)
        .flat_map(|n| talk(70_000 * n, 40_000 + n as u16))
        .collect();
    all.sort_by_key(|seg| seg.at);
    all
}

pub(crate) fn ip(seg: &Seg, client: [u8; 4], ttl: u8) -> Vec<u8> {
    let total = 40 + seg.len;
    let (source, destination) = if seg.out {
        (client, FAR)
    } else {
        (FAR, client)
    };
    let ports = if seg.out {
        [seg.port, 80]
    } else {
        [80, seg.port]
    };
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, ttl, 6, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    packet.extend(seg.seq.to_be_bytes());
    packet.extend(seg.ack.to_be_bytes());
    packet.extend([0x50, seg.flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet
}

pub(crate) fn ether(packet: &[u8], kind: u16) -> Vec<u8> {
    [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2],
        &kind.to_be_bytes()[..],
        packet,
    ]
    .concat()
}

pub(crate) fn sll(packet: &[u8], kind: u16) -> Vec<u8> {
    let mut frame = kind.to_be_bytes().to_vec();
    frame.extend([0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0]);
    frame.extend(packet);
    frame
}

pub(crate) fn pcap(frames: &[(u64, Vec<u8>)], link: u32) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0, 0]);
    file.extend(link.to_le_bytes());
    for (at, data) in frames {
        let seconds = 1_700_000_000 + at / 1_000_000;
        // What is not captured counts on the wire.
        let len = data.len() as u32;
        for word in [seconds as u32, (at % 1_000_000) as u32, len, len.max(1500)] {
            file.extend(word.to_le_bytes());
        }
        file.extend(data);
    }
    file
}

pub(crate) fn plain(segs: &[Seg]) -> Vec<u8> {
    let frame = |seg: &Seg| (seg.at, ether(&ip(seg, HOME, 64), 0x0800));
    pcap(&segs.iter().map(frame).collect::<Vec<_>>(), 1)
}

pub(crate) fn plan(capture: &[u8]) -> Plan {
    Plan::read(capture, &mut |_| true).unwrap()
}

/// The capture says what the other says.
pub(crate) fn same(capture: &[u8], as_this: &[u8]) {
    let (found, report) = vectors(capture, Options::default());
    let (right, clean) = vectors(as_this, Options::default());
    assert_eq!(found, right);
    assert_eq!(report.vectors, clean.vectors);
    assert_eq!(report.packets.tcp, clean.packets.tcp);
}

#[test]
fn packets_out_of_order_are_put_in_order_and_counted() {
    let segs = conversations();
    let mut mixed = segs.clone();
    mixed.chunks_mut(8).for_each(<[Seg]>::reverse);
    assert_ne!(mixed, segs);
    same(&plain(&mixed), &plain(&segs));
    assert!(plan(&plain(&mixed)).notes.out_of_order > 100);
    assert_eq!(plan(&plain(&segs)).notes.out_of_order, 0);
}

#[test]
fn files_behind_each_other_are_put_in_order() {
    let segs = conversations();
    let (out, back): (Vec<Seg>, Vec<Seg>) = segs.iter().partition(|seg| seg.out);
    same(&plain(&[back, out].concat()), &plain(&segs));
    let late: Vec<Seg> = talk(60_000_000, 40_009);
    let sorted = [segs.clone(), late.clone()].concat();
    same(&plain(&[late, segs].concat()), &plain(&sorted));
}

#[test]
fn a_clock_that_was_set_back_is_said_and_mended() {
    let mut segs = conversations();
    let half = segs.len() / 2;
    for seg in &mut segs {
        seg.at += 10_000_000;
    }
    for seg in &mut segs[half..] {
        seg.at -= 5_000_000;
    }
    let found = plan(&plain(&segs));
    assert_eq!(found.notes.set_back_s.len(), 1);
    assert!((found.notes.set_back_s[0] - 5.0).abs() < 0.1);
    let (vectors, _) = vectors(&plain(&segs), Options::default());
    assert_eq!(vectors.len(), 6);
}

#[test]
fn a_router_sees_each_packet_twice_and_it_counts_once() {
    let segs = conversations();
    // 30 microseconds, and behind a queue of 300 milliseconds.
    for later in [30, 300_000] {
        let twice = segs.iter().flat_map(|seg| {
            [
                (seg.at, sll(&ip(seg, HOME, 64), 0)),
                (seg.at + later, sll(&ip(seg, HOME, 63), 4)),
            ]
        });
        let mut twice: Vec<_> = twice.collect();
        twice.sort_by_key(|one| one.0);
        let (found, report) = vectors(&pcap(&twice, 113), Options::default());
        let (right, _) = vectors(&plain(&segs), Options::default());
        assert_eq!(found, right);
        assert_eq!(report.packets.notes.second_sights, segs.len() as u64);
    }
}

#[test]
fn a_mirror_of_two_ports_counts_once_and_a_retransmission_stays() {
    let mut segs = conversations();
    let copy = Seg {
        at: segs[40].at + 250_000,
        ..segs[40]
    };
    segs.push(copy);
    segs.sort_by_key(|seg| seg.at);
    let both = segs.iter().flat_map(|seg| {
        let frame = ether(&ip(seg, HOME, 64), 0x0800);
        [(seg.at, frame.clone()), (seg.at + 30, frame)]
    });
    let mut both: Vec<_> = both.collect();
    both.sort_by_key(|one| one.0);
    same(&pcap(&both, 1), &plain(&segs));
    assert_eq!(plan(&plain(&segs)).notes.second_sights, 0);
}

#[test]
fn a_translator_of_addresses_makes_no_second_connection() {
    let segs = conversations();
    let public = [203, 0, 113, 5];
    let twice = segs.iter().flat_map(|seg| {
        let (first, second) = if seg.out {
            (HOME, public)
        } else {
            (public, HOME)
        };
        [
            (seg.at, sll(&ip(seg, first, 64), 0)),
            (seg.at + 30, sll(&ip(seg, second, 63), 4)),
        ]
    });
    let mut twice: Vec<_> = twice.collect();
    twice.sort_by_key(|one| one.0);
    let (found, report) = vectors(&pcap(&twice, 113), Options::default());
    let (right, _) = vectors(&plain(&segs), Options::default());
    assert_eq!(found, right);
    assert_eq!(report.packets.notes.translated, 6);
}

#[test]
fn sides_are_groups_without_a_connection_inside() {
    let mut segs = talk(0, 40_000);
    // A host beyond the link opens a connection to the host at home.
    let third = [198, 51, 100, 30];
    let frame = |seg: &Seg| (seg.at, ether(&ip(seg, HOME, 64), 0x0800));
    let mut frames: Vec<_> = segs.iter().map(frame).collect();
    segs = talk(10_000, 50_000);
    frames.extend(segs.iter().map(|seg| {
        let mut packet = ip(seg, third, 64);
        let at = if seg.out { 16 } else { 12 };
        packet[at..at + 4].copy_from_slice(&HOME);
        (seg.at, ether(&packet, 0x0800))
    }));
    let file = pcap(&frames, 1);
    let found = plan(&file);
    assert_eq!(
        (found.sides.shown, found.sides.count()),
        (Shown::Groups, [1, 2])
    );
    let (_, report) = vectors(&file, Options::default());
    assert_eq!(report.connections.made, 2);
    assert_eq!(report.connections.opened_outside, 1);
    let bins = arrivals(
        &file[..],
        &found,
        Time::from_secs(1),
        By::Direction,
        &mut |_| true,
    );
    let bins = bins.unwrap();
    assert_eq!(
        bins.interfaces.len(),
        2,
        "no packet is of neither direction"
    );
}

#[test]
fn a_file_that_is_cut_is_read_to_the_cut() {
    let segs = conversations();
    let whole = plain(&segs);
    let (found, report) = vectors(&whole[..whole.len() - 7], Options::default());
    let (right, _) = vectors(&plain(&segs[..segs.len() - 1]), Options::default());
    assert_eq!(found, right);
    let cut = report.packets.notes.cut.unwrap();
    assert!(cut.contains("the file ends inside this packet"), "{cut}");
    let nothing = try_vectors(&whole[..30], Options::default()).unwrap_err();
    assert!(nothing.to_string().contains("the capture was cut short"));
}

pub(crate) fn in_ip(protocol: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + content.len() as u16).to_be_bytes());
    packet.extend([
        0, 0, 0x40, 0, 64, protocol, 0, 0, 203, 0, 113, 1, 203, 0, 113, 2,
    ]);
    packet.extend(content);
    packet
}

fn in_ipv6(next: u8, content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((content.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(
        [
            [0x20, 1].as_slice(),
            &[0; 13],
            &[1],
            &[0x20, 1],
            &[0; 13],
            &[2],
        ]
        .concat(),
    );
    packet.extend(content);
    packet
}

pub(crate) fn udp(port: u16, content: &[u8]) -> Vec<u8> {
    let mut packet = 50_000_u16.to_be_bytes().to_vec();
    packet.extend(port.to_be_bytes());
    packet.extend((8 + content.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(content);
    in_ip(17, &packet)
}

fn with(head: &[u8], packet: &[u8]) -> Vec<u8> {
    [head, packet].concat()
}

#[test]
fn what_stands_round_ip_is_passed_over() {
    let seg = talk(0, 40_000)[0];
    let packet = ip(&seg, HOME, 64);
    let right = decode(101, &packet, 40).unwrap();
    let frame = ether(&packet, 0x0800);
    let ppp = with(&[0, 0x21], &packet);
    let pppoe = with(&[0x11, 0, 0, 7, 0, 42], &ppp);
    let snap = with(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet);
    let wifi = |control: [u8; 2], more: &[u8]| [&control[..], &[0; 22], more, &snap].concat();
    let radiotap = [0, 0, 9, 0, 2, 0, 0, 0, 0x20];
    let mut padded = wifi([0x88, 1], &[0, 0, 0, 0]);
    padded = with(&radiotap, &padded);
    let mut gtp = vec![0x34, 255, 0, 48, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0];
    gtp.extend(&packet);
    let mut log = vec![2, 0, 0, 0, 5, 0, 1, 0, 9, 0, 0, 0];
    log.extend([44, 0, 9, 0]);
    log.extend(&packet);
    let cases: Vec<(&str, u16, Vec<u8>)> = vec![
        ("PPP", 9, ppp.clone()),
        ("PPP with address and control", 9, with(&[0xff, 3], &ppp)),
        ("PPP with a short protocol", 50, with(&[0x21], &packet)),
        ("PPPoE", 1, ether(&pppoe, 0x8864)),
        (
            "PPPoE in a VLAN",
            1,
            ether(&with(&[0, 7, 0x88, 0x64], &pppoe), 0x8100),
        ),
        (
            "MPLS",
            1,
            ether(&with(&[0, 1, 0, 64, 0, 1, 0x11, 64], &packet), 0x8847),
        ),
        (
            "pseudowire",
            1,
            ether(&with(&[0, 1, 1, 64, 0, 0, 0, 0], &frame), 0x8847),
        ),
        ("LLC", 1, ether(&snap, 60)),
        (
            "GRE",
            1,
            ether(&in_ip(47, &with(&[0, 0, 8, 0], &packet)), 0x0800),
        ),
        (
            "GRE with key",
            101,
            in_ip(47, &with(&[0x20, 0, 8, 0, 0, 0, 0, 9], &packet)),
        ),
        (
            "GRE with a frame",
            101,
            in_ip(47, &with(&[0, 0, 0x65, 0x58], &frame)),
        ),
        (
            "PPTP",
            101,
            in_ip(
                47,
                &with(&[0x30, 1, 0x88, 0x0b, 0, 44, 0, 1, 0, 0, 0, 1], &ppp),
            ),
        ),
        ("IP in IP", 101, in_ip(4, &packet)),
        ("IPv4 in IPv6", 101, in_ipv6(4, &packet)),
        ("tunnel in a tunnel", 101, in_ip(41, &in_ipv6(4, &packet))),
        (
            "VXLAN",
            101,
            udp(4789, &with(&[8, 0, 0, 0, 0, 0, 42, 0], &frame)),
        ),
        (
            "Geneve",
            101,
            udp(6081, &with(&[0, 0, 0x65, 0x58, 0, 0, 42, 0], &frame)),
        ),
        (
            "Geneve with options",
            101,
            udp(6081, &with(&[1, 0, 8, 0, 0, 0, 42, 0, 1, 2, 3, 4], &packet)),
        ),
        (
            "GTP-U",
            101,
            udp(2152, &with(&[0x30, 255, 0, 40, 0, 0, 0, 1], &packet)),
        ),
        ("GTP-U with an extension", 101, udp(2152, &gtp)),
        ("802.11", 105, wifi([8, 1], &[])),
        ("802.11 with QoS", 105, wifi([0x88, 1], &[0, 0])),
        ("802.11 between stations", 105, wifi([8, 3], &[0; 6])),
        (
            "radiotap",
            127,
            with(&[0, 0, 8, 0, 0, 0, 0, 0], &wifi([8, 1], &[])),
        ),
        ("radiotap with padding", 127, padded),
        ("NFLOG", 239, log),
        ("FDDI", 10, with(&[0; 13], &snap)),
        (
            "IP over InfiniBand",
            242,
            [&[0; 40][..], &[8, 0, 0, 0], &packet].concat(),
        ),
        ("Cisco's HDLC", 104, with(&[0x0f, 0, 8, 0], &packet)),
    ];
    for (name, link, data) in cases {
        let found = decode(link, &data, data.len() as u32);
        assert_eq!(found, Ok(right), "{name}");
        for cut in 0..data.len() {
            let _ = decode(link, &data[..cut], data.len() as u32);
        }
    }
}

#[test]
fn what_is_not_read_is_named() {
    let packet = ip(&talk(0, 40_000)[0], HOME, 64);
    let named = |link, data: &[u8]| {
        decode(link, data, data.len() as u32)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(named(147, &packet), "link type 147 (user 0)");
    assert_eq!(named(299, &packet), "link type 299");
    assert_eq!(named(1, &ether(&packet, 0x0806)), "EtherType 0x0806 (ARP)");
    assert_eq!(
        named(1, &ether(&packet, 0x88e5)),
        "EtherType 0x88e5 (MACsec)"
    );
    assert_eq!(named(9, &[0xc0, 0x21, 1, 1]), "PPP protocol 0xc021 (LCP)");
    assert_eq!(named(101, &in_ip(50, &[0; 20])), "IP protocol 50 (ESP)");
    assert_eq!(named(105, &[0x80, 0, 0, 0]), "802.11 management frame");
    // A tunnel whose inside cannot be read is what it is outside.
    assert_eq!(named(101, &udp(4789, &[8; 30])), "IP protocol 17 (UDP)");
    assert_eq!(
        decode(1, &ether(&packet, 0x1234), 60),
        Err(Skip::NotIp(Inside::EtherType(0x1234)))
    );
}

#[test]
fn without_a_plan_packets_come_as_they_stand() {
    let mut segs = conversations();
    segs.swap(0, 9);
    let file = plain(&segs);
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    let plan = Plan::default();
    let mut tidy = Tidy::new(&file[..], &plan).unwrap();
    while let Some(packet) = tidy.next_packet().unwrap() {
        assert_eq!(packet.time, reader.next_packet().unwrap().unwrap().time);
    }
    assert!(reader.next_packet().unwrap().is_none());
}
