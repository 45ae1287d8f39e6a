//! Vectors of parts, which several holders share until one of them changes its own.

use aqmlab_net::Time;
use aqmlab_record::{PARTS_OF_PORT, Part, PathCount, StoryEvent, StoryRow};

use super::story::Story;

/// A vector, by its place.
pub(super) type Vector = u32;

/// Words of a vector before its parts: when its exchange began, up to when it accounts, and the last
/// event of its path where the connection is followed, else 0.
const HEAD: usize = 3;
const ORIGIN: usize = 0;
const UNTIL: usize = 1;
const LAST: usize = 2;

/// Words behind its counts: the loss that cost most, and what it cost.
const TAIL: usize = 2;

/// All vectors of a world: words of one stretch of memory. Free places are used again in the order
/// last in, first out.
#[derive(Debug)]
pub(super) struct Vectors {
    /// Parts of a vector.
    parts: usize,
    words: Vec<u64>,
    /// How many hold each of them.
    holders: Vec<u32>,
    free: Vec<Vector>,
    pub(super) story: Story,
}

impl Vectors {
    pub(super) fn new(ports: usize) -> Self {
        Self {
            parts: Part::ALL.len() + PARTS_OF_PORT * ports,
            words: Vec::new(),
            holders: Vec::new(),
            free: Vec::new(),
            story: Story::default(),
        }
    }

    const fn stride(&self) -> usize {
        HEAD + self.parts + PathCount::ALL.len() + TAIL
    }

    const fn word(&self, vector: Vector, word: usize) -> usize {
        vector as usize * self.stride() + word
    }

    /// A place that nobody holds yet, with whatever was there.
    fn place(&mut self) -> Vector {
        let vector = self.free.pop().unwrap_or_else(|| {
            let words = self.words.len() + self.stride();
            self.words.resize(words, 0);
            self.holders.push(0);
            (self.holders.len() - 1) as Vector
        });
        self.holders[vector as usize] = 1;
        vector
    }

    /// The vector of an exchange that begins now, on a connection that is followed or not.
    pub(super) fn begin(&mut self, origin: Time, is_followed: bool) -> Vector {
        let vector = self.place();
        self.reset(vector, origin);
        if is_followed {
            let root = self.story.begin(origin);
            self.set_last(vector, root);
        }
        vector
    }

    fn reset(&mut self, vector: Vector, origin: Time) {
        let first = self.word(vector, 0);
        let stride = self.stride();
        self.words[first..first + stride].fill(0);
        self.words[first + ORIGIN] = origin.as_nanos();
        self.words[first + UNTIL] = origin.as_nanos();
    }

    /// One more holds it.
    pub(super) fn share(&mut self, vector: Vector) -> Vector {
        self.holders[vector as usize] += 1;
        vector
    }

    /// One less holds it.
    pub(super) fn release(&mut self, vector: Vector) {
        let holders = &mut self.holders[vector as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(vector);
        }
    }

    /// A holder gives up a vector for an equal vector that nobody else holds.
    pub(super) fn own(&mut self, vector: Vector) -> Vector {
        if self.holders[vector as usize] == 1 {
            return vector;
        }
        self.release(vector);
        self.copy(vector)
    }

    /// The same vector once more, which nobody else holds.
    pub(super) fn copy(&mut self, vector: Vector) -> Vector {
        let copy = self.place();
        let (from, to) = (self.word(vector, 0), self.word(copy, 0));
        let stride = self.stride();
        self.words.copy_within(from..from + stride, to);
        copy
    }

    /// The vector of the exchange that began at `origin`: nothing remains of another exchange.
    pub(super) fn rebase(&mut self, vector: Vector, origin: Time) -> bool {
        let is_older = self.origin(vector) != origin;
        if is_older {
            let is_followed = self.last(vector) > 0;
            self.reset(vector, origin);
            if is_followed {
                self.set_last(vector, self.story.root());
            }
        }
        is_older
    }

    pub(super) fn origin(&self, vector: Vector) -> Time {
        Time::from_nanos(self.words[self.word(vector, ORIGIN)])
    }

    /// Up to when it accounts.
    pub(super) fn until(&self, vector: Vector) -> Time {
        Time::from_nanos(self.words[self.word(vector, UNTIL)])
    }

    /// A part takes the time up to `until`. The vector is its holder's [own](Self::own).
    pub(super) fn charge(&mut self, vector: Vector, part: Part, until: Time) {
        let time = until - self.until(vector);
        let mut own = self.own_mut(vector);
        own.add(part as usize, time);
        own.set_until(until);
    }

    pub(super) fn count(&mut self, vector: Vector, what: PathCount) {
        self.own_mut(vector).count(what);
    }

    /// A vector that nobody else holds, to be changed.
    pub(super) fn own_mut(&mut self, vector: Vector) -> Own<'_> {
        debug_assert_eq!(self.holders[vector as usize], 1, "it is shared");
        let (first, parts) = (self.word(vector, 0), self.parts);
        let stride = self.stride();
        let words = &mut self.words[first..first + stride];
        let story = &mut self.story;
        Own {
            parts,
            words,
            story,
        }
    }

    /// The last event of its path; 0: its connection is not followed.
    pub(super) fn last(&self, vector: Vector) -> u64 {
        self.words[self.word(vector, LAST)]
    }

    /// Its path ends with this event.
    pub(super) fn set_last(&mut self, vector: Vector, number: u64) {
        let word = self.word(vector, LAST);
        self.words[word] = number;
    }

    pub(super) fn parts(&self, vector: Vector) -> &[u64] {
        let first = self.word(vector, HEAD);
        &self.words[first..first + self.parts]
    }

    pub(super) fn counts(&self, vector: Vector) -> &[u64] {
        let first = self.word(vector, HEAD + self.parts);
        &self.words[first..first + PathCount::ALL.len()]
    }

    /// What the loss that cost most has cost, and a word that its holder understands; no time: there
    /// is none.
    pub(super) fn loss(&self, vector: Vector) -> (Time, u64) {
        let first = self.word(vector, HEAD + self.parts + PathCount::ALL.len());
        (Time::from_nanos(self.words[first]), self.words[first + 1])
    }

    /// A loss has cost so much; the one that cost most remains.
    pub(super) fn note_loss(&mut self, vector: Vector, time: Time, word: u64) {
        if time > self.loss(vector).0 {
            let first = self.word(vector, HEAD + self.parts + PathCount::ALL.len());
            (self.words[first], self.words[first + 1]) = (time.as_nanos(), word);
        }
    }

    /// Vectors that somebody holds.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.holders.len() - self.free.len()
    }
}

/// A vector that has one holder.
pub(super) struct Own<'a> {
    parts: usize,
    words: &'a mut [u64],
    story: &'a mut Story,
}

impl Own<'_> {
    /// A part takes so much more, which [`set_until`](Self::set_until) is to cover.
    pub(super) fn add(&mut self, part: usize, time: Time) {
        self.words[HEAD + part] += time.as_nanos();
        if self.words[LAST] > 0 && time > Time::ZERO {
            let done: u64 = self.words[HEAD..HEAD + self.parts].iter().sum();
            let end = Time::from_nanos(self.words[ORIGIN] + done);
            self.note(StoryRow {
                part: Some(part as u16),
                duration: time,
                ..StoryRow::new(StoryEvent::Part, end)
            });
        }
    }

    /// The next event of its path.
    pub(super) fn note(&mut self, row: StoryRow) {
        self.words[LAST] = self.story.say(self.words[LAST], row);
    }

    /// From now on it accounts up to `until`: what was added covers that.
    pub(super) fn set_until(&mut self, until: Time) {
        self.words[UNTIL] = until.as_nanos();
    }

    pub(super) fn count(&mut self, what: PathCount) {
        self.words[HEAD + self.parts + what as usize] += 1;
    }
}
