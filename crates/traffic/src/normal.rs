//! Standard normal numbers: how likely they are, how they are drawn fast, and how they become numbers
//! of any other distribution.

use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::sync::LazyLock;

use aqmlab_net::RandomStream;

/// P(Z <= z) of a standard normal Z.
pub(crate) fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// P(Z > z) of a standard normal Z; precise where it is small.
pub(crate) fn normal_above(z: f64) -> f64 {
    normal_below(-z)
}

/// Draws a standard normal number by the ziggurat method (Marsaglia and Tsang 2000): one random number and
/// a comparison, where [`RandomStream::normal`] takes two, a logarithm and a cosine.
#[inline]
pub(crate) fn normal(stream: &mut RandomStream) -> f64 {
    let ziggurat = &*ZIGGURAT;
    loop {
        // The layer from the first bits, the place in it from the others.
        let place = stream.uniform() * LAYERS as f64;
        let layer = place as usize;
        let x = (2.0 * (place - layer as f64) - 1.0) * ziggurat.width[layer];
        if x.abs() < ziggurat.width[layer + 1] {
            return x;
        }
        if let Some(x) = ziggurat.at_the_edge(layer, x, stream) {
            return x;
        }
    }
}

const LAYERS: usize = 256;

/// Where the tail begins, so that the lowest layer (a rectangle and the tail) and the 255
/// rectangles on it have the same area (Marsaglia and Tsang 2000).
const TAIL: f64 = 3.654_152_885_361_009;

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(Ziggurat::new);

/// Half of the density exp(-x^2 / 2), covered by layers of equal area.
struct Ziggurat {
    /// Of each layer; the lowest has the width that a rectangle of its area would have.
    width: [f64; LAYERS + 1],
    /// The density at the end of each width.
    density: [f64; LAYERS + 1],
}

fn density(x: f64) -> f64 {
    libm::exp(-0.5 * x * x)
}

impl Ziggurat {
    fn new() -> Self {
        let area = TAIL * density(TAIL) + libm::sqrt(2.0 * PI) * normal_above(TAIL);
        let mut width = [0.0; LAYERS + 1];
        width[0] = area / density(TAIL);
        width[1] = TAIL;
        // The last layer ends at the peak: its width stays 0.
        for layer in 1..LAYERS - 1 {
            let top = density(width[layer]) + area / width[layer];
            width[layer + 1] = libm::sqrt(-2.0 * libm::log(top));
        }
        Self {
            width,
            density: width.map(density),
        }
    }

    /// What becomes of an `x` beside the next layer: a number of the tail if the layer is the lowest, else
    /// `x` itself if it lies under the curve.
    #[cold]
    fn at_the_edge(&self, layer: usize, x: f64, stream: &mut RandomStream) -> Option<f64> {
        if layer == 0 {
            return Some(tail(stream).copysign(x));
        }
        let (low, high) = (self.density[layer], self.density[layer + 1]);
        let height = low + stream.uniform() * (high - low);
        (height < density(x)).then_some(x)
    }
}

/// A number beyond [`TAIL`] (Marsaglia 1964).
fn tail(stream: &mut RandomStream) -> f64 {
    loop {
        let beyond = stream.exponential(1.0 / TAIL);
        if 2.0 * stream.exponential(1.0) > beyond * beyond {
            return TAIL + beyond;
        }
    }
}

/// A distribution that standard normal numbers are turned into (normal to anything: Cario and Nelson
/// 1997): value by score, at [`PER_UNIT`] scores per standard deviation, straight lines between them.
#[derive(Clone, Debug)]
pub(crate) struct FromNormal(Box<[f64; SCORES + 1]>);

/// Scores from -`FARTHEST` to `FARTHEST` are told apart: what lies beyond has the probability 1e-17.
const FARTHEST: f64 = 8.5;

/// Fine enough for errors of 1e-4 on average (tested where distributions are used).
const PER_UNIT: f64 = 128.0;

const SCORES: usize = (2.0 * FARTHEST * PER_UNIT) as usize;

impl FromNormal {
    /// `value` must be monotone; it is asked for each score.
    pub(crate) fn new(value: impl Fn(f64) -> f64) -> Self {
        let mut values = Box::new([0.0; SCORES + 1]);
        for (index, it) in values.iter_mut().enumerate() {
            *it = value(index as f64 / PER_UNIT - FARTHEST);
        }
        Self(values)
    }

    #[inline]
    pub(crate) fn at(&self, score: f64) -> f64 {
        let place = (score + FARTHEST) * PER_UNIT;
        let place = place.clamp(0.0, SCORES as f64);
        let below = (place as usize).min(SCORES - 1);
        let (low, high) = (self.0[below], self.0[below + 1]);
        low + (place - below as f64) * (high - low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution() {
        for (z, below) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.96, 0.024_997_895)] {
            assert!((normal_below(z) - below).abs() < 1e-9);
            assert!((normal_above(z) - (1.0 - below)).abs() < 1e-9);
        }
        assert!(normal_above(8.0) > 6e-16);
    }

    #[test]
    fn the_layers_fill_the_density() {
        // Layer by layer up to its peak of 1, to the precision of TAIL.
        let ziggurat = Ziggurat::new();
        let area = ziggurat.width[0] * ziggurat.density[1];
        let last = LAYERS - 1;
        let top = ziggurat.density[last] + area / ziggurat.width[last];
        assert!((top - 1.0).abs() < 1e-12, "{top}");
    }

    #[test]
    fn draws_are_normal() {
        const DRAWS: u32 = 4_000_000;
        let mut stream = RandomStream::new(4, "normal", 0);
        let mut drawn: Vec<f64> = (0..DRAWS).map(|_| normal(&mut stream)).collect();
        let n = f64::from(DRAWS);
        // Neighbours are independent: product of mean 0 and variance 1.
        let products = drawn.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        assert!(products.abs() < 4.5 * n.sqrt(), "{}", products / n);
        drawn.sort_by(f64::total_cmp);
        // Both ends, where layers begin, and the tail.
        for step in -46..=46 {
            let z = 0.1 * f64::from(step);
            let below = drawn.partition_point(|it| *it <= z) as f64;
            let expected = n * normal_below(z);
            let bound = 4.5 * (expected * normal_above(z)).sqrt();
            assert!(
                (below - expected).abs() < bound,
                "{z}: {below}, not {expected}"
            );
        }
    }

    #[test]
    fn a_table_is_straight_between_its_scores_and_ends_at_the_farthest() {
        let table = FromNormal::new(|z| 3.0 * z + 1.0);
        for z in [-8.5, -1.234_567, 0.0, 1.0 / 3.0, 8.5] {
            assert!((table.at(z) - (3.0 * z + 1.0)).abs() < 1e-12, "{z}");
        }
        assert!((table.at(9.0) - 26.5).abs() < 1e-12);
        assert!((table.at(-40.0) + 24.5).abs() < 1e-12);
    }
}
