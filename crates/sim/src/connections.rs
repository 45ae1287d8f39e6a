//! The connections of the simulated world: where they are kept, and what their end points do.

use aqmlab_net::{RandomStream, Role, Time};
use aqmlab_tcp::{
    CongestionControlKind, Context, Delivered, Endpoint, Events, HostClock, InitialRecover,
    Options, Probe, Segment,
};

use crate::breakdown::Causes;
use crate::connection::{Connection, Opening};
use crate::engine::Engine;
use crate::event::{Event, Kind};
use crate::hints;
use crate::network::Network;
use crate::outgoing::Outgoing;
use crate::peer_cache::PeerCache;
use crate::route::Routes;
use crate::stack::Stack;

/// Bytes of memory of a slot with its route, about, in vectors that are as large as what they hold.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>() + size_of::<Routes>();

/// Bytes of the caches that a processor's core has for itself, about.
const CACHE: usize = 2 << 20;

/// A place for a connection, or for a flow of datagrams, which leaves it empty.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    connection: Option<Connection>,
    /// How many connections have used it: timers outlive connections.
    generation: u32,
}

/// Connections by slot, with what their end points need: the stacks of their classes and the
/// clocks of their hosts.
#[derive(Debug)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// By class.
    stacks: Vec<Stack>,
    /// By host.
    clocks: Vec<HostClock>,
    /// What hosts remember of one another.
    peers: PeerCache,
}

impl Connections {
    pub(crate) fn new(stacks: Vec<Stack>, clocks: Vec<HostClock>) -> Self {
        Self {
            slots: Vec::with_capacity(1 << 10),
            free: Vec::new(),
            stacks,
            clocks,
            peers: PeerCache::default(),
        }
    }

    /// A slot for a connection that takes this route.
    pub(crate) fn take_slot<E: Engine>(&mut self, routes: Routes, network: &mut Network<E>) -> u32 {
        match self.free.pop() {
            Some(index) => {
                *network.routes_mut(index) = routes;
                index
            }
            None => self.add_slot(routes, network),
        }
    }

    /// A slot that no other connection or flow will have.
    pub(crate) fn add_slot<E: Engine>(&mut self, routes: Routes, network: &mut Network<E>) -> u32 {
        hints::push(&mut self.slots, Slot::default());
        network.add_routes(routes);
        (self.slots.len() - 1) as u32
    }

    /// Whether there are more than the caches of a processor's core hold.
    pub(crate) fn are_many(&self) -> bool {
        self.slots.len() * SLOT_BYTES > CACHE
    }

    /// Something will happen to a connection soon.
    #[inline(always)]
    pub(crate) fn fetch(&self, index: u32) {
        if let Some(slot) = self.slots.get(index as usize) {
            hints::prefetch(slot);
        }
    }

    /// The stack of a class, which keeps the variants that its connections need.
    pub(crate) fn stack_mut(&mut self, class: usize) -> &mut Stack {
        &mut self.stacks[class]
    }

    /// The congestion controls of a class have other parameters from now on.
    pub(crate) fn set_controls(&mut self, class: usize, controls: [CongestionControlKind; 2]) {
        self.stacks[class].set_controls(controls);
        let open = self
            .slots
            .iter_mut()
            .filter_map(|slot| slot.connection.as_mut());
        let open = open.filter(|connection| usize::from(connection.class) == class);
        for overrides in open.filter_map(|connection| connection.ends.own.overrides_mut()) {
            self.stacks[class].renew(overrides);
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&Connection> {
        self.slots[index as usize].connection.as_ref()
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots[index as usize].connection.as_mut()
    }

    /// A connection begins in a slot. A client of TCP asks for it now.
    #[inline(always)]
    pub(crate) fn open<E: Engine>(
        &mut self,
        index: u32,
        opening: Opening,
        now: Time,
        network: &mut Network<E>,
    ) {
        let stack = &self.stacks[usize::from(opening.class)];
        let connection = Connection::new(opening, stack, now);
        let connection = self.slots[index as usize].connection.insert(connection);
        // Nobody asks what an endless response waits for.
        if E::Causes::ON && connection.app.player.may_answer() {
            let flow = network.routes(index).flow();
            network.causes_mut().opens(index, now, flow);
        }
        if connection.ends.are_stacks() {
            return;
        }
        let cx = Context {
            now,
            profile: stack.profile(connection.ends.own.overrides(), Role::Client),
            host: &self.clocks[network.host_of(index, Role::Client)],
        };
        let end = &mut connection.ends.tcp[Role::Client as usize];
        let mut out = Outgoing::new(network, now, index, Role::Client);
        end.ask(cx, &mut out);
        connection.in_network = out.sent();
        acted((index, Role::Client), end, &cx, network);
    }

    /// Gives the ends of a connection the seeds of their random send delays.
    pub(crate) fn seed(&mut self, index: u32, seeds: [u64; 2]) {
        let connection = self.get_mut(index);
        let ends = connection.into_iter().flat_map(|it| &mut it.ends.tcp);
        for (end, seed) in ends.zip(seeds) {
            end.seed(seed);
        }
    }

    /// Gives the ends of connection number `flow` initial sequence numbers, where they matter.
    #[cold]
    pub(crate) fn number(&mut self, index: u32, seed: u64, flow: u64) {
        let mut draws = RandomStream::new(seed, "initial-sequence-number", flow);
        let Some(connection) = self.slots[index as usize].connection.as_mut() else {
            return;
        };
        let stack = &self.stacks[usize::from(connection.class)];
        for role in Role::BOTH {
            let number = (draws.uniform() * 2_f64.powi(32)) as u32;
            let profile = stack.profile(connection.ends.own.overrides(), role);
            if profile.initial_recover == InitialRecover::Zero {
                connection.ends.tcp[role as usize].set_initial_sequence_number(number);
            }
        }
    }

    /// A segment reaches the host of its receiver at `time` of the bottleneck. If it is one of those
    /// that are expected, of a connection of which nothing else is known: the connection, the time
    /// there, and the events for its application. Else nothing has happened, and it is left to the
    /// [`slow_path`](Self::slow_path).
    #[inline(always)]
    pub(crate) fn fast_path<E: Engine>(
        &mut self,
        time: Time,
        sender: Role,
        event: &Event,
        network: &mut Network<E>,
    ) -> Option<(&mut Connection, Time, Delivered)> {
        let receiver = sender.other();
        let connection = self.slots[event.conn as usize].connection.as_mut()?;
        if (connection.aborted | connection.is_special) || Network::<E>::has_options(event) {
            return None;
        }
        let (host, now) = network.at_host(time, event.conn, receiver);
        let cx = Context {
            now,
            profile: self.stacks[usize::from(connection.class)].profile(None, receiver),
            host: &self.clocks[host],
        };
        let end = &mut connection.ends.tcp[receiver as usize];
        if E::Causes::ON {
            let limit = || end.limit(cx.profile);
            network.causes_mut().arrives(event, now, limit);
        }
        let segment = restored(event, end, Options::NONE);
        let mut out = Outgoing::new(network, now, event.conn, receiver);
        let events = end.fast_path(&segment, &cx, &mut out)?;
        connection.in_network = connection.in_network + out.sent() - 1;
        connection.last_event = now;
        network.take_bare(event.options);
        acted((event.conn, receiver), end, &cx, network);
        network.count_delivered();
        Some((connection, now, events))
    }

    /// A segment reaches the host of its receiver at `now`, the time there: what comes of it.
    /// Nothing if no end point takes it: it was lost after all, the connection was aborted, or it
    /// is a datagram of a flow.
    #[inline(always)]
    pub(crate) fn slow_path<E: Engine>(
        &mut self,
        (host, now): (usize, Time),
        sender: Role,
        event: &Event,
        network: &mut Network<E>,
    ) -> Option<Events> {
        let receiver = sender.other();
        let connection = self.slots[event.conn as usize].connection.as_mut()?;
        connection.in_network -= 1;
        let overrides = connection.ends.own.overrides_mut();
        if connection.aborted || overrides.is_some_and(|overrides| overrides.loses(sender)) {
            return None;
        }
        network.count_delivered();
        connection.last_event = now;
        let stack = &self.stacks[usize::from(connection.class)];
        let cx = Context {
            now,
            profile: stack.profile(connection.ends.own.overrides(), receiver),
            host: &self.clocks[host],
        };
        let end = &mut connection.ends.tcp[receiver as usize];
        if E::Causes::ON {
            let limit = || end.limit(cx.profile);
            network.causes_mut().arrives(event, now, limit);
        }
        let segment = restored(event, end, network.take_options(event.options));
        if end.looks_up_peer(&segment, cx.profile) {
            let hosts = Role::BOTH.map(|role| network.host_of(event.conn, role));
            self.peers.recall(hosts, receiver, end, cx.profile);
        }
        let mut out = Outgoing::new(network, now, event.conn, receiver);
        // The fast path has refused the others already.
        let events = if connection.is_special || Network::<E>::has_options(event) {
            end.on_segment(&segment, cx, &mut out)
        } else {
            end.slow_path(&segment, &cx, &mut out)
        };
        connection.in_network += out.sent();
        acted((event.conn, receiver), end, &cx, network);
        Some(events)
    }

    /// The connection that an event of a timer or of a pause is for, if it is there still.
    fn addressee(&mut self, event: &Event) -> Option<&mut Connection> {
        let slot = &mut self.slots[event.conn as usize];
        // Else the slot has gone to another connection since.
        let is_current = slot.generation == event.generation();
        let connection = slot.connection.as_mut().filter(|_| is_current)?;
        (!connection.aborted).then_some(connection)
    }

    /// A timer of an end may be due: its host and the time there, unless another event has taken
    /// this one's place.
    #[inline(always)]
    pub(crate) fn take_timer<E: Engine>(
        &mut self,
        time: Time,
        role: Role,
        event: &Event,
        network: &Network<E>,
    ) -> Option<(usize, Time)> {
        let connection = self.addressee(event)?;
        let (host, now) = network.at_host(time, event.conn, role);
        let pending = &mut connection.timer_at[role as usize];
        (*pending == now).then(|| {
            *pending = Time::NEVER;
            (host, now)
        })
    }

    /// A timer of an end of TCP may be due. Gives the class, what came of it, and how many time-outs
    /// it was; nothing if the connection has no such ends.
    #[inline(always)]
    pub(crate) fn on_timer<E: Engine>(
        &mut self,
        (host, now): (usize, Time),
        role: Role,
        index: u32,
        network: &mut Network<E>,
    ) -> Option<(usize, Events, u32)> {
        let connection = self.slots[index as usize].connection.as_mut()?;
        if connection.ends.are_stacks() {
            return None;
        }
        let class = usize::from(connection.class);
        let end = &mut connection.ends.tcp[role as usize];
        if end.wake_at() > now {
            return Some((class, Events::default(), 0));
        }
        connection.last_event = now;
        let cx = Context {
            now,
            profile: self.stacks[class].profile(connection.ends.own.overrides(), role),
            host: &self.clocks[host],
        };
        let paced = cx.profile.random_send_delay == Time::ZERO;
        let causes = network.causes_mut();
        causes.expires(index, role, now, paced);
        let mut out = Outgoing::new(network, now, index, role);
        let before = end.retransmissions().timeouts;
        let events = end.on_timer(cx, &mut out);
        let timeouts = end.retransmissions().timeouts - before;
        connection.in_network += out.sent();
        acted((index, role), end, &cx, network);
        Some((class, events, timeouts))
    }

    /// The pause of an application is over: the time of its host.
    pub(crate) fn on_resume<E: Engine>(
        &mut self,
        time: Time,
        event: &Event,
        network: &Network<E>,
    ) -> Option<Time> {
        let connection = self.addressee(event)?;
        let now = time - network.clock_shift(event.conn);
        connection.last_event = now;
        Some(now)
    }

    /// An event of a connection, at a time of its hosts.
    #[inline(always)]
    pub(crate) fn push<E: Engine>(
        &self,
        kind: Kind,
        index: u32,
        time: Time,
        network: &mut Network<E>,
    ) {
        let generation = self.slots[index as usize].generation;
        network.push_at_hosts(time, Event::connection(kind, index, generation));
    }

    /// An application takes back what it has written and what was never sent: from a stack over
    /// datagrams, nothing.
    pub(crate) fn withdraw(&mut self, index: u32, role: Role) {
        if let Some(connection) = self.get_mut(index)
            && !connection.ends.are_stacks()
        {
            connection.ends.tcp[role as usize].withdraw();
        }
    }

    /// An application writes so many bytes, and closes. Whether that sends anything: a stack over
    /// datagrams is asked for it later.
    #[inline(always)]
    pub(crate) fn write<E: Engine>(
        &mut self,
        index: u32,
        role: Role,
        (bytes, close): (u64, bool),
        now: Time,
        network: &mut Network<E>,
    ) -> bool {
        let connection = self.slots[index as usize].connection.as_mut();
        let connection = connection.expect("an application outlives its writes");
        if let Some(end) = connection.ends.stack_mut(role) {
            end.write(now, bytes, close);
            return false;
        }
        let stack = &self.stacks[usize::from(connection.class)];
        let cx = Context {
            now,
            profile: stack.profile(connection.ends.own.overrides(), role),
            host: &self.clocks[network.host_of(index, role)],
        };
        let end = &mut connection.ends.tcp[role as usize];
        let mut out = Outgoing::new(network, now, index, role);
        let mut bytes = bytes;
        // Behind a full segment that waits, further writes change nothing: they are one.
        while bytes > stack.write_size() && end.unsent() < cx.profile.mss.0 {
            end.write(stack.write_size(), cx, &mut out);
            bytes -= stack.write_size();
        }
        if bytes > 0 && close && cx.profile.closes_with_write {
            end.write_last(bytes, cx, &mut out);
        } else {
            // Two calls, as applications make them: what the window lets out at once goes before
            // the FIN, which then travels alone.
            if bytes > 0 {
                end.write(bytes, cx, &mut out);
            }
            if close {
                end.close(cx, &mut out);
            }
        }
        connection.in_network += out.sent();
        acted((index, role), end, &cx, network);
        true
    }

    /// The hosts forget the connections of a class. Gives those that end now.
    pub(crate) fn stop(&mut self, class: usize, now: Time) -> Vec<u32> {
        let open: Vec<u32> = self.of_class(class).map(|(index, _)| index).collect();
        for &index in &open {
            if let Some(connection) = self.get_mut(index) {
                connection.stop(now);
            }
        }
        open
    }

    /// Hosts remember what a connection that is over has learnt of its peer.
    #[cold]
    pub(crate) fn remember<E: Engine>(&mut self, index: u32, network: &Network<E>) {
        let connection = self.slots[index as usize].connection.as_ref();
        let Some(connection) = connection.filter(|it| !it.ends.are_stacks()) else {
            return;
        };
        let hosts = Role::BOTH.map(|role| network.host_of(index, role));
        let stack = &self.stacks[usize::from(connection.class)];
        for role in Role::BOTH {
            let profile = stack.profile(connection.ends.own.overrides(), role);
            self.peers
                .learn(hosts, role, &connection.ends.tcp[role as usize], profile);
        }
    }

    /// Forgets a connection that is over: its slot is free.
    pub(crate) fn remove(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }

    /// The class of a connection, and the state of an end's sender at `now`.
    pub(crate) fn probe(&mut self, index: u32, role: Role, now: Time) -> Option<(usize, Probe)> {
        let connection = self.slots[index as usize].connection.as_mut()?;
        let class = usize::from(connection.class);
        let probe = connection.ends.probe(role, &self.stacks[class], now);
        Some((class, probe))
    }

    /// The connections that go on, with their slots. Records list those over TCP first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Connection)> {
        let of = |are_stacks| {
            let slots = (0..).zip(&self.slots);
            slots.filter_map(move |(index, slot)| {
                let connection = slot.connection.as_ref()?;
                (connection.ends.are_stacks() == are_stacks).then_some((index, connection))
            })
        };
        of(false).chain(of(true))
    }

    /// The connections of a class, except those that are aborted.
    pub(crate) fn of_class(&self, class: usize) -> impl Iterator<Item = (u32, &Connection)> {
        let open = self.iter();
        open.filter(move |(_, it)| usize::from(it.class) == class && !it.aborted)
    }
}

/// An end point has done what an event made it do.
#[inline(always)]
fn acted<E: Engine>(
    (index, role): (u32, Role),
    end: &Endpoint,
    cx: &Context<'_>,
    network: &mut Network<E>,
) {
    if E::Causes::ON {
        let (timers, is_armed_as_now) = (|| end.timers(), || end.is_armed_as_now(cx));
        let causes = network.causes_mut();
        causes.acted(index, role, cx.now, timers, is_armed_as_now);
    }
}

/// The segment that reaches an end.
#[inline(always)]
fn restored(event: &Event, end: &Endpoint, options: Options) -> Segment {
    Segment {
        seq: Segment::unwrap_seq(event.seq, end.next_expected()),
        ack: Segment::unwrap_seq(event.ack, end.oldest_unacknowledged()),
        len: u32::from(event.len),
        flags: event.flags(),
        ecn: event.ecn(),
        options,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_live_connections_fit_into_a_gigabyte() {
        // Beside the slot and the route a connection has a handful of events on their way: a
        // window of segments or ACKs, its timers.
        const EVENTS: usize = 8;
        let event = size_of::<(Time, Event, u32)>();
        let connection = size_of::<Slot>() + size_of::<Routes>() + EVENTS * event;
        assert!(connection <= 1000, "{connection} bytes");
    }
}
