//! Drop-tail: admit until the buffer is full. The baseline of every study.
//!
//! The law admits everything; the limit that every FIFO has does the rest.

use aqmlab_net::{Packet, QueueSize, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{self, Problem};
use crate::law::{Backlog, Law, Verdict};

/// Parameters of drop-tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Buffer size; an arrival that would exceed it is dropped.
    pub limit: QueueSize,
}

impl Params {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        check::limit(self.limit)
    }
}

/// The law of drop-tail: it never signals.
#[derive(Clone, Debug)]
pub struct DropTail;

impl Law for DropTail {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        _packet: &Packet,
        _queue: Backlog,
        _draw: &mut impl FnMut() -> f64,
    ) -> Verdict {
        Verdict::Admit
    }
}
