//! What a scenario says about PackMime.

use aqmlab_net::Frequency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// HTTP connections between two clouds, after Cao et al. 2004 (PackMime-HTTP).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackMime {
    /// New connections per second, both directions together; left out: calibrated from `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Version of HTTP.
    #[serde(default)]
    pub http: Http,
    /// Whether servers take their time (at most 0.1 s) between request and response.
    #[serde(default = "default_server_delay")]
    pub server_delay: bool,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Http {
    /// One request and one response per connection.
    #[default]
    #[serde(rename = "1.0")]
    Http10,
    /// 9 % of the connections are persistent: they fetch pages of several objects, with gaps.
    #[serde(rename = "1.1")]
    Http11,
}

fn default_server_delay() -> bool {
    true
}
