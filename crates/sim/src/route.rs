//! The ways of packets through the network, and where they are delayed.

use aqmlab_net::{FlowKey, Role, Time};
use aqmlab_scenario::DelayAt;
use aqmlab_tcp::Flags;

use crate::event::Event;

/// One way of a path: its ports, as a part of the world's list of hops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Where its ports begin in the list; of a single hop, the port itself.
    pub(crate) first: u16,
    pub(crate) hops: u8,
}

/// A path through the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// From servers to clients, from clients to servers.
    pub(crate) ways: [Way; 2],
    /// Propagation on its links, both ways together: part of every round trip.
    pub(crate) delay: Time,
    /// Its first host among the world's nodes: servers, then clients.
    pub(crate) first_node: u32,
    /// Its clients are at the air, which all delay lies behind.
    pub(crate) has_air: bool,
}

/// Where the delay between hosts and ports is paid by what one end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DelayPlacement {
    /// Between the host and the entrance of its first port.
    Before,
    /// Between the exit of the last port and the receiver.
    Behind,
    /// Before the first port, but what the hosts send reaches it at once: their clocks are behind
    /// by this delay, for this connection.
    Shifted,
}

/// What the network needs to know of the packets of one end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// The serial number of the connection, and behind it who sends.
    pub(crate) flow: FlowKey,
    /// Propagation between hosts and ports (one way).
    pub(crate) access_delay: Time,
    /// The host that sends, as an index into the world's hosts.
    pub(crate) node: u32,
    pub(crate) class: u16,
    /// Where its ports begin in the world's list of hops; of a single hop, the port itself.
    first: u16,
    header: u16,
    syn_header: u16,
    /// How many ports it has.
    pub(crate) hops: u8,
    /// Differentiated services code point of all packets.
    pub(crate) dscp: u8,
    /// Where `access_delay` lies.
    pub(crate) placement: DelayPlacement,
    /// A flow of datagrams, no connection.
    pub(crate) are_datagrams: bool,
}

/// What both ends of a connection, or of a flow of datagrams, have in common on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    /// The serial number.
    pub(crate) flow: u64,
    /// Minimum round trip.
    pub(crate) rtt: Time,
    /// Who pays what of it lies between hosts and ports.
    pub(crate) delay_at: DelayAt,
    /// The server sits at the clients' side.
    pub(crate) flipped: bool,
    /// The hosts, as indices into the world's hosts: client, server.
    pub(crate) nodes: [u32; 2],
    pub(crate) class: u16,
    pub(crate) dscp: u8,
    /// Bytes of IP and transport header of a packet, and of a SYN, by sender.
    pub(crate) headers: [[u32; 2]; 2],
    pub(crate) are_datagrams: bool,
}

impl Route {
    /// How far the clocks of the hosts are behind, for this connection.
    #[inline(always)]
    pub(crate) const fn shift(&self) -> Time {
        match self.placement {
            DelayPlacement::Before | DelayPlacement::Behind => Time::ZERO,
            DelayPlacement::Shifted => self.access_delay,
        }
    }

    /// From a host to the entrance of its first port.
    #[inline(always)]
    pub(crate) const fn delay_before(&self) -> Time {
        match self.placement {
            DelayPlacement::Before | DelayPlacement::Shifted => self.access_delay,
            DelayPlacement::Behind => Time::ZERO,
        }
    }

    /// From the exit of the last port until the receiver deals with it.
    #[inline(always)]
    pub(crate) const fn delay_behind(&self) -> Time {
        match self.placement {
            DelayPlacement::Before => Time::ZERO,
            DelayPlacement::Behind | DelayPlacement::Shifted => self.access_delay,
        }
    }

    /// Length in IP bytes of a packet, without the options that are kept aside.
    #[inline(always)]
    pub(crate) const fn ip_size(&self, packet: &Event) -> u32 {
        packet.len as u32
            + if packet.flags().has(Flags::SYN) {
                self.syn_header as u32
            } else {
                self.header as u32
            }
    }

    /// Its first port, of a route that has only one.
    #[inline(always)]
    pub(crate) const fn only_port(&self) -> usize {
        self.first as usize
    }

    /// The port at this hop. `hops` is the world's list.
    #[inline(always)]
    pub(crate) fn port(&self, hop: u8, hops: &[u16]) -> usize {
        if self.hops == 1 {
            return self.only_port();
        }
        usize::from(hops[usize::from(self.first) + usize::from(hop)])
    }
}

/// The routes of both ends. Kept apart from the connection and in a cache line of their own: a
/// segment at the bottleneck touches nothing else.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Routes([Route; 2]);

impl Routes {
    /// Those over `path`.
    pub(crate) fn new(common: &Common, path: &Path) -> Self {
        let access = common.rtt.saturating_sub(path.delay);
        // Hosts delay what they send.
        let [client, server] = common.delay_at.shares(access);
        let (delays, placement) = match common.delay_at {
            DelayAt::Both => (
                [client, server],
                [DelayPlacement::Before, DelayPlacement::Before],
            ),
            DelayAt::Clients => (
                [client, server],
                [DelayPlacement::Before, DelayPlacement::Behind],
            ),
            // The same on what it receives, as if its clock were behind: its packets need no event
            // on their way.
            DelayAt::Servers => (
                [server, client],
                [DelayPlacement::Behind, DelayPlacement::Behind],
            ),
        };
        // A client answers into the medium from which it has just got something: what it sends is
        // delayed behind, at whichever end the delay lies.
        let (delays, placement) = match (path.has_air, common.flipped) {
            (false, _) => (delays, placement),
            (true, false) => (
                [client, server],
                [DelayPlacement::Behind, DelayPlacement::Before],
            ),
            (true, true) => (
                [client, server],
                [DelayPlacement::Before, DelayPlacement::Behind],
            ),
        };
        let [there, back] = path.ways;
        let ways = if common.flipped {
            [there, back]
        } else {
            [back, there]
        };
        Self([Role::Client, Role::Server].map(|sender| {
            let way = ways[sender as usize];
            let [header, syn_header] = common.headers[sender as usize];
            Route {
                flow: FlowKey(common.flow << 1 | sender as u64),
                access_delay: delays[sender as usize],
                node: common.nodes[sender as usize],
                class: common.class,
                first: way.first,
                header: header as u16,
                syn_header: syn_header as u16,
                hops: way.hops,
                dscp: common.dscp,
                placement: placement[sender as usize],
                are_datagrams: common.are_datagrams,
            }
        }))
    }

    /// That of what this end sends.
    #[inline(always)]
    pub(crate) const fn of(&self, sender: Role) -> &Route {
        &self.0[sender as usize]
    }

    /// The serial number of the connection.
    pub(crate) const fn flow(&self) -> u64 {
        self.0[0].flow.0 >> 1
    }

    /// How far the clocks of the hosts are behind, for this connection.
    #[inline(always)]
    pub(crate) const fn shift(&self) -> Time {
        self.0[0].shift()
    }

    /// The minimum round trip over links with this propagation delay, both ways together.
    pub(crate) fn round_trip(&self, link_delay: Time) -> Time {
        let [client, server] = self.0;
        link_delay + client.access_delay + server.access_delay
    }

    /// From now on what happens at the hosts is computed `access_delay` later than it happens.
    pub(crate) fn shift_clocks(&mut self) {
        for route in &mut self.0 {
            route.placement = DelayPlacement::Shifted;
        }
    }
}
