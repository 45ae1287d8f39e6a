//! The summary of a run: what `summary.json` holds. Keys end in their unit.

use std::collections::BTreeMap;

use aqmlab_aqm::Reason;
use aqmlab_net::Time;
use aqmlab_scenario::Scenario;
use serde::Serialize;

use crate::{ClassMetrics, FlowStats, LinkStats, ResponseStats};

/// Name of all classes together in a summary.
const ALL: &str = "all";

/// What a run showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Title of the scenario.
    pub scenario: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Simulated time, warm-up included.
    pub simulated_s: f64,
    /// Simulated time that was measured.
    pub measured_s: f64,
    /// Events that the engine handled.
    pub events: u64,
    /// Version of aqmlab.
    pub version: String,
    /// By link and direction.
    pub links: BTreeMap<String, BTreeMap<String, LinkSummary>>,
    /// By class of traffic, and "all".
    pub responses: BTreeMap<String, ResponseSummary>,
    /// By class of traffic, and "all".
    pub flows: BTreeMap<String, FlowSummary>,
}

/// One direction of a link in the measured span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Packets that came to the queue.
    pub arrived_packets: u64,
    /// Packets that the discipline dropped.
    pub dropped_packets: u64,
    /// Packets that the discipline marked and let in.
    pub marked_packets: u64,
    /// Packets whose transmission ended.
    pub departed_packets: u64,
    /// Packets that were sent and then lost at random on the wire.
    pub wire_lost_packets: u64,
    /// Dropped share of the arrived packets.
    pub loss_rate: f64,
    /// Marked share of the arrived packets.
    pub mark_rate: f64,
    /// IP bits per second that left.
    pub throughput_bps: f64,
    /// Share of time in which the wire was busy, framing included.
    pub utilization: f64,
    /// Time average of the packets in the discipline (not on the wire, not in the device ring).
    pub queue_mean_packets: f64,
    /// Largest number of packets in the discipline.
    pub queue_max_packets: u32,
    /// Median of the sampled queue lengths.
    pub queue_p50_packets: Option<u32>,
    /// 95th percentile of the sampled queue lengths.
    pub queue_p95_packets: Option<u32>,
    /// 99th percentile of the sampled queue lengths.
    pub queue_p99_packets: Option<u32>,
    /// Mean time in the discipline of the packets that left it for the wire or the device ring.
    pub queue_mean_s: Option<f64>,
    /// Dropped packets by reason.
    pub drops: BTreeMap<String, u64>,
    /// Marked packets by reason.
    pub marks: BTreeMap<String, u64>,
}

/// Request/response exchanges of one class that ended in the measured span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResponseSummary {
    /// Exchanges that began in the measured span.
    pub started: u64,
    /// Exchanges that ended in it.
    pub count: u64,
    /// Mean response time.
    pub mean_s: Option<f64>,
    /// 10th percentile of response times.
    pub p10_s: Option<f64>,
    /// 25th percentile.
    pub p25_s: Option<f64>,
    /// Median.
    pub p50_s: Option<f64>,
    /// 75th percentile.
    pub p75_s: Option<f64>,
    /// 90th percentile.
    pub p90_s: Option<f64>,
    /// 95th percentile.
    pub p95_s: Option<f64>,
    /// 99th percentile.
    pub p99_s: Option<f64>,
    /// Longest.
    pub max_s: Option<f64>,
    /// Share that took at most 1 s.
    pub le_1s: Option<f64>,
    /// Share that took at most 2 s.
    pub le_2s: Option<f64>,
    /// Share that took at most 3 s.
    pub le_3s: Option<f64>,
    /// Share that took longer than 3 s.
    pub gt_3s: Option<f64>,
}

/// Connections of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Connections that ended in the measured span.
    pub count: u64,
    /// Those of them that were given up.
    pub failed: u64,
    /// Connections that were not opened because the class had as many as it may.
    pub refused: u64,
    /// Mean time from opening to closing of those that were not given up.
    pub duration_mean_s: Option<f64>,
    /// Median of these times.
    pub duration_p50_s: Option<f64>,
    /// 75th percentile.
    pub duration_p75_s: Option<f64>,
    /// 90th percentile.
    pub duration_p90_s: Option<f64>,
    /// 95th percentile.
    pub duration_p95_s: Option<f64>,
    /// 99th percentile.
    pub duration_p99_s: Option<f64>,
    /// Application bits per second that clients received.
    pub goodput_bps: f64,
    /// Jain's index over the goodput of connections in the measured span.
    pub fairness_jain: Option<f64>,
    /// Jain's index over goodput times minimum round-trip time (Zhang and Qiu 2000).
    pub fairness_normalized: Option<f64>,
    /// SYN and SYN-ACK segments sent again.
    pub retransmitted_syn: u64,
    /// FIN segments without data sent again.
    pub retransmitted_fin: u64,
    /// Data segments sent again.
    pub retransmitted_data: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Share of the connections with a fast retransmit.
    pub fast_retransmit_share: Option<f64>,
    /// Segments with data lost in the measured span, at a queue or on a wire, of all connections:
    /// also of those that go on when it ends. Only a simulated network tells.
    pub lost_segments: Option<u64>,
    /// Expiries of the retransmission timer in the measured span, of all connections.
    pub expiries: Option<u64>,
    /// Datagrams sent in the measured span.
    pub datagrams_sent: u64,
    /// Datagrams lost in it, at the bottleneck or on the wire.
    pub datagrams_lost: u64,
    /// Share of the flows of datagrams that lost more than a tenth of them.
    pub lossy_datagram_flows: Option<f64>,
    /// Exclusive shares of the connections by what had to be sent again, at either end, until
    /// the client had received everything.
    pub retransmission_shares: Option<RetransmissionShares>,
}

/// Exclusive shares of connections by what had to be sent again until the client had everything.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RetransmissionShares {
    /// Nothing.
    pub none: f64,
    /// Only SYNs.
    pub syn: f64,
    /// Only FINs.
    pub fin: f64,
    /// Only data.
    pub data: f64,
    /// Segments of several of these kinds.
    pub several: f64,
}

impl Summary {
    /// From what was counted of links and classes; `events` is what the run counts as its work.
    pub(crate) fn new(
        scenario: &Scenario,
        links: &[&LinkStats],
        classes: &[ClassMetrics],
        events: u64,
    ) -> Self {
        let measured = scenario.measure.duration;
        let mut by_name = BTreeMap::<String, BTreeMap<_, _>>::new();
        for stats in links {
            let link = by_name.entry(stats.name().link.clone()).or_default();
            let summary = link_summary(stats, measured);
            link.insert(stats.name().direction.to_owned(), summary);
        }
        let mut all_responses = ResponseStats::default();
        let mut all_flows = FlowStats::default();
        let mut responses = BTreeMap::new();
        let mut flows = BTreeMap::new();
        for class in classes {
            all_responses.merge(class.responses());
            all_flows.merge(class.flows());
            let name = class.name();
            responses.insert(name.to_owned(), response_summary(class.responses()));
            flows.insert(name.to_owned(), flow_summary(class.flows(), measured));
        }
        responses.insert(ALL.to_owned(), response_summary(&all_responses));
        flows.insert(ALL.to_owned(), flow_summary(&all_flows, measured));
        Self {
            scenario: scenario.title.clone(),
            seed: scenario.seed,
            simulated_s: (scenario.measure.warm_up + measured).as_secs_f64(),
            measured_s: measured.as_secs_f64(),
            events,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            links: by_name,
            responses,
            flows,
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn by_reason(counts: impl Iterator<Item = (Reason, u64)>) -> BTreeMap<String, u64> {
    let named = counts.map(|(reason, packets)| (reason.name().to_owned(), packets));
    named.collect()
}

fn link_summary(stats: &LinkStats, measured: Time) -> LinkSummary {
    let seconds = measured.as_secs_f64();
    let counters = &stats.counters;
    let (dropped, marked) = (counters.dropped_packets(), counters.marked_packets());
    LinkSummary {
        arrived_packets: counters.arrived_packets,
        dropped_packets: dropped,
        marked_packets: marked,
        departed_packets: stats.departed_packets,
        wire_lost_packets: stats.wire_lost_packets,
        loss_rate: share(dropped, counters.arrived_packets),
        mark_rate: share(marked, counters.arrived_packets),
        throughput_bps: stats.departed_bytes as f64 * 8.0 / seconds,
        utilization: stats.busy.as_secs_f64() / seconds,
        queue_mean_packets: stats.waited as f64 / measured.as_nanos() as f64,
        queue_max_packets: stats.max_packets,
        queue_p50_packets: stats.queue_percentile(0.5),
        queue_p95_packets: stats.queue_percentile(0.95),
        queue_p99_packets: stats.queue_percentile(0.99),
        queue_mean_s: (stats.left_packets > 0)
            .then(|| stats.delay_sum as f64 / stats.left_packets as f64 / 1e9),
        drops: by_reason(counters.drops()),
        marks: by_reason(counters.marks()),
    }
}

fn response_summary(stats: &ResponseStats) -> ResponseSummary {
    let times = &stats.times;
    let within = |seconds: usize| {
        (times.count() > 0).then(|| share(stats.within[seconds - 1], times.count()))
    };
    ResponseSummary {
        started: stats.started,
        count: times.count(),
        mean_s: times.mean_s(),
        p10_s: times.quantile_s(0.10),
        p25_s: times.quantile_s(0.25),
        p50_s: times.quantile_s(0.50),
        p75_s: times.quantile_s(0.75),
        p90_s: times.quantile_s(0.90),
        p95_s: times.quantile_s(0.95),
        p99_s: times.quantile_s(0.99),
        max_s: times.max_s(),
        le_1s: within(1),
        le_2s: within(2),
        le_3s: within(3),
        gt_3s: within(3).map(|share| 1.0 - share),
    }
}

fn flow_summary(stats: &FlowStats, measured: Time) -> FlowSummary {
    let [none, syn, fin, data, several] = stats
        .by_retransmission
        .map(|count| share(count, stats.count));
    FlowSummary {
        count: stats.count,
        failed: stats.failed,
        refused: stats.refused,
        duration_mean_s: stats.durations.mean_s(),
        duration_p50_s: stats.durations.quantile_s(0.50),
        duration_p75_s: stats.durations.quantile_s(0.75),
        duration_p90_s: stats.durations.quantile_s(0.90),
        duration_p95_s: stats.durations.quantile_s(0.95),
        duration_p99_s: stats.durations.quantile_s(0.99),
        goodput_bps: stats.response_bytes as f64 * 8.0 / measured.as_secs_f64(),
        fairness_jain: stats.jain(),
        fairness_normalized: stats.jain_normalized(),
        retransmitted_syn: stats.retransmitted_syn,
        retransmitted_fin: stats.retransmitted_fin,
        retransmitted_data: stats.retransmitted_data,
        timeouts: stats.timeouts,
        fast_retransmit_share: (stats.count > 0)
            .then(|| share(stats.with_fast_retransmit, stats.count)),
        lost_segments: stats.seen.map(|seen| seen.lost_segments),
        expiries: stats.seen.map(|seen| seen.timeouts),
        datagrams_sent: stats.datagrams_sent,
        datagrams_lost: stats.datagrams_lost,
        lossy_datagram_flows: (stats.datagram_flows > 0)
            .then(|| share(stats.lossy_datagram_flows, stats.datagram_flows)),
        retransmission_shares: (stats.count > 0).then_some(RetransmissionShares {
            none,
            syn,
            fin,
            data,
            several,
        }),
    }
}
