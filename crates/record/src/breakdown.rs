//! Where the time of a response went: parts that add up to it, to the nanosecond.

use std::collections::BTreeMap;

use aqmlab_net::Time;

use crate::LinkDirection;
use crate::declaration::results;

/// Declares the parts that every network has: their names, and what they mean.
macro_rules! parts {
    ($($(#[doc = $meaning:literal])+ $part:ident, $name:ident, $label:literal;)+) => { pastey::paste! {
        /// A part of a response time that every network has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Part {
            $($(#[doc = $meaning])+ $part,)+
        }

        impl Part {
            /// All of them, in the order of the columns.
            pub const ALL: [Self; [$(Self::$part),+].len()] = [$(Self::$part),+];

            /// The name of its column in `breakdown.parquet`.
            pub const fn column(self) -> &'static str {
                match self {
                    $(Self::$part => concat!(stringify!($name), "_ns"),)+
                }
            }

            /// What it is.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$part => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }

        results! {
            /// Where the mean response time of a class went: of all responses (`all`), and of the
            /// slowest 50, 10 and 1 % (`slowest_50`, `slowest_10`, `slowest_1`). The critical path
            /// of a response leads from its request to its last byte. Each segment on this path was
            /// sent because of the event before it. The parts are the waits on the path, and add up
            /// to the response time exactly.
            pub struct PartsSummary {
                /// Responses in the band.
                count: u64 = "responses", NUMBER;
                /// Mean response time of the band.
                response_s: f64 = "response time", MILLISECONDS;
                $(
                    $(#[doc = $meaning])+
                    [<$name _s>]: f64 = $label, MILLISECONDS;
                )+
                /// Mean number of one-way trips on the path after the handshake.
                trips: f64 = "trips", NUMBER;
                /// Share of responses with a lost segment on their path.
                lost_share: f64 = "with a loss on the path", SHARE;
                /// Results for each link and direction.
                links: BTreeMap<String, BTreeMap<String, LinkPartsSummary>> = "by link", NUMBER;
            }

            /// Mean time that the path of a class's responses spends at one direction of a link.
            pub struct LinkPartsSummary {
                /// Waiting time in the discipline.
                wait_s: f64 = "wait", MILLISECONDS;
                /// Waiting time in the device ring.
                ring_s: f64 = "wait in the device ring", MILLISECONDS;
                /// Transmission time on the wire, framing included, or processing time in a router.
                transmission_s: f64 = "transmission", MILLISECONDS;
                /// Share of responses with the longest loss repair caused by a drop here, by
                /// reason. `wire`: lost at random.
                lost_share: BTreeMap<String, f64> = "losses here on the path", SHARE;
            }
        }

        impl PartsSummary {
            /// `mean` gives the mean of a part in seconds.
            fn of(
                (count, response_s): (u64, f64),
                mean: impl Fn(usize) -> f64,
                (trips, lost_share): (f64, f64),
                links: BTreeMap<String, BTreeMap<String, LinkPartsSummary>>,
            ) -> Self {
                let values = PartsSummaryValues {
                    count,
                    response_s,
                    $([<$name _s>]: mean(Part::$part as usize),)+
                    trips,
                    lost_share,
                    links,
                };
                values.into()
            }
        }
    }};
}

parts! {
    /// Propagation of SYN and SYN-ACK, or of the QUIC handshake.
    PropagationHandshake, propagation_handshake, "handshake";
    /// Propagation of the request and of its first answer. No window can avoid it.
    PropagationExchange, propagation_exchange, "request and answer";
    /// Propagation of trips that waited for the congestion window in slow start.
    PropagationSlowStart, propagation_slow_start, "slow start";
    /// Propagation of trips that waited for the congestion window in congestion avoidance.
    PropagationCongestionAvoidance, propagation_congestion_avoidance, "congestion avoidance";
    /// Propagation of trips that waited for the peer's receive buffer or the send buffer.
    PropagationReceiveWindow, propagation_receive_window, "receive window";
    /// Propagation of trips that waited while the sender repaired losses.
    PropagationRecovery, propagation_recovery, "trips in recovery";
    /// Transmission on the hosts' own links, framing included.
    TransmissionHosts, transmission_hosts, "hosts' links";
    /// Waiting time at the hosts' own links, also for packets of the same connection.
    WaitHosts, wait_hosts, "wait at hosts";
    /// Waiting for the retransmission timer of a SYN or SYN-ACK.
    SynTimeout, syn_timeout, "SYN time-out";
    /// Waiting for the retransmission timer of data or a FIN.
    Timeout, timeout, "time-out";
    /// Waiting for the timer of a tail loss probe.
    TailLossProbe, tail_loss_probe, "tail loss probe";
    /// Waiting for the probe time-out (PTO) of a packet of the QUIC handshake.
    HandshakeProbeTimeout, handshake_probe_timeout, "handshake PTO";
    /// Waiting for the probe time-out (PTO) of any other QUIC packet.
    ProbeTimeout, probe_timeout, "PTO";
    /// Waiting for RACK's reordering timer, or QUIC's time threshold.
    ReorderingTimer, reordering_timer, "reordering timer";
    /// Time from the first transmission of a lost segment to the last start of the timer that
    /// detected the loss.
    RecoveryBeforeTimer, recovery_before_timer, "before the timer";
    /// Time from the expiry of that timer until the retransmission.
    RecoveryBehindTimer, recovery_behind_timer, "behind the timer";
    /// Time from the first transmission to a retransmission that duplicate or selective ACKs
    /// triggered.
    RecoveryFast, recovery_fast, "fast recovery";
    /// Waiting for the timer of a delayed ACK.
    DelayedAck, delayed_ack, "delayed ACK";
    /// Waiting time through pacing.
    Pacing, pacing, "pacing";
    /// Pauses of the applications: think times of the server, and of the client between two parts.
    Application, application, "application";
    /// Delay on a wire beyond its propagation: reordering, or order kept after the delay fell.
    HoldUp, hold_up, "hold-up on the wire";
    /// Waiting for another timer, for example with a window of one segment that ECN stopped.
    OtherTimer, other_timer, "other timer";
    /// Waiting for data of an earlier exchange on the same connection.
    CarriedOver, carried_over, "carried over";
}

/// Parts at each port, behind the others: wait, device ring, transmission.
pub const PARTS_OF_PORT: usize = 3;

/// Declares the counts.
macro_rules! counts {
    ($($(#[doc = $meaning:literal])+ $count:ident, $name:ident;)+) => {
        /// Something that is counted on the path of a response.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PathCount {
            $($(#[doc = $meaning])+ $count,)+
        }

        impl PathCount {
            /// All of them, in the order of the columns.
            pub const ALL: [Self; [$(Self::$count),+].len()] = [$(Self::$count),+];

            /// The name of its column in `breakdown.parquet`.
            pub const fn column(self) -> &'static str {
                match self {
                    $(Self::$count => stringify!($name),)+
                }
            }

            /// What it is.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$count => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }
    };
}

counts! {
    /// One-way trips of SYN and SYN-ACK, or of the QUIC handshake.
    TripsHandshake, trips_handshake;
    /// Trips of the request and of its first answer.
    TripsExchange, trips_exchange;
    /// Trips that waited for the congestion window in slow start.
    TripsSlowStart, trips_slow_start;
    /// Trips that waited for the congestion window in congestion avoidance.
    TripsCongestionAvoidance, trips_congestion_avoidance;
    /// Trips that waited for the peer's receive buffer or the send buffer.
    TripsReceiveWindow, trips_receive_window;
    /// Trips that waited while the sender repaired losses.
    TripsRecovery, trips_recovery;
    /// Expiries of the timers of SYN and SYN-ACK.
    SynTimeouts, syn_timeouts;
    /// Expiries of the retransmission timers of data and FIN.
    Timeouts, timeouts;
    /// Tail loss probes.
    TailLossProbes, tail_loss_probes;
    /// Probe time-outs of the QUIC handshake.
    HandshakeProbeTimeouts, handshake_probe_timeouts;
    /// Other probe time-outs of QUIC.
    ProbeTimeouts, probe_timeouts;
    /// Delayed ACKs that waited for their timer.
    DelayedAcks, delayed_acks;
    /// Segments retransmitted because the first copy was dropped.
    Losses, losses;
    /// Segments retransmitted although the first copy had arrived.
    FirstCopiesArrived, first_copies_arrived;
}

/// What a port is called, and whether it has a device ring apart from its discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortParts {
    /// The link and the direction.
    pub name: LinkDirection,
    /// Whether there is a device ring whose packets the discipline does not count.
    pub has_ring: bool,
    /// The names of the parts of its discipline, by their numbers.
    pub holders: Vec<String>,
}

/// The path of a response: where its time went.
#[derive(Clone, Copy, Debug)]
pub struct Breakdown<'a> {
    /// Nanoseconds of each [`Part`], then [`PARTS_OF_PORT`] of each port. They add up to the response
    /// time.
    pub parts: &'a [u64],
    /// Of each [`PathCount`].
    pub counts: &'a [u64],
    /// The loss that cost most on the path.
    pub loss: Option<LossOnPath>,
}

/// A loss on the path of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossOnPath {
    /// From the first transmission until it was sent again.
    pub time: Time,
    /// What was lost.
    pub segment: LostSegment,
    /// The port where it was dropped; none: on the way of a connection that loses packets itself.
    pub port: Option<u16>,
    /// Why: the discipline's reason, or [`ON_WIRE`].
    pub reason: &'static str,
}

/// The reason of what was lost at random on the wire.
pub const ON_WIRE: &str = "wire";

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostSegment {
    /// A SYN or SYN-ACK.
    Syn,
    /// Data.
    Data,
    /// A FIN without data.
    Fin,
    /// A packet of QUIC's handshake.
    Handshake,
    /// A limit of QUIC's flow control.
    Limit,
}

impl LostSegment {
    /// What it is called in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syn => "syn",
            Self::Data => "data",
            Self::Fin => "fin",
            Self::Handshake => "handshake",
            Self::Limit => "limit",
        }
    }
}

/// The bands of the summary, and the share of the responses that each has.
const BANDS: [(&str, f64); 4] = [
    ("all", 1.0),
    ("slowest_50", 0.5),
    ("slowest_10", 0.1),
    ("slowest_1", 0.01),
];

/// Sums of what responses of about the same length have in common.
#[derive(Clone, Debug)]
struct Bin {
    count: u64,
    /// Nanoseconds, here and in the parts: those of many responses may be more than 64 bits hold.
    response: u128,
    parts: Vec<u128>,
    trips: u64,
    lost: u64,
    /// By port and reason.
    lost_at: BTreeMap<(u16, &'static str), u64>,
}

/// Breakdowns of a class of traffic, summed in bins of the response time at most 1/128 wide.
#[derive(Clone, Debug, Default)]
pub(crate) struct BreakdownStats {
    bins: BTreeMap<u64, Bin>,
}

impl BreakdownStats {
    pub(crate) fn add(&mut self, response: Time, breakdown: &Breakdown<'_>) {
        let nanos = response.as_nanos();
        let shift = 56_u32.saturating_sub(nanos.leading_zeros());
        let bin = self.bins.entry(nanos >> shift << shift);
        let bin = bin.or_insert_with(|| Bin {
            count: 0,
            response: 0,
            parts: vec![0; breakdown.parts.len()],
            trips: 0,
            lost: 0,
            lost_at: BTreeMap::new(),
        });
        bin.count += 1;
        bin.response += u128::from(nanos);
        for (sum, part) in bin.parts.iter_mut().zip(breakdown.parts) {
            *sum += u128::from(*part);
        }
        let behind_handshake =
            PathCount::TripsExchange as usize..=PathCount::TripsRecovery as usize;
        bin.trips += breakdown.counts[behind_handshake].iter().sum::<u64>();
        if let Some(loss) = &breakdown.loss {
            bin.lost += 1;
            if let Some(port) = loss.port {
                *bin.lost_at.entry((port, loss.reason)).or_default() += 1;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (&edge, more) in &other.bins {
            let Some(bin) = self.bins.get_mut(&edge) else {
                self.bins.insert(edge, more.clone());
                continue;
            };
            bin.count += more.count;
            bin.response += more.response;
            for (sum, part) in bin.parts.iter_mut().zip(&more.parts) {
                *sum += part;
            }
            bin.trips += more.trips;
            bin.lost += more.lost;
            for (&place, count) in &more.lost_at {
                *bin.lost_at.entry(place).or_default() += count;
            }
        }
    }

    /// The bands; none if there were no responses.
    pub(crate) fn bands(&self, ports: &[PortParts]) -> BTreeMap<String, PartsSummary> {
        let count: u64 = self.bins.values().map(|bin| bin.count).sum();
        let bands = BANDS.iter().filter(|_| count > 0);
        let bands = bands.map(|&(name, share)| {
            let wanted = (share * count as f64).ceil() as u64;
            (name.to_owned(), self.slowest(wanted.min(count), ports))
        });
        bands.collect()
    }

    /// Of so many of the slowest responses; a bin of which only some are wanted counts in part.
    fn slowest(&self, wanted: u64, ports: &[PortParts]) -> PartsSummary {
        let mut sums = vec![0.0; Part::ALL.len() + PARTS_OF_PORT * ports.len()];
        let (mut response, mut trips, mut lost) = (0.0, 0.0, 0.0);
        let mut lost_at = BTreeMap::<(u16, &'static str), f64>::new();
        let mut left = wanted;
        for bin in self.bins.values().rev() {
            let taken = left.min(bin.count);
            left -= taken;
            let weight = taken as f64 / bin.count as f64;
            for (sum, part) in sums.iter_mut().zip(&bin.parts) {
                *sum += weight * *part as f64;
            }
            response += weight * bin.response as f64;
            trips += weight * bin.trips as f64;
            lost += weight * bin.lost as f64;
            for (&place, count) in &bin.lost_at {
                *lost_at.entry(place).or_default() += weight * *count as f64;
            }
            if left == 0 {
                break;
            }
        }
        let each = |sum: f64| sum / wanted as f64;
        let mean = |part: usize| each(sums[part]) / 1e9;
        let mut links = BTreeMap::<String, BTreeMap<_, _>>::new();
        for (number, port) in (0_u16..).zip(ports) {
            let first = Part::ALL.len() + PARTS_OF_PORT * usize::from(number);
            let here = lost_at.iter().filter(|((port, _), _)| *port == number);
            let here = here.map(|((_, reason), lost)| ((*reason).to_owned(), each(*lost)));
            let values = LinkPartsSummaryValues {
                wait_s: mean(first),
                ring_s: mean(first + 1),
                transmission_s: mean(first + 2),
                lost_share: here.collect(),
            };
            let link = links.entry(port.name.link.clone()).or_default();
            link.insert(port.name.direction.to_owned(), values.into());
        }
        PartsSummary::of(
            (wanted, each(response) / 1e9),
            mean,
            (each(trips), each(lost)),
            links,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stats: &mut BreakdownStats, millis: u64, application: u64, loss: Option<LossOnPath>) {
        let mut parts = vec![0; Part::ALL.len() + PARTS_OF_PORT];
        parts[Part::Application as usize] = application * 1_000_000;
        parts[Part::ALL.len()] = (millis - application) * 1_000_000;
        let mut counts = vec![0; PathCount::ALL.len()];
        counts[PathCount::TripsHandshake as usize] = 2;
        counts[PathCount::TripsSlowStart as usize] = 4;
        let breakdown = Breakdown {
            parts: &parts,
            counts: &counts,
            loss,
        };
        stats.add(Time::from_millis(millis), &breakdown);
    }

    #[test]
    fn bands_are_means_of_the_slowest() {
        let mut stats = BreakdownStats::default();
        let ports = [PortParts {
            name: LinkDirection {
                link: "bottleneck".to_owned(),
                direction: "forward",
            },
            has_ring: false,
            holders: Vec::new(),
        }];
        assert!(stats.bands(&ports).is_empty());
        for millis in 1..=9 {
            row(&mut stats, 10 * millis, 5, None);
        }
        let loss = LossOnPath {
            time: Time::from_millis(1000),
            segment: LostSegment::Syn,
            port: Some(0),
            reason: "early",
        };
        row(&mut stats, 2000, 100, Some(loss));
        let bands = stats.bands(&ports);
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12);
        let all = &bands["all"];
        assert_eq!(all.count, 10);
        close(all.response_s, 0.245);
        close(all.application_s, 0.0145);
        close(all.trips, 4.0);
        close(all.lost_share, 0.1);
        let slowest = &bands["slowest_10"];
        assert_eq!((slowest.count, bands["slowest_1"].count), (1, 1));
        close(slowest.response_s, 2.0);
        close(slowest.links["bottleneck"]["forward"].wait_s, 1.9);
        close(
            slowest.links["bottleneck"]["forward"].lost_share["early"],
            1.0,
        );
        // 2000, 90, 80, 70 and 60 ms.
        close(bands["slowest_50"].response_s, 0.46);
        // Merged, all counts are twice what they were.
        let mut both = stats.clone();
        both.merge(&stats);
        assert_eq!(both.bands(&ports)["all"].count, 20);
        close(both.bands(&ports)["slowest_10"].response_s, 2.0);
    }

    /// Ten thousand responses that last 30 days, as long as a run may be.
    #[test]
    fn sums_hold_the_longest_runs() {
        let mut stats = BreakdownStats::default();
        let days = 30 * 24 * 3_600_000;
        for _ in 0..10_000 {
            row(&mut stats, days, days - 1, None);
        }
        let mut both = stats.clone();
        both.merge(&stats);
        for (stats, count) in [(stats, 10_000), (both, 20_000)] {
            let all = &stats.bands(&[])["all"];
            let seconds = days as f64 / 1e3;
            assert_eq!((all.count, all.response_s), (count, seconds));
            assert!((all.application_s - (seconds - 0.001)).abs() < 1e-6);
        }
    }

    #[test]
    fn a_bin_of_which_some_are_wanted_counts_in_part() {
        let mut stats = BreakdownStats::default();
        for _ in 0..3 {
            row(&mut stats, 100, 30, None);
        }
        let bands = stats.bands(&[]);
        assert_eq!(bands["slowest_50"].count, 2);
        assert!((bands["slowest_50"].application_s - 0.03).abs() < 1e-12);
    }
}
