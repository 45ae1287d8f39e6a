//! Packets that the far end sends in the name of a destination outside: that nobody is there, and
//! answers to echo requests.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use aqmlab_capture::checksum;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with,
};

use super::addresses::FAR;
use crate::ip::{double_word, payload};

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;

/// Why a destination cannot be reached: codes of ICMP's message "destination unreachable" (RFC 792,
/// RFC 1812).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreachable {
    Network = 0,
    Host = 1,
    Port = 3,
    /// The rules do not allow it.
    Prohibited = 13,
}

/// Sends whole packets from the far end's network.
#[derive(Debug)]
pub(super) struct Replies(OwnedFd);

impl Replies {
    /// Opens a socket in the network of this thread.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let protocol = Some(ipproto::RAW);
        let socket = socket_with(AddressFamily::INET, SocketType::RAW, flags, protocol)?;
        Ok(Self(socket))
    }

    /// Tells the sender of a packet that its destination cannot be reached.
    pub(super) fn unreachable(&self, packet: &[u8], why: Unreachable) {
        if let Some(reply) = unreachable(packet, why) {
            self.send(&reply);
        }
    }

    /// Tells the sender of a datagram the same, when the datagram itself is gone.
    pub(super) fn flow_unreachable(
        &self,
        client: SocketAddrV4,
        server: SocketAddrV4,
        why: Unreachable,
    ) {
        let mut datagram = header(UDP, *client.ip(), *server.ip(), 8);
        datagram.extend(client.port().to_be_bytes());
        datagram.extend(server.port().to_be_bytes());
        datagram.extend([0, 8, 0, 0]);
        self.unreachable(&datagram, why);
    }

    /// Refuses the connection that a SYN asks for.
    pub(super) fn refuse(&self, syn: &[u8]) {
        if let Some(reply) = refusal(syn) {
            self.send(&reply);
        }
    }

    /// Sends an ICMP message, whose checksum is made here.
    pub(super) fn icmp(&self, from: Ipv4Addr, to: Ipv4Addr, message: &[u8]) {
        self.send(&icmp(from, to, message));
    }

    fn send(&self, packet: &[u8]) {
        let to = Ipv4Addr::from(double_word(packet, 16));
        // A network that is full loses packets.
        let _ = sendto(
            &self.0,
            packet,
            SendFlags::empty(),
            &SocketAddrV4::new(to, 0),
        );
    }
}

/// An IPv4 header, whose checksum the kernel makes.
fn header(protocol: u8, from: Ipv4Addr, to: Ipv4Addr, carried: usize) -> Vec<u8> {
    let size = (IP_HEADER + carried) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&size.to_be_bytes());
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet
}

fn icmp(from: Ipv4Addr, to: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let mut packet = header(ICMP, from, to, message.len());
    packet.extend(message);
    let body = &mut packet[IP_HEADER..];
    body[2..4].fill(0);
    let sum = checksum(body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn unreachable(packet: &[u8], why: Unreachable) -> Option<Vec<u8>> {
    let rest = payload(packet)?;
    let quoted = packet.len() - rest.len() + rest.len().min(8);
    let mut message = vec![3, why as u8, 0, 0, 0, 0, 0, 0];
    message.extend(&packet[..quoted]);
    let [source, destination] = [12, 16].map(|at| Ipv4Addr::from(double_word(packet, at)));
    let from = match why {
        Unreachable::Port => destination,
        _ => FAR,
    };
    Some(icmp(from, source, &message))
}

fn refusal(syn: &[u8]) -> Option<Vec<u8>> {
    const RST_ACK: u8 = 0x14;
    let rest = payload(syn)?;
    let next = double_word(rest, 4).wrapping_add(1);
    let [client, server] = [12, 16].map(|at| Ipv4Addr::from(double_word(syn, at)));
    let mut segment = Vec::with_capacity(20);
    segment.extend(&rest[2..4]);
    segment.extend(&rest[..2]);
    segment.extend([0; 4]);
    segment.extend(next.to_be_bytes());
    segment.extend([5 << 4, RST_ACK, 0, 0, 0, 0, 0, 0]);
    let mut summed = Vec::with_capacity(32);
    summed.extend(server.octets());
    summed.extend(client.octets());
    summed.extend([0, TCP, 0, segment.len() as u8]);
    summed.extend(&segment);
    let sum = checksum(&summed);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    let mut packet = header(TCP, server, client, segment.len());
    packet.extend(segment);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::tests::tcp;

    fn syn() -> Vec<u8> {
        let (client, server) = ("100.64.0.2:4000", "8.8.8.8:443");
        let ends = (client.parse().unwrap(), server.parse().unwrap());
        tcp(ends.0, ends.1, 0, (u32::MAX, 2, 0))
    }

    #[test]
    fn a_refusal_acknowledges_the_syn() {
        let reset = refusal(&syn()).unwrap();
        assert_eq!(reset[12..20], [8, 8, 8, 8, 100, 64, 0, 2]);
        let segment = &reset[IP_HEADER..];
        assert_eq!(double_word(segment, 0), 443 << 16 | 4000);
        // The number behind the SYN wraps.
        assert_eq!(double_word(segment, 8), 0);
        assert_eq!(segment[13], 0x14);
        let mut summed = reset[12..20].to_vec();
        summed.extend([0, TCP, 0, 20]);
        summed.extend(segment);
        assert_eq!(checksum(&summed), 0);
    }

    #[test]
    fn an_error_quotes_the_packet() {
        let syn = syn();
        for (why, from) in [
            (Unreachable::Port, [8, 8, 8, 8]),
            (Unreachable::Host, [100, 64, 0, 1]),
            (Unreachable::Prohibited, [100, 64, 0, 1]),
        ] {
            let error = unreachable(&syn, why).unwrap();
            assert_eq!(error[12..16], from);
            assert_eq!(error[16..20], [100, 64, 0, 2]);
            let message = &error[IP_HEADER..];
            assert_eq!(message[..2], [3, why as u8]);
            assert_eq!(message[8..], syn[..28]);
            assert_eq!(checksum(message), 0);
        }
    }
}
