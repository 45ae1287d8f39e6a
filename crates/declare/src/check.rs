//! Checks of values that no declaration bounds: of tables that are read otherwise, and of one parameter
//! by another. Each takes the name of the field and its value; the error says what was found and what
//! would be right.

use aqmlab_net::{Bytes, Time};

use crate::Bounds;

pub use crate::located::Problem;

/// The field, and what is wrong with it.
pub fn problem(field: &str, message: impl Into<String>) -> Result<(), Problem> {
    Err((field.to_owned(), message.into()))
}

/// A duration must not be zero.
pub fn positive(field: &str, duration: Time) -> Result<(), Problem> {
    let bounds = Bounds {
        above: Some(Time::ZERO),
        ..Bounds::NONE
    };
    bounds.check(field, duration)
}

/// A number must lie in `low..=high`.
pub fn between(field: &str, value: f64, low: f64, high: f64) -> Result<(), Problem> {
    let bounds = Bounds {
        least: Some(low),
        most: Some(high),
        ..Bounds::NONE
    };
    bounds.check(field, value)
}

/// A number must be finite and exceed `low`.
pub fn above(field: &str, value: f64, low: f64) -> Result<(), Problem> {
    let bounds = Bounds {
        above: Some(low),
        ..Bounds::NONE
    };
    bounds.check(field, value)
}

/// An amount of data must not be zero.
pub fn bytes(field: &str, found: Bytes) -> Result<(), Problem> {
    let bounds = Bounds {
        least: Some(Bytes(1)),
        ..Bounds::NONE
    };
    bounds.check(field, found)
}

/// The length of a packet: no IP packet is longer than its header can say.
pub fn packet_size(field: &str, found: Bytes) -> Result<(), Problem> {
    const LONGEST: u64 = 65_535;
    if (1..=LONGEST).contains(&found.0) {
        Ok(())
    } else {
        let right = format!("a packet has 1 to {LONGEST} bytes");
        problem(field, format!("found {found}; {right}"))
    }
}

/// A count must lie between `least` and `most`; [`u32::MAX`] is no limit.
pub fn count(field: &str, value: u32, least: u32, most: u32) -> Result<(), Problem> {
    let bounds = Bounds {
        least: Some(least),
        most: (most < u32::MAX).then_some(most),
        ..Bounds::NONE
    };
    bounds.check(field, value)
}

/// A threshold must lie below another.
pub fn ascending(
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

/// There must be one of what is counted.
pub fn at_least_one(field: &str, number: u32) -> Result<(), Problem> {
    let bounds = Bounds {
        least: Some(1),
        ..Bounds::NONE
    };
    bounds.check(field, number)
}

/// Puts the name of the enclosing field in front.
pub fn within(field: &str, checked: Result<(), Problem>) -> Result<(), Problem> {
    checked.map_err(|(inner, message)| (format!("{field}.{inner}"), message))
}

/// A number must not lie below another.
pub fn not_below(
    (low_name, low): (&str, f64),
    (high_name, high): (&str, f64),
) -> Result<(), Problem> {
    if low <= high {
        Ok(())
    } else {
        problem(
            high_name,
            format!("found {high}; it must be at least {low_name}, {low}"),
        )
    }
}

/// A duration must be above zero and at most `most`.
pub fn positive_up_to(field: &str, duration: Time, most: Time) -> Result<(), Problem> {
    let bounds = Bounds {
        above: Some(Time::ZERO),
        most: Some(most),
        ..Bounds::NONE
    };
    bounds.check(field, duration)
}
