//! What users of an application got: the figures by which each is judged.

use aqmlab_net::Time;

/// What the users of a class got within what is measured. What means nothing to an application is
/// empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quality {
    /// Page load times in seconds, of pages that were complete in the span.
    pub page_loads: Samples,
    /// Mean time in seconds from the beginning of a page to each of its objects, of those pages.
    pub object_index: Samples,
    /// Throughput of files in bits per second: size over time from the first SYN to the last byte.
    pub throughputs: Samples,
    /// What viewers of streamed video got.
    pub video: Video,
    /// What listeners of voice got.
    pub voice: Voice,
    /// Seconds from the capture of a video frame to the arrival of its last packet.
    pub frame_delays: Samples,
    /// Streams of interactive video.
    pub streams: u32,
    /// Frames sent.
    pub frames: u64,
    /// Seconds in which the picture was frozen, and seconds in which it was watched.
    pub frozen_s: f64,
    /// See `frozen_s`.
    pub watched_s: f64,
    /// Bits of complete frames.
    pub frame_bits: f64,
    /// Seconds from an input of a player to the arrival of the first complete frame after it.
    pub round_trips: Samples,
}

/// What viewers of streamed video got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Video {
    /// Seconds from asking for the first segment to the first picture.
    pub startup_delays: Samples,
    /// Bit rates of the segments that arrived, as the ladder has them.
    pub bitrates: Samples,
    /// Seconds that were played, and in which playing stood still behind its start.
    pub played_s: f64,
    /// See `played_s`.
    pub stalled_s: f64,
    /// Stalls that began.
    pub stalls: u64,
    /// Segments whose rate is not that of the one before.
    pub switches: u64,
}

/// What listeners of voice got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Voice {
    /// Mean opinion score of each window of 10 s of each call.
    pub scores: Samples,
    /// Its transmission rating.
    pub ratings: Samples,
    /// Seconds from mouth to ear in each.
    pub mouth_to_ear: Samples,
    /// Packets that were rated, and those of them that came too late or never.
    pub packets: u64,
    /// See `packets`.
    pub lost: u64,
}

/// Numbers of which percentiles are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// One more.
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// One more length of time, in seconds.
    pub fn add_time(&mut self, time: Time) {
        self.add(time.as_secs_f64());
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their mean, if there are any.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().sum();
        (!self.0.is_empty()).then(|| sum / self.0.len() as f64)
    }

    /// The smallest, if there are any.
    pub fn min(&self) -> Option<f64> {
        self.0.iter().copied().min_by(f64::total_cmp)
    }

    /// The share of them above `limit`, if there are any.
    pub fn share_above(&self, limit: f64) -> Option<f64> {
        let above = self.0.iter().filter(|&&value| value > limit);
        let above = above.count() as f64;
        (!self.0.is_empty()).then(|| above / self.0.len() as f64)
    }

    /// The smallest value that is not below these shares of all, in ascending order, if there are
    /// any.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Option<f64>; N] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        shares.map(|share| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut samples = Samples::default();
        assert_eq!(samples.quantiles([0.5]), [None]);
        for value in [5.0, 1.0, 4.0, 2.0] {
            samples.add(value);
        }
        let expected = [Some(1.0), Some(2.0), Some(4.0), Some(5.0)];
        assert_eq!(samples.quantiles([0.25, 0.5, 0.75, 0.95]), expected);
        assert_eq!((samples.mean(), samples.min()), (Some(3.0), Some(1.0)));
        assert_eq!(samples.share_above(4.0), Some(0.25));
    }
}
