//! The rules in which stacks differ: the words that a profile's keys take.

use aqmlab_net::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Fast retransmit, then slow start.
    Tahoe,
    /// Fast retransmit and fast recovery, ended by the first new ACK (RFC 2581).
    Reno,
    /// Fast recovery until all that was out at its start is acknowledged; every partial ACK
    /// repairs one loss (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 2018), by the rules of RFC 6675; NewReno if the peer sends
    /// none.
    Sack,
    /// Selective acknowledgements by the older rule of ns's Sack1: every hole under a block goes
    /// again once, while a count of segments on their way allows.
    SackPipe,
    /// Losses by time: a segment is lost when one sent later has arrived and a reordering window has
    /// passed (RACK, RFC 8985). Keeps a record of each segment, without which there is neither pacing,
    /// nor a delivery rate, nor a tail loss probe, nor undo. Three duplicate ACKs if the peer sends no
    /// SACK.
    RackTlp,
}

/// Which duplicate ACKs are refused a fast retransmit: those for data that was out at the last
/// congestion may come from segments sent twice (RFC 6582, section 3.2, step 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FastRetransmitGuard {
    /// None (RFC 5681; BSD Reno).
    Off,
    /// Those for data that was out at a time-out, but not at a fast retransmit (ns 2.1b8 Reno).
    AfterTimeout,
    /// All of them (RFC 6582).
    Always,
}

/// What `recover`, the sequence number up to which duplicate ACKs are refused a fast retransmit
/// ([`FastRetransmitGuard`]), is when a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialRecover {
    /// The initial sequence number (RFC 6582, section 3.2, step 0).
    InitialSequenceNumber,
    /// Zero, whatever the initial sequence number, which is random: to half of all connections that
    /// seems to lie ahead, and they are refused fast retransmits until a time-out (plain FreeBSD 4.5).
    Zero,
}

aqmlab_declare::tagged! {
    /// What slow start adds for an ACK.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SlowStart {
        /// A segment, whatever it acknowledges (BSD).
        PerAck,
        /// What was acknowledged, up to a limit (RFC 5681, equation 2; RFC 3465).
        ByteCounting {
            /// Most segments for an ACK: L of RFC 3465.
            #[serde(default = "one")]
            limit: u32,
        },
    }
}

const fn one() -> u32 {
    1
}

/// What a window equal to ssthresh does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtSsthresh {
    /// It grows exponentially (BSD).
    SlowStart,
    /// It grows linearly.
    CongestionAvoidance,
}

/// What congestion avoidance adds for an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionAvoidance {
    /// The share of a segment that one ACK per segment would make a whole one of in a round trip;
    /// delayed ACKs leave half of that (RFC 5681, equation 3).
    PerAck,
    /// In proportion to what was acknowledged: a segment for every window of data (RFC 3465, section
    /// 2.1; Linux).
    ByteCounting,
}

/// How the steps of congestion avoidance are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CwndArithmetic {
    /// To whole bytes, at least one (BSD; RFC 5681, section 3.1).
    Integer,
    /// Not at all (ns).
    Real,
    /// Not at all; of a fraction of a segment nothing goes, old data neither (ns's two-way TCP).
    WholeSegments,
}

/// When the window may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowGrowth {
    /// With every ACK that opens it.
    Always,
    /// Only if the flight that is acknowledged filled it at some time (RFC 7661, section 4); in slow start it
    /// is enough that half of it was out (Linux).
    CwndLimited,
    /// Not with in-order ACKs once it exceeds the peer's, nor beyond 65,535 bytes (BSD: the short way
    /// of header prediction leaves it alone).
    HeaderPrediction,
}

/// When a new connection takes over what its host has learnt of the peer on earlier ones: smoothed
/// round trip, its variance, ssthresh. BSD keeps them with the peer's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PeerCache {
    /// Never: a connection learns nothing from others.
    Off,
    /// When the peer's SYN or SYN-ACK arrives, so that a server's SYN-ACK is timed with it (FreeBSD
    /// 2.2.8).
    AtSyn,
    /// The client's end when the SYN-ACK arrives, the server's when the handshake is complete (FreeBSD
    /// 4.5: until then its SYN cache knows the connection).
    WhenComplete,
}

/// What a time-out does to what the peer has reported by SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SackAtTimeout {
    /// It is forgotten (RFC 2018, section 8).
    Forget,
    /// It stays in force: only what is missing goes again, and what had arrived does not open the
    /// window when it is acknowledged (Linux).
    Keep,
}

/// How SACK recovery brings the data in flight down to ssthresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateReduction {
    /// The window is ssthresh at once: nothing goes until enough has arrived (RFC 6675).
    AtOnce,
    /// Spread over a round trip (proportional rate reduction, RFC 9937 and before it RFC 6937).
    Proportional,
}

/// Which partial ACKs restart the retransmission timer (RFC 6582, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoVariant {
    /// All.
    SlowButSteady,
    /// The first one.
    Impatient,
}

/// The window that the ACK which ends NewReno's recovery leaves (RFC 6582, section 3.2, step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRenoExit {
    /// ssthresh.
    Ssthresh,
    /// A segment above what is in flight, if that is less than ssthresh: no burst.
    FlightSize,
}

/// What congestion reduces to a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DecreaseBase {
    /// The data in flight (RFC 5681, equation 4).
    FlightSize,
    /// The smaller of congestion window and peer's window, in whole segments (BSD).
    Cwnd,
    /// The same; ssthresh in whole segments, the window with the fraction (ns).
    FractionalCwnd,
}

/// What the second and later time-outs of the same segment do to ssthresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatedTimeout {
    /// Nothing (RFC 5681, section 3.1).
    Held,
    /// They lower it again.
    Reduced,
}

/// Which data is sent as ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EctOn {
    /// What is sent for the first time (RFC 3168, section 6.1.5).
    NewData,
    /// Retransmissions too (ns).
    AllData,
    /// Every packet behind the client's SYN: SYN-ACK, ACKs and FIN as well (ns's two-way TCP of 2001).
    AllButSyn,
    /// Every packet behind a handshake that agreed on accurate feedback, ACKs and retransmissions too; else
    /// what is sent for the first time (Linux).
    AllButHandshake,
    /// SYNs and ACKs as well, from the client's SYN on: hosts of data centres, whose switches drop what
    /// is not ECN-capable where they mark the rest (Linux where the congestion control needs ECN).
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

/// How the sender reacts to an ECN echo: at most once per window of data, as to a loss, except
/// small windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnReaction {
    /// ssthresh falls to two segments at least. At a window of one segment the next one waits until
    /// the restarted retransmission timer fires (RFC 3168, section 6.1.2).
    Rfc3168,
    /// The same, but at a window of one segment the window stays, and the sender reports a reduction
    /// (ns's one-way TCP, Linux).
    NoWait,
    /// The window may fall below one segment: nothing new goes until an ACK without an echo opens it
    /// again, or the restarted timer fires, which makes it the initial window. The first echo behind
    /// a time-out counts, whatever it acknowledges (two-way TCP of ns-2.35).
    Fractional,
    /// ssthresh falls to one segment at least; below two segments the echo is passed over; ACKs that
    /// echo may open the window (KAME).
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
    /// The variance term alone, so that the time-out exceeds the smoothed round trip by at least that
    /// much (Linux).
    Variance,
}

/// What ends the back-off of the retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackoffEnd {
    /// A round-trip sample: an ACK of data that was sent once (Karn's rule, RFC 6298, section 5).
    Sample,
    /// Any ACK of new data, also one of a retransmission (ns, Linux with time stamps).
    NewAck,
    /// The same, once the timer has been restarted: it runs the backed-off time once more (ns's
    /// two-way TCP).
    NewAckOnceArmed,
}

aqmlab_declare::tagged! {
    /// The clock that measures round trips and fires retransmission timers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Clock {
        /// Round trips are counted in ticks of a slow host-wide timer and timers fire on its ticks;
        /// the estimator is BSD's integer one. One phase per host.
        Ticks {
            /// Period of the tick.
            period: Time,
        },
        /// Round trips alone are counted in ticks, whole ones and at least one; timers fire exactly; the
        /// estimator is ns's integer one. One phase per host.
        RttTicks {
            /// Period of the tick.
            period: Time,
        },
        /// Round trips are measured exactly; RFC 6298 with this clock granularity G.
        Fine {
            /// G of RFC 6298, section 2.
            granularity: Time,
        },
    }
}

aqmlab_declare::tagged! {
    /// When a lone in-order segment is acknowledged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DelayedAck {
        /// At once.
        Off,
        /// At the next tick of a host-wide timer with this period. One phase per host.
        Grid {
            /// Period of the tick.
            period: Time,
        },
        /// This long after it arrived.
        Timer {
            /// The delay.
            delay: Time,
        },
    }
}

aqmlab_declare::tagged! {
    /// When a flight whose end may be lost is probed (RFC 8985, section 7).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TailLossProbe {
        /// Never: the retransmission timer finds it.
        Off,
        /// After two round trips without an ACK.
        On {
            /// What is added with a single segment in flight: the peer's longest delay of an ACK.
            #[serde(default = "longest_ack_delay")]
            max_ack_delay: Time,
            /// What is added with more in flight (Linux: two ticks of its clock).
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

/// How a time-out is found to have been spurious by what the next ACKs say (F-RTO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Frto {
    /// Not at all.
    #[default]
    Off,
    /// The first ACK releases two new segments, the second one decides (RFC 5682).
    Rfc5682,
    /// The same, but any ACK that covers what was sent once before the time-out decides (Linux).
    Linux,
}

/// Whose rules RACK follows where Linux does otherwise than RFC 8985.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RackRules {
    /// Every D-SACK widens the reordering window, and the reordering timer has no margin (RFC 8985,
    /// section 6.2).
    #[default]
    Rfc8985,
    /// Linux. Reno's and CUBIC's window is a whole number of segments, with a count of those acknowledged;
    /// slow start ends at ssthresh, and what is left of the ACK counts. Proportional rate reduction counts
    /// segments from the window, not from what was in flight. One point ends reductions for marks, recoveries and
    /// the repair after a time-out; the ACK that ends one opens the window; an echo behind it reduces anew; so
    /// does a loss while a repair is under way. After an idle time the window halves for each time-out. A D-SACK
    /// widens the reordering window only after a segment has come late, and counts as delivered. One timer runs:
    /// RACK's, which waits 2 ms longer, the probe's, or that of retransmissions. A report of what was sent before
    /// the oldest segment was sent last starts that one anew. After segments that came more than three late, what
    /// arrives beyond a gap opens the window, too. A paced segment that leaves late shortens the next gap, by half
    /// at most. With `rto_min_bounds = "variance"` the deviation of round trips falls once a round trip only.
    Linux,
}

/// What counts against the congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowCounts {
    /// Bytes on their way.
    #[default]
    Bytes,
    /// Packets on their way: a short segment, or a FIN, takes as much room as a full segment (Linux).
    Packets,
}

/// What sets the rate at which segments leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Nothing but the arrival of ACKs, if the congestion control does not ask for a rate.
    #[default]
    Control,
    /// Twice the window per round trip in early slow start, 1.2 times the window later (Linux, with a
    /// queue discipline that paces).
    Linux,
}

/// What leaves at once where segments are paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacingBurst {
    /// A segment.
    #[default]
    Segment,
    /// What Linux hands down at once (TCP segmentation offload): a 1,024th of a second at the pacing rate, and
    /// more where the smallest round trip is a few milliseconds at most; two segments at least, or one from BBR
    /// below 1.2 Mbit/s; 64 KiB at most. Prague's: a 4,096th of a second, one segment at least.
    Linux,
}

/// How a receiver echoes marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnEcho {
    /// In every ACK until the sender says that it has reduced its window (RFC 3168, section 6.1.3).
    #[default]
    UntilCwr,
    /// In the ACKs of marked data alone: where marks begin or end, what waits is acknowledged at once
    /// (DCTCP: RFC 8257, section 3.2).
    EachChange,
    /// By a counter in every segment (Accurate ECN: RFC 9768), if the peer speaks it, else until CWR. With
    /// `recovery = "rack-tlp"`.
    Accurate,
}

/// What ends the first slow start beside congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartExit {
    /// What the congestion control has for it.
    #[default]
    Control,
    /// Round trips that have grown and stay so (HyStart++, RFC 9406).
    HystartPlusPlus,
}

/// The code point of ECN-capable data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ect {
    /// ECT(0): RFC 3168.
    #[default]
    Ect0,
    /// ECT(1): asks for the L4S service (RFC 9331).
    Ect1,
}
