//! A profile as a scenario writes it: keys that have their default are left out.

use std::sync::OnceLock;

use schemars::Schema;
use serde::{Serialize, Serializer};
use toml::Table;

use super::Profile;

/// What the derive writes of a profile: every key.
struct Whole<'a>(&'a Profile);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Profile::serialize(self.0, serializer)
    }
}

fn every_key(profile: &Profile) -> Table {
    Table::try_from(Whole(profile)).expect("a profile holds only what TOML can say")
}

/// The keys that a file may leave out, with their defaults: the keys that the first profile does
/// not state. Keys that follow the congestion control are the last.
fn defaults() -> &'static Table {
    static DEFAULTS: OnceLock<Table> = OnceLock::new();
    DEFAULTS.get_or_init(|| {
        let plain = Profile::NAMES[0];
        let stated = Profile::stated(plain).unwrap_or_default();
        let mut defaults = Profile::shipped(plain).map_or_else(Table::new, every_key);
        defaults.retain(|key, _| key != "profile" && !stated.contains_key(key));
        for key in ["ecn_echo", "ect"] {
            let entry = defaults.remove_entry(key);
            defaults.extend(entry);
        }
        defaults
    })
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // What a reader has for a key that is left out.
        let given = Self::shipped(&self.profile).map(|named| {
            every_key(&Self {
                ecn_echo: self.congestion_control.echo(),
                ect: self.congestion_control.ect(),
                ..named.clone()
            })
        });
        let mut keys = every_key(self);
        for (key, default) in defaults() {
            if keys.get(key) == Some(default) {
                keys.remove(key);
                if given
                    .as_ref()
                    .is_some_and(|given| given.get(key) != Some(default))
                {
                    keys.insert(key.clone(), default.clone());
                }
            }
        }
        keys.serialize(serializer)
    }
}

/// The named profile has what a table leaves out, so the schema shows no default.
pub(super) fn without_defaults(schema: &mut Schema) {
    let properties = schema
        .get_mut("properties")
        .and_then(|it| it.as_object_mut());
    for property in properties.into_iter().flat_map(|it| it.values_mut()) {
        property.as_object_mut().map(|it| it.remove("default"));
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_declare::tagged;
    use toml::Value;

    use super::super::{EcnEcho, Ect, TailLossProbe};
    use super::*;

    #[test]
    fn a_default_survives_writing_where_the_named_profile_has_another_value() {
        assert!(defaults().contains_key("tail_loss_probe"));
        for name in Profile::NAMES {
            let mut stated = defaults().clone();
            stated.insert("profile".to_owned(), name.into());
            let profile: Profile = tagged::from_value(Value::Table(stated)).unwrap();
            let written = toml::to_string(&profile).unwrap();
            let table: Table = written.parse().unwrap();
            for (key, default) in defaults() {
                assert!(
                    table.get(key).is_none_or(|value| value == default),
                    "{name}: {key}"
                );
            }
            assert_eq!(
                tagged::from_value(Value::Table(table)),
                Ok(profile),
                "{name}"
            );
        }
        let linux = Profile {
            tail_loss_probe: TailLossProbe::Off,
            ..Profile::named("linux").unwrap()
        };
        let written = Table::try_from(linux).unwrap();
        let last = written.keys().next_back().unwrap();
        assert_eq!(
            (last.as_str(), written.contains_key("dsack")),
            ("tail_loss_probe", true)
        );
        assert!(!written.contains_key("strict_nagle"), "{written}");
    }

    /// A stack of that control, with these keys beside it.
    fn with_control(control: &str, keys: &str) -> Profile {
        let text =
            format!("profile = \"linux\"\ncongestion_control = \"{control}\"\necn = true\n{keys}");
        let table: Value = Value::Table(text.parse().unwrap());
        tagged::from_value(table).unwrap()
    }

    #[test]
    fn what_is_not_stated_of_marks_is_what_the_congestion_control_needs() {
        for (control, echo, ect) in [
            ("cubic", EcnEcho::UntilCwr, Ect::Ect0),
            ("dctcp", EcnEcho::EachChange, Ect::Ect0),
            ("prague", EcnEcho::Accurate, Ect::Ect1),
        ] {
            let stack = with_control(control, "");
            assert_eq!((stack.ecn_echo, stack.ect), (echo, ect), "{control}");
            for keys in ["", "ecn_echo = \"until-cwr\"\nect = \"ect0\""] {
                let stack = with_control(control, keys);
                let written = toml::to_string(&stack).unwrap();
                let table: Value = Value::Table(written.parse().unwrap());
                assert_eq!(tagged::from_value(table), Ok(stack), "{control} {keys}");
            }
            let stated = with_control(control, "ecn_echo = \"until-cwr\"\nect = \"ect0\"");
            assert_eq!(stated.ecn_echo, EcnEcho::UntilCwr, "{control}");
            assert_eq!(stated.ect, Ect::Ect0, "{control}");
        }
    }
}
