//! What numbers of link types and protocols are called.

use std::fmt;

use crate::decode::{Inside, Skip};

/// Link types that captures are met with and that are not read, or read only in part.
const LINKS: &[(u16, &str)] = &[
    (3, "AX.25"),
    (6, "token ring"),
    (7, "ARCNET"),
    (99, "Symantec firewall"),
    (107, "frame relay"),
    (109, "OpenBSD encapsulated IP"),
    (114, "LocalTalk"),
    (117, "OpenBSD packet filter log"),
    (122, "IP over fibre channel"),
    (140, "MTP2"),
    (141, "MTP3"),
    (142, "SCCP"),
    (143, "DOCSIS"),
    (147, "user 0"),
    (148, "user 1"),
    (149, "user 2"),
    (150, "user 3"),
    (177, "Linux LAPD"),
    (187, "Bluetooth HCI UART"),
    (189, "USB of Linux"),
    (195, "IEEE 802.15.4"),
    (201, "Bluetooth HCI UART with direction"),
    (220, "USB of Linux with padding"),
    (227, "CAN of Linux"),
    (230, "IEEE 802.15.4 without checksum"),
    (240, "netANALYZER"),
    (243, "MPEG-2 transport stream"),
    (247, "InfiniBand"),
    (248, "SCTP"),
    (249, "USB of Windows"),
    (251, "Bluetooth Low Energy"),
    (252, "upper PDU of Wireshark"),
    (253, "netlink"),
    (254, "Bluetooth monitor of Linux"),
    (256, "Bluetooth Low Energy with radio"),
    (272, "nRF Bluetooth sniffer"),
    (278, "OpenVizsla USB"),
];

const ETHER_TYPES: &[(u16, &str)] = &[
    (0x0806, "ARP"),
    (0x8035, "RARP"),
    (0x8137, "IPX"),
    (0x8808, "Ethernet flow control"),
    (0x8809, "link aggregation"),
    (0x8863, "PPPoE discovery"),
    (0x888e, "802.1X"),
    (0x88cc, "LLDP"),
    (0x88e5, "MACsec"),
    (0x88f7, "precision time protocol"),
    (0x8902, "802.1ag"),
    (0x9000, "loopback test"),
];

const PPP: &[(u16, &str)] = &[
    (0x2d, "compressed TCP/IP"),
    (0x2f, "uncompressed TCP/IP"),
    (0x3d, "multilink"),
    (0x53, "encrypted"),
    (0xfd, "compressed"),
    (0x8021, "IPCP"),
    (0x8057, "IPV6CP"),
    (0x80fd, "CCP"),
    (0xc021, "LCP"),
    (0xc023, "PAP"),
    (0xc025, "link quality"),
    (0xc223, "CHAP"),
];

const PROTOCOLS: &[(u16, &str)] = &[
    (1, "ICMP"),
    (2, "IGMP"),
    (4, "IPv4 in IP"),
    (17, "UDP"),
    (33, "DCCP"),
    (41, "IPv6 in IP"),
    (47, "GRE"),
    (50, "ESP"),
    (58, "ICMPv6"),
    (88, "EIGRP"),
    (89, "OSPF"),
    (103, "PIM"),
    (112, "VRRP"),
    (115, "L2TP"),
    (132, "SCTP"),
    (136, "UDP-Lite"),
];

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |table: &[(u16, &str)], number: u16| {
            let found = table.iter().find(|entry| entry.0 == number);
            found.map_or_else(String::new, |entry| format!(" ({})", entry.1))
        };
        match *self {
            Self::UnknownLink(link) => write!(f, "link type {link}{}", named(LINKS, link)),
            Self::NotIp(Inside::EtherType(number)) => {
                write!(f, "EtherType {number:#06x}{}", named(ETHER_TYPES, number))
            }
            Self::NotIp(Inside::Ppp(number)) => {
                write!(f, "PPP protocol {number:#06x}{}", named(PPP, number))
            }
            Self::NotIp(Inside::Sap(number)) => write!(f, "link control {number:#04x}"),
            Self::NotIp(Inside::Frame(what)) => f.write_str(what),
            Self::NotIp(Inside::Version(number)) => write!(f, "IP version {number}"),
            Self::NotTcp(number) => {
                let number = u16::from(number);
                write!(f, "IP protocol {number}{}", named(PROTOCOLS, number))
            }
            Self::Fragment => f.write_str("IP fragment"),
            Self::SnapTooShort => f.write_str("headers cut by the snap length"),
            Self::Malformed => f.write_str("malformed headers"),
            Self::NoTime => f.write_str("no time stamp"),
        }
    }
}
