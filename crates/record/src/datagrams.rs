//! What is counted of datagrams: how long they take, how evenly they come, and which are lost in a
//! row.

use std::collections::VecDeque;

use aqmlab_net::Time;

use crate::{DelayHistogram, MeasuredSpan};

/// What the datagrams of a class of traffic met in the measured span, on all of its flows.
#[derive(Clone, Debug, Default)]
pub struct DatagramStats {
    /// From the source to the receiver, of datagrams that arrived in the span.
    pub(crate) delays: DelayHistogram,
    /// How much later or earlier than the datagram sent before it each of them came, against the
    /// time between their sending: the amount of the inter-packet delay variation (RFC 5481,
    /// section 4.1). Nothing where one of the two was lost.
    pub(crate) variations: DelayHistogram,
    /// Interarrival jitter at the arrivals in the span, in sixteenths of a nanosecond.
    jitter: u128,
    /// Longest time between two arrivals on a flow, as far as it lies in the span.
    longest_gap: Option<Time>,
    /// Most datagrams lost one after another on a flow.
    longest_loss: u64,
}

impl DatagramStats {
    /// Mean over the datagrams that arrived of the interarrival jitter of their flow, in seconds.
    pub(crate) fn jitter_mean_s(&self) -> Option<f64> {
        let arrived = self.delays.count();
        (arrived > 0).then(|| self.jitter as f64 / 16.0 / arrived as f64 / 1e9)
    }

    /// The longest time between two arrivals on a flow in seconds.
    pub(crate) fn longest_gap_s(&self) -> Option<f64> {
        self.longest_gap.map(Time::as_secs_f64)
    }

    /// Most datagrams lost one after another on a flow.
    pub(crate) const fn longest_loss(&self) -> u64 {
        self.longest_loss
    }

    /// Adds those of another class.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.delays.merge(&other.delays);
        self.variations.merge(&other.variations);
        self.jitter += other.jitter;
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.longest_loss = self.longest_loss.max(other.longest_loss);
    }
}

/// Follows the datagrams of one flow. It keeps those on their way, and no others.
#[derive(Clone, Debug, Default)]
pub struct DatagramFlow {
    /// Datagrams that were sent in the measured span.
    sent: u64,
    /// Datagrams that were lost in it.
    lost: u64,
    /// The oldest on their way and all that were sent after it, in the order of sending.
    on_way: VecDeque<Datagram>,
    /// Number of the first of these.
    first: u32,
    /// Delay of the datagram before the first of these, if it arrived.
    before: Option<Time>,
    /// When the last one arrived, and its delay.
    last: Option<(Time, Time)>,
    /// Interarrival jitter (RFC 3550, section 6.4.1) in sixteenths of a nanosecond.
    jitter: u64,
    /// Datagrams that were lost one after another, up to the first of `on_way`.
    lost_in_row: u64,
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    sent: Time,
    outcome: Option<Outcome>,
}

/// What became of a datagram, in the measured span or not.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Arrived { delay: Time, measured: bool },
    Lost { measured: bool },
}

impl DatagramFlow {
    /// A datagram is sent now: its number, for which it is known later.
    pub fn on_sent(&mut self, now: Time, span: MeasuredSpan) -> u32 {
        self.sent += u64::from(span.contains(now));
        let number = self.first.wrapping_add(self.on_way.len() as u32);
        self.on_way.push_back(Datagram {
            sent: now,
            outcome: None,
        });
        number
    }

    /// A datagram arrives now: its delay. `hidden` is what that is longer than it seems.
    pub fn on_received(
        &mut self,
        number: u32,
        (now, hidden): (Time, Time),
        span: MeasuredSpan,
        stats: &mut DatagramStats,
    ) -> Time {
        let measured = span.contains(now);
        let delay = now.saturating_sub(self.datagram(number).sent) + hidden;
        if let Some((arrived, earlier)) = self.last.replace((now, delay)) {
            // Appendix A.8: J += (|D| - J) / 16, rounded. The difference of the times between
            // arrivals and between sendings is that of the delays.
            let difference = delay.max(earlier) - delay.min(earlier);
            self.jitter = self.jitter + difference.as_nanos() - ((self.jitter + 8) >> 4);
            if measured {
                let gap = span.overlap(arrived, now);
                stats.longest_gap = stats.longest_gap.max(Some(gap));
            }
        }
        if measured {
            stats.delays.add(delay);
            stats.jitter += u128::from(self.jitter);
        }
        self.settle(number, Outcome::Arrived { delay, measured }, stats);
        delay
    }

    /// A datagram is lost at this time.
    pub fn on_lost(
        &mut self,
        number: u32,
        time: Time,
        span: MeasuredSpan,
        stats: &mut DatagramStats,
    ) {
        let measured = span.contains(time);
        self.lost += u64::from(measured);
        self.settle(number, Outcome::Lost { measured }, stats);
    }

    fn datagram(&mut self, number: u32) -> &mut Datagram {
        &mut self.on_way[number.wrapping_sub(self.first) as usize]
    }

    /// What becomes of a datagram is known. What matters in the order of sending is counted as far
    /// as it is known of all before.
    fn settle(&mut self, number: u32, outcome: Outcome, stats: &mut DatagramStats) {
        self.datagram(number).outcome = Some(outcome);
        while let Some(Datagram {
            outcome: Some(outcome),
            ..
        }) = self.on_way.front()
        {
            let outcome = *outcome;
            self.on_way.pop_front();
            self.first = self.first.wrapping_add(1);
            self.count_in_order(outcome, stats);
        }
    }

    fn count_in_order(&mut self, outcome: Outcome, stats: &mut DatagramStats) {
        match outcome {
            Outcome::Arrived { delay, measured } => {
                self.lost_in_row = 0;
                if let (true, Some(before)) = (measured, self.before) {
                    stats.variations.add(delay.max(before) - delay.min(before));
                }
                self.before = Some(delay);
            }
            Outcome::Lost { measured } => {
                self.lost_in_row += u64::from(measured);
                stats.longest_loss = stats.longest_loss.max(self.lost_in_row);
                self.before = None;
            }
        }
    }

    /// The run ends: what is on its way never arrives. Gives how many were sent and lost in the
    /// measured span.
    pub fn close(&mut self, stats: &mut DatagramStats) -> (u64, u64) {
        for datagram in std::mem::take(&mut self.on_way) {
            match datagram.outcome {
                Some(outcome) => self.count_in_order(outcome, stats),
                None => (self.lost_in_row, self.before) = (0, None),
            }
        }
        (self.sent, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    fn span() -> MeasuredSpan {
        MeasuredSpan {
            start: Time::ZERO,
            end: Time::from_secs(100),
        }
    }

    /// Datagrams sent every 20 ms, from 0 on, with these delays in milliseconds; none: lost. What
    /// happens at the same moment happens in the order of sending.
    fn flow(span: MeasuredSpan, delays: &[Option<u64>]) -> (DatagramFlow, DatagramStats) {
        let (mut flow, mut stats) = (DatagramFlow::default(), DatagramStats::default());
        let mut arrivals = Vec::new();
        for (n, delay) in delays.iter().enumerate() {
            let sent = MS(20 * n as u64);
            arrivals.push((sent, 0, n as u32, None));
            match delay {
                Some(delay) => arrivals.push((sent + MS(*delay), 1, n as u32, Some(true))),
                None => arrivals.push((sent + MS(1), 1, n as u32, Some(false))),
            }
        }
        arrivals.sort();
        for (time, _, number, arrived) in arrivals {
            match arrived {
                None => assert_eq!(flow.on_sent(time, span), number),
                Some(true) => {
                    flow.on_received(number, (time, Time::ZERO), span, &mut stats);
                }
                Some(false) => flow.on_lost(number, time, span, &mut stats),
            }
        }
        (flow, stats)
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 2e-9)
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        // Differences of transit times of 5, 10, 5 and 0 ms: J is 0, then 5/16 ms, then
        // J + (10 - J) / 16, ...
        let (_, stats) = flow(span(), &[10, 15, 5, 10, 10].map(Some));
        let mut jitter = 0.0;
        let mut sum = 0.0;
        for difference in [0.0, 5e-3, 10e-3, 5e-3, 0.0] {
            jitter += (difference - jitter) / 16.0;
            sum += jitter;
        }
        assert!(near(stats.jitter_mean_s(), sum / 5.0), "{stats:?}");
        // An even stream has none.
        let (_, stats) = flow(span(), &[Some(10); 50]);
        assert_eq!(stats.jitter_mean_s(), Some(0.0));
        assert_eq!(stats.variations.max_s(), Some(0.0));
    }

    #[test]
    fn delays_and_their_variation_are_those_of_the_datagrams() {
        let (_, stats) = flow(span(), &[10, 15, 5, 10, 10].map(Some));
        assert_eq!(
            (stats.delays.count(), stats.delays.max_s()),
            (5, Some(0.015))
        );
        assert!(near(stats.delays.mean_s(), 0.010));
        // 5, 10, 5, 0.
        assert_eq!(stats.variations.count(), 4);
        assert!(near(stats.variations.mean_s(), 0.005));
        assert_eq!(stats.variations.max_s(), Some(0.010));
        // Arrivals at 10, 35, 45, 70, 90 ms.
        assert!(near(stats.longest_gap_s(), 0.025));
    }

    #[test]
    fn variation_goes_by_the_order_of_sending_and_jitter_by_that_of_arrival() {
        // The second, at 70 ms, arrives behind the third, at 45 ms, and the fourth, at 65 ms.
        let (_, stats) = flow(span(), &[5, 50, 5, 5].map(Some));
        // 45, 45, 0 in the order of sending.
        assert_eq!(stats.variations.count(), 3);
        assert!(near(stats.variations.mean_s(), 0.030));
        // 0, 0, 45 in the order of arrival: J is 0, 0, 0, 45/16.
        assert!(near(stats.jitter_mean_s(), 0.045 / 16.0 / 4.0));
        assert!(near(stats.longest_gap_s(), 0.040));
    }

    #[test]
    fn losses_in_a_row_are_counted_in_the_order_of_sending() {
        let (some, lost) = (Some(10), None);
        let delays = [some, lost, lost, Some(50), lost, lost, lost, some, some];
        let (mut flow, mut stats) = flow(span(), &delays);
        assert_eq!(stats.longest_loss(), 3);
        // Only of the last two both are known.
        assert_eq!(stats.variations.count(), 1);
        assert_eq!(flow.close(&mut stats), (9, 5));
        assert!(flow.on_way.is_empty());
    }

    #[test]
    fn only_the_measured_span_counts() {
        let span = MeasuredSpan {
            start: MS(100),
            end: MS(200),
        };
        // Arrivals at 10, 30, ..., 190, 210, 230; the gap before 110 begins with the span.
        let (mut flow, mut stats) = flow(span, &[Some(10); 12]);
        assert_eq!(stats.delays.count(), 5);
        assert_eq!(stats.variations.count(), 5);
        assert!(near(stats.longest_gap_s(), 0.020));
        assert_eq!(flow.close(&mut stats), (5, 0));
    }

    #[test]
    fn a_gap_counts_as_far_as_it_lies_in_the_span() {
        let span = MeasuredSpan {
            start: MS(100),
            end: MS(200),
        };
        // Arrivals at 10, 140, 160, 180, 201 ms: the warm-up has 90 ms of the longest gap.
        let delays = [10, 120, 120, 120, 121].map(Some);
        let (_, stats) = flow(span, &delays);
        assert!(near(stats.longest_gap_s(), 0.040), "{stats:?}");
        // One that begins with the span is measured whole, one before it is not.
        let (_, stats) = flow(span, &[10, 80, 120].map(Some));
        assert!(near(stats.longest_gap_s(), 0.060), "{stats:?}");
        let (_, stats) = flow(span, &[10, 70].map(Some));
        assert_eq!(stats.longest_gap_s(), None);
    }

    #[test]
    fn a_flow_keeps_only_what_is_on_its_way() {
        let (mut flow, mut stats) = (DatagramFlow::default(), DatagramStats::default());
        for n in 0..100_000 {
            let now = MS(n);
            let number = flow.on_sent(now, span());
            if let Some(number) = number.checked_sub(3) {
                flow.on_received(number, (now, Time::ZERO), span(), &mut stats);
            }
        }
        assert_eq!(flow.on_way.len(), 3);
        assert!(flow.on_way.capacity() < 100);
        // What is on its way at the end is neither there nor lost.
        assert_eq!(flow.close(&mut stats).1, 0);
        assert_eq!(stats.delays.count(), 99_997);
    }
}
