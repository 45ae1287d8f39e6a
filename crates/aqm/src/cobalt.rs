//! COBALT: CoDel whose memory decays at the pace at which it grew, and BLUE for flows that do not
//! listen. J. Palmei et al., "Design and Evaluation of COBALT Queue Discipline", IEEE LANMAN 2019;
//! Linux's CAKE. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};

use crate::aqm::{Outcome, happens};
use crate::check::{self, Problem};
use crate::codel::{Root, spacing};
use crate::context::Context;
use crate::counters::{Reason, ReasonText};
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{PacketQueue, Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Parameters, parameters};

/// Parameters of COBALT.
#[parameters]
pub struct Params {
    /// Acceptable standing delay, 5 to 10 % of `interval`.
    #[param(default = "5 ms", above = Time::ZERO, changeable)]
    pub target: Time,
    /// How long the delay must exceed `target` before COBALT acts. Use the longest common
    /// round-trip time.
    #[param(default = "100 ms", above = Time::ZERO, changeable)]
    pub interval: Time,
    /// Increase of BLUE's drop probability at an overflow.
    #[param(default = INCREMENT, above = 0.0, most = 1.0, changeable)]
    pub increment: f64,
    /// Decrease of BLUE's drop probability when the queue is empty.
    #[param(default = DECREMENT, above = 0.0, most = 1.0, changeable)]
    pub decrement: f64,
    /// Buffer size.
    #[param(default = "1000 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Largest packet. A delay below the transmission time of four such packets never counts as too
    /// long.
    #[param(default = "1500 bytes", check = check::packet_size, changeable)]
    pub mtu: Bytes,
    /// If true, CoDel marks ECN-capable packets instead of dropping them. BLUE always drops.
    #[param(default = true, changeable)]
    pub ecn: bool,
    /// How interval / sqrt(count) is computed.
    #[param(default)]
    pub root: Root,
}

/// BLUE's steps, in CAKE and by default here.
pub(crate) const INCREMENT: f64 = 1.0 / 256.0;
pub(crate) const DECREMENT: f64 = 1.0 / 4096.0;

impl Parameters for Params {
    const ABOUT: About = About {
        title: "COBALT",
        paper: "J. Palmei, S. Gupta, P. Imputato, J. Morton, M. P. Tahiliani, S. Avallone, D. Taht, \
                Design and Evaluation of COBALT Queue Discipline, IEEE LANMAN 2019",
        purpose: "CoDel that remembers how often it had to signal and forgets at the same pace. \
                  BLUE, which runs beside it, drops packets of unresponsive flows.",
        departures: &[
            "As in Linux's CAKE but not in ns-3: a delay of at most four packet times is never too \
             long, and the last packet is never dropped.",
            "In Linux, the first signal of a queue can come one interval earlier. `root = \
             \"linux\"` does the same.",
        ],
        memory: "a few numbers",
    };

    fn check_together(&self) -> Result<(), Problem> {
        check::shorter(("target", Some(self.target)), ("interval", self.interval))
    }
}

/// BLUE dropped a packet.
pub(crate) const BLUE: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "blue",
    meaning: "BLUE: the flow had filled the buffer and did not slow down",
    marks: false,
});

impl SchedulerParameters for Params {
    type Scheduler<T> = Cobalt<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, BLUE, Reason::OVERFLOW];

    fn scheduler<T>(&self, link: LinkFacts, _seed: u64) -> Cobalt<T> {
        let mut cobalt = Cobalt {
            settings: Settings {
                target: self.target,
                interval: self.interval,
                mtu_time: Time::ZERO,
                increment: self.increment,
                decrement: self.decrement,
                ecn: self.ecn,
                root: self.root,
            },
            mtu: self.mtu,
            control: Control::default(),
            line: PacketQueue::default(),
            limit: Limit::new(self.limit),
        };
        cobalt.set_link(link);
        cobalt
    }
}

/// What COBALT aims at.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) target: Time,
    pub(crate) interval: Time,
    /// The time of the largest packet; 0 if it is not known.
    pub(crate) mtu_time: Time,
    pub(crate) increment: f64,
    pub(crate) decrement: f64,
    /// Whether signals are marks where the packet allows it.
    pub(crate) ecn: bool,
    pub(crate) root: Root,
}

impl Settings {
    /// interval / sqrt(count)
    fn spacing(&self, count: u32) -> Time {
        spacing(self.interval, count.max(1))
    }
}

/// The head of a queue, as COBALT sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) sojourn: Time,
    /// Whether it can carry a mark.
    pub(crate) is_capable: bool,
    /// Whether nothing waits behind it.
    pub(crate) is_last: bool,
}

/// What COBALT remembers of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// Signals that have not decayed yet.
    pub(crate) count: u32,
    /// When the next signal is due, or the next step of the decay.
    pub(crate) drop_next: Time,
    pub(crate) dropping: bool,
    /// Whether the count has moved, and Linux's root with it.
    has_counted: bool,
    /// BLUE's probability.
    pub(crate) p_blue: f64,
    /// When it changed.
    blue_changed: Option<Time>,
}

impl Control {
    /// Decides about the head of the queue. `bulk` flows share the queue's link where they are to
    /// be reckoned with. The last packet of a queue is never dropped.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        settings: &Settings,
        now: Time,
        head: Head,
        bulk: u32,
        draw: &mut impl FnMut() -> f64,
    ) -> Outcome {
        let sojourn = head.sojourn;
        let over = sojourn > settings.target
            && sojourn > settings.mtu_time * 4
            && (bulk == 0 || sojourn > settings.mtu_time * (2 * u64::from(bulk)));
        if !over && self.count == 0 && self.p_blue == 0.0 {
            // Nearly always.
            self.dropping = false;
            self.drop_next = now + settings.interval;
            return Outcome::Enqueue;
        }
        let blue = happens(self.p_blue, draw);
        self.judge_late(settings, now, over, head, blue)
    }

    /// [`judge`](Self::judge) where there is something to remember. BLUE drops or does not.
    #[inline(never)]
    fn judge_late(
        &mut self,
        settings: &Settings,
        now: Time,
        over: bool,
        head: Head,
        blue: bool,
    ) -> Outcome {
        let mut outcome = Outcome::Enqueue;
        // By the schedule alone: what enters the dropping state is not signalled at once.
        let mut due = self.count > 0 && now >= self.drop_next;
        let mut late = now > self.drop_next;
        if over && !self.dropping {
            self.dropping = true;
            self.drop_next = match settings.root {
                Root::Linux if !self.has_counted => now,
                _ => now + settings.spacing(self.count),
            };
        }
        if over {
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            outcome = match settings.ecn && head.is_capable {
                true => Outcome::Mark(Reason::EARLY),
                false => Outcome::Drop(Reason::EARLY),
            };
            self.count = self.count.saturating_add(1);
            self.has_counted = true;
            self.drop_next += settings.spacing(self.count);
            late = now > self.drop_next;
        }
        while due && !self.dropping {
            self.decay(settings);
            late = now > self.drop_next;
            due = self.count > 0 && now >= self.drop_next;
        }
        // What CoDel has marked keeps its mark if BLUE cannot drop it.
        let spared = match outcome {
            Outcome::Drop(_) => Outcome::Enqueue,
            spared => spared,
        };
        if blue {
            outcome = Outcome::Drop(BLUE);
        }
        let is_dropped = matches!(outcome, Outcome::Drop(_));
        if self.count == 0 {
            self.drop_next = now + settings.interval;
        } else if late && !is_dropped {
            // After a drop a late schedule stays late: the next head is judged by it.
            self.drop_next = now;
        }
        match is_dropped && head.is_last {
            true => spared,
            false => outcome,
        }
    }

    /// The next step of the decay.
    fn decay(&mut self, settings: &Settings) {
        self.count -= 1;
        self.has_counted = true;
        self.drop_next += settings.spacing(self.count);
    }

    /// A packet of the queue was thrown out for want of room.
    pub(crate) fn on_overflow(&mut self, settings: &Settings, now: Time) {
        if self.may_change_blue(settings, now) {
            self.p_blue = (self.p_blue + settings.increment).min(1.0);
            self.blue_changed = Some(now);
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue was asked and had nothing.
    pub(crate) fn on_empty(&mut self, settings: &Settings, now: Time) {
        if self.p_blue > 0.0 && self.may_change_blue(settings, now) {
            self.p_blue = (self.p_blue - settings.decrement).max(0.0);
            self.blue_changed = Some(now);
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.decay(settings);
        }
    }

    fn may_change_blue(&self, settings: &Settings, now: Time) -> bool {
        let changed = self.blue_changed;
        changed.is_none_or(|changed| now - changed > settings.target)
    }

    /// Whether it has nothing to remember.
    #[inline]
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.p_blue == 0.0 && self.count == 0 && now >= self.drop_next
    }
}

/// COBALT over a single queue.
#[derive(Debug)]
pub struct Cobalt<T> {
    settings: Settings,
    mtu: Bytes,
    control: Control,
    line: PacketQueue<T>,
    limit: Limit,
}

impl<T> Scheduler<T> for Cobalt<T> {
    fn adopt(&mut self, fresh: Self) {
        (self.settings, self.limit) = (fresh.settings, fresh.limit);
        self.mtu = fresh.mtu;
    }

    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        _context: &mut impl Context,
    ) {
        let queued = Queued::new(now, packet, item);
        if self.limit.admits(self.line.backlog(), packet.size) {
            self.line.push(queued);
        } else {
            stats.drop(queued, Reason::OVERFLOW);
            self.control.on_overflow(&self.settings, now);
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        while let Some(queued) = self.line.pop() {
            let head = Head {
                sojourn: now - queued.arrived,
                is_capable: queued.packet.ecn.is_capable(),
                is_last: self.line.backlog().packets == 0,
            };
            let outcome = self.control.judge(&self.settings, now, head, 0, draw);
            if let Some(queued) = stats.settle(queued, outcome) {
                return Some(queued);
            }
        }
        self.control.on_empty(&self.settings, now);
        None
    }

    fn set_link(&mut self, link: LinkFacts) {
        let largest = self.mtu.0 + link.framing.0;
        self.settings.mtu_time = link.rate.transmission_time(largest);
    }

    fn backlog(&self) -> Backlog {
        self.line.backlog()
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &["dropping", "count", "drop_next_s", "p_blue"]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        let control = &self.control;
        out.extend([
            f64::from(u8::from(control.dropping)),
            f64::from(control.count),
            control.drop_next.as_secs_f64(),
            control.p_blue,
        ]);
    }
}

#[cfg(test)]
mod tests {
    //! Rules are named after the list that they come from: CO and a number.

    use aqmlab_net::{Ecn, FlowKey, Rate};

    use super::*;
    use crate::worked::rows;

    fn settings(mtu_time_ns: u64) -> Settings {
        Settings {
            target: Time::from_millis(5),
            interval: Time::from_millis(100),
            mtu_time: Time::from_nanos(mtu_time_ns),
            increment: INCREMENT,
            decrement: DECREMENT,
            ecn: true,
            root: Root::Exact,
        }
    }

    /// A packet that waited for so long, with others behind it.
    fn head(sojourn: Time, is_capable: bool) -> Head {
        Head {
            sojourn,
            is_capable,
            is_last: false,
        }
    }

    /// Times of the examples are rounded to a nanosecond.
    fn assert_time(found: Time, expected: f64, what: &str) {
        let difference = (found.as_secs_f64() - expected).abs();
        assert!(difference < 5e-9, "{what}: {found}, {expected}");
    }

    #[test]
    fn co01_co02_co03_co09_the_schedule_follows_the_worked_example() {
        let settings = settings(1_211_200);
        let mut control = Control::default();
        let mut no_draw = || unreachable!("CO09: no draw while BLUE's probability is 0");
        for row in rows(include_str!("../tests/data/cobalt_schedule.csv")) {
            let (step, now) = (row.step(), row.time());
            let found = if row.event() == "empty" {
                control.on_empty(&settings, now);
                ""
            } else {
                let sojourn = Time::from_secs_f64(row.number("sojourn_ms") / 1e3);
                let over = sojourn > settings.target;
                assert_eq!(over, row.text("over_target") == "true", "row {step}");
                let head = head(sojourn, row.text("ect") == "true");
                match control.judge(&settings, now, head, 0, &mut no_draw) {
                    Outcome::Mark(_) => "mark",
                    Outcome::Drop(_) => "drop",
                    Outcome::Enqueue => "send",
                }
            };
            assert_eq!(found, row.text("decision"), "row {step}");
            assert_eq!(
                control.dropping,
                row.text("dropping") == "true",
                "row {step}"
            );
            assert_eq!(f64::from(control.count), row.number("count"), "row {step}");
            assert_time(control.drop_next, row.number("drop_next_s"), step);
            assert_eq!(control.p_blue, 0.0);
        }
    }

    #[test]
    fn co05_co06_co07_co08_blue_follows_the_worked_example() {
        let settings = settings(0);
        let mut control = Control::default();
        for row in rows(include_str!("../tests/data/cobalt_blue.csv")) {
            let (step, now) = (row.step(), row.time());
            let mut draws = row.draws();
            let found = match row.event() {
                "full" => {
                    control.on_overflow(&settings, now);
                    "overflow"
                }
                "empty" => {
                    control.on_empty(&settings, now);
                    ""
                }
                _ => {
                    let sojourn = Time::from_millis(20);
                    let mut draw = || draws.pop_front().expect("a draw that the example lacks");
                    match control.judge(&settings, now, head(sojourn, true), 0, &mut draw) {
                        Outcome::Drop(_) => "drop_blue",
                        Outcome::Mark(_) => "mark",
                        Outcome::Enqueue => "send",
                    }
                }
            };
            assert!(draws.is_empty(), "row {step}: a draw was not made");
            assert_eq!(found, row.text("decision"), "row {step}");
            assert_eq!(
                control.dropping,
                row.text("dropping") == "true",
                "row {step}"
            );
            assert_eq!(f64::from(control.count), row.number("count"), "row {step}");
            assert_time(control.drop_next, row.number("drop_next_s"), step);
            assert_eq!(control.p_blue, row.number("p_blue"), "row {step}");
            assert_eq!(control.p_blue * 4_294_967_296.0, row.number("p_blue_u32"));
        }
    }

    #[test]
    fn co04_four_packets_time_and_two_for_each_bulk_flow_are_never_late() {
        let mut no_draw = || unreachable!("nothing is left to chance");
        let packet = 12_000_000;
        for (ms, bulk, late) in [(40, 0, false), (49, 0, true), (49, 3, false), (73, 3, true)] {
            let mut control = Control::default();
            let sojourn = Time::from_millis(ms);
            control.judge(
                &settings(packet),
                Time::from_secs(1),
                head(sojourn, true),
                bulk,
                &mut no_draw,
            );
            assert_eq!(control.dropping, late, "{ms} ms, {bulk}");
        }
    }

    fn queue(text: &str, mbps: u64) -> (Cobalt<u32>, Stats<u32>) {
        let params: Params = toml::from_str(text).unwrap();
        assert_eq!(params.check(), Ok(()));
        let link = LinkFacts {
            rate: Rate::from_mbps(mbps),
            framing: Bytes(0),
        };
        (params.scheduler(link, 1), Stats::new(Params::REASONS))
    }

    fn arrive(queue: &mut Cobalt<u32>, stats: &mut Stats<u32>, now: Time, ecn: Ecn) {
        let packet = Packet {
            size: 1500,
            ecn,
            dscp: 0,
            flow: FlowKey(1),
        };
        queue.enqueue(now, packet, 0, stats, &mut || 0.5);
    }

    #[test]
    fn co07_blue_drops_whatever_ecn_says_but_the_last_packet() {
        let (mut queue, mut stats) = queue("", 10);
        queue.control.p_blue = 1.0;
        for ecn in [Ecn::Ect0, Ecn::Ce, Ecn::Ect1, Ecn::Ect0] {
            arrive(&mut queue, &mut stats, Time::ZERO, ecn);
        }
        let sent = queue.dequeue(Time::ZERO, &mut stats, &mut || 0.5).unwrap();
        assert_eq!(sent.packet.ecn, Ecn::Ect0);
        assert_eq!(stats.counters().dropped[BLUE.index()], 3);
        assert_eq!(stats.counters().marked_packets(), 0);
        assert!(queue.dequeue(Time::ZERO, &mut stats, &mut || 0.5).is_none());
    }

    /// CoDel marks, BLUE would drop, and nothing waits behind: the packet goes, marked if it can be.
    #[test]
    fn the_last_packet_keeps_the_mark_of_codel_where_blue_cannot_drop_it() {
        for (ecn, expected) in [(Ecn::Ect0, Ecn::Ce), (Ecn::NotEct, Ecn::NotEct)] {
            let (mut queue, mut stats) = queue("", 10);
            (queue.control.p_blue, queue.control.count) = (1.0, 1);
            queue.control.dropping = true;
            queue.control.drop_next = Time::from_millis(90);
            arrive(&mut queue, &mut stats, Time::ZERO, ecn);
            let now = Time::from_millis(100);
            let sent = queue.dequeue(now, &mut stats, &mut || 0.5).unwrap();
            assert_eq!(sent.packet.ecn, expected);
            let marks = u64::from(expected == Ecn::Ce);
            assert_eq!(stats.counters().marked_packets(), marks);
        }
    }

    /// Packets in time come first, so that the schedule is not late. Linux's root is 0 until the
    /// count moves: the second late packet is signalled, not the first after an interval.
    #[test]
    fn the_root_of_linux_signals_the_second_late_packet_of_a_fresh_queue() {
        for (root, first) in [(Root::Exact, 111), (Root::Linux, 12)] {
            let settings = Settings {
                root,
                ..settings(0)
            };
            let mut control = Control::default();
            let mut no_draw = || unreachable!("nothing is left to chance");
            let mut at = |ms, sojourn_ms| {
                let head = head(Time::from_millis(sojourn_ms), true);
                control.judge(&settings, Time::from_millis(ms), head, 0, &mut no_draw)
            };
            assert_eq!(at(10, 1), Outcome::Enqueue);
            let signalled = (11..500).find(|&ms| at(ms, 10) != Outcome::Enqueue);
            assert_eq!(signalled, Some(first), "{root:?}");
        }
    }

    /// The probability rises by a step per target time at most: 0.5 would take at least 128 of them,
    /// 0.64 s. CoDel's share of the drops grows meanwhile, as each overflow is a signal, too.
    #[test]
    fn unresponsive_load_of_twice_the_rate_brings_blue_in_by_its_steps() {
        let (mut queue, mut stats) = queue("limit = '100 packets'", 10);
        let mut stream = aqmlab_net::RandomStream::new(1, "law", 0);
        let mut draw = || stream.uniform();
        let packet = Time::from_nanos(1_200_000);
        let mut late = 0.0;
        for slot in 0..20_000 {
            let now = packet * slot;
            arrive(&mut queue, &mut stats, now, Ecn::NotEct);
            arrive(&mut queue, &mut stats, now, Ecn::NotEct);
            let sent = queue.dequeue(now, &mut stats, &mut draw).unwrap();
            stats.hand_back(|_, _| ());
            let steps = now.as_secs_f64() / 0.005 + 1.0;
            assert!(queue.control.p_blue <= steps * INCREMENT, "{now}");
            if slot >= 10_000 {
                late += (now - sent.arrived).as_secs_f64() / 10_000.0;
            }
        }
        let p_blue = queue.control.p_blue;
        assert!((0.05..0.5).contains(&p_blue), "{p_blue}");
        // CoDel and BLUE together take half of the load: the buffer of 120 ms is not full.
        assert!(late < 0.110, "{late}");
    }
}
