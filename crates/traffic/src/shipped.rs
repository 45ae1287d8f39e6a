//! Numbers that ship with the crate, as text that people can check.

use aqmlab_declare::tagged;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

const WELL_FORMED: &str = "what ships with the crate is well formed";

/// The rows of a table: CSV with a header and these columns.
pub(crate) fn rows<const N: usize>(csv: &str) -> Vec<[f64; N]> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows = reader.records().map(|record| {
        let record = record.expect(WELL_FORMED);
        assert_eq!(record.len(), N, "{WELL_FORMED}");
        std::array::from_fn(|column| record[column].parse().expect(WELL_FORMED))
    });
    rows.collect()
}

/// The parameters of a model: TOML.
pub(crate) fn parameters<T: DeserializeOwned>(toml: &str) -> T {
    let table: Table = toml.parse().expect(WELL_FORMED);
    // As scenarios are read: what toml has of its own to read types is much code for the same.
    tagged::from_value(Value::Table(table)).expect(WELL_FORMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_all_their_digits() {
        let expected = [[0.1, 1e-9], [-2.0, 12_345_678_901.5]];
        assert_eq!(rows("x,y\n0.1,0.000000001\n-2,12345678901.5\n"), expected);
    }

    #[test]
    #[should_panic(expected = "well formed")]
    fn a_row_with_another_column_is_noticed() {
        rows::<2>("x,y,z\n1,2,3\n");
    }
}
