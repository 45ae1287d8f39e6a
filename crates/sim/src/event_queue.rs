//! What happens next: events that wait for their time, and packets whose transmission ends.
//!
//! A port that serves one packet after another has at most one departure ahead of it. It is kept
//! in a register beside the event queue, so that a departure costs no event.

use aqmlab_net::{Rate, Time};

use crate::event::Event;
use crate::wheel::Wheel;

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// An event's time has come.
    Event(Event),
    /// The wire of this port falls free.
    Departure(usize),
}

/// Everything that is going to happen, in order: earlier times first; at equal times departures
/// before events, and events in the order in which they were pushed.
pub(crate) trait EventQueue {
    /// An event queue for a world with this many ports, the fastest of which has this rate.
    fn new(ports: usize, fastest: Rate) -> Self;

    /// Adds an event; not earlier than what was taken last.
    fn push(&mut self, time: Time, event: Event);

    /// The wire of `port` falls free at `time`; replaces what was said before. A departure that
    /// was taken must be set again.
    fn set_departure(&mut self, port: usize, time: Time);

    /// Takes what happens next, if that is before `end`.
    fn next(&mut self, end: Time) -> Option<(Time, Next)>;

    /// Names connections, or classes, whose events come soon. A hint: it need not name all.
    fn look_ahead(&mut self, _soon: impl FnMut(u32)) {}
}

/// The width of fine buckets that suits a rate, as a power of two of nanoseconds: one or two
/// events per bucket. 4 us at 1 Gbit/s, 33 us at 100 Mbit/s, 262 us at 10 Mbit/s.
fn bucket_shift(fastest: Rate) -> u32 {
    let megabits = (fastest.bps() / 1_000_000).max(1);
    (21 - megabits.ilog2().min(13)).min(20)
}

/// The fast event queue: a timing wheel and a register per port.
#[derive(Debug)]
pub(crate) struct WheelQueue {
    wheel: Wheel<Event>,
    departures: Vec<Time>,
    /// The earliest of `departures`, and whose it is.
    first: (Time, usize),
}

impl WheelQueue {
    pub(crate) fn with_wheel(ports: usize, wheel: Wheel<Event>) -> Self {
        Self {
            wheel,
            departures: vec![Time::NEVER; ports],
            first: (Time::NEVER, 0),
        }
    }

    /// The earliest departure, and whose it is; of equal ones that of the first port.
    #[inline(always)]
    fn earliest(&self) -> (Time, usize) {
        // A single link needs no loop.
        if let [forward, reverse] = self.departures[..] {
            return if reverse < forward {
                (reverse, 1)
            } else {
                (forward, 0)
            };
        }
        let mut earliest = (Time::NEVER, 0);
        for (port, &time) in self.departures.iter().enumerate() {
            if time < earliest.0 {
                earliest = (time, port);
            }
        }
        earliest
    }
}

impl EventQueue for WheelQueue {
    fn new(ports: usize, fastest: Rate) -> Self {
        Self::with_wheel(ports, Wheel::with_bucket_shift(bucket_shift(fastest)))
    }

    #[inline(always)]
    fn push(&mut self, time: Time, event: Event) {
        self.wheel.push(time, event);
    }

    #[inline]
    fn set_departure(&mut self, port: usize, time: Time) {
        self.departures[port] = time;
        if time < self.first.0 {
            self.first = (time, port);
        } else if port == self.first.1 {
            self.first = self.earliest();
        }
    }

    #[inline(always)]
    fn look_ahead(&mut self, mut soon: impl FnMut(u32)) {
        self.wheel.look_ahead(|event| soon(event.conn));
    }

    #[inline(always)]
    fn next(&mut self, end: Time) -> Option<(Time, Next)> {
        let (departure, port) = self.first;
        if let Some((time, event)) = self.wheel.pop_before(departure.min(end)) {
            return Some((time, Next::Event(event)));
        }
        (departure < end).then_some((departure, Next::Departure(port)))
    }
}
