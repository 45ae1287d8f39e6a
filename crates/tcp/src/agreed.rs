//! What both ends have agreed on.

/// What the handshake has settled, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed(u8);

impl Agreed {
    /// The peer takes SACK blocks, and sends them (RFC 2018).
    pub(crate) const SACK: Self = Self(1);
    /// Segments carry time stamps.
    pub(crate) const STAMPS: Self = Self(2);
    /// ECN-capable data may be sent (RFC 3168).
    pub(crate) const ECN: Self = Self(4);
    /// Flags and options carry a counter of marks (RFC 9768).
    pub(crate) const ACCURATE: Self = Self(8);
    /// The receiver echoes each change of marks (RFC 8257).
    pub(crate) const EACH_CHANGE: Self = Self(16);

    /// No segment may take the fast path: not agreed on, but asked for here.
    pub(crate) const SLOW: Self = Self(32);

    /// Whether any of these was agreed on.
    #[inline(always)]
    pub(crate) const fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// All of both.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Settles some of them.
    pub(crate) const fn set(&mut self, which: Self, agreed: bool) {
        self.0 = if agreed {
            self.0 | which.0
        } else {
            self.0 & !which.0
        };
    }
}
