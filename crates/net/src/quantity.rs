//! Quantities with units, as scenario files write them.

use std::fmt;

use crate::Time;

/// One unit of a quantity: its spelling and how many base units it is.
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) factor: f64,
}

/// Why a string is not a quantity. The message says what was found and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError(String);

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuantityError {}

/// Reads "NUMBER UNIT"; returns the value in base units and the index of the unit.
pub(crate) fn parse(
    text: &str,
    units: &[Unit],
    what: &str,
    example: &str,
) -> Result<(f64, usize), QuantityError> {
    let shown: String = text.chars().take(60).collect();
    let wrong = |why: &str| {
        let names: Vec<_> = units.iter().map(|unit| unit.name).collect();
        Err(QuantityError(format!(
            "found \"{shown}\", {why}; expected {what} such as \"{example}\" (units: {})",
            names.join(", ")
        )))
    };
    let trimmed = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_');
    let split = trimmed
        .find(|c: char| !is_number(c))
        .unwrap_or(trimmed.len());
    // "1e6 bit/s": an exponent belongs to the number, the "e" of no unit follows a digit.
    let split = match trimmed[split..].strip_prefix(['e', 'E']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') => {
            let digits = rest[1..]
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len() - 1);
            split + 2 + digits
        }
        _ => split,
    };
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let Ok(number) = number.parse::<f64>() else {
        return wrong("which does not start with a number");
    };
    if !number.is_finite() {
        return wrong("which is not finite");
    }
    if number < 0.0 {
        return wrong("which is negative");
    }
    if unit.is_empty() {
        return wrong("which has no unit");
    }
    match units.iter().position(|candidate| candidate.name == unit) {
        Some(index) => {
            let value = number * units[index].factor;
            if value >= 9.0e18 {
                wrong("which is too large")
            } else {
                Ok((value, index))
            }
        }
        None => wrong(&format!("whose unit \"{unit}\" is unknown")),
    }
}

/// Prints `base` in the largest of `units` (ascending) in which it is a number of at most
/// `decimals` decimals that reads back as the same.
pub(crate) fn display(
    base: f64,
    units: &[Unit],
    decimals: i32,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let unit = units
        .iter()
        .rev()
        .find(|unit| {
            let value = base / unit.factor;
            value >= 1.0
                && (value * 10f64.powi(decimals)).fract() == 0.0
                && value * unit.factor == base
        })
        .unwrap_or(&units[0]);
    write!(f, "{} {}", base / unit.factor, unit.name)
}

/// `FromStr`, serde and JSON Schema for a quantity that is written as a string with a unit.
macro_rules! string_serde {
    ($name:ident, $units:expr, $what:literal, $example:literal, $description:literal) => {
        impl std::str::FromStr for $name {
            type Err = $crate::QuantityError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let (value, _) = $crate::quantity::parse(text, $units, $what, $example)?;
                Ok(Self::from_base(value))
            }
        }
        $crate::quantity::serde_through_str!($name, $what, $example, $description);
    };
}
pub(crate) use string_serde;

macro_rules! serde_through_str {
    ($name:ident, $what:literal, $example:literal, $description:literal) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!($what, " as a string with a unit, such as \"", $example, "\""))
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": $description,
                    "examples": [$example]
                })
            }
        }
    };
}
pub(crate) use serde_through_str;

/// A transmission rate in bits per second; in scenario files `"10 Mbit/s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const RATE_UNITS: &[Unit] = &[
    Unit {
        name: "bit/s",
        factor: 1e0,
    },
    Unit {
        name: "kbit/s",
        factor: 1e3,
    },
    Unit {
        name: "Mbit/s",
        factor: 1e6,
    },
    Unit {
        name: "Gbit/s",
        factor: 1e9,
    },
];

string_serde!(
    Rate,
    RATE_UNITS,
    "a rate",
    "10 Mbit/s",
    "A bit rate: a number and one of bit/s, kbit/s, Mbit/s or Gbit/s, for example \"10 Mbit/s\"."
);

impl Rate {
    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// A rate of `mbps` million bits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// How long `bytes` occupy the wire, rounded down to a nanosecond. The rate must not be zero,
    /// and `bytes` below 2^31, which holds for every packet: code that reads a packet's length from
    /// a file bounds it.
    pub const fn transmission_time(self, bytes: u64) -> Time {
        Time::from_nanos(bytes * 8_000_000_000 / self.0)
    }

    fn from_base(bps: f64) -> Self {
        Self(bps.round() as u64)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(self.0 as f64, RATE_UNITS, 3, f)
    }
}

/// An amount of data in bytes; in scenario files `"1500 bytes"` or `"64 KiB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const BYTE_UNITS: &[Unit] = &[
    Unit {
        name: "bytes",
        factor: 1.0,
    },
    Unit {
        name: "KiB",
        factor: 1024.0,
    },
    Unit {
        name: "MiB",
        factor: 1_048_576.0,
    },
    Unit {
        name: "GiB",
        factor: 1_073_741_824.0,
    },
    Unit {
        name: "B",
        factor: 1.0,
    },
    Unit {
        name: "byte",
        factor: 1.0,
    },
    Unit {
        name: "kB",
        factor: 1e3,
    },
    Unit {
        name: "MB",
        factor: 1e6,
    },
    Unit {
        name: "GB",
        factor: 1e9,
    },
];

string_serde!(
    Bytes,
    BYTE_UNITS,
    "an amount of data",
    "64 KiB",
    "An amount of data: a number and one of bytes, kB, MB, GB, KiB, MiB or GiB, for example \"64 KiB\"."
);

impl Bytes {
    fn from_base(bytes: f64) -> Self {
        Self(bytes.round() as u64)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(self.0 as f64, &BYTE_UNITS[..4], 0, f)
    }
}

/// A length of a queue, in packets or in bytes; in scenario files `"240 packets"` or `"64 KiB"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSize {
    /// A number of packets. Thresholds may be fractional: ARED's automatic setting gives 62.5.
    Packets(f64),
    /// A number of IP bytes.
    Bytes(u64),
}

impl std::str::FromStr for QueueSize {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const UNITS: &[Unit] = &[
            Unit {
                name: "packets",
                factor: 1.0,
            },
            Unit {
                name: "bytes",
                factor: 1.0,
            },
            Unit {
                name: "KiB",
                factor: 1024.0,
            },
            Unit {
                name: "MiB",
                factor: 1_048_576.0,
            },
            Unit {
                name: "packet",
                factor: 1.0,
            },
            Unit {
                name: "kB",
                factor: 1e3,
            },
            Unit {
                name: "MB",
                factor: 1e6,
            },
        ];
        let (value, unit) = parse(text, UNITS, "a queue length", "240 packets")?;
        Ok(match UNITS[unit].name {
            "packets" | "packet" => Self::Packets(value),
            _ => Self::Bytes(value.round() as u64),
        })
    }
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
        }
    }
}

serde_through_str!(
    QueueSize,
    "a queue length",
    "240 packets",
    "A queue length: a number and one of packets, bytes, kB, MB, KiB or MiB, for example \"240 packets\"."
);

/// How often something happens, per second; in scenario files `"120 /s"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Frequency(pub f64);

const FREQUENCY_UNITS: &[Unit] = &[Unit {
    name: "/s",
    factor: 1.0,
}];

string_serde!(
    Frequency,
    FREQUENCY_UNITS,
    "a frequency",
    "120 /s",
    "A frequency: a number and /s (per second), for example \"120 /s\"."
);

impl Frequency {
    fn from_base(per_second: f64) -> Self {
        Self(per_second)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} /s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_rates_and_sizes() {
        assert_eq!("10 Mbit/s".parse(), Ok(Rate::from_mbps(10)));
        assert_eq!(
            "1.544 Mbit/s".parse::<Rate>().unwrap().to_string(),
            "1.544 Mbit/s"
        );
        assert_eq!("1e6 bit/s".parse::<Rate>().unwrap().to_string(), "1 Mbit/s");
        assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!(
            "17280 bytes".parse::<Bytes>().unwrap().to_string(),
            "17280 bytes"
        );
        assert_eq!("240 packets".parse(), Ok(QueueSize::Packets(240.0)));
        assert_eq!("64 KiB".parse(), Ok(QueueSize::Bytes(65_536)));
        assert_eq!(QueueSize::Packets(62.5).to_string(), "62.5 packets");
        assert_eq!("120 /s".parse(), Ok(Frequency(120.0)));
    }

    #[test]
    fn refuses_with_the_reason_and_the_remedy() {
        let message = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert!(message("-3 Mbit/s").contains("negative"));
        assert!(message("10").contains("no unit"));
        assert!(message("10 Mbps").contains("unit \"Mbps\" is unknown"));
        assert!(message("10 Mbps").contains("bit/s, kbit/s, Mbit/s, Gbit/s"));
        assert!(message("fast").contains("does not start with a number"));
        assert!(message("NaN Mbit/s").contains("does not start with a number"));
        assert!(message("1e99 Mbit/s").contains("too large"));
        assert!(message(&"9".repeat(100_000)).len() < 300);
    }

    #[test]
    fn a_bare_number_is_refused() {
        let error = serde_json::from_str::<Rate>("10").unwrap_err().to_string();
        assert!(error.contains("string with a unit"), "{error}");
    }

    #[test]
    fn transmission_time_of_an_ethernet_frame() {
        // 1500 + 38 bytes at 10 Mbit/s: 1.2304 ms.
        let time = Rate::from_mbps(10).transmission_time(1538);
        assert_eq!(time, Time::from_nanos(1_230_400));
    }
}
