//! What end points exchange.

use aqmlab_net::Ecn;

/// A TCP segment: its header fields and the length of its payload.
///
/// Sequence numbers start at 0 (the SYN) and do not wrap: what carries a segment may cut them to
/// 32 bits and must restore them with [`Segment::unwrap_seq`]. The offered window is not carried:
/// readers are prompt, so it is always the receiver's whole buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte (or of the SYN or FIN if there is no payload).
    pub seq: u64,
    /// Next sequence number expected from the peer; meaningful with [`Flags::ACK`].
    pub ack: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Control bits.
    pub flags: Flags,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

impl Segment {
    /// The sequence number nearest to `reference` whose low 32 bits are `low`.
    pub const fn unwrap_seq(low: u32, reference: u64) -> u64 {
        reference.wrapping_add_signed(low.wrapping_sub(reference as u32) as i32 as i64)
    }
}

/// The control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Synchronize: opens a connection; counts one in sequence space.
    pub const SYN: Self = Self(1);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(2);
    /// The sender has no more data; counts one in sequence space.
    pub const FIN: Self = Self(4);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(8);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(16);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union with `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
