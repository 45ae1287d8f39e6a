//! PI: C. Hollot, V. Misra, D. Towsley, W. Gong, "On Designing Improved Controllers for AQM Routers
//! Supporting TCP Flows", IEEE INFOCOM 2001. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, for_size};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of PI.
#[parameters]
pub struct Params {
    /// Target queue length.
    #[param(default = "50 packets", changeable)]
    pub q_ref: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Gain on the newest sample of the queue, per packet. Must be above `b`. Without `a`, `b` and
    /// `design`, PI uses the authors' values: 1.822e-5 for `a` and 1.816e-5 for `b`. They are for
    /// 3750 packets per second, at least 60 flows and round-trip times up to 246 ms.
    #[param(changeable)]
    pub a: Option<f64>,
    /// Gain on the previous sample of the queue, per packet.
    #[param(changeable)]
    #[param(above = 0.0)]
    pub b: Option<f64>,
    /// Load for which the authors' rule computes the gains.
    #[param(table)]
    pub design: Option<Design>,
    /// Sampling interval, at least 10 us. If you change it, change the gains too.
    #[param(default = "6.25 ms", least = check::SHORTEST_TICK)]
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

/// Load for which PI must be stable.
#[parameters]
#[derive(Copy)]
pub struct Design {
    /// Minimum number of TCP flows.
    #[param(above = 0.0)]
    pub flows: f64,
    /// Longest round-trip time.
    #[param(above = Time::ZERO)]
    pub rtt: Time,
}

/// The gains of the samples, per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gains {
    a: f64,
    b: f64,
}

/// The pair that the authors simulated.
const PUBLISHED: Gains = Gains {
    a: 1.822e-5,
    b: 1.816e-5,
};

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Proportional-integral controller",
        paper: "C. Hollot, V. Misra, D. Towsley, W. Gong, On Designing Improved Controllers for \
                AQM Routers Supporting TCP Flows, IEEE INFOCOM 2001",
        purpose: "Holds the queue itself, not its average, at a chosen length.",
        departures: &[
            "aqmlab derives the rule of `design` from the linear model of TCP. It gives the \
             authors' gains within 2 %.",
            "Without `design` the authors' gains apply at any rate. At 25 000 packets per second \
             and 150 ms they suit about 480 flows.",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::target_queue(self.q_ref, self.limit, self.mean_packet)?;
        match (self.a, self.b, self.design) {
            (None, None, _) => Ok(()),
            (Some(a), Some(b), None) => check::above("a", a, b),
            (_, _, None) => check::problem(
                "a",
                "one of a and b is missing; state both, or neither".to_owned(),
            ),
            (_, _, Some(_)) => check::problem(
                "design",
                "found beside gains; state either a and b or design".to_owned(),
            ),
        }
    }
}

impl AqmParameters for Params {
    type Aqm = Pi;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Pi {
        Pi {
            gains: self.gains(link),
            params: self.clone(),
            q_ref: Unit::Packets.threshold(self.q_ref, self.mean_packet),
            mean: self.mean_packet.0 as f64,
            scale_mean: self.scale_by_size.then_some(self.mean_packet.0 as f64),
            next_tick: self.interval,
            state: State::default(),
        }
    }
}

impl Params {
    fn gains(&self, link: LinkFacts) -> Gains {
        match (self.a, self.b, self.design) {
            (Some(a), Some(b), _) => Gains { a, b },
            (_, _, Some(design)) => {
                design.gains(link.packets_per_second(self.mean_packet), self.interval)
            }
            _ => PUBLISHED,
        }
    }
}

impl Design {
    /// The gains for a link of C = `c` packets per second, sampled every `interval`.
    fn gains(self, c: f64, interval: Time) -> Gains {
        let (n, r, t) = (self.flows, self.rtt.as_secs_f64(), interval.as_secs_f64());
        // The pole of TCP, which the zero of the controller cancels.
        let z = 2.0 * n / (r * r * c);
        let crossover = z.min(1.0 / r);
        let rc = r * c;
        let k = crossover * libm::hypot(1.0, crossover * r) * (2.0 * n * 2.0 * n) / (rc * rc * rc);
        Gains {
            a: k * (1.0 / z + t / 2.0),
            b: k * (1.0 / z - t / 2.0),
        }
    }
}

/// The AQM of PI.
#[derive(Clone, Debug)]
pub struct Pi {
    params: Params,
    gains: Gains,
    /// In packets.
    q_ref: f64,
    mean: f64,
    /// Mean packet size, if the probability is scaled by size.
    scale_mean: Option<f64>,
    next_tick: Time,
    state: State,
}

/// What PI remembers.
#[derive(Clone, Debug, Default)]
struct State {
    /// Signal probability of a packet of mean size.
    p: f64,
    /// The previous sample, in packets.
    q_old: f64,
    /// Probability used at the last arrival.
    p_packet: f64,
}

impl Aqm for Pi {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        self.state.p_packet = for_size(self.state.p, packet.size, self.scale_mean);
        Decision::by_chance(self.state.p_packet, draw)
    }

    #[inline]
    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn on_tick(&mut self, _now: Time, queue: Backlog) {
        let q = self.params.unit.packets(queue, self.mean);
        let Gains { a, b } = self.gains;
        let State { p, q_old, .. } = &mut self.state;
        *p = (*p + a * (q - self.q_ref) - b * (*q_old - self.q_ref)).clamp(0.0, 1.0);
        *q_old = q;
        self.next_tick += self.params.interval;
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.gains = self.params.gains(link);
    }

    fn adopt(&mut self, fresh: Self) {
        self.gains = fresh.gains;
        self.q_ref = fresh.q_ref;
        self.params = fresh.params;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["p", "q_old", "p_packet"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.extend([self.state.p, self.state.q_old, self.state.p_packet]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gains_follow_the_design_rule() {
        let mut reader =
            csv::Reader::from_reader(include_str!("../tests/data/pi_design.csv").as_bytes());
        // rate_bps, mean, C, N, R, z, omega_g, K, T, a, b, phase margin
        for row in reader.records().map(Result::unwrap) {
            let number = |column: usize| row[column].parse::<f64>().unwrap();
            let design = Design {
                flows: number(3),
                rtt: Time::from_secs_f64(number(4)),
            };
            let found = design.gains(number(2), Time::from_secs_f64(number(8)));
            assert!((found.a / number(9) - 1.0).abs() < 1e-9, "{row:?}");
            assert!((found.b / number(10) - 1.0).abs() < 1e-9, "{row:?}");
        }
    }

    #[test]
    fn the_design_for_the_authors_network_gives_their_pair_within_2_percent() {
        let design = Design {
            flows: 60.0,
            rtt: Time::from_millis(246),
        };
        let found = design.gains(3750.0, Time::from_micros(6250));
        assert!((found.a / PUBLISHED.a - 1.0).abs() < 0.02);
        assert!((found.b / PUBLISHED.b - 1.0).abs() < 0.02);
    }
}
