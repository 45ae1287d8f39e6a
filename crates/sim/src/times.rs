//! The table `distribution.parquet`: all response times and durations of connections, in bins.

use std::path::Path;
use std::sync::Arc;

use aqmlab_record::{FlowStats, ResponseStats};
use arrow::array::{ArrayRef, Float64Array, UInt64Array};
use arrow::datatypes::DataType;

use crate::RunError;
use crate::recorder::{Table, Words, column, word};

/// Writes `distribution.parquet`: for every class all response times and all durations of
/// connections, as counts in bins.
pub(crate) fn write_distribution<'a>(
    path: &Path,
    classes: impl Iterator<Item = (&'a str, &'a ResponseStats, &'a FlowStats)>,
) -> Result<(), RunError> {
    let classes: Vec<_> = classes.collect();
    let names: Vec<&str> = classes.iter().map(|(name, ..)| *name).collect();
    let mut of = Words::new(&["response", "flow"]);
    let mut class = Words::new(&names);
    let (mut below, mut count) = (Vec::new(), Vec::new());
    for (number_of_class, (_, responses, flows)) in classes.iter().enumerate() {
        for (what, times) in [responses.times(), flows.durations()]
            .into_iter()
            .enumerate()
        {
            for (end, number) in times.bins() {
                of.append(what);
                class.append(number_of_class);
                below.push(end);
                count.push(number);
            }
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(of.finish()),
        Arc::new(class.finish()),
        Arc::new(Float64Array::from(below)),
        Arc::new(UInt64Array::from(count)),
    ];
    let mut table = Table::create(
        path,
        vec![
            word("of"),
            word("class"),
            column("below_s", &DataType::Float64),
            column("count", &DataType::UInt64),
        ],
    )?;
    table.write(columns)?;
    table.close()
}
