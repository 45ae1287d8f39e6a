//! What is on the wire: variable-length integers, packet numbers and frames (RFC 9000, sections 16, 17
//! and 19), and the form in which they are carried here.
//!
//! Carried are the numbers that say something, each in eight bytes, since nobody looks at them on their
//! way. What they take on the wire is counted. The rest is counted and left out: what streams and the
//! handshake carry, padding, connection ids, versions, lengths of packets and the tag behind each. A
//! carried datagram begins with its size on the wire. No frame type is above 0x1e, so that a byte from
//! 0x40 on where a frame could begin begins the next packet.

/// Largest number that a variable-length integer holds.
pub(crate) const LARGEST: u64 = (1 << 62) - 1;

/// Most streams of a kind.
const MOST_STREAMS: u64 = 1 << 60;

/// Bytes of the tag behind every packet (RFC 9001, section 5.3).
pub(crate) const TAG: usize = 16;

/// Bytes of each connection id.
pub(crate) const ID: usize = 8;

/// Bytes of the token that resets a connection without a state.
const RESET_TOKEN: usize = 16;

/// Bytes of a short header without the packet number.
pub(crate) const SHORT: usize = 1 + ID;

/// Bytes of a long header without the packet number: version, both ids with their lengths, and the
/// length of the packet in two bytes.
pub(crate) const LONG: usize = 1 + 4 + 1 + ID + 1 + ID + 2;

/// Bytes of the size in front of a carried datagram.
pub(crate) const PREFIX: usize = 2;

/// Most numbers that are carried behind a byte.
const MOST_FIELDS: usize = 4;

/// Bytes of the type, the stream and the offset of a stream frame.
#[inline]
pub(crate) const fn stream_head(stream: u64, offset: u64) -> usize {
    1 + length(stream) + if offset > 0 { length(offset) } else { 0 }
}

/// Bytes of a variable-length integer.
#[inline]
pub(crate) const fn length(value: u64) -> usize {
    match value {
        0..=63 => 1,
        64..=16_383 => 2,
        16_384..=1_073_741_823 => 4,
        _ => 8,
    }
}

/// Bytes that a packet number takes when `acknowledged` is the largest one that the peer has
/// acknowledged: more than twice the distance fits (RFC 9000, section 17.1).
pub(crate) fn number_length(number: u64, acknowledged: Option<u64>) -> usize {
    let distance = match acknowledged {
        Some(acknowledged) => number - acknowledged,
        None => number + 1,
    };
    match 2 * distance {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

/// The packet number of which `truncated` are the lowest `bytes` bytes, the next one expected being
/// `expected` (RFC 9000, appendix A.3).
pub(crate) fn full_number(expected: u64, truncated: u64, bytes: usize) -> u64 {
    let window = 1 << (8 * bytes);
    let candidate = (expected & !(window - 1)) | truncated;
    if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// The kinds of packets that have numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of the first flight, and what answers it.
    Initial,
    /// Data in a client's first flight.
    ZeroRtt,
    /// Of the rest of the handshake.
    Handshake,
    /// Everything else.
    OneRtt,
}

impl Kind {
    /// The first byte, without the length of the packet number.
    const fn first_byte(self) -> u8 {
        match self {
            Self::Initial => 0xc0,
            Self::ZeroRtt => 0xd0,
            Self::Handshake => 0xe0,
            Self::OneRtt => 0x40,
        }
    }

    /// Bytes on the wire before the packet number.
    pub(crate) const fn header(self) -> usize {
        match self {
            Self::OneRtt => SHORT,
            // The length of a token, which nobody has.
            Self::Initial => LONG + 1,
            Self::ZeroRtt | Self::Handshake => LONG,
        }
    }
}

/// A frame, without the acknowledgements, which are longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Ping,
    Reset {
        stream: u64,
        error: u64,
        size: u64,
    },
    StopSending {
        stream: u64,
        error: u64,
    },
    Crypto {
        offset: u64,
        len: u64,
    },
    Stream {
        stream: u64,
        offset: u64,
        len: u64,
        fin: bool,
    },
    MaxData(u64),
    MaxStreamData {
        stream: u64,
        limit: u64,
    },
    MaxStreams {
        uni: bool,
        limit: u64,
    },
    DataBlocked(u64),
    StreamDataBlocked {
        stream: u64,
        limit: u64,
    },
    NewConnectionId(u64),
    Close {
        error: u64,
    },
    HandshakeDone,
}

/// The acknowledgement of a packet number space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckFrame {
    /// In units of 2^ack_delay_exponent microseconds.
    pub(crate) delay: u64,
    /// `[from, to)`, the largest first.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// ECT(0), ECT(1) and CE.
    pub(crate) ecn: Option<[u64; 3]>,
}

/// Writes the carried form, and counts what is on the wire.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) wire: usize,
}

impl Writer<'_> {
    /// Numbers that do not count, behind a byte.
    #[inline(always)]
    fn carry<const COUNT: usize>(&mut self, first: u8, values: [u64; COUNT]) {
        let mut bytes = [0; 1 + 8 * MOST_FIELDS];
        bytes[0] = first;
        for (place, value) in bytes[1..].chunks_exact_mut(8).zip(values) {
            debug_assert!(value <= LARGEST);
            place.copy_from_slice(&value.to_le_bytes());
        }
        self.out.extend_from_slice(&bytes[..1 + 8 * COUNT]);
    }

    /// The type of a frame, and its numbers.
    #[inline(always)]
    fn fields<const COUNT: usize>(&mut self, kind: u8, values: [u64; COUNT]) {
        self.carry(kind, values);
        self.wire += 1 + values.iter().map(|value| length(*value)).sum::<usize>();
    }

    /// The header of a packet, and the room of its tag.
    #[inline]
    pub(crate) fn header(&mut self, kind: Kind, number: u64, bytes: usize) {
        self.wire += kind.header() + bytes + TAG;
        self.carry(kind.first_byte() | (bytes - 1) as u8, [number]);
    }

    /// A stream frame whose fields in front of the data take `head` bytes. One that ends its packet
    /// needs no length.
    #[inline]
    pub(crate) fn stream(
        &mut self,
        stream: u64,
        (offset, len): (u64, u64),
        fin: bool,
        head: usize,
    ) {
        let has_offset = if offset > 0 { 0x04 } else { 0 };
        let kind = 0x08 | has_offset | 0x02 | u8::from(fin);
        self.carry(kind, [stream, offset, len]);
        self.wire += head + len as usize;
    }

    #[inline]
    pub(crate) fn frame(&mut self, frame: &Frame) {
        match *frame {
            Frame::Ping => self.fields(0x01, []),
            Frame::Reset {
                stream,
                error,
                size,
            } => self.fields(0x04, [stream, error, size]),
            Frame::StopSending { stream, error } => self.fields(0x05, [stream, error]),
            Frame::Crypto { offset, len } => {
                self.fields(0x06, [offset, len]);
                self.wire += len as usize;
            }
            Frame::Stream {
                stream,
                offset,
                len,
                fin,
            } => {
                let head = stream_head(stream, offset) + length(len);
                self.stream(stream, (offset, len), fin, head);
            }
            Frame::MaxData(limit) => self.fields(0x10, [limit]),
            Frame::MaxStreamData { stream, limit } => self.fields(0x11, [stream, limit]),
            Frame::MaxStreams { uni, limit } => self.fields(0x12 | u8::from(uni), [limit]),
            Frame::DataBlocked(limit) => self.fields(0x14, [limit]),
            Frame::StreamDataBlocked { stream, limit } => self.fields(0x15, [stream, limit]),
            Frame::NewConnectionId(number) => {
                self.fields(0x18, [number]);
                // Which are retired, the id's length, the id, and the token of a stateless reset.
                self.wire += 1 + 1 + ID + RESET_TOKEN;
            }
            Frame::Close { error } => {
                self.fields(0x1c, [error]);
                // The frame type at fault, and the length of a reason that nobody gives.
                self.wire += 1 + 1;
            }
            Frame::HandshakeDone => self.fields(0x1e, []),
        }
    }

    /// An acknowledgement of `ranges`, the newest first, as many as `room` bytes hold (RFC 9000, section
    /// 19.3). The smallest number that it acknowledges.
    pub(crate) fn ack(
        &mut self,
        delay: u64,
        ranges: impl Iterator<Item = (u64, u64)>,
        ecn: Option<[u64; 3]>,
        room: usize,
    ) -> Option<u64> {
        let mut rest = ranges;
        let (from, to) = rest.next()?;
        let tail = ecn.map_or(0, |counts| counts.iter().map(|it| length(*it)).sum());
        // The number of ranges takes two bytes at most.
        let head = 1 + length(to - 1) + length(delay) + 2 + length(to - 1 - from);
        let mut used = head + tail;
        if used > room {
            return None;
        }
        let place = self.out.len() + 1;
        self.carry(
            if ecn.is_some() { 0x03 } else { 0x02 },
            [0, delay, from, to],
        );
        let mut more = 0_u64;
        let mut below = from;
        for (low, high) in rest {
            // The gap, and the length.
            let size = length(below - high - 1) + length(high - 1 - low);
            if used + size > room {
                break;
            }
            used += size;
            more += 1;
            below = low;
            self.out.extend_from_slice(&low.to_le_bytes());
            self.out.extend_from_slice(&high.to_le_bytes());
        }
        self.out[place..place + 8].copy_from_slice(&more.to_le_bytes());
        for count in ecn.into_iter().flatten() {
            self.out.extend_from_slice(&count.to_le_bytes());
        }
        self.wire += used - 2 + length(more);
        Some(below)
    }
}

/// Reads the carried form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

/// What a packet has next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Frame(Frame),
    /// An acknowledgement, which the buffer has now.
    Ack,
    /// No frame: it is cut off, of an unknown type, or has a number that cannot be there. Nothing of the
    /// datagram is read any more.
    Malformed,
}

impl Reader<'_> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline(always)]
    fn fields<const COUNT: usize>(&mut self) -> Option<[u64; COUNT]> {
        let (head, rest) = self.0.split_at_checked(8 * COUNT)?;
        self.0 = rest;
        let (chunks, _) = head.as_chunks::<8>();
        let values: [u64; COUNT] = std::array::from_fn(|place| u64::from_le_bytes(chunks[place]));
        // A variable-length integer holds no more.
        let bits = values.iter().fold(0, |bits, value| bits | value);
        (bits <= LARGEST).then_some(values)
    }

    /// Offset and length of data, which end at the largest number at the latest (RFC 9000, sections 19.6
    /// and 19.8).
    #[inline(always)]
    fn span(offset: u64, len: u64) -> Option<()> {
        (offset + len <= LARGEST).then_some(())
    }

    #[inline(always)]
    fn number(&mut self) -> Option<u64> {
        self.fields().map(|[value]| value)
    }

    /// The next packet: its kind, its truncated number, and how many bytes that has.
    #[inline]
    pub(crate) fn packet(&mut self) -> Option<(Kind, u64, usize)> {
        let first = self.byte()?;
        let kind = match first & 0xf0 {
            0xc0 => Kind::Initial,
            0xd0 => Kind::ZeroRtt,
            0xe0 => Kind::Handshake,
            0x40 => Kind::OneRtt,
            _ => return None,
        };
        let bytes = usize::from(first & 0x03) + 1;
        let truncated = self.number()? & ((1 << (8 * bytes)) - 1);
        Some((kind, truncated, bytes))
    }

    /// The next frame of the packet; none: it is over.
    #[inline(always)]
    pub(crate) fn frame(&mut self, ack: &mut AckFrame) -> Option<Next> {
        if *self.0.first()? >= 0x40 {
            return None;
        }
        let next = self.next(ack);
        if next.is_none() {
            self.0 = &[];
        }
        next.or(Some(Next::Malformed))
    }

    #[inline(always)]
    fn next(&mut self, ack: &mut AckFrame) -> Option<Next> {
        let kind = self.byte()?;
        let frame = match kind {
            0x01 => Frame::Ping,
            0x02 | 0x03 => {
                self.ack(kind == 0x03, ack)?;
                return Some(Next::Ack);
            }
            0x04 => Frame::Reset {
                stream: self.number()?,
                error: self.number()?,
                size: self.number()?,
            },
            0x05 => Frame::StopSending {
                stream: self.number()?,
                error: self.number()?,
            },
            0x06 => {
                let [offset, len] = self.fields()?;
                Self::span(offset, len)?;
                Frame::Crypto { offset, len }
            }
            0x08..=0x0f => {
                let [stream, offset, len] = self.fields()?;
                Self::span(offset, len)?;
                Frame::Stream {
                    stream,
                    offset,
                    len,
                    fin: kind & 0x01 > 0,
                }
            }
            0x10 => Frame::MaxData(self.number()?),
            0x11 => Frame::MaxStreamData {
                stream: self.number()?,
                limit: self.number()?,
            },
            0x12 | 0x13 => Frame::MaxStreams {
                uni: kind == 0x13,
                // Two bits of an id say whose stream it is (RFC 9000, section 19.11).
                limit: self.number().filter(|limit| *limit <= MOST_STREAMS)?,
            },
            0x14 => Frame::DataBlocked(self.number()?),
            0x15 => Frame::StreamDataBlocked {
                stream: self.number()?,
                limit: self.number()?,
            },
            0x18 => Frame::NewConnectionId(self.number()?),
            0x1c => {
                let error = self.number()?;
                Frame::Close { error }
            }
            0x1e => Frame::HandshakeDone,
            _ => return None,
        };
        Some(Next::Frame(frame))
    }

    fn ack(&mut self, has_ecn: bool, ack: &mut AckFrame) -> Option<()> {
        let [more, delay, from, to] = self.fields()?;
        ack.delay = delay;
        ack.ranges.clear();
        (from < to).then(|| ack.ranges.push((from, to)))?;
        let mut below = from;
        for _ in 0..more {
            let [from, to] = self.fields()?;
            // As gaps and lengths have it: the next range lies below, and does not touch.
            (from < to && to < below).then(|| ack.ranges.push((from, to)))?;
            below = from;
        }
        ack.ecn = match has_ecn {
            true => Some(self.fields()?),
            false => None,
        };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pn02_a_packet_number_takes_the_bytes_of_twice_its_distance() {
        for (distance, bytes) in [(127, 1), (128, 2), (129, 2), (32_767, 2), (32_769, 3)] {
            assert_eq!(number_length(1_000_000 + distance, Some(1_000_000)), bytes);
        }
        // Nothing is acknowledged: in full.
        assert_eq!(
            [0, 126, 127, 40_000].map(|it| number_length(it, None)),
            [1, 1, 2, 3]
        );
        for number in [0_u64, 1, 255, 256, 70_000, 0xa82f_9b32] {
            for behind in [1, 100, 127, 30_000] {
                let Some(acknowledged) = number.checked_sub(behind) else {
                    continue;
                };
                let bytes = number_length(number, Some(acknowledged));
                let truncated = number & ((1 << (8 * bytes)) - 1);
                assert_eq!(full_number(acknowledged + 1, truncated, bytes), number);
            }
        }
        // The example of appendix A.3.
        assert_eq!(full_number(0xa82f_30eb, 0x9b32, 2), 0xa82f_9b32);
    }

    #[test]
    fn ak07_an_acknowledgement_has_its_ranges_as_gaps_and_lengths() {
        let mut out = Vec::new();
        let mut writer = Writer {
            out: &mut out,
            wire: 0,
        };
        let ranges = [(7, 10), (5, 6), (0, 4)];
        let smallest = writer.ack(1023, ranges.into_iter(), None, 100);
        assert_eq!(smallest, Some(0));
        // The type, largest 9, delay 1023 in two bytes, two more, first range 2, gap 0 length 0, gap 0
        // length 3.
        assert_eq!(writer.wire, 10);
        let mut wider = Writer {
            out: &mut Vec::new(),
            wire: 0,
        };
        wider.ack(1023, [(170, 173), (5, 6), (0, 4)].into_iter(), None, 100);
        assert_eq!(wider.wire, 12, "172, and a gap of 163");
        let mut read = AckFrame::default();
        assert_eq!(Reader(&out).frame(&mut read), Some(Next::Ack));
        assert_eq!(
            (read.delay, read.ranges.as_slice()),
            (1023, ranges.as_slice())
        );
        assert_eq!(read.delay * 8, 8184, "8,191 us");
    }

    #[test]
    fn ak08_the_newest_ranges_go_where_not_all_fit() {
        let mut out = Vec::new();
        let mut writer = Writer {
            out: &mut out,
            wire: 0,
        };
        let ranges = (0..300).rev().map(|it| (2 * it, 2 * it + 1));
        let smallest = writer.ack(0, ranges, Some([600, 0, 0]), 100).unwrap();
        assert!(writer.wire <= 100 && writer.wire > 96);
        let mut read = AckFrame::default();
        Reader(&out).frame(&mut read).unwrap();
        assert_eq!(read.ranges[0], (598, 599));
        assert_eq!(read.ranges.last().unwrap().0, smallest);
        assert_eq!(read.ecn, Some([600, 0, 0]));
    }

    #[test]
    fn frames_are_read_as_they_were_written_and_have_their_sizes() {
        let frames = [
            (Frame::Ping, 1),
            (
                Frame::Reset {
                    stream: 4,
                    error: 7,
                    size: 1000,
                },
                5,
            ),
            (
                Frame::StopSending {
                    stream: 4,
                    error: 7,
                },
                3,
            ),
            (
                Frame::Crypto {
                    offset: 0,
                    len: 278,
                },
                4 + 278,
            ),
            (
                Frame::Stream {
                    stream: 0,
                    offset: 0,
                    len: 100,
                    fin: true,
                },
                4 + 100,
            ),
            (
                Frame::Stream {
                    stream: 3,
                    offset: 70_000,
                    len: 1100,
                    fin: false,
                },
                8 + 1100,
            ),
            (Frame::MaxData(1 << 20), 5),
            (
                Frame::MaxStreamData {
                    stream: 0,
                    limit: 5000,
                },
                4,
            ),
            (
                Frame::MaxStreams {
                    uni: true,
                    limit: 3,
                },
                2,
            ),
            (Frame::DataBlocked(10_000), 3),
            (
                Frame::StreamDataBlocked {
                    stream: 8,
                    limit: 63,
                },
                3,
            ),
            (Frame::NewConnectionId(3), 28),
            (Frame::Close { error: 10 }, 4),
            (Frame::HandshakeDone, 1),
        ];
        let mut out = Vec::new();
        let mut writer = Writer {
            out: &mut out,
            wire: 0,
        };
        for (frame, size) in frames {
            let before = writer.wire;
            writer.frame(&frame);
            assert_eq!(writer.wire - before, size, "{frame:?}");
        }
        let mut reader = Reader(&out);
        let mut ack = AckFrame::default();
        for (frame, _) in frames {
            assert_eq!(reader.frame(&mut ack), Some(Next::Frame(frame)));
        }
        assert_eq!(reader.frame(&mut ack), None);
    }

    #[test]
    fn the_next_packet_ends_the_frames_of_the_one_before() {
        let mut out = Vec::new();
        let mut writer = Writer {
            out: &mut out,
            wire: 0,
        };
        writer.header(Kind::Initial, 5, 1);
        writer.frame(&Frame::Ping);
        writer.header(Kind::OneRtt, 0x1234, 2);
        writer.stream(0, (0, 1000), false, stream_head(0, 0));
        assert_eq!(writer.wire, 27 + 1 + TAG + 9 + 2 + 2 + 1000 + TAG);
        let mut reader = Reader(&out);
        let mut ack = AckFrame::default();
        assert_eq!(reader.packet(), Some((Kind::Initial, 5, 1)));
        assert_eq!(reader.frame(&mut ack), Some(Next::Frame(Frame::Ping)));
        assert_eq!(reader.frame(&mut ack), None);
        assert_eq!(reader.packet(), Some((Kind::OneRtt, 0x1234, 2)));
    }
}
