//! The critical paths of all exchanges under way.

mod quic;

use std::collections::VecDeque;

use aqmlab_aqm::Reason;
use aqmlab_link::Served;
use aqmlab_net::{Role, Time};
use aqmlab_record::{
    Breakdown, Exchange, LossOnPath, LostSegment, Metrics, ON_WIRE, Part, PathCount, StoryEvent,
    StoryRow,
};
use aqmlab_stacks::End as StackEnd;
use aqmlab_tcp::{Flags, Segment, SendLimit, Timers};

use super::Causes;
use super::label::Label;
use super::loss::Place;
use super::nodes::{NONE, Nodes, Vector};
use crate::event::Event;
use crate::options::Ticket;

/// A segment that is not acknowledged: its first transmission.
///
/// Sequence numbers are cut to 32 bits: fewer are out at a time.
#[derive(Debug)]
struct First {
    seq: u32,
    end: u32,
    trip: Vector,
}

/// What paths have to know of a segment that leaves.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    ack: u64,
    len: u32,
    flags: Flags,
}

/// The timers that find losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Retransmission,
    Probe,
    Reordering,
    /// QUIC's probe time-out.
    QuicProbe,
}

/// A timer that has expired: since when it ran, and until when.
#[derive(Clone, Copy, Debug)]
struct Run {
    kind: Kind,
    from: Time,
    to: Time,
}

/// The timers of an end that has done nothing yet.
const NO_TIMERS: Timers = Timers {
    retransmission: Time::NEVER,
    probe: Time::NEVER,
    reordering: Time::NEVER,
    hold: Time::NEVER,
    delayed_ack: Time::NEVER,
    una: 0,
    outstanding: false,
};

/// One end of a connection.
#[derive(Debug)]
struct End {
    /// Behind the highest byte sent.
    max: u64,
    /// In the order of sequence numbers, without overlaps.
    firsts: VecDeque<First>,
    /// Timers that have expired since the oldest of them was sent; in the order of time, without
    /// overlaps.
    runs: Vec<Run>,
    /// Its timers, when it had last done something.
    timers: Timers,
    /// When each timer was set last.
    set_at: [Time; 3],
    /// What set the timer that holds segments back, the delayed ACK, and the pause.
    hold: (Vector, Label),
    delayed: Vector,
    pause: Vector,
    /// It has sent something because of the event that is being handled.
    has_sent: bool,
}

/// A connection, and the exchange on it.
#[derive(Debug)]
struct Connection {
    is_open: bool,
    /// When the exchange began.
    origin: Time,
    /// The cause of what happens now.
    current: Vector,
    /// What the trips of segments waited for that leave now.
    label: Label,
    /// The cause is a timer of the end that acts.
    by_timer: bool,
    ends: [End; 2],
}

/// The critical paths of all exchanges under way.
#[derive(Debug)]
pub(crate) struct Paths {
    nodes: Nodes,
    /// By ticket, counted from 1.
    trips: Vec<Vector>,
    /// By slot. Those that are over keep their room for the next one.
    connections: Vec<Connection>,
    reasons: Vec<&'static str>,
    datagrams: quic::Datagrams,
}

/// The vector of what is sent again now, by that of its first transmission, whose trip it is; and what
/// that waited for. `runs`: the timers of its end.
fn detour(
    (trip, runs): (Vector, &[Run]),
    origin: Time,
    now: Time,
    nodes: &mut Nodes,
) -> (Vector, Label) {
    let first = nodes.departure(trip);
    let mut vector = nodes.again(&first, origin);
    let mut gap = Part::RecoveryFast;
    for run in runs {
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

/// Timers that have expired before the oldest segment was sent, whose trip it is, are of no interest.
#[cold]
fn forget_runs(runs: &mut Vec<Run>, oldest: Option<Vector>, nodes: &Nodes) {
    match oldest {
        Some(oldest) => {
            let sent = nodes.departure(oldest).sent;
            runs.retain(|run| run.to > sent);
        }
        None => runs.clear(),
    }
}

impl Kind {
    /// What waiting for it is, if it finds the loss of such a segment.
    const fn finds(self, segment: LostSegment) -> (Part, Option<PathCount>) {
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

impl End {
    fn new() -> Self {
        Self {
            max: 0,
            firsts: VecDeque::new(),
            runs: Vec::new(),
            timers: NO_TIMERS,
            set_at: [Time::ZERO; 3],
            hold: (NONE, Label::Exchange),
            delayed: NONE,
            pause: NONE,
            has_sent: false,
        }
    }

    /// Number of the first transmission that has this byte.
    fn find(&self, seq: u64) -> Option<usize> {
        let is_up_to = |number: u32| (seq as u32).wrapping_sub(number) as i32 >= 0;
        let behind = self.firsts.partition_point(|first| is_up_to(first.end));
        let first = self.firsts.get(behind)?;
        is_up_to(first.seq).then_some(behind)
    }

    /// As it was when it was new.
    fn clear(&mut self, nodes: &mut Nodes) {
        for first in self.firsts.drain(..) {
            nodes.release(first.trip);
        }
        for vector in [self.hold.0, self.delayed, self.pause] {
            nodes.release(vector);
        }
        let (firsts, runs) = (&mut self.firsts, &mut self.runs);
        runs.clear();
        *self = Self {
            firsts: std::mem::take(firsts),
            runs: std::mem::take(runs),
            ..Self::new()
        };
    }

    /// Segments before `una` are acknowledged.
    fn forget_acknowledged(&mut self, una: u64, nodes: &mut Nodes) {
        while let Some(first) = self.firsts.front()
            && (una as u32).wrapping_sub(first.end) as i32 >= 0
        {
            nodes.release_first(first.trip);
            self.firsts.pop_front();
        }
    }
}

impl Connection {
    /// Another vector is the current one, of which the caller gives up its share.
    #[inline(always)]
    fn set_current(&mut self, vector: Vector, nodes: &mut Nodes) {
        let before = std::mem::replace(&mut self.current, vector);
        nodes.release(before);
    }

    /// The current vector accounts up to now. Where the event said nothing of its cause, that is
    /// the last one of this end.
    #[inline(always)]
    fn settle(&mut self, now: Time, nodes: &mut Nodes) {
        if nodes.until(self.current) < now {
            self.current = nodes.charge(self.current, Part::OtherTimer, now, None);
        }
    }

    /// The vector of a moment at which something was set, which has ended now: its time is that
    /// part's.
    fn ended(
        &self,
        vector: Vector,
        (part, count): (Part, Option<PathCount>),
        now: Time,
        nodes: &mut Nodes,
    ) -> Vector {
        let vector = nodes.rebased(vector, self.origin);
        nodes.charge(vector, part, now, count)
    }

    /// The vector of a segment that is sent again now, by that of its first transmission; and what that
    /// waited for.
    fn detour(&self, role: Role, number: usize, now: Time, nodes: &mut Nodes) -> (Vector, Label) {
        let end = &self.ends[role as usize];
        let first = (end.firsts[number].trip, &end.runs[..]);
        detour(first, self.origin, now, nodes)
    }

    /// A segment leaves: its trip.
    #[inline(always)]
    fn leaves(&mut self, sender: Role, segment: &Sent, now: Time, nodes: &mut Nodes) -> Vector {
        self.settle(now, nodes);
        let flags = segment.flags;
        let (is_syn, has_fin) = (flags.has(Flags::SYN), flags.has(Flags::FIN));
        let end_seq = segment.seq + u64::from(segment.len) + u64::from(is_syn) + u64::from(has_fin);
        let label = if is_syn { Label::Handshake } else { self.label };
        let end = &mut self.ends[sender as usize];
        end.has_sent = true;
        let (max, is_pure_ack) = (end.max, end_seq == segment.seq);
        let is_again = segment.seq < max && !is_pure_ack;
        // The peer's repeated SYN makes this end repeat its answer: that is the cause.
        let answers_again = is_syn && flags.has(Flags::ACK) && !self.by_timer;
        let known = match is_again && !answers_again {
            true => end.find(segment.seq),
            false => None,
        };
        let (cause, label) = match known {
            Some(number) => self.detour(sender, number, now, nodes),
            None => (nodes.share(self.current), label),
        };
        let kind = match segment.len {
            _ if is_syn => LostSegment::Syn,
            0 => LostSegment::Fin,
            _ => LostSegment::Data,
        };
        let is_first = end_seq > max && !is_pure_ack;
        let trip = nodes.depart(cause, (label, kind), is_first);
        if is_first {
            let end = &mut self.ends[sender as usize];
            end.max = end_seq;
            end.firsts.push_back(First {
                seq: segment.seq.max(max) as u32,
                end: end_seq as u32,
                trip,
            });
        }
        if nodes.is_followed(trip) {
            let row = StoryRow {
                sender: Some(sender),
                segment: [segment.seq, segment.ack, segment.len.into()],
                flags,
                is_again,
                ..StoryRow::new(StoryEvent::Sent, now)
            };
            nodes.write_departure(trip, row);
        }
        trip
    }
}

impl Paths {
    /// The connection in a slot, and the vectors.
    #[inline(always)]
    fn at(&mut self, slot: u32) -> Option<(&mut Connection, &mut Nodes)> {
        let connection = self.connections.get_mut(slot as usize)?;
        connection.is_open.then_some((connection, &mut self.nodes))
    }

    /// A segment leaves an end: out of line, since transports send at many places.
    #[inline(never)]
    fn sends(
        &mut self,
        (ticket, slot): (Ticket, u32),
        sender: Role,
        (seq, ack): (u64, u64),
        (len, flags): (u32, Flags),
        now: Time,
    ) {
        let segment = Sent {
            seq,
            ack,
            len,
            flags,
        };
        let trip = match self.at(slot) {
            Some((connection, nodes)) => connection.leaves(sender, &segment, now, nodes),
            None => NONE,
        };
        self.put_trip(ticket, trip);
    }

    /// The segment with this ticket makes a trip.
    #[inline(always)]
    fn put_trip(&mut self, ticket: Ticket, trip: Vector) {
        let place = ticket as usize - 1;
        match self.trips.get_mut(place) {
            Some(of_ticket) => *of_ticket = trip,
            None => self.add_trip(place, trip),
        }
    }

    #[cold]
    fn add_trip(&mut self, place: usize, trip: Vector) {
        self.trips.resize(place, NONE);
        self.trips.push(trip);
    }

    /// The trip of a segment under way; `NONE`: nothing is known of it.
    #[inline(always)]
    fn trip(&self, ticket: Ticket) -> Vector {
        let trip = self.trips.get((ticket as usize).wrapping_sub(1));
        trip.copied().unwrap_or(NONE)
    }

    /// The trip of a segment under way, which is over.
    #[inline(always)]
    fn take_trip(&mut self, ticket: Ticket) -> Vector {
        let trip = self.trips.get_mut((ticket as usize).wrapping_sub(1));
        trip.map_or(NONE, |trip| std::mem::replace(trip, NONE))
    }

    fn place(&mut self, port: Option<usize>, reason: &'static str) -> Place {
        let known = self.reasons.iter().position(|known| *known == reason);
        let number = known.unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        Place::new(port, number)
    }

    /// The exchange of a connection that began at `start` is over: where its time went.
    fn answered(&mut self, slot: u32, start: Time, now: Time) -> Option<Breakdown<'_>> {
        let Self { nodes, reasons, .. } = self;
        let connection = self.connections.get_mut(slot as usize)?;
        if !connection.is_open {
            return None;
        }
        connection.settle(now, nodes);
        debug_assert_eq!(connection.origin, start, "it is another exchange");
        let (parts, counts, (time, word)) = nodes.sums(connection.current);
        debug_assert_eq!(
            parts.iter().sum::<u64>(),
            (now - start).as_nanos(),
            "the parts of a response add up to its time"
        );
        let loss = (time > Time::ZERO).then(|| {
            let (segment, port, reason) = Place::unpack(word);
            LossOnPath {
                time,
                segment,
                port,
                reason: reasons[reason],
            }
        });
        Some(Breakdown {
            parts,
            counts,
            loss,
        })
    }

    /// The exchange of a connection is over: its events, if it is followed.
    fn end_story(&mut self, slot: u32, now: Time, metrics: &mut Metrics) {
        if let Some((connection, nodes)) = self.at(slot)
            && nodes.is_followed(connection.current)
        {
            connection.current = nodes.tell_end(connection.current, now);
            nodes.story.take().for_each(|row| metrics.on_story(&row));
        }
    }

    /// Vectors that somebody holds, and segments on their way.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        let trips = self.trips.iter().filter(|trip| **trip != NONE);
        (self.nodes.held(), trips.count())
    }
}

impl Causes for Paths {
    const ON: bool = true;

    fn new(ports: usize) -> Self {
        Self {
            nodes: Nodes::new(ports),
            trips: Vec::new(),
            connections: Vec::new(),
            reasons: Vec::new(),
            datagrams: quic::Datagrams::default(),
        }
    }

    fn follow(&mut self, flow: u64) {
        self.nodes.follow(flow);
    }

    fn opens(&mut self, slot: u32, now: Time, flow: u64) {
        self.closes(slot);
        let is_followed = self.nodes.story.flow == Some(flow);
        let slot = slot as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || Connection {
                is_open: false,
                origin: Time::ZERO,
                current: NONE,
                label: Label::Exchange,
                by_timer: false,
                ends: [End::new(), End::new()],
            });
        }
        let connection = &mut self.connections[slot];
        (connection.is_open, connection.origin) = (true, now);
        (connection.label, connection.by_timer) = (Label::Exchange, false);
        connection.current = self.nodes.begin(now, is_followed);
    }

    fn asks(&mut self, slot: u32, now: Time) {
        if let Some((connection, nodes)) = self.at(slot) {
            connection.origin = now;
            connection.label = Label::Exchange;
            let is_followed = nodes.is_followed(connection.current);
            let vector = nodes.begin(now, is_followed);
            connection.set_current(vector, nodes);
        }
    }

    fn closes(&mut self, slot: u32) {
        if let Some((connection, nodes)) = self.at(slot) {
            connection.is_open = false;
            connection.set_current(NONE, nodes);
            for end in &mut connection.ends {
                end.clear(nodes);
            }
        }
        self.datagrams.close(slot, &mut self.nodes);
    }

    #[inline(always)]
    fn arrives(&mut self, event: &Event, now: Time, limit: impl FnOnce() -> Option<SendLimit>) {
        let trip = self.take_trip(event.ticket());
        if trip == NONE {
            return;
        }
        let Some((connection, nodes)) = self.at(event.conn) else {
            return self.nodes.is_over(trip);
        };
        let flags = event.flags();
        let is_pure_ack = event.len == 0 && !flags.has(Flags::SYN) && !flags.has(Flags::FIN);
        // What the ACK lets go waited for the window.
        let waited_for = match is_pure_ack {
            true => limit().map(Label::from),
            false => None,
        };
        connection.label = waited_for.unwrap_or(Label::Exchange);
        connection.by_timer = false;
        let label = is_pure_ack.then_some(connection.label);
        let vector = nodes.arrives(trip, label, connection.origin, now);
        connection.set_current(vector, nodes);
    }

    fn expires(&mut self, slot: u32, role: Role, now: Time, paced: bool) {
        let Some((connection, nodes)) = self.at(slot) else {
            return;
        };
        (connection.by_timer, connection.label) = (true, Label::Recovery);
        let end = &mut connection.ends[role as usize];
        let timers = end.timers;
        let is_due = |time: Time| timers.outstanding && time <= now;
        let kind = if is_due(timers.reordering) {
            Some(Kind::Reordering)
        } else if is_due(timers.probe) {
            Some(Kind::Probe)
        } else if is_due(timers.retransmission) {
            Some(Kind::Retransmission)
        } else {
            None
        };
        let vector = if let Some(kind) = kind {
            let before = end.runs.last().map_or(Time::ZERO, |run| run.to);
            let from = end.set_at[kind as usize].max(before);
            end.runs.push(Run {
                kind,
                from,
                to: now,
            });
            let oldest = end.find(timers.una);
            oldest.map(|number| connection.detour(role, number, now, nodes).0)
        } else if timers.hold <= now && end.hold.0 != NONE {
            let (vector, label) = std::mem::replace(&mut end.hold, (NONE, Label::Exchange));
            connection.label = label;
            let part = match paced {
                true => Part::Pacing,
                false => Part::OtherTimer,
            };
            Some(connection.ended(vector, (part, None), now, nodes))
        } else if timers.delayed_ack <= now && end.delayed != NONE {
            let vector = std::mem::replace(&mut end.delayed, NONE);
            let what = (Part::DelayedAck, Some(PathCount::DelayedAcks));
            Some(connection.ended(vector, what, now, nodes))
        } else {
            None
        };
        match vector {
            Some(vector) => connection.set_current(vector, nodes),
            None => connection.settle(now, nodes),
        }
    }

    fn pauses(&mut self, slot: u32, role: Role, now: Time) {
        if let Some((connection, nodes)) = self.at(slot) {
            connection.settle(now, nodes);
            let vector = nodes.share(connection.current);
            let pause = &mut connection.ends[role as usize].pause;
            nodes.release(std::mem::replace(pause, vector));
        }
    }

    fn resumes(&mut self, slot: u32, role: Role, now: Time) {
        if let Some((connection, nodes)) = self.at(slot)
            && connection.ends[role as usize].pause != NONE
        {
            (connection.by_timer, connection.label) = (false, Label::Exchange);
            let pause = &mut connection.ends[role as usize].pause;
            let vector = std::mem::replace(pause, NONE);
            let vector = connection.ended(vector, (Part::Application, None), now, nodes);
            connection.set_current(vector, nodes);
        }
    }

    fn explain(&mut self, slot: u32, exchange: &Exchange, metrics: &mut Metrics) {
        if let Some(breakdown) = self.answered(slot, exchange.start, exchange.end) {
            metrics.on_breakdown(exchange, &breakdown);
            self.end_story(slot, exchange.end, metrics);
            if let Some((connection, nodes)) = self.at(slot) {
                connection.current = nodes.finished(connection.current);
            }
        }
    }

    #[inline(always)]
    fn acted(
        &mut self,
        slot: u32,
        role: Role,
        now: Time,
        timers: impl FnOnce() -> Timers,
        is_armed_as_now: impl FnOnce() -> bool,
    ) {
        let Some((connection, nodes)) = self.at(slot) else {
            return;
        };
        let after = timers();
        let end = &mut connection.ends[role as usize];
        let before = &end.timers;
        let has_moved = after.una > before.una;
        // A deadline on a clock with ticks often does not change when it is set again.
        if after.retransmission < Time::NEVER
            && (after.retransmission != before.retransmission || (has_moved && is_armed_as_now()))
        {
            end.set_at[Kind::Retransmission as usize] = now;
        }
        let has_sent = std::mem::take(&mut end.has_sent);
        let is_set = after.delayed_ack < Time::NEVER;
        let is_set_again = after.delayed_ack != before.delayed_ack || (is_set && has_sent);
        if (after.probe, after.reordering, after.hold)
            != (before.probe, before.reordering, before.hold)
        {
            for (kind, old, new) in [
                (Kind::Probe, before.probe, after.probe),
                (Kind::Reordering, before.reordering, after.reordering),
            ] {
                if new != old && new < Time::NEVER {
                    end.set_at[kind as usize] = now;
                }
            }
            if after.hold != before.hold {
                let held = match after.hold < Time::NEVER {
                    true => (nodes.share(connection.current), connection.label),
                    false => (NONE, Label::Exchange),
                };
                nodes.release(std::mem::replace(&mut end.hold, held).0);
            }
        }
        end.timers = after;
        if is_set_again {
            let delayed = match is_set {
                true => nodes.share(connection.current),
                false => NONE,
            };
            nodes.release(std::mem::replace(&mut end.delayed, delayed));
        }
        if has_moved {
            end.forget_acknowledged(after.una, nodes);
        }
        if !end.runs.is_empty() {
            let oldest = end.firsts.front().map(|first| first.trip);
            forget_runs(&mut end.runs, oldest, nodes);
        }
    }

    #[inline(always)]
    fn leaves(&mut self, ticket: Ticket, slot: u32, sender: Role, segment: &Segment, now: Time) {
        let &Segment {
            seq,
            ack,
            len,
            flags,
            ..
        } = segment;
        self.sends((ticket, slot), sender, (seq, ack), (len, flags), now);
    }

    fn datagram_leaves(
        &mut self,
        what: (Ticket, u32, Role),
        now: Time,
        end: &StackEnd,
        datagram: &[u8],
    ) -> u32 {
        match end.inside() {
            Some(inside) => self.quic_leaves(what, now, inside, datagram),
            None => 0,
        }
    }

    fn datagram_arrives(&mut self, event: &Event, now: Time, end: &StackEnd) {
        if let Some(inside) = end.inside() {
            self.quic_arrives(event, now, inside);
        }
    }

    fn stack_expires(&mut self, slot: u32, role: Role, now: Time) {
        self.quic_expires(slot, role, now);
    }

    fn stack_acted(&mut self, slot: u32, role: Role, now: Time, end: &StackEnd) {
        if let Some(inside) = end.inside() {
            self.quic_acted(slot, role, now, inside);
        }
    }

    #[inline(always)]
    fn passes_host_link(&mut self, ticket: Ticket, done: Time, transmission: Time) {
        let trip = self.trip(ticket);
        if trip != NONE {
            self.nodes.passes_host_link(trip, done, transmission);
        }
    }

    #[inline(always)]
    fn reached(&self, ticket: Ticket) -> Time {
        match self.trip(ticket) {
            NONE => Time::ZERO,
            trip => self.nodes.until(trip),
        }
    }

    #[inline(always)]
    fn reaches_port(&mut self, ticket: Ticket, now: Time) {
        let trip = self.trip(ticket);
        if trip != NONE {
            self.nodes.reaches_port(trip, now);
        }
    }

    #[inline(always)]
    fn crosses_port(
        &mut self,
        ticket: Ticket,
        port: usize,
        reached: Time,
        served: &Served,
        arrives: Time,
    ) {
        let trip = self.trip(ticket);
        if trip != NONE {
            self.nodes.reaches_port(trip, reached);
            self.nodes.passes_port(trip, port, served, arrives);
        }
    }

    #[inline(always)]
    fn passes_port(&mut self, ticket: Ticket, port: usize, served: &Served, arrives: Time) {
        let trip = self.trip(ticket);
        if trip != NONE {
            self.nodes.passes_port(trip, port, served, arrives);
        }
    }

    fn dropped(&mut self, event: &Event, now: Time, port: Option<usize>, reason: Option<Reason>) {
        let trip = self.trip(event.ticket());
        if trip == NONE {
            return;
        }
        let reason = reason.map_or(ON_WIRE, Reason::name);
        let row = StoryRow {
            port: port.map(|port| port as u16),
            reason,
            ..StoryRow::new(StoryEvent::Dropped, now)
        };
        self.nodes.tell_drop(trip, row);
        let place = self.place(port, reason);
        self.nodes.lose(trip, place);
    }

    #[inline(always)]
    fn forgets(&mut self, ticket: Ticket) {
        let trip = self.take_trip(ticket);
        if trip != NONE {
            self.nodes.is_over(trip);
        }
    }
}
