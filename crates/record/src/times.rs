//! How long things took: response times, durations of connections.

use aqmlab_net::Time;

/// Bins of a power of two of microseconds, as a power of two: a bin is at most 1/1024 wide.
const DIGITS: u32 = 10;

/// Bins that are summed at once in the search for a quantile.
const TOGETHER: usize = 64;

/// How long things took: exact count, mean and maximum, quantiles to 3 significant digits.
#[derive(Clone, Debug, Default)]
pub struct TimeHistogram {
    count: u64,
    /// Nanoseconds: a sum of integers does not depend on the order of its terms.
    sum: u128,
    max: Time,
    /// How many took so many microseconds: exact up to 2047, then to within 1/1024. There are bins
    /// up to the longest time so far: the whole range would take longer to clear and to read than
    /// to fill.
    bins: Vec<u64>,
}

/// The bin of a time.
const fn bin_of(microseconds: u64) -> usize {
    // At least what has bins of its own, so that nothing is negative.
    let at_least = microseconds | ((2 << DIGITS) - 1);
    let shift = 63 - DIGITS - at_least.leading_zeros();
    ((shift as usize) << DIGITS) + (microseconds >> shift) as usize
}

/// The longest time in a bin, in microseconds.
const fn longest(bin: usize) -> u64 {
    let octave = bin >> DIGITS;
    if octave < 2 {
        return bin as u64;
    }
    let shift = octave - 1;
    let digits = (bin - (shift << DIGITS)) as u64;
    (digits << shift) + ((1 << shift) - 1)
}

impl TimeHistogram {
    /// Something took so long.
    pub fn add(&mut self, time: Time) {
        self.count += 1;
        self.sum += u128::from(time.as_nanos());
        self.max = self.max.max(time);
        let bin = bin_of(time.as_nanos() / 1_000);
        match self.bins.get_mut(bin) {
            Some(count) => *count += 1,
            None => self.add_beyond(bin),
        }
    }

    /// Counts one in a bin that is not there.
    #[cold]
    fn add_beyond(&mut self, bin: usize) {
        self.bins.resize(bin + 1, 0);
        self.bins[bin] = 1;
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (count, more) in self.bins.iter_mut().zip(&other.bins) {
            *count += more;
        }
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
        let wanted = (p * self.count as f64).ceil().max(1.0) as u64;
        // A few bins at a time: their sum is cheaper than a look at each.
        let (mut seen, mut first) = (0, 0);
        for bins in self.bins.chunks(TOGETHER) {
            let sum: u64 = bins.iter().sum();
            if seen + sum >= wanted {
                break;
            }
            seen += sum;
            first += bins.len();
        }
        let bin = self.bins[first..].iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        bin.map(|bin| longest(first + bin) as f64 / 1e6)
    }

    /// The bins that hold something: the time that everything in them stays below, in seconds, and
    /// how many there are. Neighbouring bins differ by at most a thousandth.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bins = self.bins.iter().enumerate();
        let held = bins.filter(|(_, count)| **count > 0);
        held.map(|(bin, count)| ((longest(bin) + 1) as f64 / 1e6, *count))
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
    fn every_time_has_its_bin() {
        let around = (0..54).flat_map(|power| {
            let edge = 1_u64 << power;
            [edge - 1, edge, edge + 1, edge + edge / 3]
        });
        for microseconds in around {
            let bin = bin_of(microseconds);
            assert!(longest(bin) >= microseconds, "{microseconds}");
            assert!(longest(bin) - microseconds <= microseconds / 1024);
            assert!(bin == 0 || longest(bin - 1) < microseconds);
        }
    }

    #[test]
    fn quantiles_are_those_of_the_times_whichever_histogram_was_longer() {
        let (mut short, mut long) = (TimeHistogram::default(), TimeHistogram::default());
        assert_eq!(short.quantile_s(0.5), None);
        for _ in 0..9 {
            short.add(Time::from_millis(1));
        }
        long.add(Time::from_secs(1));
        for (mut one, other) in [(short.clone(), &long), (long.clone(), &short)] {
            one.merge(other);
            assert_eq!(one.quantile_s(0.9), Some(0.001));
            let last = one.quantile_s(0.91).unwrap();
            assert!((1.0..1.001).contains(&last), "{last}");
        }
    }

    #[test]
    fn the_longest_times_keep_their_quantiles() {
        let mut times = TimeHistogram::default();
        for days in [1, 29, 30] {
            times.add(Time::from_secs(days * 24 * 3600));
        }
        times.add(Time::from_nanos(u64::MAX));
        let (mean, last) = (times.mean_s().unwrap(), times.quantile_s(1.0).unwrap());
        let longest = u64::MAX as f64 / 1e9;
        assert!((longest..longest * 1.001).contains(&last), "{last}");
        assert!(mean < last);
        let middle = times.quantile_s(0.75).unwrap() / (30.0 * 24.0 * 3600.0);
        assert!((1.0..1.001).contains(&middle), "{middle}");
    }
}
