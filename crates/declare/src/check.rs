//! Checks that many parameters share. Each takes the name of the field and its value; the error says
//! what was found and what would be right.

use aqmlab_net::{Bytes, Time};

/// Which field is wrong, and why: what was found and what would be right.
pub type Problem = (String, String);

/// The field, and what is wrong with it.
pub fn problem(field: &str, message: impl Into<String>) -> Result<(), Problem> {
    Err((field.to_owned(), message.into()))
}

/// A weight or probability must lie in (0, 1].
pub fn in_unit_interval(field: &str, value: f64) -> Result<(), Problem> {
    if value > 0.0 && value <= 1.0 {
        Ok(())
    } else {
        problem(
            field,
            format!("found {value}; it must be above 0 and at most 1"),
        )
    }
}

/// A share must lie between 0 and 1.
pub fn share(field: &str, value: f64) -> Result<(), Problem> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        problem(
            field,
            format!("found {value}; it must be above 0 and below 1"),
        )
    }
}

/// A duration must not be zero.
pub fn positive(field: &str, duration: Time) -> Result<(), Problem> {
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
pub fn between(field: &str, value: f64, low: f64, high: f64) -> Result<(), Problem> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        problem(
            field,
            format!(
                "found {}; it must be at least {low} and at most {high}",
                shown(value)
            ),
        )
    }
}

/// A number without rows of zeros.
fn shown(value: f64) -> String {
    match value == 0.0 || (1e-6..1e15).contains(&value.abs()) {
        true => value.to_string(),
        false => format!("{value:e}"),
    }
}

/// A number must be finite and exceed `low`.
pub fn above(field: &str, value: f64, low: f64) -> Result<(), Problem> {
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
pub fn at_least(field: &str, value: f64, low: f64) -> Result<(), Problem> {
    if value >= low && value.is_finite() {
        Ok(())
    } else {
        problem(field, format!("found {value}; it must be at least {low}"))
    }
}

/// An amount of data must not be zero.
pub fn bytes(field: &str, found: Bytes) -> Result<(), Problem> {
    if found.0 > 0 {
        Ok(())
    } else {
        problem(field, format!("found {found}; it must be at least 1 byte"))
    }
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
    if (least..=most).contains(&value) {
        Ok(())
    } else if most == u32::MAX {
        problem(field, format!("found {value}; it must be at least {least}"))
    } else {
        problem(
            field,
            format!("found {value}; it must be from {least} to {most}"),
        )
    }
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
    if number > 0 {
        Ok(())
    } else {
        problem(field, "found 0; it must be at least 1")
    }
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
    if duration > Time::ZERO && duration <= most {
        Ok(())
    } else {
        problem(
            field,
            format!("found {duration}; it must be above 0 s and at most {most}"),
        )
    }
}
