//! The records of a run as Parquet files, and its capture, in a directory.
//!
//! Rows go out in groups, so memory stays bounded. A table's columns are declared once, in
//! `tables`: their names, types, units and meanings.

mod breakdown;
mod chunk;
mod column;
mod encode;
mod recorder;
mod reference;
mod schema;
mod story;
mod table;
mod tables;
mod text;

use std::path::Path;

use aqmlab_record::{Discard, Records};
use aqmlab_scenario::Measure;

pub use column::{Column, Layout, TableAbout};
pub use recorder::ParquetRecords;
pub use reference::result_schema;
pub use schema::Kind;
pub use tables::TABLES;
pub use text::json_text;

/// Records what `measure` asks for in `directory`; no directory, no records.
pub fn recorder(directory: Option<&Path>, measure: &Measure) -> Box<dyn Records> {
    match directory {
        Some(directory) => Box::new(ParquetRecords::new(directory, measure)),
        None => Box::new(Discard),
    }
}
