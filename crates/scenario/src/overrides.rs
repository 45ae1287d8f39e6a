//! Replacing single values of a scenario, as `--set KEY=VALUE` does.

use aqmlab_declare::tagged::{self, quoted, shown};
use toml::{Table, Value};

use crate::ScenarioError;

/// No path of a scenario has more keys; deeper tables would only exhaust the stack.
const DEEPEST: usize = 16;

/// Keys that take a name instead of a table, and the key of that table which takes the name.
const NAMED: [(&str, &str); 6] = [
    ("tcp", "profile"),
    ("client", "profile"),
    ("server", "profile"),
    ("discipline", "preset"),
    ("congestion_control", "kind"),
    ("slow_start", "kind"),
];

/// Keys of `tcp` that hold the stack of one end.
const ENDS: [&str; 2] = ["client", "server"];

/// Puts `text` at `path`: keys joined by dots; an element of a list is called by its `name` (a
/// class without one by its `kind`) or by its number.
pub(crate) fn set(scenario: &mut Table, path: &str, text: &str) -> Result<(), ScenarioError> {
    let wrong = |message: String| ScenarioError::new(quoted(path).trim_matches('"'), message);
    let keys: Vec<_> = path.split('.').map(str::trim).collect();
    if keys.contains(&"") {
        return Err(wrong("not a path: it has an empty key".to_owned()));
    }
    if keys.len() > DEEPEST {
        return Err(wrong(format!("not a path: it has {} keys", keys.len())));
    }
    let (last, parents) = keys.split_last().expect("split yields at least one key");
    let mut table = scenario;
    let mut rest = parents;
    while let [key, after @ ..] = rest {
        rest = after;
        let value = table
            .entry((*key).to_owned())
            .or_insert_with(|| Value::Table(Table::new()));
        // The name of a profile, a preset or a kind stands for a table of its values.
        let naming = NAMED.iter().find(|(named, _)| named == key);
        if let (Some((_, naming)), Value::String(name)) = (naming, &*value) {
            let name = name.clone().into();
            *value = Value::Table(Table::from_iter([((*naming).to_owned(), name)]));
        }
        if *key == "tcp"
            && let Value::Table(stack) = value
            && rest.first().is_some_and(|end| ENDS.contains(end))
            && !ENDS.iter().any(|end| stack.contains_key(*end))
        {
            // What stood for both ends stands for each.
            let stack = Value::Table(std::mem::take(stack));
            *value = Value::Table(
                ENDS.map(|end| (end.to_owned(), stack.clone()))
                    .into_iter()
                    .collect(),
            );
        }
        table = match value {
            Value::Table(table) => table,
            Value::Array(elements) => {
                let Some((name, after)) = rest.split_first() else {
                    return Err(wrong(format!(
                        "{} is a list, whose elements are tables",
                        quoted(key)
                    )));
                };
                rest = after;
                element(elements, name).map_err(wrong)?
            }
            other => {
                return Err(wrong(format!(
                    "{} holds {}, which has no keys",
                    quoted(key),
                    shown(other)
                )));
            }
        };
    }
    table.insert((*last).to_owned(), value(text));
    Ok(())
}

/// The element of a list that is called `name`, or has this number.
fn element<'a>(elements: &'a mut [Value], name: &str) -> Result<&'a mut Table, String> {
    let names: Vec<String> = elements
        .iter()
        .enumerate()
        .map(|(index, element)| tagged::element_key(index, element))
        .collect();
    let by_name = names.iter().position(|candidate| candidate == name);
    let place = by_name.or_else(|| {
        name.parse()
            .ok()
            .filter(|&index: &usize| index < names.len())
    });
    let table = place.and_then(|place| elements[place].as_table_mut());
    table.ok_or_else(|| {
        let hint = tagged::nearest(name, &names)
            .map_or_else(String::new, |word| format!("; did you mean \"{word}\"?"));
        let allowed = names.join(", ");
        format!(
            "found no element {}{hint} (allowed: {allowed}, or a number from 0)",
            quoted(name)
        )
    })
}

/// A TOML value if the text is one, else the text itself: "60 packets" needs no quotation marks.
fn value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    parsed
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
