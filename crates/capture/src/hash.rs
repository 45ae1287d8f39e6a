//! Tables of marks, addresses and ends of connections: a fast hash without a secret. Their order
//! is never looked at.

use std::hash::{BuildHasherDefault, Hasher};

/// A table.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, BuildHasherDefault<Mix>>;
/// A set.
pub(crate) type Set<K> = hashbrown::HashSet<K, BuildHasherDefault<Mix>>;

/// Multiplicative hashing, each step with the high bits folded into the low ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = step(self.0, word);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }
}

/// A word goes into a hash.
#[inline]
pub(crate) const fn step(hash: u64, word: u64) -> u64 {
    /// 2^64 over the golden ratio.
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = (hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    product ^ product >> 32
}
