//! The tables of Mah's model and the reconstructed tails; what they are: `data/mah1997/README.md`.

use aqmlab_net::RandomStream;
use serde::Deserialize;

use super::Replies;
use crate::shipped;
use crate::sizes::{BoundedPareto, quantile};

/// The place of a file in its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Primary,
    Embedded,
}

/// Mah's tables without the replies.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Bytes.
    pub(super) request: Table,
    /// Number, the primary file included.
    pub(super) files_per_page: Table,
    /// Number.
    pub(super) consecutive_pages: Table,
    /// Seconds.
    pub(super) think_s: Table,
}

impl Tables {
    pub(super) fn mah1997() -> Self {
        Self {
            request: Table::read(include_str!("../../data/mah1997/request_length.csv")),
            files_per_page: Table::read(include_str!("../../data/mah1997/files_per_page.csv")),
            consecutive_pages: Table::read(include_str!(
                "../../data/mah1997/consecutive_pages.csv"
            )),
            think_s: Table::read(include_str!("../../data/mah1997/think_time.csv")),
        }
    }
}

/// An empirical distribution: rows of (value, cumulative probability).
#[derive(Clone, Debug)]
pub(super) struct Table(Vec<(f64, f64)>);

impl Table {
    fn read(csv: &str) -> Self {
        let rows = shipped::rows(csv).into_iter();
        let rows = rows.map(|[value, _count, cumulative]| (value, cumulative));
        Self(rows.collect())
    }

    /// The distribution of the values up to `limit`.
    fn up_to(mut self, limit: f64) -> Self {
        self.0.retain(|&(value, _)| value <= limit);
        let share = self.0.last().map_or(1.0, |&(_, cumulative)| cumulative);
        for (_, cumulative) in &mut self.0 {
            *cumulative /= share;
        }
        self
    }

    pub(super) fn sample(&self, stream: &mut RandomStream) -> f64 {
        quantile(&self.0, stream.uniform_positive())
    }
}

/// Sizes of replies in bytes.
#[derive(Clone, Debug)]
pub(super) struct ReplySizes {
    body: Table,
    /// Without tails the body is all there is.
    tails: Option<Tails>,
}

/// Parametric tails; bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tails {
    body_maximum: f64,
    primary: Tail,
    embedded: Tail,
}

/// Replies larger than the body: a bounded Pareto distribution up to `maximum`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    tail_probability: f64,
    shape: f64,
    maximum: f64,
}

impl ReplySizes {
    pub(super) fn new(replies: Replies) -> Self {
        let table = Table::read(include_str!("../../data/mah1997/reply_length.csv"));
        match replies {
            Replies::Mah1997 => Self {
                body: table,
                tails: None,
            },
            Replies::Christiansen2000 => {
                let tails: Tails =
                    shipped::parameters(include_str!("../../data/mah1997/christiansen2000.toml"));
                Self {
                    body: table.up_to(tails.body_maximum),
                    tails: Some(tails),
                }
            }
        }
    }

    /// Draws a size of at least 1.
    pub(super) fn sample(&self, kind: Kind, stream: &mut RandomStream) -> f64 {
        if let Some(tails) = &self.tails {
            let tail = match kind {
                Kind::Primary => &tails.primary,
                Kind::Embedded => &tails.embedded,
            };
            if stream.uniform() < tail.tail_probability {
                let u = stream.uniform();
                let tail = BoundedPareto::new(tail.shape, tails.body_maximum, tail.maximum);
                return tail.quantile(u);
            }
        }
        self.body.sample(stream).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws many replies of a kind, ascending.
    fn replies(sizes: &ReplySizes, kind: Kind, name: &str, number: usize) -> Vec<f64> {
        let mut stream = RandomStream::new(1, name, 0);
        let mut drawn: Vec<f64> = (0..number)
            .map(|_| sizes.sample(kind, &mut stream))
            .collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    fn mean(drawn: &[f64]) -> f64 {
        drawn.iter().sum::<f64>() / drawn.len() as f64
    }

    fn percentile(sorted: &[f64], percent: f64) -> f64 {
        sorted[(percent / 100.0 * sorted.len() as f64) as usize]
    }

    fn assert_within(found: f64, expected: f64, share: f64, what: &str) {
        assert!(
            (found / expected - 1.0).abs() <= share,
            "{what}: found {found}, expected {expected}"
        );
    }

    /// Of the reconstruction, from an independent Monte Carlo of 4 million replies: mean, then
    /// percentiles. A mean of that many has a standard error of 0.4 to 0.6 %.
    const PRIMARY: (f64, [(f64, f64); 4]) = (
        22098.0,
        [
            (50.0, 2588.0),
            (90.0, 28_230.0),
            (95.0, 62_545.0),
            (99.0, 367_640.0),
        ],
    );
    const EMBEDDED: (f64, [(f64, f64); 4]) = (
        4488.9,
        [
            (50.0, 1963.0),
            (90.0, 8138.0),
            (95.0, 11_826.0),
            (99.0, 42_370.0),
        ],
    );
    const ALL: (f64, [(f64, f64); 4]) = (
        10_694.0,
        [
            (50.0, 2112.0),
            (90.0, 12_592.0),
            (95.0, 25_911.0),
            (99.0, 140_130.0),
        ],
    );

    #[test]
    fn reconstructed_replies_have_the_moments_of_the_independent_calculation() {
        let sizes = ReplySizes::new(Replies::Christiansen2000);
        // Primary files are 35.24 % of all.
        let primary = replies(&sizes, Kind::Primary, "primary", 1_409_600);
        let embedded = replies(&sizes, Kind::Embedded, "embedded", 2_590_400);
        let mut all = [primary.clone(), embedded.clone()].concat();
        all.sort_by(f64::total_cmp);
        for (drawn, (expected_mean, percentiles), what) in [
            (primary, PRIMARY, "primary"),
            (embedded, EMBEDDED, "embedded"),
            (all, ALL, "all"),
        ] {
            assert_within(mean(&drawn), expected_mean, 0.03, what);
            for (percent, expected) in percentiles {
                let found = percentile(&drawn, percent);
                assert_within(found, expected, 0.02, &format!("{what}, p{percent}"));
            }
        }
    }

    #[test]
    fn published_tables_have_their_published_moments() {
        let mut stream = RandomStream::new(1, "tables", 0);
        let tables = Tables::mah1997();
        let mut mean_of = |table: &Table| {
            let n = 400_000;
            (0..n).map(|_| table.sample(&mut stream)).sum::<f64>() / f64::from(n)
        };
        assert_within(mean_of(&tables.request), 337.3, 0.01, "request");
        assert_within(mean_of(&tables.files_per_page), 2.838, 0.02, "files");
        assert_within(mean_of(&tables.consecutive_pages), 4.01, 0.02, "pages");
        assert_within(mean_of(&tables.think_s), 1804.0, 0.03, "think time");

        let drawn = replies(
            &ReplySizes::new(Replies::Mah1997),
            Kind::Primary,
            "published",
            1_000_000,
        );
        assert_within(mean(&drawn), 7231.0, 0.03, "reply");
        assert_eq!(percentile(&drawn, 50.0), 2112.0);
        assert_within(percentile(&drawn, 99.0), 67_379.0, 0.03, "reply, p99");
        assert_eq!(drawn[0], 1.0, "a reply of no bytes counts as one byte");
        assert_eq!(drawn[drawn.len() - 1], 1_636_039.0);
    }
}
