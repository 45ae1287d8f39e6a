//! Who sends next: the coordination functions of 802.11, DCF and EDCA.
//!
//! No slot is an event. From what each contender has drawn, and since when it has something to send,
//! follows when the next transmission begins and whose it is. Nodes that begin together collide.
//! With EDCA a node has a contender for each of its access categories. Where several of them could
//! begin together, the highest category sends.

use super::draws::Draws;
use super::phy::Nanos;

const US: Nanos = 1_000;

/// The intervals of the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) slot: Nanos,
    /// Between a transmission and its answer.
    pub(super) sifs: Nanos,
    /// How long a sender waits for an answer.
    pub(super) timeout: Nanos,
}

impl Timing {
    /// That of 5 GHz.
    pub(super) const OF_5_GHZ: Self = {
        let (slot, sifs) = (9 * US, 16 * US);
        Self {
            slot,
            sifs,
            timeout: sifs + slot + 20 * US,
        }
    };
}

/// How a contender waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// How many slots the medium is idle after a SIFS before others are counted: the AIFSN.
    pub(super) slots: u64,
    /// 1 if the slot in which others begin counts as well. An EDCA counts a slot as it begins
    /// (10.23.2.4), DCF as it ends (10.3.4.3).
    pub(super) begun: u64,
    /// The contention windows, from that of the first try on.
    pub(super) windows: [u32; 2],
}

/// One that sends: the access point or a station, or one of its access categories.
#[derive(Debug)]
struct Contender {
    access: Access,
    /// When the medium fell idle, as it counts.
    idle: Nanos,
    /// Slots that it still lets pass; nothing: it has drawn none.
    counter: Option<u32>,
    window: u32,
    /// Since when it has something to send.
    ready: Option<Nanos>,
    draws: Draws,
}

impl Contender {
    /// From when on it counts slots.
    #[inline]
    const fn base(&self, timing: &Timing) -> Nanos {
        self.idle + timing.sifs + self.access.slots * timing.slot
    }

    /// When it would begin to send.
    #[inline]
    fn start(&self, timing: &Timing) -> Nanos {
        let Some(ready) = self.ready else {
            return Nanos::MAX;
        };
        let base = self.base(timing);
        let counter = u64::from(self.counter.unwrap_or(0));
        // Nearly always it was ready when it began to count.
        let waits = match ready <= base {
            true => counter,
            false => counter.max((ready - base).div_ceil(timing.slot)),
        };
        base + waits * timing.slot
    }

    /// Others begin to send: it takes off the slots that have passed.
    #[inline]
    fn let_pass(&mut self, now: Nanos, timing: &Timing) {
        let Some(counter) = self.counter else {
            return;
        };
        let base = self.base(timing);
        if now < base {
            return;
        }
        let passed = (now - base) / timing.slot + self.access.begun;
        let left = u64::from(counter).saturating_sub(passed) as u32;
        // A counter runs out while its owner is quiet.
        let is_over = left == 0 && self.ready.is_none();
        self.counter = (!is_over).then_some(left);
    }

    fn draw(&mut self) -> u32 {
        let drawn = self.draws.below(self.window + 1);
        self.counter = Some(drawn);
        drawn
    }
}

/// Those who share the medium.
#[derive(Debug)]
pub(super) struct Contention {
    timing: Timing,
    /// Node by node, the highest category first.
    contenders: Vec<Contender>,
    /// Contenders of a node.
    categories: usize,
    /// When the next transmission begins, while nobody sends.
    next: Nanos,
    /// Whose it is, if nobody else begins then.
    alone: Option<usize>,
    /// Somebody sends, or is answered.
    is_busy: bool,
    /// When the last exchange ended.
    ended: Option<Nanos>,
}

impl Contention {
    /// A medium that is idle since time 0, with so many contenders of each node: how they wait, and
    /// what they draw from.
    pub(super) fn new(
        timing: Timing,
        categories: usize,
        contenders: impl IntoIterator<Item = (Access, Draws)>,
    ) -> Self {
        let contender = |(access, draws): (Access, Draws)| Contender {
            idle: 0,
            counter: None,
            window: access.windows[0],
            ready: None,
            access,
            draws,
        };
        Self {
            contenders: contenders.into_iter().map(contender).collect(),
            categories,
            timing,
            next: Nanos::MAX,
            alone: None,
            is_busy: false,
            ended: None,
        }
    }

    pub(super) const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// When the next transmission begins: never while nobody has anything to send, or somebody sends.
    #[inline]
    pub(super) const fn next(&self) -> Nanos {
        self.next
    }

    /// The contender that begins it, unless several do. Before it begins, [`ready`](Self::ready) can
    /// change both.
    #[inline]
    pub(super) const fn alone(&self) -> Option<usize> {
        self.alone
    }

    /// A contender that had nothing has something to send from now on; what it draws, if it must.
    pub(super) fn ready(&mut self, index: usize, now: Nanos) -> Option<u32> {
        let is_busy = self.is_busy || self.ended.is_some_and(|ended| now <= ended);
        let contender = &mut self.contenders[index];
        contender.ready = Some(now);
        let mut drawn = None;
        if contender.counter.is_none() {
            match is_busy {
                true => drawn = Some(contender.draw()),
                false => contender.counter = Some(0),
            }
        }
        if !self.is_busy {
            self.begins(index);
        }
        drawn
    }

    /// A contender has nothing left to send.
    pub(super) fn quiet(&mut self, index: usize) {
        self.contenders[index].ready = None;
    }

    /// A contender that is not among those of [`next`](Self::next) has something to send.
    #[inline]
    fn begins(&mut self, index: usize) {
        let start = self.contenders[index].start(&self.timing);
        if start < self.next {
            (self.next, self.alone) = (start, Some(index));
        } else if start == self.next {
            self.alone = None;
        }
    }

    /// It is [`next`](Self::next): the senders that begin, and those that a higher category of their node
    /// overtakes. The others let no slot pass until the exchange is over.
    pub(super) fn begin(&mut self, senders: &mut Vec<usize>, overtaken: &mut Vec<usize>) {
        let now = self.next;
        senders.clear();
        overtaken.clear();
        for (index, contender) in self.contenders.iter_mut().enumerate() {
            if contender.start(&self.timing) == now {
                let node = index / self.categories;
                let is_first = senders.last().is_none_or(|it| it / self.categories != node);
                let those = if is_first {
                    &mut *senders
                } else {
                    &mut *overtaken
                };
                those.push(index);
                continue;
            }
            contender.let_pass(now, &self.timing);
        }
        self.alone = None;
        self.is_busy = true;
        self.next = Nanos::MAX;
    }

    /// The exchange of the one that was [`alone`](Self::alone) began at [`next`](Self::next), and ended
    /// well: all of [`begin`](Self::begin), [`end`](Self::end) and [`succeeded`](Self::succeeded).
    pub(super) fn pass_alone(&mut self, sender: usize, end: Nanos) {
        for (index, contender) in self.contenders.iter_mut().enumerate() {
            if index != sender {
                contender.let_pass(self.next, &self.timing);
            }
            contender.idle = end;
        }
        (self.next, self.alone) = (Nanos::MAX, None);
        self.ended = Some(end);
        self.succeeded(sender);
    }

    /// The sender of the exchange that ended goes on without contention.
    pub(super) const fn hold(&mut self) {
        self.is_busy = true;
    }

    /// An exchange has ended. Call one of [`succeeded`](Self::succeeded) and
    /// [`failed`](Self::failed) for each sender, then [`resume`](Self::resume) or
    /// [`hold`](Self::hold).
    pub(super) fn end(&mut self, end: Nanos) {
        self.is_busy = false;
        self.ended = Some(end);
        for contender in &mut self.contenders {
            contender.idle = end;
        }
    }

    /// The node of a sender whose own transmission ended then waits in vain for its answer.
    pub(super) fn wait_for_answer(&mut self, sender: usize, end: Nanos, own_end: Nanos) {
        let Timing { slot, timeout, .. } = self.timing;
        let waits = (own_end + timeout).saturating_sub(end).div_ceil(slot);
        let first = sender / self.categories * self.categories;
        for contender in &mut self.contenders[first..first + self.categories] {
            contender.idle = end + waits * slot;
        }
    }

    /// A sender was answered, or has given up: it begins with the smallest window.
    pub(super) fn succeeded(&mut self, index: usize) -> u32 {
        let contender = &mut self.contenders[index];
        contender.window = contender.access.windows[0];
        contender.draw()
    }

    /// A sender was not answered, or was overtaken, and will try again.
    pub(super) fn failed(&mut self, index: usize) -> u32 {
        let contender = &mut self.contenders[index];
        contender.window = (2 * contender.window + 1).min(contender.access.windows[1]);
        contender.draw()
    }

    /// All know what they have to send, after an exchange.
    pub(super) fn resume(&mut self) {
        (self.next, self.alone) = (Nanos::MAX, None);
        for index in 0..self.contenders.len() {
            self.begins(index);
        }
    }

    #[cfg(test)]
    pub(super) fn window(&self, index: usize) -> u32 {
        self.contenders[index].window
    }

    #[cfg(test)]
    pub(super) fn counters(&self) -> Vec<Option<u32>> {
        self.contenders.iter().map(|it| it.counter).collect()
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> Vec<Nanos> {
        self.contenders.iter().map(|it| it.idle).collect()
    }
}
