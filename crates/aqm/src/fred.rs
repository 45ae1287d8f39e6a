//! FRED, flow random early drop: D. Lin, R. Morris, "Dynamics of Random Early Detection", ACM
//! SIGCOMM 1997, section 5. Departures: [`Parameters::ABOUT`].

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome, happens};
use crate::check::{self, Problem};
use crate::counters::{Reason, ReasonText};
use crate::flow_map::FlowMap;
use crate::link::{Backlog, LinkFacts};
use crate::red::{Average, Gap, Unit, packets_per_second};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of FRED.
#[parameters]
pub struct Params {
    /// Minimum threshold. Below this average queue length, only flows above their share lose
    /// packets. It is also the maximum number of waiting packets of a flow. Default: the smaller of
    /// `limit` / 4 and the packets that the link carries in `rtt`.
    pub min_th: Option<QueueSize>,
    /// Maximum threshold. From this average queue length on every arrival is dropped. Default: 2
    /// x `min_th`.
    pub max_th: Option<QueueSize>,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Typical round-trip time. It bounds `min_th` if `min_th` is not given.
    #[param(default = "100 ms", above = Time::ZERO)]
    pub rtt: Time,
    /// Number of packets of a flow that may wait without drops or marks. The paper has 2 for small
    /// buffers and 4 for large ones.
    #[param(default = 2)]
    pub min_q: u32,
    /// Weight of the newest sample in the average. With a larger weight, the average follows the
    /// queue faster.
    #[param(default = 0.002, above = 0.0, most = 1.0)]
    pub w_q: f64,
    /// Drop or mark probability when the average reaches `max_th`.
    #[param(default = 0.02, above = 0.0, most = 1.0)]
    pub max_p: f64,
    /// How RED spaces its drops and marks. The base probability p_b sets the mean gap.
    #[param(default)]
    pub gap: Gap,
    /// Mean packet size. It converts thresholds between packets and bytes. While the link is idle,
    /// the average falls as if packets of this size arrived at the link rate and found an empty
    /// queue.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Flow Random Early Drop",
        paper: "D. Lin, R. Morris, Dynamics of Random Early Detection, ACM SIGCOMM 1997, \
                section 5",
        purpose: "RED that counts the waiting packets of each flow. FRED spares flows with few \
                  packets and drops arrivals of flows above their share.",
        departures: &[
            "Arrivals of flows above their share, and all arrivals from `max_th` on, are dropped \
             even if ECN-capable. The paper does not cover ECN.",
            "For `min_th`, the paper names the packets of one round trip; 100 ms for `rtt` is \
             aqmlab's choice.",
        ],
        memory: "about 32 bytes for each flow with waiting packets and 8 bytes for each waiting \
                 packet",
    };

    fn check_together(&self) -> Result<(), Problem> {
        match (self.min_th, self.max_th) {
            (None, None) => Ok(()),
            (None, Some(max_th)) => check::problem(
                "min_th",
                format!("not stated, but max_th is, {max_th}; state both, or neither"),
            ),
            (Some(min_th), max_th) => self.check_thresholds(min_th, max_th),
        }
    }
}

impl Params {
    fn check_thresholds(
        &self,
        min_th: QueueSize,
        max_th: Option<QueueSize>,
    ) -> Result<(), Problem> {
        let min = self.in_packets(min_th);
        if min < LEAST_MIN_TH {
            return check::problem(
                "min_th",
                format!("found {min_th}; it must be at least {LEAST_MIN_TH} packet"),
            );
        }
        check::thresholds(
            ("min_th", min_th),
            ("max_th", max_th.unwrap_or(QueueSize::Packets(2.0 * min))),
            ("gentle", false),
            self.limit,
            self.mean_packet,
        )
    }

    fn in_packets(&self, size: QueueSize) -> f64 {
        Unit::Packets.threshold(size, self.mean_packet)
    }

    /// The lower and the upper threshold, in packets.
    fn thresholds(&self, link: LinkFacts) -> [f64; 2] {
        let min_th = self.min_th.map_or_else(
            || {
                let round_trip =
                    packets_per_second(link, self.mean_packet) * self.rtt.as_secs_f64();
                let quarter = self.in_packets(self.limit) / 4.0;
                quarter.min(round_trip).max(LEAST_MIN_TH)
            },
            |size| self.in_packets(size),
        );
        let max_th = self.max_th.map(|size| self.in_packets(size));
        [min_th, max_th.unwrap_or(2.0 * min_th)]
    }
}

const NON_ADAPTIVE: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "non_adaptive",
    meaning: "the flow had more packets waiting than its share",
    marks: false,
});

impl AqmParameters for Params {
    type Aqm = Fred;

    const REASONS: &'static [Reason] = &[
        Reason::EARLY,
        Reason::FORCED,
        Reason::OVERFLOW,
        NON_ADAPTIVE,
    ];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Fred {
        Fred::new(self, link)
    }
}

/// A flow may always have a packet waiting: the smallest `min_th`, in packets.
const LEAST_MIN_TH: f64 = 1.0;

/// Packets that a flow may have waiting while the average is at or above `max_th`.
const MAX_Q_IN_CONGESTION: f64 = 2.0;

/// With more strikes than this a flow may not have more than the average share.
const STRIKES: u32 = 1;

/// The AQM of FRED.
#[derive(Clone, Debug)]
pub struct Fred {
    params: Params,
    min_th: f64,
    max_th: f64,
    average: Average,
    /// Average packets per flow that has packets waiting; at least 1.
    avgcq: f64,
    /// Packets since the last signal; -1: the average is below `min_th`.
    count: i64,
    /// The flows that have packets waiting.
    flows: FlowMap<Flow>,
    /// The flows of the packets that wait.
    waiting: VecDeque<FlowKey>,
    /// Probability used at the last arrival.
    p_a: f64,
}

/// A flow with packets waiting.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Its packets in the queue.
    qlen: u32,
    /// How often it was found above its share.
    strikes: u32,
}

impl Fred {
    /// FRED with an empty queue that has been idle since time 0.
    pub fn new(params: &Params, link: LinkFacts) -> Self {
        let [min_th, max_th] = params.thresholds(link);
        Self {
            min_th,
            max_th,
            average: Average::new(params.w_q, packets_per_second(link, params.mean_packet)),
            avgcq: 1.0,
            count: -1,
            flows: FlowMap::default(),
            waiting: VecDeque::new(),
            p_a: 0.0,
            params: params.clone(),
        }
    }

    /// Takes a sample of the queue, `packets`, into both averages.
    #[inline]
    fn sample(&mut self, now: Time, packets: u32) {
        self.average.sample(now, f64::from(packets));
        let active = self.flows.len().max(1);
        self.avgcq = (self.average.avg / active as f64).max(1.0);
    }

    /// Whether a flow keeps more waiting than a flow that adapts would.
    #[inline]
    fn is_non_adaptive(&self, flow: Flow) -> bool {
        let congested = self.average.avg >= self.max_th;
        let max_q = if congested {
            MAX_Q_IN_CONGESTION
        } else {
            self.min_th
        };
        let qlen = f64::from(flow.qlen);
        qlen >= max_q
            || congested && qlen > 2.0 * self.avgcq
            || qlen >= self.avgcq && flow.strikes > STRIKES
    }

    /// The AQM for flows within their share: RED, but not for flows with few packets waiting.
    #[inline]
    fn decide(&mut self, flow: Flow, draw: &mut impl FnMut() -> f64) -> Decision {
        let avg = self.average.avg;
        if avg < self.min_th {
            self.count = -1;
            return Decision::Admit;
        }
        if avg >= self.max_th {
            self.count = 0;
            return Decision::Drop(Reason::FORCED);
        }
        self.count += 1;
        if f64::from(flow.qlen) < self.avgcq.max(f64::from(self.params.min_q)) {
            return Decision::Admit;
        }
        let p_b = self.params.max_p * (avg - self.min_th) / (self.max_th - self.min_th);
        self.p_a = self.params.gap.signal_probability(p_b, self.count);
        if !happens(self.p_a, draw) {
            return Decision::Admit;
        }
        self.count = 0;
        Decision::Signal(Reason::EARLY)
    }
}

impl Aqm for Fred {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        self.p_a = 0.0;
        if queue.packets == 0 {
            self.sample(now, 0);
        }
        let flow = self.flows.get(&packet.flow).copied().unwrap_or_default();
        if self.is_non_adaptive(flow) {
            if let Some(flow) = self.flows.get_mut(&packet.flow) {
                flow.strikes += 1;
            }
            return Decision::Drop(NON_ADAPTIVE);
        }
        self.decide(flow, draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::BOTH
    }

    #[inline]
    fn on_outcome(&mut self, now: Time, packet: &Packet, queue: Backlog, outcome: Outcome) {
        if let Outcome::Drop(_) = outcome {
            return;
        }
        self.flows.entry(packet.flow).or_default().qlen += 1;
        self.waiting.push_back(packet.flow);
        if queue.packets > 0 {
            self.sample(now, queue.packets);
        }
    }

    #[inline]
    fn on_departure(&mut self, now: Time, _packet: &Packet, _arrived: Time, queue: Backlog) {
        let departed = self.waiting.pop_front();
        let departed = departed.expect("what leaves was let in");
        let Entry::Occupied(mut flow) = self.flows.entry(departed) else {
            unreachable!("a flow with packets waiting is known");
        };
        flow.get_mut().qlen -= 1;
        if flow.get().qlen == 0 {
            flow.remove();
        }
        self.sample(now, queue.packets);
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.average.idle(since);
    }

    fn set_link(&mut self, link: LinkFacts) {
        [self.min_th, self.max_th] = self.params.thresholds(link);
        self.average.packets_per_second = packets_per_second(link, self.params.mean_packet);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["avg", "avgcq", "n_active", "count", "p_a"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.extend([
            self.average.avg,
            self.avgcq,
            self.flows.len() as f64,
            self.count as f64,
            self.p_a,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Ecn;
    use proptest::prelude::*;

    use super::*;
    use crate::worked;

    /// The parameters of the example.
    fn params() -> Params {
        Params {
            min_th: Some(QueueSize::Packets(2.0)),
            max_th: Some(QueueSize::Packets(5.0)),
            limit: QueueSize::Packets(50.0),
            rtt: Time::from_millis(100),
            min_q: 2,
            w_q: 0.5,
            max_p: 0.2,
            gap: Gap::Uniform,
            mean_packet: Bytes(500),
            ecn: false,
        }
    }

    fn aqm() -> Fred {
        Fred::new(&params(), worked::link(1000, 500))
    }

    #[test]
    fn fred() {
        let mut aqm = aqm();
        for row in worked::rows(include_str!("../tests/data/fred.csv")) {
            worked::play(&mut aqm, &row, false);
            worked::compare(&aqm, &row, &["avg", "avgcq", "n_active", "count", "p_a"]);
            let mut flows: Vec<_> = aqm.flows.iter().collect();
            flows.sort_by_key(|(flow, _)| **flow);
            let shown = flows.iter().map(|(name, Flow { qlen, strikes })| {
                format!("{}:{qlen}:{strikes}", worked::name(**name))
            });
            let shown: Vec<_> = shown.collect();
            assert_eq!(shown.join("|"), row.text("flows"), "row {}", row.step());
        }
    }

    /// FRED and the packets that wait behind it, all of 500 bytes, at one instant.
    struct Played {
        aqm: Fred,
        queue: u32,
    }

    impl Played {
        fn new(aqm: Fred) -> Self {
            Self { aqm, queue: 0 }
        }

        fn backlog(&self) -> Backlog {
            Backlog {
                packets: self.queue,
                bytes: 500 * u64::from(self.queue),
            }
        }

        /// An arrival for which every open chance comes out as `u` says.
        fn arrive(&mut self, flow: u64, u: f64) -> Decision {
            let queue = self.backlog();
            let packet = packet(flow);
            let decision = self.aqm.on_arrival(Time::ZERO, &packet, queue, &mut || u);
            let outcome = match decision {
                Decision::Admit => Outcome::Enqueue,
                Decision::Signal(reason) | Decision::Drop(reason) => Outcome::Drop(reason),
            };
            self.aqm.on_outcome(Time::ZERO, &packet, queue, outcome);
            self.queue += u32::from(decision == Decision::Admit);
            decision
        }

        fn depart(&mut self) {
            self.queue -= 1;
            let left = self.backlog();
            self.aqm
                .on_departure(Time::ZERO, &packet(0), Time::ZERO, left);
        }
    }

    fn packet(flow: u64) -> Packet {
        Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(flow),
        }
    }

    #[test]
    fn only_flows_with_several_packets_are_signalled_between_the_thresholds() {
        let roomy = Params {
            min_th: Some(QueueSize::Packets(4.0)),
            max_th: Some(QueueSize::Packets(14.0)),
            w_q: 1.0,
            ..params()
        };
        let mut played = Played::new(Fred::new(&roomy, worked::link(1000, 500)));
        for flow in [1, 1, 2, 3, 4, 5, 6] {
            assert_eq!(played.arrive(flow, 0.999), Decision::Admit);
        }
        // The last packet found 6: p_b = 0.2 (6 - 4) / 10 = 0.04, a seventh flow is not drawn for.
        assert_eq!(played.aqm.average.avg, 6.0);
        assert_eq!(played.aqm.p_a, 0.0);
        assert_eq!(played.arrive(7, 0.0), Decision::Admit);
        // Flow 1 has two packets waiting. Packets since the average passed min_th: two earlier
        // one (the arrivals of 6 and 7 saw averages of 5 and 6), so count = 2; the average is 7.
        assert_eq!(played.aqm.average.avg, 7.0);
        assert_eq!(played.aqm.count, 2);
        let signal = Decision::Signal(Reason::EARLY);
        assert_eq!(played.arrive(1, 0.0), signal);
        // p_b = 0.06, p_a = 0.06 / (1 - 3 * 0.06).
        worked::assert_close(played.aqm.p_a, 0.06 / 0.82, "p_a");
        assert_eq!(played.aqm.count, 0);
    }

    #[test]
    fn above_max_th_two_packets_are_a_strike_and_all_else_is_dropped() {
        let mut played = Played::new(aqm());
        for flow in 1..=2 {
            played.arrive(flow, 0.999);
            played.arrive(flow, 0.999);
        }
        played.aqm.average.avg = 5.0;
        assert_eq!(played.arrive(1, 0.999), Decision::Drop(NON_ADAPTIVE));
        assert_eq!(played.aqm.flows[&FlowKey(1)].strikes, 1);
        // A new flow is no offender, yet goes too.
        assert_eq!(played.arrive(3, 0.999), Decision::Drop(Reason::FORCED));
        assert_eq!(played.aqm.count, 0);
        assert!(!played.aqm.flows.contains_key(&FlowKey(3)));
    }

    #[test]
    fn a_drop_moves_the_average_only_if_the_queue_was_empty() {
        let mut played = Played::new(aqm());
        played.arrive(1, 0.999);
        played.arrive(1, 0.999);
        let avg = played.aqm.average.avg;
        for _ in 0..10 {
            assert_eq!(played.arrive(1, 0.999), Decision::Drop(NON_ADAPTIVE));
        }
        assert_eq!(played.aqm.average.avg, avg);
        played.depart();
        played.depart();
        assert!(played.aqm.flows.is_empty(), "and its strikes are forgotten");
        // Samples at the departures: 1 and 0; then the arrival to the empty queue.
        let expected = ((avg + 1.0) / 2.0) / 2.0 / 2.0;
        played.arrive(1, 0.999);
        worked::assert_close(played.aqm.average.avg, expected, "avg");
    }

    #[test]
    fn an_overflow_is_no_strike() {
        let mut played = Played::new(aqm());
        played.arrive(1, 0.999);
        let overflow = Outcome::Drop(Reason::OVERFLOW);
        let queue = played.backlog();
        played
            .aqm
            .on_outcome(Time::ZERO, &packet(1), queue, overflow);
        let Flow { qlen, strikes } = played.aqm.flows[&FlowKey(1)];
        assert_eq!((qlen, strikes), (1, 0));
    }

    #[test]
    fn thresholds_follow_buffer_and_link_unless_they_are_set() {
        let by_rule = Params {
            min_th: None,
            max_th: None,
            limit: QueueSize::Packets(200.0),
            ..params()
        };
        let thresholds = |params: &Params, rate| params.thresholds(worked::link(rate, 500));
        // A quarter of the buffer is 50 packets; 100 ms of 300 packets a second are 30.
        assert_eq!(thresholds(&by_rule, 1000), [50.0, 100.0]);
        assert_eq!(thresholds(&by_rule, 300), [30.0, 60.0]);
        assert_eq!(thresholds(&by_rule, 1), [1.0, 2.0]);
        assert_eq!(thresholds(&params(), 1), [2.0, 5.0]);
        let mut aqm = Fred::new(&by_rule, worked::link(1000, 500));
        aqm.set_link(worked::link(300, 500));
        assert_eq!([aqm.min_th, aqm.max_th], [30.0, 60.0]);
    }

    proptest! {
        #[test]
        fn what_waits_of_each_flow_is_known_and_nothing_else(
            events in prop::collection::vec((0_u64..6, any::<bool>(), 0.0..1.0_f64), 0..300),
        ) {
            let mut played = Played::new(aqm());
            for (flow, leave, u) in events {
                if !leave {
                    played.arrive(flow, u);
                } else if played.queue > 0 {
                    played.depart();
                }
                let waiting: u32 = played.aqm.flows.values().map(|flow| flow.qlen).sum();
                prop_assert_eq!(waiting, played.queue);
                prop_assert!(played.aqm.flows.values().all(|flow| flow.qlen > 0));
                prop_assert!(played.aqm.avgcq >= 1.0);
            }
        }
    }
}
