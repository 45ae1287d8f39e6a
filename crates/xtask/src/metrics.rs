//! The head of docs/metrics.md, made from the declarations of the summary and of the tables.

use std::collections::HashSet;
use std::fmt::Write;

use aqmlab_parquet::{Column, TABLES, TableAbout};
use aqmlab_record::{Metric, Section, sections};

use crate::scenario::{cell, lower};

/// The head of docs/metrics.md: every metric and every column with its meaning.
pub(crate) fn page() -> String {
    let mut page = include_str!("metrics.md").to_owned();
    let mut described = HashSet::new();
    for alike in sections().chunk_by(have_the_same_keys) {
        let headings = alike.iter().map(|section| match section.key.as_str() {
            "" => "The run".to_owned(),
            key => format!("`{key}`"),
        });
        let headings = headings.collect::<Vec<_>>().join(", ");
        let [section, ..] = alike else { continue };
        page += &format!("\n## {headings}\n\n{}\n\n", section.about);
        page += "| key | meaning |\n| --- | --- |\n";
        let (known, new): (Vec<_>, Vec<_>) = section.metrics.iter().cloned().partition(|metric| {
            let key = own(&metric.key, &section.key);
            key.starts_with("sojourn_") && !described.insert(key.to_owned())
        });
        for alike in new.chunk_by(are_percentiles_of_one) {
            metric_row(&mut page, alike, &section.key);
        }
        if !known.is_empty() {
            let keys = keys(&known, &section.key);
            page += &format!("| {keys} | As for the link, of these packets. |\n");
        }
    }
    page += "\n## The Parquet files\n\n";
    page += include_str!("tables.md");
    page += "\n### Columns of several tables\n\n";
    column_rows(&mut page, &shared());
    for table in &TABLES {
        columns_of(&mut page, table);
    }
    page
}

/// Whether two sections differ in what they are about only by name.
fn have_the_same_keys(one: &Section, next: &Section) -> bool {
    let keys = |section: &Section| -> Vec<_> {
        let keys = section.metrics.iter();
        keys.map(|metric| own(&metric.key, &section.key).to_owned())
            .collect()
    };
    one.about == next.about && keys(one) == keys(next)
}

/// A key without its section.
fn own<'a>(key: &'a str, section: &str) -> &'a str {
    key.strip_prefix(section)
        .unwrap_or(key)
        .trim_start_matches('.')
}

/// A row for a metric, or for the percentiles of the same values: it describes the first of them.
fn metric_row(page: &mut String, alike: &[Metric], section: &str) {
    let [first, ..] = alike else { return };
    let meaning = in_unit(&first.key, &first.unit, &cell(&first.meaning));
    let _ = writeln!(page, "| {} | {meaning} |", keys(alike, section));
}

/// The keys of metrics, for the first cell of a row.
fn keys(metrics: &[Metric], section: &str) -> String {
    let keys = metrics
        .iter()
        .map(|metric| format!("`{}`", own(&metric.key, section)));
    keys.collect::<Vec<_>>().join(", ")
}

fn are_percentiles_of_one(one: &Metric, next: &Metric) -> bool {
    percentile(one).is_some() && percentile(one) == percentile(next)
}

/// What comes before the rank in a percentile's key, and after it.
fn percentile(metric: &Metric) -> Option<(&str, &str)> {
    let key = metric.key.as_str();
    let mut ranks = key.match_indices('p').filter_map(|(at, _)| {
        let (rank, after) = key[at + 1..].split_once('_')?;
        let is_rank = !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit());
        is_rank.then_some((&key[..at], after))
    });
    ranks.next_back()
}

fn columns_of(page: &mut String, table: &TableAbout) {
    *page += &format!("\n### `{}`\n\nA row is: {}", table.file, lower(table.row));
    let shared = shared();
    let (known, own): (Vec<Column>, Vec<_>) = table
        .columns
        .iter()
        .copied()
        .partition(|column| shared.iter().any(|other| is_same(other, column)));
    if !known.is_empty() {
        let names = known.iter().map(|column| format!("`{}`", column.name));
        *page += &format!(" Also: {}.", names.collect::<Vec<_>>().join(", "));
    }
    *page += "\n";
    let parts = parts();
    let is_part = |column: &Column| {
        let part = column.name.strip_suffix("_ns");
        part.is_some_and(|name| parts.iter().any(|known| known == name))
    };
    let (with_parts, shown): (Vec<_>, Vec<_>) = own.into_iter().partition(is_part);
    if !shown.is_empty() {
        *page += "\n";
        column_rows(page, &shown);
    }
    if !with_parts.is_empty() {
        *page += "\nThe other columns are the parts of the response time, in whole nanoseconds (uint64). \
                  They have the names of [the summary's parts](#breakdownclassband), with `_ns` for `_s`.\n";
    }
}

fn column_rows(page: &mut String, columns: &[Column]) {
    *page += "| column | meaning |\n| --- | --- |\n";
    for column in columns {
        let name = column.name;
        let meaning = in_unit(name, column.unit.unwrap_or_default(), &cell(column.meaning));
        let empty = if column.is_nullable {
            " (may be empty)"
        } else {
            ""
        };
        let _ = writeln!(page, "| `{name}` | {meaning}{empty} |");
    }
}

/// Columns that mean the same in two tables or more, in the order in which they come.
fn shared() -> Vec<Column> {
    let mut found: Vec<Column> = Vec::new();
    for column in TABLES.iter().flat_map(|table| table.columns) {
        let holders = TABLES.iter().filter(|table| {
            let mut columns = table.columns.iter();
            columns.any(|other| is_same(other, column))
        });
        if holders.count() >= 2 && !found.iter().any(|other| is_same(other, column)) {
            found.push(*column);
        }
    }
    found
}

fn is_same(one: &Column, other: &Column) -> bool {
    let looks = |column: &Column| (column.name, column.kind, column.meaning, column.is_nullable);
    looks(one) == looks(other)
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

/// A meaning with the unit, where neither the key's end nor what is counted shows it.
/// The page says once how exact percentiles of delays are.
fn in_unit(key: &str, unit: &str, meaning: &str) -> String {
    let meaning = meaning
        .replace(", exact to 1/128", "")
        .replace(", to within 1/128", "");
    let end = match unit {
        "1" | "" | "packets" | "datagrams" | "segments" => return meaning,
        "bit/s" => "bps",
        unit => unit,
    };
    if key.rsplit(['_', '.']).next() == Some(end) {
        return meaning;
    }
    format!("{meaning} In {unit}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_shown_where_no_key_and_no_count_shows_it() {
        assert_eq!(in_unit("wait_s", "s", "A wait."), "A wait.");
        assert_eq!(in_unit("rate_bps", "bit/s", "A rate."), "A rate.");
        assert_eq!(in_unit("losses", "packets", "Losses."), "Losses.");
        assert_eq!(in_unit("size", "bytes", "A size."), "A size. In bytes.");
    }

    #[test]
    fn percentiles_of_the_same_values_are_a_row() {
        let sections = sections();
        let rows = sections.iter().flat_map(|section| {
            let rows = section.metrics.chunk_by(are_percentiles_of_one);
            rows.map(|row| keys(row, &section.key))
        });
        let rows: Vec<_> = rows.collect();
        assert!(
            rows.contains(
                &"`queue_p50_packets`, `queue_p95_packets`, `queue_p99_packets`".to_owned()
            )
        );
        assert!(rows.contains(&"`sojourn_mean_s`".to_owned()));
    }
}
