//! Plug-ins as a finished run has them: by what its scenario states, without their code.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use aqmlab_net::{Bytes, QueueSize, Rate, Time};
use toml::{Table, Value as Toml};

use crate::abi::{AqmlabAck, AqmlabEvent};
use crate::declared::{Field, Form, Makers, Plugin, Role, Value};
use crate::instance::{Callbacks, Instance, Maker};
use crate::registry::PluginKind;

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Does some work in which scenarios are those of finished runs: their plug-ins need not be loaded.
/// What is read is good for everything except a run.
pub fn reading_a_record<T>(work: impl FnOnce() -> T) -> T {
    struct Until(bool);
    impl Drop for Until {
        fn drop(&mut self) {
            IS_READING.set(self.0);
        }
    }
    let _until = Until(IS_READING.replace(true));
    work()
}

/// Whether the scenario that is read is that of a finished run.
pub(crate) fn is_reading_a_record() -> bool {
    IS_READING.get()
}

/// A plug-in that has the parameters of a table; tables with the same keys share it.
pub(crate) fn plugin(kind: PluginKind, name: &str, sha256: &str, table: &Table) -> &'static Plugin {
    static KNOWN: Mutex<Vec<&'static Plugin>> = Mutex::new(Vec::new());
    let is_one = |field: &Field, (key, value): (&String, &Toml)| {
        field.name == key && field.form == form_of(value)
    };
    let is_it = |plugin: &Plugin| {
        (plugin.kind(), plugin.name, plugin.sha256.as_str()) == (kind, name, sha256)
            && plugin.fields.len() == table.len()
            && plugin
                .fields
                .iter()
                .zip(table)
                .all(|(field, pair)| is_one(field, pair))
    };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|plugin| is_it(plugin)) {
        return found;
    }
    let field = |(key, value): (&String, &Toml)| Field {
        name: leaked(key),
        meaning: "",
        form: form_of(value),
        role: Role::Required,
    };
    let made = Plugin::new(
        (leaked(name), ""),
        sha256.to_owned(),
        table.iter().map(field).collect(),
        Callbacks::default(),
        match kind {
            PluginKind::Discipline => Makers::Discipline(Box::new(NoCode)),
            PluginKind::Control => Makers::Control(Box::new(NoCode)),
        },
    );
    let made: &'static Plugin = Box::leak(Box::new(made));
    known.push(made);
    made
}

/// Texts of plug-ins live as long as the process.
fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// The form of a value, which an effective scenario writes with its unit.
fn form_of(value: &Toml) -> Form {
    match value {
        Toml::Boolean(_) => Form::Boolean,
        Toml::Integer(_) => Form::Integer,
        Toml::String(text) if text.parse::<Time>().is_ok() => Form::Time,
        Toml::String(text) if text.parse::<Rate>().is_ok() => Form::Rate,
        Toml::String(text) if text.parse::<Bytes>().is_ok() => Form::Bytes,
        Toml::String(text) if text.parse::<QueueSize>().is_ok() => Form::Packets,
        _ => Form::Number,
    }
}

/// What makes nothing: a record is never run.
#[derive(Debug)]
struct NoCode;

impl Maker<AqmlabEvent> for NoCode {
    fn make(&self, _: &[Value]) -> Box<dyn Instance<AqmlabEvent>> {
        unreachable!("the scenario of a finished run is only read");
    }
}

impl Maker<AqmlabAck> for NoCode {
    fn make(&self, _: &[Value]) -> Box<dyn Instance<AqmlabAck>> {
        unreachable!("the scenario of a finished run is only read");
    }
}

#[cfg(test)]
mod tests {
    use super::reading_a_record;
    use crate::{PluginKind, Settings};
    use serde::ser::{SerializeMap, Serializer};

    const TABLE: &str = "name = 'no-code'\nsha256 = 'abc'\nabove = 2.5\ncount = 3\nis_on = true\n\
                         target = '10000.001 us'\nroom = '1500 bytes'\nspeed = '10 Mbit/s'\n\
                         threshold = '20 packets'\n";

    #[test]
    fn a_record_needs_no_code() {
        let table: toml::Table = TABLE.parse().unwrap();
        let read = |kind| Settings::read(kind, table.clone(), &[]);
        let refused = read(PluginKind::Discipline).unwrap_err().to_string();
        assert!(refused.contains("no plug-in is loaded"), "{refused}");
        let settings = reading_a_record(|| read(PluginKind::Control)).unwrap();
        let mut map = serde_json::value::Serializer.serialize_map(None).unwrap();
        settings.write(&mut map).unwrap();
        assert_eq!(map.end().unwrap(), serde_json::to_value(&table).unwrap());
        let again = reading_a_record(|| read(PluginKind::Control)).unwrap();
        assert_eq!(settings, again);
        assert!(read(PluginKind::Control).is_err());
    }
}
