//! The turns of FQ-CoDel's flows: deficit round robin in which flows that have just woken come
//! first. T. Hoeiland-Joergensen et al., "The Flow Queue CoDel Packet Scheduler and Active Queue
//! Management Algorithm", RFC 8290, 2018, section 4.

use aqmlab_net::{Bytes, Rate};

use crate::flow_queues::{Chain, Links};
use crate::link::LinkFacts;

/// Flows waiting for their turns. It does not look at their packets: its caller reports them.
#[derive(Debug)]
pub(crate) struct DrrScheduler {
    quantum: i64,
    /// Flows that have just woken, and flows that have had a turn.
    new: Chain,
    old: Chain,
    links: Links,
    flows: Vec<Turn>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// What the flow may still send, in bytes; negative after a large packet.
    deficit: i64,
    list: List,
}

/// The list in which a flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum List {
    #[default]
    Neither,
    New,
    Old,
}

impl DrrScheduler {
    pub(crate) fn new(flows: u32, quantum: Bytes) -> Self {
        Self {
            quantum: quantum.0 as i64,
            new: Chain::default(),
            old: Chain::default(),
            links: Links::new(flows),
            flows: vec![Turn::default(); flows as usize],
        }
    }

    pub(crate) const fn quantum(&self) -> Bytes {
        Bytes(self.quantum as u64)
    }

    pub(crate) const fn set_quantum(&mut self, quantum: Bytes) {
        self.quantum = quantum.0 as i64;
    }

    /// A packet of the flow was queued.
    #[inline]
    pub(crate) fn woken(&mut self, flow: u32) {
        let turn = &mut self.flows[flow as usize];
        if turn.list == List::Neither {
            turn.deficit = self.quantum;
            turn.list = List::New;
            self.links.push_back(&mut self.new, flow);
        }
    }

    /// The flow whose turn it is.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        loop {
            let flow = self.new.first().or_else(|| self.old.first())?;
            let turn = &mut self.flows[flow as usize];
            if turn.deficit > 0 {
                return Some(flow);
            }
            turn.deficit += self.quantum;
            self.grow_old(flow);
        }
    }

    /// The flow whose turn it is has sent a packet.
    #[inline]
    pub(crate) fn sent(&mut self, flow: u32, size: u32) {
        self.flows[flow as usize].deficit -= i64::from(size);
    }

    /// The flow whose turn it is has nothing to send. A new one must wait for the old ones first,
    /// or it could come back as new at once, for ever.
    #[inline]
    pub(crate) fn found_empty(&mut self, flow: u32) {
        if self.flows[flow as usize].list == List::New {
            self.grow_old(flow);
        } else {
            self.flows[flow as usize].list = List::Neither;
            self.links.remove(&mut self.old, flow);
        }
    }

    /// Moves the flow to the end of the old ones.
    #[inline]
    fn grow_old(&mut self, flow: u32) {
        let turn = &mut self.flows[flow as usize];
        if turn.list == List::Old {
            self.links.move_to_end(&mut self.old, flow);
        } else {
            turn.list = List::Old;
            self.links.remove(&mut self.new, flow);
            self.links.push_back(&mut self.old, flow);
        }
    }

    /// How many new and old flows there are.
    pub(crate) fn counts(&self) -> [f64; 2] {
        [self.new, self.old].map(|list| self.links.places(list).count() as f64)
    }

    /// The flows of the new and of the old list.
    #[cfg(test)]
    pub(crate) fn lists(&self) -> [Vec<u32>; 2] {
        [self.new, self.old].map(|list| self.links.places(list).collect())
    }

    #[cfg(test)]
    pub(crate) fn deficit(&self, flow: u32) -> i64 {
        self.flows[flow as usize].deficit
    }
}

/// Below this rate smaller turns keep sparse flows from waiting for large packets.
const SLOW: Rate = Rate::from_mbps(100);

/// RFC 8290's quantum: an Ethernet frame, or 300 bytes on a slow link (section 5.2).
pub(crate) fn default_quantum(link: LinkFacts) -> Bytes {
    Bytes(if link.rate < SLOW { 300 } else { 1514 })
}
