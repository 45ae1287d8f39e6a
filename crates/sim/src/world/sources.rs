//! What sources of traffic do: connections and flows of datagrams that begin.

use aqmlab_net::{Role, Time};
use aqmlab_stacks::HEADER;
use aqmlab_tcp::{Events, InitialRecover};
use aqmlab_traffic::{Action, Connect, Exchange, OpenDatagrams, Script};

use super::World;
use crate::connection::{Opening, Own};
use crate::engine::Engine;
use crate::event::Event;
use crate::hosts::{Headers, Pair};

/// Where initial sequence numbers do not matter.
const AT_ISN: InitialRecover = InitialRecover::InitialSequenceNumber;

/// UDP payload of an acknowledgement, about: for the round trip on an idle path.
const ACK: u32 = 35;

impl<E: Engine> World<E> {
    /// Carries out what the source of `class` asked for.
    pub(super) fn act(&mut self, class: usize) {
        // Nothing that happens here asks a source for more, so the list does not grow meanwhile.
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Connect(connect) => self.connect(class, connect),
                Action::OpenDatagrams(open) => self.open_datagrams(class, &open),
                Action::Datagram { token, size } => {
                    let network = &mut self.network;
                    self.datagrams.send((class, token), size, self.now, network);
                    self.notify_losses(None);
                }
                Action::Refused => self.metrics.on_refused(class, self.now),
                Action::EndConnections => {
                    if let Some(sockets) = &mut self.sockets {
                        sockets.stop(class);
                    }
                    for index in self.connections.stop(class, self.now) {
                        self.release_if_over(index);
                    }
                }
                Action::EndConnection { token } => self.end_connection(class, token),
                Action::Ask { token, exchange } => self.ask(class, token, exchange),
                Action::WakeAt { at, token } => {
                    let event = Event::source(class as u32, token);
                    self.network.push(at.max(self.now), event);
                }
            }
        }
        self.actions = actions;
    }

    /// Adds an exchange to the open script of the connection of a class with this token.
    fn ask(&mut self, class: usize, token: u32, exchange: Exchange) {
        let slot = self.classes[class].open_scripts.get(token as usize);
        let Some(&index) = slot else {
            return;
        };
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let is_of_class = usize::from(connection.class) == class && !connection.aborted;
        if !is_of_class || connection.app.token != token {
            return;
        }
        connection.app.player.add(exchange);
        // The server waits for the request before it can come.
        for role in [Role::Server, Role::Client] {
            self.play_on(index, role);
        }
    }

    /// Remembers the slot of a connection whose script is open.
    pub(super) fn note_open_script(&mut self, class: usize, token: u32, index: u32) {
        let slots = &mut self.classes[class].open_scripts;
        if slots.len() <= token as usize {
            slots.resize(token as usize + 1, u32::MAX);
        }
        slots[token as usize] = index;
    }

    /// Opens a connection, as soon as its client has a socket for it.
    #[inline(always)]
    fn connect(&mut self, class: usize, connect: Connect) {
        if !self.limits_sockets() {
            return self.open(class, connect);
        }
        if let Some(connect) = self.take_client(class, connect) {
            self.open(class, connect);
        }
    }

    pub(super) fn open(&mut self, class: usize, mut connect: Connect) {
        if connect.script.asks_at_once() {
            self.metrics.on_exchange_start(class, self.now);
        }
        let to = self.classes[class].hosts(Pair::from(&connect));
        (connect.client, connect.server) = (to.client, to.server);
        self.flows_opened += 1;
        let index = if let Some(kind) = self.transports.next(class) {
            let mut stacks = kind.connect((self.seed, self.flows_opened), self.now);
            let sizes = [kind.datagram() + HEADER, ACK + HEADER];
            if connect.script.takes_streams() {
                stacks.iter_mut().for_each(|end| end.split(self.now));
            }
            if connect.begins_with_tls {
                connect.script = connect.script.without_tls();
            }
            let headers = Headers::Datagram(HEADER);
            let (index, is_traced) = self.place(class, &connect, headers, sizes);
            let opening = Opening {
                class: class as u16,
                is_traced,
                own: Own::from(stacks),
                connect,
            };
            let network = &mut self.network;
            self.connections.open(index, opening, self.now, network);
            self.serve_stack(index, Role::Client);
            index
        } else {
            self.open_tcp(class, connect)
        };
        // A source wakes at its own time: the first packets have their way to the bottleneck before
        // it, and only then the connection's clocks can be behind.
        if self.shifted_clocks && self.classes[class].may_be_shifted() {
            self.network.routes_mut(index).shift_clocks();
        }
        self.schedule(index, Role::Client);
    }

    /// A connection gets a slot. Also whether it is followed. `sizes` are bytes of a full packet and of
    /// an acknowledgement.
    fn place(
        &mut self,
        class: usize,
        connect: &Connect,
        headers: Headers,
        sizes: [u32; 2],
    ) -> (u32, bool) {
        let of_class = (class, self.classes[class].path, self.classes[class].dscp);
        let to = Pair::from(connect);
        let routes = self.hosts.routes(self.flows_opened, of_class, &to, headers);
        let index = self.connections.take_slot(routes, &mut self.network);
        let propagation = routes.round_trip(self.hosts.link_delay(of_class.1));
        self.network.set_idle_round_trip(index, propagation, sizes);
        if matches!(connect.script, Script::Open(_)) {
            self.note_open_script(class, connect.token, index);
        }
        (index, self.follows(class, index, connect))
    }

    fn open_tcp(&mut self, class: usize, mut connect: Connect) -> u32 {
        let flow = self.flows_opened;
        let stack = self.connections.stack_mut(class);
        let limits = connect.limits.take();
        let overrides = limits.map(|limits| stack.overrides(&limits, self.seed, flow));
        let own = overrides.map_or_else(Own::default, Own::from);
        let profiles = Role::BOTH.map(|role| stack.profile(own.overrides(), role));
        let headers = profiles.map(|it| [it.header.0 as u32, it.syn_header.0 as u32]);
        let [clients, servers] = profiles;
        let sizes = [headers[1][0] + servers.mss.0 as u32, headers[0][0]];
        let handshake = clients.handshake;
        let send_delay = clients.random_send_delay.max(servers.random_send_delay);
        let numbers_matter = [clients, servers].map(|it| it.initial_recover) != [AT_ISN; 2];
        let (index, is_traced) = self.place(class, &connect, Headers::Tcp(headers), sizes);
        let opening = Opening {
            class: class as u16,
            is_traced,
            own,
            connect,
        };
        let network = &mut self.network;
        self.connections.open(index, opening, self.now, network);
        if self.limits_sockets() {
            self.has_client(index, handshake);
        }
        if send_delay > Time::ZERO {
            let seed = self.seed.wrapping_mul(2).wrapping_add(flow << 1);
            self.connections.seed(index, [seed, seed | 1]);
        }
        if numbers_matter {
            self.connections.number(index, self.seed, flow);
        }
        self.notify_losses(Some(index));
        if !handshake {
            let established = Events {
                established: true,
                ..Events::default()
            };
            let measured = self.span.contains(self.now);
            let app = self.application(index);
            let ready = app.on_events(Role::Client, established, measured);
            self.on_app_events(index, Role::Client, established, ready);
        }
        index
    }

    fn open_datagrams(&mut self, class: usize, open: &OpenDatagrams) {
        self.flows_opened += 1;
        let flow = self.flows_opened;
        let path = self.classes[class].path;
        let to = self.classes[class].hosts(Pair {
            client: open.client,
            server: open.server,
            flipped: open.flipped,
            rtt: open.rtt,
        });
        let of_class = (class, path, self.classes[class].dscp);
        let routes = self
            .hosts
            .routes(flow, of_class, &to, Headers::Datagram(HEADER));
        let rtt = routes.round_trip(self.hosts.link_delay(path));
        let hidden = self.hosts.hidden_delay(rtt, path);
        let slot = self.connections.add_slot(routes, &mut self.network);
        let notifies = self.classes[class].listens;
        self.datagrams.open(
            (slot, notifies, open.ecn),
            (flow, class),
            (rtt, hidden),
            self.now,
        );
    }
}
