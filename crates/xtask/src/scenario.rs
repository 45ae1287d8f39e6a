//! The reference pages of a scenario, made from the schema.

use std::fmt::Write;

use aqmlab_aqm::Discipline;
use aqmlab_declare::schema::{Described, Parameter};
use aqmlab_scenario::{
    Ampdu, Capture, Change, FlowTrace, Hosts, Input, Link, Measure, Path, ProfileSheet, Quic,
    Quinn, RateChange, Reordering, Scenario, Stations, Topology, Wifi, class_keys, profile_keys,
};
use aqmlab_tcp::{Clock, CongestionControlKind, DelayedAck, Profile, SlowStart};
use aqmlab_traffic::{Model, Rtt, Sizes, When};
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// The page docs/scenario.md: every field with its form, default and meaning. What has a page of
/// its own (a discipline, a traffic model, a congestion control) is a row that links to it.
pub(crate) fn page() -> String {
    let mut page = include_str!("scenario.md").to_owned();
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
    page += "\nThe keys of this table apply to both directions of a link. \
             `[topology.bottleneck.forward]` (servers to clients) and \
             `[topology.bottleneck.reverse]` replace values for one direction: each key alone, \
             but `discipline` as a whole. [Topologies](topologies.md) shows examples.\n";
    table::<Wifi>(&mut page, "`[topology.wifi]`");
    table::<Stations>(&mut page, "`stations`, a list of");
    table::<Ampdu>(&mut page, "`ampdu`");
    table::<Input>(&mut page, "`input`");
    table::<Reordering>(&mut page, "`reordering`");
    table::<RateChange>(&mut page, "`rate_changes`, a list of");
    page +=
        "\n`delay_changes` and `loss_changes` have a new `delay` or `loss` in place of `rate`.\n";
    table::<When>(&mut page, "`when`");
    page += "\n[`flow_trace.parquet`](metrics.md#flow_traceparquet) lists the phases. \
             [Changes at a phase](topologies.md#changes-at-a-phase) has an example.\n";
    table::<Change>(&mut page, "`changes`, a list of");
    page += "\n## `discipline`\n\nEach kind has a page with its keys and its presets. \
             [Choose a queue](choose.md#disciplines-by-purpose) groups them by purpose.\n\n";
    linked::<Discipline>(&mut page, "disciplines");
    page += "\n## `[[traffic]]`\n\n";
    parameters(&mut page, &class_keys());
    page += "\nA class also has its `kind` and the keys of that kind. Each kind has a page; \
             [Traffic](traffic/index.md) says what each is for.\n\n";
    linked::<Model>(&mut page, "traffic");
    rows::<Rtt>(&mut page, "`rtt`");
    page +=
        "\n[Round-trip times](traffic/round-trip-times.md) explains where each kind comes from.\n";
    rows::<Sizes>(&mut page, "`request` and `response`");
    page +=
        "\n## `tcp`\n\nThe name of a profile, or a table of keys: [the TCP stack](tcp-stack.md).\n";
    page += "\n## `quic`\n\n";
    let mut quic = Described::of::<Quic>().parameters();
    keys(&mut page, &quic);
    quic.retain(|key| key.name != "congestion_control");
    words(&mut page, &quic);
    table::<Quinn>(&mut page, "`quinn`");
    page + "\n[QUIC or TCP](how-to/quic.md) has an example.\n"
}

/// The page docs/tcp-stack.md: profiles, and every key of a stack.
pub(crate) fn tcp_page() -> String {
    let mut page = include_str!("tcp-stack.md").to_owned();
    profiles(&mut page);
    page += "\n## `tcp.congestion_control`\n\nEach kind has a page with its keys. \
             [Congestion controls](congestion-controls/index.md) compares them.\n\n";
    linked::<CongestionControlKind>(&mut page, "congestion-controls");
    rows::<SlowStart>(&mut page, "`tcp.slow_start`");
    rows::<Clock>(&mut page, "`tcp.clock`");
    rows::<DelayedAck>(&mut page, "`tcp.delayed_ack`");
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

/// The pages of the kinds, in a folder.
fn linked<T: JsonSchema>(page: &mut String, folder: &str) {
    let kinds = Described::of::<T>().kinds();
    let links = kinds
        .iter()
        .map(|kind| format!("[`{0}`]({folder}/{0}.md)", kind.name));
    *page += &links.collect::<Vec<_>>().join(",\n");
    *page += ".\n";
}

/// Kinds with few keys: a row for each key, under the row of its kind.
fn rows<T: JsonSchema>(page: &mut String, heading: &str) {
    *page +=
        &format!("\n## {heading}\n\n| `kind`, keys | default | meaning |\n| --- | --- | --- |\n");
    for kind in Described::of::<T>().kinds() {
        *page += &format!("| **`{}`** | | {} |\n", kind.name, cell(&kind.summary));
        for parameter in &kind.parameters {
            let mut meaning = parameter.description.clone();
            for word in &parameter.words {
                let _ = write!(meaning, " `\"{}\"`: {}", word.name, word.summary);
            }
            *page += &row(&parameter.name, &value(parameter), &meaning);
        }
    }
}

/// A table of keys, and the words that they take.
fn parameters(page: &mut String, parameters: &[Parameter]) {
    keys(page, parameters);
    words(page, parameters);
}

/// A table of keys.
pub(crate) fn keys(page: &mut String, parameters: &[Parameter]) {
    *page += "| key | default | meaning |\n| --- | --- | --- |\n";
    for parameter in parameters {
        *page += &row(&parameter.name, &value(parameter), &parameter.description);
    }
}

fn row(name: &str, value: &str, meaning: &str) -> String {
    format!("| `{name}` | {} | {} |\n", cell(value), cell(meaning))
}

/// What a key has if it is left out, and what it takes where that does not show it.
pub(crate) fn value(parameter: &Parameter) -> String {
    let form = &parameter.form;
    let shown = match form.strip_prefix("text such as ") {
        Some(example) => format!("like `{example}`"),
        None => form.clone(),
    };
    match (&parameter.default, parameter.required) {
        // A table of its own on the page shows these.
        (Some(Value::Object(table)), _) if !table.contains_key("kind") => "its defaults".to_owned(),
        (Some(default), _) => match form.split_once("number ") {
            Some((_, bounds)) => format!("`{default}`, {bounds}"),
            None => code(default),
        },
        (None, true) => format!("needed, {shown}"),
        (None, false) => format!("none, {shown}"),
    }
}

/// A list of the words for each key that takes words.
pub(crate) fn words(page: &mut String, parameters: &[Parameter]) {
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

/// The profiles, the keys with the value of the plain profile, and the keys that others change.
fn profiles(page: &mut String) {
    let [plain, others @ ..] = Profile::NAMES;
    let base = ProfileSheet::of(plain);
    *page += &format!("\n## Profiles\n\n- **`{plain}`**: {}\n", base.summary);
    let others: Vec<_> = others
        .iter()
        .map(|name| (*name, ProfileSheet::of(name)))
        .collect();
    for (name, sheet) in &others {
        *page += &format!("- **`{name}`**: {}\n", sheet.summary);
    }
    *page +=
        &format!("\n### What they change\n\nAn empty cell is the value of `{plain}`.\n\n| key |");
    for (name, _) in &others {
        *page += &format!(" `{name}` |");
    }
    *page += &format!("\n| --- |{}\n", " --- |".repeat(others.len()));
    for (at, own) in base.parameters.iter().enumerate() {
        let theirs: Vec<_> = others
            .iter()
            .map(|(_, sheet)| &sheet.parameters[at].value)
            .collect();
        if theirs.iter().all(|value| **value == own.value) {
            continue;
        }
        *page += &format!("| `{}` |", own.name);
        for value in theirs {
            *page += &match *value == own.value {
                true => " |".to_owned(),
                false => format!(" {} |", cell(&short(value))),
            };
        }
        page.push('\n');
    }
    let _ = write!(
        page,
        "\n## Keys\n\n| key | `{plain}` | meaning |\n| --- | --- | --- |\n"
    );
    let mut keys = profile_keys();
    keys.retain(|key| key.name != "profile");
    for (key, own) in keys.iter().zip(&base.parameters) {
        *page += &row(&key.name, &code(&own.value), &key.description);
    }
    // These have pages or tables of their own.
    keys.retain(|key| key.name != "congestion_control" && key.name != "slow_start");
    words(page, &keys);
}

/// A value in a narrow cell.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        other => code(other),
    }
}

/// A value as the scenario file writes it: a kind without the keys that have its defaults.
fn code(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Object(table) => {
            let keys = stated(table);
            if let [("kind", kind)] = keys.as_slice() {
                return code(kind);
            }
            let keys: Vec<_> = keys
                .iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            format!("`{{ {} }}`", keys.join(", "))
        }
        other => format!("`{}`", other.to_string().replace("\",\"", "\", \"")),
    }
}

/// The keys of a table, without those that its kind has by default.
fn stated(table: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let kinds = [
        Described::of::<Discipline>(),
        Described::of::<CongestionControlKind>(),
        Described::of::<SlowStart>(),
    ];
    let kinds: Vec<_> = kinds.iter().flat_map(Described::kinds).collect();
    let kind = kinds.iter().find(|kind| {
        let is_known =
            |key: &String| key == "kind" || kind.parameters.iter().any(|p| p.name == *key);
        table.get("kind").and_then(Value::as_str) == Some(&kind.name) && table.keys().all(is_known)
    });
    let is_default = |key: &str, value: &Value| {
        let parameters = kind.map_or(&[][..], |kind| &kind.parameters);
        let parameter = parameters.iter().find(|parameter| parameter.name == key);
        parameter.is_some_and(|it| it.default.as_ref().unwrap_or(&Value::Null) == value)
    };
    let keys = table.iter().map(|(key, value)| (key.as_str(), value));
    keys.filter(|(key, value)| !is_default(key, value))
        .collect()
}

/// Text inside a cell of a Markdown table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
