//! What a run of a program says of the program itself.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use serde::Serialize;

/// A place that a program asked for, and that did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotReached {
    /// Its address inside.
    pub place: SocketAddrV4,
    /// Whether it was asked for by TCP; else by UDP.
    pub is_tcp: bool,
    /// Connections, or flows of datagrams.
    pub count: u64,
    /// Whether a reset said no; else no answer came, or an ICMP message.
    pub refused: bool,
    /// The kind of network that would have let the program reach it: `host` or `all`.
    pub needs: Option<&'static str>,
}

/// A program, beside what its packets met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramReport {
    /// From the moment at which it was executed to its end, or to the end of the run.
    pub time_s: f64,
    /// The congestion control of the senders, by direction, as the kernel calls it.
    pub controls: BTreeMap<String, String>,
    /// Places that it asked for in vain.
    pub not_reached: Vec<NotReached>,
}
