//! The sender's half of accurate ECN feedback (RFC 9768): what the counters of the peer report.

use crate::accecn::{ACE_MASK, FIRST_CEP, MARKS_WITHOUT_DATA, value};
use crate::control::Marks;
use crate::segment::{AccEcnOption, Options, Segment};

/// What is known of the peer's counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkReader {
    /// Marked packets, and their bytes modulo 2^24.
    cep: u64,
    ceb: u32,
    /// The time stamp of the newest segment.
    stamp: u32,
    /// The segment at hand has a code of the handshake in place of the counter.
    is_code: bool,
    /// A counter has been seen; so has an option.
    seen: bool,
    option_seen: bool,
    /// The option came zeroed: it is passed over.
    option_is_broken: bool,
}

impl Default for MarkReader {
    fn default() -> Self {
        Self {
            cep: FIRST_CEP,
            ceb: 0,
            stamp: 0,
            is_code: false,
            seen: false,
            option_seen: false,
            option_is_broken: false,
        }
    }
}

impl MarkReader {
    /// Bytes of this end's that were marked since the last option; none: no option, or an older one.
    fn take_option(&mut self, options: &Options) -> Option<u64> {
        let option = options.accecn()?;
        if !self.option_seen {
            self.option_seen = true;
            self.option_is_broken = option.first() == Some(0);
        }
        if self.option_is_broken {
            return None;
        }
        let ceb = option.ceb()?;
        let more = ceb.wrapping_sub(self.ceb) & AccEcnOption::MASK;
        if more > AccEcnOption::MASK / 2 {
            return None;
        }
        self.ceb = ceb;
        Some(u64::from(more))
    }

    /// The segment at hand has a code of the handshake in place of the counter.
    pub(super) fn on_code(&mut self, code: u64) {
        self.is_code = true;
        self.seen |= code == 0b000;
        self.cep += u64::from(code == 0b110);
    }

    /// Marked packets that a segment reports, which newly delivers so much; none: ECN does not pass.
    pub(super) fn read(&mut self, segment: &Segment, delivered: &Marks, mss: u64) -> Option<u64> {
        let Marks { bytes, segments } = *delivered;
        let stamps = segment.options.timestamps().map(|stamps| stamps.value);
        let is_newer = stamps.is_some_and(|stamp| stamp.wrapping_sub(self.stamp) as i32 > 0);
        self.stamp = stamps.unwrap_or(0);
        if std::mem::take(&mut self.is_code) {
            self.take_option(&segment.options);
            return Some(0);
        }
        // A segment without news may be an older one that was overtaken.
        if bytes == 0 && segments == 0 && !is_newer {
            return Some(0);
        }
        let field = value(segment.flags);
        if !std::mem::replace(&mut self.seen, true) && field == 0 && segments < MARKS_WITHOUT_DATA {
            // Too few packets for the counter to have wrapped: the flags were cleared on the way.
            return None;
        }
        let ceb = self.take_option(&segment.options);
        let delta = field.wrapping_sub(self.cep) & ACE_MASK;
        let count = marks(delta, segments, bytes, ceb, mss);
        self.cep += count;
        Some(count)
    }

    /// Marked packets that the peer has reported.
    pub(super) fn reported(&self) -> u64 {
        self.cep - FIRST_CEP
    }
}

/// Marked packets that an ACK reports (appendix A.2): `delta` by the field alone, which may have wrapped
/// if more than seven of the `segments` were newly delivered, and `ceb` the marked bytes of the option.
fn marks(delta: u64, segments: u64, bytes: u64, ceb: Option<u64>, mss: u64) -> u64 {
    if segments <= ACE_MASK {
        return delta;
    }
    let safe = segments - (segments.wrapping_sub(delta) & ACE_MASK);
    match ceb {
        None => safe,
        Some(0) => delta,
        Some(ceb) if segments >= 2 * (ACE_MASK + 1) => {
            if ceb >= bytes {
                return safe;
            }
            let likely = (ceb * segments).div_ceil(bytes);
            safe.min(delta + (likely & !ACE_MASK))
        }
        Some(ceb) if ceb > delta * mss => safe,
        Some(ceb) if ceb < safe * mss / 2 => delta,
        Some(_) => safe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// accecn_ace.csv, row by row: by the field alone, safely, and with the option.
    #[test]
    fn ae09_ae10_marks_are_decoded_as_in_the_table() {
        let rows = include_str!("../../../tests/data/modern/accecn_ace.csv");
        let mut totals = [0_u64; 3];
        let mut count = 0;
        for row in rows.lines().skip(1) {
            let cells: Vec<u64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
            let (segments, field, ceb) = (cells[1], cells[3], cells[4]);
            let delta = |total: u64| field.wrapping_sub(FIRST_CEP + total) & ACE_MASK;
            let bytes = 1448 * segments;
            let counts = [
                delta(totals[0]),
                marks(delta(totals[1]), segments, bytes, None, 1448),
                marks(delta(totals[2]), segments, bytes, Some(ceb), 1448),
            ];
            assert_eq!(counts, [cells[5], cells[6], cells[8]], "{row}");
            assert_eq!(counts[1], cells[7], "{row}");
            for (total, count) in totals.iter_mut().zip(counts) {
                *total += count;
            }
            assert_eq!(totals, [cells[9], cells[10], cells[11]], "{row}");
            count += 1;
        }
        assert_eq!(count, 18);
    }
}
