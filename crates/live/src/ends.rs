//! Which packets belong together, and the numbers of connections in results.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::ip::{self, Headers};
use crate::routes::Side;

/// The ends of a connection or of a flow of datagrams. What has no ports, as fragments, has port 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ends {
    protocol: u8,
    /// The end on the side of clients and programs.
    pub(crate) near: SocketAddrV4,
    pub(crate) far: SocketAddrV4,
}

impl Ends {
    /// Of a packet that one side has sent.
    pub(crate) fn of(from: Side, headers: &Headers) -> Self {
        let protocol = match headers.segment {
            Some(_) => ip::TCP,
            None => ip::UDP,
        };
        Self::between(from, protocol, [headers.source, headers.destination])
    }

    /// Of any whole IPv4 packet that one side has sent.
    pub(crate) fn of_any(from: Side, packet: &[u8]) -> Self {
        let hosts = [12, 16].map(|at| ip::double_word(packet, at));
        let hosts = hosts.map(|host| SocketAddrV4::new(host.into(), 0));
        Self::between(from, packet[9], hosts)
    }

    const fn between(from: Side, protocol: u8, [source, destination]: [SocketAddrV4; 2]) -> Self {
        let (near, far) = match from {
            Side::Clients => (source, destination),
            Side::Servers => (destination, source),
        };
        Self {
            protocol,
            near,
            far,
        }
    }

    pub(crate) const fn are_tcp(&self) -> bool {
        self.protocol == ip::TCP
    }
}

/// Numbers the connections of a run from 1.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    last: AtomicU64,
    of_ends: Mutex<HashMap<Ends, u64>>,
}

impl Numbers {
    /// The number of another connection.
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Relaxed) + 1
    }

    /// The number of all that is sent between two ends.
    pub(crate) fn of(&self, ends: Ends) -> u64 {
        const UNPOISONED: &str = "nothing panics while it holds the lock";
        let mut numbers = self.of_ends.lock().expect(UNPOISONED);
        *numbers.entry(ends).or_insert_with(|| self.next())
    }
}
