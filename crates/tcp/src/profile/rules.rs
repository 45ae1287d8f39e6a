//! The rules in which stacks differ: the words that a profile's keys take.

use aqmlab_declare::JsonSchema;
use aqmlab_net::Time;
use serde::{Deserialize, Serialize};

/// How losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Fast retransmit, then slow start.
    Tahoe,
    /// Fast retransmit and fast recovery. The first new ACK ends recovery (RFC 2581).
    Reno,
    /// Fast recovery until all data outstanding at its start is acknowledged (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 2018) with the rules of RFC 6675. NewReno if the peer sends
    /// no SACK.
    Sack,
    /// Selective acknowledgements with the older rule of ns's Sack1: the sender repeats every hole
    /// once, as far as the estimated data in flight allows.
    SackPipe,
    /// RACK (RFC 8985): a segment is lost when a later one has arrived and a reordering window has
    /// passed. Without the peer's SACK three duplicate ACKs count.
    RackTlp,
}

/// Duplicate ACKs that do not trigger a fast retransmit. ACKs for data that was outstanding at the
/// last congestion can come from segments sent twice (RFC 6582, section 3.2, step 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FastRetransmitGuard {
    /// None. Every third duplicate ACK triggers a fast retransmit (RFC 5681; BSD Reno).
    Off,
    /// ACKs for data that was outstanding at a time-out, but not at a fast retransmit (ns 2.1b8
    /// Reno).
    AfterTimeout,
    /// ACKs for data that was outstanding at a time-out or a fast retransmit (RFC 6582).
    Always,
}

/// Initial value of `recover`, the sequence number up to which duplicate ACKs do not trigger a fast
/// retransmit ([`FastRetransmitGuard`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialRecover {
    /// The initial sequence number (RFC 6582, section 3.2, step 0).
    InitialSequenceNumber,
    /// Zero: half of all connections make no fast retransmit before a time-out (plain FreeBSD 4.5).
    Zero,
}

aqmlab_declare::tagged! {
    /// What slow start adds to the window for each ACK.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SlowStart {
        /// One segment, whatever the ACK covers (BSD).
        PerAck,
        /// The acknowledged bytes, up to a limit (RFC 5681, equation 2; RFC 3465).
        ByteCounting {
            /// Maximum number of segments per ACK (L of RFC 3465).
            #[serde(default = "one")]
            limit: u32,
        },
    }
}

const fn one() -> u32 {
    1
}

/// Which phase applies when the window equals ssthresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtSsthresh {
    /// Slow start: the window grows exponentially (BSD).
    SlowStart,
    /// Congestion avoidance: the window grows linearly.
    CongestionAvoidance,
}

/// Growth of the window per ACK in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionAvoidance {
    /// mss x mss / window (RFC 5681, equation 3): one segment per round trip, half a segment with
    /// delayed ACKs.
    PerAck,
    /// By the acknowledged bytes: one segment per window of data (RFC 3465, section 2.1; Linux).
    ByteCounting,
}

/// Rounding of the window increments in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CwndArithmetic {
    /// Rounded to whole bytes, at least one (BSD; RFC 5681, section 3.1).
    Integer,
    /// Not rounded (ns).
    Real,
    /// Not rounded. The sender sends only whole segments (ns's two-way TCP).
    WholeSegments,
}

/// When the window can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowGrowth {
    /// At every ACK for new data.
    Always,
    /// Only if the acknowledged flight filled the window, in slow start half of it (RFC 7661,
    /// section 4; Linux).
    CwndLimited,
    /// Not beyond 65,535 bytes, nor at in-order ACKs while the window exceeds the peer's (BSD).
    HeaderPrediction,
}

/// When a new connection adopts the path metrics that its host learnt on earlier connections to the
/// peer: smoothed round trip, its variance, ssthresh. BSD keeps them with the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PeerCache {
    /// Never.
    Off,
    /// When the peer's SYN or SYN-ACK arrives (FreeBSD 2.2.8).
    AtSyn,
    /// The client at the SYN-ACK, the server at the end of the handshake (FreeBSD 4.5).
    WhenComplete,
}

/// Whether a time-out discards the peer's SACK information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SackAtTimeout {
    /// The time-out discards the information (RFC 2018, section 8).
    Forget,
    /// The sender keeps it and sends only missing data again (Linux).
    Keep,
}

/// How SACK recovery reduces the data in flight to ssthresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateReduction {
    /// At once: the sender pauses until enough data has arrived (RFC 6675).
    AtOnce,
    /// Over one round trip (proportional rate reduction, RFC 9937, formerly RFC 6937).
    Proportional,
}

/// Which partial ACKs restart the retransmission timer (RFC 6582, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoVariant {
    /// Every partial ACK.
    SlowButSteady,
    /// Only the first partial ACK.
    Impatient,
}

/// Window after the ACK that ends NewReno's recovery (RFC 6582, section 3.2, step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoExit {
    /// ssthresh.
    Ssthresh,
    /// One segment more than the data in flight, at most ssthresh: no burst.
    FlightSize,
}

/// Base of the multiplicative decrease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecreaseBase {
    /// The data in flight (RFC 5681, equation 4).
    FlightSize,
    /// The smaller of congestion window and peer's window, in whole segments (BSD).
    Cwnd,
    /// As `cwnd`, but the window keeps its fraction (ns).
    FractionalCwnd,
}

/// Whether further time-outs of a segment reduce ssthresh again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedTimeout {
    /// No (RFC 5681, section 3.1).
    Held,
    /// Yes.
    Reduced,
}

/// Packets that the sender sends as ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EctOn {
    /// Data that is sent for the first time (RFC 3168, section 6.1.5).
    NewData,
    /// All data, retransmissions included (ns).
    AllData,
    /// Every packet after the client's SYN: also SYN-ACK, ACKs and FIN (ns's two-way TCP of 2001).
    AllButSyn,
    /// With Accurate ECN every packet after the handshake, otherwise new data (Linux).
    AllButHandshake,
    /// Every packet, SYNs and ACKs included (Linux, if the congestion control needs ECN).
    AllPackets,
}

impl EctOn {
    /// Whether SYN-ACKs are sent as ECN-capable.
    #[inline]
    pub(crate) const fn covers_handshake(self) -> bool {
        matches!(self, Self::AllButSyn | Self::AllPackets)
    }

    /// Whether ACKs and FINs are, where the ends have agreed on accurate feedback, or on none.
    #[inline]
    pub(crate) const fn covers_control(self, accurate: bool) -> bool {
        self.covers_handshake() || (accurate && matches!(self, Self::AllButHandshake))
    }

    /// Whether retransmissions are.
    #[inline]
    pub(crate) const fn covers_retransmissions(self, accurate: bool) -> bool {
        matches!(self, Self::AllData) || self.covers_control(accurate)
    }
}

/// How the sender reacts to an ECN echo: at most once per window of data and as to a loss, except
/// for small windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnReaction {
    /// ssthresh is at least two segments. At a window of one the sender waits for the restarted
    /// timer (RFC 3168, section 6.1.2).
    Rfc3168,
    /// As `rfc3168`, but a window of one stays and the sender reports a reduction (ns's one-way
    /// TCP, Linux).
    NoWait,
    /// The window can fall below one segment. Nothing new leaves until an ACK without an echo grows
    /// it, or the restarted timer sets the initial window. The first echo after a time-out counts
    /// (two-way TCP of ns-2.35).
    Fractional,
    /// ssthresh is at least one segment. Below two the sender ignores echoes, and ACKs with an echo
    /// can grow the window (KAME).
    Kame,
}

impl EcnReaction {
    /// The least ssthresh, in segments, that an echo leaves; a loss leaves 2.
    pub(crate) const fn least_ssthresh(self) -> u32 {
        match self {
            Self::Rfc3168 | Self::NoWait | Self::Fractional => 2,
            Self::Kame => 1,
        }
    }
}

/// What `rto_min` bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoMinBounds {
    /// The time-out (RFC 6298, rule 2.4).
    Rto,
    /// The variance term: the time-out exceeds the smoothed round trip by at least `rto_min`
    /// (Linux).
    Variance,
}

/// ACK that ends the back-off of the retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackoffEnd {
    /// An ACK with a round-trip sample, for data sent once (Karn's rule, RFC 6298, section 5).
    Sample,
    /// Any ACK of new data, including retransmitted data (ns, Linux with time stamps).
    NewAck,
    /// Any ACK of new data, once the timer has run with the backed-off value (ns's two-way TCP).
    NewAckOnceArmed,
}

aqmlab_declare::tagged! {
    /// Clock of round trips and retransmission timers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Clock {
        /// A slow timer of the host, with its own phase, measures round trips and fires timers in
        /// ticks. Estimator: BSD's integers.
        Ticks {
            /// Period of the tick.
            period: Time,
        },
        /// Round trips are whole ticks, at least one, with the host's own phase; timers are exact.
        /// Estimator: ns's integers.
        RttTicks {
            /// Period of the tick.
            period: Time,
        },
        /// Round trips are exact, with the clock granularity G of RFC 6298.
        Fine {
            /// G of RFC 6298, section 2.
            granularity: Time,
        },
    }
}

aqmlab_declare::tagged! {
    /// When the receiver acknowledges a single in-order segment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DelayedAck {
        /// At once.
        Off,
        /// At the next tick of a timer of the host, with its own phase.
        Grid {
            /// Period of the tick.
            period: Time,
        },
        /// This long after the segment arrived.
        Timer {
            /// The delay.
            delay: Time,
        },
    }
}

aqmlab_declare::tagged! {
    /// When the sender probes for a lost tail (RFC 8985, section 7).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TailLossProbe {
        /// Never. The retransmission timer repairs the loss.
        Off,
        /// After two round trips without an ACK.
        On {
            /// Time: Added if one segment is in flight: the longest ACK delay of the peer.
            #[serde(default = "longest_ack_delay")]
            max_ack_delay: Time,
            /// Time: Added if more segments are in flight (Linux: two ticks of its clock).
            #[serde(default)]
            margin: Time,
        },
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the attribute of a default variant has no place in the macro"
)]
impl Default for TailLossProbe {
    fn default() -> Self {
        Self::Off
    }
}

const fn longest_ack_delay() -> Time {
    Time::from_millis(200)
}

/// How the sender detects a spurious time-out from the next ACKs (F-RTO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Frto {
    /// It does not.
    #[default]
    Off,
    /// The first ACK releases two new segments, and the second ACK decides (RFC 5682).
    Rfc5682,
    /// As `rfc5682`, but any ACK that covers data sent once before the time-out decides (Linux).
    Linux,
}

/// Rules of RACK where Linux and RFC 8985 differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RackRules {
    /// The rules of RFC 8985.
    #[default]
    Rfc8985,
    /// The rules of Linux for reordering, rate reduction and timers
    /// (records/congestion-controls.md).
    Linux,
}

/// What the congestion window counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowCounts {
    /// Bytes in flight.
    #[default]
    Bytes,
    /// Packets in flight. A short segment or a FIN counts as a full segment (Linux).
    Packets,
}

/// What sets the pacing rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// The congestion control, if it paces. Otherwise ACKs clock the segments.
    #[default]
    Control,
    /// Twice the window per round trip in early slow start, later 1.2 times (Linux).
    Linux,
}

/// How much a paced sender sends at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacingBurst {
    /// One segment.
    #[default]
    Segment,
    /// A segmentation offload unit of Linux: 1/1024 s at the pacing rate, more with round trips of
    /// a few milliseconds; at least two segments (BBR below 1.2 Mbit/s: one), at most 64 KiB.
    /// Prague: 1/4096 s, at least one segment.
    Linux,
}

/// How the receiver echoes marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnEcho {
    /// In every ACK until CWR reports a smaller window (RFC 3168, section 6.1.3).
    #[default]
    UntilCwr,
    /// Only in ACKs of marked data (DCTCP: RFC 8257, section 3.2).
    EachChange,
    /// A counter in every segment (Accurate ECN: RFC 9768) if the peer supports it, else until CWR.
    /// Needs `recovery = "rack-tlp"`.
    Accurate,
}

/// What ends the first slow start besides congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartExit {
    /// The rule of the congestion control, if it has one.
    #[default]
    Control,
    /// A lasting increase of the round-trip time (HyStart++, RFC 9406).
    HystartPlusPlus,
}

/// Code point of ECN-capable data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ect {
    /// ECT(0): RFC 3168.
    #[default]
    Ect0,
    /// ECT(1), which requests the L4S service (RFC 9331).
    Ect1,
}
