//! What an AQM is asked, and what it may answer.

use aqmlab_net::{Packet, Time};

use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use aqmlab_declare::Parameters;

/// An AQM's answer to one arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Let the packet in.
    Admit,
    /// Signal congestion: by a mark where ECN is on and the packet capable, else by a drop.
    Signal(Reason),
    /// Drop, whatever ECN allows.
    Drop(Reason),
}

impl Decision {
    /// A signal with this probability, else admission.
    #[inline]
    pub(crate) fn by_chance(probability: f64, draw: &mut impl FnMut() -> f64) -> Self {
        if happens(probability, draw) {
            Self::Signal(Reason::EARLY)
        } else {
            Self::Admit
        }
    }
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It waits in the queue.
    Enqueue,
    /// It waits in the queue and is to carry congestion experienced.
    Mark(Reason),
    /// It is gone.
    Drop(Reason),
}

impl Decision {
    /// What becomes of `packet`: a signal is a mark where `ecn` is on and the packet capable (RFC
    /// 3168, section 5). Whether it `fits` comes last: one that was marked may be an overflow.
    #[inline]
    pub(crate) const fn outcome(self, packet: &Packet, ecn: bool, fits: bool) -> Outcome {
        let outcome = match self {
            Self::Admit => Outcome::Enqueue,
            Self::Signal(reason) if ecn && packet.ecn.is_capable() => Outcome::Mark(reason),
            Self::Signal(reason) | Self::Drop(reason) => return Outcome::Drop(reason),
        };
        if fits {
            outcome
        } else {
            Outcome::Drop(Reason::OVERFLOW)
        }
    }
}

/// What an AQM hears of. Calls that nothing listens to are not made: they cost time per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// [`Aqm::on_arrival`] and [`Aqm::on_idle`]: an AQM that does not hook them admits everything.
    pub arrivals: bool,
    /// [`Aqm::on_outcome`].
    pub outcomes: bool,
    /// The same, but only of packets that it let in and that did not fit.
    pub overflows: bool,
    /// [`Aqm::on_departure`].
    pub departures: bool,
}

impl Hooks {
    /// Arrivals are enough.
    pub const ARRIVALS: Self = Self {
        arrivals: true,
        outcomes: false,
        overflows: false,
        departures: false,
    };
    /// What it let in and did not fit.
    pub const OVERFLOWS: Self = Self {
        overflows: true,
        ..Self::ARRIVALS
    };
    /// What became of each arrival.
    pub const OUTCOMES: Self = Self {
        outcomes: true,
        ..Self::ARRIVALS
    };
    /// When packets leave.
    pub const DEPARTURES: Self = Self {
        departures: true,
        ..Self::ARRIVALS
    };
    /// Both.
    pub const BOTH: Self = Self {
        outcomes: true,
        departures: true,
        ..Self::ARRIVALS
    };
}

/// An AQM: it decides the outcome of one arriving packet over a single FIFO.
///
/// An AQM has no clock, no queue and no random numbers of its own: time and backlog come in as
/// arguments, and it calls `draw` for a number uniform on [0, 1), only when a probability lies
/// strictly between 0 and 1. ECN, limits and counters are the [`FifoQueue`](crate::FifoQueue)'s.
///
/// Events come in the order of their times; at equal times departures, then ticks, then the
/// arrival. Packets depart in the order in which they were let in.
pub trait Aqm {
    /// Decides about `packet`; `queue` is what waits before it.
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision;

    /// What became of the packet that was just decided about; `queue` is what waited before it. A
    /// packet that was let in and did not fit is a drop for [`Reason::OVERFLOW`].
    #[inline]
    fn on_outcome(&mut self, _now: Time, _packet: &Packet, _queue: Backlog, _outcome: Outcome) {}

    /// What the AQM wants to hear of, beside arrivals, idle times and ticks.
    fn hooks(&self) -> Hooks {
        Hooks::ARRIVALS
    }

    /// A packet leaves the queue that came at `arrived`; `queue` is what still waits.
    #[inline]
    fn on_departure(&mut self, _now: Time, _packet: &Packet, _arrived: Time, _queue: Backlog) {}

    /// The wire has been quiet since then: a dequeue found nothing. Called again after each arrival
    /// that is dropped while the link is idle.
    #[inline]
    fn on_idle(&mut self, _since: Time) {}

    /// When the AQM wants to be woken next, whatever arrives.
    #[inline]
    fn next_tick(&self) -> Time {
        Time::NEVER
    }

    /// It is [`next_tick`](Self::next_tick), which moves on; `queue` is what waits. Every tick
    /// comes, if late: ticks have no other effect on the queue.
    #[inline]
    fn on_tick(&mut self, _now: Time, _queue: Backlog) {}

    /// The link has changed.
    fn set_link(&mut self, _link: LinkFacts) {}

    /// Its parameters have changed: `fresh` is what a run with the new ones begins with. What the
    /// AQM has learned stays.
    fn adopt(&mut self, _fresh: Self)
    where
        Self: Sized,
    {
    }

    /// Names of the inner variables that [`probe`](Self::probe) shows, in its order.
    fn probe_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Appends the inner variables, as they are after the last event.
    fn probe(&self, _out: &mut Vec<f64>) {}
}

/// Parameters from which an AQM is made. Beside its own it has two of the FIFO: `limit`, the size of
/// the buffer, and `ecn`, whether capable packets are marked where the AQM signals. Those that are
/// changeable reach it by [`Aqm::adopt`].
pub trait AqmParameters: Parameters {
    /// The AQM that they are for.
    type Aqm: Aqm;

    /// Why it can drop or mark a packet, or the FIFO before it can.
    const REASONS: &'static [Reason];

    /// Whether capable packets are marked where `ecn` does not say it.
    fn marks(&self) -> bool {
        false
    }

    /// The AQM in front of `link`, with an empty queue that has been idle since time 0. `seed` is
    /// for hash functions.
    fn aqm(&self, link: LinkFacts, seed: u64) -> Self::Aqm;
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

/// A probability as it is for a packet of `size` bytes: in proportion to the size where there is a
/// mean to compare it with, at most 1.
#[inline]
pub(crate) fn for_size(probability: f64, size: u32, mean: Option<f64>) -> f64 {
    match mean {
        Some(mean) => (probability * f64::from(size) / mean).min(1.0),
        None => probability,
    }
}
