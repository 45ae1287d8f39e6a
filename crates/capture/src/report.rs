//! What was read, made and skipped.

use std::fmt;
use std::marker::PhantomData;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::connection::{Omission, Origin, Part};
use crate::decode::Skipped;

/// Something that is counted by reason.
pub trait Reason: Copy {
    /// What each is called.
    const NAMES: &[&str];

    /// Which of the names is this one's.
    fn index(self) -> usize;
}

/// Counts by reason.
#[derive(Clone, PartialEq, Eq)]
pub struct Counts<R> {
    counts: [u64; MOST],
    reason: PhantomData<R>,
}

/// The most reasons of one kind.
const MOST: usize = 8;

impl<R> Default for Counts<R> {
    fn default() -> Self {
        Self {
            counts: [0; MOST],
            reason: PhantomData,
        }
    }
}

impl<R: Reason> Counts<R> {
    /// Counts one.
    #[inline]
    pub(crate) fn add(&mut self, reason: R) {
        self.counts[reason.index()] += 1;
    }

    /// How many there are of one reason.
    pub fn of(&self, reason: R) -> u64 {
        self.counts[reason.index()]
    }

    /// Of all reasons.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What has been counted, by name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = R::NAMES.iter().copied();
        names.zip(self.counts).filter(|&(_, count)| count > 0)
    }
}

impl<R: Reason> Serialize for Counts<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, count) in self.named() {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}

impl<R: Reason> fmt::Debug for Counts<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.named()).finish()
    }
}

/// What became of a capture. Its JSON form is what `--json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Packets.
    pub packets: PacketReport,
    /// Connections.
    pub connections: ConnectionReport,
    /// What the vectors say.
    pub vectors: VectorReport,
}

/// What became of the packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PacketReport {
    /// All of the file.
    pub read: u64,
    /// TCP packets, whose headers could be read.
    pub tcp: u64,
    /// The others, by reason.
    pub skipped: Skipped,
    /// With data that had been seen before or was passed by later data: sent again, or out of
    /// order.
    pub repeated: u64,
    /// Keep-alives: one byte or none, in front of what is acknowledged.
    pub keep_alives: u64,
    /// With sequence numbers more than the largest window (2^30 bytes) ahead of what was known:
    /// ignored.
    pub implausible: u64,
    /// Of no connection: resets, and ends of connections that had been forgotten.
    pub stray: u64,
    /// Time stamps earlier than that of the packet before.
    pub time_went_back: u64,
    /// From the first packet to the last one.
    pub duration_s: f64,
}

/// What became of the connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConnectionReport {
    /// All that packets belonged to.
    pub seen: u64,
    /// The most at once.
    pub live_max: u64,
    /// That have become vectors.
    pub made: u64,
    /// The others, by reason.
    pub skipped: Counts<Omission>,
    /// Of those made: not captured whole, by what is missing (a connection may miss several).
    pub partial: Counts<Part>,
    /// Of those made: what told who is the initiator.
    pub initiator_by: Counts<Origin>,
}

/// What the vectors say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VectorReport {
    /// In which at most one side had data outstanding.
    pub sequential: u64,
    /// The others.
    pub concurrent: u64,
    /// Application data units.
    pub adus: u64,
    /// Bytes that initiators sent.
    pub initiator_bytes: u64,
    /// Bytes that acceptors sent.
    pub acceptor_bytes: u64,
    /// With a round-trip time.
    pub with_rtt: u64,
}
