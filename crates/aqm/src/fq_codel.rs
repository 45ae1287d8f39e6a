//! FQ-CoDel: T. Hoeiland-Joergensen, P. McKenney, D. Taht, J. Gettys, E. Dumazet, "The Flow Queue
//! CoDel Packet Scheduler and Active Queue Management Algorithm", RFC 8290, 2018, section 4.
//! Departures: [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::check::{self, Problem};
use crate::codel::{self, CE_THRESHOLD, CeThreshold, Control, Root};
use crate::context::Context;
use crate::counters::Reason;
use crate::flow_queues::{FlowQueues, Sizes, queue_of};
use crate::fq::{self, DrrScheduler};
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Declared, Parameters, parameters};

/// Parameters of FQ-CoDel.
#[parameters]
pub struct Params {
    /// Number of queues. Each flow is hashed to one of them.
    #[param(default = 1024, least = 1, most = 65536)]
    pub flows: u32,
    /// IP bytes that each turn adds to the credit of a flow. Default: 1514, or 300 on a link
    /// below 100 Mbit/s.
    #[param(least = Bytes(1), most = check::LARGEST_QUANTUM, changeable)]
    pub quantum: Option<Bytes>,
    /// Buffer size for all flows together. When it is full, the flow with the most bytes loses
    /// packets.
    #[param(default = "10240 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Second limit, in IP bytes.
    #[param(default = Bytes(32 << 20), least = Bytes(1), changeable)]
    pub memory: Bytes,
    /// Maximum number of packets that one overflow drops.
    #[param(default = 64, least = 1, changeable)]
    pub batch: u32,
    /// Acceptable standing delay, 5 to 10 % of `interval`. Default: 5 ms, or the transmission time
    /// of 1.5 packets of `mtu` bytes if longer.
    #[param(above = Time::ZERO, changeable)]
    pub target: Option<Time>,
    /// How long the delay must exceed `target` before CoDel acts. Use the longest common round-trip
    /// time.
    #[param(default = "100 ms", above = Time::ZERO, changeable)]
    pub interval: Time,
    /// Largest packet. CoDel does nothing while at most this many bytes remain in the queue.
    #[param(default = "1500 bytes", check = check::packet_size, changeable)]
    pub mtu: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default = true, changeable)]
    pub ecn: bool,
    /// A packet that waited longer is marked when it leaves, also if CoDel does not act. Only with
    /// `ecn`. Default: never.
    pub ce_threshold: Option<Time>,
    /// `ce_threshold` marks only packets with this value in the bits `ce_threshold_mask` of the DS
    /// byte (DSCP and ECN). With mask 3, the value 1 selects ECT(1) (L4S).
    #[param(default)]
    pub ce_threshold_selector: u8,
    /// Bits of the DS byte that are compared with `ce_threshold_selector`. 0 selects every packet.
    #[param(default)]
    pub ce_threshold_mask: u8,
    /// Bytes that are compared with `mtu`: the bytes of the flow or of all flows.
    #[param(default, changeable)]
    pub one_packet: OnePacket,
    /// If true, packets dropped at an overflow raise CoDel's count for their flow, as in Linux.
    #[param(default = true, changeable)]
    pub overflow_counts: bool,
    /// How interval / sqrt(count) is computed.
    #[param(default)]
    pub root: Root,
}

/// Which bytes CoDel compares with the largest packet before it signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnePacket {
    /// The bytes of the flow, as in RFC 8289 and RFC 8290.
    Flow,
    /// The bytes of all flows, as in Linux: CoDel may drop or mark a flow's only packet while other
    /// flows wait.
    #[default]
    All,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Flow Queue CoDel",
        paper: "RFC 8290, The Flow Queue CoDel Packet Scheduler and Active Queue Management \
                Algorithm, 2018, section 4",
        purpose: "Shares the link among flows in bytes, serves sparse flows first, and keeps the \
                  standing delay of each flow below a target with CoDel.",
        departures: &[
            "Where Linux and RFC 8290 differ, the defaults follow Linux. `one_packet = \"flow\"` \
             and `overflow_counts = false` follow the RFC.",
        ],
        memory: "about 100 bytes for each queue",
    };

    fn check_together(&self) -> Result<(), Problem> {
        self.step().check(self.ecn)?;
        check::shorter(("target", self.target), ("interval", self.interval))
    }
}

impl Params {
    fn step(&self) -> CeThreshold {
        CeThreshold {
            above: self.ce_threshold.unwrap_or(Time::NEVER),
            selector: self.ce_threshold_selector,
            mask: self.ce_threshold_mask,
        }
    }
}

impl SchedulerParameters for Params {
    type Scheduler<T> = FqCodel<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, CE_THRESHOLD, Reason::OVERFLOW];

    fn reasons(&self) -> &'static [Reason] {
        codel::reasons(self.step())
    }

    fn changeable(&self) -> Vec<&'static str> {
        codel::changeable(Self::CHANGEABLE, self.step())
    }

    fn scheduler<T>(&self, link: LinkFacts, seed: u64) -> FqCodel<T> {
        let quantum = self.quantum.unwrap_or_else(|| fq::default_quantum(link));
        let codel = codel::Settings::new(self.target, self.interval, self.mtu, self.ecn, link)
            .with_step(self.step(), self.root);
        FqCodel {
            params: self.clone(),
            hash_seed: seed,
            limit: Limit::new(self.limit),
            codel,
            lines: FlowQueues::new(self.flows),
            sizes: Sizes::new(self.flows),
            drr: DrrScheduler::new(self.flows, quantum),
            controls: vec![Control::default(); self.flows as usize],
        }
    }
}

/// FQ-CoDel: flows that take turns, each behind a CoDel of its own.
#[derive(Debug)]
pub struct FqCodel<T> {
    params: Params,
    hash_seed: u64,
    limit: Limit,
    codel: codel::Settings,
    /// A line per flow.
    lines: FlowQueues<T>,
    /// Bytes that wait of each flow.
    sizes: Sizes,
    drr: DrrScheduler,
    /// The state of CoDel for each flow.
    controls: Vec<Control>,
}

impl<T> FqCodel<T> {
    /// Whether more waits than either limit allows.
    #[inline]
    fn is_over(&self) -> bool {
        let total = self.lines.total();
        self.limit.is_exceeded(total) || total.bytes > self.params.memory.0
    }

    /// Drops from the head of the flow with most bytes until half of them or a batch are gone.
    fn relieve(&mut self, stats: &mut Stats<T>) {
        let flow = self.sizes.largest();
        let keep = self.lines.backlog(flow).bytes.div_ceil(2);
        let before = self.lines.backlog(flow).packets;
        for _ in 0..self.params.batch {
            let Some(queued) = self.lines.pop(flow) else {
                break;
            };
            stats.drop(queued, Reason::OVERFLOW);
            if self.lines.backlog(flow).bytes <= keep {
                break;
            }
        }
        let left = self.lines.backlog(flow);
        self.sizes.set(flow, left.bytes);
        if self.params.overflow_counts {
            self.controls[flow as usize].add(before - left.packets);
        }
    }
}

impl<T> Scheduler<T> for FqCodel<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        _context: &mut impl Context,
    ) {
        let flow = queue_of(packet.flow, self.hash_seed, self.params.flows);
        self.lines.push(flow, Queued::new(now, packet, item));
        self.sizes.set(flow, self.lines.backlog(flow).bytes);
        self.drr.woken(flow);
        while self.is_over() {
            self.relieve(stats);
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        _draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        loop {
            let flow = self.drr.next()?;
            let lines = &mut self.lines;
            let (control, codel) = (&mut self.controls[flow as usize], &self.codel);
            if lines.backlog(flow).packets == 0 {
                control.rest();
                self.drr.found_empty(flow);
                continue;
            }
            let mut waiting = lines.backlog(flow);
            let others = match self.params.one_packet {
                OnePacket::All => lines.total().bytes - waiting.bytes,
                OnePacket::Flow => 0,
            };
            waiting.bytes += others;
            let passes = |head| control.lets_pass(codel, now, head, waiting);
            let next = if lines.head(flow).is_some_and(passes) {
                lines.pop(flow)
            } else {
                let take = || {
                    let queued = lines.pop(flow)?;
                    Some((queued, lines.backlog(flow).bytes + others))
                };
                control.dequeue(codel, now, take, stats)
            };
            self.sizes.set(flow, self.lines.backlog(flow).bytes);
            if let Some(queued) = next {
                self.drr.sent(flow, queued.packet.size);
                return Some(queued);
            }
            self.drr.found_empty(flow);
        }
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.codel.set_link(link);
        if self.params.quantum.is_none() {
            self.drr.set_quantum(fq::default_quantum(link));
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.lines.total()
    }

    fn adopt(&mut self, fresh: Self) {
        (self.params, self.limit, self.codel) = (fresh.params, fresh.limit, fresh.codel);
        self.drr.set_quantum(fresh.drr.quantum());
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["new_flows", "old_flows", "fattest_bytes"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.extend(self.drr.counts());
        out.push(f64::from(self.sizes.largest_size()));
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Rate;

    use super::*;
    use crate::worked::queues::{LINK, Played, Tag, flow_in_line};
    use crate::worked::rows;

    const SEED: u64 = 1;

    fn params() -> Params {
        Params {
            flows: 2,
            quantum: Some(Bytes(1500)),
            limit: QueueSize::Packets(8.0),
            memory: Bytes(32 << 20),
            batch: 64,
            target: None,
            interval: Time::from_millis(100),
            mtu: Bytes(1500),
            ecn: true,
            ce_threshold: None,
            ce_threshold_selector: 0,
            ce_threshold_mask: 0,
            one_packet: OnePacket::Flow,
            overflow_counts: false,
            root: Root::Exact,
        }
    }

    const NAMES: [&str; 2] = ["bulk", "thin"];

    /// Flows bulk and thin have the queues 0 and 1.
    fn played(params: &Params) -> Played<FqCodel<Tag>> {
        Played::new(params.scheduler(LINK, SEED), |name| {
            flow_in_line(u32::from(name == NAMES[1]), SEED, 2)
        })
    }

    #[test]
    fn follows_the_worked_example() {
        let mut played = played(&params());
        let mut seen = 0;
        for row in rows(include_str!("../tests/data/fq_codel.csv")) {
            played.step(&row);
            let step = row.step();
            let FqCodel {
                drr: turns, lines, ..
            } = &played.scheduler;
            let names = |list: &Vec<u32>| {
                let names: Vec<_> = list.iter().map(|flow| NAMES[*flow as usize]).collect();
                names.join("|")
            };
            let [new, old] = turns.lists();
            assert_eq!(names(&new), row.text("new_list"), "row {step}");
            assert_eq!(names(&old), row.text("old_list"), "row {step}");
            // The example lists flows from their first packet on.
            seen = seen.max(1 + usize::from(row.text("flow") == NAMES[1]));
            let flows: Vec<_> = (0..seen).collect();
            let listed = |value: &dyn Fn(u32) -> i64| {
                let entry = |&flow: &usize| format!("{}:{}", NAMES[flow], value(flow as u32));
                flows.iter().map(entry).collect::<Vec<_>>().join("|")
            };
            let deficits = listed(&|flow| turns.deficit(flow));
            assert_eq!(deficits, row.text("deficits"), "row {step}");
            let packets = listed(&|flow| i64::from(lines.backlog(flow).packets));
            assert_eq!(packets, row.text("flow_packets"), "row {step}");
        }
    }

    #[test]
    fn a_flow_is_put_right_by_codel_and_pays_only_for_what_it_sends() {
        let mut played = played(&Params {
            quantum: Some(Bytes(3000)),
            limit: QueueSize::Packets(100.0),
            ..params()
        });
        (0..10).for_each(|_| drop(played.push(0, "bulk", 1000)));
        // Above target since the first dequeue, for an interval at the second: a drop, of which
        // the deficit knows nothing.
        assert_eq!(played.depart(Time::from_millis(10)).dropped, []);
        let second = played.depart(Time::from_millis(110));
        assert_eq!(second.dropped[0].0.id, 2);
        assert_eq!(second.sent.unwrap().item.id, 3);
        assert_eq!(played.scheduler.drr.deficit(0), 1000);
        assert_eq!(
            played.depart(Time::from_millis(111)).sent.unwrap().item.id,
            4
        );
        // Now it is the turn of the other flow, which has a CoDel of its own.
        played.push(111, "thin", 1000);
        played.push(111, "thin", 1000);
        let thin = played.depart(Time::from_millis(300));
        assert_eq!((thin.sent.unwrap().item.id, thin.dropped), (11, vec![]));
    }

    #[test]
    fn an_overflow_takes_half_of_the_bytes_or_a_batch() {
        for (batch, dropped) in [(64, 5), (3, 3)] {
            let mut played = played(&Params { batch, ..params() });
            (0..8).for_each(|_| drop(played.push(0, "bulk", 1000)));
            let overflow = played.push(0, "bulk", 1000);
            assert_eq!(overflow.dropped.len(), dropped);
            assert_eq!(overflow.dropped[0].0.id, 1);
        }
    }

    #[test]
    fn memory_is_a_second_limit_even_for_the_only_packet() {
        let mut played = played(&Params {
            memory: Bytes(3000),
            ..params()
        });
        played.push(0, "bulk", 2000);
        assert_eq!(played.push(0, "thin", 1500).dropped[0].0.flow, "bulk");
        let huge = played.push(0, "bulk", 3001).dropped;
        assert_eq!((huge.len(), huge[0].0.id), (1, 3));
        // The flow that lost all it had is found empty.
        assert_eq!(played.depart(Time::ZERO).sent.unwrap().item.flow, "thin");
        assert!(played.depart(Time::ZERO).sent.is_none());
        assert_eq!(played.scheduler.drr.counts(), [0.0, 0.0]);
    }

    #[test]
    fn the_quantum_follows_the_rate_unless_it_is_given() {
        let slow = LinkFacts {
            rate: Rate::from_mbps(99),
            ..LINK
        };
        let fast = LinkFacts {
            rate: Rate::from_mbps(100),
            ..LINK
        };
        for (given, quanta) in [(None, [300, 1514]), (Some(Bytes(700)), [700, 700])] {
            let params = Params {
                quantum: given,
                ..params()
            };
            let key = |_: &str| flow_in_line(0, SEED, 2);
            let mut played = Played::new(params.scheduler(slow, SEED), key);
            let mut found = Vec::new();
            for link in [slow, fast] {
                played.scheduler.set_link(link);
                played.push(0, "bulk", 100);
                found.push(played.scheduler.drr.deficit(0));
                while played.depart(Time::ZERO).sent.is_some() {}
            }
            assert_eq!(found, quanta);
        }
    }
}
