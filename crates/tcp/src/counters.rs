//! What a sender counts.

/// What a sender with a log of its segments counts, as Linux counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments that are out, those that the peer has reported among them, those that are lost, and those
    /// that are under way once more.
    pub unacked: u64,
    /// See above.
    pub sacked: u64,
    /// See above.
    pub lost: u64,
    /// See above.
    pub retrans: u64,
    /// A mark takes the window down.
    pub reducing: bool,
    /// Duplicates that the last ACK has reported (D-SACK).
    pub duplicates: u64,
    /// Marked packets that the peer has reported by accurate feedback.
    pub marks: Option<u64>,
}
