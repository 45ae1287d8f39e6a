//! What can be wrong with a capture file.

use std::{fmt, io};

/// Why a capture cannot be read any further.
#[derive(Debug)]
pub enum CaptureError {
    /// The file itself cannot be read.
    Io(io::Error),
    /// Its content is no capture, or a broken one.
    Format {
        /// The packet that was being read, counted from 1.
        packet: u64,
        /// What was found and what would be right.
        message: String,
    },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Format { packet, message } => write!(f, "packet {packet}: {message}"),
        }
    }
}

impl std::error::Error for CaptureError {}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What is wrong with the bytes at hand; the reader adds the number of the packet.
pub(crate) enum Flaw {
    Io(io::Error),
    Content(String),
    /// The file ends too early.
    Cut(String),
}

impl Flaw {
    pub(crate) fn content<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Content(message.into()))
    }

    pub(crate) fn at_packet(self, packet: u64) -> CaptureError {
        match self {
            Self::Io(error) => CaptureError::Io(error),
            Self::Content(message) | Self::Cut(message) => CaptureError::Format { packet, message },
        }
    }
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
