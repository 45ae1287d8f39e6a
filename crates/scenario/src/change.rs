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
    /// Instead of `at`: the value changes when a congestion control enters a phase.
    #[param(table, unwritten)]
    pub when: Option<When>,
    /// Value that changes. On a link: `LINK.DIRECTION.rate`, `LINK.DIRECTION.delay` or
    /// `LINK.DIRECTION.discipline.PARAMETER`. In a class: `traffic.CLASS.users`, `.sessions`,
    /// `.flows` or `.rate`. With an `external` control: `congestion_control.PARAMETER`. The last
    /// parts of a key can stand for the whole key if no other key ends with the same parts.
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
