//! The extreme value of late: smallest or largest over a window of epochs.

use std::collections::VecDeque;

/// The largest (`MAX`) or smallest value of the last epochs. It keeps a value per epoch at most.
#[derive(Clone, Debug)]
pub(crate) struct Windowed<T, const MAX: bool> {
    /// Epoch and value: later ones are worse.
    kept: VecDeque<(u64, T)>,
}

/// The smallest of late.
pub(crate) type Smallest<T> = Windowed<T, false>;

/// The largest of late.
pub(crate) type Largest<T> = Windowed<T, true>;

impl<T, const MAX: bool> Default for Windowed<T, MAX> {
    fn default() -> Self {
        Self {
            kept: VecDeque::new(),
        }
    }
}

impl<T: PartialOrd + Copy, const MAX: bool> Windowed<T, MAX> {
    /// Adds a value; those that are `length` epochs old, or older, are forgotten.
    #[inline]
    pub(crate) fn add(&mut self, epoch: u64, value: T, length: u64) {
        // Most values are no news: their epoch has had a better one.
        if let (Some(&(oldest, _)), Some(&(at, last))) = (self.kept.front(), self.kept.back())
            && oldest + length > epoch
            && at == epoch
            && !Self::is_as_good(value, last)
        {
            return;
        }
        self.add_news(epoch, value, length);
    }

    fn is_as_good(value: T, other: T) -> bool {
        if MAX { value >= other } else { value <= other }
    }

    #[inline(never)]
    fn add_news(&mut self, epoch: u64, value: T, length: u64) {
        self.forget(epoch, length);
        while let Some(&(at, last)) = self.kept.back() {
            if !Self::is_as_good(value, last) {
                if at == epoch {
                    return;
                }
                break;
            }
            self.kept.pop_back();
        }
        self.kept.push_back((epoch, value));
    }

    /// Forgets the values that are `length` epochs old, or older.
    pub(crate) fn forget(&mut self, epoch: u64, length: u64) {
        while let Some(&(at, _)) = self.kept.front()
            && at + length <= epoch
        {
            self.kept.pop_front();
        }
    }

    /// The extreme value, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<T> {
        self.kept.front().map(|&(_, value)| value)
    }
}

/// The largest of late by three samples, as Linux keeps them (K. Nichols): the largest of the window, the
/// largest since, and the largest since that one. Each is at least a quarter of the window later where no
/// larger one came. What falls may thus be seen up to half a window late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreeLargest {
    /// Epoch and value, the largest first.
    kept: [(u64, f64); 3],
}

impl ThreeLargest {
    /// Adds a value; those that are more than `length` epochs old are forgotten.
    #[inline(never)]
    pub(crate) fn add(&mut self, epoch: u64, value: f64, length: u64) {
        let new = (epoch, value);
        let kept = &mut self.kept;
        if value >= kept[0].1 || epoch - kept[2].0 > length {
            *kept = [new; 3];
            return;
        }
        if value >= kept[1].1 {
            (kept[1], kept[2]) = (new, new);
        } else if value >= kept[2].1 {
            kept[2] = new;
        }
        let age = epoch - kept[0].0;
        if age > length {
            *kept = [kept[1], kept[2], new];
            if epoch - kept[0].0 > length {
                *kept = [kept[1], kept[2], new];
            }
        } else if kept[1].0 == kept[0].0 && 4 * age > length {
            (kept[1], kept[2]) = (new, new);
        } else if kept[2].0 == kept[1].0 && 2 * age > length {
            kept[2] = new;
        }
    }

    /// The largest; 0: none yet.
    #[inline]
    pub(crate) fn get(&self) -> f64 {
        self.kept[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_when_their_epoch_does() {
        let mut largest = Largest::default();
        for (epoch, value, expected) in [
            (0, 5, 5),
            (0, 4, 5),
            (1, 3, 5),
            (2, 4, 5),
            (3, 1, 4),
            (4, 1, 4),
            (5, 1, 1),
        ] {
            largest.add(epoch, value, 3);
            assert_eq!(largest.get(), Some(expected), "epoch {epoch}");
        }
        let mut smallest = Smallest::default();
        for (epoch, value, expected) in [(0, 5, 5), (1, 7, 5), (1, 6, 5), (2, 9, 5), (3, 9, 6)] {
            smallest.add(epoch, value, 3);
            assert_eq!(smallest.get(), Some(expected), "epoch {epoch}");
        }
    }
}
