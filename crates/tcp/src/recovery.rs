//! What a sender is doing about losses.

/// What a sender is doing about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryState {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery (RFC 5681, section 3.2).
    Recovery,
    /// Going back to the oldest byte after a time-out, or after Tahoe's fast retransmit.
    Loss,
}

impl RecoveryState {
    /// What it is called in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Recovery => "fast-recovery",
            Self::Loss => "go-back",
        }
    }
}
