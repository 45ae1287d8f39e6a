//! One step of a path.

use std::num::NonZeroU16;

use aqmlab_net::Time;
use aqmlab_record::{LostSegment, PARTS_OF_PORT, Part, PathCount};

use super::label::Label;
use super::loss::Place;

/// A vector: the last node of its chain, by its place.
pub(super) type Vector = u32;

/// No node.
pub(super) const NONE: Vector = Vector::MAX;

/// What a trip waits for at a port, then at the hosts.
pub(super) const WAITS: usize = PARTS_OF_PORT + ASIDE.len();

/// The parts of the waits behind those of the port.
pub(super) const ASIDE: [Part; 3] = [Part::WaitHosts, Part::TransmissionHosts, Part::HoldUp];

/// What a node adds to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Nothing,
    /// A segment's way. What is none of its waits is propagation.
    Trip(Label, LostSegment),
    /// A port on the way of a segment, before the last port that it has passed.
    Port,
    /// More of a wait than its 32 bits can say, so many ns: those of `until`.
    Long(u8),
    /// All of its time, and a count.
    Part(Part, Option<PathCount>),
    /// A loss, by its cost and by a word that says what was lost: the first words of `waits`.
    Loss,
    /// It stands for a chain, whose sums are the words `more`.
    Sums,
}

/// A step of a path: a line of the cache, since all that are in use should fit into the cache beside
/// the world.
///
/// Its time is what `until` is behind that of the step before.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Node {
    /// When its exchange began.
    pub(super) origin: Time,
    /// Up to when it accounts; of a trip, up to when the way is known.
    pub(super) until: Time,
    /// The step before; of a free place, the next one.
    pub(super) parent: Vector,
    /// How many refer to it.
    pub(super) holders: u32,
    /// What does not fit into the node of a trip; the place of sums.
    pub(super) more: u32,
    /// At the last port, and at the hosts, in ns.
    pub(super) waits: [u32; WAITS],
    /// Where its segment was dropped, and why.
    pub(super) lost: Option<Place>,
    /// The port that it has passed last, counted from 1.
    pub(super) port: Option<NonZeroU16>,
    pub(super) step: Step,
    pub(super) depth: u8,
    /// A first transmission that is not acknowledged refers to it.
    pub(super) is_first: bool,
    pub(super) is_under_way: bool,
}

const _: () = assert!(size_of::<Node>() == 64, "a node is a line of the cache");

/// The node of an exchange that begins, which has one holder.
pub(super) const ROOT: Node = Node {
    origin: Time::ZERO,
    until: Time::ZERO,
    parent: NONE,
    holders: 1,
    more: NONE,
    waits: [0; WAITS],
    lost: None,
    port: None,
    step: Step::Nothing,
    depth: 0,
    is_first: false,
    is_under_way: false,
};

impl Node {
    /// Where the parts of its port begin.
    #[inline(always)]
    pub(super) fn parts_of_port(&self) -> Option<usize> {
        let port = usize::from(self.port?.get()) - 1;
        Some(Part::ALL.len() + PARTS_OF_PORT * port)
    }

    /// The part of one of its waits.
    pub(super) fn part_of_wait(&self, wait: usize) -> Option<usize> {
        match wait.checked_sub(PARTS_OF_PORT) {
            Some(aside) => Some(ASIDE[aside] as usize),
            None => Some(self.parts_of_port()? + wait),
        }
    }

    /// What it spent at the last port; in all.
    #[inline(always)]
    pub(super) fn add_port_to(&self, sums: &mut [u64]) -> u64 {
        let mut all = 0;
        if let Some(first) = self.parts_of_port() {
            let at_port = &mut sums[first..first + PARTS_OF_PORT];
            for (sum, time) in at_port.iter_mut().zip(&self.waits) {
                *sum += u64::from(*time);
                all += u64::from(*time);
            }
        }
        all
    }

    /// What more a trip waits for by this node; in all.
    pub(super) fn add_further_to(&self, sums: &mut [u64]) -> u64 {
        match self.step {
            Step::Long(wait) => {
                let time = self.until.as_nanos();
                if let Some(part) = self.part_of_wait(wait.into()) {
                    sums[part] += time;
                }
                time
            }
            _ => self.add_port_to(sums),
        }
    }

    /// What it spent at the hosts, and held up on the wire; in all.
    #[inline(always)]
    pub(super) fn add_aside_to(&self, sums: &mut [u64]) -> u64 {
        let mut all = 0;
        for (part, time) in ASIDE.iter().zip(&self.waits[PARTS_OF_PORT..]) {
            sums[*part as usize] += u64::from(*time);
            all += u64::from(*time);
        }
        all
    }

    /// The cost of a loss, with what was lost.
    pub(super) fn loss(&self) -> (u64, u64) {
        let word = |first: usize| {
            u64::from(self.waits[first]) | u64::from(self.waits[first + 1]) << u32::BITS
        };
        (word(0), word(2))
    }

    pub(super) fn set_loss(&mut self, time: Time, word: u64) {
        for (place, word) in self.waits.chunks_exact_mut(2).zip([time.as_nanos(), word]) {
            place.copy_from_slice(&[word as u32, (word >> u32::BITS) as u32]);
        }
    }
}
