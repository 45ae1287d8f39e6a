//! Token buckets as Linux keeps them: credit is time, in ns, at the rate of the bucket.

use aqmlab_net::{Bytes, Rate, Time};

/// What packets cost at a rate, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Price {
    multiplier: u64,
    shift: u32,
}

/// Ticks in which Linux stores a burst, in ns.
const TICK: u64 = 64;

impl Price {
    /// Of a rate above 0. A multiplier of 32 bits and a shift, as in Linux: a cost is exact to 2^-31.
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        let (mut factor, mut shift) = (1_000_000_000_u64, 0);
        loop {
            let multiplier = factor / bytes_per_second;
            if multiplier >> 31 != 0 || factor >> 63 != 0 {
                return Self { multiplier, shift };
            }
            (factor, shift) = (factor << 1, shift + 1);
        }
    }

    /// Of a rate in bits.
    pub(crate) fn of(rate: Rate) -> Self {
        Self::new((rate.bps() / 8).max(1))
    }

    /// The time that so many bytes take, rounded down.
    #[inline]
    pub(crate) fn cost(self, bytes: u32) -> i64 {
        // 32 bits by 32 bits.
        ((u64::from(bytes) * self.multiplier) >> self.shift) as i64
    }
}

/// The credit of a burst at a rate: whole ticks of 64 ns, rounded up.
pub(crate) fn credit(burst: Bytes, bytes_per_second: u64) -> i64 {
    let ns = u128::from(burst.0) * 1_000_000_000;
    let tick = u128::from(bytes_per_second.max(1)) * u128::from(TICK);
    (ns.div_ceil(tick) * u128::from(TICK)) as i64
}

/// A bucket that lets a packet through whole or not at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    price: Price,
    most: i64,
    credit: i64,
}

impl Bucket {
    /// A bucket of which this share is full.
    pub(crate) fn new(rate: Rate, burst: Bytes, share: f64) -> Self {
        let most = credit(burst, rate.bps() / 8);
        Self {
            price: Price::of(rate),
            most,
            credit: (most as f64 * share) as i64,
        }
    }

    /// The credit that is left once `bytes` have passed after so much more time; negative if they
    /// may not.
    #[inline]
    pub(crate) fn left(&self, elapsed: i64, bytes: u32) -> i64 {
        (self.credit + elapsed.min(self.most)).min(self.most) - self.price.cost(bytes)
    }

    #[inline]
    pub(crate) fn set(&mut self, credit: i64) {
        self.credit = credit;
    }

    pub(crate) const fn credit(&self) -> i64 {
        self.credit
    }

    /// Whether a packet can ever pass.
    #[inline]
    pub(crate) fn holds(&self, bytes: u32) -> bool {
        self.price.cost(bytes) <= self.most
    }

    /// Another rate and burst. A full bucket stays full; else the credit stays, as far as it fits.
    pub(crate) fn adopt(&mut self, fresh: Self) {
        self.credit = match self.credit == self.most {
            true => fresh.most,
            false => self.credit.min(fresh.most),
        };
        (self.price, self.most) = (fresh.price, fresh.most);
    }
}

/// The time from one to another, in ns.
#[inline]
pub(crate) const fn elapsed(from: Time, to: Time) -> i64 {
    to.saturating_sub(from).as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_rounded_down_and_exact_where_the_rate_divides_a_second() {
        assert_eq!(Price::new(125_000).cost(1500), 12_000_000);
        assert_eq!(Price::new(375_000).cost(1500), 3_999_999);
        assert_eq!(Price::new(12_500_000_000).cost(1500), 119); // 120 less 2^-31.
        assert_eq!(Price::new(8_000).cost(65_535), 8_191_875_000);
    }

    #[test]
    fn a_burst_is_whole_ticks_rounded_up() {
        assert_eq!(credit(Bytes(1600), 1_875_000), 853_376);
        assert_eq!(credit(Bytes(1600), 375_000), 4_266_688);
        assert_eq!(credit(Bytes(10_000), 125_000), 80_000_000);
    }
}
