//! A plug-in and its parameters, as a scenario states them.

use std::sync::{Mutex, PoisonError};

use aqmlab_declare::tagged::Located;
use schemars::{Schema, json_schema};
use serde::ser::SerializeMap;
use serde_json::Value as Json;
use toml::{Table, Value as Toml};

use crate::declared::{Plugin, Role, Value};
use crate::instance::Instance;
use crate::recorded;
use crate::registry::{PluginKind, find, registered};

/// A plug-in and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which.
    pub plugin: &'static Plugin,
    /// The parameters, in the order of their declaration.
    pub values: &'static [Value],
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.plugin, other.plugin) && self.values == other.values
    }
}

const NAME: &str = "name";
const SHA256: &str = "sha256";

impl Settings {
    /// The schema of a scenario's table: `name`, `sha256`, any parameters, and what its owner has of
    /// its own.
    pub fn schema(own: impl IntoIterator<Item = (&'static str, Schema)>) -> Schema {
        let mut schema = json_schema!({
            "type": "object",
            "properties": {
                "name": {
                    "description": "Name of the plug-in. Its parameters are further keys of \
                                    this table.",
                    "type": "string",
                },
                "sha256": {
                    "description": "Expected hash of the plug-in's source. Another hash is an \
                                    error. Default: no check.",
                    "type": "string",
                },
            },
            "required": ["name"],
            "additionalProperties": true,
        });
        let properties = schema.get_mut("properties").and_then(Json::as_object_mut);
        let own = own
            .into_iter()
            .map(|(key, schema)| (key.to_owned(), schema.into()));
        properties.expect("stated above").extend(own);
        schema
    }

    /// Reads the keys of a scenario's table: `name`, `sha256` and the parameters. `others` are keys
    /// that its owner has read, for messages.
    pub fn read(kind: PluginKind, mut table: Table, others: &[&str]) -> Result<Self, Located> {
        let plugin = match of_a_record(kind, &mut table) {
            Some(plugin) => plugin,
            None => named(kind, table.remove(NAME)).map_err(|error| error.under(NAME))?,
        };
        match table.remove(SHA256) {
            None => {}
            Some(Toml::String(hash)) if hash == plugin.sha256 => {}
            Some(other) => {
                let found = aqmlab_declare::tagged::shown(&other);
                let message = format!(
                    "found {found}, but the plug-in {} that is loaded has {:?}: its source is \
                     another",
                    plugin.name, plugin.sha256
                );
                return Err(Located::new(message).under(SHA256));
            }
        }
        let mut values = Vec::new();
        for field in plugin.parameters() {
            let value = match (table.remove(field.name), field.role) {
                (Some(found), _) => field
                    .form
                    .read(&found)
                    .map_err(|error| error.under(field.name))?,
                (None, Role::Optional(value)) => value,
                (None, _) => {
                    let missing = Located::new("missing, and it has no default");
                    return Err(missing.under(field.name));
                }
            };
            values.push(value);
        }
        if let Some(key) = table.keys().next() {
            let mut allowed = vec![NAME];
            allowed.extend(others);
            allowed.extend(plugin.parameter_names());
            return Err(Located::unknown_key(key, &allowed));
        }
        Ok(Self {
            plugin,
            values: interned(values),
        })
    }

    /// What is wrong if an instance has other parameters than these.
    pub fn overwritten<E>(&self, instance: &dyn Instance<E>) -> Option<String> {
        let index = instance.overwritten(self.values)?;
        let name = self.plugin.parameter_names().get(index)?;
        Some(format!(
            "{name} was overwritten, which the scenario sets; keep what changes in a variable"
        ))
    }

    /// Writes the same keys.
    pub fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(NAME, self.plugin.name)?;
        map.serialize_entry(SHA256, &self.plugin.sha256)?;
        for (field, &value) in self.plugin.parameters().zip(self.values) {
            map.serialize_entry(field.name, &field.form.toml(value))?;
        }
        Ok(())
    }
}

/// The plug-in of a finished run, whose scenario states all of it.
fn of_a_record(kind: PluginKind, table: &mut Table) -> Option<&'static Plugin> {
    if !recorded::is_reading_a_record() {
        return None;
    }
    let text = |key: &str| table.get(key).and_then(Toml::as_str).map(str::to_owned);
    let (name, sha256) = (text(NAME)?, text(SHA256)?);
    table.remove(NAME);
    table.remove(SHA256);
    Some(recorded::plugin(kind, &name, &sha256, table))
}

/// The plug-in that a scenario names.
fn named(kind: PluginKind, name: Option<Toml>) -> Result<&'static Plugin, Located> {
    let what = match kind {
        PluginKind::Discipline => "queue discipline",
        PluginKind::Control => "congestion control",
    };
    let known = registered()
        .into_iter()
        .filter(|plugin| plugin.kind() == kind);
    let known: Vec<&str> = known.map(|plugin| plugin.name).collect();
    let Some(Toml::String(name)) = name else {
        return Err(
            Located::new(format!("missing: the name of a plug-in, a {what}")).allow(&known),
        );
    };
    find(kind, &name).ok_or_else(|| match known.is_empty() {
        true => Located::new(format!(
            "found {}, but no plug-in is loaded that is a {what}; a scenario never loads one: give \
             its file with --plugin FILE",
            aqmlab_declare::tagged::quoted(&name)
        )),
        false => Located::unknown_word(&name, &known),
    })
}

/// Parameters once for all connections that share them; they live as long as plug-ins.
fn interned(values: Vec<Value>) -> &'static [Value] {
    static KNOWN: Mutex<Vec<&'static [Value]>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|known| **known == values) {
        return found;
    }
    let values: &'static [Value] = values.leak();
    known.push(values);
    values
}
