//! How long packets stay in a queue.

/// Bins of a power of two of nanoseconds, as a power of two: a bin is at most 1/128 wide.
const DIGITS: u32 = 7;

/// Longer times, from 2^38 ns (275 s) on, count as this long.
const LONGEST_BITS: u32 = 38;

/// Bins up to the longest time.
const BINS: usize = ((LONGEST_BITS - DIGITS + 1) as usize) << DIGITS;

/// Counts sojourn times in bins whose width grows with the time: exact up to 255 ns, then to
/// within 1/128. A packet costs a shift and an increment.
#[derive(Clone, Debug)]
pub struct SojournHistogram {
    bins: Box<[u64; BINS]>,
}

impl SojournHistogram {
    pub(crate) fn new() -> Self {
        Self {
            bins: Box::new([0; BINS]),
        }
    }

    /// How far the bins at `nanos` are wider than one nanosecond, as a power of two.
    #[inline(always)]
    const fn shift(nanos: u64) -> u32 {
        // At least the nanoseconds that have bins of their own, so that nothing is negative.
        let at_least = nanos | ((2 << DIGITS) - 1);
        63 - DIGITS - at_least.leading_zeros()
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, nanos: u64) {
        let shift = Self::shift(nanos);
        let bin = ((shift as usize) << DIGITS) + (nanos >> shift) as usize;
        match self.bins.get_mut(bin) {
            Some(packets) => *packets += 1,
            None => self.bins[BINS - 1] += 1,
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

    /// Quantiles in seconds, to within 1/128, of shares that grow; nothing if there were no packets.
    pub(crate) fn quantiles_s<const N: usize>(&self, shares: [f64; N]) -> [Option<f64>; N] {
        let count = self.count() as f64;
        let wanted = shares.map(|share| (share * count).ceil().max(1.0) as u64);
        let (mut quantiles, mut reached, mut seen) = ([None; N], 0, 0);
        for (bin, packets) in self.bins.iter().enumerate() {
            seen += packets;
            while reached < N && seen >= wanted[reached] {
                quantiles[reached] = Some(Self::longest(bin) as f64 / 1e9);
                reached += 1;
            }
        }
        quantiles
    }

    /// The bins that hold something: the time that everything in them stays below, in seconds, and
    /// how many there are.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bins = self.bins.iter().enumerate();
        let held = bins.filter(|(_, count)| **count > 0);
        held.map(|(bin, count)| ((Self::longest(bin) as f64 + 1.0) / 1e9, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_its_bin() {
        let around = (0..LONGEST_BITS).flat_map(|power| {
            let edge = 1_u64 << power;
            [edge - 1, edge, edge + 1, edge + edge / 3]
        });
        for nanos in around.filter(|nanos| *nanos < 1 << LONGEST_BITS) {
            let mut histogram = SojournHistogram::new();
            histogram.add(nanos);
            assert_eq!(histogram.count(), 1, "{nanos}");
            let bin = histogram.bins.iter().position(|count| *count > 0).unwrap();
            let longest = SojournHistogram::longest(bin);
            assert!(longest >= nanos, "{nanos} {longest}");
            assert!(longest - nanos <= nanos / 128, "{nanos} {longest}");
            assert!(bin == 0 || SojournHistogram::longest(bin - 1) < nanos);
        }
        let mut histogram = SojournHistogram::new();
        histogram.add(u64::MAX);
        assert_eq!((histogram.count(), histogram.bins[BINS - 1]), (1, 1));
    }

    #[test]
    fn quantiles_are_those_of_the_packets() {
        let mut histogram = SojournHistogram::new();
        assert_eq!(histogram.quantiles_s([0.5, 0.9]), [None; 2]);
        for _ in 0..90 {
            histogram.add(0);
        }
        for _ in 0..10 {
            histogram.add(1_000_000);
        }
        let [p50, p90, p99] = histogram.quantiles_s([0.5, 0.9, 0.99]);
        assert_eq!((p50, p90), (Some(0.0), Some(0.0)));
        let p99 = p99.unwrap();
        assert!((0.001..0.001 * 129.0 / 128.0).contains(&p99), "{p99}");
        assert_eq!(
            histogram.bins().map(|bin| bin.1).collect::<Vec<_>>(),
            [90, 10]
        );
    }
}
