//! What was read, made and skipped.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::counts::Counts;
use crate::decode::Skipped;
use crate::reasons::{Omission, Origin, Part};
use crate::tidy::Notes;

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
    /// The same by what was found: link types, EtherTypes and protocols, with number and name.
    pub found: BTreeMap<String, u64>,
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
    /// What the pass in front of everything has found.
    #[serde(flatten)]
    pub notes: Notes,
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
    /// Of those made: what shows which side is the initiator.
    pub initiator_by: Counts<Origin>,
    /// Of those made: opened from beyond the link.
    pub opened_outside: u64,
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
