//! Exchanges whose end is known before they begin: their begin need not be an event.
//!
//! Nobody sees an exchange begin. If its sender is alone, and the receiver understands all, its end is
//! known since the last exchange ended. Another contender that gets something to send before it begins
//! can change that; a later one finds that it has begun.

use aqmlab_net::Time;

use super::Air;
use super::aggregate::Aggregate;
use super::ledger::{Delivered, delivered};
use crate::wire::{Dropped, Way};

impl<T> Air<T> {
    /// Looks whether it is known when the exchange ends that begins next.
    #[inline]
    pub(super) fn foresee(&mut self) {
        self.foreseen = None;
        #[cfg(test)]
        if self.is_step_by_step {
            return;
        }
        if let Some(sender) = self.contention.alone() {
            let aggregate = &self.hardware[sender][0];
            // After some exchanges a category may go on.
            let goes_on = self.limits[sender % self.categories.count()].txop > 0;
            if self.errors[aggregate.station] == 0.0 && !goes_on {
                let lasts = aggregate.duration + self.answer(aggregate);
                self.foreseen = Some((sender, self.contention.next() + lasts));
            }
        }
    }

    /// The exchange has begun whose end is foreseen, and others want to send.
    pub(super) fn begin_foreseen(&mut self, dropped: &mut Vec<Dropped<T>>) {
        self.foreseen = None;
        self.unseen += 1;
        self.begin(Time::from_nanos(self.contention.next()), dropped);
    }

    /// The exchange is over whose end was foreseen. Gives the first of its packets; the others join the
    /// batch.
    pub(super) fn end_foreseen(
        &mut self,
        now: Time,
        sender: usize,
        dropped: &mut Vec<Dropped<T>>,
    ) -> Option<Delivered<T>> {
        self.unseen += 1;
        let begin = Time::from_nanos(self.contention.next());
        self.contention.pass_alone(sender, now.as_nanos());
        let Aggregate {
            station,
            mut mpdus,
            duration,
        } = self.hardware[sender].pop_front()?;
        let categories = self.categories.count();
        let (category, count) = (sender % categories, mpdus.len());
        let way = match sender < categories {
            true => Way::Down,
            false => Way::Up,
        };
        let lasts = Time::from_nanos(duration);
        let line = self.line(station, category);
        let line = &mut self.lines[way as usize][line];
        let stats = &mut self.sides[way as usize].stats;
        stats.on_busy(begin, begin + lasts);
        self.turns[category].charge(station, duration);
        if self.span.contains(now) {
            let tally = &mut self.tallies[station][way as usize];
            tally.airtime += lasts;
            tally.transmissions += 1;
            tally.packets += count as u64;
        }
        let (mut first, batch) = (None, &mut self.batch);
        let mut receive = |mpdu| {
            line.receive(mpdu, duration, |mpdu, duration| {
                let came = delivered(now, stats, mpdu, duration);
                match first {
                    None => first = Some(came),
                    Some(_) => batch.push_back(came),
                }
            });
        };
        // To drain a list of one costs more.
        match count {
            1 => mpdus.pop().into_iter().for_each(receive),
            _ => mpdus.drain(..).for_each(&mut receive),
        }
        self.batch_at = now;
        self.spare.push(mpdus);
        if way == Way::Down {
            self.leaves_driver(category, count);
        }
        self.hand_over_next(now, sender, dropped);
        self.contention.resume();
        self.foresee();
        for side in &mut self.sides {
            side.stats.on_length(now, side.waiting);
        }
        first
    }

    /// Exchanges that began before `end`, which no departure showed.
    pub fn unseen_begins(&self, end: Time) -> u64 {
        let has_begun = self.foreseen.is_some() && self.contention.next() < end.as_nanos();
        self.unseen + u64::from(has_begun)
    }
}
