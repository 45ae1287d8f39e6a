//! Hosts: connections, the end points at their ends, and the applications that use them.

use aqmlab_net::{Role, Time};
use aqmlab_tcp::{Context, Endpoint, Events, Options, Segment};
use aqmlab_traffic::Connect;

use crate::connection::{AppAction, Application, Common, Connection, Routes};
use crate::event::{Event, Kind, Outgoing};
use crate::event_queue::EventQueue;
use crate::limits;
use crate::options::NO_OPTIONS;
use crate::world::{Slot, World};

impl<A: EventQueue> World<A> {
    // ---- connections ----

    /// The hosts of a connection, as indices into the world's nodes: client, server.
    pub(crate) fn hosts_of(
        &self,
        path: usize,
        client: u32,
        server: u32,
        flipped: bool,
    ) -> [u32; 2] {
        let first = self.paths[path].first_node;
        if flipped {
            [first + client, first + self.servers + server]
        } else {
            [first + self.servers + client, first + server]
        }
    }

    #[inline(never)]
    pub(crate) fn open(&mut self, class: usize, mut connect: Connect) {
        if connect.script.asks_at_once() {
            self.metrics.on_exchange_start(class, self.now);
        }
        self.flows_opened += 1;
        let flow = self.flows_opened;
        let overrides = connect.limits.take().map(|limits| {
            let class = &mut self.classes[class];
            let overrides = class
                .variants
                .overrides(&limits, &class.profile, self.seed, flow);
            Box::new(overrides)
        });
        let path = self.classes[class].path;
        let nodes = self.hosts_of(path, connect.client, connect.server, connect.flipped);
        let Connect { rtt, flipped, .. } = connect;
        let profile = limits::profile(
            &self.classes,
            class as u16,
            overrides.as_deref(),
            Role::Client,
        );
        let headers = [profile.header.0 as u32, profile.syn_header.0 as u32];
        let dscp = self.classes[class].dscp;
        let common = Common {
            flow,
            rtt,
            delay_at: self.delay_at,
            flipped,
            nodes,
            class: class as u16,
            dscp,
            headers,
            are_datagrams: false,
        };
        let index = self.take_slot(Routes::new(&common, &self.paths[path]));
        let is_traced = self.tracer.takes(class, self.now, &connect.script);
        if is_traced {
            self.tracer.follow(index);
        }
        let [clients, servers] = [Role::Client, Role::Server]
            .map(|side| limits::profile(&self.classes, class as u16, overrides.as_deref(), side));
        let (handshake, overhead) = (clients.handshake, clients.overhead);
        let connection = self.slots[index as usize].connection.insert(Connection {
            ends: [Endpoint::listen(clients), Endpoint::listen(servers)],
            timer_at: [Time::NEVER; 2],
            in_network: 0,
            class: class as u16,
            failed: false,
            stopped: false,
            is_traced,
            last_event: self.now,
            overrides,
            app: Application::new(connect, self.now),
        });
        let overrides = connection.overrides.as_deref();
        let cx = Context {
            now: self.now,
            profile: limits::profile(&self.classes, class as u16, overrides, Role::Client),
            host: &self.clocks[nodes[0] as usize],
        };
        // A source wakes at its own time: the first segment has its way to the bottleneck before
        // it, and only then the connection's clocks can be behind.
        let mut out = Outgoing::new(&mut self.network, self.now, index, Role::Client);
        connection.ends[0].ask(cx, &mut out);
        connection.in_network = out.sent;
        if overhead > Time::ZERO {
            let seed = self.seed.wrapping_mul(2).wrapping_add(flow << 1);
            let [client, server] = &mut connection.ends;
            client.seed(seed);
            server.seed(seed | 1);
        }
        self.notify_losses(Some(index));
        if !handshake {
            let established = Events {
                established: true,
                ..Events::default()
            };
            self.notify_application(index, Role::Client, established);
        }
        if self.shifted_clocks && !self.classes[class].source.waits_for_connections() {
            self.network.routes[index as usize].shift_clocks();
        }
        self.schedule(index, Role::Client);
    }

    /// A slot for a connection that takes this route.
    fn take_slot(&mut self, routes: Routes) -> u32 {
        if let Some(index) = self.free.pop() {
            self.network.routes[index as usize] = routes;
            return index;
        }
        self.slots.push(Slot {
            connection: None,
            generation: 0,
        });
        self.network.routes.push(routes);
        (self.slots.len() - 1) as u32
    }

    /// A packet reaches the other end.
    #[inline(always)]
    pub(crate) fn at_host(&mut self, time: Time, sender: Role, event: &Event) {
        let receiver = sender.other();
        let network = &mut self.network;
        let back = network.routes[event.conn as usize].of(receiver);
        let node = back.node;
        self.now = time - back.shift();
        let Some(connection) = self.slots[event.conn as usize].connection.as_mut() else {
            // A connection outlives its segments: this is none.
            self.datagram_received(event);
            return;
        };
        connection.in_network -= 1;
        if connection.failed || connection.overrides.is_some() {
            let overrides = connection.overrides.as_mut();
            if connection.failed || overrides.is_some_and(|overrides| overrides.loses(sender)) {
                return self.ignore(event);
            }
        }
        network.conservation.delivered += 1;
        connection.last_event = self.now;
        let cx = Context {
            now: self.now,
            profile: limits::profile(
                &self.classes,
                connection.class,
                connection.overrides.as_deref(),
                receiver,
            ),
            host: &self.clocks[node as usize],
        };
        let end = &mut connection.ends[receiver as usize];
        let mut segment = Segment {
            seq: Segment::unwrap_seq(event.seq, end.next_expected()),
            ack: Segment::unwrap_seq(event.ack, end.oldest_unacknowledged()),
            len: u32::from(event.len),
            flags: event.flags(),
            ecn: event.ecn(),
            options: Options::NONE,
        };
        if event.options != NO_OPTIONS {
            segment.options = network.options.take(event.options);
        }
        let mut out = Outgoing::new(network, self.now, event.conn, receiver);
        let events = end.on_segment(&segment, cx, &mut out);
        connection.in_network += out.sent;
        self.after(event.conn, receiver, events);
    }

    /// A segment has arrived that nobody takes: it was lost after all, or the connection has been
    /// given up.
    #[inline(never)]
    fn ignore(&mut self, event: &Event) {
        match &self.slots[event.conn as usize].connection {
            Some(connection) if !connection.failed => {
                let class = usize::from(connection.class);
                self.network.conservation.dropped += 1;
                self.segment_lost(self.now, class, event);
            }
            _ => self.network.conservation.delivered += 1,
        }
        self.network.options.take(event.options);
        self.release_if_over(event.conn);
    }

    #[inline(never)]
    pub(crate) fn timer(&mut self, time: Time, side: Role, event: &Event) {
        let slot = &mut self.slots[event.conn as usize];
        if slot.generation != event.generation() {
            return; // The slot has gone to another connection since.
        }
        let Some(connection) = slot.connection.as_mut() else {
            return;
        };
        let route = self.network.routes[event.conn as usize].of(side);
        let node = route.node;
        self.now = time - route.shift();
        if connection.timer_at[side as usize] != self.now || connection.failed {
            return; // An earlier event has taken its place.
        }
        connection.timer_at[side as usize] = Time::NEVER;
        let mut events = Events::default();
        if connection.ends[side as usize].wake_at() <= self.now {
            connection.last_event = self.now;
            let cx = Context {
                now: self.now,
                profile: limits::profile(
                    &self.classes,
                    connection.class,
                    connection.overrides.as_deref(),
                    side,
                ),
                host: &self.clocks[node as usize],
            };
            let mut out = Outgoing::new(&mut self.network, self.now, event.conn, side);
            let end = &mut connection.ends[side as usize];
            let before = end.retransmissions().timeouts;
            events = end.on_timer(cx, &mut out);
            let expired = end.retransmissions().timeouts - before;
            connection.in_network += out.sent;
            if expired > 0 {
                let class = usize::from(connection.class);
                self.metrics.on_timeouts(class, self.now, expired);
            }
        }
        self.after(event.conn, side, events);
    }

    /// An end point has been given something, and has sent what it wants sent: tells the
    /// application, sets the timer.
    #[inline(always)]
    fn after(&mut self, index: u32, side: Role, events: Events) {
        self.notify_losses(Some(index));
        if !events.is_none() {
            self.notify_application(index, side, events);
        }
        self.schedule(index, side);
        self.look_after(index, side);
    }

    /// Traces a connection, if it is followed, and forgets it if it is over.
    #[inline(always)]
    fn look_after(&mut self, index: u32, side: Role) {
        let Some(connection) = &self.slots[index as usize].connection else {
            return;
        };
        if connection.is_traced {
            self.trace(index, side);
            self.release_if_over(index);
        } else if connection.in_network == 0 && connection.is_over() {
            self.release(index);
        }
    }

    /// Makes sure that an event wakes this end in time.
    #[inline(always)]
    fn schedule(&mut self, index: u32, side: Role) {
        let slot = &mut self.slots[index as usize];
        let Some(connection) = slot.connection.as_mut() else {
            return;
        };
        let wake = connection.ends[side as usize].wake_at();
        let pending = &mut connection.timer_at[side as usize];
        if wake < *pending {
            *pending = wake;
            self.push_timer(index, side, wake);
        }
    }

    #[inline(never)]
    fn push_timer(&mut self, index: u32, side: Role, wake: Time) {
        let generation = self.slots[index as usize].generation;
        let event = Event::connection(Kind::Timer(side), index, generation);
        let network = &mut self.network;
        let shift = network.routes[index as usize].shift();
        network.event_queue.push(wake.max(self.now) + shift, event);
    }

    /// Tells connections what the network has dropped or lost of theirs. `acting` is the one that
    /// is at work just now, if any: it looks after its own end.
    #[inline(always)]
    pub(crate) fn notify_losses(&mut self, acting: Option<u32>) {
        if !self.network.dropped.is_empty() {
            self.notify_all_losses(acting);
        }
    }

    #[inline(never)]
    fn notify_all_losses(&mut self, acting: Option<u32>) {
        // Nobody sends anything meanwhile, so the list does not grow.
        let mut dropped = std::mem::take(&mut self.network.dropped);
        for (time, event) in dropped.drain(..) {
            self.network.conservation.dropped += 1;
            self.network.options.take(event.options);
            match self.slots[event.conn as usize].connection.as_mut() {
                Some(connection) => {
                    connection.in_network -= 1;
                    let class = usize::from(connection.class);
                    self.segment_lost(time, class, &event);
                }
                None => self.datagram_lost(time, &event),
            }
            if acting != Some(event.conn) {
                self.release_if_over(event.conn);
            }
        }
        self.network.dropped = dropped;
    }

    #[inline(always)]
    pub(crate) fn release_if_over(&mut self, index: u32) {
        match &self.slots[index as usize].connection {
            Some(connection) if connection.in_network == 0 && connection.is_over() => {
                self.release(index);
            }
            _ => {}
        }
    }

    #[inline(never)]
    fn release(&mut self, index: u32) {
        self.close_flow(index);
        let slot = &mut self.slots[index as usize];
        if slot.connection.as_ref().is_some_and(|it| it.is_traced) {
            self.tracer.forget(index);
        }
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }

    // ---- applications ----

    #[inline(always)]
    fn notify_application(&mut self, index: u32, side: Role, events: Events) {
        let measured = self.window.contains(self.now);
        let app = self.application(index);
        if side == Role::Client && measured {
            app.measured_bytes += events.received;
        }
        // Mostly it waits for more.
        let ready = app.on_events(side, events);
        if ready | events.eof | events.failed {
            self.on_app_events(index, side, events, ready);
        }
    }

    /// An application has heard something that matters to it, or to its source.
    #[inline(never)]
    fn on_app_events(&mut self, index: u32, side: Role, events: Events, ready: bool) {
        if events.failed {
            return self.abort(index);
        }
        if side == Role::Client && events.eof {
            self.report(index);
        }
        if ready {
            self.play(index, side);
        }
    }

    /// An application goes on in its program until it has to wait.
    fn play(&mut self, index: u32, side: Role) {
        loop {
            let now = self.now;
            match self.application(index).act(side, now) {
                AppAction::Wait => return,
                AppAction::Pause(time) => {
                    let generation = self.slots[index as usize].generation;
                    let event = Event::connection(Kind::Resume(side), index, generation);
                    let network = &mut self.network;
                    let shift = network.routes[index as usize].shift();
                    return network.event_queue.push(now + time + shift, event);
                }
                AppAction::Write { bytes, close } => self.write(index, side, bytes, close),
                AppAction::Asked => {
                    let class = self.class_of(index);
                    self.metrics.on_exchange_start(class, now);
                }
                AppAction::Answered(exchange) => self.record_response(index, &exchange),
            }
        }
    }

    /// The pause of an application is over.
    #[inline(never)]
    pub(crate) fn resume(&mut self, time: Time, side: Role, event: &Event) {
        let slot = &mut self.slots[event.conn as usize];
        if slot.generation != event.generation() {
            return;
        }
        let Some(connection) = slot.connection.as_mut() else {
            return;
        };
        if connection.failed {
            return;
        }
        self.now = time - self.network.routes[event.conn as usize].shift();
        connection.last_event = self.now;
        self.play(event.conn, side);
        self.schedule(event.conn, side);
    }

    fn write(&mut self, index: u32, side: Role, bytes: u64, close: bool) {
        let connection = self.slots[index as usize]
            .connection
            .as_mut()
            .expect("an application outlives its writes");
        let cx = Context {
            now: self.now,
            profile: limits::profile(
                &self.classes,
                connection.class,
                connection.overrides.as_deref(),
                side,
            ),
            host: &self.clocks[self.network.routes[index as usize].of(side).node as usize],
        };
        let end = &mut connection.ends[side as usize];
        let mut out = Outgoing::new(&mut self.network, self.now, index, side);
        // Two calls, as applications make them: what the window lets out at once goes before
        // the FIN, which then travels alone.
        if bytes > 0 {
            end.write(bytes, cx, &mut out);
        }
        if close {
            end.close(cx, &mut out);
        }
        connection.in_network += out.sent;
        self.notify_losses(Some(index));
    }

    fn abort(&mut self, index: u32) {
        if let Some(connection) = self.slots[index as usize].connection.as_mut() {
            connection.failed = true;
        }
        self.report(index);
    }

    /// Tells the source, once, that a connection is over.
    fn report(&mut self, index: u32) {
        let now = self.now;
        let Some(connection) = self.slots[index as usize].connection.as_mut() else {
            return;
        };
        if std::mem::replace(&mut connection.app.reported, true) {
            return;
        }
        connection.app.delayed_by = connection.retransmissions().into();
        let (token, class) = (connection.app.token, usize::from(connection.class));
        self.classes[class]
            .source
            .on_finished(now, token, &mut self.actions);
        self.act(class);
    }

    #[inline(always)]
    pub(crate) fn application(&mut self, index: u32) -> &mut Application {
        &mut self.slots[index as usize]
            .connection
            .as_mut()
            .expect("an application lives as long as its connection")
            .app
    }

    pub(crate) fn class_of(&self, index: u32) -> usize {
        self.slots[index as usize]
            .connection
            .as_ref()
            .map_or(0, |c| usize::from(c.class))
    }
}
