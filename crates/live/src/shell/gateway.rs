//! The gateway: ends the program's connections in the kernel of the far end, and goes on with them
//! outside. A connection outside is there before the program's: who is refused outside is refused
//! inside.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio::sync::mpsc::Receiver;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use super::addresses::{FAR, TEST};
use super::broker::{Broker, Kind};
use super::datagrams;
use super::echoes::Echoes;
use super::gate::{Errand, Flow, Gate};
use super::listening::Door;
use super::replies::Unreachable;
use super::services;
use crate::outside::Outside;

/// Bytes that are copied at a time, and wait at most, each way.
const CHUNK: usize = 1 << 16;

/// How long the client of a connection has, once that outside is there.
const PATIENCE: Duration = Duration::from_secs(75);

/// The gateway, before it has started.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) gate: Arc<Gate>,
    pub(super) broker: Broker,
    pub(super) errands: Receiver<Errand>,
    pub(super) outside: Arc<Outside>,
    /// Whether the far end has the built-in services.
    pub(super) has_services: bool,
}

impl Gateway {
    /// Whether the far end's own address is that of the host.
    pub(super) fn stands_for_host(&self) -> bool {
        self.gate.reach().host
    }

    /// Begins its work, as tasks of this thread.
    pub(super) fn start(self) {
        let Self {
            gate,
            broker,
            mut errands,
            outside,
            has_services,
        } = self;
        let desk = Rc::new(Desk {
            gate,
            broker,
            outside,
            has_services,
            listeners: RefCell::default(),
            awaited: RefCell::default(),
            serial: Cell::new(0),
        });
        spawn_local(async move {
            let echoes = Echoes::default();
            while let Some(errand) = errands.recv().await {
                match errand {
                    Errand::Open(flow) if flow.is_tcp => {
                        spawn_local(desk.clone().connect(flow));
                    }
                    Errand::Open(flow) => {
                        let (gate, broker) = (desk.gate.clone(), desk.broker.clone());
                        let outside = desk.outside.clone();
                        let spare = spare(desk.has_services, &flow);
                        spawn_local(datagrams::carry(flow, gate, broker, outside, spare));
                    }
                    Errand::Echo(packet) => echoes.pass(&packet, &desk.gate, &desk.broker),
                }
            }
        });
    }
}

/// A connection outside that waits for its client, and its number.
type Awaited = (u64, TcpStream);

/// What the tasks share.
#[derive(Debug)]
struct Desk {
    gate: Arc<Gate>,
    broker: Broker,
    outside: Arc<Outside>,
    has_services: bool,
    /// Places that the kernel accepts connections for.
    listeners: RefCell<HashMap<SocketAddrV4, ()>>,
    awaited: RefCell<HashMap<Flow, Awaited>>,
    serial: Cell<u64>,
}

impl Desk {
    /// Connects outside, then lets the client's SYN through.
    async fn connect(self: Rc<Self>, flow: Flow) {
        let began = Instant::now();
        let mut reached = self.reach(flow.server).await;
        let mut is_outside = true;
        if let Err(error) = &reached
            && error.kind() == io::ErrorKind::ConnectionRefused
            && let Some(place) = spare(self.has_services, &flow)
        {
            reached = TcpStream::connect(place).await;
            is_outside = false;
        }
        match reached {
            Ok(stream) => {
                if is_outside {
                    self.outside.connected(began.elapsed());
                }
                if let Err(error) = self.clone().listen(flow.server).await {
                    self.outside.failed(&error);
                    self.gate.forget(&flow);
                    return;
                }
                let serial = self.serial.get();
                self.serial.set(serial + 1);
                self.awaited.borrow_mut().insert(flow, (serial, stream));
                self.gate.open(&flow);
                sleep(PATIENCE).await;
                self.give_up(flow, serial);
            }
            Err(error) => {
                let syn = self.gate.forget(&flow);
                self.outside.not_reached(&error);
                if let Some(syn) = syn {
                    match unreachable(&error) {
                        Answer::Refused => self.gate.replies.refuse(&syn),
                        Answer::Unreachable(why) => self.gate.replies.unreachable(&syn, why),
                        Answer::Silence => {}
                    }
                }
            }
        }
    }

    async fn reach(&self, server: SocketAddrV4) -> io::Result<TcpStream> {
        let socket = self.broker.open(Kind::Tcp, server).await?;
        let stream = TcpStream::from_std(socket.into())?;
        stream.writable().await?;
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }

    /// Has the kernel accept connections to a place, for the rest of the run.
    async fn listen(self: Rc<Self>, server: SocketAddrV4) -> io::Result<()> {
        if self.listeners.borrow().contains_key(&server) {
            return Ok(());
        }
        let mut door = Door::open(server, &self.outside).await?;
        self.listeners.borrow_mut().insert(server, ());
        spawn_local(async move {
            loop {
                let (stream, client) = door.accept().await;
                if let SocketAddr::V4(client) = client {
                    let flow = Flow {
                        is_tcp: true,
                        client,
                        server,
                    };
                    spawn_local(self.clone().join(flow, stream));
                }
            }
        });
        Ok(())
    }

    /// Copies between both connections until both have ended.
    async fn join(self: Rc<Self>, flow: Flow, mut inner: TcpStream) {
        let Some((_, mut outer)) = self.awaited.borrow_mut().remove(&flow) else {
            reset(&inner);
            return;
        };
        // What the program or its peer writes goes on at once.
        let _ = inner.set_nodelay(true).and(outer.set_nodelay(true));
        let copied = copy_bidirectional_with_sizes(&mut inner, &mut outer, CHUNK, CHUNK).await;
        if copied.is_err() {
            reset(&inner);
            reset(&outer);
        }
        self.gate.forget(&flow);
    }

    /// A client that stays away for so long is gone.
    fn give_up(&self, flow: Flow, serial: u64) {
        let mut awaited = self.awaited.borrow_mut();
        if awaited
            .get(&flow)
            .is_some_and(|(number, _)| *number == serial)
        {
            awaited.remove(&flow);
            self.gate.forget(&flow);
        }
    }
}

/// The built-in service that answers where the host's loopback has nothing: both have the name
/// `host.aqmlab`.
fn spare(has_services: bool, flow: &Flow) -> Option<SocketAddrV4> {
    let port = flow.server.port();
    let is_theirs = *flow.server.ip() == FAR && services::have(flow.is_tcp, port);
    (has_services && is_theirs).then(|| SocketAddrV4::new(TEST, port))
}

/// The connection ends with a reset.
fn reset(stream: &TcpStream) {
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
}

/// What a program learns of a place outside that was not reached.
enum Answer {
    Refused,
    Unreachable(Unreachable),
    /// As from a place that does not answer.
    Silence,
}

fn unreachable(error: &io::Error) -> Answer {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Answer::Refused,
        io::ErrorKind::NetworkUnreachable => Answer::Unreachable(Unreachable::Network),
        io::ErrorKind::HostUnreachable => Answer::Unreachable(Unreachable::Host),
        io::ErrorKind::PermissionDenied => Answer::Unreachable(Unreachable::Prohibited),
        _ => Answer::Silence,
    }
}
