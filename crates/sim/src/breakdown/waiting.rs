//! What paths have to know of an end, whatever its transport: what is out, what waits, and which timers have
//! found losses.

use std::collections::VecDeque;

use aqmlab_net::Time;
use aqmlab_record::{LostSegment, Part, PathCount};

use super::label::Label;
use super::nodes::{NONE, Nodes, Vector};

/// What happens on a connection now, and the exchange on it.
#[derive(Debug)]
pub(super) struct Course {
    /// When the exchange began.
    pub(super) origin: Time,
    /// The cause of what happens now.
    pub(super) current: Vector,
    /// What the trips waited for that begin now.
    pub(super) label: Label,
    /// The cause is a timer of the end that acts.
    pub(super) by_timer: bool,
}

/// Bytes that are not acknowledged: the trip on which they left first.
///
/// Their numbers are cut to 32 bits: fewer are out at a time.
#[derive(Debug)]
struct First {
    from: u32,
    end: u32,
    trip: Vector,
}

/// Numbered bytes of an end, of which some are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    /// Behind the highest that was sent.
    pub(super) max: u64,
    /// In the order of their numbers, without overlaps.
    firsts: VecDeque<First>,
}

/// The timers that find losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Retransmission,
    Probe,
    Reordering,
    /// QUIC's probe time-out.
    QuicProbe,
}

/// A timer that has expired: since when it ran, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    kind: Kind,
    from: Time,
    to: Time,
}

/// What an end waits for.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Timers that have expired since the oldest of what is out was sent; in the order of time, without
    /// overlaps.
    pub(super) runs: Vec<Run>,
    /// What set the timer that holds back what is to leave, what that waits for, and what set the timer of
    /// the delayed ACK.
    pub(super) hold: Vector,
    label: Label,
    pub(super) delayed: Vector,
    /// The end has sent something because of the event that is being handled.
    pub(super) has_sent: bool,
}

/// The timers of an end that are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// One that finds losses, and since when it ran.
    pub(super) finds: Option<(Kind, Time)>,
    /// What waiting for the one is that holds back what is to leave.
    pub(super) hold: Option<Part>,
    /// That of the delayed ACK.
    pub(super) delayed: bool,
}

impl Kind {
    /// What waiting for it is, if it finds the loss of such a segment.
    pub(super) const fn finds(self, segment: LostSegment) -> (Part, Option<PathCount>) {
        match (self, segment) {
            (Self::Retransmission, LostSegment::Syn) => {
                (Part::SynTimeout, Some(PathCount::SynTimeouts))
            }
            (Self::Retransmission, _) => (Part::Timeout, Some(PathCount::Timeouts)),
            (Self::Probe, _) => (Part::TailLossProbe, Some(PathCount::TailLossProbes)),
            (Self::Reordering, _) => (Part::ReorderingTimer, None),
            (Self::QuicProbe, LostSegment::Handshake) => (
                Part::HandshakeProbeTimeout,
                Some(PathCount::HandshakeProbeTimeouts),
            ),
            (Self::QuicProbe, _) => (Part::ProbeTimeout, Some(PathCount::ProbeTimeouts)),
        }
    }
}

impl Course {
    /// Of a connection without an exchange.
    pub(super) const NONE: Self = Self {
        origin: Time::ZERO,
        current: NONE,
        label: Label::Exchange,
        by_timer: false,
    };

    /// Another vector is the current one, of which the caller gives up its share.
    #[inline(always)]
    pub(super) fn set_current(&mut self, vector: Vector, nodes: &mut Nodes) {
        let before = std::mem::replace(&mut self.current, vector);
        nodes.release(before);
    }

    /// The current vector accounts up to now. Where the event said nothing of its cause, that is
    /// the last one of this end.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: Time, nodes: &mut Nodes) {
        if nodes.until(self.current) < now {
            self.current = nodes.charge(self.current, Part::OtherTimer, now, None);
        }
    }

    /// What was set at the moment of a vector has ended, and is the cause of what happens now: its time is
    /// that part's.
    pub(super) fn end(
        &mut self,
        vector: &mut Vector,
        (part, count): (Part, Option<PathCount>),
        now: Time,
        nodes: &mut Nodes,
    ) {
        let vector = nodes.rebased(std::mem::replace(vector, NONE), self.origin);
        let vector = nodes.charge(vector, part, now, count);
        self.set_current(vector, nodes);
    }

    /// A segment has arrived. `is_pure`: it has only an acknowledgement, and what that lets go waited for
    /// the label, if there is one.
    #[inline(always)]
    pub(super) fn arrives(
        &mut self,
        trip: Vector,
        (is_pure, waited_for): (bool, Option<Label>),
        now: Time,
        nodes: &mut Nodes,
    ) {
        self.label = waited_for.unwrap_or(Label::Exchange);
        self.by_timer = false;
        let label = is_pure.then_some(self.label);
        let vector = nodes.arrives(trip, label, self.origin, now);
        self.set_current(vector, nodes);
    }

    /// One more vector for what is set now; none if nothing is set. It takes the place of another.
    pub(super) fn set(&self, vector: &mut Vector, is_set: bool, nodes: &mut Nodes) {
        let set = match is_set {
            true => nodes.share(self.current),
            false => NONE,
        };
        nodes.release(std::mem::replace(vector, set));
    }
}

impl Firsts {
    /// The trip on which this byte left first.
    pub(super) fn find(&self, number: u64) -> Option<Vector> {
        let is_up_to = |other: u32| (number as u32).wrapping_sub(other) as i32 >= 0;
        let behind = self.firsts.partition_point(|first| is_up_to(first.end));
        let first = self.firsts.get(behind)?;
        is_up_to(first.from).then_some(first.trip)
    }

    /// Bytes up to before `end` leave on a trip, the first of them perhaps again.
    #[inline(always)]
    pub(super) fn push(&mut self, from: u64, end: u64, trip: Vector) {
        let from = from.max(self.max) as u32;
        self.max = end;
        let end = end as u32;
        self.firsts.push_back(First { from, end, trip });
    }

    /// The trip of the oldest bytes.
    pub(super) fn oldest(&self) -> Option<Vector> {
        self.firsts.front().map(|first| first.trip)
    }

    /// Bytes before `una` are acknowledged; their trips are given up.
    pub(super) fn forget_acknowledged(&mut self, una: u64, mut give_up: impl FnMut(Vector)) {
        let una = una.min(self.max) as u32;
        while let Some(first) = self.firsts.front()
            && una.wrapping_sub(first.end) as i32 >= 0
        {
            give_up(first.trip);
            self.firsts.pop_front();
        }
    }

    /// Nothing has left.
    pub(super) fn clear(&mut self, nodes: &mut Nodes) {
        self.max = 0;
        for first in self.firsts.drain(..) {
            nodes.release(first.trip);
        }
    }
}

impl Waiting {
    /// For nothing.
    pub(super) const NONE: Self = Self {
        runs: Vec::new(),
        hold: NONE,
        label: Label::Exchange,
        delayed: NONE,
        has_sent: false,
    };

    /// The vector of what is sent again now, by the trip on which it left first; and what that waited for.
    pub(super) fn detour(
        &self,
        trip: Vector,
        origin: Time,
        now: Time,
        nodes: &mut Nodes,
    ) -> (Vector, Label) {
        let first = nodes.departure(trip);
        let mut vector = nodes.again(&first, origin);
        let mut gap = Part::RecoveryFast;
        for run in &self.runs {
            if run.to <= nodes.until(vector) || run.from >= now {
                continue;
            }
            // RACK sets its timer for segments that have left before.
            if run.kind == Kind::Reordering && run.from <= first.sent {
                continue;
            }
            if run.from > nodes.until(vector) {
                vector = nodes.charge(vector, Part::RecoveryBeforeTimer, run.from, None);
            }
            let (part, count) = run.kind.finds(first.segment);
            vector = nodes.charge(vector, part, run.to.min(now), count);
            gap = Part::RecoveryBehindTimer;
        }
        let has_arrived = first.lost.is_none() && !first.is_under_way;
        let count = has_arrived.then_some(PathCount::FirstCopiesArrived);
        vector = nodes.charge(vector, gap, now, count);
        if let Some(place) = first.lost {
            vector = nodes.note_loss(vector, now - first.sent, place.pack(first.segment));
        }
        (vector, first.label)
    }

    /// A timer that finds losses has expired.
    pub(super) fn note_run(&mut self, (kind, since): (Kind, Time), now: Time) {
        let before = self.runs.last().map_or(Time::ZERO, |run| run.to);
        let (from, to) = (since.max(before), now);
        self.runs.push(Run { kind, from, to });
    }

    /// Timers of the end have expired. `oldest`: the trip of the oldest of what is out.
    pub(super) fn expire(
        &mut self,
        due: Due,
        oldest: Option<Vector>,
        course: &mut Course,
        now: Time,
        nodes: &mut Nodes,
    ) {
        if let Some(run) = due.finds {
            self.note_run(run, now);
            if let Some(oldest) = oldest {
                let vector = self.detour(oldest, course.origin, now, nodes).0;
                return course.set_current(vector, nodes);
            }
        } else if let Some(part) = due.hold.filter(|_| self.hold != NONE) {
            return self.let_go(part, course, now, nodes);
        } else if due.delayed && self.delayed != NONE {
            let what = (Part::DelayedAck, Some(PathCount::DelayedAcks));
            return course.end(&mut self.delayed, what, now, nodes);
        }
        course.settle(now, nodes);
    }

    /// What was held back leaves.
    pub(super) fn let_go(&mut self, part: Part, course: &mut Course, now: Time, nodes: &mut Nodes) {
        course.label = self.label;
        course.end(&mut self.hold, (part, None), now, nodes);
    }

    /// The timer that holds back what is to leave is set now, or off.
    pub(super) fn set_hold(&mut self, is_set: bool, course: &Course, nodes: &mut Nodes) {
        course.set(&mut self.hold, is_set, nodes);
        self.label = course.label;
    }

    /// Timers that have expired before the oldest of what is out was sent are of no interest.
    #[cold]
    pub(super) fn forget_runs(&mut self, oldest: Option<Vector>, nodes: &Nodes) {
        let sent = oldest.map_or(Time::NEVER, |oldest| nodes.departure(oldest).sent);
        self.runs.retain(|run| run.to > sent);
    }

    /// It waits for nothing.
    pub(super) fn clear(&mut self, nodes: &mut Nodes) {
        nodes.release(self.hold);
        nodes.release(self.delayed);
        self.runs.clear();
        let runs = std::mem::take(&mut self.runs);
        *self = Self { runs, ..Self::NONE };
    }
}
