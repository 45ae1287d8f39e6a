//! The tables of a run: what a row is, and what its columns mean.

use aqmlab_aqm::Backlog;
use aqmlab_net::Time;
use aqmlab_record::{Exchange, Flow, LinkDirection, PacketRow, SubscriberRow, TraceRow};
use aqmlab_tcp::ControlState;

use crate::breakdown::Breakdowns;
use crate::chunk::Encoded;
use crate::column::{
    Buffer, ClassNames, Column, Columns, FixedColumns, Layout, OptionalTimes, OptionalValues,
    TableAbout, Values, Words, columns,
};
use crate::schema::{Field, Kind};
use crate::story::Stories;

/// All tables.
pub const TABLES: [TableAbout; 12] = [
    Distribution::ABOUT,
    Sojourn::ABOUT,
    ClassSojourn::ABOUT,
    Delays::ABOUT,
    Responses::ABOUT,
    Breakdowns::ABOUT,
    Stories::ABOUT,
    Flows::ABOUT,
    Samples::ABOUT,
    Packets::ABOUT,
    Subscribers::ABOUT,
    Traces::ABOUT,
];

columns! {
    /// A non-empty bin of the response times or durations of a class.
    Distribution("distribution.parquet", Small) of
        ((&'a str, usize, (f64, u64))) |(of, class, (below, count))|
    {
        /// `response` for response times; `flow` for connections from opening to closing, without
        /// aborted connections.
        of: Words = of,
        /// Class of traffic.
        class: ClassNames = class,
        /// Upper end of the bin, which is at most 1/1000 of its value wide, or 1 us.
        below_s ["s"]: Values<f64> = below,
        /// Values in the bin.
        count: Values<u64> = count,
    }
}

columns! {
    /// A non-empty bin of the queueing delays at one direction of a link, of packets that left the
    /// discipline in the measured span.
    Sojourn("sojourn.parquet", Small) of
        ((&'a LinkDirection, (f64, u64))) |(name, (below, count))|
    {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// Upper end of the bin, which is at most 1/128 of its value wide, or 1 ns.
        below_s ["s"]: Values<f64> = below,
        /// Values in the bin.
        count ["packets"]: Values<u64> = count,
    }
}

columns! {
    /// A non-empty bin of the queueing delays of a class at one direction of a link.
    ClassSojourn("class_sojourn.parquet", Small) of
        ((&'a LinkDirection, usize, (f64, u64))) |(name, class, (below, count))|
    {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// Class of traffic.
        class: ClassNames = class,
        /// Upper end of the bin, which is at most 1/128 of its value wide, or 1 ns.
        below_s ["s"]: Values<f64> = below,
        /// Values in the bin.
        count ["packets"]: Values<u64> = count,
    }
}

columns! {
    /// A subscriber of a tree of rates in one direction of a link, in the measured span.
    Subscribers("subscribers.parquet", Small) of
        ((&'a LinkDirection, SubscriberRow<'a>)) |(name, row)|
    {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// Its number, in the order of the plans.
        subscriber: Values<u32> = row.number,
        /// Its plan.
        plan: Words = row.plan,
        /// The node above it; empty: it is below the link.
        node: Words = row.node,
        /// Number of its first client's host; empty: hosts without a plan.
        client: OptionalValues = row.part.client.map(f64::from),
        /// Packets that left its queue.
        left_packets ["packets"]: Values<u64> = row.part.tally.packets,
        /// Their IP bytes.
        left_bytes ["bytes"]: Values<u64> = row.part.tally.bytes,
        /// Packets that its queue dropped.
        dropped_packets ["packets"]: Values<u64> = row.part.tally.dropped,
        /// Packets that its queue marked.
        marked_packets ["packets"]: Values<u64> = row.part.tally.marked,
        /// How long packets waited and its ceiling held them.
        at_ceiling_s ["s"]: Values<f64> = row.part.held.at_ceiling.as_secs_f64(),
        /// How long packets waited and its assured rate was used up.
        borrowing_s ["s"]: Values<f64> = row.part.held.borrowing.as_secs_f64(),
    }
}

columns! {
    /// A non-empty bin of the end-to-end delays of a class.
    Delays("delay.parquet", Small) of
        ((&'a str, usize, (f64, u64))) |(of, class, (below, count))|
    {
        /// `one-way` for one-way delays of datagrams, `variation` for their absolute inter-packet
        /// delay variation, `rtt` for measured round-trip times of senders of responses,
        /// `rtt-increase` for their increase over the idle path.
        of: Words = of,
        /// Class of traffic.
        class: ClassNames = class,
        /// Upper end of the bin, which is at most 1/128 of its value wide, or 1 ns.
        below_s ["s"]: Values<f64> = below,
        /// Values in the bin.
        count: Values<u64> = count,
    }
}

columns! {
    /// An exchange that ended in the measured span.
    Responses("responses.parquet", Large) of (&'a Exchange) |row| {
        /// Number of the connection.
        flow: Values<u64> = row.flow,
        /// Class of traffic.
        class: ClassNames = row.class,
        /// Start time: of the connection for its first exchange, of the request for others.
        start_s ["s"]: Values<f64> = row.start.as_secs_f64(),
        /// Response time: until the client has the whole response.
        response_s ["s"]: Values<f64> = row.response_time().as_secs_f64(),
        /// Application bytes of the request.
        request_bytes ["bytes"]: Values<u64> = row.request_bytes,
        /// Application bytes of the response.
        response_bytes ["bytes"]: Values<u64> = row.response_bytes,
        /// Number of the client's host.
        client: Values<u32> = row.client,
        /// Number of the server's host.
        server: Values<u32> = row.server,
    }
}

columns! {
    /// A connection that ended in the measured span, or a flow of datagrams.
    Flows("flows.parquet", Large) of (&'a Flow) |row| {
        /// Number of the connection.
        flow: Values<u64> = row.flow,
        /// Class of traffic.
        class: ClassNames = row.class,
        /// Time of opening.
        start_s ["s"]: Values<f64> = row.start.as_secs_f64(),
        /// Time from opening to end.
        duration_s ["s"]: Values<f64> = row.duration().as_secs_f64(),
        /// Application bytes that the server received.
        request_bytes ["bytes"]: Values<u64> = row.request_bytes,
        /// Application bytes that the client received.
        response_bytes ["bytes"]: Values<u64> = row.response_bytes,
        /// Retransmitted SYN and SYN-ACK segments.
        retransmitted_syn: Values<u32> = row.retransmissions.syn,
        /// Retransmitted FIN segments without data.
        retransmitted_fin: Values<u32> = row.retransmissions.fin,
        /// Retransmitted data segments.
        retransmitted_data: Values<u32> = row.retransmissions.data,
        /// Expiries of the retransmission timer at both ends.
        timeouts: Values<u32> = row.retransmissions.timeouts,
        /// Whether it was aborted.
        failed: Values<bool> = row.failed,
    }
}

columns! {
    /// A sample of the queue of one direction of a link, every `measure.queue_sample`.
    Samples("queue.parquet", Small) of
        ((&'a LinkDirection, Time, Backlog)) |(name, time, backlog)|
    {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// Time of the sample.
        time_s ["s"]: Values<f64> = time.as_secs_f64(),
        /// Packets in the discipline.
        packets ["packets"]: Values<u32> = backlog.packets,
        /// IP bytes in the discipline.
        bytes ["bytes"]: Values<u64> = backlog.bytes,
    }
}

columns! {
    /// A packet that reached the discipline of one direction of a link in the measured span, in the
    /// order of arrival. Packets that wait long appear later.
    Packets("packets.parquet", Large) of ((&'a LinkDirection, &'a PacketRow)) |(name, row)| {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// Time of arrival at the discipline.
        arrive_ns ["ns"]: Values<u64> = row.arrived.as_nanos(),
        /// Time in the discipline. Empty: the packet was dropped or still waited at the end.
        wait_ns ["ns"]: OptionalTimes = row.waited.map(Time::as_nanos),
        /// Time in the device ring after the discipline. Empty: no ring, or still in it.
        ring_ns ["ns"]: OptionalTimes = row.in_ring.map(Time::as_nanos),
        /// Number of the connection, as in `flows.parquet`.
        flow: Values<u64> = row.flow,
        /// End that sent the packet: `client` or `server`.
        sender: Words = if row.is_from_client { "client" } else { "server" },
        /// Number of packets that its sender had sent earlier on this connection.
        number: Values<u32> = row.number,
        /// Class of traffic.
        class: ClassNames = usize::from(row.class),
        /// IP length.
        size_bytes ["bytes"]: Values<u32> = row.size,
        /// `syn` (or SYN-ACK), `data`, `fin` (without data), `ack`, `reset` or `datagram` (also
        /// QUIC).
        kind: Words = row.kind.name(),
        /// Whether it is a retransmission. Always false for datagrams.
        again: Values<bool> = row.is_again,
        /// ECN field on arrival: `not-ect`, `ect0`, `ect1` or `ce`.
        ecn: Words = row.ecn_name(),
        /// Outcome: `left`; `marked`: left with a new mark; `wire`: left and was lost at random;
        /// `waiting`: still waited at the end; else the discipline's reason for a drop.
        outcome: Words = row.outcome.name(),
        /// Packets already in the discipline on arrival.
        backlog_packets ["packets"]: Values<u32> = row.backlog_packets,
        /// IP bytes already in the discipline on arrival.
        backlog_bytes ["bytes"]: Values<u64> = row.backlog_bytes,
    }
}

columns! {
    /// State of the end that sends responses, for a connection that `measure.flow_trace` selects:
    /// at its segments and timers, at most once per `period`. Columns of other congestion controls are empty. Columns of other congestion controls
    /// are empty.
    Traces("flow_trace.parquet", Small) of (&'a TraceRow) |row| {
        /// Number of the connection.
        flow: Values<u64> = row.flow,
        /// Class of traffic.
        class: ClassNames = row.class,
        /// Time of the row.
        time_s ["s"]: Values<f64> = row.time.as_secs_f64(),
        /// Congestion window, with the inflation of fast recovery.
        cwnd_bytes ["bytes"]: Values<u64> = row.probe.cwnd,
        /// Slow-start threshold.
        ssthresh_bytes ["bytes"]: Values<u64> = row.probe.ssthresh,
        /// Bytes in flight.
        in_flight_bytes ["bytes"]: Values<u64> = row.probe.in_flight,
        /// Smoothed round-trip time.
        rtt_s ["s"]: OptionalValues = row.probe.round_trip.map(Time::as_secs_f64),
        /// Current retransmission time-out.
        rto_s ["s"]: Values<f64> = row.probe.timeout.as_secs_f64(),
        /// Loss recovery state: `open`, `fast-recovery`, or `go-back` after a time-out.
        state: Words = row.probe.recovery_state.name(),
        /// Queueing delay that a delay-based congestion control measures.
        queueing_delay_s ["s"]: OptionalValues =
            row.probe.control.queueing_delay.map(Time::as_secs_f64),
        /// Segments in queues that a delay-based congestion control estimates.
        law_segments ["segments"]: OptionalValues = row.probe.control.segments,
        /// State of the congestion control: `slow-start`, `avoidance`, or BBR's state; empty: not
        /// shown.
        phase: Words = control(row).map_or("", |it| it.phase),
        /// Pacing rate, headers included (QUIC: UDP payload); empty: no pacing.
        pacing_bps ["bit/s"]: OptionalValues = bits(control(row).and_then(|it| it.pacing_rate)),
        /// Largest recent bandwidth that BBR has seen, of payload.
        max_bw_bps ["bit/s"]: OptionalValues = bits(control(row).and_then(|it| it.max_bw)),
        /// Bandwidth that BBR uses, of payload.
        bw_bps ["bit/s"]: OptionalValues = bits(control(row).and_then(|it| it.bw)),
        /// Bound on the bandwidth that BBRv3 has set after losses.
        bw_shortterm_bps ["bit/s"]: OptionalValues =
            bits(control(row).and_then(|it| it.bw_shortterm)),
        /// Smallest recent round trip of BBR.
        min_rtt_s ["s"]: OptionalValues =
            control(row).and_then(|it| it.min_rtt).map(Time::as_secs_f64),
        /// Bound on the bytes in flight that BBRv3 has found by probing.
        inflight_longterm_bytes ["bytes"]: OptionalValues =
            control(row).and_then(|it| it.inflight_longterm),
        /// Bound on the bytes in flight that BBRv3 has set after losses.
        inflight_shortterm_bytes ["bytes"]: OptionalValues =
            control(row).and_then(|it| it.inflight_shortterm),
        /// Bytes acknowledged beyond what the bandwidth of BBR explains.
        extra_acked_bytes ["bytes"]: OptionalValues = control(row).and_then(|it| it.extra_acked),
        /// 1 if BBR has found the pipe full, else 0.
        full_bw_reached: OptionalValues =
            control(row).and_then(|it| it.full_bw_reached).map(|it| f64::from(u8::from(it))),
        /// Rounds of BBR since the connection began.
        round: OptionalTimes = control(row).and_then(|it| it.round),
        /// Cycles of probes of BBRv3, or the place in the cycle of BBRv1.
        cycle: OptionalTimes = control(row).and_then(|it| it.cycle),
    }
}

/// The inner state of the congestion control of a row.
const fn control(row: &TraceRow) -> Option<&ControlState> {
    row.probe.control_state.as_ref()
}

/// A rate of bytes in bits per second.
fn bits(bytes: Option<f64>) -> Option<f64> {
    bytes.map(|rate| 8.0 * rate)
}

/// Samples of queues with the inner variables of their disciplines: a column for each.
pub(crate) struct Queue {
    samples: Samples,
    probes: Vec<(&'static str, OptionalValues)>,
}

/// A sample, with the names and values of the discipline's inner variables.
pub(crate) struct Sample<'a> {
    pub(crate) sample: (&'a LinkDirection, Time, Backlog),
    pub(crate) probes: &'static [&'static str],
    pub(crate) values: &'a [f64],
}

impl Queue {
    pub(crate) fn with_probes(probes: &[&'static str]) -> (Self, Vec<Field>) {
        let mut fields = Samples::fields();
        let field = |name: &&str| Field::new(*name, Kind::Float64, true);
        fields.extend(probes.iter().map(field));
        let columns = Self {
            samples: Samples::new(&[]),
            probes: probes
                .iter()
                .map(|name| (*name, OptionalValues::default()))
                .collect(),
        };
        (columns, fields)
    }
}

impl Columns for Queue {
    type Row<'a> = Sample<'a>;

    const ABOUT: TableAbout = Samples::ABOUT;

    fn push(&mut self, row: Sample<'_>) {
        self.samples.push(row.sample);
        for (name, column) in &mut self.probes {
            let place = row.probes.iter().position(|probe| probe == name);
            column.push(place.map(|place| row.values[place]));
        }
    }

    fn pages(&mut self) -> Vec<Encoded> {
        let mut pages = self.samples.pages();
        pages.extend(self.probes.iter_mut().map(|(_, column)| column.page()));
        pages
    }

    fn dictionaries(&self) -> Vec<Option<Encoded>> {
        let mut dictionaries = self.samples.dictionaries();
        dictionaries.extend(self.probes.iter().map(|_| None));
        dictionaries
    }
}
