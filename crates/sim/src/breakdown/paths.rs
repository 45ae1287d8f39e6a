//! The critical paths of all exchanges under way.

use std::collections::VecDeque;

use aqmlab_aqm::Reason;
use aqmlab_link::Served;
use aqmlab_net::{Role, Time};
use aqmlab_record::{
    Breakdown, Exchange, LossOnPath, LostSegment, Metrics, ON_WIRE, PARTS_OF_PORT, Part, PathCount,
    StoryEvent, StoryRow,
};
use aqmlab_tcp::{Context, Endpoint, Flags, Segment, SendLimit, Timers};

use super::Causes;
use super::vectors::{Own, Vector, Vectors};
use crate::event::Event;
use crate::options::Ticket;

/// What the trip of a segment waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Handshake,
    Exchange,
    SlowStart,
    CongestionAvoidance,
    ReceiveWindow,
    Recovery,
}

impl Label {
    const fn part(self) -> Part {
        match self {
            Self::Handshake => Part::PropagationHandshake,
            Self::Exchange => Part::PropagationExchange,
            Self::SlowStart => Part::PropagationSlowStart,
            Self::CongestionAvoidance => Part::PropagationCongestionAvoidance,
            Self::ReceiveWindow => Part::PropagationReceiveWindow,
            Self::Recovery => Part::PropagationRecovery,
        }
    }

    const fn count(self) -> PathCount {
        match self {
            Self::Handshake => PathCount::TripsHandshake,
            Self::Exchange => PathCount::TripsExchange,
            Self::SlowStart => PathCount::TripsSlowStart,
            Self::CongestionAvoidance => PathCount::TripsCongestionAvoidance,
            Self::ReceiveWindow => PathCount::TripsReceiveWindow,
            Self::Recovery => PathCount::TripsRecovery,
        }
    }
}

impl From<SendLimit> for Label {
    fn from(limit: SendLimit) -> Self {
        match limit {
            SendLimit::Recovery => Self::Recovery,
            SendLimit::Buffer => Self::ReceiveWindow,
            SendLimit::SlowStart => Self::SlowStart,
            SendLimit::CongestionAvoidance => Self::CongestionAvoidance,
        }
    }
}

/// A segment on its way: the vector that it left with, and what the way has added so far.
#[derive(Clone, Copy, Debug)]
struct Trip {
    /// None once it is over.
    base: Option<Vector>,
    /// Places are used again: which of all trips it is.
    serial: u64,
    /// The event that it left, or one that followed from it; 0: nobody follows its connection.
    event: u64,
    label: Label,
    /// Up to when the way is known.
    until: Time,
    propagation: Time,
    wait_hosts: Time,
    transmission_hosts: Time,
    hold_up: Time,
    /// The port that it has passed last, and what it spent there.
    port: Option<u16>,
    at_port: [Time; PARTS_OF_PORT],
}

/// A segment that is not acknowledged: its first transmission.
#[derive(Debug)]
struct First {
    seq: u64,
    end: u64,
    sent: Time,
    /// The current one then.
    vector: Vector,
    label: Label,
    segment: LostSegment,
    /// Where it was dropped, and why.
    lost: Option<Place>,
    /// Its trip: its place, and which of all trips it is.
    trip: (usize, u64),
    /// The event that it left; 0: nobody follows.
    event: u64,
}

/// Where a segment was dropped: the port, if it was one, and the number of the reason.
#[derive(Clone, Copy, Debug)]
struct Place {
    port: Option<u16>,
    reason: u16,
}

impl Place {
    /// With what was lost, in a word.
    fn pack(self, segment: LostSegment) -> u64 {
        let port = self.port.map_or(0, |port| u64::from(port) + 1);
        segment as u64 | u64::from(self.reason) << 8 | port << 32
    }

    fn unpack(word: u64) -> (LostSegment, Self) {
        let segment = match word & 0xff {
            0 => LostSegment::Syn,
            1 => LostSegment::Data,
            _ => LostSegment::Fin,
        };
        let place = Self {
            port: (word >> 32).checked_sub(1).map(|port| port as u16),
            reason: (word >> 8) as u16,
        };
        (segment, place)
    }
}

/// The timers that find losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Retransmission,
    Probe,
    Reordering,
}

/// A timer that has expired: since when it ran, and until when.
#[derive(Clone, Copy, Debug)]
struct Run {
    kind: Kind,
    from: Time,
    to: Time,
}

/// One end of a connection.
#[derive(Debug, Default)]
struct End {
    /// Behind the highest byte sent.
    max: u64,
    /// In the order of sequence numbers, without overlaps.
    firsts: VecDeque<First>,
    /// Since the oldest of them was sent; in the order of time, without overlaps.
    runs: Vec<Run>,
    /// When each timer was set last.
    set_at: [Time; 3],
    /// What set the timer that holds segments back, the delayed ACK, and the pause.
    hold: Option<(Vector, Label)>,
    delayed: Option<Vector>,
    pause: Option<Vector>,
    /// It has sent something because of the event that is being handled.
    has_sent: bool,
}

/// A connection, and the exchange on it.
#[derive(Debug)]
struct Connection {
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
    vectors: Vectors,
    /// By ticket, counted from 1.
    trips: Vec<Trip>,
    /// Trips that have begun.
    begun: u64,
    /// By slot.
    connections: Vec<Option<Box<Connection>>>,
    reasons: Vec<&'static str>,
}

impl First {
    fn is_on_its_way(&self, trips: &[Trip]) -> bool {
        let (place, serial) = self.trip;
        let trip = trips.get(place);
        trip.is_some_and(|trip| trip.serial == serial && trip.base.is_some())
    }
}

impl End {
    /// Number of the first transmission that has this byte.
    fn find(&self, seq: u64) -> Option<usize> {
        let behind = self.firsts.partition_point(|first| first.end <= seq);
        let first = self.firsts.get(behind)?;
        (first.seq <= seq).then_some(behind)
    }
}

impl Connection {
    fn release(self, vectors: &mut Vectors) {
        vectors.release(self.current);
        for end in self.ends {
            for first in end.firsts {
                vectors.release(first.vector);
            }
            let hold = end.hold.map(|(vector, _)| vector);
            for vector in [hold, end.delayed, end.pause].into_iter().flatten() {
                vectors.release(vector);
            }
        }
    }

    /// Another vector is the current one, of which the caller gives up its share.
    fn set_current(&mut self, vector: Vector, vectors: &mut Vectors) {
        let before = std::mem::replace(&mut self.current, vector);
        vectors.release(before);
    }

    /// The current vector accounts up to now. Where the event said nothing of its cause, that is
    /// the last one of this end.
    fn settle(&mut self, now: Time, vectors: &mut Vectors) {
        if vectors.until(self.current) < now {
            self.current = vectors.own(self.current);
            vectors.charge(self.current, Part::OtherTimer, now);
        }
    }

    /// The vector of a moment at which something was set, which has ended now: its time is that
    /// part's.
    fn ended(&self, vector: Vector, part: Part, now: Time, vectors: &mut Vectors) -> Vector {
        let vector = vectors.own(vector);
        vectors.rebase(vector, self.origin);
        vectors.charge(vector, part, now);
        vector
    }

    /// The vector of a segment that is sent again now, by that of its first transmission.
    fn detour(
        &self,
        role: Role,
        number: usize,
        now: Time,
        (vectors, trips): (&mut Vectors, &[Trip]),
    ) -> Vector {
        let end = &self.ends[role as usize];
        let first = &end.firsts[number];
        let vector = vectors.copy(first.vector);
        vectors.set_last(vector, first.event);
        vectors.rebase(vector, self.origin);
        let is_syn = first.label == Label::Handshake;
        let mut gap = Part::RecoveryFast;
        for run in &end.runs {
            if run.to <= vectors.until(vector) || run.from >= now {
                continue;
            }
            if run.from > vectors.until(vector) {
                vectors.charge(vector, Part::RecoveryBeforeTimer, run.from);
            }
            let (part, count) = match run.kind {
                Kind::Retransmission if is_syn => (Part::SynTimeout, Some(PathCount::SynTimeouts)),
                Kind::Retransmission => (Part::Timeout, Some(PathCount::Timeouts)),
                Kind::Probe => (Part::TailLossProbe, Some(PathCount::TailLossProbes)),
                Kind::Reordering => (Part::ReorderingTimer, None),
            };
            vectors.charge(vector, part, run.to.min(now));
            if let Some(count) = count {
                vectors.count(vector, count);
            }
            gap = Part::RecoveryBehindTimer;
        }
        vectors.charge(vector, gap, now);
        if let Some(place) = first.lost {
            vectors.count(vector, PathCount::Losses);
            vectors.note_loss(vector, now - first.sent, place.pack(first.segment));
        } else if !first.is_on_its_way(trips) {
            vectors.count(vector, PathCount::FirstCopiesArrived);
        }
        vector
    }
}

impl Paths {
    /// The connection in a slot, and the vectors.
    fn at(&mut self, slot: u32) -> Option<(&mut Connection, &mut Vectors)> {
        let (connection, vectors, _) = self.at_with_trips(slot)?;
        Some((connection, vectors))
    }

    fn at_with_trips(
        &mut self,
        slot: u32,
    ) -> Option<(&mut Connection, &mut Vectors, &mut Vec<Trip>)> {
        let connection = self.connections.get_mut(slot as usize)?.as_deref_mut()?;
        Some((connection, &mut self.vectors, &mut self.trips))
    }

    fn trip(&mut self, ticket: Ticket) -> Option<&mut Trip> {
        let trip = self.trips.get_mut((ticket as usize).wrapping_sub(1))?;
        trip.base.is_some().then_some(trip)
    }

    fn place(&mut self, port: Option<usize>, reason: &'static str) -> Place {
        let known = self.reasons.iter().position(|known| *known == reason);
        let number = known.unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        Place {
            port: port.map(|port| port as u16),
            reason: number as u16,
        }
    }

    /// The exchange of a connection that began at `start` is over: where its time went.
    fn answered(&mut self, slot: u32, start: Time, now: Time) -> Option<Breakdown<'_>> {
        let connection = self.connections.get_mut(slot as usize)?.as_deref_mut()?;
        connection.settle(now, &mut self.vectors);
        debug_assert_eq!(connection.origin, start, "it is another exchange");
        let vector = connection.current;
        let parts = self.vectors.parts(vector);
        debug_assert_eq!(
            parts.iter().sum::<u64>(),
            (now - start).as_nanos(),
            "the parts of a response add up to its time"
        );
        let (time, word) = self.vectors.loss(vector);
        let loss = (time > Time::ZERO).then(|| {
            let (segment, place) = Place::unpack(word);
            LossOnPath {
                time,
                segment,
                port: place.port,
                reason: self.reasons[usize::from(place.reason)],
            }
        });
        Some(Breakdown {
            parts,
            counts: self.vectors.counts(vector),
            loss,
        })
    }

    /// The exchange of a connection is over: its events, if it is followed.
    fn end_story(&mut self, slot: u32, now: Time, metrics: &mut Metrics) {
        if let Some((connection, vectors)) = self.at(slot)
            && vectors.last(connection.current) > 0
        {
            connection.current = vectors.own(connection.current);
            let row = StoryRow::new(StoryEvent::Answered, now);
            vectors.own_mut(connection.current).note(row);
            vectors.story.take().for_each(|row| metrics.on_story(&row));
        }
    }

    /// Vectors that somebody holds, and segments on their way.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        let trips = self.trips.iter().filter(|trip| trip.base.is_some());
        (self.vectors.held(), trips.count())
    }
}

impl Causes for Paths {
    const ON: bool = true;

    fn new(ports: usize) -> Self {
        Self {
            vectors: Vectors::new(ports),
            trips: Vec::new(),
            begun: 0,
            connections: Vec::new(),
            reasons: Vec::new(),
        }
    }

    fn follow(&mut self, flow: u64) {
        self.vectors.story.flow = Some(flow);
    }

    fn opens(&mut self, slot: u32, now: Time, flow: u64) {
        self.closes(slot);
        let is_followed = self.vectors.story.flow == Some(flow);
        let slot = slot as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || None);
        }
        self.connections[slot] = Some(Box::new(Connection {
            origin: now,
            current: self.vectors.begin(now, is_followed),
            label: Label::Exchange,
            by_timer: false,
            ends: Default::default(),
        }));
    }

    fn asks(&mut self, slot: u32, now: Time) {
        if let Some((connection, vectors)) = self.at(slot) {
            connection.origin = now;
            connection.label = Label::Exchange;
            let is_followed = vectors.last(connection.current) > 0;
            let vector = vectors.begin(now, is_followed);
            connection.set_current(vector, vectors);
        }
    }

    fn closes(&mut self, slot: u32) {
        let connection = self.connections.get_mut(slot as usize);
        if let Some(connection) = connection.and_then(Option::take) {
            connection.release(&mut self.vectors);
        }
    }

    fn arrives(&mut self, event: &Event, now: Time, limit: Option<SendLimit>) {
        let place = (event.ticket() as usize).wrapping_sub(1);
        let Some(trip) = self.trips.get_mut(place) else {
            return;
        };
        let Some(base) = trip.base.take() else {
            return;
        };
        let vectors = &mut self.vectors;
        let connection = self.connections.get_mut(event.conn as usize);
        let Some(connection) = connection.and_then(Option::as_deref_mut) else {
            return vectors.release(base);
        };
        let flags = event.flags();
        let is_pure_ack = event.len == 0 && !flags.has(Flags::SYN) && !flags.has(Flags::FIN);
        // What the ACK lets go waited for the window.
        let waited_for = limit.filter(|_| is_pure_ack).map(Label::from);
        connection.label = waited_for.unwrap_or(Label::Exchange);
        connection.by_timer = false;
        let vector = vectors.own(base);
        vectors.set_last(vector, trip.event);
        if vectors.rebase(vector, connection.origin) {
            vectors.charge(vector, Part::CarriedOver, now);
        } else {
            let label = match is_pure_ack {
                true => connection.label,
                false => trip.label,
            };
            let mut own = vectors.own_mut(vector);
            trip.add_to(&mut own);
            own.add(label.part() as usize, trip.propagation + now - trip.until);
            own.count(label.count());
            own.set_until(now);
        }
        let arrived = StoryRow::new(StoryEvent::Arrived, now);
        vectors.own_mut(vector).note(arrived);
        connection.set_current(vector, vectors);
    }

    fn expires(&mut self, slot: u32, role: Role, now: Time, timers: &Timers, paced: bool) {
        let Some((connection, vectors, trips)) = self.at_with_trips(slot) else {
            return;
        };
        (connection.by_timer, connection.label) = (true, Label::Recovery);
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
        let end = &mut connection.ends[role as usize];
        let vector = if let Some(kind) = kind {
            let before = end.runs.last().map_or(Time::ZERO, |run| run.to);
            let from = end.set_at[kind as usize].max(before);
            end.runs.push(Run {
                kind,
                from,
                to: now,
            });
            let oldest = end.find(timers.una);
            oldest.map(|number| connection.detour(role, number, now, (vectors, trips)))
        } else if timers.hold <= now
            && let Some((vector, label)) = end.hold.take()
        {
            connection.label = label;
            let part = match paced {
                true => Part::Pacing,
                false => Part::OtherTimer,
            };
            Some(connection.ended(vector, part, now, vectors))
        } else if timers.delayed_ack <= now
            && let Some(vector) = end.delayed.take()
        {
            let vector = connection.ended(vector, Part::DelayedAck, now, vectors);
            vectors.count(vector, PathCount::DelayedAcks);
            Some(vector)
        } else {
            None
        };
        match vector {
            Some(vector) => connection.set_current(vector, vectors),
            None => connection.settle(now, vectors),
        }
    }

    fn pauses(&mut self, slot: u32, role: Role, now: Time) {
        if let Some((connection, vectors)) = self.at(slot) {
            connection.settle(now, vectors);
            let vector = vectors.share(connection.current);
            let before = connection.ends[role as usize].pause.replace(vector);
            before.into_iter().for_each(|it| vectors.release(it));
        }
    }

    fn resumes(&mut self, slot: u32, role: Role, now: Time) {
        if let Some((connection, vectors)) = self.at(slot)
            && let Some(vector) = connection.ends[role as usize].pause.take()
        {
            (connection.by_timer, connection.label) = (false, Label::Exchange);
            let vector = connection.ended(vector, Part::Application, now, vectors);
            connection.set_current(vector, vectors);
        }
    }

    fn explain(&mut self, slot: u32, exchange: &Exchange, metrics: &mut Metrics) {
        if let Some(breakdown) = self.answered(slot, exchange.start, exchange.end) {
            metrics.on_breakdown(exchange, &breakdown);
            self.end_story(slot, exchange.end, metrics);
        }
    }

    fn acted(
        &mut self,
        slot: u32,
        role: Role,
        before: &Timers,
        end_point: &Endpoint,
        cx: &Context<'_>,
    ) {
        let Some((connection, vectors)) = self.at(slot) else {
            return;
        };
        let (now, after) = (cx.now, end_point.timers());
        let end = &mut connection.ends[role as usize];
        let has_sent = std::mem::take(&mut end.has_sent);
        // A deadline on a clock with ticks often does not change when it is set again.
        let rearmed = after.una > before.una && end_point.is_armed_as_now(cx);
        for (kind, old, new, again) in [
            (
                Kind::Retransmission,
                before.retransmission,
                after.retransmission,
                rearmed,
            ),
            (Kind::Probe, before.probe, after.probe, false),
            (Kind::Reordering, before.reordering, after.reordering, false),
        ] {
            if new < Time::NEVER && (new != old || again) {
                end.set_at[kind as usize] = now;
            }
        }
        if after.hold != before.hold {
            let is_set = after.hold < Time::NEVER;
            let held = is_set.then(|| (vectors.share(connection.current), connection.label));
            let old = std::mem::replace(&mut end.hold, held);
            old.into_iter().for_each(|(it, _)| vectors.release(it));
        }
        let is_set = after.delayed_ack < Time::NEVER;
        if after.delayed_ack != before.delayed_ack || (is_set && has_sent) {
            let delayed = is_set.then(|| vectors.share(connection.current));
            let old = std::mem::replace(&mut end.delayed, delayed);
            old.into_iter().for_each(|it| vectors.release(it));
        }
        while end.firsts.front().is_some_and(|it| it.end <= after.una) {
            let first = end.firsts.pop_front();
            first.into_iter().for_each(|it| vectors.release(it.vector));
        }
        match end.firsts.front() {
            _ if end.runs.is_empty() => {}
            Some(oldest) => end.runs.retain(|run| run.to > oldest.sent),
            None => end.runs.clear(),
        }
    }

    fn leaves(&mut self, ticket: Ticket, slot: u32, sender: Role, segment: &Segment, now: Time) {
        self.begun += 1;
        let mut trip = Trip {
            base: None,
            serial: self.begun,
            event: 0,
            label: Label::Exchange,
            until: now,
            propagation: Time::ZERO,
            wait_hosts: Time::ZERO,
            transmission_hosts: Time::ZERO,
            hold_up: Time::ZERO,
            port: None,
            at_port: [Time::ZERO; PARTS_OF_PORT],
        };
        let place = ticket as usize - 1;
        if let Some((connection, vectors, trips)) = self.at_with_trips(slot) {
            connection.settle(now, vectors);
            connection.leaves(sender, segment, now, (place, &mut trip), (vectors, trips));
        }
        if self.trips.len() <= place {
            self.trips.resize(place + 1, trip);
        }
        self.trips[place] = trip;
    }

    fn passes_host_link(&mut self, ticket: Ticket, done: Time, transmission: Time) {
        if let Some(trip) = self.trip(ticket) {
            trip.wait_hosts += done - transmission - trip.until;
            trip.transmission_hosts += transmission;
            trip.until = done;
        }
    }

    fn reached(&self, ticket: Ticket) -> Time {
        let trip = self.trips.get((ticket as usize).wrapping_sub(1));
        trip.map_or(Time::ZERO, |trip| trip.until)
    }

    fn reaches_port(&mut self, ticket: Ticket, now: Time) {
        if let Some(trip) = self.trip(ticket) {
            trip.propagation += now - trip.until;
            trip.until = now;
            let event = trip.event;
            let row = StoryRow::new(StoryEvent::AtPort, now);
            self.vectors.story.say(event, row);
        }
    }

    fn passes_port(&mut self, ticket: Ticket, port: usize, served: &Served, arrives: Time) {
        let place = (ticket as usize).wrapping_sub(1);
        let Some(trip) = self.trips.get_mut(place) else {
            return;
        };
        let Some(base) = trip.base else {
            return;
        };
        if trip.port.is_some() {
            // What it spent at the port before is its vector's.
            let base = self.vectors.own(base);
            self.vectors.set_last(base, trip.event);
            trip.add_port_to(&mut self.vectors.own_mut(base));
            trip.event = self.vectors.last(base);
            trip.base = Some(base);
        }
        let begin = served.end - served.transmission;
        trip.port = Some(port as u16);
        trip.at_port = [
            served.left - trip.until,
            begin - served.left,
            served.transmission,
        ];
        let propagation = served.delay.min(arrives - served.end);
        trip.propagation += propagation;
        trip.hold_up += arrives - served.end - propagation;
        trip.until = arrives;
    }

    fn dropped(&mut self, event: &Event, now: Time, port: Option<usize>, reason: Option<Reason>) {
        let Some(trip) = self.trip(event.ticket()) else {
            return;
        };
        let cause = trip.event;
        let trip = (event.ticket() as usize - 1, trip.serial);
        let reason = reason.map_or(ON_WIRE, Reason::name);
        let row = StoryRow {
            port: port.map(|port| port as u16),
            reason,
            ..StoryRow::new(StoryEvent::Dropped, now)
        };
        self.vectors.story.say(cause, row);
        let place = self.place(port, reason);
        if let Some((connection, _)) = self.at(event.conn) {
            let firsts = &mut connection.ends[event.sender() as usize].firsts;
            let first = firsts.iter_mut().find(|first| first.trip == trip);
            first.into_iter().for_each(|it| it.lost = Some(place));
        }
    }

    fn forgets(&mut self, ticket: Ticket) {
        if let Some(base) = self.trip(ticket).and_then(|trip| trip.base.take()) {
            self.vectors.release(base);
        }
    }
}

impl Trip {
    /// What the way has added, without propagation, is the vector's.
    fn add_to(&self, vector: &mut Own<'_>) {
        for (part, time) in [
            (Part::WaitHosts, self.wait_hosts),
            (Part::TransmissionHosts, self.transmission_hosts),
            (Part::HoldUp, self.hold_up),
        ] {
            vector.add(part as usize, time);
        }
        self.add_port_to(vector);
    }

    /// What it spent at the last port is the vector's.
    fn add_port_to(&self, vector: &mut Own<'_>) {
        if let Some(port) = self.port {
            let first = Part::ALL.len() + PARTS_OF_PORT * usize::from(port);
            for (number, time) in self.at_port.iter().enumerate() {
                vector.add(first + number, *time);
            }
        }
    }
}

impl Connection {
    /// A segment leaves, and its trip begins, whose place is known: with which vector, and what
    /// it waits for.
    fn leaves(
        &mut self,
        sender: Role,
        segment: &Segment,
        now: Time,
        (place, trip): (usize, &mut Trip),
        (vectors, trips): (&mut Vectors, &[Trip]),
    ) {
        let flags = segment.flags;
        let (is_syn, has_fin) = (flags.has(Flags::SYN), flags.has(Flags::FIN));
        let end_seq = segment.seq + u64::from(segment.len) + u64::from(is_syn) + u64::from(has_fin);
        trip.label = if is_syn { Label::Handshake } else { self.label };
        let end = &mut self.ends[sender as usize];
        end.has_sent = true;
        let max = end.max;
        let row = StoryRow {
            sender: Some(sender),
            segment: [segment.seq, segment.ack, segment.len.into()],
            flags,
            is_again: end_seq > segment.seq && segment.seq < max,
            ..StoryRow::new(StoryEvent::Sent, now)
        };
        if end_seq == segment.seq {
            trip.event = vectors.story.say(vectors.last(self.current), row);
            trip.base = Some(vectors.share(self.current));
            return;
        }
        // The peer's repeated SYN makes this end repeat its answer: that is the cause.
        let answers_again = is_syn && flags.has(Flags::ACK) && !self.by_timer;
        let is_again = segment.seq < max && !answers_again;
        let known = is_again.then(|| end.find(segment.seq)).flatten();
        let vector = match known {
            Some(number) => {
                trip.label = end.firsts[number].label;
                self.detour(sender, number, now, (vectors, trips))
            }
            None => vectors.share(self.current),
        };
        trip.event = vectors.story.say(vectors.last(vector), row);
        trip.base = Some(vector);
        if end_seq > max {
            let end = &mut self.ends[sender as usize];
            end.max = end_seq;
            end.firsts.push_back(First {
                seq: segment.seq.max(max),
                end: end_seq,
                sent: now,
                vector: vectors.share(vector),
                label: trip.label,
                segment: match () {
                    () if is_syn => LostSegment::Syn,
                    () if segment.len == 0 => LostSegment::Fin,
                    () => LostSegment::Data,
                },
                lost: None,
                trip: (place, trip.serial),
                event: trip.event,
            });
        }
    }
}
