//! What time stamps echo (RFC 7323).

use crate::context::Context;
use crate::segment::{Stamps, Timestamps};

/// What the next segments echo.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echo {
    /// The time stamp, and the transit time of the segment that bore it.
    value: u32,
    transit: u32,
}

impl Echo {
    /// The echo of a segment that has arrived now.
    pub(super) fn of(stamps: &Timestamps, cx: &Context<'_>) -> Self {
        Self {
            value: stamps.value,
            transit: cx.host.micros(cx.now).wrapping_sub(stamps.value),
        }
    }

    /// The time stamps of a segment that leaves now.
    pub(super) fn stamps(self, kind: Stamps, cx: &Context<'_>) -> Timestamps {
        Timestamps {
            value: match kind {
                Stamps::Rfc7323 => cx.host.millis(cx.now),
                _ => cx.host.micros(cx.now),
            },
            echo: self.value,
            transit: (kind == Stamps::Transit).then_some(self.transit),
        }
    }

    /// Whether a segment is older than the one that is echoed.
    pub(super) fn is_newer_than(self, stamps: &Timestamps) -> bool {
        (stamps.value.wrapping_sub(self.value) as i32) < 0
    }
}
