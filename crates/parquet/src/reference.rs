//! What a run's files hold, as data: from the declarations of the summary and of the tables.

use aqmlab_record::{RENAMED, RESULTS_VERSION, summary_and_sections};
use serde_json::{Value, json};

use crate::tables::TABLES;

/// What results hold: `version`; `summary`, the JSON Schema of `summary.json`; `sections`, its
/// metrics as lists; `tables`, the Parquet files with their columns; `renamed`, the new name of
/// each key that has been renamed.
#[inline]
pub fn result_schema() -> Value {
    let (summary, sections) = summary_and_sections();
    let renamed = RENAMED.map(|(old, new)| (old.to_owned(), json!(new)));
    json!({
        "version": RESULTS_VERSION,
        "summary": summary,
        "sections": sections,
        "tables": TABLES,
        "renamed": Value::Object(renamed.into_iter().collect()),
    })
}
