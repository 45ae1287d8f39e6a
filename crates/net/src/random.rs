//! Named, portable random numbers.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{FNV_BASIS, fnv1a};

/// One stream of random numbers, named by what it is for.
///
/// Two streams with different names or indices are independent, and a draw from one never moves
/// another: what users do cannot depend on what a queue drew, so two disciplines meet the very
/// same users (common random numbers). The generator (xoshiro256++) and all functions are integer
/// arithmetic or pure-Rust `libm`, so a seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream `name`, number `index`, of the run with this `seed`.
    pub fn new(seed: u64, name: &str, index: u64) -> Self {
        // FNV-1a over the name, then SplitMix64 (inside seed_from_u64) to spread the bits.
        let hash = fnv1a(FNV_BASIS, name.bytes());
        let key = mix(mix(seed ^ hash).wrapping_add(index));
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// Uniform on [0, 1), with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on (0, 1]: safe to take the logarithm of.
    #[inline]
    pub fn uniform_positive(&mut self) -> f64 {
        1.0 - self.uniform()
    }

    /// Uniform on [low, high).
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// One of 0, 1, ..., n - 1, as floor(u n).
    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform_positive())
    }

    /// Standard normal (Box and Muller 1958; one of the pair is thrown away).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform_positive()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }
}

/// SplitMix64's finalizer (Steele, Lea, Flood 2014).
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_distinct() {
        let first = |seed, name, index| RandomStream::new(seed, name, index).uniform();
        assert_eq!(first(1, "users", 7), first(1, "users", 7));
        assert_ne!(first(1, "users", 7), first(1, "users", 8));
        assert_ne!(first(1, "users", 7), first(2, "users", 7));
        assert_ne!(first(1, "users", 7), first(1, "queue", 7));
    }

    #[test]
    fn the_first_numbers_of_a_stream_never_change() {
        // A change here changes every published result: it is a change of the engine's version.
        let mut stream = RandomStream::new(1, "pinned", 0);
        let drawn: Vec<f64> = (0..3).map(|_| stream.uniform()).collect();
        assert_eq!(drawn, PINNED);
    }

    #[test]
    fn moments() {
        let mut stream = RandomStream::new(3, "moments", 0);
        let n = 200_000;
        let (mut uniform, mut exponential, mut normal, mut square) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            uniform += stream.uniform();
            exponential += stream.exponential(2.0);
            let z = stream.normal();
            normal += z;
            square += z * z;
        }
        let n = f64::from(n);
        // Five standard errors each.
        assert!((uniform / n - 0.5).abs() < 5.0 * 0.2887 / n.sqrt());
        assert!((exponential / n - 2.0).abs() < 5.0 * 2.0 / n.sqrt());
        assert!((normal / n).abs() < 5.0 / n.sqrt());
        assert!((square / n - 1.0).abs() < 5.0 * 1.4143 / n.sqrt());
    }

    const PINNED: [f64; 3] = [0.5467782081011888, 0.10077873790033454, 0.5842885914133811];
}
