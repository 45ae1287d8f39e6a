//! Counts by reason.

use std::fmt;
use std::marker::PhantomData;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Something that is counted by reason.
pub trait Reason: Copy {
    /// What each is called.
    const NAMES: &[&str];

    /// Which of the names is this one's.
    fn index(self) -> usize;
}

/// Counts by reason.
#[derive(Clone, PartialEq, Eq)]
pub struct Counts<R> {
    counts: [u64; MOST],
    reason: PhantomData<R>,
}

/// The most reasons of one kind.
const MOST: usize = 8;

impl<R> Default for Counts<R> {
    fn default() -> Self {
        Self {
            counts: [0; MOST],
            reason: PhantomData,
        }
    }
}

impl<R: Reason> Counts<R> {
    /// Counts one.
    #[inline]
    pub(crate) fn add(&mut self, reason: R) {
        self.counts[reason.index()] += 1;
    }

    /// How many there are of one reason.
    pub fn of(&self, reason: R) -> u64 {
        self.counts[reason.index()]
    }

    /// Of all reasons.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What has been counted, by name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = R::NAMES.iter().copied();
        names.zip(self.counts).filter(|&(_, count)| count > 0)
    }
}

impl<R: Reason> Serialize for Counts<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, count) in self.named() {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}

impl<R: Reason> fmt::Debug for Counts<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.named()).finish()
    }
}
