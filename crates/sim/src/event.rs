//! What can happen, in 24 bytes.

use aqmlab_net::Ecn;
use aqmlab_tcp::{Flags, Segment};

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A segment sent by this side reaches the bottleneck.
    AtPort(Side),
    /// A segment sent by this side reaches the other end.
    AtHost(Side),
    /// A timer of this side of a connection may be due.
    Timer(Side),
    /// The client of a connection ends its pause and sends the next request.
    NextRequest,
    /// A traffic source asked to be woken; `conn` is its class, `seq` its token.
    Source,
}

/// An event without its time. A segment's sequence numbers are cut to 32 bits and restored by
/// whom it reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) conn: u32,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    /// Which of the connections that used this slot is meant (timers outlive connections).
    pub(crate) generation: u32,
    pub(crate) len: u16,
    flags: u8,
    pub(crate) ecn: Ecn,
    pub(crate) kind: Kind,
}

impl Event {
    pub(crate) fn segment(kind: Kind, conn: u32, segment: &Segment) -> Self {
        Self {
            conn,
            seq: segment.seq as u32,
            ack: segment.ack as u32,
            generation: 0,
            len: segment.len as u16,
            flags: segment.flags.0,
            ecn: segment.ecn,
            kind,
        }
    }

    pub(crate) const fn connection(kind: Kind, conn: u32, generation: u32) -> Self {
        let (len, flags, ecn) = (0, 0, Ecn::NotEct);
        Self {
            conn,
            seq: 0,
            ack: 0,
            generation,
            len,
            flags,
            ecn,
            kind,
        }
    }

    pub(crate) const fn source(class: u32, token: u32) -> Self {
        let (len, flags, ecn) = (0, 0, Ecn::NotEct);
        let kind = Kind::Source;
        Self {
            conn: class,
            seq: token,
            ack: 0,
            generation: 0,
            len,
            flags,
            ecn,
            kind,
        }
    }

    pub(crate) const fn flags(&self) -> Flags {
        Flags(self.flags)
    }

    /// Whether this is a segment on its way.
    pub(crate) const fn is_segment(&self) -> bool {
        matches!(self.kind, Kind::AtPort(_) | Kind::AtHost(_))
    }
}
