//! Tables that a script of the project computed on its own, apart from this code: step by step what
//! happens on the air, in whole nanoseconds. `wifi_dcf.csv`: three nodes contend. `wifi_aggregate.csv`:
//! an access point shares the time on the air between two stations. `wifi_ppdu.csv`: how long
//! transmissions last.

use std::collections::BTreeMap;

/// A row by the names of its columns.
pub(super) type Row = BTreeMap<String, String>;

/// The rows of a table.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let row = |line: &str| {
        let cells = line.split(',').map(str::to_owned);
        head.iter()
            .map(|name| (*name).to_owned())
            .zip(cells)
            .collect()
    };
    lines.map(row).collect()
}

/// Numbers as the tables write them: `1`, `2 3`, `4..40`.
pub(super) fn numbers(all: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in all {
        match runs.last_mut() {
            Some(run) if run.1 + 1 == number => run.1 = number,
            _ => runs.push((number, number)),
        }
    }
    let text = runs.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first} {last}"),
        _ => format!("{first}..{last}"),
    });
    text.collect::<Vec<_>>().join(" ")
}
