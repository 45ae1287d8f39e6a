//! Streams what happened to Parquet files: rows go out in groups, memory stays bounded.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aqmlab_net::Time;
use aqmlab_record::{FlowStats, QueueSamples, ResponseStats};
use aqmlab_scenario::{Measure, Record};
use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Float64Builder, RecordBatch,
    StringArray, StringDictionaryBuilder, UInt8Array, UInt32Array, UInt32Builder, UInt64Array,
    UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, UInt8Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::RunError;
use crate::times::write_distribution;
use crate::trace::{TraceRow, Traces};

/// Rows that are collected before they are written.
pub(crate) const GROUP: usize = 1 << 16;

/// A finished request/response exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseRow {
    pub(crate) flow: u64,
    pub(crate) class: usize,
    pub(crate) start: Time,
    pub(crate) response: Time,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) client: u32,
    pub(crate) server: u32,
}

/// A finished connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowRow {
    pub(crate) flow: u64,
    pub(crate) class: usize,
    pub(crate) start: Time,
    pub(crate) duration: Time,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) retransmitted_syn: u32,
    pub(crate) retransmitted_fin: u32,
    pub(crate) retransmitted_data: u32,
    pub(crate) timeouts: u32,
    pub(crate) failed: bool,
}

/// Writes the Parquet files of a run directory; what was not asked for is not written.
pub(crate) struct Recorder {
    distribution: Option<PathBuf>,
    responses: Option<Responses>,
    flows: Option<Flows>,
    queue: Option<Queue>,
    traces: Option<Traces>,
    /// The first error, until it is told.
    failed: Option<RunError>,
}

impl Recorder {
    /// `probes` are the names of the inner variables of the disciplines of all ports.
    pub(crate) fn new(
        directory: Option<&Path>,
        measure: &Measure,
        classes: &[String],
        probes: &[&'static str],
    ) -> Result<Self, RunError> {
        let path = |what: Record, name: &str| {
            directory
                .filter(|_| measure.record.contains(&what))
                .map(|directory| directory.join(name))
        };
        Ok(Self {
            distribution: directory.map(|directory| directory.join("distribution.parquet")),
            responses: path(Record::Responses, "responses.parquet")
                .map(|path| Responses::new(&path, classes))
                .transpose()?,
            flows: path(Record::Flows, "flows.parquet")
                .map(|path| Flows::new(&path, classes))
                .transpose()?,
            queue: path(Record::Queue, "queue.parquet")
                .map(|path| Queue::new(&path, probes))
                .transpose()?,
            traces: directory
                .filter(|_| measure.flow_trace.is_some())
                .map(|directory| Traces::new(&directory.join("flow_trace.parquet"), classes))
                .transpose()?,
            failed: None,
        })
    }

    pub(crate) fn response(&mut self, row: &ResponseRow) {
        if let Some(table) = &mut self.responses {
            let added = table.add(row);
            self.note(added);
        }
    }

    pub(crate) fn flow(&mut self, row: &FlowRow) {
        if let Some(table) = &mut self.flows {
            let added = table.add(row);
            self.note(added);
        }
    }

    pub(crate) fn trace(&mut self, row: &TraceRow) {
        if let Some(table) = &mut self.traces {
            let added = table.add(row);
            self.note(added);
        }
    }

    /// Takes the samples that [`QueueSamples`] collected.
    pub(crate) fn queue(&mut self, samples: &mut QueueSamples) {
        match &mut self.queue {
            Some(table) => {
                let added = table.add(samples);
                self.note(added);
            }
            None => samples.clear(),
        }
    }

    /// Keeps the first error. Handing it up through every event would cost time on each of them.
    fn note(&mut self, added: Result<(), RunError>) {
        if let Err(error) = added {
            self.failed.get_or_insert(error);
        }
    }

    /// Whether everything could be written so far.
    pub(crate) fn check(&mut self) -> Result<(), RunError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes what is left, and the distributions of the classes: name, responses, connections.
    pub(crate) fn finish<'a>(
        mut self,
        classes: impl Iterator<Item = (&'a str, &'a ResponseStats, &'a FlowStats)>,
    ) -> Result<(), RunError> {
        self.check()?;
        if let Some(path) = &self.distribution {
            write_distribution(path, classes)?;
        }
        if let Some(mut table) = self.responses {
            table.write()?;
            table.file.close()?;
        }
        if let Some(mut table) = self.flows {
            table.write()?;
            table.file.close()?;
        }
        if let Some(mut table) = self.queue {
            table.write()?;
            table.file.close()?;
        }
        if let Some(table) = self.traces {
            table.close()?;
        }
        Ok(())
    }
}

/// A Parquet file that is being written.
pub(crate) struct Table {
    schema: Arc<Schema>,
    writer: ArrowWriter<File>,
}

impl Table {
    /// A file with few rows, which is to be small.
    pub(crate) fn create(path: &Path, fields: Vec<Field>) -> Result<Self, RunError> {
        let properties = plain().set_compression(zstd()).build();
        Self::with_properties(path, fields, properties)
    }

    /// A file with a row for each exchange or connection, which is to cost little time.
    ///
    /// Whole numbers are small or lie near those before them: differences are shorter than what
    /// zstd makes of them. The nanoseconds of times look random: zstd would save a tenth.
    fn create_large(path: &Path, fields: Vec<Field>) -> Result<Self, RunError> {
        let mut properties = plain();
        for field in &fields {
            let column = ColumnPath::from(field.name().as_str());
            properties = match field.data_type() {
                DataType::UInt32 | DataType::UInt64 => {
                    properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
                }
                DataType::Float64 => properties,
                _ => properties.set_column_compression(column, zstd()),
            };
        }
        Self::with_properties(path, fields, properties.build())
    }

    fn with_properties(
        path: &Path,
        fields: Vec<Field>,
        properties: WriterProperties,
    ) -> Result<Self, RunError> {
        let schema = Arc::new(Schema::new(fields));
        let file = File::create(path)
            .map_err(|error| RunError::Record(format!("{}: {error}", path.display())))?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
        Ok(Self { schema, writer })
    }

    pub(crate) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), RunError> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| RunError::Record(error.to_string()))?;
        self.writer.write(&batch)?;
        Ok(())
    }

    pub(crate) fn close(self) -> Result<(), RunError> {
        self.writer.close()?;
        Ok(())
    }
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

pub(crate) fn word(name: &str) -> Field {
    let words = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    Field::new(name, words, false)
}

pub(crate) fn column(name: &str, kind: &DataType) -> Field {
    Field::new(name, kind.clone(), false)
}

/// The values of a column that wait to be written. There is room for a group from the start, so
/// that nothing is copied when it fills.
struct Values<T>(Vec<T>);

impl<T> Values<T> {
    fn new() -> Self {
        Self(Vec::with_capacity(GROUP))
    }

    #[inline]
    fn push(&mut self, value: T) {
        self.0.push(value);
    }

    fn finish(&mut self) -> Vec<T> {
        std::mem::replace(&mut self.0, Vec::with_capacity(GROUP))
    }
}

/// A column of words from a set that is known from the start: no word is hashed for a row.
pub(crate) struct Words {
    words: ArrayRef,
    /// Which of them, per row.
    keys: Values<u8>,
}

impl Words {
    pub(crate) fn new(words: &[impl AsRef<str>]) -> Self {
        Self {
            words: Arc::new(StringArray::from_iter_values(words)),
            keys: Values::new(),
        }
    }

    pub(crate) fn append(&mut self, word: usize) {
        self.keys.push(word as u8);
    }

    pub(crate) fn finish(&mut self) -> DictionaryArray<UInt8Type> {
        let keys = UInt8Array::from(self.keys.finish());
        DictionaryArray::new(keys, self.words.clone())
    }
}

struct Responses {
    file: Table,
    rows: usize,
    flow: Values<u64>,
    class: Words,
    start: Values<f64>,
    response: Values<f64>,
    request_bytes: Values<u64>,
    response_bytes: Values<u64>,
    client: Values<u32>,
    server: Values<u32>,
}

impl Responses {
    fn new(path: &Path, classes: &[String]) -> Result<Self, RunError> {
        let fields = vec![
            column("flow", &DataType::UInt64),
            word("class"),
            column("start_s", &DataType::Float64),
            column("response_s", &DataType::Float64),
            column("request_bytes", &DataType::UInt64),
            column("response_bytes", &DataType::UInt64),
            column("client", &DataType::UInt32),
            column("server", &DataType::UInt32),
        ];
        Ok(Self {
            file: Table::create_large(path, fields)?,
            rows: 0,
            flow: Values::new(),
            class: Words::new(classes),
            start: Values::new(),
            response: Values::new(),
            request_bytes: Values::new(),
            response_bytes: Values::new(),
            client: Values::new(),
            server: Values::new(),
        })
    }

    fn add(&mut self, row: &ResponseRow) -> Result<(), RunError> {
        self.flow.push(row.flow);
        self.class.append(row.class);
        self.start.push(row.start.as_secs_f64());
        self.response.push(row.response.as_secs_f64());
        self.request_bytes.push(row.request_bytes);
        self.response_bytes.push(row.response_bytes);
        self.client.push(row.client);
        self.server.push(row.server);
        self.rows += 1;
        if self.rows == GROUP {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> Result<(), RunError> {
        self.rows = 0;
        self.file.write(vec![
            Arc::new(UInt64Array::from(self.flow.finish())),
            Arc::new(self.class.finish()),
            Arc::new(Float64Array::from(self.start.finish())),
            Arc::new(Float64Array::from(self.response.finish())),
            Arc::new(UInt64Array::from(self.request_bytes.finish())),
            Arc::new(UInt64Array::from(self.response_bytes.finish())),
            Arc::new(UInt32Array::from(self.client.finish())),
            Arc::new(UInt32Array::from(self.server.finish())),
        ])
    }
}

struct Flows {
    file: Table,
    rows: usize,
    flow: Values<u64>,
    class: Words,
    start: Values<f64>,
    duration: Values<f64>,
    request_bytes: Values<u64>,
    response_bytes: Values<u64>,
    syn: Values<u32>,
    fin: Values<u32>,
    data: Values<u32>,
    timeouts: Values<u32>,
    failed: Values<bool>,
}

impl Flows {
    fn new(path: &Path, classes: &[String]) -> Result<Self, RunError> {
        let fields = vec![
            column("flow", &DataType::UInt64),
            word("class"),
            column("start_s", &DataType::Float64),
            column("duration_s", &DataType::Float64),
            column("request_bytes", &DataType::UInt64),
            column("response_bytes", &DataType::UInt64),
            column("retransmitted_syn", &DataType::UInt32),
            column("retransmitted_fin", &DataType::UInt32),
            column("retransmitted_data", &DataType::UInt32),
            column("timeouts", &DataType::UInt32),
            column("failed", &DataType::Boolean),
        ];
        Ok(Self {
            file: Table::create_large(path, fields)?,
            rows: 0,
            flow: Values::new(),
            class: Words::new(classes),
            start: Values::new(),
            duration: Values::new(),
            request_bytes: Values::new(),
            response_bytes: Values::new(),
            syn: Values::new(),
            fin: Values::new(),
            data: Values::new(),
            timeouts: Values::new(),
            failed: Values::new(),
        })
    }

    fn add(&mut self, row: &FlowRow) -> Result<(), RunError> {
        self.flow.push(row.flow);
        self.class.append(row.class);
        self.start.push(row.start.as_secs_f64());
        self.duration.push(row.duration.as_secs_f64());
        self.request_bytes.push(row.request_bytes);
        self.response_bytes.push(row.response_bytes);
        self.syn.push(row.retransmitted_syn);
        self.fin.push(row.retransmitted_fin);
        self.data.push(row.retransmitted_data);
        self.timeouts.push(row.timeouts);
        self.failed.push(row.failed);
        self.rows += 1;
        if self.rows == GROUP {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> Result<(), RunError> {
        self.rows = 0;
        self.file.write(vec![
            Arc::new(UInt64Array::from(self.flow.finish())),
            Arc::new(self.class.finish()),
            Arc::new(Float64Array::from(self.start.finish())),
            Arc::new(Float64Array::from(self.duration.finish())),
            Arc::new(UInt64Array::from(self.request_bytes.finish())),
            Arc::new(UInt64Array::from(self.response_bytes.finish())),
            Arc::new(UInt32Array::from(self.syn.finish())),
            Arc::new(UInt32Array::from(self.fin.finish())),
            Arc::new(UInt32Array::from(self.data.finish())),
            Arc::new(UInt32Array::from(self.timeouts.finish())),
            Arc::new(BooleanArray::from(self.failed.finish())),
        ])
    }
}

struct Queue {
    file: Table,
    rows: usize,
    link: StringDictionaryBuilder<UInt8Type>,
    direction: StringDictionaryBuilder<UInt8Type>,
    time: Float64Builder,
    packets: UInt32Builder,
    bytes: UInt64Builder,
    probes: Vec<(&'static str, Float64Builder)>,
}

impl Queue {
    fn new(path: &Path, probes: &[&'static str]) -> Result<Self, RunError> {
        let mut fields = vec![
            word("link"),
            word("direction"),
            column("time_s", &DataType::Float64),
            column("packets", &DataType::UInt32),
            column("bytes", &DataType::UInt64),
        ];
        fields.extend(
            probes
                .iter()
                .map(|name| Field::new(*name, DataType::Float64, true)),
        );
        Ok(Self {
            file: Table::create(path, fields)?,
            rows: 0,
            link: StringDictionaryBuilder::new(),
            direction: StringDictionaryBuilder::new(),
            time: Float64Builder::new(),
            packets: UInt32Builder::new(),
            bytes: UInt64Builder::new(),
            probes: probes
                .iter()
                .map(|name| (*name, Float64Builder::new()))
                .collect(),
        })
    }

    fn add(&mut self, samples: &mut QueueSamples) -> Result<(), RunError> {
        let (name, names) = (samples.name(), samples.probes());
        for (time, backlog, values) in samples.rows() {
            self.link.append_value(&name.link);
            self.direction.append_value(name.direction);
            self.time.append_value(time.as_secs_f64());
            self.packets.append_value(backlog.packets);
            self.bytes.append_value(backlog.bytes);
            for (name, column) in &mut self.probes {
                let place = names.iter().position(|probe| probe == name);
                column.append_option(place.map(|place| values[place]));
            }
        }
        self.rows += samples.rows().len();
        samples.clear();
        if self.rows >= GROUP {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> Result<(), RunError> {
        self.rows = 0;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.link.finish()),
            Arc::new(self.direction.finish()),
            Arc::new(self.time.finish()),
            Arc::new(self.packets.finish()),
            Arc::new(self.bytes.finish()),
        ];
        for (_, column) in &mut self.probes {
            columns.push(Arc::new(column.finish()));
        }
        self.file.write(columns)
    }
}
