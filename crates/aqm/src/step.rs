//! Step marking: every arrival that finds more than K waiting is signalled. M. Alizadeh et al.,
//! "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1; RFC 8257, section 3.1.

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of step marking.
#[parameters]
pub struct Params {
    /// Marking threshold, K in the paper. A packet that finds a longer queue is marked.
    #[param(changeable)]
    pub threshold: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Mean packet size. It converts a threshold in bytes to packets.
    #[param(default = "1500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default = true, changeable)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Step marking",
        paper: "M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, section 3.1; RFC 8257, \
                section 3.1",
        purpose: "Signals at once when the queue exceeds a threshold, for transports that react to \
                  the share of marked packets.",
        departures: &["Packets that are not ECN-capable are dropped instead of marked."],
        memory: "nothing",
    };

    fn check_together(&self) -> Result<(), Problem> {
        let [threshold, room] = [self.threshold, self.limit]
            .map(|size| Unit::Packets.threshold(size, self.mean_packet));
        check::ascending(("threshold", threshold), ("limit", room))
    }
}

impl AqmParameters for Params {
    type Aqm = Step;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Step {
        Step {
            threshold: Unit::Packets.threshold(self.threshold, self.mean_packet),
        }
    }
}

/// The AQM: it remembers nothing.
#[derive(Clone, Debug)]
pub struct Step {
    /// In packets.
    threshold: f64,
}

impl Aqm for Step {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        _packet: &Packet,
        queue: Backlog,
        _draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        if f64::from(queue.packets) > self.threshold {
            Decision::Signal(Reason::EARLY)
        } else {
            Decision::Admit
        }
    }

    fn adopt(&mut self, fresh: Self) {
        self.threshold = fresh.threshold;
    }
}
