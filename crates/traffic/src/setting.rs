//! Where the connections of a class go, and what its random numbers are called.

use aqmlab_declare::JsonSchema;
use aqmlab_net::RandomStream;
use serde::{Deserialize, Serialize};

use crate::rtt::{Rank, Rtt};

/// Where the connections of a class go, and what its random numbers are called.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Round-trip times of the connections, without queueing. They have passed their check.
    pub rtt: &'a Rtt,
    /// The way the responses go.
    pub direction: Direction,
    /// The hosts on either side.
    pub hosts: HostCounts,
    /// The seed of the run.
    pub seed: u64,
    /// The class whose name the random streams bear.
    pub class: &'a str,
}

/// The hosts of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) client: u32,
    pub(crate) server: u32,
    /// Whether the sides are swapped, as in [`Connect`](crate::Connect).
    pub(crate) flipped: bool,
    /// Which of the class it is.
    pub(crate) rank: Rank,
}

impl Setting<'_> {
    /// The random numbers of one purpose; `index` tells users or flows apart.
    pub(crate) fn stream(&self, purpose: &str, index: u32) -> RandomStream {
        let name = format!("{}/{purpose}", self.class);
        RandomStream::new(self.seed, &name, u64::from(index))
    }

    /// The hosts of number `index` of `count` flows or sessions, which go round all pairs of hosts.
    pub(crate) fn pair(&self, index: u32, count: u32) -> Pair {
        let (flipped, ordinal) = self.direction.place(index);
        let (client, server) = self.hosts.as_seen(flipped).pair(ordinal);
        Pair {
            client,
            server,
            flipped,
            rank: Rank::Of { index, count },
        }
    }
}

/// How many hosts sit at either side of the dumbbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCounts {
    /// Hosts at the clients' side.
    pub clients: u32,
    /// Hosts at the servers' side.
    pub servers: u32,
}

impl HostCounts {
    /// How many hosts a connection may choose its client and its server from.
    pub(crate) const fn as_seen(self, flipped: bool) -> Self {
        if flipped {
            Self {
                clients: self.servers,
                servers: self.clients,
            }
        } else {
            self
        }
    }

    /// The client and the server of number `ordinal` of the flows that are spread evenly: both
    /// sides go round their hosts, and each time a round of pairs is complete the servers shift by
    /// one, until every pair has had its turn.
    pub(crate) fn pair(self, ordinal: u32) -> (u32, u32) {
        let (ordinal, clients, servers) = (
            u64::from(ordinal),
            u64::from(self.clients),
            u64::from(self.servers),
        );
        let round = clients / greatest_common_divisor(clients, servers) * servers;
        let server = (ordinal + ordinal / round) % servers;
        ((ordinal % clients) as u32, server as u32)
    }
}

/// Direction of the responses of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From servers to clients over the forward link.
    #[default]
    Forward,
    /// Servers and clients exchange their places. The responses cross the reverse link.
    Reverse,
    /// Half of the users or connections use each direction.
    Both,
}

impl Direction {
    /// Whether number `index` of the users (or connections) is flipped, and which number it has
    /// among those that go the same way.
    pub(crate) const fn place(self, index: u32) -> (bool, u32) {
        match self {
            Self::Forward => (false, index),
            Self::Reverse => (true, index),
            Self::Both => (index % 2 == 1, index / 2),
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_pair_of_hosts_gets_a_transfer_before_any_gets_two() {
        for (clients, servers) in [(1, 1), (7, 7), (1, 2), (2, 3), (4, 6), (5, 1)] {
            let hosts = HostCounts { clients, servers };
            let pairs: HashSet<_> = (0..clients * servers).map(|i| hosts.pair(i)).collect();
            assert_eq!(pairs.len(), (clients * servers) as usize, "{hosts:?}");
        }
    }
}
