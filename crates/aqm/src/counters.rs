//! What a discipline counts, and why it drops or marks.

use std::fmt;

/// Why a packet was dropped or marked: one of the reasons that disciplines share, or one that a
/// discipline declares in its own file.
#[derive(Clone, Copy)]
pub struct Reason(pub(crate) &'static ReasonText);

/// What a reason is called, and what it means.
#[derive(Debug)]
pub(crate) struct ReasonText {
    /// Its place in the arrays of [`Counters`]: from [`Reason::FIRST_OWN`] on for a discipline's
    /// own.
    pub(crate) place: usize,
    /// The word for it in results.
    pub(crate) name: &'static str,
    /// A clause.
    pub(crate) meaning: &'static str,
    /// Whether it can end in a mark; else it always drops.
    pub(crate) marks: bool,
}

impl Reason {
    /// The discipline signalled congestion.
    pub const EARLY: Self = Self(&ReasonText {
        place: 0,
        name: "early",
        meaning: "the discipline signalled congestion early",
        marks: true,
    });
    /// The AQM was past the point where it only drops.
    pub const FORCED: Self = Self(&ReasonText {
        place: 1,
        name: "forced",
        meaning: "the AQM was in a state in which it only drops",
        marks: false,
    });
    /// There was no room: the arrival, or a packet that had to make room for it.
    pub const OVERFLOW: Self = Self(&ReasonText {
        place: 2,
        name: "overflow",
        meaning: "the buffer was full: the arrival, or a packet that made room for it, was dropped",
        marks: false,
    });

    /// Most reasons that a discipline can have.
    pub const MOST: usize = 8;

    /// The place of the first reason that a discipline declares itself.
    pub(crate) const FIRST_OWN: usize = 3;

    /// The word for it in results.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What it means, as a clause.
    pub const fn meaning(self) -> &'static str {
        self.0.meaning
    }

    /// Whether it can end in a mark; else it always drops.
    pub const fn marks(self) -> bool {
        self.0.marks
    }

    /// Its place in the arrays of [`Counters`].
    #[inline]
    pub const fn index(self) -> usize {
        self.0.place
    }
}

impl PartialEq for Reason {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.index() == other.index() && self.name() == other.name()
    }
}

impl Eq for Reason {}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reason({})", self.name())
    }
}

/// What a discipline has counted. At any time arrived = dropped + departed + backlog, and a packet
/// is counted once: one that was marked and dropped later counts as dropped and as marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Why the discipline can drop or mark a packet.
    pub reasons: &'static [Reason],
    /// Packets that came, whatever became of them.
    pub arrived_packets: u64,
    /// Packets that left the queue for the wire or the device ring.
    pub departed_packets: u64,
    /// IP bytes that came. (They do not stand beside their packets: two additions are cheaper than
    /// what a compiler makes of two neighbours.)
    pub arrived_bytes: u64,
    /// IP bytes that left.
    pub departed_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped: [u64; Reason::MOST],
    /// Packets marked, by reason.
    pub marked: [u64; Reason::MOST],
}

impl Counters {
    /// Nothing yet, of a discipline that drops and marks for these reasons.
    pub fn new(reasons: &'static [Reason]) -> Self {
        Self {
            reasons,
            ..Self::default()
        }
    }

    /// How many packets were dropped for each reason that the discipline has.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, u64)> {
        let reasons = self.reasons.iter();
        reasons.map(|&reason| (reason, self.dropped[reason.index()]))
    }

    /// How many packets were marked for each reason for which the discipline can mark.
    pub fn marks(&self) -> impl Iterator<Item = (Reason, u64)> {
        let reasons = self.reasons.iter().filter(|reason| reason.marks());
        reasons.map(|&reason| (reason, self.marked[reason.index()]))
    }

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
        let less = |now: &[u64; Reason::MOST], then: &[u64; Reason::MOST]| {
            std::array::from_fn(|reason| now[reason] - then[reason])
        };
        Self {
            reasons: self.reasons,
            arrived_packets: self.arrived_packets - earlier.arrived_packets,
            arrived_bytes: self.arrived_bytes - earlier.arrived_bytes,
            departed_packets: self.departed_packets - earlier.departed_packets,
            departed_bytes: self.departed_bytes - earlier.departed_bytes,
            dropped: less(&self.dropped, &earlier.dropped),
            marked: less(&self.marked, &earlier.marked),
        }
    }

    /// What both counted, where both are for the same reasons.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let sum = |one: &[u64; Reason::MOST], two: &[u64; Reason::MOST]| {
            std::array::from_fn(|reason| one[reason] + two[reason])
        };
        Self {
            reasons: self.reasons,
            arrived_packets: self.arrived_packets + other.arrived_packets,
            arrived_bytes: self.arrived_bytes + other.arrived_bytes,
            departed_packets: self.departed_packets + other.departed_packets,
            departed_bytes: self.departed_bytes + other.departed_bytes,
            dropped: sum(&self.dropped, &other.dropped),
            marked: sum(&self.marked, &other.marked),
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
