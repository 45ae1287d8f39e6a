//! Sets of whole numbers, as ranges: packet numbers that arrived, bytes that were acknowledged.

/// Disjoint ranges `[from, to)` that do not touch, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of ranges.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The ranges in order.
    #[inline]
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// The ranges in order, by value.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + Clone + '_ {
        self.0.iter().copied()
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<(u64, u64)> {
        self.0.last().copied()
    }

    /// The range that has this number.
    #[inline]
    pub fn around(&self, number: u64) -> Option<(u64, u64)> {
        let behind = self.0.partition_point(|range| range.1 <= number);
        let range = self.0.get(behind).filter(|range| range.0 <= number);
        range.copied()
    }

    /// Whether the set has this number.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.around(number).is_some()
    }

    /// The first range that begins at or above `number`.
    #[inline]
    pub fn next_from(&self, number: u64) -> Option<(u64, u64)> {
        let below = self.0.partition_point(|range| range.0 < number);
        self.0.get(below).copied()
    }

    /// Adds a range; whether any of it is new. Most go to the end.
    #[inline]
    pub fn insert(&mut self, from: u64, to: u64) -> bool {
        match self.0.last_mut() {
            _ if from >= to => false,
            Some(last) if from < last.0 => self.insert_within(from, to),
            Some(last) if from <= last.1 => {
                let is_new = to > last.1;
                last.1 = last.1.max(to);
                is_new
            }
            _ => {
                self.0.push((from, to));
                true
            }
        }
    }

    fn insert_within(&mut self, from: u64, to: u64) -> bool {
        let first = self.0.partition_point(|range| range.1 < from);
        let behind = self.0.partition_point(|range| range.0 <= to);
        if first == behind {
            self.0.insert(first, (from, to));
            return true;
        }
        let joined = (from.min(self.0[first].0), to.max(self.0[behind - 1].1));
        let is_new = behind - first > 1 || self.0[first] != joined;
        self.0.drain(first + 1..behind);
        self.0[first] = joined;
        is_new
    }

    /// Takes a range out.
    pub fn remove(&mut self, from: u64, to: u64) {
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
    pub fn forget_below(&mut self, number: u64) {
        let gone = self.0.partition_point(|range| range.1 <= number);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(number);
        }
    }

    /// Takes out the lowest range.
    pub fn forget_first(&mut self) {
        self.0.remove(0);
    }

    /// Everything below `number` joins the set: takes out the ranges that this reaches, and returns
    /// the lowest number that is in neither.
    pub fn absorb(&mut self, number: u64) -> u64 {
        let reached = self.0.partition_point(|range| range.0 <= number);
        let end = self.0[..reached].last().map_or(number, |last| last.1);
        self.0.drain(..reached);
        number.max(end)
    }

    /// Takes everything out.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: &[(u64, u64)]) -> Ranges {
        let mut ranges = Ranges::default();
        for &(from, to) in of {
            ranges.insert(from, to);
        }
        ranges
    }

    #[test]
    fn ranges_join_and_are_cut() {
        let mut ranges = ranges(&[(0, 4), (7, 10), (5, 6), (20, 30), (4, 5), (12, 13)]);
        assert_eq!(ranges.as_slice(), [(0, 6), (7, 10), (12, 13), (20, 30)]);
        ranges.insert(6, 12);
        assert_eq!(ranges.as_slice(), [(0, 13), (20, 30)]);
        ranges.remove(3, 22);
        assert_eq!(ranges.as_slice(), [(0, 3), (22, 30)]);
        ranges.remove(24, 26);
        assert_eq!(ranges.as_slice(), [(0, 3), (22, 24), (26, 30)]);
        assert!(ranges.contains(2) && !ranges.contains(3) && !ranges.contains(25));
        ranges.forget_below(23);
        assert_eq!(ranges.as_slice(), [(23, 24), (26, 30)]);
        ranges.forget_below(24);
        assert_eq!(ranges.as_slice(), [(26, 30)]);
    }

    #[test]
    fn only_what_was_unknown_is_new() {
        let mut ranges = Ranges::default();
        assert!(ranges.insert(10, 20));
        assert!(!ranges.insert(12, 20));
        assert!(!ranges.insert(15, 15));
        assert!(ranges.insert(30, 40));
        assert!(!ranges.insert(11, 12));
        assert!(ranges.insert(20, 25));
        assert_eq!(ranges.as_slice(), [(10, 25), (30, 40)]);
        assert!(ranges.insert(25, 30));
        assert_eq!(ranges.as_slice(), [(10, 40)]);
        assert!(ranges.insert(39, 41));
        assert_eq!(
            (ranges.first(), ranges.last()),
            (ranges.last(), Some((10, 41)))
        );
    }

    #[test]
    fn what_a_number_reaches_is_absorbed() {
        let all = ranges(&[(2, 4), (6, 8), (10, 12)]);
        for (number, end, left) in [
            (1, 1, 3),
            (2, 4, 2),
            (5, 5, 2),
            (6, 8, 1),
            (9, 9, 1),
            (11, 12, 0),
        ] {
            let mut ranges = all.clone();
            assert_eq!(
                (ranges.absorb(number), ranges.len()),
                (end, left),
                "{number}"
            );
        }
        assert_eq!(
            (all.next_from(4), all.next_from(6)),
            (Some((6, 8)), Some((6, 8)))
        );
        assert_eq!((all.around(5), all.around(7)), (None, Some((6, 8))));
    }
}
