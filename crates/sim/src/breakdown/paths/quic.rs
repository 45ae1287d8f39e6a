//! What the paths of exchanges over QUIC have of their own.
//!
//! A lost datagram is not repeated: its bytes leave again in a new datagram. A datagram with bytes that have
//! left before, or with a limit that was stated before, takes the vector of the datagram that had these bytes
//! first. The timers are the probe time-out, which runs since something left that asks for an answer, the
//! time threshold, the pacer's timer and the timer of a delayed acknowledgement.

use aqmlab_net::{Role, Time};
use aqmlab_record::{Frames, LostSegment, Part, StoryEvent, StoryRow};
use aqmlab_stacks::{
    Carried, Inspector, Numbered, PacketKind, QuicConnection, QuicTimers, Stated, Waits,
};

use super::{Connection, Paths};
use crate::breakdown::label::Label;
use crate::breakdown::nodes::{NONE, Nodes, Vector};
use crate::breakdown::waiting::{Due, Firsts, Kind, Waiting};
use crate::event::Event;
use crate::options::Ticket;

impl From<Waits> for Label {
    fn from(waits: Waits) -> Self {
        match waits {
            Waits::Amplification => Self::Handshake,
            Waits::Recovery => Self::Recovery,
            Waits::FlowControl => Self::ReceiveWindow,
            Waits::SlowStart => Self::SlowStart,
            Waits::CongestionAvoidance => Self::CongestionAvoidance,
        }
    }
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    bytes: Vec<(Numbered, Firsts)>,
    /// Limits that were stated last, with the datagrams that did it first.
    stated: Vec<(Stated, u64, Vector)>,
    waiting: Waiting,
    /// Its timers, when it had last done something.
    timers: QuicTimers,
    /// When the timer of the time threshold was set last.
    loss_set_at: Time,
    /// Since when that of the probe runs: it is off while a peer may not answer.
    probe_since: Time,
    /// When the probe is due that asks although no bytes are out.
    asks_at: Time,
    /// What set the timer of the probe.
    probe: Vector,
}

impl Default for End {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            stated: Vec::new(),
            waiting: Waiting::NONE,
            timers: QuicTimers::NONE,
            loss_set_at: Time::ZERO,
            probe_since: Time::ZERO,
            asks_at: Time::NEVER,
            probe: NONE,
        }
    }
}

impl End {
    /// The datagram that carried first what a datagram carries again.
    fn first_of(&self, contents: &Contents) -> Option<Vector> {
        for &(of, from, _) in &contents.bytes {
            if let Some((_, bytes)) = self.bytes.iter().find(|it| it.0 == of)
                && from < bytes.max
            {
                return bytes.find(from);
            }
        }
        if !contents.bytes.is_empty() {
            return None;
        }
        let known = self.stated.iter().find(|(of, value, _)| {
            let mut again = contents.stated.iter();
            again.any(|(other, stated)| other == of && stated <= value)
        });
        known.map(|(.., trip)| *trip)
    }

    /// Whether a datagram carries something that has not left before.
    fn has_news(&self, contents: &Contents) -> bool {
        let mut bytes = contents.bytes.iter();
        let mut stated = contents.stated.iter();
        bytes.any(|(of, _, end)| {
            let known = self.bytes.iter().find(|it| it.0 == *of);
            known.is_none_or(|it| *end > it.1.max)
        }) || stated.any(|(of, value)| {
            let known = self.stated.iter().find(|it| it.0 == *of);
            known.is_none_or(|it| *value > it.1)
        })
    }

    /// The datagram of a trip carries this: what of it is new is remembered.
    fn remember(&mut self, contents: &Contents, trip: Vector, nodes: &mut Nodes) {
        for &(of, from, end) in &contents.bytes {
            let place = self.bytes.iter().position(|it| it.0 == of);
            let place = place.unwrap_or_else(|| {
                self.bytes.push((of, Firsts::default()));
                self.bytes.len() - 1
            });
            let (_, bytes) = &mut self.bytes[place];
            if end > bytes.max {
                bytes.push(from, end, nodes.share(trip));
            }
        }
        for &(of, value) in &contents.stated {
            let known = self.stated.iter_mut().find(|(other, ..)| *other == of);
            if known
                .as_ref()
                .is_some_and(|(_, before, _)| value <= *before)
            {
                continue;
            }
            let trip = nodes.share(trip);
            match known {
                Some(known) => {
                    let before = std::mem::replace(known, (of, value, trip));
                    nodes.release(before.2);
                }
                None => self.stated.push((of, value, trip)),
            }
        }
    }

    /// The datagram with the oldest bytes that are not acknowledged.
    fn oldest(&self, nodes: &Nodes) -> Option<Vector> {
        let trips = self.bytes.iter().filter_map(|it| it.1.oldest());
        trips.min_by_key(|trip| nodes.departure(*trip).sent)
    }

    fn forget_acknowledged(&mut self, inside: &QuicConnection, nodes: &mut Nodes) {
        self.bytes.retain_mut(|(of, bytes)| {
            if bytes.oldest().is_none() {
                return true;
            }
            let acknowledged = inside.acknowledged(*of);
            bytes.forget_acknowledged(acknowledged, |trip| nodes.release(trip));
            acknowledged < u64::MAX
        });
    }

    fn clear(&mut self, nodes: &mut Nodes) {
        for (_, mut bytes) in self.bytes.drain(..) {
            bytes.clear(nodes);
        }
        for (.., trip) in self.stated.drain(..) {
            nodes.release(trip);
        }
        self.waiting.clear(nodes);
        nodes.release(self.probe);
        *self = Self::default();
    }
}

/// A datagram without bytes: of acknowledgements and limits.
const PURE: u32 = 1;

/// A datagram with a packet of the handshake.
const OF_HANDSHAKE: u32 = 2;

/// What a datagram carries.
#[derive(Debug, Default)]
struct Contents {
    /// Whose, the first, and behind the last.
    bytes: Vec<(Numbered, u64, u64)>,
    stated: Vec<(Stated, u64)>,
    /// Bytes of a stream are among them.
    has_data: bool,
    /// A packet of the handshake is.
    has_handshake: bool,
}

impl Contents {
    fn look(&mut self, inspector: &mut Inspector, datagram: &[u8], wastes_early: bool) {
        self.bytes.clear();
        self.stated.clear();
        (self.has_data, self.has_handshake) = (false, false);
        let mut is_wasted = false;
        inspector.look(datagram, |carried| match carried {
            Carried::Packet(kind) => {
                is_wasted = wastes_early && kind == PacketKind::ZeroRtt;
                self.has_handshake |= matches!(kind, PacketKind::Initial | PacketKind::Handshake);
            }
            Carried::Bytes { of, from, len, fin } if !is_wasted => {
                self.has_data |= matches!(of, Numbered::Stream(_));
                self.bytes.push((of, from, from + len + u64::from(fin)));
            }
            Carried::Stated(of, value) => self.stated.push((of, value)),
            _ => {}
        });
    }

    /// What the other end has to know of it.
    fn kind(&self) -> u32 {
        let pure = if self.bytes.is_empty() { PURE } else { 0 };
        pure | if self.has_handshake { OF_HANDSHAKE } else { 0 }
    }

    /// What is lost with it.
    fn segment(&self) -> LostSegment {
        match self.bytes.first() {
            None => LostSegment::Limit,
            Some(_) if self.has_handshake => LostSegment::Handshake,
            Some(_) => LostSegment::Data,
        }
    }
}

/// Datagrams of QUIC, and what sends them.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// By slot. Those that are over keep their room for the next one.
    ends: Vec<[End; 2]>,
    inspector: Inspector,
    contents: Contents,
}

impl Datagrams {
    /// A connection is over.
    pub(super) fn close(&mut self, slot: u32, nodes: &mut Nodes) {
        for end in self.ends.get_mut(slot as usize).into_iter().flatten() {
            end.clear(nodes);
        }
    }

    fn ends(&mut self, slot: u32) -> &mut [End; 2] {
        let slot = slot as usize;
        if self.ends.len() <= slot {
            self.ends.resize_with(slot + 1, Default::default);
        }
        &mut self.ends[slot]
    }
}

impl Paths {
    /// A connection that is open, and what sends its datagrams.
    fn open_quic(&mut self, slot: u32) -> Option<(&mut Connection, &mut Datagrams, &mut Nodes)> {
        let connection = self.connections.get_mut(slot as usize)?;
        connection
            .is_open
            .then_some((connection, &mut self.datagrams, &mut self.nodes))
    }

    /// A datagram leaves its end: what kind of datagram it is.
    pub(super) fn quic_leaves(
        &mut self,
        (ticket, slot, sender): (Ticket, u32, Role),
        now: Time,
        inside: &QuicConnection,
        datagram: &[u8],
    ) -> u32 {
        let Some((connection, datagrams, nodes)) = self.open_quic(slot) else {
            return 0;
        };
        datagrams.ends(slot);
        let Datagrams {
            ends,
            inspector,
            contents,
        } = datagrams;
        contents.look(inspector, datagram, inside.wastes_early_data());
        let end = &mut ends[slot as usize][sender as usize];
        // A wake that came too early for any timer may let a pacer go on that waits for a burst.
        let course = &mut connection.course;
        if nodes.until(course.current) < now && end.waiting.hold != NONE {
            end.waiting.let_go(Part::Pacing, course, now, nodes);
        }
        course.settle(now, nodes);
        end.waiting.has_sent |= !contents.bytes.is_empty();
        let first = end.first_of(contents);
        let (cause, label) = match first {
            Some(first) => end.waiting.detour(first, course.origin, now, nodes),
            None if contents.has_handshake && !contents.has_data => {
                (nodes.share(course.current), Label::Handshake)
            }
            None => (nodes.share(course.current), course.label),
        };
        let is_first = end.has_news(contents);
        let trip = nodes.depart(cause, (label, contents.segment()), is_first);
        if is_first {
            end.remember(contents, trip, nodes);
            // Each of them holds it.
            nodes.release(trip);
        }
        if nodes.is_followed(trip) {
            let row = story_row(inspector, datagram, sender, now);
            let is_again = first.is_some();
            nodes.write_departure(trip, StoryRow { is_again, ..row });
        }
        let kind = contents.kind();
        self.put_trip(ticket, trip);
        kind
    }

    /// A datagram arrives at an end.
    pub(super) fn quic_arrives(&mut self, event: &Event, now: Time, inside: &QuicConnection) {
        let trip = self.take_trip(event.ticket());
        if trip == NONE {
            return;
        }
        let is_pure = event.ack & PURE > 0;
        let is_of_handshake = event.ack & OF_HANDSHAKE > 0;
        let Some((connection, nodes)) = self.at(event.conn) else {
            return self.nodes.is_over(trip);
        };
        // What the acknowledgement or the limit lets go waited for it.
        let waited_for = match is_pure {
            true => inside.waits_for().map(Label::from),
            false => None,
        };
        let what = (is_pure && !is_of_handshake, waited_for);
        connection.course.arrives(trip, what, now, nodes);
    }

    /// A timer of an end expires.
    pub(super) fn quic_expires(&mut self, slot: u32, role: Role, now: Time) {
        let Some((connection, datagrams, nodes)) = self.open_quic(slot) else {
            return;
        };
        let course = &mut connection.course;
        let end = &mut datagrams.ends(slot)[role as usize];
        let timers = end.timers;
        (course.by_timer, course.label) = (true, Label::Recovery);
        let finds = if timers.loss <= now {
            Some((Kind::Reordering, end.loss_set_at))
        } else if timers.probe <= now {
            Some((Kind::QuicProbe, end.probe_since))
        } else {
            None
        };
        let oldest = end.oldest(nodes);
        if let Some((Kind::QuicProbe, since)) = finds
            && oldest.is_none()
            && end.probe != NONE
        {
            // It asks although nothing with bytes is out.
            end.waiting.note_run((Kind::QuicProbe, since), now);
            let what = Kind::QuicProbe.finds(match timers.is_of_handshake {
                true => LostSegment::Handshake,
                false => LostSegment::Data,
            });
            return course.end(&mut end.probe, what, now, nodes);
        }
        let due = Due {
            finds,
            hold: (timers.hold <= now).then_some(Part::Pacing),
            delayed: timers.ack <= now,
        };
        end.waiting.expire(due, oldest, course, now, nodes);
    }

    /// An end has done what the event made it do.
    pub(super) fn quic_acted(&mut self, slot: u32, role: Role, now: Time, inside: &QuicConnection) {
        let Some((connection, datagrams, nodes)) = self.open_quic(slot) else {
            return;
        };
        let course = &connection.course;
        let end = &mut datagrams.ends(slot)[role as usize];
        let after = inside.timers();
        let before = std::mem::replace(&mut end.timers, after);
        let has_sent = std::mem::take(&mut end.waiting.has_sent);
        if after.loss != before.loss && after.loss < Time::NEVER {
            end.loss_set_at = now;
        }
        // The one that is due first may be that of other packets, which was off.
        if before.probe == Time::NEVER || after.probe_since < before.probe_since {
            end.probe_since = now;
        } else if after.probe_since != before.probe_since {
            end.probe_since = after.probe_since;
        }
        // An acknowledgement may change the pace of what is held already.
        let is_held = after.hold < Time::NEVER;
        if !is_held || end.waiting.hold == NONE || has_sent {
            end.waiting.set_hold(is_held, course, nodes);
        }
        end.forget_acknowledged(inside, nodes);
        // The bytes that are out know what the probe is for.
        let has_bytes = end.bytes.iter().any(|it| it.1.oldest().is_some());
        let probe = match has_bytes {
            true => Time::NEVER,
            false => after.probe,
        };
        let asks = std::mem::replace(&mut end.asks_at, probe);
        if after.ack != before.ack {
            course.set(&mut end.waiting.delayed, after.ack < Time::NEVER, nodes);
        }
        if probe != asks {
            course.set(&mut end.probe, probe < Time::NEVER, nodes);
        }
        if !end.waiting.runs.is_empty() {
            let oldest = end.oldest(nodes);
            end.waiting.forget_runs(oldest, nodes);
        }
    }
}

/// A datagram in a story.
#[cold]
fn story_row(inspector: &mut Inspector, datagram: &[u8], sender: Role, now: Time) -> StoryRow {
    let mut frames = Frames::default();
    // Bytes of a stream, else of the handshake.
    let (mut of_stream, mut of_handshake) = (None, None);
    inspector.look(datagram, |carried| {
        let name = match carried {
            Carried::Packet(PacketKind::Initial) => "Initial",
            Carried::Packet(PacketKind::ZeroRtt) => "0-RTT",
            Carried::Packet(PacketKind::Handshake) => "Handshake",
            Carried::Packet(PacketKind::OneRtt) => "1-RTT",
            Carried::Bytes { of, from, len, fin } => {
                if fin {
                    frames = frames.with("FIN");
                }
                let (range, name) = match of {
                    Numbered::Stream(_) => (&mut of_stream, "STREAM"),
                    Numbered::Crypto(_) => (&mut of_handshake, "CRYPTO"),
                };
                let (first, sum) = range.unwrap_or((from, 0));
                *range = Some((first, sum + len));
                name
            }
            Carried::Ack => "ACK",
            Carried::Ping => "PING",
            Carried::Stated(Stated::Data | Stated::Stream(_), _) => "MAX_DATA",
            Carried::Stated(Stated::Streams(_), _) => "MAX_STREAMS",
            Carried::Stated(Stated::Done, _) => "HANDSHAKE_DONE",
            Carried::Close => "CLOSE",
            Carried::Other => return,
        };
        frames = frames.with(name);
    });
    let (from, len) = of_stream.or(of_handshake).unwrap_or_default();
    StoryRow {
        sender: Some(sender),
        segment: [from, 0, len],
        frames,
        ..StoryRow::new(StoryEvent::Sent, now)
    }
}
