//! Records of a run that stay in memory.

use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "breakdown")]
use aqmlab_record::{Breakdown, PortParts};
use aqmlab_record::{
    ClassMetrics, Exchange, Flow, LinkStats, QueueSamples, Records, RunError, TraceRow,
};

/// What is kept of a run.
#[derive(Debug)]
pub(crate) struct Kept {
    responses: Vec<f64>,
    /// All rows as bytes, if they are wanted.
    rows: Option<Vec<u8>>,
    #[cfg(feature = "breakdown")]
    pub(crate) breakdowns: crate::breakdowns::Breakdowns,
}

impl Kept {
    pub(crate) fn new(all_rows: bool) -> Self {
        Self {
            responses: Vec::new(),
            rows: all_rows.then(Vec::new),
            #[cfg(feature = "breakdown")]
            breakdowns: Default::default(),
        }
    }

    /// End, class and response time of the exchanges that ended since the last call.
    pub(crate) fn take_responses(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.responses)
    }

    pub(crate) fn rows(&self) -> &[u8] {
        self.rows.as_deref().unwrap_or_default()
    }

    fn row(&mut self, fields: impl IntoIterator<Item = u64>) {
        if let Some(rows) = &mut self.rows {
            rows.extend(fields.into_iter().flat_map(u64::to_le_bytes));
        }
    }
}

/// Writes to what its owner shares.
#[derive(Debug)]
pub(crate) struct MemoryRecords(pub(crate) Arc<Mutex<Kept>>);

impl MemoryRecords {
    fn keep(&self, keep: impl FnOnce(&mut Kept)) {
        keep(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Records for MemoryRecords {
    fn begin(&mut self, _classes: &[String], _probes: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }

    fn response(&mut self, row: &Exchange) {
        self.keep(|kept| {
            let seconds = [row.end, row.response_time()].map(|time| time.as_secs_f64());
            let class = row.class as f64;
            kept.responses.extend([seconds[0], class, seconds[1]]);
            kept.row([
                row.flow,
                row.class as u64,
                row.start.as_nanos(),
                row.end.as_nanos(),
                row.request_bytes,
                row.response_bytes,
                row.client.into(),
                row.server.into(),
            ]);
        });
    }

    #[cfg(feature = "breakdown")]
    fn begin_breakdowns(&mut self, ports: &[PortParts]) -> Result<(), RunError> {
        self.keep(|kept| kept.breakdowns.begin(ports));
        Ok(())
    }

    #[cfg(feature = "breakdown")]
    fn breakdown(&mut self, row: &Exchange, breakdown: &Breakdown<'_>) {
        self.keep(|kept| kept.breakdowns.push(row, breakdown));
    }

    fn flow(&mut self, _row: &Flow) {}

    fn trace(&mut self, row: &TraceRow) {
        self.keep(|kept| {
            let probe = &row.probe;
            kept.row([
                row.flow,
                row.time.as_nanos(),
                probe.cwnd,
                probe.ssthresh,
                probe.in_flight,
                probe.timeout.as_nanos(),
            ]);
        });
    }

    fn queue(&mut self, samples: &QueueSamples) {
        self.keep(|kept| {
            for (time, backlog, values) in samples.rows() {
                let counts = [time.as_nanos(), backlog.packets.into(), backlog.bytes];
                kept.row(counts);
                kept.row(values.iter().map(|value| value.to_bits()));
            }
        });
    }

    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        _classes: &[ClassMetrics],
        _links: &[&LinkStats],
    ) -> Result<(), RunError> {
        Ok(())
    }
}
