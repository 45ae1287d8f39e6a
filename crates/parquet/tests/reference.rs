//! What is generated from the declarations of results is fresh, and says what there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use aqmlab_parquet::{TABLES, metrics_page, result_schema};
use aqmlab_record::summary_schema;
use aqmlab_scenario::BY_HAND;

const RENEW: &str = "run `cargo run -p aqmlab-parquet --example reference`";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn the_metrics_page_is_fresh() {
    let page = fs::read_to_string(docs().join("metrics.md")).unwrap();
    let head = format!("{}\n{BY_HAND}", metrics_page());
    assert!(page.starts_with(&head), "docs/metrics.md: {RENEW}");
}

#[test]
fn the_schema_of_the_summary_is_fresh() {
    let file = fs::read_to_string(docs().join("summary.schema.json")).unwrap();
    let schema = format!("{:#}\n", summary_schema());
    assert!(file == schema, "docs/summary.schema.json: {RENEW}");
}

#[test]
fn every_column_says_what_it_is() {
    for table in TABLES {
        let mut names = BTreeSet::new();
        for column in table.columns {
            assert!(names.insert(column.name), "{} twice", column.name);
            assert!(column.meaning.ends_with('.'), "{column:?}");
            let seconds = column.name.ends_with("_s");
            assert_eq!(seconds, column.unit == Some("s"), "{column:?}");
        }
    }
    let tables = &result_schema()["tables"];
    assert_eq!(tables[0]["columns"][2]["name"], "below_s");
}
