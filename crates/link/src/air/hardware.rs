//! From the queues into the hardware of each contender.

use aqmlab_net::Time;

use super::Air;
use super::aggregate::Aggregate;
use crate::wire::{Dropped, Way};

/// Aggregates that are handed over and not sent yet, of each contender: what ath9k has.
pub(super) const HARDWARE: usize = 2;

/// Packets of a category that the driver behind `queue = "fifo"` holds, those in the hardware included:
/// what ath9k has.
const DRIVER: usize = 123;

impl<T> Air<T> {
    /// So many packets for stations are over, come or given up.
    pub(super) fn leaves_driver(&mut self, category: usize, packets: usize) {
        if let Some(fifo) = self.fifos.get_mut(category) {
            fifo.driver -= packets;
        }
    }

    /// A contender hands over what comes next.
    pub(super) fn hand_over_next(
        &mut self,
        now: Time,
        contender: usize,
        dropped: &mut Vec<Dropped<T>>,
    ) {
        if contender < self.categories.count() {
            self.fill_driver(now, contender, dropped);
        }
        self.hand_over(now, contender, dropped);
        if self.hardware[contender].is_empty() {
            self.contention.quiet(contender);
        }
    }

    /// Moves packets of a category from the queue of all stations into the driver while it has room.
    pub(super) fn fill_driver(
        &mut self,
        now: Time,
        category: usize,
        dropped: &mut Vec<Dropped<T>>,
    ) {
        let categories = self.categories.count();
        let Some(fifo) = self.fifos.get_mut(category) else {
            return;
        };
        let side = &mut self.sides[Way::Down as usize];
        while fifo.driver < DRIVER && fifo.queue.backlog().packets > 0 {
            let next = side.dequeue(&mut fifo.queue, now, |queued, reason| {
                dropped.push(Dropped {
                    at: now,
                    item: queued.item.item,
                    reason: Some(reason),
                });
            });
            let Some(queued) = next else { return };
            let station = usize::from(queued.item.station);
            fifo.driver += 1;
            self.lines[Way::Down as usize][station * categories + category].push(queued);
            self.turns[category].wake(station);
        }
    }

    /// Fills the hardware of a contender as far as it has packets.
    pub(super) fn hand_over(&mut self, now: Time, contender: usize, dropped: &mut Vec<Dropped<T>>) {
        let categories = self.categories.count();
        let (node, category) = (contender / categories, contender % categories);
        while self.hardware[contender].len() < HARDWARE {
            let (way, station) = match node {
                0 => {
                    let lines = &self.lines[Way::Down as usize];
                    let line = |station: usize| &lines[station * categories + category];
                    match self.turns[category].next(|station| line(station).has_packets()) {
                        Some(station) => (Way::Down, station),
                        None => return,
                    }
                }
                _ => (Way::Up, node - 1),
            };
            let mut mpdus = self.spare.pop().unwrap_or_default();
            let line = &mut self.lines[way as usize][station * categories + category];
            let side = &mut self.sides[way as usize];
            let filled = line.fill(
                now,
                &mut mpdus,
                (&self.rates[station], &self.limits[category]),
                |queue| {
                    side.dequeue(queue, now, |queued, reason| {
                        dropped.push(Dropped {
                            at: now,
                            item: queued.item.item,
                            reason: Some(reason),
                        });
                    })
                },
            );
            let Some(duration) = filled else {
                self.spare.push(mpdus);
                if way == Way::Up {
                    return;
                }
                self.turns[category].unlist();
                continue;
            };
            self.hardware[contender].push_back(Aggregate {
                station,
                mpdus,
                duration,
            });
            if way == Way::Down {
                self.turns[category].handed();
                #[cfg(test)]
                self.log_hand(now.as_nanos());
            }
        }
    }
}
