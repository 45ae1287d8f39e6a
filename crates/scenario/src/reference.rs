//! The reference page, made from the schema.

use std::fmt::Write;

use aqmlab_aqm::Discipline;
use aqmlab_tcp::{Clock, CongestionControlKind, DelayedAck, Profile, SlowStart};
use aqmlab_traffic::{Model, Rtt, Sizes};
use schemars::JsonSchema;
use serde_json::Value;

use crate::catalog::{ProfileSheet, profile_keys};
use crate::traffic::Common;
use crate::{
    Capture, Change, FlowTrace, Hosts, Input, Link, Measure, Path, RateChange, Reordering,
    Scenario, Topology,
};
use aqmlab_declare::schema::{Described, Parameter};

/// The page docs/scenario.md: every field with its form, default and meaning.
pub fn reference() -> String {
    let mut page = include_str!("reference.md").to_owned();
    page += "\n## Quantities\n\n";
    for quantity in Described::of::<Scenario>().quantities() {
        page += &format!("- {}\n", quantity.summary);
    }
    table::<Scenario>(&mut page, "At the top");
    table::<Measure>(&mut page, "`[measure]`");
    table::<FlowTrace>(&mut page, "`measure.flow_trace`");
    table::<Capture>(&mut page, "`measure.capture`");
    kinds::<Topology>(&mut page, "`[topology]`");
    table::<Path>(&mut page, "`[topology.paths.NAME]`");
    table::<Hosts>(&mut page, "`[topology.hosts]`");
    table::<Link>(
        &mut page,
        "`[topology.bottleneck]`, `[topology.links.NAME]`",
    );
    page += "\nWhat stands in the table itself holds for both directions; \
             `[topology.bottleneck.forward]` (servers to clients) and \
             `[topology.bottleneck.reverse]` replace single keys, a discipline as a whole.\n";
    table::<Input>(&mut page, "`input`");
    table::<Reordering>(&mut page, "`reordering`");
    table::<RateChange>(&mut page, "`rate_changes`, a list of");
    table::<Change>(&mut page, "`changes`, a list of");
    kinds::<Discipline>(&mut page, "`discipline`");
    table::<Common>(&mut page, "`[[traffic]]`");
    page += "\nBeside these, a class has its `kind` and the keys of that kind, below.\n";
    kinds::<Model>(&mut page, "`[[traffic]]`");
    kinds::<Rtt>(&mut page, "`rtt`");
    kinds::<Sizes>(&mut page, "`request` and `response`");
    profiles(&mut page);
    kinds::<CongestionControlKind>(&mut page, "`tcp.congestion_control`");
    kinds::<SlowStart>(&mut page, "`tcp.slow_start`");
    kinds::<Clock>(&mut page, "`tcp.clock`");
    kinds::<DelayedAck>(&mut page, "`tcp.delayed_ack`");
    page
}

fn table<T: JsonSchema>(page: &mut String, heading: &str) {
    *page += &format!("\n## {heading}\n\n");
    parameters(page, &Described::of::<T>().parameters());
}

fn kinds<T: JsonSchema>(page: &mut String, heading: &str) {
    for kind in Described::of::<T>().kinds() {
        *page += &format!(
            "\n## {heading}: `kind = \"{}\"`\n\n{}\n",
            kind.name, kind.summary
        );
        if !kind.parameters.is_empty() {
            page.push('\n');
            parameters(page, &kind.parameters);
        }
    }
}

/// A table of keys, and the words that they take.
pub(crate) fn parameters(page: &mut String, parameters: &[Parameter]) {
    *page += "| key | form | default | meaning |\n| --- | --- | --- | --- |\n";
    for parameter in parameters {
        let Parameter {
            name,
            description,
            form,
            required,
            default,
            ..
        } = parameter;
        let default = match default {
            Some(default) => code(default),
            None if *required => "needed".to_owned(),
            None => String::new(),
        };
        *page += &format!(
            "| `{name}` | {} | {default} | {} |\n",
            cell(form),
            cell(description)
        );
    }
    words(page, parameters);
}

/// A list of the words for each key that takes words.
fn words(page: &mut String, parameters: &[Parameter]) {
    for parameter in parameters
        .iter()
        .filter(|parameter| !parameter.words.is_empty())
    {
        *page += &format!("\n`{}` is one of:\n\n", parameter.name);
        for word in &parameter.words {
            *page += &format!("- `\"{}\"`: {}\n", word.name, word.summary);
        }
    }
}

/// The keys of a profile with the value that each profile gives them.
fn profiles(page: &mut String) {
    *page += "\n## `tcp`\n\nThe name of a profile, or a table whose `profile` names one and whose \
              other keys replace its values: `tcp = { profile = \"rfc\", ecn = true }`. A table with \
              `client` and `server` has a stack for each end: \
              `tcp = { client = \"linux\", server = { profile = \"rfc\", ecn = true } }`.\n\n";
    let sheets = Profile::NAMES.map(ProfileSheet::of);
    for (name, sheet) in Profile::NAMES.iter().zip(&sheets) {
        *page += &format!("- `\"{name}\"`: {}\n", sheet.summary);
    }
    let columns = Profile::NAMES.map(|name| format!(" `{name}` |")).concat();
    let rule = " --- |".repeat(Profile::NAMES.len());
    *page += &format!("\n| key |{columns} meaning |\n| --- |{rule} --- |\n");
    let keys: Vec<_> = profile_keys()
        .into_iter()
        .filter(|key| key.name != "profile")
        .collect();
    for (index, key) in keys.iter().enumerate() {
        let values: String = sheets
            .iter()
            .map(|sheet| format!(" {} |", code(&sheet.parameters[index].value)))
            .collect();
        let _ = writeln!(
            page,
            "| `{}` |{values} {} |",
            key.name,
            cell(&key.description)
        );
    }
    words(page, &keys);
}

/// A value as the scenario file writes it.
fn code(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Object(table) => {
            let keys: Vec<_> = table
                .iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            format!("`{{ {} }}`", keys.join(", "))
        }
        other => format!("`{}`", other.to_string().replace("\",\"", "\", \"")),
    }
}

/// Text inside a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
