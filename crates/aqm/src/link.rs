//! The link that a discipline serves, and what waits for it.

use aqmlab_net::{Bytes, QueueSize, Rate};

/// The link that a discipline serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Bits per second on the wire.
    pub rate: Rate,
    /// Bytes on the wire beside each packet's IP bytes.
    pub framing: Bytes,
}

impl LinkFacts {
    /// IP bytes per second when every packet has `mean` bytes: the framing takes its part.
    pub fn ip_bytes_per_second(&self, mean: Bytes) -> f64 {
        mean.0 as f64 * self.packets_per_second(mean)
    }

    /// Packets of `mean` bytes that the wire carries per second.
    pub fn packets_per_second(&self, mean: Bytes) -> f64 {
        self.rate.bps() as f64 / (8 * (mean.0 + self.framing.0)) as f64
    }
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

impl Backlog {
    /// Both together.
    #[inline]
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
        }
    }

    /// What a part of it was, and what that part is now.
    #[inline]
    #[cfg(feature = "shapers")]
    pub(crate) fn replace(&mut self, before: Self, after: Self) {
        self.packets = self.packets + after.packets - before.packets;
        self.bytes = self.bytes + after.bytes - before.bytes;
    }

    /// A packet more.
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    /// A packet less.
    #[inline]
    pub fn remove(&mut self, size: u32) {
        debug_assert!(self.packets > 0 && self.bytes >= u64::from(size));
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}

/// A buffer size in the unit in which it was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Packets(u32),
    Bytes(u64),
}

impl Limit {
    pub(crate) fn new(size: QueueSize) -> Self {
        match size {
            // q + 1 > 62.5 exactly when q + 1 > 62.
            QueueSize::Packets(packets) => Self::Packets(packets as u32),
            QueueSize::Bytes(bytes) => Self::Bytes(bytes),
        }
    }

    /// Whether a packet of `size` bytes still fits.
    #[inline]
    pub(crate) fn admits(self, queue: Backlog, size: u32) -> bool {
        match self {
            Self::Packets(limit) => queue.packets < limit,
            Self::Bytes(limit) => queue.bytes + u64::from(size) <= limit,
        }
    }

    /// Whether more than this waits.
    #[inline]
    pub(crate) fn is_exceeded(self, queue: Backlog) -> bool {
        match self {
            Self::Packets(limit) => queue.packets > limit,
            Self::Bytes(limit) => queue.bytes > limit,
        }
    }
}
