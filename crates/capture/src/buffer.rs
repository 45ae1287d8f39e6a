//! A window over what is read, for formats whose records say how long they are.

use std::io::{ErrorKind, Read};

use crate::error::Flaw;

const INITIAL: usize = 1 << 18;

/// The longest record that is believed: captures hold at most 256 KiB of a packet, and blocks of
/// other kinds are short.
pub(crate) const MAX_RECORD: usize = 1 << 24;

/// Bytes that have been read and not yet been used.
pub(crate) struct Buffer<R> {
    input: R,
    bytes: Vec<u8>,
    from: usize,
    to: usize,
    consumed: u64,
}

impl<R: Read> Buffer<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            bytes: vec![0; INITIAL],
            from: 0,
            to: 0,
            consumed: 0,
        }
    }

    /// Bytes that have been used.
    pub(crate) const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Whether nothing is left in the file either.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, Flaw> {
        self.fill(1)?;
        Ok(self.from == self.to)
    }

    /// The next `len` bytes, which stay; `what` they are is said if the file ends before.
    #[inline]
    pub(crate) fn peek(&mut self, len: usize, what: &str) -> Result<&[u8], Flaw> {
        if self.to - self.from < len {
            self.fill(len)?;
            let left = self.to - self.from;
            if left < len {
                return Err(Flaw::Cut(format!(
                    "the file ends inside {what}, with {left} of {len} bytes; the capture was cut short"
                )));
            }
        }
        Ok(&self.bytes[self.from..self.from + len])
    }

    /// The next `len` bytes, which are used up.
    #[inline]
    pub(crate) fn take(&mut self, len: usize, what: &str) -> Result<&[u8], Flaw> {
        self.peek(len, what)?;
        let from = self.from;
        self.from += len;
        self.consumed += len as u64;
        Ok(&self.bytes[from..from + len])
    }

    /// Reads until there are `len` bytes, or the file ends.
    fn fill(&mut self, len: usize) -> Result<(), Flaw> {
        if self.to - self.from >= len {
            return Ok(());
        }
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        while self.to < len {
            match self.input.read(&mut self.bytes[self.to..]) {
                Ok(0) => break,
                Ok(count) => self.to += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The byte order of a file's own numbers; those of packets are always big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    pub(crate) const fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(crate) const fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(crate) const fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (self.u32(bytes, at) as u64, self.u32(bytes, at + 4) as u64);
        match self {
            Self::Little => second << 32 | first,
            Self::Big => first << 32 | second,
        }
    }
}
