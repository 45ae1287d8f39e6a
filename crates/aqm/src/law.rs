//! What a marking law is asked, and what it may answer.

use aqmlab_net::{Packet, Rate, Time};

/// The link that a discipline serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Bits per second on the wire.
    pub rate: Rate,
}

/// What waits in a queue. The arriving packet, the packet on the wire and the device ring are not
/// part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// IP bytes.
    pub bytes: u64,
}

/// A law's answer to one arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let the packet in.
    Admit,
    /// Signal congestion: by a mark where ECN allows it, else by a drop.
    Signal {
        /// Whether the law lets a mark replace the drop at this point.
        may_mark: bool,
    },
    /// Drop, whatever ECN allows.
    Forced,
}

/// A marking law: it decides the fate of one arriving packet over a single FIFO.
///
/// A law has no clock, no queue and no random numbers of its own: time and backlog come in as
/// arguments, and it calls `draw` for a number uniform on [0, 1), only when a probability lies
/// strictly between 0 and 1. ECN, limits and counters are the [`Gate`](crate::Gate)'s.
pub trait Law {
    /// Decides about `packet`; `queue` is what waits before it.
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Verdict;

    /// The packet that was just decided about did not fit in the buffer.
    fn on_overflow(&mut self) {}

    /// The wire has been quiet since then: a dequeue found nothing.
    fn on_idle(&mut self, _since: Time) {}

    /// Names of the inner variables that [`probe`](Self::probe) shows, in its order.
    fn probe_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Appends the inner variables, as they are after the last event.
    fn probe(&self, _out: &mut Vec<f64>) {}
}

/// One draw of a chance: the random number is drawn only when the outcome is open.
#[inline]
pub(crate) fn happens(probability: f64, draw: &mut impl FnMut() -> f64) -> bool {
    if probability <= 0.0 {
        false
    } else if probability >= 1.0 {
        true
    } else {
        draw() < probability
    }
}
