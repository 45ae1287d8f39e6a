//! The sender that keeps a record of each segment: what Linux has been since 2018.
//!
//! One mechanism serves all: the record ([`flight`]) gives round trips, delivery rates and the bytes in
//! flight; RACK ([`rack`]) finds losses by it, the tail loss probe ([`probe`]) those that no ACK would
//! show; F-RTO, D-SACK and Eifel take back what proved wrong ([`undo`]); pacing ([`pace`]) spreads what
//! is sent. Congestion controls see all of it in a [`Sample`] per ACK.

mod ack;
mod expected;
pub(crate) mod filter;
pub(crate) mod flight;
mod hystart;
mod judge;
pub(crate) mod pace;
mod probe;
mod rack;
mod send;
mod tail;
mod undo;

use aqmlab_net::Time;

use crate::prr::Prr;
use flight::Flight;
use hystart::HyStart;
use pace::Pace;
use probe::Probe;
use rack::Rack;
use undo::{Spurious, Undo};

/// What such a sender knows.
#[derive(Clone, Debug)]
pub(crate) struct Tracked {
    flight: Flight,
    rack: Rack,
    prr: Prr,
    undo: Undo,
    spurious: Spurious,
    probe: Probe,
    pace: Pace,
    hystart: HyStart,
    /// Behind the last segment sent that was not full.
    small_end: u64,
    /// When the retransmission timer expires, RACK's reordering timer, the probe's.
    rto_at: Time,
    reo_at: Time,
    pto_at: Time,
}

impl Default for Tracked {
    fn default() -> Self {
        Self {
            flight: Flight::default(),
            rack: Rack::default(),
            prr: Prr::default(),
            undo: Undo::default(),
            spurious: Spurious::default(),
            probe: Probe::default(),
            pace: Pace::default(),
            hystart: HyStart::default(),
            small_end: 0,
            rto_at: Time::NEVER,
            reo_at: Time::NEVER,
            pto_at: Time::NEVER,
        }
    }
}
