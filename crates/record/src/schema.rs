//! What results say of themselves: the schema of the summary, and its metrics as a list.

use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Summary;

/// The version of the results: of the keys of `summary.json` and the columns of the tables. It
/// grows when one of them is renamed, goes, or changes its meaning.
pub const RESULTS_VERSION: u32 = 2;

/// The keys of `summary.json` that had another name in an earlier version: old and new.
pub const RENAMED: [(&str, &str); 4] = [
    ("queue_mean_s", "sojourn_mean_s"),
    ("timeouts", "closed_timeouts"),
    ("expiries", "span_timeouts"),
    ("lossy_datagram_flows", "lossy_datagram_flow_share"),
];

/// A metric of the summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Its key, with `<link>`, `<direction>` and `<class>` for names of the scenario and
    /// `<reason>` for a reason to drop or mark.
    pub key: String,
    /// A few words for it, in tables.
    pub label: String,
    /// The unit of its value; `1`: none.
    pub unit: String,
    /// The unit in which it is shown.
    pub shown_unit: String,
    /// What the value is multiplied by to show it.
    pub scale: f64,
    /// What it means.
    pub meaning: String,
    /// Whether it is null where there was nothing to measure.
    pub is_nullable: bool,
    /// How tables show it and what options call it: `digits`, `head`, `name`, `after`, `within` and
    /// `better`.
    #[serde(flatten)]
    pub look: Value,
}

/// JSON Schema (2020-12) of `summary.json`. Beside its description a field has `x-label`, `x-unit`
/// (of the value), `x-shown-unit` and `x-scale` (from the value to what is shown).
#[inline]
pub fn summary_schema() -> Value {
    summary_and_sections().0
}

/// The schema, and its metrics as a list.
#[inline] // with what calls it: compiled where the schema is asked for
pub fn summary_and_sections() -> (Value, Vec<Section>) {
    let mut schema = schema_with_looks();
    let sections = sections_of(&schema);
    leave_out_looks(&mut schema);
    (schema, sections)
}

/// The schema, in whose fields `x-look` is how tables show them.
#[inline]
fn schema_with_looks() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Summary>().to_value();
    join_lines(&mut schema);
    schema["x-version"] = json!(RESULTS_VERSION);
    schema
}

/// Comments have line breaks where the source has.
fn join_lines(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace("\n\n", "\0").replace('\n', " ");
                *text = text.replace('\0', "\n\n");
            }
            object.values_mut().for_each(join_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(join_lines),
        _ => {}
    }
}

/// Tables may change what they show; readers of the files need none of it.
fn leave_out_looks(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.shift_remove("x-look");
            object.values_mut().for_each(leave_out_looks);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_looks),
        _ => {}
    }
}

/// A part of the summary: what it is about, and its metrics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// Where it stands in the summary.
    pub key: String,
    /// What it is about, in paragraphs.
    pub about: String,
    /// Its metrics.
    pub metrics: Vec<Metric>,
}

/// Fields whose values have a section of their own.
const OF_THEIR_OWN: [&str; 10] = [
    "links",
    "wifi",
    "classes",
    "nodes",
    "plans",
    "responses",
    "flows",
    "quality",
    "sockets",
    "breakdown",
];

/// The parts of the summary with their metrics, in their order.
#[inline]
pub fn sections() -> Vec<Section> {
    summary_and_sections().1
}

fn sections_of(schema: &Value) -> Vec<Section> {
    let part = |key: &str, of: &str, name: &str| {
        let part = &schema["$defs"][name];
        let mut metrics = Vec::new();
        add_metrics(schema, part, of, &mut metrics);
        Section {
            key: key.to_owned(),
            about: text(&part["description"]),
            metrics,
        }
    };
    let mut run = Vec::new();
    add_metrics(schema, schema, "", &mut run);
    vec![
        Section {
            key: String::new(),
            about: text(&schema["description"]),
            metrics: run,
        },
        part(
            "links.<link>.<direction>",
            "links.<link>.<direction>.",
            "LinkSummary",
        ),
        part(
            "links.<link>.<direction>.classes.<class>",
            "links.<link>.<direction>.classes.<class>.",
            "TransitSummary",
        ),
        part(
            "wifi.<stations>.<direction>",
            "wifi.<stations>.<direction>.",
            "AirSummary",
        ),
        part(
            "links.<link>.<direction>.nodes.<node>",
            "links.<link>.<direction>.nodes.<node>.",
            "PartSummary",
        ),
        part(
            "links.<link>.<direction>.plans.<plan>",
            "links.<link>.<direction>.plans.<plan>.",
            "PartSummary",
        ),
        part("responses.<class>", "responses.<class>.", "ResponseSummary"),
        part("flows.<class>", "flows.<class>.", "FlowSummary"),
        part("quality.<class>", "quality.<class>.", "QualitySummary"),
        part("sockets.<side>", "sockets.<side>.", "SocketSummary"),
        part(
            "breakdown.<class>.<band>",
            "breakdown.<class>.<band>.",
            "PartsSummary",
        ),
        part(
            "breakdown.<class>.<band>.links.<link>.<direction>",
            "breakdown.<class>.<band>.links.<link>.<direction>.",
            "LinkPartsSummary",
        ),
    ]
}

/// Adds the fields of an object, and the fields of objects in it.
fn add_metrics(root: &Value, object: &Value, before: &str, metrics: &mut Vec<Metric>) {
    for (name, field) in object["properties"].as_object().into_iter().flatten() {
        if OF_THEIR_OWN.contains(&name.as_str()) {
            continue;
        }
        let inner = field["anyOf"][0]["$ref"].as_str();
        if let Some(inner) = inner.and_then(|inner| root.pointer(&inner[1..])) {
            add_metrics(root, inner, &format!("{before}{name}."), metrics);
            continue;
        }
        let by_reason = field["type"] == "object";
        let ends = if by_reason { ".<reason>" } else { "" };
        let types = field["type"].as_array();
        metrics.push(Metric {
            key: format!("{before}{name}{ends}"),
            label: text(&field["x-label"]),
            unit: text(&field["x-unit"]),
            shown_unit: text(&field["x-shown-unit"]),
            scale: field["x-scale"].as_f64().unwrap_or(1.0),
            meaning: text(&field["description"]),
            is_nullable: types.is_some_and(|types| types.contains(&json!("null"))),
            look: field["x-look"].clone(),
        });
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_says_what_it_is() {
        let metrics: Vec<_> = sections()
            .into_iter()
            .flat_map(|part| part.metrics)
            .collect();
        assert!(metrics.len() > 50, "{}", metrics.len());
        for metric in &metrics {
            assert!(!metric.label.is_empty(), "{metric:?}");
            assert!(metric.meaning.ends_with('.'), "{metric:?}");
            assert!(!metric.unit.is_empty() && metric.scale > 0.0, "{metric:?}");
            let unit = if metric.key.ends_with("_s") { "s" } else { "" };
            assert!(unit.is_empty() || metric.unit == unit, "{metric:?}");
        }
        for key in [
            "flows.<class>.retransmission_shares.several",
            "links.<link>.<direction>.drops.<reason>",
            "links.<link>.<direction>.classes.<class>.left_packets",
            "links.<link>.<direction>.plans.<plan>.at_ceiling",
        ] {
            assert!(metrics.iter().any(|metric| metric.key == key), "{key}");
        }
    }

    #[test]
    fn what_is_said_of_the_run_itself_stands_apart() {
        let sections = sections();
        let keys = sections[0].metrics.iter().map(|metric| &*metric.key);
        let known = [
            "scenario",
            "seed",
            "simulated_s",
            "measured_s",
            "events",
            "version",
        ];
        assert_eq!(keys.collect::<Vec<_>>(), known);
        // Comments of several lines are one; paragraphs stay.
        let link = &sections[1].about;
        assert_eq!(
            link.lines().filter(|line| !line.is_empty()).count(),
            2,
            "{link}"
        );
        let schema = summary_schema();
        assert_eq!(schema["x-version"], RESULTS_VERSION);
        let about =
            schema["$defs"]["LinkSummary"]["properties"]["queue_mean_packets"]["description"]
                .as_str()
                .unwrap();
        assert!(about.contains("the device ring"), "{about}");
    }

    #[test]
    fn a_percentile_is_shown_as_it_is_declared() {
        let metrics: Vec<_> = sections()
            .into_iter()
            .flat_map(|part| part.metrics)
            .collect();
        let found = |key: &str| metrics.iter().find(|metric| metric.key == key).unwrap();
        let delay = found("links.<link>.<direction>.sojourn_p999_s");
        assert_eq!(delay.label, "99.9 % queueing delay");
        assert!(
            delay
                .meaning
                .starts_with("99.9th percentile of the queueing")
        );
        assert_eq!(
            (&delay.look["name"], &delay.look["digits"]),
            (&json!("delay_p999"), &Value::Null)
        );
        let median = found("responses.<class>.p50_s");
        assert_eq!(
            (median.label.as_str(), median.meaning.as_str()),
            ("median", "Median.")
        );
        assert_eq!(
            (&median.look["head"], &median.look["digits"]),
            (&json!("p50 s"), &json!(3))
        );
        assert_eq!(found("flows.<class>.duration_p75_s").look["name"], "");
        assert_eq!(crate::FlowSummary::DURATION_P, [0.5, 0.75, 0.9, 0.95, 0.99]);
        assert_eq!(crate::LinkSummary::SOJOURN_P[4], 0.999);
        // Readers of the file need none of it.
        assert!(!summary_schema().to_string().contains("x-look"));
    }

    #[test]
    fn renamed_keys_have_gone_and_their_names_are_there() {
        let metrics: Vec<_> = sections()
            .into_iter()
            .flat_map(|part| part.metrics)
            .collect();
        let has = |name: &str| {
            let end = format!(".{name}");
            metrics.iter().any(|metric| metric.key.ends_with(&end))
        };
        for (old, new) in RENAMED {
            assert!(!has(old) && has(new), "{old} {new}");
        }
    }
}
