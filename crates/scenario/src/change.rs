//! A change, as a scenario states it.

use aqmlab_declare::parameters;
use aqmlab_declare::tagged::shown;
use aqmlab_net::Time;
use aqmlab_traffic::When;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use toml::Value;

/// A value that changes during the run.
#[parameters]
#[derive(Eq)]
pub struct Change {
    /// Time of the change, from the start of the run. It precedes all other events at that time.
    #[param(unwritten)]
    pub at: Option<Time>,
    /// Instead of `at`: a phase of a congestion control at which the value changes.
    #[param(table, unwritten)]
    pub when: Option<When>,
    /// What changes: `LINK.DIRECTION.rate`, `LINK.DIRECTION.delay`,
    /// `LINK.DIRECTION.discipline.PARAMETER`, `traffic.CLASS.` and its `users`, `sessions`, `flows`
    /// or `rate`, or, with an `external` control, `congestion_control.PARAMETER`. The end of a key
    /// is enough if no other key ends with it.
    pub key: String,
    /// New value, as the scenario would state it.
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
