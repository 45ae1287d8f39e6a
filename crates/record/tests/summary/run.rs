//! A run that is made up, and what is kept of it.

use std::io::Write;
use std::sync::{Arc, Mutex};

use aqmlab_aqm::{Backlog, Counters, Reason};
use aqmlab_net::{RandomStream, Time};
use aqmlab_record::{
    Breakdown, ClassMetrics, DatagramFlow, DatagramStats, DelayHistogram, Exchange, Flow,
    LinkDirection, LinkStats, LossOnPath, LostSegment, MeasuredSpan, Metrics, PARTS_OF_PORT, Part,
    PathCount, PortParts, QueueSamples, Records, RunError, SenderStats, StoryEvent, StoryRow,
    Summary, TraceRow, View,
};
use aqmlab_scenario::Scenario;
use aqmlab_tcp::{ControlMetrics, Probe, RecoveryState, Retransmissions, RoundTrip, SegmentKind};
use aqmlab_traffic::Quality;

pub(crate) const START: Time = Time::from_secs(10);
pub(crate) const END: Time = Time::from_secs(30);
pub(crate) const SPAN: MeasuredSpan = MeasuredSpan {
    start: START,
    end: END,
};
pub(crate) const SAMPLE: Time = Time::from_millis(370);

/// The last one does nothing.
pub(crate) const CLASSES: [&str; 3] = ["web", "calls", "silent"];

/// A link and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) &'static str, pub(crate) &'static str);

impl Name {
    pub(crate) fn direction(self) -> LinkDirection {
        LinkDirection {
            link: self.0.to_owned(),
            direction: self.1,
        }
    }
}

pub(crate) const LINKS: [Name; 3] = [
    Name("bottleneck", "forward"),
    Name("bottleneck", "reverse"),
    Name("uplink", "forward"),
];

const PROBES: [&[&str]; 3] = [&["avg", "p"], &[], &["p", "credit"]];

/// The rate at which links send.
const NANOS_PER_BYTE: u64 = 800;

pub(crate) fn is_measured(time: Time) -> bool {
    (START..END).contains(&time)
}

pub(crate) fn scenario() -> Scenario {
    let class = |name: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\nflows = 1\n\
             rtt = {{ kind = \"constant\", rtt = \"20 ms\" }}\n"
        )
    };
    let text = format!(
        "title = \"Made up\"\nseed = 7\n\
         measure = {{ warm_up = \"10 s\", duration = \"20 s\" }}\n\
         topology.kind = \"dumbbell\"\n\
         topology.bottleneck = {{ rate = \"10 Mbit/s\", discipline = {{ kind = \"codel\" }} }}\n{}",
        CLASSES.map(class).concat()
    );
    Scenario::parse(&text, &[], &mut |_| unreachable!("it names no files")).unwrap()
}

/// A packet that crosses a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) arrives: Time,
    pub(crate) leaves: Time,
    pub(crate) begin: Time,
    pub(crate) end: Time,
    pub(crate) class: u16,
    pub(crate) size: u32,
    pub(crate) is_lost: bool,
}

/// Where the time of an exchange went.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) parts: Vec<u64>,
    pub(crate) counts: Vec<u64>,
    pub(crate) loss: Option<LossOnPath>,
}

/// A datagram: when it was sent, and when it arrived or was lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) sent: Time,
    pub(crate) at: Time,
    pub(crate) is_lost: bool,
}

/// A flow of datagrams, in the order in which they were sent, which is that in which they come.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) flow: Flow,
    pub(crate) datagrams: Vec<Datagram>,
}

/// What is said of a run. Classes are numbers.
pub(crate) struct Run {
    pub(crate) starts: Vec<(usize, Time)>,
    pub(crate) exchanges: Vec<(Exchange, Parts)>,
    pub(crate) refused: Vec<(usize, Time)>,
    pub(crate) lost: Vec<(usize, Time)>,
    pub(crate) timeouts: Vec<(usize, Time, u32)>,
    pub(crate) round_trips: Vec<(usize, RoundTrip, Time)>,
    pub(crate) again: Vec<(usize, SegmentKind)>,
    pub(crate) uploaded: Vec<(usize, u64)>,
    pub(crate) downloaded: Vec<(usize, u64)>,
    pub(crate) closed: Vec<Flow>,
    pub(crate) open: Vec<(Flow, Option<u64>)>,
    pub(crate) calls: Vec<Call>,
    pub(crate) qualities: [Option<Quality>; 3],
    pub(crate) links: [Vec<Crossing>; 3],
}

/// A moment of the run, often an edge of the measured span.
fn moment(draws: &mut RandomStream) -> Time {
    let before = |time: Time| time - Time::from_nanos(1);
    match draws.below(12) {
        0 => START,
        1 => before(START),
        2 => END,
        3 => before(END),
        _ => Time::from_secs_f64(draws.uniform_in(0.0, 40.0)),
    }
}

/// From a microsecond to 8 s, each power of two as likely.
fn span(draws: &mut RandomStream) -> Time {
    match draws.below(12) {
        whole @ 1..4 => Time::from_secs(whole as u64),
        _ => Time::from_secs_f64(1e-6 * draws.uniform_in(0.0, 23.0).exp2()),
    }
}

fn below(draws: &mut RandomStream, n: usize) -> u64 {
    draws.below(n) as u64
}

fn flow(draws: &mut RandomStream, number: u64) -> Flow {
    let (one, other) = (moment(draws), moment(draws));
    // Sent again: seldom.
    let mut some = || match draws.below(3) {
        0 => 1 + draws.below(3) as u32,
        _ => 0,
    };
    let retransmissions = Retransmissions {
        syn: some(),
        fin: some(),
        data: some(),
        timeouts: some(),
    };
    let mut delayed_by = retransmissions;
    if draws.below(4) == 0 {
        delayed_by.fin = 0;
    }
    let (start, end) = (one.min(other), one.max(other));
    // 10 to 100 MB/s while it is measured.
    let measured = SPAN.overlap(start, end).as_nanos();
    Flow {
        flow: number,
        class: draws.below(2),
        start,
        end,
        rtt: Time::from_secs_f64(draws.uniform_in(0.01, 0.3)),
        measured_bytes: measured * (10 + below(draws, 90)) / 1000,
        retransmissions,
        delayed_by: delayed_by.into(),
        has_fast_retransmit: draws.below(3) == 0,
        failed: draws.below(5) == 0,
        ..Flow::default()
    }
}

fn parts(draws: &mut RandomStream) -> Parts {
    let mut some = |count| (0..count).map(|_| below(draws, 1_000_000_000)).collect();
    let parts = some(Part::ALL.len() + PARTS_OF_PORT * LINKS.len());
    let counts = some(PathCount::ALL.len());
    let loss = (draws.below(3) == 0).then(|| LossOnPath {
        time: Time::from_millis(300),
        segment: LostSegment::Data,
        port: [None, Some(0), Some(2)][draws.below(3)],
        reason: ["early", "overflow"][draws.below(2)],
    });
    Parts {
        parts,
        counts,
        loss,
    }
}

fn call(draws: &mut RandomStream, number: u64) -> Call {
    let mut datagrams = Vec::new();
    let (mut sent, mut last) = (Time::from_secs(8 * number), Time::ZERO);
    for _ in 0..400 {
        // Some leave a gap behind them, and a few come or go with an edge of the span.
        sent += Time::from_millis(20 + if draws.below(40) == 0 { 700 } else { 0 });
        for edge in [START, END] {
            if sent < edge && sent + Time::from_millis(25) > edge {
                sent = edge;
            }
        }
        let delay = Time::from_micros(5_000 + below(draws, 14_000));
        let at = last.max(sent + delay);
        last = at;
        datagrams.push(Datagram {
            sent,
            at,
            // In rows.
            is_lost: draws.below(2) == 0 && (sent.as_nanos() / 300_000_000) % 4 == 1,
        });
    }
    let arrived = datagrams.iter().filter(|it| !it.is_lost);
    let flow = Flow {
        flow: number,
        class: 1,
        start: datagrams[0].sent,
        end: last,
        rtt: Time::from_millis(30),
        measured_bytes: 1_000_000 * arrived.filter(|it| is_measured(it.at)).count() as u64,
        ..Flow::default()
    };
    Call { flow, datagrams }
}

/// Packets in a row through a link of 10 Mbit/s. One is sent to the end of the measured span, and one
/// leaves the queue then.
fn crossings(draws: &mut RandomStream) -> Vec<Crossing> {
    let mut crossings: Vec<Crossing> = Vec::new();
    let (mut now, mut free) = (Time::from_secs(9), Time::ZERO);
    while now < Time::from_secs(31) {
        now += Time::from_secs_f64(draws.exponential(0.013));
        for _ in 0..1 + draws.below(3) {
            let size = 40 + draws.below(14_000) as u32;
            let mut begin = now.max(free);
            for edge in [START, END] {
                let takes = Time::from_nanos(NANOS_PER_BYTE * u64::from(size));
                if begin < edge && begin + takes + takes > edge && now <= edge - takes {
                    begin = edge - takes;
                }
            }
            let takes = Time::from_nanos(NANOS_PER_BYTE * u64::from(size));
            free = begin + takes;
            crossings.push(Crossing {
                arrives: now,
                leaves: begin,
                begin,
                end: free,
                class: draws.below(2) as u16,
                size,
                is_lost: draws.below(9) == 0,
            });
        }
    }
    crossings
}

/// What waits at a moment, after what leaves then and before what comes then.
pub(crate) fn backlog(crossings: &[Crossing], at: Time) -> Backlog {
    let waiting = crossings
        .iter()
        .filter(|it| it.arrives < at && at < it.leaves);
    Backlog {
        packets: waiting.clone().count() as u32,
        bytes: waiting.map(|it| u64::from(it.size)).sum(),
    }
}

pub(crate) fn sample_times() -> impl Iterator<Item = Time> {
    std::iter::successors(Some(START), |at| Some(*at + SAMPLE)).take_while(|at| *at < END)
}

pub(crate) fn probe_values(link: usize, at: Time) -> Vec<f64> {
    let values = [at.as_secs_f64(), link as f64];
    values[..PROBES[link].len()].to_vec()
}

pub(crate) const REASONS: &[Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

/// What the discipline of a link has counted when the span begins and when it ends.
pub(crate) fn counters(link: usize) -> [Counters; 2] {
    let mut before = Counters::new(REASONS);
    let mut after = before.clone();
    if link == 1 {
        // Nothing came here.
        return [before, after];
    }
    (before.arrived_packets, after.arrived_packets) = (100, 1100 + link as u64);
    before.dropped[..3].copy_from_slice(&[3, 4, 5]);
    after.dropped[..3].copy_from_slice(&[10, 21, 32]);
    before.marked[0] = 6;
    after.marked[0] = 77;
    [before, after]
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let draws = &mut RandomStream::new(seed, "made up", 0);
        let many = 0..150_u64;
        let class = |draws: &mut RandomStream| draws.below(2);
        let exchange = |number: u64, draws: &mut RandomStream| {
            let (end, took) = (moment(draws), span(draws));
            let exchange = Exchange {
                flow: number,
                class: class(draws),
                start: end.saturating_sub(took),
                end,
                request_bytes: 300,
                response_bytes: 3000,
                client: 1,
                server: 2,
            };
            (exchange, parts(draws))
        };
        let round_trip = |draws: &mut RandomStream| {
            let sample = RoundTrip {
                time: span(draws),
                smoothed: span(draws),
                cwnd: below(draws, 100_000),
            };
            (
                class(draws),
                sample,
                Time::from_micros(10 + below(draws, 500_000)),
            )
        };
        let kind = |draws: &mut RandomStream| {
            let kinds = [SegmentKind::Syn, SegmentKind::Fin, SegmentKind::Data];
            (class(draws), kinds[draws.below(3)])
        };
        Self {
            starts: many
                .clone()
                .map(|_| (class(draws), moment(draws)))
                .collect(),
            exchanges: many.clone().map(|n| exchange(n, draws)).collect(),
            refused: many
                .clone()
                .map(|_| (class(draws), moment(draws)))
                .collect(),
            lost: many
                .clone()
                .map(|_| (class(draws), moment(draws)))
                .collect(),
            timeouts: many
                .clone()
                .map(|_| (class(draws), moment(draws), 1 + draws.below(3) as u32))
                .collect(),
            round_trips: many.clone().map(|_| round_trip(draws)).collect(),
            again: many.clone().map(|_| kind(draws)).collect(),
            uploaded: vec![(0, 3000), (0, 500)],
            downloaded: vec![(1, 70_000), (0, 10), (0, 20)],
            closed: many.map(|number| flow(draws, number)).collect(),
            open: (200..220)
                .map(|number| {
                    let cwnd = (draws.below(5) > 0).then(|| below(draws, 50_000));
                    (flow(draws, number), cwnd)
                })
                .collect(),
            calls: (0..4).map(|number| call(draws, number)).collect(),
            qualities: [Some(viewers()), Some(players()), Some(Quality::default())],
            links: [crossings(draws), Vec::new(), crossings(draws)],
        }
    }

    /// Says all of it. Gives the summary and what was recorded.
    pub(crate) fn tell(&self, view: View) -> (Summary, Kept) {
        let scenario = scenario();
        let mut links: Vec<LinkStats> = (0..3).map(|link| self.link(link)).collect();
        let (records, kept) = Kept::new();
        let mut metrics = Metrics::new(&scenario, view, &links, records).unwrap();
        let port = |name: &Name| PortParts {
            name: name.direction(),
            has_ring: false,
            holders: Vec::new(),
        };
        metrics
            .begin_breakdowns(LINKS.iter().map(port).collect())
            .unwrap();
        for &(class, at) in &self.starts {
            metrics.on_exchange_start(class, at);
        }
        for (exchange, parts) in &self.exchanges {
            metrics.on_exchange(exchange);
            let breakdown = Breakdown {
                parts: &parts.parts,
                counts: &parts.counts,
                loss: parts.loss,
            };
            metrics.on_breakdown(exchange, &breakdown);
        }
        for &(class, at) in &self.refused {
            metrics.on_refused(class, at);
        }
        for &(class, at) in &self.lost {
            metrics.on_lost_segment(class, at);
        }
        for &(class, at, count) in &self.timeouts {
            metrics.on_timeouts(class, at, count);
        }
        self.tell_senders(&mut metrics);
        for &(class, bytes) in &self.uploaded {
            metrics.on_uploaded(class, bytes);
        }
        for &(class, bytes) in &self.downloaded {
            metrics.on_downloaded(class, bytes);
        }
        for flow in &self.closed {
            metrics.on_closed(flow);
        }
        for (flow, cwnd) in &self.open {
            metrics.on_still_open(flow, *cwnd);
        }
        for call in &self.calls {
            let (stats, [sent, lost]) = tell_call(call);
            metrics.on_datagrams(1, &stats);
            metrics.on_datagram_flow(&call.flow, sent, lost);
        }
        for (class, quality) in self.qualities.iter().enumerate() {
            if let Some(quality) = quality {
                metrics.on_quality(class, quality.clone());
            }
        }
        for _ in 0..2 {
            metrics.trace(&trace_row());
        }
        for _ in 0..3 {
            metrics.on_story(&StoryRow::new(StoryEvent::Sent, START));
        }
        assert_eq!(metrics.classes().len(), 3);
        let summary = metrics.finish(&scenario, &mut links, 12_345).unwrap();
        let kept = std::mem::take(&mut *kept.lock().unwrap());
        (summary, kept)
    }

    /// The ends of half of the connections are summed up apart.
    fn tell_senders(&self, metrics: &mut Metrics) {
        for half in 0..2 {
            let mut senders: [SenderStats; 2] = Default::default();
            let mine = |number: usize| number % 2 == half;
            for (number, (class, sample, idle)) in self.round_trips.iter().enumerate() {
                if mine(number) {
                    senders[*class].on_round_trip(sample, *idle);
                }
            }
            for (number, &(class, kind)) in self.again.iter().enumerate() {
                if mine(number) {
                    senders[class].on_retransmission(kind);
                }
            }
            for (class, senders) in senders.iter().enumerate() {
                metrics.on_senders(class, senders);
            }
        }
    }

    /// The statistics of a link: the first computes departures, the others learn step by step.
    fn link(&self, link: usize) -> LinkStats {
        let mut stats = LinkStats::new(LINKS[link].direction(), PROBES[link], SPAN, SAMPLE);
        let crossings = &self.links[link];
        let [before, after] = counters(link);
        let look = |stats: &mut LinkStats, until: Time| {
            while stats.next_sample() <= until {
                let at = stats.next_sample();
                stats.on_sample(
                    backlog(crossings, at),
                    || before.clone(),
                    |out| {
                        out.extend(probe_values(link, at));
                    },
                );
            }
        };
        for (number, it) in crossings.iter().enumerate() {
            let is_behind = it.arrives >= END;
            look(&mut stats, if is_behind { END } else { it.arrives });
            if is_behind {
                break;
            }
            if it.leaves > it.arrives {
                let waiting = crossings[..=number]
                    .iter()
                    .filter(|other| other.leaves > it.arrives);
                stats.on_length(it.arrives, waiting.count() as u32);
            }
            if link == 0 {
                let class = (it.class, it.size);
                stats.on_transit(it.arrives, it.leaves, (it.begin, it.end), class);
            } else {
                stats.on_queue(it.arrives, it.leaves, 1);
                stats.on_leave(it.arrives, it.leaves, (it.class, it.size));
                stats.on_transmission(it.begin, it.end, it.size);
            }
            if it.is_lost {
                stats.on_wire_loss(it.end);
            }
        }
        look(&mut stats, END);
        stats.close(&after, None);
        stats
    }
}

fn tell_call(call: &Call) -> (DatagramStats, [u64; 2]) {
    let (mut flow, mut stats) = (DatagramFlow::default(), DatagramStats::default());
    let mut events: Vec<(Time, bool, usize)> = Vec::new();
    for (number, datagram) in call.datagrams.iter().enumerate() {
        events.push((datagram.sent, true, number));
        events.push((datagram.at, false, number));
    }
    events.sort_by_key(|&(at, is_sent, number)| (at, !is_sent, number));
    for (at, is_sent, number) in events {
        if is_sent {
            assert_eq!(flow.on_sent(at, SPAN), number as u32);
        } else if call.datagrams[number].is_lost {
            flow.on_lost(number as u32, at, SPAN, &mut stats);
        } else {
            // A part of the delay that the clocks do not show.
            let hidden = Time::from_micros(100);
            let delay = flow.on_received(number as u32, (at, hidden), SPAN, &mut stats);
            assert_eq!(delay, at - call.datagrams[number].sent + hidden);
        }
    }
    let (sent, lost) = flow.close(&mut stats);
    (stats, [sent, lost])
}

fn trace_row() -> TraceRow {
    TraceRow {
        flow: 1,
        class: 0,
        time: START,
        probe: Probe {
            cwnd: 1,
            ssthresh: 2,
            in_flight: 3,
            round_trip: None,
            timeout: START,
            recovery_state: RecoveryState::Open,
            control: ControlMetrics::default(),
            control_state: None,
        },
    }
}

/// Viewers of streamed video, and listeners.
fn viewers() -> Quality {
    let mut quality = Quality::default();
    for (number, value) in (1..).zip([3.5, 0.25, 8.0, 2.0, 1.0]) {
        quality.page_loads.add(value);
        quality.throughputs.add(1e6 * value);
        quality.video.startup_delays.add(value + 0.5);
        quality.video.bitrates.add(5e5 * value);
        quality.voice.scores.add(4.5 - 0.1 * f64::from(number));
        quality.voice.ratings.add(90.0 - value);
        quality.voice.mouth_to_ear.add(0.1 * value);
    }
    (quality.video.played_s, quality.video.stalled_s) = (90.0, 6.0);
    (quality.video.stalls, quality.video.switches) = (4, 8);
    (quality.voice.packets, quality.voice.lost) = (500, 30);
    quality
}

/// Players, whose streams have frames instead of segments.
fn players() -> Quality {
    let mut quality = Quality::default();
    for delay in [0.050, 0.150, 0.151, 0.300, 0.060, 0.100, 0.101, 0.061] {
        quality.frame_delays.add(delay);
        quality.round_trips.add(delay);
    }
    (quality.streams, quality.frames, quality.frame_bits) = (3, 10, 9e7);
    (quality.frozen_s, quality.watched_s) = (5.0, 50.0);
    quality
}

/// The distributions of a class.
#[derive(Debug, Default)]
pub(crate) struct Distributions {
    pub(crate) responses: Vec<(f64, u64)>,
    pub(crate) durations: Vec<(f64, u64)>,
    pub(crate) round_trips: [Vec<(f64, u64)>; 2],
    pub(crate) datagrams: [Vec<(f64, u64)>; 2],
    pub(crate) bytes: u64,
}

/// What was recorded.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) classes: Vec<String>,
    pub(crate) probes: Vec<&'static str>,
    pub(crate) ports: Vec<Name>,
    pub(crate) responses: Vec<u64>,
    pub(crate) breakdowns: Vec<(u64, Vec<u64>)>,
    pub(crate) flows: Vec<u64>,
    pub(crate) traces: u32,
    pub(crate) stories: u32,
    pub(crate) samples: [Vec<(Time, u32, Vec<f64>)>; 3],
    pub(crate) distributions: Vec<Distributions>,
}

/// Keeps what is recorded where a test can see it.
struct Keeper(Arc<Mutex<Kept>>);

impl Kept {
    pub(crate) fn new() -> (Box<dyn Records>, Arc<Mutex<Self>>) {
        let kept = Arc::new(Mutex::new(Self::default()));
        (Box::new(Keeper(Arc::clone(&kept))), kept)
    }
}

impl Keeper {
    fn change(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.0.lock().unwrap());
    }
}

fn name_of(direction: &LinkDirection) -> usize {
    let is_same = |name: &Name| name.direction() == *direction;
    LINKS.iter().position(is_same).expect("one of the links")
}

fn listed(delays: &DelayHistogram) -> Vec<(f64, u64)> {
    delays.bins().collect()
}

impl Records for Keeper {
    fn begin(&mut self, classes: &[String], probes: &[&'static str]) -> Result<(), RunError> {
        self.change(|kept| {
            (kept.classes, kept.probes) = (classes.to_vec(), probes.to_vec());
        });
        Ok(())
    }

    fn capture(&mut self) -> Result<Option<Box<dyn Write + Send>>, RunError> {
        unreachable!("nobody asks for it")
    }

    fn response(&mut self, row: &Exchange) {
        self.change(|kept| kept.responses.push(row.flow));
    }

    fn begin_breakdowns(&mut self, ports: &[PortParts]) -> Result<(), RunError> {
        let names = ports
            .iter()
            .map(|port| LINKS[name_of(&port.name)])
            .collect();
        self.change(|kept| kept.ports = names);
        Ok(())
    }

    fn breakdown(&mut self, row: &Exchange, breakdown: &Breakdown<'_>) {
        self.change(|kept| kept.breakdowns.push((row.flow, breakdown.parts.to_vec())));
    }

    fn story(&mut self, _row: &StoryRow) {
        self.change(|kept| kept.stories += 1);
    }

    fn flow(&mut self, row: &Flow) {
        self.change(|kept| kept.flows.push(row.flow));
    }

    fn trace(&mut self, _row: &TraceRow) {
        self.change(|kept| kept.traces += 1);
    }

    fn queue(&mut self, samples: &QueueSamples) {
        let rows = samples.rows().map(|(at, backlog, values)| {
            assert_eq!(values.len(), samples.probes().len());
            (at, backlog.packets, values.to_vec())
        });
        self.change(|kept| kept.samples[name_of(samples.name())].extend(rows));
    }

    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        classes: &[ClassMetrics],
        links: &[&LinkStats],
    ) -> Result<(), RunError> {
        let of_class = |class: &ClassMetrics| {
            let flows = class.flows();
            Distributions {
                responses: class.responses().times().bins().collect(),
                durations: flows.durations().bins().collect(),
                round_trips: flows.round_trips().map(listed),
                datagrams: flows.datagram_delays().map(listed),
                bytes: flows.measured_bytes(),
            }
        };
        let found: Vec<_> = classes.iter().map(of_class).collect();
        assert_eq!(links.len(), LINKS.len());
        self.change(|kept| kept.distributions = found);
        Ok(())
    }
}
