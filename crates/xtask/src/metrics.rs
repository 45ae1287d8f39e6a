//! The head of docs/metrics.md, made from the declarations of the summary and of the tables.

use std::fmt::Write;

use aqmlab_parquet::{Column, TABLES, TableAbout};
use aqmlab_record::{Metric, sections};

use crate::scenario::cell;

/// The head of docs/metrics.md: every metric and every column with its unit and meaning.
pub(crate) fn page() -> String {
    let mut page = include_str!("metrics.md").to_owned();
    for section in sections() {
        let heading = match section.key.as_str() {
            "" => "The run".to_owned(),
            key => format!("`{key}`"),
        };
        page += &format!("\n## {heading}\n\n{}\n\n", section.about);
        page += "| key | unit | meaning |\n| --- | --- | --- |\n";
        for alike in section.metrics.chunk_by(are_percentiles_of_one) {
            metric_row(&mut page, alike, &section.key);
        }
    }
    page += "\n## The Parquet files\n\n";
    page += include_str!("tables.md");
    for table in &TABLES {
        columns_of(&mut page, table);
    }
    page
}

/// A row for a metric, or for the percentiles of the same values.
fn metric_row(page: &mut String, alike: &[Metric], section: &str) {
    let keys = alike.iter().map(|metric| {
        let key = metric.key.strip_prefix(section).unwrap_or(&metric.key);
        format!("`{}`", key.trim_start_matches('.'))
    });
    let keys = keys.collect::<Vec<_>>().join(", ");
    let [.., last] = alike else { return };
    let ranks = alike.iter().filter_map(percentile).map(|(rank, _)| rank);
    let meaning = match (ranks.collect::<Vec<_>>().as_slice(), percentile(last)) {
        ([first @ .., end], Some((_, of))) if !first.is_empty() => {
            format!("{} and {end}{PERCENTILE}{of}", first.join(", "))
        }
        _ => last.meaning.clone(),
    };
    let (unit, meaning) = (unit(&last.unit), cell(&meaning));
    let _ = writeln!(page, "| {keys} | {unit} | {meaning} |");
}

/// What stands in a meaning between a rank and its values.
const PERCENTILE: &str = " percentile";

/// The rank of a percentile, and of what it is.
fn percentile(metric: &Metric) -> Option<(&str, &str)> {
    metric.meaning.split_once(PERCENTILE)
}

fn are_percentiles_of_one(one: &Metric, next: &Metric) -> bool {
    let of = |metric| percentile(metric).map(|(_, of)| of);
    of(one).is_some() && of(one) == of(next) && one.unit == next.unit
}

fn columns_of(page: &mut String, table: &TableAbout) {
    *page += &format!(
        "\n### `{}`\n\nA row is: {}\n\n",
        table.file,
        lower(table.row)
    );
    *page += "| column | type | unit | meaning |\n| --- | --- | --- | --- |\n";
    let parts = parts();
    let is_part = |column: &Column| {
        let part = column.name.strip_suffix("_ns");
        part.is_some_and(|name| parts.iter().any(|known| known == name))
    };
    for column in table.columns {
        if is_part(column) {
            continue;
        }
        let Column {
            name,
            kind,
            meaning,
            is_nullable,
            ..
        } = column;
        let unit = column.unit.unwrap_or_default();
        let nullable = if *is_nullable { ", may be empty" } else { "" };
        let meaning = cell(meaning);
        let _ = writeln!(page, "| `{name}` | {kind}{nullable} | {unit} | {meaning} |");
    }
    if table.columns.iter().any(is_part) {
        *page += "\nThe other columns are the parts of the response time, in whole nanoseconds (uint64). \
                  They have the names of [the summary's parts](#breakdownclassband), with `_ns` for `_s`.\n";
    }
}

/// The parts of a response time that the summary describes, without their unit. A table has them
/// in nanoseconds, and its columns need no second description.
fn parts() -> Vec<String> {
    let breakdown = sections();
    let breakdown = breakdown
        .iter()
        .filter(|section| section.key == "breakdown.<class>.<band>");
    let keys = breakdown.flat_map(|section| &section.metrics);
    let names = keys.filter_map(|metric| metric.key.rsplit('.').next()?.strip_suffix("_s"));
    names
        .filter(|name| *name != "response")
        .map(str::to_owned)
        .collect()
}

/// A number without a unit has none to show.
fn unit(name: &str) -> &str {
    if name == "1" { "" } else { name }
}

/// A sentence's beginning inside another sentence.
fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
