//! The tables of a run: what a row is, and what its columns mean.

use aqmlab_aqm::Backlog;
use aqmlab_net::Time;
use aqmlab_record::{Exchange, Flow, LinkDirection, PacketRow, SubscriberRow, TraceRow};

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
    /// A bin of a class's response times or durations that holds something.
    Distribution("distribution.parquet", Small) of
        ((&'a str, usize, (f64, u64))) |(of, class, (below, count))|
    {
        /// `response` for response times; `flow` for the durations of connections from opening to
        /// closing, without those that were aborted.
        of: Words = of,
        /// Class of traffic.
        class: ClassNames = class,
        /// End of the bin. Bins are at most a thousandth wide, or 1 us.
        below_s ["s"]: Values<f64> = below,
        /// How many lie in the bin.
        count: Values<u64> = count,
    }
}

columns! {
    /// A bin of the queueing delays at one direction of a link that holds something: how long the
    /// packets that left the discipline in the measured span had been in it.
    Sojourn("sojourn.parquet", Small) of
        ((&'a LinkDirection, (f64, u64))) |(name, (below, count))|
    {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// End of the bin. Bins are at most 1/128 wide, or 1 ns.
        below_s ["s"]: Values<f64> = below,
        /// How many packets lie in the bin.
        count ["packets"]: Values<u64> = count,
    }
}

columns! {
    /// A bin of the queueing delays of a class of traffic at one direction of a link that holds
    /// something.
    ClassSojourn("class_sojourn.parquet", Small) of
        ((&'a LinkDirection, usize, (f64, u64))) |(name, class, (below, count))|
    {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// Class of traffic.
        class: ClassNames = class,
        /// End of the bin. Bins are at most 1/128 wide, or 1 ns.
        below_s ["s"]: Values<f64> = below,
        /// How many packets lie in the bin.
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
        /// Number of its first client's host; none: hosts that no plan has.
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
    /// A bin of a class's delays from end to end that holds something.
    Delays("delay.parquet", Small) of
        ((&'a str, usize, (f64, u64))) |(of, class, (below, count))|
    {
        /// `one-way` for the one-way delays of datagrams, `variation` for the amount of their
        /// inter-packet delay variation, `rtt` for the round trips that senders of responses
        /// measured, `rtt-increase` for what these exceed the round trip on an idle path by.
        of: Words = of,
        /// Class of traffic.
        class: ClassNames = class,
        /// End of the bin. Bins are at most 1/128 wide, or 1 ns.
        below_s ["s"]: Values<f64> = below,
        /// How many lie in the bin.
        count: Values<u64> = count,
    }
}

columns! {
    /// An exchange that ended in the measured span.
    Responses("responses.parquet", Large) of (&'a Exchange) |row| {
        /// Serial number of the connection.
        flow: Values<u64> = row.flow,
        /// Class of traffic.
        class: ClassNames = row.class,
        /// When it began: for a connection's first exchange the connect, for others the request.
        start_s ["s"]: Values<f64> = row.start.as_secs_f64(),
        /// How long it took until the client had all of the response.
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
        /// Serial number of the connection.
        flow: Values<u64> = row.flow,
        /// Class of traffic.
        class: ClassNames = row.class,
        /// When it was opened.
        start_s ["s"]: Values<f64> = row.start.as_secs_f64(),
        /// From its opening to its end.
        duration_s ["s"]: Values<f64> = row.duration().as_secs_f64(),
        /// Application bytes that the server received.
        request_bytes ["bytes"]: Values<u64> = row.request_bytes,
        /// Application bytes that the client received.
        response_bytes ["bytes"]: Values<u64> = row.response_bytes,
        /// SYN and SYN-ACK segments sent again.
        retransmitted_syn: Values<u32> = row.retransmissions.syn,
        /// FIN segments without data sent again.
        retransmitted_fin: Values<u32> = row.retransmissions.fin,
        /// Data segments sent again.
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
        /// When the sample was taken.
        time_s ["s"]: Values<f64> = time.as_secs_f64(),
        /// Packets in the discipline.
        packets ["packets"]: Values<u32> = backlog.packets,
        /// IP bytes in the discipline.
        bytes ["bytes"]: Values<u64> = backlog.bytes,
    }
}

columns! {
    /// A packet that reached the discipline of a link's direction in the measured span, in the order
    /// of arrival. A packet that waits while a million others come and go stands later.
    Packets("packets.parquet", Large) of ((&'a LinkDirection, &'a PacketRow)) |(name, row)| {
        /// The link.
        link: Words = &name.link,
        /// `forward` or `reverse`.
        direction: Words = name.direction,
        /// When it reached the discipline.
        arrive_ns ["ns"]: Values<u64> = row.arrived.as_nanos(),
        /// How long it was in the discipline; empty: it was dropped, or it was still there when the
        /// run ended.
        wait_ns ["ns"]: OptionalTimes = row.waited.map(Time::as_nanos),
        /// How long it was in the device ring behind the discipline; empty: there is none, or it was
        /// still there.
        ring_ns ["ns"]: OptionalTimes = row.in_ring.map(Time::as_nanos),
        /// Serial number of the connection, as in `flows.parquet`.
        flow: Values<u64> = row.flow,
        /// The end that sent it: `client` or `server`.
        sender: Words = if row.is_from_client { "client" } else { "server" },
        /// How many packets its sender had sent before it on this connection.
        number: Values<u32> = row.number,
        /// Class of traffic.
        class: ClassNames = usize::from(row.class),
        /// IP length.
        size_bytes ["bytes"]: Values<u32> = row.size,
        /// `syn` (or SYN-ACK), `data`, `fin` (without data), `ack`, `reset`, or `datagram`, of QUIC
        /// too.
        kind: Words = row.kind.name(),
        /// Whether its bytes had been sent before. Of datagrams always false.
        again: Values<bool> = row.is_again,
        /// ECN field on arrival: `not-ect`, `ect0`, `ect1` or `ce`.
        ecn: Words = row.ecn_name(),
        /// What became of it. `left`; `marked`: left with a mark that it came without; `wire`: left and
        /// was lost at random; `waiting`: still there when the run ended; else the discipline's reason
        /// to drop it, as in the summary.
        outcome: Words = row.outcome.name(),
        /// Packets in the discipline on arrival, without it.
        backlog_packets ["packets"]: Values<u32> = row.backlog_packets,
        /// IP bytes in the discipline on arrival, without it.
        backlog_bytes ["bytes"]: Values<u64> = row.backlog_bytes,
    }
}

columns! {
    /// The state of the end that sends the responses of a connection that `measure.flow_trace`
    /// chose, at a segment or timer of its, no more often than `period`.
    Traces("flow_trace.parquet", Small) of (&'a TraceRow) |row| {
        /// Serial number of the connection.
        flow: Values<u64> = row.flow,
        /// Class of traffic.
        class: ClassNames = row.class,
        /// The moment.
        time_s ["s"]: Values<f64> = row.time.as_secs_f64(),
        /// Congestion window, with what fast recovery adds.
        cwnd_bytes ["bytes"]: Values<u64> = row.probe.cwnd,
        /// Slow-start threshold.
        ssthresh_bytes ["bytes"]: Values<u64> = row.probe.ssthresh,
        /// Bytes in flight.
        in_flight_bytes ["bytes"]: Values<u64> = row.probe.in_flight,
        /// Smoothed round-trip time.
        rtt_s ["s"]: OptionalValues = row.probe.round_trip.map(Time::as_secs_f64),
        /// Retransmission time-out in force.
        rto_s ["s"]: Values<f64> = row.probe.timeout.as_secs_f64(),
        /// What the sender does about losses: `open`, `fast-recovery`, or `go-back` after a
        /// time-out.
        state: Words = row.probe.recovery_state.name(),
        /// Queueing delay that a delay-based congestion control sees; else empty.
        queueing_delay_s ["s"]: OptionalValues =
            row.probe.control.queueing_delay.map(Time::as_secs_f64),
        /// Segments in queues that a delay-based congestion control estimates; else empty.
        law_segments ["segments"]: OptionalValues = row.probe.control.segments,
    }
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
