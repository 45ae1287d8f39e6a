//! What a connection vector is, and the bounds of the formats.

use std::fmt;

use aqmlab_net::{Role, Time};

/// How long after its last ADU a connection is closed whose vector does not say (as in ns-2).
pub const CLOSE_AFTER: Time = Time::from_secs(1);

/// Longest line of a file, in bytes.
pub const MAX_LINE: usize = 65_536;

/// Most ADUs of one connection.
pub const MAX_ADUS: usize = 1 << 20;

/// Longest time in a file: about 31 years.
pub const MAX_TIME: Time = Time::from_secs(1_000_000_000);

/// Largest ADU: 4 TiB, so that the sum over a connection fits into 63 bits.
pub const MAX_BYTES: u64 = 1 << 42;

/// An application data unit and the pause that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adu {
    /// Application bytes.
    pub bytes: u64,
    /// Time until the next one is sent; behind the last one, until its sender closes. If the same
    /// side sends the next one the time counts from sending this one, else from having received
    /// all of it. At least a microsecond.
    pub pause: Time,
}

/// Who sends what, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// ADUs in the order of the conversation. The sender of the last one closes.
    Sequential(Vec<(Role, Adu)>),
    /// What initiator and acceptor send, neither waiting for the other. Each closes after its
    /// last; one that sends nothing closes when the other has.
    Concurrent([Vec<Adu>; 2]),
}

/// One TCP connection as its applications made it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionVector {
    /// When the initiator opens it, from the beginning of the file.
    pub start: Time,
    /// Its identity in the file (the second one of its head line).
    pub id: u64,
    /// Who sends what.
    pub body: Body,
    /// Maximum windows of initiator and acceptor, in bytes (`w`).
    pub windows: [Option<u32>; 2],
    /// Maximum segment sizes of initiator and acceptor, in bytes (`m`).
    pub segments: [Option<u32>; 2],
    /// Minimum round-trip time (`r`).
    pub rtt: Option<Time>,
    /// Probability that a packet is lost, from initiator to acceptor and back (`l`).
    pub loss: Option<[f64; 2]>,
}

impl ConnectionVector {
    /// Application bytes that initiator and acceptor send.
    pub fn bytes(&self) -> [u64; 2] {
        let mut bytes = [0; 2];
        match &self.body {
            Body::Sequential(adus) => {
                for (party, adu) in adus {
                    bytes[*party as usize] += adu.bytes;
                }
            }
            Body::Concurrent(sides) => {
                for (sum, side) in bytes.iter_mut().zip(sides) {
                    *sum = side.iter().map(|adu| adu.bytes).sum();
                }
            }
        }
        bytes
    }
}

/// Why a file of connection vectors cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorError {
    /// The line, counted from 1.
    pub line: u64,
    /// What was found there and what would be right.
    pub message: String,
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for VectorError {}
