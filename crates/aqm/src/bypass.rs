//! Packets that bypass the queue of a scheduler, because it would hand them out as they came. CoDel
//! alone says which these are. Linux has the like: `TCQ_F_CAN_BYPASS`.

use aqmlab_net::Time;

use crate::AnyScheduler;
use crate::link::{Backlog, Limit};

/// What a buffer holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    packets: u32,
    bytes: u64,
}

impl Room {
    /// Nothing.
    pub const NONE: Self = Self {
        packets: 0,
        bytes: 0,
    };

    /// Whether a packet of `size` bytes still fits.
    #[inline(always)]
    pub fn admits(self, queue: Backlog, size: u32) -> bool {
        (queue.packets < self.packets) & (queue.bytes + u64::from(size) <= self.bytes)
    }
}

impl From<Limit> for Room {
    fn from(limit: Limit) -> Self {
        let (packets, bytes) = match limit {
            Limit::Packets(packets) => (packets, u64::MAX),
            Limit::Bytes(bytes) => (u32::MAX, bytes),
        };
        Self { packets, bytes }
    }
}

/// A scheduler whose queue packets can bypass while it is empty.
pub(crate) trait Bypass {
    /// Packets that arrive at the empty queue and wait for less than this leave unmarked, whatever
    /// arrives behind them, and leave no trace in the discipline. [`Time::ZERO`]: there are none.
    fn bypass_below(&self) -> Time;

    /// How much may wait before the empty queue.
    fn room(&self) -> Room;

    /// These packets have bypassed the queue and still wait: they count towards its limit.
    fn set_bypassed(&mut self, waiting: Backlog);
}

impl<T> AnyScheduler<T> {
    /// The scheduler, if packets can bypass its queue.
    #[inline]
    pub(crate) fn bypass(&self) -> Option<&impl Bypass> {
        match self {
            Self::Codel(codel) => Some(codel),
            _ => None,
        }
    }

    /// The scheduler, mutable, if packets can bypass its queue.
    #[inline]
    pub(crate) fn bypass_mut(&mut self) -> Option<&mut impl Bypass> {
        match self {
            Self::Codel(codel) => Some(codel),
            _ => None,
        }
    }
}
