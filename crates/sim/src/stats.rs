//! What is counted while a run goes on. Memory does not depend on the length of the run.

use aqmlab_aqm::{Backlog, Fate, Reason};
use aqmlab_net::Time;
use hdrhistogram::Histogram;

/// The measured span of a run: from the end of the warm-up to the end of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: Time,
    pub(crate) end: Time,
}

impl Window {
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
    window: Window,
    pub(crate) arrived_packets: u64,
    pub(crate) departed_packets: u64,
    pub(crate) departed_bytes: u64,
    pub(crate) wire_lost_packets: u64,
    pub(crate) dropped: [u64; Reason::ALL.len()],
    pub(crate) marked: [u64; Reason::ALL.len()],
    pub(crate) busy: Time,
    /// Packet-nanoseconds spent in the discipline: its time average is the mean queue.
    pub(crate) waited: u64,
    /// Nanoseconds from arrival to departure from the discipline, and the packets they belong to.
    pub(crate) delay_sum: u64,
    pub(crate) admitted_packets: u64,
    pub(crate) max_packets: u32,
    /// Queue lengths at the sample times, by count of packets.
    pub(crate) sampled: Vec<u64>,
}

impl PortStats {
    pub(crate) fn new(window: Window) -> Self {
        Self {
            window,
            arrived_packets: 0,
            departed_packets: 0,
            departed_bytes: 0,
            wire_lost_packets: 0,
            dropped: [0; Reason::ALL.len()],
            marked: [0; Reason::ALL.len()],
            busy: Time::ZERO,
            waited: 0,
            delay_sum: 0,
            admitted_packets: 0,
            max_packets: 0,
            sampled: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Time, fate: Fate) {
        if !self.window.contains(now) {
            return;
        }
        self.arrived_packets += 1;
        match fate {
            Fate::Drop(reason) => self.dropped[reason.index()] += 1,
            Fate::EnqueueMarked => self.marked[Reason::Early.index()] += 1,
            Fate::Enqueue => {}
        }
    }

    /// A packet was admitted: it will leave the discipline at `leave` and occupy the wire from
    /// `begin` to `end`; `backlog` contains it.
    #[inline]
    pub(crate) fn on_admission(
        &mut self,
        now: Time,
        leave: Time,
        (begin, end): (Time, Time),
        size: u32,
        backlog: Backlog,
    ) {
        if self.window.contains(end) {
            self.departed_packets += 1;
            self.departed_bytes += u64::from(size);
        }
        self.busy += self.window.overlap(begin, end);
        self.waited += self.window.overlap(now, leave).as_nanos();
        if self.window.contains(now) {
            self.admitted_packets += 1;
            self.delay_sum += (leave - now).as_nanos();
            let waiting = backlog.packets - u32::from(leave == now);
            self.max_packets = self.max_packets.max(waiting);
        }
    }

    pub(crate) fn on_wire_loss(&mut self, end: Time) {
        self.wire_lost_packets += u64::from(self.window.contains(end));
    }

    pub(crate) fn on_sample(&mut self, backlog: Backlog) {
        let packets = backlog.packets as usize;
        if self.sampled.len() <= packets {
            self.sampled.resize(packets + 1, 0);
        }
        self.sampled[packets] += 1;
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
#[derive(Clone, Debug)]
pub(crate) struct ResponseStats {
    pub(crate) started: u64,
    pub(crate) count: u64,
    sum: f64,
    max: Time,
    /// Counts of responses that took at most 1, 2 and 3 s.
    pub(crate) within: [u64; 3],
    /// Microseconds, to 3 significant digits.
    histogram: Histogram<u64>,
}

const SIGNIFICANT_DIGITS: u8 = 3;

/// Longer response times than a day are counted as a day in percentiles.
const LONGEST_US: u64 = 24 * 3600 * 1_000_000;

impl ResponseStats {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_max(LONGEST_US, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that the crate accepts");
        Self {
            started: 0,
            count: 0,
            sum: 0.0,
            max: Time::ZERO,
            within: [0; 3],
            histogram,
        }
    }

    pub(crate) fn add(&mut self, response: Time) {
        self.count += 1;
        self.sum += response.as_secs_f64();
        self.max = self.max.max(response);
        for (limit, count) in (1..).zip(&mut self.within) {
            *count += u64::from(response <= Time::from_secs(limit));
        }
        self.histogram
            .saturating_record(response.as_nanos() / 1_000);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        for (count, more) in self.within.iter_mut().zip(other.within) {
            *count += more;
        }
        self.histogram
            .add(&other.histogram)
            .expect("both have the same bounds");
    }

    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    pub(crate) fn max_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.max.as_secs_f64())
    }

    /// The `p`-quantile in seconds, to 3 significant digits.
    pub(crate) fn quantile_s(&self, p: f64) -> Option<f64> {
        (self.count > 0).then(|| self.histogram.value_at_quantile(p) as f64 / 1e6)
    }
}

/// Connections of one class of traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowStats {
    pub(crate) count: u64,
    pub(crate) failed: u64,
    pub(crate) retransmitted_syn: u64,
    pub(crate) retransmitted_fin: u64,
    pub(crate) retransmitted_data: u64,
    pub(crate) timeouts: u64,
    /// Closed connections by what had to be sent again until the client had everything: nothing,
    /// only SYNs, only FINs, only data, or several of these.
    pub(crate) by_retransmission: [u64; 5],
    /// Application bytes that clients received in the measured span.
    pub(crate) response_bytes: u64,
    /// Sums of goodput and its square over connections, for Jain's index.
    goodput: f64,
    goodput_squared: f64,
    with_goodput: u64,
}

impl FlowStats {
    /// A connection ended in the measured span (or the span ended).
    pub(crate) fn add_goodput(&mut self, bytes: u64, span: Time) {
        if span > Time::ZERO {
            let goodput = bytes as f64 / span.as_secs_f64();
            self.goodput += goodput;
            self.goodput_squared += goodput * goodput;
            self.with_goodput += 1;
        }
    }

    /// Jain's index (sum x)^2 / (n sum x^2) over the goodput of connections.
    pub(crate) fn jain(&self) -> Option<f64> {
        (self.goodput_squared > 0.0).then(|| {
            self.goodput * self.goodput / (self.with_goodput as f64 * self.goodput_squared)
        })
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.failed += other.failed;
        self.retransmitted_syn += other.retransmitted_syn;
        self.retransmitted_fin += other.retransmitted_fin;
        self.retransmitted_data += other.retransmitted_data;
        self.timeouts += other.timeouts;
        for (count, more) in self
            .by_retransmission
            .iter_mut()
            .zip(other.by_retransmission)
        {
            *count += more;
        }
        self.response_bytes += other.response_bytes;
        self.goodput += other.goodput;
        self.goodput_squared += other.goodput_squared;
        self.with_goodput += other.with_goodput;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_counts() {
        let window = Window {
            start: Time::from_secs(10),
            end: Time::from_secs(20),
        };
        let mut stats = PortStats::new(window);
        let s = Time::from_secs;
        // Waits from 8 to 12, is sent from 12 to 13.
        stats.on_admission(
            s(8),
            s(12),
            (s(12), s(13)),
            1000,
            Backlog {
                packets: 1,
                bytes: 1000,
            },
        );
        // Waits from 19 to 25: leaves after the window.
        stats.on_admission(
            s(19),
            s(25),
            (s(25), s(26)),
            1000,
            Backlog {
                packets: 4,
                bytes: 4000,
            },
        );
        assert_eq!(stats.departed_packets, 1);
        assert_eq!(stats.busy, s(1));
        assert_eq!(stats.waited, 3_000_000_000);
        assert_eq!(stats.max_packets, 4);
        assert_eq!(stats.admitted_packets, 1);
    }

    #[test]
    fn queue_percentiles() {
        let window = Window {
            start: Time::ZERO,
            end: Time::from_secs(1),
        };
        let mut stats = PortStats::new(window);
        assert_eq!(stats.queue_percentile(0.5), None);
        for packets in [0, 0, 1, 7] {
            stats.on_sample(Backlog { packets, bytes: 0 });
        }
        assert_eq!(stats.queue_percentile(0.5), Some(0));
        assert_eq!(stats.queue_percentile(0.75), Some(1));
        assert_eq!(stats.queue_percentile(0.99), Some(7));
    }

    #[test]
    fn jain_of_equal_and_unequal_shares() {
        let mut flows = FlowStats::default();
        flows.add_goodput(100, Time::from_secs(1));
        flows.add_goodput(100, Time::from_secs(1));
        assert_eq!(flows.jain(), Some(1.0));
        flows.add_goodput(0, Time::from_secs(1));
        assert!((flows.jain().unwrap() - 2.0 / 3.0).abs() < 1e-12);
    }
}
