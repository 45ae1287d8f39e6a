//! How a queue for L4S traffic marks by its own delay: a step or a ramp. RFC 9332, appendix A;
//! Linux's sch_dualpi2.

use aqmlab_declare::JsonSchema;
use aqmlab_net::Time;
use serde::{Deserialize, Serialize};

/// How a queue marks by its own delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Native {
    /// The queue marks every packet above the threshold `step`.
    #[default]
    Step,
    /// The marking probability rises linearly with the delay: from 0 at `ramp_min` to 1 at
    /// `ramp_min` + `ramp_range`.
    Ramp,
}

/// The same with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NativeLaw {
    /// What waited for more than this.
    Step(Time),
    /// What leaves more packets behind.
    StepPackets(u32),
    /// From `min` on, for certain `range` later, both in seconds; but nothing that leaves at most
    /// so many packets behind.
    Ramp { min: f64, range: f64, packets: u32 },
}

impl NativeLaw {
    /// The ramp of these delays.
    pub(crate) fn ramp(min: Time, range: Time, packets: u32) -> Self {
        Self::Ramp {
            min: min.as_secs_f64(),
            range: range.as_secs_f64(),
            packets,
        }
    }

    /// The probability of a mark for a packet that waited for so long and leaves so many behind.
    #[inline]
    pub(crate) fn probability(self, sojourn: Time, left: u32) -> f64 {
        match self {
            Self::Step(threshold) => f64::from(u8::from(sojourn > threshold)),
            Self::StepPackets(threshold) => f64::from(u8::from(left > threshold)),
            Self::Ramp { packets, .. } if left <= packets => 0.0,
            Self::Ramp { min, range, .. } => {
                ((sojourn.as_secs_f64() - min) / range).clamp(0.0, 1.0)
            }
        }
    }
}
