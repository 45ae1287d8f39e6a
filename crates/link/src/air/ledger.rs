//! What is counted of a way, and what becomes of packets that are over.

use std::collections::VecDeque;

use aqmlab_aqm::{Queue, Queued, Reason};
use aqmlab_net::{Ecn, RandomStream, Time};
use aqmlab_record::LinkStats;

use super::aggregate::{Line, Mpdu};
use super::phy::Nanos;
use crate::wire::Dropped;

/// One way of all stations: what is counted, and packets that wait in queues.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) stats: LinkStats,
    pub(super) waiting: u32,
    /// Up to when they are accounted for.
    pub(super) accounted: Time,
    pub(super) law_draws: RandomStream,
}

/// A packet that has come, and how it was served.
#[derive(Debug)]
pub(super) struct Delivered<T> {
    pub(super) item: T,
    pub(super) ecn: Ecn,
    /// When it left its queue.
    pub(super) left: Time,
    pub(super) transmission: Time,
}

/// A packet has come, and everything before it.
#[inline]
pub(super) fn delivered<T>(
    now: Time,
    stats: &mut LinkStats,
    mpdu: Mpdu<T>,
    duration: Nanos,
) -> Delivered<T> {
    let left = mpdu.handed.unwrap_or(now);
    let Queued {
        packet,
        arrived,
        item,
    } = mpdu.queued;
    stats.on_leave(arrived, now, (item.class, packet.size));
    stats.on_transmission(now, now, packet.size);
    Delivered {
        item: item.item,
        ecn: packet.ecn,
        left,
        transmission: Time::from_nanos(duration),
    }
}

/// The same, into the batch.
pub(super) fn deliver<T>(
    now: Time,
    (batch, stats): (&mut VecDeque<Delivered<T>>, &mut LinkStats),
    mpdu: Mpdu<T>,
    duration: Nanos,
) {
    batch.push_back(delivered(now, stats, mpdu, duration));
}

/// A packet was sent too often. Those that came behind it need not wait for it.
pub(super) fn give_up<T>(
    now: Time,
    (batch, stats): (&mut VecDeque<Delivered<T>>, &mut LinkStats),
    line: &mut Line<T>,
    mpdu: Mpdu<T>,
    dropped: &mut Vec<Dropped<T>>,
) {
    stats.on_wire_loss(now);
    line.skip(mpdu.number(), |mpdu, duration| {
        deliver(now, (batch, stats), mpdu, duration);
    });
    dropped.push(Dropped {
        at: now,
        item: mpdu.queued.item.item,
        reason: None,
    });
}

impl Side {
    /// Adds the time that packets waited since the last change of their number.
    #[inline]
    pub(super) fn account(&mut self, now: Time) {
        if self.waiting > 0 && self.accounted < now {
            self.stats.on_queue(self.accounted, now, self.waiting);
        }
        self.accounted = now;
    }

    /// Takes the next packet out of a queue of this way.
    pub(super) fn dequeue<T>(
        &mut self,
        queue: &mut Queue<T>,
        now: Time,
        dropped: impl FnMut(Queued<T>, Reason),
    ) -> Option<Queued<T>> {
        while queue.next_tick() < now {
            queue.tick();
        }
        self.account(now);
        let before = queue.backlog().packets;
        if before == 0 {
            return None;
        }
        let draws = &mut self.law_draws;
        let next = queue.dequeue(now, &mut || draws.uniform(), dropped);
        let left = queue.backlog().packets;
        self.waiting -= before - left;
        if left == 0 {
            queue.idle(now);
        }
        next
    }
}
