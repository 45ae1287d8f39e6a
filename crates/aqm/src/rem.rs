//! REM: S. Athuraliya, V. Li, S. Low, Q. Yin, "REM: Active Queue Management", IEEE Network 15(3),
//! 2001. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, for_size};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of REM.
#[parameters]
pub struct Params {
    /// Target queue length.
    #[param(default = "20 packets", changeable)]
    pub q_ref: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Gain of the price: each update adds gamma (alpha (q - q_ref) + arrivals - capacity).
    #[param(default = 0.001, above = 0.0, changeable)]
    pub gamma: f64,
    /// Weight of q - q_ref relative to arrivals - capacity.
    #[param(default = 0.1, above = 0.0, changeable)]
    pub alpha: f64,
    /// Base of the probability 1 - phi^(-price).
    #[param(default = 1.001, above = 1.0, changeable)]
    pub phi: f64,
    /// Time between two updates of the price, at least 10 us. If you change it, change `gamma` too.
    #[param(default = "2 ms", least = check::SHORTEST_TICK)]
    pub interval: Time,
    /// Unit of the queue length.
    #[param(default)]
    pub unit: Unit,
    /// If true, the probability is multiplied by packet size / `mean_packet`.
    #[param(default)]
    pub scale_by_size: bool,
    /// Mean packet size. It converts bytes to packets.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Random Exponential Marking",
        paper: "S. Athuraliya, V. Li, S. Low, Q. Yin, REM: Active Queue Management, IEEE Network \
                15(3), 2001",
        purpose: "Matches the arrival rate to the capacity and holds the queue at a target with a \
                  price. The marks along a path measure the sum of its links' prices.",
        departures: &[
            "Arrivals and capacity are packets of `mean_packet` per update.",
            "Packets that are not ECN-capable are dropped. ns-2 never signals them.",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::target_queue(self.q_ref, self.limit, self.mean_packet)
    }
}

impl AqmParameters for Params {
    type Aqm = Rem;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Rem {
        let mean = self.mean_packet.0 as f64;
        Rem {
            q_ref: Unit::Packets.threshold(self.q_ref, self.mean_packet),
            log_phi: libm::log(self.phi),
            capacity: self.packets_per_tick(link),
            mean,
            scale_mean: self.scale_by_size.then_some(mean),
            next_tick: self.interval,
            params: self.clone(),
            state: State::default(),
        }
    }
}

impl Params {
    /// C T: packets of mean size that the wire carries between two ticks.
    fn packets_per_tick(&self, link: LinkFacts) -> f64 {
        link.packets_per_second(self.mean_packet) * self.interval.as_secs_f64()
    }
}

/// The AQM of REM.
#[derive(Clone, Debug)]
pub struct Rem {
    params: Params,
    /// In packets.
    q_ref: f64,
    log_phi: f64,
    /// Packets of mean size per tick.
    capacity: f64,
    mean: f64,
    /// Mean packet size, if the probability is scaled by size.
    scale_mean: Option<f64>,
    next_tick: Time,
    state: State,
}

/// What REM remembers.
#[derive(Clone, Debug, Default)]
struct State {
    /// The price of the link.
    price: f64,
    /// Arrivals since the last tick, in packets.
    x: f64,
    /// Signal probability of a packet of mean size.
    p: f64,
    /// Probability used at the last arrival.
    p_packet: f64,
}

impl Aqm for Rem {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        self.state.x += match self.params.unit {
            Unit::Packets => 1.0,
            Unit::Bytes => f64::from(packet.size) / self.mean,
        };
        self.state.p_packet = for_size(self.state.p, packet.size, self.scale_mean);
        Decision::by_chance(self.state.p_packet, draw)
    }

    #[inline]
    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn on_tick(&mut self, _now: Time, queue: Backlog) {
        let Params {
            gamma,
            alpha,
            unit,
            interval,
            ..
        } = self.params;
        let State { price, x, p, .. } = &mut self.state;
        let mismatch = alpha * (unit.packets(queue, self.mean) - self.q_ref) + *x - self.capacity;
        *price = (*price + gamma * mismatch).max(0.0);
        // 1 - phi^(-price)
        *p = -libm::expm1(-*price * self.log_phi);
        *x = 0.0;
        self.next_tick += interval;
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.capacity = self.params.packets_per_tick(link);
    }

    fn adopt(&mut self, fresh: Self) {
        self.q_ref = fresh.q_ref;
        self.log_phi = fresh.log_phi;
        self.params = fresh.params;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["price", "x", "p", "p_packet"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let State {
            price,
            x,
            p,
            p_packet,
        } = self.state;
        out.extend([price, x, p, p_packet]);
    }
}
