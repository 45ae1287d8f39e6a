//! The same metrics for a world that is not simulated: what its links carried and what its
//! connections did is recorded and summed up as that of a simulated run is.
//!
//! A link's metrics may be kept by another thread than the rest: they meet in
//! [`Metrics::finish`].

use std::path::Path;

use aqmlab_net::Time;
use aqmlab_record::{FlowStats, LinkStats, MeasuredSpan, ResponseStats, Summary};
use aqmlab_scenario::Scenario;
use aqmlab_tcp::Retransmissions;

use crate::RunError;
use crate::recorder::{FlowRow, Recorder, ResponseRow};

/// A finished request/response exchange.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeRecord {
    /// Serial number of its connection.
    pub flow: u64,
    /// When it began: for a connection's first exchange the connect, for others the request.
    pub start: Time,
    /// When the client had all of the response.
    pub end: Time,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the response.
    pub response_bytes: u64,
    /// The client's host.
    pub client: u32,
    /// The server's host.
    pub server: u32,
}

/// A connection, or a flow of datagrams, that has ended.
#[derive(Clone, Copy, Debug)]
pub struct FlowRecord {
    /// Serial number.
    pub flow: u64,
    /// When it was opened.
    pub start: Time,
    /// Its minimum round trip.
    pub rtt: Time,
    /// When something happened on it last.
    pub end: Time,
    /// Application bytes that the server received.
    pub request_bytes: u64,
    /// Application bytes that the client received.
    pub response_bytes: u64,
    /// Those of them that it received in the measured span.
    pub measured_bytes: u64,
    /// What both ends sent again.
    pub again: Retransmissions,
    /// What they had sent again when the client had everything: what delayed it.
    pub delayed_by: Retransmissions,
    /// Whether it was given up.
    pub failed: bool,
}

#[derive(Debug)]
struct Class {
    name: String,
    responses: ResponseStats,
    flows: FlowStats,
}

/// What the connections of a run did, by class of traffic: in the order of the scenario.
pub struct Metrics {
    window: MeasuredSpan,
    recorder: Recorder,
    classes: Vec<Class>,
}

impl Metrics {
    /// Empty metrics. What the scenario's `measure.record` asks for is written into `directory`.
    pub fn new(
        scenario: &Scenario,
        directory: Option<&Path>,
        links: &[&LinkStats],
    ) -> Result<Self, RunError> {
        let mut probes: Vec<&'static str> = Vec::new();
        for name in links.iter().flat_map(|link| link.probes()) {
            if !probes.contains(name) {
                probes.push(name);
            }
        }
        let names: Vec<String> = scenario.traffic.iter().map(|t| t.name.clone()).collect();
        let class = |name: &String| Class {
            name: name.clone(),
            responses: ResponseStats::default(),
            flows: FlowStats::default(),
        };
        Ok(Self {
            window: MeasuredSpan::of(&scenario.measure),
            recorder: Recorder::new(directory, &scenario.measure, &names, &probes)?,
            classes: names.iter().map(class).collect(),
        })
    }

    /// Names of the classes.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.classes.iter().map(|class| class.name.as_str())
    }

    /// Whether `time` is measured.
    pub fn measures(&self, time: Time) -> bool {
        self.window.contains(time)
    }

    /// An exchange begins.
    pub fn exchange_begins(&mut self, class: usize, now: Time) {
        if self.window.contains(now) {
            self.classes[class].responses.on_start();
        }
    }

    /// A connection was not opened because its class has as many as it may.
    pub fn refused(&mut self, class: usize, now: Time) {
        if self.window.contains(now) {
            self.classes[class].flows.on_refused();
        }
    }

    /// An exchange has ended.
    pub fn exchange(&mut self, class: usize, record: &ExchangeRecord) {
        if !self.window.contains(record.end) {
            return;
        }
        let response = record.end.saturating_sub(record.start);
        self.classes[class].responses.add(response);
        self.recorder.response(&ResponseRow {
            flow: record.flow,
            class,
            start: record.start,
            response,
            request_bytes: record.request_bytes,
            response_bytes: record.response_bytes,
            client: record.client,
            server: record.server,
        });
    }

    /// A connection has ended.
    pub fn flow(&mut self, class: usize, record: &FlowRecord) {
        self.goodput(class, record, record.end);
        if !self.window.contains(record.end) {
            return;
        }
        let (again, delayed_by) = (record.again, record.delayed_by);
        let duration = record.end.saturating_sub(record.start);
        self.classes[class]
            .flows
            .add_closed(again, delayed_by.into(), duration, record.failed);
        self.recorder.flow(&FlowRow {
            flow: record.flow,
            class,
            start: record.start,
            duration,
            request_bytes: record.request_bytes,
            response_bytes: record.response_bytes,
            retransmitted_syn: again.syn,
            retransmitted_fin: again.fin,
            retransmitted_data: again.data,
            timeouts: again.timeouts,
            failed: record.failed,
        });
    }

    /// A connection goes on when the run ends.
    pub fn still_open(&mut self, class: usize, record: &FlowRecord) {
        self.goodput(class, record, self.window.end);
    }

    /// A flow of datagrams, of which so many were sent and lost in the measured span. Its record
    /// counts whenever it ended.
    pub fn datagrams(&mut self, class: usize, record: &FlowRecord, sent: u64, lost: u64) {
        self.goodput(class, record, self.window.end);
        let flows = &mut self.classes[class].flows;
        flows.add_datagrams(sent, lost);
        self.recorder.flow(&FlowRow {
            flow: record.flow,
            class,
            start: record.start,
            duration: record.end.saturating_sub(record.start),
            request_bytes: 0,
            response_bytes: record.response_bytes,
            retransmitted_syn: 0,
            retransmitted_fin: 0,
            retransmitted_data: 0,
            timeouts: 0,
            failed: false,
        });
    }

    fn goodput(&mut self, class: usize, record: &FlowRecord, end: Time) {
        let span = self.window.overlap(record.start, end);
        let flows = &mut self.classes[class].flows;
        flows.add_goodput(record.measured_bytes, span, record.rtt);
    }

    /// Whether everything could be written so far.
    pub fn check(&mut self) -> Result<(), RunError> {
        self.recorder.check()
    }

    /// Writes what is left of the records and sums up; `events` is what the run counts as its
    /// work.
    pub fn finish(
        mut self,
        scenario: &Scenario,
        links: &mut [LinkStats],
        events: u64,
    ) -> Result<Summary, RunError> {
        for link in &mut *links {
            self.recorder.queue(link.samples());
        }
        let classes = self
            .classes
            .iter()
            .map(|class| (class.name.as_str(), &class.responses, &class.flows));
        self.recorder.finish(classes.clone())?;
        Ok(Summary::new(scenario, links.iter(), classes, events))
    }
}
