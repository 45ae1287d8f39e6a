//! Stack profiles: everything in which two TCP stacks of the same algorithms still differ, as data.

mod renamed;
mod rules;
mod senders;
mod text;
mod written;

use std::sync::OnceLock;

use aqmlab_declare::JsonSchema;
use aqmlab_declare::check::{self, Problem, problem};
use aqmlab_declare::tagged::{self, Located, Reader, WordOrTable};
use aqmlab_net::{Bytes, Time};
use serde::{Deserialize, Deserializer, Serialize};
use toml::{Table, Value};

pub use rules::{
    AtSsthresh, BackoffEnd, Clock, CongestionAvoidance, CwndArithmetic, DecreaseBase, DelayedAck,
    EcnEcho, EcnReaction, Ect, EctOn, FastRetransmitGuard, Frto, InitialRecover, NewRenoExit,
    NewRenoVariant, Pacing, PacingBurst, PeerCache, RackRules, RateReduction, Recovery,
    RepeatedTimeout, RtoMinBounds, SackAtTimeout, SlowStart, SlowStartExit, TailLossProbe,
    WindowCounts, WindowGrowth,
};

use crate::control::CongestionControlKind;
use crate::segment::{MAX_SACK_BLOCKS, Stamps};

/// A TCP stack: constants and switches of an end point.
///
/// A scenario names a profile, or gives a table whose `profile` names one and whose other keys
/// replace that profile's values.
// `remote = "Self"` makes what serde derives plain functions, which the trait's `deserialize`
// below calls once the named profile has filled the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(transform = written::without_defaults)]
pub struct Profile {
    /// Name of the profile whose values are the defaults.
    pub profile: String,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Congestion control: a name, or a table with `kind` and parameters.
    #[serde(deserialize_with = "tagged::word_or_table")]
    #[schemars(with = "WordOrTable<CongestionControlKind>")]
    pub congestion_control: CongestionControlKind,
    /// If true, connections negotiate ECN (RFC 3168).
    pub ecn: bool,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// IP and TCP headers of every segment except a SYN.
    pub header: Bytes,
    /// IP and TCP headers of a SYN, options included.
    pub syn_header: Bytes,
    /// Send buffer. It limits the data in flight.
    pub send_buffer: Bytes,
    /// Receive buffer and advertised window. Applications read at once.
    pub receive_buffer: Bytes,
    /// Receive buffer of the peer, if the peer has another stack. Default: `receive_buffer`.
    #[serde(skip)]
    pub peer_receive_buffer: Option<Bytes>,
    /// If false, the sender starts with data, without a handshake (ns's one-way TCP).
    pub handshake: bool,
    /// Congestion window after the handshake, in segments.
    pub initial_window: u32,
    /// If true, the handshake's last ACK adds one segment to the server's window.
    pub handshake_opens_window: bool,
    /// Slow-start threshold of a new connection.
    pub initial_ssthresh: Bytes,
    /// When a new connection copies the path metrics of earlier connections to the same peer.
    pub peer_cache: PeerCache,
    /// Growth of the window per ACK in slow start.
    #[serde(deserialize_with = "tagged::word_or_table")]
    #[schemars(with = "WordOrTable<SlowStart>")]
    pub slow_start: SlowStart,
    /// Phase while the window equals ssthresh.
    pub at_ssthresh: AtSsthresh,
    /// Growth of the window per ACK in congestion avoidance.
    pub congestion_avoidance: CongestionAvoidance,
    /// Rounding of the window increments in congestion avoidance.
    pub cwnd_arithmetic: CwndArithmetic,
    /// Condition for a growth of the window.
    pub window_growth: WindowGrowth,
    /// If true, the first two duplicate ACKs release a new segment each (RFC 3042).
    pub limited_transmit: bool,
    /// Duplicate ACKs that do not trigger a fast retransmit.
    pub fast_retransmit_guard: FastRetransmitGuard,
    /// Initial sequence number of the fast retransmit guard (`recover`).
    pub initial_recover: InitialRecover,
    /// Maximum number of SACK blocks in an ACK: 4, or 3 with time stamps (RFC 2018, section 3).
    pub sack_blocks: u32,
    /// Whether a time-out discards the peer's SACK information.
    pub sack_at_timeout: SackAtTimeout,
    /// How SACK recovery reduces the data in flight to ssthresh.
    pub rate_reduction: RateReduction,
    /// Partial ACKs that restart the timer in NewReno recovery.
    pub newreno_variant: NewRenoVariant,
    /// Window after the ACK that ends NewReno's recovery.
    pub newreno_exit: NewRenoExit,
    /// If true, the ACK that ends fast recovery also grows the window (BSD).
    pub recovery_exit_opens_window: bool,
    /// Quantity that a congestion event decreases.
    pub multiplicative_decrease_base: DecreaseBase,
    /// Whether further time-outs of a segment reduce ssthresh again.
    pub ssthresh_at_repeated_timeout: RepeatedTimeout,
    /// ssthresh after the client's SYN timed out. Default: unchanged.
    #[serde(default)]
    pub syn_timeout_ssthresh: Option<Bytes>,
    /// Packets that the sender sends as ECN-capable.
    pub ect_on: EctOn,
    /// Reaction of the sender to an ECN echo.
    pub ecn_reaction: EcnReaction,
    /// If true, segments carry time stamps (RFC 7323) and every ACK measures a round trip.
    pub timestamps: bool,
    /// Clock of round trips and retransmission timers.
    pub clock: Clock,
    /// Retransmission time-out before the first round-trip sample.
    pub rto_initial: Time,
    /// Lower bound of the retransmission time-out.
    pub rto_min: Time,
    /// Upper bound of the time-out, including the back-off.
    pub rto_max: Time,
    /// Quantity that `rto_min` limits: the time-out or its variance term.
    pub rto_min_bounds: RtoMinBounds,
    /// ACK that ends the back-off of the retransmission time-out.
    pub backoff_ends_with: BackoffEnd,
    /// Times between the SYNs of the client, as multiples of `rto_initial`; later times double. The
    /// server's always double.
    pub syn_backoff: Vec<u32>,
    /// Retransmissions of a segment before the connection is aborted.
    pub max_retransmissions: u32,
    /// Time after which a client aborts an unanswered connection attempt.
    pub connect_timeout: Time,
    /// Time after which a server aborts an incomplete handshake.
    pub accept_timeout: Time,
    /// If true, a server answers a repeated SYN at once.
    pub answers_repeated_syn: bool,
    /// When the receiver acknowledges a single segment.
    pub delayed_ack: DelayedAck,
    /// Unacknowledged full segments that trigger an ACK.
    pub ack_every: u32,
    /// First in-order segments that the receiver acknowledges at once.
    pub quick_acks: u32,
    /// If true, a small segment waits while data is outstanding (Nagle's rule, RFC 896).
    pub nagle: bool,
    /// If true, an idle period longer than the RTO resets the window to the initial window.
    pub restart_after_idle: bool,
    /// Maximum random delay before each segment, uniform from 0 (ns's `overhead_`).
    pub random_send_delay: Time,
    /// If true, one delay is for all segments that the window allows (ns's `send_much`), otherwise
    /// for one segment.
    #[serde(default)]
    pub delayed_send_fills_window: bool,
    /// If true, the idle time starts at the last ACK (ns's one-way TCP), otherwise at the last
    /// segment of any kind (BSD).
    #[serde(default)]
    pub idle_since_ack: bool,
    /// If true, Nagle's rule delays a small segment only while another small segment is outstanding
    /// (draft-minshall-nagle, 1999; Linux). Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub minshall: bool,
    /// If true, Nagle's rule applies to each segment and delays a FIN (ns's two-way TCP), otherwise
    /// once to a sequence of segments (BSD).
    #[serde(default)]
    pub strict_nagle: bool,
    /// If true, Reno's fast retransmit sets the window to ssthresh in whole segments and sends
    /// nothing new before the next duplicate ACK; a time-out in fast recovery halves the inflated
    /// window (ns's two-way TCP).
    #[serde(default)]
    pub lone_fast_retransmit: bool,
    /// If true, the sender uses SACK information only in fast recovery (ns's two-way TCP), and the
    /// ACK that ends fast recovery grows the window.
    #[serde(default)]
    pub sack_in_recovery_only: bool,
    /// If true, an application closes with its last write (ns's `MSG_EOF`): the last data segment
    /// can include the FIN.
    #[serde(default)]
    pub closes_with_write: bool,
    /// Probe for a lost tail: a word, or a table with times. Needs `recovery = "rack-tlp"`.
    #[serde(default, deserialize_with = "tagged::word_or_table")]
    #[schemars(with = "WordOrTable<TailLossProbe>")]
    pub tail_loss_probe: TailLossProbe,
    /// Detection of spurious time-outs (F-RTO). Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub frto: Frto,
    /// If true, the sender restores the window when D-SACK or time stamps show that nothing was
    /// lost. Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub undo: bool,
    /// If true, the receiver reports duplicate data (D-SACK, RFC 2883).
    #[serde(default)]
    pub dsack: bool,
    /// Source of the pacing rate. Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub pacing: Pacing,
    /// Data in one burst of a paced sender. Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub pacing_burst: PacingBurst,
    /// Additional condition that ends the first slow start. Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub slow_start_exit: SlowStartExit,
    /// How the receiver echoes marks. Default: the method of the congestion control, otherwise an
    /// echo until CWR.
    #[serde(default)]
    pub ecn_echo: EcnEcho,
    /// If true, ACKs count marked bytes in the Accurate ECN option, too. Needs `ecn_echo =
    /// "accurate"`.
    #[serde(default = "yes")]
    pub accecn_option: bool,
    /// Code point of ECN-capable data. Default: the code point of the congestion control, otherwise
    /// ECT(0).
    #[serde(default)]
    pub ect: Ect,
    /// Rules of RACK where Linux and RFC 8985 differ. Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub rack_rules: RackRules,
    /// Unit of the congestion window. Needs `recovery = "rack-tlp"`.
    #[serde(default)]
    pub window_counts: WindowCounts,
    /// How long the receiver may delay SACK reports (Linux: `tcp_comp_sack_delay_ns`; its timer
    /// adds up to 0.1 ms). The first three reports of a gap go at once; later reports wait for at
    /// most 1/20 of the round trip. Default: every report goes at once (RFC 5681), and the kernel
    /// of a live run keeps its own 1 ms.
    #[cfg(feature = "linux")]
    #[serde(default)]
    pub sack_compression: Option<Time>,
}

const fn yes() -> bool {
    true
}

/// The profiles that ship: name and text.
const SHIPPED: [(&str, &str); 7] = [
    ("rfc", text::text!("../../profiles/rfc.toml")),
    (
        "freebsd-2.2.8",
        text::text!("../../profiles/freebsd-2.2.8.toml"),
    ),
    (
        "freebsd-4.5",
        text::text!("../../profiles/freebsd-4.5.toml"),
    ),
    (
        "ns-full-tcp",
        text::text!("../../profiles/ns-full-tcp.toml"),
    ),
    ("ns-one-way", text::text!("../../profiles/ns-one-way.toml")),
    ("linux", text::text!("../../profiles/linux.toml")),
    (
        "linux-classic",
        text::text!("../../profiles/linux-classic.toml"),
    ),
];

impl Profile {
    /// Names of the profiles that ship; the first is the default.
    pub const NAMES: [&str; SHIPPED.len()] = [
        SHIPPED[0].0,
        SHIPPED[1].0,
        SHIPPED[2].0,
        SHIPPED[3].0,
        SHIPPED[4].0,
        SHIPPED[5].0,
        SHIPPED[6].0,
    ];

    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::shipped(name).cloned()
    }

    /// The profile of that name, read once.
    fn shipped(name: &str) -> Option<&'static Self> {
        static READ: [OnceLock<Profile>; SHIPPED.len()] =
            [const { OnceLock::new() }; SHIPPED.len()];
        let place = Self::NAMES.iter().position(|&shipped| shipped == name)?;
        Some(READ[place].get_or_init(|| {
            let overlay = Table::from_iter([("profile".to_owned(), Value::from(name))]);
            Self::from_overlay(overlay).expect("shipped profiles are right: a test reads them")
        }))
    }

    /// The text of the profile of that name: TOML whose comments give sources and reasons.
    pub fn text(name: &str) -> Option<&'static str> {
        SHIPPED
            .iter()
            .find(|(shipped, _)| *shipped == name)
            .map(|(_, text)| *text)
    }

    /// What the profile of that name states.
    fn stated(name: &str) -> Option<Table> {
        let text = Self::text(name)?;
        let stated = text.parse();
        Some(stated.expect("shipped profiles are TOML: a test reads them"))
    }

    /// Refuses values that mean nothing or contradict each other. The error is the field and the
    /// message: what was found and what would be right.
    pub fn check(&self) -> Result<(), Problem> {
        self.check_sizes()?;
        self.check_times()?;
        if !self.handshake && self.peer_cache != PeerCache::Off {
            let message = "found a look-up in the handshake; without a handshake expected \"off\"";
            return problem("peer_cache", message);
        }
        self.check_control()
    }

    /// The time stamps that segments carry: what the congestion control needs, or RFC 7323.
    #[inline]
    pub(crate) fn stamps(&self) -> Option<Stamps> {
        let own = self.congestion_control.stamps();
        own.or_else(|| self.timestamps.then_some(Stamps::Rfc7323))
    }

    /// Whether SACK blocks take the peer's FIN for a byte, as Linux's do: a sender with a segment log
    /// learns of it as of any segment.
    pub(crate) fn reports_fin(&self) -> bool {
        self.recovery == Recovery::RackTlp
    }

    /// This stack as it is with `peer` at the other end: what both must agree on without being
    /// able to say it in a segment. Segments have the smaller size of the two (RFC 9293, section
    /// 3.7.1), each with its sender's headers; the peer's receive buffer is the window; and where
    /// there is no handshake, an option that one end lacks is left out.
    #[must_use]
    pub fn with_peer(&self, peer: &Self) -> Self {
        let mut own = self.clone();
        own.mss = self.mss.min(peer.mss);
        own.peer_receive_buffer =
            (peer.receive_buffer != self.receive_buffer).then_some(peer.receive_buffer);
        if !self.handshake {
            own.ecn &= peer.ecn;
            own.timestamps &= peer.timestamps;
            if own.ecn_echo == EcnEcho::Accurate && peer.ecn_echo != EcnEcho::Accurate {
                own.ecn_echo = EcnEcho::UntilCwr;
            }
            if self.wants_sack() && !peer.wants_sack() {
                own.recovery = Recovery::NewReno;
            }
        }
        own
    }

    /// Whether `peer` sends the time stamps that the congestion control needs, if it needs any.
    pub fn has_its_stamps_from(&self, peer: &Self) -> bool {
        let needed = self.congestion_control.stamps();
        needed.is_none() || needed == peer.stamps()
    }

    /// Whether recovery makes use of SACK.
    pub(crate) const fn wants_sack(&self) -> bool {
        matches!(
            self.recovery,
            Recovery::Sack | Recovery::SackPipe | Recovery::RackTlp
        )
    }

    /// The peer's window: it offers its whole buffer.
    #[inline]
    pub(crate) fn peer_window(&self) -> u64 {
        self.peer_receive_buffer.unwrap_or(self.receive_buffer).0
    }

    /// Whether the sender keeps a log of each segment.
    #[inline]
    pub(crate) const fn keeps_log(&self) -> bool {
        matches!(self.recovery, Recovery::RackTlp)
    }

    fn check_sizes(&self) -> Result<(), Problem> {
        check::bytes("mss", self.mss)?;
        check::bytes("header", self.header)?;
        let segment = Bytes(self.mss.0.saturating_add(self.header.0));
        for (field, packet) in [("mss", segment), ("syn_header", self.syn_header)] {
            if !(Bytes(1)..=MAX_PACKET).contains(&packet) {
                let found = format!("found a packet of {packet}, headers included");
                return problem(field, format!("{found}; at most {MAX_PACKET}"));
            }
        }
        for (field, buffer) in [
            ("send_buffer", self.send_buffer),
            ("receive_buffer", self.receive_buffer),
        ] {
            if !(self.mss..=MAX_BUFFER).contains(&buffer) {
                let right = format!("one segment (mss, {}) to {MAX_BUFFER}", self.mss);
                return problem(field, format!("found {buffer}; expected {right}"));
            }
        }
        check::count("sack_blocks", self.sack_blocks, 1, MAX_SACK_BLOCKS as u32)?;
        for (field, count) in [
            ("initial_window", self.initial_window),
            ("ack_every", self.ack_every),
        ] {
            check::count(field, count, 1, u32::MAX)?;
        }
        if let SlowStart::ByteCounting { limit } = self.slow_start {
            check::count("slow_start.limit", limit, 1, u32::MAX)?;
        }
        if self.syn_backoff.contains(&0) {
            let message = "found a gap of 0; every gap must be at least 1";
            return problem("syn_backoff", message);
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Problem> {
        let clock = match self.clock {
            Clock::Ticks { period } | Clock::RttTicks { period } => ("clock.period", period),
            Clock::Fine { granularity } => ("clock.granularity", granularity),
        };
        let delayed_ack = match self.delayed_ack {
            DelayedAck::Off => None,
            DelayedAck::Grid { period } => Some(("delayed_ack.period", period)),
            DelayedAck::Timer { delay } => Some(("delayed_ack.delay", delay)),
        };
        let times = [
            clock,
            ("rto_initial", self.rto_initial),
            ("rto_min", self.rto_min),
            ("rto_max", self.rto_max),
            ("connect_timeout", self.connect_timeout),
            ("accept_timeout", self.accept_timeout),
        ];
        for (field, time) in times.into_iter().chain(delayed_ack) {
            check::positive_up_to(field, time, LONGEST_TIMER)?;
        }
        if self.random_send_delay > LONGEST_TIMER {
            let message = format!("found {}; at most {LONGEST_TIMER}", self.random_send_delay);
            return problem("random_send_delay", message);
        }
        for (field, time) in [("rto_min", self.rto_min), ("rto_initial", self.rto_initial)] {
            if time > self.rto_max {
                let message = format!("found {time}; it must not exceed rto_max, {}", self.rto_max);
                return problem(field, message);
            }
        }
        if self.rto_max < SHORTEST_RTO_MAX {
            let message = format!("found {}; at least {SHORTEST_RTO_MAX}", self.rto_max);
            return problem("rto_max", message);
        }
        if let Clock::Ticks { period } = self.clock {
            // The timer counts ticks, and one that expires after none would never do so.
            for (field, time) in [("rto_min", self.rto_min), ("rto_initial", self.rto_initial)] {
                if time < period {
                    let right = format!("it must be a tick of the clock, {period}, or longer");
                    return problem(field, format!("found {time}; {right}"));
                }
            }
        }
        Ok(())
    }

    fn check_control(&self) -> Result<(), Problem> {
        let control = &self.congestion_control;
        if control.needs_samples() && !self.keeps_log() {
            let message = "found one that needs a record of each segment; expected recovery = \
                           \"rack-tlp\" with it";
            return problem("congestion_control", message);
        }
        if control.goes_by_marks() && !self.ecn {
            let message = "found one that goes by ECN marks, and there are none; expected ecn = true \
                           with it";
            return problem("congestion_control", message);
        }
        if self.ecn_echo == EcnEcho::Accurate && !self.keeps_log() {
            let message = "found \"accurate\", which counts segments; expected recovery = \
                           \"rack-tlp\" with it";
            return problem("ecn_echo", message);
        }
        self.check_sender()?;
        let checked = control.check();
        checked.map_err(|(field, message)| (format!("congestion_control.{field}"), message))
    }

    /// The profile that the table names, with the table's other values in place of its own.
    fn from_overlay(overlay: Table) -> Result<Self, Located> {
        renamed::refuse(&overlay)?;
        let name = match overlay.get("profile") {
            None => Self::NAMES[0],
            Some(Value::String(name)) => name,
            Some(_) => {
                let error = Located::new("found no text; expected the name of a profile");
                return Err(error.allow(&Self::NAMES).under("profile"));
            }
        };
        let Some(stated) = Self::stated(name) else {
            return Err(Located::unknown_word(name, &Self::NAMES).under("profile"));
        };
        let mut table = Table::from_iter([("profile".to_owned(), Value::from(name))]);
        table.extend(stated);
        let states_ect_on = overlay.contains_key("ect_on");
        table.extend(overlay);
        let states = |key| table.contains_key(key);
        let (states_echo, states_ect) = (states("ecn_echo"), states("ect"));
        let mut read = Self::deserialize(Reader(Value::Table(table)))?;
        if !states_echo {
            read.ecn_echo = read.congestion_control.echo();
        }
        if !states_ect {
            read.ect = read.congestion_control.ect();
        }
        if !states_ect_on && read.rack_rules == RackRules::Linux && read.wants_accecn() {
            read.ect_on = EctOn::AllButHandshake;
        }
        Ok(read)
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(name) => {
                Self::named(&name).ok_or_else(|| Located::unknown_word(&name, &Self::NAMES))
            }
            Value::Table(overlay) => Self::from_overlay(overlay),
            _ => {
                Err(Located::new("expected the name of a profile, or a table").allow(&Self::NAMES))
            }
        }
        .map_err(Located::pass)
    }
}

/// The largest IP packet.
const MAX_PACKET: Bytes = Bytes(65_535);

/// The largest window that RFC 7323 can announce.
const MAX_BUFFER: Bytes = Bytes(1 << 30);

/// With a shorter one a connection that gets no answer does nothing but send.
const SHORTEST_RTO_MAX: Time = Time::from_millis(1);

/// Longer than any stack's: a slip of the unit.
const LONGEST_TIMER: Time = Time::from_secs(86_400);

#[cfg(test)]
mod tests {
    use aqmlab_declare::tagged;

    use super::*;

    fn read(text: &str) -> Result<Profile, String> {
        let table: Table = text.parse().unwrap();
        tagged::from_value(table["tcp"].clone()).map_err(|error: Located| error.to_string())
    }

    #[test]
    fn every_shipped_profile_is_right_and_survives_writing() {
        for name in Profile::NAMES {
            let profile = Profile::named(name).unwrap();
            assert_eq!(profile.profile, name);
            assert_eq!(profile.check(), Ok(()), "{name}");
            let written = Value::try_from(&profile).unwrap();
            assert_eq!(tagged::from_value(written), Ok(profile), "{name}");
        }
        assert_eq!(Profile::named("hurd"), None);
    }

    #[test]
    fn a_text_without_comments_says_the_same() {
        for (name, text) in SHIPPED {
            let (length, bytes) = text::bare::<4096>(text);
            let bare = std::str::from_utf8(&bytes[..length]).unwrap();
            assert!(length < text.len() && !bare.contains('#'), "{name}");
            assert_eq!(bare.parse::<Table>(), text.parse::<Table>(), "{name}");
        }
    }

    #[test]
    fn a_table_replaces_values_of_the_profile_that_it_names() {
        let freebsd = Profile::named("freebsd-2.2.8").unwrap();
        assert_eq!(read("tcp = \"freebsd-2.2.8\""), Ok(freebsd.clone()));
        let changed = read("tcp = { profile = \"freebsd-2.2.8\", mss = \"1460 bytes\" }");
        assert_eq!(
            changed,
            Ok(Profile {
                mss: Bytes(1460),
                ..freebsd
            })
        );
        let rfc = Profile::named("rfc").unwrap();
        assert_eq!(
            read("tcp = { ecn = true }"),
            Ok(Profile { ecn: true, ..rfc })
        );
    }

    #[test]
    fn a_control_that_needs_time_stamps_needs_them_of_both() {
        let stack = |congestion_control| Profile {
            congestion_control,
            timestamps: false,
            ..Profile::named("rfc").unwrap()
        };
        let plain = stack(Profile::named("rfc").unwrap().congestion_control);
        let mut in_need = 0;
        for kind in CongestionControlKind::all() {
            let needs = kind.stamps().is_some();
            let one = stack(kind);
            assert!(one.has_its_stamps_from(&one) && plain.has_its_stamps_from(&one));
            assert_eq!(one.has_its_stamps_from(&plain), !needs, "{one:?}");
            in_need += u32::from(needs);
        }
        assert!(in_need > 0);
    }

    #[test]
    fn a_wrong_profile_is_refused() {
        let unknown = "found \"rcf\"; did you mean \"rfc\"? (allowed: rfc, freebsd-2.2.8, freebsd-4.5, \
                       ns-full-tcp, ns-one-way, linux, linux-classic)";
        assert_eq!(read("tcp = \"rcf\""), Err(unknown.to_owned()));
        assert_eq!(
            read("tcp = { profile = \"rcf\" }"),
            Err(format!("profile: {unknown}"))
        );
        let clock = read("tcp = { clock = { kind = \"fine\", granularty = \"1 ms\" } }");
        assert!(
            clock
                .unwrap_err()
                .starts_with("clock.granularty: unknown key; did you mean")
        );
    }

    #[test]
    fn a_word_is_a_congestion_control_with_its_defaults() {
        let cubic = read("tcp = { congestion_control = \"cubic\" }").unwrap();
        let table = "tcp = { congestion_control = { kind = \"cubic\", c = 0.4, beta = 0.7 } }";
        assert_eq!(Ok(&cubic), read(table).as_ref());
        for kind in CongestionControlKind::all() {
            assert_eq!(kind.check(), Ok(()), "{kind:?}");
        }
        let unknown = read("tcp = { congestion_control = \"cubik\" }").unwrap_err();
        let message =
            "congestion_control: found \"cubik\"; did you mean \"cubic\"? (allowed: reno, ";
        assert!(unknown.starts_with(message), "{unknown}");
    }

    #[test]
    fn a_renamed_key_is_refused_with_the_new_name() {
        assert_eq!(
            read("tcp = { cubic = { beta = 0.5 } }"),
            Err("cubic: renamed; write congestion_control = { kind = \"cubic\", ... }".to_owned())
        );
        assert_eq!(
            read("tcp = { cut_from = \"window\" }"),
            Err("cut_from: renamed; write multiplicative_decrease_base = \"cwnd\"".to_owned())
        );
        assert_eq!(
            read("tcp = { byte_counting_limit = 2 }"),
            Err(
                "byte_counting_limit: renamed; write slow_start = { kind = \"byte-counting\", \
                 limit = ... }"
                    .to_owned()
            )
        );
        assert_eq!(
            read("tcp = { clock = { kind = \"counted\", period = \"10 ms\" } }"),
            Err("clock.kind: found \"counted\", which is called \"rtt-ticks\"".to_owned())
        );
    }

    #[test]
    fn what_a_profile_has_for_the_segment_log_goes_with_it() {
        let stack = read("tcp = { profile = \"linux\", recovery = \"reno\" }").unwrap();
        assert!(stack.undo && stack.minshall);
        assert_eq!(stack.check(), Ok(()));
        let off = "minshall = false, tail_loss_probe = \"off\", frto = \"off\", undo = false";
        let stack = read(&format!(
            "tcp = {{ profile = \"linux\", recovery = \"reno\", {off} }}"
        ));
        assert_eq!(stack.unwrap().check(), Ok(()));
    }

    #[test]
    fn values_that_make_no_stack_are_refused() {
        for (field, text) in [
            ("mss", "mss = \"0 bytes\""),
            ("mss", "mss = \"65500 bytes\""),
            ("header", "header = \"0 bytes\""),
            ("syn_header", "syn_header = \"64 KiB\""),
            ("send_buffer", "send_buffer = \"1459 bytes\""),
            ("receive_buffer", "receive_buffer = \"2 GiB\""),
            ("initial_window", "initial_window = 0"),
            ("ack_every", "ack_every = 0"),
            ("sack_blocks", "sack_blocks = 5"),
            (
                "slow_start.limit",
                "slow_start = { kind = \"byte-counting\", limit = 0 }",
            ),
            ("syn_backoff", "syn_backoff = [1, 0]"),
            (
                "peer_cache",
                "profile = \"ns-one-way\", peer_cache = \"at-syn\"",
            ),
            (
                "congestion_control.increase",
                "congestion_control = { kind = \"reno\", increase = 0.0 }",
            ),
            (
                "congestion_control.beta",
                "congestion_control = { kind = \"cubic\", beta = 1.0 }",
            ),
            (
                "congestion_control.beta",
                "congestion_control = { kind = \"vegas\", alpha = 4.0 }",
            ),
            (
                "congestion_control.period",
                "congestion_control = { kind = \"fast\", period = \"0 s\" }",
            ),
            (
                "congestion_control.tolerance",
                "congestion_control = { kind = \"santa-cruz\", tolerance = 9.0 }",
            ),
            ("accept_timeout", "accept_timeout = \"0 s\""),
            (
                "clock.granularity",
                "clock = { kind = \"fine\", granularity = \"0 s\" }",
            ),
            (
                "delayed_ack.period",
                "delayed_ack = { kind = \"grid\", period = \"0 s\" }",
            ),
            ("rto_min", "rto_min = \"70 s\""),
            ("rto_initial", "rto_initial = \"61 s\""),
            (
                "rto_max",
                "rto_min = \"1 us\", rto_initial = \"1 us\", rto_max = \"2 us\"",
            ),
            (
                "rto_min",
                "profile = \"freebsd-2.2.8\", clock = { kind = \"ticks\", period = \"5 s\" }",
            ),
            (
                "rto_initial",
                "profile = \"freebsd-2.2.8\", rto_initial = \"1 ns\"",
            ),
            ("connect_timeout", "connect_timeout = \"0 s\""),
            ("congestion_control", "congestion_control = \"bbr1\""),
            (
                "congestion_control",
                "profile = \"linux\", congestion_control = \"prague\"",
            ),
            (
                "congestion_control",
                "profile = \"linux\", congestion_control = \"dctcp\"",
            ),
            ("ecn_echo", "ecn_echo = \"accurate\""),
            ("pacing", "pacing = \"linux\""),
            ("pacing_burst", "pacing_burst = \"linux\""),
            ("tail_loss_probe", "tail_loss_probe = \"on\""),
            ("frto", "frto = \"linux\""),
            ("undo", "undo = true"),
            ("minshall", "minshall = true"),
            ("window_counts", "window_counts = \"packets\""),
            ("rack_rules", "rack_rules = \"linux\""),
            ("slow_start_exit", "slow_start_exit = \"hystart-plus-plus\""),
            (
                "sack_at_timeout",
                "profile = \"linux\", sack_at_timeout = \"forget\"",
            ),
            (
                "random_send_delay",
                "profile = \"ns-one-way\", random_send_delay = \"1 ms\", recovery = \"rack-tlp\"",
            ),
        ] {
            let profile = read(&format!("tcp = {{ {text} }}")).unwrap();
            assert_eq!(profile.check().unwrap_err().0, field, "{text}");
        }
    }
}
