//! A Parquet file that is being written.

use std::fmt::Display;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use aqmlab_record::RunError;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::column::{Columns, FixedColumns, Layout};

/// A Parquet file with its columns.
pub(crate) struct Table<C> {
    schema: Arc<Schema>,
    writer: ArrowWriter<File>,
    columns: C,
    rows: usize,
}

impl<C: Columns> Table<C> {
    /// Makes the file, in `directory`.
    pub(crate) fn create(directory: &Path, classes: &[String]) -> Result<Self, RunError>
    where
        C: FixedColumns,
    {
        Self::with_columns(directory, C::new(classes), C::fields())
    }

    /// Makes the file with columns whose fields are these.
    pub(crate) fn with_columns(
        directory: &Path,
        columns: C,
        fields: Vec<Field>,
    ) -> Result<Self, RunError> {
        let path = directory.join(C::ABOUT.file);
        let properties = match C::ABOUT.layout {
            Layout::Small => plain().set_compression(zstd()).build(),
            Layout::Large => large(&fields),
            Layout::Bins => bins(&fields),
        };
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(&path)
            .map_err(|error| RunError::Record(format!("{}: {error}", path.display())))?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
        Ok(Self {
            schema,
            writer: writer.map_err(unwritable)?,
            columns,
            rows: 0,
        })
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, row: C::Row<'_>) {
        self.columns.push(row);
        self.rows += 1;
    }

    /// Writes the rows that wait, if there are enough.
    #[inline]
    pub(crate) fn write_group(&mut self) -> Result<(), RunError> {
        if self.rows < C::ABOUT.layout.group() {
            return Ok(());
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), RunError> {
        self.rows = 0;
        let batch =
            RecordBatch::try_new(self.schema.clone(), self.columns.finish()).map_err(unwritable)?;
        self.writer.write(&batch).map_err(unwritable)
    }

    /// Writes the rows that wait and ends the file.
    pub(crate) fn close(mut self) -> Result<(), RunError> {
        self.write()?;
        self.writer.close().map_err(unwritable)?;
        Ok(())
    }
}

fn unwritable(error: impl Display) -> RunError {
    RunError::Record(error.to_string())
}

/// How a file with a row for each exchange or connection is written.
///
/// Whole numbers are small or lie near those before them: differences are shorter than what zstd
/// makes of them. The nanoseconds of times look random: zstd would save a tenth.
fn large(fields: &[Field]) -> WriterProperties {
    let mut properties = plain();
    for field in fields {
        let column = ColumnPath::from(field.name().as_str());
        properties = match field.data_type() {
            DataType::UInt32 | DataType::UInt64 => {
                properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
            }
            DataType::Float64 => properties,
            _ => properties.set_column_compression(column, zstd()),
        };
    }
    properties.build()
}

/// How a file of bins is written: words as a dictionary, whole numbers as differences, their ends
/// compressed.
///
/// A zstd context is 88 kB to be cleared, for every column anew. In a short run that shows, so only
/// the column gets one that would be large without.
fn bins(fields: &[Field]) -> WriterProperties {
    let mut properties = plain();
    for field in fields {
        let column = ColumnPath::from(field.name().as_str());
        properties = match field.data_type() {
            DataType::UInt32 | DataType::UInt64 => {
                properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
            }
            DataType::Float64 => properties.set_column_compression(column, zstd()),
            _ => properties.set_column_dictionary_enabled(column, true),
        };
    }
    properties.build()
}

/// Nothing compressed, and nothing that costs time per value: no column statistics, no
/// dictionaries. Words repeat so evenly that zstd does for them what a dictionary would.
fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
}

fn zstd() -> Compression {
    Compression::ZSTD(ZstdLevel::try_new(1).expect("1 is a level of zstd"))
}
