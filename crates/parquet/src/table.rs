//! A Parquet file that is being written.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use aqmlab_record::RunError;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::chunk::{Chunk, Zstd};
use crate::column::{Columns, FixedColumns};
use crate::schema::{Field, arrow_types, parquet_types};

/// Rows of a row group. Its pages wait in memory for their end.
const ROW_GROUP: usize = 1 << 20;

/// A Parquet file with its columns.
pub(crate) struct Table<C> {
    writer: SerializedFileWriter<File>,
    columns: C,
    /// Rows whose values wait in the columns.
    waiting: usize,
    /// The pages of the row group that fills, and its rows.
    chunks: Vec<Chunk>,
    rows: usize,
}

impl<C: Columns> Table<C> {
    /// Makes the file, in `directory`.
    pub(crate) fn create(directory: &Path, classes: &[String]) -> Result<Self, RunError>
    where
        C: FixedColumns,
    {
        Self::with_columns(directory, C::new(classes), &C::fields())
    }

    /// Makes the file with columns whose fields are these.
    pub(crate) fn with_columns(
        directory: &Path,
        columns: C,
        fields: &[Field],
    ) -> Result<Self, RunError> {
        let unwritable = Self::unwritable;
        let path = directory.join(C::ABOUT.file);
        let file = File::create(&path).map_err(|error| unwritable(error.into()))?;
        let compressed = |field: &Field| C::ABOUT.layout.compresses(field.kind);
        let chunks = fields.iter().map(|it| Chunk::new(compressed(it))).collect();
        Ok(Self {
            writer: writer(file, fields).map_err(unwritable)?,
            columns,
            waiting: 0,
            chunks,
            rows: 0,
        })
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, row: C::Row<'_>) {
        self.columns.push(row);
        self.waiting += 1;
    }

    /// Encodes the rows that wait, if there are enough.
    #[inline]
    pub(crate) fn write_page(&mut self, zstd: &mut Zstd) -> Result<(), RunError> {
        if self.waiting < C::ABOUT.layout.page() {
            return Ok(());
        }
        self.write(zstd).map_err(Self::unwritable)
    }

    fn write(&mut self, zstd: &mut Zstd) -> Result<()> {
        if self.waiting > 0 {
            for (chunk, page) in self.chunks.iter_mut().zip(self.columns.pages()) {
                chunk.push(page, zstd)?;
            }
        }
        self.rows += self.waiting;
        self.waiting = 0;
        if self.rows >= ROW_GROUP {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let described = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        let dictionaries = self.columns.dictionaries();
        for ((chunk, column), words) in self.chunks.iter_mut().zip(described).zip(dictionaries) {
            chunk.write_to(&mut group, column, words)?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the rows that wait and ends the file.
    pub(crate) fn close(mut self, zstd: &mut Zstd) -> Result<(), RunError> {
        let mut close = || {
            self.write(zstd)?;
            self.end_group()?;
            self.writer.finish()
        };
        close().map(drop).map_err(Self::unwritable)
    }

    /// Which file cannot be written, and why in the system's words.
    fn unwritable(error: ParquetError) -> RunError {
        let reason = match error {
            ParquetError::External(reason) => reason.to_string(),
            other => other.to_string(),
        };
        RunError::Record(format!("{}: {reason}", C::ABOUT.file))
    }
}

/// The file, whose metadata holds the types of Arrow that our columns stand for.
fn writer(file: File, fields: &[Field]) -> Result<SerializedFileWriter<File>> {
    let properties = WriterProperties::builder()
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![arrow_types(fields)]))
        .build();
    SerializedFileWriter::new(file, parquet_types(fields)?, Arc::new(properties))
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field as Value, Row as Read, RowAccessor};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::Encoded;
    use crate::column::{
        Buffer, ClassNames, Column, Layout, OptionalValues, TableAbout, Values, Words, columns,
    };

    type Row = (u32, u64, f64, bool, Option<f64>, u8, u8);

    columns! {
        /// A column of each kind.
        Everything("everything.parquet", Small) of (&'a Row) |row| {
            /// Whole.
            small: Values<u32> = row.0,
            /// Whole, wide.
            wide: Values<u64> = row.1,
            /// With a fraction.
            fraction: Values<f64> = row.2,
            /// True or not.
            truth: Values<bool> = row.3,
            /// May lack.
            optional: OptionalValues = row.4,
            /// By number.
            class: ClassNames = usize::from(row.5),
            /// As it comes.
            word: Words = WORDS[usize::from(row.6)],
        }
    }

    const WORDS: [&str; 4] = ["", "one", "longer than one", "\u{fc}"];

    fn classes() -> Vec<String> {
        (0..5).map(|number| format!("class {number}")).collect()
    }

    /// Rows as they stand in the file, and its row groups. Rows are encoded whenever `page` wait.
    fn written_and_read(rows: &[Row], page: usize, name: &str) -> (Vec<Row>, usize) {
        let name = format!("aqmlab-table-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let mut zstd = Zstd::new();
        let mut table = Table::<Everything>::create(&directory, &classes()).unwrap();
        for row in rows {
            table.push(row);
            if table.waiting == page {
                table.write(&mut zstd).unwrap();
            }
        }
        table.close(&mut zstd).unwrap();
        let file = File::open(directory.join("everything.parquet")).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let groups = reader.num_row_groups();
        let optional = |row: &Read| match row.get_column_iter().nth(4) {
            Some((_, Value::Double(value))) => Some(*value),
            _ => None,
        };
        let class = |name: &String| classes().iter().position(|it| it == name);
        let word = |name: &String| WORDS.iter().position(|it| it == name);
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        let read = rows.map(|row| {
            (
                row.get_uint(0).unwrap(),
                row.get_ulong(1).unwrap(),
                row.get_double(2).unwrap(),
                row.get_bool(3).unwrap(),
                optional(&row),
                class(row.get_string(5).unwrap()).unwrap() as u8,
                word(row.get_string(6).unwrap()).unwrap() as u8,
            )
        });
        let read = read.collect();
        (read, groups)
    }

    /// Values with the differences, runs and ends that encodings care about.
    fn row() -> impl Strategy<Value = Row> {
        let small = prop_oneof![Just(0), Just(7), 0..200_u32, any::<u32>()];
        let wide = prop_oneof![Just(0), Just(u64::MAX), 0..200_u64, any::<u64>()];
        let fraction = prop_oneof![Just(0.5), -1e9..1e9];
        let optional = prop_oneof![Just(None), (0.0..1.0).prop_map(Some)];
        (
            small,
            wide,
            fraction,
            any::<bool>(),
            optional,
            0..5_u8,
            0..4_u8,
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            runs in vec((row(), prop_oneof![Just(1), 1..40_usize]), 0..60),
            page in prop_oneof![Just(1), 2..300_usize],
        ) {
            let repeat = |(row, count): &(Row, usize)| vec![*row; *count];
            let rows: Vec<Row> = runs.iter().flat_map(repeat).collect();
            let (read, groups) = written_and_read(&rows, page, "any");
            prop_assert_eq!(groups, usize::from(!rows.is_empty()));
            prop_assert_eq!(read, rows);
        }
    }

    /// A device that is always full.
    #[test]
    fn an_error_names_the_file_and_the_reason() {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let directory = std::env::temp_dir();
        let directory = directory.join(format!("aqmlab-table-full-{}", std::process::id()));
        let message = |failed: Result<(), RunError>| failed.unwrap_err().to_string();
        let expected = "cannot write everything.parquet: ";
        let missing = message(Table::<Everything>::create(&directory, &classes()).map(drop));
        assert!(missing.starts_with(expected), "{missing}");
        std::fs::create_dir_all(&directory).unwrap();
        let mut table = Table::<Everything>::create(&directory, &classes()).unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let schema = table.writer.schema_descr().root_schema_ptr();
        table.writer = SerializedFileWriter::new(full(), schema, properties).unwrap();
        table.push(&(1, 2, 0.5, true, None, 1, 2));
        let full = message(table.close(&mut Zstd::new()));
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(
            full,
            format!("{expected}No space left on device (os error 28)")
        );
    }

    #[test]
    fn a_long_table_has_several_row_groups() {
        let row = |number: u32| {
            (
                number,
                u64::from(number % 9),
                0.25,
                number.is_multiple_of(3),
                None,
                1,
                2,
            )
        };
        let rows: Vec<Row> = (0..ROW_GROUP as u32 + 10).map(row).collect();
        let (read, groups) = written_and_read(&rows, 1 << 12, "long");
        assert!(read == rows);
        assert_eq!(groups, 2);
    }
}
