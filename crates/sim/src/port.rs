//! One direction of a link: discipline, device ring, wire.
//!
//! Where a packet's fate is decided on arrival and the order is first come, first served, the port
//! computes when a packet leaves as soon as it is let in ([`Computed`]). Where it is decided on
//! departure, or packets overtake each other, the port keeps the packets and is woken when its
//! wire falls free ([`Register`]). At equal times: departures, then changes of the rate, then
//! ticks of the discipline, then samples, then arrivals.

mod computed;
mod register;

use aqmlab_aqm::{Backlog, Counters, Gate, LinkFacts, Queue};
use aqmlab_net::{Bytes, Ecn, Packet, RandomStream, Time};
use aqmlab_scenario::{Link, Reordering};

use crate::RunError;
use crate::event::Event;
use crate::stats::{PortStats, Window};
use computed::Computed;
use register::Register;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Port {
    service: Service,
    law_draws: RandomStream,
    wire: Wire,
    pub(crate) stats: PortStats,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few ports")]
enum Service {
    Computed(Computed),
    Register(Register),
}

/// The link behind the queue.
#[derive(Debug)]
struct Wire {
    facts: LinkFacts,
    delay: Time,
    loss: f64,
    loss_draws: RandomStream,
    reordering: Option<Reordering>,
    reordering_draws: RandomStream,
}

impl Wire {
    fn transmission_time(&self, size: u32) -> Time {
        let bytes = u64::from(size) + self.facts.framing.0;
        self.facts.rate.transmission_time(bytes)
    }

    /// A transmission ends at `end`: where the packet goes.
    #[inline]
    fn carry(&mut self, end: Time, ecn: Ecn, stats: &mut PortStats) -> Passage {
        if self.loss > 0.0 && self.loss_draws.uniform() < self.loss {
            stats.on_wire_loss(end);
            return Passage::Lost;
        }
        let held_up = match self.reordering {
            Some(Reordering { share, delay }) if self.reordering_draws.uniform() < share => delay,
            _ => Time::ZERO,
        };
        Passage::Arrives(end + self.delay + held_up, ecn)
    }
}

/// Looks at the queue: time, what waits, and the discipline's inner variables.
pub(crate) trait Observer {
    fn observe(&mut self, time: Time, backlog: Backlog, probe: impl FnOnce(&mut Vec<f64>));
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// It reaches the far end of the link then, with this ECN field.
    Arrives(Time, Ecn),
    /// The discipline dropped it.
    Dropped,
    /// It was lost at random on the wire.
    Lost,
    /// It waits; its passage is told later.
    Waits,
}

impl Port {
    /// `compute`: departures are computed where that is exact.
    pub(crate) fn new(
        link: &Link,
        name: &str,
        seed: u64,
        window: Window,
        sample: Time,
        compute: bool,
    ) -> Self {
        let facts = LinkFacts {
            rate: link.rate,
            framing: Bytes(u64::from(link.framing.0)),
        };
        let hashes = hash_seed(seed, name);
        let ring = link.device_ring.0 as usize;
        // When a packet leaves can be computed only while the rate stands.
        let compute = compute && link.rate_changes.is_empty();
        let gate = Gate::new(&link.discipline, facts, hashes).filter(|_| compute);
        let service = match gate {
            Some(gate) => Service::Computed(Computed::new(gate, ring)),
            None => {
                let queue = Queue::new(&link.discipline, facts, hashes);
                Service::Register(Register::new(queue, ring, &link.rate_changes))
            }
        };
        Self {
            service,
            law_draws: RandomStream::new(seed, &format!("law/{name}"), 0),
            wire: Wire {
                facts,
                delay: link.delay,
                loss: link.loss,
                loss_draws: RandomStream::new(seed, &format!("loss/{name}"), 0),
                reordering: link.reordering,
                reordering_draws: RandomStream::new(seed, &format!("reordering/{name}"), 0),
            },
            stats: PortStats::new(window, sample),
        }
    }

    /// A packet arrives. What becomes of it, and in `others` what became of packets that waited.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        packet: Packet,
        event: Event,
        observer: &mut impl Observer,
        others: &mut Vec<(Event, Passage)>,
    ) -> Passage {
        let draws = &mut self.law_draws;
        let mut draw = || draws.uniform();
        match &mut self.service {
            Service::Computed(line) => {
                line.catch_up(now, &mut self.stats, observer);
                line.arrive(now, packet, &mut self.wire, &mut self.stats, &mut draw)
            }
            Service::Register(register) => {
                let just_after = now + Time::from_nanos(1);
                register.observe_before(just_after, &mut self.wire, &mut self.stats, observer);
                register.arrive(now, packet, event, &mut draw, &mut self.stats, others);
                register.serve(now, &mut self.wire, &mut self.stats, others);
                Passage::Waits
            }
        }
    }

    /// The wire falls free. In `others` what becomes of packets that waited.
    pub(crate) fn depart(
        &mut self,
        now: Time,
        observer: &mut impl Observer,
        others: &mut Vec<(Event, Passage)>,
    ) {
        if let Service::Register(register) = &mut self.service {
            register.observe_before(now, &mut self.wire, &mut self.stats, observer);
            register.wire_falls_free();
            register.serve(now, &mut self.wire, &mut self.stats, others);
        }
    }

    /// When the port wants to [`depart`](Self::depart); nothing if it computes its departures.
    #[inline]
    pub(crate) fn next_departure(&self) -> Option<Time> {
        match &self.service {
            Service::Computed(_) => None,
            Service::Register(register) => Some(register.next_departure()),
        }
    }

    /// Takes the samples that fell due by `now`, where the port's departures have come.
    pub(crate) fn catch_up(&mut self, now: Time, observer: &mut impl Observer) {
        match &mut self.service {
            Service::Computed(line) => line.catch_up(now, &mut self.stats, observer),
            Service::Register(register) => {
                register.observe_before(now, &mut self.wire, &mut self.stats, observer);
            }
        }
    }

    /// The measured span ends.
    pub(crate) fn close(&mut self, end: Time, observer: &mut impl Observer) {
        self.catch_up(end, observer);
        if let Service::Register(register) = &mut self.service {
            register.account(end, &mut self.stats);
        }
        let counters = self.counters().clone();
        self.stats.close(&counters);
    }

    fn counters(&self) -> &Counters {
        match &self.service {
            Service::Computed(line) => line.gate().counters(),
            Service::Register(register) => register.queue().counters(),
        }
    }

    /// Names of the discipline's inner variables.
    pub(crate) fn probe_names(&self) -> &'static [&'static str] {
        match &self.service {
            Service::Computed(line) => line.gate().probe_names(),
            Service::Register(register) => register.queue().probe_names(),
        }
    }

    /// Packets that the port keeps, in the discipline and in the device ring.
    pub(crate) fn kept(&self) -> u64 {
        match &self.service {
            Service::Computed(_) => 0,
            Service::Register(register) => register.kept(),
        }
    }

    /// What came in must have gone out, been dropped, or wait.
    pub(crate) fn check_conservation(&self, name: &str) -> Result<(), RunError> {
        let counters = self.counters();
        let (arrived, dropped) = (counters.arrived_packets, counters.dropped_packets());
        let departed = counters.departed_packets;
        let (waiting, backlog) = match &self.service {
            Service::Computed(line) => (line.waiting(), line.gate().backlog()),
            Service::Register(register) => {
                let backlog = register.queue().backlog();
                (u64::from(backlog.packets), backlog)
            }
        };
        let claimed = u64::from(backlog.packets);
        if arrived != dropped + departed + waiting || claimed != waiting {
            return Err(RunError::Conservation(format!(
                "{name} queue: {arrived} packets arrived, but {dropped} dropped + {departed} \
                 departed + {waiting} waiting (the discipline counts {claimed})"
            )));
        }
        Ok(())
    }
}

/// The seed of a discipline's hash functions.
fn hash_seed(seed: u64, name: &str) -> u64 {
    RandomStream::new(seed, &format!("hash/{name}"), 0)
        .uniform()
        .to_bits()
}
