//! One end of a connection, whatever its stack.

use std::sync::Arc;

use aqmlab_net::{Role, Time};

use crate::own::Quic;
use crate::quic::QuicEnd;
#[cfg(feature = "quinn")]
use crate::quinn::QuinnEnd;
use crate::settings::{HAS_QUINN, Quinn};
use crate::stack::Stack;

/// An end with one of the stacks.
pub type End = Box<dyn Stack + Send>;

/// The ends of the connections of a class: what they have in common is made once.
#[derive(Debug)]
pub enum Class {
    /// QUIC by quinn-proto.
    Quinn(Quinn),
    /// QUIC of our own, and the UDP payload of its datagrams.
    Quic(Arc<aqmlab_quic::Config>),
}

impl Class {
    /// Nothing if this build has no quinn.
    pub fn quinn(settings: &Quinn) -> Option<Self> {
        HAS_QUINN.then(|| Self::Quinn(settings.clone()))
    }

    /// Our QUIC with these settings.
    pub fn quic(settings: &Quic) -> Self {
        Self::Quic(settings.config())
    }

    /// The ends of connection number `connection` of a run with this seed: the client asks for it now.
    #[cfg_attr(
        not(feature = "quinn"),
        expect(unused_variables, reason = "only quinn draws")
    )]
    pub fn connect(&self, (seed, connection): (u64, u64), now: Time) -> [End; 2] {
        Role::BOTH.map(|role| -> End {
            match *self {
                #[cfg(feature = "quinn")]
                Self::Quinn(ref settings) => {
                    Box::new(QuinnEnd::new(settings, role, (seed, connection), now))
                }
                #[cfg(not(feature = "quinn"))]
                Self::Quinn(_) => unreachable!("nobody gets one"),
                Self::Quic(ref config) => Box::new(QuicEnd::new(config, role, now)),
            }
        })
    }

    /// UDP payload of its datagrams.
    pub fn datagram(&self) -> u32 {
        match self {
            Self::Quinn(settings) => settings.datagram.0 as u32,
            Self::Quic(config) => config.datagram as u32,
        }
    }
}
