//! CoDel: K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, "Controlled Delay Active Queue
//! Management", RFC 8289, 2018, sections 5.3 to 5.6. Departures: [`Parameters::ABOUT`].

use aqmlab_declare::JsonSchema;
use aqmlab_net::{Bytes, Ecn, Packet, QueueSize, Time};
use serde::{Deserialize, Serialize};

use crate::bypass::{Bypass, Room};
use crate::check::{self, Problem};
use crate::context::Context;
use crate::counters::{Reason, ReasonText};
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{PacketQueue, Queued, Scheduler, SchedulerParameters, Stats};
use aqmlab_declare::{About, Declared, Parameters, parameters};

/// Parameters of CoDel.
#[parameters]
pub struct Params {
    /// Acceptable standing delay, 5 to 10 % of `interval`. Default: 5 ms, or the transmission time
    /// of 1.5 packets of `mtu` bytes if longer.
    #[param(above = Time::ZERO, changeable)]
    pub target: Option<Time>,
    /// How long the delay must exceed `target` before CoDel acts. Use the longest common round-trip
    /// time.
    #[param(default = "100 ms", above = Time::ZERO, changeable)]
    pub interval: Time,
    /// Buffer size.
    #[param(default = "1000 packets", check = check::buffer, changeable)]
    pub limit: QueueSize,
    /// Largest packet. CoDel does nothing while at most this many bytes wait.
    #[param(default = "1500 bytes", check = check::packet_size, changeable)]
    pub mtu: Bytes,
    /// If true, ECN-capable packets are marked instead of dropped.
    #[param(default, changeable)]
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
    /// How interval / sqrt(count) is computed.
    #[param(default)]
    pub root: Root,
}

/// How interval / sqrt(count) is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// Exact arithmetic, as in RFC 8289.
    #[default]
    Exact,
    /// As in Linux. `codel` and `fq-codel` approximate 1 / sqrt(count), with one Newton step per
    /// drop or mark. `cobalt` and `cake` compute it exactly, but begin with 0. So the first drop or
    /// mark of a queue can come one interval (`rtt` in `cake`) earlier.
    Linux,
}

/// interval / sqrt(count)
pub(crate) fn spacing(interval: Time, count: u32) -> Time {
    let root = libm::sqrt(f64::from(count));
    Time::from_nanos((interval.as_nanos() as f64 / root) as u64)
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Controlled Delay",
        paper: "RFC 8289, Controlled Delay Active Queue Management, 2018, sections 5.3 to 5.6",
        purpose: "Keeps the standing queueing delay below a target at any link rate.",
        departures: &[
            "Linux approximates the root with one step of Newton's method per signal: the second \
             gap is 50 ms instead of 70.7 ms, and later gaps differ by at most 1.5 ms. `root = \
             \"linux\"` does the same.",
        ],
        memory: "a few numbers",
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

/// The step was exceeded.
pub(crate) const CE_THRESHOLD: Reason = Reason(&ReasonText {
    place: Reason::FIRST_OWN,
    name: "ce_threshold",
    meaning: "the packet had waited for more than `ce_threshold`",
    marks: true,
});

/// A step on top of CoDel, and the packets that it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CeThreshold {
    /// [`Time::NEVER`]: there is none.
    pub(crate) above: Time,
    pub(crate) selector: u8,
    pub(crate) mask: u8,
}

impl CeThreshold {
    const NONE: Self = Self {
        above: Time::NEVER,
        selector: 0,
        mask: 0,
    };

    pub(crate) fn check(self, ecn: bool) -> Result<(), Problem> {
        if self.above < Time::NEVER && !ecn {
            let message = "found beside ecn = false; it marks, so it needs ecn = true";
            return check::problem("ce_threshold", message);
        }
        if self.selector & !self.mask != 0 {
            let message = format!(
                "found {:#04x}, which has bits that ce_threshold_mask, {:#04x}, leaves out",
                self.selector, self.mask
            );
            return check::problem("ce_threshold_selector", message);
        }
        Ok(())
    }

    /// Whether there is one.
    pub(crate) fn is_given(self) -> bool {
        self.above < Time::NEVER
    }

    /// Marks a packet that waited for too long, if it is meant and may be marked.
    #[inline(never)]
    fn mark<T>(self, mut queued: Queued<T>, stats: &mut Stats<T>) -> Queued<T> {
        let Packet { dscp, ecn, .. } = queued.packet;
        let byte = dscp << 2 | ecn as u8;
        if byte & self.mask == self.selector && matches!(ecn, Ecn::Ect0 | Ecn::Ect1) {
            queued.packet.ecn = Ecn::Ce;
            stats.count_mark(CE_THRESHOLD);
        }
        queued
    }
}

impl SchedulerParameters for Params {
    type Scheduler<T> = Codel<T>;

    const REASONS: &'static [Reason] = &[Reason::EARLY, CE_THRESHOLD, Reason::OVERFLOW];

    fn reasons(&self) -> &'static [Reason] {
        reasons(self.step())
    }

    fn changeable(&self) -> Vec<&'static str> {
        changeable(Self::CHANGEABLE, self.step())
    }

    fn scheduler<T>(&self, link: LinkFacts, _seed: u64) -> Codel<T> {
        Codel {
            settings: Settings::new(self.target, self.interval, self.mtu, self.ecn, link)
                .with_step(self.step(), self.root),
            control: Control::default(),
            line: PacketQueue::default(),
            bypassed: Backlog::default(),
            limit: Limit::new(self.limit),
        }
    }
}

/// Why CoDel drops or marks, with or without a step.
pub(crate) fn reasons(step: CeThreshold) -> &'static [Reason] {
    match step.is_given() {
        true => Params::REASONS,
        false => &[Reason::EARLY, Reason::OVERFLOW],
    }
}

/// What can change of `rest` and a step: one that is there can move; one that is not has no counter.
pub(crate) fn changeable(rest: &[&'static str], step: CeThreshold) -> Vec<&'static str> {
    let of_step = ["ce_threshold", "ce_threshold_selector", "ce_threshold_mask"];
    let of_step = of_step.into_iter().filter(|_| step.is_given());
    rest.iter().copied().chain(of_step).collect()
}

/// What CoDel aims at, in the units of the arithmetic.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    target: Time,
    /// What the user wants, if not the rule.
    wanted: Option<Time>,
    interval: Time,
    mtu: u64,
    ecn: bool,
    step: CeThreshold,
    root: Root,
}

/// The control AQM of CoDel over one queue: what it remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// When the delay will have been above `target` for an interval, while it is (the RFC's
    /// first_above_time_).
    first_above: Option<Time>,
    /// When to signal next, while `dropping`.
    drop_next: Time,
    /// Signals since this dropping state began.
    count: u32,
    /// `count` when the dropping state began.
    last_count: u32,
    dropping: bool,
    /// Linux's approximation of 1/sqrt(count), in 2^-16.
    inverse_root: u16,
}

/// The RFC's target.
const TARGET: Time = Time::from_millis(5);

/// A dropping state that begins this many intervals after the last one starts from scratch.
const MEMORY: u64 = 16;

impl Settings {
    pub(crate) fn new(
        target: Option<Time>,
        interval: Time,
        mtu: Bytes,
        ecn: bool,
        link: LinkFacts,
    ) -> Self {
        let mut settings = Self {
            target: TARGET,
            wanted: target,
            interval,
            mtu: mtu.0,
            ecn,
            step: CeThreshold::NONE,
            root: Root::Exact,
        };
        settings.set_link(link);
        settings
    }

    pub(crate) const fn with_step(self, step: CeThreshold, root: Root) -> Self {
        Self { step, root, ..self }
    }

    /// The target: as wanted, or as the RFC has it, with an eye to slow links.
    pub(crate) fn set_link(&mut self, link: LinkFacts) {
        let three_packets = link.rate.transmission_time(3 * (self.mtu + link.framing.0));
        let least = Time::from_nanos(three_packets.as_nanos() / 2);
        self.target = self.wanted.unwrap_or(TARGET.max(least));
    }

    /// Whether a packet that waited for so long and leaves so much behind shows no standing queue.
    #[inline]
    fn is_short(&self, sojourn: Time, bytes_left: u64) -> bool {
        sojourn < self.target || bytes_left <= self.mtu
    }
}

impl Control {
    /// Whether the head of the queue goes without a look at the signal, as most do: no signal may be due. If so,
    /// that is noted, and the head need not go through [`dequeue`](Self::dequeue).
    #[inline]
    pub(crate) fn lets_pass<T>(
        &mut self,
        settings: &Settings,
        now: Time,
        head: &Queued<T>,
        waiting: Backlog,
    ) -> bool {
        let bytes_left = waiting.bytes - u64::from(head.packet.size);
        let sojourn = now - head.arrived;
        let passes = !self.dropping
            && settings.is_short(sojourn, bytes_left)
            && sojourn <= settings.step.above;
        if passes {
            self.first_above = None;
        }
        passes
    }

    /// Takes the next packet out of the queue, giving up those that are due. `take` takes the head
    /// and says how many bytes it leaves.
    pub(crate) fn dequeue<T>(
        &mut self,
        settings: &Settings,
        now: Time,
        take: impl FnMut() -> Option<(Queued<T>, u64)>,
        stats: &mut Stats<T>,
    ) -> Option<Queued<T>> {
        let next = self.choose(settings, now, take, stats)?;
        if now - next.arrived > settings.step.above {
            return Some(settings.step.mark(next, stats));
        }
        Some(next)
    }

    /// What CoDel itself does.
    #[inline]
    fn choose<T>(
        &mut self,
        settings: &Settings,
        now: Time,
        mut take: impl FnMut() -> Option<(Queued<T>, u64)>,
        stats: &mut Stats<T>,
    ) -> Option<Queued<T>> {
        let ecn = settings.ecn;
        let (mut next, mut ok) = self.judge(settings, now, take());
        if self.dropping {
            self.dropping = ok;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let gap = self.spacing(settings);
                next = next.and_then(|queued| stats.signal(queued, ecn, Reason::EARLY));
                if next.is_some() {
                    self.drop_next += gap;
                    break; // Marked: it is sent.
                }
                (next, ok) = self.judge(settings, now, take());
                if ok {
                    self.drop_next += gap;
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            next = next.and_then(|queued| stats.signal(queued, ecn, Reason::EARLY));
            if next.is_none() {
                (next, _) = self.judge(settings, now, take());
            }
            self.start_dropping(settings, now);
        }
        next
    }

    /// [`dequeue`](Self::dequeue) of an empty queue.
    #[inline]
    pub(crate) const fn rest(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// The head of the queue, and whether the delay has been above target for an interval.
    fn judge<T>(
        &mut self,
        settings: &Settings,
        now: Time,
        head: Option<(Queued<T>, u64)>,
    ) -> (Option<Queued<T>>, bool) {
        let Some((queued, bytes_left)) = head else {
            self.first_above = None;
            return (None, false);
        };
        if settings.is_short(now - queued.arrived, bytes_left) {
            self.first_above = None;
            return (Some(queued), false);
        }
        let ok = match self.first_above {
            None => {
                self.first_above = Some(now + settings.interval);
                false
            }
            Some(time) => now >= time,
        };
        (Some(queued), ok)
    }

    /// A dropping state soon after the last one goes on near the rate at which that one ended.
    fn start_dropping(&mut self, settings: &Settings, now: Time) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = self.drop_next > Time::ZERO
            && now.saturating_sub(self.drop_next) < settings.interval * MEMORY;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = now + self.spacing(settings);
        self.last_count = self.count;
    }

    /// interval / sqrt(count), once for each new count.
    #[inline(never)]
    fn spacing(&mut self, settings: &Settings) -> Time {
        if settings.root == Root::Exact {
            return spacing(settings.interval, self.count);
        }
        let old = u64::from(self.inverse_root);
        // Newton's step for 1/sqrt(count), (3 - count old^2) old / 2, in Linux's units: a count that
        // jumps may overflow them.
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count) * (old * old)) >> 2;
        self.inverse_root = match self.count {
            1 => u16::MAX,
            _ => (rest.wrapping_mul(old << 16) >> 47) as u16,
        };
        Time::from_nanos((settings.interval.as_nanos() * u64::from(self.inverse_root)) >> 16)
    }

    /// Packets that an overflow dropped count as signals, as in Linux.
    pub(crate) fn add(&mut self, dropped: u32) {
        self.count = self.count.saturating_add(dropped);
    }

    /// Whether the delay has not been too long lately.
    #[inline]
    const fn is_at_rest(&self) -> bool {
        !self.dropping && self.first_above.is_none()
    }

    pub(crate) fn probe(&self, out: &mut Vec<f64>) {
        let first_above = self.first_above.map_or(0.0, Time::as_secs_f64);
        out.extend([
            f64::from(u8::from(self.dropping)),
            f64::from(self.count),
            f64::from(self.last_count),
            first_above,
            self.drop_next.as_secs_f64(),
        ]);
    }
}

/// CoDel: a FIFO whose head is dropped or marked while the standing delay is too long.
#[derive(Debug)]
pub struct Codel<T> {
    settings: Settings,
    control: Control,
    line: PacketQueue<T>,
    /// What waits and has bypassed the line.
    bypassed: Backlog,
    limit: Limit,
}

impl<T> Codel<T> {
    /// The next packet, of a queue whose head may be due for a signal, or that is empty.
    #[inline(never)]
    fn dequeue_judged(&mut self, now: Time, stats: &mut Stats<T>) -> Option<Queued<T>> {
        let line = &mut self.line;
        let take = || line.pop().map(|queued| (queued, line.backlog().bytes));
        self.control.dequeue(&self.settings, now, take, stats)
    }
}

impl<T> Scheduler<T> for Codel<T> {
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
        let waiting = self.line.backlog().with(self.bypassed);
        if self.limit.admits(waiting, packet.size) {
            self.line.push(queued);
        } else {
            stats.drop(queued, Reason::OVERFLOW);
        }
    }

    #[inline(always)]
    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        _draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        let line = &mut self.line;
        let (control, settings) = (&mut self.control, &self.settings);
        let waiting = line.backlog();
        if line
            .head()
            .is_some_and(|head| control.lets_pass(settings, now, head, waiting))
        {
            return line.pop();
        }
        self.dequeue_judged(now, stats)
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.settings.set_link(link);
    }

    fn backlog(&self) -> Backlog {
        self.line.backlog()
    }

    fn adopt(&mut self, fresh: Self) {
        self.settings = fresh.settings;
        self.limit = fresh.limit;
    }

    fn probe_names(&self) -> &'static [&'static str] {
        &[
            "dropping",
            "count",
            "last_count",
            "first_above_s",
            "drop_next_s",
        ]
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.control.probe(out);
    }
}

/// While no packet waits for longer than the target, CoDel signals none and remembers nothing of
/// them.
impl<T> Bypass for Codel<T> {
    #[inline]
    fn bypass_below(&self) -> Time {
        if self.control.is_at_rest() {
            // The step does not mark packets that wait for exactly its threshold.
            let step = self.settings.step.above.saturating_add(Time::from_nanos(1));
            self.settings.target.min(step)
        } else {
            Time::ZERO
        }
    }

    fn room(&self) -> Room {
        self.limit.into()
    }

    fn set_bypassed(&mut self, waiting: Backlog) {
        self.bypassed = waiting;
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::{FlowKey, Rate};

    use super::*;
    use crate::worked::queues::{Played, Tag};

    const LINK: LinkFacts = LinkFacts {
        rate: Rate::from_mbps(12),
        framing: Bytes(0),
    };

    fn played(ecn: bool) -> Played<Codel<Tag>> {
        let params: Params = toml::from_str(&format!("ecn = {ecn}")).unwrap();
        Played::new(params.scheduler(LINK, 1), |_| FlowKey(1))
    }

    /// So many packets of 1000 bytes at a time, all ECN-capable.
    fn arrive(played: &mut Played<Codel<Tag>>, ms: u64, count: u32) {
        let packet = Packet {
            size: 1000,
            ecn: Ecn::Ect0,
            dscp: 0,
            flow: FlowKey(1),
        };
        let mut draw = || unreachable!("CoDel leaves nothing to chance");
        for _ in 0..count {
            played.arrive(Time::from_millis(ms), "a", packet, &mut draw);
        }
    }

    /// The number of the packet that is sent (0: none), and of those dropped.
    fn depart(played: &mut Played<Codel<Tag>>, ms: u64) -> (u32, Vec<u32>) {
        let outcome = played.depart(Time::from_millis(ms));
        let dropped = outcome.dropped.iter().map(|(tag, _)| tag.id).collect();
        (outcome.sent.map_or(0, |queued| queued.item.id), dropped)
    }

    /// dropping, count and last_count
    fn state(played: &Played<Codel<Tag>>) -> (bool, u32, u32) {
        let control = &played.scheduler.control;
        (control.dropping, control.count, control.last_count)
    }

    #[test]
    fn a_late_dequeue_makes_up_for_drops_and_stops_at_the_last_packet() {
        let mut played = played(false);
        arrive(&mut played, 0, 8);
        assert_eq!(depart(&mut played, 50), (1, vec![]));
        // Above target for 100 ms: enters, drops 2; the next is due at 250 ms.
        assert_eq!(depart(&mut played, 150), (3, vec![2]));
        // At 450 ms three are due: at 250, 250 + 100/sqrt(2) = 320.7, + 100/sqrt(3) = 378.4 and
        // + 50 = 428.4, so four. But dropping 6 leaves 7, with 8 behind it: 1000 bytes, no more
        // than the largest packet: the state ends.
        assert_eq!(depart(&mut played, 450), (7, vec![4, 5, 6]));
        assert_eq!(state(&played), (false, 4, 1));
        // One packet is left alone, however long it waited; then there is none.
        assert_eq!(depart(&mut played, 9000), (8, vec![]));
        assert_eq!(depart(&mut played, 9001), (0, vec![]));
    }

    /// ns-3's test of CoDel: 20 packets of 1000 bytes, dequeues at 10, 210, 210 and 420 ms. With the
    /// exact root the gaps are 100 and 70.7 ms; Linux's second is 50 ms, its third 56.3 ms.
    #[test]
    fn the_root_of_linux_signals_sooner() {
        for (root, last) in [("exact", 2), ("linux", 3)] {
            let text = format!("root = '{root}'");
            let params: Params = toml::from_str(&text).unwrap();
            let mut played = Played::new(params.scheduler(LINK, 1), |_| FlowKey(1));
            arrive(&mut played, 0, 20);
            let drops = [10, 210, 210, 420].map(|ms| depart(&mut played, ms).1.len());
            assert_eq!(drops, [0, 1, 0, last], "{root}");
        }
    }

    #[test]
    fn the_root_of_linux_is_a_newton_step_of_16_bits() {
        let params: Params = toml::from_str("root = 'linux'").unwrap();
        let codel = params.scheduler::<()>(LINK, 1);
        let mut control = Control::default();
        let mut gap = |count| {
            control.count = count;
            control.spacing(&codel.settings).as_nanos()
        };
        assert_eq!(gap(1), 99_998_474);
        let second = gap(2) as f64;
        assert!((second - 50e6).abs() < 1e4, "{second}");
        // From the third on it is close to the square root.
        for count in 3..1000 {
            let exact = 100e6 / f64::from(count).sqrt();
            let found = gap(count) as f64;
            assert!((found - exact).abs() < 1.5e6, "{count}: {found}, {exact}");
        }
    }

    #[test]
    fn sixteen_intervals_after_the_last_schedule_it_starts_from_scratch() {
        for (pause, count) in [(1599, 3), (1600, 1)] {
            let mut played = played(false);
            arrive(&mut played, 0, 8);
            depart(&mut played, 50);
            depart(&mut played, 150);
            depart(&mut played, 450);
            // count = 4, last_count = 1; the last schedule was for 378.4 ms.
            let again = 378 + pause;
            arrive(&mut played, 451, 20);
            depart(&mut played, again - 99);
            depart(&mut played, again + 1);
            assert_eq!(state(&played), (true, count, count), "after {pause} ms");
        }
    }

    #[test]
    fn a_dequeue_that_finds_nothing_ends_the_dropping_state() {
        let mut played = played(false);
        arrive(&mut played, 0, 5);
        depart(&mut played, 50);
        depart(&mut played, 150);
        assert_eq!(state(&played), (true, 1, 1));
        // 4 and 5 come out before the next drop is due: 5 because nothing is behind it.
        assert_eq!(depart(&mut played, 151), (4, vec![]));
        assert_eq!(depart(&mut played, 152), (5, vec![]));
        assert_eq!(depart(&mut played, 153), (0, vec![]));
        assert_eq!(state(&played), (false, 1, 1));
        assert_eq!(played.scheduler.control.first_above, None);
    }

    #[test]
    fn the_packet_that_begins_the_dropping_state_is_marked_and_sent() {
        let mut played = played(true);
        arrive(&mut played, 0, 8);
        depart(&mut played, 50);
        let outcome = played.depart(Time::from_millis(150));
        assert_eq!(outcome.dropped, []);
        let sent = outcome.sent.unwrap();
        assert_eq!((sent.item.id, sent.packet.ecn), (2, Ecn::Ce));
        assert_eq!(state(&played), (true, 1, 1));
        // One mark per dequeue, however many are due.
        assert_eq!(depart(&mut played, 600).0, 3);
        assert_eq!(state(&played), (true, 2, 1));
    }

    /// A packet of CoDel with this step that waited for so long: whether it is marked, if it is sent.
    fn stepped(step: &str, ecn: Ecn, dscp: u8, ns: u64) -> bool {
        let params: Params = toml::from_str(&format!("ecn = true\n{step}")).unwrap();
        assert_eq!(params.check(), Ok(()));
        let mut played = Played::new(params.scheduler(LINK, 1), |_| FlowKey(1));
        let packet = Packet {
            size: 1000,
            ecn,
            dscp,
            flow: FlowKey(1),
        };
        let mut draw = || unreachable!("CoDel leaves nothing to chance");
        played.arrive(Time::ZERO, "a", packet, &mut draw);
        let sent = played
            .depart(Time::from_nanos(ns))
            .sent
            .expect("LS03: it never drops");
        let counters = played.stats.counters();
        let is_marked = sent.packet.ecn != ecn;
        assert_eq!(counters.marked[CE_THRESHOLD.index()], u64::from(is_marked));
        assert_eq!(counters.marked[Reason::EARLY.index()], 0);
        is_marked
    }

    #[test]
    fn ls01_ls03_the_step_marks_what_waited_for_longer_and_never_drops() {
        let step = "ce_threshold = '1 ms'";
        assert!(!stepped(step, Ecn::Ect0, 0, 1_000_000));
        assert!(stepped(step, Ecn::Ect0, 0, 1_000_001));
        assert!(stepped(step, Ecn::Ect1, 0, 1_000_001));
        assert!(!stepped(step, Ecn::NotEct, 0, 9_000_000));
        assert!(!stepped(step, Ecn::Ce, 0, 9_000_000));
        assert!(!stepped("", Ecn::Ect1, 0, 9_000_000));
    }

    #[test]
    fn ls02_the_selector_compares_bits_of_the_ds_byte() {
        let l4s = "ce_threshold = '1 ms'\nce_threshold_selector = 0x01\nce_threshold_mask = 0x03";
        assert!(stepped(l4s, Ecn::Ect1, 46, 2_000_000));
        assert!(!stepped(l4s, Ecn::Ect0, 46, 2_000_000));
        let point = "ce_threshold = '1 ms'\nce_threshold_selector = 0xb8\nce_threshold_mask = 0xfc";
        assert!(stepped(point, Ecn::Ect0, 46, 2_000_000));
        assert!(!stepped(point, Ecn::Ect0, 45, 2_000_000));
    }

    #[test]
    fn a_step_that_cannot_mark_is_refused() {
        let field = |text: &str| {
            let params: Params = toml::from_str(text).unwrap();
            params.check().unwrap_err().0
        };
        assert_eq!(field("ce_threshold = '1 ms'"), "ce_threshold");
        let bits = "ecn = true\nce_threshold = '1 ms'\nce_threshold_selector = 1";
        assert_eq!(field(bits), "ce_threshold_selector");
    }

    #[test]
    fn slow_links_raise_the_target_unless_it_is_given() {
        let slow = LinkFacts {
            rate: Rate::from_bps(1_000_000),
            framing: Bytes(0),
        };
        for (params, targets) in [("", [5_000, 18_000]), ("target = \"2 ms\"", [2_000, 2_000])] {
            let params: Params = toml::from_str(params).unwrap();
            let mut codel = params.scheduler::<Tag>(LINK, 1);
            let before = codel.settings.target;
            codel.set_link(slow);
            let found = [before, codel.settings.target];
            assert_eq!(found, targets.map(Time::from_micros));
        }
    }
}
