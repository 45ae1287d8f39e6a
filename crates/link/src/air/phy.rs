//! How long transmissions last on the air: IEEE 802.11-2020, clauses 17, 19 and 21, and 802.11ax.

use aqmlab_scenario::{Modulation, Phy};

/// Nanoseconds.
pub(super) type Nanos = u64;

const US: Nanos = 1_000;

/// Bits before the payload of a transmission, and behind it.
const SERVICE_AND_TAIL: u64 = 16 + 6;

/// Bytes of an acknowledgement, and of one that says which packets of an aggregate came.
const ACK: u64 = 14;
const BLOCK_ACK: u64 = 32;

/// Bytes of the header that says what a packet is, between that of the frame and IP.
const LLC: u64 = 8;

/// What one station sends with, and what is sent to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhyRate {
    preamble: Nanos,
    symbol: Nanos,
    /// Bits that a symbol carries.
    bits: u64,
    /// Bytes of a frame beside its IP bytes.
    framing: u64,
    /// How long the answer takes to a lone packet, and to an aggregate.
    pub(super) ack: Nanos,
    pub(super) block_ack: Nanos,
}

/// Bits of a subcarrier and how many of them are data, by modulation and coding scheme.
const SCHEMES: [(u64, u64, u64); 12] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
    (10, 3, 4),
    (10, 5, 6),
];

impl PhyRate {
    /// That of a PHY, with the short guard interval where it has one.
    pub(super) fn new(phy: Phy, modulation: Modulation) -> Self {
        let symbol = match phy {
            Phy::A => 4_000,
            Phy::Ht20 | Phy::Ht40 | Phy::Vht80 => 3_600,
            Phy::He80 => 13_600,
        };
        Self::with_symbol(phy, modulation, symbol)
    }

    /// Rates of a PHY with symbols of another length.
    pub(super) fn with_symbol(phy: Phy, modulation: Modulation, symbol: Nanos) -> Self {
        let (bits, streams, legacy) = match modulation {
            // A symbol of 4 us.
            Modulation::Rate(mbps) => (4 * u64::from(mbps), 1, mbps),
            Modulation::Mcs(mcs, streams) => {
                let (carried, data, all) = SCHEMES[mcs as usize];
                let tones = match phy {
                    Phy::A => 48,
                    Phy::Ht20 => 52,
                    Phy::Ht40 => 108,
                    Phy::Vht80 => 234,
                    Phy::He80 => 980,
                };
                let streams = u64::from(streams);
                let legacy = [6, 12, 12][..].get(mcs as usize).copied().unwrap_or(24);
                (tones * carried * streams * data / all, streams, legacy)
            }
        };
        let (alone, per_stream) = match phy {
            Phy::A => (20 * US, 0),
            Phy::Ht20 | Phy::Ht40 => (36 * US, 4 * US),
            Phy::Vht80 => (40 * US, 4 * US),
            Phy::He80 => (44 * US, 8 * US),
        };
        // Answers go out at a rate that all understand, and no faster than the data.
        let basic = match legacy {
            0..12 => 6,
            12..24 => 12,
            _ => 24,
        };
        let answer =
            |bytes: u64| 20 * US + (SERVICE_AND_TAIL + 8 * bytes).div_ceil(4 * basic) * 4 * US;
        Self {
            preamble: alone + (streams - 1) * per_stream,
            symbol,
            bits,
            // Without the quality of service that 802.11a does not know.
            framing: LLC + if phy == Phy::A { 28 } else { 30 },
            ack: answer(ACK),
            block_ack: answer(BLOCK_ACK),
        }
    }

    /// How long a transmission of so many bytes lasts.
    #[inline]
    pub(super) const fn ppdu(&self, bytes: u64) -> Nanos {
        let bits = SERVICE_AND_TAIL + 8 * bytes;
        self.preamble + bits.div_ceil(self.bits) * self.symbol
    }

    /// The bytes of a packet that is sent alone.
    pub(super) fn alone(&self, size: u32) -> u64 {
        self.framing + u64::from(size)
    }

    /// The bytes of a packet in an aggregate: a delimiter before it, padded behind.
    pub(super) fn in_aggregate(&self, size: u32) -> u64 {
        (self.alone(size) + 4).next_multiple_of(4)
    }

    /// The preamble of ns-3, which knows no SIG-B.
    #[cfg(test)]
    pub(super) const fn leave_out_sig_b(&mut self) {
        self.preamble -= 4 * US;
    }

    /// Bits a second while it sends.
    pub(super) const fn bits_per_second(&self) -> u64 {
        self.bits * 1_000_000_000 / self.symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::air::worked;

    /// What the lengths of all transmissions in an independent table are.
    #[test]
    fn transmissions_last_as_long_as_in_the_table() {
        let mut rows = 0;
        for row in worked::rows(include_str!("worked/wifi_ppdu.csv")) {
            let number = |name: &str| row[name].parse::<u64>().expect("a number");
            let (mcs, streams) = (number("mcs") as u32, number("streams") as u32);
            let (phy, modulation) = match row["phy"].as_str() {
                "11a" => (Phy::A, Modulation::Rate(mcs)),
                "ht20" => (Phy::Ht20, Modulation::Mcs(mcs % 8, 1 + mcs / 8)),
                "ht40" => (Phy::Ht40, Modulation::Mcs(mcs % 8, 1 + mcs / 8)),
                "vht80" => (Phy::Vht80, Modulation::Mcs(mcs, streams)),
                "he80" => (Phy::He80, Modulation::Mcs(mcs, streams)),
                other => panic!("{other}"),
            };
            let rate = PhyRate::with_symbol(phy, modulation, number("symbol_ns"));
            assert_eq!(rate.bits, number("bits_per_symbol"), "{row:?}");
            assert_eq!(
                rate.ppdu(number("psdu_bytes")),
                number("ppdu_ns"),
                "{row:?}"
            );
            rows += 1;
        }
        assert_eq!(rows, 127);
    }

    #[test]
    fn answers_go_out_at_the_highest_basic_rate_that_the_data_allow() {
        let answers = |phy, modulation| {
            let rate = PhyRate::new(phy, modulation);
            [rate.ack, rate.block_ack].map(|it| it / US)
        };
        for (modulation, expected) in [
            (Modulation::Mcs(0, 1), [44, 68]),
            (Modulation::Mcs(1, 1), [32, 44]),
            (Modulation::Mcs(2, 2), [32, 44]),
            (Modulation::Mcs(3, 1), [28, 32]),
            (Modulation::Mcs(7, 2), [28, 32]),
        ] {
            assert_eq!(answers(Phy::Ht20, modulation), expected, "{modulation:?}");
        }
        for (rate, ack) in [(6, 44), (9, 44), (12, 32), (18, 32), (24, 28), (54, 28)] {
            assert_eq!(answers(Phy::A, Modulation::Rate(rate))[0], ack, "{rate}");
        }
    }
}
