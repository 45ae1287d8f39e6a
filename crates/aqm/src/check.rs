//! Checks that several disciplines share.

use aqmlab_net::{Bytes, QueueSize, Time};

use crate::red::Unit;

/// Which field is wrong, and why: what was found and what would be right.
pub(crate) type Problem = (String, String);

/// Bytes of the smallest TCP/IP packet: a limit below them holds nothing.
const SMALLEST_PACKET: u64 = 40;

pub(crate) fn problem(field: &str, message: String) -> Result<(), Problem> {
    Err((field.to_owned(), message))
}

/// The buffer must hold a packet.
pub(crate) fn limit(limit: QueueSize) -> Result<(), Problem> {
    buffer("limit", limit)
}

/// A buffer must hold a packet.
pub(crate) fn buffer(field: &str, size: QueueSize) -> Result<(), Problem> {
    let holds_a_packet = match size {
        QueueSize::Packets(packets) => packets >= 1.0,
        QueueSize::Bytes(bytes) => bytes >= SMALLEST_PACKET,
    };
    if holds_a_packet {
        Ok(())
    } else {
        problem(
            field,
            format!(
                "found {size}, which holds no packet; it must be at least 1 packet (or 40 bytes)"
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

/// A number must lie in `low..=high`.
pub(crate) fn between(field: &str, value: f64, low: f64, high: f64) -> Result<(), Problem> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        problem(
            field,
            format!("found {value}; it must be at least {low} and at most {high}"),
        )
    }
}

/// A number must be finite and exceed `low`.
pub(crate) fn above(field: &str, value: f64, low: f64) -> Result<(), Problem> {
    if value > low && value.is_finite() {
        Ok(())
    } else {
        problem(
            field,
            format!("found {value}; it must be a number above {low}"),
        )
    }
}

/// A number must be finite and not below `low`.
pub(crate) fn at_least(field: &str, value: f64, low: f64) -> Result<(), Problem> {
    if value >= low && value.is_finite() {
        Ok(())
    } else {
        problem(field, format!("found {value}; it must be at least {low}"))
    }
}

/// An amount of data must not be zero.
pub(crate) fn bytes(field: &str, found: Bytes) -> Result<(), Problem> {
    if found.0 > 0 {
        Ok(())
    } else {
        problem(field, format!("found {found}; it must be at least 1 byte"))
    }
}

/// Packets have bytes.
pub(crate) fn mean_packet(mean_packet: Bytes) -> Result<(), Problem> {
    if mean_packet.0 > 0 {
        Ok(())
    } else {
        problem(
            "mean_packet",
            format!("found {mean_packet}; a packet has bytes"),
        )
    }
}

/// Time between two ticks of an AQM, which wakes that often, also while nothing arrives.
pub(crate) fn interval(field: &str, interval: Time) -> Result<(), Problem> {
    const SHORTEST: Time = Time::from_micros(10);
    if interval >= SHORTEST {
        Ok(())
    } else {
        problem(
            field,
            format!("found {interval}; it must be at least {SHORTEST}"),
        )
    }
}

/// The queue aimed at must fit into the buffer, both in packets.
pub(crate) fn target_queue(q_ref: QueueSize, limit: QueueSize, mean: Bytes) -> Result<(), Problem> {
    let [target, room] = [q_ref, limit].map(|size| Unit::Packets.threshold(size, mean));
    if target < room {
        Ok(())
    } else {
        problem(
            "q_ref",
            format!("found {q_ref}; it must be less than limit, {limit}"),
        )
    }
}

/// A count must lie between `least` and `most`.
pub(crate) fn count(field: &str, value: u32, least: u32, most: u32) -> Result<(), Problem> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        problem(
            field,
            format!("found {value}; it must be from {least} to {most}"),
        )
    }
}

/// A threshold must lie below another.
pub(crate) fn ascending(
    (low_name, low): (&str, f64),
    (high_name, high): (&str, f64),
) -> Result<(), Problem> {
    if low < high {
        Ok(())
    } else {
        problem(
            high_name,
            format!("found {high}; it must exceed {low_name}, {low}"),
        )
    }
}

/// RED's thresholds: the average must be able to reach the lower one, the upper one must lie above
/// it, and a gentle slope must end within the limit. Their names are those of the fields.
pub(crate) fn thresholds(
    (min_name, min_th): (&str, QueueSize),
    (max_name, max_th): (&str, QueueSize),
    (gentle_name, gentle): (&str, bool),
    limit: QueueSize,
    mean_packet: Bytes,
) -> Result<(), Problem> {
    let [min, max, room] =
        [min_th, max_th, limit].map(|size| Unit::Packets.threshold(size, mean_packet));
    if max <= min {
        return problem(
            max_name,
            format!("found {max_th}; it must exceed {min_name}, {min_th}"),
        );
    }
    if room <= min {
        return problem(
            "limit",
            format!(
                "found {limit}, which the average cannot exceed, so nothing would ever be \
                 signalled; it must exceed {min_name}, {min_th}"
            ),
        );
    }
    if gentle && room <= 2.0 * max {
        return problem(
            "limit",
            format!(
                "found {limit}; with {gentle_name} = true it must exceed twice {max_name}, {max_th}"
            ),
        );
    }
    Ok(())
}
