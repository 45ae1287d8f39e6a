//! The tables that a scenario refers to: read once, then part of the scenario.

use std::io;

use aqmlab_declare::tagged::quoted;
use aqmlab_net::Time;
use aqmlab_traffic::{Rtt, Sizes};

use crate::variable::{Trace, check_opportunities};
use crate::{Scenario, ScenarioError};

/// How a scenario's tables are read: the argument is what the scenario says, relative to the
/// scenario's folder.
pub type ReadFile<'a> = dyn FnMut(&str) -> io::Result<String> + 'a;

/// The largest scenario, in bytes.
pub const MAX_SCENARIO_BYTES: usize = 16 << 20;

/// The largest table that a scenario may refer to, in bytes.
pub const MAX_TABLE_BYTES: usize = 64 << 20;

/// Replaces every `file` of the scenario by what it holds.
pub(crate) fn inline(
    scenario: &mut Scenario,
    read: &mut ReadFile<'_>,
) -> Result<(), ScenarioError> {
    for (path, link) in scenario.topology.named_links_mut() {
        if let Some(Trace {
            file,
            opportunities,
            ..
        }) = &mut link.trace
        {
            let path = format!("topology.{path}.trace");
            let parse = read_opportunities;
            inline_file(&path, file, opportunities, "opportunities", parse, read)?;
        }
    }
    for class in &mut scenario.traffic {
        let path = format!("traffic.{}", class.name);
        let rtt = format!("{path}.rtt");
        match &mut class.rtt {
            Rtt::Pairs { file, matrix, .. } => {
                inline_file(&rtt, file, matrix, "matrix", read_matrix, read)?;
            }
            Rtt::Empirical { file, cdf } => {
                inline_file(&rtt, file, cdf, "cdf", read_rtts, read)?;
            }
            _ => {}
        }
        for (key, sizes) in class.model.parameters_mut().sizes_mut() {
            if let Sizes::Empirical { file, cdf } = sizes {
                inline_file(&format!("{path}.{key}"), file, cdf, "cdf", read_cdf, read)?;
            }
        }
    }
    Ok(())
}

/// Moves the rows of `file`, if one is named, to `rows`.
fn inline_file<T>(
    path: &str,
    file: &mut Option<String>,
    rows: &mut Vec<T>,
    rows_key: &str,
    parse: impl Fn(&str) -> Result<Vec<T>, String>,
    read: &mut ReadFile<'_>,
) -> Result<(), ScenarioError> {
    let Some(name) = file.take() else {
        if rows.is_empty() {
            let message = format!("missing; give a file, or the rows themselves as {rows_key}");
            return Err(ScenarioError::new(format!("{path}.file"), message));
        }
        return Ok(());
    };
    let wrong = |message: String| {
        let message = format!("found {}, {message}", quoted(&name));
        ScenarioError::new(format!("{path}.file"), message)
    };
    if !rows.is_empty() {
        return Err(wrong(format!(
            "but {rows_key} is given too; give one of the two"
        )));
    }
    let text = read(&name).map_err(|error| wrong(format!("which cannot be read: {error}")))?;
    if text.len() > MAX_TABLE_BYTES {
        return Err(wrong(too_large(text.len(), MAX_TABLE_BYTES)));
    }
    *rows = parse(&text).map_err(wrong)?;
    Ok(())
}

/// What an error says about a text that is too long.
pub(crate) fn too_large(bytes: usize, most: usize) -> String {
    format!(
        "which has {bytes} bytes; at most {most} ({} MiB) are read",
        most >> 20
    )
}

/// Milliseconds of opportunities, one in each line; empty lines and those that begin with # are left
/// out.
fn read_opportunities(text: &str) -> Result<Vec<u32>, String> {
    let lines = text.lines().map(str::trim).zip(1..);
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let stamps = lines.map(|(line, number)| {
        line.parse::<u32>()
            .map_err(|_| not_a_number(line, number, 1, "a whole number of milliseconds"))
    });
    let stamps = stamps.collect::<Result<Vec<_>, _>>()?;
    check_opportunities(&stamps).map_err(|message| format!("where was {message}"))?;
    Ok(stamps)
}

/// Round-trip times in milliseconds: a header, then a row for each server that begins with its
/// name.
fn read_matrix(text: &str) -> Result<Vec<Vec<Time>>, String> {
    records(text)?
        .iter()
        .enumerate()
        .map(|(index, record)| {
            let cells = record.iter().skip(1).enumerate();
            cells
                .map(|(column, cell)| milliseconds(cell, index + 2, column + 2))
                .collect()
        })
        .collect()
}

fn milliseconds(cell: &str, line: usize, column: usize) -> Result<Time, String> {
    let time: Option<Time> = format!("{cell} ms").parse().ok();
    time.ok_or_else(|| not_a_number(cell, line, column, "a number of milliseconds"))
}

/// Sizes in the first column, cumulative probabilities in the last.
fn read_cdf(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let number = |record: &csv::StringRecord, line: usize, column: usize| {
        let cell = &record[column];
        let number = cell.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| not_a_number(cell, line, column + 1, "a number"))
    };
    let rows = records(text)?;
    let rows = rows.iter().enumerate().map(|(index, record)| {
        let size = number(record, index + 2, 0)?;
        let probability = number(record, index + 2, record.len() - 1)?;
        Ok((size, probability))
    });
    rows.collect()
}

/// Round-trip times in milliseconds in the first column, cumulative probabilities in the last.
fn read_rtts(text: &str) -> Result<Vec<(Time, f64)>, String> {
    let rows = read_cdf(text)?.into_iter().enumerate();
    rows.map(|(index, (ms, cumulative))| {
        Ok((milliseconds(&ms.to_string(), index + 2, 1)?, cumulative))
    })
    .collect()
}

fn not_a_number(cell: &str, line: usize, column: usize, expected: &str) -> String {
    let cell = quoted(cell);
    format!("where line {line}, column {column} is {cell}; expected {expected}")
}

/// The rows of a CSV file with a header, all of the same length. Lines that begin with # are
/// comments.
fn records(text: &str) -> Result<Vec<csv::StringRecord>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let records: Result<Vec<_>, _> = reader.records().collect();
    let records = records.map_err(|error| match error.kind() {
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            format!("where line {line} has {len} columns, and its header {expected_len}")
        }
        _ => format!("which is not a table: {error}"),
    })?;
    match records.first() {
        None => Err("which has no rows below its header".to_owned()),
        Some(record) if record.len() < 2 => {
            Err("which has one column; expected at least two, separated by commas".to_owned())
        }
        Some(_) => Ok(records),
    }
}
