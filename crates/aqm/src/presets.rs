//! Disciplines by name: the settings that papers ran.

use toml::{Table, Value};

use crate::Discipline;

/// A discipline with the parameters of a paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// `kind` and parameters, as a scenario states them; more may be set on top.
    pub discipline: Table,
}

const PRESETS: &str = include_str!("presets.toml");

impl Discipline {
    /// All presets, in the order of their file.
    pub fn presets() -> Vec<Preset> {
        let presets: Table = PRESETS.parse().expect("the presets are TOML");
        presets
            .into_iter()
            .map(|(name, preset)| Preset::new(name, preset))
            .collect()
    }

    /// The table of a preset: `kind` and parameters; nothing if no preset has the name.
    pub fn preset(name: &str) -> Option<Table> {
        let presets = Self::presets().into_iter();
        let mut named = presets.filter(|preset| preset.name == name);
        named.next().map(|preset| preset.discipline)
    }
}

impl Preset {
    fn new(name: String, preset: Value) -> Self {
        let Value::Table(mut discipline) = preset else {
            unreachable!("preset {name} is a table");
        };
        let Some(Value::String(about)) = discipline.remove("about") else {
            unreachable!("preset {name} says what it is");
        };
        Self {
            name,
            about,
            discipline,
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_declare::tagged;
    use aqmlab_net::{Bytes, Rate};

    use super::*;
    use crate::{LinkFacts, Queue};

    #[test]
    fn every_preset_is_a_discipline_that_a_100_mbit_link_can_have() {
        let link = LinkFacts {
            rate: Rate::from_mbps(100),
            framing: Bytes(38),
        };
        for Preset { name, .. } in Discipline::presets() {
            let table = Discipline::preset(&name).unwrap();
            let discipline: Discipline = tagged::from_value(Value::Table(table))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(discipline.check(), Ok(()), "{name}");
            Queue::<()>::new(&discipline, link, 1);
        }
    }

    #[test]
    fn a_preset_is_found_by_its_name_and_says_what_it_is() {
        let table = Discipline::preset("droptail-240").unwrap();
        assert_eq!(table["limit"].as_str(), Some("240 packets"));
        assert!(!table.contains_key("about"));
        assert!(Discipline::presets().iter().all(|preset| {
            let line = &preset.about;
            !line.is_empty() && line.len() <= 100 && !line.contains('\n')
        }));
        assert_eq!(Discipline::preset("droptail-241"), None);
    }
}
