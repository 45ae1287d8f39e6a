//! Drawing sizes from the distributions of a scenario.

use aqmlab_net::RandomStream;

use crate::params::Sizes;

/// A transfer that never ends; no drawn size is larger.
pub(crate) const ENDLESS: u64 = u64::MAX / 2;

impl Sizes {
    /// Draws a size in bytes: rounded up, at least 1.
    pub fn sample(&self, stream: &mut RandomStream) -> u64 {
        let size = match self {
            Self::Constant { size } => size.0 as f64,
            Self::Lognormal { median, sigma } => {
                median.0 as f64 * libm::exp(sigma * stream.normal())
            }
            Self::Pareto { shape, minimum } => {
                minimum.0 as f64 * libm::pow(stream.uniform_positive(), -1.0 / shape)
            }
            Self::BoundedPareto {
                shape,
                minimum,
                maximum,
            } => {
                let [minimum, maximum] = [minimum, maximum].map(|size| size.0 as f64);
                BoundedPareto::new(*shape, minimum, maximum).quantile(stream.uniform())
            }
            Self::Empirical { cdf, .. } => quantile(cdf, stream.uniform_positive()),
        };
        whole(size)
    }
}

/// A Pareto distribution on [minimum, maximum], what its quantiles share worked out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundedPareto {
    minimum: f64,
    /// -1 / shape
    exponent: f64,
    /// 1 - (minimum / maximum)^shape
    within: f64,
}

impl BoundedPareto {
    pub(crate) fn new(shape: f64, minimum: f64, maximum: f64) -> Self {
        Self {
            minimum,
            exponent: -1.0 / shape,
            within: 1.0 - libm::pow(minimum / maximum, shape),
        }
    }

    /// The quantile `u`, in [0, 1).
    pub(crate) fn quantile(&self, u: f64) -> f64 {
        self.minimum * libm::pow(1.0 - u * self.within, self.exponent)
    }
}

/// A distribution from which many sizes are drawn.
#[derive(Clone, Debug)]
pub(crate) enum SizeDraws {
    BoundedPareto(BoundedPareto),
    Other(Sizes),
}

impl SizeDraws {
    pub(crate) fn new(sizes: &Sizes) -> Self {
        match sizes {
            Sizes::BoundedPareto {
                shape,
                minimum,
                maximum,
            } => {
                let [minimum, maximum] = [minimum, maximum].map(|size| size.0 as f64);
                Self::BoundedPareto(BoundedPareto::new(*shape, minimum, maximum))
            }
            other => Self::Other(other.clone()),
        }
    }

    /// Draws a size, as [`Sizes::sample`] does.
    pub(crate) fn sample(&self, stream: &mut RandomStream) -> u64 {
        match self {
            Self::BoundedPareto(pareto) => whole(pareto.quantile(stream.uniform())),
            Self::Other(sizes) => sizes.sample(stream),
        }
    }
}

/// Rounded up, at least 1.
fn whole(size: f64) -> u64 {
    (size.ceil() as u64).clamp(1, ENDLESS)
}

/// The value of the first row of (value, cumulative probability) whose probability reaches `u`.
pub(crate) fn quantile(rows: &[(f64, f64)], u: f64) -> f64 {
    let row = rows.partition_point(|&(_, cumulative)| cumulative < u);
    rows[row.min(rows.len() - 1)].0
}
