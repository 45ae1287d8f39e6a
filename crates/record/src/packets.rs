//! What is recorded of each packet that reaches a queue.

use aqmlab_net::{Ecn, Time};

/// What a packet is to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A SYN or SYN-ACK.
    Syn,
    /// A segment with data.
    Data,
    /// A FIN without data.
    Fin,
    /// A reset.
    Reset,
    /// A segment that only acknowledges.
    Ack,
    /// A datagram, of QUIC too.
    Datagram,
}

impl PacketKind {
    /// Of a segment with so many bytes of data and these flags.
    pub const fn of_segment(len: u32, syn: bool, fin: bool, rst: bool) -> Self {
        match len {
            _ if syn => Self::Syn,
            0 if fin => Self::Fin,
            0 if rst => Self::Reset,
            0 => Self::Ack,
            _ => Self::Data,
        }
    }

    /// The word for it in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syn => "syn",
            Self::Data => "data",
            Self::Fin => "fin",
            Self::Reset => "reset",
            Self::Ack => "ack",
            Self::Datagram => "datagram",
        }
    }
}

/// What became of a packet at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// It was in the discipline when the run ended.
    Waiting,
    /// It left for the wire.
    Left,
    /// It left with a mark that it came without.
    Marked,
    /// It left and was lost at random on the wire.
    Lost,
    /// The discipline dropped it, for this reason.
    Dropped(&'static str),
}

impl PacketOutcome {
    /// The word for it in results: of a drop, the discipline's reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Left => "left",
            Self::Marked => "marked",
            Self::Lost => "wire",
            Self::Dropped(reason) => reason,
        }
    }
}

/// A packet that reached the discipline of a link's direction.
#[derive(Clone, Copy, Debug)]
pub struct PacketRow {
    /// Number of the link's direction, in the order of [`LinkDirection::all`](crate::LinkDirection::all).
    pub port: u16,
    /// Number of its class of traffic.
    pub class: u16,
    /// IP bytes.
    pub size: u32,
    /// When it reached the discipline.
    pub arrived: Time,
    /// Until it left the discipline; nothing: it was dropped there, or it is there.
    pub waited: Option<Time>,
    /// In the device ring; nothing: there is none, or it has not left it.
    pub in_ring: Option<Time>,
    /// Serial number of its connection.
    pub flow: u64,
    /// Packets of this flow and way that had been sent before it.
    pub number: u32,
    /// Its client sent it.
    pub is_from_client: bool,
    /// What it is.
    pub kind: PacketKind,
    /// Its bytes had been sent before.
    pub is_again: bool,
    /// Its ECN field, on arrival.
    pub ecn: Ecn,
    /// Packets in the discipline on arrival, without it.
    pub backlog_packets: u32,
    /// IP bytes in the discipline on arrival, without it.
    pub backlog_bytes: u64,
    /// What became of it.
    pub outcome: PacketOutcome,
}

impl PacketRow {
    /// The packet leaves the discipline at `left`, for so long in the device ring, if there is one.
    /// What happens at the `end` of the run or later stays unknown.
    pub fn leave(&mut self, left: Time, ring: Option<Time>, outcome: PacketOutcome, end: Time) {
        if left >= end {
            return;
        }
        self.waited = Some(left - self.arrived);
        self.in_ring = ring.filter(|ring| left + *ring < end);
        self.outcome = match outcome {
            PacketOutcome::Marked if self.ecn == Ecn::Ce => PacketOutcome::Left,
            outcome => outcome,
        };
    }

    /// The word for its ECN field.
    pub const fn ecn_name(&self) -> &'static str {
        match self.ecn {
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        }
    }
}

/// What one end of a connection has sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentPackets {
    count: u32,
    /// Behind the highest byte, cut to 32 bits.
    max: u32,
}

impl SentPackets {
    /// It sends a packet; a segment has its first number, and how many it takes. Returns how many
    /// packets it had sent, and whether the bytes of this one had been sent before.
    pub fn send(&mut self, segment: Option<(u32, u32)>) -> (u32, bool) {
        let number = self.count;
        self.count = number.wrapping_add(1);
        let Some((seq, len)) = segment else {
            return (number, false);
        };
        if number == 0 {
            self.max = seq;
        }
        let end = seq.wrapping_add(len);
        // Numbers wrap: what lies less than half the circle behind is old.
        let is_again = len > 0 && (seq.wrapping_sub(self.max) as i32) < 0;
        if end.wrapping_sub(self.max) as i32 > 0 {
            self.max = end;
        }
        (number, is_again)
    }

    /// It opens a connection with another first number.
    pub const fn reopen(&mut self, seq: u32) {
        self.max = seq;
    }
}
