//! How long things took: response times, durations of connections.

use std::path::Path;
use std::sync::Arc;

use aqmlab_net::Time;
use arrow::array::{ArrayRef, Float64Array, UInt64Array};
use arrow::datatypes::DataType;
use hdrhistogram::Histogram;

use crate::RunError;
use crate::recorder::{Table, Words, column, word};
use crate::stats::{FlowStats, ResponseStats};

const SIGNIFICANT_DIGITS: u8 = 3;

/// What takes longer than a day is counted as a day in percentiles.
const LONGEST_US: u64 = 24 * 3600 * 1_000_000;

/// How many there were of each length.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub(crate) count: u64,
    /// Nanoseconds: a sum of integers does not depend on the order of its terms.
    sum: u128,
    max: Time,
    /// Microseconds, to 3 significant digits.
    histogram: Histogram<u64>,
}

impl Default for Times {
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

impl Times {
    pub(crate) fn add(&mut self, time: Time) {
        self.count += 1;
        self.sum += u128::from(time.as_nanos());
        self.max = self.max.max(time);
        let microseconds = (time.as_nanos() / 1_000).min(LONGEST_US);
        self.histogram
            .record(microseconds)
            .expect("a histogram that grows takes any value");
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.histogram
            .add(&other.histogram)
            .expect("a histogram that grows takes any value");
    }

    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e9)
    }

    pub(crate) fn max_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max.as_secs_f64())
    }

    /// The `p`-quantile in seconds, to 3 significant digits.
    pub(crate) fn quantile_s(&self, p: f64) -> Option<f64> {
        (self.count > 0).then(|| self.histogram.value_at_quantile(p) as f64 / 1e6)
    }

    /// The bins that hold something: the time that everything in them stays below, in seconds, and
    /// how many there are. Neighbouring bins differ by at most a thousandth.
    fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.histogram.iter_recorded().map(|bin| {
            let end_us = bin.value_iterated_to() + 1;
            (end_us as f64 / 1e6, bin.count_since_last_iteration())
        })
    }
}

/// Writes `distribution.parquet`: for every class all response times and all durations of
/// connections, as counts in bins.
pub(crate) fn write_distribution<'a>(
    path: &Path,
    classes: impl Iterator<Item = (&'a str, &'a ResponseStats, &'a FlowStats)>,
) -> Result<(), RunError> {
    let classes: Vec<_> = classes.collect();
    let names: Vec<&str> = classes.iter().map(|(name, ..)| *name).collect();
    let mut of = Words::new(&["response", "flow"]);
    let mut class = Words::new(&names);
    let (mut below, mut count) = (Vec::new(), Vec::new());
    for (number_of_class, (_, responses, flows)) in classes.iter().enumerate() {
        for (what, times) in [&responses.times, &flows.durations].into_iter().enumerate() {
            for (end, number) in times.bins() {
                of.append(what);
                class.append(number_of_class);
                below.push(end);
                count.push(number);
            }
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(of.finish()),
        Arc::new(class.finish()),
        Arc::new(Float64Array::from(below)),
        Arc::new(UInt64Array::from(count)),
    ];
    let mut table = Table::create(
        path,
        vec![
            word("of"),
            word("class"),
            column("below_s", &DataType::Float64),
            column("count", &DataType::UInt64),
        ],
    )?;
    table.write(columns)?;
    table.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_what_was_added() {
        let mut times = Times::default();
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
        let mut times = Times::default();
        times.add(Time::from_secs(100 * 3600));
        assert_eq!(times.bins().map(|bin| bin.1).sum::<u64>(), 1);
        assert_eq!(times.max_s(), Some(360_000.0));
    }
}
