//! What is counted while a run goes on. Memory does not depend on the length of the run.

use aqmlab_aqm::{Backlog, Counters};
use aqmlab_net::Time;
use aqmlab_tcp::Retransmissions;

use crate::times::Times;

/// The measured span of a run: from the end of the warm-up to the end of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredSpan {
    pub(crate) start: Time,
    pub(crate) end: Time,
}

impl MeasuredSpan {
    /// Whether `time` is measured. The window is half open: [start, end).
    #[inline]
    pub(crate) fn contains(self, time: Time) -> bool {
        self.start <= time && time < self.end
    }

    /// How much of [from, to] is measured.
    #[inline]
    pub(crate) fn overlap(self, from: Time, to: Time) -> Time {
        to.min(self.end).saturating_sub(from.max(self.start))
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct PortStats {
    window: MeasuredSpan,
    sampler: Sampler,
    /// What the discipline had counted when the measured span began; from its end on, what it
    /// counted in between.
    pub(crate) counters: Counters,
    /// Packets whose transmission ended.
    pub(crate) departed_packets: u64,
    pub(crate) departed_bytes: u64,
    pub(crate) wire_lost_packets: u64,
    pub(crate) busy: Time,
    /// Packet-nanoseconds spent in the discipline: its time average is the mean queue.
    pub(crate) waited: u64,
    /// Nanoseconds from arrival to departure from the discipline, and the packets they belong to.
    pub(crate) delay_sum: u64,
    pub(crate) left_packets: u64,
    pub(crate) max_packets: u32,
    /// Queue lengths at the sample times, by count of packets.
    pub(crate) sampled: Vec<u64>,
}

/// When the queue is looked at next: first at the beginning of the measured span.
#[derive(Clone, Copy, Debug)]
struct Sampler {
    next: Time,
    period: Time,
}

impl PortStats {
    pub(crate) fn new(window: MeasuredSpan, sample: Time) -> Self {
        Self {
            window,
            sampler: Sampler {
                next: window.start,
                period: sample,
            },
            counters: Counters::default(),
            departed_packets: 0,
            departed_bytes: 0,
            wire_lost_packets: 0,
            busy: Time::ZERO,
            waited: 0,
            delay_sum: 0,
            left_packets: 0,
            max_packets: 0,
            sampled: Vec::new(),
        }
    }

    /// When [`on_sample`](Self::on_sample) wants to be called next.
    #[inline]
    pub(crate) const fn next_sample(&self) -> Time {
        self.sampler.next
    }

    /// The queue at [`next_sample`](Self::next_sample), which moves on.
    pub(crate) fn on_sample(&mut self, backlog: Backlog, counters: &Counters) {
        if self.sampler.next == self.window.start {
            self.counters = counters.clone();
        }
        self.sampler.next += self.sampler.period;
        if self.sampler.next >= self.window.end {
            self.sampler.next = Time::NEVER;
        }
        let packets = backlog.packets as usize;
        if self.sampled.len() <= packets {
            self.sampled.resize(packets + 1, 0);
        }
        self.sampled[packets] += 1;
    }

    /// The measured span is over.
    pub(crate) fn close(&mut self, counters: &Counters) {
        self.counters = counters.since(&self.counters);
    }

    /// So many packets wait from `now` on.
    #[inline]
    pub(crate) fn on_length(&mut self, now: Time, packets: u32) {
        if packets > self.max_packets && self.window.contains(now) {
            self.max_packets = packets;
        }
    }

    /// A packet comes at `arrives`, leaves the discipline at `leaves` and occupies the wire from
    /// `begin` to `end`: all of [`on_leave`](Self::on_leave),
    /// [`on_transmission`](Self::on_transmission) and its time in the queue.
    #[inline]
    pub(crate) fn on_transit(
        &mut self,
        arrives: Time,
        leaves: Time,
        (begin, end): (Time, Time),
        size: u32,
    ) {
        if self.window.contains(arrives) && end < self.window.end {
            // Nearly all packets: nothing to cut off.
            let waited = (leaves - arrives).as_nanos();
            self.waited += waited;
            self.delay_sum += waited;
            self.left_packets += 1;
            self.departed_packets += 1;
            self.departed_bytes += u64::from(size);
            self.busy += end - begin;
            return;
        }
        self.on_queue(arrives, leaves, 1);
        self.on_leave(arrives, leaves);
        self.on_transmission(begin, end, size);
    }

    /// So many packets waited over this time.
    #[inline]
    pub(crate) fn on_queue(&mut self, from: Time, to: Time, packets: u32) {
        self.waited += self.window.overlap(from, to).as_nanos() * u64::from(packets);
    }

    /// A packet leaves the discipline for the wire or the device ring.
    #[inline]
    pub(crate) fn on_leave(&mut self, arrived: Time, leaves: Time) {
        if self.window.contains(leaves) {
            self.left_packets += 1;
            self.delay_sum += (leaves - arrived).as_nanos();
        }
    }

    /// A packet occupies the wire over this time.
    #[inline]
    pub(crate) fn on_transmission(&mut self, begin: Time, end: Time, size: u32) {
        if self.window.contains(end) {
            self.departed_packets += 1;
            self.departed_bytes += u64::from(size);
        }
        self.busy += self.window.overlap(begin, end);
    }

    pub(crate) fn on_wire_loss(&mut self, end: Time) {
        self.wire_lost_packets += u64::from(self.window.contains(end));
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

/// Response times of one class of traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseStats {
    pub(crate) started: u64,
    pub(crate) times: Times,
    /// Counts of responses that took at most 1, 2 and 3 s.
    pub(crate) within: [u64; 3],
}

impl ResponseStats {
    pub(crate) fn add(&mut self, response: Time) {
        self.times.add(response);
        for (limit, count) in (1..).zip(&mut self.within) {
            *count += u64::from(response <= Time::from_secs(limit));
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.times.merge(&other.times);
        for (count, more) in self.within.iter_mut().zip(other.within) {
            *count += more;
        }
    }
}

/// What was sent again, of whatever number, until a client had everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delays {
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) data: bool,
}

impl From<Retransmissions> for Delays {
    fn from(again: Retransmissions) -> Self {
        Self {
            syn: again.syn > 0,
            fin: again.fin > 0,
            data: again.data > 0,
        }
    }
}

/// Connections of one class of traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowStats {
    pub(crate) count: u64,
    /// From opening to closing, of those that were not given up.
    pub(crate) durations: Times,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) retransmitted_syn: u64,
    pub(crate) retransmitted_fin: u64,
    pub(crate) retransmitted_data: u64,
    pub(crate) timeouts: u64,
    /// Connections with a fast retransmit.
    pub(crate) with_fast_retransmit: u64,
    /// What is seen of all connections in the measured span, also of those that go on; only in a
    /// simulated network.
    pub(crate) seen: Option<Seen>,
    pub(crate) datagrams_sent: u64,
    pub(crate) datagrams_lost: u64,
    /// Flows that sent datagrams in the measured span, and those of them that lost more than a
    /// tenth.
    pub(crate) datagram_flows: u64,
    pub(crate) lossy_datagram_flows: u64,
    /// Closed connections by what had to be sent again until the client had everything: nothing,
    /// only SYNs, only FINs, only data, or several of these.
    pub(crate) by_retransmission: [u64; 5],
    /// Application bytes that clients received in the measured span.
    pub(crate) response_bytes: u64,
    /// Goodput of connections, in bytes per second.
    goodput: Shares,
    /// Goodput times minimum round trip, in millionths of a byte.
    normalized: Shares,
}

/// Counts of the measured span that do not wait for the end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Segments with data that a queue dropped or a wire lost.
    pub(crate) lost_segments: u64,
    /// Expiries of the retransmission timer.
    pub(crate) expiries: u64,
}

impl Seen {
    fn plus(self, other: Self) -> Self {
        Self {
            lost_segments: self.lost_segments + other.lost_segments,
            expiries: self.expiries + other.expiries,
        }
    }
}

/// Sums from which Jain's index follows.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    sum: u128,
    squared: u128,
    count: u64,
}

impl Shares {
    fn add(&mut self, share: u128) {
        self.sum += share;
        self.squared += share * share;
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.squared += other.squared;
        self.count += other.count;
    }

    /// Jain's index (sum x)^2 / (n sum x^2).
    fn jain(self) -> Option<f64> {
        (self.squared > 0).then(|| {
            let sum = self.sum as f64;
            sum * sum / (self.count as f64 * self.squared as f64)
        })
    }
}

impl FlowStats {
    /// Of a class in a simulated network, where everything is seen.
    pub(crate) fn simulated() -> Self {
        Self {
            seen: Some(Seen::default()),
            ..Self::default()
        }
    }

    /// Counts something that was seen in the measured span.
    pub(crate) fn see(&mut self, count: impl FnOnce(&mut Seen)) {
        if let Some(seen) = &mut self.seen {
            count(seen);
        }
    }

    /// A connection ended in the measured span: what its ends sent again in all, and until the
    /// client had everything.
    pub(crate) fn add_closed(
        &mut self,
        again: Retransmissions,
        delayed_by: Delays,
        duration: Time,
        failed: bool,
    ) {
        self.count += 1;
        if failed {
            self.failed += 1;
        } else {
            self.durations.add(duration);
        }
        self.retransmitted_syn += u64::from(again.syn);
        self.retransmitted_fin += u64::from(again.fin);
        self.retransmitted_data += u64::from(again.data);
        self.timeouts += u64::from(again.timeouts);
        self.by_retransmission[match (delayed_by.syn, delayed_by.fin, delayed_by.data) {
            (false, false, false) => 0,
            (true, false, false) => 1,
            (false, true, false) => 2,
            (false, false, true) => 3,
            _ => 4,
        }] += 1;
    }

    /// A flow sent and lost so many datagrams in the measured span.
    pub(crate) fn add_datagrams(&mut self, sent: u64, lost: u64) {
        self.count += 1;
        self.datagrams_sent += sent;
        self.datagrams_lost += lost;
        self.datagram_flows += u64::from(sent > 0);
        self.lossy_datagram_flows += u64::from(10 * lost > sent);
    }

    /// A connection with this minimum round trip ended in the measured span (or the span ended).
    pub(crate) fn add_goodput(&mut self, bytes: u64, span: Time, rtt: Time) {
        if span > Time::ZERO {
            let goodput = u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos());
            self.goodput.add(goodput);
            self.normalized
                .add(goodput * u128::from(rtt.as_nanos() / 1000));
        }
    }

    /// Jain's index over the goodput of connections.
    pub(crate) fn jain(&self) -> Option<f64> {
        self.goodput.jain()
    }

    /// Jain's index over goodput times minimum round trip.
    pub(crate) fn jain_normalized(&self) -> Option<f64> {
        self.normalized.jain()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.durations.merge(&other.durations);
        self.failed += other.failed;
        self.refused += other.refused;
        self.retransmitted_syn += other.retransmitted_syn;
        self.retransmitted_fin += other.retransmitted_fin;
        self.retransmitted_data += other.retransmitted_data;
        self.timeouts += other.timeouts;
        self.with_fast_retransmit += other.with_fast_retransmit;
        self.seen = match (self.seen, other.seen) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        self.datagrams_sent += other.datagrams_sent;
        self.datagrams_lost += other.datagrams_lost;
        self.datagram_flows += other.datagram_flows;
        self.lossy_datagram_flows += other.lossy_datagram_flows;
        for (count, more) in self
            .by_retransmission
            .iter_mut()
            .zip(other.by_retransmission)
        {
            *count += more;
        }
        self.response_bytes += other.response_bytes;
        self.goodput.merge(other.goodput);
        self.normalized.merge(other.normalized);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_counts() {
        let window = MeasuredSpan {
            start: Time::from_secs(10),
            end: Time::from_secs(20),
        };
        let mut stats = PortStats::new(window, Time::from_secs(1));
        let s = Time::from_secs;
        // The first waits from 8 to 12 and is sent from 12 to 13, the second waits from 19 to 25:
        // it leaves after the window.
        for (arrives, leaves, waiting) in [(8, 12, 9), (19, 25, 4)] {
            let sent = (s(leaves), s(leaves + 1));
            stats.on_length(s(arrives), waiting);
            stats.on_transit(s(arrives), s(leaves), sent, 1000);
        }
        assert_eq!(stats.departed_packets, 1);
        assert_eq!(stats.busy, s(1));
        assert_eq!(stats.waited, 3_000_000_000);
        assert_eq!(stats.max_packets, 4);
        assert_eq!((stats.left_packets, stats.delay_sum), (1, 4_000_000_000));
        // So many waiting for so long, as a queue that is told of changes counts it.
        stats.on_queue(s(5), s(11), 3);
        assert_eq!(stats.waited, 6_000_000_000);
    }

    #[test]
    fn counts_begin_with_the_window() {
        let window = MeasuredSpan {
            start: Time::from_secs(10),
            end: Time::from_secs(12),
        };
        let mut stats = PortStats::new(window, Time::from_secs(1));
        let mut counters = Counters {
            arrived_packets: 5,
            ..Counters::default()
        };
        stats.on_sample(Backlog::default(), &counters);
        counters.arrived_packets = 9;
        stats.on_sample(Backlog::default(), &counters);
        assert_eq!(stats.next_sample(), Time::NEVER);
        stats.close(&counters);
        assert_eq!(stats.counters.arrived_packets, 4);
    }

    #[test]
    fn queue_percentiles() {
        let window = MeasuredSpan {
            start: Time::ZERO,
            end: Time::from_secs(1),
        };
        let mut stats = PortStats::new(window, Time::from_millis(100));
        assert_eq!(stats.queue_percentile(0.5), None);
        for packets in [0, 0, 1, 7] {
            stats.on_sample(Backlog { packets, bytes: 0 }, &Counters::default());
        }
        assert_eq!(stats.queue_percentile(0.5), Some(0));
        assert_eq!(stats.queue_percentile(0.75), Some(1));
        assert_eq!(stats.queue_percentile(0.99), Some(7));
    }

    #[test]
    fn flows_that_lose_more_than_a_tenth_are_lossy() {
        let mut flows = FlowStats::default();
        for (sent, lost) in [(100, 10), (100, 11), (0, 0), (3, 1)] {
            flows.add_datagrams(sent, lost);
        }
        assert_eq!((flows.count, flows.datagram_flows), (4, 3));
        assert_eq!(flows.lossy_datagram_flows, 2);
    }

    #[test]
    fn jain_of_equal_and_unequal_shares() {
        let (second, rtt) = (Time::from_secs(1), Time::from_millis(100));
        let mut flows = FlowStats::default();
        flows.add_goodput(100, second, rtt);
        flows.add_goodput(100, second, rtt);
        assert_eq!(flows.jain(), Some(1.0));
        flows.add_goodput(0, second, rtt);
        assert!((flows.jain().unwrap() - 2.0 / 3.0).abs() < 1e-12);
        // Half the goodput at twice the round trip is the same normalized share.
        let mut flows = FlowStats::default();
        flows.add_goodput(100, second, rtt);
        flows.add_goodput(50, second, rtt + rtt);
        assert_eq!(flows.jain_normalized(), Some(1.0));
        assert!((flows.jain().unwrap() - 0.9).abs() < 1e-12);
    }
}
