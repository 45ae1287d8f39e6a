//! The disciplines and their parameters, as the playground shows them.

use aqmlab_scenario::catalog as everything;
use serde_json::{Map, Value, json};

pub(crate) fn catalog() -> Value {
    let everything = everything();
    let disciplines = everything["disciplines"].as_object().into_iter().flatten();
    // A page has no file with a plug-in, and no form for tables.
    let disciplines =
        disciplines.filter(|(kind, _)| !["plugin", "htb", "cake-mq"].contains(&kind.as_str()));
    let disciplines: Map<String, Value> = disciplines
        .map(|(kind, entry)| {
            let shown = json!({
                "title": entry["about"]["title"],
                "purpose": entry["about"]["purpose"],
                "parameters": entry["parameters"],
            });
            (kind.clone(), shown)
        })
        .collect();
    Value::Object(disciplines)
}
