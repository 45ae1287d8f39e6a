//! What is recorded of single exchanges and connections.

use aqmlab_net::Time;
use aqmlab_tcp::{Probe, Retransmissions};

/// A request/response exchange that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Serial number of its connection.
    pub flow: u64,
    /// Number of its class of traffic.
    pub class: usize,
    /// When it began: for a connection's first exchange the connect, for others the request.
    pub start: Time,
    /// When the client had all of the response.
    pub end: Time,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the response.
    pub response_bytes: u64,
    /// The client's host.
    pub client: u32,
    /// The server's host.
    pub server: u32,
}

impl Exchange {
    /// How long it took.
    #[inline]
    pub fn response_time(&self) -> Time {
        self.end.saturating_sub(self.start)
    }
}

/// What was sent again, of whatever number, until a client had everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetransmittedKinds {
    /// SYNs or SYN-ACKs.
    pub syn: bool,
    /// FINs without data.
    pub fin: bool,
    /// Data.
    pub data: bool,
}

impl From<Retransmissions> for RetransmittedKinds {
    fn from(again: Retransmissions) -> Self {
        Self {
            syn: again.syn > 0,
            fin: again.fin > 0,
            data: again.data > 0,
        }
    }
}

/// A connection or a flow of datagrams: one that has ended, or one that goes on when the run ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Serial number.
    pub flow: u64,
    /// Number of its class of traffic.
    pub class: usize,
    /// When it was opened.
    pub start: Time,
    /// Its minimum round trip.
    pub rtt: Time,
    /// When something happened on it last.
    pub end: Time,
    /// Application bytes that the server received.
    pub request_bytes: u64,
    /// Application bytes that the client received.
    pub response_bytes: u64,
    /// Those of them that it received in the measured span.
    pub measured_bytes: u64,
    /// What both ends sent again.
    pub retransmissions: Retransmissions,
    /// What they had sent again when the client had everything: what delayed it.
    pub delayed_by: RetransmittedKinds,
    /// Whether an end repaired a loss without waiting for its timer.
    pub has_fast_retransmit: bool,
    /// Whether it was aborted.
    pub failed: bool,
}

impl Flow {
    /// From its opening to its end.
    #[inline]
    pub fn duration(&self) -> Time {
        self.end.saturating_sub(self.start)
    }
}

/// The state of a connection's sender at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceRow {
    /// Serial number of the connection.
    pub flow: u64,
    /// Number of its class of traffic.
    pub class: usize,
    /// The moment.
    pub time: Time,
    /// The state.
    pub probe: Probe,
}
