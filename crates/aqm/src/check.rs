//! Checks that several disciplines share, beside those of any parameters.

use aqmlab_declare::Bounds;
pub(crate) use aqmlab_declare::Problem;
pub(crate) use aqmlab_declare::check::*;
use aqmlab_net::{Bytes, QueueSize, Time};

use crate::red::Unit;

/// Bytes of the smallest TCP/IP packet: a limit below them holds nothing.
const SMALLEST_PACKET: u64 = 40;

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

/// What a flow may send in its turn, at most.
pub(crate) const LARGEST_QUANTUM: Bytes = Bytes(1 << 30);

/// Time between two ticks of an AQM, which wakes that often, also while nothing arrives.
pub(crate) const SHORTEST_TICK: Time = Time::from_micros(10);

/// Checks a time whose bound depends on other parameters.
pub(crate) fn interval(field: &str, interval: Time) -> Result<(), Problem> {
    let bounds = Bounds {
        least: Some(SHORTEST_TICK),
        ..Bounds::NONE
    };
    bounds.check(field, interval)
}

/// A time must be shorter than another, if it is given.
pub(crate) fn shorter(
    (short_name, short): (&str, Option<Time>),
    (long_name, long): (&str, Time),
) -> Result<(), Problem> {
    match short {
        Some(short) if short >= long => problem(
            short_name,
            format!("found {short}; it must be shorter than {long_name}, {long}"),
        ),
        _ => Ok(()),
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
