//! The E-model: what people think of a call, from its delay and its loss (ITU-T G.107).

use aqmlab_declare::JsonSchema;
use aqmlab_net::Time;
use serde::{Deserialize, Serialize};

/// The transmission rating of a path without delay or loss: G.107 with all defaults.
const BEST: f64 = 93.2;

/// A voice codec: its packets, and its values in the E-model (ITU-T G.113, appendix I).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// G.711 with packet loss concealment, 64 kbit/s: 160 bytes every 20 ms.
    #[default]
    G711Plc,
    /// G.711 without concealment.
    G711,
    /// G.729A with voice activity detection, 8 kbit/s: 20 bytes every 20 ms.
    G729a,
    /// G.723.1 at 6.3 kbit/s: 24 bytes every 30 ms.
    G723,
    /// GSM enhanced full rate, 12.2 kbit/s: 31 bytes every 20 ms.
    GsmEfr,
    /// iLBC at 13.3 kbit/s: 50 bytes every 30 ms.
    Ilbc,
    /// Opus at 32 kbit/s: 80 bytes every 20 ms. Its quality values are assumptions; the ITU gives
    /// none.
    Opus,
}

/// What a codec is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Facts {
    /// Bytes of a packet without headers.
    pub(crate) payload: u32,
    /// Time between packets.
    pub(crate) interval: Time,
    /// Frame and look-ahead: what the codec itself delays.
    pub(crate) delay: Time,
    /// Equipment impairment factor.
    pub(crate) impairment: f64,
    /// Packet-loss robustness factor.
    pub(crate) robustness: f64,
}

impl Codec {
    pub(crate) const fn facts(self) -> Facts {
        let (payload, interval, delay, impairment, robustness) = match self {
            Self::G711Plc => (160, 20, 20_000, 0.0, 25.1),
            Self::G711 => (160, 20, 20_000, 0.0, 4.3),
            Self::G729a => (20, 20, 25_000, 11.0, 19.0),
            Self::G723 => (24, 30, 37_500, 15.0, 16.1),
            Self::GsmEfr => (31, 20, 20_000, 5.0, 10.0),
            Self::Ilbc => (50, 30, 40_000, 14.0, 32.0),
            Self::Opus => (80, 20, 26_500, 0.0, 25.0),
        };
        Facts {
            payload,
            interval: Time::from_millis(interval),
            delay: Time::from_micros(delay),
            impairment,
            robustness,
        }
    }
}

/// The transmission rating R of a call.
///
/// `mouth_to_ear` is the one-way delay with the codec's and the playout buffer's. `lost` is the
/// share of packets that came too late or never, `burst_ratio` the mean length of their runs over
/// that of random loss (1: random). The delay impairment is Idd of G.107; echo is cancelled.
pub(crate) fn rating(facts: &Facts, mouth_to_ear: Time, lost: f64, burst_ratio: f64) -> f64 {
    let percent = 100.0 * lost;
    let impairment = facts.impairment
        + (95.0 - facts.impairment) * percent / (percent / burst_ratio + facts.robustness);
    BEST - delay_impairment(mouth_to_ear) - impairment
}

/// Idd of G.107: nothing up to 100 ms.
fn delay_impairment(mouth_to_ear: Time) -> f64 {
    let milliseconds = mouth_to_ear.as_secs_f64() * 1e3;
    if milliseconds <= 100.0 {
        return 0.0;
    }
    let x = libm::log2(milliseconds / 100.0);
    let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// The mean opinion score of a rating, from 1 to 4.5 (G.107, annex B). Between ratings of 0 and 6.5
/// its formula falls below 1, which no listener can say.
pub(crate) fn opinion(rating: f64) -> f64 {
    match rating {
        ..=0.0 => 1.0,
        100.0.. => 4.5,
        _ => (1.0 + 0.035 * rating + 7e-6 * rating * (rating - 60.0) * (100.0 - rating)).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row for each codec and state of a path: `tests/data/emodel_mos.csv`.
    const TABLE: &str = include_str!("../tests/data/emodel_mos.csv");

    #[test]
    fn the_default_is_that_of_g_107() {
        let rating = rating(&Codec::G711.facts(), Time::ZERO, 0.0, 1.0);
        assert_eq!(rating, 93.2);
        assert!((opinion(rating) - 4.41).abs() < 0.001);
        let printed = [
            (90.0, 4.34),
            (80.0, 4.02),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
        ];
        for (rating, score) in printed {
            assert!((opinion(rating) - score).abs() < 0.005, "{rating}");
        }
        assert_eq!([-1.0, 3.0, 100.0].map(opinion), [1.0, 1.0, 4.5]);
    }

    #[test]
    fn every_row_of_the_table_is_met() {
        let mut rows = 0;
        for row in TABLE.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let codec = match cells[0] {
                "g711" => Codec::G711,
                "g711_plc" => Codec::G711Plc,
                "g729a" => Codec::G729a,
                "g723_1_6k3" => Codec::G723,
                "gsm_efr" => Codec::GsmEfr,
                "ilbc_13k3" => Codec::Ilbc,
                other => panic!("{other}"),
            };
            let number = |index: usize| cells[index].parse::<f64>().expect("a number");
            let delay = Time::from_secs_f64(number(1) / 1e3);
            let found = rating(&codec.facts(), delay, number(2) / 100.0, number(3));
            assert!((found - number(9)).abs() < 1e-8, "{row}: {found}");
            assert!((opinion(found) - number(10).max(1.0)).abs() < 1e-8, "{row}");
            rows += 1;
        }
        assert_eq!(rows, 6 * 17);
    }
}
