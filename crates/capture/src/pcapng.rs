//! The block format: draft-ietf-opsawg-pcapng.
//!
//! Blocks other than those of sections, interfaces and packets are passed over. Options may end
//! with their block, without an end mark, as the draft demands of readers.

use std::io::Read;

use aqmlab_net::Time;

use crate::buffer::{Buffer, MAX_RECORD, Order};
use crate::error::Flaw;
use crate::record::Record;

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(crate) const ENHANCED_PACKET: u32 = 6;

pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Option of an interface: its name.
const IF_NAME: u16 = 2;
/// Option of a packet: flags, whose lowest two bits say whether it came in or went out.
const EPB_FLAGS: u16 = 2;
/// Option of an interface: units of its time stamps.
pub(crate) const IF_TSRESOL: u16 = 9;
/// Option of an interface: seconds to add to its time stamps.
const IF_TSOFFSET: u16 = 14;

/// Bytes of a block besides its body: type, length, and the length again.
const FRAME: usize = 12;

/// What the current section says.
#[derive(Debug)]
pub(crate) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    snap: u32,
    clock: Clock,
    /// What its name says: a link's way back leaves home.
    outward: Option<bool>,
}

/// How time stamps become nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Clock {
    resolution: Resolution,
    /// Nanoseconds to add.
    offset: i64,
}

#[derive(Clone, Copy, Debug)]
enum Resolution {
    /// Nanoseconds per unit.
    Coarse(u64),
    /// Units per nanosecond.
    Fine(u64),
    /// Units are seconds over two to this power.
    Binary(u8),
}

impl Pcapng {
    /// Begins with the section header, which must follow; `None` if it is another format.
    pub(crate) fn open<R: Read>(
        input: &mut Buffer<R>,
        magic: [u8; 4],
    ) -> Result<Option<Self>, Flaw> {
        if u32::from_be_bytes(magic) != SECTION_HEADER {
            return Ok(None);
        }
        let mut section = Self {
            order: Order::Little,
            interfaces: Vec::new(),
        };
        section.begin(input)?;
        Ok(Some(section))
    }

    /// Reads a section header.
    fn begin<R: Read>(&mut self, input: &mut Buffer<R>) -> Result<(), Flaw> {
        let head = input.peek(FRAME, "a section header")?;
        self.order = match Order::Little.u32(head, 8) {
            BYTE_ORDER_MAGIC => Order::Little,
            magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => Order::Big,
            magic => {
                return Flaw::content(format!(
                    "a section header has {magic:#010x} where its byte order should be"
                ));
            }
        };
        self.interfaces.clear();
        let (_, block) = self.block(input)?;
        match block.len() {
            0..16 => Flaw::content("a section header is too short"),
            _ => Ok(()),
        }
    }

    /// The next block: its type and body.
    #[inline]
    fn block<'a, R: Read>(&self, input: &'a mut Buffer<R>) -> Result<(u32, &'a [u8]), Flaw> {
        let order = self.order;
        let head = input.peek(8, "the header of a block")?;
        let (kind, len) = (order.u32(head, 0), order.u32(head, 4) as usize);
        if kind == 0 && len == 0 {
            return Err(Flaw::Cut(
                "from here on the file holds zeros; the capture was cut short".to_owned(),
            ));
        }
        if len < FRAME || len % 4 != 0 || len > MAX_RECORD {
            return Flaw::content(format!(
                "a block of type {kind:#x} states a length of {len} bytes; the file is corrupt"
            ));
        }
        let block = input.take(len, "a block")?;
        let again = order.u32(block, len - 4) as usize;
        if again != len {
            return Flaw::content(format!(
                "a block of {len} bytes ends with a length of {again}; the file is corrupt"
            ));
        }
        Ok((kind, &block[8..len - 4]))
    }

    /// The next packet, `None` at the end of the file.
    #[inline]
    pub(crate) fn next<'a, R: Read>(
        &mut self,
        input: &'a mut Buffer<R>,
    ) -> Result<Option<Record<'a>>, Flaw> {
        loop {
            if input.is_at_end()? {
                return Ok(None);
            }
            let kind = self.order.u32(input.peek(4, "a block")?, 0);
            match kind {
                SECTION_HEADER => self.begin(input)?,
                INTERFACE => {
                    let (_, body) = self.block(input)?;
                    let interface = Interface::read(self.order, body)?;
                    self.interfaces.push(interface);
                }
                ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => {
                    let (_, body) = self.block(input)?;
                    return self.packet(kind, body).map(Some);
                }
                _ => {
                    self.block(input)?;
                }
            }
        }
    }

    #[inline]
    fn packet<'a>(&self, kind: u32, body: &'a [u8]) -> Result<Record<'a>, Flaw> {
        let order = self.order;
        if kind == SIMPLE_PACKET {
            return self.simple_packet(body);
        }
        let Some((head, rest)) = body.split_at_checked(20) else {
            return Flaw::content("its block is too short");
        };
        let index = match kind {
            ENHANCED_PACKET => order.u32(head, 0),
            _ => u32::from(order.u16(head, 0)),
        };
        let interface = self.interface(index)?;
        let [high, low, captured, original] = [4, 8, 12, 16].map(|at| order.u32(head, at));
        let stamp = u64::from(high) << 32 | u64::from(low);
        let behind = (captured as usize).next_multiple_of(4);
        let outward = interface.outward.or_else(|| match kind {
            ENHANCED_PACKET => direction(order, rest.get(behind..)?),
            _ => None,
        });
        Ok(Record {
            time: Some(interface.clock.time(stamp)),
            link: interface.link,
            interface: index,
            outward,
            data: captured_bytes(rest, captured)?,
            original,
        })
    }

    /// A packet without a time stamp, of the first interface.
    fn simple_packet<'a>(&self, body: &'a [u8]) -> Result<Record<'a>, Flaw> {
        let Some((head, rest)) = body.split_at_checked(4) else {
            return Flaw::content("its block is too short");
        };
        let interface = self.interface(0)?;
        let original = self.order.u32(head, 0);
        let captured = match interface.snap {
            0 => original,
            snap => original.min(snap),
        };
        Ok(Record {
            time: None,
            link: interface.link,
            interface: 0,
            outward: None,
            data: captured_bytes(rest, captured)?,
            original,
        })
    }

    #[inline]
    fn interface(&self, index: u32) -> Result<&Interface, Flaw> {
        self.interfaces.get(index as usize).map_or_else(
            || {
                Flaw::content(format!(
                    "it names interface {index}, but the file has described {} so far",
                    self.interfaces.len()
                ))
            },
            Ok,
        )
    }
}

/// Whether a packet's options say that it went out.
#[inline]
fn direction(order: Order, mut options: &[u8]) -> Option<bool> {
    while let Some((option, behind)) = options.split_at_checked(4) {
        let (code, len) = (order.u16(option, 0), usize::from(order.u16(option, 2)));
        match (code, len) {
            (0, _) => return None,
            (EPB_FLAGS, 4) => {
                return match order.u32(behind.get(..4)?, 0) & 3 {
                    1 => Some(false),
                    2 => Some(true),
                    _ => None,
                };
            }
            _ => options = behind.get(len.next_multiple_of(4)..)?,
        }
    }
    None
}

/// The captured part of a packet's block.
#[inline]
fn captured_bytes(rest: &[u8], captured: u32) -> Result<&[u8], Flaw> {
    rest.get(..captured as usize).map_or_else(
        || {
            Flaw::content(format!(
                "it claims {captured} captured bytes in a block with {} left; the file is corrupt",
                rest.len()
            ))
        },
        Ok,
    )
}

impl Interface {
    fn read(order: Order, body: &[u8]) -> Result<Self, Flaw> {
        let Some((head, mut rest)) = body.split_at_checked(8) else {
            return Flaw::content("an interface description is too short");
        };
        let mut clock = Clock {
            resolution: Resolution::Coarse(1_000),
            offset: 0,
        };
        let mut outward = None;
        while let Some((option, behind)) = rest.split_at_checked(4) {
            let (code, len) = (order.u16(option, 0), usize::from(order.u16(option, 2)));
            let Some(value) = behind.get(..len) else {
                return Flaw::content("an option of an interface is longer than its block");
            };
            match (code, len) {
                (0, _) => break,
                (IF_TSRESOL, 1) => clock.resolution = Resolution::read(value[0])?,
                (IF_TSOFFSET, 8) => {
                    let seconds = order.u64(value, 0).cast_signed();
                    clock.offset = seconds.saturating_mul(1_000_000_000);
                }
                (IF_NAME, _) if value.ends_with(b" forward") => outward = Some(false),
                (IF_NAME, _) if value.ends_with(b" reverse") => outward = Some(true),
                _ => {}
            }
            rest = behind.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(Self {
            link: order.u16(head, 0),
            snap: order.u32(head, 4),
            clock,
            outward,
        })
    }
}

impl Resolution {
    /// The top bit chooses between powers of 2 and of 10.
    fn read(value: u8) -> Result<Self, Flaw> {
        let exponent = value & 0x7f;
        match (value & 0x80 != 0, exponent) {
            (false, 0..=9) => Ok(Self::Coarse(10_u64.pow(9 - u32::from(exponent)))),
            (false, 10..=19) => Ok(Self::Fine(10_u64.pow(u32::from(exponent) - 9))),
            (true, 0..=63) => Ok(Self::Binary(exponent)),
            (binary, _) => Flaw::content(format!(
                "an interface counts time in units of {}^-{exponent} seconds, which no 64-bit \
                 time stamp can hold",
                if binary { 2 } else { 10 }
            )),
        }
    }
}

impl Clock {
    #[inline]
    fn time(&self, stamp: u64) -> Time {
        let nanos = match self.resolution {
            Resolution::Coarse(unit) => stamp.saturating_mul(unit),
            Resolution::Fine(units) => stamp / units,
            // Below 2^64 seconds times 10^9: fits.
            Resolution::Binary(shift) => {
                u64::try_from((u128::from(stamp) * 1_000_000_000) >> shift).unwrap_or(u64::MAX)
            }
        };
        Time::from_nanos(nanos.saturating_add_signed(self.offset))
    }
}
