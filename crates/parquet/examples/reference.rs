//! Renews what is generated from the declarations of results: docs/summary.schema.json and the
//! head of docs/metrics.md.

use std::path::Path;
use std::{fs, io};

use aqmlab_parquet::metrics_page;
use aqmlab_record::summary_schema;
use aqmlab_scenario::BY_HAND;

fn main() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = docs.join("metrics.md");
    let page = fs::read_to_string(&path)?;
    let by_hand = page.split_once(BY_HAND).map_or("", |(_, rest)| rest);
    fs::write(path, format!("{}\n{BY_HAND}{by_hand}", metrics_page()))?;
    let schema = format!("{:#}\n", summary_schema());
    fs::write(docs.join("summary.schema.json"), schema)
}
