//! CoDel: K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, "Controlled Delay Active Queue
//! Management", RFC 8289, 2018, sections 5.3 to 5.6. Departures: [`Parameters::ABOUT`].

use aqmlab_net::{Bytes, Packet, QueueSize, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::about::{About, Parameters};
use crate::check::{self, Problem};
use crate::counters::Reason;
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{Ledger, Line, Queued, Scheduler, SchedulerParameters};

/// Parameters of CoDel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Acceptable standing queue delay: 5 to 10 % of `interval`, and at least 1.5 packets of `mtu`
    /// bytes at the link's rate.
    #[serde(default = "default_target")]
    pub target: Time,
    /// How long the delay must stay above `target`: a typical worst round-trip time.
    #[serde(default = "default_interval")]
    pub interval: Time,
    /// Buffer size; an arrival that would exceed it is dropped.
    #[serde(default = "default_limit")]
    pub limit: QueueSize,
    /// The largest packet: a queue of no more than this many bytes is left alone.
    #[serde(default = "default_mtu")]
    pub mtu: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    #[serde(default)]
    pub ecn: bool,
}

pub(crate) const fn default_target() -> Time {
    Time::from_millis(5)
}

pub(crate) const fn default_interval() -> Time {
    Time::from_millis(100)
}

fn default_limit() -> QueueSize {
    QueueSize::Packets(1000.0)
}

pub(crate) const fn default_mtu() -> Bytes {
    Bytes(1500)
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "Controlled Delay",
        paper: "K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, Controlled Delay Active Queue \
                Management, RFC 8289, 2018, sections 5.3 to 5.6",
        purpose: "Keeps the standing queue delay under a target, whatever the link's rate, by \
                  watching how long packets waited when they leave.",
        departures: &[
            "interval / sqrt(count) is rounded down to whole nanoseconds.",
            "After a mark the next one is scheduled as after a drop, from the time of the last \
             schedule, and the marked packet is sent (ns-3 schedules from now).",
        ],
        memory: "the packets that wait",
    };

    fn check(&self) -> Result<(), Problem> {
        check::limit(self.limit)?;
        check::positive("target", self.target)?;
        check::positive("interval", self.interval)?;
        if self.target >= self.interval {
            return check::problem(
                "target",
                format!(
                    "found {}; it must be shorter than interval, {}",
                    self.target, self.interval
                ),
            );
        }
        Ok(())
    }
}

impl SchedulerParameters for Params {
    type Scheduler<T> = Codel<T>;

    fn scheduler<T>(&self, _link: LinkFacts, _seed: u64) -> Codel<T> {
        Codel {
            control: Control::new(self.target, self.interval, self.mtu, self.ecn),
            line: Line::default(),
            limit: Limit::new(self.limit),
        }
    }
}

/// The control law of CoDel over one queue.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    target: Time,
    interval: Time,
    mtu: u64,
    ecn: bool,
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
}

/// A dropping state that begins this many intervals after the last one starts from scratch.
const MEMORY: u64 = 16;

impl Control {
    pub(crate) const fn new(target: Time, interval: Time, mtu: Bytes, ecn: bool) -> Self {
        Self {
            target,
            interval,
            mtu: mtu.0,
            ecn,
            first_above: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// Takes the next packet out of `line`, giving up those that are due.
    pub(crate) fn dequeue<T>(
        &mut self,
        now: Time,
        line: &mut Line<T>,
        ledger: &mut Ledger<T>,
    ) -> Option<Queued<T>> {
        let (mut next, mut ok) = self.pop(now, line);
        if self.dropping {
            self.dropping = ok;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                next = next.and_then(|queued| ledger.signal(queued, self.ecn, Reason::Early));
                if next.is_some() {
                    self.drop_next += self.spacing();
                    break; // Marked: it is sent.
                }
                (next, ok) = self.pop(now, line);
                if ok {
                    self.drop_next += self.spacing();
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            next = next.and_then(|queued| ledger.signal(queued, self.ecn, Reason::Early));
            if next.is_none() {
                (next, _) = self.pop(now, line);
            }
            self.start_dropping(now);
        }
        next
    }

    /// The head of the queue, and whether the delay has been above target for an interval.
    fn pop<T>(&mut self, now: Time, line: &mut Line<T>) -> (Option<Queued<T>>, bool) {
        let Some(queued) = line.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let sojourn = now - queued.arrived;
        if sojourn < self.target || line.backlog().bytes <= self.mtu {
            self.first_above = None;
            return (Some(queued), false);
        }
        let ok = match self.first_above {
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
            Some(time) => now >= time,
        };
        (Some(queued), ok)
    }

    /// A dropping state soon after the last one goes on near the rate at which that one ended.
    fn start_dropping(&mut self, now: Time) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let memory = Time::from_nanos(MEMORY * self.interval.as_nanos());
        let recent = now.saturating_sub(self.drop_next) < memory;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = now + self.spacing();
        self.last_count = self.count;
    }

    /// interval / sqrt(count)
    fn spacing(&self) -> Time {
        let root = libm::sqrt(f64::from(self.count));
        Time::from_nanos((self.interval.as_nanos() as f64 / root) as u64)
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
    control: Control,
    line: Line<T>,
    limit: Limit,
}

impl<T> Scheduler<T> for Codel<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        ledger: &mut Ledger<T>,
        _draw: &mut impl FnMut() -> f64,
    ) {
        let queued = Queued::new(now, packet, item);
        if self.limit.admits(self.line.backlog(), packet.size) {
            self.line.push(queued);
        } else {
            ledger.drop(queued, Reason::Overflow);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, ledger: &mut Ledger<T>) -> Option<Queued<T>> {
        self.control.dequeue(now, &mut self.line, ledger)
    }

    fn backlog(&self) -> Backlog {
        self.line.backlog()
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
