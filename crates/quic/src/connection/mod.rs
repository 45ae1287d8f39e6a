//! One end of a connection.

mod acks;
mod handshake;
mod receive;
mod timers;
mod transmit;

use std::sync::Arc;

use aqmlab_net::{Ecn, Role, Time};
use aqmlab_tcp::{ControlState, Law};

use crate::config::{CLIENT_HELLO, Config};
use crate::congestion::Congestion;
use crate::error::Error;
use crate::rtt::Rtt;
use crate::space::Space;
use crate::streams::{Event, Streams};
use crate::wire::AckFrame;

/// The packet number spaces, by index.
pub(crate) const INITIAL: usize = 0;
pub(crate) const HANDSHAKE: usize = 1;
pub(crate) const DATA: usize = 2;

/// A datagram that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its UDP payload on the wire.
    pub size: usize,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// How the connection fares as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Open,
    /// It was closed here: what comes is answered by that, until then.
    Closing {
        until: Time,
        error: u64,
        says: bool,
    },
    /// The other end has closed it.
    Draining {
        until: Time,
    },
    Over,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    pub(crate) config: Arc<Config>,
    life: Life,
    pub(crate) spaces: [Space; 3],
    pub(crate) streams: Streams,
    rtt: Rtt,
    pub(crate) congestion: Congestion,
    /// How often the probe time-out has expired in a row.
    expiries: u32,
    // ---- the handshake ----
    /// It is complete, and confirmed.
    is_complete: bool,
    is_confirmed: bool,
    /// 1-RTT packets may be sent; before that a client may have the keys of 0-RTT.
    pub(crate) has_one_rtt: bool,
    is_early: bool,
    done_is_due: bool,
    /// The server knows the client's address; a client: the server does.
    is_validated: bool,
    /// UDP payload received and sent.
    volume: [u64; 2],
    /// Packets whose keys are still to come, with their ECN fields.
    held: Vec<(Vec<u8>, Ecn)>,
    // ---- ECN ----
    is_capable: bool,
    // ---- timers ----
    /// When a packet came last, or the first ack-eliciting one left after that.
    active_at: Time,
    has_sent_since: bool,
    /// When the pacer lets the next datagram go; it waits for nothing else.
    pub(crate) paced_until: Time,
    /// When there was nothing to send, if nothing has happened since.
    quiet_at: Time,
    // ---- buffers ----
    ack: AckFrame,
    // ---- for records ----
    lost: u32,
    duplicates: u32,
    sample: Option<Time>,
}

impl Connection {
    /// One end of a connection that a client opens now.
    pub fn new(config: Arc<Config>, role: Role, now: Time) -> Self {
        let law = Law::new(Arc::clone(&config.stack), config.initial_window);
        let mut connection = Self {
            role,
            life: Life::Open,
            spaces: Default::default(),
            streams: Streams::new(role, config.limits),
            rtt: Rtt::default(),
            congestion: Congestion::new(law, config.datagram, (config.burst, config.in_bursts)),
            expiries: 0,
            is_complete: false,
            is_confirmed: false,
            has_one_rtt: false,
            is_early: false,
            done_is_due: false,
            is_validated: false,
            volume: [0; 2],
            held: Vec::new(),
            is_capable: config.ecn,
            active_at: now,
            has_sent_since: false,
            paced_until: Time::NEVER,
            quiet_at: Time::NEVER,
            ack: AckFrame::default(),
            lost: 0,
            duplicates: 0,
            sample: None,
            config,
        };
        connection.spaces[INITIAL].has_keys = true;
        if role == Role::Client {
            connection.spaces[INITIAL].say(CLIENT_HELLO);
            if let Some(early) = connection.config.early {
                connection.is_early = true;
                connection.streams.set_peer(&early.remembered);
            }
        }
        connection
    }

    // ---- the application ----

    /// Whether data may be sent that the peer can read: a server may before the handshake is complete.
    pub const fn may_send(&self) -> bool {
        self.has_one_rtt
    }

    /// What has happened since the last call.
    pub fn next_event(&mut self) -> Option<Event> {
        self.streams.events.pop_front()
    }

    /// Opens a stream, in one direction or in both; nothing while the peer does not let us.
    pub fn open(&mut self, uni: bool) -> Option<u64> {
        self.quiet_at = Time::NEVER;
        self.streams.open(uni)
    }

    /// Writes so many bytes to a stream, and its end.
    pub fn write(&mut self, stream: u64, bytes: u64, close: bool) {
        self.quiet_at = Time::NEVER;
        self.streams.write(stream, bytes, close);
    }

    /// Has what is written to a stream sent in the order of urgency (RFC 9218): from 0, which goes first, to 7.
    /// Streams of the same urgency go one after the other. Those without one go before all others, in turns.
    pub fn prioritise(&mut self, stream: u64, urgency: u8) {
        self.streams.rank(stream, urgency);
    }

    /// Gives up a stream that is being sent.
    pub fn reset(&mut self, stream: u64) {
        self.quiet_at = Time::NEVER;
        self.streams.reset(stream);
    }

    /// Bytes of a stream that can be read.
    pub fn readable(&self, stream: u64) -> u64 {
        self.streams.readable(stream)
    }

    /// Reads at most so many bytes of a stream; how many there were.
    pub fn read(&mut self, stream: u64, most: u64) -> u64 {
        self.quiet_at = Time::NEVER;
        self.streams.read(stream, most)
    }

    /// Closes the connection, whatever is under way.
    pub fn close(&mut self, now: Time) {
        self.close_with(Error::None, now);
    }

    fn close_with(&mut self, error: Error, now: Time) {
        self.quiet_at = Time::NEVER;
        if self.life == Life::Open {
            let until = now + self.probe_timeout(true) * 3;
            self.life = Life::Closing {
                until,
                error: error as u64,
                says: true,
            };
        }
    }

    // ---- for records ----

    /// The congestion window in bytes, and the slow-start threshold if there is one.
    pub fn window(&self) -> (u64, Option<u64>) {
        (self.congestion.window(), self.congestion.law.ssthresh())
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.congestion.in_flight
    }

    /// The inner state of the congestion control. The pace is of the datagrams' payload.
    pub fn control(&self) -> ControlState {
        let srtt = self.rtt.first_at.map(|_| self.rtt.smoothed);
        ControlState {
            pacing_rate: self.congestion.rate,
            ..self.congestion.law.state(srtt)
        }
    }

    /// Whether nothing that was sent after the last congestion has arrived.
    pub fn is_recovering(&self) -> bool {
        self.congestion.recovering
    }

    /// The smoothed round trip; the RFC's guess before the first sample.
    pub fn round_trip(&self) -> Time {
        self.rtt.smoothed
    }

    /// A round trip that was measured since the last call.
    pub fn take_sample(&mut self) -> Option<Time> {
        self.sample.take()
    }

    /// Packets declared lost since the last call.
    pub fn take_losses(&mut self) -> u32 {
        std::mem::take(&mut self.lost)
    }

    /// Packets that arrived twice.
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Whether it was closed, here or there.
    pub fn is_closed(&self) -> bool {
        self.life != Life::Open
    }

    /// Whether it will never send anything again.
    pub fn is_silent(&self) -> bool {
        matches!(self.life, Life::Draining { .. } | Life::Over)
    }
}
