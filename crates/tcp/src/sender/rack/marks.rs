//! What the peer's counter of marks does to the sender ([`super::accecn`]).

use super::RackSender;
use crate::accecn::value;
use crate::agreed::Agreed;
use crate::context::Context;
use crate::control::Marks;
use crate::segment::{Flags, Segment};
use crate::sender::space::Space;

impl RackSender {
    /// What the SYN-ACK reports of the SYN, which was not ECN-capable: a mark on it counts as any does; a
    /// code point that was not there was written on the way, so that nothing more is sent as capable.
    pub(in crate::sender) fn on_opening_code(
        &mut self,
        space: &mut Space,
        flags: Flags,
        cx: &Context<'_>,
    ) {
        match value(flags) {
            0b110 => space.on_echo(1, cx),
            0b011 | 0b100 => space.disable_ecn(),
            _ => {}
        }
    }

    /// The third segment has arrived at the server: a code if it is a pure ACK, else the counter.
    pub(in crate::sender) fn on_handshake_code(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        cx: &Context<'_>,
    ) {
        let is_pure = segment.len == 0 && !segment.flags.has(Flags::FIN);
        if !is_pure || segment.options.sack_blocks().len() > 0 {
            return;
        }
        self.marks.on_code(value(segment.flags));
        match value(segment.flags) {
            0b110 => space.on_echo(1, cx),
            0b000 | 0b011 | 0b100 => space.disable_ecn(),
            _ => {}
        }
    }

    /// Marked packets that a segment reports, which newly delivers so much.
    pub(super) fn read_counter(
        &mut self,
        space: &mut Space,
        segment: &Segment,
        delivered: &Marks,
        cx: &Context<'_>,
    ) -> u64 {
        let count = self.marks.read(segment, delivered, cx.profile.mss.0);
        if count.is_none() {
            space.disable_ecn();
        }
        if space.agreed.has(Agreed::ECN) {
            count.unwrap_or(0)
        } else {
            0
        }
    }

    /// Marked packets that the peer has reported.
    pub(crate) fn reported_marks(&self) -> u64 {
        self.marks.reported()
    }
}
