//! What senders measured of their round trips.

use aqmlab_net::Time;
use aqmlab_tcp::RoundTrip;

use crate::DelayHistogram;

/// Round trips that the senders of a class of traffic measured in the measured span.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    /// The samples.
    pub(crate) samples: DelayHistogram,
    /// By how much they exceed the round trip of their connection on an idle path.
    pub(crate) increases: DelayHistogram,
    shortest: Option<Time>,
    /// Sums over the samples: of the smoothed round trip and that on an idle path in nanoseconds,
    /// of the congestion window in bytes.
    smoothed: u128,
    idle: u128,
    cwnd: u128,
}

impl RoundTrips {
    /// A sample of a connection whose round trip on an idle path takes `idle`.
    pub(crate) fn add(&mut self, sample: &RoundTrip, idle: Time) {
        self.samples.add(sample.time);
        self.increases.add(sample.time.saturating_sub(idle));
        let shortest = self.shortest.unwrap_or(Time::NEVER);
        self.shortest = Some(shortest.min(sample.time));
        self.smoothed += u128::from(sample.smoothed.as_nanos());
        self.idle += u128::from(idle.as_nanos());
        self.cwnd += u128::from(sample.cwnd);
    }

    /// Adds those of another class.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.samples.merge(&other.samples);
        self.increases.merge(&other.increases);
        self.shortest = match (self.shortest, other.shortest) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        self.smoothed += other.smoothed;
        self.idle += other.idle;
        self.cwnd += other.cwnd;
    }

    /// The shortest sample in seconds.
    pub(crate) fn min_s(&self) -> Option<f64> {
        self.shortest.map(Time::as_secs_f64)
    }

    fn mean(&self, sum: u128) -> Option<f64> {
        let count = self.samples.count();
        (count > 0).then(|| sum as f64 / count as f64)
    }

    /// Mean of the smoothed round trip at the samples in seconds.
    pub(crate) fn smoothed_mean_s(&self) -> Option<f64> {
        self.mean(self.smoothed).map(|nanos| nanos / 1e9)
    }

    /// Mean of the round trip on an idle path over the samples in seconds.
    pub(crate) fn idle_mean_s(&self) -> Option<f64> {
        self.mean(self.idle).map(|nanos| nanos / 1e9)
    }

    /// Mean of the congestion window at the samples in bytes.
    pub(crate) fn cwnd_mean_bytes(&self) -> Option<f64> {
        self.mean(self.cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_up() {
        let ms = Time::from_millis;
        let mut trips = RoundTrips::default();
        assert_eq!((trips.min_s(), trips.cwnd_mean_bytes()), (None, None));
        for (time, smoothed, cwnd) in [(60, 60, 1000), (40, 50, 2000), (50, 49, 6000)] {
            let sample = RoundTrip {
                time: ms(time),
                smoothed: ms(smoothed),
                cwnd,
            };
            trips.add(&sample, ms(45));
        }
        let mut all = RoundTrips::default();
        all.merge(&trips);
        assert_eq!(all.min_s(), Some(0.040));
        assert_eq!(all.samples.mean_s(), Some(0.050));
        assert_eq!(all.smoothed_mean_s(), Some(0.053));
        assert_eq!(all.idle_mean_s(), Some(0.045));
        assert_eq!(all.cwnd_mean_bytes(), Some(3000.0));
        // 15, 0 and 5 ms: a shorter one than the idle path's is none longer.
        assert_eq!(all.increases.max_s(), Some(0.015));
        assert!((all.increases.mean_s().unwrap() - 0.020 / 3.0).abs() < 1e-12);
    }
}
