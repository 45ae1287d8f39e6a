//! Reads captures packet by packet.

use std::io::Read;

use crate::buffer::Buffer;
use crate::error::{CaptureError, Flaw};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::record::Record;

/// How many packets pass between two reports of progress.
pub(crate) const PROGRESS: u64 = 1 << 17;

/// Reads pcap (micro- and nanoseconds) and pcapng files of either byte order, in constant memory.
pub struct CaptureReader<R> {
    input: Buffer<R>,
    format: Format,
    packets: u64,
    cut: Option<String>,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl<R: Read> CaptureReader<R> {
    /// Reads the file's header.
    pub fn new(input: R) -> Result<Self, CaptureError> {
        let mut input = Buffer::new(input);
        let format = Self::open(&mut input).map_err(|flaw| flaw.at_packet(1))?;
        Ok(Self {
            input,
            format,
            packets: 0,
            cut: None,
        })
    }

    fn open(input: &mut Buffer<R>) -> Result<Format, Flaw> {
        if input.is_at_end()? {
            return Flaw::content("the file is empty, not a capture");
        }
        let magic = input.peek(4, "its first number")?;
        let magic = [magic[0], magic[1], magic[2], magic[3]];
        if let Some(pcap) = Pcap::open(input, magic)? {
            return Ok(Format::Pcap(pcap));
        }
        if let Some(pcapng) = Pcapng::open(input, magic)? {
            return Ok(Format::Pcapng(pcapng));
        }
        let [a, b, c, d] = magic;
        Flaw::content(format!(
            "the file begins with the bytes {a:02x} {b:02x} {c:02x} {d:02x}, so it is neither a \
             pcap nor a pcapng file; `editcap` (of Wireshark) turns files of other tools into one"
        ))
    }

    /// The next packet, `None` at the end of the file, or where it was cut: see [`Self::cut`].
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        self.packets += 1;
        let packet = self.packets;
        if self.cut.is_some() {
            return Ok(None);
        }
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.input),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.input),
        };
        match next {
            // What stands in front of the cut is whole.
            Err(Flaw::Cut(message)) => {
                self.cut = Some(format!("packet {packet}: {message}"));
                Ok(None)
            }
            other => other.map_err(|flaw| flaw.at_packet(packet)),
        }
    }

    /// How the file ends, if it ends inside a packet.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Bytes of the file that have been used.
    pub const fn consumed(&self) -> u64 {
        self.input.consumed()
    }
}
