//! What a queue discipline may know of a packet.

use crate::random::mix;

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks: congestion can only be signalled by a drop.
    #[default]
    NotEct = 0,
    /// ECN-capable, code point ECT(1).
    Ect1 = 1,
    /// ECN-capable, code point ECT(0).
    Ect0 = 2,
    /// Congestion experienced: some router has marked this packet.
    Ce = 3,
}

impl Ecn {
    /// The code point of the two low bits.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a router may signal congestion by a mark.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Names a flow, the directional 5-tuple. Disciplines hash it with a seed of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(pub u64);

impl FlowKey {
    /// 64 bits that depend on every bit of the flow and the seed.
    #[inline]
    pub const fn hash(self, seed: u64) -> u64 {
        mix(mix(self.0).wrapping_add(mix(seed ^ 0x9e37_79b9_7f4a_7c15)))
    }
}

/// What a queue discipline sees of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Length in IP bytes (headers and payload, without framing).
    pub size: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// Differentiated services code point (RFC 2474); disciplines with service classes read it.
    pub dscp: u8,
    /// The flow it belongs to.
    pub flow: FlowKey,
}
