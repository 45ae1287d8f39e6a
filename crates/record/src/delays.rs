//! How long packets take: in a queue, from end to end, there and back.

use std::fmt;
use std::iter::Sum;

use aqmlab_net::Time;

/// Bins that are summed at once in the search for those that matter: most hold nothing.
const TOGETHER: usize = 64;

/// Bins of a power of two of nanoseconds, as a power of two: a bin is at most 1/128 wide.
const DIGITS: u32 = 7;

/// Counts delays in bins whose width grows with the delay: exact up to 255 ns, then to within
/// 1/128. Mean and maximum are exact. A packet costs a shift and some sums; bins are kept up to
/// the longest delay.
#[derive(Clone, Default)]
pub struct DelayHistogram {
    /// Nanoseconds: those of many packets may be more than 64 bits hold.
    sum: u128,
    max: u64,
    bins: Vec<u64>,
}

impl DelayHistogram {
    /// How far the bins at `nanos` are wider than one nanosecond, as a power of two.
    #[inline(always)]
    const fn shift(nanos: u64) -> u32 {
        // At least the nanoseconds that have bins of their own, so that nothing is negative.
        let at_least = nanos | ((2 << DIGITS) - 1);
        63 - DIGITS - at_least.leading_zeros()
    }

    /// A packet took so long.
    #[inline(always)]
    pub(crate) fn add(&mut self, delay: Time) {
        let nanos = delay.as_nanos();
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
        let shift = Self::shift(nanos);
        let bin = ((shift as usize) << DIGITS) + (nanos >> shift) as usize;
        match self.bins.get_mut(bin) {
            Some(count) => *count += 1,
            None => self.add_beyond(bin),
        }
    }

    /// Counts in a bin behind those that are kept.
    #[cold]
    fn add_beyond(&mut self, bin: usize) {
        // The whole power of two.
        let bins = ((bin >> DIGITS) + 1) << DIGITS;
        self.bins.resize(bins, 0);
        self.bins[bin] = 1;
    }

    /// Adds those of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (count, more) in self.bins.iter_mut().zip(&other.bins) {
            *count += more;
        }
    }

    /// The longest time in a bin, in nanoseconds.
    const fn longest(bin: usize) -> u64 {
        let octave = (bin >> DIGITS) as u32;
        if octave < 2 {
            return bin as u64;
        }
        let shift = octave - 1;
        let digits = (bin - ((shift as usize) << DIGITS)) as u64;
        (digits << shift) + ((1 << shift) - 1)
    }

    /// How many packets there were.
    pub fn count(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The mean in seconds; nothing if there were no packets.
    pub fn mean_s(&self) -> Option<f64> {
        let packets = self.count();
        (packets > 0).then(|| self.sum as f64 / packets as f64 / 1e9)
    }

    /// The longest in seconds; nothing if there were no packets.
    pub fn max_s(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.max as f64 / 1e9)
    }

    /// Quantiles in seconds of shares that grow, at most 1/128 too long and none above the
    /// maximum; nothing if there were no packets.
    pub fn quantiles_s<const N: usize>(&self, shares: [f64; N]) -> [Option<f64>; N] {
        let count = self.count() as f64;
        let wanted = shares.map(|share| (share * count).ceil().max(1.0) as u64);
        let (mut quantiles, mut reached, mut seen) = ([None; N], 0, 0);
        for (number, bins) in self.bins.chunks(TOGETHER).enumerate() {
            let sum: u64 = bins.iter().sum();
            if reached == N || seen + sum < wanted[reached] {
                seen += sum;
                continue;
            }
            for (bin, packets) in (number * TOGETHER..).zip(bins) {
                seen += packets;
                while reached < N && seen >= wanted[reached] {
                    quantiles[reached] = Some(Self::longest(bin).min(self.max) as f64 / 1e9);
                    reached += 1;
                }
            }
        }
        quantiles
    }

    /// The bins that hold something: the time that everything in them stays below, in seconds, and
    /// how many there are.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bins = self.bins.chunks(TOGETHER).enumerate();
        let held = bins.filter(|(_, bins)| bins.iter().sum::<u64>() > 0);
        let bins = held.flat_map(|(number, bins)| (number * TOGETHER..).zip(bins));
        let held = bins.filter(|(_, count)| **count > 0);
        held.map(|(bin, count)| ((Self::longest(bin) as f64 + 1.0) / 1e9, *count))
    }
}

/// Only what was added: most bins hold nothing.
impl fmt::Debug for DelayHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayHistogram")
            .field("sum", &self.sum)
            .field("max", &self.max)
            .field("bins", &self.bins().collect::<Vec<_>>())
            .finish()
    }
}

impl<'a> Sum<&'a Self> for DelayHistogram {
    fn sum<I: Iterator<Item = &'a Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum.merge(one);
            sum
        })
    }
}

/// The packets of a class of traffic that passed a queue.
#[derive(Clone, Debug, Default)]
pub struct Transit {
    /// How long they took.
    pub delays: DelayHistogram,
    /// Their IP bytes.
    pub bytes: u64,
}

impl Transit {
    #[inline(always)]
    fn add(&mut self, delay: Time, size: u32) {
        self.delays.add(delay);
        self.bytes += u64::from(size);
    }
}

/// What passed a queue, by the number of the packets' class of traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassTransits(Vec<Transit>);

impl ClassTransits {
    /// A packet of a class and a size took so long.
    #[inline(always)]
    pub(crate) fn add(&mut self, (class, size): (u16, u32), delay: Time) {
        match self.0.get_mut(usize::from(class)) {
            Some(transit) => transit.add(delay, size),
            None => self.add_first(class, size, delay),
        }
    }

    #[cold]
    fn add_first(&mut self, class: u16, size: u32, delay: Time) {
        let class = usize::from(class);
        self.0.resize_with(class + 1, Transit::default);
        self.0[class].add(delay, size);
    }

    /// The classes that had packets: their numbers and what passed.
    pub(crate) fn by_class(&self) -> impl Iterator<Item = (usize, &Transit)> {
        let classes = self.0.iter().enumerate();
        classes.filter(|(_, transit)| !transit.delays.bins.is_empty())
    }

    /// The delays of all classes together.
    pub(crate) fn all(&self) -> DelayHistogram {
        self.0.iter().map(|transit| &transit.delays).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(nanos: impl IntoIterator<Item = u64>) -> DelayHistogram {
        let mut histogram = DelayHistogram::default();
        for nanos in nanos {
            histogram.add(Time::from_nanos(nanos));
        }
        histogram
    }

    #[test]
    fn every_time_has_its_bin() {
        let around = (0..64).flat_map(|power| {
            let edge = 1_u64 << power;
            [edge - 1, edge, edge + 1, edge + edge / 3]
        });
        for nanos in around.chain([u64::MAX]) {
            let histogram = added([nanos]);
            assert_eq!(histogram.count(), 1, "{nanos}");
            let bin = histogram.bins.iter().position(|count| *count > 0).unwrap();
            let longest = DelayHistogram::longest(bin);
            assert!(longest >= nanos, "{nanos} {longest}");
            assert!(longest - nanos <= nanos / 128, "{nanos} {longest}");
            assert!(bin == 0 || DelayHistogram::longest(bin - 1) < nanos);
            assert_eq!(histogram.max_s(), Some(nanos as f64 / 1e9));
        }
    }

    #[test]
    fn sums_hold_more_than_64_bits() {
        let longest = Time::from_nanos(u64::MAX);
        let mut histogram = added([u64::MAX; 3]);
        histogram.merge(&added([u64::MAX; 2]));
        assert_eq!(histogram.count(), 5);
        let seconds = Some(longest.as_nanos() as f64 / 1e9);
        assert_eq!((histogram.mean_s(), histogram.max_s()), (seconds, seconds));
        assert_eq!(histogram.quantiles_s([0.01, 1.0]), [seconds; 2]);
    }

    #[test]
    fn quantiles_are_those_of_the_packets() {
        assert_eq!(added([]).quantiles_s([0.5, 0.9]), [None; 2]);
        assert_eq!((added([]).mean_s(), added([]).max_s()), (None, None));
        let histogram = added([0; 90].into_iter().chain([1_000_000; 9]).chain([3_000_000]));
        let [p50, p90, p99, p999] = histogram.quantiles_s([0.5, 0.9, 0.99, 0.999]);
        assert_eq!((p50, p90), (Some(0.0), Some(0.0)));
        let p99 = p99.unwrap();
        assert!((0.001..0.001 * 129.0 / 128.0).contains(&p99), "{p99}");
        // No quantile is above the maximum, which is exact, as is the mean.
        assert_eq!((p999, histogram.max_s()), (Some(0.003), Some(0.003)));
        assert_eq!(histogram.mean_s(), Some(0.012 / 100.0));
        assert_eq!(
            histogram.bins().map(|bin| bin.1).collect::<Vec<_>>(),
            [90, 9, 1]
        );
    }

    #[test]
    fn classes_add_up() {
        let mut classes = ClassTransits::default();
        for (packet, ms) in [((2, 100), 30), ((0, 40), 1), ((2, 1500), 50)] {
            classes.add(packet, Time::from_millis(ms));
        }
        let counts: Vec<_> = classes
            .by_class()
            .map(|(class, it)| (class, it.delays.count(), it.bytes))
            .collect();
        assert_eq!(counts, [(0, 1, 40), (2, 2, 1600)]);
        let all = classes.all();
        assert_eq!((all.count(), all.max_s()), (3, Some(0.05)));
        assert!((all.mean_s().unwrap() - 0.027).abs() < 1e-12);
        let one = added([1_000_000, 30_000_000, 50_000_000]);
        assert!(one.bins().eq(all.bins()));
    }
}
