//! Streams by their numbers. There are few at a time: they stand in a row, in order.

/// Values by number.
#[derive(Clone, Debug)]
pub(crate) struct Table<T>(Vec<(u64, T)>);

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    #[inline]
    fn place(&self, number: u64) -> Result<usize, usize> {
        match self.0.first() {
            Some(first) if first.0 == number => Ok(0),
            _ => self.0.binary_search_by_key(&number, |it| it.0),
        }
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let place = self.place(number).ok()?;
        Some(&self.0[place].1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number).ok()?;
        Some(&mut self.0[place].1)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.place(number).is_ok()
    }

    pub(crate) fn insert(&mut self, number: u64, value: T) {
        match self.place(number) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (number, value)),
        }
    }

    pub(crate) fn remove(&mut self, number: u64) {
        if let Ok(place) = self.place(number) {
            self.0.remove(place);
        }
    }

    /// The numbers, in order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.0.iter().map(|it| it.0).collect()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|it| &it.1)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|it| &mut it.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_number_and_stand_in_order() {
        let mut table = Table::new();
        for number in [8, 0, 4, 16] {
            table.insert(number, number * 10);
        }
        assert_eq!(table.numbers(), [0, 4, 8, 16]);
        table.remove(4);
        table.remove(5);
        table.insert(8, 1);
        assert_eq!(
            [0, 4, 8, 12, 16].map(|it| table.get(it).copied()),
            [Some(0), None, Some(1), None, Some(160)]
        );
        table.values_mut().for_each(|it| *it += 1);
        assert_eq!(table.values().sum::<u64>(), 1 + 2 + 161);
        assert_eq!(table.get_mut(16), Some(&mut 161));
        assert!(table.contains(8) && !table.contains(4));
    }
}
