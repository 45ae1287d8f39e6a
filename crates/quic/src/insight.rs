//! What records ask of a connection: why it does something, and what its datagrams carry.
//!
//! A lost datagram is not repeated: its bytes leave again in a new datagram. The numbers of those bytes, and
//! the value of a limit, show what leaves again.

use aqmlab_net::Time;

use crate::connection::{Connection, DATA, HANDSHAKE, INITIAL};
use crate::wire::{AckFrame, Frame, Kind, Next, PREFIX, Reader};

/// Bytes with numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// What the handshake says in packets of this kind.
    Crypto(Kind),
    /// A stream.
    Stream(u64),
}

/// A limit of which only the highest value counts; what is said once has one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// MAX_DATA.
    Data,
    /// MAX_STREAM_DATA of this stream.
    Stream(u64),
    /// MAX_STREAMS; whether of those in one direction.
    Streams(bool),
    /// HANDSHAKE_DONE.
    Done,
}

/// Something that a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A packet, which has what follows.
    Packet(Kind),
    /// Bytes from `from` on; the end of a stream counts as one, and has none in `len`.
    Bytes {
        /// Whose numbers.
        of: Numbered,
        /// The first.
        from: u64,
        /// How many there are.
        len: u64,
        /// Behind them the stream ends.
        fin: bool,
    },
    /// A limit, and its value.
    Stated(Stated, u64),
    /// An acknowledgement.
    Ack,
    /// PING.
    Ping,
    /// CONNECTION_CLOSE.
    Close,
    /// What no one waits for.
    Other,
}

/// Reads datagrams that others send.
#[derive(Debug, Default)]
pub struct Inspector {
    ack: AckFrame,
}

impl Inspector {
    /// Gives all that a datagram in its carried form has, in order.
    pub fn look(&mut self, carried: &[u8], mut each: impl FnMut(Carried)) {
        let mut reader = Reader(carried.get(PREFIX..).unwrap_or_default());
        while let Some((kind, ..)) = reader.packet() {
            each(Carried::Packet(kind));
            while let Some(next) = reader.frame(&mut self.ack) {
                each(match next {
                    Next::Ack => Carried::Ack,
                    Next::Frame(frame) => Carried::of(kind, &frame),
                    Next::Malformed => Carried::Other,
                });
            }
        }
    }
}

impl Carried {
    const fn of(kind: Kind, frame: &Frame) -> Self {
        match *frame {
            Frame::Crypto { offset, len } => Self::Bytes {
                of: Numbered::Crypto(kind),
                from: offset,
                len,
                fin: false,
            },
            Frame::Stream {
                stream,
                offset,
                len,
                fin,
            } => Self::Bytes {
                of: Numbered::Stream(stream),
                from: offset,
                len,
                fin,
            },
            Frame::MaxData(limit) => Self::Stated(Stated::Data, limit),
            Frame::MaxStreamData { stream, limit } => Self::Stated(Stated::Stream(stream), limit),
            Frame::MaxStreams { uni, limit } => Self::Stated(Stated::Streams(uni), limit),
            Frame::HandshakeDone => Self::Stated(Stated::Done, 0),
            Frame::Ping => Self::Ping,
            Frame::Close { .. } => Self::Close,
            _ => Self::Other,
        }
    }
}

/// When the timers of an end are due; [`Time::NEVER`]: they do not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// A packet that is behind later ones counts as lost (the time threshold).
    pub loss: Time,
    /// The probe time-out.
    pub probe: Time,
    /// Since when that runs.
    pub probe_since: Time,
    /// It is that of a packet of the handshake.
    pub is_of_handshake: bool,
    /// A delayed acknowledgement.
    pub ack: Time,
    /// The pacer lets the next datagram go.
    pub hold: Time,
}

impl Timers {
    /// None of them runs.
    pub const NONE: Self = Self {
        loss: Time::NEVER,
        probe: Time::NEVER,
        probe_since: Time::NEVER,
        is_of_handshake: false,
        ack: Time::NEVER,
        hold: Time::NEVER,
    };
}

/// What keeps an end from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// A server may send three times what has come, until it knows the client's address.
    Amplification,
    /// Its congestion window, while it repairs losses.
    Recovery,
    /// The peer's limit of data, on the stream or on all.
    FlowControl,
    /// Its congestion window, in slow start.
    SlowStart,
    /// Its congestion window, in congestion avoidance.
    CongestionAvoidance,
}

impl Connection {
    /// Its timers.
    pub fn timers(&self) -> Timers {
        if self.is_closed() {
            return Timers::NONE;
        }
        let loss = self.loss_timer().map_or(Time::NEVER, |(due, _)| due);
        let probe = self.probe_timer().filter(|_| loss == Time::NEVER);
        let mut ack = Time::NEVER;
        if !self.is_amplifying() {
            for space in &self.spaces[self.open_spaces()] {
                ack = ack.min(space.ack_at);
            }
        }
        Timers {
            loss,
            probe: probe.map_or(Time::NEVER, |(due, _)| due),
            probe_since: match probe {
                Some((_, index)) if self.has_eliciting_out() => {
                    self.spaces[index].last_eliciting_at
                }
                Some(_) => self.asked_at(),
                None => Time::NEVER,
            },
            is_of_handshake: probe.is_some_and(|(_, index)| index != DATA),
            ack,
            hold: self.paced_until,
        }
    }

    /// What keeps it from sending more; nothing where it cannot send data yet.
    pub fn waits_for(&self) -> Option<Waits> {
        let window = self.congestion.window();
        Some(if self.is_amplifying() {
            Waits::Amplification
        } else if !self.has_one_rtt {
            return None;
        } else if self.congestion.recovering {
            Waits::Recovery
        } else if self.streams.are_held() {
            Waits::FlowControl
        } else if self
            .congestion
            .law
            .ssthresh()
            .is_none_or(|threshold| window < threshold)
        {
            Waits::SlowStart
        } else {
            Waits::CongestionAvoidance
        })
    }

    /// Up to which number everything is acknowledged, or will never go again.
    pub fn acknowledged(&self, of: Numbered) -> u64 {
        let index = match of {
            Numbered::Stream(stream) => return self.streams.acknowledged(stream),
            Numbered::Crypto(Kind::Initial) => INITIAL,
            Numbered::Crypto(Kind::Handshake) => HANDSHAKE,
            Numbered::Crypto(_) => DATA,
        };
        let space = &self.spaces[index];
        match space.is_discarded {
            true => u64::MAX,
            false => space.crypto.acknowledged(),
        }
    }

    /// Whether what its client sends in 0-RTT is of no use: the server does not take it.
    pub fn wastes_early_data(&self) -> bool {
        self.config.early.is_some_and(|early| !early.accepted)
    }
}
