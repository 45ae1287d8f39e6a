//! From data seen at the tap to application data units.
//!
//! The a-b-t model: F. Hernandez-Campos, F. D. Smith, K. Jeffay, "Generating Realistic TCP
//! Workloads", CMG 2004; M. Weigle et al., "Tmix", CCR 36(3), 2006. A connection is sequential
//! while a side that sends new data has acknowledged all that the other side has sent; then an ADU
//! is all that a side sends before the other side does. It is concurrent as soon as two segments, one
//! of each side, were each sent before the other had arrived: new data whose acknowledgement
//! number does not cover the other side's data. Then nobody can say which answers which, and an
//! ADU is all that a side sends without a longer silence. In both, silence of more than the idle
//! time (500 ms in the papers) ends an ADU, if nothing kept the side from sending.

use aqmlab_net::{Role, Time};
use aqmlab_traffic::vector::{Adu, Body, CLOSE_AFTER, MAX_ADUS, MAX_BYTES, MAX_TIME};

/// What a connection's sides, 0 and 1, have been seen to send.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    units: Vec<Unit>,
    /// For each side the place behind its latest unit; 0: none.
    latest: [u32; 2],
    concurrent: bool,
    cut: bool,
}

/// An ADU at the tap.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Twice the number of bytes, plus the side.
    bytes_and_side: u64,
    /// Its first data.
    first: Time,
    /// The last data that was not acknowledged when it came.
    last: Time,
}

impl Unit {
    const fn new(side: usize, bytes: u64, now: Time) -> Self {
        Self {
            bytes_and_side: bytes << 1 | side as u64,
            first: now,
            last: now,
        }
    }

    const fn side(&self) -> usize {
        (self.bytes_and_side & 1) as usize
    }

    const fn bytes(&self) -> u64 {
        self.bytes_and_side >> 1
    }
}

/// New data of a side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewData {
    pub(crate) side: usize,
    pub(crate) bytes: u64,
    pub(crate) now: Time,
    /// The other side has sent data that this segment does not acknowledge.
    pub(crate) crossed: bool,
    /// The side was free to send and fell silent for longer than the idle time.
    pub(crate) idle: bool,
}

/// What must be known of a connection to tell its applications' pauses from the network's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// When each side could send.
    pub(crate) established: [Time; 2],
    /// Time from the tap to each side and back.
    pub(crate) loops: [Time; 2],
    /// When each side closed; [`Time::NEVER`] if that was not seen.
    pub(crate) closed: [Time; 2],
    /// Longest silence within an ADU.
    pub(crate) idle: Time,
}

impl Conversation {
    /// Whether nobody has said anything.
    pub(crate) const fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether there were more ADUs than a vector may have: the rest is left out.
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Who spoke first.
    pub(crate) fn first_side(&self) -> Option<usize> {
        self.units.first().map(Unit::side)
    }

    /// A side has sent data that had not been seen.
    pub(crate) fn on_data(&mut self, data: NewData) {
        let turn = self.units.last().map(Unit::side);
        self.concurrent |= data.crossed && turn.is_some_and(|turn| turn != data.side);
        let goes_on = !data.idle && (self.concurrent || turn == Some(data.side));
        match self.latest[data.side] {
            place @ 1.. if goes_on || self.cut => {
                let unit = &mut self.units[place as usize - 1];
                if !self.cut {
                    unit.bytes_and_side += data.bytes << 1;
                    unit.last = data.now;
                }
            }
            _ if self.units.len() >= MAX_ADUS => self.cut = true,
            _ => {
                self.units.push(Unit::new(data.side, data.bytes, data.now));
                self.latest[data.side] = self.units.len() as u32;
            }
        }
    }

    /// A side has repeated data that the other had not acknowledged: its ADU had not arrived.
    pub(crate) fn on_repeated(&mut self, side: usize, now: Time) {
        if let place @ 1.. = self.latest[side]
            && (self.concurrent || place as usize == self.units.len())
        {
            self.units[place as usize - 1].last = now;
        }
    }

    /// What the applications did, and whether anyone sent a byte.
    pub(crate) fn body(&self, initiator: usize, timing: &Timing) -> Body {
        if self.concurrent {
            let sides = [initiator, 1 - initiator];
            Body::Concurrent(sides.map(|side| self.one_side(side, timing)))
        } else {
            Body::Sequential(self.in_turn(initiator, timing))
        }
    }

    fn in_turn(&self, initiator: usize, timing: &Timing) -> Vec<(Role, Adu)> {
        let party = |side| match side == initiator {
            true => Role::Client,
            false => Role::Server,
        };
        let mut adus = Vec::with_capacity(self.units.len() + 1);
        if let Some(first) = self.units.first() {
            let established = timing.established[first.side()];
            // The initiator's first ADU needs no round trip: the tap saw its side established.
            let silence = match first.side() == initiator {
                true => first.first.saturating_sub(established),
                false => waiting(established, first, timing.loops[first.side()]),
            };
            if silence > timing.idle {
                adus.push((party(first.side()), adu(0, silence)));
            }
        }
        for (index, unit) in self.units.iter().enumerate() {
            let pause = match self.units.get(index + 1) {
                None => {
                    let closed = timing.closed[0].min(timing.closed[1]);
                    until_close(unit, closed)
                }
                Some(next) if next.side() == unit.side() => next.first.saturating_sub(unit.last),
                Some(next) => waiting(unit.last, next, timing.loops[next.side()]),
            };
            adus.push((party(unit.side()), adu(unit.bytes(), pause)));
        }
        adus
    }

    /// The ADUs of one side of a concurrent connection. What was still taken for turns is joined
    /// where the silence between was short.
    fn one_side(&self, side: usize, timing: &Timing) -> Vec<Adu> {
        let mut units: Vec<Unit> = Vec::new();
        for unit in self.units.iter().filter(|unit| unit.side() == side) {
            match units.last_mut() {
                Some(last) if unit.first.saturating_sub(last.last) <= timing.idle => {
                    last.bytes_and_side += unit.bytes() << 1;
                    last.last = unit.last;
                }
                _ => units.push(*unit),
            }
        }
        let mut adus = Vec::with_capacity(units.len() + 1);
        if let Some(first) = units.first() {
            let silence = first.first.saturating_sub(timing.established[side]);
            if silence > timing.idle {
                adus.push(adu(0, silence));
            }
        }
        for (index, unit) in units.iter().enumerate() {
            let pause = match units.get(index + 1) {
                None => until_close(unit, timing.closed[side]),
                Some(next) => next.first.saturating_sub(unit.last),
            };
            adus.push(adu(unit.bytes(), pause));
        }
        adus
    }
}

/// How long a side thought: the tap saw the data pass at `from` and the answer `round_trip` later
/// at the earliest.
fn waiting(from: Time, answer: &Unit, round_trip: Time) -> Time {
    let seen = answer.first.saturating_sub(from);
    match round_trip {
        Time::NEVER => seen,
        round_trip => seen.saturating_sub(round_trip),
    }
}

fn until_close(last: &Unit, closed: Time) -> Time {
    match closed {
        Time::NEVER => CLOSE_AFTER,
        closed => closed.saturating_sub(last.last),
    }
}

/// An ADU within the limits of the format.
fn adu(bytes: u64, pause: Time) -> Adu {
    Adu {
        bytes: bytes.min(MAX_BYTES),
        pause: pause.clamp(Time::from_micros(1), MAX_TIME),
    }
}
