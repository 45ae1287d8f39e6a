//! Writes the records of a run into a directory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use aqmlab_record::{
    Breakdown, ClassMetrics, Exchange, Flow, LinkDirection, LinkStats, PacketRecords, PacketRow,
    PortParts, QueueSamples, Records, RunError, StoryRow, TimeHistogram, TraceRow,
};
use aqmlab_scenario::{Measure, Record};

use crate::breakdown::Breakdowns;
use crate::chunk::Zstd;
use crate::column::FixedColumns;
use crate::story::Stories;
use crate::table::Table;
use crate::tables::{
    ClassSojourn, Delays, Distribution, Flows, Packets, Queue, Responses, Sample, Sojourn,
    Subscribers, Traces,
};

/// Writes the Parquet files of a run directory; what was not asked for is not written.
pub struct ParquetRecords {
    directory: PathBuf,
    measure: Measure,
    /// Names of the classes.
    classes: Vec<String>,
    responses: Option<Table<Responses>>,
    breakdowns: Option<Table<Breakdowns>>,
    /// Made with its first row.
    stories: Option<Table<Stories>>,
    ports: Vec<PortParts>,
    flows: Option<Table<Flows>>,
    queue: Option<Table<Queue>>,
    traces: Option<Table<Traces>>,
    zstd: Zstd,
    /// The first error, until it is reported.
    failed: Option<RunError>,
}

impl ParquetRecords {
    /// Writes into `directory`, which is there: `distribution.parquet`, `delay.parquet`,
    /// `sojourn.parquet` and `class_sojourn.parquet`, and `responses.parquet`, `flows.parquet`, `queue.parquet`,
    /// `packets.parquet`, `subscribers.parquet`, `flow_trace.parquet` and `capture.pcapng` as far as `measure` asks for them.
    pub fn new(directory: &Path, measure: &Measure) -> Self {
        Self {
            directory: directory.to_owned(),
            measure: measure.clone(),
            classes: Vec::new(),
            responses: None,
            breakdowns: None,
            stories: None,
            ports: Vec::new(),
            flows: None,
            queue: None,
            traces: None,
            zstd: Zstd::new(),
            failed: None,
        }
    }

    fn create<C: FixedColumns>(&self, wanted: bool) -> Result<Option<Table<C>>, RunError> {
        let create = || Table::create(&self.directory, &self.classes);
        wanted.then(create).transpose()
    }

    /// Keeps the first error. Handing it up through every event would cost time on each of them.
    fn note(&mut self, written: Result<(), RunError>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    fn write_distribution(&mut self, classes: &[ClassMetrics]) -> Result<(), RunError> {
        let mut table = Table::<Distribution>::create(&self.directory, &self.classes)?;
        for (number, class) in classes.iter().enumerate() {
            let mut add = |of, times: &TimeHistogram| {
                for bin in times.bins() {
                    table.push((of, number, bin));
                }
            };
            add("response", class.responses().times());
            add("flow", class.flows().durations());
        }
        table.close(&mut self.zstd)
    }

    fn write_delays(&mut self, classes: &[ClassMetrics]) -> Result<(), RunError> {
        let mut table = Table::<Delays>::create(&self.directory, &self.classes)?;
        for (number, class) in classes.iter().enumerate() {
            let [one_way, variation] = class.flows().datagram_delays();
            let [rtt, increase] = class.flows().round_trips();
            for (of, delays) in [
                ("one-way", one_way),
                ("variation", variation),
                ("rtt", rtt),
                ("rtt-increase", increase),
            ] {
                for bin in delays.bins() {
                    table.push((of, number, bin));
                }
            }
        }
        table.close(&mut self.zstd)
    }

    fn write_sojourn(&mut self, links: &[&LinkStats]) -> Result<(), RunError> {
        let mut table = Table::<Sojourn>::create(&self.directory, &self.classes)?;
        for link in links {
            for bin in link.sojourn().bins() {
                table.push((link.name(), bin));
            }
        }
        table.close(&mut self.zstd)
    }

    fn write_class_sojourn(&mut self, links: &[&LinkStats]) -> Result<(), RunError> {
        let mut table = Table::<ClassSojourn>::create(&self.directory, &self.classes)?;
        for link in links {
            for (class, transit) in link.by_class() {
                for bin in transit.delays.bins() {
                    table.push((link.name(), class, bin));
                }
            }
        }
        table.close(&mut self.zstd)
    }

    fn write_subscribers(&mut self, links: &[&LinkStats]) -> Result<(), RunError> {
        let mut table = Table::<Subscribers>::create(&self.directory, &self.classes)?;
        for link in links {
            for row in link.subscribers() {
                table.push((link.name(), row));
                table.write_page(&mut self.zstd)?;
            }
        }
        table.close(&mut self.zstd)
    }
}

/// Writes `packets.parquet`.
struct ParquetPackets {
    table: Table<Packets>,
    /// Whose packets they are.
    directions: Vec<LinkDirection>,
    zstd: Zstd,
    /// The first error, until it is reported.
    failed: Option<RunError>,
}

impl PacketRecords for ParquetPackets {
    fn packet(&mut self, row: &PacketRow) {
        self.table
            .push((&self.directions[usize::from(row.port)], row));
        if let Err(error) = self.table.write_page(&mut self.zstd) {
            self.failed.get_or_insert(error);
        }
    }

    fn check(&mut self) -> Result<(), RunError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn finish(mut self: Box<Self>) -> Result<(), RunError> {
        self.check()?;
        self.table.close(&mut self.zstd)
    }
}

impl Records for ParquetRecords {
    fn begin(&mut self, classes: &[String], probes: &[&'static str]) -> Result<(), RunError> {
        self.classes = classes.to_vec();
        let wanted = |what| self.measure.record.contains(&what);
        self.responses = self.create(wanted(Record::Responses))?;
        self.flows = self.create(wanted(Record::Flows))?;
        if wanted(Record::Queue) {
            let (columns, fields) = Queue::with_probes(probes);
            self.queue = Some(Table::with_columns(&self.directory, columns, &fields)?);
        }
        self.traces = self.create(self.measure.flow_trace.is_some())?;
        Ok(())
    }

    fn capture(&mut self) -> Result<Option<Box<dyn Write + Send>>, RunError> {
        const NAME: &str = "capture.pcapng";
        let file = File::create(self.directory.join(NAME))
            .map_err(|error| RunError::Record(format!("{NAME}: {error}")))?;
        Ok(Some(Box::new(BufWriter::new(file))))
    }

    fn response(&mut self, row: &Exchange) {
        if let Some(table) = &mut self.responses {
            table.push(row);
            let written = table.write_page(&mut self.zstd);
            self.note(written);
        }
    }

    fn begin_breakdowns(&mut self, ports: &[PortParts]) -> Result<(), RunError> {
        let (columns, fields) = Breakdowns::with_ports(&self.classes, ports);
        self.breakdowns = Some(Table::with_columns(&self.directory, columns, &fields)?);
        self.ports = ports.to_vec();
        Ok(())
    }

    fn breakdown(&mut self, row: &Exchange, breakdown: &Breakdown<'_>) {
        if let Some(table) = &mut self.breakdowns {
            table.push((row, breakdown));
            let written = table.write_page(&mut self.zstd);
            self.note(written);
        }
    }

    fn story(&mut self, row: &StoryRow) {
        let made = match self.stories.take() {
            Some(table) => Ok(table),
            None => {
                let (columns, fields) = Stories::with_ports(&self.ports);
                Table::with_columns(&self.directory, columns, &fields)
            }
        };
        let written = made.and_then(|mut table| {
            table.push(row);
            let written = table.write_page(&mut self.zstd);
            self.stories = Some(table);
            written
        });
        self.note(written);
    }

    fn flow(&mut self, row: &Flow) {
        if let Some(table) = &mut self.flows {
            table.push(row);
            let written = table.write_page(&mut self.zstd);
            self.note(written);
        }
    }

    fn packets(
        &mut self,
        ports: &[LinkDirection],
    ) -> Result<Option<Box<dyn PacketRecords>>, RunError> {
        Ok(Some(Box::new(ParquetPackets {
            table: Table::create(&self.directory, &self.classes)?,
            directions: ports.to_vec(),
            zstd: Zstd::new(),
            failed: None,
        })))
    }

    fn trace(&mut self, row: &TraceRow) {
        if let Some(table) = &mut self.traces {
            table.push(row);
            let written = table.write_page(&mut self.zstd);
            self.note(written);
        }
    }

    fn queue(&mut self, samples: &QueueSamples) {
        if let Some(table) = &mut self.queue {
            for (time, backlog, values) in samples.rows() {
                table.push(Sample {
                    sample: (samples.name(), time, backlog),
                    probes: samples.probes(),
                    values,
                });
            }
            let written = table.write_page(&mut self.zstd);
            self.note(written);
        }
    }

    fn check(&mut self) -> Result<(), RunError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn finish(
        mut self: Box<Self>,
        classes: &[ClassMetrics],
        links: &[&LinkStats],
    ) -> Result<(), RunError> {
        self.check()?;
        self.write_distribution(classes)?;
        self.write_delays(classes)?;
        self.write_sojourn(links)?;
        self.write_class_sojourn(links)?;
        if self.measure.record.contains(&Record::Subscribers) {
            self.write_subscribers(links)?;
        }
        if let Some(table) = self.responses.take() {
            table.close(&mut self.zstd)?;
        }
        if let Some(table) = self.breakdowns.take() {
            table.close(&mut self.zstd)?;
        }
        if let Some(table) = self.stories.take() {
            table.close(&mut self.zstd)?;
        }
        if let Some(table) = self.flows.take() {
            table.close(&mut self.zstd)?;
        }
        if let Some(table) = self.queue.take() {
            table.close(&mut self.zstd)?;
        }
        if let Some(table) = self.traces.take() {
            table.close(&mut self.zstd)?;
        }
        Ok(())
    }
}
