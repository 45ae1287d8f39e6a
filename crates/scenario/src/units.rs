//! Two small quantities that only scenarios have.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use aqmlab_declare::Measure;
use aqmlab_net::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes that each packet costs on the wire beyond its IP length; in scenario files `"ethernet"`,
/// `"none"` or `"44 bytes"`.
///
/// The default is Ethernet's 38 bytes: preamble 8, header 14, check sum 4, gap 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing(pub u32);

impl Framing {
    /// Ethernet: preamble, header, frame check sequence and inter-frame gap.
    pub const ETHERNET: Self = Self(38);
    /// A wire that carries IP packets bare.
    pub const NONE: Self = Self(0);
}

impl Default for Framing {
    fn default() -> Self {
        Self::ETHERNET
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ETHERNET => f.write_str("ethernet"),
            Self::NONE => f.write_str("none"),
            Self(bytes) => write!(f, "{bytes} bytes"),
        }
    }
}

impl FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ethernet" => return Ok(Self::ETHERNET),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        let bytes: Bytes = text
            .parse()
            .map_err(|error| format!("{error}; or \"ethernet\", which is 38 bytes, or \"none\""))?;
        // No link layer costs as much as the largest packet.
        match u16::try_from(bytes.0) {
            Ok(bytes) => Ok(Self(bytes.into())),
            Err(_) => Err(format!(
                "found {bytes} for each packet; at most 65535 bytes"
            )),
        }
    }
}

/// A number of packets; in scenario files `"254 packets"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packets(pub u32);

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.0)
    }
}

impl FromStr for Packets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim_end().strip_suffix("packets").map(str::trim_end);
        number
            .and_then(|number| number.parse().ok())
            .map(Self)
            .ok_or_else(|| {
                let found = aqmlab_declare::tagged::quoted(text);
                format!("found {found}; expected a whole number of packets such as \"254 packets\"")
            })
    }
}

impl Measure for Packets {
    fn shown(self) -> String {
        self.to_string()
    }

    fn neighbours(self) -> [Option<Self>; 2] {
        self.0.neighbours().map(|packets| packets.map(Self))
    }
}

/// serde and JSON Schema for a quantity that is written as a string.
macro_rules! through_string {
    ($name:ident, $expected:literal, $schema:tt) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

through_string!(
    Framing,
    "\"ethernet\", \"none\" or a number of bytes such as \"44 bytes\"",
    {
        "type": "string",
        "description": "Framing: \"ethernet\" (38 bytes for each packet), \"none\" (0 bytes), or a number of bytes, for example \"44 bytes\".",
        "examples": ["ethernet", "none", "44 bytes"]
    }
);

through_string!(
    Packets,
    "a number of packets as a string with a unit, such as \"254 packets\"",
    {
        "type": "string",
        "description": "A number of packets: a whole number and the word packets, for example \"254 packets\".",
        "examples": ["254 packets"]
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_has_names_for_the_usual() {
        assert_eq!("ethernet".parse(), Ok(Framing(38)));
        assert_eq!("none".parse(), Ok(Framing(0)));
        assert_eq!("44 bytes".parse(), Ok(Framing(44)));
        for framing in [Framing(0), Framing(38), Framing(44)] {
            assert_eq!(framing.to_string().parse(), Ok(framing));
        }
        assert!(
            "70000 bytes"
                .parse::<Framing>()
                .unwrap_err()
                .contains("at most 65535")
        );
        assert!(
            "etherne"
                .parse::<Framing>()
                .unwrap_err()
                .contains("\"ethernet\"")
        );
    }

    #[test]
    fn packets_are_whole() {
        assert_eq!("254 packets".parse(), Ok(Packets(254)));
        assert!("1.5 packets".parse::<Packets>().is_err());
        assert!("254".parse::<Packets>().is_err());
    }
}
