//! A discipline as a scenario writes it: a table, a preset's name, or a preset with changes.

use std::borrow::Cow;

use aqmlab_aqm::Discipline;
use aqmlab_declare::tagged::{self, Located, quoted, shown};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use toml::{Table, Value};

const PRESET: &str = "preset";
const KIND: &str = "kind";

/// Reads a discipline.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Discipline, D::Error> {
    let value = Value::deserialize(deserializer)?;
    table(value)
        .and_then(|table| tagged::from_value(Value::Table(table)))
        .map_err(Located::pass)
}

/// The table that a value stands for.
fn table(value: Value) -> Result<Table, Located> {
    match value {
        Value::String(name) => preset(&name),
        Value::Table(mut own) => match own.remove(PRESET) {
            None => Ok(own),
            Some(Value::String(name)) => {
                let named = preset(&name).map_err(|error| error.under(PRESET))?;
                changed(named, own, &name)
            }
            Some(other) => {
                let message = format!("found {}; expected the name of a preset", shown(&other));
                Err(Located::new(message).under(PRESET))
            }
        },
        other => {
            let found = shown(&other);
            let right = "expected a table with a kind, or the name of a preset";
            Err(Located::new(format!("found {found}; {right}")))
        }
    }
}

fn preset(name: &str) -> Result<Table, Located> {
    Discipline::preset(name).ok_or_else(|| {
        let presets = Discipline::presets();
        let names: Vec<_> = presets.iter().map(|preset| preset.name.as_str()).collect();
        Located::unknown_word(name, &names)
    })
}

/// A preset with other values for some of its keys.
fn changed(mut named: Table, own: Table, name: &str) -> Result<Table, Located> {
    if let Some(kind) = own.get(KIND)
        && named.get(KIND) != Some(kind)
    {
        let found = shown(kind);
        let is = named.get(KIND).map(shown).unwrap_or_default();
        let message = format!("found {found}, but the preset {} is {is}", quoted(name));
        return Err(Located::new(message).under(KIND));
    }
    named.extend(own);
    Ok(named)
}

/// The schema of what can be read.
pub(crate) struct Readable;

impl JsonSchema for Readable {
    fn schema_name() -> Cow<'static, str> {
        "DisciplineOrPreset".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let presets = Discipline::presets();
        let names: Vec<_> = presets.iter().map(|preset| preset.name.as_str()).collect();
        let name = json!({ "type": "string", "enum": names });
        let changed = json!({
            "type": "object",
            "description": "A preset; other keys beside `preset` replace its values.",
            "properties": { "preset": name },
            "required": ["preset"],
        });
        let table = generator.subschema_for::<Discipline>();
        let mut schema = Schema::default();
        schema.insert("anyOf".to_owned(), json!([name, changed, table]));
        schema
    }
}
