//! A connection of the simulated world: two end points and the application that uses them.

use aqmlab_net::Time;
use aqmlab_tcp::{Endpoint, Flags, Retransmissions};
use aqmlab_traffic::{Connect, Exchange, Script};

use crate::event::{Event, Side};

/// One way of a path: its ports, as a part of the world's list of hops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
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
}

/// What the network needs to know of a connection for each of its segments. Kept apart from the
/// rest, so that a segment at the bottleneck touches little memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// Serial number of the connection.
    pub(crate) flow: u64,
    /// Propagation between a host and the entrance of its first port (one way).
    pub(crate) access_delay: Time,
    /// How far the clocks of the hosts are behind, for this connection.
    pub(crate) shift: Time,
    /// The hosts, as indices into the world's nodes.
    pub(crate) nodes: [u32; 2],
    /// The ports that the segments of client and server cross.
    ways: [Way; 2],
    /// Number of the path.
    pub(crate) path: u16,
    /// What the hosts send reaches the first port at once.
    pub(crate) is_shifted: bool,
    /// Differentiated services code point of all packets.
    pub(crate) dscp: u8,
    header: u16,
    syn_header: u16,
}

impl Route {
    /// A connection with this round trip over path number `path`. `flipped`: the server sits at
    /// the clients' side.
    pub(crate) fn new(
        rtt: Time,
        flipped: bool,
        flow: u64,
        nodes: [u32; 2],
        (number, path): (usize, &Path),
    ) -> Self {
        let access = rtt.saturating_sub(path.delay);
        let [there, back] = path.ways;
        Self {
            flow,
            access_delay: Time::from_nanos(access.as_nanos() / 2),
            shift: Time::ZERO,
            nodes,
            ways: if flipped {
                [there, back]
            } else {
                [back, there]
            },
            path: number as u16,
            is_shifted: false,
            dscp: 0,
            header: 0,
            syn_header: 0,
        }
    }

    /// IP and transport header of a packet, and of a SYN, in bytes.
    pub(crate) const fn set_headers(&mut self, header: u32, syn_header: u32) {
        (self.header, self.syn_header) = (header as u16, syn_header as u16);
    }

    /// From now on what happens at the hosts is computed `access_delay` later than it happens.
    pub(crate) const fn shift_clocks(&mut self) {
        self.is_shifted = true;
        self.shift = self.access_delay;
    }

    /// Length in IP bytes of a packet, without the options that are kept aside.
    pub(crate) const fn ip_size(&self, packet: &Event) -> u32 {
        packet.len as u32
            + if packet.flags().has(Flags::SYN) {
                self.syn_header as u32
            } else {
                self.header as u32
            }
    }

    /// Where the port of the segments of `sender` at this hop stands in the world's list.
    #[inline]
    pub(crate) const fn hop(&self, sender: Side, hop: u8) -> usize {
        self.ways[sender as usize].first as usize + hop as usize
    }

    /// How many ports the segments of `sender` cross.
    #[inline]
    pub(crate) const fn hops(&self, sender: Side) -> u8 {
        self.ways[sender as usize].hops
    }
}

/// Two end points and the application between them.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) ends: [Endpoint; 2],
    /// Time of the one timer event that counts, per end. A deadline that moves later leaves the
    /// event where it is; it is pushed again when it fires too early (lazy timers).
    pub(crate) timer_at: [Time; 2],
    /// Segments on their way.
    pub(crate) in_network: u32,
    pub(crate) class: u16,
    /// Given up: what still arrives is ignored.
    pub(crate) failed: bool,
    /// Its state is recorded over time.
    pub(crate) is_traced: bool,
    /// When one of the ends was given something last.
    pub(crate) last_event: Time,
    pub(crate) app: Application,
}

impl Connection {
    pub(crate) fn end(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side as usize]
    }

    /// Nothing can happen on it any more.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.in_network == 0 && (self.failed || self.ends.iter().all(Endpoint::is_finished))
    }

    /// What both ends sent again.
    pub(crate) fn retransmissions(&self) -> Retransmissions {
        let [client, server] = [
            self.ends[0].retransmissions(),
            self.ends[1].retransmissions(),
        ];
        Retransmissions {
            syn: client.syn + server.syn,
            fin: client.fin + server.fin,
            data: client.data + server.data,
            timeouts: client.timeouts + server.timeouts,
        }
    }
}

/// The application at both ends plays a script: request, response, pause, request, ...
#[derive(Debug)]
pub(crate) struct Application {
    script: Script,
    /// Which exchange is under way.
    exchange: usize,
    /// Bytes of all requests up to this exchange, and of all responses.
    requested: u64,
    promised: u64,
    /// Bytes that the server, and the client, have received.
    server_received: u64,
    client_received: u64,
    /// The server has written the response of this exchange.
    answered: bool,
    /// When this exchange began: for the first one the connect, for others the request.
    pub(crate) asked_at: Time,
    pub(crate) flow: u64,
    pub(crate) token: u32,
    pub(crate) connected_at: Time,
    pub(crate) client: u32,
    pub(crate) server: u32,
    /// Bytes that the client received in the measured span.
    pub(crate) measured_bytes: u64,
    /// What was sent again until the client had everything (or gave up): what delayed it.
    pub(crate) delayed_by: Retransmissions,
    /// The source knows that it is over.
    pub(crate) reported: bool,
}

/// What the server does when it has read something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The request is not complete.
    Wait,
    /// Write this many bytes; and close if they are the last.
    Write { bytes: u64, close: bool },
}

impl Application {
    pub(crate) fn new(connect: Connect, flow: u64, now: Time) -> Self {
        let first = connect.script.first;
        Self {
            script: connect.script,
            exchange: 0,
            requested: first.request,
            promised: first.response,
            server_received: 0,
            client_received: 0,
            answered: false,
            asked_at: now,
            flow,
            token: connect.token,
            connected_at: now,
            client: connect.client,
            server: connect.server,
            measured_bytes: 0,
            delayed_by: Retransmissions::default(),
            reported: false,
        }
    }

    /// The exchange under way.
    pub(crate) fn current(&self) -> Exchange {
        match self.exchange {
            0 => self.script.first,
            later => self.script.rest[later - 1],
        }
    }

    /// Bytes that the client and the server have received: responses, requests.
    pub(crate) fn received(&self) -> (u64, u64) {
        (self.client_received, self.server_received)
    }

    fn is_last(&self) -> bool {
        self.exchange == self.script.rest.len()
    }

    /// The server has read `bytes`. Its service time is zero.
    pub(crate) fn server_reads(&mut self, bytes: u64) -> Answer {
        self.server_received += bytes;
        if self.answered || self.server_received < self.requested {
            return Answer::Wait;
        }
        self.answered = true;
        Answer::Write {
            bytes: self.current().response,
            close: self.is_last(),
        }
    }

    /// The client has read `bytes`. True if that completes an exchange which is not the last;
    /// the last one is complete when the server's FIN has arrived.
    pub(crate) fn client_reads(&mut self, bytes: u64) -> bool {
        self.client_received += bytes;
        self.answered && self.client_received >= self.promised && !self.is_last()
    }

    /// Goes on to the next exchange; returns the length of its request.
    pub(crate) fn next_request(&mut self, now: Time) -> u64 {
        self.exchange += 1;
        self.answered = false;
        self.asked_at = now;
        let Exchange {
            request, response, ..
        } = self.current();
        self.requested += request;
        self.promised += response;
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Slot;

    #[test]
    fn a_million_live_connections_fit_into_a_gigabyte() {
        // Beside the slot and the route a connection has a handful of events on their way: a
        // window of segments or ACKs, its timers.
        const EVENTS: usize = 8;
        let event = size_of::<(Time, Event, u32)>();
        let connection = size_of::<Slot>() + size_of::<Route>() + EVENTS * event;
        assert!(connection <= 1000, "{connection} bytes");
    }
}
