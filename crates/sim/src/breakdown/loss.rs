//! Where something on a path was lost.

use std::num::NonZeroU16;

use aqmlab_record::LostSegment;

/// Where a segment was dropped: the port, if it was one, and the reason; both are counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    port: Option<NonZeroU16>,
    reason: NonZeroU16,
}

impl Place {
    pub(super) fn new(port: Option<usize>, reason: usize) -> Self {
        Self {
            port: port.and_then(|port| NonZeroU16::new(port as u16 + 1)),
            reason: NonZeroU16::MIN.saturating_add(reason as u16),
        }
    }

    /// With what was lost, in a word.
    pub(super) fn pack(self, segment: LostSegment) -> u64 {
        let port = self.port.map_or(0, |port| u64::from(port.get()));
        segment as u64 | u64::from(self.reason.get()) << 8 | port << 32
    }

    /// What was lost, the port, and the number of the reason.
    pub(super) fn unpack(word: u64) -> (LostSegment, Option<u16>, usize) {
        let segment = match word & 0xff {
            0 => LostSegment::Syn,
            1 => LostSegment::Data,
            2 => LostSegment::Fin,
            3 => LostSegment::Handshake,
            _ => LostSegment::Limit,
        };
        let port = (word >> 32).checked_sub(1).map(|port| port as u16);
        (segment, port, usize::from((word >> 8) as u16) - 1)
    }
}
