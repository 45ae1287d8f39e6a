//! The hosts of a world, and the paths between them.

use aqmlab_net::{RandomStream, Time};
use aqmlab_scenario::{DelayAt, Hop, Network, Scenario};
use aqmlab_tcp::{Clock, DelayedAck, HostClock, Profile};
use aqmlab_traffic::Connect;

use crate::route::{Common, Path, Routes, Way};

/// The two hosts of a connection, or of a flow of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// The hosts, numbered from 0 on their side.
    pub(crate) client: u32,
    pub(crate) server: u32,
    /// The server sits at the clients' side.
    pub(crate) flipped: bool,
    /// Minimum round trip.
    pub(crate) rtt: Time,
}

impl From<&Connect> for Pair {
    fn from(connect: &Connect) -> Self {
        Self {
            client: connect.client,
            server: connect.server,
            flipped: connect.flipped,
            rtt: connect.rtt,
        }
    }
}

/// The hosts at both sides of every path.
#[derive(Debug)]
pub(crate) struct Hosts {
    paths: Vec<Path>,
    /// Server hosts of each path.
    servers: u32,
    delay_at: DelayAt,
}

impl Hosts {
    /// The hosts of a network, and the ports of all hops of its paths, one way after another.
    /// Between the last link and the clients is the air, if its number is given.
    pub(crate) fn new(network: &Network, air: Option<u16>) -> (Self, Vec<u16>) {
        let (paths, hops) = paths(network, air);
        let hosts = Self {
            paths,
            servers: network.hosts.servers,
            delay_at: network.hosts.delay_at,
        };
        (hosts, hops)
    }

    /// Whether every way of every path is a single hop.
    pub(crate) fn have_single_hops(&self) -> bool {
        let mut ways = self.paths.iter().flat_map(|path| path.ways);
        ways.all(|way| way.hops == 1)
    }

    /// The routes of number `flow` of the connections and flows, whose class has this number, path
    /// and code point. `headers` are bytes of IP and transport header of a packet, and of a SYN, by
    /// sender; none for datagrams, which have no handshake.
    pub(crate) fn routes(
        &self,
        flow: u64,
        (class, path, dscp): (usize, usize, u8),
        pair: &Pair,
        headers: Headers,
    ) -> Routes {
        let nodes = self.nodes(path, pair);
        let path = &self.paths[path];
        let (headers, are_datagrams) = match headers {
            Headers::Tcp(headers) => (headers, false),
            Headers::Datagram(header) => ([[header; 2]; 2], true),
        };
        let common = Common {
            flow,
            rtt: pair.rtt,
            delay_at: self.delay_at,
            flipped: pair.flipped,
            nodes,
            class: class as u16,
            dscp,
            headers,
            are_datagrams,
        };
        Routes::new(&common, path)
    }

    /// Numbers of the hosts at the ends of a connection over a path.
    pub(crate) fn nodes(&self, path: usize, pair: &Pair) -> [u32; 2] {
        let first = self.paths[path].first_node;
        if pair.flipped {
            [first + pair.client, first + self.servers + pair.server]
        } else {
            [first + self.servers + pair.client, first + pair.server]
        }
    }

    /// What a datagram of a server with this minimum round trip takes longer than it does here: where
    /// servers delay what they send, that is left out as if their clocks were behind.
    pub(crate) fn hidden_delay(&self, rtt: Time, path: usize) -> Time {
        match self.delay_at {
            _ if self.paths[path].has_air => Time::ZERO,
            DelayAt::Servers => rtt.saturating_sub(self.link_delay(path)),
            DelayAt::Both | DelayAt::Clients => Time::ZERO,
        }
    }

    /// Propagation on the links of a path, both ways together.
    pub(crate) fn link_delay(&self, path: usize) -> Time {
        self.paths[path].delay
    }
}

/// Bytes of IP and transport header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Headers {
    /// Of a segment, and of a SYN, by sender.
    Tcp([[u32; 2]; 2]),
    /// Of every datagram.
    Datagram(u32),
}

/// The paths of a network, and the ports of all their hops, one way after another.
fn paths(network: &Network, air: Option<u16>) -> (Vec<Path>, Vec<u16>) {
    let mut hops = Vec::new();
    let hosts = network.hosts.servers + network.hosts.clients;
    let paths = network.paths.values().zip(0..);
    let number_of = |hop: &Hop| 2 * hop.link as u16 + u16::from(hop.reversed);
    let paths = paths.map(|(path, number)| Path {
        ways: [false, true].map(|is_back| {
            let ways = network.ways(path);
            let way = ways[usize::from(is_back)].iter().map(number_of);
            let (first, last) = match is_back {
                false => (None, air),
                true => (air, None),
            };
            let ports: Vec<u16> = first.into_iter().chain(way).chain(last).collect();
            let first = match ports[..] {
                [only] => only,
                _ => {
                    hops.extend(&ports);
                    (hops.len() - ports.len()) as u16
                }
            };
            Way {
                first,
                hops: ports.len() as u8,
            }
        }),
        delay: network.delay(path),
        first_node: hosts * number,
        has_air: air.is_some(),
    });
    (paths.collect(), hops)
}

/// The clocks of all hosts. They booted at unrelated times: the phases of their timers are uniform.
pub(crate) fn clocks(scenario: &Scenario, network: &Network) -> Vec<HostClock> {
    let slow = longest(scenario, |profile| match profile.clock {
        Clock::Ticks { period } | Clock::RttTicks { period } => Some(period),
        Clock::Fine { .. } => None,
    });
    let fast = longest(scenario, |profile| match profile.delayed_ack {
        DelayedAck::Grid { period } => Some(period),
        _ => None,
    });
    let hosts = &network.hosts;
    let count = u64::from(hosts.servers + hosts.clients) * network.paths.len() as u64;
    (0..count)
        .map(|index| {
            let mut draws = RandomStream::new(scenario.seed, "host-phase", index);
            let mut phase =
                |period: Time| Time::from_secs_f64(draws.uniform() * period.as_secs_f64());
            let mut wrong = RandomStream::new(scenario.seed, "host-clock", index);
            let offset = wrong.uniform() * hosts.clock_offset.as_secs_f64() * 1e6;
            let drift = wrong.uniform_in(-1.0, 1.0) * f64::from(hosts.clock_drift);
            HostClock {
                offset: offset as u32,
                drift: drift as i32,
                slow: phase(slow),
                fast: phase(fast),
            }
        })
        .collect()
}

/// The longest of the periods that the profiles in use have.
fn longest(scenario: &Scenario, period: impl Fn(&Profile) -> Option<Time>) -> Time {
    let stacks = scenario
        .traffic
        .iter()
        .flat_map(|traffic| traffic.tcp.ends());
    stacks.filter_map(period).max().unwrap_or(Time::ZERO)
}
