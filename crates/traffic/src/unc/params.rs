//! What a scenario says about the UNC web users.

use aqmlab_net::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Web users after Smith et al. 2001, as Le's dissertation of 2005 drove them: pages of objects
/// from several servers over parallel connections, some of them persistent. Reconstructed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UncWeb {
    /// Number of users; left out: calibrated from `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Connections that a user keeps open at once.
    #[serde(default = "default_parallel")]
    pub parallel: u32,
    /// Probability that a connection is persistent: it fetches all that is left of a page on its
    /// server, one object after the other. Others fetch one object.
    #[serde(default = "default_persistent")]
    pub persistent: f64,
    /// Factor on every think time.
    #[serde(default = "default_one")]
    pub think_scale: f64,
    /// Factor on every response size.
    #[serde(default = "default_one")]
    pub response_scale: f64,
    /// Users begin their first page at random within this time. Left out: they are met in the
    /// middle of their think times, as if they had browsed for long, so that no rush begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Time>,
}

fn default_parallel() -> u32 {
    2
}

fn default_persistent() -> f64 {
    0.245
}

fn default_one() -> f64 {
    1.0
}
