//! Parts of the connections of a class.

use aqmlab_net::RandomStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of the connections that a class would open: those whose draw, uniform from 0 to 1, lies
/// in an interval.
///
/// Classes with complementary parts of the same whole have all its connections between them, each
/// with the start, the sizes and the round trip that it has in the whole: so the connections of an
/// experiment can be dealt to several stacks without changing them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What the whole is called: it names the random numbers. Parts with the same name, model and
    /// round-trip times are parts of the same whole.
    pub of: String,
    /// Beginning of the interval, 0 to 1.
    #[serde(default)]
    pub from: f64,
    /// End of the interval, 0 to 1.
    pub to: f64,
}

impl Part {
    /// Refuses what means nothing; the error is the field and the message.
    pub fn check(&self) -> Result<(), (String, String)> {
        let Self { from, to, .. } = self;
        if 0.0 <= *from && from < to && *to <= 1.0 {
            return Ok(());
        }
        let message = format!("found {from} to {to}; an interval within 0 to 1");
        Err(("to".to_owned(), message))
    }
}

/// Deals out the connections of a whole.
#[derive(Debug)]
pub(crate) struct Dealer {
    part: Part,
    stream: String,
    seed: u64,
    /// Connections that the whole has opened.
    opened: u64,
}

impl Dealer {
    pub(crate) fn new(part: &Part, seed: u64) -> Self {
        Self {
            part: part.clone(),
            stream: format!("{}/part", part.of),
            seed,
            opened: 0,
        }
    }

    /// Whether the next connection of the whole is one of this part.
    pub(crate) fn takes(&mut self) -> bool {
        let draw = RandomStream::new(self.seed, &self.stream, self.opened).uniform();
        self.opened += 1;
        self.part.from <= draw && draw < self.part.to
    }
}
