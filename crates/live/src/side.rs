//! One side of the bed: its sockets, on one thread inside the side's namespace.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use aqmlab_net::{Role, Time};
use aqmlab_scenario::{Scenario, Traffic};
use aqmlab_tcp::Retransmissions;
use aqmlab_traffic::Player;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::Clock;
use crate::kernel;
use crate::player::{ExchangeEvent, SocketPlayer};
use crate::routes::{Route, Routes};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 65_535;

/// What a class of traffic needs of its sockets.
#[derive(Clone, Debug)]
pub(crate) struct ClassSockets {
    /// Its servers' port.
    pub(crate) port: u16,
    /// The kernel's names of the congestion controls of client and server.
    pub(crate) congestion_control: [&'static str; 2],
    /// Differentiated services code point.
    pub(crate) dscp: u8,
}

impl ClassSockets {
    /// Those of a scenario's classes, which have been checked; their servers have the ports from one
    /// on.
    pub(crate) fn of(scenario: &Scenario, first_port: u16) -> Vec<Self> {
        let sockets = |(class, port): (&Traffic, u16)| Self {
            port,
            congestion_control: class.tcp.ends().map(|stack| {
                let control = &stack.congestion_control;
                control.linux_name().expect("the stacks have been checked")
            }),
            dscp: class.dscp,
        };
        scenario
            .traffic
            .iter()
            .zip(first_port..)
            .map(sockets)
            .collect()
    }
}

/// What a side is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Open a connection and play the client's part of its script.
    Connect {
        route: Arc<Route>,
        from: SocketAddrV4,
        to: SocketAddrV4,
    },
    /// Take the datagrams that come.
    Receive {
        route: Arc<Route>,
        socket: UdpSocket,
    },
}

/// What a side has to tell.
#[derive(Debug)]
pub(crate) enum Report {
    /// The side is ready to work.
    Ready,
    /// A client begins another exchange on a connection.
    Asked { flow: u64, at: Time },
    /// A client has the whole response of an exchange; bytes of both.
    Answered {
        flow: u64,
        start: Time,
        end: Time,
        request: u64,
        response: u64,
    },
    /// An end of a connection is done.
    Done {
        flow: u64,
        end: Role,
        at: Time,
        /// Sent again by both ends so far; the time-outs are this end's.
        again: Retransmissions,
        /// Whether the kernel counts time-outs.
        counts_timeouts: bool,
        result: io::Result<()>,
    },
}

/// A side at work.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) classes: Rc<[ClassSockets]>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) clock: Clock,
    /// The measured span.
    pub(crate) measured: (Time, Time),
    pub(crate) reports: Sender<Report>,
}

impl Side {
    /// Works until nobody can send a command any more. This thread is in the side's namespace.
    pub(crate) fn run(self, mut commands: UnboundedReceiver<Command>) -> io::Result<()> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        // What is still under way at the end goes with the set.
        let connections = LocalSet::new();
        connections.block_on(&runtime, async move {
            for number in 0..self.classes.len() {
                let listener = self.listen(number)?;
                spawn_local(self.clone().accept(listener));
            }
            self.tell(Report::Ready);
            while let Some(command) = commands.recv().await {
                match command {
                    Command::Connect { route, from, to } => {
                        spawn_local(self.clone().client(route, from, to));
                    }
                    Command::Receive { route, socket } => {
                        let socket = tokio::net::UdpSocket::from_std(socket)?;
                        spawn_local(self.clone().receive(route, socket));
                    }
                }
            }
            Ok(())
        })
    }

    fn tell(&self, report: Report) {
        // Nobody listens when the run is over.
        let _ = self.reports.send(report);
    }

    /// A socket of a class: what it accepts has the same options.
    fn socket(&self, class: usize, role: Role) -> io::Result<TcpSocket> {
        let class = &self.classes[class];
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.set_tos_v4(u32::from(class.dscp) << 2)?;
        let control = class.congestion_control[role as usize];
        rustix::net::sockopt::set_tcp_congestion(&socket, control)?;
        Ok(socket)
    }

    fn listen(&self, class: usize) -> io::Result<TcpListener> {
        let socket = self.socket(class, Role::Server)?;
        // Every host of the side is an address of this namespace.
        let port = self.classes[class].port;
        socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
        socket.listen(BACKLOG)
    }

    async fn accept(self, listener: TcpListener) {
        loop {
            // No file left, say: the client's end reports it.
            let Ok((stream, SocketAddr::V4(peer))) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            if let Some(route) = self.routes.get(peer) {
                spawn_local(self.clone().server(route, stream));
            }
        }
    }

    async fn server(self, route: Arc<Route>, stream: TcpStream) {
        let Some(script) = &route.script else {
            return;
        };
        let (clock, measured) = (self.clock, self.measured);
        let player = Player::new(script.clone(), clock.now());
        let mut player = SocketPlayer::new(stream, Role::Server, &route, player, clock, measured);
        let result = player.play(|_, _| {}).await;
        self.done(&player, result);
    }

    async fn client(self, route: Arc<Route>, from: SocketAddrV4, to: SocketAddrV4) {
        let Some(script) = &route.script else {
            return;
        };
        let flow = route.flow;
        let (clock, measured) = (self.clock, self.measured);
        let player = Player::new(script.clone(), clock.now());
        let stream = match self.connect(route.class, from, to).await {
            Ok(stream) => stream,
            Err(error) => {
                return self.tell(Report::Done {
                    flow,
                    end: Role::Client,
                    at: self.clock.now(),
                    again: route.again(),
                    counts_timeouts: true,
                    result: Err(error),
                });
            }
        };
        let mut player = SocketPlayer::new(stream, Role::Client, &route, player, clock, measured);
        let tell = |event, at| match event {
            ExchangeEvent::Asked => self.tell(Report::Asked { flow, at }),
            ExchangeEvent::Answered(exchange) => self.tell(Report::Answered {
                flow,
                start: exchange.asked_at,
                end: at,
                request: exchange.request_bytes,
                response: exchange.response_bytes,
            }),
        };
        let result = player.play(tell).await;
        self.done(&player, result);
    }

    async fn connect(
        &self,
        class: usize,
        from: SocketAddrV4,
        to: SocketAddrV4,
    ) -> io::Result<TcpStream> {
        let socket = self.socket(class, Role::Client)?;
        socket.bind(from.into())?;
        socket.connect(to.into()).await
    }

    fn done(&self, player: &SocketPlayer<'_>, result: io::Result<()>) {
        let timeouts = kernel::timeouts(&player.stream);
        self.tell(Report::Done {
            flow: player.route.flow,
            end: player.role,
            at: self.clock.now(),
            again: Retransmissions {
                timeouts: timeouts.unwrap_or(0),
                ..player.route.again()
            },
            counts_timeouts: timeouts.is_some(),
            result,
        });
    }

    async fn receive(self, route: Arc<Route>, socket: tokio::net::UdpSocket) {
        let mut datagram = vec![0; 1 << 16];
        let (start, end) = self.measured;
        while let Ok(size) = socket.recv(&mut datagram).await {
            let now = self.clock.now();
            let measured = start <= now && now < end;
            route.note_received(Role::Client, size as u64, measured);
        }
    }
}
