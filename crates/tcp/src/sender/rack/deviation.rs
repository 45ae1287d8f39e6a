//! How far round trips lie from the smoothed one, as Linux keeps it for the retransmission timer: the
//! estimate rises at once, and falls once a round trip only, so that the first time-outs of a connection
//! are longer than those of RFC 6298.

use aqmlab_net::Time;

/// Four times each deviation in nanoseconds, as the time-out has it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deviation {
    /// The mean one: with gain 1/4, and 1/32 where a shorter round trip would raise it. 0: no sample yet.
    mean: i64,
    /// The largest mean of this round trip.
    most: i64,
    /// What the time-out takes.
    estimate: i64,
    /// The round trip ends when all below is acknowledged.
    round_end: u64,
}

impl Deviation {
    /// A round trip of `rtt`, where the smoothed one was `srtt`; all below `una` is acknowledged, all below
    /// `max` is out. `least` bounds the estimate, which it returns.
    pub(super) fn on_round_trip(
        &mut self,
        (rtt, srtt): (Time, Option<Time>),
        (una, max): (u64, u64),
        least: Time,
    ) -> Time {
        let nanos = |time: Time| time.as_nanos() as i64;
        let least = nanos(least);
        match srtt {
            Some(srtt) if self.estimate > 0 => {
                let error = nanos(rtt) - nanos(srtt);
                let change = error.abs() - self.mean / 4;
                let is_shorter = error < 0 && change > 0;
                self.mean += if is_shorter { change / 8 } else { change };
                self.most = self.most.max(self.mean);
                self.estimate = self.estimate.max(self.most);
                if una > self.round_end {
                    self.estimate -= (self.estimate - self.most).max(0) / 4;
                    (self.round_end, self.most) = (max, least);
                }
            }
            _ => {
                self.mean = 2 * nanos(rtt);
                self.estimate = self.mean.max(least);
                (self.round_end, self.most) = (max, self.estimate);
            }
        }
        Time::from_nanos(self.estimate as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal round trips of 300 ms, ten samples in each: RFC 6298 would take a quarter off with every sample.
    #[test]
    fn it_falls_once_a_round_trip() {
        let ms = Time::from_millis;
        let (rtt, least) = (ms(300), ms(200));
        let mut deviation = Deviation::default();
        let mut sample = |una, max, srtt| deviation.on_round_trip((rtt, srtt), (una, max), least);
        assert_eq!(sample(1, 1, None), ms(600));
        let fell: Vec<Time> = (0..30)
            .map(|k| sample(2 + k, 12 + 10 * (k / 10), Some(rtt)))
            .collect();
        // The largest mean of the first round trip is the first sample's own: nothing falls behind it.
        assert_eq!(fell[0], ms(600));
        assert_eq!(fell[10], ms(600));
        assert!(fell[11] < ms(600) && fell[20] == fell[11]);
        assert!(fell[29] > ms(450));
    }

    #[test]
    fn it_rises_at_once_and_less_for_a_shorter_round_trip() {
        let ms = Time::from_millis;
        let start = || {
            let mut deviation = Deviation::default();
            deviation.on_round_trip((ms(100), None), (1, 1), ms(200));
            deviation
        };
        let far = start().on_round_trip((ms(500), Some(ms(100))), (2, 9), ms(200));
        assert_eq!(far, ms(200) + ms(350));
        let near = start().on_round_trip((ms(20), Some(ms(100))), (2, 9), ms(200));
        assert_eq!(near, Time::from_nanos(203_750_000));
    }
}
