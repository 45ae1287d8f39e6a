//! The simulated world: hosts, connections, ports, and the loop that moves them.
//!
//! A segment costs one or two events. Everything between is computed: a host's own link and most
//! bottlenecks serve in order, so the time at which a segment leaves them is known when it enters.
//!
//! # Shifted clocks
//!
//! Between a host and the bottleneck's entrance a segment is delayed by a constant, d, if the
//! host's link has no finite rate. Where both ends of a connection have the same d, everything that
//! happens on the connection may be computed d later than it happens, with the clocks of its hosts
//! d behind: then its segments reach the bottleneck in the very moment in which they are sent, and
//! need no event for the way there. What the bottleneck sees is the same. It is exact as long as
//! nothing else depends on when a host does something: the connections of users who wait for one
//! another's responses are not shifted, nor those whose hosts share a link or remember their peers.

use aqmlab_link::{AccessLinks, Dropped, Port};
use aqmlab_net::{Rate, Role, Time};
use aqmlab_record::{
    Exchange, Flow, LinkDirection, MeasuredSpan, Metrics, PortParts, Records, RunError, View,
};
use aqmlab_scenario::{DelayAt, Link, ResponseTime, Scenario};
use aqmlab_tcp::{Delivered, Events};
use aqmlab_traffic::{Action, Answered, AppAction, Received, Source};

use crate::air::Wifi;
use crate::breakdown::Causes;
use crate::capture::Capture;
use crate::connection::{Application, Connection};
use crate::connections::Connections;
use crate::datagrams::DatagramFlows;
use crate::engine::Engine;
use crate::event::{Event, Kind};
use crate::event_queue::{EventQueue, Next};
use crate::hosts::{self, Hosts, Pair};
use crate::memory::Memory;
use crate::network::Network;
use crate::payloads::Payloads;
use crate::sockets::{LIMITED, Sockets};
use crate::stack::Stack;
use crate::trace::Tracer;
use crate::transports::Transports;
use crate::watch::Watch;

mod phases;
mod sockets;
mod sources;
mod stacks;
mod stepping;

use stepping::Schedule;
pub(crate) use stepping::Steps;
pub use stepping::{FlowState, Observation};

/// Housekeeping (writing out queue samples, checking the records) happens this many times a run.
const CHECKPOINTS: u64 = 200;

/// After so many events the run looks how much memory it takes. The more often, the less it can grow
/// unseen; each look costs some microseconds.
const EVENTS_PER_LOOK: u64 = 1 << 16;

/// One class of traffic: who opens connections, and where they go.
#[derive(Debug)]
struct Class {
    name: String,
    /// Number of the path between its servers and clients.
    path: usize,
    /// The client hosts that it has, if not all: first and number.
    clients: Vec<(u32, u32)>,
    dscp: u8,
    source: Source,
    /// Its connections learn from those before them.
    remembers_peers: bool,
    /// Its source wants to know of answers and of datagrams.
    listens: bool,
    /// Slots of its connections whose scripts are open, by their token.
    open_scripts: Vec<u32>,
}

impl Class {
    /// The hosts of a connection that are counted among those of the class.
    fn hosts(&self, mut pair: Pair) -> Pair {
        if !self.clients.is_empty() {
            // The clients' side has the server of a class whose responses go up.
            let number = match pair.flipped {
                true => &mut pair.server,
                false => &mut pair.client,
            };
            let mut left = *number;
            for (first, count) in &self.clients {
                if left < *count {
                    *number = first + left;
                    break;
                }
                left -= count;
            }
        }
        pair
    }

    /// Whether nothing that others see depends on when its hosts do something.
    fn may_be_shifted(&self) -> bool {
        !(self.remembers_peers || self.source.waits_for_connections())
    }
}

/// Ways to save events. All are exact; the tests run without them to show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortcuts {
    /// Departures are computed where the discipline decides on arrival.
    pub(crate) computed_departures: bool,
    /// Connections have shifted clocks where nothing else depends on them.
    pub(crate) shifted_clocks: bool,
    /// Somebody may change something during the run.
    pub(crate) changeable: bool,
}

impl Default for Shortcuts {
    fn default() -> Self {
        Self {
            computed_departures: true,
            shifted_clocks: true,
            changeable: false,
        }
    }
}

/// A run under way.
pub(crate) struct World<E: Engine> {
    seed: u64,
    /// The time at the host that acts.
    now: Time,
    span: MeasuredSpan,
    network: Network<E>,
    hosts: Hosts,
    connections: Connections,
    datagrams: DatagramFlows,
    transports: Transports,
    payloads: Payloads,
    classes: Vec<Class>,
    flows_opened: u64,
    shifted_clocks: bool,
    /// Where hosts may have only so many.
    sockets: Option<Box<Sockets>>,
    metrics: Metrics,
    response_time: ResponseTime,
    tracer: Tracer,
    watch: Watch,
    schedule: Schedule,
    events: u64,
    memory: Memory,
    /// When housekeeping is due, and how often.
    checkpoint: Time,
    period: Time,
    /// Reused between events.
    actions: Vec<Action>,
}

/// The highest rate that a link has in the run.
fn fastest_rate(link: &Link) -> Rate {
    let changes = link.rate_changes.iter().map(|change| change.rate);
    changes.fold(link.rate, Ord::max)
}

impl<E: Engine> World<E> {
    /// The world of a scenario at time 0, before anything happens.
    pub(crate) fn new(
        scenario: &Scenario,
        shortcuts: Shortcuts,
        records: Box<dyn Records>,
        memory: Memory,
    ) -> Result<Self, RunError> {
        let network = scenario.topology.network();
        let span = MeasuredSpan::of(&scenario.measure);
        let links = network.links.values();
        let links: Vec<&Link> = links
            .flat_map(|link| [&link.forward, &link.reverse])
            .collect();
        let names = LinkDirection::all(&network);
        // Where something may change, nothing is computed ahead.
        let new_port = match shortcuts.computed_departures {
            _ if shortcuts.changeable || !scenario.changes.is_empty() => Port::changeable,
            true => Port::new,
            false => Port::stored,
        };
        let stacks: Vec<Stack> = scenario
            .traffic
            .iter()
            .map(|class| Stack::new(&class.tcp, class.write_size))
            .collect();
        let ports = links.iter().zip(&names);
        let mut ports: Vec<Port<Event>> = ports
            .map(|(link, name)| new_port(name, link, scenario.seed, &scenario.measure))
            .collect();
        let computing = links.iter().map(|link| Port::<Event>::computes(link));
        let is_plain = shortcuts.changeable && scenario.changes.is_empty();
        let computing = computing.filter(|_| is_plain).collect();
        let schedule = Schedule::new(scenario, computing);
        let watch = Watch::new(scenario)?;
        let classes = scenario.traffic.iter().zip(scenario.sources()?);
        let classes = classes
            .zip(&stacks)
            .map(|((class, mut source), stack)| {
                source.measure(&(span.start..span.end));
                Class {
                    name: class.name.clone(),
                    path: class.path_in(&network).0,
                    clients: class.clients(&network),
                    dscp: class.dscp,
                    listens: source.listens(),
                    source,
                    remembers_peers: stack.remembers_peers(),
                    open_scripts: Vec::new(),
                }
            })
            .collect();
        let wifi = Wifi::new(scenario);
        let of_ports = ports.iter().map(Port::stats);
        let mut metrics = Metrics::new(scenario, View::Everything, of_ports, records)?;
        if E::Causes::ON && !E::Causes::LOGS {
            let links = links.iter().zip(&names).zip(&mut ports);
            let parts = links.map(|((link, name), port)| PortParts {
                name: name.clone(),
                has_ring: link.hidden_ring()[0] > 0,
                holders: port.watch_holders(),
            });
            // What was handed over waits for the air.
            let air = wifi.as_ref().map(|_| LinkDirection::of_air());
            let air = air.into_iter().flatten().map(|name| PortParts {
                name,
                has_ring: true,
                holders: Vec::new(),
            });
            metrics.begin_breakdowns(parts.chain(air).collect())?;
        }
        if E::Causes::LOGS {
            metrics.begin_packets(&names)?;
        }
        let mut capture = None;
        if let Some(wanted) = &scenario.measure.capture
            && let Some(sink) = metrics.capture()?
        {
            let profiles = stacks.iter().map(Stack::profiles);
            capture = Some(Box::new(Capture::new(sink, wanted, &names, profiles)?));
        }
        let behind = wifi.as_ref().map(|_| ports.len() as u16);
        let (hosts, hops) = Hosts::new(&network, behind);
        let clocks = hosts::clocks(scenario, &network);
        let hops = (hops, hosts.have_single_hops());
        let access = AccessLinks::new(&network.hosts, clocks.len());
        let departures = ports.len() + usize::from(wifi.is_some());
        let fastest = links.iter().map(|link| fastest_rate(link)).max();
        let event_queue =
            <E::Queue as EventQueue>::new(departures, fastest.expect("a network has links"));
        let period = Time::from_nanos(span.end.as_nanos() / CHECKPOINTS + 1);
        let mut world = Self {
            seed: scenario.seed,
            now: Time::ZERO,
            span,
            shifted_clocks: shortcuts.shifted_clocks
                && watch.is_empty()
                && access.is_none()
                && network.hosts.sockets.is_none()
                && wifi.is_none()
                && network.hosts.delay_at == DelayAt::Both
                // Packets of one opportunity leave in one moment: their order at equal times counts.
                && links.iter().all(|link| link.trace.is_none() && link.ack_batch == Time::ZERO),
            network: Network::new(
                event_queue,
                (ports, wifi),
                hops,
                access,
                capture,
                (span, scenario.traffic.len()),
            )
            .with_hosts(network.hosts.servers, network.hosts.clients),
            hosts,
            connections: Connections::new(stacks, clocks),
            datagrams: DatagramFlows::new(span, scenario.traffic.len()),
            transports: Transports::new(scenario.seed, &scenario.traffic),
            payloads: Payloads::default(),
            classes,
            flows_opened: 0,
            sockets: Sockets::new(&network.hosts, network.paths.len() as u32, span).map(Box::new),
            metrics,
            response_time: scenario.measure.response_time,
            tracer: Tracer::new(scenario.measure.flow_trace.clone(), scenario.traffic.len()),
            watch,
            schedule,
            events: 0,
            memory,
            checkpoint: period,
            period,
            actions: Vec::new(),
        };
        if let Some(flow) = scenario.measure.story {
            world.network.causes_mut().follow(flow);
        }
        for class in 0..world.classes.len() {
            world.classes[class].source.start(&mut world.actions);
            world.act(class);
            world.memory.look()?;
        }
        Ok(world)
    }

    /// Handles everything that happens before `end`; nothing of the schedule changes until then.
    fn advance(&mut self, end: Time) -> Result<(), RunError> {
        while let Some((time, next)) = self.network.next(end) {
            while time >= self.checkpoint {
                self.record_samples();
                self.metrics.check()?;
            }
            self.dispatch(time, next);
            let checkpoint = self.checkpoint.min(end);
            if self.connections.are_many() {
                self.advance_looking_ahead(checkpoint)?;
            }
            while let Some((time, next)) = self.network.next(checkpoint) {
                self.dispatch(time, next);
                if self.events.is_multiple_of(EVENTS_PER_LOOK) {
                    self.memory.look()?;
                }
            }
        }
        Ok(())
    }

    /// Handles everything that happens before `end`, having the processor fetch what comes next.
    fn advance_looking_ahead(&mut self, end: Time) -> Result<(), RunError> {
        while let Some((time, next)) = self.network.next(end) {
            let connections = &self.connections;
            self.network.look_ahead(|index| connections.fetch(index));
            self.dispatch(time, next);
            if self.events.is_multiple_of(EVENTS_PER_LOOK) {
                self.memory.look()?;
            }
        }
        Ok(())
    }

    /// Writes out the queue samples up to the checkpoint, which moves on.
    fn record_samples(&mut self) {
        self.network
            .record_samples(self.checkpoint, &mut self.metrics);
        self.checkpoint += self.period;
    }

    #[inline(always)]
    fn dispatch(&mut self, time: Time, next: Next) {
        self.events += 1;
        match next {
            Next::Event(event) => self.handle(time, event),
            Next::Departure(port) => {
                self.schedule.on_departure(port);
                self.network.depart(time, port);
                self.notify_losses(None);
            }
        }
        if E::Causes::LOGS {
            self.network.write_packets(&mut self.metrics);
        }
    }

    /// The measured span is over: everything is counted, and checked.
    fn close(&mut self) -> Result<(), RunError> {
        self.network.close();
        self.finish_shifted();
        if E::Causes::LOGS {
            self.network.write_all_packets(&mut self.metrics);
        }
        self.datagrams.close(&mut self.metrics);
        if let Some(sockets) = self.sockets.take() {
            self.metrics.on_sockets(sockets.stats());
        }
        for (number, class) in self.classes.iter_mut().enumerate() {
            if let Some(quality) = class.source.quality(self.span.end) {
                self.metrics.on_quality(number, quality);
            }
        }
        for class in &self.classes {
            if let Some(failure) = class.source.failure() {
                let message = format!("traffic.{}.file: {failure}", class.name);
                return Err(RunError::Vectors(message));
            }
        }
        let mut claimed = 0;
        for (index, connection) in self.connections.iter() {
            claimed += u64::from(connection.in_network);
            let cwnd = connection.ends.cwnd(Role::Server);
            let flow = self.flow_of(index, connection);
            self.metrics.on_still_open(&flow, Some(cwnd));
        }
        self.network.count_senders(&mut self.metrics);
        self.network.check_conservation(claimed)
    }

    /// The time has come to the end at the bottleneck, but not yet at hosts with shifted clocks.
    /// What they still send does not reach the bottleneck in time.
    fn finish_shifted(&mut self) {
        let end = self.span.end;
        while let Some((time, next)) = self.network.next(Time::NEVER) {
            let Next::Event(event) = next else {
                unreachable!("nothing departs any more");
            };
            let is_early = match event.kind() {
                Kind::AtPort(_) | Kind::Source | Kind::Change => false,
                _ => time - self.network.clock_shift(event.conn) < end,
            };
            if is_early {
                self.dispatch(time, next);
            } else if event.is_packet() {
                self.network.count_in_flight();
            }
        }
        self.now = end;
    }

    #[inline(always)]
    fn handle(&mut self, time: Time, event: Event) {
        // 80 % of events are arrivals.
        if let Some(sender) = event.arrives_from() {
            return self.at_host(time, sender, &event);
        }
        match event.kind() {
            Kind::AtPort(_) => {
                self.network.at_port(time, event);
                self.notify_losses(None);
            }
            Kind::AtHost(_) => unreachable!("it has been dealt with"),
            Kind::Timer(role) => self.timer(time, role, &event),
            Kind::Resume(role) => self.resume(time, role, &event),
            Kind::Stop => self.stop(time, &event),
            Kind::Change => self.change_at_phase(time, event.conn),
            Kind::Source => {
                self.now = time;
                let class = event.conn as usize;
                let source = &mut self.classes[class].source;
                source.on_wake(time, event.seq, &mut self.actions);
                self.act(class);
            }
        }
    }

    // ---- packets and timers ----

    /// A packet reaches the other end.
    #[inline(always)]
    fn at_host(&mut self, time: Time, sender: Role, event: &Event) {
        let receiver = sender.other();
        let network = &mut self.network;
        let taken = self.connections.fast_path(time, sender, event, network);
        let Some((connection, now, events)) = taken else {
            return self.slow_path(time, sender, event);
        };
        self.now = now;
        if self.network.has_drops() {
            return self.after_input(event.conn, receiver, events.into());
        }
        if events.eof {
            return self.after_fin(event.conn, receiver, events);
        }
        if events.received > 0 {
            let measured = self.span.contains(now);
            // Mostly it waits for more.
            if connection.app.on_bytes(receiver, events.received, measured) {
                return self.after_app_events(event.conn, receiver, events.into(), true);
            }
        }
        let wake = connection.schedule_tcp(receiver);
        if wake.is_some() || connection.is_over() {
            self.rearm_or_release(event.conn, receiver, wake);
        }
    }

    /// [`at_host`](Self::at_host) for everything except the next data and its acknowledgement.
    fn slow_path(&mut self, time: Time, sender: Role, event: &Event) {
        let at = self.network.at_host(time, event.conn, sender.other());
        self.now = at.1;
        if self.stack_receives(event) {
            return;
        }
        if self.limits_sockets() && self.refuses_syn(sender.other(), event) {
            return;
        }
        let network = &mut self.network;
        match self.connections.slow_path(at, sender, event, network) {
            Some(events) => self.after_input(event.conn, sender.other(), events),
            None => self.deliver_datagram(event),
        }
    }

    /// A packet has arrived that no end point takes: a datagram, or a segment that was lost after
    /// all or whose connection has been aborted.
    fn deliver_datagram(&mut self, event: &Event) {
        let Some(connection) = self.connections.get(event.conn) else {
            // A connection outlives its segments: this is none.
            self.network.count_delivered();
            let received = self.datagrams.on_received(event, self.now);
            return self.notify_datagram(received);
        };
        if connection.aborted {
            self.network.count_delivered();
        } else {
            let class = usize::from(connection.class);
            self.network.count_dropped();
            self.network
                .causes_mut()
                .dropped(event, self.now, None, None);
            self.segment_lost(self.now, class, event);
        }
        self.network.take_options(event.options);
        self.release_if_over(event.conn);
    }

    /// Reports a datagram to its source, if that wants to know of it.
    #[inline]
    fn notify_datagram(&mut self, received: Option<(usize, Received)>) {
        if let Some((class, received)) = received {
            let source = &mut self.classes[class].source;
            source.on_datagram(self.now, &received, &mut self.actions);
            self.act(class);
        }
    }

    fn timer(&mut self, time: Time, role: Role, event: &Event) {
        let network = &mut self.network;
        let Some((host, now)) = self.connections.take_timer(time, role, event, network) else {
            return;
        };
        self.now = now;
        let at = (host, now);
        let fired = self.connections.on_timer(at, role, event.conn, network);
        let Some((class, events, timeouts)) = fired else {
            return self.stack_timer(event.conn, role);
        };
        if timeouts > 0 {
            self.metrics.on_timeouts(class, now, timeouts);
            if role == Role::Client && self.response_time == ResponseTime::LastSyn {
                self.application(event.conn).player.begin(now);
            }
        }
        self.after_input(event.conn, role, events);
    }

    /// The pause of an application is over.
    fn resume(&mut self, time: Time, role: Role, event: &Event) {
        let Some(now) = self.connections.on_resume(time, event, &self.network) else {
            return;
        };
        self.now = now;
        self.network.causes_mut().resumes(event.conn, role, now);
        self.play_on(event.conn, role);
        if self.limits_sockets() {
            self.close_when_sent(event.conn);
        }
    }

    /// An end point has taken an input and has sent what it wants sent: notifies the application,
    /// sets the timer.
    #[inline(always)]
    fn after_input(&mut self, index: u32, role: Role, events: Events) {
        self.notify_losses(Some(index));
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let measured = self.span.contains(self.now);
        let ready = !events.is_none() && connection.app.on_events(role, events, measured);
        if LIMITED && self.sockets.is_some() {
            let ready = self.at_socket(index, role, events, ready);
            return self.after_app_events(index, role, events, ready);
        }
        if ready | events.eof | events.failed {
            return self.after_app_events(index, role, events, ready);
        }
        let wake = connection.schedule_tcp(role);
        let may_be_over = connection.in_network == 0;
        if wake.is_some() | may_be_over | connection.is_special {
            self.rearm_or_release(index, role, wake);
        }
    }

    /// The other end has closed, behind these bytes. Out of line, so that the fast path has more
    /// registers.
    #[inline(never)]
    fn after_fin(&mut self, index: u32, role: Role, events: Delivered) {
        let measured = self.span.contains(self.now);
        let (app, events) = (self.application(index), Events::from(events));
        let ready = app.on_events(role, events, measured);
        self.after_app_events(index, role, events, ready);
    }

    /// The same from where the application, or its source, needs to know: it is `ready` to go on or
    /// not.
    fn after_app_events(&mut self, index: u32, role: Role, events: Events, ready: bool) {
        self.on_app_events(index, role, events, ready);
        if let Some(connection) = self.connections.get_mut(index) {
            let wake = connection.schedule_tcp(role);
            if wake.is_some() | (connection.in_network == 0) | connection.is_special {
                self.rearm_or_release(index, role, wake);
            }
        }
    }

    /// The same from where only the timer is to be set to `wake`, if at all.
    fn rearm_or_release(&mut self, index: u32, role: Role, wake: Option<Time>) {
        if let Some(wake) = wake {
            self.push_timer(index, role, wake);
        }
        let Some(connection) = self.connections.get(index) else {
            return;
        };
        let is_over = connection.is_over();
        if connection.is_traced {
            self.trace(index, role);
        }
        if self.limits_sockets() {
            self.close_when_sent(index);
        }
        if is_over {
            self.release(index);
        }
    }

    /// An application goes on at its own time, or because it is asked for more.
    fn play_on(&mut self, index: u32, role: Role) {
        self.play(index, role);
        if self.stack_mut(index, role).is_some() {
            self.after_stack(index, role);
        } else {
            self.schedule(index, role);
        }
    }

    /// Makes sure that an event wakes this end in time.
    fn schedule(&mut self, index: u32, role: Role) {
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let wake = connection.ends.wake_at(role, self.now);
        if let Some(wake) = connection.schedule(role, wake) {
            self.push_timer(index, role, wake);
        }
    }

    #[inline(always)]
    fn push_timer(&mut self, index: u32, role: Role, wake: Time) {
        let (kind, time) = (Kind::Timer(role), wake.max(self.now));
        self.connections.push(kind, index, time, &mut self.network);
    }

    /// Something has happened at this end of a connection that is followed.
    #[cold]
    fn trace(&mut self, index: u32, role: Role) {
        if role == Role::Client {
            return;
        }
        let is_due = self.tracer.is_due(index, self.now);
        if !is_due && self.watch.is_empty() {
            return;
        }
        if let Some((class, probe)) = self.connections.probe(index, role, self.now) {
            self.show(index, is_due, class, probe);
        }
    }

    // ---- losses ----

    /// Reports to connections what the network has dropped or lost. `acting` is the one that
    /// is at work just now, if any: it looks after its own end.
    #[inline(always)]
    fn notify_losses(&mut self, acting: Option<u32>) {
        if self.network.has_drops() {
            self.notify_all_losses(acting);
        }
    }

    fn notify_all_losses(&mut self, acting: Option<u32>) {
        // Nobody sends anything meanwhile, so the list does not grow.
        let mut dropped = self.network.take_drops();
        for Dropped {
            at, item: event, ..
        } in dropped.drain(..)
        {
            self.network.count_dropped();
            self.network.take_options(event.options);
            match self.connections.get_mut(event.conn) {
                Some(connection) => {
                    connection.in_network -= 1;
                    if connection.ends.are_stacks() {
                        self.payloads.forget(event.seq);
                    }
                    let class = usize::from(connection.class);
                    self.segment_lost(at, class, &event);
                }
                None => self.datagrams.on_lost(&event, at),
            }
            if acting != Some(event.conn) {
                self.release_if_over(event.conn);
            }
        }
        self.network.reuse_drops(dropped);
    }

    /// A segment of a connection was dropped or lost.
    fn segment_lost(&mut self, time: Time, class: usize, event: &Event) {
        if event.len > 0 {
            self.metrics.on_lost_segment(class, time);
        }
    }

    // ---- the ends of connections ----

    #[inline(always)]
    fn release_if_over(&mut self, index: u32) {
        if self.connections.get(index).is_some_and(Connection::is_over) {
            self.release(index);
        }
    }

    fn release(&mut self, index: u32) {
        let Some(connection) = self.connections.get(index) else {
            return;
        };
        if connection.is_traced {
            self.tracer.forget(index);
            self.watch.forget(index);
        }
        if self.limits_sockets() {
            self.close_all(index);
        }
        let Some(connection) = self.connections.get(index) else {
            return;
        };
        let class = usize::from(connection.class);
        self.metrics.on_closed(&self.flow_of(index, connection));
        if self.classes[class].remembers_peers {
            self.connections.remember(index, &self.network);
        }
        self.connections.remove(index);
        self.network.causes_mut().closes(index);
    }

    /// What a connection has done so far.
    fn flow_of(&self, index: u32, connection: &Connection) -> Flow {
        let (app, class) = (&connection.app, usize::from(connection.class));
        let routes = self.network.routes(index);
        let (response_bytes, request_bytes) = app.received();
        Flow {
            flow: routes.flow(),
            class,
            start: app.connected_at,
            rtt: routes.round_trip(self.hosts.link_delay(self.classes[class].path)),
            end: connection.last_event,
            request_bytes,
            response_bytes,
            measured_bytes: app.measured_bytes,
            retransmissions: connection.ends.retransmissions(),
            delayed_by: app.delayed_by,
            has_fast_retransmit: connection.ends.has_fast_retransmit(),
            failed: connection.aborted && !connection.stopped,
        }
    }

    // ---- applications ----

    /// Something has happened that matters to an application, or to its source.
    fn on_app_events(&mut self, index: u32, role: Role, events: Events, ready: bool) {
        if events.failed {
            return self.abort(index);
        }
        if role == Role::Client && events.eof {
            self.report(index);
        }
        if ready {
            self.play(index, role);
        }
    }

    /// An application goes on in its program until it has to wait.
    fn play(&mut self, index: u32, role: Role) {
        if role == Role::Client && self.response_time == ResponseTime::Request {
            let now = self.now;
            self.application(index).player.begin(now);
        }
        loop {
            let now = self.now;
            match self.application(index).player.next(role, now) {
                AppAction::Wait | AppAction::End => return,
                AppAction::Pause(time) => {
                    let kind = Kind::Resume(role);
                    let network = &mut self.network;
                    network.causes_mut().pauses(index, role, now);
                    return self.connections.push(kind, index, now + time, network);
                }
                AppAction::Write { bytes, close } => {
                    let (what, network) = ((bytes, close), &mut self.network);
                    if self.connections.write(index, role, what, now, network) {
                        self.notify_losses(Some(index));
                    }
                    if close {
                        return;
                    }
                }
                AppAction::Withdraw => self.connections.withdraw(index, role),
                AppAction::Fetch { bytes, .. } => {
                    if let Some(end) = self.stack_mut(index, role) {
                        end.ask(now, bytes);
                    }
                }
                AppAction::Answer {
                    number,
                    bytes,
                    urgency,
                } => {
                    if let Some(end) = self.stack_mut(index, role) {
                        end.answer(now, number, bytes, urgency);
                    }
                }
                AppAction::Loaded => {
                    let token = self.application(index).token;
                    let class = self.class_of(index);
                    self.classes[class].source.on_object(now, token);
                }
                AppAction::Asked => {
                    let class = self.class_of(index);
                    self.metrics.on_exchange_start(class, now);
                    self.network.causes_mut().asks(index, now);
                }
                AppAction::Answered(exchange) => {
                    self.record_exchange(index, &exchange);
                    // Its source may have asked for more, and this end has played that already.
                    if self.application(index).player.awaits_bytes(role) {
                        return;
                    }
                }
            }
        }
    }

    fn record_exchange(&mut self, index: u32, exchange: &Answered) {
        let (end, class) = (self.now, self.class_of(index));
        let flow = self.network.routes(index).flow();
        let app = self.application(index);
        let exchange = Exchange {
            flow,
            class,
            start: exchange.asked_at,
            end,
            request_bytes: exchange.request_bytes,
            response_bytes: exchange.response_bytes,
            client: app.client,
            server: app.server,
        };
        let token = app.token;
        self.metrics.on_exchange(&exchange);
        let causes = self.network.causes_mut();
        causes.explain(index, &exchange, &mut self.metrics);
        if E::Causes::ON && !self.application(index).player.may_answer() {
            self.network.causes_mut().closes(index);
        }
        if self.classes[class].listens {
            let source = &mut self.classes[class].source;
            source.on_answered(end, token, &mut self.actions);
            self.act(class);
        }
    }

    fn abort(&mut self, index: u32) {
        if let Some(connection) = self.connections.get_mut(index) {
            connection.aborted = true;
        }
        self.report(index);
    }

    /// Reports to the source, once, that a connection is over.
    fn report(&mut self, index: u32) {
        let Some(connection) = self.connections.get_mut(index) else {
            return;
        };
        let app = &mut connection.app;
        if std::mem::replace(&mut app.reported, true) {
            return;
        }
        app.delayed_by = connection.ends.retransmissions().into();
        let (token, class) = (app.token, usize::from(connection.class));
        if self.limits_sockets() {
            self.close_client(index);
        }
        let source = &mut self.classes[class].source;
        source.on_finished(self.now, token, &mut self.actions);
        // A source of an open loop never has an answer.
        if !self.actions.is_empty() {
            self.act(class);
        }
    }

    #[inline(always)]
    fn application(&mut self, index: u32) -> &mut Application {
        let connection = self.connections.get_mut(index);
        let connection = connection.expect("an application lives as long as its connection");
        &mut connection.app
    }

    fn class_of(&self, index: u32) -> usize {
        let connection = self.connections.get(index);
        connection.map_or(0, |it| usize::from(it.class))
    }

    /// The network, to interfere with it.
    #[cfg(test)]
    pub(crate) const fn network_mut(&mut self) -> &mut Network<E> {
        &mut self.network
    }

    /// [`end`](Self::end), with the hash of what reached the ports.
    #[cfg(test)]
    pub(crate) fn end_with_fingerprint(
        mut self,
        scenario: &Scenario,
    ) -> (aqmlab_record::Summary, crate::fingerprint::Fingerprint) {
        self.close().expect("everything balances");
        let fingerprint = self.network.fingerprint();
        let mut links = self
            .network
            .finish(&mut self.metrics)
            .expect("nothing is written");
        let summary = self.metrics.finish(scenario, &mut links, self.events);
        (summary.expect("nothing is written"), fingerprint)
    }
}
