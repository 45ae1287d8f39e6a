//! Accurate ECN feedback: B. Briscoe, M. Kühlewind, R. Scheffenegger, "More Accurate Explicit Congestion
//! Notification (AccECN) Feedback in TCP", RFC 9768, 2025. The receiver counts marks and tells of the
//! counter in three flags of every segment; an option counts the bytes of each code point.
//!
//! Left out: the reset of a connection whose opening mixes classic and accurate SYNs, and the test whether
//! everything is marked. SYNs and pure ACKs are not ECN-capable.

use aqmlab_net::Ecn;

use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::profile::{EcnEcho, Profile};
use crate::segment::{AccEcnOption, Flags, Options, Outbox, Segment};

/// What the counter of marked packets starts at (section 3.2.1).
pub(crate) const FIRST_CEP: u64 = 5;
/// The field has three bits.
const ACE_MASK: u64 = 7;
/// Marks since the last ACK that call for one where no data waits for its own (section 3.2.2.5).
pub(crate) const MARKS_WITHOUT_DATA: u64 = 3;
/// SYNs that ask for it: the second one may have been lost like the first, a third asks for nothing.
const ASKING_SYNS: u32 = 2;
/// The state of a connection that has agreed on accurate feedback.
#[derive(Clone, Debug)]
pub(crate) struct AccEcn {
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
}

impl AccEcn {
    fn new() -> Self {
        Self {
            cep: FIRST_CEP,
            ceb: 0,
            stamp: 0,
            is_code: false,
            seen: false,
            option_seen: false,
            option_is_broken: false,
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
pub(crate) fn ace(value: u64) -> Flags {
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
pub(crate) fn code(ecn: Ecn) -> u64 {
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
        accecn.get_or_insert_with(|| Box::new(AccEcn::new()))
    }

    // ---- handshake ----

    /// The flags of a SYN.
    pub(crate) fn accecn_offer(&self) -> Flags {
        if self.retransmissions().syn < ASKING_SYNS {
            return ace(0b111);
        }
        Flags::default()
    }

    /// A SYN has arrived at a stack that wants this.
    pub(crate) fn accecn_on_syn(&mut self, syn: &Segment) {
        let offer = Offer::of_syn(syn.flags);
        self.ecn.agreed = offer != Offer::None;
        self.ecn.accurate = offer == Offer::Accurate;
        if self.ecn.accurate {
            self.receiver.count_marks(syn.ecn, false, 1);
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
        if self.ecn.accurate {
            let marked = segment.ecn == Ecn::Ce;
            self.receiver.count_marks(segment.ecn, marked, 2);
        }
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

    /// The answer to a SYN-ACK if it is a pure ACK.
    pub(crate) fn send_opening_code(&mut self, cx: &Context<'_>, out: &mut impl Outbox) {
        let ecn = self.code_point_of_control(false, cx);
        self.receiver.send_opening_code(self.nxt, ecn, cx, out);
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
        if !std::mem::replace(&mut accecn.seen, true) && field == 0 && segments < MARKS_WITHOUT_DATA
        {
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
        let counted = ends[0].receiver.marked_packets();
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
