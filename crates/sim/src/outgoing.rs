//! What end points send.

use aqmlab_net::{Role, Time};
use aqmlab_tcp::{Outbox, RoundTrip, Segment, SegmentKind};

use crate::breakdown::Causes;
use crate::engine::Engine;
use crate::event::{Event, Kind};
use crate::network::Network;
use crate::options::MARKS;

/// Where the end point at one side of a connection puts what it sends: on the network at once.
pub(crate) struct Outgoing<'a, E: Engine> {
    network: &'a mut Network<E>,
    now: Time,
    connection: u32,
    sender: Role,
    sent: u32,
}

impl<'a, E: Engine> Outgoing<'a, E> {
    #[inline]
    pub(crate) const fn new(
        network: &'a mut Network<E>,
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

impl<E: Engine> Outgoing<'_, E> {
    /// How many segments it has sent.
    #[inline]
    pub(crate) const fn sent(&self) -> u32 {
        self.sent
    }
}

impl<E: Engine> Outbox for Outgoing<'_, E> {
    fn send(&mut self, segment: Segment) {
        self.send_common(segment);
    }

    #[inline(always)]
    fn send_common(&mut self, segment: Segment) {
        self.sent += 1;
        let options = self.network.put_options(&segment.options);
        let (now, index, sender) = (self.now, self.connection, self.sender);
        let causes = self.network.causes_mut();
        causes.leaves(options & !MARKS, index, sender, &segment, now);
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
