//! Drawing sizes and round-trip times from the distributions of a scenario.

use aqmlab_net::{RandomStream, Time};

use crate::params::{Rtt, Sizes};

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
            } => bounded_pareto(*shape, minimum.0 as f64, maximum.0 as f64, stream.uniform()),
            Self::Empirical { cdf, .. } => quantile(cdf, stream.uniform_positive()),
        };
        (size.ceil() as u64).clamp(1, ENDLESS)
    }
}

/// The quantile `u` (in [0, 1)) of a Pareto distribution on [minimum, maximum].
pub(crate) fn bounded_pareto(shape: f64, minimum: f64, maximum: f64, u: f64) -> f64 {
    let beyond = libm::pow(minimum / maximum, shape);
    minimum * libm::pow(1.0 - u * (1.0 - beyond), -1.0 / shape)
}

/// The value of the first row of (value, cumulative probability) whose probability reaches `u`.
pub(crate) fn quantile(rows: &[(f64, f64)], u: f64) -> f64 {
    let row = rows.partition_point(|&(_, cumulative)| cumulative < u);
    rows[row.min(rows.len() - 1)].0
}

impl Rtt {
    /// The round-trip time of a connection between these hosts, numbered as in
    /// [`Connect`](crate::Connect).
    pub(crate) fn sample(
        &self,
        client: u32,
        server: u32,
        flipped: bool,
        stream: &mut RandomStream,
    ) -> Time {
        match self {
            Self::Constant { rtt } => *rtt,
            Self::Uniform { min, max } => {
                Time::from_secs_f64(stream.uniform_in(min.as_secs_f64(), max.as_secs_f64()))
            }
            Self::Pairs { matrix, extra, .. } => {
                // The matrix knows places, not roles: rows are the hosts at the servers' side.
                let (row, column) = if flipped {
                    (client, server)
                } else {
                    (server, client)
                };
                matrix[row as usize][column as usize] + *extra
            }
        }
    }
}
