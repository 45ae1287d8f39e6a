//! The part of a run that is measured.

use aqmlab_net::Time;
use aqmlab_scenario::Measure;

/// The measured span of a run: from the end of the warm-up to the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredSpan {
    /// Its first moment.
    pub start: Time,
    /// The first moment behind it.
    pub end: Time,
}

impl MeasuredSpan {
    /// That of a scenario.
    pub fn of(measure: &Measure) -> Self {
        Self {
            start: measure.warm_up,
            end: measure.warm_up + measure.duration,
        }
    }

    /// How long it is.
    pub fn duration(self) -> Time {
        self.end - self.start
    }

    /// Whether `time` is measured: the span is half open, [start, end).
    #[inline]
    pub fn contains(self, time: Time) -> bool {
        self.start <= time && time < self.end
    }

    /// How much of [from, to] is measured.
    #[inline]
    pub fn overlap(self, from: Time, to: Time) -> Time {
        to.min(self.end).saturating_sub(from.max(self.start))
    }
}
