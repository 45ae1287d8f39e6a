//! How far the packets of a file are out of order, and whether its clock was set back.

use crate::decode::Endpoint;
use crate::hash::Map;
use crate::packet::Packet;

/// Back by more than this, and the clock may have been set.
const JUMP: u64 = 1_000_000_000;
/// So many packets behind a jump say what it was.
const TRIAL: usize = 64;
/// So many that say so are enough.
const ENOUGH: u32 = 16;
/// Packets between two places at which the latest time is noted.
const STEP: u64 = 256;
/// No more packets are held: memory.
const MOST_HELD: usize = 1 << 20;
/// Connections whose numbers are remembered.
const MOST: usize = 1 << 18;

/// The order of a file's packets, in the making.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) hold: usize,
    pub(crate) moved: u64,
    pub(crate) shifts: Vec<(u64, u64)>,
    shift: u64,
    last: Option<u64>,
    latest: u64,
    /// The latest time up to each so-many-th packet.
    steps: Vec<u64>,
    count: u64,
    /// By sender and receiver: behind the last byte, and the number of the first packet.
    ends: Map<[Endpoint; 2], (u32, u64)>,
    trial: Option<Trial>,
}

/// Packets behind a jump back.
#[derive(Debug, Default)]
struct Trial {
    at: u64,
    by: u64,
    grow: u32,
    repeat: u32,
    times: Vec<u64>,
}

impl Order {
    pub(crate) fn add(&mut self, number: u64, time: u64, packet: &Packet) {
        let time = time.saturating_add(self.shift);
        let grows = self.grows(number, packet);
        if self.trial.is_none() {
            match self.last {
                Some(last) if time.saturating_add(JUMP) < last => {
                    self.trial = Some(Trial {
                        at: number,
                        by: last - time,
                        ..Trial::default()
                    });
                }
                _ => return self.place(time),
            }
        }
        let Some(trial) = &mut self.trial else {
            return;
        };
        let back = self
            .last
            .is_some_and(|last| time.saturating_add(trial.by / 2) > last);
        trial.times.push(time);
        match grows {
            Some(true) => trial.grow += 1,
            Some(false) => trial.repeat += 1,
            None => {}
        }
        if back && trial.times.len() < TRIAL {
            // Time goes on where it was: single packets came late.
            trial.grow = 0;
            self.decide();
        } else if trial.times.len() >= TRIAL || trial.grow >= ENOUGH {
            self.decide();
        }
    }

    pub(crate) fn finish(&mut self) {
        self.decide();
        self.ends.clear();
    }

    /// Whether a packet's numbers go on from what its connection had; `None` if that is not known.
    fn grows(&mut self, number: u64, packet: &Packet) -> Option<bool> {
        let header = packet.header.ok()?;
        let key = [header.source, header.destination];
        let end = header.seq.wrapping_add(header.payload);
        let Some((high, first)) = self.ends.get_mut(&key) else {
            if self.ends.len() >= MOST {
                self.ends.clear();
            }
            self.ends.insert(key, (end, number));
            return None;
        };
        let ahead = header.seq.wrapping_sub(*high).cast_signed();
        if end.wrapping_sub(*high).cast_signed() > 0 {
            *high = end;
        }
        // What began behind the jump says nothing of it.
        let is_older = self.trial.as_ref().is_none_or(|trial| *first < trial.at);
        is_older.then_some(ahead >= 0)
    }

    fn decide(&mut self) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        let by = match trial.grow >= 2 && trial.grow > 2 * trial.repeat {
            true => trial.by,
            false => 0,
        };
        if by > 0 {
            self.shift = self.shift.saturating_add(by);
            self.shifts.push((trial.at, by));
        }
        for time in trial.times {
            self.place(time.saturating_add(by));
        }
    }

    /// A packet's place: how many before it are later.
    fn place(&mut self, time: u64) {
        self.last = Some(time);
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
