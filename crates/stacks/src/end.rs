//! One end of a connection, whatever its stack.

use std::fmt::Debug;

use aqmlab_net::{Ecn, Role, Time};

#[cfg(feature = "quinn")]
use crate::quinn::QuinnEnd;
use crate::settings::Quinn;

/// What an application has to know, since it was asked for last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The handshake is complete.
    pub established: bool,
    /// Bytes that became readable, in order.
    pub received: u64,
    /// The other end has closed, and everything before that has been received.
    pub finished: bool,
    /// The connection was lost before both ends had closed.
    pub failed: bool,
}

/// Datagrams that leave in one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// UDP payload of each of them; the last may have less.
    pub datagram: usize,
    /// The ECN field of all of them.
    pub ecn: Ecn,
}

/// What a sender is doing, for records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// The slow-start threshold in bytes, if the congestion control has one.
    pub ssthresh: Option<u64>,
    /// Bytes in flight when the last acknowledgement came.
    pub in_flight: u64,
    /// The smoothed round trip.
    pub round_trip: Time,
}

/// A stack at one end of one connection: without sockets, clocks and randomness of its own.
///
/// After every call that gives it something ([`receive`](Self::receive), [`expire`](Self::expire),
/// [`write`](Self::write)), what it wants sent is taken by [`transmit`](Self::transmit) until nothing
/// comes, and its application gets [`progress`](Self::progress), to which it may answer with more
/// calls.
pub trait Stack: Debug {
    /// A datagram arrives, with the ECN field that it has now.
    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]);

    /// The time that was asked for has come.
    fn expire(&mut self, now: Time);

    /// The application writes so many bytes, and says whether they are the last.
    fn write(&mut self, now: Time, bytes: u64, close: bool);

    /// Puts the datagrams to send now behind one another into an empty `payload`; nothing where
    /// there are none.
    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Burst>;

    /// When [`expire`](Self::expire) is to be called; [`Time::NEVER`]: not at all.
    fn deadline(&mut self) -> Time;

    /// What has happened since the last call.
    fn progress(&mut self) -> Progress;

    /// A round trip that was measured since the last call: from sending to the acknowledgement.
    fn round_trip(&mut self) -> Option<Time>;

    /// How many packets were declared lost since the last call.
    fn losses(&mut self) -> u32;

    /// What its sender is doing.
    fn state(&self) -> State;

    /// Both ends have closed, and this one knows that the other has everything.
    fn is_complete(&self) -> bool;

    /// It will never send anything again.
    fn is_silent(&self) -> bool;
}

/// An end with one of the stacks that this build has.
#[derive(Debug)]
pub enum End {
    /// QUIC.
    #[cfg(feature = "quinn")]
    Quinn(Box<QuinnEnd>),
}

impl End {
    /// The end of connection number `connection` of a run with this seed: that of a client asks for
    /// the connection now. Nothing if this build has no such stack.
    pub fn quinn(
        settings: &Quinn,
        role: Role,
        (seed, connection): (u64, u64),
        now: Time,
    ) -> Option<Self> {
        #[cfg(feature = "quinn")]
        return Some(Self::Quinn(Box::new(QuinnEnd::new(
            settings,
            role,
            (seed, connection),
            now,
        ))));
        #[cfg(not(feature = "quinn"))]
        {
            let _ = (settings, role, seed, connection, now);
            None
        }
    }
}

/// Hands a call on to the stack that an end has.
macro_rules! with {
    ($end:expr, $stack:ident => $call:expr) => {{
        #[cfg(feature = "quinn")]
        match $end {
            Self::Quinn($stack) => $call,
        }
        #[cfg(not(feature = "quinn"))]
        match *$end {}
    }};
}

#[cfg_attr(
    not(feature = "quinn"),
    allow(unused_variables, reason = "a build without stacks has no ends")
)]
impl Stack for End {
    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]) {
        with!(self, stack => stack.receive(now, ecn, payload));
    }

    fn expire(&mut self, now: Time) {
        with!(self, stack => stack.expire(now));
    }

    fn write(&mut self, now: Time, bytes: u64, close: bool) {
        with!(self, stack => stack.write(now, bytes, close));
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Burst> {
        with!(self, stack => stack.transmit(now, payload))
    }

    fn deadline(&mut self) -> Time {
        with!(self, stack => stack.deadline())
    }

    fn progress(&mut self) -> Progress {
        with!(self, stack => stack.progress())
    }

    fn round_trip(&mut self) -> Option<Time> {
        with!(self, stack => stack.round_trip())
    }

    fn losses(&mut self) -> u32 {
        with!(self, stack => stack.losses())
    }

    fn state(&self) -> State {
        with!(self, stack => stack.state())
    }

    fn is_complete(&self) -> bool {
        with!(self, stack => stack.is_complete())
    }

    fn is_silent(&self) -> bool {
        with!(self, stack => stack.is_silent())
    }
}
