//! What the paths of exchanges over QUIC have of their own.
//!
//! A lost datagram is not repeated: its bytes leave again in a new datagram. A datagram with bytes that have
//! left before, or with a limit that was stated before, takes the vector of the datagram that had these bytes
//! first. The timers are the probe time-out, which runs since something left that asks for an answer, the
//! time threshold, the pacer's timer and the timer of a delayed acknowledgement.

use std::collections::VecDeque;

use aqmlab_net::{Role, Time};
use aqmlab_record::{Frames, LostSegment, Part, PathCount, StoryEvent, StoryRow};
use aqmlab_stacks::{
    Carried, Inspector, Numbered, PacketKind, QuicConnection, QuicTimers, Stated, Waits,
};

use super::{Connection, Kind, Paths, Run, detour, forget_runs};
use crate::breakdown::label::Label;
use crate::breakdown::nodes::{NONE, Nodes, Vector};
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

/// Bytes that are not acknowledged, up to before `end`: the trip of the datagram that had them first.
#[derive(Debug)]
struct First {
    from: u64,
    end: u64,
    trip: Vector,
}

/// Numbered bytes of an end, of which some are not acknowledged.
#[derive(Debug)]
struct Bytes {
    of: Numbered,
    /// Behind the highest that was sent.
    max: u64,
    /// In the order of their numbers, without overlaps.
    firsts: VecDeque<First>,
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    bytes: Vec<Bytes>,
    /// Limits that were stated last, with the datagrams that did it first.
    stated: Vec<(Stated, u64, Vector)>,
    /// Timers that have expired since the oldest of the bytes left.
    runs: Vec<Run>,
    /// Its timers, when it had last done something.
    timers: QuicTimers,
    /// When the timer of the time threshold was set last.
    loss_set_at: Time,
    /// Since when that of the probe runs: it is off while a peer may not answer.
    probe_since: Time,
    /// When the probe is due that asks although no bytes are out.
    asks_at: Time,
    /// What set the timers of the pacer, the delayed acknowledgement and the probe.
    hold: (Vector, Label),
    delayed: Vector,
    probe: Vector,
    /// It has sent bytes because of the event that is being handled.
    has_sent: bool,
}

impl Default for End {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            stated: Vec::new(),
            runs: Vec::new(),
            timers: QuicTimers::NONE,
            loss_set_at: Time::ZERO,
            probe_since: Time::ZERO,
            asks_at: Time::NEVER,
            hold: (NONE, Label::Exchange),
            delayed: NONE,
            probe: NONE,
            has_sent: false,
        }
    }
}

impl Bytes {
    /// The datagram that had this one first.
    fn find(&self, number: u64) -> Option<Vector> {
        let behind = self.firsts.partition_point(|first| first.end <= number);
        let first = self.firsts.get(behind)?;
        (first.from <= number).then_some(first.trip)
    }
}

impl End {
    /// The datagram that carried first what a datagram carries again.
    fn first_of(&self, contents: &Contents) -> Option<Vector> {
        for &(of, from, _) in &contents.bytes {
            if let Some(bytes) = self.bytes.iter().find(|it| it.of == of)
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
            let known = self.bytes.iter().find(|it| it.of == *of);
            known.is_none_or(|it| *end > it.max)
        }) || stated.any(|(of, value)| {
            let known = self.stated.iter().find(|it| it.0 == *of);
            known.is_none_or(|it| *value > it.1)
        })
    }

    /// The datagram of a trip carries this: what of it is new is remembered.
    fn remember(&mut self, contents: &Contents, trip: Vector, nodes: &mut Nodes) {
        for &(of, from, end) in &contents.bytes {
            let place = self.bytes.iter().position(|it| it.of == of);
            let place = place.unwrap_or_else(|| {
                self.bytes.push(Bytes {
                    of,
                    max: 0,
                    firsts: VecDeque::new(),
                });
                self.bytes.len() - 1
            });
            let bytes = &mut self.bytes[place];
            if end <= bytes.max {
                continue;
            }
            bytes.firsts.push_back(First {
                from: from.max(bytes.max),
                end,
                trip: nodes.share(trip),
            });
            bytes.max = end;
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
        let fronts = self.bytes.iter().filter_map(|it| it.firsts.front());
        let trips = fronts.map(|first| first.trip);
        trips.min_by_key(|trip| nodes.departure(*trip).sent)
    }

    /// The pacer lets go what it has held.
    fn release_hold(&mut self, connection: &mut Connection, now: Time, nodes: &mut Nodes) {
        let (vector, label) = std::mem::replace(&mut self.hold, (NONE, Label::Exchange));
        connection.label = label;
        let vector = connection.ended(vector, (Part::Pacing, None), now, nodes);
        connection.set_current(vector, nodes);
    }

    fn forget_acknowledged(&mut self, inside: &QuicConnection, nodes: &mut Nodes) {
        self.bytes.retain_mut(|bytes| {
            if bytes.firsts.is_empty() {
                return true;
            }
            let acknowledged = inside.acknowledged(bytes.of);
            while let Some(first) = bytes.firsts.front()
                && first.end <= acknowledged
            {
                nodes.release(first.trip);
                bytes.firsts.pop_front();
            }
            acknowledged < u64::MAX
        });
    }

    fn clear(&mut self, nodes: &mut Nodes) {
        let firsts = self.bytes.drain(..).flat_map(|bytes| bytes.firsts);
        let trips = firsts.map(|first| first.trip);
        let stated = self.stated.drain(..).map(|(.., trip)| trip);
        let set = [self.hold.0, self.delayed, self.probe];
        for vector in trips.chain(stated).chain(set) {
            nodes.release(vector);
        }
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
        if nodes.until(connection.current) < now && end.hold.0 != NONE {
            end.release_hold(connection, now, nodes);
        }
        connection.settle(now, nodes);
        end.has_sent |= !contents.bytes.is_empty();
        let first = end.first_of(contents);
        let (cause, label) = match first {
            Some(first) => detour((first, &end.runs), connection.origin, now, nodes),
            None if contents.has_handshake && !contents.has_data => {
                (nodes.share(connection.current), Label::Handshake)
            }
            None => (nodes.share(connection.current), connection.label),
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
        connection.label = waited_for.unwrap_or(Label::Exchange);
        connection.by_timer = false;
        let label = (is_pure && !is_of_handshake).then_some(connection.label);
        let vector = nodes.arrives(trip, label, connection.origin, now);
        connection.set_current(vector, nodes);
    }

    /// A timer of an end expires.
    pub(super) fn quic_expires(&mut self, slot: u32, role: Role, now: Time) {
        let Some((connection, datagrams, nodes)) = self.open_quic(slot) else {
            return;
        };
        let end = &mut datagrams.ends(slot)[role as usize];
        let timers = end.timers;
        (connection.by_timer, connection.label) = (true, Label::Recovery);
        let run = if timers.loss <= now {
            Some((Kind::Reordering, end.loss_set_at))
        } else if timers.probe <= now {
            Some((Kind::QuicProbe, end.probe_since))
        } else {
            None
        };
        let vector = if let Some((kind, since)) = run {
            let before = end.runs.last().map_or(Time::ZERO, |run| run.to);
            let from = since.max(before);
            end.runs.push(Run {
                kind,
                from,
                to: now,
            });
            match end.oldest(nodes) {
                Some(oldest) => {
                    let runs = (oldest, &end.runs[..]);
                    Some(detour(runs, connection.origin, now, nodes).0)
                }
                // It asks although nothing with bytes is out.
                None if kind == Kind::QuicProbe && end.probe != NONE => {
                    let what = match timers.is_of_handshake {
                        true => (
                            Part::HandshakeProbeTimeout,
                            Some(PathCount::HandshakeProbeTimeouts),
                        ),
                        false => (Part::ProbeTimeout, Some(PathCount::ProbeTimeouts)),
                    };
                    let vector = std::mem::replace(&mut end.probe, NONE);
                    Some(connection.ended(vector, what, now, nodes))
                }
                None => None,
            }
        } else if timers.hold <= now && end.hold.0 != NONE {
            return end.release_hold(connection, now, nodes);
        } else if timers.ack <= now && end.delayed != NONE {
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

    /// An end has done what the event made it do.
    pub(super) fn quic_acted(&mut self, slot: u32, role: Role, now: Time, inside: &QuicConnection) {
        let Some((connection, datagrams, nodes)) = self.open_quic(slot) else {
            return;
        };
        let end = &mut datagrams.ends(slot)[role as usize];
        let after = inside.timers();
        let before = std::mem::replace(&mut end.timers, after);
        let has_sent = std::mem::take(&mut end.has_sent);
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
        if !is_held || end.hold.0 == NONE || has_sent {
            let held = match is_held {
                true => (nodes.share(connection.current), connection.label),
                false => (NONE, Label::Exchange),
            };
            nodes.release(std::mem::replace(&mut end.hold, held).0);
        }
        end.forget_acknowledged(inside, nodes);
        // The bytes that are out know what the probe is for.
        let has_bytes = end.bytes.iter().any(|bytes| !bytes.firsts.is_empty());
        let probe = match has_bytes {
            true => Time::NEVER,
            false => after.probe,
        };
        let asks = std::mem::replace(&mut end.asks_at, probe);
        for (old, new, vector) in [
            (before.ack, after.ack, &mut end.delayed),
            (asks, probe, &mut end.probe),
        ] {
            if new != old {
                let set = match new < Time::NEVER {
                    true => nodes.share(connection.current),
                    false => NONE,
                };
                nodes.release(std::mem::replace(vector, set));
            }
        }
        if !end.runs.is_empty() {
            let oldest = end.oldest(nodes);
            forget_runs(&mut end.runs, oldest, nodes);
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
