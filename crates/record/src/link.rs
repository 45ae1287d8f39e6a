//! What is counted of one direction of a link.

use aqmlab_aqm::{Backlog, Counters, Parts};
use aqmlab_net::Time;

use crate::delays::{ClassTransits, Transit};
use crate::parts::SubscriberRow;
use crate::{DelayHistogram, LinkDirection, MeasuredSpan, QueueSamples};

/// What is counted of one direction of a link in the measured span, and the samples of its queue.
#[derive(Clone, Debug)]
pub struct LinkStats {
    span: MeasuredSpan,
    sampler: Sampler,
    samples: QueueSamples,
    /// What the discipline had counted when the measured span began; from its end on, what it
    /// counted in between.
    pub(crate) counters: Counters,
    /// Packets that leave earlier need no split at the edge of the measured span. Zero until that
    /// begins.
    measured_until: Time,
    /// Nanoseconds that these packets spent in the discipline: part of `waited`.
    transit_sum: u128,
    /// Packets whose transmission ended. What is added to for every packet does not stand side by
    /// side: two additions are cheaper than what a compiler makes of two neighbours.
    pub(crate) departed_packets: u64,
    pub(crate) wire_lost_packets: u64,
    pub(crate) departed_bytes: u64,
    /// Packet-nanoseconds spent in the discipline: their time average is the mean queue.
    waited: u128,
    pub(crate) busy: Time,
    /// From arrival to departure from the discipline, of all packets that left it in the measured
    /// span.
    sojourn: ClassTransits,
    /// Transits by cell of the discipline's parts, if it has any.
    by_cell: ClassTransits,
    pub(crate) parts: Option<Parts>,
    pub(crate) max_packets: u32,
    /// Packets pass in no time: several may come at one instant, but no queue is there.
    is_instant: bool,
    /// Queue lengths at the sample times, by count of packets.
    pub(crate) sampled: Vec<u64>,
}

/// When the queue is looked at next: first at the beginning of the measured span.
#[derive(Clone, Copy, Debug)]
struct Sampler {
    next: Time,
    period: Time,
}

impl LinkStats {
    /// Empty statistics. The queue is sampled every `period` from the beginning of the measured
    /// span on; `probes` are the names of the discipline's inner variables.
    pub fn new(
        name: LinkDirection,
        probes: &'static [&'static str],
        span: MeasuredSpan,
        period: Time,
    ) -> Self {
        Self {
            span,
            sampler: Sampler {
                next: span.start,
                period,
            },
            samples: QueueSamples::new(name, probes),
            counters: Counters::default(),
            measured_until: Time::ZERO,
            transit_sum: 0,
            departed_packets: 0,
            wire_lost_packets: 0,
            departed_bytes: 0,
            waited: 0,
            busy: Time::ZERO,
            sojourn: ClassTransits::default(),
            by_cell: ClassTransits::default(),
            parts: None,
            max_packets: 0,
            is_instant: false,
            sampled: Vec::new(),
        }
    }

    /// Packets pass in no time, and nothing waits.
    pub const fn set_instant(&mut self) {
        self.is_instant = true;
    }

    /// Whose statistics they are.
    pub const fn name(&self) -> &LinkDirection {
        self.samples.name()
    }

    /// The samples that wait to be recorded.
    pub const fn samples(&self) -> &QueueSamples {
        &self.samples
    }

    /// The samples are recorded.
    pub(crate) fn forget_samples(&mut self) {
        self.samples.clear();
    }

    /// The names of the discipline's inner variables.
    pub fn probes(&self) -> &'static [&'static str] {
        self.samples.probes()
    }

    /// When [`on_sample`](Self::on_sample) wants to be called next.
    #[inline]
    pub const fn next_sample(&self) -> Time {
        self.sampler.next
    }

    /// Looks at the queue at [`next_sample`](Self::next_sample), which moves on: what waits, what
    /// the discipline has counted, and its inner variables, which `probe` appends.
    pub fn on_sample(
        &mut self,
        backlog: Backlog,
        counters: impl FnOnce() -> Counters,
        probe: impl FnOnce(&mut Vec<f64>),
    ) {
        self.samples.add(self.sampler.next, backlog, probe);
        if self.sampler.next == self.span.start {
            self.counters = counters();
            self.measured_until = self.span.end;
        }
        self.sampler.next += self.sampler.period;
        if self.sampler.next >= self.span.end {
            self.sampler.next = Time::NEVER;
        }
        let packets = backlog.packets as usize;
        if self.sampled.len() <= packets {
            self.sampled.resize(packets + 1, 0);
        }
        self.sampled[packets] += 1;
    }

    /// Whether the next sample is the first: the measured span begins.
    pub fn is_first_sample(&self) -> bool {
        self.sampler.next == self.span.start
    }

    /// The measured span is over; the discipline has counted this, and this of its parts.
    pub fn close(&mut self, counters: &Counters, parts: Option<Parts>) {
        self.counters = counters.since(&self.counters);
        self.parts = parts;
        self.waited += self.transit_sum;
        (self.transit_sum, self.measured_until) = (0, Time::ZERO);
    }

    /// Whether so many packets are more than ever waited in the measured span.
    #[inline(always)]
    pub const fn is_longest(&self, packets: u32) -> bool {
        packets > self.max_packets
    }

    /// So many packets wait from `now` on.
    #[inline]
    pub fn on_length(&mut self, now: Time, packets: u32) {
        if packets > self.max_packets && !self.is_instant && self.span.contains(now) {
            self.max_packets = packets;
        }
    }

    /// A packet of a class comes at `arrives`, leaves the discipline at `leaves` and occupies the wire from
    /// `begin` to `end`: all of [`on_leave`](Self::on_leave),
    /// [`on_transmission`](Self::on_transmission) and its time in the queue.
    #[inline(always)]
    pub fn on_transit(
        &mut self,
        arrives: Time,
        leaves: Time,
        transmission: (Time, Time),
        (class, size): (u16, u32),
    ) {
        let (begin, end) = transmission;
        if end < self.measured_until {
            // Nearly all packets: nothing to cut off.
            let sojourn = leaves - arrives;
            self.transit_sum += u128::from(sojourn.as_nanos());
            self.sojourn.add((class, size), sojourn);
            self.departed_packets += 1;
            self.departed_bytes += u64::from(size);
            self.busy += end - begin;
        } else {
            self.on_transit_across(arrives, leaves, transmission, (class, size));
        }
    }

    /// A packet comes and goes, and not all of that is measured.
    #[cold]
    fn on_transit_across(
        &mut self,
        arrives: Time,
        leaves: Time,
        (begin, end): (Time, Time),
        (class, size): (u16, u32),
    ) {
        self.on_queue(arrives, leaves, 1);
        self.on_leave(arrives, leaves, (class, size));
        self.on_transmission(begin, end, size);
    }

    /// So many packets waited over this time.
    #[inline]
    pub fn on_queue(&mut self, from: Time, to: Time, packets: u32) {
        self.waited += u128::from(self.span.overlap(from, to).as_nanos()) * u128::from(packets);
    }

    /// A packet, its class and its size, leaves the discipline for the wire or the device ring.
    #[inline]
    pub fn on_leave(&mut self, arrived: Time, leaves: Time, packet: (u16, u32)) {
        if leaves < self.measured_until || self.span.contains(leaves) {
            self.sojourn.add(packet, leaves - arrived);
        }
    }

    /// A packet of a cell of the discipline's parts leaves the discipline.
    #[inline]
    pub fn on_leave_cell(&mut self, arrived: Time, leaves: Time, packet: (u16, u32)) {
        if leaves < self.measured_until || self.span.contains(leaves) {
            self.by_cell.add(packet, leaves - arrived);
        }
    }

    /// A packet occupies the wire over this time.
    #[inline(always)]
    pub fn on_transmission(&mut self, begin: Time, end: Time, size: u32) {
        if end < self.measured_until {
            self.departed_packets += 1;
            self.departed_bytes += u64::from(size);
            self.busy += end - begin;
        } else {
            self.on_transmission_across(begin, end, size);
        }
    }

    /// A packet occupies the wire, and not all of that is measured.
    #[cold]
    fn on_transmission_across(&mut self, begin: Time, end: Time, size: u32) {
        if self.span.contains(end) {
            self.departed_packets += 1;
            self.departed_bytes += u64::from(size);
        }
        self.busy += self.span.overlap(begin, end);
    }

    /// Something is on the air over this time, whatever becomes of its packets.
    pub fn on_busy(&mut self, begin: Time, end: Time) {
        self.busy += self.span.overlap(begin, end);
    }

    /// A packet whose transmission ends at `end` is lost at random on the wire.
    pub fn on_wire_loss(&mut self, end: Time) {
        self.wire_lost_packets += u64::from(self.span.contains(end));
    }

    /// Packet-nanoseconds spent in the discipline: their time average is the mean queue.
    pub(crate) const fn waited(&self) -> u128 {
        self.waited + self.transit_sum
    }

    /// How long the packets stayed in the discipline that left it.
    pub fn sojourn(&self) -> DelayHistogram {
        self.sojourn.all()
    }

    /// What left the discipline by class of traffic: the numbers of those that had packets there.
    pub fn by_class(&self) -> impl Iterator<Item = (usize, &Transit)> {
        self.sojourn.by_class()
    }

    /// What was counted of the discipline's parts, if it has any.
    pub const fn parts(&self) -> Option<&Parts> {
        self.parts.as_ref()
    }

    /// The subscribers of the discipline, if it has any.
    pub fn subscribers(&self) -> impl Iterator<Item = SubscriberRow<'_>> {
        self.parts.iter().flat_map(SubscriberRow::all)
    }

    /// What left the discipline by cell of its parts: the numbers of those that had packets.
    pub(crate) fn by_cell(&self) -> impl Iterator<Item = (usize, &Transit)> {
        self.by_cell.by_class()
    }

    /// The smallest queue length that at least a share `p` of the samples do not exceed.
    pub(crate) fn queue_percentile(&self, p: f64) -> Option<u32> {
        let total: u64 = self.sampled.iter().sum();
        let wanted = (p * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.sampled
            .iter()
            .position(|count| {
                seen += count;
                seen >= wanted
            })
            .map(|packets| packets as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(span: MeasuredSpan, period: Time) -> LinkStats {
        let name = LinkDirection {
            link: "bottleneck".to_owned(),
            direction: "forward",
        };
        LinkStats::new(name, &[], span, period)
    }

    #[test]
    fn only_the_measured_span_counts() {
        let span = MeasuredSpan {
            start: Time::from_secs(10),
            end: Time::from_secs(20),
        };
        let mut stats = stats(span, Time::from_secs(1));
        let s = Time::from_secs;
        // The first waits from 8 to 12 and is sent from 12 to 13, the second waits from 19 to 25:
        // it leaves after the span.
        for (arrives, leaves, waiting) in [(8, 12, 9), (19, 25, 4)] {
            let sent = (s(leaves), s(leaves + 1));
            stats.on_length(s(arrives), waiting);
            stats.on_transit(s(arrives), s(leaves), sent, (1, 1000));
        }
        assert_eq!(stats.departed_packets, 1);
        assert_eq!(stats.busy, s(1));
        assert_eq!(stats.waited(), 3_000_000_000);
        assert_eq!(stats.max_packets, 4);
        assert!(!stats.is_longest(4) && stats.is_longest(5));
        assert_eq!(stats.sojourn().count(), 1);
        assert_eq!(stats.sojourn().mean_s(), Some(4.0));
        let classes: Vec<_> = stats.by_class().map(|(class, _)| class).collect();
        assert_eq!(classes, [1]);
        // So many waiting for so long, as a queue counts it that learns of changes.
        stats.on_queue(s(5), s(11), 3);
        assert_eq!(stats.waited(), 6_000_000_000);
    }

    /// The longest run that is allowed, 30 days, with the longest queue that a `u32` counts.
    #[test]
    fn sums_of_waiting_hold_the_longest_runs() {
        let span = MeasuredSpan {
            start: Time::ZERO,
            end: Time::from_secs(30 * 24 * 3600),
        };
        let mut stats = stats(span, Time::from_secs(60));
        stats.measured_until = span.end;
        stats.on_queue(span.start, span.end, u32::MAX);
        let each = u128::from(span.end.as_nanos());
        assert_eq!(stats.waited(), each * u128::from(u32::MAX));
        let last = span.end - Time::from_nanos(1);
        for _ in 0..8_000 {
            stats.on_transit(Time::ZERO, last, (last, last), (0, 1));
        }
        let more = 8_000 * (each - 1);
        assert_eq!(stats.waited(), each * u128::from(u32::MAX) + more);
        let sojourn = stats.sojourn();
        assert_eq!(sojourn.mean_s(), sojourn.max_s());
        assert_eq!(sojourn.quantiles_s([0.5, 0.99]), [sojourn.max_s(); 2]);
    }

    #[test]
    fn counts_begin_with_the_measured_span() {
        let span = MeasuredSpan {
            start: Time::from_secs(10),
            end: Time::from_secs(12),
        };
        let mut stats = stats(span, Time::from_secs(1));
        let mut counters = Counters {
            arrived_packets: 5,
            ..Counters::default()
        };
        stats.on_sample(Backlog::default(), || counters.clone(), |_| {});
        counters.arrived_packets = 9;
        stats.on_sample(Backlog::default(), || counters.clone(), |_| {});
        assert_eq!(stats.next_sample(), Time::NEVER);
        stats.close(&counters, None);
        assert_eq!(stats.counters.arrived_packets, 4);
    }

    #[test]
    fn queue_percentiles() {
        let span = MeasuredSpan {
            start: Time::ZERO,
            end: Time::from_secs(1),
        };
        let mut stats = stats(span, Time::from_millis(100));
        assert_eq!(stats.queue_percentile(0.5), None);
        for packets in [0, 0, 1, 7] {
            let backlog = Backlog { packets, bytes: 0 };
            stats.on_sample(backlog, Counters::default, |_| {});
        }
        assert_eq!(stats.queue_percentile(0.5), Some(0));
        assert_eq!(stats.queue_percentile(0.75), Some(1));
        assert_eq!(stats.queue_percentile(0.99), Some(7));
    }

    /// What is done at once for nearly all packets is what is done step by step at the edges.
    #[test]
    fn a_packet_at_an_edge_counts_as_by_steps() {
        let span = MeasuredSpan {
            start: Time::from_secs(10),
            end: Time::from_secs(20),
        };
        let s = Time::from_secs;
        for (arrives, leaves, begin, end) in [
            (11, 12, 12, 13),
            // It waits in the device ring, too.
            (11, 12, 13, 14),
            (10, 10, 10, 11),
            (17, 19, 19, 20),
            (18, 20, 20, 21),
            (18, 19, 19, 21),
            (20, 21, 21, 22),
        ] {
            let mut stats = stats(span, Time::from_secs(1));
            stats.measured_until = span.end;
            let mut steps = stats.clone();
            stats.on_transit(s(arrives), s(leaves), (s(begin), s(end)), (0, 1000));
            steps.on_transit_across(s(arrives), s(leaves), (s(begin), s(end)), (0, 1000));
            let seen = |it: &LinkStats| {
                let sojourn = (it.sojourn().count(), it.sojourn().mean_s());
                (
                    it.departed_packets,
                    it.departed_bytes,
                    it.busy,
                    it.waited(),
                    sojourn,
                )
            };
            assert_eq!(seen(&stats), seen(&steps), "{arrives} to {end}");
        }
    }
}
