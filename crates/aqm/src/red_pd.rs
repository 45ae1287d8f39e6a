//! RED-PD, RED with preferential dropping: R. Mahajan, S. Floyd, D. Wetherall, "Controlling
//! High-Bandwidth Flows at the Congested Router", ICNP 2001. Departures: [`Parameters::ABOUT`].

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use aqmlab_net::{Bytes, FlowKey, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome, happens};
use crate::check::{self, Problem};
use crate::counters::{Reason, ReasonText};
use crate::flow_map::{FlowList, FlowMap};
use crate::link::{Backlog, LinkFacts};
use crate::red::{self, Gap, Red, Unit};
use aqmlab_declare::{About, Parameters, parameters};

use response::{Response, Test};

mod response;

/// Parameters of RED-PD: those of RED, and those of the filter in front of it.
#[parameters]
pub struct Params {
    /// Minimum threshold of the average queue length. Below it, there are no early drops and no
    /// marks.
    pub min_th: QueueSize,
    /// Maximum threshold of the average queue length. At or above it, every arriving packet is
    /// dropped. With `gentle = true`, this limit is twice `max_th`.
    pub max_th: QueueSize,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Weight of the newest sample in the average. With a larger weight, the average follows the
    /// queue faster.
    #[param(default = 0.002, above = 0.0, most = 1.0)]
    pub w_q: f64,
    /// Drop or mark probability when the average reaches `max_th`.
    #[param(default = 0.1, above = 0.0, most = 1.0)]
    pub max_p: f64,
    /// If true, the probability rises from `max_p` at `max_th` to 1 at twice `max_th` (Floyd 2000).
    #[param(default)]
    pub gentle: bool,
    /// How RED spaces its drops and marks. The base probability p_b sets the mean gap.
    #[param(default)]
    pub gap: Gap,
    /// Unit of the queue length.
    #[param(default)]
    pub unit: Unit,
    /// If true, the probability is multiplied by packet size / `mean_packet`.
    #[param(default)]
    pub scale_by_size: bool,
    /// Mean packet size. It converts thresholds between packets and bytes. While the link is idle,
    /// the average falls as if packets of this size arrived at the link rate and found an empty
    /// queue.
    #[param(default = "500 bytes", check = check::packet_size)]
    pub mean_packet: Bytes,
    /// Target round-trip time R. A flow is high-bandwidth if it is faster than TCP: sqrt(1.5/p)/R
    /// packets per second at drop rate p.
    #[param(default = "40 ms", least = check::SHORTEST_TICK)]
    pub target_rtt: Time,
    /// Number of remembered drop lists (M in the paper).
    #[param(default = 5, least = 1, most = 100)]
    pub lists: u32,
    /// Number of lists in which a flow must appear to count as high-bandwidth (K in the paper).
    #[schemars(range(min = 1, max = 100))]
    #[param(default = 3)]
    pub lists_needed: u32,
    /// Number of flows in each list: the flows with the most dropped bytes.
    #[param(default = 50, least = 1, most = 1000)]
    pub list_flows: u32,
    /// Minimum drop rate at which RED-PD identifies flows.
    #[param(default = 0.001, least = 0.0, most = 1.0)]
    pub identify_above: f64,
    /// Largest single decrease of a flow's filter probability.
    #[param(default = 0.05, above = 0.0, most = 1.0)]
    pub max_decrease: f64,
    /// Filter probability below which a flow is released (P_minThresh).
    #[param(default = 0.005, above = 0.0, most = 1.0)]
    pub p_min_thresh: f64,
    /// Minimum number of lists between two increases of a flow's filter probability.
    #[param(default = 4)]
    pub increase_lists: u32,
    /// Minimum time between two increases of a flow's filter probability.
    #[param(default = "400 ms")]
    pub increase_time: Time,
    /// Minimum number of lists between a change of a flow's filter probability and a decrease.
    #[param(default = 3)]
    pub decrease_lists: u32,
    /// If true, filtered flows are tested for a response to losses. Flows that do not respond get
    /// larger increases.
    #[param(default)]
    pub unresponsive_test: bool,
    /// Number of remembered periods of each flow. A period ends at the next increase of the flow's
    /// filter probability.
    #[param(default = 5, least = 2, most = 20)]
    pub test_periods: u32,
    /// If the drop rate of a flow rises by this factor or more, its rate should fall by the square
    /// root of the factor.
    #[param(default = 1.5, least = 1.0, most = response::MOST_RISE)]
    pub test_rise: f64,
    /// A flow fails the test only if at least this many pairs of its periods show no response.
    #[param(default = 3, least = 1, most = 190)]
    pub test_pairs: u32,
    /// A flow fails the test only if pairs without a response are at least this many times as
    /// frequent as pairs with a response.
    #[param(default = 4.0, least = 1.0)]
    pub test_majority: f64,
    /// Factor on the filter increase of flows that failed the test.
    #[param(default = 2.0, least = 1.0)]
    pub unresponsive_step: f64,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default)]
    pub ecn: bool,
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "RED with Preferential Dropping",
        paper: "R. Mahajan, S. Floyd, D. Wetherall, Controlling High-Bandwidth Flows at the \
                Congested Router, ICNP 2001; the authors' ns-2 scripts",
        purpose: "Finds high-bandwidth flows in RED's drop history. A filter before RED drops \
                  packets of these flows until they send no more than TCP would.",
        departures: &[
            "The filter acts while RED's average is at least `min_th` and more than one packet \
             waits. RED does not see what the filter drops or marks.",
            "The paper leaves most values open: they come from the authors' scripts.",
        ],
        memory: "at most 4096 flows of 40 bytes, 4096 filtered flows of 112 bytes, and `lists` x \
                 `list_flows` entries of 24 bytes",
    };

    fn check_together(&self) -> Result<(), Problem> {
        self.red().check_together()?;
        check::count("lists_needed", self.lists_needed, 1, self.lists)
    }
}

impl Params {
    fn red(&self) -> red::Params {
        red::Params {
            min_th: self.min_th,
            max_th: self.max_th,
            limit: self.limit,
            w_q: self.w_q,
            max_p: self.max_p,
            gentle: self.gentle,
            gap: self.gap,
            unit: self.unit,
            scale_by_size: self.scale_by_size,
            mean_packet: self.mean_packet,
            ecn: self.ecn,
        }
    }

    /// How long the list after a drop rate of `p` lasts.
    fn list_length(&self, p: f64) -> Time {
        let rtt = self.target_rtt.as_secs_f64();
        let share = f64::from(self.lists_needed) / f64::from(self.lists);
        let longest = LONGEST_LIST * rtt;
        let seconds = if p > 0.0 {
            share * rtt / libm::sqrt(1.5 * p)
        } else {
            longest
        };
        Time::from_secs_f64(seconds.clamp(SHORTEST_LIST * rtt, longest))
    }
}

const FILTER: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "filter",
    meaning: "the filter before RED signalled a high-bandwidth flow",
    marks: true,
});

impl AqmParameters for Params {
    type Aqm = RedPd;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW, FILTER];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> RedPd {
        RedPd::new(self, link)
    }
}

/// Shortest and longest list, in target round-trip times.
const SHORTEST_LIST: f64 = 2.0;
const LONGEST_LIST: f64 = 10.0;

/// Weight of the newest list in the average drop rate.
const RATE_WEIGHT: f64 = 0.5;

/// Most flows in the current list, and in the filter.
const MOST_FLOWS: usize = 4096;

/// The AQM of RED-PD.
#[derive(Clone, Debug)]
pub struct RedPd {
    params: Params,
    red: Red,
    filter: Filter,
    /// What each flow lost in the current list.
    losses: FlowList<Loss>,
    history: History,
    rate: DropRate,
    /// p, the drop rate that all flows meet.
    ambient_p: f64,
    /// When the current list ends, and its number.
    list: ListEnd,
    /// Whether the packet that was decided about last came before RED.
    reached_red: bool,
}

/// The end of a drop list.
#[derive(Clone, Copy, Debug)]
struct ListEnd {
    time: Time,
    number: u64,
}

/// What a flow lost.
#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    packets: u32,
    bytes: u64,
}

/// RED's drop rate of the current list, and its average.
#[derive(Clone, Debug, Default)]
struct DropRate {
    arrivals: u64,
    drops: u64,
    average: Option<f64>,
}

impl DropRate {
    /// The list ends: its rate, or the average if that is less.
    fn close(&mut self) -> f64 {
        let rate = self.drops as f64 / self.arrivals.max(1) as f64;
        (self.arrivals, self.drops) = (0, 0);
        let average = self.average.map_or(rate, |average| {
            (1.0 - RATE_WEIGHT) * average + RATE_WEIGHT * rate
        });
        self.average = Some(average);
        rate.min(average)
    }
}

/// The last drop lists: packets lost per flow.
#[derive(Clone, Debug)]
struct History {
    lists: VecDeque<Vec<(FlowKey, u32)>>,
    /// The flows in the lists.
    records: FlowMap<Record>,
    most_lists: usize,
    most_flows: usize,
}

/// What the history has of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Lists in which it stands.
    lists: u32,
    /// Packets that it lost.
    packets: u32,
}

impl History {
    fn new(params: &Params) -> Self {
        let most_lists = params.lists as usize;
        Self {
            lists: VecDeque::with_capacity(most_lists),
            records: FlowMap::default(),
            most_lists,
            most_flows: params.list_flows as usize,
        }
    }

    /// Adds a list, cut down to the flows that lost most, and forgets the oldest.
    fn push(&mut self, losses: impl Iterator<Item = (FlowKey, Loss)>) {
        let mut losses: Vec<_> = losses.collect();
        losses.sort_by_key(|(_, loss)| Reverse(loss.bytes));
        losses.truncate(self.most_flows);
        let mut list = self.forget_oldest();
        for (flow, Loss { packets, .. }) in losses {
            let record = self.records.entry(flow).or_default();
            record.lists += 1;
            record.packets += packets;
            list.push((flow, packets));
        }
        self.lists.push_back(list);
    }

    /// Makes room for a list, and returns an empty one.
    fn forget_oldest(&mut self) -> Vec<(FlowKey, u32)> {
        if self.lists.len() < self.most_lists {
            return Vec::new();
        }
        let mut oldest = self.lists.pop_front().unwrap_or_default();
        for (flow, packets) in oldest.drain(..) {
            if let Entry::Occupied(mut record) = self.records.entry(flow) {
                record.get_mut().lists -= 1;
                record.get_mut().packets -= packets;
                if record.get().lists == 0 {
                    record.remove();
                }
            }
        }
        oldest
    }

    fn newest(&self) -> &[(FlowKey, u32)] {
        self.lists.back().map_or(&[], Vec::as_slice)
    }
}

/// The filter in front of RED.
#[derive(Clone, Debug)]
struct Filter {
    flows: FlowList<Filtered>,
    gap: Gap,
    max_decrease: f64,
    p_min_thresh: f64,
    increase_lists: u64,
    increase_time: Time,
    decrease_lists: u64,
    /// The test of responses, if it is on.
    test: Option<Test>,
    /// Flows that had failed it as the last list ended.
    unresponsive: u32,
    /// Filter probability of the last arrival's flow.
    p_f: f64,
}

/// A flow in the filter.
#[derive(Clone, Debug)]
struct Filtered {
    /// Its signal probability, the paper's P_f.
    p_f: f64,
    /// Its packets since the filter's last signal to it; -1: none yet.
    count: i64,
    /// When its probability was raised last.
    raised: ListEnd,
    /// The number of the list at whose end its probability changed last.
    changed: u64,
    response: Response,
}

impl Filter {
    fn new(params: &Params) -> Self {
        Self {
            flows: FlowList::with_capacity(0),
            gap: params.gap,
            max_decrease: params.max_decrease,
            p_min_thresh: params.p_min_thresh,
            increase_lists: u64::from(params.increase_lists),
            increase_time: params.increase_time,
            decrease_lists: u64::from(params.decrease_lists),
            test: Test::new(params),
            unresponsive: 0,
            p_f: 0.0,
        }
    }

    /// Whether the filter signals to a packet of this flow; it acts only while `congested`.
    #[inline]
    fn signals(&mut self, flow: FlowKey, congested: bool, draw: &mut impl FnMut() -> f64) -> bool {
        let Some(flow) = self.flows.get_mut(flow) else {
            self.p_f = 0.0;
            return false;
        };
        self.p_f = flow.p_f;
        flow.response.arrival();
        if !congested {
            return false;
        }
        flow.count += 1;
        let signal = happens(self.gap.signal_probability(flow.p_f, flow.count), draw);
        if signal {
            flow.count = 0;
            flow.response.loss();
        }
        signal
    }

    /// RED has signalled to a packet, or had no room for it.
    fn note(&mut self, flow: FlowKey) {
        if self.test.is_some()
            && let Some(flow) = self.flows.get_mut(flow)
        {
            flow.response.loss();
        }
    }

    /// Raises the probability of a flow by `step`, at most to double it and `p` more; by larger
    /// steps if it does not respond.
    fn raise(&mut self, flow: FlowKey, step: f64, p: f64, end: ListEnd) {
        if let Some(flow) = self.flows.get_mut(flow) {
            let lists = end.number - flow.raised.number;
            if lists >= self.increase_lists && end.time - flow.raised.time >= self.increase_time {
                let mut step = step.min(flow.p_f + p);
                if let Some(test) = &self.test {
                    let length = end.time - flow.raised.time;
                    flow.response.end_period(length, test);
                    if flow.response.is_missing {
                        step *= test.step;
                    }
                }
                flow.p_f = (flow.p_f + step).min(1.0);
                flow.raised = end;
                flow.changed = end.number;
            }
        } else if self.flows.len() < MOST_FLOWS {
            let filtered = Filtered {
                p_f: step.min(p),
                count: -1,
                raised: end,
                changed: end.number,
                response: Response::default(),
            };
            self.flows.push(flow, filtered);
        }
    }

    /// Lowers the probability of flows without a loss in the whole history, and releases those
    /// that have little left.
    fn loosen(&mut self, records: &FlowMap<Record>, list: u64) {
        let (max_decrease, least) = (self.max_decrease, self.p_min_thresh);
        let rest = self.decrease_lists;
        self.unresponsive = 0;
        self.flows.retain(|name, flow| {
            if !records.contains_key(&name) && list - flow.changed >= rest {
                flow.changed = list;
                if flow.p_f > 2.0 * max_decrease {
                    flow.p_f -= max_decrease;
                } else {
                    flow.p_f /= 2.0;
                }
                if flow.p_f < least {
                    return false;
                }
            }
            self.unresponsive += u32::from(flow.response.is_missing);
            true
        });
    }
}

impl RedPd {
    /// RED-PD with an empty queue that has been idle since time 0, and no history.
    pub fn new(params: &Params, link: LinkFacts) -> Self {
        Self {
            red: Red::new(&params.red(), link),
            filter: Filter::new(params),
            losses: FlowList::with_capacity(0),
            history: History::new(params),
            rate: DropRate::default(),
            ambient_p: 0.0,
            list: ListEnd {
                time: params.list_length(0.0),
                number: 1,
            },
            reached_red: true,
            params: params.clone(),
        }
    }

    /// RED has signalled to a packet, or had no room for it.
    fn note(&mut self, packet: &Packet) {
        self.rate.drops += 1;
        self.filter.note(packet.flow);
        let bytes = u64::from(packet.size);
        if let Some(loss) = self.losses.get_mut(packet.flow) {
            loss.packets += 1;
            loss.bytes += bytes;
        } else if self.losses.len() < MOST_FLOWS {
            self.losses.push(packet.flow, Loss { packets: 1, bytes });
        }
    }

    /// The current list ends, in which flows met the drop rate `p`, and the next one begins.
    fn end_list(&mut self, p: f64) {
        self.ambient_p = p;
        self.history.push(self.losses.drain());
        if p > self.params.identify_above {
            self.tighten(p);
        }
        self.filter.loosen(&self.history.records, self.list.number);
        self.list = ListEnd {
            time: self.list.time + self.params.list_length(p),
            number: self.list.number + 1,
        };
    }

    /// Raises the probabilities of the flows of high bandwidth that still lose packets, each in
    /// proportion to what it lost in the whole history.
    fn tighten(&mut self, p: f64) {
        let records = &self.history.records;
        let is_high = |record: &&Record| record.lists >= self.params.lists_needed;
        // Sums of whole numbers: the order of the map does not show.
        let high = records.values().filter(is_high);
        let (flows, packets) = high.fold((0_u64, 0_u64), |(flows, packets), record| {
            (flows + 1, packets + u64::from(record.packets))
        });
        let mean = packets as f64 / flows as f64;
        for (flow, _) in self.history.newest() {
            if let Some(record) = records.get(flow).filter(is_high) {
                let step = f64::from(record.packets) / mean * p;
                self.filter.raise(*flow, step, p, self.list);
            }
        }
    }
}

impl Aqm for RedPd {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let congested = self.red.average.avg >= self.red.settings.min_th && queue.packets > 1;
        self.reached_red = !self.filter.signals(packet.flow, congested, draw);
        if !self.reached_red {
            return Decision::Signal(FILTER);
        }
        self.rate.arrivals += 1;
        self.red.on_arrival(now, packet, queue, draw)
    }

    fn hooks(&self) -> Hooks {
        Hooks::OUTCOMES
    }

    #[inline]
    fn on_outcome(&mut self, now: Time, packet: &Packet, queue: Backlog, outcome: Outcome) {
        self.red.on_outcome(now, packet, queue, outcome);
        if self.reached_red && outcome != Outcome::Enqueue {
            self.note(packet);
        }
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.red.on_idle(since);
    }

    fn next_tick(&self) -> Time {
        self.list.time
    }

    fn on_tick(&mut self, _now: Time, _queue: Backlog) {
        let p = self.rate.close();
        self.end_list(p);
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.red.set_link(link);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &[
            "avg",
            "count",
            "p_b",
            "p_a",
            "ambient_p",
            "p_f",
            "filtered_flows",
            "unresponsive_flows",
        ]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.red.probe(out);
        let flows = self.filter.flows.len() as f64;
        let unresponsive = f64::from(self.filter.unresponsive);
        out.extend([self.ambient_p, self.filter.p_f, flows, unresponsive]);
    }
}

#[cfg(test)]
mod tests;
