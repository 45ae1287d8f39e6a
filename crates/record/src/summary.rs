//! The summary of a run: what `summary.json` holds. Keys end in their unit.

use std::collections::BTreeMap;

use aqmlab_aqm::Reason;
use aqmlab_net::Time;
use aqmlab_scenario::Scenario;

#[cfg(feature = "breakdown")]
use crate::breakdown::{BreakdownStats, PartsSummary, PortParts};
use crate::declaration::results;
use crate::parts::{self, PartSum};
use crate::quality::QualitySummary;
use crate::{ClassMetrics, FlowStats, LinkStats, ResponseStats, Transit};

/// Name of all classes together in a summary.
const ALL: &str = "all";

results! {
    /// What a run showed.
    pub struct Summary {
        /// The scenario's title.
        scenario: String = "scenario", NUMBER;
        /// Seed of every random stream.
        seed: u64 = "seed", NUMBER;
        /// Simulated time, warm-up included.
        simulated_s: f64 = "simulated", SECONDS;
        /// Length of the measured span.
        measured_s: f64 = "measured", SECONDS;
        /// Events that the engine handled.
        events: u64 = "events", NUMBER;
        /// Version of aqmlab.
        version: String = "version", NUMBER;
        /// By link and direction.
        links: BTreeMap<String, BTreeMap<String, LinkSummary>> = "links", NUMBER;
        /// By class of traffic, and `all` of them together.
        responses: BTreeMap<String, ResponseSummary> = "responses", NUMBER;
        /// By class of traffic, and `all` of them together.
        flows: BTreeMap<String, FlowSummary> = "flows", NUMBER;
        /// By class of traffic: those whose model keeps account of what its users get.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        quality: BTreeMap<String, QualitySummary> = "quality", NUMBER;
        /// By class of traffic, and `all` of them together, then by band: where the time of responses
        /// went, if `measure.breakdown` asks for it.
        #[cfg(feature = "breakdown")]
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        breakdown: BTreeMap<String, BTreeMap<String, PartsSummary>> = "breakdown", NUMBER;
    }
}

results! {
    /// One direction of a link in the measured span.
    ///
    /// A packet belongs to a count when the event that is counted falls into the measured span.
    pub struct LinkSummary {
        /// Packets that came to the queue.
        arrived_packets: u64 = "arrived", PACKETS, digits 0, head "arrived";
        /// Packets that the discipline dropped, for whatever reason.
        dropped_packets: u64 = "dropped", PACKETS;
        /// Packets that the discipline marked (ECN congestion experienced) and let in.
        marked_packets: u64 = "marked", PACKETS;
        /// Packets whose last bit left for the wire.
        departed_packets: u64 = "departed", PACKETS;
        /// Packets that were sent and then lost at random on the wire (`loss` in the scenario).
        wire_lost_packets: u64 = "lost on the wire", PACKETS;
        /// `dropped_packets / arrived_packets`.
        loss_rate: f64 = "loss", SHARE, digits 2, head "loss %", name "loss";
        /// `marked_packets / arrived_packets`.
        mark_rate: f64 = "marked", SHARE, digits 2, head "marked %", name "marked";
        /// IP bits of departed packets per second of the measured span; framing is not counted.
        throughput_bps: f64 = "throughput", BIT_RATE, digits 2, head "Mbit/s", name "throughput";
        /// Share of time in which the wire was busy; framing is counted.
        utilization: f64 = "utilization", SHARE, digits 1, head "busy %", name "utilization";
        /// Time average of the packets in the discipline: exact, not from samples. Packets on the
        /// wire and in the device ring are not part of the queue.
        queue_mean_packets: f64 = "mean queue", PACKETS, digits 1, head "queue mean", name "queue";
        /// Largest number of packets in the discipline.
        queue_max_packets: u32 = "largest queue", PACKETS,
            digits 0, head "queue max", after "queue_p99_packets";
        /// Median of the queue lengths that were sampled every `measure.queue_sample`: the
        /// smallest length that half of them do not exceed.
        queue_p50_packets: Option<u32> = "50 % queue", PACKETS;
        /// 95th percentile of the sampled queue lengths.
        queue_p95_packets: Option<u32> = "95 % queue", PACKETS, digits 0, head "queue p95";
        /// 99th percentile of the sampled queue lengths.
        queue_p99_packets: Option<u32> = "99 % queue", PACKETS;
        /// Mean queueing delay (sojourn time): how long the packets that left the discipline for
        /// the wire or the device ring had been in it.
        sojourn_mean_s: Option<f64> = "mean queueing delay", MILLISECONDS,
            digits 1, head "delay mean ms", name "delay";
        percentiles sojourn_p(
            50 "Median of the queueing delays, to within 1/128, of every packet." [digits 1],
            90, 95, 99 [digits 1, head "delay p99 ms"], 999
        )_s = (N " queueing delay"), MILLISECONDS, of " of the queueing delays, to within 1/128",
            names "delay_p", each ();
        /// Longest queueing delay: exact.
        sojourn_max_s: Option<f64> = "longest queueing delay", MILLISECONDS, digits 1, name "delay_max";
        /// Dropped packets by reason. Each discipline has reasons of its own: `early` where it
        /// signalled congestion, `forced` where it was past the point where it only drops,
        /// `overflow` where there was no room; the others are on the discipline's page.
        drops: BTreeMap<String, u64> = "drops", PACKETS;
        /// Marked packets by reason: those of the discipline's reasons for which it can mark.
        marks: BTreeMap<String, u64> = "marks", PACKETS;
        /// Throughput and queueing delays by class of traffic: the classes that had packets here.
        classes: BTreeMap<String, TransitSummary> = "by class", NUMBER;
        /// By node of a tree of rates: all subscribers below it.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        nodes: BTreeMap<String, PartSummary> = "by node", NUMBER;
        /// By plan of a tree of rates: its subscribers.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        plans: BTreeMap<String, PartSummary> = "by plan", NUMBER;
    }

    /// A node or a plan of a tree of rates in one direction of a link, in the measured span.
    ///
    /// Hosts that no plan has are in no plan and below no node where they pass ahead of all. Where they
    /// share a leaf, it is one more subscriber of its plan.
    pub struct PartSummary {
        /// Subscribers: of the plan, or below the node.
        subscribers: u64 = "subscribers", NUMBER;
        /// Subscribers of which a packet left the queue.
        active_subscribers: u64 = "active subscribers", NUMBER;
        /// Packets that left the queues of these subscribers.
        left_packets: u64 = "left", PACKETS;
        /// IP bits of these packets per second of the measured span.
        throughput_bps: f64 = "throughput", BIT_RATE, better "more";
        /// Packets that their queues dropped.
        dropped_packets: u64 = "dropped", PACKETS;
        /// Packets that their queues marked.
        marked_packets: u64 = "marked", PACKETS;
        /// Share of the measured span in which packets waited and the ceiling held them. A plan has
        /// the mean over its subscribers.
        at_ceiling: f64 = "at the ceiling", SHARE;
        /// Share of the measured span in which packets waited and the assured rate was used up: they
        /// could go on only with what others lent. A plan has the mean over its subscribers.
        borrowing: f64 = "borrowing", SHARE;
        /// Jain's index `(Σx)² / (n Σx²)` over the throughput `x` of the active subscribers: 1 when all
        /// get the same.
        subscribers_jain: Option<f64> = "Jain's index of subscribers", NUMBER,
            within (0.0, 1.0), better "more";
        /// Mean of the queueing delays of these packets.
        sojourn_mean_s: Option<f64> = "mean queueing delay", MILLISECONDS;
        percentiles sojourn_p(50, 90, 95, 99, 999)_s = (N " queueing delay"), MILLISECONDS,
            of " of their queueing delays, to within 1/128", names "", each ();
        /// Longest of their queueing delays: exact.
        sojourn_max_s: Option<f64> = "longest queueing delay", MILLISECONDS;
    }

    /// Packets of a class of traffic that left the discipline of one direction of a link in the
    /// measured span. A class without packets there has no such part.
    pub struct TransitSummary {
        /// Packets of the class that left the discipline for the wire or the device ring.
        left_packets: u64 = "left", PACKETS;
        /// IP bits of these packets per second of the measured span; framing is not counted.
        throughput_bps: f64 = "throughput", BIT_RATE;
        /// Mean of their queueing delays (sojourn times): the time in the discipline.
        sojourn_mean_s: Option<f64> = "mean queueing delay", MILLISECONDS;
        percentiles sojourn_p(50, 90, 95, 99, 999)_s = (N " queueing delay"), MILLISECONDS,
            of " of their queueing delays, to within 1/128", names "", each ();
        /// Longest of their queueing delays: exact.
        sojourn_max_s: Option<f64> = "longest queueing delay", MILLISECONDS;
    }

    /// Request/response exchanges of a class of traffic that ended in the measured span, wherever
    /// they began.
    ///
    /// A response time is what a user waits: for a connection's first exchange from the first SYN
    /// that the client sends to the end of the response at the client, for others from the request.
    /// Exchanges that never end have none: `started` far above `count` means that the network
    /// cannot keep up. Quantiles have three significant digits.
    pub struct ResponseSummary {
        /// Exchanges that began in the measured span.
        started: u64 = "started", NUMBER, digits 0;
        /// Exchanges that ended in it.
        count: u64 = "ended", NUMBER, digits 0, head "responses", name "responses";
        /// Mean response time.
        mean_s: Option<f64> = "mean", SECONDS, digits 3, head "mean s", name "mean";
        percentiles p(
            10 "10th percentile of the response times.",
            25, 50 [head "p50 s"], 75, 90 [head "p90 s"], 95, 99 [head "p99 s"]
        )_s = (N ""), SECONDS, of "", names "p", each (digits 3);
        /// Longest response time.
        max_s: Option<f64> = "slowest", SECONDS, digits 1, head "max s";
        /// Share of the responses that took at most 1 s.
        le_1s: Option<f64> = "≤ 1 s", SHARE, digits 1, head "<= 1 s %", name "le_1s", better "more";
        /// Share that took at most 2 s.
        le_2s: Option<f64> = "≤ 2 s", SHARE, digits 1, head "<= 2 s %", name "le_2s", better "more";
        /// Share that took at most 3 s.
        le_3s: Option<f64> = "≤ 3 s", SHARE, digits 1, head "<= 3 s %", name "le_3s", better "more";
        /// Share that took longer than 3 s.
        gt_3s: Option<f64> = "> 3 s", SHARE, digits 1, head "> 3 s %", name "gt_3s";
    }

    /// Connections and flows of datagrams of a class of traffic.
    ///
    /// Connections that ended in the measured span are counted with all that happened on them.
    /// Where a field says so it counts all connections instead, also those that go on when the
    /// span ends, such as endless transfers, and only what happened in the span. A live run cannot
    /// see these, nor windows, round trips, delays of datagrams and fast retransmits.
    pub struct FlowSummary {
        /// Connections that ended in the measured span, and flows of datagrams.
        count: u64 = "connections", NUMBER, digits 0, head "connections";
        /// Connections that go on when the measured span ends.
        still_open: u64 = "open at the end", NUMBER, digits 0, head "open";
        /// Connections that were aborted: an end gave up after too many retransmissions.
        failed: u64 = "aborted", NUMBER;
        /// Connections that were not opened because the class had as many as `max_connections`
        /// allows.
        refused: u64 = "refused", NUMBER;
        /// Mean time from opening to closing of the connections that were not aborted.
        duration_mean_s: Option<f64> = "mean duration", SECONDS;
        percentiles duration_p(
            50 "Median of these times.", 75, 90, 95, 99
        )_s = ("duration p" N), SECONDS, of "", names "", each ();
        /// Application bits per second that clients received in the measured span.
        goodput_bps: f64 = "goodput", BIT_RATE,
            digits 3, head "goodput Mbit/s", name "goodput", better "more";
        /// Application bits per second that servers received in the measured span. Only a run of a
        /// program behind a link (`aqmlab shell`) has it.
        #[cfg(feature = "uploads")]
        #[serde(skip_serializing_if = "Option::is_none")]
        upload_goodput_bps: Option<f64> = "upload goodput", BIT_RATE,
            digits 3, head "upload Mbit/s", name "upload", better "more";
        /// Jain's index `(Σx)² / (n Σx²)` over the goodput `x` of the connections: 1 when all get
        /// the same. It says something about connections that compete for the link all the time
        /// (bulk transfers), and little about web connections, whose goodput depends on their size.
        fairness_jain: Option<f64> = "Jain's index", NUMBER,
            digits 3, head "Jain", name "fairness", within (0.0, 1.0), better "more";
        /// Jain's index over goodput times minimum round-trip time (Zhang and Qiu 2000): 1 when
        /// shares go by one over the round trip.
        fairness_normalized: Option<f64> = "normalized fairness", NUMBER, better "more";
        /// SYN and SYN-ACK segments sent again.
        retransmitted_syn: u64 = "SYN sent again", NUMBER, digits 0, head "SYN again";
        /// FIN segments without data sent again.
        retransmitted_fin: u64 = "FIN sent again", NUMBER, digits 0, head "FIN again";
        /// Data segments sent again.
        retransmitted_data: u64 = "data sent again", NUMBER, digits 0, head "data again";
        /// Expiries of the retransmission timer on the connections that ended in the measured
        /// span, in their whole life.
        closed_timeouts: u64 = "timeouts", NUMBER, digits 0, head "timeouts";
        /// Share of the connections that ended with a fast retransmit at either end: a loss whose
        /// repair did not wait for the timer.
        fast_retransmit_share: Option<f64> = "with fast retransmit", SHARE;
        /// Segments with data that a queue dropped or a wire lost in the measured span, of all
        /// connections.
        lost_segments: Option<u64> = "lost segments", NUMBER;
        /// Expiries of the retransmission timer in the measured span, on all connections.
        span_timeouts: Option<u64> = "time-outs in the span", NUMBER,
            digits 0, head "timeouts in span", after "span_retransmitted_data";
        /// SYN and SYN-ACK segments sent again in the measured span, on all connections.
        span_retransmitted_syn: Option<u64> = "SYN sent again in the span", NUMBER;
        /// FIN segments without data sent again in the measured span, on all connections.
        span_retransmitted_fin: Option<u64> = "FIN sent again in the span", NUMBER;
        /// Data segments sent again in the measured span, on all connections.
        span_retransmitted_data: Option<u64> = "data sent again in the span", NUMBER,
            digits 0, head "data again in span";
        /// Shortest round trip that senders of responses measured in the measured span, on all
        /// connections: of segments with data that were sent once (Karn) and timed, one a round
        /// trip, or with time stamps each. It includes what the receiver delays its ACK.
        rtt_min_s: Option<f64> = "shortest RTT", MILLISECONDS, digits 1, name "rtt_min";
        /// Mean of the measured round trips.
        rtt_mean_s: Option<f64> = "mean RTT", MILLISECONDS, name "rtt";
        percentiles rtt_p(
            50 [digits 1, head "RTT p50 ms"], 95 [digits 1, head "RTT p95 ms"], 99
        )_s = (N " RTT"), MILLISECONDS, of " of the measured round trips, to within 1/128",
            names "rtt_p", each ();
        /// Mean over the samples of the sender's smoothed round trip with that sample (RFC 6298's
        /// SRTT, or what the stack has for it, on the clock of its timer).
        srtt_mean_s: Option<f64> = "smoothed RTT", MILLISECONDS, name "srtt";
        /// Mean over the samples of the round trip of their connection on an idle path: propagation,
        /// and transmission of a full segment there and of an ACK back on every link, at the rates
        /// that the links had in the beginning.
        rtt_idle_s: Option<f64> = "idle RTT", MILLISECONDS, name "rtt_idle";
        percentiles rtt_increase_p(
            50 "Median of the time by which a measured round trip exceeds that on an idle path, \
                to within 1/128: what queues, and the receiver's delayed ACKs, add under load.",
            95 [digits 1]
        )_s = (N " RTT increase"), MILLISECONDS,
            of " of the time by which a measured round trip exceeds that on an idle path",
            names "rtt_increase_p", each ();
        /// Mean congestion window of senders of responses, at the samples of the round trip: each
        /// connection counts once a round trip, or with time stamps once an ACK.
        cwnd_mean_bytes: Option<f64> = "mean cwnd", BYTES, digits 1, head "cwnd kB", name "cwnd";
        /// Mean congestion window, when the measured span ends, of the senders of responses whose
        /// connections go on.
        cwnd_end_bytes: Option<f64> = "cwnd at the end", BYTES;
        /// Datagrams sent in the measured span.
        datagrams_sent: u64 = "datagrams sent", NUMBER, digits 0, head "sent";
        /// Datagrams lost in it, at a queue or on a wire.
        datagrams_lost: u64 = "datagrams lost", NUMBER;
        /// Share of the flows of datagrams that lost more than a tenth of what they sent in the
        /// measured span.
        lossy_datagram_flow_share: Option<f64> = "lossy flows of datagrams", SHARE;
        /// `datagrams_lost / datagrams_sent`.
        datagram_loss_rate: Option<f64> = "datagram loss", SHARE,
            digits 2, head "loss %", name "datagram_loss";
        /// Mean one-way delay of the datagrams that arrived in the measured span: from the source to
        /// the receiver, propagation included.
        datagram_delay_mean_s: Option<f64> = "mean one-way delay", MILLISECONDS,
            name "datagram_delay";
        percentiles datagram_delay_p(
            50 [head "delay p50 ms"], 95 [head "delay p95 ms"], 99 [head "delay p99 ms"]
        )_s = (N " one-way delay"), MILLISECONDS, of " of the one-way delays, to within 1/128",
            names "datagram_delay_p", each (digits 1);
        /// Longest one-way delay: exact.
        datagram_delay_max_s: Option<f64> = "longest one-way delay", MILLISECONDS;
        /// Interarrival jitter of RFC 3550, section 6.4.1: each flow has its estimator J, from its
        /// first datagram on; this is the mean of J over all datagrams that arrived in the measured
        /// span.
        datagram_jitter_s: Option<f64> = "jitter", MILLISECONDS,
            digits 2, head "jitter ms", name "jitter";
        percentiles datagram_ipdv_p(
            50 "Median inter-packet delay variation (IPDV, RFC 5481, section 4.1), to within \
                1/128: the amount, without its sign, of the difference between the one-way \
                delays of a datagram and of the one that the flow sent before it. Where one of \
                the two was lost there is none.",
            95, 99 [digits 2, head "IPDV p99 ms"]
        )_s = (N " IPDV"), MILLISECONDS,
            of " of the inter-packet delay variation, to within 1/128", names "ipdv_p", each ();
        /// Longest time between two arrivals on a flow, as far as it lies in the measured span. Where
        /// the source is silent in between (on/off sources), its silence is part of it.
        datagram_gap_max_s: Option<f64> = "longest gap", MILLISECONDS,
            digits 1, head "longest gap ms", name "gap";
        /// Most datagrams that a flow lost one after another, in the order of sending (the longest
        /// loss period of RFC 3357).
        datagram_loss_run_max: Option<u64> = "longest run of losses", DATAGRAMS,
            digits 0, head "lost in a row";
        /// Exclusive shares of the connections by what had to be sent again, at either end, until
        /// the client had received everything. They add up to 1 (Christiansen et al. 2000, Table
        /// 5).
        retransmission_shares: Option<RetransmissionShares> = "by retransmission", SHARE;
    }

    /// Exclusive shares of connections by what had to be sent again until the client had everything.
    pub struct RetransmissionShares {
        /// Nothing.
        none: f64 = "nothing sent again", SHARE;
        /// Only SYNs.
        syn: f64 = "only SYNs", SHARE;
        /// Only FINs.
        fin: f64 = "only FINs", SHARE;
        /// Only data.
        data: f64 = "only data", SHARE;
        /// Segments of several of these kinds.
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
            quality: quality.collect(),
            #[cfg(feature = "breakdown")]
            breakdown: BTreeMap::new(),
        };
        values.into()
    }

    /// Where the time of responses went; the ports have these names.
    #[cfg(feature = "breakdown")]
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
        #[cfg(feature = "uploads")]
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
