//! What a marking law is asked, and what it may answer.

use aqmlab_net::{Packet, QueueSize, Time};

use crate::about::Parameters;
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};

/// A law's answer to one arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let the packet in.
    Admit,
    /// Signal congestion: by a mark where ECN is on and the packet capable, else by a drop.
    Signal(Reason),
    /// Drop, whatever ECN allows.
    Drop(Reason),
}

impl Verdict {
    /// A signal with this probability, else admission.
    #[inline]
    pub(crate) fn by_chance(probability: f64, draw: &mut impl FnMut() -> f64) -> Self {
        if happens(probability, draw) {
            Self::Signal(Reason::Early)
        } else {
            Self::Admit
        }
    }
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits in the queue.
    Enqueue,
    /// It waits in the queue and is to carry congestion experienced.
    Mark(Reason),
    /// It is gone.
    Drop(Reason),
}

impl Verdict {
    /// What becomes of `packet`: a signal is a mark where `ecn` is on and the packet capable (RFC
    /// 3168, section 5). Whether it `fits` comes last: one that was marked may be an overflow.
    #[inline]
    pub(crate) const fn fate(self, packet: &Packet, ecn: bool, fits: bool) -> Fate {
        let fate = match self {
            Self::Admit => Fate::Enqueue,
            Self::Signal(reason) if ecn && packet.ecn.is_capable() => Fate::Mark(reason),
            Self::Signal(reason) | Self::Drop(reason) => return Fate::Drop(reason),
        };
        if fits {
            fate
        } else {
            Fate::Drop(Reason::Overflow)
        }
    }
}

/// What a law hears of. Calls that nothing listens to are not made: they cost time per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watches {
    /// [`Law::on_arrival`]: a law that does not watch it admits everything.
    pub arrivals: bool,
    /// [`Law::on_fate`].
    pub fates: bool,
    /// [`Law::on_departure`].
    pub departures: bool,
}

impl Watches {
    /// Arrivals are enough.
    pub const NOTHING: Self = Self {
        arrivals: true,
        fates: false,
        departures: false,
    };
    /// What became of each arrival.
    pub const FATES: Self = Self {
        fates: true,
        ..Self::NOTHING
    };
    /// When packets leave.
    pub const DEPARTURES: Self = Self {
        departures: true,
        ..Self::NOTHING
    };
    /// Both.
    pub const BOTH: Self = Self {
        fates: true,
        departures: true,
        ..Self::NOTHING
    };
}

/// A marking law: it decides the fate of one arriving packet over a single FIFO.
///
/// A law has no clock, no queue and no random numbers of its own: time and backlog come in as
/// arguments, and it calls `draw` for a number uniform on [0, 1), only when a probability lies
/// strictly between 0 and 1. ECN, limits and counters are the [`Gate`](crate::Gate)'s.
///
/// Events come in the order of their times; at equal times departures, then ticks, then the
/// arrival. Packets depart in the order in which they were let in.
pub trait Law {
    /// Decides about `packet`; `queue` is what waits before it.
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Verdict;

    /// What became of the packet that was just decided about; `queue` is what waited before it. A
    /// packet that was let in and did not fit is a drop for [`Reason::Overflow`].
    #[inline]
    fn on_fate(&mut self, _now: Time, _packet: &Packet, _queue: Backlog, _fate: Fate) {}

    /// What the law wants to hear of, beside arrivals, idle times and ticks.
    fn watches(&self) -> Watches {
        Watches::NOTHING
    }

    /// A packet leaves the queue that came at `arrived`; `queue` is what still waits.
    #[inline]
    fn on_departure(&mut self, _now: Time, _packet: &Packet, _arrived: Time, _queue: Backlog) {}

    /// The wire has been quiet since then: a dequeue found nothing. Told again after every arrival
    /// that was dropped although the wire was quiet.
    #[inline]
    fn on_idle(&mut self, _since: Time) {}

    /// When the law wants to be woken next, whatever arrives.
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

    /// Names of the inner variables that [`probe`](Self::probe) shows, in its order.
    fn probe_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Appends the inner variables, as they are after the last event.
    fn probe(&self, _out: &mut Vec<f64>) {}
}

/// Parameters from which a law is made.
pub trait LawParameters: Parameters {
    /// The law that they are for.
    type Law: Law;

    /// The law in front of `link`, with an empty queue that has been idle since time 0. `seed` is
    /// for hash functions.
    fn law(&self, link: LinkFacts, seed: u64) -> Self::Law;

    /// Buffer size; an arrival that would exceed it is dropped.
    fn limit(&self) -> QueueSize;

    /// Whether ECN-capable packets are marked where the law signals.
    fn ecn(&self) -> bool;
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
