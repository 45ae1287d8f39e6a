//! Files of routers, mirrors and users: several places of one path, names that a translator gave,
//! clocks that were set, and files that were put behind each other.

use crate::common::vectors;
use crate::tidy::{
    HOME, SYN, Seg, conversations, ether, in_ip, ip, pcap, plain, plan, same, sll, udp,
};

use aqmlab_capture::{By, CaptureReader, Options, Packet, Plan, Shown, Tidy, arrivals};
use aqmlab_net::Time;

const PUBLIC: [u8; 4] = [203, 0, 113, 5];
const PRIVATE: [u8; 4] = [192, 168, 1, 10];

/// Frames in order of time.
fn sorted(frames: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    let mut frames: Vec<_> = frames.into_iter().collect();
    frames.sort_by_key(|one| one.0);
    frames
}

/// Bytes of TCP data that a capture holds, each direction's.
fn data(capture: &[u8]) -> [u64; 2] {
    let plan = plan(capture);
    let mut reader = Tidy::new(capture, &plan).unwrap();
    let mut found = [0; 2];
    while let Some(packet) = reader.next_packet().unwrap() {
        if let Ok(header) = packet.header {
            found[usize::from(plan.leaves(&packet).unwrap())] += u64::from(header.payload);
        }
    }
    found
}

/// Two segments with data as one, where they follow each other.
fn joined(segs: &[Seg]) -> Vec<Seg> {
    let mut found: Vec<Seg> = Vec::new();
    for seg in segs {
        let before = found
            .iter_mut()
            .rev()
            .find(|one| (one.port, one.out) == (seg.port, seg.out));
        match before {
            Some(one)
                if seg.len > 0 && one.len == 1460 && one.seq + u32::from(one.len) == seg.seq =>
            {
                one.len += seg.len;
            }
            _ => found.push(*seg),
        }
    }
    found
}

#[test]
fn data_count_once_where_one_place_sees_joined_segments() {
    let segs = conversations();
    let right = data(&plain(&segs));
    let one = segs
        .iter()
        .map(|seg| (seg.at, sll(&ip(seg, HOME, 64), 4 * u16::from(!seg.out))));
    let other = joined(&segs);
    let other = other
        .iter()
        .map(|seg| (seg.at + 30, sll(&ip(seg, HOME, 63), 4 * u16::from(seg.out))));
    let file = pcap(&sorted(one.chain(other)), 113);
    assert_eq!(data(&file), right);
    same(&file, &plain(&segs));
}

#[test]
fn halves_of_a_stream_at_two_places_are_all_read() {
    let segs = conversations();
    let frames = segs.iter().enumerate().map(|(at, seg)| {
        let ttl = 63 + (at / 2 % 2) as u8;
        (seg.at, ether(&ip(seg, HOME, ttl), 0x0800))
    });
    assert_eq!(data(&pcap(&sorted(frames), 1)), data(&plain(&segs)));
}

/// `tcpdump -i any` on a router that translates addresses and speaks PPPoE: three sights. Bytes
/// behind the address of a cooked frame mean nothing.
#[test]
fn three_sights_count_once() {
    let segs = conversations();
    let frames = segs.iter().enumerate().flat_map(|(at, seg)| {
        let tail = |mut frame: Vec<u8>| {
            (frame[12], frame[13]) = (at as u8, (at as u8).wrapping_mul(7));
            frame
        };
        let (comes, goes) = (4 * u16::from(!seg.out), 4 * u16::from(seg.out));
        let lan = tail(sll(&ip(seg, PRIVATE, 64), comes));
        let mut device = tail(sll(&ip(seg, PUBLIC, 63), goes));
        device[3] = 2;
        let mut line = tail(sll(&[], goes));
        line[14..16].copy_from_slice(&[0x88, 0x64]);
        line.extend([0x11, 0, 0, 7, 0, 42, 0, 0x21]);
        line.extend(ip(seg, PUBLIC, 63));
        let order = if seg.out {
            [lan, device, line]
        } else {
            [line, device, lan]
        };
        order
            .into_iter()
            .zip(0..)
            .map(|(frame, later)| (seg.at + 10 * later, frame))
    });
    let file = pcap(&sorted(frames), 113);
    assert_eq!(data(&file), data(&plain(&segs)));
    let (_, report) = vectors(&file, Options::default());
    assert_eq!(report.packets.notes.second_sights, 2 * segs.len() as u64);
    assert_eq!(
        (report.packets.tcp, report.connections.made),
        (segs.len() as u64, 6)
    );
    assert_eq!(plan(&file).sides.shown, Shown::Private);
}

/// The capture begins behind the SYNs, and the numbers say who is who.
#[test]
fn a_translator_is_seen_through_without_a_syn() {
    let mut segs: Vec<Seg> = conversations()
        .into_iter()
        .filter(|seg| seg.flags & SYN == 0)
        .collect();
    for seg in &mut segs {
        let own = 0x0101_0000 * u32::from(seg.port - 39_990);
        (seg.seq, seg.ack) = (seg.seq + own, seg.ack + own);
    }
    let frames = segs.iter().flat_map(|seg| {
        let (first, second) = if seg.out {
            (PRIVATE, PUBLIC)
        } else {
            (PUBLIC, PRIVATE)
        };
        [
            (seg.at, sll(&ip(seg, first, 64), 0)),
            (seg.at + 30, sll(&ip(seg, second, 63), 4)),
        ]
    });
    let (_, report) = vectors(&pcap(&sorted(frames), 113), Options::default());
    assert_eq!(
        (report.connections.made, report.packets.notes.translated),
        (6, 6)
    );
    assert_eq!(report.packets.tcp, segs.len() as u64);
}

/// A mirror that doubles a few packets only: those with an identification are known.
#[test]
fn single_copies_are_dropped_if_they_have_an_identification() {
    let segs = conversations();
    let frames = segs.iter().enumerate().flat_map(|(at, seg)| {
        let mut packet = ip(seg, HOME, 64);
        packet[4..6].copy_from_slice(&(at as u16 + 1).to_be_bytes());
        let frame = ether(&packet, 0x0800);
        let copies = 1 + usize::from(at % 9 == 0);
        (0..copies as u64).map(move |copy| (seg.at + 20 * copy, frame.clone()))
    });
    same(&pcap(&sorted(frames), 1), &plain(&segs));
}

#[test]
fn a_step_back_of_a_fifth_of_a_second_is_mended() {
    let mut segs = conversations();
    let half = segs.len() / 2;
    for (at, seg) in segs.iter_mut().enumerate() {
        seg.at += 10_000_000 - if at < half { 0 } else { 200_000 };
    }
    let found = plan(&plain(&segs));
    assert_eq!(found.notes.set_back_s.len(), 1);
    assert!((found.notes.set_back_s[0] - 0.2).abs() < 0.01);
    assert_eq!(found.notes.out_of_order, 0);
}

#[test]
fn captures_behind_each_other_are_one() {
    let segs = conversations();
    let (first, second) = segs.split_at(100);
    let whole = plain(&segs);
    same(&[plain(first), plain(second)].concat(), &whole);
    let big = [plain(first), plain(second).split_off(24)].concat();
    same(&big, &whole);
}

#[test]
fn zeros_behind_the_last_packet_are_a_cut() {
    let segs = conversations();
    let file = [plain(&segs), vec![0; 4096]].concat();
    same(&file, &plain(&segs));
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    while reader.next_packet().unwrap().is_some() {}
    assert!(reader.cut().unwrap().contains("the file holds zeros"));
}

/// ERSPAN of all versions, and what MikroTik's routers send: the mirrored frame counts.
#[test]
fn a_mirrored_frame_has_the_length_that_it_had() {
    let seg = conversations()[0];
    let frame = ether(&ip(&seg, HOME, 64), 0x0800);
    let gre = |head: &[u8]| in_ip(47, &[head, &frame].concat());
    let mirrors = [
        gre(&[0, 0, 0x88, 0xbe]),
        gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0]),
        gre(&[
            0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]),
        udp(37008, &[&[1, 0, 0, 1, 10, 1, 9, 0, 1], &frame[..]].concat()),
    ];
    for packet in mirrors {
        let outer = ether(&packet, 0x0800);
        let file = pcap(&[(0, outer.clone())], 1);
        let mut reader = CaptureReader::new(&file[..]).unwrap();
        let record = reader.next_packet().unwrap().unwrap();
        let found = Packet::read(&record);
        assert!(found.header.is_ok(), "{:?} of {packet:?}", found.header);
        assert_eq!(found.original as usize, frame.len());
    }
}

/// Without sides a packet belongs to the way of who opens connections, not to the way home.
#[test]
fn who_opens_says_the_way_where_nothing_else_does() {
    let hosts = [[198, 51, 100, 1], [198, 51, 100, 2], [198, 51, 100, 3]];
    let mut frames = Vec::new();
    for (at, one) in hosts.iter().enumerate() {
        for seg in conversations() {
            let mut packet = ip(&seg, *one, 64);
            let place = if seg.out { 16 } else { 12 };
            packet[place..place + 4].copy_from_slice(&hosts[(at + 1) % 3]);
            frames.push((seg.at, ether(&packet, 0x0800)));
        }
    }
    let file = pcap(&sorted(frames), 1);
    let found = plan(&file);
    assert_eq!(found.sides.shown, Shown::Nothing);
    let bins = arrivals(
        &file[..],
        &found,
        Time::from_secs(1),
        By::Direction,
        &mut |_| true,
    );
    let bins = bins.unwrap().interfaces;
    let packets = |way: usize| bins[way].packets.iter().sum::<f64>();
    assert_eq!(bins.len(), 2);
    let out = conversations().iter().filter(|seg| seg.out).count();
    assert_eq!(packets(1), 3.0 * out as f64);
    assert!(packets(0) > 0.0);
}

/// What a cable's own addresses, groups and neighbours say to each other parts nobody.
#[test]
fn talk_within_the_house_does_not_hide_its_sides() {
    let segs = conversations();
    let mut frames: Vec<_> = segs
        .iter()
        .map(|seg| (seg.at, ether(&ip(seg, PRIVATE, 64), 0x0800)))
        .collect();
    // A ring of three hosts, and everybody to a group.
    for (at, one) in (0..30_u64).zip((1..4_u8).cycle()) {
        let mut packet = udp(53, &[0; 16]);
        packet[12..20].copy_from_slice(&[192, 168, 1, one, 192, 168, 1, one % 3 + 1]);
        frames.push((1000 * at, ether(&packet, 0x0800)));
        packet[16..20].copy_from_slice(&[224, 0, 0, 251]);
        frames.push((1000 * at + 1, ether(&packet, 0x0800)));
    }
    let file = pcap(&sorted(frames), 1);
    let found: Plan = plan(&file);
    assert_eq!(found.sides.shown, Shown::Private);
    assert_eq!(data(&file), data(&plain(&segs)));
}
