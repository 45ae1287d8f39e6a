//! The load generator: asks the scenario's sources what their users want, has the sides do it, and
//! keeps the metrics.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use aqmlab_net::{Role, Time};
use aqmlab_record::{Exchange, Flow, Metrics, RetransmittedKinds, RunError};
use aqmlab_scenario::DelayAt;
use aqmlab_tcp::Retransmissions;
use aqmlab_traffic::{Action, Connect, OpenDatagrams, Script, Source};
use rustix::net::sockopt::set_ip_tos;
use tokio::sync::mpsc::UnboundedSender;

use crate::bed::Bed;
use crate::clock::Clock;
use crate::due::EventQueue;
use crate::ends::Numbers;
use crate::error::LiveError;
use crate::measure::{Lateness, LoadReport, Meter};
use crate::routes::{FIRST_CLIENT_PORT, Route, Routes, Side};
use crate::side::{ClassSockets, Command, Report};

/// Servers of class n listen on this port + n.
pub(crate) const FIRST_SERVER_PORT: u16 = 80;

/// Every class has a port below those of clients.
pub(crate) const MOST_CLASSES: u16 = FIRST_CLIENT_PORT - FIRST_SERVER_PORT;

/// A wish to stop is noticed, and what is recorded is looked after, this often.
const LOOK_UP: Time = Time::from_millis(200);

/// Bytes of the IP and UDP headers.
const DATAGRAM_HEADER: u32 = 28;

/// A connection that is open.
#[derive(Debug)]
struct Open {
    route: Arc<Route>,
    from: SocketAddrV4,
    token: u32,
    client: u32,
    server: u32,
    start: Time,
    /// By end: time-outs, once it is done.
    done: [Option<u32>; 2],
    delayed_by: RetransmittedKinds,
}

/// A flow of datagrams.
#[derive(Debug)]
struct Datagrams {
    route: Arc<Route>,
    socket: Arc<UdpSocket>,
    to: SocketAddrV4,
    start: Time,
    last: Time,
    /// Sent in the measured span.
    sent: u64,
}

/// The next free port of each client host.
#[derive(Debug, Default)]
struct Ports {
    next: HashMap<(usize, u32), u16>,
    taken: HashSet<SocketAddrV4>,
}

impl Ports {
    /// Ports are taken in turns, so that one rests as long as possible before it is used again.
    fn take(&mut self, side: Side, host: u32) -> Option<SocketAddrV4> {
        let next = self
            .next
            .entry((side as usize, host))
            .or_insert(FIRST_CLIENT_PORT);
        for _ in FIRST_CLIENT_PORT..=u16::MAX {
            let address = SocketAddrV4::new(side.address(host), *next);
            *next = next.checked_add(1).unwrap_or(FIRST_CLIENT_PORT);
            if self.taken.insert(address) {
                return Some(address);
            }
        }
        None
    }

    fn give_back(&mut self, address: SocketAddrV4) {
        self.taken.remove(&address);
    }
}

/// The load generator at work.
pub(crate) struct Load<'a> {
    bed: &'a Bed,
    clock: Clock,
    measured: (Time, Time),
    end: &'a AtomicU64,
    stop: &'a AtomicBool,
    routes: Arc<Routes>,
    metrics: Metrics,
    absent: usize,
    sources: Vec<Source>,
    classes: Vec<ClassSockets>,
    /// Propagation on the bottleneck, both ways together: part of every round trip.
    bottleneck_delay: Time,
    delay_at: DelayAt,
    sides: [UnboundedSender<Command>; 2],
    reports: Receiver<Report>,
    /// When a source wants to be woken: its class and token.
    agenda: EventQueue<(usize, u32)>,
    actions: Vec<Action>,
    numbers: Arc<Numbers>,
    open: HashMap<u64, Open>,
    ports: Ports,
    /// By class, in the order of the source's tokens.
    datagrams: Vec<Vec<Datagrams>>,
    /// Sockets that send datagrams, by address.
    senders: HashMap<SocketAddrV4, Arc<UdpSocket>>,
    lateness: Lateness,
    report: LoadReport,
    events: u64,
}

/// What the load generator works with.
pub(crate) struct Setting<'a> {
    pub(crate) bed: &'a Bed,
    pub(crate) clock: Clock,
    pub(crate) measured: (Time, Time),
    /// When the run ends, in nanoseconds: it may be brought forward.
    pub(crate) end: &'a AtomicU64,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) routes: Arc<Routes>,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) metrics: Metrics,
    /// So many classes, the first ones, have no users: others stand for them.
    pub(crate) absent: usize,
    pub(crate) sources: Vec<Source>,
    pub(crate) classes: Vec<ClassSockets>,
    pub(crate) bottleneck_delay: Time,
    pub(crate) delay_at: DelayAt,
}

impl<'a> Load<'a> {
    pub(crate) fn new(
        setting: Setting<'a>,
        sides: [UnboundedSender<Command>; 2],
        reports: Receiver<Report>,
    ) -> Self {
        let count = setting.sources.len();
        Self {
            bed: setting.bed,
            clock: setting.clock,
            measured: setting.measured,
            end: setting.end,
            absent: setting.absent,
            stop: setting.stop,
            routes: setting.routes,
            metrics: setting.metrics,
            sources: setting.sources,
            classes: setting.classes,
            bottleneck_delay: setting.bottleneck_delay,
            delay_at: setting.delay_at,
            sides,
            reports,
            agenda: EventQueue::new(),
            actions: Vec::new(),
            numbers: setting.numbers,
            open: HashMap::new(),
            ports: Ports::default(),
            datagrams: std::iter::repeat_with(Vec::new).take(count).collect(),
            senders: HashMap::new(),
            lateness: Lateness::new(),
            report: LoadReport {
                counts_timeouts: true,
                ..LoadReport::default()
            },
            events: 0,
        }
    }

    /// Runs to the end of the measured span, which the meter watches.
    pub(crate) fn run(&mut self, meter: &mut Meter) -> Result<(), LiveError> {
        let (start, _) = self.measured;
        for class in self.absent..self.sources.len() {
            self.sources[class].start(&mut self.actions);
            self.act(class, Time::ZERO)?;
        }
        loop {
            let now = self.clock.now();
            let end = self
                .measured
                .1
                .min(Time::from_nanos(self.end.load(Relaxed)));
            if now >= end {
                return self.check_files();
            }
            if self.stop.load(Relaxed) {
                return Err(RunError::Stopped.into());
            }
            meter.look(now, self.measured);
            self.metrics.check()?;
            while let Some((due, (class, token))) = self.agenda.pop(self.clock.now()) {
                self.events += 1;
                if due >= start {
                    self.lateness.add(due, self.clock.now());
                }
                // Time goes on at the source as it should, not as late as it came.
                self.sources[class].on_wake(due, token, &mut self.actions);
                self.act(class, due)?;
            }
            let next = self.agenda.next().min(now + LOOK_UP).min(end);
            let next = next.min(meter.next(self.measured));
            self.listen(self.clock.until(next))?;
        }
    }

    /// A file of connections may have ended before the run did.
    fn check_files(&self) -> Result<(), LiveError> {
        for (class, source) in self.metrics.classes().iter().zip(&self.sources) {
            if let Some(failure) = source.failure() {
                let message = format!("traffic.{}.file: {failure}", class.name());
                return Err(RunError::Vectors(message).into());
            }
        }
        Ok(())
    }

    /// Hears what the sides have to tell; waits for it no longer than this.
    fn listen(&mut self, patience: Duration) -> Result<(), LiveError> {
        match self.reports.recv_timeout(patience) {
            Ok(report) => self.hear(report)?,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LiveError::Bed("the load generator's threads ended".into()));
            }
        }
        while let Ok(report) = self.reports.try_recv() {
            self.hear(report)?;
        }
        Ok(())
    }

    fn hear(&mut self, report: Report) -> Result<(), LiveError> {
        self.events += 1;
        match report {
            Report::Ready => {}
            Report::Asked { flow, at } => {
                if let Some(open) = self.open.get(&flow) {
                    self.metrics.on_exchange_start(open.route.class, at);
                }
            }
            Report::Answered {
                flow,
                start,
                end,
                request,
                response,
            } => {
                if let Some(open) = self.open.get(&flow) {
                    let exchange = Exchange {
                        flow,
                        class: open.route.class,
                        start,
                        end,
                        request_bytes: request,
                        response_bytes: response,
                        client: open.client,
                        server: open.server,
                    };
                    self.metrics.on_exchange(&exchange);
                }
            }
            Report::Done {
                flow,
                end,
                at,
                again,
                counts_timeouts,
                result,
            } => {
                self.report.counts_timeouts &= counts_timeouts;
                self.done(flow, end, at, again, result)?;
            }
        }
        Ok(())
    }

    /// An end of a connection is done. The source hears of it when the client is; the metrics
    /// are closed when both are, or one has failed.
    fn done(
        &mut self,
        flow: u64,
        end: Role,
        at: Time,
        again: Retransmissions,
        result: io::Result<()>,
    ) -> Result<(), LiveError> {
        let Some(open) = self.open.get_mut(&flow) else {
            return Ok(()); // The other end has failed before.
        };
        let class = open.route.class;
        let was_told = open.done[Role::Client as usize].is_some();
        open.done[end as usize] = Some(again.timeouts);
        if end == Role::Client {
            open.delayed_by = again.into();
        }
        let failed = result.is_err();
        let tell = !was_told && (failed || end == Role::Client);
        let token = open.token;
        let timeouts = open.done.iter().flatten().sum();
        if failed || open.done.iter().all(Option::is_some) {
            let record = Flow {
                end: at,
                retransmissions: Retransmissions { timeouts, ..again },
                delayed_by: open.delayed_by,
                failed,
                ..record_of(&open.route, open.start)
            };
            self.ports.give_back(open.from);
            self.open.remove(&flow);
            self.metrics.on_closed(&record);
        }
        if let Err(error) = result {
            self.note_failure(&error);
        }
        if tell {
            self.sources[class].on_finished(at, token, &mut self.actions);
            self.act(class, at)?;
        }
        Ok(())
    }

    /// Connections also fail because the network is bad; these fail because the machine is full.
    fn note_failure(&mut self, error: &io::Error) {
        use io::ErrorKind::{
            BrokenPipe, ConnectionReset, HostUnreachable, TimedOut, UnexpectedEof,
        };
        let kind = error.kind();
        if [
            TimedOut,
            ConnectionReset,
            BrokenPipe,
            HostUnreachable,
            UnexpectedEof,
        ]
        .contains(&kind)
        {
            return;
        }
        self.report.local_failures += 1;
        self.report
            .first_failure
            .get_or_insert_with(|| error.to_string());
    }

    /// Carries out what the source of `class` asked for.
    fn act(&mut self, class: usize, now: Time) -> Result<(), LiveError> {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Connect(connect) => self.connect(class, connect),
                Action::OpenDatagrams(open) => self.open_datagrams(class, &open)?,
                Action::Datagram { token, size } => self.send_datagram(class, token, size),
                Action::Refused => self.metrics.on_refused(class, now),
                // Endless connections that stop are refused before the run, and so are changes.
                // So are models that go by what they hear.
                Action::EndConnections | Action::EndConnection { .. } | Action::Ask { .. } => {}
                Action::WakeAt { at, token } => self.agenda.push(at.max(now), (class, token)),
            }
        }
        self.actions = actions;
        Ok(())
    }

    /// Where the client and the server of a connection sit.
    const fn sides_of(flipped: bool) -> (Side, Side) {
        if flipped {
            (Side::Servers, Side::Clients)
        } else {
            (Side::Clients, Side::Servers)
        }
    }

    fn route(&self, class: usize, rtt: Time, script: Option<Script>) -> Arc<Route> {
        let flow = self.numbers.next();
        let access = rtt.saturating_sub(self.bottleneck_delay);
        let delays = self.delay_at.shares(access);
        Arc::new(Route::new(flow, class, rtt, delays, script))
    }

    fn connect(&mut self, class: usize, connect: Connect) {
        let now = self.clock.now();
        let (near, far) = Self::sides_of(connect.flipped);
        if connect.script.asks_at_once() {
            self.metrics.on_exchange_start(class, now);
        }
        self.report.own_limits += u64::from(connect.limits.is_some());
        let route = self.route(class, connect.rtt, Some(connect.script));
        let Some(from) = self.ports.take(near, connect.client) else {
            self.note_failure(&io::ErrorKind::AddrInUse.into());
            return;
        };
        let to = SocketAddrV4::new(far.address(connect.server), self.classes[class].port);
        self.routes.insert(from, route.clone());
        self.open.insert(
            route.flow,
            Open {
                route: route.clone(),
                from,
                token: connect.token,
                client: connect.client,
                server: connect.server,
                start: now,
                done: [None; 2],
                delayed_by: RetransmittedKinds::default(),
            },
        );
        self.report.most_open = self.report.most_open.max(self.open.len() as u64);
        self.command(near, Command::Connect { route, from, to });
    }

    fn command(&self, side: Side, command: Command) {
        // A side that has ended is noticed by its silence.
        let _ = self.sides[side as usize].send(command);
    }

    fn open_datagrams(&mut self, class: usize, open: &OpenDatagrams) -> Result<(), LiveError> {
        let (near, far) = Self::sides_of(open.flipped);
        let route = self.route(class, open.rtt, None);
        let from = SocketAddrV4::new(far.address(open.server), self.classes[class].port);
        let to = self
            .ports
            .take(near, open.client)
            .ok_or_else(|| LiveError::Bed(format!("host {} has no port left", open.client)))?;
        let error_of =
            |error: io::Error| LiveError::Bed(format!("a socket for datagrams: {error}"));
        let bind = |side: Side, address: SocketAddrV4| {
            let socket = self.bed.inside(side, || UdpSocket::bind(address))?;
            let socket = socket.map_err(error_of)?;
            socket.set_nonblocking(true).map_err(error_of)?;
            Ok::<_, LiveError>(socket)
        };
        let receiver = bind(near, to)?;
        let socket = match self.senders.get(&from) {
            Some(socket) => socket.clone(),
            None => {
                let socket = Arc::new(bind(far, from)?);
                set_ip_tos(&socket, self.classes[class].dscp << 2)
                    .map_err(|error| error_of(error.into()))?;
                self.senders.insert(from, socket.clone());
                socket
            }
        };
        self.routes.insert(to, route.clone());
        let command = Command::Receive {
            route: route.clone(),
            socket: receiver,
        };
        self.command(near, command);
        let now = self.clock.now();
        self.datagrams[class].push(Datagrams {
            route,
            socket,
            to,
            start: now,
            last: now,
            sent: 0,
        });
        debug_assert_eq!(self.datagrams[class].len(), open.token as usize + 1);
        Ok(())
    }

    /// Sends a datagram with `size` bytes, headers included.
    fn send_datagram(&mut self, class: usize, token: u32, size: u32) {
        static NOTHING: [u8; 1 << 16] = [0; 1 << 16];
        let now = self.clock.now();
        let flow = &mut self.datagrams[class][token as usize];
        flow.last = now;
        flow.sent += u64::from(self.metrics.span().contains(now));
        let payload = &NOTHING[..(size - DATAGRAM_HEADER) as usize];
        if let Err(error) = flow.socket.send_to(payload, flow.to) {
            self.note_failure(&error);
        }
    }

    /// The run is over: counts what goes on. Returns the metrics, the report and how many events
    /// there were.
    pub(crate) fn finish(mut self) -> (Metrics, LoadReport, u64) {
        let end = Time::from_nanos(self.end.load(Relaxed));
        self.metrics.bring_end_forward(end);
        for open in self.open.values() {
            let record = record_of(&open.route, open.start);
            self.metrics.on_still_open(&record, None);
        }
        for flow in self.datagrams.iter().flatten() {
            let record = Flow {
                end: flow.last,
                ..record_of(&flow.route, flow.start)
            };
            let lost = flow.route.lost();
            self.metrics.on_datagram_flow(&record, flow.sent, lost);
        }
        self.report.set_lateness(&self.lateness);
        (self.metrics, self.report, self.events)
    }
}

/// What is known of a connection whose end is not.
fn record_of(route: &Route, start: Time) -> Flow {
    Flow {
        flow: route.flow,
        class: route.class,
        start,
        rtt: route.rtt,
        end: start,
        request_bytes: route.received(Role::Server),
        response_bytes: route.received(Role::Client),
        measured_bytes: route.measured(),
        ..Flow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_go_round_and_skip_those_in_use() {
        let mut ports = Ports::default();
        let first = ports.take(Side::Clients, 0).unwrap();
        assert_eq!(first.to_string(), "10.128.0.1:1024");
        assert_eq!(ports.take(Side::Clients, 1).unwrap().port(), 1024);
        let all = usize::from(u16::MAX - FIRST_CLIENT_PORT) + 1;
        for _ in 1..all {
            ports.take(Side::Clients, 0).unwrap();
        }
        assert_eq!(ports.take(Side::Clients, 0), None);
        ports.give_back(first);
        assert_eq!(ports.take(Side::Clients, 0), Some(first));
    }
}
