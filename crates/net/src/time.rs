//! Integer time.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use crate::quantity::{self, Unit};

/// A point in simulated time or a span of it, in whole nanoseconds since the start of the run.
///
/// Nanoseconds, because a 64-byte frame occupies a 1 Gbit/s link for half a microsecond. In
/// scenario files a time is a string with a unit: `"50 ms"`, `"1.5 s"`, `"20 min"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

const UNITS: &[Unit] = &[
    Unit {
        name: "ns",
        factor: 1e0,
    },
    Unit {
        name: "us",
        factor: 1e3,
    },
    Unit {
        name: "ms",
        factor: 1e6,
    },
    Unit {
        name: "s",
        factor: 1e9,
    },
    Unit {
        name: "min",
        factor: 60e9,
    },
    Unit {
        name: "h",
        factor: 3600e9,
    },
];

impl Time {
    /// The start of a run, and the empty span.
    pub const ZERO: Self = Self(0);
    /// Later than everything: a deadline that is not set.
    pub const NEVER: Self = Self(u64::MAX);

    /// A time of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// A time of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A time of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A time of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// A time of `s` seconds, rounded to the nearest nanosecond; negative values become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        let nanos = s * 1e9;
        let whole = nanos as u64;
        // What `round` does, in fewer instructions than its call takes.
        Self(whole.saturating_add(u64::from(nanos - whole as f64 >= 0.5)))
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or [`Time::NEVER`] on overflow.
    pub const fn saturating_add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, span: Self) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, span: Self) {
        self.0 += span.0;
    }
}

impl Sub for Time {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self(self.0 - earlier.0)
    }
}

impl Mul<u64> for Time {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0 s");
        }
        // Hours are accepted but not printed: "5400 s" reads better than "1.5 h" in a table.
        quantity::display(self.0 as f64, &UNITS[..4], 3, f)
    }
}

quantity::string_serde!(
    Time,
    UNITS,
    "a time",
    "50 ms",
    "A time: a number and one of ns, us, ms, s, min or h, for example \"50 ms\"."
);

impl Time {
    fn from_base(ns: f64) -> Self {
        Self(ns.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit() {
        for (text, ns) in [
            ("3 ns", 3),
            ("3us", 3_000),
            ("50 ms", 50_000_000),
            ("445.5 s", 445_500_000_000),
            ("20 min", 1_200_000_000_000),
            ("1.5 h", 5_400_000_000_000),
        ] {
            assert_eq!(text.parse::<Time>(), Ok(Time::from_nanos(ns)), "{text}");
        }
    }

    #[test]
    fn prints_what_it_can_read_back() {
        for ns in [
            0,
            1,
            999,
            1_000,
            1_500_000,
            50_000_000,
            445_500_000_000,
            5_400_000_000_001,
        ] {
            let time = Time::from_nanos(ns);
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
        }
        assert_eq!(Time::from_millis(50).to_string(), "50 ms");
        assert_eq!(Time::from_secs(4200).to_string(), "4200 s");
    }
}
