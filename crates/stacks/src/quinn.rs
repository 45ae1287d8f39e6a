//! QUIC by quinn-proto: an end of a connection, with a session without cryptography.
//!
//! All calls of quinn take an [`Instant`], which cannot be made from a number: one is taken for the
//! process, and the others lie so many nanoseconds behind it. It does not show in results.

mod control;
mod endpoint;
mod session;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use aqmlab_net::{Ecn, Role, Time};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event,
    StreamEvent, StreamId, VarInt,
};

use crate::settings::Quinn;
use crate::stack::{Burst, Progress, Stack, State};
use control::Seen;

/// Bytes that streams carry: no application looks at them.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The moment that stands for time 0 of every run.
static BASE: LazyLock<Instant> = LazyLock::new(Instant::now);

fn at(time: Time) -> Instant {
    *BASE + Duration::from_nanos(time.as_nanos())
}

/// The other end's address: quinn tells connections apart by their ids, and this end has only one.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 443);

/// An end of a connection.
///
/// Each direction has a stream of its own, which its sender opens: either end may speak first, and
/// closing is the end of the stream.
pub(crate) struct QuinnEnd {
    endpoint: Endpoint,
    /// The connection; a server has none until the client's first datagram.
    connection: Option<(ConnectionHandle, Connection)>,
    role: Role,
    has_ecn: bool,
    burst: usize,
    /// The stream that this end writes to.
    stream: Option<StreamId>,
    /// Bytes that the application has written and the stream has not taken yet.
    unwritten: u64,
    /// No more bytes will be written.
    closes: bool,
    /// The stream has its end.
    has_closed: bool,
    /// The other end has everything.
    is_acknowledged: bool,
    /// Everything that the other end sent has been received.
    has_everything: bool,
    /// What the application has not asked for yet.
    progress: Progress,
    /// A datagram that the endpoint answers with without a connection.
    response: Vec<u8>,
    seen: Arc<Seen>,
    /// How often losses were seen, and packets lost, when they were asked for last.
    counted: (u64, u64),
}

impl fmt::Debug for QuinnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuinnEnd").finish_non_exhaustive()
    }
}

impl QuinnEnd {
    pub(crate) fn new(
        settings: &Quinn,
        role: Role,
        (seed, connection): (u64, u64),
        now: Time,
    ) -> Self {
        let seen = Arc::new(Seen::default());
        let transport = endpoint::transport(settings, &seen);
        let mut end = Self {
            endpoint: endpoint::endpoint(settings, role, (seed, connection), &transport),
            connection: None,
            role,
            has_ecn: settings.ecn,
            burst: settings.burst as usize,
            stream: None,
            unwritten: 0,
            closes: false,
            has_closed: false,
            is_acknowledged: false,
            has_everything: false,
            progress: Progress::default(),
            response: Vec::new(),
            seen,
            counted: (0, 0),
        };
        if role == Role::Client {
            let config = endpoint::client(settings, (seed, connection), transport);
            end.connect(now, config);
        }
        end
    }

    fn connect(&mut self, now: Time, config: ClientConfig) {
        let opened = self.endpoint.connect(at(now), config, PEER, "server");
        self.connection = Some(opened.expect("the address and the version are right"));
    }

    /// Hands on what endpoint and connection have for each other, and what the connection has for
    /// the application.
    fn settle(&mut self, now: Time) {
        self.exchange();
        while let Some((_, connection)) = &mut self.connection
            && let Some(event) = connection.poll()
        {
            self.on_event(now, &event);
        }
        self.exchange();
    }

    fn exchange(&mut self) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }

    fn on_event(&mut self, now: Time, event: &Event) {
        match event {
            Event::Connected => {
                self.progress.established = true;
                self.write_on();
            }
            Event::ConnectionLost { .. } => self.on_lost(),
            Event::Stream(StreamEvent::Opened { .. }) => {
                let stream = self
                    .connection
                    .as_mut()
                    .and_then(|(_, connection)| connection.streams().accept(Dir::Uni));
                if let Some(stream) = stream {
                    self.read(now, stream);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(now, *id),
            Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                self.write_on();
            }
            Event::Stream(StreamEvent::Finished { .. }) => {
                self.is_acknowledged = true;
                self.close_if_complete(now);
            }
            Event::Stream(StreamEvent::Stopped { .. })
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => {}
        }
    }

    /// The connection is gone: closed by the other end, or given up.
    fn on_lost(&mut self) {
        // The client closes once both ends have everything: what the server does not know of
        // that, it learns from this.
        if self.has_everything && self.has_closed {
            self.is_acknowledged = true;
        } else {
            self.progress.failed = true;
        }
    }

    /// Takes everything that can be read: that is what gives the sender credit for more.
    fn read(&mut self, now: Time, stream: StreamId) {
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.progress.received += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.progress.finished = true;
                    self.has_everything = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // Whether to ask for a transmission: that is always done.
        let _ = chunks.finalize();
        self.close_if_complete(now);
    }

    /// Writes what the stream takes.
    fn write_on(&mut self) {
        if self.has_closed || (self.unwritten == 0 && !self.closes) {
            return;
        }
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        if connection.is_handshaking() {
            return;
        }
        let Some(id) = self.stream.or_else(|| connection.streams().open(Dir::Uni)) else {
            return;
        };
        self.stream = Some(id);
        let mut stream = connection.send_stream(id);
        while self.unwritten > 0 {
            let bytes = self.unwritten.min(ZEROS.len() as u64) as usize;
            match stream.write_chunks(&mut [Bytes::from_static(&ZEROS[..bytes])]) {
                Ok(written) => self.unwritten -= written.bytes as u64,
                Err(_) => return,
            }
        }
        if self.closes {
            self.has_closed = stream.finish().is_ok();
        }
    }

    /// A client closes once both ends have everything.
    fn close_if_complete(&mut self, now: Time) {
        if self.role == Role::Server || !self.is_complete() {
            return;
        }
        if let Some((_, connection)) = &mut self.connection
            && !connection.is_closed()
        {
            connection.close(at(now), VarInt::from_u32(0), Bytes::new());
        }
    }
}

impl Stack for QuinnEnd {
    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]) {
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let data = BytesMut::from(payload);
        let buffer = &mut self.response;
        match self.endpoint.handle(at(now), PEER, None, ecn, data, buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                let accepted = self.endpoint.accept(incoming, at(now), buffer, None);
                self.connection = accepted.ok();
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        // A stateless reset answers what comes for a connection that is over. There is nobody whom it
        // would help.
        self.response.clear();
        self.settle(now);
    }

    fn expire(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at(now));
        }
        self.settle(now);
    }

    fn write(&mut self, now: Time, bytes: u64, close: bool) {
        self.unwritten += bytes;
        self.closes |= close;
        self.write_on();
        self.settle(now);
    }

    fn split(&mut self, _now: Time) {}

    fn ask(&mut self, _now: Time, _bytes: u64) {}

    fn answer(&mut self, _now: Time, _number: u32, _bytes: u64, _urgency: u8) {}

    fn message(&mut self) -> Option<u32> {
        None
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Burst> {
        let (_, connection) = self.connection.as_mut()?;
        let transmit = connection.poll_transmit(at(now), self.burst, payload);
        self.exchange();
        let transmit = transmit?;
        let ecn = match transmit.ecn.filter(|_| self.has_ecn) {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        Some(Burst {
            datagram: transmit.segment_size.unwrap_or(transmit.size),
            left_out: 0,
            ecn,
        })
    }

    fn informs_by_sending(&self) -> bool {
        true
    }

    fn deadline(&mut self) -> Time {
        let connection = self.connection.as_mut();
        let next = connection.and_then(|(_, connection)| connection.poll_timeout());
        next.map_or(Time::NEVER, |next| {
            let since = next.saturating_duration_since(*BASE);
            Time::from_nanos(since.as_nanos() as u64)
        })
    }

    fn progress(&mut self) -> Progress {
        std::mem::take(&mut self.progress)
    }

    fn round_trip(&mut self) -> Option<Time> {
        let sample = self.seen.sample.swap(0, Ordering::Relaxed);
        (sample > 0).then(|| Time::from_nanos(sample))
    }

    fn losses(&mut self) -> u32 {
        let events = self.seen.losses.load(Ordering::Relaxed);
        let (counted, before) = self.counted;
        let Some((_, connection)) = self.connection.as_ref().filter(|_| events > counted) else {
            return 0;
        };
        let lost = connection.stats().path.lost_packets;
        self.counted = (events, lost);
        (lost - before) as u32
    }

    fn state(&self) -> State {
        let Some((_, connection)) = &self.connection else {
            return State::default();
        };
        let metrics = connection.congestion_state().metrics();
        State {
            cwnd: metrics.congestion_window,
            ssthresh: metrics.ssthresh.filter(|it| *it < u64::MAX),
            in_flight: self.seen.in_flight.load(Ordering::Relaxed),
            round_trip: Time::from_nanos(connection.rtt().as_nanos() as u64),
        }
    }

    fn is_complete(&self) -> bool {
        self.is_acknowledged && self.has_everything
    }

    fn is_silent(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_none_or(|(_, connection)| connection.is_drained())
    }
}
