//! Round trips and the probe time-out (RFC 9002, sections 5 and 6.2.1).

use aqmlab_net::Time;

/// kGranularity.
pub(crate) const GRANULARITY: Time = Time::from_millis(1);

/// kInitialRtt.
const INITIAL: Time = Time::from_millis(333);

/// The estimate of the round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    pub(crate) latest: Time,
    pub(crate) smoothed: Time,
    variation: Time,
    pub(crate) least: Option<Time>,
    /// When the first sample was taken.
    pub(crate) first_at: Option<Time>,
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            latest: INITIAL,
            smoothed: INITIAL,
            variation: part(INITIAL, 1, 2),
            least: None,
            first_at: None,
        }
    }
}

fn part(time: Time, count: u64, of: u64) -> Time {
    Time::from_nanos(time.as_nanos() * count / of)
}

impl Rtt {
    /// A sample: the newest packet acknowledged was sent `latest` ago, and the peer says that it has
    /// held the acknowledgement for `delay`, its own limit applied.
    pub(crate) fn sample(&mut self, latest: Time, delay: Time, now: Time) {
        self.latest = latest;
        if self.first_at.is_none() {
            self.first_at = Some(now);
            (self.smoothed, self.variation) = (latest, part(latest, 1, 2));
            self.least = Some(latest);
            return;
        }
        let least = self.least.map_or(latest, |least| least.min(latest));
        self.least = Some(least);
        let adjusted = match least + delay <= latest {
            true => latest - delay,
            false => latest,
        };
        // Appendix A.7 takes the sample of the variation first; section 5.3 does not.
        let apart = self.smoothed.max(adjusted) - self.smoothed.min(adjusted);
        self.variation = part(self.variation, 3, 4) + part(apart, 1, 4);
        self.smoothed = part(self.smoothed, 7, 8) + part(adjusted, 1, 8);
    }

    /// Persistent congestion: the path has changed.
    pub(crate) fn forget_least(&mut self) {
        self.least = None;
    }

    /// The smoothed round trip and four times its variation.
    pub(crate) fn timeout(&self) -> Time {
        self.smoothed + (self.variation * 4).max(GRANULARITY)
    }

    /// For how long a packet is waited for behind a later one (kTimeThreshold).
    pub(crate) fn patience(&self) -> Time {
        part(self.smoothed.max(self.latest), 9, 8).max(GRANULARITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Time {
        Time::from_secs_f64(ms / 1e3)
    }

    #[test]
    fn rt02_the_estimate_is_that_of_the_rfc() {
        let mut rtt = Rtt::default();
        let mut found = Vec::new();
        for sample in [100.0, 120.0, 80.0] {
            rtt.sample(ms(sample), Time::ZERO, ms(1.0));
            found.push((rtt.smoothed, rtt.variation));
        }
        // The variation goes by the estimate of before: 50, then 37.5 + 20 / 4, then 31.875 + 22.5 / 4.
        let expected = [(100.0, 50.0), (102.5, 42.5), (99.6875, 37.5)];
        assert_eq!(
            found,
            expected.map(|(smoothed, variation)| (ms(smoothed), ms(variation)))
        );
    }

    #[test]
    fn rt03_the_peers_delay_is_left_out_but_not_below_the_least_round_trip() {
        // At 20 ms the least round trip is left: that is not below it.
        for (delay, adjusted) in [(25.0, 60.0), (20.0, 40.0), (10.0, 50.0)] {
            let mut rtt = Rtt::default();
            rtt.sample(ms(40.0), Time::ZERO, ms(1.0));
            rtt.sample(ms(60.0), ms(delay), ms(2.0));
            assert_eq!(
                rtt.smoothed,
                ms(40.0 * 7.0 / 8.0 + adjusted / 8.0),
                "{delay}"
            );
        }
    }

    #[test]
    fn rt04_the_least_round_trip_is_not_adjusted_and_begins_anew() {
        let mut rtt = Rtt::default();
        for sample in [50.0, 40.0, 60.0] {
            rtt.sample(ms(sample), ms(5.0), ms(1.0));
        }
        assert_eq!(rtt.least, Some(ms(40.0)));
        rtt.forget_least();
        rtt.sample(ms(70.0), Time::ZERO, ms(2.0));
        assert_eq!(rtt.least, Some(ms(70.0)));
    }

    #[test]
    fn ld04_the_probe_time_out_has_four_variations_or_a_millisecond() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(), Time::from_millis(999), "without a sample");
        (rtt.smoothed, rtt.variation) = (ms(40.0), ms(5.0));
        assert_eq!(rtt.timeout(), ms(60.0));
        rtt.variation = Time::ZERO;
        assert_eq!(rtt.timeout(), ms(41.0));
    }
}
