//! The bottleneck's two directions, which a scenario may state together or apart.

use std::borrow::Cow;

use aqmlab_declare::tagged::{self, Located};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use toml::{Table, Value};

use crate::link::Link;

/// Both directions of the bottleneck link. A scenario file may state what both share once, in
/// the table itself, and what differs under `forward` and `reverse`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// From the servers to the clients.
    pub forward: Link,
    /// From the clients to the servers.
    pub reverse: Link,
}

const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

impl<'de> Deserialize<'de> for Bottleneck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_table(tagged::table(deserializer)?).map_err(Located::pass)
    }
}

impl Bottleneck {
    fn from_table(mut shared: Table) -> Result<Self, Located> {
        let [forward, reverse] = DIRECTIONS.map(|direction| match shared.remove(direction) {
            None => Ok(None),
            Some(own) => tagged::from_value(own)
                .map(Some)
                .map_err(|error| error.under(direction)),
        });
        let (forward, reverse): (Option<Table>, Option<Table>) = (forward?, reverse?);
        Ok(Self {
            forward: direction(&shared, forward.as_ref(), DIRECTIONS[0])?,
            reverse: direction(&shared, reverse.as_ref(), DIRECTIONS[1])?,
        })
    }
}

/// One direction: what is shared, unless the direction has its own.
fn direction(shared: &Table, own: Option<&Table>, name: &str) -> Result<Link, Located> {
    let mut link = shared.clone();
    link.extend(own.cloned().unwrap_or_default());
    let link = tagged::from_value(Value::Table(link));
    let link = link.and_then(|link: Link| link.check().map(|()| link));
    link.map_err(|error| {
        // The error belongs where its key stands, or would have to.
        let is_shared = match (own, error.path().first()) {
            (None, _) => true,
            (Some(own), Some(key)) => shared.contains_key(key) && !own.contains_key(key),
            (Some(_), None) => false,
        };
        match is_shared {
            true if error.is_unknown_key_here() => error.allow(&DIRECTIONS),
            true => error,
            false => error.under(name),
        }
    })
}

impl JsonSchema for Bottleneck {
    fn schema_name() -> Cow<'static, str> {
        "Bottleneck".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<OneDirection>();
        let mut schema = OneDirection::json_schema(generator);
        let text = "Both directions of the bottleneck link: what they share stands here, what \
                    differs under forward and reverse.";
        schema.insert("description".to_owned(), json!(text));
        let properties = schema
            .get_mut("properties")
            .and_then(|keys| keys.as_object_mut());
        let properties = properties.expect("a link has properties");
        let texts = [
            "From the servers to the clients.",
            "From the clients to the servers.",
        ];
        for (name, text) in DIRECTIONS.into_iter().zip(texts) {
            let mut own = own.clone();
            own.insert("description".to_owned(), json!(text));
            properties.insert(name.to_owned(), own.to_value());
        }
        schema
    }
}

/// The schema of one direction: a link of which every key may stand elsewhere.
struct OneDirection;

impl JsonSchema for OneDirection {
    fn schema_name() -> Cow<'static, str> {
        "OneDirection".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut link = Link::json_schema(generator);
        link.remove("required");
        link
    }
}
