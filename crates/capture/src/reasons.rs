//! Why connections become no vectors or partial ones, and what shows their initiators.

use crate::counts::Reason;

/// Why a connection became no vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omission {
    /// Its SYN was not answered.
    Unanswered,
    /// Its SYN was answered by a reset.
    Refused,
    /// Nobody sent a byte.
    NoData,
    /// Not captured whole, and such were to be dropped.
    Partial,
}

impl Reason for Omission {
    const NAMES: &[&str] = &["unanswered", "refused", "no data", "partial"];

    fn index(self) -> usize {
        self as usize
    }
}

/// What is missing of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// No SYN was seen.
    Beginning,
    /// It was open when the capture ended, or its port was used again.
    End,
    /// Packets of one side only were seen.
    Direction,
    /// It fell silent and was aborted.
    Close,
    /// It had more ADUs than a vector may have.
    Adus,
}

impl Reason for Part {
    const NAMES: &[&str] = &[
        "beginning not seen",
        "end not seen",
        "one direction not seen",
        "silent, never closed",
        "too many ADUs, cut",
    ];

    fn index(self) -> usize {
        self as usize
    }
}

/// What shows which side is the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It sent the SYN.
    Syn,
    /// It received the SYN-ACK.
    SynAck,
    /// The other side's port is a server's.
    Port,
    /// It sent the first data.
    FirstSender,
}

impl Reason for Origin {
    const NAMES: &[&str] = &["SYN", "SYN-ACK", "port", "first sender"];

    fn index(self) -> usize {
        self as usize
    }
}
