//! Checks that several disciplines share.

use aqmlab_net::{QueueSize, Time};

/// Which field is wrong, and why: what was found and what would be right.
pub(crate) type Problem = (String, String);

/// Bytes of the smallest TCP/IP packet: a limit below them holds nothing.
const SMALLEST_PACKET: u64 = 40;

pub(crate) fn problem(field: &str, message: String) -> Result<(), Problem> {
    Err((field.to_owned(), message))
}

/// A buffer must hold a packet.
pub(crate) fn limit(limit: QueueSize) -> Result<(), Problem> {
    let holds_a_packet = match limit {
        QueueSize::Packets(packets) => packets >= 1.0,
        QueueSize::Bytes(bytes) => bytes >= SMALLEST_PACKET,
    };
    if holds_a_packet {
        Ok(())
    } else {
        problem(
            "limit",
            format!(
                "found {limit}, which holds no packet; it must be at least 1 packet (or 40 bytes)"
            ),
        )
    }
}

/// A weight or probability must lie in (0, 1].
pub(crate) fn in_unit_interval(field: &str, value: f64) -> Result<(), Problem> {
    if value > 0.0 && value <= 1.0 {
        Ok(())
    } else {
        problem(
            field,
            format!("found {value}; it must be above 0 and at most 1"),
        )
    }
}

/// A duration must not be zero.
pub(crate) fn positive(field: &str, duration: Time) -> Result<(), Problem> {
    if duration > Time::ZERO {
        Ok(())
    } else {
        problem(
            field,
            format!("found {duration}; it must be longer than 0 s"),
        )
    }
}
