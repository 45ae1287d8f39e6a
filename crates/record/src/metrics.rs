//! The one place where exchanges and connections are counted and recorded.

use std::io::Write;

use aqmlab_net::Time;
use aqmlab_scenario::{HAS_BREAKDOWN, Scenario};
use aqmlab_traffic::Quality;

use crate::{Breakdown, PortParts, StoryRow};
use crate::{
    ClassMetrics, DatagramStats, Exchange, Flow, LinkDirection, LinkStats, MeasuredSpan,
    PacketRecords, PacketRow, Records, RunError, SenderStats, SocketStats, StationsOnAir, Summary,
    TraceRow, View,
};

/// What the connections of a run did, by class of traffic: in the order of the scenario.
///
/// An engine says what happened and when; what counts in the measured span is decided here. A
/// link's statistics may be kept by another thread: they come in at [`finish`](Self::finish).
pub struct Metrics {
    span: MeasuredSpan,
    classes: Vec<ClassMetrics>,
    records: Box<dyn Records>,
    packets: Option<Box<dyn PacketRecords>>,
    /// The sockets of clients and of servers, if they may have only so many.
    sockets: Option<Box<[SocketStats; 2]>>,
    /// What stations sent and were sent, where there are any.
    stations: Vec<StationsOnAir>,
    /// The ports of breakdowns, if there are any.
    ports: Option<Vec<PortParts>>,
}

impl Metrics {
    /// Empty metrics of a run over links with these inner variables of their disciplines.
    pub fn new<'a>(
        scenario: &Scenario,
        view: View,
        links: impl IntoIterator<Item = &'a LinkStats>,
        mut records: Box<dyn Records>,
    ) -> Result<Self, RunError> {
        let mut probes: Vec<&'static str> = Vec::new();
        for name in links.into_iter().flat_map(LinkStats::probes) {
            if !probes.contains(name) {
                probes.push(name);
            }
        }
        let names: Vec<String> = scenario.traffic.iter().map(|t| t.name.clone()).collect();
        records.begin(&names, &probes)?;
        Ok(Self {
            span: MeasuredSpan::of(&scenario.measure),
            classes: names
                .into_iter()
                .map(|name| ClassMetrics::new(name, view))
                .collect(),
            records,
            packets: None,
            sockets: None,
            stations: Vec::new(),
            ports: None,
        })
    }

    /// The measured span.
    #[inline(always)]
    pub const fn span(&self) -> MeasuredSpan {
        self.span
    }

    /// The classes.
    pub fn classes(&self) -> &[ClassMetrics] {
        &self.classes
    }

    /// An exchange begins.
    #[inline]
    pub fn on_exchange_start(&mut self, class: usize, now: Time) {
        if self.span.contains(now) {
            self.classes[class].responses.on_start();
        }
    }

    /// An exchange has ended.
    #[inline]
    pub fn on_exchange(&mut self, exchange: &Exchange) {
        if self.span.contains(exchange.end) {
            let responses = &mut self.classes[exchange.class].responses;
            responses.add(exchange.response_time());
            self.records.response(exchange);
        }
    }

    /// The time of exchanges will be broken down; the ports have these names.
    pub fn begin_breakdowns(&mut self, ports: Vec<PortParts>) -> Result<(), RunError> {
        self.records.begin_breakdowns(&ports)?;
        self.ports = Some(ports);
        Ok(())
    }

    /// Where the time of an exchange went that has ended.
    pub fn on_breakdown(&mut self, exchange: &Exchange, breakdown: &Breakdown<'_>) {
        if self.span.contains(exchange.end) {
            let breakdowns = &mut self.classes[exchange.class].breakdowns;
            breakdowns.add(exchange.response_time(), breakdown);
            self.records.breakdown(exchange, breakdown);
        }
    }

    /// An event of the connection that is followed.
    pub fn on_story(&mut self, row: &StoryRow) {
        self.records.story(row);
    }

    /// A connection was not opened because its class has as many as it may.
    pub fn on_refused(&mut self, class: usize, now: Time) {
        if self.span.contains(now) {
            self.classes[class].flows.on_refused();
        }
    }

    /// What became of the sockets of clients and of servers.
    pub fn on_sockets(&mut self, sockets: [SocketStats; 2]) {
        self.sockets = Some(Box::new(sockets));
    }

    /// A segment with data was dropped by a queue or lost on a wire.
    #[inline]
    pub fn on_lost_segment(&mut self, class: usize, time: Time) {
        if self.span.contains(time) {
            self.classes[class].flows.on_lost_segment();
        }
    }

    /// The retransmission timer of a connection expired so many times.
    #[inline]
    pub fn on_timeouts(&mut self, class: usize, now: Time, count: u32) {
        if self.span.contains(now) {
            self.classes[class].flows.on_timeouts(count);
        }
    }

    /// What the ends of a class's connections measured and sent again in the measured span.
    pub fn on_senders(&mut self, class: usize, senders: &SenderStats) {
        self.classes[class].flows.senders.merge(senders);
    }

    /// The servers of a class received so many application bytes in the measured span.
    pub fn on_uploaded(&mut self, class: usize, bytes: u64) {
        *self.classes[class].flows.request_bytes.get_or_insert(0) += bytes;
    }

    /// The clients of a class received so many application bytes in the measured span, of no flow
    /// that is known.
    pub fn on_downloaded(&mut self, class: usize, bytes: u64) {
        self.classes[class].flows.response_bytes += bytes;
    }

    /// The measured span ends earlier than the scenario says.
    pub fn bring_end_forward(&mut self, end: Time) {
        self.span.end = self.span.end.min(end);
    }

    /// What the datagrams of a class met in the measured span.
    pub fn on_datagrams(&mut self, class: usize, datagrams: &DatagramStats) {
        self.classes[class].flows.datagrams.merge(datagrams);
    }

    /// The run ends: what the users of a class got.
    pub fn on_quality(&mut self, class: usize, quality: Quality) {
        self.classes[class].quality = Some(quality);
    }

    /// What stations sent and were sent on the air in the measured span.
    pub fn on_air(&mut self, stations: Vec<StationsOnAir>) {
        self.stations = stations;
    }

    /// A connection has ended.
    #[inline]
    pub fn on_closed(&mut self, flow: &Flow) {
        self.add_goodput(flow, flow.end);
        if self.span.contains(flow.end) {
            self.classes[flow.class].flows.add_closed(flow);
            self.records.flow(flow);
        }
    }

    /// A connection goes on when the run ends; its sender's congestion window in bytes, if it can
    /// be seen.
    pub fn on_still_open(&mut self, flow: &Flow, cwnd: Option<u64>) {
        self.classes[flow.class].flows.add_still_open(cwnd);
        self.add_goodput(flow, self.span.end);
    }

    /// The run ends for a flow of datagrams, of which so many were sent and lost in the measured
    /// span. It is recorded whenever its last datagram came.
    pub fn on_datagram_flow(&mut self, flow: &Flow, sent: u64, lost: u64) {
        self.add_goodput(flow, self.span.end);
        self.classes[flow.class].flows.add_datagrams(sent, lost);
        self.records.flow(flow);
    }

    #[inline]
    fn add_goodput(&mut self, flow: &Flow, end: Time) {
        let span = self.span.overlap(flow.start, end);
        let flows = &mut self.classes[flow.class].flows;
        flows.add_goodput(flow.measured_bytes, span, flow.rtt);
    }

    /// Records the state of a connection.
    pub fn trace(&mut self, row: &TraceRow) {
        self.records.trace(row);
    }

    /// Packets will be recorded that reach these queues.
    pub fn begin_packets(&mut self, ports: &[LinkDirection]) -> Result<(), RunError> {
        self.packets = self.packets(ports)?;
        Ok(())
    }

    /// Where packets are recorded that reach these queues, for a caller that writes them itself.
    pub fn packets(
        &mut self,
        ports: &[LinkDirection],
    ) -> Result<Option<Box<dyn PacketRecords>>, RunError> {
        self.records.packets(ports)
    }

    /// Records what became of a packet at a queue.
    #[inline]
    pub fn on_packet(&mut self, row: &PacketRow) {
        if let Some(packets) = &mut self.packets {
            packets.packet(row);
        }
    }

    /// Records the samples of a link's queue that wait for it.
    pub fn record_samples(&mut self, link: &mut LinkStats) {
        self.records.queue(link.samples());
        link.forget_samples();
    }

    /// Where the scenario's capture is written, if anywhere.
    pub fn capture(&mut self) -> Result<Option<Box<dyn Write + Send>>, RunError> {
        self.records.capture()
    }

    /// Whether everything could be written so far.
    pub fn check(&mut self) -> Result<(), RunError> {
        self.packets.as_mut().map_or(Ok(()), |it| it.check())?;
        self.records.check()
    }

    /// Writes what is left of the records and sums up; `events` is what the run counts as its
    /// work.
    pub fn finish<'a>(
        mut self,
        scenario: &Scenario,
        links: impl IntoIterator<Item = &'a mut LinkStats>,
        events: u64,
    ) -> Result<Summary, RunError> {
        let mut of_links: Vec<&LinkStats> = Vec::new();
        for link in links {
            self.record_samples(link);
            of_links.push(link);
        }
        let mut summary = Summary::new(scenario, &of_links, &self.classes, events);
        if let Some(sockets) = &self.sockets {
            summary.add_sockets(sockets, scenario.measure.duration);
        }
        summary.add_stations(&self.stations, scenario.measure.duration);
        if HAS_BREAKDOWN && let Some(ports) = &self.ports {
            summary.add_breakdowns(&self.classes, ports);
        }
        if let Some(packets) = self.packets {
            packets.finish()?;
        }
        self.records.finish(&self.classes, &of_links)?;
        Ok(summary)
    }
}
