//! A queue beside a model of it that is too simple to be wrong: what came, what left, what waits.
//! Property tests and fuzz targets play events through both.
#![allow(dead_code, reason = "each of them uses some of it")]

use std::collections::{BTreeMap, HashMap, VecDeque};

use aqmlab_aqm::{Backlog, Counters, Discipline, FifoQueue, LinkFacts, Outcome, Queue, Reason};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, QueueSize, RandomStream, Rate, Time};
use toml::{Table, Value};

pub(crate) mod once;

use once::{Judged, Numbered};

/// Every discipline, with parameters that a few hundred packets bring to all of its limits. A
/// discipline without a line here fails a test.
pub(crate) const CASES: &[&str] = &[
    "kind = 'droptail'
     limit = '12 packets'",
    "kind = 'droptail'
     limit = '9000 bytes'",
    "kind = 'red'
     min_th = '2 packets'
     max_th = '6 packets'
     limit = '12 packets'
     w_q = 0.2",
    "kind = 'red'
     min_th = '2 packets'
     max_th = '4 packets'
     limit = '9000 bytes'
     w_q = 0.2
     max_p = 1.0
     gentle = true
     gap = 'altq'
     unit = 'bytes'
     scale_by_size = true",
    "kind = 'bernoulli'
     p = 0.2
     limit = '12 packets'",
    "kind = 'policer'
     rate = '4 Mbit/s'
     burst = '3000 bytes'
     limit = '12 packets'",
    "kind = 'step'
     threshold = '4 packets'
     limit = '12 packets'",
    "kind = 'ared-feng'
     min_th = '2 packets'
     max_th = '6 packets'
     limit = '12 packets'
     w_q = 0.2",
    "kind = 'ared'
     limit = '12 packets'
     w_q = 0.2
     min_th = '2 packets'
     max_th = '5 packets'
     interval = '5 ms'",
    "kind = 'ared'
     limit = '240 packets'
     unit = 'bytes'
     scale_by_size = true",
    "kind = 'pi'
     q_ref = '4 packets'
     limit = '12 packets'
     a = 0.2
     b = 0.15
     interval = '2 ms'",
    "kind = 'rem'
     q_ref = '4 packets'
     limit = '12 packets'
     gamma = 0.1
     phi = 1.1
     interval = '2 ms'",
    "kind = 'avq'
     virtual_buffer = '6 packets'
     limit = '12 packets'",
    "kind = 'sred'
     limit = '12 packets'",
    "kind = 'sred'
     rule = 'simple'
     limit = '9000 bytes'",
    "kind = 'blue'
     limit = '12 packets'
     d1 = 0.3
     d2 = 0.1
     freeze_time = '2 ms'",
    "kind = 'lqd'
     q_ref = '4 packets'
     limit = '12 packets'
     a = 0.1",
    "kind = 'pie'
     limit = '12 packets'
     alpha = 10.0
     beta = 100.0
     qdelay_ref = '2 ms'
     t_update = '2 ms'
     max_burst = '2 ms'
     mean_packet = '200 bytes'",
    "kind = 'pie'
     limit = '20000 bytes'
     alpha = 10.0
     qdelay_ref = '2 ms'
     t_update = '2 ms'
     max_burst = '0 ms'
     delay = 'rate'
     scale_by_size = true
     derandomize = true
     mark_ecnth = 1.0",
    "kind = 'pie'
     limit = '12 packets'
     alpha = 10.0
     beta = 100.0
     qdelay_ref = '2 ms'
     t_update = '2 ms'
     max_burst = '2 ms'
     mean_packet = '200 bytes'
     mark_ecnth = 1.0
     rules = 'linux'",
    "kind = 'dcn'
     q_ref = '4 packets'
     limit = '12 packets'
     a = 0.05
     b = 0.1
     interval = '2 ms'
     aging_interval = '20 ms'
     clearing_interval = '50 ms'
     sb_threshold = 3
     sb_slots = 8
     hb_entries = 4",
    "kind = 'afd'
     q_ref = '4 packets'
     limit = '12 packets'
     interval = '2 ms'
     shadow = 20",
    "kind = 'rio'
     min_in = '4 packets'
     max_in = '8 packets'
     min_out = '2 packets'
     max_out = '6 packets'
     limit = '12 packets'
     w_q = 0.2",
    "kind = 'rio-ps'
     short_min_th = '4 packets'
     short_max_th = '8 packets'
     long_min_th = '2 packets'
     long_max_th = '6 packets'
     limit = '12 packets'
     w_q = 0.2
     l_t = 5
     t_u = '50 ms'
     t_c = '100 ms'
     max_flows = 6",
    "kind = 'red-pd'
     min_th = '2 packets'
     max_th = '6 packets'
     limit = '12 packets'
     w_q = 0.2
     target_rtt = '2 ms'
     unresponsive_test = true
     increase_time = '10 ms'",
    "kind = 'fred'
     min_th = '2 packets'
     max_th = '11 packets'
     limit = '12 packets'
     min_q = 1
     max_p = 1.0
     w_q = 0.2",
    "kind = 'sfb'
     limit = '12 packets'
     levels = 2
     bins = 4
     bin_size = 3
     freeze_time = '2 ms'
     rehash = '50 ms'
     penalty_rate = '1 Mbit/s'",
    "kind = 'red-pd'
     min_th = '2 packets'
     max_th = '6 packets'
     limit = '12 packets'
     w_q = 0.2
     target_rtt = '5 ms'",
    "kind = 'choke'
     min_th = '2 packets'
     max_th = '6 packets'
     limit = '12 packets'
     w_q = 0.2
     candidates = 2
     regions = 3",
    "kind = 'codel'
     limit = '12 packets'
     target = '2 ms'
     interval = '10 ms'
     mtu = '100 bytes'",
    "kind = 'codel'
     limit = '9000 bytes'",
    "kind = 'codel'
     limit = '12 packets'
     ecn = true
     ce_threshold = '1 ms'",
    "kind = 'cobalt'
     limit = '12 packets'
     target = '2 ms'
     interval = '10 ms'
     mtu = '100 bytes'
     increment = 0.1",
    "kind = 'cobalt'
     limit = '9000 bytes'",
    "kind = 'l4s-marking'
     limit = '12 packets'",
    "kind = 'l4s-marking'
     law = 'ramp'
     limit = '9000 bytes'",
    "kind = 'cake'
     memory = '9000 bytes'
     flows = 8
     rtt = '10 ms'
     target = '1 ms'",
    "kind = 'cake'
     memory = '60000 bytes'
     bandwidth = '8 Mbit/s'
     tins = 'diffserv4'
     link_layer = 'pppoe-ptm'
     ingress = true
     rtt = '40 ms'
     ack_filter = 'on'",
    "kind = 'cake'
     memory = '9000 bytes'
     isolation = 'flowblind'
     tins = 'precedence'
     rtt = '10 ms'",
    "kind = 'cake-mq'
     queues = 3
     cake = { memory = '9000 bytes', flows = 8, rtt = '10 ms', target = '1 ms', ecn = false }",
    "kind = 'cake-mq'
     queues = 2
     cake = { memory = '60000 bytes', bandwidth = '8 Mbit/s', tins = 'diffserv4', ecn = false }",
    "kind = 'drr'
     flows = 4
     quantum = '100 bytes'
     limit = '9000 bytes'",
    "kind = 'drr'
     limit = '12 packets'
     overflow = 'head'",
    "kind = 'dualpi2'
     limit = '12 packets'
     target = '2 ms'
     t_update = '2 ms'
     alpha = 2.0
     beta = 10.0
     min_qlen_step = 2
     memory = '15000 bytes'
     mtu = '100 bytes'",
    "kind = 'dualpi2'
     limit = '9000 bytes'
     target = '2 ms'
     t_update = '2 ms'
     alpha = 2.0
     beta = 10.0
     rules = 'rfc'
     native = 'ramp'
     overload = 'overflow'
     service = 'time-shifted'",
    "kind = 'dualpi2'
     limit = '12 packets'
     target = '2 ms'
     t_update = '2 ms'
     alpha = 2.0
     beta = 10.0
     drop_early = true
     memory = '15000 bytes'
     mtu = '100 bytes'",
    "kind = 'fq-codel'
     flows = 4
     limit = '12 packets'
     memory = '9000 bytes'
     batch = 3
     target = '2 ms'
     interval = '10 ms'
     mtu = '100 bytes'",
    "kind = 'fq-pie'
     flows = 4
     limit = '12 packets'
     memory = '9000 bytes'
     alpha = 10.0
     beta = 100.0
     qdelay_ref = '2 ms'
     t_update = '2 ms'
     max_burst = '2 ms'
     mean_packet = '200 bytes'
     mark_ecnth = 1.0",
    "kind = 'fq-pie'
     flows = 4
     limit = '12 packets'
     memory = '9000 bytes'
     alpha = 10.0
     beta = 100.0
     qdelay_ref = '2 ms'
     t_update = '2 ms'
     max_burst = '2 ms'
     mean_packet = '200 bytes'
     rules = 'rfc'",
    "kind = 'fq-codel'
     flows = 4
     limit = '12 packets'
     memory = '9000 bytes'
     batch = 3
     target = '2 ms'
     interval = '10 ms'
     mtu = '100 bytes'
     one_packet = 'flow'
     overflow_counts = false
     root = 'linux'",
    "kind = 'sfq'
     buckets = 4
     limit = '12 packets'
     depth = 5",
    "kind = 'sfq'
     limit = '9000 bytes'
     quantum = '700 bytes'",
    "kind = 'shaper'
     rate = '4 Mbit/s'
     burst = '3000 bytes'
     peak = '8 Mbit/s'
     leaf = { kind = 'droptail', limit = '12 packets' }",
    "kind = 'shaper'
     rate = '4 Mbit/s'
     burst = '3000 bytes'
     leaf = { kind = 'fq-codel', flows = 4, limit = '12 packets', ecn = false, target = '2 ms', interval = '10 ms', mtu = '100 bytes' }",
    "kind = 'htb'
     unknown = 'home'
     leaf = { kind = 'droptail', limit = '12 packets' }
     plans = { home = { ceil = '4 Mbit/s', rate = '1 Mbit/s' } }",
    "kind = 'htb'
     unknown = 'home'
     leaf = { kind = 'pie', limit = '12 packets', qdelay_ref = '2 ms', t_update = '2 ms', max_burst = '2 ms' }
     nodes = { tower = { ceil = '6 Mbit/s' }, ap = { parent = 'tower', count = 2, ceil = '5 Mbit/s' } }
     plans = { home = { parent = 'ap', count = 3, ceil = '4 Mbit/s' } }",
];

pub(crate) const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(38),
};

/// A line of [`CASES`], with ECN on or off where the discipline knows it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) discipline: Discipline,
    pub(crate) limit: QueueSize,
    pub(crate) ecn: bool,
    /// Whether all packets leave in the order in which they came.
    pub(crate) single: bool,
    /// Whether packets of a flow that differ in their headers may overtake each other.
    pub(crate) classes: bool,
    /// Whether all packets of a flow may.
    pub(crate) changes: bool,
}

/// Those that keep several queues; each of their flows keeps its order.
const SEVERAL_QUEUES: [&str; 7] = [
    "cake", "cake-mq", "drr", "dualpi2", "fq-codel", "fq-pie", "sfq",
];

/// Those that tell packets of one flow apart by their headers; what has the same keeps its order.
const SEVERAL_CLASSES: [&str; 1] = ["dualpi2"];

/// Those whose flows may change queues while packets wait: the home of a flow that shared its queue is
/// another.
const CHANGING_QUEUES: [&str; 2] = ["cake", "cake-mq"];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for text in CASES {
        let table: Table = text.parse().unwrap();
        if table.contains_key("ecn") {
            cases.push(case(&table).unwrap());
            continue;
        }
        let mut known = [false, true].map(|ecn| {
            let mut table = table.clone();
            table.insert("ecn".to_owned(), ecn.into());
            case(&table)
        });
        if known[0].is_ok() {
            cases.extend(known.iter_mut().map(|case| {
                let case = std::mem::replace(case, Err(String::new()));
                case.expect("what knows one setting of ECN knows the other")
            }));
        } else {
            cases.push(case(&table).unwrap());
        }
    }
    cases
}

/// A case of a discipline's table; an error if it is not one.
pub(crate) fn case(table: &Table) -> Result<Case, String> {
    let ecn = table.get("ecn") == Some(&Value::Boolean(true));
    let kind = table["kind"].as_str().unwrap().to_owned();
    let discipline: Discipline = tagged::from_value(Value::Table(table.clone()))
        .map_err(|error| format!("{kind}: {error}"))?;
    let wrong = |(field, message)| format!("{kind}: {field}: {message}");
    discipline.check().map_err(wrong)?;
    let of_leaf = table.get("leaf").map(|leaf| &leaf["limit"]);
    let of_queue = table.get("cake").map(|cake| &cake["memory"]);
    let limit = of_leaf.or(of_queue).or_else(|| table.get("limit"));
    let limit = limit.unwrap_or_else(|| &table["memory"]);
    let mut limit = limit.as_str().unwrap().parse().unwrap();
    let several = table
        .get("leaf")
        .map_or(kind.as_str(), |leaf| leaf["kind"].as_str().unwrap());
    // A packet that a scheduler has given up waits in front of it.
    if kind == "shaper"
        && SEVERAL_QUEUES.contains(&several)
        && let QueueSize::Packets(packets) = &mut limit
    {
        *packets += 1.0;
    }
    // Each queue of a device has a memory of its own.
    if let (QueueSize::Bytes(bytes), Some(queues)) = (&mut limit, table.get("queues")) {
        *bytes *= queues.as_integer().unwrap() as u64;
    }
    Ok(Case {
        name: table.to_string().replace('\n', ", "),
        discipline,
        limit,
        ecn,
        single: !SEVERAL_QUEUES.contains(&several),
        classes: SEVERAL_CLASSES.contains(&kind.as_str()),
        changes: CHANGING_QUEUES.contains(&kind.as_str()),
    })
}

/// What happens to a queue.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Arrive(Packet),
    /// The wire can take a packet.
    Depart,
    Pause(Time),
    /// The link changes its rate, to this many bits per second.
    Rate(u64),
    /// The parameters change to those of this discipline, of the same kind.
    Parameters(Discipline),
}

/// What became of a packet, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entry {
    Sent(usize, Packet),
    Dropped(usize, Reason),
}

/// A queue, or a fifo and the packets behind it.
pub(crate) trait Door {
    fn arrive(
        &mut self,
        now: Time,
        id: usize,
        packet: Packet,
        draw: &mut dyn FnMut() -> f64,
        log: &mut Vec<Entry>,
    );
    /// Whether a packet left.
    fn depart(&mut self, now: Time, draw: &mut dyn FnMut() -> f64, log: &mut Vec<Entry>) -> bool;
    fn idle(&mut self, since: Time);
    fn next_tick(&self) -> Time;
    /// Whether a shaper holds packets back until later.
    fn holds_back(&self, now: Time) -> bool;
    fn tick(&mut self);
    fn set_link(&mut self, link: LinkFacts);
    fn set_parameters(&mut self, discipline: &Discipline);
    fn backlog(&self) -> Backlog;
    fn counters(&self) -> Counters;
    fn probe(&self) -> (&'static [&'static str], Vec<f64>);
}

impl Door for Queue<usize> {
    fn arrive(
        &mut self,
        now: Time,
        id: usize,
        packet: Packet,
        draw: &mut dyn FnMut() -> f64,
        log: &mut Vec<Entry>,
    ) {
        self.put(now, packet, id, draw, &mut |id, reason| {
            log.push(Entry::Dropped(id, reason));
        });
    }

    fn depart(&mut self, now: Time, draw: &mut dyn FnMut() -> f64, log: &mut Vec<Entry>) -> bool {
        let next = self.take(now, draw, &mut |id, reason| {
            log.push(Entry::Dropped(id, reason));
        });
        log.extend(next.map(|queued| Entry::Sent(queued.item, queued.packet)));
        next.is_some()
    }

    fn idle(&mut self, since: Time) {
        self.idle(since);
    }

    fn next_tick(&self) -> Time {
        self.next_tick()
    }

    fn holds_back(&self, now: Time) -> bool {
        (now + Time::from_nanos(1)..Time::NEVER).contains(&self.next_release())
    }

    fn tick(&mut self) {
        self.tick();
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.set_link(link);
    }

    fn set_parameters(&mut self, discipline: &Discipline) {
        self.set_parameters(discipline, LINK, 1);
    }

    fn backlog(&self) -> Backlog {
        self.backlog()
    }

    fn counters(&self) -> Counters {
        self.counters().clone()
    }

    fn probe(&self) -> (&'static [&'static str], Vec<f64>) {
        let mut values = Vec::new();
        self.probe(&mut values);
        (self.probe_names(), values)
    }
}

/// The fifo of an AQM, and the packets behind it.
pub(crate) struct Guarded {
    fifo: FifoQueue,
    waiting: VecDeque<(usize, Packet, Time)>,
}

impl Guarded {
    /// Nothing if the discipline is no AQM over a single FIFO.
    pub(crate) fn new(discipline: &Discipline) -> Option<Self> {
        Some(Self {
            fifo: FifoQueue::new(discipline, LINK, 1)?,
            waiting: VecDeque::new(),
        })
    }
}

impl Door for Guarded {
    fn arrive(
        &mut self,
        now: Time,
        id: usize,
        mut packet: Packet,
        draw: &mut dyn FnMut() -> f64,
        log: &mut Vec<Entry>,
    ) {
        let outcome = self.fifo.come(now, &packet, draw);
        if let Outcome::Drop(reason) = outcome {
            return log.push(Entry::Dropped(id, reason));
        }
        if let Outcome::Mark(_) = outcome {
            packet.ecn = Ecn::Ce;
        }
        self.waiting.push_back((id, packet, now));
    }

    fn depart(&mut self, now: Time, _draw: &mut dyn FnMut() -> f64, log: &mut Vec<Entry>) -> bool {
        let Some((id, packet, arrived)) = self.waiting.pop_front() else {
            return false;
        };
        self.fifo.depart(now, &packet, arrived);
        log.push(Entry::Sent(id, packet));
        true
    }

    fn idle(&mut self, since: Time) {
        self.fifo.idle(since);
    }

    fn next_tick(&self) -> Time {
        self.fifo.next_tick()
    }

    fn holds_back(&self, _now: Time) -> bool {
        false
    }

    fn tick(&mut self) {
        self.fifo.tick();
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.fifo.set_link(link);
    }

    fn set_parameters(&mut self, discipline: &Discipline) {
        self.fifo.set_parameters(discipline, LINK, 1);
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn counters(&self) -> Counters {
        self.fifo.counters()
    }

    fn probe(&self) -> (&'static [&'static str], Vec<f64>) {
        let mut values = Vec::new();
        self.fifo.probe(&mut values);
        (self.fifo.probe_names(), values)
    }
}

/// Plays events as a port does: ticks in time, idle time reported before an arrival. `after` sees the
/// door and the log after each event.
pub(crate) fn play<D: Door>(
    door: &mut D,
    events: &[Event],
    mut after: impl FnMut(&D, Time, &Event, &[Entry]),
) -> Vec<Entry> {
    let mut stream = RandomStream::new(1, "law", 0);
    let (mut now, mut quiet_since) = (Time::ZERO, Some(Time::ZERO));
    let (mut log, mut ids) = (Vec::new(), 1..);
    for event in events {
        let seen = log.len();
        match event {
            Event::Pause(span) => now += *span,
            Event::Rate(bps) => door.set_link(LinkFacts {
                rate: Rate::from_bps(*bps),
                ..LINK
            }),
            Event::Parameters(discipline) => door.set_parameters(discipline),
            Event::Depart => {
                if door.depart(now, &mut || stream.uniform(), &mut log) {
                    quiet_since = None;
                } else {
                    quiet_since.get_or_insert(now);
                }
            }
            Event::Arrive(packet) => {
                if let Some(since) = quiet_since {
                    door.idle(since);
                }
                let id = ids.next().unwrap();
                let mut draw = || stream.uniform();
                door.arrive(now, id, *packet, &mut draw, &mut log);
            }
        }
        while door.next_tick() <= now {
            let tick = door.next_tick();
            door.tick();
            assert!(door.next_tick() > tick, "ticks move on");
        }
        after(door, now, event, &log[seen..]);
    }
    log
}

/// What must be true of a queue, from what was seen of it.
#[derive(Default)]
struct Model {
    arrived: usize,
    arrived_bytes: u64,
    waiting: BTreeMap<usize, Packet>,
    sent: u64,
    sent_bytes: u64,
    dropped: [u64; Reason::MOST],
    /// Packets that left with a mark that they did not come with.
    marked: u64,
    /// The packet of each flow, or of what keeps its order within it, that left last.
    last_sent: HashMap<(FlowKey, u8, u8), usize>,
}

impl Model {
    fn follow(&mut self, case: &Case, is_held: bool, event: &Event, entries: &[Entry]) {
        if let Event::Arrive(packet) = event {
            self.arrived += 1;
            self.arrived_bytes += u64::from(packet.size);
            self.waiting.insert(self.arrived, *packet);
        }
        for entry in entries {
            match *entry {
                Entry::Sent(id, packet) => self.send(case, id, packet),
                Entry::Dropped(id, reason) => {
                    assert!(self.waiting.remove(&id).is_some(), "{id} was there to drop");
                    self.dropped[reason.index()] += 1;
                }
            }
        }
        if matches!(event, Event::Depart) {
            let sent = matches!(entries.last(), Some(Entry::Sent(..)));
            assert!(
                sent || self.waiting.is_empty() || is_held,
                "packets wait and none leaves"
            );
        }
    }

    fn send(&mut self, case: &Case, id: usize, packet: Packet) {
        if case.single {
            let first = self.waiting.keys().next();
            assert_eq!(first, Some(&id), "packets leave in order");
        }
        let came = self.waiting.remove(&id).expect("it was there to send");
        let kept_in_order = match case.classes {
            true => (came.flow, came.ecn as u8, came.dscp),
            false => (came.flow, 0, 0),
        };
        let last = self.last_sent.insert(kept_in_order, id);
        let in_order = case.changes || last < Some(id);
        assert!(in_order, "{id} leaves after {last:?} of its flow");
        if packet != came {
            let mark = Packet {
                ecn: Ecn::Ce,
                ..came
            };
            assert_eq!(packet, mark, "nothing but a mark may change");
            assert!(case.ecn && came.ecn.is_capable(), "{came:?} was marked");
            self.marked += 1;
        }
        self.sent += 1;
        self.sent_bytes += u64::from(packet.size);
    }

    fn check<D: Door>(&self, case: &Case, door: &D) {
        let expected = Backlog {
            packets: self.waiting.len() as u32,
            bytes: self
                .waiting
                .values()
                .map(|packet| u64::from(packet.size))
                .sum(),
        };
        assert_eq!(door.backlog(), expected);
        match case.limit {
            QueueSize::Packets(limit) => assert!(f64::from(expected.packets) <= limit),
            QueueSize::Bytes(limit) => assert!(expected.bytes <= limit),
        }
        let counters = door.counters();
        assert_eq!(counters.arrived_packets, self.arrived as u64);
        assert_eq!(counters.arrived_bytes, self.arrived_bytes);
        assert_eq!(counters.departed_packets, self.sent);
        assert_eq!(counters.departed_bytes, self.sent_bytes);
        assert_eq!(counters.dropped, self.dropped);
        // Those that came with a mark, that wait, or that were dropped later are not seen here.
        assert!(counters.marked_packets() >= self.marked);
        assert!(case.ecn || counters.marked_packets() == 0);
        // The reasons are those that the discipline names.
        let named = |reasons: &mut dyn Iterator<Item = (Reason, u64)>| {
            reasons.map(|(_, packets)| packets).sum::<u64>()
        };
        assert_eq!(named(&mut counters.drops()), counters.dropped_packets());
        assert_eq!(named(&mut counters.marks()), counters.marked_packets());
        check_probe(door.probe());
    }
}

/// Inner variables are numbers, and probabilities are between 0 and 1. These are called p or begin
/// with p_ (but DCN's p_ref is a number of packets), or are named here.
fn check_probe((names, values): (&[&str], Vec<f64>)) {
    assert_eq!(names.len(), values.len());
    for (name, value) in names.iter().zip(values) {
        assert!(value.is_finite(), "{name} is {value}");
        let is_probability = (name.starts_with("p_") && *name != "p_ref")
            || ["p", "P", "max_p", "hit", "loss_rate", "dropping"].contains(name);
        let range = 0.0..=1.0;
        assert!(
            !is_probability || range.contains(&value),
            "{name} is {value}"
        );
    }
}

/// Plays events through a queue with everything checked.
pub(crate) fn checked(case: &Case, events: &[Event]) -> (Queue<usize>, Vec<Entry>) {
    let mut model = Model::default();
    let mut queue = Queue::new(&case.discipline, LINK, 1);
    let log = play(&mut queue, events, |door, now, event, entries| {
        model.follow(case, door.holds_back(now), event, entries);
        model.check(case, door);
    });
    (queue, log)
}

/// Does the same again, and through a fifo if there is one.
pub(crate) fn check(case: &Case, events: &[Event]) {
    let (queue, log) = checked(case, events);
    let mut again = Queue::new(&case.discipline, LINK, 1);
    assert_eq!(
        play(&mut again, events, |_, _, _, _| ()),
        log,
        "the same again"
    );
    if let Some(mut guarded) = Guarded::new(&case.discipline) {
        let guarded_log = play(&mut guarded, events, |_, _, _, _| ());
        assert_eq!(guarded_log, log, "the fifo lets in what the queue does");
        assert_eq!(guarded.counters(), *queue.counters());
        assert_eq!(guarded.probe(), Door::probe(&queue));
    }
}
