//! The constants of BBR, version 3, where its two sources differ.

use aqmlab_declare::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which constants and rules BBR uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Constants {
    /// The constants of draft-ietf-ccwg-bbr.
    #[default]
    Draft,
    /// The constants of google/bbr, branch v3, which counts in whole segments.
    Google,
}

/// What differs between the draft and the branch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) startup_gain: f64,
    pub(super) drain_gain: f64,
    /// Rounds after which Drain ends at the latest.
    pub(super) drain_rounds: u64,
    pub(super) down_gain: f64,
    pub(super) loss_threshold: f64,
    pub(super) beta: f64,
    pub(super) headroom: f64,
    /// Any ACK may raise the bandwidth that Startup has to outgrow, not only the first of a round.
    pub(super) any_ack: bool,
}

impl Constants {
    pub(super) const fn numbers(self) -> Numbers {
        match self {
            Self::Draft => Numbers {
                startup_gain: 2.77,
                drain_gain: 0.5,
                drain_rounds: 3,
                down_gain: 0.90,
                loss_threshold: 0.02,
                beta: 0.7,
                headroom: 0.15,
                any_ack: false,
            },
            Self::Google => Numbers {
                startup_gain: 710.0 / 256.0,
                drain_gain: 88.0 / 256.0,
                drain_rounds: u64::MAX,
                down_gain: 232.0 / 256.0,
                loss_threshold: 5.0 / 256.0,
                beta: 180.0 / 256.0,
                headroom: 38.0 / 256.0,
                any_ack: true,
            },
        }
    }
}
