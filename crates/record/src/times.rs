//! How long things took: response times, durations of connections.

use aqmlab_net::Time;
use hdrhistogram::Histogram;

const SIGNIFICANT_DIGITS: u8 = 3;

/// What takes longer than a day is counted as a day in percentiles.
const LONGEST_US: u64 = 24 * 3600 * 1_000_000;

/// How long things took: exact count, mean and maximum, quantiles to 3 significant digits.
#[derive(Clone, Debug)]
pub struct TimeHistogram {
    count: u64,
    /// Nanoseconds: a sum of integers does not depend on the order of its terms.
    sum: u128,
    max: Time,
    /// Microseconds, to 3 significant digits.
    histogram: Histogram<u64>,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        // It grows as needed: the whole range would take longer to clear and to read than to fill.
        let histogram =
            Histogram::new(SIGNIFICANT_DIGITS).expect("so many digits are accepted by the crate");
        Self {
            count: 0,
            sum: 0,
            max: Time::ZERO,
            histogram,
        }
    }
}

impl TimeHistogram {
    /// Something took so long.
    pub fn add(&mut self, time: Time) {
        self.count += 1;
        self.sum += u128::from(time.as_nanos());
        self.max = self.max.max(time);
        let microseconds = (time.as_nanos() / 1_000).min(LONGEST_US);
        self.histogram
            .record(microseconds)
            .expect("a histogram that grows takes any value");
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.histogram
            .add(&other.histogram)
            .expect("a histogram that grows takes any value");
    }

    /// How many there were.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their mean in seconds; nothing if there were none.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e9)
    }

    /// The longest in seconds.
    pub fn max_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max.as_secs_f64())
    }

    /// The `p`-quantile in seconds, to 3 significant digits.
    pub fn quantile_s(&self, p: f64) -> Option<f64> {
        (self.count > 0).then(|| self.histogram.value_at_quantile(p) as f64 / 1e6)
    }

    /// The bins that hold something: the time that everything in them stays below, in seconds, and
    /// how many there are. Neighbouring bins differ by at most a thousandth.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.histogram.iter_recorded().map(|bin| {
            let end_us = bin.value_iterated_to() + 1;
            (end_us as f64 / 1e6, bin.count_since_last_iteration())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_what_was_added() {
        let mut times = TimeHistogram::default();
        for ms in [1, 1, 20, 300, 4_000, 90_000] {
            times.add(Time::from_millis(ms));
        }
        let bins: Vec<_> = times.bins().collect();
        assert_eq!(
            bins.iter().map(|bin| bin.1).collect::<Vec<_>>(),
            [2, 1, 1, 1, 1]
        );
        for ((end, _), exact) in bins.iter().zip([0.001, 0.02, 0.3, 4.0, 90.0]) {
            assert!(exact < *end && *end < exact * 1.001 + 2e-6, "{end} {exact}");
        }
    }

    #[test]
    fn what_takes_longer_than_a_day_is_not_lost() {
        let mut times = TimeHistogram::default();
        times.add(Time::from_secs(100 * 3600));
        assert_eq!(times.bins().map(|bin| bin.1).sum::<u64>(), 1);
        assert_eq!(times.max_s(), Some(360_000.0));
    }
}
