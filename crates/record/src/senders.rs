//! What the ends of connections measure and send again.

use aqmlab_net::Time;
use aqmlab_tcp::{RoundTrip, SegmentKind};

use crate::RoundTrips;

/// What the ends of a class's connections measured and sent again in the measured span, also of
/// connections that go on.
#[derive(Clone, Debug, Default)]
pub struct SenderStats {
    pub(crate) round_trips: RoundTrips,
    /// Segments that were sent again.
    pub(crate) syn: u64,
    pub(crate) fin: u64,
    pub(crate) data: u64,
}

impl SenderStats {
    /// A round trip of a connection was measured that would take `idle` on an idle path.
    pub fn on_round_trip(&mut self, sample: &RoundTrip, idle: Time) {
        self.round_trips.add(sample, idle);
    }

    /// A segment was sent again.
    pub const fn on_retransmission(&mut self, kind: SegmentKind) {
        match kind {
            SegmentKind::Syn => self.syn += 1,
            SegmentKind::Fin => self.fin += 1,
            SegmentKind::Data => self.data += 1,
        }
    }

    /// Adds those of another class.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.round_trips.merge(&other.round_trips);
        self.syn += other.syn;
        self.fin += other.fin;
        self.data += other.data;
    }
}
