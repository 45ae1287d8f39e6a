//! AVQ: S. Kunniyur, R. Srikant, "Analysis and Design of an Adaptive Virtual Queue (AVQ) Algorithm
//! for Active Queue Management", ACM SIGCOMM 2001, in its token-bucket form. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome};
use crate::check;
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of AVQ.
#[parameters]
pub struct Params {
    /// Size of the virtual buffer. An arrival that does not fit is dropped or marked.
    #[param(default = "240 packets", check = check::buffer, changeable)]
    pub virtual_buffer: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Target utilization, as a share of the link capacity.
    #[param(default = 0.98, above = 0.0, most = 1.0, changeable)]
    pub gamma: f64,
    /// Adaptation rate of the virtual capacity, per second.
    #[param(default = 0.15, above = 0.0, changeable)]
    pub alpha: f64,
    /// If true, AVQ adapts to the rate of all arrivals. If false, it adapts to the rate of arrivals
    /// without a drop or mark.
    #[param(default = true)]
    pub count_signalled: bool,
    /// Unit of the virtual queue.
    #[param(default = Unit::Bytes)]
    pub unit: Unit,
    /// Mean packet size. It converts bytes to packets.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Adaptive Virtual Queue",
        paper: "S. Kunniyur, R. Srikant, Analysis and Design of an Adaptive Virtual Queue (AVQ) \
                Algorithm for Active Queue Management, ACM SIGCOMM 2001, token-bucket form",
        purpose: "Reaches a chosen utilization with a short queue. AVQ drops or marks packets that \
                  would overflow a virtual queue, and adapts the capacity of that queue to the \
                  arrival rate.",
        departures: &[
            "The virtual capacity starts at the link capacity (ns-2: 0.8 of it) and never exceeds \
             it.",
            "Packets that are not ECN-capable are dropped; ns-2 in marking mode admits them.",
            "alpha is the constant of the authors' program. The paper gives no default.",
        ],
        memory: "a few numbers",
    };
}

impl AqmParameters for Params {
    type Aqm = Avq;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Avq {
        let capacity = self.capacity(link);
        Avq {
            buffer: self.unit.threshold(self.virtual_buffer, self.mean_packet),
            capacity,
            params: self.clone(),
            state: State {
                virtual_capacity: capacity,
                virtual_queue: 0.0,
                served: Time::ZERO,
                credited: Time::ZERO,
            },
        }
    }
}

impl Params {
    /// What a link carries per second, in the unit.
    fn capacity(&self, link: LinkFacts) -> f64 {
        let bytes = link.ip_bytes_per_second(self.mean_packet);
        match self.unit {
            Unit::Bytes => bytes,
            Unit::Packets => bytes / self.mean_packet.0 as f64,
        }
    }

    /// What a packet weighs, in the unit.
    #[inline]
    fn weight(&self, packet: &Packet) -> f64 {
        match self.unit {
            Unit::Bytes => f64::from(packet.size),
            Unit::Packets => 1.0,
        }
    }
}

/// The AQM of AVQ.
#[derive(Clone, Debug)]
pub struct Avq {
    params: Params,
    /// Of the virtual queue, in the unit.
    buffer: f64,
    /// What the wire carries per second, in the unit.
    capacity: f64,
    state: State,
}

/// What AVQ remembers.
#[derive(Clone, Debug)]
struct State {
    /// In the unit, per second.
    virtual_capacity: f64,
    /// In the unit.
    virtual_queue: f64,
    /// Until when the virtual queue was served.
    served: Time,
    /// Until when the virtual capacity was credited.
    credited: Time,
}

impl Aqm for Avq {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        _queue: Backlog,
        _draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let State {
            virtual_capacity,
            virtual_queue,
            served,
            ..
        } = &mut self.state;
        let elapsed = now.saturating_sub(*served).as_secs_f64();
        *served = now;
        *virtual_queue = (*virtual_queue - *virtual_capacity * elapsed).max(0.0);
        let filled = *virtual_queue + self.params.weight(packet);
        if filled > self.buffer {
            return Decision::Signal(Reason::EARLY);
        }
        *virtual_queue = filled;
        Decision::Admit
    }

    fn hooks(&self) -> Hooks {
        Hooks::OUTCOMES
    }

    /// The virtual capacity follows the packet.
    #[inline]
    fn on_outcome(&mut self, now: Time, packet: &Packet, _queue: Backlog, outcome: Outcome) {
        if outcome == Outcome::Drop(Reason::EARLY) && !self.params.count_signalled {
            return;
        }
        let Params { alpha, gamma, .. } = self.params;
        let State {
            virtual_capacity,
            credited,
            ..
        } = &mut self.state;
        let elapsed = now.saturating_sub(*credited).as_secs_f64();
        *credited = now;
        let risen = *virtual_capacity + alpha * gamma * self.capacity * elapsed;
        let arrival = alpha * self.params.weight(packet);
        *virtual_capacity = (risen.min(self.capacity) - arrival).max(0.0);
    }

    fn set_link(&mut self, link: LinkFacts) {
        let capacity = self.params.capacity(link);
        self.state.virtual_capacity *= capacity / self.capacity;
        self.capacity = capacity;
    }

    fn adopt(&mut self, fresh: Self) {
        if self.params.unit != fresh.params.unit {
            // What it remembers is in the other unit.
            (self.capacity, self.state) = (fresh.capacity, fresh.state);
        }
        self.buffer = fresh.buffer;
        self.params = fresh.params;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["virtual_queue", "virtual_capacity"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.extend([self.state.virtual_queue, self.state.virtual_capacity]);
    }
}
