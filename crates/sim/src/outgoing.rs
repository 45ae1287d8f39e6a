//! What end points send.

use aqmlab_net::{Role, Time};
use aqmlab_tcp::{Outbox, RoundTrip, Segment, SegmentKind};

use crate::event::{Event, Kind};
use crate::event_queue::EventQueue;
use crate::network::Network;

/// Where the end point at one side of a connection puts what it sends: on the network at once.
pub(crate) struct Outgoing<'a, A> {
    network: &'a mut Network<A>,
    now: Time,
    connection: u32,
    sender: Role,
    sent: u32,
}

impl<'a, A> Outgoing<'a, A> {
    #[inline]
    pub(crate) const fn new(
        network: &'a mut Network<A>,
        now: Time,
        connection: u32,
        sender: Role,
    ) -> Self {
        Self {
            network,
            now,
            connection,
            sender,
            sent: 0,
        }
    }
}

impl<A> Outgoing<'_, A> {
    /// How many segments it has sent.
    #[inline]
    pub(crate) const fn sent(&self) -> u32 {
        self.sent
    }
}

impl<A: EventQueue> Outbox for Outgoing<'_, A> {
    fn send(&mut self, segment: Segment) {
        self.send_common(segment);
    }

    #[inline(always)]
    fn send_common(&mut self, segment: Segment) {
        self.sent += 1;
        let options = self.network.put_options(&segment.options);
        let kind = Kind::AtPort(self.sender);
        let event = Event::segment(kind, self.connection, &segment, options);
        self.network.send(self.now, event);
    }

    fn on_round_trip(&mut self, sample: &RoundTrip) {
        // What matters is the way of the responses.
        if self.sender == Role::Server {
            self.network
                .on_round_trip(self.now, self.connection, sample);
        }
    }

    fn on_retransmission(&mut self, kind: SegmentKind) {
        self.network
            .on_retransmission(self.now, self.connection, kind);
    }
}
