//! Subsets of the connections of a class.

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{Problem, problem};
use aqmlab_net::RandomStream;
use serde::{Deserialize, Serialize};

/// A subset of the connections that a class would open: those whose draw, uniform from 0 to 1, lies
/// in an interval.
///
/// Classes with complementary subsets of the same whole have all its connections between them, each
/// with the start, the sizes and the round trip that it has in the whole: so the connections of an
/// experiment can be dealt to several stacks without changing them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subset {
    /// Name of the whole, which selects the random numbers. Classes with the same name, model and
    /// round-trip times take subsets of the same whole.
    pub of: String,
    /// Start of the interval, 0 to 1.
    #[serde(default)]
    pub from: f64,
    /// End of the interval, 0 to 1.
    pub to: f64,
}

impl Subset {
    /// Refuses what means nothing.
    pub fn check(&self) -> Result<(), Problem> {
        let Self { from, to, .. } = self;
        if 0.0 <= *from && from < to && *to <= 1.0 {
            return Ok(());
        }
        problem(
            "to",
            format!("found {from} to {to}; an interval within 0 to 1"),
        )
    }
}

/// Deals out the connections of a whole.
#[derive(Debug)]
pub(crate) struct Dealer {
    subset: Subset,
    stream: String,
    seed: u64,
    /// Connections that the whole has opened.
    opened: u64,
}

impl Dealer {
    pub(crate) fn new(subset: &Subset, seed: u64) -> Self {
        Self {
            subset: subset.clone(),
            stream: format!("{}/part", subset.of),
            seed,
            opened: 0,
        }
    }

    /// Whether the next connection of the whole is in this subset.
    pub(crate) fn takes(&mut self) -> bool {
        let draw = RandomStream::new(self.seed, &self.stream, self.opened).uniform();
        self.opened += 1;
        self.subset.from <= draw && draw < self.subset.to
    }
}
