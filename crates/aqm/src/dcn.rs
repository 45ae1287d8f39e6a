//! DCN, differential congestion notification: L. Le, J. Aikat, K. Jeffay, F. D. Smith,
//! "Differential Congestion Notification: Taming the Elephants", ICNP 2004, as described in L. Le's
//! dissertation, 2005, section 4.8.3, equation 4.2 and figure 4.101. Departures:
//! [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome, happens};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::flow_map::FlowList;
use crate::link::{Backlog, LinkFacts};
use crate::red::{Unit, packets_per_second};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of DCN.
#[parameters]
pub struct Params {
    /// Target queue length.
    pub q_ref: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Gain on the previous sample of the queue, per packet. Must be below `b`.
    #[param(default = 1.7, least = 0.0)]
    pub a: f64,
    /// Gain on the newest sample of the queue, per packet.
    #[param(default = 1.8, least = 0.0)]
    pub b: f64,
    /// Time between two updates of p_ref (T in the paper).
    #[param(default = "6.25 ms", least = check::SHORTEST_TICK)]
    pub interval: Time,
    /// Time between two subtractions of p_ref from the count of every heavy flow (T_dec in the
    /// paper).
    #[param(default = "1 s", least = check::SHORTEST_TICK)]
    pub aging_interval: Time,
    /// After a longer silence the count of a light flow restarts at zero.
    #[param(default = "1 s", above = Time::ZERO)]
    pub clearing_interval: Time,
    /// A flow becomes heavy when it has sent more packets than this without a silence.
    #[param(default = 70, least = 1, most = 1_000_000)]
    pub sb_threshold: u32,
    /// Slots in the table of light flows (scoreboard).
    #[param(default = 4096, least = 1, most = MOST_ENTRIES)]
    pub sb_slots: u32,
    /// Entries in the table of heavy flows.
    #[param(default = 4096, least = 1, most = MOST_ENTRIES)]
    pub hb_entries: u32,
    /// Upper bound and initial value of p_ref, in packets per `aging_interval`. Default: 1 % of the
    /// packets that the link carries in `aging_interval`.
    #[param(least = LEAST_SHARE)]
    pub p_max: Option<f64>,
    /// Which packets of a flow count.
    #[param(default)]
    pub counts: Counts,
    /// If true, p_ref follows equation 4.2 as printed: the two samples are exchanged, so a growing
    /// queue raises the fair share.
    #[param(default)]
    pub as_printed: bool,
    /// Mean packet size. It converts bytes to packets.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default)]
    pub ecn: bool,
}

/// Which packets of a flow count. Section 4.8.3 says both: the tables hold forwarded packets, the
/// decision looks at arrived packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Arriving packets, so a flow with losses does not look slow. A count stops at four times the
    /// largest p_ref.
    #[default]
    Arrived,
    /// Forwarded packets, without a cap. The count settles at the number of packets that the flow
    /// sends in `aging_interval`.
    Forwarded,
}

const MOST_ENTRIES: u32 = 1 << 20;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Differential Congestion Notification",
        paper: "L. Le, J. Aikat, K. Jeffay, F. D. Smith, Differential Congestion Notification: \
                Taming the Elephants, ICNP 2004; L. Le, dissertation, 2005, section 4.8.3",
        purpose: "Signals congestion only to flows that are both large and fast, and holds the \
                  queue near a target length. Short transfers lose packets only when the \
                  buffer is full.",
        departures: &[
            "The text gives only `q_ref`. aqmlab takes a, b and T from AFD, and 1 s for aging and \
             clearing. A flow is heavy after 70 packets (100 kB).",
        ],
        memory: "`sb_slots` slots of 24 bytes and at most `hb_entries` flows of 32 bytes",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::ascending(("a", self.a), ("b", self.b))
    }
}

impl AqmParameters for Params {
    type Aqm = Dcn;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, seed: u64) -> Dcn {
        Dcn::new(self, link, seed)
    }
}

/// Smallest p_ref, in packets: a heavy flow is always forgiven something.
const LEAST_SHARE: f64 = 1.0;

/// A count of packets is capped at this many times the largest p_ref.
const COUNT_CAP: f64 = 4.0;

/// p_max by our rule: this share of what the link carries in an ageing interval.
const P_MAX_SHARE: f64 = 0.01;

/// The AQM of DCN.
#[derive(Clone, Debug)]
pub struct Dcn {
    params: Params,
    /// `q_ref` in packets.
    q_ref: f64,
    /// Largest p_ref.
    p_max: f64,
    /// Fair share: packets of a heavy flow that are forgiven per ageing interval.
    p_ref: f64,
    /// The previous sample of the queue, in packets.
    q_old: f64,
    next_sample: Time,
    next_aging: Time,
    /// The paper's HB: flows that are large and fast, with their pktcount.
    heavy: FlowList<f64>,
    scores: ScoreBoard,
    /// Probability at the last arrival.
    p: f64,
}

/// The paper's SB: the light flows that were seen last.
#[derive(Clone, Debug)]
struct ScoreBoard {
    slots: Vec<Option<Score>>,
    seed: u64,
}

/// A light flow.
#[derive(Clone, Copy, Debug)]
struct Score {
    flow: FlowKey,
    count: u32,
    /// When its last packet came.
    last: Time,
}

impl ScoreBoard {
    fn new(slots: usize, seed: u64) -> Self {
        Self {
            slots: vec![None; slots],
            seed,
        }
    }

    #[inline]
    fn slot(&mut self, flow: FlowKey) -> &mut Option<Score> {
        let slots = self.slots.len() as u64;
        let index = flow.hash(self.seed) % slots;
        &mut self.slots[index as usize]
    }

    /// Counts a packet of a light flow: its count, unless the flow is not tracked because another
    /// one sits in its slot.
    #[inline]
    fn count(&mut self, now: Time, flow: FlowKey, clearing_interval: Time) -> Option<u32> {
        let slot = self.slot(flow);
        let count = match *slot {
            Some(score) if now.saturating_sub(score.last) > clearing_interval => 1,
            Some(score) if score.flow == flow => score.count.saturating_add(1),
            Some(_) => return None,
            None => 1,
        };
        *slot = Some(Score {
            flow,
            count,
            last: now,
        });
        Some(count)
    }

    fn remove(&mut self, flow: FlowKey) {
        *self.slot(flow) = None;
    }
}

impl Dcn {
    /// DCN with an empty queue and no flow known; `seed` is for the slots of the score board.
    pub fn new(params: &Params, link: LinkFacts, seed: u64) -> Self {
        let p_max = p_max(params, link);
        Self {
            q_ref: Unit::Packets.threshold(params.q_ref, params.mean_packet),
            p_max,
            p_ref: p_max,
            q_old: 0.0,
            next_sample: params.interval,
            next_aging: params.aging_interval,
            heavy: FlowList::with_capacity(params.hb_entries as usize),
            scores: ScoreBoard::new(params.sb_slots as usize, seed),
            p: 0.0,
            params: params.clone(),
        }
    }

    /// The fair share moves against the queue's distance from `q_ref`.
    fn control(&mut self, queue: Backlog) {
        let q = f64::from(queue.packets);
        let Params {
            a, b, as_printed, ..
        } = self.params;
        let (by_a, by_b) = if as_printed {
            (q, self.q_old)
        } else {
            (self.q_old, q)
        };
        let p_ref = self.p_ref + a * (by_a - self.q_ref) - b * (by_b - self.q_ref);
        self.p_ref = p_ref.clamp(LEAST_SHARE, self.p_max);
        self.q_old = q;
    }

    /// Counts a packet of a light flow, which may make it a heavy one.
    #[inline]
    fn count_light(&mut self, now: Time, flow: FlowKey, cap: f64) {
        let clearing_interval = self.params.clearing_interval;
        if let Some(count) = self.scores.count(now, flow, clearing_interval)
            && count > self.params.sb_threshold
            && self.heavy.len() < self.params.hb_entries as usize
        {
            self.scores.remove(flow);
            self.heavy.push(flow, f64::from(count).min(cap));
        }
    }

    /// Forgives every heavy flow its fair share and releases those that have nothing left.
    fn age(&mut self) {
        let p_ref = self.p_ref;
        self.heavy.retain(|_, pktcount| {
            *pktcount -= p_ref;
            *pktcount > 0.0
        });
    }
}

fn p_max(params: &Params, link: LinkFacts) -> f64 {
    params.p_max.unwrap_or_else(|| {
        let per_second = packets_per_second(link, params.mean_packet);
        (P_MAX_SHARE * per_second * params.aging_interval.as_secs_f64()).max(LEAST_SHARE)
    })
}

impl Aqm for Dcn {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        _queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let counts_arrival = self.params.counts == Counts::Arrived;
        if let Some(pktcount) = self.heavy.get_mut(packet.flow) {
            if counts_arrival {
                *pktcount = (*pktcount + 1.0).min(COUNT_CAP * self.p_max);
            }
            self.p = (1.0 - self.p_ref / *pktcount).max(0.0);
            return if happens(self.p, draw) {
                Decision::Signal(Reason::EARLY)
            } else {
                Decision::Admit
            };
        }
        self.p = 0.0;
        if counts_arrival {
            self.count_light(now, packet.flow, COUNT_CAP * self.p_max);
        }
        Decision::Admit
    }

    fn hooks(&self) -> Hooks {
        match self.params.counts {
            Counts::Arrived => Hooks::ARRIVALS,
            Counts::Forwarded => Hooks::OUTCOMES,
        }
    }

    #[inline]
    fn on_outcome(&mut self, now: Time, packet: &Packet, _queue: Backlog, outcome: Outcome) {
        if matches!(outcome, Outcome::Drop(_)) || self.params.counts == Counts::Arrived {
            return;
        }
        match self.heavy.get_mut(packet.flow) {
            Some(pktcount) => *pktcount += 1.0,
            None => self.count_light(now, packet.flow, f64::INFINITY),
        }
    }

    fn next_tick(&self) -> Time {
        self.next_sample.min(self.next_aging)
    }

    fn on_tick(&mut self, now: Time, queue: Backlog) {
        if now == self.next_sample {
            self.control(queue);
            self.next_sample += self.params.interval;
        }
        if now == self.next_aging {
            self.age();
            self.next_aging += self.params.aging_interval;
        }
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.p_max = p_max(&self.params, link);
        self.p_ref = self.p_ref.min(self.p_max);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["p_ref", "p", "hb_flows"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        out.extend([self.p_ref, self.p, self.heavy.len() as f64]);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::Ecn;

    use super::*;
    use crate::worked::{self, Row};

    fn params() -> Params {
        Params {
            q_ref: QueueSize::Packets(2.0),
            limit: QueueSize::Packets(50.0),
            a: 0.4,
            b: 0.5,
            interval: Time::from_millis(10),
            aging_interval: Time::from_millis(40),
            clearing_interval: Time::from_millis(50),
            sb_threshold: 3,
            sb_slots: 4096,
            hb_entries: 4096,
            p_max: Some(50.0),
            counts: Counts::Arrived,
            as_printed: false,
            mean_packet: Bytes(500),
            ecn: true,
        }
    }

    fn aqm(params: &Params) -> Dcn {
        Dcn::new(params, worked::link(1000, 500), 1)
    }

    /// The ticks of the examples come by hand: they leave out those of the control after 40 ms.
    fn tick(aqm: &mut Dcn, row: &Row) {
        match row.event() {
            "timer_T" => aqm.control(row.queue()),
            "timer_dec" => aqm.age(),
            event => panic!("row {}: unknown event {event}", row.step()),
        }
    }

    fn follow(csv: &str, as_printed: bool) {
        let params = Params {
            as_printed,
            ..params()
        };
        let mut aqm = aqm(&params);
        aqm.p_ref = 6.0;
        for row in worked::rows(csv) {
            match row.event() {
                "arrive" | "depart" => worked::play(&mut aqm, &row, true),
                _ => tick(&mut aqm, &row),
            }
            worked::compare(&aqm, &row, &["p_ref"]);
            if row.event() == "arrive" {
                worked::compare(&aqm, &row, &["p"]);
            }
            worked::compare_list(&row, "hb", aqm.heavy.iter().copied());
            let mut scores: Vec<_> = aqm.scores.slots.iter().flatten().collect();
            scores.sort_by_key(|score| score.flow);
            let scores = scores
                .iter()
                .map(|score| (score.flow, f64::from(score.count)));
            worked::compare_list(&row, "sb", scores);
        }
    }

    #[test]
    fn dcn() {
        follow(include_str!("../tests/data/dcn.csv"), false);
    }

    #[test]
    fn dcn_as_printed() {
        follow(include_str!("../tests/data/dcn_as_printed.csv"), true);
    }

    fn send(aqm: &mut Dcn, ms: u64, flow: u64, packets: usize) -> Vec<Decision> {
        let packet = Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(flow),
        };
        let mut arrive = |_| {
            let now = Time::from_millis(ms);
            aqm.on_arrival(now, &packet, Backlog::default(), &mut || 0.0)
        };
        (0..packets).map(&mut arrive).collect()
    }

    #[test]
    fn the_clocks_of_control_and_ageing_run_apart_and_control_goes_first() {
        let mut aqm = aqm(&params());
        aqm.p_ref = 10.0;
        send(&mut aqm, 0, 1, 13);
        let mut ticks = Vec::new();
        for _ in 0..5 {
            ticks.push(aqm.next_tick().as_nanos() / 1_000_000);
            aqm.on_tick(aqm.next_tick(), Backlog::default());
        }
        assert_eq!(ticks, [10, 20, 30, 40, 50]);
        // Empty throughout: each sample moves p_ref by 0.4 (0 - 2) - 0.5 (0 - 2) = 0.2. At 40 ms
        // the flow is forgiven 10.8 of its 13 packets.
        worked::assert_close(aqm.p_ref, 11.0, "p_ref");
        worked::assert_close(*aqm.heavy.get_mut(FlowKey(1)).unwrap(), 2.2, "pktcount");
    }

    #[test]
    fn the_share_rests_at_the_reference_and_falls_as_the_queue_grows() {
        let queue = |packets| Backlog { packets, bytes: 0 };
        let mut aqm = aqm(&params());
        (aqm.p_ref, aqm.q_old) = (6.0, 2.0);
        aqm.control(queue(2));
        assert_eq!(aqm.p_ref, 6.0);
        aqm.control(queue(3));
        worked::assert_close(aqm.p_ref, 5.5, "a queue that grew by one");
        // As printed the same packet raises it: 0.4 (3 - 2) - 0.5 (2 - 2).
        aqm.params.as_printed = true;
        (aqm.p_ref, aqm.q_old) = (6.0, 2.0);
        aqm.control(queue(3));
        worked::assert_close(aqm.p_ref, 6.4, "as printed");
    }

    #[test]
    fn p_ref_stays_between_1_and_p_max_and_counts_below_four_times_that() {
        let mut aqm = aqm(&params());
        let full = Backlog {
            packets: 1000,
            bytes: 0,
        };
        aqm.control(full);
        assert_eq!(aqm.p_ref, 1.0);
        send(&mut aqm, 0, 1, 500);
        assert_eq!(aqm.heavy.get_mut(FlowKey(1)), Some(&mut 200.0));
        aqm.q_old = 1000.0;
        aqm.control(Backlog::default());
        assert_eq!(aqm.p_ref, 50.0);
    }

    #[test]
    fn forwarded_packets_alone_may_count() {
        let mut aqm = aqm(&Params {
            counts: Counts::Forwarded,
            ..params()
        });
        aqm.p_ref = 2.0;
        let packet = Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        };
        let mut arrive = |u: f64| {
            let (now, queue) = (Time::ZERO, Backlog::default());
            let decision = aqm.on_arrival(now, &packet, queue, &mut || u);
            aqm.on_outcome(now, &packet, queue, decision.outcome(&packet, true, true));
            (aqm.p, aqm.heavy.get_mut(FlowKey(1)).copied())
        };
        // Four packets make it heavy. Then p = 1 - 2/4; a drop does not change the count.
        let found = [0.0, 0.0, 0.0, 0.0, 0.6, 0.1, 0.7].map(&mut arrive);
        assert_eq!(found[2..4], [(0.0, None), (0.0, Some(4.0))]);
        assert_eq!(
            found[4..],
            [(0.5, Some(5.0)), (0.6, Some(5.0)), (0.6, Some(6.0))]
        );
    }

    #[test]
    fn p_max_follows_the_link_unless_it_is_set() {
        let by_rule = Params {
            p_max: None,
            aging_interval: Time::from_secs(1),
            ..params()
        };
        // 25000 packets a second: 1 % of a second are 250.
        let mut aqm = Dcn::new(&by_rule, worked::link(25_000, 500), 1);
        assert_eq!((aqm.p_ref, aqm.p_max), (250.0, 250.0));
        aqm.set_link(worked::link(5_000, 500));
        assert_eq!((aqm.p_ref, aqm.p_max), (50.0, 50.0));
        aqm.set_link(worked::link(10, 500));
        assert_eq!((aqm.p_ref, aqm.p_max), (1.0, 1.0));
        let mut set = self::aqm(&params());
        set.set_link(worked::link(5, 500));
        assert_eq!((set.p_ref, set.p_max), (50.0, 50.0));
    }

    #[test]
    fn a_slot_belongs_to_the_flow_that_was_not_silent() {
        let one_slot = Params {
            sb_slots: 1,
            ..params()
        };
        let mut aqm = aqm(&one_slot);
        send(&mut aqm, 0, 1, 2);
        send(&mut aqm, 50, 2, 9);
        let score = aqm.scores.slots[0].unwrap();
        assert_eq!((score.flow, score.count), (FlowKey(1), 2));
        // 51 ms of silence are more than 50: the other flow takes the slot.
        send(&mut aqm, 51, 2, 2);
        let score = aqm.scores.slots[0].unwrap();
        assert_eq!((score.flow, score.count), (FlowKey(2), 2));
    }

    #[test]
    fn a_full_table_of_heavy_flows_takes_nobody_until_one_is_released() {
        let one_place = Params {
            hb_entries: 1,
            ..params()
        };
        let mut aqm = aqm(&one_place);
        let heavy = |aqm: &Dcn| aqm.heavy.iter().copied().collect::<Vec<_>>();
        send(&mut aqm, 0, 1, 4);
        send(&mut aqm, 0, 2, 100);
        assert_eq!(heavy(&aqm), [(FlowKey(1), 4.0)]);
        aqm.age();
        send(&mut aqm, 0, 2, 1);
        assert_eq!(heavy(&aqm), [(FlowKey(2), 101.0)]);
    }

    #[test]
    fn a_heavy_flow_within_its_share_is_let_in_without_a_draw() {
        let mut aqm = aqm(&params());
        let packet = Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(1),
        };
        for _ in 0..50 {
            let decision = aqm.on_arrival(Time::ZERO, &packet, Backlog::default(), &mut || {
                unreachable!("p is 0 up to 50 packets")
            });
            assert_eq!(decision, Decision::Admit);
        }
        // 51 packets against a share of 50: p = 1/51.
        let draws = [
            (0.0195, Decision::Signal(Reason::EARLY)),
            (0.02, Decision::Admit),
        ];
        for (draw, expected) in draws {
            let mut aqm = aqm.clone();
            let decision = aqm.on_arrival(Time::ZERO, &packet, Backlog::default(), &mut || draw);
            assert_eq!(decision, expected);
        }
    }
}
