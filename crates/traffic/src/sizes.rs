//! Distributions of sizes.

use aqmlab_declare::check::{Problem, above, bytes, problem};
use aqmlab_net::{Bytes, RandomStream};

aqmlab_declare::tagged! {
    /// Distribution of sizes in bytes of application data. Values are rounded up to whole bytes.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Sizes {
        /// All values are equal.
        Constant {
            /// The size, at least 1 byte.
            size: Bytes,
        },
        /// Log-normal distribution.
        Lognormal {
            /// Median size.
            median: Bytes,
            /// Standard deviation of the natural logarithm of the size. A larger value gives a
            /// wider distribution.
            sigma: f64,
        },
        /// Pareto distribution: P(X > x) = (minimum / x)^shape.
        Pareto {
            /// Tail index. With a smaller value, large sizes are more frequent.
            shape: f64,
            /// Smallest size.
            minimum: Bytes,
        },
        /// Bounded Pareto distribution. Its quantile function is Q(u) = minimum (1 - u (1 -
        /// (minimum/maximum)^shape))^(-1/shape), with u from 0 to 1.
        BoundedPareto {
            /// Tail index. With a smaller value, large sizes are more frequent.
            shape: f64,
            /// Smallest size.
            minimum: Bytes,
            /// Largest size.
            maximum: Bytes,
        },
        /// Random value from a table of cumulative probabilities, without interpolation. Either
        /// `file` or `cdf` is required.
        Empirical {
            /// CSV file with a header. The first column contains sizes in bytes, the last column
            /// contains cumulative probabilities.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            file: Option<String>,
            /// List of rows (bytes, cumulative probability). Both numbers increase from row to row.
            /// The last probability is 1.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            cdf: Vec<(f64, f64)>,
        },
    }
}

/// A transfer that never ends; no drawn size is larger.
pub(crate) const ENDLESS: u64 = u64::MAX / 2;

impl Sizes {
    /// Refuses what means nothing; the error is the field and the message.
    pub fn check(&self) -> Result<(), Problem> {
        match self {
            Self::Constant { size } => bytes("size", *size),
            Self::Lognormal { median, sigma } => {
                bytes("median", *median)?;
                above("sigma", *sigma, 0.0)
            }
            Self::Pareto { shape, minimum } => {
                above("shape", *shape, 0.0)?;
                bytes("minimum", *minimum)
            }
            Self::BoundedPareto {
                shape,
                minimum,
                maximum,
            } => {
                above("shape", *shape, 0.0)?;
                bytes("minimum", *minimum)?;
                if maximum > minimum {
                    return Ok(());
                }
                problem(
                    "maximum",
                    format!("found {maximum}; it must exceed minimum, {minimum}"),
                )
            }
            Self::Empirical { cdf, .. } => check_cdf(cdf),
        }
    }

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

/// Rows of (bytes, cumulative probability): both ascending, the last probability 1.
fn check_cdf(cdf: &[(f64, f64)]) -> Result<(), Problem> {
    let Some(&(first_size, first_probability)) = cdf.first() else {
        return problem("cdf", "found no rows; give them, or a file that has them");
    };
    if !(first_size >= 0.0 && first_probability >= 0.0) {
        return problem(
            "cdf",
            format!("found ({first_size}, {first_probability}) in row 1; nothing is negative"),
        );
    }
    for (index, pair) in cdf.windows(2).enumerate() {
        let ((size, probability), (next_size, next_probability)) = (pair[0], pair[1]);
        if !(next_size > size && next_probability >= probability) {
            return problem(
                "cdf",
                format!(
                    "found ({next_size}, {next_probability}) in row {} after ({size}, \
                     {probability}); sizes and probabilities must ascend",
                    index + 2
                ),
            );
        }
    }
    let (last_size, last) = cdf[cdf.len() - 1];
    if !last_size.is_finite() || (last - 1.0).abs() > 1e-9 {
        return problem(
            "cdf",
            format!("found ({last_size}, {last}) in the last row; its probability must be 1"),
        );
    }
    Ok(())
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
