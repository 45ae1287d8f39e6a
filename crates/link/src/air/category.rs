//! Access categories: how packets of each wait for the air (IEEE 802.11-2020, 10.23.2), and which
//! category a code point has.
//!
//! The values are the defaults that access points announce, as hostapd has them, with the limits of
//! Wi-Fi Multimedia and IEEE 802.11-2012, table 8-105; the access point has the same as its stations.
//! hostapd lets its own access point wait a slot less with video and voice.

use aqmlab_net::RandomStream;
use aqmlab_scenario::{Edca, Phy};

use super::contention::Access;
use super::phy::Nanos;

/// What is the same for all packets of a category.
#[derive(Clone, Copy, Debug)]
pub(super) struct Category {
    pub(super) access: Access,
    /// How long a sender may go on once it has the air; 0: for one transmission.
    pub(super) txop: Nanos,
    /// Whether packets share a transmission. Linux sends each voice packet alone.
    pub(super) has_aggregates: bool,
    /// What the names of its random numbers end with.
    suffix: &'static str,
}

impl Category {
    const fn new(slots: u64, windows: [u32; 2], txop_us: Nanos, suffix: &'static str) -> Self {
        Self {
            access: Access {
                slots,
                begun: 1,
                windows,
            },
            txop: txop_us * 1_000,
            has_aggregates: true,
            suffix,
        }
    }

    /// Random numbers of one owner in this category: those of best effort are the same with and
    /// without categories.
    pub(super) fn draws(&self, seed: u64, what: &str, owner: u64) -> RandomStream {
        RandomStream::new(seed, &format!("{what}{}", self.suffix), owner)
    }
}

/// The highest first.
const EDCA: [Category; 4] = [
    Category {
        has_aggregates: false,
        ..Category::new(2, [3, 7], 1_504, "/voice")
    },
    Category::new(2, [7, 15], 3_008, "/video"),
    Category::new(3, [15, 1023], 0, ""),
    Category::new(7, [15, 1023], 0, "/background"),
];

const VOICE: usize = 0;
const VIDEO: usize = 1;
const BEST_EFFORT: usize = 2;
const BACKGROUND: usize = 3;

/// The categories of a medium, the highest first.
#[derive(Debug)]
pub(super) struct Categories {
    edca: Edca,
    all: Vec<Category>,
}

impl Categories {
    pub(super) fn new(edca: Edca, phy: Phy) -> Self {
        let mut all = EDCA.to_vec();
        if edca == Edca::Off {
            all = vec![EDCA[BEST_EFFORT]];
            all[0].access.begun = 0;
            if phy == Phy::A {
                all[0].access.slots = 2;
            }
        }
        Self { edca, all }
    }

    pub(super) fn all(&self) -> &[Category] {
        &self.all
    }

    pub(super) const fn count(&self) -> usize {
        self.all.len()
    }

    /// The category of packets with a code point.
    pub(super) const fn of(&self, dscp: u8) -> usize {
        match self.edca {
            Edca::Off => 0,
            Edca::Rfc8325 => match dscp {
                // VOICE-ADMIT, EF, CS6, CS7.
                44 | 46 | 48 | 56 => VOICE,
                // CS3, AF3x, CS4, AF4x, CS5.
                24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 | 40 => VIDEO,
                // LE (RFC 8622), CS1.
                1 | 8 => BACKGROUND,
                _ => BEST_EFFORT,
            },
            Edca::Precedence => match dscp >> 3 {
                0 | 3 => BEST_EFFORT,
                1 | 2 => BACKGROUND,
                4 | 5 => VIDEO,
                _ => VOICE,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code points of RFC 4594, in the order of RFC 8325, figure 1, and LE of RFC 8622; what Linux
    /// does since 6.8, and what it did before.
    #[test]
    fn code_points_have_the_categories_of_the_standards() {
        let rfc = Categories::new(Edca::Rfc8325, Phy::Ht20);
        let precedence = Categories::new(Edca::Precedence, Phy::Ht20);
        let off = Categories::new(Edca::Off, Phy::Ht20);
        for (dscp, expected, by_precedence) in [
            (56, VOICE, VOICE),
            (48, VOICE, VOICE),
            (46, VOICE, VIDEO),
            (44, VOICE, VIDEO),
            (40, VIDEO, VIDEO),
            (34, VIDEO, VIDEO),
            (38, VIDEO, VIDEO),
            (32, VIDEO, VIDEO),
            (26, VIDEO, BEST_EFFORT),
            (24, VIDEO, BEST_EFFORT),
            (18, BEST_EFFORT, BACKGROUND),
            (16, BEST_EFFORT, BACKGROUND),
            (10, BEST_EFFORT, BACKGROUND),
            (0, BEST_EFFORT, BEST_EFFORT),
            (8, BACKGROUND, BACKGROUND),
            (1, BACKGROUND, BEST_EFFORT),
            // Nobody has defined it.
            (63, BEST_EFFORT, VOICE),
        ] {
            assert_eq!(rfc.of(dscp), expected, "{dscp}");
            assert_eq!(precedence.of(dscp), by_precedence, "{dscp}");
            assert_eq!(off.of(dscp), 0);
        }
    }
}
