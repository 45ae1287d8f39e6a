//! Which station's turn it is at an access point.
//!
//! With fairness each station has a deficit of time on the air, from which its transmissions are
//! taken, those that it sends included: Hoeiland-Joergensen et al., "Ending the anomaly", USENIX ATC
//! 2017, as Linux has it. There is one list of stations, not one of new and one of old ones.

use std::collections::VecDeque;

/// Nanoseconds that a turn adds to a deficit, as in Linux.
const QUANTUM: i64 = 256_000;

/// The stations with packets, in the order of their turns.
#[derive(Debug)]
pub(super) struct Turns {
    is_fair: bool,
    list: VecDeque<u16>,
    is_listed: Vec<bool>,
    deficits: Vec<i64>,
}

impl Turns {
    pub(super) fn new(stations: usize, is_fair: bool) -> Self {
        Self {
            is_fair,
            list: VecDeque::new(),
            is_listed: vec![false; stations],
            deficits: vec![QUANTUM; stations],
        }
    }

    /// There is a packet for a station.
    #[inline]
    pub(super) fn wake(&mut self, station: usize) {
        if self.is_listed[station] {
            return;
        }
        self.is_listed[station] = true;
        match self.is_fair {
            true => self.list.push_front(station as u16),
            false => self.list.push_back(station as u16),
        }
    }

    /// The station whose turn it is.
    pub(super) fn next(&mut self, has_packets: impl Fn(usize) -> bool) -> Option<usize> {
        loop {
            let station = usize::from(*self.list.front()?);
            if self.is_fair && self.deficits[station] < 0 {
                self.skip_rounds(station);
                self.deficits[station] += QUANTUM;
                self.list.rotate_left(1);
            } else if has_packets(station) {
                return Some(station);
            } else {
                self.unlist();
            }
        }
    }

    /// Rounds in which nobody gets a turn happen at once: a station that has long sent and received
    /// nothing would else take very many.
    fn skip_rounds(&mut self, head: usize) {
        if self.deficits[head] > -4 * QUANTUM {
            return;
        }
        let listed = self.list.iter().map(|it| self.deficits[usize::from(*it)]);
        let most = listed.max().unwrap_or(0);
        if most < 0 {
            let rounds = (-most - 1) / QUANTUM;
            for station in &self.list {
                self.deficits[usize::from(*station)] += rounds * QUANTUM;
            }
        }
    }

    /// The station whose turn it is has handed over an aggregate.
    pub(super) fn handed(&mut self) {
        if !self.is_fair {
            self.list.rotate_left(1);
        }
    }

    /// The station whose turn it is has nothing after all.
    pub(super) fn unlist(&mut self) {
        if let Some(station) = self.list.pop_front() {
            self.is_listed[usize::from(station)] = false;
        }
    }

    /// A transmission to a station, or from it, took so long.
    pub(super) fn charge(&mut self, station: usize, nanos: u64) {
        self.deficits[station] -= nanos as i64;
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> (&[i64], Vec<usize>) {
        let list = self.list.iter().map(|it| usize::from(*it));
        (&self.deficits, list.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`Turns::next`] does without skipping.
    fn step_by_step(turns: &mut Turns, has_packets: impl Fn(usize) -> bool) -> Option<usize> {
        loop {
            let station = usize::from(*turns.list.front()?);
            if turns.deficits[station] < 0 {
                turns.deficits[station] += QUANTUM;
                turns.list.rotate_left(1);
            } else if has_packets(station) {
                return Some(station);
            } else {
                turns.unlist();
            }
        }
    }

    #[test]
    fn skipped_rounds_change_nothing() {
        for spent in 0..60u64 {
            let turns = |mut it: Turns| {
                for station in 0..3 {
                    it.wake(station);
                    it.charge(station, spent.pow(3) * 40_000 + 700_001 * station as u64);
                }
                it
            };
            let [mut fast, mut slow] = [(); 2].map(|()| turns(Turns::new(3, true)));
            let has_packets = |station| station != 1;
            for _ in 0..5 {
                let [next, expected] =
                    [fast.next(has_packets), step_by_step(&mut slow, has_packets)];
                assert_eq!((next, fast.state()), (expected, slow.state()), "{spent}");
                for turns in [&mut fast, &mut slow] {
                    turns.charge(next.expect("two have packets"), 2_000_000);
                }
            }
        }
    }

    #[test]
    fn without_fairness_stations_take_turns() {
        let mut turns = Turns::new(3, false);
        for station in [2, 0, 1] {
            turns.wake(station);
        }
        let mut order = Vec::new();
        for _ in 0..5 {
            order.extend(turns.next(|_| true));
            turns.charge(2, 1_000_000);
            turns.handed();
        }
        assert_eq!(order, [2, 0, 1, 2, 0]);
        assert_eq!(turns.next(|station| station == 0), Some(0));
        turns.wake(1);
        assert_eq!(turns.state().1, [0, 1]);
    }
}
