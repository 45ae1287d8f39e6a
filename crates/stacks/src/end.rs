//! One end of a connection, whatever its stack.

#[cfg(feature = "quic")]
use std::sync::Arc;

use aqmlab_net::{Ecn, Role, Time};

#[cfg(feature = "quic")]
use crate::own::Quic;
#[cfg(feature = "quic")]
use crate::quic::QuicEnd;
#[cfg(feature = "quinn")]
use crate::quinn::QuinnEnd;
use crate::settings::Quinn;
use crate::stack::{Burst, Progress, Stack, State};

/// An end with one of the stacks that this build has.
#[derive(Debug)]
pub enum End {
    /// QUIC by quinn-proto.
    #[cfg(feature = "quinn")]
    Quinn(Box<QuinnEnd>),
    /// QUIC of our own.
    #[cfg(feature = "quic")]
    Quic(Box<QuicEnd>),
}

/// The ends of the connections of a class: what they have in common is made once.
#[derive(Debug)]
pub enum Class {
    /// QUIC by quinn-proto.
    #[cfg(feature = "quinn")]
    Quinn(Quinn),
    /// QUIC of our own, and the UDP payload of its datagrams.
    #[cfg(feature = "quic")]
    Quic(Arc<aqmlab_quic::Config>),
}

#[cfg_attr(
    not(all(feature = "quinn", feature = "quic")),
    allow(
        unused_variables,
        reason = "a build without a stack has no use for its settings"
    )
)]
impl Class {
    /// Nothing if this build has no quinn.
    pub fn quinn(settings: &Quinn) -> Option<Self> {
        #[cfg(feature = "quinn")]
        return Some(Self::Quinn(settings.clone()));
        #[cfg(not(feature = "quinn"))]
        None
    }

    /// Our QUIC with these settings.
    #[cfg(feature = "quic")]
    pub fn quic(settings: &Quic) -> Self {
        Self::Quic(settings.config())
    }

    /// The ends of connection number `connection` of a run with this seed: the client asks for it now.
    pub fn connect(&self, (seed, connection): (u64, u64), now: Time) -> [End; 2] {
        Role::BOTH.map(|role| match *self {
            #[cfg(feature = "quinn")]
            Self::Quinn(ref settings) => {
                let end = QuinnEnd::new(settings, role, (seed, connection), now);
                End::Quinn(Box::new(end))
            }
            #[cfg(feature = "quic")]
            Self::Quic(ref config) => End::Quic(Box::new(QuicEnd::new(config, role, now))),
        })
    }

    /// UDP payload of its datagrams.
    pub fn datagram(&self) -> u32 {
        match *self {
            #[cfg(feature = "quinn")]
            Self::Quinn(ref settings) => settings.datagram.0 as u32,
            #[cfg(feature = "quic")]
            Self::Quic(ref config) => config.datagram as u32,
        }
    }
}

impl End {
    /// What our QUIC does at this end, if it has that: into other stacks nobody sees.
    #[cfg(feature = "quic")]
    pub const fn inside(&self) -> Option<&aqmlab_quic::Connection> {
        match self {
            #[cfg(feature = "quinn")]
            Self::Quinn(_) => None,
            Self::Quic(end) => Some(end.connection()),
        }
    }
}

/// Hands a call on to the stack that an end has.
macro_rules! with {
    ($end:expr, $stack:ident => $call:expr) => {
        match *$end {
            #[cfg(feature = "quinn")]
            Self::Quinn(ref $stack) => $call,
            #[cfg(feature = "quic")]
            Self::Quic(ref $stack) => $call,
        }
    };
    (mut $end:expr, $stack:ident => $call:expr) => {
        match *$end {
            #[cfg(feature = "quinn")]
            Self::Quinn(ref mut $stack) => $call,
            #[cfg(feature = "quic")]
            Self::Quic(ref mut $stack) => $call,
        }
    };
}

#[cfg_attr(
    not(any(feature = "quinn", feature = "quic")),
    allow(unused_variables, reason = "a build without stacks has no ends")
)]
impl Stack for End {
    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]) {
        with!(mut self, stack => stack.receive(now, ecn, payload));
    }

    fn expire(&mut self, now: Time) {
        with!(mut self, stack => stack.expire(now));
    }

    fn write(&mut self, now: Time, bytes: u64, close: bool) {
        with!(mut self, stack => stack.write(now, bytes, close));
    }

    fn split(&mut self, now: Time) {
        with!(mut self, stack => stack.split(now));
    }

    fn ask(&mut self, now: Time, bytes: u64) {
        with!(mut self, stack => stack.ask(now, bytes));
    }

    fn answer(&mut self, now: Time, number: u32, bytes: u64, urgency: u8) {
        with!(mut self, stack => stack.answer(now, number, bytes, urgency));
    }

    fn message(&mut self) -> Option<u32> {
        with!(mut self, stack => stack.message())
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Burst> {
        with!(mut self, stack => stack.transmit(now, payload))
    }

    fn informs_by_sending(&self) -> bool {
        with!(self, stack => stack.informs_by_sending())
    }

    fn deadline(&mut self) -> Time {
        with!(mut self, stack => stack.deadline())
    }

    fn progress(&mut self) -> Progress {
        with!(mut self, stack => stack.progress())
    }

    fn round_trip(&mut self) -> Option<Time> {
        with!(mut self, stack => stack.round_trip())
    }

    fn losses(&mut self) -> u32 {
        with!(mut self, stack => stack.losses())
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
