//! Accurate ECN feedback: B. Briscoe, M. Kühlewind, R. Scheffenegger, "More Accurate Explicit Congestion
//! Notification (AccECN) Feedback in TCP", RFC 9768, 2025. The receiver counts marks and reports the
//! counter in three flags of every segment; an option counts the bytes of each code point. Here is how the
//! flags are read and written; the receiver counts, the sender with a log reads the counters.
//!
//! Left out: the reset of a connection whose opening mixes classic and accurate SYNs, and the test whether
//! everything is marked. SYNs and pure ACKs are not ECN-capable.

use aqmlab_net::Ecn;

use crate::profile::{EcnEcho, Profile};
use crate::segment::Flags;

/// What the counter of marked packets starts at (section 3.2.1).
pub(crate) const FIRST_CEP: u64 = 5;
/// The field has three bits.
pub(crate) const ACE_MASK: u64 = 7;
/// Marks since the last ACK that call for one where no data waits for its own (section 3.2.2.5).
pub(crate) const MARKS_WITHOUT_DATA: u64 = 3;
/// SYNs that ask for it: the second one may have been lost like the first, a third asks for nothing.
pub(crate) const ASKING_SYNS: u32 = 2;

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
pub(crate) fn value(flags: Flags) -> u64 {
    let bit = |flag, mask| if flags.has(flag) { mask } else { 0 };
    bit(Flags::AE, 4) | bit(Flags::CWR, 2) | bit(Flags::ECE, 1)
}

/// How the handshake reports an ECN field (section 3.1.2, table 2).
pub(crate) fn code(ecn: Ecn) -> u64 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The flags of a SYN that offers accurate feedback, when so many have been sent before.
pub(crate) fn offer(resent: u32) -> Flags {
    if resent < ASKING_SYNS {
        return ace(0b111);
    }
    Flags::default()
}

/// Whether these are the flags of an ACK that carries the counter, and nothing else.
#[inline]
pub(crate) fn is_ack_with_counter(flags: Flags) -> bool {
    flags.without(ace(ACE_MASK)) == Flags::ACK
}

/// What an opening segment says of ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    None,
    Classic,
    Accurate,
}

impl Offer {
    /// A SYN: what is neither nothing nor classic is an offer of this, or of what may follow it.
    pub(crate) fn of_syn(flags: Flags) -> Self {
        match value(flags) {
            0b000 => Self::None,
            0b011 => Self::Classic,
            _ => Self::Accurate,
        }
    }

    /// The answer to a SYN that has offered this.
    pub(crate) fn of_syn_ack(flags: Flags) -> Self {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use aqmlab_net::{RandomStream, Time};

    use super::*;
    use crate::agreed::Agreed;
    use crate::context::Context;
    use crate::endpoint::Endpoint;
    use crate::profile::Recovery;
    use crate::rto::HostClock;
    use crate::segment::{Options, Segment};

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
                let agreed = client.sender().space().agreed();
                let (accurate, ecn) = (agreed.has(Agreed::ACCURATE), agreed.has(Agreed::ECN));
                let mode = match (accurate, ecn) {
                    (true, _) => "accecn",
                    (false, true) => "classic",
                    (false, false) => "none",
                };
                assert_eq!(mode, cells[5], "{row}");
                let third = out.pop().expect("an ACK");
                let reported = if mode == "accecn" {
                    ace(code(back))
                } else {
                    Flags::default()
                };
                assert_eq!(third.flags, Flags::ACK.with(reported), "{row}");
            }
            count += 1;
        }
        assert_eq!(count, 16);
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
        let counted = ends[0].receiver().marked_packets();
        let reported = ends[1].sender().reported_marks();
        [counted, reported, made]
    }

    #[test]
    fn ae06_ae07_marks_are_told_exactly_whatever_the_delay_of_acks() {
        for accecn_option in [false, true] {
            let profile = Profile {
                accecn_option,
                ..stack()
            };
            for marked in [0.01, 0.1, 0.5, 1.0] {
                let [counted, reported, made] = transfer(&profile, marked, 0.0, 3000);
                assert_eq!((counted, reported), (made, made), "{marked}");
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
        let [counted, reported, made] = transfer(&profile, 0.1, 0.5, 3000);
        assert_eq!(counted, made);
        assert!((made..3 * made).contains(&reported), "{reported} of {made}");
        // The option leaves less to guess.
        let [_, reported, made] = transfer(&stack(), 0.1, 0.5, 3000);
        assert!(
            (made..made + made / 4).contains(&reported),
            "{reported} of {made}"
        );
    }
}
