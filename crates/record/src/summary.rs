//! The summary of a run: what `summary.json` holds. Keys end in their unit.

use std::collections::BTreeMap;

use aqmlab_aqm::Reason;
use aqmlab_net::Time;
use aqmlab_scenario::{HAS_BREAKDOWN, Scenario};

use crate::air::{self, AirSummary, StationsOnAir};
use crate::breakdown::{BreakdownStats, PartsSummary, PortParts};
use crate::declaration::results;
use crate::parts::{self, PartSum};
use crate::quality::QualitySummary;
use crate::sockets::{SocketStats, SocketSummary};
use crate::{ClassMetrics, FlowStats, LinkStats, ResponseStats, Transit};

/// Name of all classes together in a summary.
const ALL: &str = "all";

results! {
    /// Results of a run.
    pub struct Summary {
        /// Title of the scenario.
        scenario: String = "scenario", NUMBER;
        /// Seed of every random stream.
        seed: u64 = "seed", NUMBER;
        /// Simulated time, warm-up included.
        simulated_s: f64 = "simulated", SECONDS;
        /// Length of the measured span.
        measured_s: f64 = "measured", SECONDS;
        /// Events that the engine processed.
        events: u64 = "events", NUMBER;
        /// Version of aqmlab.
        version: String = "version", NUMBER;
        /// Results for each link and direction.
        links: BTreeMap<String, BTreeMap<String, LinkSummary>> = "links", NUMBER;
        /// Results for each class of traffic, and for `all` classes together.
        responses: BTreeMap<String, ResponseSummary> = "responses", NUMBER;
        /// Results for each class of traffic, and for `all` classes together.
        flows: BTreeMap<String, FlowSummary> = "flows", NUMBER;
        /// Results for each kind of station and each direction on the air. Only with `topology.wifi`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        wifi: BTreeMap<String, BTreeMap<String, AirSummary>> = "Wi-Fi", NUMBER;
        /// Results for each class with a model that measures the quality for its users.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        quality: BTreeMap<String, QualitySummary> = "quality", NUMBER;
/// Results for each side, `clients` and `servers`. Only if the hosts have a limit of `sockets`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        sockets: BTreeMap<String, SocketSummary> = "sockets", NUMBER;
        /// Where the time of responses went, for each class of traffic and for `all` classes
        /// together, by band. Only with `measure.breakdown`.
        #[serde(skip_serializing_if = "has_no_parts")]
        breakdown: BTreeMap<String, BTreeMap<String, PartsSummary>> = "breakdown", NUMBER;
    }
}

results! {
    /// One direction of a link in the measured span.
    ///
    /// A packet counts when the counted event falls into this span.
    pub struct LinkSummary {
        /// Packets that arrived at the queue.
        arrived_packets: u64 = "arrived", PACKETS, digits 0, head "arrived";
        /// Packets that the discipline dropped.
        dropped_packets: u64 = "dropped", PACKETS;
        /// Packets that the discipline marked (ECN CE) and admitted.
        marked_packets: u64 = "marked", PACKETS;
        /// Packets sent completely on the wire.
        departed_packets: u64 = "departed", PACKETS;
        /// Packets lost at random on the wire (`loss` in the scenario).
        wire_lost_packets: u64 = "lost on the wire", PACKETS;
        /// `dropped_packets / arrived_packets`.
        loss_rate: f64 = "loss", SHARE, digits 2, head "loss %", name "loss";
        /// `marked_packets / arrived_packets`.
        mark_rate: f64 = "marked", SHARE, digits 2, head "marked %", name "marked";
        /// IP bits of departed packets per second, without framing.
        throughput_bps: f64 = "throughput", BIT_RATE, digits 2, head "Mbit/s", name "throughput";
        /// Share of time in which the wire was busy, framing included.
        utilization: f64 = "utilization", SHARE, digits 1, head "busy %", name "utilization";
        /// Exact time average of the packets in the discipline, without the wire and the device
        /// ring.
        queue_mean_packets: f64 = "mean queue", PACKETS, digits 1, head "queue mean", name "queue";
        /// Maximum number of packets in the discipline.
        queue_max_packets: u32 = "largest queue", PACKETS,
            digits 0, head "queue max", after "queue_p99_packets";
        /// Median of the queue lengths, sampled every `measure.queue_sample`.
        queue_p50_packets: Option<u32> = "50 % queue", PACKETS;
        /// 95th percentile of the sampled queue lengths.
        queue_p95_packets: Option<u32> = "95 % queue", PACKETS, digits 0, head "queue p95";
        /// 99th percentile of the sampled queue lengths.
        queue_p99_packets: Option<u32> = "99 % queue", PACKETS;
        /// Mean queueing delay (sojourn time) of packets that left the discipline for the wire or
        /// the device ring.
        sojourn_mean_s: Option<f64> = "mean queueing delay", MILLISECONDS,
            digits 1, head "delay mean ms", name "delay";
        percentiles sojourn_p(
            50 "Median of the queueing delays of all packets, exact to 1/128." [digits 1],
            90, 95, 99 [digits 1, head "delay p99 ms"], 999
        )_s = (N " queueing delay"), MILLISECONDS, of " of the queueing delays, exact to 1/128",
            names "delay_p", each ();
        /// Maximum queueing delay, exact.
        sojourn_max_s: Option<f64> = "longest queueing delay", MILLISECONDS, digits 1, name "delay_max";
        /// Dropped packets by reason, such as `early` (a congestion signal), `forced` (a state in
        /// which the discipline only drops) and `overflow` (the buffer was full). Pages of
        /// disciplines list others.
        drops: BTreeMap<String, u64> = "drops", PACKETS;
        /// Marked packets by reason.
        marks: BTreeMap<String, u64> = "marks", PACKETS;
        /// Throughput and queueing delays by class of traffic, for classes with packets on this
        /// link.
        classes: BTreeMap<String, TransitSummary> = "by class", NUMBER;
        /// By node of a tree of rates: all subscribers below it.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        nodes: BTreeMap<String, PartSummary> = "by node", NUMBER;
        /// By plan of a tree of rates: its subscribers.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        plans: BTreeMap<String, PartSummary> = "by plan", NUMBER;
    }

    /// A node or a plan of a tree of rates in one direction of a link. Hosts without a plan do not
    /// count. If they share a leaf, they count as one more subscriber of this leaf's plan.
    pub struct PartSummary {
        /// Subscribers of the plan or below the node.
        subscribers: u64 = "subscribers", NUMBER;
        /// Subscribers of which a packet left the queue.
        active_subscribers: u64 = "active subscribers", NUMBER;
        /// Packets that left the queues of these subscribers.
        left_packets: u64 = "left", PACKETS;
        /// IP bits of these packets per second.
        throughput_bps: f64 = "throughput", BIT_RATE, better "more";
        /// Packets that their queues dropped.
        dropped_packets: u64 = "dropped", PACKETS;
        /// Packets that their queues marked.
        marked_packets: u64 = "marked", PACKETS;
        /// Share of time in which the ceiling held waiting packets. For a plan: the mean over
        /// subscribers.
        at_ceiling: f64 = "at the ceiling", SHARE;
        /// Share of time in which waiting packets could only borrow, because the assured rate was
        /// used up. For a plan: the mean over subscribers.
        borrowing: f64 = "borrowing", SHARE;
        /// Jain's index over the throughput of active subscribers; 1: equal shares.
        subscribers_jain: Option<f64> = "Jain's index of subscribers", NUMBER,
            within (0.0, 1.0), better "more";
        /// Mean of the queueing delays of these packets.
        sojourn_mean_s: Option<f64> = "mean queueing delay", MILLISECONDS;
        percentiles sojourn_p(50, 90, 95, 99, 999)_s = (N " queueing delay"), MILLISECONDS,
            of " of their queueing delays, to within 1/128", names "", each ();
        /// Longest of their queueing delays: exact.
        sojourn_max_s: Option<f64> = "longest queueing delay", MILLISECONDS;
    }

    /// Packets of one class that left the discipline of one direction of a link. A class without
    /// packets there has no entry.
    pub struct TransitSummary {
        /// Packets that left the discipline for the wire or the device ring.
        left_packets: u64 = "left", PACKETS;
        /// IP bits of these packets per second, without framing.
        throughput_bps: f64 = "throughput", BIT_RATE;
        /// Mean queueing delay (sojourn time) of these packets.
        sojourn_mean_s: Option<f64> = "mean queueing delay", MILLISECONDS;
        percentiles sojourn_p(50, 90, 95, 99, 999)_s = (N " queueing delay"), MILLISECONDS,
            of " of these queueing delays, exact to 1/128", names "", each ();
        /// Maximum queueing delay of these packets, exact.
        sojourn_max_s: Option<f64> = "longest queueing delay", MILLISECONDS;
    }

    /// Request/response exchanges of a class of traffic that ended in the measured span, whenever
    /// they started.
    pub struct ResponseSummary {
        /// Exchanges that started in the measured span.
        started: u64 = "started", NUMBER, digits 0;
        /// Exchanges that ended in the measured span.
        count: u64 = "ended", NUMBER, digits 0, head "responses", name "responses";
        /// Mean response time.
        mean_s: Option<f64> = "mean", SECONDS, digits 3, head "mean s", name "mean";
        percentiles p(
            10 "10th percentile of the response times.",
            25, 50 [head "p50 s"], 75, 90 [head "p90 s"], 95, 99 [head "p99 s"]
        )_s = (N ""), SECONDS, of "", names "p", each (digits 3);
        /// Maximum response time.
        max_s: Option<f64> = "slowest", SECONDS, digits 1, head "max s";
        /// Share of responses within 1 s.
        le_1s: Option<f64> = "≤ 1 s", SHARE, digits 1, head "<= 1 s %", name "le_1s", better "more";
        /// Share of responses within 2 s.
        le_2s: Option<f64> = "≤ 2 s", SHARE, digits 1, head "<= 2 s %", name "le_2s", better "more";
        /// Share of responses within 3 s.
        le_3s: Option<f64> = "≤ 3 s", SHARE, digits 1, head "<= 3 s %", name "le_3s", better "more";
        /// Share of responses over 3 s.
        gt_3s: Option<f64> = "> 3 s", SHARE, digits 1, head "> 3 s %", name "gt_3s";
    }

    /// Connections and flows of datagrams of a class. Connections that ended in the measured span
    /// count with their whole life. Fields of all connections count open ones too, such as endless
    /// transfers, with what happened in the span. A live run lacks these fields, windows, round
    /// trips, delays of datagrams and fast retransmits.
    pub struct FlowSummary {
        /// Connections that ended in the measured span, and flows of datagrams.
        count: u64 = "connections", NUMBER, digits 0, head "connections";
        /// Connections still open at the end of the span.
        still_open: u64 = "open at the end", NUMBER, digits 0, head "open";
        /// Aborted connections: one end gave up after too many retransmissions.
        failed: u64 = "aborted", NUMBER;
        /// Connections not opened because of `max_connections`.
        refused: u64 = "refused", NUMBER;
        /// Mean duration of connections from opening to closing, without aborted connections.
        duration_mean_s: Option<f64> = "mean duration", SECONDS;
        percentiles duration_p(
            50 "Median duration of connections.", 75, 90, 95, 99
        )_s = ("duration p" N), SECONDS, of "", names "", each ();
        /// Application bits per second that clients received.
        goodput_bps: f64 = "goodput", BIT_RATE,
            digits 3, head "goodput Mbit/s", name "goodput", better "more";
        /// Application bits per second that servers received. Only with `aqmlab shell`.
        #[serde(skip_serializing_if = "Option::is_none")]
        upload_goodput_bps: Option<f64> = "upload goodput", BIT_RATE,
            digits 3, head "upload Mbit/s", name "upload", better "more";
        /// Jain's index `(Σx)² / (n Σx²)` over the goodput `x` of connections; 1: equal shares. It
        /// suits only connections that compete all the time (bulk).
        fairness_jain: Option<f64> = "Jain's index", NUMBER,
            digits 3, head "Jain", name "fairness", within (0.0, 1.0), better "more";
        /// Jain's index over goodput x minimum round-trip time (Zhang and Qiu 2000); 1: goodput is
        /// inversely proportional to the round-trip time.
        fairness_normalized: Option<f64> = "normalized fairness", NUMBER, better "more";
        /// Retransmitted SYN and SYN-ACK segments.
        retransmitted_syn: u64 = "SYN sent again", NUMBER, digits 0, head "SYN again";
        /// Retransmitted FIN segments without data.
        retransmitted_fin: u64 = "FIN sent again", NUMBER, digits 0, head "FIN again";
        /// Retransmitted data segments.
        retransmitted_data: u64 = "data sent again", NUMBER, digits 0, head "data again";
        /// Expiries of the retransmission timer of ended connections.
        closed_timeouts: u64 = "timeouts", NUMBER, digits 0, head "timeouts";
        /// Share of ended connections with a fast retransmit at either end.
        fast_retransmit_share: Option<f64> = "with fast retransmit", SHARE;
        /// Data segments of all connections lost at a queue or on a wire.
        lost_segments: Option<u64> = "lost segments", NUMBER;
        /// Expiries of the retransmission timer of all connections.
        span_timeouts: Option<u64> = "time-outs in the span", NUMBER,
            digits 0, head "timeouts in span", after "span_retransmitted_data";
        /// Retransmitted SYN and SYN-ACK segments of all connections.
        span_retransmitted_syn: Option<u64> = "SYN sent again in the span", NUMBER;
        /// Retransmitted FIN segments without data, of all connections.
        span_retransmitted_fin: Option<u64> = "FIN sent again in the span", NUMBER;
        /// Retransmitted data segments of all connections.
        span_retransmitted_data: Option<u64> = "data sent again in the span", NUMBER,
            digits 0, head "data again in span";
        /// Minimum round-trip time that senders of responses measured, on all connections. Samples
        /// are data segments sent once (Karn): one per round trip, or every ACK with time stamps.
        /// They include the ACK delay.
        rtt_min_s: Option<f64> = "shortest RTT", MILLISECONDS, digits 1, name "rtt_min";
        /// Mean of the measured round-trip times.
        rtt_mean_s: Option<f64> = "mean RTT", MILLISECONDS, name "rtt";
        percentiles rtt_p(
            50 [digits 1, head "RTT p50 ms"], 95 [digits 1, head "RTT p95 ms"], 99
        )_s = (N " RTT"), MILLISECONDS, of " of the measured round-trip times, exact to 1/128",
            names "rtt_p", each ();
        /// Mean of the sender's smoothed round-trip time (SRTT of RFC 6298 or the stack's
        /// equivalent).
        srtt_mean_s: Option<f64> = "smoothed RTT", MILLISECONDS, name "srtt";
        /// Mean round-trip time of the idle path: propagation, plus a full segment forth and an ACK
        /// back on every link at its initial rate.
        rtt_idle_s: Option<f64> = "idle RTT", MILLISECONDS, name "rtt_idle";
        percentiles rtt_increase_p(
            50 "Median increase of the measured round-trip time over the idle path, exact to 1/128. \
                Queues and delayed ACKs cause it.",
            95 [digits 1]
        )_s = (N " RTT increase"), MILLISECONDS,
            of " of the increase of the measured round-trip time over the idle path",
            names "rtt_increase_p", each ();
        /// Mean congestion window of senders of responses at the round-trip samples.
        cwnd_mean_bytes: Option<f64> = "mean cwnd", BYTES, digits 1, head "cwnd kB", name "cwnd";
        /// Mean congestion window of open connections at the end of the span, of senders of
        /// responses.
        cwnd_end_bytes: Option<f64> = "cwnd at the end", BYTES;
        /// Datagrams sent in the measured span.
        datagrams_sent: u64 = "datagrams sent", NUMBER, digits 0, head "sent";
        /// Datagrams lost at a queue or on a wire.
        datagrams_lost: u64 = "datagrams lost", NUMBER;
        /// Share of datagram flows that lost more than 10 % of their datagrams.
        lossy_datagram_flow_share: Option<f64> = "lossy flows of datagrams", SHARE;
        /// `datagrams_lost / datagrams_sent`.
        datagram_loss_rate: Option<f64> = "datagram loss", SHARE,
            digits 2, head "loss %", name "datagram_loss";
        /// Mean one-way delay of datagrams from source to receiver, propagation included.
        datagram_delay_mean_s: Option<f64> = "mean one-way delay", MILLISECONDS,
            name "datagram_delay";
        percentiles datagram_delay_p(
            50 [head "delay p50 ms"], 95 [head "delay p95 ms"], 99 [head "delay p99 ms"]
        )_s = (N " one-way delay"), MILLISECONDS, of " of the one-way delays, exact to 1/128",
            names "datagram_delay_p", each (digits 1);
        /// Maximum one-way delay, exact.
        datagram_delay_max_s: Option<f64> = "longest one-way delay", MILLISECONDS;
        /// Interarrival jitter J of each flow (RFC 3550, section 6.4.1), mean over arrived
        /// datagrams.
        datagram_jitter_s: Option<f64> = "jitter", MILLISECONDS,
            digits 2, head "jitter ms", name "jitter";
        percentiles datagram_ipdv_p(
            50 "Median absolute inter-packet delay variation (IPDV, RFC 5481, section 4.1), exact to \
                1/128: the difference between the one-way delays of consecutive datagrams. Pairs \
                with a lost datagram do not count.",
            95, 99 [digits 2, head "IPDV p99 ms"]
        )_s = (N " IPDV"), MILLISECONDS,
            of " of the inter-packet delay variation, exact to 1/128", names "ipdv_p", each ();
        /// Maximum time between two arrivals of a flow. Silences of on/off sources count.
        datagram_gap_max_s: Option<f64> = "longest gap", MILLISECONDS,
            digits 1, head "longest gap ms", name "gap";
        /// Most consecutive datagrams that a flow lost, in sending order (longest loss period of
        /// RFC 3357).
        datagram_loss_run_max: Option<u64> = "longest run of losses", DATAGRAMS,
            digits 0, head "lost in a row";
        /// Shares of connections by the kinds of segments that either end retransmitted until the
        /// client had received everything. They are exclusive and add up to 1 (Christiansen et al.
        /// 2000, Table 5).
        retransmission_shares: Option<RetransmissionShares> = "by retransmission", SHARE;
    }

    /// Exclusive shares of connections by the kinds of segments that were retransmitted until the
    /// client had received everything.
    pub struct RetransmissionShares {
        /// Share of connections that retransmitted nothing.
        none: f64 = "nothing sent again", SHARE;
        /// Only SYNs.
        syn: f64 = "only SYNs", SHARE;
        /// Only FINs.
        fin: f64 = "only FINs", SHARE;
        /// Only data.
        data: f64 = "only data", SHARE;
        /// Several kinds.
        several: f64 = "several kinds", SHARE;
    }
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
            let summary = link_summary(stats, classes, measured);
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
        let quality = classes.iter().filter_map(|class| {
            let found = class.quality.as_ref()?;
            Some((class.name().to_owned(), QualitySummary::of(found, measured)))
        });
        responses.insert(ALL.to_owned(), response_summary(&all_responses));
        flows.insert(ALL.to_owned(), flow_summary(&all_flows, measured));
        let values = SummaryValues {
            scenario: scenario.title.clone(),
            seed: scenario.seed,
            simulated_s: (scenario.measure.warm_up + measured).as_secs_f64(),
            measured_s: measured.as_secs_f64(),
            events,
            version: crate::version(),
            links: by_name,
            responses,
            flows,
            wifi: BTreeMap::new(),
            quality: quality.collect(),
            sockets: BTreeMap::new(),
            breakdown: BTreeMap::new(),
        };
        values.into()
    }

    /// What became of the sockets of clients and of servers.
    pub(crate) fn add_sockets(&mut self, [clients, servers]: &[SocketStats; 2], measured: Time) {
        for (side, stats) in [("clients", clients), ("servers", servers)] {
            let of_side = SocketSummary::of(stats, measured);
            self.sockets.insert(side.to_owned(), of_side);
        }
    }

    /// What was on the air, over so much measured time.
    pub(crate) fn add_stations(&mut self, stations: &[StationsOnAir], measured: Time) {
        self.wifi = air::summarize(stations, measured);
    }

    /// Where the time of responses went; the ports have these names.
    pub(crate) fn add_breakdowns(&mut self, classes: &[ClassMetrics], ports: &[PortParts]) {
        let mut all = BreakdownStats::default();
        for class in classes {
            all.merge(&class.breakdowns);
            let bands = class.breakdowns.bands(ports);
            self.breakdown.insert(class.name().to_owned(), bands);
        }
        self.breakdown.insert(ALL.to_owned(), all.bands(ports));
    }
}

/// Whether responses were not broken down: a build that never does so need not know how to write it.
#[inline(always)]
fn has_no_parts(breakdown: &BTreeMap<String, BTreeMap<String, PartsSummary>>) -> bool {
    !HAS_BREAKDOWN || breakdown.is_empty()
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

fn transit_summary(transit: &Transit, measured: Time) -> TransitSummary {
    let sojourn = &transit.delays;
    let values = TransitSummaryValues {
        left_packets: sojourn.count(),
        throughput_bps: transit.bytes as f64 * 8.0 / measured.as_secs_f64(),
        sojourn_mean_s: sojourn.mean_s(),
        sojourn_p: sojourn.quantiles_s(TransitSummary::SOJOURN_P),
        sojourn_max_s: sojourn.max_s(),
    };
    values.into()
}

fn link_summary(stats: &LinkStats, classes: &[ClassMetrics], measured: Time) -> LinkSummary {
    let seconds = measured.as_secs_f64();
    let counters = &stats.counters;
    let (dropped, marked) = (counters.dropped_packets(), counters.marked_packets());
    let sojourn = stats.sojourn();
    let by_class = stats.by_class().map(|(class, transit)| {
        let name = classes[class].name().to_owned();
        (name, transit_summary(transit, measured))
    });
    let values = LinkSummaryValues {
        arrived_packets: counters.arrived_packets,
        dropped_packets: dropped,
        marked_packets: marked,
        departed_packets: stats.departed_packets,
        wire_lost_packets: stats.wire_lost_packets,
        loss_rate: share(dropped, counters.arrived_packets),
        mark_rate: share(marked, counters.arrived_packets),
        throughput_bps: stats.departed_bytes as f64 * 8.0 / seconds,
        utilization: stats.busy.as_secs_f64() / seconds,
        queue_mean_packets: stats.waited() as f64 / measured.as_nanos() as f64,
        queue_max_packets: stats.max_packets,
        queue_p50_packets: stats.queue_percentile(0.5),
        queue_p95_packets: stats.queue_percentile(0.95),
        queue_p99_packets: stats.queue_percentile(0.99),
        sojourn_mean_s: sojourn.mean_s(),
        sojourn_p: sojourn.quantiles_s(LinkSummary::SOJOURN_P),
        sojourn_max_s: sojourn.max_s(),
        drops: by_reason(counters.drops()),
        marks: by_reason(counters.marks()),
        classes: by_class.collect(),
        nodes: nodes(stats, measured),
        plans: plans(stats, measured),
    };
    values.into()
}

fn nodes(stats: &LinkStats, measured: Time) -> BTreeMap<String, PartSummary> {
    let nodes = stats.parts().into_iter().flat_map(|parts| {
        let sums = parts::by_node(parts, stats.by_cell());
        parts.nodes.iter().zip(sums)
    });
    let summaries = nodes.map(|(node, sum)| (node.name.clone(), part_summary(&sum, 1, measured)));
    summaries.collect()
}

fn plans(stats: &LinkStats, measured: Time) -> BTreeMap<String, PartSummary> {
    let plans = stats.parts().into_iter().flat_map(|parts| {
        let sums = parts::by_plan(parts, stats.by_cell());
        parts.plans.iter().zip(sums)
    });
    let summaries = plans.map(|(name, sum)| {
        let summary = part_summary(&sum, sum.subscribers, measured);
        (name.clone(), summary)
    });
    summaries.collect()
}

/// A part of which so many were held.
fn part_summary(sum: &PartSum, held: u64, measured: Time) -> PartSummary {
    let seconds = measured.as_secs_f64();
    let share = |time: Time| time.as_secs_f64() / (seconds * held.max(1) as f64);
    let values = PartSummaryValues {
        subscribers: sum.subscribers,
        active_subscribers: sum.active,
        left_packets: sum.tally.packets,
        throughput_bps: sum.tally.bytes as f64 * 8.0 / seconds,
        dropped_packets: sum.tally.dropped,
        marked_packets: sum.tally.marked,
        at_ceiling: share(sum.held.at_ceiling),
        borrowing: share(sum.held.borrowing),
        subscribers_jain: sum.jain(),
        sojourn_mean_s: sum.delays.mean_s(),
        sojourn_p: sum.delays.quantiles_s(PartSummary::SOJOURN_P),
        sojourn_max_s: sum.delays.max_s(),
    };
    values.into()
}

fn response_summary(stats: &ResponseStats) -> ResponseSummary {
    let times = &stats.times;
    let within = |seconds: usize| {
        (times.count() > 0).then(|| share(stats.within[seconds - 1], times.count()))
    };
    let values = ResponseSummaryValues {
        started: stats.started,
        count: times.count(),
        mean_s: times.mean_s(),
        p: ResponseSummary::P.map(|share| times.quantile_s(share)),
        max_s: times.max_s(),
        le_1s: within(1),
        le_2s: within(2),
        le_3s: within(3),
        gt_3s: within(3).map(|share| 1.0 - share),
    };
    values.into()
}

fn flow_summary(stats: &FlowStats, measured: Time) -> FlowSummary {
    let [none, syn, fin, data, several] = stats
        .by_retransmission
        .map(|count| share(count, stats.count));
    let (senders, datagrams) = (&stats.senders, &stats.datagrams);
    let round_trips = &senders.round_trips;
    let values = FlowSummaryValues {
        count: stats.count,
        still_open: stats.still_open,
        failed: stats.failed,
        refused: stats.refused,
        duration_mean_s: stats.durations.mean_s(),
        duration_p: FlowSummary::DURATION_P.map(|share| stats.durations.quantile_s(share)),
        goodput_bps: stats.response_bytes as f64 * 8.0 / measured.as_secs_f64(),
        upload_goodput_bps: stats
            .request_bytes
            .map(|bytes| bytes as f64 * 8.0 / measured.as_secs_f64()),
        fairness_jain: stats.jain(),
        fairness_normalized: stats.jain_normalized(),
        retransmitted_syn: stats.retransmitted_syn,
        retransmitted_fin: stats.retransmitted_fin,
        retransmitted_data: stats.retransmitted_data,
        closed_timeouts: stats.timeouts,
        fast_retransmit_share: (stats.count > 0 && stats.seen.is_some())
            .then(|| share(stats.with_fast_retransmit, stats.count)),
        lost_segments: stats.seen.map(|seen| seen.lost_segments),
        span_timeouts: stats.seen.map(|seen| seen.timeouts),
        span_retransmitted_syn: stats.seen.map(|_| senders.syn),
        span_retransmitted_fin: stats.seen.map(|_| senders.fin),
        span_retransmitted_data: stats.seen.map(|_| senders.data),
        rtt_min_s: round_trips.min_s(),
        rtt_mean_s: round_trips.samples.mean_s(),
        rtt_p: round_trips.samples.quantiles_s(FlowSummary::RTT_P),
        srtt_mean_s: round_trips.smoothed_mean_s(),
        rtt_idle_s: round_trips.idle_mean_s(),
        rtt_increase_p: round_trips
            .increases
            .quantiles_s(FlowSummary::RTT_INCREASE_P),
        cwnd_mean_bytes: round_trips.cwnd_mean_bytes(),
        cwnd_end_bytes: stats.cwnd_at_end(),
        datagrams_sent: stats.datagrams_sent,
        datagrams_lost: stats.datagrams_lost,
        lossy_datagram_flow_share: (stats.datagram_flows > 0)
            .then(|| share(stats.lossy_datagram_flows, stats.datagram_flows)),
        datagram_loss_rate: (stats.datagrams_sent > 0)
            .then(|| share(stats.datagrams_lost, stats.datagrams_sent)),
        datagram_delay_mean_s: datagrams.delays.mean_s(),
        datagram_delay_p: datagrams.delays.quantiles_s(FlowSummary::DATAGRAM_DELAY_P),
        datagram_delay_max_s: datagrams.delays.max_s(),
        datagram_jitter_s: datagrams.jitter_mean_s(),
        datagram_ipdv_p: datagrams
            .variations
            .quantiles_s(FlowSummary::DATAGRAM_IPDV_P),
        datagram_gap_max_s: datagrams.longest_gap_s(),
        datagram_loss_run_max: (stats.datagram_flows > 0 && stats.seen.is_some())
            .then(|| datagrams.longest_loss()),
        retransmission_shares: (stats.count > 0).then(|| {
            let shares = RetransmissionSharesValues {
                none,
                syn,
                fin,
                data,
                several,
            };
            shares.into()
        }),
    };
    values.into()
}
