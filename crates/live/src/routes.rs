//! What router and load generator share about each connection: its delay, its number, its script,
//! and what was seen of it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use aqmlab_net::{Role, Time};
use aqmlab_tcp::Retransmissions;
use aqmlab_traffic::Script;

use crate::ip::Segment;

/// Servers listen below this port, clients use the others: a packet shows who sent it.
pub(crate) const FIRST_CLIENT_PORT: u16 = 1024;

/// Which side of the bottleneck a host is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Where servers sit, unless a connection is flipped. Their packets go forward.
    Servers = 0,
    /// Where clients sit.
    Clients = 1,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Servers, Self::Clients];

    /// The addresses of this side's hosts, in CIDR notation.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Servers => "10.0.0.0/9",
            Self::Clients => "10.128.0.0/9",
        }
    }

    /// The address of a host.
    pub(crate) fn address(self, host: u32) -> Ipv4Addr {
        let first = [0x0a00_0001_u32, 0x0a80_0001][self as usize];
        (first + host).into()
    }

    /// Whether this side has an address.
    pub(crate) fn has(self, address: Ipv4Addr) -> bool {
        const BITS_OF_HOSTS: u32 = 23;
        u32::from(address) >> BITS_OF_HOSTS == u32::from(self.address(0)) >> BITS_OF_HOSTS
    }

    /// The host of an address on this side.
    pub(crate) fn host(self, address: Ipv4Addr) -> usize {
        u32::from(address).wrapping_sub(u32::from(self.address(0))) as usize
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Servers => Self::Clients,
            Self::Clients => Self::Servers,
        }
    }

    /// The direction of the packets that its hosts send, as results call it.
    pub(crate) const fn direction(self) -> &'static str {
        match self {
            Self::Servers => "forward",
            Self::Clients => "reverse",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Clients => "clients",
        }
    }
}

/// A connection, or a flow of datagrams.
#[derive(Debug)]
pub(crate) struct Route {
    /// Serial number, as in the simulator.
    pub(crate) flow: u64,
    pub(crate) class: usize,
    /// Minimum round trip.
    pub(crate) rtt: Time,
    /// Propagation between the client, or the server, and the bottleneck's entrance, one way.
    pub(crate) access_delays: [Time; 2],
    /// What the application does on it; a flow of datagrams has none.
    pub(crate) script: Option<Script>,
    /// What each end sent, seen when it reached the router.
    sent: [Sent; 2],
    /// Application bytes that the client, and the server, have received.
    received: [AtomicU64; 2],
    /// Those of the client in the measured span.
    measured: AtomicU64,
    /// Datagrams that the router dropped or lost in the measured span.
    lost: AtomicU64,
}

impl Route {
    /// `access_delays` are those between client and bottleneck, and between server and bottleneck.
    pub(crate) fn new(
        flow: u64,
        class: usize,
        rtt: Time,
        access_delays: [Time; 2],
        script: Option<Script>,
    ) -> Self {
        Self {
            flow,
            class,
            rtt,
            access_delays,
            script,
            sent: Default::default(),
            received: Default::default(),
            measured: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// One end has sent a segment.
    pub(crate) fn note_sent(&self, by: Role, segment: &Segment) {
        self.sent[by as usize].note(segment);
    }

    /// One end has received this many bytes.
    pub(crate) fn note_received(&self, by: Role, bytes: u64, measured: bool) {
        self.received[by as usize].fetch_add(bytes, Relaxed);
        if measured && by == Role::Client {
            self.measured.fetch_add(bytes, Relaxed);
        }
    }

    pub(crate) fn note_lost(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    pub(crate) fn received(&self, by: Role) -> u64 {
        self.received[by as usize].load(Relaxed)
    }

    pub(crate) fn measured(&self) -> u64 {
        self.measured.load(Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// What both ends have sent again so far. Expiries of timers cannot be seen from outside.
    pub(crate) fn again(&self) -> Retransmissions {
        let [client, server] = self.sent.each_ref().map(Sent::again);
        Retransmissions {
            syn: client.syn + server.syn,
            fin: client.fin + server.fin,
            data: client.data + server.data,
            timeouts: 0,
        }
    }
}

/// What one end has sent so far. One thread writes it, others read.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    syn: AtomicBool,
    fin: AtomicBool,
    /// Number of the byte behind the last one sent.
    next: AtomicU32,
    syn_again: AtomicU32,
    fin_again: AtomicU32,
    data_again: AtomicU32,
}

impl Sent {
    /// What it has sent again so far; expiries of timers cannot be seen.
    pub(crate) fn again(&self) -> Retransmissions {
        Retransmissions {
            syn: self.syn_again.load(Relaxed),
            fin: self.fin_again.load(Relaxed),
            data: self.data_again.load(Relaxed),
            timeouts: 0,
        }
    }

    pub(crate) fn note(&self, segment: &Segment) {
        let count = |counter: &AtomicU32| counter.fetch_add(1, Relaxed);
        if segment.syn {
            if self.syn.swap(true, Relaxed) {
                count(&self.syn_again);
            }
            self.next.store(segment.seq.wrapping_add(1), Relaxed);
        } else if segment.len > 0 {
            let next = self.next.load(Relaxed);
            // Numbers wrap: what lies less than half the circle behind is old.
            if (segment.seq.wrapping_sub(next) as i32) < 0 {
                count(&self.data_again);
            }
            let end = segment.seq.wrapping_add(segment.len);
            if (end.wrapping_sub(next) as i32) > 0 {
                self.next.store(end, Relaxed);
            }
        } else if segment.fin && self.fin.load(Relaxed) {
            count(&self.fin_again);
        }
        if segment.fin {
            self.fin.store(true, Relaxed);
        }
    }
}

/// The connections by the address and port of their clients.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_client: RwLock<HashMap<SocketAddrV4, Arc<Route>>>,
}

impl Routes {
    /// The route stays until another connection takes its client's port: packets of a connection
    /// may be on their way when its applications are done with it.
    pub(crate) fn insert(&self, client: SocketAddrV4, route: Arc<Route>) {
        let mut routes = self.by_client.write().expect(UNPOISONED);
        routes.insert(client, route);
    }

    pub(crate) fn get(&self, client: SocketAddrV4) -> Option<Arc<Route>> {
        let routes = self.by_client.read().expect(UNPOISONED);
        routes.get(&client).cloned()
    }

    /// The connection that a packet belongs to, and which end sent it.
    pub(crate) fn find(
        &self,
        source: SocketAddrV4,
        destination: SocketAddrV4,
    ) -> Option<(Arc<Route>, Role)> {
        let (client, sender) = if source.port() >= FIRST_CLIENT_PORT {
            (source, Role::Client)
        } else {
            (destination, Role::Server)
        };
        Some((self.get(client)?, sender))
    }
}

const UNPOISONED: &str = "nothing panics while it holds the lock";

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(segments: &[(u32, u32, bool, bool)]) -> Retransmissions {
        let route = Route::new(1, 0, Time::ZERO, [Time::ZERO; 2], None);
        for &(seq, len, syn, fin) in segments {
            let segment = Segment {
                seq,
                len,
                syn,
                fin,
                rst: false,
            };
            route.note_sent(Role::Server, &segment);
        }
        route.again()
    }

    #[test]
    fn what_is_sent_again_is_counted_by_kind() {
        let (syn, data) = ((9, 0, true, false), (10, 100, false, false));
        let fin = (110, 0, false, true);
        assert_eq!(sent(&[syn, data, fin]), Retransmissions::default());
        let again = sent(&[syn, syn, data, data, (110, 0, false, false), fin, fin, fin]);
        assert_eq!((again.syn, again.data, again.fin), (1, 1, 2));
        // Data that carries the FIN counts as data; a lone FIN behind it is sent again.
        let with_fin = (10, 100, false, true);
        let again = sent(&[syn, with_fin, with_fin, fin]);
        assert_eq!((again.data, again.fin), (1, 1));
    }

    #[test]
    fn sequence_numbers_wrap() {
        let start = u32::MAX - 50;
        let again = sent(&[
            (start, 0, true, false),
            (start + 1, 100, false, false),
            (start.wrapping_add(101), 100, false, false),
            (start + 1, 100, false, false),
        ]);
        assert_eq!(again.data, 1);
    }

    #[test]
    fn addresses_name_hosts() {
        for side in Side::BOTH {
            for host in [0, 1, 255, 99_999] {
                assert_eq!(side.host(side.address(host)), host as usize);
            }
        }
        assert_eq!(Side::Clients.address(0).to_string(), "10.128.0.1");
        for (address, expected) in [
            ("10.0.0.0", [true, false]),
            ("10.127.255.255", [true, false]),
            ("10.128.0.0", [false, true]),
            ("10.255.255.255", [false, true]),
            ("9.255.255.255", [false; 2]),
            ("11.0.0.1", [false; 2]),
            ("100.64.0.2", [false; 2]),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(Side::BOTH.map(|side| side.has(address)), expected);
        }
    }
}
