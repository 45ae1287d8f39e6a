//! Response times of a class of traffic.

use aqmlab_net::Time;

use crate::TimeHistogram;

/// Response times of one class of traffic.
#[derive(Clone, Debug, Default)]
pub struct ResponseStats {
    pub(crate) started: u64,
    pub(crate) times: TimeHistogram,
    /// Counts of responses that took at most 1, 2 and 3 s.
    pub(crate) within: [u64; 3],
}

impl ResponseStats {
    /// An exchange began in the measured span.
    #[inline]
    pub(crate) fn on_start(&mut self) {
        self.started += 1;
    }

    /// An exchange that took so long ended in the measured span.
    pub(crate) fn add(&mut self, response: Time) {
        self.times.add(response);
        for (limit, count) in (1..).zip(&mut self.within) {
            *count += u64::from(response <= Time::from_secs(limit));
        }
    }

    /// The response times.
    pub const fn times(&self) -> &TimeHistogram {
        &self.times
    }

    /// Adds those of another class.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.times.merge(&other.times);
        for (count, more) in self.within.iter_mut().zip(other.within) {
            *count += more;
        }
    }
}
