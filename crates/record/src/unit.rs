//! The units of results, and how people read them.

use serde::Serialize;

/// The unit of a value in results, and the one in which people read it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unit {
    /// The unit of the value as it is stored: `1` for a number without a unit.
    pub stored: &'static str,
    /// The unit in which it is shown.
    pub shown: &'static str,
    /// What the stored value is multiplied by to show it.
    pub scale: f64,
}

impl Unit {
    /// A number of things, or an index, without a unit.
    pub const NUMBER: Self = Self::plain("1");
    /// Packets.
    pub const PACKETS: Self = Self::plain("packets");
    /// Datagrams.
    pub const DATAGRAMS: Self = Self::plain("datagrams");
    /// Bytes, shown as kilobytes.
    pub const BYTES: Self = Self {
        stored: "bytes",
        shown: "kB",
        scale: 1e-3,
    };
    /// Seconds.
    pub const SECONDS: Self = Self::plain("s");
    /// Seconds, shown as milliseconds.
    pub const MILLISECONDS: Self = Self {
        stored: "s",
        shown: "ms",
        scale: 1e3,
    };
    /// Bits per second, shown as megabits per second.
    pub const BIT_RATE: Self = Self {
        stored: "bit/s",
        shown: "Mbit/s",
        scale: 1e-6,
    };
    /// A share from 0 to 1, shown in per cent.
    pub const SHARE: Self = Self {
        stored: "1",
        shown: "%",
        scale: 100.0,
    };

    const fn plain(name: &'static str) -> Self {
        Self {
            stored: name,
            shown: name,
            scale: 1.0,
        }
    }
}
