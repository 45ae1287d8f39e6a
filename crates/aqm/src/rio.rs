//! RIO, RED with In and Out: D. Clark, W. Fang, "Explicit Allocation of Best-Effort Packet Delivery
//! Service", IEEE/ACM Transactions on Networking 6(4), 1998. Departures: [`Parameters::ABOUT`].

use std::collections::VecDeque;

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Aqm, AqmParameters, Decision, Hooks, Outcome};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, LinkFacts};
use crate::red::{self, Gap, Red, Unit};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of RIO. To prefer In packets, set the Out thresholds below the In thresholds and
/// `p_out` above `p_in`.
#[parameters]
pub struct Params {
    /// Below this average of waiting In packets, RIO admits every In packet.
    #[param(default = "40 packets")]
    pub min_in: QueueSize,
    /// From this average of waiting In packets on, every In arrival is dropped.
    #[param(default = "70 packets")]
    pub max_in: QueueSize,
    /// Drop or mark probability of In packets when their average reaches `max_in`.
    #[param(default = 0.02, above = 0.0, most = 1.0)]
    pub p_in: f64,
    /// Below this average of all packets, RIO admits every Out packet.
    #[param(default = "10 packets")]
    pub min_out: QueueSize,
    /// From this average of all packets on, every Out arrival is dropped.
    #[param(default = "30 packets")]
    pub max_out: QueueSize,
    /// Drop or mark probability of Out packets when the average reaches `max_out`.
    #[param(default = 0.2, above = 0.0, most = 1.0)]
    pub p_out: f64,
    /// If true, the probability of In packets rises to 1 between `max_in` and twice `max_in`.
    #[param(default)]
    pub gentle_in: bool,
    /// If true, the probability of Out packets rises to 1 between `max_out` and twice `max_out`.
    #[param(default)]
    pub gentle_out: bool,
    /// Buffer size.
    #[param(check = check::buffer)]
    pub limit: QueueSize,
    /// Weight of the newest sample in the average. With a larger weight, the average follows the
    /// queue faster.
    #[param(default = 0.002, above = 0.0, most = 1.0)]
    pub w_q: f64,
    /// How RED spaces its drops and marks. The base probability p_b sets the mean gap.
    #[param(default)]
    pub gap: Gap,
    /// DSCPs of In packets, 0 to 63; all others are Out. The default is low drop precedence in RFC
    /// 2597, AF11 to AF41.
    #[schemars(inner(range(max = 63)))]
    #[param(default = vec![10, 18, 26, 34])]
    pub in_codepoints: Vec<u8>,
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
        title: "RED with In and Out",
        paper: "D. Clark, W. Fang, Explicit Allocation of Best-Effort Packet Delivery Service, \
                IEEE/ACM Transactions on Networking 6(4), 1998",
        purpose: "Two RED curves over one queue: packets within their sender's profile (In) are \
                  protected, packets beyond it (Out) dropped first.",
        departures: &[
            "RIO follows `red`: forced drops are never marks, and each class has its own count.",
            "The DSCP makes a packet In. The paper's tag is any bit of the header.",
        ],
        memory: "one byte for each waiting packet",
    };

    fn check_together(&self) -> Result<(), Problem> {
        self.check_curves([
            ["min_in", "max_in", "gentle_in"],
            ["min_out", "max_out", "gentle_out"],
        ])?;
        match self
            .in_codepoints
            .iter()
            .find(|&&dscp| dscp > LAST_CODEPOINT)
        {
            Some(dscp) => check::problem(
                "in_codepoints",
                format!("found {dscp}; code points are from 0 to {LAST_CODEPOINT}"),
            ),
            None => Ok(()),
        }
    }
}

/// A code point has six bits.
const LAST_CODEPOINT: u8 = 63;

impl AqmParameters for Params {
    type Aqm = Rio;

    const REASONS: &'static [Reason] = &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

    fn aqm(&self, link: LinkFacts, _seed: u64) -> Rio {
        Rio::new(self, link)
    }
}

/// The AQM of RIO.
#[derive(Clone, Debug)]
pub struct Rio {
    curves: Curves,
    /// A bit per code point: whether it is In.
    in_codepoints: u64,
}

impl Params {
    /// Refuses thresholds that an average cannot reach, or that are not in their order. `keys` are
    /// what the thresholds and the gentle slope of In packets are called, and those of Out packets.
    pub(crate) fn check_curves(&self, keys: [[&str; 3]; 2]) -> Result<(), Problem> {
        for ([min, max, gentle], red) in keys.into_iter().zip([self.inside(), self.outside()]) {
            let [min, max] = [(min, red.min_th), (max, red.max_th)];
            check::thresholds(min, max, (gentle, red.gentle), red.limit, red.mean_packet)?;
        }
        Ok(())
    }

    /// The RED that decides about In packets.
    fn inside(&self) -> red::Params {
        red::Params {
            min_th: self.min_in,
            max_th: self.max_in,
            limit: self.limit,
            w_q: self.w_q,
            max_p: self.p_in,
            gentle: self.gentle_in,
            gap: self.gap,
            unit: Unit::Packets,
            scale_by_size: false,
            mean_packet: self.mean_packet,
            ecn: self.ecn,
        }
    }

    /// The RED that decides about Out packets.
    fn outside(&self) -> red::Params {
        red::Params {
            min_th: self.min_out,
            max_th: self.max_out,
            max_p: self.p_out,
            gentle: self.gentle_out,
            ..self.inside()
        }
    }
}

impl Rio {
    /// RIO with an empty queue that has been idle since time 0.
    pub fn new(params: &Params, link: LinkFacts) -> Self {
        let codepoints = params.in_codepoints.iter();
        Self {
            curves: Curves::new(params, link),
            in_codepoints: codepoints.fold(0, |set, dscp| set | 1 << dscp),
        }
    }

    #[inline]
    const fn class(&self, packet: &Packet) -> Class {
        if self.in_codepoints >> (packet.dscp & LAST_CODEPOINT) & 1 == 1 {
            Class::In
        } else {
            Class::Out
        }
    }
}

/// How a packet is tagged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// To be protected.
    In,
    /// To go first.
    Out,
}

/// Two REDs over one queue: that of In packets sees only In packets, that of Out packets sees all.
#[derive(Clone, Debug)]
pub(crate) struct Curves {
    inside: Red,
    outside: Red,
    /// The In packets that wait.
    in_waiting: Backlog,
    /// The classes of all packets that wait.
    waiting: VecDeque<Class>,
    /// The class of the packet that was decided about last.
    class: Class,
}

impl Curves {
    /// The curves of In and Out packets over an empty queue that has been idle since time 0.
    pub(crate) fn new(params: &Params, link: LinkFacts) -> Self {
        Self {
            inside: Red::new(&params.inside(), link),
            outside: Red::new(&params.outside(), link),
            in_waiting: Backlog::default(),
            waiting: VecDeque::new(),
            class: Class::Out,
        }
    }

    #[inline]
    pub(crate) fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        class: Class,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        self.class = class;
        self.outside.observe(now, queue);
        match class {
            Class::In => {
                self.inside.observe(now, self.in_waiting);
                self.inside.decide(packet, self.in_waiting, draw)
            }
            Class::Out => {
                self.inside.average.end_idle(now);
                self.outside.decide(packet, queue, draw)
            }
        }
    }

    #[inline]
    pub(crate) fn on_outcome(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        outcome: Outcome,
    ) {
        let red = match self.class {
            Class::In => &mut self.inside,
            Class::Out => &mut self.outside,
        };
        red.on_outcome(now, packet, queue, outcome);
        if let Outcome::Drop(_) = outcome {
            return;
        }
        self.waiting.push_back(self.class);
        if self.class == Class::In {
            self.in_waiting.add(packet.size);
        }
    }

    #[inline]
    pub(crate) fn on_departure(&mut self, packet: &Packet) {
        if self.waiting.pop_front() == Some(Class::In) {
            self.in_waiting.remove(packet.size);
        }
    }

    #[inline]
    pub(crate) fn on_idle(&mut self, since: Time) {
        self.inside.on_idle(since);
        self.outside.on_idle(since);
    }

    pub(crate) fn set_link(&mut self, link: LinkFacts) {
        self.inside.set_link(link);
        self.outside.set_link(link);
    }

    /// Both REDs' inner variables: the probabilities are those of the class's last arrival.
    pub(crate) fn probe(&self, out: &mut Vec<f64>) {
        self.inside.probe(out);
        self.outside.probe(out);
    }
}

impl Aqm for Rio {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        let class = self.class(packet);
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

    fn set_link(&mut self, link: LinkFacts) {
        self.curves.set_link(link);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &[
            "avg_in",
            "count_in",
            "p_b_in",
            "p_a_in",
            "avg_total",
            "count_out",
            "p_b_out",
            "p_a_out",
        ]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.curves.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{Ecn, FlowKey};

    use super::*;
    use crate::counters::Reason;
    use crate::worked;

    const IN: u8 = 10;

    /// The parameters of the example.
    fn params() -> Params {
        Params {
            min_in: QueueSize::Packets(1.0),
            max_in: QueueSize::Packets(5.0),
            p_in: 0.1,
            min_out: QueueSize::Packets(1.0),
            max_out: QueueSize::Packets(3.0),
            p_out: 0.5,
            gentle_in: false,
            gentle_out: false,
            limit: QueueSize::Packets(50.0),
            w_q: 0.5,
            gap: Gap::Uniform,
            in_codepoints: vec![IN],
            mean_packet: Bytes(500),
            ecn: true,
        }
    }

    fn aqm(params: &Params) -> Rio {
        Rio::new(params, worked::link(1000, 500))
    }

    #[test]
    fn rio() {
        let mut aqm = aqm(&params());
        for row in worked::rows(include_str!("../tests/data/rio.csv")) {
            let mut packet = row.packet();
            let inside = row.text("class") == "in";
            packet.dscp = if inside { IN } else { 0 };
            worked::play_packet(&mut aqm, &row, &packet, true);
            let columns = if inside {
                [("p_b_in", "p_b"), ("p_a_in", "p_a")]
            } else {
                [("p_b_out", "p_b"), ("p_a_out", "p_a")]
            };
            worked::compare(&aqm, &row, &["avg_in", "avg_total"]);
            for (name, column) in columns {
                worked::compare_as(&aqm, &row, name, column);
            }
        }
    }

    fn packet(dscp: u8) -> Packet {
        Packet {
            size: 500,
            ecn: Ecn::NotEct,
            dscp,
            flow: FlowKey(1),
        }
    }

    /// An AQM and the packets that wait behind it.
    struct Played {
        aqm: Rio,
        queue: VecDeque<Packet>,
        now: Time,
    }

    impl Played {
        fn new(params: &Params) -> Self {
            Self {
                aqm: aqm(params),
                queue: VecDeque::new(),
                now: Time::ZERO,
            }
        }

        fn backlog(&self) -> Backlog {
            let mut backlog = Backlog::default();
            self.queue
                .iter()
                .for_each(|packet| backlog.add(packet.size));
            backlog
        }

        /// An arrival for which every open chance comes out as `u` says.
        fn arrive(&mut self, dscp: u8, u: f64) -> Decision {
            let (packet, queue) = (packet(dscp), self.backlog());
            let decision = self.aqm.on_arrival(self.now, &packet, queue, &mut || u);
            let outcome = match decision {
                Decision::Admit => Outcome::Enqueue,
                Decision::Signal(reason) | Decision::Drop(reason) => Outcome::Drop(reason),
            };
            self.aqm.on_outcome(self.now, &packet, queue, outcome);
            if decision == Decision::Admit {
                self.queue.push_back(packet);
            }
            decision
        }

        fn depart(&mut self) {
            let packet = self.queue.pop_front().expect("a packet waits");
            let left = self.backlog();
            self.aqm.on_departure(self.now, &packet, self.now, left);
        }

        fn averages(&self) -> [f64; 2] {
            let Curves {
                inside, outside, ..
            } = &self.aqm.curves;
            [inside.average.avg, outside.average.avg]
        }
    }

    #[test]
    fn only_in_packets_that_wait_count_for_in() {
        let mut played = Played::new(&params());
        for dscp in [0, 0, IN, 0, IN] {
            played.arrive(dscp, 0.999);
        }
        let in_waiting = |played: &Played| played.aqm.curves.in_waiting.packets;
        assert_eq!(in_waiting(&played), 2);
        for left in [2, 2, 1, 1, 0] {
            played.depart();
            assert_eq!(in_waiting(&played), left);
        }
    }

    #[test]
    fn an_arrival_of_either_class_ends_the_idle_time_of_both_averages() {
        let mut played = Played::new(&params());
        for _ in 0..4 {
            played.arrive(IN, 0.999);
        }
        // Samples 1, 2 and 3 of both averages, the first arrival having ended the idle time.
        assert_eq!(played.averages(), [2.125; 2]);
        while !played.queue.is_empty() {
            played.depart();
        }
        played.aqm.on_idle(played.now);
        // 2 ms are two packets of 500 bytes: a quarter remains.
        played.now += Time::from_millis(2);
        played.arrive(0, 0.999);
        assert_eq!(played.averages(), [0.53125; 2]);
        // Samples again: no In packet waits, one packet does.
        played.now += Time::from_millis(2);
        played.arrive(IN, 0.999);
        assert_eq!(played.averages(), [0.265625, 0.765625]);
    }

    #[test]
    fn fewer_than_two_in_packets_waiting_protect_an_in_arrival_but_not_an_out_one() {
        let mut played = Played::new(&params());
        for _ in 0..5 {
            played.arrive(IN, 0.999);
        }
        while played.queue.len() > 1 {
            played.depart();
        }
        let averages = played.averages();
        assert!(averages[0] > 1.0, "above min_in: {averages:?}");
        // One In packet waits: (3.0625 + 1) / 2 is between the thresholds, yet it is let in.
        assert_eq!(played.arrive(IN, 0.0), Decision::Admit);
        // The Out arrival finds two packets, whatever their class.
        assert_eq!(played.arrive(0, 0.0), Decision::Signal(Reason::EARLY));
    }

    #[test]
    fn an_overflow_restarts_the_count_of_its_own_class() {
        let mut played = Played::new(&params());
        for dscp in [IN, IN, IN, IN, 0] {
            played.arrive(dscp, 0.999);
        }
        let counts = |aqm: &Rio| {
            let mut values = Vec::new();
            aqm.probe(&mut values);
            [values[1], values[5]]
        };
        played.arrive(IN, 0.999);
        played.arrive(IN, 0.999);
        let before = counts(&played.aqm);
        assert!(before[0] > 0.0, "{before:?}");
        let queue = played.backlog();
        played
            .aqm
            .on_arrival(played.now, &packet(IN), queue, &mut || 0.999);
        let overflow = Outcome::Drop(Reason::OVERFLOW);
        played
            .aqm
            .on_outcome(played.now, &packet(IN), queue, overflow);
        assert_eq!(counts(&played.aqm), [0.0, before[1]]);
        assert_eq!(played.aqm.curves.waiting.len(), played.queue.len());
    }

    #[test]
    fn a_gentle_curve_goes_on_to_twice_its_threshold_and_drops_there() {
        let gentle = Params {
            gentle_out: true,
            w_q: 1.0,
            gap: Gap::None,
            ..params()
        };
        let mut played = Played::new(&gentle);
        for _ in 0..4 {
            played.arrive(0, 0.999);
        }
        // A third of the way from 3 to 6 packets: 0.5 + 0.5 / 3; a signal there is a drop.
        assert_eq!(played.queue.len(), 4);
        let drop = Decision::Drop(Reason::EARLY);
        assert_eq!(played.arrive(0, 0.66), drop);
        assert_eq!(played.arrive(0, 0.67), Decision::Admit);
    }
}
