//! DualPI2: K. De Schepper, B. Briscoe, G. White, "Dual-Queue Coupled Active Queue Management (AQM)
//! for Low Latency, Low Loss, and Scalable Throughput (L4S)", RFC 9332, 2023, appendix A; the
//! choices of Linux 6.17. Departures: [`Parameters::ABOUT`].

mod controller;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Ecn, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Decision, happens};
use crate::check::{self, Problem};
use crate::context::Context;
use crate::counters::{Reason, ReasonText};
use crate::link::{Backlog, Limit, LinkFacts};
pub use crate::native::Native;
use crate::native::NativeLaw;
use crate::queue::{PacketQueue, Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};
use controller::{Controller, Gains, recurs};

/// Parameters of DualPI2.
#[parameters]
pub struct Params {
    /// Target delay of the classic queue. Default: 15 ms.
    #[param(changeable)]
    pub target: Option<Time>,
    /// Time between two updates of the base probability p'. Default: 16 ms.
    #[param(changeable)]
    pub t_update: Option<Time>,
    /// Integral gain in 1/s. Each update adds `alpha` x (q - `target`) to the base probability. q
    /// is the longer delay of the two queues, in seconds. Default: 41/256.
    #[param(least = 0.0, most = 1e6, changeable)]
    pub alpha: Option<f64>,
    /// Proportional gain in 1/s. Each update also adds `beta` x (q - q at the previous update).
    /// Default: 819/256.
    #[param(least = 0.0, most = 1e6, changeable)]
    pub beta: Option<f64>,
    /// Longest round-trip time for which the controller must be stable. With `max_rtt` or
    /// `typical_rtt`, a rule of RFC 9332 sets `target`, `t_update`, `alpha` and `beta`. If you set
    /// only `typical_rtt`, `max_rtt` is 6 x `typical_rtt`.
    #[param(above = Time::ZERO, changeable)]
    pub max_rtt: Option<Time>,
    /// Typical round-trip time. It becomes `target`. If you set only `max_rtt`, `typical_rtt` is
    /// `max_rtt` / 6.
    #[param(above = Time::ZERO, changeable)]
    pub typical_rtt: Option<Time>,
    /// Coupling factor k. With a larger k, L4S flows get less of the link.
    #[param(default = 2, least = 1, most = 255, changeable)]
    pub coupling: u32,
    /// Which packets go to the L4S queue.
    #[param(default)]
    pub l4s: L4sPackets,
    /// How DualPI2 turns probabilities into marks and drops.
    #[param(default)]
    pub rules: Rules,
    /// How the L4S queue marks packets for their delay (the native AQM of RFC 9332).
    #[param(default)]
    pub native: Native,
    /// The step marks packets that waited longer than this.
    #[param(default = "1 ms", changeable)]
    pub step: Time,
    /// Threshold in packets instead of `step`. When an L4S packet leaves, it is marked if more than
    /// `step_packets` packets still wait in the L4S queue.
    pub step_packets: Option<u32>,
    /// A packet that arrives while fewer than this many packets wait in the L4S queue is not marked
    /// for its delay.
    #[param(default)]
    pub min_qlen_step: u32,
    /// Delay at which the ramp starts.
    #[param(default = "800 us", changeable)]
    pub ramp_min: Time,
    /// Width of the ramp. At `ramp_min` + `ramp_range` every packet is marked.
    #[param(default = "400 us", above = Time::ZERO, changeable)]
    pub ramp_range: Time,
    /// When a packet leaves, the ramp marks it only if more than `ramp_packets` packets still wait
    /// in its queue.
    #[param(default = 1, changeable)]
    pub ramp_packets: u32,
    /// How the two queues share the link.
    #[param(default)]
    pub service: Service,
    /// Share of the bytes, in percent, that the classic queue sends while packets wait in both
    /// queues. Only for `service = "wrr"`.
    #[param(default = 10, most = 100, changeable)]
    pub classic_protection: u32,
    /// Advantage of the L4S queue with `service = "time-shifted"`. Default: 2 x `target`.
    pub time_shift: Option<Time>,
    /// What happens to L4S packets in overload, when the coupled probability k p' would exceed 1.
    #[param(default)]
    pub overload: Overload,
    /// If true, DualPI2 applies the base probability when packets arrive instead of when they
    /// leave. It still marks for delay when packets leave. `true` needs `rules = "linux"`.
    #[param(default, changeable)]
    pub drop_early: bool,
    /// Buffer size for both queues together.
    #[param(default = "10000 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Second limit for both queues together, in IP bytes. Default: 2 x `mtu` x `limit`. If
    /// `limit` is in bytes, there is no second limit.
    #[param(least = Bytes(1), changeable)]
    pub memory: Option<Bytes>,
    /// Largest packet. With `rules = "linux"`, the base probability has no effect while both queues
    /// together hold less than 2 x `mtu` bytes.
    #[param(default = "1514 bytes", check = check::packet_size)]
    pub mtu: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default = true, changeable)]
    pub ecn: bool,
}

/// Which packets go to the L4S queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum L4sPackets {
    /// Packets with ECT(1) or CE, as RFC 9331 requires.
    #[default]
    Ect1,
    /// Every ECN-capable packet.
    AnyEct,
}

/// Which rules turn probabilities into marks and drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// As in Linux. Each decision is a random draw. For an L4S packet, DualPI2 decides twice: by
    /// the coupled probability k p' and by the delay of the packet.
    #[default]
    Linux,
    /// As in RFC 9332. Each queue adds up the probabilities of its packets and drops or marks a
    /// packet when the sum exceeds 1. So drops and marks are evenly spaced. An L4S packet adds the
    /// larger of k p' and the probability for its delay.
    Rfc,
}

/// How the two queues share the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Weighted round robin. The L4S queue sends first, except when the classic queue has sent less
    /// than its share.
    #[default]
    Wrr,
    /// The packet with the longer delay leaves first. DualPI2 subtracts `time_shift` from the delay
    /// of a classic packet.
    TimeShifted,
}

/// What happens to L4S packets when marks are not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overload {
    /// DualPI2 drops L4S packets with the probability of classic packets, p'^2. It marks the other
    /// L4S packets.
    #[default]
    Drop,
    /// DualPI2 limits p' to 1/k. At this limit it marks every L4S packet and drops none, so the
    /// buffer can overflow.
    Overflow,
}

impl Params {
    /// What the controller works with: as given, or by the RFC's rule.
    fn gains(&self) -> Gains {
        match (self.max_rtt, self.typical_rtt) {
            (None, None) => Gains {
                target: self.target.unwrap_or(Gains::LINUX.target),
                t_update: self.t_update.unwrap_or(Gains::LINUX.t_update),
                alpha: self.alpha.unwrap_or(Gains::LINUX.alpha),
                beta: self.beta.unwrap_or(Gains::LINUX.beta),
            },
            (Some(max), Some(typical)) => Gains::for_rtt(max, typical),
            (Some(max), None) => Gains::for_rtt(max, Time::from_nanos(max.as_nanos() / 6)),
            (None, Some(typical)) => Gains::for_rtt(typical * 6, typical),
        }
    }

    fn memory(&self) -> Limit {
        let bytes = match (self.memory, self.limit) {
            (Some(memory), _) => memory.0,
            (None, QueueSize::Packets(packets)) => (2.0 * self.mtu.0 as f64 * packets) as u64,
            (None, QueueSize::Bytes(_)) => u64::MAX,
        };
        Limit::Bytes(bytes)
    }
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "DualPI2",
        paper: "RFC 9332, Dual-Queue Coupled Active Queue Management (AQM) for Low Latency, Low \
                Loss, and Scalable Throughput (L4S), 2023, appendix A",
        purpose: "Keeps the delay of L4S traffic below about 1 ms and the delay of classic traffic \
                  near 15 ms. L4S flows and classic flows get about equal rates.",
        departures: &[
            "The defaults, step, weighted round robin and `memory` follow Linux. With `rules = \
             \"rfc\"` and `native = \"ramp\"`, DualPI2 drops and marks as in RFC 9332.",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        let by_rule = [("max_rtt", self.max_rtt), ("typical_rtt", self.typical_rtt)];
        if let Some((rule, _)) = by_rule.iter().find(|(_, rtt)| rtt.is_some()) {
            let given = [
                ("target", self.target.is_some()),
                ("t_update", self.t_update.is_some()),
                ("alpha", self.alpha.is_some()),
                ("beta", self.beta.is_some()),
            ];
            if let Some((field, _)) = given.iter().find(|(_, given)| *given) {
                return check::problem(
                    field,
                    format!("found beside {rule}, which sets it; give one of the two"),
                );
            }
        }
        let gains = self.gains();
        check::positive("target", gains.target)?;
        check::interval("t_update", gains.t_update)?;
        check::between("alpha", gains.alpha, 0.0, 1e6)?;
        check::between("beta", gains.beta, 0.0, 1e6)?;
        if self.drop_early && self.rules == Rules::Rfc {
            return check::problem(
                "drop_early",
                "found true; the RFC decides once, when packets leave: it needs rules = \"linux\"",
            );
        }
        Ok(())
    }
}

/// An L4S packet was signalled by the coupled probability.
const COUPLED: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "coupled",
    meaning: "the coupled probability signalled an L4S packet",
    marks: true,
});

/// An L4S packet was signalled by its own queue.
const STEP: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN + 1,
    name: "step",
    meaning: "the delay of the L4S queue itself was too long",
    marks: true,
});

impl SchedulerParameters for Params {
    type Scheduler<T> = DualPi2<T>;

    const REASONS: &'static [Reason] = &[
        Reason::EARLY,
        COUPLED,
        STEP,
        Reason::FORCED,
        Reason::OVERFLOW,
    ];

    fn scheduler<T>(&self, _link: LinkFacts, _seed: u64) -> DualPi2<T> {
        let gains = self.gains();
        let fresh_credit = self.mtu.0 as i64 * (2 * i64::from(self.classic_protection) - 100);
        DualPi2 {
            params: self.clone(),
            settings: Settings {
                l4s_bits: match self.l4s {
                    L4sPackets::Ect1 => Ecn::Ect1 as u8,
                    L4sPackets::AnyEct => Ecn::Ce as u8,
                },
                native: match (self.native, self.step_packets) {
                    (Native::Step, None) => NativeLaw::Step(self.step),
                    (Native::Step, Some(packets)) => NativeLaw::StepPackets(packets),
                    (Native::Ramp, _) => {
                        NativeLaw::ramp(self.ramp_min, self.ramp_range, self.ramp_packets)
                    }
                },
                time_shift: match self.service {
                    Service::Wrr => None,
                    Service::TimeShifted => Some(self.time_shift.unwrap_or(gains.target * 2)),
                },
                fresh_credit,
                limit: Limit::new(self.limit),
                memory: self.memory(),
            },
            controller: Controller::new(gains, self.coupling, self.overload, self.rules),
            l4s: PacketQueue::default(),
            classic: PacketQueue::default(),
            spared: VecDeque::new(),
            credit: fresh_credit,
            sums: [0.0; 2],
        }
    }
}

/// What follows from the parameters.
#[derive(Clone, Debug)]
struct Settings {
    /// A packet with one of these bits in its ECN field is L4S.
    l4s_bits: u8,
    native: NativeLaw,
    /// Of time-shifted service.
    time_shift: Option<Time>,
    /// The credit of empty queues.
    fresh_credit: i64,
    limit: Limit,
    memory: Limit,
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    L4s,
    Classic,
}

/// DualPI2: two queues, one controller.
#[derive(Debug)]
pub struct DualPi2<T> {
    params: Params,
    settings: Settings,
    controller: Controller,
    l4s: PacketQueue<T>,
    classic: PacketQueue<T>,
    /// Of the packets in `l4s`, whether native marking leaves them alone; only kept where
    /// `min_qlen_step` asks.
    spared: VecDeque<bool>,
    /// What the L4S queue has had more than its share, in bytes times percent.
    credit: i64,
    /// The RFC's counters, of the L4S and of the classic queue.
    sums: [f64; 2],
}

impl<T> DualPi2<T> {
    fn total(&self) -> Backlog {
        let [one, other] = [self.l4s.backlog(), self.classic.backlog()];
        Backlog {
            packets: one.packets + other.packets,
            bytes: one.bytes + other.bytes,
        }
    }

    #[inline]
    fn side_of(&self, packet: &Packet) -> Side {
        if packet.ecn as u8 & self.settings.l4s_bits == 0 {
            Side::Classic
        } else {
            Side::L4s
        }
    }

    /// The queue that sends next, and how the credit moves for each byte of its packet, if it is
    /// sent.
    #[inline]
    fn turn(&self) -> Option<(Side, i64)> {
        let [l4s, classic] = [self.l4s.head(), self.classic.head()];
        match (l4s, classic) {
            (None, None) => None,
            (Some(_), None) => Some((Side::L4s, 0)),
            (None, Some(_)) => Some((Side::Classic, 0)),
            (Some(l4s), Some(classic)) => {
                let classic_weight = i64::from(self.params.classic_protection);
                let l4s_first = match self.settings.time_shift {
                    None => self.credit <= 0,
                    Some(shift) => l4s.arrived <= classic.arrived + shift,
                };
                Some(match l4s_first {
                    true => (Side::L4s, classic_weight),
                    false => (Side::Classic, classic_weight - 100),
                })
            }
        }
    }

    /// What Linux's coupled law says to a packet, with so many bytes waiting beside it.
    #[inline]
    fn judge_coupled(
        &self,
        side: Side,
        bytes_waiting: u64,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        if bytes_waiting < 2 * self.params.mtu.0 {
            return Decision::Admit;
        }
        let control = &self.controller;
        match (side, control.is_overloaded()) {
            (Side::Classic, false) if control.hits_classic(draw) => Decision::Signal(Reason::EARLY),
            (Side::L4s, false) if control.hits_coupled(draw) => Decision::Signal(COUPLED),
            (_, true) if control.hits_classic(draw) => Decision::Drop(Reason::FORCED),
            (Side::L4s, true) => Decision::Signal(COUPLED),
            _ => Decision::Admit,
        }
    }

    /// What the RFC says to a packet that leaves: one decision, by sums of probabilities.
    fn judge_rfc(&mut self, side: Side, native: f64) -> Decision {
        let control = &self.controller;
        let [classic, coupled] = [control.classic(), control.coupled()];
        let overloaded = control.is_overloaded();
        let sum = &mut self.sums[side as usize];
        if overloaded || side == Side::Classic {
            if recurs(sum, classic) {
                return match overloaded {
                    true => Decision::Drop(Reason::FORCED),
                    false => Decision::Signal(Reason::EARLY),
                };
            }
            if side == Side::Classic {
                return Decision::Admit;
            }
        }
        if !recurs(sum, coupled.max(native)) {
            Decision::Admit
        } else if native > coupled {
            Decision::Signal(STEP)
        } else {
            Decision::Signal(COUPLED)
        }
    }

    /// Does to a packet what was decided, and returns it if it stays.
    #[inline]
    fn settle(
        &self,
        queued: Queued<T>,
        decision: Decision,
        stats: &mut Stats<T>,
    ) -> Option<Queued<T>> {
        let ecn = self.params.ecn;
        match decision {
            Decision::Admit => Some(queued),
            Decision::Signal(_) if ecn && queued.packet.ecn == Ecn::Ce => Some(queued),
            _ => {
                let outcome = decision.outcome(&queued.packet, ecn, true);
                stats.settle(queued, outcome)
            }
        }
    }

    /// The next packet of a queue, with the marks that it gets; nothing if it was dropped.
    #[inline]
    fn take(
        &mut self,
        side: Side,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        let queue = match side {
            Side::L4s => &mut self.l4s,
            Side::Classic => &mut self.classic,
        };
        let queued = queue.pop()?;
        let native = match side {
            Side::L4s if self.spared.pop_front() != Some(true) => {
                let left = self.l4s.backlog().packets;
                let sojourn = now - queued.arrived;
                self.settings.native.probability(sojourn, left)
            }
            _ => 0.0,
        };
        if self.params.rules == Rules::Rfc {
            let decision = self.judge_rfc(side, native);
            return self.settle(queued, decision, stats);
        }
        let decision = match self.params.drop_early {
            true => Decision::Admit,
            false => self.judge_coupled(side, self.total().bytes, draw),
        };
        let queued = self.settle(queued, decision, stats)?;
        if happens(native, draw) {
            return self.settle(queued, Decision::Signal(STEP), stats);
        }
        Some(queued)
    }
}

impl<T> Scheduler<T> for DualPi2<T> {
    /// Another share begins with its own credit, as in Linux.
    fn adopt(&mut self, fresh: Self) {
        if self.params.classic_protection != fresh.params.classic_protection {
            self.credit = fresh.credit;
        }
        (self.params, self.settings) = (fresh.params, fresh.settings);
        self.controller.adopt(&fresh.controller);
    }

    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let queued = Queued::new(now, packet, item);
        let (total, settings) = (self.total(), &self.settings);
        if !settings.limit.admits(total, packet.size) || !settings.memory.admits(total, packet.size)
        {
            return stats.drop(queued, Reason::OVERFLOW);
        }
        let side = self.side_of(&packet);
        let mut kept = Some(queued);
        if self.params.drop_early {
            let mut draw = || context.draw();
            let decision = self.judge_coupled(side, total.bytes, &mut draw);
            kept = kept.and_then(|queued| self.settle(queued, decision, stats));
        }
        let Some(queued) = kept else {
            return;
        };
        match side {
            Side::Classic => self.classic.push(queued),
            Side::L4s => {
                if self.params.min_qlen_step > 0 {
                    let found = self.l4s.backlog().packets;
                    self.spared.push_back(found < self.params.min_qlen_step);
                }
                self.l4s.push(queued);
            }
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        loop {
            let Some((side, weight)) = self.turn() else {
                self.credit = self.settings.fresh_credit;
                return None;
            };
            if let Some(queued) = self.take(side, now, stats, draw) {
                self.credit += weight * i64::from(queued.packet.size);
                return Some(queued);
            }
        }
    }

    fn next_tick(&self) -> Time {
        self.controller.next_tick()
    }

    fn on_tick(&mut self, now: Time) {
        let waited = |head: &Queued<T>| now.saturating_sub(head.arrived);
        let heads = [self.l4s.head(), self.classic.head()];
        let delays = heads.map(|head| head.map_or(Time::ZERO, waited));
        self.controller.update(now, delays);
    }

    fn backlog(&self) -> Backlog {
        self.total()
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &[
            "p",
            "p_c",
            "p_cl",
            "l_delay_s",
            "c_delay_s",
            "l_packets",
            "c_packets",
            "credit",
        ]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.controller.probe(out);
        out.extend([
            f64::from(self.l4s.backlog().packets),
            f64::from(self.classic.backlog().packets),
            self.credit as f64,
        ]);
    }
}
