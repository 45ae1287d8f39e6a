//! The critical paths of all exchanges under way.

mod quic;

use aqmlab_aqm::Reason;
use aqmlab_link::Served;
use aqmlab_net::{Role, Time};
use aqmlab_record::{
    Breakdown, Exchange, LossOnPath, LostSegment, Metrics, ON_WIRE, Part, StoryEvent, StoryRow,
};
use aqmlab_stacks::End as StackEnd;
use aqmlab_tcp::{Flags, Segment, SendLimit, Timers};

use super::Causes;
use super::label::Label;
use super::loss::Place;
use super::nodes::{NONE, Nodes, Vector};
use super::waiting::{Course, Due, Firsts, Kind, Waiting};
use crate::event::Event;
use crate::options::Ticket;

/// What paths have to know of a segment that leaves.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    ack: u64,
    len: u32,
    flags: Flags,
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
    firsts: Firsts,
    waiting: Waiting,
    /// Its timers, when it had last done something.
    timers: Timers,
    /// When each timer was set last.
    set_at: [Time; 3],
    /// What set its pause.
    pause: Vector,
}

/// A connection, and the exchange on it.
#[derive(Debug)]
struct Connection {
    is_open: bool,
    course: Course,
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

impl End {
    fn new() -> Self {
        Self {
            firsts: Firsts::default(),
            waiting: Waiting::NONE,
            timers: NO_TIMERS,
            set_at: [Time::ZERO; 3],
            pause: NONE,
        }
    }

    /// As it was when it was new.
    fn clear(&mut self, nodes: &mut Nodes) {
        self.firsts.clear(nodes);
        self.waiting.clear(nodes);
        nodes.release(self.pause);
        (self.timers, self.set_at, self.pause) = (NO_TIMERS, [Time::ZERO; 3], NONE);
    }
}

impl Connection {
    /// A segment leaves: its trip.
    #[inline(always)]
    fn leaves(&mut self, sender: Role, segment: &Sent, now: Time, nodes: &mut Nodes) -> Vector {
        let Self { course, ends, .. } = self;
        course.settle(now, nodes);
        let flags = segment.flags;
        let (is_syn, has_fin) = (flags.has(Flags::SYN), flags.has(Flags::FIN));
        let end_seq = segment.seq + u64::from(segment.len) + u64::from(is_syn) + u64::from(has_fin);
        let label = if is_syn {
            Label::Handshake
        } else {
            course.label
        };
        let End {
            firsts, waiting, ..
        } = &mut ends[sender as usize];
        waiting.has_sent = true;
        let (max, is_pure_ack) = (firsts.max, end_seq == segment.seq);
        let is_again = segment.seq < max && !is_pure_ack;
        // The peer's repeated SYN makes this end repeat its answer: that is the cause.
        let answers_again = is_syn && flags.has(Flags::ACK) && !course.by_timer;
        let known = match is_again && !answers_again {
            true => firsts.find(segment.seq),
            false => None,
        };
        let (cause, label) = match known {
            Some(first) => waiting.detour(first, course.origin, now, nodes),
            None => (nodes.share(course.current), label),
        };
        let kind = match segment.len {
            _ if is_syn => LostSegment::Syn,
            0 => LostSegment::Fin,
            _ => LostSegment::Data,
        };
        let is_first = end_seq > max && !is_pure_ack;
        let trip = nodes.depart(cause, (label, kind), is_first);
        if is_first {
            firsts.push(segment.seq, end_seq, trip);
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
        let course = &mut connection.course;
        course.settle(now, nodes);
        debug_assert_eq!(course.origin, start, "it is another exchange");
        let (parts, counts, (time, word)) = nodes.sums(course.current);
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
        if let Some((Connection { course, .. }, nodes)) = self.at(slot)
            && nodes.is_followed(course.current)
        {
            course.current = nodes.end(course.current, now);
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
                course: Course::NONE,
                ends: [End::new(), End::new()],
            });
        }
        let connection = &mut self.connections[slot];
        connection.is_open = true;
        connection.course = Course {
            origin: now,
            current: self.nodes.begin(now, is_followed),
            ..Course::NONE
        };
    }

    fn asks(&mut self, slot: u32, now: Time) {
        if let Some((Connection { course, .. }, nodes)) = self.at(slot) {
            (course.origin, course.label) = (now, Label::Exchange);
            let is_followed = nodes.is_followed(course.current);
            let vector = nodes.begin(now, is_followed);
            course.set_current(vector, nodes);
        }
    }

    fn closes(&mut self, slot: u32) {
        if let Some((connection, nodes)) = self.at(slot) {
            connection.is_open = false;
            connection.course.set_current(NONE, nodes);
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
        let what = (is_pure_ack, waited_for);
        connection.course.arrives(trip, what, now, nodes);
    }

    fn expires(&mut self, slot: u32, role: Role, now: Time, paced: bool) {
        let Some((connection, nodes)) = self.at(slot) else {
            return;
        };
        let (course, end) = (&mut connection.course, &mut connection.ends[role as usize]);
        (course.by_timer, course.label) = (true, Label::Recovery);
        let timers = end.timers;
        let kinds = [
            (timers.reordering, Kind::Reordering),
            (timers.probe, Kind::Probe),
            (timers.retransmission, Kind::Retransmission),
        ];
        let is_due = |&(time, _): &(Time, Kind)| timers.outstanding && time <= now;
        let hold = match paced {
            true => Part::Pacing,
            false => Part::OtherTimer,
        };
        let due = Due {
            finds: kinds
                .into_iter()
                .find(is_due)
                .map(|(_, kind)| (kind, end.set_at[kind as usize])),
            hold: (timers.hold <= now).then_some(hold),
            delayed: timers.delayed_ack <= now,
        };
        let oldest = end.firsts.find(timers.una);
        end.waiting.expire(due, oldest, course, now, nodes);
    }

    fn pauses(&mut self, slot: u32, role: Role, now: Time) {
        if let Some((Connection { course, ends, .. }, nodes)) = self.at(slot) {
            course.settle(now, nodes);
            course.set(&mut ends[role as usize].pause, true, nodes);
        }
    }

    fn resumes(&mut self, slot: u32, role: Role, now: Time) {
        if let Some((Connection { course, ends, .. }, nodes)) = self.at(slot)
            && ends[role as usize].pause != NONE
        {
            (course.by_timer, course.label) = (false, Label::Exchange);
            let pause = &mut ends[role as usize].pause;
            course.end(pause, (Part::Application, None), now, nodes);
        }
    }

    fn explain(&mut self, slot: u32, exchange: &Exchange, metrics: &mut Metrics) {
        if let Some(breakdown) = self.answered(slot, exchange.start, exchange.end) {
            metrics.on_breakdown(exchange, &breakdown);
            self.end_story(slot, exchange.end, metrics);
            if let Some((Connection { course, .. }, nodes)) = self.at(slot) {
                course.current = nodes.finished(course.current);
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
        let (course, end) = (&connection.course, &mut connection.ends[role as usize]);
        let before = &end.timers;
        let has_moved = after.una > before.una;
        // A deadline on a clock with ticks often does not change when it is set again.
        if after.retransmission < Time::NEVER
            && (after.retransmission != before.retransmission || (has_moved && is_armed_as_now()))
        {
            end.set_at[Kind::Retransmission as usize] = now;
        }
        let has_sent = std::mem::take(&mut end.waiting.has_sent);
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
                end.waiting
                    .set_hold(after.hold < Time::NEVER, course, nodes);
            }
        }
        end.timers = after;
        if is_set_again {
            course.set(&mut end.waiting.delayed, is_set, nodes);
        }
        if has_moved {
            let give_up = |trip| nodes.release_first(trip);
            end.firsts.forget_acknowledged(after.una, give_up);
        }
        if !end.waiting.runs.is_empty() {
            end.waiting.forget_runs(end.firsts.oldest(), nodes);
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
        self.nodes.note_drop(trip, row);
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
