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
        for metric in &section.metrics {
            metric_row(&mut page, metric, &section.key);
        }
    }
    page += "\n## The Parquet files\n\n";
    page += include_str!("tables.md");
    for table in &TABLES {
        columns_of(&mut page, table);
    }
    page
}

fn metric_row(page: &mut String, metric: &Metric, section: &str) {
    let key = metric.key.strip_prefix(section).unwrap_or(&metric.key);
    let key = key.trim_start_matches('.');
    let meaning = cell(&metric.meaning);
    let unit = unit(&metric.unit);
    let _ = writeln!(page, "| `{key}` | {unit} | {meaning} |");
}

fn columns_of(page: &mut String, table: &TableAbout) {
    *page += &format!(
        "\n### `{}`\n\nA row is: {}\n\n",
        table.file,
        lower(table.row)
    );
    *page += "| column | type | unit | meaning |\n| --- | --- | --- | --- |\n";
    for column in table.columns {
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
