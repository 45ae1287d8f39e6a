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
    taken: u32,
    /// The number of the event with which the exchange began.
    root: u32,
}

impl Story {
    /// An exchange of the connection begins; its number.
    pub(super) fn begin(&mut self, now: Time) -> u32 {
        self.root = self.push(0, StoryRow::new(StoryEvent::Asked, now));
        self.root
    }

    /// The number of the event with which the exchange began.
    pub(super) const fn root(&self) -> u32 {
        self.root
    }

    /// Something happens because of the event `cause`; its number.
    pub(super) fn push(&mut self, cause: u32, row: StoryRow) -> u32 {
        let number = self.taken + self.rows.len() as u32 + 1;
        self.rows.push(StoryRow {
            number: number.into(),
            cause: cause.into(),
            ..row
        });
        number
    }

    /// The events so far; they are forgotten.
    pub(super) fn take(&mut self) -> impl Iterator<Item = StoryRow> + '_ {
        self.taken += self.rows.len() as u32;
        self.rows.drain(..)
    }
}
