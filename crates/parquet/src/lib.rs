//! The records of a run as Parquet files, and its capture, in a directory.
//!
//! Rows go out in groups, so memory stays bounded. A table's columns are declared once, in
//! `tables`: their names, types, units and meanings.

mod background;
mod chunk;
mod column;
mod encode;
mod recorder;
mod reference;
mod table;
mod tables;

use std::path::Path;

use aqmlab_record::{Discard, Records};
use aqmlab_scenario::{Measure, Record};

use background::{AtWork, BackgroundRecords};

pub use background::encoding_time;
pub use column::{Column, Layout, TableAbout};
pub use recorder::ParquetRecords;
pub use reference::result_schema;
pub use tables::TABLES;

/// Records what `measure` asks for in `directory`; no directory, no records.
///
/// Where there are rows for each exchange, connection or segment, another thread encodes them if
/// that makes no more than `threads` of this process which simulate or encode. The files are the
/// same either way.
pub fn recorder(directory: Option<&Path>, measure: &Measure, threads: usize) -> Box<dyn Records> {
    let Some(directory) = directory else {
        return Box::new(Discard);
    };
    let has_room = AtWork::count() + 2 <= threads;
    let records = Box::new(ParquetRecords::new(directory, measure));
    let wanted = |what| measure.record.contains(&what);
    let has_rows =
        wanted(Record::Responses) || wanted(Record::Flows) || measure.flow_trace.is_some();
    if has_room && has_rows {
        Box::new(BackgroundRecords::new(records))
    } else {
        records
    }
}

/// Threads that the machine, its control groups and the process's affinity leave to this process.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
