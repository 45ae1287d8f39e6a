//! What is written is what was meant, as another decoder reads it.

use std::net::SocketAddr;

use aqmlab_capture::{CaptureReader, CaptureWriter, Checksums, PacketImage, TcpImage, Transport};
use aqmlab_net::{Ecn, Time};
use etherparse::{IpNumber, NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};

const IPV4: [&str; 2] = ["10.0.0.1:40000", "10.1.0.2:80"];
const IPV6: [&str; 2] = ["[2001:db8::1]:40000", "[2001:db8::2]:80"];

fn image<'a>(ends: [&str; 2], transport: Transport<'a>, payload: u32) -> PacketImage<'a> {
    let [source, destination] = ends.map(|end| end.parse::<SocketAddr>().unwrap());
    PacketImage {
        time: Time::from_nanos(1_234_567_890_123),
        interface: 1,
        source,
        destination,
        ecn: Ecn::Ce,
        dscp: 46,
        transport,
        payload,
    }
}

/// Captured bytes and original length of one packet.
fn written(packet: &PacketImage<'_>, snap: u32, checksums: Checksums) -> (Vec<u8>, u32) {
    let mut writer = CaptureWriter::new(Vec::new(), &["there", "back"], snap, checksums).unwrap();
    writer.write(packet).unwrap();
    let bytes = writer.into_inner().unwrap();
    let mut reader = CaptureReader::new(&bytes[..]).unwrap();
    let record = reader.next_packet().unwrap().unwrap();
    assert_eq!(record.time, Some(packet.time));
    let found = (record.data.to_vec(), record.original);
    assert!(reader.next_packet().unwrap().is_none());
    found
}

const TCP: TcpImage<'_> = TcpImage {
    seq: 0x0102_0304,
    ack: 0x0506_0708,
    flags: 0x5a,
    ae: true,
    window: 4097,
    segment_size: None,
    window_scale: None,
    sack_permitted: false,
    timestamps: Some((11, 22)),
    sack: &[(100, 200), (300, 400), (500, 600), (700, 800)],
    accecn: None,
    room: 0,
};

#[test]
fn tcp_over_both_ips_with_valid_checksums() {
    for ends in [IPV4, IPV6] {
        for payload in [0, 1, 1447, 1448] {
            let image = image(ends, Transport::Tcp(TCP), payload);
            let (data, original) = written(&image, u32::MAX >> 8, Checksums::Valid);
            assert_eq!(data.len(), original as usize);
            let packet = SlicedPacket::from_ip(&data).unwrap();
            let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
                panic!("no TCP");
            };
            assert_eq!(tcp.payload().len(), payload as usize);
            assert_eq!(tcp.sequence_number(), TCP.seq);
            assert_eq!(tcp.acknowledgment_number(), TCP.ack);
            assert!(tcp.ns() && tcp.psh() && tcp.ack() && tcp.ece() && tcp.syn() && !tcp.fin());
            assert_eq!(tcp.window_size(), TCP.window);
            let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
            // Three blocks fit beside time stamps.
            let sack = ((100, 200), [Some((300, 400)), Some((500, 600)), None]);
            let mut expected = vec![TcpOptionElement::Noop; 2];
            expected.push(TcpOptionElement::Timestamp(11, 22));
            expected.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            expected.push(TcpOptionElement::SelectiveAcknowledgement(sack.0, sack.1));
            assert_eq!(options, expected);
            let (class, check) = match packet.net.as_ref().unwrap() {
                NetSlice::Ipv4(ip) => {
                    let header = ip.header();
                    let exact = header.to_header().calc_header_checksum();
                    assert_eq!(header.header_checksum(), exact);
                    let ecn = header.ecn().value();
                    let class = header.dcp().value() << 2 | ecn;
                    (
                        class,
                        tcp.calc_checksum_ipv4(header.source(), header.destination()),
                    )
                }
                NetSlice::Ipv6(ip) => {
                    let header = ip.header();
                    let (source, destination) = (header.source(), header.destination());
                    (
                        header.traffic_class(),
                        tcp.calc_checksum_ipv6(source, destination),
                    )
                }
                NetSlice::Arp(_) => panic!("ARP"),
            };
            assert_eq!(class, 46 << 2 | 3);
            assert_eq!(tcp.checksum(), check.unwrap());
        }
    }
}

#[test]
fn the_option_of_accurate_ecn_stands_between_time_stamps_and_blocks() {
    let image = image(
        IPV4,
        Transport::Tcp(TcpImage {
            accecn: Some((174, &[0x01_0203, 0x04_0506])),
            ..TCP
        }),
        0,
    );
    let (data, _) = written(&image, u32::MAX >> 8, Checksums::Valid);
    let options = &data[40..];
    assert_eq!(options[12..20], [174, 8, 1, 2, 3, 4, 5, 6]);
    assert_eq!(options[20..24], [1, 1, 5, 18], "two blocks are left");
    assert_eq!(options.len(), 40);
}

#[test]
fn room_for_options_is_filled_with_no_operations() {
    for (room, sack, expected) in [
        (12, &[][..], 12),
        (12, &TCP.sack[..1], 12),
        (8, &TCP.sack[..1], 12),
    ] {
        let tcp = TcpImage {
            timestamps: None,
            sack,
            room,
            ..TCP
        };
        let image = image(IPV4, Transport::Tcp(tcp), 1448);
        let (data, original) = written(&image, 96, Checksums::Valid);
        assert_eq!(original, 40 + expected + 1448);
        let packet = SlicedPacket::from_ip(&written(&image, 9000, Checksums::Valid).0).map(|_| ());
        assert!(packet.is_ok() && data.len() == 96);
        let carried = 12 * sack.len();
        assert!(
            data[40 + carried..40 + expected as usize]
                .iter()
                .all(|&byte| byte == 1)
        );
    }
}

#[test]
fn syn_options() {
    let syn = TcpImage {
        flags: 2,
        segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        sack: &[],
        ..TCP
    };
    let (data, _) = written(&image(IPV4, Transport::Tcp(syn), 0), 96, Checksums::Valid);
    let packet = SlicedPacket::from_ip(&data).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
        panic!("no TCP");
    };
    let options: Vec<_> = tcp
        .options_iterator()
        .map(Result::unwrap)
        .filter(|option| *option != TcpOptionElement::Noop)
        .collect();
    let expected = [
        TcpOptionElement::MaximumSegmentSize(1460),
        TcpOptionElement::WindowScale(7),
        TcpOptionElement::SelectiveAcknowledgementPermitted,
        TcpOptionElement::Timestamp(11, 22),
    ];
    assert_eq!(options, expected);
}

#[test]
fn udp_over_both_ips() {
    for ends in [IPV4, IPV6] {
        let image = image(ends, Transport::Udp, 182);
        let (data, original) = written(&image, 65_535, Checksums::Valid);
        let packet = SlicedPacket::from_ip(&data).unwrap();
        let Some(TransportSlice::Udp(udp)) = packet.transport else {
            panic!("no UDP");
        };
        assert_eq!((udp.length(), data.len()), (190, original as usize));
        let header = udp.to_header();
        let expected = match packet.net.as_ref().unwrap() {
            NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                assert_eq!(ip.protocol, IpNumber::UDP);
                header.calc_checksum_ipv4(&ip, udp.payload())
            }
            NetSlice::Ipv6(ip) => {
                header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
            }
            NetSlice::Arp(_) => panic!("ARP"),
        };
        assert_eq!(header.checksum, expected.unwrap());
    }
}

#[test]
fn the_snap_length_cuts_and_checksums_may_be_left_out() {
    let packet = image(IPV4, Transport::Tcp(TCP), 1000);
    let (whole, original) = written(&packet, 65_535, Checksums::Valid);
    for snap in [0, 20, 41, 96, 98] {
        let (cut, length) = written(&packet, snap, Checksums::Valid);
        assert_eq!((&cut[..], length), (&whole[..snap as usize], original));
    }
    let (zero, _) = written(&packet, 96, Checksums::Zero);
    assert_eq!((&zero[10..12], &zero[36..38]), (&[0; 2][..], &[0; 2][..]));
}

#[test]
fn what_fits_into_no_packet_is_refused() {
    let mut writer = CaptureWriter::new(Vec::new(), &["x"], 96, Checksums::Valid).unwrap();
    let long = image(IPV4, Transport::Udp, 65_401);
    assert!(writer.write(&long).is_err());
    let mixed = image([IPV4[0], IPV6[1]], Transport::Udp, 1);
    assert!(writer.write(&mixed).is_err());
}
