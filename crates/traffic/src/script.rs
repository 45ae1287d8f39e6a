//! What an application does with its connections.

use aqmlab_net::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One epoch of a connection in the a-b-t model: bytes out, bytes back, a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes that the client sends.
    pub request: u64,
    /// Bytes that the server answers with, once it has the whole request.
    pub response: u64,
    /// Time between the end of the response and the next exchange.
    pub pause: Time,
}

/// What happens on one connection: exchanges one after the other. The server closes after the
/// last response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The first exchange; most connections have no other.
    pub first: Exchange,
    /// The others, in order.
    pub rest: Vec<Exchange>,
}

impl Script {
    /// A script of one exchange.
    pub const fn single(request: u64, response: u64) -> Self {
        Self {
            first: Exchange {
                request,
                response,
                pause: Time::ZERO,
            },
            rest: Vec::new(),
        }
    }
}

/// A connection to open now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Handed back to [`Source::on_finished`](crate::Source::on_finished). Several connections of
    /// a source may share one: it names the user, where there are users.
    pub token: u32,
    /// The client's host, numbered from 0 among the hosts of the side where clients sit.
    pub client: u32,
    /// The server's host, numbered from 0 among the hosts of the side where servers sit.
    pub server: u32,
    /// Minimum round-trip time.
    pub rtt: Time,
    /// Whether the sides are swapped: this connection's server is one of the dumbbell's client
    /// hosts, and its client one of the server hosts.
    pub flipped: bool,
    /// What happens on it.
    pub script: Script,
}

/// A flow of datagrams, from a server to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDatagrams {
    /// Names the flow: 0, 1, 2, ... in the order in which the source opens them.
    pub token: u32,
    /// The receiver's host, numbered from 0 among the hosts of the side where clients sit.
    pub client: u32,
    /// The sender's host, numbered from 0 among the hosts of the side where servers sit.
    pub server: u32,
    /// Minimum round-trip time.
    pub rtt: Time,
    /// Whether the sides are swapped, as in [`Connect`].
    pub flipped: bool,
}

/// What a source wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection.
    Connect(Connect),
    /// Get ready to send datagrams.
    OpenDatagrams(OpenDatagrams),
    /// Send a datagram now.
    Datagram {
        /// Which flow it belongs to.
        token: u32,
        /// IP bytes, headers included.
        size: u32,
    },
    /// A connection was not opened: the class has as many as it may.
    Refused,
    /// End all connections of the class now, at both ends. They have not failed.
    EndConnections,
    /// Call [`Source::on_wake`](crate::Source::on_wake) with this token at that time.
    WakeAt {
        /// When.
        at: Time,
        /// Handed back.
        token: u32,
    },
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
}

/// The way the responses of a class go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Servers to clients over the forward link.
    #[default]
    Forward,
    /// The other way: the servers sit at the clients' side.
    Reverse,
    /// Half of the users (or connections) each way.
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
