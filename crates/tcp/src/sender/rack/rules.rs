//! Whose rules a sender has, and what they share.

use crate::context::Context;
use crate::profile::RackRules;

/// Duplicate ACKs that mean a loss where the peer sends no SACK (RFC 5681, section 3.2).
pub(super) const DUP_THRESH: u32 = 3;

/// Whether a profile has the rules of Linux.
#[inline]
pub(super) fn applies(cx: &Context<'_>) -> bool {
    cx.profile.rack_rules == RackRules::Linux
}
