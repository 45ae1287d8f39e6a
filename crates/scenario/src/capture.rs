//! The capture that a scenario asks for: a link's name, or a table that says more.

use std::borrow::Cow;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::parameters;
use aqmlab_declare::tagged::{self, Located, quoted, shown};
use aqmlab_net::{Bytes, Time};
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use toml::{Table, Value};

use crate::{Measure, Network, ScenarioError};

/// Records the packets that arrive at both ends of a link in `capture.pcapng`. They are recorded
/// before the queue, so packets that the queue drops are included.
#[parameters]
#[derive(Eq)]
pub struct Capture {
    /// Name of the link.
    #[param(default = "bottleneck")]
    pub link: String,
    /// Maximum number of recorded bytes of each packet. All headers fit into 120 bytes.
    #[param(
        default = "120 bytes",
        least = Bytes(1),
        most = Bytes(65_535),
        words = "expected 1 byte to 65535 bytes"
    )]
    pub snap_length: Bytes,
    /// Start of the capture, counted from the start of the run.
    #[param(default)]
    pub after: Time,
    /// End of the capture, counted from the start of the run. Default: end of the run.
    #[param(unwritten)]
    pub until: Option<Time>,
    /// Content of the checksum fields.
    #[param(default)]
    pub checksums: Checksums,
}

/// What checksum fields of a capture contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Checksums {
    /// Valid checksums.
    #[default]
    Valid,
    /// Zeros, as in a capture on a host with checksum offload.
    Zero,
}

/// Reads a capture.
pub(crate) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Capture>, D::Error> {
    let table = match Value::deserialize(deserializer)? {
        Value::String(link) => Ok(Table::from_iter([("link".to_owned(), link.into())])),
        Value::Table(table) => Ok(table),
        other => {
            let found = shown(&other);
            let right = "expected the name of a link, or a table";
            Err(Located::new(format!("found {found}; {right}")))
        }
    };
    table
        .and_then(|table| tagged::from_value(Value::Table(table)))
        .map(Some)
        .map_err(Located::pass)
}

/// Whether there is such a link, and a time in which packets are captured.
pub(crate) fn check(measure: &Measure, network: &Network) -> Result<(), ScenarioError> {
    let Some(capture) = &measure.capture else {
        return Ok(());
    };
    let wrong = |key: &str, message: String| {
        let path = format!("measure.capture.{key}");
        Err(ScenarioError::new(path, message))
    };
    let links: Vec<_> = network.links.keys().map(String::as_str).collect();
    if !links.contains(&capture.link.as_str()) {
        let found = quoted(&capture.link);
        let right = links.join(", ");
        return wrong("link", format!("found {found}; the links are {right}"));
    }
    let until = capture.until.unwrap_or(Time::NEVER);
    if until <= capture.after {
        let after = capture.after;
        return wrong(
            "until",
            format!("found {until}; it must be later than after, {after}"),
        );
    }
    Ok(())
}

/// The schema of what can be read.
pub(crate) struct Readable;

impl schemars::JsonSchema for Readable {
    fn schema_name() -> Cow<'static, str> {
        "LinkOrCapture".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = json!({ "type": "string", "description": "The name of a link." });
        let table = generator.subschema_for::<Capture>();
        let mut schema = Schema::default();
        schema.insert("anyOf".to_owned(), json!([name, table]));
        schema
    }
}
