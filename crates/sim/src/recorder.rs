//! Streams what happened to Parquet files: rows go out in groups, memory stays bounded.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aqmlab_aqm::Backlog;
use aqmlab_net::Time;
use aqmlab_scenario::{Measure, Record};
use arrow::array::{
    ArrayRef, BooleanBuilder, DictionaryArray, Float64Builder, RecordBatch, StringArray,
    StringDictionaryBuilder, UInt8Array, UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, UInt8Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::RunError;
use crate::build::PortName;
use crate::stats::{FlowStats, ResponseStats};
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
    /// `probes` are the names of the inner variables of the laws of all ports.
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
    pub(crate) fn create(path: &Path, fields: Vec<Field>) -> Result<Self, RunError> {
        let level = ZstdLevel::try_new(1).expect("1 is a level of zstd");
        // Dictionaries pay for words only: times and sizes seldom repeat, and hashing them costs.
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_dictionary_enabled(false);
        for field in &fields {
            if matches!(field.data_type(), DataType::Dictionary(..)) {
                let column = ColumnPath::from(field.name().as_str());
                properties = properties.set_column_dictionary_enabled(column, true);
            }
        }
        let properties = properties.build();
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

pub(crate) fn word(name: &str) -> Field {
    let words = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    Field::new(name, words, false)
}

pub(crate) fn column(name: &str, kind: &DataType) -> Field {
    Field::new(name, kind.clone(), false)
}

/// A column of words from a set that is known from the start: no word is hashed for a row.
struct Words {
    words: ArrayRef,
    /// Which of them, per row.
    keys: Vec<u8>,
}

impl Words {
    fn new(words: &[String]) -> Self {
        Self {
            words: Arc::new(StringArray::from_iter_values(words)),
            keys: Vec::new(),
        }
    }

    fn append(&mut self, word: usize) {
        self.keys.push(word as u8);
    }

    fn finish(&mut self) -> DictionaryArray<UInt8Type> {
        let keys = UInt8Array::from(std::mem::take(&mut self.keys));
        DictionaryArray::new(keys, self.words.clone())
    }
}

struct Responses {
    file: Table,
    rows: usize,
    flow: UInt64Builder,
    class: Words,
    start: Float64Builder,
    response: Float64Builder,
    request_bytes: UInt64Builder,
    response_bytes: UInt64Builder,
    client: UInt32Builder,
    server: UInt32Builder,
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
            file: Table::create(path, fields)?,
            rows: 0,
            flow: UInt64Builder::new(),
            class: Words::new(classes),
            start: Float64Builder::new(),
            response: Float64Builder::new(),
            request_bytes: UInt64Builder::new(),
            response_bytes: UInt64Builder::new(),
            client: UInt32Builder::new(),
            server: UInt32Builder::new(),
        })
    }

    fn add(&mut self, row: &ResponseRow) -> Result<(), RunError> {
        self.flow.append_value(row.flow);
        self.class.append(row.class);
        self.start.append_value(row.start.as_secs_f64());
        self.response.append_value(row.response.as_secs_f64());
        self.request_bytes.append_value(row.request_bytes);
        self.response_bytes.append_value(row.response_bytes);
        self.client.append_value(row.client);
        self.server.append_value(row.server);
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
            Arc::new(self.flow.finish()),
            Arc::new(self.class.finish()),
            Arc::new(self.start.finish()),
            Arc::new(self.response.finish()),
            Arc::new(self.request_bytes.finish()),
            Arc::new(self.response_bytes.finish()),
            Arc::new(self.client.finish()),
            Arc::new(self.server.finish()),
        ])
    }
}

struct Flows {
    file: Table,
    rows: usize,
    flow: UInt64Builder,
    class: Words,
    start: Float64Builder,
    duration: Float64Builder,
    request_bytes: UInt64Builder,
    response_bytes: UInt64Builder,
    syn: UInt32Builder,
    fin: UInt32Builder,
    data: UInt32Builder,
    timeouts: UInt32Builder,
    failed: BooleanBuilder,
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
            file: Table::create(path, fields)?,
            rows: 0,
            flow: UInt64Builder::new(),
            class: Words::new(classes),
            start: Float64Builder::new(),
            duration: Float64Builder::new(),
            request_bytes: UInt64Builder::new(),
            response_bytes: UInt64Builder::new(),
            syn: UInt32Builder::new(),
            fin: UInt32Builder::new(),
            data: UInt32Builder::new(),
            timeouts: UInt32Builder::new(),
            failed: BooleanBuilder::new(),
        })
    }

    fn add(&mut self, row: &FlowRow) -> Result<(), RunError> {
        self.flow.append_value(row.flow);
        self.class.append(row.class);
        self.start.append_value(row.start.as_secs_f64());
        self.duration.append_value(row.duration.as_secs_f64());
        self.request_bytes.append_value(row.request_bytes);
        self.response_bytes.append_value(row.response_bytes);
        self.syn.append_value(row.retransmitted_syn);
        self.fin.append_value(row.retransmitted_fin);
        self.data.append_value(row.retransmitted_data);
        self.timeouts.append_value(row.timeouts);
        self.failed.append_value(row.failed);
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
            Arc::new(self.flow.finish()),
            Arc::new(self.class.finish()),
            Arc::new(self.start.finish()),
            Arc::new(self.duration.finish()),
            Arc::new(self.request_bytes.finish()),
            Arc::new(self.response_bytes.finish()),
            Arc::new(self.syn.finish()),
            Arc::new(self.fin.finish()),
            Arc::new(self.data.finish()),
            Arc::new(self.timeouts.finish()),
            Arc::new(self.failed.finish()),
        ])
    }
}

/// Samples of one queue that wait to be recorded.
#[derive(Debug)]
pub(crate) struct QueueSamples {
    port: PortName,
    probes: &'static [&'static str],
    rows: Vec<(Time, Backlog)>,
    /// The probes of every row, one after another.
    values: Vec<f64>,
}

impl QueueSamples {
    pub(crate) const fn new(port: PortName, probes: &'static [&'static str]) -> Self {
        Self {
            port,
            probes,
            rows: Vec::new(),
            values: Vec::new(),
        }
    }

    pub(crate) const fn probe_names(&self) -> &'static [&'static str] {
        self.probes
    }

    /// Looks at the queue: time, what waits, and the discipline's inner variables.
    pub(crate) fn observe(
        &mut self,
        time: Time,
        backlog: Backlog,
        probe: impl FnOnce(&mut Vec<f64>),
    ) {
        self.rows.push((time, backlog));
        probe(&mut self.values);
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
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
        let width = samples.probes.len();
        for (row, (time, backlog)) in samples.rows.iter().enumerate() {
            self.link.append_value(&samples.port.link);
            self.direction.append_value(samples.port.direction);
            self.time.append_value(time.as_secs_f64());
            self.packets.append_value(backlog.packets);
            self.bytes.append_value(backlog.bytes);
            let values = &samples.values[row * width..(row + 1) * width];
            for (name, column) in &mut self.probes {
                let place = samples.probes.iter().position(|probe| probe == name);
                column.append_option(place.map(|place| values[place]));
            }
        }
        self.rows += samples.rows.len();
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
