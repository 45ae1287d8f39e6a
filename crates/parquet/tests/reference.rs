//! The declarations of results say what there is.

use std::collections::BTreeSet;

use aqmlab_parquet::{TABLES, result_schema};

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
