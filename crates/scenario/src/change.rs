//! A change, as a scenario states it.

use aqmlab_declare::parameters;
use aqmlab_declare::tagged::shown;
use aqmlab_net::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use toml::Value;

/// A value changes during the run.
#[parameters]
#[derive(Eq)]
pub struct Change {
    /// When, from the beginning of the run; before anything else that happens then.
    pub at: Time,
    /// What: `LINK.DIRECTION.rate`, `LINK.DIRECTION.delay`, `LINK.DIRECTION.discipline.PARAMETER`,
    /// or `traffic.CLASS.` and its `users`, `sessions`, `flows` or `rate`, or
    /// `congestion_control.PARAMETER` where the control is `external`. The end of a key, such as
    /// `discipline.PARAMETER`, is enough where no other key ends so.
    pub key: String,
    /// The value from then on, as it would stand at its place in the scenario.
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
