//! What a discipline counts, and why it drops or marks.

/// Why a packet was dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The discipline signalled congestion.
    Early,
    /// The AQM was past the point where it only drops.
    Forced,
    /// There was no room: the arrival, or a packet that had to make room for it.
    Overflow,
    /// CHOKe: the arrival and a packet of the same flow, picked from the queue.
    ChokeMatch,
    /// FRED: the flow had more than its share waiting.
    NonAdaptive,
    /// SFB: every bin of the flow was full.
    Bin,
    /// SFB: the flow sits in the penalty box.
    Penalty,
    /// RED-PD: the filter in front of RED, for flows of high bandwidth.
    Filter,
}

impl Reason {
    /// Every reason, in the order of the arrays in [`Counters`].
    pub const ALL: [Self; 8] = [
        Self::Early,
        Self::Forced,
        Self::Overflow,
        Self::ChokeMatch,
        Self::NonAdaptive,
        Self::Bin,
        Self::Penalty,
        Self::Filter,
    ];

    /// The word for it in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Overflow => "overflow",
            Self::ChokeMatch => "choke_match",
            Self::NonAdaptive => "non_adaptive",
            Self::Bin => "bin",
            Self::Penalty => "penalty",
            Self::Filter => "filter",
        }
    }

    /// Its place in the arrays of [`Counters`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What a discipline has counted. At any time arrived = dropped + departed + backlog, and a packet
/// is counted once: one that was marked and dropped later counts as dropped and as marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came, whatever became of them.
    pub arrived_packets: u64,
    /// IP bytes that came.
    pub arrived_bytes: u64,
    /// Packets that left the queue for the wire or the device ring.
    pub departed_packets: u64,
    /// IP bytes that left.
    pub departed_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped: [u64; Reason::ALL.len()],
    /// Packets marked, by reason.
    pub marked: [u64; Reason::ALL.len()],
}

impl Counters {
    /// Packets dropped for any reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets marked for any reason.
    pub fn marked_packets(&self) -> u64 {
        self.marked.iter().sum()
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: &[u64; Reason::ALL.len()], then: &[u64; Reason::ALL.len()]| {
            std::array::from_fn(|reason| now[reason] - then[reason])
        };
        Self {
            arrived_packets: self.arrived_packets - earlier.arrived_packets,
            arrived_bytes: self.arrived_bytes - earlier.arrived_bytes,
            departed_packets: self.departed_packets - earlier.departed_packets,
            departed_bytes: self.departed_bytes - earlier.departed_bytes,
            dropped: less(&self.dropped, &earlier.dropped),
            marked: less(&self.marked, &earlier.marked),
        }
    }

    #[inline]
    pub(crate) fn arrive(&mut self, size: u32) {
        self.arrived_packets += 1;
        self.arrived_bytes += u64::from(size);
    }

    #[inline]
    pub(crate) fn depart(&mut self, size: u32) {
        self.departed_packets += 1;
        self.departed_bytes += u64::from(size);
    }
}
