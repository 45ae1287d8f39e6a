//! Queues as these tests call them: what draws comes by reference. A closure has a type of its own,
//! with which each call would compile all disciplines anew.

use aqmlab_aqm::{FifoQueue, Outcome, Queue, Queued, Reason};
use aqmlab_net::{Packet, Time};

/// A queue whose packets have numbers.
pub(crate) trait Numbered {
    /// As [`Queue::enqueue`]; `dropped` has the numbers of dropped packets.
    fn put(
        &mut self,
        now: Time,
        packet: Packet,
        number: usize,
        draw: &mut dyn FnMut() -> f64,
        dropped: &mut dyn FnMut(usize, Reason),
    );

    /// As [`Queue::dequeue`].
    fn take(
        &mut self,
        now: Time,
        draw: &mut dyn FnMut() -> f64,
        dropped: &mut dyn FnMut(usize, Reason),
    ) -> Option<Queued<usize>>;
}

impl Numbered for Queue<usize> {
    fn put(
        &mut self,
        now: Time,
        packet: Packet,
        number: usize,
        mut draw: &mut dyn FnMut() -> f64,
        dropped: &mut dyn FnMut(usize, Reason),
    ) {
        self.enqueue(now, packet, number, &mut draw, |queued, reason| {
            dropped(queued.item, reason);
        });
    }

    fn take(
        &mut self,
        now: Time,
        mut draw: &mut dyn FnMut() -> f64,
        dropped: &mut dyn FnMut(usize, Reason),
    ) -> Option<Queued<usize>> {
        self.dequeue(now, &mut draw, |queued, reason| {
            dropped(queued.item, reason);
        })
    }
}

/// The queue of an AQM in front of packets that are elsewhere.
pub(crate) trait Judged {
    /// As [`FifoQueue::arrive`].
    fn come(&mut self, now: Time, packet: &Packet, draw: &mut dyn FnMut() -> f64) -> Outcome;
}

impl Judged for FifoQueue {
    fn come(&mut self, now: Time, packet: &Packet, mut draw: &mut dyn FnMut() -> f64) -> Outcome {
        self.arrive(now, packet, &mut draw)
    }
}
