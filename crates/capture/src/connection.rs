//! One TCP connection as a tap sees it.
//!
//! Of each side's sequence space only the end of what has been seen is kept: sizes of ADUs are
//! differences of sequence numbers, so holes, reordering, repetitions and wrapped numbers change
//! nothing. Data that an acknowledgement covers and the tap did not see (a capture that lost
//! packets, or sees one direction only) count as sent when they were acknowledged.

use aqmlab_net::Time;
use aqmlab_traffic::vector::{Body, ConnectionVector, MAX_TIME};

use crate::conversation::{Conversation, NewData, Timing};
use crate::decode::{ACK, Endpoint, FIN, RST, SYN, TcpHeader};
use crate::reasons::{Omission, Origin, Part};
use crate::report::PacketReport;

/// Both ends of a connection, the smaller one first: side 0 and side 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends(pub(crate) [Endpoint; 2]);

/// The largest window (RFC 7323, section 2.2); no data can be further ahead.
const MAX_WINDOW: u64 = 1 << 30;

/// Where unwrapped sequence numbers begin, so that none is negative.
const BASE: u64 = 1 << 32;

/// What is known of one side.
#[derive(Debug)]
struct Side {
    /// Behind the last byte that was seen, in sequence numbers that do not wrap.
    high: u64,
    /// Behind the last byte that the other side has acknowledged.
    acked: u64,
    /// When that acknowledgement passed.
    acked_at: Time,
    /// Where its FIN stands; `u64::MAX` if none was seen.
    fin: u64,
    /// Data up to here were acknowledged, at these times, but not seen.
    unseen: u64,
    unseen_first: Time,
    unseen_last: Time,
    /// Behind a segment that is being timed, 0 for none, and when it passed.
    timed: u64,
    timed_at: Time,
    /// Least time from the tap to this side and back.
    round_trip: Time,
    /// When data of it came last, were they new or not.
    busy: Time,
    /// When its FIN or a RST was seen.
    closed: Time,
    /// Sequence number of its SYN.
    isn: u32,
    /// Largest window field besides those of SYNs.
    window: u16,
    /// Maximum segment size that its SYN announced, 0 for none.
    segment_size: u16,
    /// Window scale that its SYN announced, [`NO_SCALE`] for none.
    scale: u8,
    /// Whether packets of it were seen.
    seen: bool,
    /// Whether its sequence numbers are known.
    known: bool,
    /// Whether its SYN was seen.
    syn: bool,
    /// Whether the other side's window was closed since its latest data.
    stalled: bool,
}

const NO_SCALE: u8 = u8::MAX;

impl Side {
    const fn new() -> Self {
        Self {
            high: BASE,
            acked: BASE,
            acked_at: Time::ZERO,
            fin: u64::MAX,
            unseen: 0,
            unseen_first: Time::NEVER,
            unseen_last: Time::NEVER,
            timed: 0,
            timed_at: Time::ZERO,
            round_trip: Time::NEVER,
            busy: Time::ZERO,
            closed: Time::NEVER,
            isn: 0,
            window: 0,
            segment_size: 0,
            scale: NO_SCALE,
            seen: false,
            known: false,
            syn: false,
            stalled: false,
        }
    }

    /// Begins at this sequence number, unless it has begun.
    const fn learn(&mut self, seq: u32) {
        if !self.known {
            self.known = true;
            self.high = BASE + seq as u64;
            self.acked = self.high;
        }
    }

    /// The full sequence number whose low 32 bits are `low`, nearest to what has been seen.
    const fn unwrap(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.high as u32).cast_signed();
        self.high.saturating_add_signed(ahead as i64)
    }

    /// Whether a segment of one byte at most is a keep-alive (RFC 9293, section 3.8.4): in front of
    /// what is acknowledged.
    const fn is_probed_by(&self, segment: &Segment) -> bool {
        segment.start + 1 == self.high && self.acked >= self.high
    }

    /// Whether the latest acknowledgement has reached this side long since: in slow start over a
    /// long path every round trip is a silence at the tap. Twice the way there and back leaves room
    /// for queues.
    fn could_answer(&self, now: Time) -> bool {
        match self.round_trip {
            Time::NEVER => true,
            round_trip => now.saturating_sub(self.acked_at) > round_trip * 2,
        }
    }

    /// The other side has this. Returns the round trip of the segment that was timed, if it is
    /// among it.
    fn on_acknowledged(&mut self, ack: u64, now: Time) -> Option<Time> {
        let data = ack.min(self.fin);
        if data > self.high.max(self.unseen) {
            if self.unseen <= self.high {
                self.unseen_first = now;
            }
            self.unseen_last = now;
            self.unseen = data;
        }
        if ack <= self.acked {
            return None;
        }
        self.acked = ack;
        self.acked_at = now;
        let timed = self.timed != 0 && ack >= self.timed;
        timed.then(|| {
            self.timed = 0;
            now.saturating_sub(self.timed_at)
        })
    }
}

/// Where a segment lies in its side's sequence space, and what it acknowledges of the other's.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: usize,
    start: u64,
    end: u64,
    ack: u64,
    now: Time,
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Until somebody answers the SYN-ACK.
    Opening,
    /// Until both have closed.
    Open,
    /// Both have sent a FIN.
    Closing,
    /// Reset, or both FINs acknowledged: nothing can follow.
    Over,
}

/// Why a connection's story ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is over.
    Closed,
    /// No packet came for a long time.
    Silence,
    /// The capture ends, or a new connection takes its ports.
    Cut,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) ends: Ends,
    sides: [Side; 2],
    conversation: Conversation,
    started: Time,
    /// For each side, when it could first send as far as the tap can tell.
    established: [Time; 2],
    pub(crate) last: Time,
    pub(crate) phase: Phase,
    reset: bool,
    /// The side that opened it, if SYNs show it.
    initiator: Option<(u8, Origin)>,
}

/// A vector, and how it was come by.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) vector: ConnectionVector,
    pub(crate) parts: Vec<Part>,
    pub(crate) origin: Origin,
    /// Initiator and acceptor.
    pub(crate) ends: [Endpoint; 2],
}

impl Connection {
    pub(crate) fn new(ends: Ends, now: Time) -> Self {
        Self {
            ends,
            sides: [Side::new(), Side::new()],
            conversation: Conversation::default(),
            started: now,
            established: [Time::NEVER; 2],
            last: now,
            phase: Phase::Opening,
            reset: false,
            initiator: None,
        }
    }

    /// Whether a SYN opens a new connection between the same ports, rather than being this one's.
    pub(crate) fn is_reopened_by(&self, header: &TcpHeader, from: usize) -> bool {
        let side = &self.sides[from];
        let is_own = match side.syn {
            true => side.isn == header.seq,
            // An answer to it may have been captured before it.
            false => {
                side.known
                    && self.phase == Phase::Opening
                    && side.high as u32 == header.seq.wrapping_add(1)
            }
        };
        let is_first_answer = header.flags & ACK != 0 && !side.syn && self.phase == Phase::Opening;
        header.flags & SYN != 0 && !is_own && !is_first_answer
    }

    /// A packet of side `from`.
    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        header: &TcpHeader,
        from: usize,
        now: Time,
        idle: Time,
        packets: &mut PacketReport,
    ) {
        self.last = now;
        self.sides[from].seen = true;
        if header.flags & RST != 0 {
            // Numbers of resets mean little: a closed port makes them up.
            self.on_reset(now);
            return;
        }
        if header.flags & SYN != 0 {
            self.on_syn(header, from, now);
        } else {
            self.on_no_syn(header, from, now);
        }
        let Some(ack) = self.on_ack(header, from, now) else {
            packets.implausible += 1;
            return;
        };
        let first = header.seq.wrapping_add(u32::from(header.flags & SYN != 0));
        let start = self.sides[from].unwrap(first);
        let segment = Segment {
            from,
            start,
            end: start + u64::from(header.payload),
            ack,
            now,
        };
        if segment.end > self.sides[from].high + MAX_WINDOW {
            packets.implausible += 1;
            return;
        }
        let is_probe = header.payload <= 1 && header.flags & (SYN | FIN) == 0;
        if is_probe && self.sides[from].is_probed_by(&segment) {
            packets.keep_alives += 1;
        } else if header.payload > 0 {
            packets.repeated += u64::from(!self.on_data(&segment, idle));
        }
        if header.flags & FIN != 0 {
            self.on_fin(&segment);
        }
    }

    fn on_reset(&mut self, now: Time) {
        self.reset = true;
        self.phase = Phase::Over;
        for side in &mut self.sides {
            side.closed = side.closed.min(now);
        }
    }

    fn on_syn(&mut self, header: &TcpHeader, from: usize, now: Time) {
        let answers = header.flags & ACK != 0;
        let side = &mut self.sides[from];
        if side.syn {
            // Sent again: an answer could be to either (Karn's rule).
            side.timed = 0;
            if answers {
                // The acknowledgement that passed the tap was lost behind it.
                self.established[from] = Time::NEVER;
            }
            return;
        }
        side.syn = true;
        side.known = true;
        side.isn = header.seq;
        side.high = BASE + u64::from(header.seq) + 1;
        // The SYN itself counts one and is to be acknowledged.
        side.acked = side.high - 1;
        side.timed = side.high;
        side.timed_at = now;
        side.segment_size = header.options.segment_size.unwrap_or(0);
        side.scale = header.options.window_scale.unwrap_or(NO_SCALE);
        if self.initiator.is_none() {
            self.initiator = Some(match answers {
                false => (from as u8, Origin::Syn),
                true => (1 - from as u8, Origin::SynAck),
            });
        }
    }

    /// Anything but a SYN shows that its sender takes the connection as established.
    fn on_no_syn(&mut self, header: &TcpHeader, from: usize, now: Time) {
        let side = &mut self.sides[from];
        side.learn(header.seq);
        side.window = side.window.max(header.window);
        if self.initiator.is_none_or(|(i, _)| i as usize == from) {
            for established in &mut self.established {
                *established = (*established).min(now);
            }
        }
        if self.phase == Phase::Opening {
            self.phase = Phase::Open;
        }
    }

    /// Returns what the segment acknowledges, or everything if it has no acknowledgement; `None` if
    /// that cannot be.
    #[inline]
    fn on_ack(&mut self, header: &TcpHeader, from: usize, now: Time) -> Option<u64> {
        if header.flags & ACK == 0 {
            return Some(u64::MAX);
        }
        let other = &mut self.sides[1 - from];
        other.learn(header.ack);
        let ack = other.unwrap(header.ack);
        if ack > other.high + MAX_WINDOW {
            return None;
        }
        if let Some(round_trip) = other.on_acknowledged(ack, now) {
            let side = &mut self.sides[from];
            side.round_trip = side.round_trip.min(round_trip);
        }
        let other = &mut self.sides[1 - from];
        other.stalled |= header.window == 0;
        if self.phase == Phase::Closing && self.sides.iter().all(|side| side.acked > side.fin) {
            self.phase = Phase::Over;
        }
        Some(ack)
    }

    /// Data; returns whether some of it is new.
    #[inline]
    fn on_data(&mut self, segment: &Segment, idle: Time) -> bool {
        let Segment { from, end, now, .. } = *segment;
        let side = &mut self.sides[from];
        // A repetition, too, shows that the side was not silent: it waited for an acknowledgement,
        // which may have been lost behind the tap.
        let silence = now.saturating_sub(std::mem::replace(&mut side.busy, now));
        if end <= side.high {
            if end > side.acked {
                side.timed = 0;
                self.conversation.on_repeated(from, now);
            }
            return false;
        }
        self.believe(1 - from, segment.ack);
        let crossed = segment.ack < self.sides[1 - from].high;
        let side = &mut self.sides[from];
        let is_free = side.acked >= side.high && !side.stalled && side.could_answer(now);
        self.conversation.on_data(NewData {
            side: from,
            bytes: end - side.high,
            now,
            crossed,
            idle: is_free && silence > idle,
        });
        side.high = end;
        side.stalled = false;
        if side.timed == 0 {
            side.timed = end;
            side.timed_at = now;
        }
        true
    }

    /// Takes data as sent that the other side has acknowledged without the tap having seen them.
    fn believe(&mut self, of: usize, up_to: u64) {
        let side = &mut self.sides[of];
        let end = up_to.min(side.unseen);
        if end <= side.high {
            return;
        }
        let data = NewData {
            side: of,
            bytes: end - side.high,
            now: side.unseen_first,
            crossed: false,
            idle: false,
        };
        side.high = end;
        let last = side.unseen_last;
        self.conversation.on_data(data);
        self.conversation.on_repeated(of, last);
    }

    fn on_fin(&mut self, segment: &Segment) {
        let side = &mut self.sides[segment.from];
        if side.fin == u64::MAX {
            side.fin = segment.end;
            side.closed = side.closed.min(segment.now);
        }
        let both = self.sides.iter().all(|side| side.fin != u64::MAX);
        if both && self.phase != Phase::Over {
            self.phase = Phase::Closing;
        }
    }

    /// The vector of a connection of which nothing more comes; times count from `origin`.
    pub(crate) fn finish(
        &mut self,
        id: u64,
        origin: Time,
        ending: Ending,
        idle: Time,
    ) -> Result<Made, Omission> {
        self.believe_the_rest();
        if self.conversation.is_empty() {
            let answered = self.sides.iter().all(|side| side.syn) || self.phase == Phase::Open;
            return Err(match (answered, self.reset) {
                (false, true) if self.initiator.is_some() => Omission::Refused,
                (false, false) if self.initiator.is_some() => Omission::Unanswered,
                _ => Omission::NoData,
            });
        }
        let parts = self.missing(ending);
        let (initiator, shown_by) = self.initiator();
        let order = [initiator, 1 - initiator];
        let timing = Timing {
            established: self.established.map(|time| time.min(self.last)),
            loops: [0, 1].map(|side| self.sides[side].round_trip),
            closed: [0, 1].map(|side| self.sides[side].closed),
            idle,
        };
        let body = self.conversation.body(initiator, &timing);
        self.conversation = Conversation::default();
        Ok(Made {
            vector: ConnectionVector {
                start: self.started.saturating_sub(origin).min(MAX_TIME),
                id,
                body,
                windows: order.map(|side| self.window(side)),
                segments: order.map(|side| match self.sides[side].segment_size {
                    0 => None,
                    size => Some(u32::from(size)),
                }),
                rtt: self.round_trip().map(|rtt| rtt.min(MAX_TIME)),
                loss: None,
            },
            parts,
            origin: shown_by,
            ends: order.map(|side| self.ends.0[side]),
        })
    }

    /// What was acknowledged and never seen, behind all that was seen.
    fn believe_the_rest(&mut self) {
        for of in [0, 1] {
            let side = &self.sides[of];
            // An orderly end acknowledges a FIN too, which was not seen either.
            let fin = side.fin == u64::MAX && self.sides[1 - of].fin != u64::MAX;
            self.believe(of, side.unseen - u64::from(fin && side.unseen > 0));
        }
    }

    fn missing(&self, ending: Ending) -> Vec<Part> {
        let is_open = !matches!(self.phase, Phase::Closing | Phase::Over);
        [
            (self.initiator.is_none(), Part::Beginning),
            (is_open && ending == Ending::Cut, Part::End),
            (!(self.sides[0].seen && self.sides[1].seen), Part::Direction),
            (is_open && ending == Ending::Silence, Part::Close),
            (self.conversation.is_cut(), Part::Adus),
        ]
        .into_iter()
        .filter_map(|(is_missing, part)| is_missing.then_some(part))
        .collect()
    }

    /// Who opened the connection: the side that sent the SYN. If no SYN was seen, the side whose
    /// port is not a system port (below 1024) if the other's is, else the side whose port is
    /// ephemeral (32768 and above) if the other's is not, else the side that sent data first.
    fn initiator(&self) -> (usize, Origin) {
        if let Some((side, origin)) = self.initiator {
            return (side.into(), origin);
        }
        let ports = self.ends.0.map(|end| end.port);
        for bound in [1024, 32768] {
            match ports.map(|port| port < bound) {
                [true, false] => return (1, Origin::Port),
                [false, true] => return (0, Origin::Port),
                _ => {}
            }
        }
        let first = self.conversation.first_side().unwrap_or(0);
        (first, Origin::FirstSender)
    }

    /// Maximum window that a side offered; unknown if its SYN, which has the scale, was not seen.
    fn window(&self, side: usize) -> Option<u32> {
        let (own, other) = (&self.sides[side], &self.sides[1 - side]);
        // Both must have offered to scale.
        let scale = match own.scale {
            NO_SCALE => 0,
            _ if other.syn && other.scale == NO_SCALE => 0,
            scale => scale,
        };
        (own.syn && own.window > 0).then(|| u32::from(own.window) << scale)
    }

    /// Minimum round-trip time: from the tap to both sides and back.
    fn round_trip(&self) -> Option<Time> {
        let [one, two] = [0, 1].map(|side| self.sides[side].round_trip);
        (one != Time::NEVER && two != Time::NEVER).then(|| one + two)
    }
}

impl Made {
    /// ADUs of the vector.
    pub(crate) fn adus(&self) -> usize {
        match &self.vector.body {
            Body::Sequential(adus) => adus.len(),
            Body::Concurrent(sides) => sides.iter().map(Vec::len).sum(),
        }
    }
}
