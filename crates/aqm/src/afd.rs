//! AFD, approximate fair dropping: R. Pan, L. Breslau, B. Prabhakar, S. Shenker, "Approximate
//! Fairness through Differential Dropping", ACM Computer Communication Review 33(2), 2003.
//! Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, happens};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::flow_map::FlowMap;
use crate::link::{Backlog, LinkFacts};
use crate::red::Unit;
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of AFD.
#[parameters]
pub struct Params {
    /// Target queue length.
    pub q_ref: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Gain on the previous sample of the queue, in headers per packet. Must be below `beta`.
    #[param(default = 1.7, least = 0.0)]
    pub alpha: f64,
    /// Gain on the newest sample of the queue, in headers per packet.
    #[param(default = 1.8, least = 0.0)]
    pub beta: f64,
    /// Time between two updates of the fair share m_fair.
    #[param(default = "6.25 ms", least = check::SHORTEST_TICK)]
    pub interval: Time,
    /// Number of headers in the shadow buffer (b in the paper). Use at least ten for each flow
    /// above the fair share.
    #[param(default = 500, least = 1, most = MOST_HEADERS)]
    pub shadow: u32,
    /// One in `s` arrivals is copied to the shadow buffer. `shadow` x `s` packets should cover a
    /// few round trips.
    #[param(default = 5.0, least = 1.0)]
    pub s: f64,
    /// If true, the arriving packet counts as one header of its flow, so a flow can lose its first
    /// packets.
    #[param(default)]
    pub counts_arrival: bool,
    /// Unit of the queue and of headers. In bytes, a header counts as packet size / `mean_packet`.
    #[param(default)]
    pub unit: Unit,
    /// Mean packet size. It converts bytes to packets.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default)]
    pub ecn: bool,
}

const MOST_HEADERS: u32 = 1 << 20;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Approximate Fair Dropping",
        paper: "R. Pan, L. Breslau, B. Prabhakar, S. Shenker, Approximate Fairness through \
                Differential Dropping, ACM Computer Communication Review 33(2), 2003",
        purpose: "Limits every flow to a fair share of the link. The share moves so that the queue \
                  stays at a target length.",
        departures: &[
            "The paper gives no rule for other links: keep alpha and beta, and change `shadow`.",
            "With ECN, AFD does not limit flows that ignore marks.",
        ],
        memory: "b headers of 16 bytes, and a count of 16 bytes for each of at most b flows",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::ascending(("alpha", self.alpha), ("beta", self.beta))
    }
}

impl AqmParameters for Params {
    type Aqm = Afd;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, _link: LinkFacts, _seed: u64) -> Afd {
        Afd::new(self)
    }
}

/// The AQM of AFD. Lengths and shares are in packets of the mean size.
#[derive(Clone, Debug)]
pub struct Afd {
    params: Params,
    /// `q_ref` in packets.
    q_ref: f64,
    /// Share of the arrivals that is copied.
    sampled: f64,
    /// What a header of the mean size weighs, in the unit.
    mean: f64,
    shadow: Shadow,
    /// Fair share, in headers of the shadow buffer.
    m_fair: f64,
    /// The previous sample of the queue.
    q_old: f64,
    next_sample: Time,
    /// Headers of the flow of the last arrival.
    m_i: f64,
    /// Probability at the last arrival.
    p: f64,
}

/// The shadow buffer: a random sample of the headers that came.
#[derive(Clone, Debug)]
struct Shadow {
    headers: Vec<Header>,
    /// The sum of the weights of each flow's headers.
    weights: FlowMap<u64>,
    capacity: usize,
}

/// A header in the shadow buffer; `weight` is 1 or the packet's bytes.
#[derive(Clone, Copy, Debug)]
struct Header {
    flow: FlowKey,
    weight: u32,
}

impl Shadow {
    fn new(capacity: usize) -> Self {
        Self {
            headers: Vec::with_capacity(capacity),
            // A flow's first header comes in before the last of another goes.
            weights: FlowMap::with_capacity_and_hasher(capacity + 1, Default::default()),
            capacity,
        }
    }

    #[inline]
    fn weight(&self, flow: FlowKey) -> u64 {
        self.weights.get(&flow).copied().unwrap_or(0)
    }

    /// Takes a header in; a full buffer loses one at random.
    fn insert(&mut self, header: Header, draw: &mut impl FnMut() -> f64) {
        *self.weights.entry(header.flow).or_default() += u64::from(header.weight);
        if self.headers.len() < self.capacity {
            self.headers.push(header);
            return;
        }
        let slot = (draw() * self.capacity as f64) as usize;
        let lost = std::mem::replace(&mut self.headers[slot], header);
        let left = self.weight(lost.flow) - u64::from(lost.weight);
        if left > 0 {
            self.weights.insert(lost.flow, left);
        } else {
            self.weights.remove(&lost.flow);
        }
    }
}

impl Afd {
    /// AFD with an empty queue and an empty shadow buffer.
    pub fn new(params: &Params) -> Self {
        let mean_packet = params.mean_packet;
        Self {
            params: params.clone(),
            q_ref: Unit::Packets.threshold(params.q_ref, mean_packet),
            sampled: 1.0 / params.s,
            mean: params.unit.threshold(QueueSize::Packets(1.0), mean_packet),
            shadow: Shadow::new(params.shadow as usize),
            m_fair: f64::from(params.shadow),
            q_old: 0.0,
            next_sample: params.interval,
            m_i: 0.0,
            p: 0.0,
        }
    }

    /// The fair share moves against the queue's distance from its reference.
    fn control(&mut self, queue: Backlog) {
        let Params { alpha, beta, .. } = self.params;
        let (q_ref, q) = (self.q_ref, self.params.unit.length(queue) / self.mean);
        let m_fair = self.m_fair + alpha * (self.q_old - q_ref) - beta * (q - q_ref);
        self.m_fair = m_fair.clamp(0.0, self.shadow.capacity as f64);
        self.q_old = q;
    }
}

impl Aqm for Afd {
    #[inline]
    fn on_arrival(
        &mut self,
        _now: Time,
        packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let weight = match self.params.unit {
            Unit::Packets => 1,
            Unit::Bytes => packet.size,
        };
        let own = if self.params.counts_arrival {
            weight
        } else {
            0
        };
        let headers = self.shadow.weight(packet.flow) + u64::from(own);
        self.m_i = headers as f64 / self.mean;
        self.p = if self.m_i > self.m_fair {
            1.0 - self.m_fair / self.m_i
        } else {
            0.0
        };
        let signal = happens(self.p, draw);
        if happens(self.sampled, draw) {
            let flow = packet.flow;
            self.shadow.insert(Header { flow, weight }, draw);
        }
        if signal {
            Decision::Signal(Reason::EARLY)
        } else {
            Decision::Admit
        }
    }

    fn next_tick(&self) -> Time {
        self.next_sample
    }

    fn on_tick(&mut self, _now: Time, queue: Backlog) {
        self.control(queue);
        self.next_sample += self.params.interval;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["m_fair", "m_i", "p"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.extend([self.m_fair, self.m_i, self.p]);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Ecn;
    use proptest::prelude::*;

    use super::*;
    use crate::worked;

    fn params() -> Params {
        Params {
            q_ref: QueueSize::Packets(2.0),
            limit: QueueSize::Packets(50.0),
            alpha: 0.4,
            beta: 0.5,
            interval: Time::from_millis(10),
            shadow: 5,
            s: 2.0,
            counts_arrival: false,
            unit: Unit::Packets,
            mean_packet: Bytes(500),
            ecn: true,
        }
    }

    #[test]
    fn afd() {
        let in_bytes = Params {
            unit: Unit::Bytes,
            q_ref: QueueSize::Bytes(1000),
            ..params()
        };
        // All packets of the example have the mean size: the unit makes no difference.
        for params in [params(), in_bytes] {
            let mut aqm = Afd::new(&params);
            aqm.m_fair = 3.0;
            for row in worked::rows(include_str!("../tests/data/afd.csv")) {
                if row.event() == "timer" {
                    assert_eq!(aqm.next_tick(), row.time());
                    aqm.on_tick(row.time(), row.queue());
                } else {
                    worked::play(&mut aqm, &row, true);
                }
                worked::compare(&aqm, &row, &["m_fair"]);
                if row.event() == "arrive" {
                    worked::compare(&aqm, &row, &["m_i", "p"]);
                }
                let headers = aqm.shadow.headers.iter();
                let shadow: String = headers.map(|header| worked::name(header.flow)).collect();
                assert_eq!(shadow, row.text("shadow"), "row {}", row.step());
            }
        }
    }

    fn packet(flow: u64, size: u32) -> Packet {
        Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(flow),
        }
    }

    #[test]
    fn a_header_weighs_what_its_packet_does() {
        let mut aqm = Afd::new(&Params {
            unit: Unit::Bytes,
            s: 1.0,
            ..params()
        });
        let mut arrive = |size, u| {
            let queue = Backlog::default();
            aqm.on_arrival(Time::ZERO, &packet(1, size), queue, &mut || u);
            aqm.m_i
        };
        // 1500 and 40 bytes: 3 packets of the mean size and 0.08 of one.
        assert_eq!([arrive(1500, 0.0), arrive(40, 0.0)], [0.0, 3.0]);
        worked::assert_close(arrive(500, 0.0), 3.08, "m_i");
    }

    #[test]
    fn an_arrival_that_counts_itself_meets_a_share_below_one() {
        let share = |counts_arrival| {
            let mut aqm = Afd::new(&Params {
                counts_arrival,
                ..params()
            });
            aqm.m_fair = 0.25;
            aqm.on_arrival(Time::ZERO, &packet(1, 500), Backlog::default(), &mut || 0.9);
            (aqm.m_i, aqm.p)
        };
        assert_eq!(share(false), (0.0, 0.0));
        assert_eq!(share(true), (1.0, 0.75));
    }

    #[test]
    fn every_header_is_sampled_without_a_draw_when_s_is_1() {
        let mut aqm = Afd::new(&Params { s: 1.0, ..params() });
        for _ in 0..5 {
            let mut draw = || unreachable!("the buffer is not full, the share is");
            let decision =
                aqm.on_arrival(Time::ZERO, &packet(1, 500), Backlog::default(), &mut draw);
            assert_eq!(decision, Decision::Admit);
        }
        assert_eq!(aqm.shadow.headers.len(), 5);
    }

    #[test]
    fn the_share_rests_at_the_reference_and_falls_as_the_queue_grows() {
        let queue = |packets| Backlog { packets, bytes: 0 };
        let mut aqm = Afd::new(&params());
        (aqm.m_fair, aqm.q_old) = (3.0, 2.0);
        aqm.control(queue(2));
        assert_eq!(aqm.m_fair, 3.0);
        aqm.control(queue(3));
        worked::assert_close(aqm.m_fair, 2.5, "a queue that grew by one");
        aqm.control(queue(100));
        assert_eq!(aqm.m_fair, 0.0);
        aqm.control(queue(0));
        assert_eq!(aqm.m_fair, 5.0);
    }

    proptest! {
        #[test]
        fn the_counts_are_those_of_the_headers(
            arrivals in prop::collection::vec((0_u64..12, 1_u32..2000, 0.0..1.0_f64), 0..400),
        ) {
            let mut aqm = Afd::new(&Params { unit: Unit::Bytes, ..params() });
            for (flow, size, u) in arrivals {
                let queue = Backlog::default();
                aqm.on_arrival(Time::ZERO, &packet(flow, size), queue, &mut || u);
                prop_assert!(aqm.shadow.headers.len() <= 5);
                let mut counted = FlowMap::<u64>::default();
                for header in &aqm.shadow.headers {
                    *counted.entry(header.flow).or_default() += u64::from(header.weight);
                }
                prop_assert_eq!(&aqm.shadow.weights, &counted);
            }
        }
    }
}
