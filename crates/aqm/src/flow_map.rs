//! Maps keyed by flow, for AQMs that remember flows.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use aqmlab_net::FlowKey;

/// What an AQM keeps per flow. Never iterate it where the order could show: sort first, or keep the
/// order elsewhere.
pub(crate) type FlowMap<V> = HashMap<FlowKey, V, FlowHash>;

/// Hashes flows, the same way in every run and quickly: nobody chooses keys to collide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowHash;

impl BuildHasher for FlowHash {
    type Hasher = FlowHasher;

    #[inline]
    fn build_hasher(&self) -> FlowHasher {
        FlowHasher(0)
    }
}

/// Multiplicative hashing (Knuth, The Art of Computer Programming 3, section 6.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowHasher(u64);

/// 2^64 over the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for FlowHasher {
    #[inline]
    fn write_u64(&mut self, flow: u64) {
        self.0 = (self.0 ^ flow).wrapping_mul(MULTIPLIER);
    }

    /// Not the way of a [`FlowKey`], which is a single number.
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    /// The high bits of a product are the good ones; a table also looks at the low ones.
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Flows with a value each, in the order in which they came: for what must be walked.
#[derive(Clone, Debug)]
pub(crate) struct FlowList<V> {
    entries: Vec<(FlowKey, V)>,
    /// Where a flow stands in `entries`.
    places: FlowMap<usize>,
}

impl<V> FlowList<V> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            places: FlowMap::with_capacity_and_hasher(capacity, FlowHash),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(crate) fn get(&self, flow: FlowKey) -> Option<&V> {
        let place = *self.places.get(&flow)?;
        Some(&self.entries[place].1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, flow: FlowKey) -> Option<&mut V> {
        let place = *self.places.get(&flow)?;
        Some(&mut self.entries[place].1)
    }

    /// Adds a flow that is not there.
    pub(crate) fn push(&mut self, flow: FlowKey, value: V) {
        let before = self.places.insert(flow, self.entries.len());
        debug_assert_eq!(before, None, "the flow is there");
        self.entries.push((flow, value));
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(FlowKey, V)> {
        self.entries.iter()
    }

    /// Keeps the flows for which `keep` says so; the others close up.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(FlowKey, &mut V) -> bool) {
        let before = self.len();
        self.entries.retain_mut(|(flow, value)| keep(*flow, value));
        if self.len() < before {
            self.places.clear();
            let flows = self.entries.iter().map(|(flow, _)| *flow);
            self.places.extend(flows.zip(0..));
        }
    }

    /// Takes everything out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (FlowKey, V)> {
        self.places.clear();
        self.entries.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_keep_their_order_and_are_found_when_others_have_gone() {
        let mut list = FlowList::with_capacity(4);
        for flow in [7, 3, 9, 1] {
            list.push(FlowKey(flow), flow);
        }
        list.retain(|_, value| {
            *value += 100;
            *value != 103
        });
        assert_eq!(list.get_mut(FlowKey(3)), None);
        assert_eq!(list.get_mut(FlowKey(9)), Some(&mut 109));
        let left: Vec<_> = list.drain().collect();
        assert_eq!(left, [7, 9, 1].map(|flow| (FlowKey(flow), flow + 100)));
        assert_eq!((list.len(), list.get_mut(FlowKey(9))), (0, None));
    }

    #[test]
    fn flows_are_kept_apart_and_spread() {
        let mut map = FlowMap::default();
        for flow in 0..1000 {
            map.insert(FlowKey(flow << 32), flow);
        }
        assert!((0..1000).all(|flow| map[&FlowKey(flow << 32)] == flow));
        // The table looks at both ends of a hash: neither may repeat itself.
        let low = |flow: u64| FlowHash.hash_one(FlowKey(flow << 32)) & 0xffff;
        let mut seen: Vec<_> = (0..1000).map(low).collect();
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() > 950, "{} different of 1000", seen.len());
    }
}
