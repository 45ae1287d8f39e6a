//! `transport` as a scenario writes it: a word, or the share of each.

use std::borrow::Cow;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::tagged::{self, Located};
use aqmlab_stacks::{HAS_QUIC, HAS_QUINN, HAS_STACKS};
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use toml::{Table, Value};

const TCP: &str = "tcp";
pub(crate) const QUIC: &str = "quic";
const QUINN: &str = "quinn";
const WORDS: [&str; 3] = [TCP, QUINN, QUIC];

/// What shares may miss of 1: they are written with a few digits.
const ROUNDING: f64 = 1e-9;

/// The transports of a class, as `aqmlab list transports` has them.
pub(crate) const ABOUT: [(&str, &str); 3] = [
    (
        TCP,
        "TCP, with the stack in `tcp`. The default of every class except `http3-web`.",
    ),
    (
        QUIC,
        "aqmlab's own QUIC (RFC 9000, 9002), with the settings in `quic` and the congestion \
         controls of TCP. The default of `http3-web`.",
    ),
    (
        QUINN,
        "QUIC by quinn-proto 0.11.19, with the settings in `quinn`: an independent implementation \
         in simulated time. It simulates more slowly than TCP.",
    ),
];

/// Which transport the connections of a class have: each connection draws its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transport {
    /// The share of QUIC of our own.
    pub quic: f64,
    /// The share of QUIC by quinn; the rest is TCP.
    pub quinn: f64,
    /// TCP for all is what the class says, of a model that has QUIC otherwise.
    pub(crate) is_tcp_by_choice: bool,
}

impl Transport {
    const TCP: Self = Self {
        quic: 0.0,
        quinn: 0.0,
        is_tcp_by_choice: false,
    };
    pub(crate) const QUIC: Self = Self {
        quic: 1.0,
        ..Self::TCP
    };
    const QUINN: Self = Self {
        quinn: 1.0,
        ..Self::TCP
    };

    /// What a model that is made for streams has where its class names none.
    pub(crate) fn of_streams() -> Result<Self, Located> {
        read(Value::String(QUIC.to_owned())).map_err(|error| error.under("transport"))
    }

    /// Whether all connections have TCP.
    pub fn is_tcp(&self) -> bool {
        !HAS_STACKS || self.quic + self.quinn == 0.0
    }

    /// Whether all connections have TCP because it is the model's default.
    pub(crate) fn is_default(&self) -> bool {
        self.is_tcp() && !self.is_tcp_by_choice
    }

    /// The word for what some connections have that is not TCP.
    pub(crate) fn other(&self) -> &'static str {
        if self.quic > 0.0 { QUIC } else { QUINN }
    }
}

impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let words = [(TCP, Self::TCP), (QUIC, Self::QUIC), (QUINN, Self::QUINN)];
        let shares = |it: &Self| [it.quic, it.quinn];
        if let Some((word, _)) = words.iter().find(|(_, only)| shares(only) == shares(self)) {
            return word.serialize(serializer);
        }
        let tcp = 1.0 - self.quinn - self.quic;
        let shares = [(TCP, tcp), (QUIC, self.quic), (QUINN, self.quinn)];
        // TCP is stated even where it has nothing left.
        let stated = shares
            .into_iter()
            .filter(|(word, share)| *word == TCP || *share > 0.0);
        let stated = stated.map(|(word, share)| (word.to_owned(), Value::Float(share.max(0.0))));
        Table::from_iter(stated).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Value::deserialize(deserializer)?).map_err(Located::pass)
    }
}

fn read(value: Value) -> Result<Transport, Located> {
    let transport = read_any(value)?;
    for (word, share, has) in [
        (QUIC, transport.quic, HAS_QUIC),
        (QUINN, transport.quinn, HAS_QUINN),
    ] {
        if share > 0.0 && !has {
            let found = format!("found {word}, which this build does not have; expected tcp");
            return Err(Located::new(found));
        }
    }
    Ok(transport)
}

fn read_any(value: Value) -> Result<Transport, Located> {
    let table = match value {
        Value::String(word) if word == TCP => return Ok(Transport::TCP),
        other if !HAS_STACKS => {
            let found = format!("found {other}, which this build does not have; expected tcp");
            return Err(Located::new(found));
        }
        Value::String(word) if word == QUIC => return Ok(Transport::QUIC),
        Value::String(word) if word == QUINN => return Ok(Transport::QUINN),
        Value::String(word) => return Err(Located::unknown_word(&word, &WORDS)),
        Value::Table(table) => table,
        other => {
            let expected = "expected tcp, quic, quinn, or a table of their shares";
            return Err(Located::new(format!("found {other}; {expected}")));
        }
    };
    let Shares { tcp, quic, quinn } = tagged::from_value(Value::Table(table))?;
    let stated = [(TCP, tcp), (QUIC, quic), (QUINN, quinn)];
    for (word, share) in stated {
        if let Some(share) = share
            && !(0.0..=1.0).contains(&share)
        {
            let message = format!("found {share}; a share is 0 to 1");
            return Err(Located::new(message).under(word));
        }
    }
    let sum: f64 = stated.iter().filter_map(|(_, share)| *share).sum();
    match (tcp, quic, quinn) {
        (None, None, None) => Err(Located::new(
            "found no share; expected some of tcp, quic and quinn",
        )),
        // QUIC has what TCP leaves.
        (Some(tcp), None, None) => Ok(Transport {
            quinn: 1.0 - tcp,
            ..Transport::TCP
        }),
        (Some(_), ..) if (sum - 1.0).abs() > ROUNDING => {
            let message = format!("found shares of {sum}; together they are 1");
            Err(Located::new(message))
        }
        (None, ..) if sum > 1.0 + ROUNDING => {
            let message = format!("found shares of {sum}; together they are at most 1");
            Err(Located::new(message))
        }
        _ => {
            let mut shares = Transport::TCP;
            (shares.quic, shares.quinn) = (quic.unwrap_or(0.0), quinn.unwrap_or(0.0));
            Ok(shares)
        }
    }
}

/// Share of each transport. The one that is not given gets the rest.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shares {
    /// Share of connections over TCP.
    #[serde(default)]
    tcp: Option<f64>,
    /// Share of connections over aqmlab's own QUIC.
    #[serde(default)]
    quic: Option<f64>,
    /// Share of connections over QUIC by quinn.
    #[serde(default)]
    quinn: Option<f64>,
}

impl schemars::JsonSchema for Transport {
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
        for (text, quic, quinn) in [
            ("\"tcp\"", 0.0, 0.0),
            ("\"quic\"", 1.0, 0.0),
            ("\"quinn\"", 0.0, 1.0),
            ("{ quinn = 0.25 }", 0.0, 0.25),
            ("{ tcp = 0.75 }", 0.0, 0.25),
            ("{ tcp = 0.75, quinn = 0.25 }", 0.0, 0.25),
            ("{ quic = 0.25 }", 0.25, 0.0),
            ("{ tcp = 0.25, quic = 0.5, quinn = 0.25 }", 0.5, 0.25),
            ("{ quic = 0.5, quinn = 0.5 }", 0.5, 0.5),
        ] {
            let transport = read(text).unwrap();
            assert_eq!((transport.quic, transport.quinn), (quic, quinn), "{text}");
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
                "found 3; expected tcp, quic, quinn, or a table of their shares",
            ),
            ("{}", "found no share; expected some of tcp, quic and quinn"),
            ("{ quinn = 1.5 }", "quinn: found 1.5; a share is 0 to 1"),
            (
                "{ quinn = 0.5, tcp = 0.25 }",
                "found shares of 0.75; together they are 1",
            ),
            (
                "{ quinn = 0.75, quic = 0.5 }",
                "found shares of 1.25; together they are at most 1",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
