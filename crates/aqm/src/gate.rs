//! The FIFO's door: one law, the limit, ECN and the counters, written once for all laws.

use aqmlab_net::{Packet, QueueSize, Time};

use crate::Discipline;
use crate::droptail::DropTail;
use crate::law::{Backlog, Law, LinkFacts, Verdict};
use crate::red::Red;

/// Why a packet was dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The law signalled congestion.
    Early,
    /// The law was past the point where it only drops.
    Forced,
    /// The packet did not fit in the buffer.
    Overflow,
}

impl Reason {
    /// Every reason, in the order of the arrays in [`Counters`].
    pub const ALL: [Self; 3] = [Self::Early, Self::Forced, Self::Overflow];

    /// The word for it in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Overflow => "overflow",
        }
    }

    /// Its place in the arrays of [`Counters`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits in the queue.
    Enqueue,
    /// It waits in the queue and is to carry congestion experienced.
    EnqueueMarked,
    /// It is gone.
    Drop(Reason),
}

/// What a gate has counted since its start or the last reset. Over that span arrived = dropped +
/// departed + growth of the backlog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came, whatever became of them.
    pub arrived_packets: u64,
    /// IP bytes that came.
    pub arrived_bytes: u64,
    /// Packets that left the queue for the wire or the device ring.
    pub departed_packets: u64,
    /// IP bytes that left.
    pub departed_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped: [u64; Reason::ALL.len()],
    /// Packets marked and enqueued, by reason.
    pub marked: [u64; Reason::ALL.len()],
}

impl Counters {
    /// Packets dropped for any reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Packets marked for any reason.
    pub fn marked_packets(&self) -> u64 {
        self.marked.iter().sum()
    }
}

/// Decides which arrivals enter a FIFO, and knows its backlog without owning its packets: the
/// caller keeps those, or only the times at which they depart.
///
/// At equal times departures come first, then [`idle`](Self::idle), then the arrival.
#[derive(Clone, Debug)]
pub struct Gate {
    law: AnyLaw,
    limit: Limit,
    ecn: bool,
    backlog: Backlog,
    last_arrival: Time,
    counters: Counters,
}

impl Gate {
    /// The gate of an empty queue in front of `link`, quiet since time 0.
    pub fn new(discipline: &Discipline, link: LinkFacts) -> Self {
        let (law, limit, ecn) = match discipline {
            Discipline::Droptail(params) => (AnyLaw::DropTail(DropTail), params.limit, false),
            Discipline::Red(params) => (
                AnyLaw::Red(Red::new(params, link)),
                params.limit,
                params.ecn,
            ),
        };
        Self {
            law,
            limit: Limit::new(limit),
            ecn,
            backlog: Backlog::default(),
            last_arrival: Time::ZERO,
            counters: Counters::default(),
        }
    }

    /// Decides about an arrival and counts it. A packet that stays is part of the backlog until
    /// [`depart`](Self::depart).
    #[inline]
    pub fn arrive(&mut self, now: Time, packet: &Packet, draw: &mut impl FnMut() -> f64) -> Fate {
        self.last_arrival = now;
        self.counters.arrived_packets += 1;
        self.counters.arrived_bytes += u64::from(packet.size);
        let verdict = self.law.on_arrival(now, packet, self.backlog, draw);
        let mut fate = self.fate_of(verdict, packet);
        // The limit comes last: a packet that was marked but does not fit is an overflow.
        if !matches!(fate, Fate::Drop(_)) && !self.limit.admits(self.backlog, packet.size) {
            self.law.on_overflow();
            fate = Fate::Drop(Reason::Overflow);
        }
        match fate {
            Fate::Drop(reason) => self.counters.dropped[reason.index()] += 1,
            Fate::EnqueueMarked => {
                self.counters.marked[Reason::Early.index()] += 1;
                self.enqueue(packet.size);
            }
            Fate::Enqueue => self.enqueue(packet.size),
        }
        fate
    }

    /// A packet of `size` bytes left the discipline: its transmission starts, or it enters the
    /// device ring.
    #[inline]
    pub fn depart(&mut self, size: u32) {
        debug_assert!(self.backlog.packets > 0 && self.backlog.bytes >= u64::from(size));
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(size);
        self.counters.departed_packets += 1;
        self.counters.departed_bytes += u64::from(size);
    }

    /// The queue is empty and the wire has been quiet since then. May be told again before every
    /// arrival that finds the wire quiet: time before the last arrival is not counted twice.
    #[inline]
    pub fn idle(&mut self, since: Time) {
        self.law.on_idle(since.max(self.last_arrival));
    }

    /// What waits now.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Starts counting anew, for instance after the warm-up.
    pub fn reset_counters(&mut self) {
        self.counters = Counters::default();
    }

    /// Names of the law's inner variables.
    pub fn probe_names(&self) -> &'static [&'static str] {
        self.law.probe_names()
    }

    /// Appends the law's inner variables to `out`.
    pub fn probe(&self, out: &mut Vec<f64>) {
        self.law.probe(out);
    }

    /// Where the law's wish meets ECN (RFC 3168, section 5): a mark needs an ECN-capable packet.
    #[inline]
    fn fate_of(&self, verdict: Verdict, packet: &Packet) -> Fate {
        match verdict {
            Verdict::Admit => Fate::Enqueue,
            Verdict::Signal { may_mark: true } if self.ecn && packet.ecn.is_capable() => {
                Fate::EnqueueMarked
            }
            Verdict::Signal { .. } => Fate::Drop(Reason::Early),
            Verdict::Forced => Fate::Drop(Reason::Forced),
        }
    }

    #[inline]
    fn enqueue(&mut self, size: u32) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(size);
    }
}

/// A buffer size in the unit in which it was given.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Packets(u32),
    Bytes(u64),
}

impl Limit {
    fn new(size: QueueSize) -> Self {
        match size {
            // q + 1 > 62.5 exactly when q + 1 > 62.
            QueueSize::Packets(packets) => Self::Packets(packets as u32),
            QueueSize::Bytes(bytes) => Self::Bytes(bytes),
        }
    }

    #[inline]
    fn admits(self, queue: Backlog, size: u32) -> bool {
        match self {
            Self::Packets(limit) => queue.packets < limit,
            Self::Bytes(limit) => queue.bytes + u64::from(size) <= limit,
        }
    }
}

/// All laws in one type: no dynamic dispatch per packet.
#[derive(Clone, Debug)]
enum AnyLaw {
    DropTail(DropTail),
    Red(Red),
}

/// Hands a call on to the law that is there.
macro_rules! dispatch {
    ($any:expr, $law:ident => $call:expr) => {
        match $any {
            AnyLaw::DropTail($law) => $call,
            AnyLaw::Red($law) => $call,
        }
    };
}

impl Law for AnyLaw {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Verdict {
        dispatch!(self, law => law.on_arrival(now, packet, queue, draw))
    }

    #[inline]
    fn on_overflow(&mut self) {
        dispatch!(self, law => law.on_overflow());
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        dispatch!(self, law => law.on_idle(since));
    }

    fn probe_names(&self) -> &'static [&'static str] {
        dispatch!(self, law => law.probe_names())
    }

    fn probe(&self, out: &mut Vec<f64>) {
        dispatch!(self, law => law.probe(out));
    }
}
