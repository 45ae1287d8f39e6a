//! Accurate ECN feedback: B. Briscoe, M. Kühlewind, R. Scheffenegger, "More Accurate Explicit Congestion
//! Notification (AccECN) Feedback in TCP", RFC 9768, 2025. The receiver counts marks and tells of the
//! counter in three flags of every segment; an option counts the bytes of each code point.
//!
//! Left out: the reset of a connection whose opening mixes classic and accurate SYNs, and the test whether
//! everything is marked. SYNs and pure ACKs are not ECN-capable.

use aqmlab_net::Ecn;

use crate::endpoint::{Context, Endpoint};
use crate::profile::{EcnEcho, Profile};
use crate::segment::{AccEcnOption, Flags, MAX_SACK_BLOCKS, Options, Outbox, Segment};

/// What the counters of packets and of bytes start at (section 3.2.1).
const FIRST_CEP: u64 = 5;
const FIRST: Counters = Counters {
    cep: FIRST_CEP,
    ceb: 0,
    e0b: 1,
    e1b: 1,
};
/// The field has three bits.
const ACE_MASK: u64 = 7;
/// Marks since the last ACK that call for one, while data waits for its own and else: a pure ACK that is
/// marked is not to be answered each time (section 3.2.2.5).
const MARKS_WITH_DATA: u64 = 2;
const MARKS_WITHOUT: u64 = 3;
/// SYNs that ask for it: the second one may have been lost like the first, a third asks for nothing.
const ASKING_SYNS: u32 = 2;
/// Fields of the option that fit beside two SACK blocks and time stamps.
const FIELDS_BESIDE_SACK: usize = 2;

/// What has arrived: marked packets, and bytes of payload by code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    cep: u64,
    ceb: u64,
    e0b: u64,
    e1b: u64,
}

/// The state of a connection that has agreed on accurate feedback.
#[derive(Clone, Debug)]
pub(crate) struct AccEcn {
    /// What has arrived, and what of it the last segment sent has told.
    received: Counters,
    told: Counters,
    /// The last packet was marked.
    after_mark: bool,
    /// The ECN field of the peer's SYN or SYN-ACK, which the answer tells.
    opening: Ecn,
    /// The peer's counters as known here: marked packets, and their bytes modulo 2^24.
    cep: u64,
    ceb: u32,
    /// The time stamp of the newest segment.
    stamp: u32,
    /// The segment at hand has a code of the handshake in place of the counter.
    is_code: bool,
    /// A counter has been seen; so has an option.
    seen: bool,
    option_seen: bool,
    /// The option came zeroed: it is passed over.
    option_is_broken: bool,
    /// Segments that are to carry the option whether a counter has moved or not.
    options_due: u8,
}

impl AccEcn {
    fn new(opening: Ecn) -> Self {
        Self {
            received: FIRST,
            told: FIRST,
            after_mark: false,
            opening,
            cep: FIRST_CEP,
            ceb: 0,
            stamp: 0,
            is_code: false,
            seen: false,
            option_seen: false,
            option_is_broken: false,
            options_due: 0,
        }
    }

    /// Bytes of the peer's that were marked since the last option; none: no option, or an older one.
    fn take_option(&mut self, options: &Options) -> Option<u64> {
        let option = options.accecn()?;
        if !self.option_seen {
            self.option_seen = true;
            self.option_is_broken = option.first() == Some(0);
        }
        if self.option_is_broken {
            return None;
        }
        let ceb = option.ceb()?;
        let more = ceb.wrapping_sub(self.ceb) & AccEcnOption::MASK;
        if more > AccEcnOption::MASK / 2 {
            return None;
        }
        self.ceb = ceb;
        Some(u64::from(more))
    }

    /// The option that tells of the counters: the code point that the peer uses first, and what may be
    /// left out is.
    fn option(&self) -> AccEcnOption {
        let now = &self.received;
        let low = |count: u64| count as u32 & AccEcnOption::MASK;
        let (e0b, ceb, e1b) = (low(now.e0b), low(now.ceb), low(now.e1b));
        let mut option = AccEcnOption::new(now.e1b > now.e0b, [e0b, ceb, e1b]);
        if now.e0b == FIRST.e0b || now.e1b == FIRST.e1b {
            option.truncate(2);
        }
        option
    }
}

/// Marked packets that an ACK tells of (appendix A.2): `delta` by the field alone, which may have wrapped
/// if more than seven of the `segments` were newly delivered, and `ceb` the marked bytes of the option.
fn marks(delta: u64, segments: u64, bytes: u64, ceb: Option<u64>, mss: u64) -> u64 {
    if segments <= ACE_MASK {
        return delta;
    }
    let safe = segments - (segments.wrapping_sub(delta) & ACE_MASK);
    match ceb {
        None => safe,
        Some(0) => delta,
        Some(ceb) if segments >= 2 * (ACE_MASK + 1) => {
            if ceb >= bytes {
                return safe;
            }
            let likely = (ceb * segments).div_ceil(bytes);
            safe.min(delta + (likely & !ACE_MASK))
        }
        Some(ceb) if ceb > delta * mss => safe,
        Some(ceb) if ceb < safe * mss / 2 => delta,
        Some(_) => safe,
    }
}

/// The three flags with this value.
fn ace(value: u64) -> Flags {
    let bit = |mask, flag| {
        if value & mask == 0 {
            Flags::default()
        } else {
            flag
        }
    };
    bit(4, Flags::AE)
        .with(bit(2, Flags::CWR))
        .with(bit(1, Flags::ECE))
}

/// The value of the three flags.
fn value(flags: Flags) -> u64 {
    let bit = |flag, mask| if flags.has(flag) { mask } else { 0 };
    bit(Flags::AE, 4) | bit(Flags::CWR, 2) | bit(Flags::ECE, 1)
}

/// How the handshake tells of an ECN field (section 3.1.2, table 2).
fn code(ecn: Ecn) -> u64 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// What an opening segment says of ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    None,
    Classic,
    Accurate,
}

impl Offer {
    /// A SYN: what is neither nothing nor classic is an offer of this, or of what may follow it.
    fn of_syn(flags: Flags) -> Self {
        match value(flags) {
            0b000 => Self::None,
            0b011 => Self::Classic,
            _ => Self::Accurate,
        }
    }

    /// The answer to a SYN that has offered this.
    fn of_syn_ack(flags: Flags) -> Self {
        match value(flags) {
            0b000 | 0b111 => Self::None,
            0b001 => Self::Classic,
            _ => Self::Accurate,
        }
    }
}

impl Profile {
    /// Whether this stack offers and accepts accurate feedback.
    pub(crate) fn wants_accecn(&self) -> bool {
        self.ecn && self.ecn_echo == EcnEcho::Accurate
    }
}

impl Endpoint {
    fn accecn(&mut self) -> &mut AccEcn {
        let accecn = &mut self.cold_mut().accecn;
        accecn.get_or_insert_with(|| Box::new(AccEcn::new(Ecn::NotEct)))
    }

    // ---- handshake ----

    /// The flags of a SYN or SYN-ACK.
    pub(crate) fn accecn_syn_flags(&mut self, is_syn_ack: bool) -> Flags {
        if is_syn_ack {
            return ace(code(self.accecn().opening));
        }
        if self.retransmissions().syn < ASKING_SYNS {
            return ace(0b111);
        }
        Flags::default()
    }

    /// A SYN-ACK tells of the counters from the start, if it is the first.
    pub(crate) fn add_opening_option(&mut self, cx: &Context<'_>, options: &mut Options) {
        if cx.profile.accecn_option && self.retransmissions().syn == 0 {
            options.set_accecn(self.accecn().option());
        }
    }

    /// A SYN has arrived at a stack that wants this.
    pub(crate) fn accecn_on_syn(&mut self, syn: &Segment) {
        let offer = Offer::of_syn(syn.flags);
        self.ecn.agreed = offer != Offer::None;
        self.ecn.accurate = offer == Offer::Accurate;
        if self.ecn.accurate {
            let accecn = self.accecn();
            accecn.opening = syn.ecn;
            accecn.options_due = 1;
        }
    }

    /// The SYN has arrived again. One that asks for nothing warns that ECN may not pass (section 3.1.4).
    pub(crate) fn accecn_on_repeated_syn(&mut self, syn: &Segment) {
        if self.ecn.accurate && Offer::of_syn(syn.flags) == Offer::None {
            self.ecn.agreed = false;
        }
    }

    /// A SYN-ACK has arrived at a stack that has asked for this.
    pub(crate) fn accecn_on_syn_ack(&mut self, segment: &Segment) {
        let asked_for_nothing = self.retransmissions().syn >= ASKING_SYNS;
        let offer = Offer::of_syn_ack(segment.flags);
        self.ecn.agreed = offer != Offer::None && !asked_for_nothing;
        self.ecn.accurate = offer == Offer::Accurate;
        if !self.ecn.accurate {
            return;
        }
        let accecn = self.accecn();
        accecn.opening = segment.ecn;
        if segment.ecn == Ecn::Ce {
            accecn.received.cep += 1;
        }
        accecn.options_due = 2;
    }

    /// The connection is open: every segment tells of the counter.
    pub(crate) fn accecn_on_established(&mut self) {
        let count = self.accecn().received.cep;
        self.receiver.echo = ace(count);
        self.unpredicted = true;
        self.optioned = true;
    }

    /// What the SYN-ACK tells of the SYN, which was not ECN-capable: a mark on it counts as any does; a
    /// code point that was not there was written on the way, so that nothing more is sent as capable.
    pub(crate) fn accecn_react_to_opening(&mut self, flags: Flags, cx: &Context<'_>) {
        match value(flags) {
            0b110 => self.on_echo(1, cx),
            0b011 | 0b100 => self.ecn.agreed = false,
            _ => {}
        }
    }

    /// The answer to a SYN-ACK tells of that one's ECN field, if it is a pure ACK (section 3.2.2.1).
    pub(crate) fn send_handshake_code(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let opening = self.accecn().opening;
        let counter = std::mem::replace(&mut self.receiver.echo, ace(code(opening)));
        self.send_pure_ack(cx, out);
        self.receiver.echo = counter;
    }

    /// The third segment has arrived at the server: a code if it is a pure ACK, else the counter.
    pub(crate) fn accecn_on_handshake_ack(&mut self, segment: &Segment, cx: &Context<'_>) {
        let is_pure = segment.len == 0 && !segment.flags.has(Flags::FIN);
        if !is_pure || segment.options.sack_blocks().len() > 0 {
            return;
        }
        let accecn = self.accecn();
        accecn.is_code = true;
        match value(segment.flags) {
            0b000 => {
                accecn.seen = true;
                self.ecn.agreed = false;
            }
            0b110 => {
                accecn.cep += 1;
                self.on_echo(1, cx);
            }
            0b011 | 0b100 => self.ecn.agreed = false,
            _ => {}
        }
    }

    // ---- what arrives ----

    /// Whether these are the flags of a segment that tells of the counter, and of nothing else.
    #[inline]
    pub(crate) fn counts_marks_by(&self, flags: Flags) -> bool {
        self.ecn.accurate && flags.without(ace(ACE_MASK)) == Flags::ACK
    }

    /// A segment has arrived: counts its mark, and asks for an ACK where the rules do (section 3.2.2.5).
    pub(crate) fn accecn_count(&mut self, segment: &Segment) {
        let len = u64::from(segment.len);
        let waits = len > 0 || self.receiver.next > self.receiver.acked();
        let accecn = self.accecn();
        let marked = segment.ecn == Ecn::Ce;
        let counters = &mut accecn.received;
        match segment.ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => counters.e0b += len,
            Ecn::Ect1 => counters.e1b += len,
            Ecn::Ce => {
                counters.cep += 1;
                counters.ceb += len;
            }
        }
        let is_change = marked && len > 0 && !accecn.after_mark;
        accecn.after_mark = marked;
        if !marked {
            return;
        }
        let most = if waits {
            MARKS_WITH_DATA
        } else {
            MARKS_WITHOUT
        };
        let count = accecn.received.cep;
        let is_due = is_change || count - accecn.told.cep >= most;
        self.receiver.echo = ace(count);
        self.receiver.ack_now |= is_due;
    }

    /// Marked packets that a segment tells of, of `segments` and `bytes` that it newly delivers.
    pub(crate) fn accecn_marks(
        &mut self,
        segment: &Segment,
        (segments, bytes): (u64, u64),
        cx: &Context<'_>,
    ) -> u64 {
        let agreed = self.ecn.agreed;
        let accecn = self.accecn();
        let stamps = segment.options.timestamps().map(|stamps| stamps.value);
        let is_newer = stamps.is_some_and(|stamp| stamp.wrapping_sub(accecn.stamp) as i32 > 0);
        accecn.stamp = stamps.unwrap_or(0);
        if std::mem::take(&mut accecn.is_code) {
            accecn.take_option(&segment.options);
            return 0;
        }
        // What tells nothing new may be an older segment that was overtaken.
        if bytes == 0 && segments == 0 && !is_newer {
            return 0;
        }
        let field = value(segment.flags);
        if !std::mem::replace(&mut accecn.seen, true) && field == 0 && segments < MARKS_WITHOUT {
            // Too few packets for the counter to have wrapped: the flags were cleared on the way.
            self.ecn.agreed = false;
            return 0;
        }
        let ceb = accecn.take_option(&segment.options);
        let delta = field.wrapping_sub(accecn.cep) & ACE_MASK;
        let count = marks(delta, segments, bytes, ceb, cx.profile.mss.0);
        accecn.cep += count;
        if agreed { count } else { 0 }
    }

    // ---- what leaves ----

    /// Whether accurate feedback is all that options are for, and the last segment has told all of it.
    #[inline]
    pub(crate) fn has_told_all_marks(&self) -> bool {
        let accecn = self.cold.as_ref().and_then(|cold| cold.accecn.as_ref());
        !self.stamping
            && accecn.is_some_and(|it| it.options_due == 0 && it.received == it.told)
            && self.ecn.accurate
    }

    /// A segment leaves: the option, if it is wanted and the counters of bytes have moved. SACK blocks,
    /// if there are any, find room for two.
    pub(crate) fn accecn_on_send(&mut self, cx: &Context<'_>, options: &mut Options) {
        let reports = self.sacking && self.receiver.has_reports();
        let has_stamps = self.stamping || cx.profile.sack_blocks < MAX_SACK_BLOCKS as u32;
        let accecn = self.accecn();
        let bytes = |counters: Counters| Counters { cep: 0, ..counters };
        let is_due = accecn.options_due > 0 || bytes(accecn.received) != bytes(accecn.told);
        accecn.told = accecn.received;
        if !is_due || !cx.profile.accecn_option {
            return;
        }
        accecn.options_due = accecn.options_due.saturating_sub(1);
        let mut option = accecn.option();
        if reports && has_stamps {
            option.truncate(FIELDS_BESIDE_SACK);
        }
        options.set_accecn(option);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use aqmlab_net::{RandomStream, Time};

    use super::*;
    use crate::profile::Recovery;
    use crate::rto::HostClock;

    fn stack() -> Profile {
        Profile {
            recovery: Recovery::RackTlp,
            ecn: true,
            ecn_echo: EcnEcho::Accurate,
            ..Profile::named("linux").expect("a shipped profile")
        }
    }

    fn flags(text: &str) -> Flags {
        ace(u64::from_str_radix(text, 2).expect("three bits"))
    }

    fn opening(flags: Flags, ecn: Ecn) -> Segment {
        let ack = u64::from(flags.has(Flags::ACK));
        Segment {
            seq: 0,
            ack,
            len: 0,
            flags: flags.with(Flags::SYN),
            ecn,
            options: Options::NONE,
        }
    }

    /// accecn_handshake.csv, row by row: what our side of each pair of stacks says, if it is one that
    /// wants this or a classic one.
    #[test]
    fn ae01_ae02_ae03_every_pair_of_stacks_agrees_as_in_the_table() {
        let rows = include_str!("../tests/data/modern/accecn_handshake.csv");
        let fields = [
            ("not_ect", Ecn::NotEct),
            ("ect1", Ecn::Ect1),
            ("ect0", Ecn::Ect0),
            ("ce", Ecn::Ce),
        ];
        let profile = |word: &str| Profile {
            ecn: word != "none",
            ecn_echo: match word {
                "accecn" => EcnEcho::Accurate,
                _ => EcnEcho::UntilCwr,
            },
            ..stack()
        };
        let host = HostClock::default();
        let mut count = 0;
        for row in rows.lines().skip(1) {
            let cells: Vec<&str> = row.splitn(7, ',').collect();
            let ecn = fields.iter().find(|(word, _)| *word == cells[3]).unwrap().1;
            let mut out = Vec::new();
            if matches!(cells[1], "accecn" | "classic" | "none") {
                let profile = profile(cells[1]);
                let (now, host) = (Time::ZERO, &host);
                let cx = Context {
                    now,
                    profile: &profile,
                    host,
                };
                let mut server = Endpoint::listen(&profile);
                server.on_segment(&opening(flags(cells[2]), ecn), cx, &mut out);
                let answer = out.pop().expect("a SYN-ACK");
                let expected = Flags::SYN.with(Flags::ACK).with(flags(cells[4]));
                assert_eq!(answer.flags, expected, "{row}");
            }
            let profile = profile(cells[0]);
            let cx = Context {
                now: Time::ZERO,
                profile: &profile,
                host: &host,
            };
            for (_, back) in fields {
                let mut client = Endpoint::connect(cx, &mut out);
                let syn = out.pop().expect("a SYN");
                assert_eq!(syn.flags, Flags::SYN.with(flags(cells[2])), "{row}");
                let answer = opening(Flags::ACK.with(flags(cells[4])), back);
                client.on_segment(&answer, cx, &mut out);
                let mode = match (client.ecn.accurate, client.ecn.agreed) {
                    (true, _) => "accecn",
                    (false, true) => "classic",
                    (false, false) => "none",
                };
                assert_eq!(mode, cells[5], "{row}");
                let third = out.pop().expect("an ACK");
                let told = if mode == "accecn" {
                    ace(code(back))
                } else {
                    Flags::default()
                };
                assert_eq!(third.flags, Flags::ACK.with(told), "{row}");
            }
            count += 1;
        }
        assert_eq!(count, 16);
    }

    /// accecn_ace.csv, row by row: by the field alone, safely, and with the option.
    #[test]
    fn ae09_ae10_marks_are_decoded_as_in_the_table() {
        let rows = include_str!("../tests/data/modern/accecn_ace.csv");
        let mut totals = [0_u64; 3];
        let mut count = 0;
        for row in rows.lines().skip(1) {
            let cells: Vec<u64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
            let (segments, field, ceb) = (cells[1], cells[3], cells[4]);
            let delta = |total: u64| field.wrapping_sub(FIRST_CEP + total) & ACE_MASK;
            let bytes = 1448 * segments;
            let counts = [
                delta(totals[0]),
                marks(delta(totals[1]), segments, bytes, None, 1448),
                marks(delta(totals[2]), segments, bytes, Some(ceb), 1448),
            ];
            assert_eq!(counts, [cells[5], cells[6], cells[8]], "{row}");
            assert_eq!(counts[1], cells[7], "{row}");
            for (total, count) in totals.iter_mut().zip(counts) {
                *total += count;
            }
            assert_eq!(totals, [cells[9], cells[10], cells[11]], "{row}");
            count += 1;
        }
        assert_eq!(count, 18);
    }

    /// A bulk transfer of so many segments whose data is marked with a probability, and whose ACKs are lost
    /// with another: marks as the receiver has counted them, as the sender has, and as they were made.
    fn transfer(profile: &Profile, marked: f64, lost: f64, segments: u64) -> [u64; 3] {
        let host = HostClock::default();
        let mut draws = RandomStream::new(1, "marks", 0);
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        let cx = |now| Context {
            now,
            profile,
            host: &host,
        };
        let mut ends = [
            Endpoint::listen(profile),
            Endpoint::connect(cx(now), &mut out),
        ];
        let mut under_way: VecDeque<(Time, usize, Segment)> = VecDeque::new();
        let (mut made, mut from) = (0, 1);
        loop {
            for mut segment in out.drain(..) {
                let is_ack = segment.len == 0 && !segment.flags.has(Flags::SYN);
                if segment.ecn.is_capable() && draws.uniform() < marked {
                    segment.ecn = Ecn::Ce;
                    made += 1;
                }
                if !(is_ack && from == 0 && draws.uniform() < lost) {
                    under_way.push_back((now + Time::from_millis(5), 1 - from, segment));
                }
            }
            let wakes = [0, 1].map(|end| (ends[end].wake_at(), end));
            let (wake, sleeper) = wakes.into_iter().min().expect("two ends");
            match under_way.front() {
                Some(&(at, to, segment)) if at <= wake => {
                    under_way.pop_front();
                    (now, from) = (at, to);
                    let events = ends[to].on_segment(&segment, cx(now), &mut out);
                    if events.established && to == 1 {
                        ends[to].write(segments * profile.mss.0, cx(now), &mut out);
                    }
                }
                _ if wake == Time::NEVER => break,
                _ => {
                    (now, from) = (wake, sleeper);
                    ends[sleeper].on_timer(cx(now), &mut out);
                }
            }
        }
        let counted = ends[0].accecn().received.cep - FIRST_CEP;
        let told = ends[1].accecn().cep - FIRST_CEP;
        [counted, told, made]
    }

    #[test]
    fn ae06_ae07_marks_are_told_exactly_whatever_the_delay_of_acks() {
        for accecn_option in [false, true] {
            let profile = Profile {
                accecn_option,
                ..stack()
            };
            for marked in [0.01, 0.1, 0.5, 1.0] {
                let [counted, told, made] = transfer(&profile, marked, 0.0, 3000);
                assert_eq!((counted, told), (made, made), "{marked}");
                assert!(made > 10, "{made}");
            }
        }
    }

    #[test]
    fn ae09_where_acks_are_lost_the_safe_reading_never_misses_a_mark() {
        let profile = Profile {
            accecn_option: false,
            ..stack()
        };
        let [counted, told, made] = transfer(&profile, 0.1, 0.5, 3000);
        assert_eq!(counted, made);
        assert!((made..3 * made).contains(&told), "{told} of {made}");
        // The option leaves less to guess.
        let [_, told, made] = transfer(&stack(), 0.1, 0.5, 3000);
        assert!((made..made + made / 4).contains(&told), "{told} of {made}");
    }
}
