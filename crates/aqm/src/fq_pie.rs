//! FQ-PIE: the turns of FQ-CoDel with PIE in place of CoDel. It has no paper; Linux (`sch_fq_pie`)
//! and ns-3 have it. DrrScheduler: RFC 8290; PIE: RFC 8033. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::check;
use crate::context::Context;
use crate::counters::Reason;
use crate::flow_queues::{FlowQueues, queue_of};
use crate::fq::DrrScheduler;
use crate::link::{Backlog, Limit, LinkFacts};
use crate::pie::{self, Control, Rules};
use crate::queue::{Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of FQ-PIE.
#[parameters]
pub struct Params {
    /// Number of queues. Each flow is hashed to one of them.
    #[param(default = 1024, least = 1, most = 65536)]
    pub flows: u32,
    /// IP bytes that each turn adds to the credit of a flow.
    #[param(default = "1500 bytes", least = Bytes(1), most = check::LARGEST_QUANTUM)]
    pub quantum: Bytes,
    /// Buffer size for all flows together.
    #[param(default = "10240 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Second limit, in IP bytes.
    #[param(default = Bytes(32 << 20), least = Bytes(1), changeable)]
    pub memory: Bytes,
    /// Target queueing delay (QDELAY_REF).
    #[param(default = "15 ms", above = Time::ZERO, changeable)]
    pub qdelay_ref: Time,
    /// Time between two updates of the probability (T_UPDATE).
    #[param(default = pie::PUBLISHED_T_UPDATE, least = check::SHORTEST_TICK)]
    pub t_update: Time,
    /// Integral gain: each update adds this probability for each second by which the delay exceeds
    /// `qdelay_ref`. Default: 0.125 x `t_update` / 15 ms.
    #[param(least = 0.0, most = pie::LARGEST_GAIN, changeable)]
    pub alpha: Option<f64>,
    /// Proportional gain: each update adds this probability for each second by which the delay grew
    /// since the last update. Default: 1.25 + (0.125 - a) / 2, where a is the default `alpha`.
    #[param(least = 0.0, most = pie::LARGEST_GAIN, changeable)]
    pub beta: Option<f64>,
    /// Burst allowance: PIE drops and marks nothing for this long when an idle queue fills
    /// (MAX_BURST).
    #[param(default = "150 ms", changeable)]
    pub max_burst: Time,
    /// Mean packet size (MEAN_PKTSIZE). PIE does nothing while at most two such packets wait.
    #[param(default = "1500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, the probability is multiplied by packet size / `mean_packet`.
    #[param(default)]
    pub scale_by_size: bool,
    /// If true, drops and marks are spaced more evenly (section 5.4). Default: true with `rules =
    /// "linux"`, else false.
    pub derandomize: Option<bool>,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
    pub ecn: bool,
    /// From this probability on, ECN-capable packets are dropped instead of marked.
    #[param(default = 0.1, least = 0.0, most = 1.0, changeable)]
    pub mark_ecnth: f64,
    /// Which rules apply where Linux and RFC 8033 differ.
    #[param(default = Rules::Linux)]
    pub rules: Rules,
    /// Upper bound of the probability. From a value above 1, the probability takes longer to fall.
    /// Default: 1, or 256 with `rules = "linux"`.
    #[param(least = 1.0, most = 256.0, changeable)]
    pub p_max: Option<f64>,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Flow Queue PIE",
        paper: "none of its own: the scheduler of RFC 8290 (FQ-CoDel, 2018) with RFC 8033 (PIE, \
                2017) for each flow",
        purpose: "Shares the link among flows in bytes, serves sparse flows first, and holds the \
                  delay of each flow at a target with PIE.",
        departures: &[
            "An arrival that exceeds `limit` or `memory` is dropped. Linux counts excess memory, \
             but drops nothing for it.",
            "The default rules follow Linux, except units: Linux adds the link-layer header to \
             packet sizes and counts time in units of 64 ns.",
            "PIE works as in `pie`, without the delay estimate from the departure rate.",
        ],
        memory: "about 100 bytes for each queue",
    };
}

impl SchedulerParameters for Params {
    type Scheduler<T> = FqPie<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn scheduler<T>(&self, _link: LinkFacts, seed: u64) -> FqPie<T> {
        let (alpha, beta) = pie::gains(self.t_update, self.alpha, self.beta);
        let pie = pie::Settings {
            qdelay_ref: self.qdelay_ref.as_secs_f64(),
            t_update: self.t_update,
            alpha,
            beta,
            max_burst: self.max_burst,
            mean_packet: self.mean_packet.0,
            scale_by_size: self.scale_by_size,
            derandomize: self.derandomize.unwrap_or(self.rules == Rules::Linux),
            mark_ecnth: self.mark_ecnth,
            rules: self.rules,
            p_max: self.rules.p_max(self.p_max),
        };
        let control = Late {
            control: Control::new(&pie),
            updates: 0,
        };
        FqPie {
            controls: vec![control; self.flows as usize],
            updates: 0,
            next_tick: self.t_update,
            params: self.clone(),
            hash_seed: seed,
            limit: Limit::new(self.limit),
            pie,
            lines: FlowQueues::new(self.flows),
            drr: DrrScheduler::new(self.flows, self.quantum),
        }
    }
}

/// The state of PIE for one flow, which makes up for missed updates when it is looked at.
#[derive(Clone, Debug)]
struct Late {
    control: Control,
    /// Updates made so far.
    updates: u64,
}

impl Late {
    /// The controller after so many updates, during which packets waited or not.
    #[inline]
    fn at(&mut self, updates: u64, settings: &pie::Settings, is_busy: bool) -> &mut Control {
        while self.updates < updates {
            let before = self.control.clone();
            self.control.update(settings, is_busy);
            // Between two looks nothing but updates moves it: at rest it stays there.
            let at_rest = self.control == before;
            self.updates = if at_rest { updates } else { self.updates + 1 };
        }
        &mut self.control
    }
}

/// FQ-PIE: flows that take turns, each behind a PIE of its own.
#[derive(Debug)]
pub struct FqPie<T> {
    params: Params,
    hash_seed: u64,
    limit: Limit,
    pie: pie::Settings,
    /// A line per flow.
    lines: FlowQueues<T>,
    drr: DrrScheduler,
    controls: Vec<Late>,
    /// Updates that are due since the start.
    updates: u64,
    next_tick: Time,
}

impl<T> FqPie<T> {
    #[inline]
    fn fits(&self, size: u32) -> bool {
        let total = self.lines.total();
        self.limit.admits(total, size) && total.bytes + u64::from(size) <= self.params.memory.0
    }
}

impl<T> Scheduler<T> for FqPie<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let flow = queue_of(packet.flow, self.hash_seed, self.params.flows);
        let waiting = self.lines.backlog(flow);
        let fits = self.fits(packet.size);
        let pie = &self.pie;
        let control = self.controls[flow as usize].at(self.updates, pie, waiting.packets > 0);
        let mut draw = || context.draw();
        let decision = control.judge(pie, packet.size, waiting, fits, &mut draw);
        let outcome = decision.outcome(&packet, self.params.ecn, fits);
        if let Some(queued) = stats.settle(Queued::new(now, packet, item), outcome) {
            self.lines.push(flow, queued);
            self.drr.woken(flow);
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        _ledger: &mut Stats<T>,
        _draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        loop {
            let flow = self.drr.next()?;
            if let Some(queued) = self.lines.pop(flow) {
                self.drr.sent(flow, queued.packet.size);
                let left = self.lines.backlog(flow);
                let pie = &self.pie;
                let control = self.controls[flow as usize].at(self.updates, pie, true);
                control.departed(pie, now, now - queued.arrived, left);
                return Some(queued);
            }
            self.drr.found_empty(flow);
        }
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn on_tick(&mut self, now: Time) {
        self.updates += 1;
        self.next_tick = now.saturating_add(self.pie.t_update);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.lines.total()
    }

    fn adopt(&mut self, fresh: Self) {
        for late in &mut self.controls {
            late.control.adopt(&self.pie, &fresh.pie);
        }
        (self.params, self.limit, self.pie) = (fresh.params, fresh.limit, fresh.pie);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["new_flows", "old_flows"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.extend(self.drr.counts());
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{Ecn, FlowKey, RandomStream};

    use super::*;
    use crate::counters::Reason;
    use crate::worked::queues::{LINK, Played, Tag, flow_in_line};
    use crate::worked::{assert_close, rows};

    const SEED: u64 = 1;

    const PACKET: Packet = Packet {
        size: 1500,
        ecn: Ecn::NotEct,
        dscp: 0,
        flow: FlowKey(0),
    };

    fn params(more: &str) -> Params {
        toml::from_str(&format!("flows = 2\necn = true\nrules = 'rfc'\n{more}")).unwrap()
    }

    /// Flows a and b have the queues 0 and 1.
    fn played(params: &Params) -> Played<FqPie<Tag>> {
        Played::new(params.scheduler(LINK, SEED), |name| {
            flow_in_line(u32::from(name == "b"), SEED, 2)
        })
    }

    #[test]
    fn follows_the_worked_example() {
        let mut played = played(&params(""));
        let mut draw = || unreachable!("the burst passes");
        for _ in 0..4 {
            played.arrive(Time::ZERO, "a", PACKET, &mut draw);
        }
        let a = &mut played.scheduler.controls[0].control;
        (a.p, a.burst) = (0.4, Time::ZERO);
        (a.qdelay, a.qdelay_old) = (0.03, 0.03);
        for row in rows(include_str!("../tests/data/fq_pie.csv")) {
            played.step(&row);
            let step = row.step();
            let FqPie {
                controls,
                pie,
                lines,
                updates,
                ..
            } = &played.scheduler;
            let [a, b] = [0, 1].map(|flow: usize| {
                let mut late = controls[flow].clone();
                late.at(*updates, pie, true).clone()
            });
            assert_close(a.p, row.number("p_a"), step);
            assert_close(b.p, row.number("p_b"), step);
            assert_close(b.burst.as_secs_f64(), row.number("burst_b_s"), step);
            let [a, b] = [0, 1].map(|flow| lines.backlog(flow).packets);
            assert_eq!(
                format!("a:{a}|b:{b}"),
                row.text("flow_packets"),
                "row {step}"
            );
        }
    }

    #[test]
    fn below_a_tenth_a_flow_is_marked_and_its_neighbour_left_alone() {
        let mut played = played(&params(""));
        for _ in 0..4 {
            played.push(0, "a", 1500);
            played.push(0, "b", 1500);
        }
        let a = &mut played.scheduler.controls[0].control;
        (a.p, a.burst, a.qdelay_old) = (0.05, Time::ZERO, 0.03);
        let capable = Packet {
            ecn: Ecn::Ect0,
            ..PACKET
        };
        assert_eq!(
            played
                .arrive(Time::ZERO, "a", capable, &mut || 0.04)
                .dropped,
            []
        );
        assert_eq!(played.stats.counters().marked_packets(), 1);
        let dropped = played.arrive(Time::ZERO, "a", PACKET, &mut || 0.04).dropped;
        assert_eq!(dropped[0].1, Reason::EARLY);
        assert_eq!(played.push(0, "b", 1500).dropped, []);
    }

    #[test]
    fn delays_are_those_of_the_flow() {
        let mut played = played(&params(""));
        for flow in ["a", "b", "b"] {
            played.push(0, flow, 1500);
        }
        let qdelays = |played: &Played<FqPie<Tag>>| {
            let controls = &played.scheduler.controls;
            [0, 1].map(|flow: usize| controls[flow].control.qdelay)
        };
        // a leaves nothing behind, b does.
        played.depart(Time::from_millis(40));
        assert_eq!(qdelays(&played), [0.0, 0.0]);
        played.depart(Time::from_millis(50));
        assert_eq!(qdelays(&played), [0.0, 0.05]);
    }

    #[test]
    fn an_arrival_over_the_limit_or_the_memory_is_dropped_whoever_holds_most() {
        for limit in ["limit = \"3 packets\"", "memory = \"5000 bytes\""] {
            let mut played = played(&params(limit));
            for _ in 0..3 {
                assert_eq!(played.push(0, "a", 1500).dropped, []);
            }
            let (tag, reason) = played.push(0, "b", 1500).dropped[0].clone();
            assert_eq!((tag.flow.as_str(), reason), ("b", Reason::OVERFLOW));
        }
    }

    #[test]
    fn updates_made_up_for_are_as_good_as_updates_in_time() {
        for rules in ["rfc", "linux"] {
            updates_made_up_for(rules);
        }
    }

    fn updates_made_up_for(rules: &str) {
        let mut fq_pie = params("").scheduler::<()>(LINK, SEED);
        fq_pie.pie.rules = toml::Value::from(rules).try_into().unwrap();
        let settings = fq_pie.pie;
        let mut late = fq_pie.controls[0].clone();
        let mut eager = late.control.clone();
        let mut stream = RandomStream::new(1, "late", 0);
        let mut updates = 0;
        let mut is_busy = false;
        for round in 0..2000 {
            // Hours of silence among them.
            let longest = if stream.below(50) == 0 { 1_000_000 } else { 8 };
            let missed = stream.below(longest) as u64;
            updates += missed;
            (0..missed).for_each(|_| eager.update(&settings, is_busy));
            assert_eq!(*late.at(updates, &settings, is_busy), eager);
            let sojourn = Time::from_millis(stream.below(40) as u64);
            let left = Backlog {
                packets: stream.below(3) as u32,
                bytes: 4000,
            };
            is_busy = left.packets > 0;
            let now = Time::from_secs(1) + Time::from_millis(7 * round);
            for control in [&mut late.control, &mut eager] {
                control.departed(&settings, now, sojourn, left);
                control.judge(&settings, 1500, left, true, &mut || 0.5);
            }
        }
        assert_eq!(late.updates, updates);
    }
}
