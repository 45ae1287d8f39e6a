//! The two ends of a connection.

/// An end of a connection, by what it does: an index of arrays of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Opens the connection: the initiator of a connection vector.
    Client = 0,
    /// Waits for it: the acceptor of a connection vector.
    Server = 1,
}

impl Role {
    /// Both, by index.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The role whose index is the lowest bit of `bits`.
    #[inline(always)]
    pub const fn from_bit(bits: u8) -> Self {
        if bits & 1 == 0 {
            Self::Client
        } else {
            Self::Server
        }
    }

    /// The other end.
    #[inline(always)]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
