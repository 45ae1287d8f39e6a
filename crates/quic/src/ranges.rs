//! Sets of whole numbers, as ranges: packet numbers that arrived, bytes that were acknowledged.

/// Disjoint ranges `[from, to)` that do not touch, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + Clone + '_ {
        self.0.iter().copied()
    }

    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        self.0.last().copied()
    }

    /// Whether it has this number.
    pub(crate) fn contains(&self, number: u64) -> bool {
        let behind = self.0.partition_point(|range| range.1 <= number);
        self.0.get(behind).is_some_and(|range| range.0 <= number)
    }

    /// Adds a range. Most go to the end.
    #[inline]
    pub(crate) fn insert(&mut self, from: u64, to: u64) {
        match self.0.last_mut() {
            _ if from >= to => {}
            None => self.0.push((from, to)),
            Some(last) if from > last.1 => self.0.push((from, to)),
            Some(last) if from >= last.0 => last.1 = last.1.max(to),
            Some(_) => self.insert_within(from, to),
        }
    }

    fn insert_within(&mut self, from: u64, to: u64) {
        let first = self.0.partition_point(|range| range.1 < from);
        let behind = self.0.partition_point(|range| range.0 <= to);
        if first == behind {
            self.0.insert(first, (from, to));
            return;
        }
        let joined = (from.min(self.0[first].0), to.max(self.0[behind - 1].1));
        self.0.splice(first..behind, [joined]);
    }

    /// Takes a range out.
    pub(crate) fn remove(&mut self, from: u64, to: u64) {
        if from >= to || self.0.is_empty() {
            return;
        }
        let first = self.0.partition_point(|range| range.1 <= from);
        let behind = self.0.partition_point(|range| range.0 < to);
        if first >= behind {
            return;
        }
        let left = (self.0[first].0, from);
        let right = (to, self.0[behind - 1].1);
        let rest = [left, right].into_iter().filter(|range| range.0 < range.1);
        self.0.splice(first..behind, rest);
    }

    /// Takes out everything below `number`.
    pub(crate) fn forget_below(&mut self, number: u64) {
        self.remove(0, number);
    }

    /// Takes the oldest range out.
    pub(crate) fn forget_first(&mut self) {
        self.0.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_are_cut() {
        let mut ranges = Ranges::default();
        for (from, to) in [(0, 4), (7, 10), (5, 6), (20, 30), (4, 5), (12, 13)] {
            ranges.insert(from, to);
        }
        let of = |ranges: &Ranges| ranges.iter().collect::<Vec<_>>();
        assert_eq!(of(&ranges), [(0, 6), (7, 10), (12, 13), (20, 30)]);
        ranges.insert(6, 12);
        assert_eq!(of(&ranges), [(0, 13), (20, 30)]);
        ranges.remove(3, 22);
        assert_eq!(of(&ranges), [(0, 3), (22, 30)]);
        ranges.remove(24, 26);
        assert_eq!(of(&ranges), [(0, 3), (22, 24), (26, 30)]);
        assert!(ranges.contains(2) && !ranges.contains(3) && !ranges.contains(25));
        ranges.forget_below(23);
        assert_eq!(of(&ranges), [(23, 24), (26, 30)]);
    }
}
