//! What is counted of the connections and datagram flows of a class of traffic.

use aqmlab_net::Time;

use crate::{DatagramStats, DelayHistogram, Flow, RetransmittedKinds, SenderStats, TimeHistogram};

/// How much of a run its engine can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Every event at every end point, as a simulator does.
    Everything,
    /// What operating systems report about connections that have ended.
    Sockets,
}

/// Connections of one class of traffic.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    pub(crate) count: u64,
    /// From opening to closing, of those that were not aborted.
    pub(crate) durations: TimeHistogram,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) retransmitted_syn: u64,
    pub(crate) retransmitted_fin: u64,
    pub(crate) retransmitted_data: u64,
    pub(crate) timeouts: u64,
    /// Connections with a fast retransmit.
    pub(crate) with_fast_retransmit: u64,
    /// Counts of all connections in the measured span, also of those that go on.
    pub(crate) seen: Option<Seen>,
    /// Connections that go on when the span ends.
    pub(crate) still_open: u64,
    /// What their senders had in flight at most then: the sum of their congestion windows in bytes.
    pub(crate) cwnd_at_end: u64,
    pub(crate) senders: SenderStats,
    pub(crate) datagrams: DatagramStats,
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
    /// Application bytes that servers received in it, where that is counted.
    pub(crate) request_bytes: Option<u64>,
    /// Goodput of connections, in bytes per second.
    goodput: Shares,
    /// Goodput times minimum round trip, in millionths of a byte.
    normalized: Shares,
}

/// What only an engine that sees everything can count: it does not wait for the end of a
/// connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Segments with data that a queue dropped or a wire lost.
    pub(crate) lost_segments: u64,
    /// Expiries of the retransmission timer.
    pub(crate) timeouts: u64,
}

impl Seen {
    fn plus(self, other: Self) -> Self {
        Self {
            lost_segments: self.lost_segments + other.lost_segments,
            timeouts: self.timeouts + other.timeouts,
        }
    }
}

/// A sum of squares of 256 bits. The longest round trip at the highest rate is a share of 82 bits,
/// so that its square has more than 128.
#[derive(Clone, Copy, Debug, Default)]
struct Squares {
    high: u128,
    low: u128,
}

impl Squares {
    fn add(&mut self, share: u128) {
        let (high, low) = (share >> 64, share & u128::from(u64::MAX));
        // (2^64 high + low)^2, whose middle part counts in units of 2^65.
        let both = high * low;
        self.plus(high * high + (both >> 63), low * low);
        self.plus(0, both << 65);
    }

    fn plus(&mut self, high: u128, low: u128) {
        let (sum, carries) = self.low.overflowing_add(low);
        self.low = sum;
        self.high += high + u128::from(carries);
    }

    fn as_f64(self) -> f64 {
        // 2^128.
        self.high as f64 * (u128::MAX as f64) + self.low as f64
    }
}

/// Sums from which Jain's index follows.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    sum: u128,
    squared: Squares,
    count: u64,
}

impl Shares {
    fn add(&mut self, share: u128) {
        self.sum += share;
        self.squared.add(share);
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.squared.plus(other.squared.high, other.squared.low);
        self.count += other.count;
    }

    /// Jain's index (sum x)^2 / (n sum x^2).
    fn jain(self) -> Option<f64> {
        let squared = self.squared.as_f64();
        (squared > 0.0).then(|| {
            let sum = self.sum as f64;
            sum * sum / (self.count as f64 * squared)
        })
    }
}

impl FlowStats {
    /// Nothing yet, of a class in a run of which so much can be seen.
    pub(crate) fn new(view: View) -> Self {
        Self {
            seen: (view == View::Everything).then(Seen::default),
            ..Self::default()
        }
    }

    /// A connection was not opened because its class has as many as it may.
    pub(crate) fn on_refused(&mut self) {
        self.refused += 1;
    }

    /// A segment with data was lost in the measured span.
    #[inline]
    pub(crate) fn on_lost_segment(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.lost_segments += 1;
        }
    }

    /// The retransmission timer of a connection expired so many times in the measured span.
    #[inline]
    pub(crate) fn on_timeouts(&mut self, count: u32) {
        if let Some(seen) = &mut self.seen {
            seen.timeouts += u64::from(count);
        }
    }

    /// A connection goes on when the measured span ends; its sender's congestion window, if it can
    /// be seen.
    pub(crate) fn add_still_open(&mut self, cwnd: Option<u64>) {
        self.still_open += 1;
        self.cwnd_at_end += cwnd.unwrap_or(0);
    }

    /// Mean congestion window of the connections that go on when the span ends, in bytes.
    pub(crate) fn cwnd_at_end(&self) -> Option<f64> {
        let can_be_seen = self.still_open > 0 && self.seen.is_some();
        can_be_seen.then(|| self.cwnd_at_end as f64 / self.still_open as f64)
    }

    /// A connection ended in the measured span.
    pub(crate) fn add_closed(&mut self, flow: &Flow) {
        self.count += 1;
        if flow.failed {
            self.failed += 1;
        } else {
            self.durations.add(flow.duration());
        }
        let again = flow.retransmissions;
        self.retransmitted_syn += u64::from(again.syn);
        self.retransmitted_fin += u64::from(again.fin);
        self.retransmitted_data += u64::from(again.data);
        self.timeouts += u64::from(again.timeouts);
        self.with_fast_retransmit += u64::from(flow.has_fast_retransmit);
        let RetransmittedKinds { syn, fin, data } = flow.delayed_by;
        self.by_retransmission[match (syn, fin, data) {
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

    /// A connection or datagram flow with this minimum round trip ended, or the measured span did:
    /// its client received so many bytes in that part of its life which was measured.
    pub(crate) fn add_goodput(&mut self, bytes: u64, span: Time, rtt: Time) {
        self.response_bytes += bytes;
        if span > Time::ZERO {
            let goodput = u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos());
            self.goodput.add(goodput);
            self.normalized
                .add(goodput * u128::from(rtt.as_nanos() / 1000));
        }
    }

    /// Samples of the round trips of connections, and by how much they exceed those on an idle
    /// path.
    pub const fn round_trips(&self) -> [&DelayHistogram; 2] {
        let round_trips = &self.senders.round_trips;
        [&round_trips.samples, &round_trips.increases]
    }

    /// One-way delays of datagrams, and their variation.
    pub const fn datagram_delays(&self) -> [&DelayHistogram; 2] {
        [&self.datagrams.delays, &self.datagrams.variations]
    }

    /// Application bytes that the clients of connections which have ended received in the measured
    /// span.
    pub const fn measured_bytes(&self) -> u64 {
        self.response_bytes
    }

    /// From opening to closing, of the connections that were not aborted.
    pub const fn durations(&self) -> &TimeHistogram {
        &self.durations
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
        self.still_open += other.still_open;
        self.cwnd_at_end += other.cwnd_at_end;
        self.senders.merge(&other.senders);
        self.datagrams.merge(&other.datagrams);
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
        if let Some(bytes) = other.request_bytes {
            *self.request_bytes.get_or_insert(0) += bytes;
        }
        self.goodput.merge(other.goodput);
        self.normalized.merge(other.normalized);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_tcp::Retransmissions;

    use super::*;

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

    /// Round trips as long as a run may be, at the highest rate that a link may have.
    #[test]
    fn jain_holds_the_largest_shares() {
        let (second, rtt) = (Time::from_secs(1), Time::from_secs(30 * 86_400));
        let most = 10_000_000_000_000 / 8;
        let mut flows = FlowStats::default();
        for _ in 0..100 {
            flows.add_goodput(most, second, rtt);
        }
        let near = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?}");
        };
        near(flows.jain_normalized(), 1.0);
        for _ in 0..300 {
            flows.add_goodput(0, second, rtt);
        }
        near(flows.jain(), 0.25);
        near(flows.jain_normalized(), 0.25);
        let mut both = flows.clone();
        both.merge(&flows);
        near(both.jain_normalized(), 0.25);
    }

    #[test]
    fn squares_carry_into_their_upper_half() {
        let mut squares = Squares::default();
        let share = (3 << 64) + 5;
        squares.add(share);
        assert_eq!((squares.high, squares.low), (9, (30 << 64) + 25));
        // (2^128 - 1)^2 = (2^128 - 2) 2^128 + 1.
        let mut squares = Squares::default();
        squares.add(u128::MAX);
        assert_eq!((squares.high, squares.low), (u128::MAX - 1, 1));
        // Twice (2^64 - 1)^2 = 2^128 - 2^65 + 1.
        let mut squares = Squares::default();
        for _ in 0..2 {
            squares.add(u64::MAX.into());
        }
        assert_eq!((squares.high, squares.low), (1, u128::MAX - (1 << 66) + 3));
    }

    /// A connection that took so many milliseconds, with so many of each kind sent again.
    fn closed(millis: u64, [syn, fin, data]: [u32; 3]) -> Flow {
        let retransmissions = Retransmissions {
            syn,
            fin,
            data,
            timeouts: syn + data,
        };
        Flow {
            end: Time::from_millis(millis),
            retransmissions,
            has_fast_retransmit: data > 1,
            delayed_by: retransmissions.into(),
            ..Flow::default()
        }
    }

    #[test]
    fn what_delayed_a_connection_has_one_place() {
        let mut flows = FlowStats::new(View::Everything);
        for again in [
            [0, 0, 0],
            [2, 0, 0],
            [0, 1, 0],
            [0, 0, 1],
            [1, 0, 3],
            [1, 1, 0],
        ] {
            flows.add_closed(&closed(10, again));
        }
        assert_eq!(flows.by_retransmission, [1, 1, 1, 1, 2]);
        assert_eq!((flows.retransmitted_syn, flows.retransmitted_fin), (4, 2));
        assert_eq!((flows.retransmitted_data, flows.timeouts), (4, 8));
        assert_eq!(flows.with_fast_retransmit, 1);
    }

    #[test]
    fn the_window_at_the_end_is_a_mean_where_it_can_be_seen() {
        let mut flows = FlowStats::new(View::Everything);
        assert_eq!(flows.cwnd_at_end(), None);
        flows.add_still_open(Some(3000));
        flows.add_still_open(None);
        assert_eq!(flows.cwnd_at_end(), Some(1500.0));
    }

    /// Classes are summed up one by one, and then together.
    #[test]
    fn parts_together_are_the_whole() {
        let fill = |flows: &mut FlowStats, from: u64| {
            for number in from..from + 20 {
                let again = [number % 3, number % 4, number % 5].map(|count| count as u32);
                flows.add_closed(&closed(7 * number, again));
                flows.add_datagrams(10 * number, number % 7);
                flows.add_still_open(Some(1000 * number));
                flows.add_goodput(
                    100 * number,
                    Time::from_secs(1),
                    Time::from_millis(number + 1),
                );
                flows.on_timeouts(number as u32);
                flows.on_lost_segment();
                flows.on_refused();
                flows.response_bytes += number;
            }
        };
        let [mut whole, mut first, mut second] = [(); 3].map(|()| FlowStats::new(View::Everything));
        for (flows, from) in [(&mut first, 1), (&mut second, 21)] {
            fill(flows, from);
            fill(&mut whole, from);
        }
        first.merge(&second);
        assert_eq!(format!("{first:?}"), format!("{whole:?}"));
    }
}
