//! The run's clock: time zero is the moment at which the traffic begins.

use std::time::{Duration, Instant};

use aqmlab_net::Time;

/// Reads the monotonic clock of the machine as time since the start of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    /// A clock whose time zero lies so far ahead.
    pub(crate) fn starting_in(delay: Duration) -> Self {
        Self {
            zero: Instant::now() + delay,
        }
    }

    /// The time, or zero before the start.
    pub(crate) fn now(self) -> Time {
        Time::from_nanos(self.zero.elapsed().as_nanos() as u64)
    }

    /// The moment of a time.
    pub(crate) fn instant(self, time: Time) -> Instant {
        self.zero + Duration::from_nanos(time.as_nanos())
    }

    /// How long it is until `time`.
    pub(crate) fn until(self, time: Time) -> Duration {
        self.instant(time).saturating_duration_since(Instant::now())
    }
}
