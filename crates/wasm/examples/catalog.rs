//! Renews web/src/catalog.json: the disciplines and their parameters, as the playground shows them.

use std::path::Path;
use std::{fs, io};

use aqmlab_scenario::catalog;
use serde_json::{Map, Value, json};

fn main() -> io::Result<()> {
    let everything = catalog();
    let disciplines = everything["disciplines"].as_object().into_iter().flatten();
    // A page has no file with a plug-in.
    let disciplines = disciplines.filter(|(kind, _)| *kind != "plugin");
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
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/catalog.json");
    fs::write(file, format!("{:#}\n", Value::Object(disciplines)))
}
