//! The sockets of hosts: a process may have only so many open at once, as FreeBSD's limit of file
//! descriptors has it.
//!
//! A client's socket is open from the connect to the end of the response. With none left its next
//! connections wait before their SYN. A server completes handshakes without a socket; it takes one
//! when it accepts the connection, and until then its application does not see the request. It
//! closes the socket when it has sent everything. More connections than the backlog do not wait: their
//! SYNs are dropped, and the client's timer sends them again.

use std::collections::VecDeque;

use aqmlab_net::{Role, Time};
use aqmlab_record::{MeasuredSpan, SocketStats};
use aqmlab_scenario::Hosts;
use aqmlab_traffic::Connect;

/// Whether hosts can be limited. The playground, which has to load fast, leaves it out.
pub(crate) const LIMITED: bool = cfg!(not(target_family = "wasm"));

/// What listen(2) makes of every longer backlog in FreeBSD: SOMAXCONN.
const BACKLOG: u32 = 128;

/// Which sockets a connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) at_client: bool,
    pub(crate) at_server: AtServer,
}

/// How far a server is with a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AtServer {
    /// It needs no socket, or none any more.
    #[default]
    Nothing,
    /// No SYN has come.
    Listens,
    /// The handshake is under way.
    HalfOpen,
    /// It is not accepted; its application has something to do, or not yet.
    Waits { ready: bool },
    /// It has a socket.
    Accepted,
}

/// The sockets of all hosts.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Sockets, and connections that may wait at a server.
    limit: u32,
    backlog: u32,
    /// By host, as the network numbers them.
    machines: Vec<Machine>,
    span: MeasuredSpan,
    /// Of clients and of servers.
    stats: [SocketStats; 2],
}

/// The sockets of a host. A host of a flipped path is a client of some connections and a server of
/// others: each process has its own limit.
#[derive(Debug, Default)]
struct Machine {
    processes: [Process; 2],
    /// Clients' connections that wait for a socket, with their class.
    connects: VecDeque<(Time, usize, Connect)>,
    /// Slots of connections that wait to be accepted.
    accepts: VecDeque<(Time, u32)>,
    /// Connections in their handshake.
    half_open: u32,
}

/// The sockets of a process.
#[derive(Debug, Default)]
struct Process {
    open: u32,
    /// When that became so many.
    since: Time,
    /// It has had one.
    is_used: bool,
}

impl Sockets {
    /// Those of the hosts of some paths; nothing if they are not limited.
    pub(crate) fn new(hosts: &Hosts, paths: u32, span: MeasuredSpan) -> Option<Self> {
        let limit = hosts.sockets?;
        let machines = paths * (hosts.clients + hosts.servers);
        Some(Self {
            limit,
            backlog: hosts.backlog.unwrap_or(BACKLOG),
            machines: (0..machines).map(|_| Machine::default()).collect(),
            span,
            stats: Default::default(),
        })
    }

    /// A process opens sockets, or closes them.
    fn change(&mut self, host: usize, role: Role, now: Time, open: impl FnOnce(u32) -> u32) {
        let process = &mut self.machines[host].processes[role as usize];
        let times = (process.since, now);
        self.stats[role as usize].hold(process.open, self.limit, times, self.span);
        (process.open, process.since) = (open(process.open), now);
        process.is_used |= process.open > 0;
    }

    fn is_full(&self, host: usize, role: Role) -> bool {
        self.machines[host].processes[role as usize].open >= self.limit
    }

    /// A wait for a socket ends.
    fn waited(&mut self, role: Role, since: Time, now: Time) {
        if self.span.contains(now) {
            let stats = &mut self.stats[role as usize];
            stats.waits += 1;
            stats.waited += now - since;
        }
    }

    /// A client takes a socket for a connection, which is handed back; or the connection waits.
    pub(crate) fn connect(
        &mut self,
        host: usize,
        class: usize,
        connect: Connect,
        now: Time,
    ) -> Option<Connect> {
        if self.is_full(host, Role::Client) {
            self.machines[host]
                .connects
                .push_back((now, class, connect));
            return None;
        }
        self.change(host, Role::Client, now, |open| open + 1);
        Some(connect)
    }

    /// A client closes a socket. Gives the connection that it opens with the next, and its class.
    pub(crate) fn close_client(&mut self, host: usize, now: Time) -> Option<(usize, Connect)> {
        self.change(host, Role::Client, now, |open| open - 1);
        let (since, class, connect) = self.machines[host].connects.pop_front()?;
        self.waited(Role::Client, since, now);
        self.change(host, Role::Client, now, |open| open + 1);
        Some((class, connect))
    }

    /// The clients of a class open no more connections.
    pub(crate) fn stop(&mut self, class: usize) {
        for machine in &mut self.machines {
            machine.connects.retain(|(_, of, _)| *of != class);
        }
    }

    /// A SYN reaches a server. Whether it takes it.
    pub(crate) fn takes_syn(&mut self, host: usize, now: Time) -> bool {
        let machine = &mut self.machines[host];
        let takes = machine.half_open as usize + machine.accepts.len() < self.backlog as usize;
        if takes {
            machine.half_open += 1;
        } else if self.span.contains(now) {
            self.stats[Role::Server as usize].dropped_syns += 1;
        }
        takes
    }

    /// The handshake of a connection ends at its server: it has a socket, or waits for one.
    pub(crate) fn accept(&mut self, host: usize, index: u32, now: Time) -> AtServer {
        self.machines[host].half_open -= 1;
        if self.is_full(host, Role::Server) {
            self.machines[host].accepts.push_back((now, index));
            return AtServer::Waits { ready: false };
        }
        self.change(host, Role::Server, now, |open| open + 1);
        AtServer::Accepted
    }

    /// A server has a socket less. Gives the connection that it accepts with it.
    pub(crate) fn close_server(&mut self, host: usize, now: Time) -> Option<u32> {
        self.change(host, Role::Server, now, |open| open - 1);
        let (since, index) = self.machines[host].accepts.pop_front()?;
        self.waited(Role::Server, since, now);
        self.change(host, Role::Server, now, |open| open + 1);
        Some(index)
    }

    /// A connection is over that its server has not accepted.
    pub(crate) fn forget(&mut self, host: usize, index: u32, was_waiting: bool) {
        let machine = &mut self.machines[host];
        if was_waiting {
            machine.accepts.retain(|(_, waiting)| *waiting != index);
        } else {
            machine.half_open -= 1;
        }
    }

    /// What became of them until the end of the run.
    pub(crate) fn stats(mut self) -> [SocketStats; 2] {
        let end = self.span.end;
        for host in 0..self.machines.len() {
            for role in Role::BOTH {
                self.change(host, role, end, |open| open);
                let is_used = self.machines[host].processes[role as usize].is_used;
                self.stats[role as usize].hosts += u32::from(is_used);
            }
        }
        self.stats
    }
}
