//! LQD: L. Le, K. Jeffay, F. D. Smith, "A Loss and Queuing-Delay Controller for Router Buffer
//! Management", ICDCS 2006, and L. Le, dissertation, University of North Carolina, 2005, section
//! 4.4. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome, for_size};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of LQD.
#[parameters]
pub struct Params {
    /// Target queue length while no packet is lost.
    #[param(changeable)]
    pub q_ref: QueueSize,
    /// Target loss rate while the queue is `q_ref`, as a share of the arrivals.
    #[param(default, least = 0.0, most = 1.0, changeable)]
    pub p_ref: f64,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Gain on the distance of the queue from `q_ref`, per packet and update.
    #[param(default = 1e-4, above = 0.0, changeable)]
    pub a: f64,
    /// Gain on the distance of the loss rate from `p_ref`, per update. 0 ignores the loss rate.
    #[param(default = 0.1, least = 0.0, changeable)]
    pub b: f64,
    /// Time between two updates of the probability, at least 10 us. If you change it, change the
    /// gains too.
    #[param(default = "6.25 ms", least = check::SHORTEST_TICK)]
    pub interval: Time,
    /// Time over which the loss rate is measured. Default: `interval`.
    #[param(least = check::SHORTEST_TICK)]
    pub loss_interval: Option<Time>,
    /// If true, marked packets count as lost.
    #[param(default)]
    pub count_marks: bool,
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
        title: "Loss and Queueing Delay controller",
        paper: "L. Le, K. Jeffay, F. D. Smith, A Loss and Queuing-Delay Controller for Router \
                Buffer Management, ICDCS 2006; L. Le, dissertation, 2005, section 4.4",
        purpose: "Trades queue length against loss rate. In equilibrium, a (q - q_ref) = b (loss - \
                  p_ref).",
        departures: &[
            "The paper does not state the sampling interval. aqmlab uses 160 Hz, as for PI.",
            "Marks are no losses unless `count_marks` is true, so with ECN the loss term is mostly \
             0.",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::target_queue(self.q_ref, self.limit, self.mean_packet)?;
        match self.loss_interval {
            Some(longer) if longer < self.interval => {
                let message = format!("found {longer}; at least interval, {}", self.interval);
                check::problem("loss_interval", message)
            }
            _ => Ok(()),
        }
    }
}

impl AqmParameters for Params {
    type Aqm = Lqd;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Lqd {
        Lqd {
            q_ref: Unit::Packets.threshold(self.q_ref, self.mean_packet),
            mean: self.mean_packet.0 as f64,
            scale_mean: self.scale_by_size.then_some(self.mean_packet.0 as f64),
            next_tick: self.interval,
            next_loss_rate: self.loss_interval.unwrap_or(self.interval),
            params: self.clone(),
            state: State::default(),
        }
    }
}

/// The AQM of LQD.
#[derive(Clone, Debug)]
pub struct Lqd {
    params: Params,
    /// In packets.
    q_ref: f64,
    mean: f64,
    /// Mean packet size, if the probability is scaled by size.
    scale_mean: Option<f64>,
    next_tick: Time,
    /// The loss rate is taken anew at the first tick from then on.
    next_loss_rate: Time,
    state: State,
}

/// What LQD remembers.
#[derive(Clone, Debug, Default)]
struct State {
    /// Signal probability of a packet of mean size.
    p: f64,
    /// The loss rate that was taken last.
    loss_rate: f64,
    /// Arrivals since then.
    arrivals: u64,
    /// Those of them that were lost.
    losses: u64,
}

impl Aqm for Lqd {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        Decision::by_chance(for_size(self.state.p, packet.size, self.scale_mean), draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::OUTCOMES
    }

    #[inline]
    fn on_outcome(&mut self, _now: Time, _packet: &Packet, _queue: Backlog, outcome: Outcome) {
        self.state.arrivals += 1;
        let lost = match outcome {
            Outcome::Enqueue => false,
            Outcome::Mark(_) => self.params.count_marks,
            Outcome::Drop(_) => true,
        };
        self.state.losses += u64::from(lost);
    }

    #[inline]
    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn on_tick(&mut self, _now: Time, queue: Backlog) {
        let Params {
            a,
            b,
            p_ref,
            interval,
            loss_interval,
            unit,
            ..
        } = self.params;
        let State {
            p,
            loss_rate,
            arrivals,
            losses,
        } = &mut self.state;
        if self.next_tick >= self.next_loss_rate {
            *loss_rate = *losses as f64 / (*arrivals).max(1) as f64;
            (*arrivals, *losses) = (0, 0);
            self.next_loss_rate = self.next_tick + loss_interval.unwrap_or(interval);
        }
        let mismatch = a * (unit.packets(queue, self.mean) - self.q_ref) - b * (*loss_rate - p_ref);
        *p = (*p + mismatch).clamp(0.0, 1.0);
        self.next_tick += interval;
    }

    fn adopt(&mut self, fresh: Self) {
        self.q_ref = fresh.q_ref;
        self.params = fresh.params;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["p", "loss_rate", "arrivals", "losses"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let State {
            p,
            loss_rate,
            arrivals,
            losses,
        } = self.state;
        out.extend([p, loss_rate, arrivals as f64, losses as f64]);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{Ecn, FlowKey};

    use super::*;
    use crate::worked;

    #[test]
    fn a_loss_rate_may_be_taken_over_several_ticks() {
        let params: Params = toml::from_str(
            "q_ref = \"2 packets\"\nlimit = \"100 packets\"\ninterval = \"10 ms\"\nloss_interval = \"20 ms\"",
        )
        .expect("parameters");
        assert_eq!(params.check(), Ok(()));
        let mut aqm = params.aqm(worked::link(1000, 500), 1);
        let packet = Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        };
        let mut rates = Vec::new();
        // Of ten arrivals before each tick so many are lost.
        for losses in [1, 3, 5, 5] {
            for arrival in 0..10 {
                let outcome = match arrival < losses {
                    true => Outcome::Drop(Reason::OVERFLOW),
                    false => Outcome::Enqueue,
                };
                aqm.on_outcome(Time::ZERO, &packet, Backlog::default(), outcome);
            }
            aqm.on_tick(aqm.next_tick(), Backlog::default());
            rates.push(aqm.state.loss_rate);
        }
        assert_eq!(rates, [0.0, 0.2, 0.2, 0.5]);
        let shorter = Params {
            loss_interval: Some(Time::from_millis(5)),
            ..params
        };
        assert_eq!(shorter.check().unwrap_err().0, "loss_interval");
    }
}
