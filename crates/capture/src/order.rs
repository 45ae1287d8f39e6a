//! How far the packets of a file are out of order, and whether its clock was set.
//!
//! A clock that is set back shows in packets that go on from earlier ones with smaller times. A
//! clock that is set forward shows in a gap that all flows share, while the packets behind it say
//! that little time has passed ([`Gap`]).

use crate::gap::{Cause, Gap};
use crate::numbers::Numbers;
use crate::packet::Packet;

use crate::hash::Map;

/// Back by more than this at one interface, and the clock may have been set: services of time step
/// by as little.
const JUMP: u64 = 100_000_000;
/// So many packets behind a jump back say what it was.
const TRIAL: usize = 64;
/// So many that say so are enough.
const ENOUGH: u32 = 16;
/// Nothing for so long, and the clock may have been set forward.
const SILENCE: u64 = 500_000_000;
/// Packets between two places at which the latest time is noted.
const STEP: u64 = 256;
/// No more packets are held: memory.
const MOST_HELD: usize = 1 << 20;
/// No more silences are remembered.
const MOST_SILENCES: usize = 1 << 16;

/// The order of a file's packets, in the making.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) hold: usize,
    pub(crate) moved: u64,
    /// From which packet on, and by how much, what follows is moved: nanoseconds.
    pub(crate) shifts: Vec<(u64, i64)>,
    shift: i64,
    /// By interface.
    last: Map<u32, u64>,
    first: Option<u64>,
    latest: u64,
    /// The latest time up to each so-many-th packet.
    steps: Vec<u64>,
    count: u64,
    numbers: Numbers,
    trial: Option<Trial>,
    /// Packets whose times are not settled: interface and time.
    pending: Vec<(u32, u64)>,
    silences: Vec<u64>,
    /// Silences that nothing explains: since the first packet, and how long.
    unclear: Vec<(u64, u64)>,
}

/// What the packets behind a jump are asked.
#[derive(Debug)]
enum Trial {
    Back(Back),
    Forward { at: u64, gap: Gap },
}

/// A jump back.
#[derive(Debug, Default)]
struct Back {
    interface: u32,
    last: u64,
    at: u64,
    by: u64,
    grow: u32,
    repeat: u32,
}

impl Order {
    pub(crate) fn add(&mut self, number: u64, time: u64, packet: &Packet) {
        let mut now = time.saturating_add_signed(self.shift);
        if let Some(Trial::Forward { gap, .. }) = &self.trial
            && (gap.is_over(now, SILENCE) || now.saturating_add(JUMP) < gap.last)
        {
            self.decide();
            now = time.saturating_add_signed(self.shift);
        }
        if self.trial.is_none() {
            self.trial = self.doubted(number, now, packet.interface);
        }
        let grows = match &mut self.trial {
            Some(Trial::Forward { gap, .. }) => {
                gap.add(now, packet, &mut self.numbers);
                None
            }
            // What began behind the jump says nothing of it.
            Some(Trial::Back(back)) => self.numbers.add(number, now, packet, Some(back.at)),
            None => {
                self.numbers.add(number, now, packet, None);
                return self.place(packet.interface, now);
            }
        };
        self.pending.push((packet.interface, now));
        if let Some(Trial::Back(back)) = &mut self.trial {
            match grows {
                Some(true) => back.grow += 1,
                Some(false) => back.repeat += 1,
                None => {}
            }
            let is_same = packet.interface == back.interface;
            if is_same && now.saturating_add(back.by / 2) > back.last && self.pending.len() < TRIAL
            {
                // Time goes on where it was: single packets came late.
                back.grow = 0;
                self.decide();
            } else if self.pending.len() >= TRIAL || back.grow >= ENOUGH {
                self.decide();
            }
        }
    }

    pub(crate) fn finish(&mut self) {
        self.decide();
        self.numbers = Numbers::default();
    }

    /// Silences that are out of the ordinary and may be a clock that was set forward: when, since
    /// the first packet, and how long.
    pub(crate) fn unclear(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut silences = self.silences.clone();
        silences.sort_unstable();
        let all = silences
            .iter()
            .fold(0, |all: u64, one| all.saturating_add(*one));
        let span = self.latest - self.first.unwrap_or_default();
        let each = span.saturating_sub(all) / self.count.max(1);
        // What nine in ten of the others do not exceed.
        let others = silences.len().saturating_sub(1 + self.unclear.len().min(3));
        let usual = match others {
            0 => 0,
            _ => silences[others * 9 / 10],
        };
        let least = each.saturating_mul(1000).max(usual.saturating_mul(10));
        self.unclear
            .iter()
            .copied()
            .filter(move |silence| silence.1 > least)
    }

    /// Whether a packet's time needs a trial.
    fn doubted(&mut self, number: u64, now: u64, interface: u32) -> Option<Trial> {
        let last = *self.last.get(&interface)?;
        if now.saturating_add(JUMP) < last {
            return Some(Trial::Back(Back {
                interface,
                last,
                at: number,
                by: last - now,
                ..Back::default()
            }));
        }
        (now >= self.latest.saturating_add(SILENCE)).then(|| Trial::Forward {
            at: number,
            gap: Gap::new(self.latest, now),
        })
    }

    fn decide(&mut self) {
        let by = match self.trial.take() {
            None => return,
            Some(Trial::Back(back)) => {
                let is_set = back.grow >= 2 && back.grow > 2 * back.repeat;
                self.note(back.at, if is_set { back.by.cast_signed() } else { 0 })
            }
            Some(Trial::Forward { at, gap }) => {
                let cause = gap.cause(&self.numbers);
                match cause {
                    Cause::Set(by) => {
                        self.numbers.move_back(gap.end, by);
                        self.note(at, -by.cast_signed())
                    }
                    Cause::Pause | Cause::Unclear => {
                        let long = gap.end - gap.last;
                        if self.silences.len() < MOST_SILENCES {
                            self.silences.push(long);
                            if cause == Cause::Unclear {
                                let since = gap.last - self.first.unwrap_or_default();
                                self.unclear.push((since, long));
                            }
                        }
                        0
                    }
                }
            }
        };
        for (interface, time) in std::mem::take(&mut self.pending) {
            self.place(interface, time.saturating_add_signed(by));
        }
    }

    /// From a packet on the clock is off by so much more.
    fn note(&mut self, at: u64, by: i64) -> i64 {
        if by != 0 {
            self.shift = self.shift.saturating_add(by);
            self.shifts.push((at, by));
        }
        by
    }

    /// A packet's place: how many before it are later.
    fn place(&mut self, interface: u32, time: u64) {
        self.last.insert(interface, time);
        self.first.get_or_insert(time);
        if time < self.latest {
            self.moved += 1;
            // The first step that is later; the packet may belong anywhere in front of it.
            let step = self.steps.partition_point(|latest| *latest <= time) as u64;
            let held = self.count - step.saturating_sub(1) * STEP;
            self.hold = self.hold.max((held as usize).min(MOST_HELD));
        }
        self.latest = self.latest.max(time);
        if self.count.is_multiple_of(STEP) {
            self.steps.push(self.latest);
        }
        self.count += 1;
    }
}
