//! What happens to connections where hosts may have only so many sockets open.

use aqmlab_net::Role;
use aqmlab_tcp::Events;
use aqmlab_traffic::Connect;

use super::World;
use crate::engine::Engine;
use crate::event::Event;
use crate::hosts::Pair;
use crate::sockets::{AtServer, Held, LIMITED};

impl<E: Engine> World<E> {
    /// Whether hosts may have only so many sockets.
    #[inline(always)]
    pub(super) fn limits_sockets(&self) -> bool {
        LIMITED && self.sockets.is_some()
    }

    /// A client wants a socket for a connection: hands the connection back if there is one.
    pub(super) fn take_client(&mut self, class: usize, connect: Connect) -> Option<Connect> {
        let path = self.classes[class].path;
        let [client, _] = self.hosts.nodes(path, &Pair::from(&connect));
        let sockets = self.sockets.as_mut()?;
        sockets.connect(client as usize, class, connect, self.now)
    }

    /// A connection has been opened, with a socket at its client.
    pub(super) fn has_client(&mut self, index: u32, handshake: bool) {
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        // Without a handshake nothing is accepted.
        let at_server = if handshake {
            AtServer::Listens
        } else {
            AtServer::Nothing
        };
        connection.sockets = Held {
            at_client: true,
            at_server,
        };
        // Every segment is looked at.
        connection.is_special = true;
    }

    /// The client has everything, or has given up: it closes its socket.
    pub(super) fn close_client(&mut self, index: u32) {
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        if !std::mem::take(&mut connection.sockets.at_client) {
            return;
        }
        let host = self.network.host_of(index, Role::Client);
        let sockets = self.sockets.as_mut();
        let next = sockets.and_then(|sockets| sockets.close_client(host, self.now));
        if let Some((class, connect)) = next {
            self.open(class, connect);
        }
    }

    /// A segment has reached a server that takes no more SYNs: it is dropped.
    pub(super) fn refuses_syn(&mut self, receiver: Role, event: &Event) -> bool {
        let (index, now) = (event.conn, self.now);
        let Some(connection) = self.connections.get_mut(index) else {
            return false;
        };
        let listens = connection.sockets.at_server == AtServer::Listens;
        if receiver == Role::Client || connection.aborted || !listens {
            return false;
        }
        let host = self.network.host_of(index, Role::Server);
        let sockets = self.sockets.as_mut();
        if sockets.is_none_or(|sockets| sockets.takes_syn(host, now)) {
            connection.sockets.at_server = AtServer::HalfOpen;
            return false;
        }
        connection.in_network -= 1;
        self.network.count_dropped();
        self.network.take_options(event.options);
        self.release_if_over(index);
        true
    }

    /// Something has happened at one end. Whether its application, which is `ready` or not, goes on:
    /// that of a server does when the connection is accepted.
    pub(super) fn at_socket(
        &mut self,
        index: u32,
        role: Role,
        events: Events,
        ready: bool,
    ) -> bool {
        let Some(connection) = self.connections.get_mut(index) else {
            return ready;
        };
        if role == Role::Client {
            return ready;
        }
        let at_server = &mut connection.sockets.at_server;
        if *at_server == AtServer::HalfOpen && events.established {
            let host = self.network.host_of(index, Role::Server);
            if let Some(sockets) = &mut self.sockets {
                *at_server = sockets.accept(host, index, self.now);
            }
        }
        match at_server {
            AtServer::Waits { ready: is_ready } => {
                *is_ready |= ready;
                false
            }
            _ => ready,
        }
    }

    /// A server closes the socket of a connection on which it has sent everything.
    pub(super) fn close_when_sent(&mut self, index: u32) {
        let connection = self.connections.get_mut(index);
        if let Some(connection) = connection
            && connection.sockets.at_server == AtServer::Accepted
            && connection.ends.tcp[Role::Server as usize].is_all_sent()
        {
            connection.sockets.at_server = AtServer::Nothing;
            self.close_server(index);
        }
    }

    /// A server has closed the socket of a connection: it accepts the next.
    fn close_server(&mut self, index: u32) {
        let host = self.network.host_of(index, Role::Server);
        let sockets = self.sockets.as_mut();
        let next = sockets.and_then(|sockets| sockets.close_server(host, self.now));
        let Some(next) = next else {
            return;
        };
        let connection = self.connections.get_mut(next);
        let connection = connection.expect("what waits is not released");
        let waited = std::mem::replace(&mut connection.sockets.at_server, AtServer::Accepted);
        if waited == (AtServer::Waits { ready: true }) && !connection.aborted {
            self.play(next, Role::Server);
            self.schedule(next, Role::Server);
            self.close_when_sent(next);
        }
    }

    /// A connection is over: whatever it still has or waits for is free.
    pub(super) fn close_all(&mut self, index: u32) {
        self.close_client(index);
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let was = std::mem::take(&mut connection.sockets.at_server);
        let host = self.network.host_of(index, Role::Server);
        match (was, &mut self.sockets) {
            (AtServer::Accepted, _) => self.close_server(index),
            (AtServer::HalfOpen, Some(sockets)) => sockets.forget(host, index, false),
            (AtServer::Waits { .. }, Some(sockets)) => sockets.forget(host, index, true),
            _ => {}
        }
    }
}
