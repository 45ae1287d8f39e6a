//! What the trip of a segment waited for.

use aqmlab_record::{Part, PathCount};
use aqmlab_tcp::SendLimit;

/// What the trip of a segment waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Handshake,
    Exchange,
    SlowStart,
    CongestionAvoidance,
    ReceiveWindow,
    Recovery,
}

impl Label {
    /// The part that its propagation is.
    pub(super) const fn part(self) -> Part {
        match self {
            Self::Handshake => Part::PropagationHandshake,
            Self::Exchange => Part::PropagationExchange,
            Self::SlowStart => Part::PropagationSlowStart,
            Self::CongestionAvoidance => Part::PropagationCongestionAvoidance,
            Self::ReceiveWindow => Part::PropagationReceiveWindow,
            Self::Recovery => Part::PropagationRecovery,
        }
    }

    /// What the trip counts as.
    pub(super) const fn count(self) -> PathCount {
        match self {
            Self::Handshake => PathCount::TripsHandshake,
            Self::Exchange => PathCount::TripsExchange,
            Self::SlowStart => PathCount::TripsSlowStart,
            Self::CongestionAvoidance => PathCount::TripsCongestionAvoidance,
            Self::ReceiveWindow => PathCount::TripsReceiveWindow,
            Self::Recovery => PathCount::TripsRecovery,
        }
    }
}

impl From<SendLimit> for Label {
    fn from(limit: SendLimit) -> Self {
        match limit {
            SendLimit::Recovery => Self::Recovery,
            SendLimit::Buffer => Self::ReceiveWindow,
            SendLimit::SlowStart => Self::SlowStart,
            SendLimit::CongestionAvoidance => Self::CongestionAvoidance,
        }
    }
}
