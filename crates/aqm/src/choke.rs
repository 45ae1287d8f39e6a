//! CHOKe: R. Pan, B. Prabhakar, K. Psounis, "CHOKe, a stateless active queue management scheme for
//! approximating fair bandwidth allocation", IEEE INFOCOM, 2000. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Decision, Outcome, happens};
use crate::check::{self, Problem};
use crate::context::Context;
use crate::counters::{Reason, ReasonText};
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{PacketQueue, Queued, Scheduler, SchedulerParameters, Stats};
use crate::red::{Average, Gap, Unit, packets_per_second};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of CHOKe: those of RED, and how many packets an arrival is compared with.
#[parameters]
pub struct Params {
    /// Minimum threshold. Up to this average queue length every arrival is admitted.
    #[param(default = "100 packets", changeable)]
    pub min_th: QueueSize,
    /// Maximum threshold. Above this average queue length every arrival is dropped.
    #[param(default = "200 packets", changeable)]
    pub max_th: QueueSize,
    /// Buffer size.
    #[param(default = "300 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Number of waiting packets that each arrival is compared with.
    #[param(default = 1, least = 1, most = 1000)]
    pub candidates: u32,
    /// Number of equal regions between `min_th` and `max_th`. Each region that the average has
    /// passed adds one comparison.
    #[param(default, most = 1000)]
    pub regions: u32,
    /// Weight of the newest sample in the average. With a larger weight, the average follows the
    /// queue faster.
    #[param(default = 0.002, above = 0.0, most = 1.0, changeable)]
    pub w_q: f64,
    /// Drop or mark probability when the average reaches `max_th`.
    #[param(default = 0.1, above = 0.0, most = 1.0, changeable)]
    pub max_p: f64,
    /// How RED spaces its drops and marks. The base probability p_b sets the mean gap.
    #[param(default)]
    pub gap: Gap,
    /// Mean packet size. It converts thresholds between packets and bytes. While the link is idle,
    /// the average falls as if packets of this size arrived at the link rate and found an empty
    /// queue.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped early.
    #[param(default, changeable)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "CHOKe: CHOose and Keep for responsive flows, CHOose and Kill for unresponsive ones",
        paper: "R. Pan, B. Prabhakar, K. Psounis, CHOKe, a stateless active queue management \
                scheme for approximating fair bandwidth allocation, IEEE INFOCOM, 2000",
        purpose: "Punishes heavy flows without a table of flows. CHOKe compares each arrival with \
                  random waiting packets and drops both if they belong to the same flow.",
        departures: &[
            "Linux also marks ECN-capable packets above `max_th`, unless its flag `harddrop` is \
             set.",
            "Matched pairs, and all arrivals while the average is above `max_th`, are dropped even \
             if ECN-capable.",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::thresholds(
            ("min_th", self.min_th),
            ("max_th", self.max_th),
            ("", false),
            self.limit,
            self.mean_packet,
        )
    }
}

impl Params {
    fn in_packets(&self, size: QueueSize) -> f64 {
        Unit::Packets.threshold(size, self.mean_packet)
    }
}

pub(crate) const MATCH: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "choke_match",
    meaning: "the arrival and a packet picked from the queue were of the same flow",
    marks: false,
});

impl SchedulerParameters for Params {
    type Scheduler<T> = Choke<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW, MATCH];

    fn scheduler<T>(&self, link: LinkFacts, _seed: u64) -> Choke<T> {
        Choke {
            params: self.clone(),
            min_th: self.in_packets(self.min_th),
            max_th: self.in_packets(self.max_th),
            limit: Limit::new(self.limit),
            average: Average::new(self.w_q, packets_per_second(link, self.mean_packet)),
            state: State {
                count: -1,
                p_b: 0.0,
                p_a: 0.0,
                last_arrival: Time::ZERO,
            },
            line: PacketQueue::default(),
        }
    }
}

/// What CHOKe remembers of RED's state beside the average.
#[derive(Clone, Debug)]
struct State {
    /// Packets since the last signal; -1: the average is not above `min_th`.
    count: i64,
    /// Basic probability at the last arrival.
    p_b: f64,
    /// Probability used at the last arrival.
    p_a: f64,
    last_arrival: Time,
}

/// CHOKe: RED, and a look at who else waits.
#[derive(Debug)]
pub struct Choke<T> {
    params: Params,
    /// `min_th` and `max_th` in packets.
    min_th: f64,
    max_th: f64,
    limit: Limit,
    average: Average,
    state: State,
    line: PacketQueue<T>,
}

impl<T> Choke<T> {
    /// How far the average has come from `min_th` (0) to `max_th` (1).
    #[inline]
    fn progress(&self) -> f64 {
        (self.average.avg - self.min_th) / (self.max_th - self.min_th)
    }

    /// Drops those of the candidates that are of the arrival's flow; whether there were any.
    fn drop_matches(
        &mut self,
        arrival: &Packet,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> bool {
        let regions = f64::from(self.params.regions);
        let passed = libm::floor(regions * self.progress()).min(regions) as u32;
        let mut matched = false;
        for _ in 0..self.params.candidates + passed {
            let waiting = self.line.backlog().packets;
            if waiting == 0 {
                break;
            }
            let picked = (draw() * f64::from(waiting)) as usize;
            if self.line.flow(picked) == arrival.flow
                && let Some(queued) = self.line.remove(picked)
            {
                stats.drop(queued, MATCH);
                matched = true;
            }
        }
        matched
    }

    /// Decides about an arrival.
    #[inline]
    fn judge(
        &mut self,
        packet: &Packet,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        (self.state.p_b, self.state.p_a) = (0.0, 0.0);
        if self.average.avg <= self.min_th {
            self.state.count = -1;
            return Decision::Admit;
        }
        if self.drop_matches(packet, stats, draw) {
            return Decision::Drop(MATCH);
        }
        if self.average.avg > self.max_th {
            self.state.count = 0;
            (self.state.p_b, self.state.p_a) = (1.0, 1.0);
            return Decision::Drop(Reason::FORCED);
        }
        self.state.count += 1;
        let (gap, count) = (self.params.gap, self.state.count);
        self.state.p_b = self.params.max_p * self.progress();
        self.state.p_a = gap.signal_probability(self.state.p_b, count);
        if !happens(self.state.p_a, draw) {
            return Decision::Admit;
        }
        self.state.count = 0;
        Decision::Signal(Reason::EARLY)
    }
}

impl<T> Scheduler<T> for Choke<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let before = self.line.backlog();
        self.average.sample(now, f64::from(before.packets));
        self.state.last_arrival = now;
        let decision = self.judge(&packet, stats, &mut || context.draw());
        let fits = self.limit.admits(before, packet.size);
        let outcome = decision.outcome(&packet, self.params.ecn, fits);
        if outcome == Outcome::Drop(Reason::OVERFLOW) {
            self.state.count = 0;
        }
        if let Some(queued) = stats.settle(Queued::new(now, packet, item), outcome) {
            self.line.push(queued);
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Time,
        _ledger: &mut Stats<T>,
        _draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        self.line.pop()
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.average.idle(since.max(self.state.last_arrival));
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.average.packets_per_second = packets_per_second(link, self.params.mean_packet);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.line.backlog()
    }

    fn adopt(&mut self, fresh: Self) {
        (self.params, self.limit) = (fresh.params, fresh.limit);
        (self.min_th, self.max_th) = (fresh.min_th, fresh.max_th);
        self.average.w_q = fresh.average.w_q;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["avg", "count", "p_b", "p_a"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let State {
            count, p_b, p_a, ..
        } = self.state;
        out.extend([self.average.avg, count as f64, p_b, p_a]);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{Ecn, FlowKey};

    use super::*;
    use crate::worked::queues::{Played, Tag};
    use crate::worked::{self, assert_close, rows};

    const PACKET: Packet = Packet {
        size: 500,
        ecn: Ecn::Ect0,
        dscp: 0,
        flow: FlowKey(0),
    };

    fn packets(number: f64) -> QueueSize {
        QueueSize::Packets(number)
    }

    fn params() -> Params {
        Params {
            min_th: packets(1.0),
            max_th: packets(4.0),
            limit: packets(50.0),
            candidates: 1,
            regions: 0,
            w_q: 0.5,
            max_p: 0.2,
            gap: Gap::Uniform,
            mean_packet: Bytes(500),
            ecn: true,
        }
    }

    fn played(params: &Params) -> Played<Choke<Tag>> {
        let link = worked::link(1000, 500);
        Played::new(params.scheduler(link, 1), worked::flow)
    }

    fn waiting(choke: &Choke<Tag>) -> String {
        let packets = choke.line.backlog().packets as usize;
        let name = |index| char::from(choke.line.flow(index).0 as u8);
        (0..packets).map(name).collect()
    }

    /// Follows the rows of an example, RED's variables and who waits.
    fn follow(csv: &str, params: &Params) {
        let mut played = played(params);
        for row in rows(csv) {
            played.step(&row);
            let step = row.step();
            assert_eq!(
                waiting(&played.scheduler),
                row.text("queue_flows"),
                "row {step}"
            );
            let mut probed = Vec::new();
            played.scheduler.probe(&mut probed);
            for (found, name) in probed.iter().zip(played.scheduler.probe_names()) {
                // Those of the last arrival are shown on rows of arrivals.
                if row.event() == "arrive" || !name.starts_with("p_") {
                    assert_close(*found, row.number(name), &format!("row {step}, {name}"));
                }
            }
        }
    }

    #[test]
    fn follows_the_worked_example() {
        follow(include_str!("../tests/data/choke.csv"), &params());
    }

    #[test]
    fn marks_drops_overflows_and_idles() {
        // Thresholds 1 and 5, w_q 0.5, max_p 0.8, 3 packets at most, 1000 packets a second.
        // Row 5: avg (1.25 + 2) / 2, p_b 0.8 * 0.625 / 4 and p_a 0.125 / (1 - 0.125): a mark, which
        // sets count to 0.
        // Row 6: avg (1.625 + 3) / 2, p_b 0.8 * 1.3125 / 4 and p_a 0.2625 / (1 - 0.2625): no signal,
        // but the queue is full, and an overflow sets count to 0 as well.
        // Row 7: avg (2.3125 + 3) / 2, p_b 0.8 * 1.65625 / 4: signalled and not capable, so that it
        // never comes to the limit.
        // Row 12: idle for two packets' time, the average falls to a quarter, below min_th.
        let csv = "\
step,time_s,event,flow,ect,size_bytes,queue_packets_before,queue_bytes_before,random_draw,avg,count,p_b,p_a,queue_flows,decision
1,0,arrive,a,true,500,0,0,,0,-1,0,0,a,enqueue
2,0.001,arrive,b,true,500,1,500,,0.5,-1,0,0,ab,enqueue
3,0.002,arrive,c,true,500,2,1000,0.9;0.9,1.25,0,0.05,0.05,abc,enqueue
4,0.002,depart,a,true,500,3,1500,,1.25,0,0,0,bc,sent
5,0.003,arrive,d,true,500,2,1000,0.5;0.1,1.625,0,0.125,0.142857142857143,bcd,mark
6,0.004,arrive,e,true,500,3,1500,0.5;0.9,2.3125,0,0.2625,0.355932203389831,bcd,drop_overflow
7,0.005,arrive,e,false,500,3,1500,0.5;0.1,2.65625,0,0.33125,0.495327102803738,bcd,drop_early
8,0.006,depart,b,true,500,3,1500,,2.65625,0,0,0,cd,sent
9,0.007,depart,c,true,500,2,1000,,2.65625,0,0,0,d,sent
10,0.008,depart,d,true,500,1,500,,2.65625,0,0,0,,sent
11,0.010,idle,,,,0,0,,2.65625,0,0,0,,
12,0.012,arrive,a,true,500,0,0,,0.6640625,-1,0,0,a,enqueue
";
        let params = Params {
            max_th: packets(5.0),
            max_p: 0.8,
            limit: packets(3.0),
            ..params()
        };
        follow(csv, &params);
    }

    #[test]
    fn candidates_that_match_all_go_and_grow_with_the_average() {
        let params = Params {
            regions: 2,
            max_th: packets(8.0),
            w_q: 1.0,
            ..params()
        };
        let mut played = played(&params);
        let mut send = |name: &str, draws: &[f64]| {
            let mut draws = draws.iter();
            let mut draw = || *draws.next().expect("as many candidates as expected");
            let dropped = played.arrive(Time::ZERO, name, PACKET, &mut draw).dropped;
            assert_eq!(draws.next(), None);
            let reasons = dropped.iter().map(|(_, reason)| *reason);
            assert!(reasons.eq(vec![MATCH; dropped.len()]));
            dropped.iter().map(|(tag, _)| tag.id).collect::<Vec<_>>()
        };
        send("a", &[]);
        send("b", &[]);
        // Up to 4 packets no region is passed: one candidate, and RED's draw.
        for name in ["c", "d", "e"] {
            send(name, &[0.0, 0.999]);
        }
        // 5 packets, more than half-way from 1 to 8: two candidates. The first is b, number 2, and
        // of the four left the last is e.
        assert_eq!(send("b", &[0.3, 0.9]), [2, 6]);
        // a twice of acde: no match; p_b = 0.2 * 3 / 7.
        send("f", &[0.0, 0.999]);
        send("c", &[0.0, 0.999, 0.999]);
        assert_eq!(waiting(&played.scheduler), "acdefc");
    }

    #[test]
    fn both_packets_of_a_matched_flow_may_go() {
        let params = Params {
            candidates: 2,
            w_q: 1.0,
            ..params()
        };
        let mut played = played(&params);
        let mut dropped = Vec::new();
        for draws in [&[] as &[f64], &[], &[0.0, 0.0]] {
            let mut draws = draws.iter();
            let mut draw = || *draws.next().unwrap();
            dropped.extend(played.arrive(Time::ZERO, "a", PACKET, &mut draw).dropped);
        }
        assert_eq!(dropped.len(), 3);
        assert_eq!(played.scheduler.backlog(), Backlog::default());
    }
}
