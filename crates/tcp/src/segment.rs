//! What end points exchange.

use aqmlab_net::{Ecn, Time};

/// A TCP segment: its header fields and the length of its payload.
///
/// Sequence numbers start at 0 (the SYN) and do not wrap: what carries a segment may cut them to
/// 32 bits and must restore them with [`Segment::unwrap_seq`]. The offered window is not carried:
/// readers are prompt, so it is always the receiver's whole buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte (or of the SYN or FIN if there is no payload).
    pub seq: u64,
    /// Next sequence number expected from the peer; meaningful with [`Flags::ACK`].
    pub ack: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Control bits.
    pub flags: Flags,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// TCP options; most segments have none.
    pub options: Options,
}

impl Segment {
    /// The sequence number nearest to `reference` whose low 32 bits are `low`.
    pub const fn unwrap_seq(low: u32, reference: u64) -> u64 {
        reference.wrapping_add_signed(low.wrapping_sub(reference as u32) as i32 as i64)
    }

    /// What a host answers to a segment of a connection that it does not have: a reset, but never
    /// to a reset (RFC 9293, section 3.5.2).
    pub fn refusal(&self) -> Option<Self> {
        let has = |flag| u64::from(self.flags.has(flag));
        let (seq, ack, flags) = if self.flags.has(Flags::ACK) {
            (self.ack, 0, Flags::RST)
        } else {
            let end = self.seq + u64::from(self.len) + has(Flags::SYN) + has(Flags::FIN);
            (0, end, Flags::RST.with(Flags::ACK))
        };
        (!self.flags.has(Flags::RST)).then_some(Self {
            seq,
            ack,
            len: 0,
            flags,
            ecn: Ecn::NotEct,
            options: Options::NONE,
        })
    }
}

/// No connection sends as much: such numbers come from restoring what was cut to 32 bits.
pub(crate) const NO_NUMBER: u64 = u64::MAX / 2;

/// Which time stamps segments carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// Milliseconds; the echo is that of RFC 7323, section 4.3.
    Rfc7323,
    /// Microseconds; the echo is that of the segment received last.
    Microseconds,
    /// The same, and the transit time of the segment received last.
    Transit,
}

/// Where end points put what they send. It also learns what they measure and repair meanwhile.
pub trait Outbox {
    /// A segment leaves.
    fn send(&mut self, segment: Segment);

    /// A segment leaves where nearly all leave: this may take space.
    #[inline(always)]
    fn send_common(&mut self, segment: Segment) {
        self.send(segment);
    }

    /// The end point has measured a round trip of its data.
    #[inline]
    fn on_round_trip(&mut self, _sample: &RoundTrip) {}

    /// A segment of this kind is sent again.
    #[inline]
    fn on_retransmission(&mut self, _kind: SegmentKind) {}
}

/// A sample of the round trip, as the retransmission timer gets it: of a segment that was timed and
/// never sent again (Karn), or by time stamps; not of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// From sending to the acknowledgement, a receiver's delay of its ACK included. With time
    /// stamps in their milliseconds, else exact, however coarse the clock of the retransmission
    /// timer is.
    pub time: Time,
    /// The smoothed round trip with this sample, on the timer's clock.
    pub smoothed: Time,
    /// The congestion window at this time in bytes, with what fast recovery has added.
    pub cwnd: u64,
}

/// What a segment is sent again for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A SYN or a SYN-ACK.
    Syn,
    /// A FIN without data.
    Fin,
    /// Data.
    Data,
}

impl Outbox for Vec<Segment> {
    fn send(&mut self, segment: Segment) {
        self.push(segment);
    }
}

/// The most SACK blocks that the option space holds (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// The TCP options of a segment. What carries a segment may keep them aside: they are empty but on
/// SYNs, while the receiver has holes, and with time stamps.
///
/// As in a real header, time stamps take the space of a SACK block: three blocks fit beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// SACK blocks from the front, two words each; time stamps in the last three words.
    words: [u32; WORDS],
    blocks: u8,
    bits: u8,
}

/// The option of Accurate ECN (RFC 9768, section 3.2.3): bytes of payload that have arrived, by code
/// point and modulo 2^24. The last ones may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcnOption {
    /// In the order of the option: bytes of CE in the middle, those of ECT(1) first or last.
    fields: [u32; 3],
    count: u8,
    ect1_first: bool,
}

impl AccEcnOption {
    /// The largest value of a field.
    pub(crate) const MASK: u32 = (1 << 24) - 1;

    /// All three counters, of bytes in ECT(0), CE and ECT(1) packets; `ect1_first`: order 1.
    pub const fn new(ect1_first: bool, [e0b, ceb, e1b]: [u32; 3]) -> Self {
        let fields = if ect1_first {
            [e1b, ceb, e0b]
        } else {
            [e0b, ceb, e1b]
        };
        Self {
            fields,
            count: 3,
            ect1_first,
        }
    }

    /// Leaves all but the first `count` fields out.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count as u8);
        self.fields[usize::from(self.count)..].fill(0);
    }

    /// Whether the bytes of ECT(1) packets come first.
    pub const fn is_ect1_first(&self) -> bool {
        self.ect1_first
    }

    /// The counters that are there, in the order of the option.
    pub fn fields(&self) -> &[u32] {
        &self.fields[..usize::from(self.count)]
    }

    /// The first counter.
    pub(crate) fn first(&self) -> Option<u32> {
        self.fields().first().copied()
    }

    /// Bytes of CE packets.
    pub(crate) fn ceb(&self) -> Option<u32> {
        self.fields().get(1).copied()
    }
}

const WORDS: usize = 2 * MAX_SACK_BLOCKS + 1;
/// Where the time stamps begin.
const STAMPS: usize = WORDS - 3;

const SACK_PERMITTED: u8 = 1;
const HAS_STAMPS: u8 = 2;
const HAS_TRANSIT: u8 = 4;
const ECT1_FIRST: u8 = 8;
/// Fields of the option of Accurate ECN, in two bits.
const ACCECN_SHIFT: u8 = 4;

/// The time stamps of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock: milliseconds (RFC 7323), microseconds (Sync-TCP, Santa Cruz).
    pub value: u32,
    /// The time stamp that is echoed to the peer.
    pub echo: u32,
    /// Sync-TCP: transit time of the segment whose time stamp is echoed, in microseconds; the two
    /// hosts' clocks may differ by any constant.
    pub transit: Option<u32>,
}

impl Options {
    /// No option.
    pub const NONE: Self = Self {
        words: [0; WORDS],
        blocks: 0,
        bits: 0,
    };

    /// Whether there is no option at all.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bits == 0 && self.blocks == 0
    }

    /// On a SYN: SACK options may be sent to this end (RFC 2018, section 2).
    pub const fn sack_permitted(&self) -> bool {
        self.bits & SACK_PERMITTED != 0
    }

    /// Says so.
    pub const fn permit_sack(&mut self) {
        self.bits |= SACK_PERMITTED;
    }

    /// The SACK blocks: first sequence number and the one behind the last, cut to 32 bits.
    pub fn sack_blocks(&self) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let (blocks, _) = self.words.as_chunks::<2>();
        blocks[..usize::from(self.blocks)]
            .iter()
            .map(|&[from, to]| (from, to))
    }

    /// Adds a SACK block, of full sequence numbers; one that finds no space is left out.
    pub fn push_sack_block(&mut self, from: u64, to: u64) {
        let stamps = usize::from(self.bits & HAS_STAMPS != 0);
        let space = MAX_SACK_BLOCKS - stamps - usize::from(self.accecn_fields() > 0);
        let index = usize::from(self.blocks);
        if index < space {
            self.words[2 * index] = from as u32;
            self.words[2 * index + 1] = to as u32;
            self.blocks += 1;
        }
    }

    /// The time stamps (RFC 7323) or, of Sync-TCP, time stamps and a transit time.
    pub fn timestamps(&self) -> Option<Timestamps> {
        (self.bits & HAS_STAMPS != 0).then(|| Timestamps {
            value: self.words[STAMPS],
            echo: self.words[STAMPS + 1],
            transit: (self.bits & HAS_TRANSIT != 0).then_some(self.words[STAMPS + 2]),
        })
    }

    /// Adds time stamps; a fourth SACK block gives way.
    pub fn set_timestamps(&mut self, stamps: Timestamps) {
        self.blocks = self.blocks.min(MAX_SACK_BLOCKS as u8 - 1);
        let accecn = self.accecn();
        self.bits |= HAS_STAMPS;
        self.words[STAMPS] = stamps.value;
        self.words[STAMPS + 1] = stamps.echo;
        if let Some(transit) = stamps.transit {
            self.bits |= HAS_TRANSIT;
            self.words[STAMPS + 2] = transit;
        }
        if let Some(option) = accecn {
            self.set_accecn(option);
        }
    }

    const fn accecn_fields(&self) -> u8 {
        (self.bits >> ACCECN_SHIFT) & 3
    }

    /// Where the option of Accurate ECN has its fields: what time stamps leave.
    const fn accecn_words(&self) -> [usize; 3] {
        if self.bits & HAS_STAMPS == 0 {
            [WORDS - 1, WORDS - 2, WORDS - 3]
        } else {
            [WORDS - 1, STAMPS - 1, STAMPS - 2]
        }
    }

    /// The option of Accurate ECN.
    pub fn accecn(&self) -> Option<AccEcnOption> {
        let count = self.accecn_fields();
        let mut option = AccEcnOption {
            fields: self.accecn_words().map(|at| self.words[at]),
            count,
            ect1_first: self.bits & ECT1_FIRST != 0,
        };
        option.truncate(3);
        (count > 0).then_some(option)
    }

    /// Adds the option of Accurate ECN, before SACK blocks and behind time stamps without a transit
    /// time; a SACK block fewer fits.
    pub fn set_accecn(&mut self, option: AccEcnOption) {
        for (at, &field) in self.accecn_words().into_iter().zip(option.fields()) {
            self.words[at] = field;
        }
        self.bits |= (option.count << ACCECN_SHIFT) | (u8::from(option.ect1_first) * ECT1_FIRST);
    }

    /// Bytes of header that SACK blocks and the option of Accurate ECN take, with the no-operations that
    /// align them. What every segment of a stack carries is part of its profile's header.
    pub const fn extra_len(&self) -> u32 {
        let sack = match self.blocks {
            0 => 0,
            blocks => 4 + 8 * blocks as u32,
        };
        let accecn = match self.accecn_fields() {
            0 => 0,
            fields => (2 + 3 * fields as u32).next_multiple_of(4),
        };
        sack + accecn
    }
}

/// The control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Synchronize: opens a connection; counts one in sequence space.
    pub const SYN: Self = Self(1);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(2);
    /// The sender has no more data; counts one in sequence space.
    pub const FIN: Self = Self(4);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(8);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(16);
    /// Reset: the connection is gone.
    pub const RST: Self = Self(32);
    /// Accurate ECN (RFC 9768): with CWR and ECE a counter of marks.
    pub const AE: Self = Self(64);
    /// The three bits of that counter.
    pub const ACE: Self = Self(Self::AE.0 | Self::CWR.0 | Self::ECE.0);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no bit is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is set beside the bits of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The union with `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_fills_a_cache_line_at_most() {
        assert!(size_of::<Segment>() <= 64);
    }

    /// A segment without payload.
    fn bare(flags: Flags, seq: u64, ack: u64) -> Segment {
        Segment {
            seq,
            ack,
            len: 0,
            flags,
            ecn: Ecn::NotEct,
            options: Options::NONE,
        }
    }

    #[test]
    fn a_closed_port_resets() {
        let answer = bare(Flags::SYN, 1000, 0).refusal();
        assert_eq!(answer, Some(bare(Flags::RST.with(Flags::ACK), 0, 1001)));
        let answer = bare(Flags::ACK, 5, 77).refusal();
        assert_eq!(answer, Some(bare(Flags::RST, 77, 0)));
    }

    #[test]
    fn a_reset_is_never_answered_by_a_reset() {
        assert_eq!(bare(Flags::RST, 5, 0).refusal(), None);
        assert_eq!(bare(Flags::RST.with(Flags::ACK), 5, 7).refusal(), None);
    }

    #[test]
    fn numbers_cut_to_32_bits_are_restored_modulo() {
        // Sent up to 2^32 + 16, acknowledged up to 2^32 - 16.
        let una = (1 << 32) - 16;
        assert_eq!(Segment::unwrap_seq(8, una), (1 << 32) + 8);
        assert_eq!(Segment::unwrap_seq(0x20, una), (1 << 32) + 0x20);
        assert_eq!(Segment::unwrap_seq(0xffff_fff0, una), una);
        assert_eq!(Segment::unwrap_seq(0xffff_ff00, una), una - 0xf0);
    }

    #[test]
    fn three_sack_blocks_fit_beside_time_stamps() {
        let mut options = Options::NONE;
        assert!(options.is_empty());
        let stamps = Timestamps {
            value: 1,
            echo: 2,
            transit: Some(3),
        };
        for n in 0..5 {
            options.push_sack_block(10 * n, 10 * n + 5);
        }
        assert_eq!((options.sack_blocks().len(), options.extra_len()), (4, 36));
        options.set_timestamps(stamps);
        options.push_sack_block(90, 95);
        assert_eq!(options.timestamps(), Some(stamps));
        let blocks: Vec<_> = options.sack_blocks().collect();
        assert_eq!(blocks, [(0, 5), (10, 15), (20, 25)]);
        options.permit_sack();
        assert!(options.sack_permitted() && !options.is_empty());
    }

    #[test]
    fn ae17_the_option_of_accurate_ecn_finds_room_beside_time_stamps_and_two_blocks() {
        let stamps = Timestamps {
            value: 1,
            echo: 2,
            transit: None,
        };
        // Four bytes and eight of each block; two and three of each field, up to a multiple of four.
        for (stamped, fields, blocks, len) in [(false, 3, 3, 28 + 12), (true, 2, 2, 20 + 8)] {
            let mut options = Options::NONE;
            if stamped {
                options.set_timestamps(stamps);
            }
            let mut option = AccEcnOption::new(true, [7, 8, 9]);
            option.truncate(fields);
            options.set_accecn(option);
            for n in 0..4 {
                options.push_sack_block(10 * n, 10 * n + 5);
            }
            assert_eq!(options.accecn(), Some(option));
            assert_eq!(option.fields(), &[9, 8, 7][..fields]);
            assert_eq!(options.sack_blocks().len(), blocks);
            assert_eq!(options.timestamps(), stamped.then_some(stamps));
            assert_eq!(options.extra_len(), len);
        }
    }
}
