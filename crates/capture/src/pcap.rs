//! The classic format: draft-ietf-opsawg-pcap.

use std::io::Read;

use aqmlab_net::Time;

use crate::buffer::{Buffer, MAX_RECORD, Order};
use crate::error::Flaw;
use crate::record::Record;

const FILE_HEADER: usize = 24;

/// What the file header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pcap {
    order: Order,
    link: u16,
    /// Nanoseconds in a unit of the time stamps' fraction.
    unit: u64,
    /// Bytes in front of each packet.
    packet_header: usize,
}

impl Pcap {
    /// Byte order, nanoseconds per unit and length of packet headers, if these four bytes begin a
    /// file.
    fn recognise(magic: [u8; 4]) -> Option<(Order, u64, usize)> {
        let known = |magic: u32| match magic {
            0xa1b2_c3d4 => Some((1_000, 16)),
            0xa1b2_3c4d => Some((1, 16)),
            // Written by some Linux distributions around 2000: 8 more bytes for each packet.
            0xa1b2_cd34 => Some((1_000, 24)),
            _ => None,
        };
        let in_order = |order, magic| known(magic).map(|(unit, len)| (order, unit, len));
        in_order(Order::Little, u32::from_le_bytes(magic))
            .or_else(|| in_order(Order::Big, u32::from_be_bytes(magic)))
    }

    /// Reads the file header; `None` if it is another format.
    pub(crate) fn open<R: Read>(
        input: &mut Buffer<R>,
        magic: [u8; 4],
    ) -> Result<Option<Self>, Flaw> {
        let Some((order, unit, packet_header)) = Self::recognise(magic) else {
            return Ok(None);
        };
        let header = input.take(FILE_HEADER, "the file header")?;
        let version = order.u16(header, 4);
        if version != 2 {
            return Flaw::content(format!(
                "the file header states version {version} of the pcap format, not 2"
            ));
        }
        Ok(Some(Self {
            order,
            // The upper half holds flags and the length of the frame check sequence.
            link: order.u32(header, 20) as u16,
            unit,
            packet_header,
        }))
    }

    /// The next packet, `None` at the end of the file.
    #[inline]
    pub(crate) fn next<'a, R: Read>(
        &mut self,
        input: &'a mut Buffer<R>,
    ) -> Result<Option<Record<'a>>, Flaw> {
        if input.is_at_end()? {
            return Ok(None);
        }
        let head = input.peek(16, "the header of this packet")?;
        if head.iter().all(|byte| *byte == 0) {
            return Err(Flaw::Cut(
                "from here on the file holds zeros; the capture was cut short".to_owned(),
            ));
        }
        if is_file_header(head) {
            let magic = [head[0], head[1], head[2], head[3]];
            if let Some(next) = Self::open(input, magic)? {
                *self = next;
                return self.next(input);
            }
        }
        let header = input.take(self.packet_header, "the header of this packet")?;
        let [seconds, fraction, captured, original] =
            [0, 4, 8, 12].map(|at| self.order.u32(header, at));
        if u64::from(fraction) * self.unit >= 1_000_000_000 {
            return Flaw::content(format!(
                "its time stamp has a fraction of {fraction}, more than a second; the file is corrupt"
            ));
        }
        if captured as usize > MAX_RECORD || captured > original.max(1 << 18) {
            return Flaw::content(format!(
                "it claims {captured} captured bytes of {original}; the file is corrupt"
            ));
        }
        let data = input.take(captured as usize, "this packet")?;
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit;
        Ok(Some(Record {
            time: Some(Time::from_nanos(nanos)),
            link: self.link,
            interface: 0,
            outward: None,
            data,
            original,
        }))
    }
}

/// Whether files were put behind each other, and the next one begins: version 2.4, and zeros where
/// a packet states its length.
fn is_file_header(head: &[u8]) -> bool {
    Pcap::recognise([head[0], head[1], head[2], head[3]]).is_some()
        && matches!(head[4..8], [2, 0, 4, 0] | [0, 2, 0, 4])
        && head[8..16].iter().all(|byte| *byte == 0)
}
