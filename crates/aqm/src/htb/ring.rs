//! Whose turn it is: members in the order of their numbers, and a place among them.

/// A set of small numbers, in order. A bit each, and a bit for each word that is not empty.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    filled: Vec<u64>,
}

impl Bits {
    fn insert(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.filled.resize(word / 64 + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
        self.filled[word / 64] |= 1 << (word % 64);
    }

    fn remove(&mut self, number: u32) {
        let word = number as usize / 64;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            self.filled[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The first from this number on.
    fn from(&self, number: u32) -> Option<u32> {
        let word = number as usize / 64;
        let here = self.words.get(word)? & (u64::MAX << (number % 64));
        if here != 0 {
            return Some(word as u32 * 64 + here.trailing_zeros());
        }
        let next = word + 1;
        let mut block = next / 64;
        let mut filled = self.filled.get(block)? & (u64::MAX << (next % 64));
        while filled == 0 {
            block += 1;
            filled = *self.filled.get(block)?;
        }
        let word = block * 64 + filled.trailing_zeros() as usize;
        Some(word as u32 * 64 + self.words[word].trailing_zeros())
    }

    fn is_empty(&self) -> bool {
        self.filled.iter().all(|block| *block == 0)
    }
}

/// A ring: its members, and who is next.
#[derive(Debug, Default)]
pub(super) struct Ring {
    members: Bits,
    /// Whose turn it is. None: the ring has been gone through to its end.
    next: Option<u32>,
    /// Who had the turn and left: the turn is of the member at or after it.
    left: Option<u32>,
}

impl Ring {
    pub(super) fn insert(&mut self, number: u32) {
        self.members.insert(number);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Takes a member out, after which a turn of its goes to the one behind it.
    pub(super) fn remove(&mut self, number: u32) {
        if self.next == Some(number) {
            self.advance();
        }
        self.members.remove(number);
    }

    /// Takes a member out and keeps its turn by its number.
    pub(super) fn remove_keeping_turn(&mut self, number: u32) {
        if self.next == Some(number) {
            (self.next, self.left) = (None, Some(number));
        }
        self.members.remove(number);
    }

    /// Whose turn it is; none at the end, after which the first is next.
    pub(super) fn turn(&mut self) -> Option<u32> {
        let left = self.left.take();
        if self.next.is_none()
            && let Some(left) = left
        {
            self.next = self.members.from(left);
        }
        if self.next.is_none() {
            self.next = self.members.from(0);
            return None;
        }
        self.next
    }

    /// The turn goes on.
    pub(super) fn advance(&mut self) {
        let behind = |number| self.members.from(number + 1);
        self.next = self.next.and_then(behind);
    }

    pub(super) const fn has_turn(&self) -> bool {
        self.next.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_order_across_words_and_blocks() {
        let mut bits = Bits::default();
        let members = [0, 63, 64, 4095, 4096, 20_000];
        for number in members {
            bits.insert(number);
        }
        let mut found = Vec::new();
        let mut next = bits.from(0);
        while let Some(number) = next {
            found.push(number);
            next = bits.from(number + 1);
        }
        assert_eq!(found, members);
        for number in members {
            assert!(!bits.is_empty());
            bits.remove(number);
        }
        assert!(bits.is_empty());
        assert_eq!(bits.from(0), None);
    }

    #[test]
    fn a_ring_ends_and_begins_anew() {
        let mut ring = Ring::default();
        [2, 5].into_iter().for_each(|number| ring.insert(number));
        assert_eq!([ring.turn(), ring.turn()], [None, Some(2)]);
        ring.advance();
        assert_eq!(ring.turn(), Some(5));
        ring.remove_keeping_turn(5);
        ring.insert(7);
        assert_eq!(ring.turn(), Some(7));
        ring.insert(9);
        ring.remove(7);
        assert_eq!(ring.turn(), Some(9));
    }
}
