//! What a tree of rates counts of its nodes and subscribers.

use aqmlab_net::Time;

/// How long something was so while packets waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// It was at its ceiling.
    pub at_ceiling: Time,
    /// It was above its assured rate: it borrowed.
    pub borrowing: Time,
}

/// A part that held a packet: its ceiling did, or its assured rate, while nothing was lent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The number of the part.
    pub part: u32,
    /// Whether it was at its ceiling; else its assured rate held the packet.
    pub by_ceiling: bool,
}

impl Holder {
    #[cfg(feature = "shapers")]
    pub(crate) const fn ceiling(part: u32) -> Self {
        Self {
            part,
            by_ceiling: true,
        }
    }

    #[cfg(feature = "shapers")]
    pub(crate) const fn rate(part: u32) -> Self {
        Self {
            part,
            by_ceiling: false,
        }
    }
}

/// Packets and bytes of a subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that left the queue.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that were marked.
    pub marked: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        self.marked += other.marked;
    }
}

/// A node that carries subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePart {
    /// Its name.
    pub name: String,
    /// The place of the node above it, which comes before it.
    pub parent: Option<u32>,
    /// How long it was held.
    pub held: Held,
}

/// A subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberPart {
    /// Its first client host; none: the hosts that no plan has.
    pub client: Option<u32>,
    /// The place of its plan and of the node above it.
    pub cell: u16,
    /// What passed.
    pub tally: Tally,
    /// How long it was held.
    pub held: Held,
}

/// What a tree of rates counted since it was asked to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The nodes, parents first.
    pub nodes: Vec<NodePart>,
    /// The names of the plans.
    pub plans: Vec<String>,
    /// Plans and nodes that have subscribers in common: a plan's place, and the node's above them.
    pub cells: Vec<(u32, Option<u32>)>,
    /// The subscribers.
    pub subscribers: Vec<SubscriberPart>,
}
