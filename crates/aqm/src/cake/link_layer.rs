//! What a packet costs on the link behind the shaper: overhead, least length, cells.

use aqmlab_declare::JsonSchema;
use serde::{Deserialize, Serialize};

/// Framing of the link after the shaper, by the keywords of Linux's tc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkLayer {
    /// No framing: the shaper counts IP bytes.
    #[default]
    Raw,
    /// 48 bytes of overhead, then ATM cells: more than any real link needs.
    Conservative,
    /// Ethernet with preamble and interframe gap: 38 bytes, at least 84 bytes per packet.
    Ethernet,
    /// Cable modems (DOCSIS): 18 bytes, at least 64 bytes per packet.
    Docsis,
    /// 8 bytes, ATM cells.
    IpoaVcmux,
    /// 16 bytes, ATM cells.
    IpoaLlcsnap,
    /// 24 bytes, ATM cells.
    BridgedVcmux,
    /// 32 bytes, ATM cells.
    BridgedLlcsnap,
    /// 10 bytes, ATM cells.
    PppoaVcmux,
    /// 14 bytes, ATM cells.
    PppoaLlc,
    /// 32 bytes, ATM cells.
    PppoeVcmux,
    /// 40 bytes, ATM cells.
    PppoeLlcsnap,
    /// VDSL2 with PPPoE: 30 bytes, PTM.
    PppoePtm,
    /// 22 bytes, PTM.
    BridgedPtm,
}

/// How the link splits packets into cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cells {
    /// The link does not split packets.
    #[default]
    None,
    /// ATM: each cell has 53 bytes, and 48 of them are payload.
    Atm,
    /// PTM: the link adds one byte for each 64 bytes.
    Ptm,
}

/// The rule by which packets are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    pub(super) overhead: i32,
    pub(super) mpu: u32,
    pub(super) cells: Cells,
}

impl LinkLayer {
    pub(super) const fn charge(self) -> Charge {
        let (overhead, mpu, cells) = match self {
            Self::Raw => (0, 0, Cells::None),
            Self::Conservative => (48, 0, Cells::Atm),
            Self::Ethernet => (38, 84, Cells::None),
            Self::Docsis => (18, 64, Cells::None),
            Self::IpoaVcmux => (8, 0, Cells::Atm),
            Self::IpoaLlcsnap => (16, 0, Cells::Atm),
            Self::BridgedVcmux => (24, 0, Cells::Atm),
            Self::BridgedLlcsnap => (32, 0, Cells::Atm),
            Self::PppoaVcmux => (10, 0, Cells::Atm),
            Self::PppoaLlc => (14, 0, Cells::Atm),
            Self::PppoeVcmux => (32, 0, Cells::Atm),
            Self::PppoeLlcsnap => (40, 0, Cells::Atm),
            Self::PppoePtm => (30, 0, Cells::Ptm),
            Self::BridgedPtm => (22, 0, Cells::Ptm),
        };
        Charge {
            overhead,
            mpu,
            cells,
        }
    }
}

impl Charge {
    /// What a packet of `size` IP bytes is charged.
    #[inline]
    pub(super) fn of(self, size: u32) -> u32 {
        let length = size.saturating_add_signed(self.overhead).max(self.mpu);
        match self.cells {
            Cells::None => length,
            Cells::Atm => length.div_ceil(48) * 53,
            Cells::Ptm => length + length.div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worked::rows;

    #[test]
    fn ck02_charged_lengths_follow_the_table() {
        for row in rows(include_str!("../../tests/data/cake_overhead.csv")) {
            let keyword = toml::Value::from(row.text("keyword"));
            let charge = keyword.try_into::<LinkLayer>().unwrap().charge();
            let what = row.text("keyword");
            assert_eq!(
                f64::from(charge.overhead),
                row.number("overhead_bytes"),
                "{what}"
            );
            assert_eq!(f64::from(charge.mpu), row.number("mpu_bytes"), "{what}");
            let cells = toml::Value::from(row.text("cells"));
            assert_eq!(charge.cells, cells.try_into().unwrap(), "{what}");
            let charged = charge.of(row.number("ip_bytes") as u32);
            assert_eq!(f64::from(charged), row.number("charged_bytes"), "{what}");
        }
    }
}
