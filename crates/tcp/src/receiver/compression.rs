//! SACK compression, as Linux has it since 4.18: what arrives behind a gap is reported at once three
//! times, then together, when a timer expires or the gap is filled.

use aqmlab_net::Time;

use super::Receiver;
use crate::agreed::Agreed;
use crate::context::Context;

/// Reports that go at once after the next expected number has changed.
const AT_ONCE: u8 = 3;
/// Reports that wait together at most (`tcp_comp_sack_nr`).
const MOST: u8 = 44;
/// The timer is a share of the round trip, at most.
const ROUND_TRIPS: u64 = 20;

/// What is known of the reports behind a gap.
#[derive(Clone, Debug, Default)]
pub(super) struct Compression {
    /// The number that was expected at the last report.
    next: u64,
    at_once: u8,
    waiting: u8,
    /// The smoothed round trip; zero: not known.
    rtt: Time,
}

impl Receiver {
    /// The smoothed round trip, for an end point that compresses.
    pub(crate) fn note_rtt(&mut self, rtt: Option<Time>) {
        if let Some(rare) = &mut self.rare {
            rare.compression.rtt = rtt.unwrap_or_default();
        }
    }

    /// Whether the report of a segment that has arrived behind a gap, or fills a part of it, waits for the
    /// timer, which it then starts.
    pub(super) fn compresses(&mut self, seq: u64, received: u64, cx: &Context<'_>) -> bool {
        let longest = cx.profile.sack_compression.unwrap_or_default();
        if longest == Time::ZERO {
            return false;
        }
        let (next, is_running) = (self.next, self.delayed_until < Time::NEVER);
        // A duplicate, and more than a segment that has become readable, are acknowledged at once.
        if (seq < next && received == 0) || next - self.acked > cx.profile.mss.0 {
            return false;
        }
        let Some(rare) = &mut self.rare else {
            return false;
        };
        if !self.agreed.has(Agreed::SACK) || !rare.reassembly.has_holes() {
            return false;
        }
        let reports = &mut rare.compression;
        if reports.next != next {
            (reports.next, reports.at_once) = (next, 0);
        }
        if reports.at_once < AT_ONCE {
            reports.at_once += 1;
            return false;
        }
        if !is_running {
            reports.waiting = 0;
            let share = Time::from_nanos(reports.rtt.as_nanos() / ROUND_TRIPS);
            self.delayed_until = cx.now
                + match share {
                    Time::ZERO => longest,
                    share => share.min(longest),
                };
        }
        reports.waiting += 1;
        reports.waiting <= MOST
    }
}
