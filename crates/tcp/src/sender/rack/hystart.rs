//! HyStart++ (P. Balasubramanian, Y. Huang, M. Olson, RFC 9406, 2023): the first slow start goes on at a
//! quarter of its pace once round trips grow, and ends when they stay that long.

use aqmlab_net::Time;

use crate::control::Control;
use crate::profile::{Profile, SlowStartExit};

/// The constants of section 4.3.
const MIN_RTT_THRESH: Time = Time::from_millis(4);
const MAX_RTT_THRESH: Time = Time::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// L: segments for an ACK at most, where nothing is paced.
pub(super) const LIMIT: u64 = 8;

/// The state of HyStart++; the names are the RFC's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HyStart {
    window_end: u64,
    last_min: Option<Time>,
    current_min: Option<Time>,
    samples: u32,
    /// In conservative slow start: the smallest round trip of the round in which it began.
    css_baseline: Option<Time>,
    css_rounds: u32,
}

/// An ACK in slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Bytes.
    pub(crate) acked: u64,
    pub(crate) rtt: Option<Time>,
    pub(crate) una: u64,
    pub(crate) max: u64,
}

impl HyStart {
    /// An ACK in the first slow start opens the window, for at most so many bytes; false if the
    /// congestion control is to do so.
    #[inline]
    pub(crate) fn opens(
        &mut self,
        control: &mut Control,
        profile: &Profile,
        ack: &Arrival,
        most: u64,
    ) -> bool {
        // A later slow start has a threshold.
        let is_first = control.ssthresh() >= profile.initial_ssthresh.0;
        if profile.slow_start_exit != SlowStartExit::HystartPlusPlus
            || !is_first
            || !control.in_slow_start(profile)
        {
            return false;
        }
        let (bytes, over) = self.on_ack(ack, most);
        control.open_by(bytes);
        if over {
            control.set_ssthresh(control.window());
        }
        true
    }

    /// Bytes by which the window opens, and whether slow start is over.
    fn on_ack(&mut self, ack: &Arrival, most: u64) -> (f64, bool) {
        let bytes = ack.acked.min(most) as f64;
        let grows = match self.css_baseline {
            Some(_) => bytes / CSS_GROWTH_DIVISOR,
            None => bytes,
        };
        if self.window_end == 0 {
            self.window_end = ack.max;
        }
        if let Some(rtt) = ack.rtt {
            self.current_min = Some(self.current_min.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
            self.judge();
        }
        (grows, ack.una >= self.window_end && self.end_round(ack.max))
    }

    fn judge(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match (self.css_baseline, self.current_min, self.last_min) {
            (Some(baseline), Some(current), _) if current < baseline => self.css_baseline = None,
            (None, Some(current), Some(last)) => {
                let eighth = Time::from_nanos(last.as_nanos() / MIN_RTT_DIVISOR);
                if current >= last + eighth.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH) {
                    self.css_baseline = Some(current);
                    self.css_rounds = 0;
                }
            }
            _ => {}
        }
    }

    /// A round is over; whether slow start is.
    fn end_round(&mut self, max: u64) -> bool {
        self.last_min = self.current_min.take();
        self.samples = 0;
        self.window_end = max;
        if self.css_baseline.is_some() {
            self.css_rounds += 1;
        }
        self.css_baseline.is_some() && self.css_rounds >= CSS_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    /// hystartpp.csv: an ACK per segment; rows are the first, the eighth and the last sample of a round
    /// and every event.
    #[test]
    fn hy01_hy02_hy03_hy04_every_round_is_that_of_the_trace() {
        let text = include_str!("../../../tests/data/modern/hystartpp.csv");
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(1)
            .map(|row| row.split(',').collect())
            .collect();
        let mut hystart = HyStart::default();
        let (mut cwnd, mut una, mut events) = (10.0, 1, 0);
        for round in 1..=13_u64 {
            let of_round: Vec<_> = rows
                .iter()
                .filter(|row| row[0].parse() == Ok(round) && !row[2].is_empty())
                .collect();
            let last: u64 = of_round.last().unwrap()[1].parse().unwrap();
            let end = una + last * SEGMENT;
            hystart.window_end = end;
            let mut over = false;
            for sample in 1..=last {
                let at = |row: &&&Vec<&str>| row[1].parse::<u64>().unwrap() <= sample;
                let row = of_round.iter().rfind(at).unwrap();
                una += SEGMENT;
                let ack = Arrival {
                    acked: SEGMENT,
                    rtt: Some(Time::from_secs_f64(row[2].parse::<f64>().unwrap() / 1e3)),
                    una,
                    max: end,
                };
                let before = (hystart.css_baseline, hystart.css_rounds);
                let (bytes, ends) = hystart.on_ack(&ack, u64::MAX);
                cwnd += bytes / SEGMENT as f64;
                over |= ends;
                let exact = row[1].parse() == Ok(sample);
                if exact {
                    let expected: f64 = row[8].parse().unwrap();
                    assert!((cwnd - expected).abs() < 1e-9, "{row:?}: {cwnd}");
                }
                let css = hystart.css_baseline.is_some();
                if before.0.is_some() != css {
                    assert!(
                        exact && !row[9].is_empty(),
                        "round {round}, sample {sample}"
                    );
                    events += 1;
                }
                if exact && sample < last {
                    assert_eq!(css, row[5] == "css", "{row:?}");
                    let rounds: u32 = row[7].parse().unwrap();
                    assert!(!css || hystart.css_rounds == rounds, "{row:?}");
                }
            }
            assert_eq!(over, round == 13, "round {round}");
        }
        assert_eq!((cwnd, events), (117.0, 3));
    }

    #[test]
    fn hy06_an_ack_of_many_segments_opens_by_eight_without_pacing() {
        let ack = Arrival {
            acked: 20 * SEGMENT,
            rtt: None,
            una: 1,
            max: 100_000,
        };
        let mut hystart = HyStart::default();
        assert_eq!(hystart.on_ack(&ack, LIMIT * SEGMENT).0, 8000.0);
        assert_eq!(hystart.on_ack(&ack, u64::MAX).0, 20_000.0);
    }
}
