//! A connection of the simulated world: two end points and the application that uses them.

use aqmlab_net::{FlowKey, Role, Time};
use aqmlab_scenario::DelayAt;
use aqmlab_tcp::{Endpoint, Events, Flags, Retransmissions};
use aqmlab_traffic::{Connect, Script, Step};

use crate::event::Event;
use crate::limits::Overrides;
use crate::stats::Delays;

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
    /// Where its ports begin in the world's list of hops.
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

    /// Where the port at this hop stands in the world's list.
    #[inline(always)]
    pub(crate) const fn hop(&self, hop: u8) -> usize {
        self.first as usize + hop as usize
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

    /// From now on what happens at the hosts is computed `access_delay` later than it happens.
    pub(crate) fn shift_clocks(&mut self) {
        for route in &mut self.0 {
            route.placement = DelayPlacement::Shifted;
        }
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
    /// Given up because its class stopped, not because the network failed it.
    pub(crate) stopped: bool,
    /// Its state is recorded over time.
    pub(crate) is_traced: bool,
    /// When one of the ends was given something last.
    pub(crate) last_event: Time,
    /// What it has of its own, if anything.
    pub(crate) overrides: Option<Box<Overrides>>,
    pub(crate) app: Application,
}

impl Connection {
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

    /// Whether one of the ends has repaired a loss without waiting for its timer.
    pub(crate) fn has_retransmitted_fast(&self) -> bool {
        self.ends.iter().any(|end| end.fast_retransmits() > 0)
    }
}

/// The applications at both ends, playing a script.
#[derive(Debug)]
pub(crate) struct Application {
    script: Script,
    /// How far client and server have come.
    ends: [Progress; 2],
    /// When the exchange under way began: the first one with the connect.
    asked_at: Time,
    /// Bytes of its request, and what the client had received before it.
    request_bytes: u64,
    received_before: u64,
    pub(crate) token: u32,
    pub(crate) connected_at: Time,
    pub(crate) client: u32,
    pub(crate) server: u32,
    /// Bytes that the client received in the measured span.
    pub(crate) measured_bytes: u64,
    /// What was sent again until the client had everything (or gave up): what delayed it.
    pub(crate) delayed_by: Delays,
    /// The source knows that it is over.
    pub(crate) reported: bool,
}

/// How far an end has come in its program.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Bytes that it has received, and those that it waits for or has waited for.
    received: u64,
    expected: u64,
    /// Number of its next step.
    step: u32,
    waits_for: WaitsFor,
    /// The other end has closed.
    eof: bool,
}

/// What an end waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WaitsFor {
    /// The handshake.
    #[default]
    Connection,
    /// Bytes: as many as it expects.
    Bytes,
    /// The close of the other end.
    Close,
    /// An event that ends a pause; or nothing any more.
    Other,
}

/// What an application does: what its network has to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppAction {
    /// It waits until it hears something.
    Wait,
    /// It waits for its time.
    Pause(Time),
    /// It writes so many bytes; and closes if they are the last.
    Write { bytes: u64, close: bool },
    /// An exchange has begun.
    Asked,
    /// An exchange is over.
    Answered(Answered),
}

/// An exchange that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) asked_at: Time,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
}

impl Application {
    pub(crate) fn new(connect: Connect, now: Time) -> Self {
        Self {
            script: connect.script,
            ends: [Progress::default(); 2],
            asked_at: now,
            request_bytes: 0,
            received_before: 0,
            token: connect.token,
            connected_at: now,
            client: connect.client,
            server: connect.server,
            measured_bytes: 0,
            delayed_by: Delays::default(),
            reported: false,
        }
    }

    /// Bytes that the client and the server have received: responses, requests.
    pub(crate) fn received(&self) -> (u64, u64) {
        let [client, server] = &self.ends;
        (client.received, server.received)
    }

    /// An end point tells its application something. True if that is what it has waited for.
    #[inline(always)]
    pub(crate) fn on_events(&mut self, side: Role, events: Events) -> bool {
        let end = &mut self.ends[side as usize];
        end.received += events.received;
        end.eof |= events.eof;
        match end.waits_for {
            WaitsFor::Connection => events.established,
            WaitsFor::Bytes => end.received >= end.expected,
            WaitsFor::Close => end.eof,
            WaitsFor::Other => false,
        }
    }

    /// What an end does next, now that it need not wait any longer.
    pub(crate) fn act(&mut self, side: Role, now: Time) -> AppAction {
        let end = &mut self.ends[side as usize];
        while let Some(step) = self.script.step(side, end.step) {
            end.step += 1;
            match step {
                Step::Send(bytes) => {
                    let close = self.script.step(side, end.step) == Some(Step::Close);
                    end.step += u32::from(close);
                    if side == Role::Client {
                        self.request_bytes += bytes;
                    }
                    return AppAction::Write { bytes, close };
                }
                Step::Receive(bytes) => {
                    end.expected += bytes;
                    if end.received < end.expected {
                        end.waits_for = WaitsFor::Bytes;
                        return AppAction::Wait;
                    }
                }
                Step::ReceiveClose if end.eof => {}
                Step::ReceiveClose => {
                    end.waits_for = WaitsFor::Close;
                    return AppAction::Wait;
                }
                Step::Pause(Time::ZERO) => {}
                Step::Pause(time) => {
                    end.waits_for = WaitsFor::Other;
                    return AppAction::Pause(time);
                }
                Step::Ask => {
                    self.asked_at = now;
                    self.request_bytes = 0;
                    self.received_before = end.received;
                    return AppAction::Asked;
                }
                Step::Answered => {
                    return AppAction::Answered(Answered {
                        asked_at: self.asked_at,
                        request_bytes: self.request_bytes,
                        response_bytes: end.received - self.received_before,
                    });
                }
                Step::Close => {
                    return AppAction::Write {
                        bytes: 0,
                        close: true,
                    };
                }
            }
        }
        end.waits_for = WaitsFor::Other;
        AppAction::Wait
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
        let connection = size_of::<Slot>() + size_of::<Routes>() + EVENTS * event;
        assert!(connection <= 1000, "{connection} bytes");
    }
}
