//! Marking by the delay of the queue, as a queue for L4S traffic has it, over a single FIFO: a step or
//! a ramp. RFC 9331, section 4.3 on what L4S senders expect; RFC 9332, appendix A.1 on the ramp.

use aqmlab_net::{Ecn, Packet, QueueSize, Time};

use crate::aqm::{Decision, happens};
use crate::check;
use crate::context::Context;
use crate::counters::Reason;
use crate::link::{Backlog, Limit, LinkFacts};
pub use crate::native::Native;
use crate::native::NativeLaw;
use crate::queue::{PacketQueue, Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of L4S marking.
#[parameters]
pub struct Params {
    /// How the queueing delay becomes a marking probability.
    #[param(default)]
    pub law: Native,
    /// The step marks packets that waited longer than this.
    #[param(default = "1 ms", changeable)]
    pub step: Time,
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
    /// If true, only ECT(1) packets are marked. Other packets pass.
    #[param(default, changeable)]
    pub only_ect1: bool,
    /// Buffer size.
    #[param(check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default = true, changeable)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "L4S marking",
        paper: "RFC 9332, 2023, appendix A.1: the native AQM of the L4S queue",
        purpose: "Marks by the delay of a single queue, at a step or along a ramp of about one \
                  millisecond, as L4S senders expect.",
        departures: &[
            "Packets that are not ECN-capable are dropped instead of marked, unless `only_ect1` is \
             set.",
        ],
        memory: "a few numbers",
    };
}

impl SchedulerParameters for Params {
    type Scheduler<T> = L4sMarking<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn scheduler<T>(&self, _link: LinkFacts, _seed: u64) -> L4sMarking<T> {
        L4sMarking {
            law: match self.law {
                Native::Step => NativeLaw::Step(self.step),
                Native::Ramp => NativeLaw::ramp(self.ramp_min, self.ramp_range, self.ramp_packets),
            },
            only_ect1: self.only_ect1,
            ecn: self.ecn,
            line: PacketQueue::default(),
            limit: Limit::new(self.limit),
            probability: 0.0,
        }
    }
}

/// A FIFO that marks by delay.
#[derive(Debug)]
pub struct L4sMarking<T> {
    law: NativeLaw,
    only_ect1: bool,
    ecn: bool,
    line: PacketQueue<T>,
    limit: Limit,
    /// What the last packet met.
    probability: f64,
}

impl<T> Scheduler<T> for L4sMarking<T> {
    fn adopt(&mut self, fresh: Self) {
        (self.law, self.limit) = (fresh.law, fresh.limit);
        (self.only_ect1, self.ecn) = (fresh.only_ect1, fresh.ecn);
    }

    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        _context: &mut impl Context,
    ) {
        let queued = Queued::new(now, packet, item);
        if self.limit.admits(self.line.backlog(), packet.size) {
            self.line.push(queued);
        } else {
            stats.drop(queued, Reason::OVERFLOW);
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
            let queued = self.line.pop()?;
            let left = self.line.backlog().packets;
            self.probability = self.law.probability(now - queued.arrived, left);
            let may = match queued.packet.ecn {
                Ecn::Ect1 => true,
                Ecn::Ce => false,
                _ => !self.only_ect1,
            };
            if !may || !happens(self.probability, draw) {
                return Some(queued);
            }
            let outcome = Decision::Signal(Reason::EARLY).outcome(&queued.packet, self.ecn, true);
            if let Some(queued) = stats.settle(queued, outcome) {
                return Some(queued);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.line.backlog()
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["p"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.push(self.probability);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::FlowKey;

    use super::*;
    use crate::worked::queues::LINK;

    /// Whether a packet that waited is marked, dropped or sent, with so many behind it.
    fn outcome(text: &str, ecn: Ecn, us: u64, behind: u32) -> &'static str {
        let params: Params = toml::from_str(&format!("limit = '100 packets'\n{text}")).unwrap();
        assert_eq!(params.check(), Ok(()));
        let mut queue: L4sMarking<bool> = params.scheduler(LINK, 1);
        let mut stats = Stats::new(Params::REASONS);
        let packet = |ecn| Packet {
            size: 1500,
            ecn,
            dscp: 0,
            flow: FlowKey(1),
        };
        let mut draw = || 0.4;
        queue.enqueue(Time::ZERO, packet(ecn), true, &mut stats, &mut draw);
        for _ in 0..behind {
            let now = Time::from_micros(us);
            queue.enqueue(now, packet(Ecn::Ce), false, &mut stats, &mut draw);
        }
        let sent = queue.dequeue(Time::from_micros(us), &mut stats, &mut draw);
        match sent.filter(|queued| queued.item) {
            None => "drop",
            Some(_) if stats.counters().marked_packets() > 0 => "mark",
            Some(_) => "send",
        }
    }

    #[test]
    fn the_step_is_strict_and_looks_at_the_delay() {
        assert_eq!(outcome("", Ecn::Ect1, 1000, 0), "send");
        assert_eq!(outcome("", Ecn::Ect1, 1001, 0), "mark");
        assert_eq!(outcome("", Ecn::Ect0, 1001, 0), "mark");
        assert_eq!(outcome("", Ecn::NotEct, 1001, 0), "drop");
        assert_eq!(outcome("ecn = false", Ecn::Ect1, 1001, 0), "drop");
        assert_eq!(outcome("", Ecn::Ce, 1001, 0), "send");
    }

    #[test]
    fn others_pass_where_only_ect1_is_meant() {
        for (ecn, expected) in [
            (Ecn::Ect1, "mark"),
            (Ecn::Ect0, "send"),
            (Ecn::NotEct, "send"),
        ] {
            assert_eq!(outcome("only_ect1 = true", ecn, 9000, 5), expected);
        }
    }

    #[test]
    fn the_ramp_rises_between_its_delays_where_packets_wait_behind() {
        let ramp = "law = 'ramp'";
        assert_eq!(outcome(ramp, Ecn::Ect1, 900, 5), "send");
        assert_eq!(outcome(ramp, Ecn::Ect1, 1000, 5), "mark");
        assert_eq!(outcome(ramp, Ecn::Ect1, 1000, 1), "send");
    }
}
