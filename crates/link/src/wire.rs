//! The link behind the queue: what a transmission takes, and what befalls packets on the way.

use std::collections::VecDeque;

use aqmlab_aqm::{Holder, LinkFacts, Reason};
use aqmlab_net::{Bytes, Ecn, RandomStream, Rate, Time};
use aqmlab_record::{LinkStats, PacketOutcome};
use aqmlab_scenario::{Link, Reordering};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// It reaches the far end of the link then, with this ECN field.
    Arrives(Time, Ecn),
    /// The discipline drops it, for this reason.
    Dropped(Reason),
    /// It is lost at random on the wire; its transmission ends then.
    Lost(Time),
    /// It waits in the port, which reports later what becomes of it.
    Waits,
}

impl Transmission {
    /// What becomes of a packet in the records, unless it has come with a mark; nothing: it waits.
    pub const fn outcome(self) -> Option<PacketOutcome> {
        match self {
            Self::Waits => None,
            Self::Dropped(reason) => Some(PacketOutcome::Dropped(reason.name())),
            Self::Lost(_) => Some(PacketOutcome::Lost),
            Self::Arrives(_, Ecn::Ce) => Some(PacketOutcome::Marked),
            Self::Arrives(..) => Some(PacketOutcome::Left),
        }
    }
}

/// A packet that was dropped or lost.
#[derive(Clone, Copy, Debug)]
pub struct Dropped<T> {
    /// When.
    pub at: Time,
    /// What the packet is to the port's owner.
    pub item: T,
    /// Why its discipline dropped it; nothing: it was lost at random on the wire.
    pub reason: Option<Reason>,
}

/// How a port has served the packet that it sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When it left the discipline, for the device ring or the wire.
    pub left: Time,
    /// When its transmission ends.
    pub end: Time,
    /// How long it occupies the wire.
    pub transmission: Time,
    /// Propagation on the link.
    pub delay: Time,
    /// Which part of the discipline held it longest, if one did.
    pub holder: Option<Holder>,
}

/// Packets of so many IP bytes and more are rare.
const COMMON_SIZES: usize = 1 << 11;

/// How long packets occupy a link, by their size; `fixed` if that does not matter.
pub(crate) fn transmission_times(facts: LinkFacts, fixed: Option<Time>) -> Box<[Time]> {
    (0..COMMON_SIZES)
        .map(|size| fixed.unwrap_or_else(|| transmission_time(facts, size)))
        .collect()
}

/// How long a packet of `size` IP bytes occupies a link.
pub(crate) fn transmission_time(facts: LinkFacts, size: usize) -> Time {
    facts.rate.transmission_time(size as u64 + facts.framing.0)
}

/// The changes whose times are known; the others come from outside.
pub(crate) fn timed<C, T>(
    changes: &[C],
    value: impl Fn(&C) -> Option<(Time, T)>,
) -> VecDeque<(Time, T)> {
    changes.iter().filter_map(value).collect()
}

/// The link behind the queue.
#[derive(Debug)]
pub(crate) struct Wire {
    facts: LinkFacts,
    /// How long packets occupy it, by their size: a look-up is shorter than a division.
    times: Box<[Time]>,
    /// A processor takes so long for packets of any size.
    fixed_time: Option<Time>,
    delay: Time,
    loss: f64,
    loss_draws: RandomStream,
    reordering: Option<Reordering>,
    reordering_draws: RandomStream,
    /// When the last packet reached the far end, where the delay may change: packets keep their
    /// order when it becomes shorter.
    last_arrival: Option<Time>,
    /// Changes of the delay that are still to come.
    delay_changes: VecDeque<(Time, Time)>,
    /// Changes of the loss that are still to come.
    loss_changes: VecDeque<(Time, f64)>,
    /// Packets leave at multiples of this time; 0: at once.
    batch: Time,
    /// Nothing is lost or held up, and the delay stands.
    is_perfect: bool,
}

impl Wire {
    pub(crate) fn new(
        link: &Link,
        loss_draws: RandomStream,
        reordering_draws: RandomStream,
    ) -> Self {
        let facts = LinkFacts {
            rate: link.rate,
            framing: Bytes(u64::from(link.framing.0)),
        };
        Self {
            facts,
            times: transmission_times(facts, link.packet_time),
            fixed_time: link.packet_time,
            delay: link.delay,
            loss: link.loss,
            loss_draws,
            reordering: link.reordering,
            reordering_draws,
            last_arrival: (!link.delay_changes.is_empty()).then_some(Time::ZERO),
            delay_changes: timed(&link.delay_changes, |it| Some((it.at?, it.delay))),
            loss_changes: timed(&link.loss_changes, |it| Some((it.at?, it.loss))),
            batch: link.ack_batch,
            is_perfect: link.loss == 0.0
                && link.loss_changes.is_empty()
                && link.ack_batch == Time::ZERO
                && link.reordering.is_none()
                && link.delay_changes.is_empty(),
        }
    }

    /// This wire with a delay that may change.
    pub(crate) const fn with_changes(mut self) -> Self {
        self.last_arrival = Some(Time::ZERO);
        self.is_perfect = false;
        self
    }

    pub(crate) const fn facts(&self) -> LinkFacts {
        self.facts
    }

    /// How long a packet of `size` IP bytes occupies it.
    #[inline(always)]
    pub(crate) fn transmission_time(&self, size: u32) -> Time {
        match self.times.get(size as usize) {
            Some(time) => *time,
            None => self.time_of_large(size),
        }
    }

    /// Propagation of what was sent last.
    pub(crate) const fn delay(&self) -> Time {
        self.delay
    }

    /// Whether nothing is lost or held up on it.
    pub(crate) const fn is_perfect(&self) -> bool {
        self.is_perfect
    }

    #[cold]
    fn time_of_large(&self, size: u32) -> Time {
        let by_size = || transmission_time(self.facts, size as usize);
        self.fixed_time.unwrap_or_else(by_size)
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.facts.rate = rate;
        self.times = transmission_times(self.facts, self.fixed_time);
    }

    /// Packets whose transmission begins from now on travel so long.
    pub(crate) const fn set_delay(&mut self, delay: Time) {
        self.delay = delay;
    }

    /// Packets whose transmission begins from now on are lost with this probability.
    pub(crate) const fn set_loss(&mut self, loss: f64) {
        self.loss = loss;
    }

    /// A transmission ends at `end`: where the packet goes.
    #[inline(always)]
    pub(crate) fn carry(&mut self, end: Time, ecn: Ecn, stats: &mut LinkStats) -> Transmission {
        if self.is_perfect {
            return Transmission::Arrives(end + self.delay, ecn);
        }
        match self.arrival(end, stats) {
            Some(time) => Transmission::Arrives(time, ecn),
            None => Transmission::Lost(end),
        }
    }

    /// When a packet reaches the far end, if it does: where packets are lost at random or held up.
    fn arrival(&mut self, end: Time, stats: &mut LinkStats) -> Option<Time> {
        while let Some(&(at, loss)) = self.loss_changes.front() {
            if at > end {
                break;
            }
            self.loss = loss;
            self.loss_changes.pop_front();
        }
        if self.loss > 0.0 && self.loss_draws.uniform() < self.loss {
            stats.on_wire_loss(end);
            return None;
        }
        while let Some(&(at, delay)) = self.delay_changes.front() {
            if at > end {
                break;
            }
            self.delay = delay;
            self.delay_changes.pop_front();
        }
        let held_up = match self.reordering {
            Some(Reordering { share, delay }) if self.reordering_draws.uniform() < share => delay,
            _ => Time::ZERO,
        };
        let leaves = match self.batch.as_nanos() {
            0 => end,
            batch => Time::from_nanos(end.as_nanos().div_ceil(batch) * batch),
        };
        let mut arrives = leaves + self.delay;
        if let Some(last) = &mut self.last_arrival {
            arrives = arrives.max(*last);
            *last = arrives;
        }
        Some(arrives + held_up)
    }
}

/// The way of a packet on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the access point to a station.
    Down,
    /// From a station to the access point.
    Up,
}
