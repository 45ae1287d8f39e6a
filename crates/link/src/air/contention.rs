//! Who sends next: the distributed coordination function of 802.11.
//!
//! No slot is an event. From what each contender has drawn, and since when it has something to send,
//! follows when the next transmission begins and whose it is. Contenders that begin together
//! collide.

use super::draws::Draws;
use super::phy::Nanos;

const US: Nanos = 1_000;

/// The intervals of the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) slot: Nanos,
    /// Between a transmission and its answer.
    pub(super) sifs: Nanos,
    /// How long the medium is idle before slots are counted.
    pub(super) aifs: Nanos,
    /// How long a sender waits for an answer.
    pub(super) timeout: Nanos,
    /// The contention windows, from that of the first try on.
    pub(super) windows: [u32; 2],
}

impl Timing {
    /// That of 5 GHz, with so many slots in its AIFS.
    pub(super) const fn of_5_ghz(slots: u64) -> Self {
        let (slot, sifs) = (9 * US, 16 * US);
        Self {
            slot,
            sifs,
            aifs: sifs + slots * slot,
            timeout: sifs + slot + 20 * US,
            windows: [15, 1023],
        }
    }
}

/// One that sends: the access point, or a station.
#[derive(Debug)]
struct Contender {
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
    contenders: Vec<Contender>,
    /// When the next transmission begins, while nobody sends.
    next: Nanos,
    /// Somebody sends, or is answered.
    is_busy: bool,
    /// When the last exchange ended.
    ended: Option<Nanos>,
}

impl Contention {
    /// A medium that is idle since time 0; the contenders draw from these.
    pub(super) fn new(timing: Timing, draws: impl IntoIterator<Item = Draws>) -> Self {
        let contender = |draws| Contender {
            idle: 0,
            counter: None,
            window: timing.windows[0],
            ready: None,
            draws,
        };
        Self {
            contenders: draws.into_iter().map(contender).collect(),
            timing,
            next: Nanos::MAX,
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

    /// A contender that had nothing has something to send from now on; what it draws, if it must.
    pub(super) fn ready(&mut self, node: usize, now: Nanos) -> Option<u32> {
        let is_busy = self.is_busy || self.ended.is_some_and(|ended| now <= ended);
        let contender = &mut self.contenders[node];
        contender.ready = Some(now);
        let mut drawn = None;
        if contender.counter.is_none() {
            match is_busy {
                true => drawn = Some(contender.draw()),
                false => contender.counter = Some(0),
            }
        }
        if !self.is_busy {
            self.next = self.next.min(self.start(node));
        }
        drawn
    }

    /// A contender has nothing left to send.
    pub(super) fn quiet(&mut self, node: usize) {
        self.contenders[node].ready = None;
    }

    /// When a contender would begin to send.
    fn start(&self, node: usize) -> Nanos {
        let contender = &self.contenders[node];
        let Some(ready) = contender.ready else {
            return Nanos::MAX;
        };
        let base = contender.idle + self.timing.aifs;
        let waits = ready.saturating_sub(base).div_ceil(self.timing.slot);
        let counter = contender.counter.unwrap_or(0);
        base + waits.max(u64::from(counter)) * self.timing.slot
    }

    /// It is [`next`](Self::next): who begins to send. The others let no slot pass until the exchange
    /// is over.
    pub(super) fn begin(&mut self, senders: &mut Vec<usize>) {
        let now = self.next;
        senders.clear();
        for node in 0..self.contenders.len() {
            if self.start(node) == now {
                senders.push(node);
                continue;
            }
            let contender = &mut self.contenders[node];
            let Some(counter) = contender.counter else {
                continue;
            };
            let base = contender.idle + self.timing.aifs;
            if now < base {
                continue;
            }
            let passed = (now - base) / self.timing.slot;
            let left = u64::from(counter).saturating_sub(passed) as u32;
            // A counter runs out while its owner is quiet.
            let is_over = left == 0 && contender.ready.is_none();
            contender.counter = (!is_over).then_some(left);
        }
        self.is_busy = true;
        self.next = Nanos::MAX;
    }

    /// An exchange has ended. Call one of [`succeeded`](Self::succeeded) and
    /// [`failed`](Self::failed) for each sender, then [`resume`](Self::resume).
    pub(super) fn end(&mut self, end: Nanos) {
        self.is_busy = false;
        self.ended = Some(end);
        for contender in &mut self.contenders {
            contender.idle = end;
        }
    }

    /// A sender whose own transmission ended then waits in vain for its answer.
    pub(super) fn wait_for_answer(&mut self, node: usize, end: Nanos, own_end: Nanos) {
        let Timing { slot, timeout, .. } = self.timing;
        let waits = (own_end + timeout).saturating_sub(end).div_ceil(slot);
        self.contenders[node].idle = end + waits * slot;
    }

    /// A sender was answered, or has given up: it begins with the smallest window.
    pub(super) fn succeeded(&mut self, node: usize) -> u32 {
        let contender = &mut self.contenders[node];
        contender.window = self.timing.windows[0];
        contender.draw()
    }

    /// A sender was not answered, and will try again.
    pub(super) fn failed(&mut self, node: usize) -> u32 {
        let contender = &mut self.contenders[node];
        contender.window = (2 * contender.window + 1).min(self.timing.windows[1]);
        contender.draw()
    }

    /// All know what they have to send, after an exchange.
    pub(super) fn resume(&mut self) {
        let nodes = 0..self.contenders.len();
        self.next = nodes
            .map(|node| self.start(node))
            .min()
            .unwrap_or(Nanos::MAX);
    }

    #[cfg(test)]
    pub(super) fn window(&self, node: usize) -> u32 {
        self.contenders[node].window
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
