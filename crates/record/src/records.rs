//! Where an engine writes what it records.

use std::io::Write;

use crate::{Breakdown, PortParts, StoryRow};
use crate::{
    ClassMetrics, Exchange, Flow, LinkDirection, LinkStats, PacketRow, QueueSamples, RunError,
    TraceRow,
};

/// Takes the records of a run: a row for each exchange and connection that ended in the measured
/// span, the samples of queues, and what there is at the end.
///
/// Rows come one by one and return nothing, so that no event pays for an error: the first one is
/// kept until [`check`](Self::check) or [`finish`](Self::finish).
pub trait Records: Send {
    /// The run begins. `classes` are the names of its classes of traffic, `probes` those of the
    /// inner variables of its disciplines.
    fn begin(&mut self, classes: &[String], probes: &[&'static str]) -> Result<(), RunError>;

    /// Where a capture of a link's packets is written (as pcapng); nothing: there is no capture.
    /// Asked for only where the scenario's `measure.capture` wants one.
    fn capture(&mut self) -> Result<Option<Box<dyn Write + Send>>, RunError> {
        Ok(None)
    }

    /// An exchange has ended.
    fn response(&mut self, row: &Exchange);

    /// The time of exchanges will be broken down, by parts of these ports among others.
    fn begin_breakdowns(&mut self, _ports: &[PortParts]) -> Result<(), RunError> {
        Ok(())
    }

    /// Where the time of an exchange went that has ended.
    fn breakdown(&mut self, _row: &Exchange, _breakdown: &Breakdown<'_>) {}

    /// An event of the connection that `measure.story` follows.
    fn story(&mut self, _row: &StoryRow) {}

    /// A connection or a flow of datagrams has ended.
    fn flow(&mut self, row: &Flow);

    /// Where packets are recorded that reach these queues; nothing: they are not. Asked for once,
    /// where the scenario's `measure.record` wants them.
    fn packets(
        &mut self,
        _ports: &[LinkDirection],
    ) -> Result<Option<Box<dyn PacketRecords>>, RunError> {
        Ok(None)
    }

    /// A connection that is traced has done something.
    fn trace(&mut self, row: &TraceRow);

    /// Samples of a queue, in the order of time.
    fn queue(&mut self, samples: &QueueSamples);

    /// Whether everything could be written so far.
    fn check(&mut self) -> Result<(), RunError>;

    /// The run is over: writes what is left, and the distributions of its classes and links.
    fn finish(
        self: Box<Self>,
        classes: &[ClassMetrics],
        links: &[&LinkStats],
    ) -> Result<(), RunError>;
}

/// Takes the packets of a run, on any thread. An error is kept as in [`Records`].
pub trait PacketRecords: Send {
    /// It is known what became of a packet at a queue. Packets come in the order of arrival, but
    /// for those that wait while very many others come and go.
    fn packet(&mut self, row: &PacketRow);

    /// Whether everything could be written so far.
    fn check(&mut self) -> Result<(), RunError>;

    /// The run is over: writes what is left.
    fn finish(self: Box<Self>) -> Result<(), RunError>;
}

/// Takes records and keeps none: for a run of which only the summary is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Records for Discard {
    fn begin(&mut self, _classes: &[String], _probes: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }

    fn response(&mut self, _row: &Exchange) {}

    fn flow(&mut self, _row: &Flow) {}

    fn trace(&mut self, _row: &TraceRow) {}

    fn queue(&mut self, _samples: &QueueSamples) {}

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
