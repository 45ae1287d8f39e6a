//! `transport` as a scenario writes it: a word, or the share of each.

use std::borrow::Cow;

use aqmlab_declare::tagged::{self, Located};
use aqmlab_stacks::HAS_QUINN;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use toml::{Table, Value};

const TCP: &str = "tcp";
const QUINN: &str = "quinn";
const WORDS: [&str; 2] = [TCP, QUINN];

/// What shares may miss of 1: they are written with a few digits.
const ROUNDING: f64 = 1e-9;

/// The transports of a class, as `aqmlab list transports` has them.
pub(crate) const ABOUT: [(&str, &str); 2] = [
    (TCP, "TCP, with the stack that `tcp` says."),
    (
        QUINN,
        "QUIC by quinn-proto 0.11.19, as `quinn` says: an implementation that is not ours, in \
         simulated time. Slower to simulate than TCP.",
    ),
];

/// Which transport the connections of a class have: each connection draws its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transport {
    /// The share of QUIC by quinn; the rest is TCP.
    pub quinn: f64,
}

impl Transport {
    /// Whether all connections have TCP.
    pub fn is_tcp(&self) -> bool {
        !HAS_QUINN || self.quinn == 0.0
    }
}

impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.quinn == 0.0 {
            TCP.serialize(serializer)
        } else if self.quinn == 1.0 {
            QUINN.serialize(serializer)
        } else {
            let share = |share: f64| Value::Float(share);
            let shares = [(TCP, share(1.0 - self.quinn)), (QUINN, share(self.quinn))];
            Table::from_iter(shares.map(|(word, share)| (word.to_owned(), share)))
                .serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Value::deserialize(deserializer)?).map_err(Located::pass)
    }
}

fn read(value: Value) -> Result<Transport, Located> {
    let table = match value {
        Value::String(word) if word == TCP => return Ok(Transport { quinn: 0.0 }),
        other if !HAS_QUINN => {
            let found = format!("found {other}, which this build does not have; expected tcp");
            return Err(Located::new(found));
        }
        Value::String(word) if word == QUINN => return Ok(Transport { quinn: 1.0 }),
        Value::String(word) => return Err(Located::unknown_word(&word, &WORDS)),
        Value::Table(table) => table,
        other => {
            let found = format!("found {other}; expected tcp, quinn, or a table of their shares");
            return Err(Located::new(found));
        }
    };
    let Shares { tcp, quinn } = tagged::from_value(Value::Table(table))?;
    for (word, share) in [(TCP, tcp), (QUINN, quinn)] {
        if let Some(share) = share
            && !(0.0..=1.0).contains(&share)
        {
            let message = format!("found {share}; a share is 0 to 1");
            return Err(Located::new(message).under(word));
        }
    }
    match (tcp, quinn) {
        (Some(tcp), Some(quinn)) if (tcp + quinn - 1.0).abs() > ROUNDING => {
            let message = format!("found shares of {}; together they are 1", tcp + quinn);
            Err(Located::new(message))
        }
        (_, Some(quinn)) => Ok(Transport { quinn }),
        (Some(tcp), None) => Ok(Transport { quinn: 1.0 - tcp }),
        (None, None) => Err(Located::new(
            "found no share; expected one of tcp or quinn, or both",
        )),
    }
}

/// The share of each transport; the one that is left out has the rest.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shares {
    /// Share of the connections that have TCP.
    #[serde(default)]
    tcp: Option<f64>,
    /// Share of the connections that have QUIC by quinn.
    #[serde(default)]
    quinn: Option<f64>,
}

impl JsonSchema for Transport {
    fn schema_name() -> Cow<'static, str> {
        "Transport".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let shares = generator.subschema_for::<Shares>();
        let words = json!({ "type": "string", "enum": WORDS });
        let mut schema = Schema::default();
        schema.insert("anyOf".to_owned(), json!([words, shares]));
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Transport, String> {
        let table: Table = format!("transport = {text}").parse().unwrap();
        super::read(table["transport"].clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_word_or_shares_say_the_transport() {
        for (text, quinn) in [
            ("\"tcp\"", 0.0),
            ("\"quinn\"", 1.0),
            ("{ quinn = 0.25 }", 0.25),
            ("{ tcp = 0.75 }", 0.25),
            ("{ tcp = 0.75, quinn = 0.25 }", 0.25),
        ] {
            let transport = read(text).unwrap();
            assert_eq!(transport.quinn, quinn, "{text}");
            let written = Value::try_from(transport).unwrap();
            assert_eq!(super::read(written).unwrap(), transport);
        }
    }

    #[test]
    fn mistakes_are_told_with_what_would_be_right() {
        for (text, message) in [
            ("\"quin\"", "found \"quin\"; did you mean \"quinn\"?"),
            (
                "3",
                "found 3; expected tcp, quinn, or a table of their shares",
            ),
            (
                "{}",
                "found no share; expected one of tcp or quinn, or both",
            ),
            ("{ quinn = 1.5 }", "quinn: found 1.5; a share is 0 to 1"),
            (
                "{ quinn = 0.5, tcp = 0.25 }",
                "found shares of 0.75; together they are 1",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
