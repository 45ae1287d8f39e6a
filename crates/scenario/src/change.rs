//! A change, as a scenario states it.

use aqmlab_declare::JsonSchema;
use aqmlab_declare::parameters;
use aqmlab_declare::tagged::shown;
use aqmlab_net::Time;
use aqmlab_traffic::When;
use serde::{Deserialize, Deserializer};
use toml::Value;

/// A value that changes during the run.
#[parameters]
#[derive(Eq)]
pub struct Change {
    /// Time of the change, counted from the start of the run. The change precedes all other events
    /// at this time.
    #[param(unwritten)]
    pub at: Option<Time>,
    /// Replaces `at`: the value changes when a congestion control enters a phase.
    #[param(table, unwritten)]
    pub when: Option<When>,
    /// Path of the value that changes. For a link, the path is `LINK.DIRECTION.rate`,
    /// `LINK.DIRECTION.delay` or `LINK.DIRECTION.discipline.PARAMETER`. For a traffic class, the
    /// path is `traffic.CLASS.KEY`. The `KEY` is `users`, `sessions`, `flows` or `rate`. If you set
    /// the window yourself (congestion control `external`), the `KEY` can also be
    /// `congestion_control.cwnd` or `congestion_control.pacing_rate`. You can leave out the first
    /// parts of a path if the rest identifies one value.
    pub key: String,
    /// New value, in the same form as the value of this key in the scenario.
    #[serde(deserialize_with = "scalar")]
    #[schemars(with = "Scalar")]
    pub value: String,
}

/// A value as a file may state it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it stands for what is read by hand")]
enum Scalar {
    Text(String),
    Number(f64),
    Choice(bool),
}

/// The text of a value, which is read when it is known what it is for.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        value @ (Value::Integer(_) | Value::Float(_) | Value::Boolean(_)) => Ok(value.to_string()),
        other => Err(serde::de::Error::custom(format!(
            "found {}; expected a text, a number, true or false",
            shown(&other)
        ))),
    }
}
