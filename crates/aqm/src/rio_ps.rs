//! RIO-PS, RIO with preference for short flows: L. Guo, I. Matta, "The War between Mice and
//! Elephants", ICNP 2001. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::flow_map::FlowMap;
use crate::link::{Backlog, LinkFacts};
use crate::red::Gap;
use crate::rio::{self, Class, Curves};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of RIO-PS. The first `l_t` packets of a flow are Short, its later packets are Long.
#[parameters]
pub struct Params {
    /// Below this average of waiting Short packets, RIO-PS admits every Short packet.
    #[param(default = "80 packets")]
    pub short_min_th: QueueSize,
    /// From this average of waiting Short packets on, every Short arrival is dropped.
    #[param(default = "840 packets")]
    pub short_max_th: QueueSize,
    /// Drop or mark probability of Short packets when their average reaches `short_max_th`.
    #[param(default = 0.05, above = 0.0, most = 1.0)]
    pub short_max_p: f64,
    /// Below this average of all packets, RIO-PS admits every Long packet.
    #[param(default = "80 packets")]
    pub long_min_th: QueueSize,
    /// From this average of all packets on, every Long arrival is dropped.
    #[param(default = "1200 packets")]
    pub long_max_th: QueueSize,
    /// Drop or mark probability of Long packets when the average reaches `long_max_th`.
    #[param(default = 0.1, above = 0.0, most = 1.0)]
    pub long_max_p: f64,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Weight of the newest sample in both averages.
    #[param(default = 1.0 / 512.0, above = 0.0, most = 1.0)]
    pub w_q: f64,
    /// How RED spaces its drops and marks. The base probability p_b sets the mean gap.
    #[param(default)]
    pub gap: Gap,
    /// Target number of active Short flows per active Long flow (SLR).
    #[param(default = 3.0, above = 0.0)]
    pub slr: f64,
    /// Initial L_t: the number of packets of a flow that are Short.
    #[param(default = 10, least = 1)]
    pub l_t: u32,
    /// Time between two checks (T_u). A check forgets flows that sent no packet since the last
    /// check.
    #[param(default = "1 s", least = check::SHORTEST_TICK)]
    pub t_u: Time,
    /// How often L_t moves by one packet (T_c).
    #[param(default = "10 s", least = check::SHORTEST_TICK)]
    pub t_c: Time,
    /// Maximum number of remembered flows. Packets of further flows are Short.
    #[param(default = 1 << 16, least = 1, most = MOST_FLOWS)]
    pub max_flows: u32,
    /// Mean packet size. It converts thresholds between packets and bytes. While the link is idle,
    /// the average falls as if packets of this size arrived at the link rate and found an empty
    /// queue.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default)]
    pub ecn: bool,
}

const MOST_FLOWS: u32 = 1 << 24;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "RIO with Preference for Short flows",
        paper: "L. Guo, I. Matta, The War between Mice and Elephants, ICNP 2001; thresholds of L. \
                Le, dissertation, 2005, section 4.8.2",
        purpose: "Gives the first packets of every flow a gentler RED curve, so short transfers \
                  lose fewer packets.",
        departures: &[
            "The classifier is at the same port, before RIO; in the paper, it is at the network's \
             edge.",
            "The two directions of a connection are two flows.",
        ],
        memory: "about 40 bytes for each remembered flow and one byte for each waiting packet",
    };

    fn check_together(&self) -> Result<(), Problem> {
        self.rio().check_curves([
            ["short_min_th", "short_max_th", "gentle"],
            ["long_min_th", "long_max_th", "gentle"],
        ])
    }
}

impl AqmParameters for Params {
    type Aqm = RioPs;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> RioPs {
        RioPs::new(self, link)
    }
}

impl Params {
    /// The RIO whose In packets are the Short ones, without its code points.
    fn rio(&self) -> rio::Params {
        rio::Params {
            min_in: self.short_min_th,
            max_in: self.short_max_th,
            p_in: self.short_max_p,
            min_out: self.long_min_th,
            max_out: self.long_max_th,
            p_out: self.long_max_p,
            gentle_in: false,
            gentle_out: false,
            limit: self.limit,
            w_q: self.w_q,
            gap: self.gap,
            in_codepoints: Vec::new(),
            mean_packet: self.mean_packet,
            ecn: self.ecn,
        }
    }
}

/// The AQM of RIO-PS.
#[derive(Clone, Debug)]
pub struct RioPs {
    curves: Curves,
    classifier: Classifier,
    t_u: Time,
    t_c: Time,
    next_scan: Time,
    next_adaptation: Time,
}

/// The edge's part: says which packets are Short, and moves the boundary.
#[derive(Clone, Debug)]
struct Classifier {
    flows: FlowMap<Flow>,
    max_flows: usize,
    /// Packets of a flow that are Short.
    l_t: u32,
    slr: f64,
}

/// What is remembered of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Packets that it sent.
    packets: u32,
    /// Whether it has sent since the last scan.
    seen: bool,
}

impl Classifier {
    #[inline]
    fn classify(&mut self, flow: FlowKey) -> Class {
        let packets = match self.flows.get_mut(&flow) {
            Some(known) => {
                known.packets = known.packets.saturating_add(1);
                known.seen = true;
                known.packets
            }
            None => {
                if self.flows.len() < self.max_flows {
                    let seen = true;
                    self.flows.insert(flow, Flow { packets: 1, seen });
                }
                1
            }
        };
        if packets <= self.l_t {
            Class::In
        } else {
            Class::Out
        }
    }

    /// Forgets flows that sent nothing since the last scan.
    fn scan(&mut self) {
        self.flows.retain(|_, flow| std::mem::take(&mut flow.seen));
    }

    /// Moves L_t towards the wanted ratio of Short to Long flows.
    fn adapt(&mut self) {
        let l_t = self.l_t;
        let is_short = |flow: &&Flow| flow.packets <= l_t;
        let short = self.flows.values().filter(is_short).count();
        let long = self.flows.len() - short;
        let (short, wanted) = (short as f64, self.slr * long as f64);
        if short > wanted {
            self.l_t = (l_t - 1).max(1);
        } else if short < wanted {
            self.l_t = l_t.saturating_add(1);
        }
    }
}

impl RioPs {
    /// RIO-PS with an empty queue that has been idle since time 0, and no flow known.
    pub fn new(params: &Params, link: LinkFacts) -> Self {
        Self {
            curves: Curves::new(&params.rio(), link),
            classifier: Classifier {
                flows: FlowMap::default(),
                max_flows: params.max_flows as usize,
                l_t: params.l_t,
                slr: params.slr,
            },
            t_u: params.t_u,
            t_c: params.t_c,
            next_scan: params.t_u,
            next_adaptation: params.t_c,
        }
    }
}

impl Aqm for RioPs {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let class = self.classifier.classify(packet.flow);
        self.curves.on_arrival(now, packet, class, queue, draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::BOTH
    }

    #[inline]
    fn on_outcome(&mut self, now: Time, packet: &Packet, queue: Backlog, outcome: Outcome) {
        self.curves.on_outcome(now, packet, queue, outcome);
    }

    #[inline]
    fn on_departure(&mut self, _now: Time, packet: &Packet, _arrived: Time, _queue: Backlog) {
        self.curves.on_departure(packet);
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.curves.on_idle(since);
    }

    fn next_tick(&self) -> Time {
        self.next_scan.min(self.next_adaptation)
    }

    fn on_tick(&mut self, now: Time, _queue: Backlog) {
        if now == self.next_scan {
            self.classifier.scan();
            self.next_scan += self.t_u;
        }
        if now == self.next_adaptation {
            self.classifier.adapt();
            self.next_adaptation += self.t_c;
        }
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.curves.set_link(link);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &[
            "avg_short",
            "count_short",
            "p_b_short",
            "p_a_short",
            "avg_total",
            "count_long",
            "p_b_long",
            "p_a_long",
            "l_t",
            "flows",
        ]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.curves.probe(out);
        out.push(f64::from(self.classifier.l_t));
        out.push(self.classifier.flows.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worked;

    /// The parameters of the example.
    fn params() -> Params {
        Params {
            short_min_th: QueueSize::Packets(2.0),
            short_max_th: QueueSize::Packets(8.0),
            short_max_p: 0.05,
            long_min_th: QueueSize::Packets(2.0),
            long_max_th: QueueSize::Packets(10.0),
            long_max_p: 0.5,
            limit: QueueSize::Packets(50.0),
            w_q: 0.5,
            gap: Gap::Uniform,
            slr: 3.0,
            l_t: 2,
            t_u: Time::from_millis(10),
            t_c: Time::from_millis(10),
            max_flows: 100,
            mean_packet: Bytes(500),
            ecn: true,
        }
    }

    #[test]
    fn rio_ps() {
        let mut aqm = RioPs::new(&params(), worked::link(1000, 500));
        for row in worked::rows(include_str!("../tests/data/rio_ps.csv")) {
            if row.event() == "timer" {
                assert_eq!(aqm.next_tick(), row.time());
                aqm.on_tick(row.time(), row.queue());
            } else {
                worked::play(&mut aqm, &row, true);
                let columns = match row.text("class") {
                    "in" => [("p_b_short", "p_b"), ("p_a_short", "p_a")],
                    _ => [("p_b_long", "p_b"), ("p_a_long", "p_a")],
                };
                for (name, column) in columns {
                    worked::compare_as(&aqm, &row, name, column);
                }
            }
            worked::compare_as(&aqm, &row, "avg_short", "avg_in");
            worked::compare(&aqm, &row, &["avg_total"]);
            worked::compare_as(&aqm, &row, "l_t", "L_t");
            let flows = aqm.classifier.flows.iter();
            let mut flows: Vec<_> = flows
                .map(|(name, flow)| (*name, f64::from(flow.packets)))
                .collect();
            flows.sort_by_key(|(name, _)| *name);
            worked::compare_list(&row, "table", flows);
        }
    }

    fn classifier(l_t: u32) -> Classifier {
        Classifier {
            flows: FlowMap::default(),
            max_flows: 100,
            l_t,
            slr: 3.0,
        }
    }

    fn send(classifier: &mut Classifier, flow: u64, packets: usize) -> Vec<Class> {
        (0..packets)
            .map(|_| classifier.classify(FlowKey(flow)))
            .collect()
    }

    #[test]
    fn the_first_packets_of_a_flow_are_short() {
        let classes = send(&mut classifier(3), 1, 5);
        assert_eq!(classes[..3], [Class::In; 3]);
        assert_eq!(classes[3..], [Class::Out; 2]);
    }

    #[test]
    fn the_boundary_moves_towards_the_ratio_and_rests_there() {
        let mut moved = Vec::new();
        // Three packets make a flow long, one leaves it short.
        for (short, long) in [(3, 1), (4, 1), (2, 1), (5, 0), (0, 5), (0, 0)] {
            let mut classifier = classifier(2);
            for flow in 0..short {
                send(&mut classifier, flow, 1);
            }
            for flow in short..short + long {
                send(&mut classifier, flow, 3);
            }
            classifier.adapt();
            moved.push(classifier.l_t);
        }
        assert_eq!(moved, [2, 1, 3, 1, 3, 2]);
        let mut lowest = classifier(1);
        send(&mut lowest, 1, 1);
        lowest.adapt();
        assert_eq!(lowest.l_t, 1);
    }

    #[test]
    fn flows_are_forgotten_when_they_were_silent_from_scan_to_scan() {
        let mut classifier = classifier(2);
        send(&mut classifier, 1, 3);
        classifier.scan();
        assert_eq!(send(&mut classifier, 1, 1), [Class::Out]);
        classifier.scan();
        classifier.scan();
        assert!(classifier.flows.is_empty());
        assert_eq!(send(&mut classifier, 1, 1), [Class::In]);
    }

    #[test]
    fn the_clocks_run_apart() {
        let apart = Params {
            t_c: Time::from_millis(25),
            ..params()
        };
        let mut aqm = RioPs::new(&apart, worked::link(1000, 500));
        let mut ticks = Vec::new();
        for _ in 0..6 {
            ticks.push(aqm.next_tick().as_nanos() / 1_000_000);
            aqm.on_tick(aqm.next_tick(), Backlog::default());
        }
        assert_eq!(ticks, [10, 20, 25, 30, 40, 50]);
    }

    #[test]
    fn flows_beyond_the_table_are_short_until_there_is_room() {
        let mut full = Classifier {
            max_flows: 1,
            ..classifier(2)
        };
        send(&mut full, 1, 3);
        assert_eq!(send(&mut full, 2, 5), [Class::In; 5]);
        assert_eq!(full.flows.len(), 1);
        full.scan();
        full.scan();
        send(&mut full, 2, 3);
        assert_eq!(full.flows[&FlowKey(2)].packets, 3);
    }
}
