//! What happens on a connection that is followed, event by event.

use aqmlab_net::Time;
use aqmlab_record::{StoryEvent, StoryRow};

/// The events of a connection that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// The connection that is followed.
    pub(super) flow: Option<u64>,
    rows: Vec<StoryRow>,
    /// Events that were taken.
    taken: u64,
    /// The number of the event with which the exchange began.
    root: u64,
}

impl Story {
    /// An exchange of the connection begins; its number.
    pub(super) fn begin(&mut self, now: Time) -> u64 {
        self.root = self.push(StoryRow::new(StoryEvent::Asked, now));
        self.root
    }

    /// The number of the event with which the exchange began.
    pub(super) const fn root(&self) -> u64 {
        self.root
    }

    /// Something happens because of the event `cause`; its number, 0 where nobody follows.
    #[inline]
    pub(super) fn say(&mut self, cause: u64, row: StoryRow) -> u64 {
        match cause {
            0 => 0,
            cause => self.push(StoryRow { cause, ..row }),
        }
    }

    fn push(&mut self, row: StoryRow) -> u64 {
        let number = self.taken + self.rows.len() as u64 + 1;
        self.rows.push(StoryRow { number, ..row });
        number
    }

    /// The events so far; they are forgotten.
    pub(super) fn take(&mut self) -> impl Iterator<Item = StoryRow> + '_ {
        self.taken += self.rows.len() as u64;
        self.rows.drain(..)
    }
}
