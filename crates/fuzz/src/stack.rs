//! Any stack that a scenario can state: a shipped profile, with other words, switches and another
//! congestion control in place of its own. Its schema says which there are.

use std::sync::OnceLock;

use aqmlab_tcp::{CongestionControlKind, Profile};
use arbitrary::{Result, Unstructured};
use serde_json::Value as Json;
use toml::{Table, Value};

/// Keys that are changed, at most.
const MOST_CHANGES: u32 = 8;

/// A stack; none if its keys contradict each other.
pub(crate) fn any(input: &mut Unstructured<'_>) -> Result<Option<Profile>> {
    let name = *input.choose(&Profile::NAMES)?;
    let mut overlay = Table::from_iter([("profile".to_owned(), name.into())]);
    if input.arbitrary()? {
        overlay.insert("recovery".to_owned(), "rack-tlp".into());
    }
    if input.arbitrary()? {
        let control = input.choose_iter(CongestionControlKind::all())?;
        let control = Value::try_from(control).expect("a congestion control is TOML");
        overlay.insert("congestion_control".to_owned(), control);
    }
    for _ in 0..input.int_in_range(0..=MOST_CHANGES)? {
        let (key, values) = input.choose(choices())?;
        overlay.insert(key.clone(), input.choose(values)?.clone());
    }
    let mss = format!("{} bytes", input.int_in_range(100..=1500)?);
    overlay.insert("mss".to_owned(), mss.into());
    let read = overlay.try_into::<Profile>().ok();
    Ok(read.filter(|stack| stack.check().is_ok()))
}

/// The keys of a stack that take one of some words, or `true` and `false`, and what they take.
fn choices() -> &'static [(String, Vec<Value>)] {
    static CHOICES: OnceLock<Vec<(String, Vec<Value>)>> = OnceLock::new();
    CHOICES.get_or_init(|| {
        let schema = schemars::schema_for!(Profile).to_value();
        let properties = schema["properties"].as_object().expect("keys");
        let mut choices: Vec<(String, Vec<Value>)> = properties
            .iter()
            // Whether there is a handshake is the profile's: both ends must agree on it.
            .filter(|(key, _)| *key != "handshake")
            .map(|(key, property)| (key.clone(), values(property, &schema)))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        choices.sort_by(|one, other| one.0.cmp(&other.0));
        choices
    })
}

/// What a key takes that can be listed.
fn values(property: &Json, schema: &Json) -> Vec<Value> {
    if let Some(name) = property["$ref"].as_str() {
        let place = name.trim_start_matches('#');
        return schema
            .pointer(place)
            .map_or_else(Vec::new, |found| values(found, schema));
    }
    if property["type"] == "boolean" {
        return vec![false.into(), true.into()];
    }
    let one_of = ["oneOf", "anyOf"]
        .iter()
        .filter_map(|key| property[key].as_array())
        .flatten();
    let words = property["enum"].as_array().into_iter().flatten();
    words
        .chain(
            &property["const"]
                .is_string()
                .then(|| property["const"].clone()),
        )
        .filter_map(|word| word.as_str().map(Value::from))
        .chain(one_of.flat_map(|inner| values(inner, schema)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_lists_what_stacks_differ_in() {
        let of = |key: &str| {
            let found = choices().iter().find(|(name, _)| name == key);
            found.map_or(0, |(_, values)| values.len())
        };
        for (key, least) in [
            ("recovery", 6),
            ("ecn", 2),
            ("ecn_echo", 2),
            ("ect", 2),
            ("pacing", 2),
            ("frto", 3),
            ("tail_loss_probe", 2),
            ("slow_start_exit", 2),
        ] {
            assert!(of(key) >= least, "{key}: {}", of(key));
        }
    }
}
