//! Where something on a path was lost.

use aqmlab_record::LostSegment;

/// Where a segment was dropped: the port, if it was one, and the number of the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) port: Option<u16>,
    pub(super) reason: u16,
}

impl Place {
    /// With what was lost, in a word.
    pub(super) fn pack(self, segment: LostSegment) -> u64 {
        let port = self.port.map_or(0, |port| u64::from(port) + 1);
        segment as u64 | u64::from(self.reason) << 8 | port << 32
    }

    pub(super) fn unpack(word: u64) -> (LostSegment, Self) {
        let segment = match word & 0xff {
            0 => LostSegment::Syn,
            1 => LostSegment::Data,
            _ => LostSegment::Fin,
        };
        let place = Self {
            port: (word >> 32).checked_sub(1).map(|port| port as u16),
            reason: (word >> 8) as u16,
        };
        (segment, place)
    }
}
