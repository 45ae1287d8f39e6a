//! The reference pages of a scenario, made from the schema.

use std::fmt::Write;
use std::sync::LazyLock;

use aqmlab_aqm::Discipline;
use aqmlab_declare::schema::{Described, Parameter, Word};
use aqmlab_scenario::{
    Ampdu, Capture, Change, FlowTrace, Hosts, Input, Link, Measure, Path, ProfileSheet, Quic,
    Quinn, RateChange, Reordering, Scenario, Stations, Topology, Wifi, class_keys, profile_keys,
};
use aqmlab_tcp::{Clock, CongestionControlKind, DelayedAck, Profile, SlowStart};
use aqmlab_traffic::{Model, Rtt, Sizes, When};
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// The beginning of a table of keys.
const COLUMNS: &str = "value | default | meaning |\n| --- | --- | --- | --- |\n";

/// What precedes a default in words, in the last sentence of a description.
const DEFAULT: &str = "Default: ";

static QUANTITIES: LazyLock<Vec<Word>> = LazyLock::new(|| Described::of::<Scenario>().quantities());

/// The page docs/scenario.md: every field with its form, default and meaning. What has a page of
/// its own (a discipline, a traffic model, a congestion control) is a row that links to it.
pub(crate) fn page() -> String {
    let mut page = include_str!("scenario.md").to_owned();
    page += "\n## Quantities\n\n";
    for quantity in &*QUANTITIES {
        page += &format!("- {}\n", quantity.summary);
    }
    table::<Scenario>(&mut page, "Top level");
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
             `[topology.bottleneck.reverse]` replace single keys in one direction. A `discipline` in \
             these tables replaces the whole discipline. [Topologies](topologies.md) shows examples.\n";
    table::<Wifi>(&mut page, "`[topology.wifi]`");
    table::<Stations>(&mut page, "`stations`: each entry");
    table::<Ampdu>(&mut page, "`ampdu`");
    table::<Input>(&mut page, "`input`");
    table::<Reordering>(&mut page, "`reordering`");
    table::<RateChange>(&mut page, "`rate_changes`: each entry");
    page += "\nAn entry of `delay_changes` has the key `delay` in place of `rate`. \
             An entry of `loss_changes` has the key `loss`.\n";
    table::<When>(&mut page, "`when`");
    page += "\n[Changes at a phase](topologies.md#changes-at-a-phase) lists the phases and shows an example.\n";
    table::<Change>(&mut page, "`changes`: each entry");
    page += "\n## `discipline`\n\nEach kind has a page with its keys and its presets. \
             [Choose a queue](choose.md#disciplines-by-purpose) groups the kinds by purpose.\n\n";
    linked::<Discipline>(&mut page, "disciplines");
    page += "\n## `[[traffic]]`\n\n";
    parameters(&mut page, &class_keys());
    page += "\nA class also has a `kind` and the keys of this kind. Each kind has a page. \
             [Traffic](traffic/index.md) compares the kinds.\n\n";
    linked::<Model>(&mut page, "traffic");
    rows::<Rtt>(&mut page, "`rtt`");
    page += "\n[Round-trip times](traffic/round-trip-times.md) states the source of each kind.\n";
    rows::<Sizes>(&mut page, "`request` and `response`");
    page += "\n## `tcp`\n\n[The TCP stack](tcp-stack.md) lists the profiles and the keys.\n";
    page += "\n## `quic`\n\n";
    let mut quic = Described::of::<Quic>().parameters();
    keys(&mut page, &quic);
    quic.retain(|key| key.name != "congestion_control");
    words(&mut page, &quic);
    table::<Quinn>(&mut page, "`quinn`");
    page + "\n[QUIC or TCP](how-to/quic.md) shows an example.\n"
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
    *page += &format!("\n## {heading}\n\n| `kind`, keys | {COLUMNS}");
    for kind in Described::of::<T>().kinds() {
        *page += &format!("| **`{}`** | | | {} |\n", kind.name, cell(&kind.summary));
        for parameter in &kind.parameters {
            let words = parameter.words.iter();
            let words = words.map(|word| format!(" `\"{}\"`: {}", word.name, word.summary));
            *page += &row(parameter, &words.collect::<String>());
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
    *page += &format!("| key | {COLUMNS}");
    for parameter in parameters {
        *page += &row(parameter, "");
    }
}

/// The row of a key; its meaning ends with `more`.
fn row(parameter: &Parameter, more: &str) -> String {
    let [value, default] = [form(parameter), default(parameter)].map(|it| cell(&it));
    let (meaning, _) = meaning(&parameter.description);
    let meaning = cell(&(meaning + more));
    format!(
        "| `{}` | {value} | {default} | {meaning} |\n",
        parameter.name
    )
}

/// A description without the sentence that states the default, and this default.
fn meaning(description: &str) -> (String, Option<String>) {
    let Some((before, stated)) = description.split_once(DEFAULT) else {
        return (description.to_owned(), None);
    };
    let (default, after) = stated.split_once(". ").unwrap_or((stated, ""));
    let meaning = format!("{before}{after}");
    let default = default.trim_end_matches('.').to_owned();
    (meaning.trim_end().to_owned(), Some(default))
}

/// The type of a value, and its range.
fn form(parameter: &Parameter) -> String {
    let is_list = parameter.form == "list";
    if !parameter.words.is_empty() && parameter.form != "name or table" {
        return if is_list { "list of words" } else { "word" }.to_owned();
    }
    let form = parameter.form.replace("true or false", "boolean");
    let parts: Vec<_> = form.split(" or ").map(part).collect();
    let form = match parts.as_slice() {
        [first @ .., other, last] => [first, &[format!("{other} or {last}")][..]]
            .concat()
            .join(", "),
        parts => parts.concat(),
    };
    // A default shows how a quantity is written.
    let example = parameter.form.strip_prefix("text such as ");
    match example.filter(|_| parameter.default.is_none()) {
        Some(example) => format!("{form}, e.g. `{example}`"),
        None => form,
    }
}

/// One of the types that a value can have.
fn part(form: &str) -> String {
    if let Some(example) = form.strip_prefix("text such as ") {
        let mut known = QUANTITIES.iter();
        let quantity = known.find(|quantity| quantity.summary.contains(example));
        let name = quantity.and_then(|it| it.summary.split_once(':'));
        let (name, _) = name.expect("a quantity has its example in its description");
        let name = name.trim_start_matches("A ").trim_start_matches("An ");
        return lower(name);
    }
    match form.split_once("number") {
        Some((whole, bounds)) => {
            let number = if whole.is_empty() {
                "number"
            } else {
                "integer"
            };
            format!("{number}{}", range(bounds))
        }
        None => form.replace("text", "string"),
    }
}

/// The bounds of a number, with signs.
fn range(bounds: &str) -> String {
    if let Some((low, high)) = bounds.split_once(" up to ")
        && let Some(low) = low.strip_prefix(" from ")
    {
        return format!(", {low} to {high}");
    }
    let signs = [
        (" from ", " and ≥ "),
        (" above ", " and > "),
        (" up to ", " and ≤ "),
        (" below ", " and < "),
    ];
    let bounds = signs.iter().fold(bounds.to_owned(), |text, (word, sign)| {
        text.replace(word, sign)
    });
    bounds.replacen(" and", "", 1)
}

/// The value of a key that is left out.
pub(crate) fn default(parameter: &Parameter) -> String {
    let (_, stated) = meaning(&parameter.description);
    match (stated, &parameter.default) {
        _ if parameter.required => "required".to_owned(),
        (Some(stated), _) => stated,
        // A table of its own on the page shows these.
        (None, Some(Value::Object(table))) if !table.contains_key("kind") => {
            "defaults of its keys".to_owned()
        }
        (None, Some(default)) => code(default),
        (None, None) => "none".to_owned(),
    }
}

/// A list of the words for each key that takes words.
pub(crate) fn words(page: &mut String, parameters: &[Parameter]) {
    for parameter in parameters
        .iter()
        .filter(|parameter| !parameter.words.is_empty())
    {
        let each = if parameter.form == "list" {
            "Each entry of "
        } else {
            ""
        };
        *page += &format!("\n{each}`{}` is one of:\n\n", parameter.name);
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
        let (meaning, stated) = meaning(&key.description);
        let value = match own.value {
            Value::Null => stated.unwrap_or_else(|| short(&own.value)),
            _ => code(&own.value),
        };
        *page += &format!(
            "| `{}` | {} | {} |\n",
            key.name,
            cell(&value),
            cell(&meaning)
        );
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
    format!("`{}`", toml(value))
}

fn toml(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let keys = stated(table);
            if let [("kind", kind)] = keys.as_slice() {
                return kind.to_string();
            }
            let keys = keys
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml(value)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => {
            let list: Vec<_> = list.iter().map(toml).collect();
            format!("[{}]", list.join(", "))
        }
        other => other.to_string(),
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

/// A sentence's beginning inside another sentence.
pub(crate) fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Text inside a cell of a Markdown table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(form: &str, default: Option<Value>, description: &str) -> String {
        let parameter = Parameter {
            name: "key".to_owned(),
            description: description.to_owned(),
            form: form.to_owned(),
            required: false,
            default,
            words: Vec::new(),
        };
        row(&parameter, "").replace("| `key` | ", "")
    }

    #[test]
    fn a_row_shows_type_range_and_default() {
        let number = |form| cells(form, None, "A number.");
        for (form, shown) in [
            ("whole number from 0 up to 63", "integer, 0 to 63"),
            ("whole number from 1", "integer ≥ 1"),
            ("number above 0 below 1", "number > 0 and < 1"),
            ("number up to 2", "number ≤ 2"),
            ("number", "number"),
            (
                "text or number or true or false",
                "string, number or boolean",
            ),
        ] {
            assert_eq!(number(form), format!("{shown} | none | A number. |\n"));
        }
        let time = "text such as \"50 ms\"";
        assert_eq!(
            cells(time, Some(Value::from("5 ms")), "A time."),
            "time | `\"5 ms\"` | A time. |\n"
        );
        assert_eq!(
            cells(time, None, "A time. Default: never. It has an end."),
            "time, e.g. `\"50 ms\"` | never | A time. It has an end. |\n"
        );
    }
}
