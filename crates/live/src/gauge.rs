//! What a direction of the link is doing, for those who watch.

use std::sync::Mutex;

use aqmlab_link::PortState;
use aqmlab_net::Time;

/// A direction looks at itself this often.
const PERIOD: Time = Time::from_millis(50);

/// What a direction of the link is doing at some moment, and did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkView {
    /// The moment.
    pub at: Time,
    /// IP bytes that left the queue.
    pub departed_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Packets that were marked.
    pub marked_packets: u64,
    /// Packets that wait.
    pub queue_packets: u64,
    /// How long it takes to send all that waits.
    pub drain: Time,
    /// Bits per second on the wire.
    pub rate_bps: f64,
}

/// Where a direction shows what it is doing.
#[derive(Debug, Default)]
pub(crate) struct Gauge(Mutex<LinkView>);

impl Gauge {
    /// Whether it is time to look again.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.read().at + PERIOD
    }

    pub(crate) fn show(&self, at: Time, state: &PortState) {
        let counters = &state.counters;
        *self.0.lock().expect(UNPOISONED) = LinkView {
            at,
            departed_bytes: counters.departed_bytes,
            dropped_packets: counters.dropped.iter().sum(),
            marked_packets: counters.marked.iter().sum(),
            queue_packets: u64::from(state.backlog.packets),
            drain: state.drain,
            rate_bps: state.rate.bps() as f64,
        };
    }

    pub(crate) fn read(&self) -> LinkView {
        *self.0.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "nothing panics while it holds the lock";
