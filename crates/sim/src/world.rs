//! The simulated world: hosts, connections, the bottleneck, and the loop that moves them.
//!
//! A segment costs two events: its arrival at the bottleneck and its arrival at the other host.
//! Everything between is computed: a host's own link and the bottleneck serve in order, so the
//! time at which a segment leaves them is known when it enters.

use aqmlab_net::{FlowKey, RandomStream, Rate, Time};
use aqmlab_scenario::{Dumbbell, Scenario, Topology};
use aqmlab_tcp::{Clock, Context, DelayedAck, Endpoint, Events, HostClock, Profile, Segment};
use aqmlab_traffic::{Action, Connect, HostCounts, Source};

use crate::RunError;
use crate::connection::{Answer, Application, Connection, Route};
use crate::event::{Event, Kind, Side};
use crate::port::{Passage, Port};
use crate::recorder::{FlowRow, QueueSamples, Recorder, ResponseRow};
use crate::stats::{FlowStats, ResponseStats, Window};
use crate::wheel::Wheel;

/// The ports, by index: forward carries what servers send, reverse what clients send.
pub(crate) const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// Housekeeping (progress, writing out queue samples) happens this many times a run.
const CHECKPOINTS: u64 = 200;

/// A host: the timers of its stack and its own link, both ways.
#[derive(Debug)]
struct Node {
    clock: HostClock,
    up_free: Time,
    down_free: Time,
}

/// One class of traffic.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    profile: Profile,
    source: Source,
    pub(crate) responses: ResponseStats,
    pub(crate) flows: FlowStats,
}

/// Where every segment went: the books must balance at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
}

/// A host's own link.
#[derive(Clone, Copy, Debug)]
struct AccessLink {
    rate: Rate,
    framing: u64,
}

#[derive(Debug)]
struct Slot {
    connection: Option<Connection>,
    generation: u32,
}

/// A run under way.
pub(crate) struct World {
    now: Time,
    window: Window,
    wheel: Wheel<Event>,
    slots: Vec<Slot>,
    /// By slot, like `slots`.
    routes: Vec<Route>,
    free: Vec<u32>,
    flows_opened: u64,
    nodes: Vec<Node>,
    access: Option<AccessLink>,
    servers: u32,
    /// Propagation on the bottleneck, both ways together: part of every round trip.
    bottleneck_delay: Time,
    pub(crate) ports: [Port; 2],
    samples: [QueueSamples; 2],
    pub(crate) classes: Vec<Class>,
    recorder: Recorder,
    tally: Tally,
    pub(crate) events: u64,
    /// Reused between events.
    segments: Vec<Segment>,
    actions: Vec<Action>,
}

impl World {
    pub(crate) fn new(
        scenario: &Scenario,
        recorder: impl FnOnce(&[String], &[&'static str]) -> Result<Recorder, RunError>,
    ) -> Result<Self, RunError> {
        let Topology::Dumbbell(dumbbell) = &scenario.topology;
        let window = Window {
            start: scenario.measure.warm_up,
            end: scenario.measure.warm_up + scenario.measure.duration,
        };
        let links = [&dumbbell.bottleneck.forward, &dumbbell.bottleneck.reverse];
        let sample = scenario.measure.queue_sample;
        let ports =
            [0, 1].map(|i| Port::new(links[i], DIRECTIONS[i], scenario.seed, window, sample));
        let samples = [0, 1].map(|i| QueueSamples::new(DIRECTIONS[i], ports[i].probe_names()));
        let mut probes = ports[0].probe_names().to_vec();
        probes.extend(
            ports[1]
                .probe_names()
                .iter()
                .filter(|name| !ports[0].probe_names().contains(name)),
        );
        let classes = classes(scenario, dumbbell)?;
        let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
        let recorder = recorder(&names, &probes)?;
        let hosts = &dumbbell.hosts;
        Ok(Self {
            now: Time::ZERO,
            window,
            wheel: Wheel::default(),
            slots: Vec::new(),
            routes: Vec::new(),
            free: Vec::new(),
            flows_opened: 0,
            nodes: nodes(scenario, hosts.servers + hosts.clients),
            access: hosts.rate.map(|rate| AccessLink {
                rate,
                framing: u64::from(hosts.framing.0),
            }),
            servers: hosts.servers,
            bottleneck_delay: links[0].delay + links[1].delay,
            ports,
            samples,
            classes,
            recorder,
            tally: Tally::default(),
            events: 0,
            segments: Vec::new(),
            actions: Vec::new(),
        })
    }

    /// Runs to the end of the measured span. `progress` is told the share done, now and then;
    /// it returns false to stop the run.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), RunError> {
        for class in 0..self.classes.len() {
            self.classes[class].source.start(&mut self.actions);
            self.act(class)?;
        }
        let step = Time::from_nanos(self.window.end.as_nanos() / CHECKPOINTS + 1);
        let mut checkpoint = step;
        let mut beyond = None;
        while let Some((time, event)) = self.wheel.pop() {
            if time >= self.window.end {
                beyond = Some(event);
                break;
            }
            while time >= checkpoint {
                let share = checkpoint.as_secs_f64() / self.window.end.as_secs_f64();
                if !progress(share) {
                    return Err(RunError::Stopped);
                }
                self.catch_up(checkpoint)?;
                checkpoint += step;
            }
            self.now = time;
            self.events += 1;
            self.handle(event)?;
        }
        self.now = self.window.end;
        self.catch_up(self.window.end)?;
        self.close_books(beyond.as_ref())
    }

    /// Writes what is left of the records.
    pub(crate) fn finish(self) -> Result<(), RunError> {
        self.recorder.finish()
    }

    fn handle(&mut self, event: Event) -> Result<(), RunError> {
        match event.kind() {
            Kind::AtPort(sender) => self.at_port(sender, event),
            Kind::AtHost(sender) => self.at_host(sender, &event),
            Kind::Timer(side) => self.timer(side, &event),
            Kind::NextRequest => self.next_request(&event),
            Kind::Source => {
                let class = event.conn as usize;
                self.classes[class]
                    .source
                    .on_wake(self.now, event.seq, &mut self.actions);
                self.act(class)
            }
        }
    }

    // ---- the network ----

    /// Puts what an end point wants to send on its host's link, towards the bottleneck.
    fn transmit(&mut self, index: u32, sender: Side) {
        if self.segments.is_empty() {
            return;
        }
        let route = &self.routes[index as usize];
        let node = &mut self.nodes[route.nodes[sender as usize] as usize];
        let mut sent = 0;
        for segment in self.segments.drain(..) {
            let mut leaves = self.now;
            if let Some(link) = self.access {
                let size = u64::from(route.ip_size(segment.len, segment.flags));
                let occupied = link.rate.transmission_time(size + link.framing);
                leaves = leaves.max(node.up_free) + occupied;
                node.up_free = leaves;
            }
            let event = Event::segment(Kind::AtPort(sender), index, &segment);
            self.wheel.push(leaves + route.access_delay, event);
            sent += 1;
        }
        self.tally.sent += u64::from(sent);
        if let Some(connection) = self.slots[index as usize].connection.as_mut() {
            connection.in_network += sent;
        }
    }

    fn at_port(&mut self, sender: Side, event: Event) -> Result<(), RunError> {
        let route = &self.routes[event.conn as usize];
        let port = route.port(sender);
        let size = route.ip_size(u32::from(event.len), event.flags());
        let flow = FlowKey(route.flow << 1 | sender as u64);
        let samples = &mut self.samples[port];
        match self.ports[port].arrive(self.now, size, event.ecn(), flow, samples) {
            Passage::Arrives(mut time, ecn) => {
                if let Some(link) = self.access {
                    let node = &mut self.nodes[route.nodes[sender.other() as usize] as usize];
                    let occupied = link.rate.transmission_time(u64::from(size) + link.framing);
                    time = time.max(node.down_free) + occupied;
                    node.down_free = time;
                }
                self.wheel.push(time, event.passed_on(sender, ecn));
                return Ok(());
            }
            Passage::Dropped => self.tally.dropped += 1,
            Passage::Lost => self.tally.lost += 1,
        }
        if let Some(connection) = self.slots[event.conn as usize].connection.as_mut() {
            connection.in_network -= 1;
        }
        self.release_if_over(event.conn)
    }

    /// Brings the ports' books up to `time` and writes out their samples.
    fn catch_up(&mut self, time: Time) -> Result<(), RunError> {
        for (port, samples) in self.ports.iter_mut().zip(&mut self.samples) {
            port.catch_up(time, samples);
            self.recorder.queue(samples)?;
        }
        Ok(())
    }

    // ---- connections ----

    /// Carries out what the source of `class` asked for.
    fn act(&mut self, class: usize) -> Result<(), RunError> {
        // Nothing that happens here asks a source for more, so the list does not grow meanwhile.
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Connect(connect) => self.open(class, connect)?,
                Action::WakeAt { at, token } => {
                    self.wheel
                        .push(at.max(self.now), Event::source(class as u32, token));
                }
            }
        }
        self.actions = actions;
        Ok(())
    }

    fn open(&mut self, class: usize, connect: Connect) -> Result<(), RunError> {
        let (client, server) = if connect.flipped {
            (connect.client, self.servers + connect.server)
        } else {
            (self.servers + connect.client, connect.server)
        };
        let profile = &self.classes[class].profile;
        let cx = Context {
            now: self.now,
            profile,
            host: &self.nodes[client as usize].clock,
        };
        self.flows_opened += 1;
        let flow = self.flows_opened;
        let nodes = [client, server];
        let route = Route::new(&connect, flow, nodes, self.bottleneck_delay, profile);
        let connection = Connection {
            ends: [
                Endpoint::connect(cx, &mut self.segments),
                Endpoint::listen(profile),
            ],
            timer_at: [Time::NEVER; 2],
            in_network: 0,
            class: class as u16,
            failed: false,
            app: Application::new(connect, flow, self.now),
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Slot {
                    connection: None,
                    generation: 0,
                });
                self.routes.push(route);
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[index as usize].connection = Some(connection);
        self.routes[index as usize] = route;
        if self.window.contains(self.now) {
            self.classes[class].responses.started += 1;
        }
        self.transmit(index, Side::Client);
        self.schedule(index, Side::Client);
        Ok(())
    }

    fn at_host(&mut self, sender: Side, event: &Event) -> Result<(), RunError> {
        self.tally.delivered += 1;
        let receiver = sender.other();
        let Some(connection) = self.slots[event.conn as usize].connection.as_mut() else {
            unreachable!("a connection outlives its segments");
        };
        connection.in_network -= 1;
        if connection.failed {
            return self.release_if_over(event.conn);
        }
        let cx = Context {
            now: self.now,
            profile: &self.classes[usize::from(connection.class)].profile,
            host: &self.nodes[self.routes[event.conn as usize].nodes[receiver as usize] as usize]
                .clock,
        };
        let end = connection.end(receiver);
        let segment = Segment {
            seq: Segment::unwrap_seq(event.seq, end.next_expected()),
            ack: Segment::unwrap_seq(event.ack, end.oldest_unacknowledged()),
            len: u32::from(event.len),
            flags: event.flags(),
            ecn: event.ecn(),
        };
        let events = end.on_segment(&segment, cx, &mut self.segments);
        self.after(event.conn, receiver, events)
    }

    fn timer(&mut self, side: Side, event: &Event) -> Result<(), RunError> {
        let slot = &mut self.slots[event.conn as usize];
        if slot.generation != event.generation() {
            return Ok(()); // The slot has gone to another connection since.
        }
        let Some(connection) = slot.connection.as_mut() else {
            return Ok(());
        };
        if connection.timer_at[side as usize] != self.now || connection.failed {
            return Ok(()); // An earlier event has taken its place.
        }
        connection.timer_at[side as usize] = Time::NEVER;
        let mut events = Events::default();
        if connection.ends[side as usize].wake_at() <= self.now {
            let cx = Context {
                now: self.now,
                profile: &self.classes[usize::from(connection.class)].profile,
                host: &self.nodes[self.routes[event.conn as usize].nodes[side as usize] as usize]
                    .clock,
            };
            events = connection.end(side).on_timer(cx, &mut self.segments);
        }
        self.after(event.conn, side, events)
    }

    /// An end point has been given something: sends what it wants sent, tells the application,
    /// sets the timer.
    fn after(&mut self, index: u32, side: Side, events: Events) -> Result<(), RunError> {
        self.transmit(index, side);
        if events != Events::default() {
            self.tell_application(index, side, events)?;
        }
        self.schedule(index, side);
        self.release_if_over(index)
    }

    /// Makes sure that an event wakes this end in time.
    fn schedule(&mut self, index: u32, side: Side) {
        let slot = &mut self.slots[index as usize];
        let Some(connection) = slot.connection.as_mut() else {
            return;
        };
        let wake = connection.ends[side as usize].wake_at();
        let pending = &mut connection.timer_at[side as usize];
        if wake < *pending {
            *pending = wake;
            let event = Event::connection(Kind::Timer(side), index, slot.generation);
            self.wheel.push(wake.max(self.now), event);
        }
    }

    fn release_if_over(&mut self, index: u32) -> Result<(), RunError> {
        let slot = &mut self.slots[index as usize];
        if !slot.connection.as_ref().is_some_and(Connection::is_over) {
            return Ok(());
        }
        let Some(connection) = slot.connection.take() else {
            return Ok(());
        };
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.close_flow(&connection)
    }

    // ---- applications ----

    fn tell_application(&mut self, index: u32, side: Side, events: Events) -> Result<(), RunError> {
        if events.failed {
            return self.give_up(index);
        }
        match side {
            Side::Client => {
                if events.established {
                    let request = self.application(index).current().request;
                    self.write(index, Side::Client, request, false);
                }
                self.client_reads(index, events)
            }
            Side::Server => {
                if let Answer::Write { bytes, close } =
                    self.application(index).server_reads(events.received)
                {
                    self.write(index, Side::Server, bytes, close);
                }
                Ok(())
            }
        }
    }

    fn client_reads(&mut self, index: u32, events: Events) -> Result<(), RunError> {
        if events.received > 0 {
            let measured = self.window.contains(self.now);
            let app = self.application(index);
            if measured {
                app.measured_bytes += events.received;
            }
            if app.client_reads(events.received) {
                let pause = app.current().pause;
                self.record_response(index)?;
                let generation = self.slots[index as usize].generation;
                let event = Event::connection(Kind::NextRequest, index, generation);
                self.wheel.push(self.now + pause, event);
            }
        }
        if events.eof {
            self.record_response(index)?;
            self.report(index)?;
            self.write(index, Side::Client, 0, true);
        }
        Ok(())
    }

    fn next_request(&mut self, event: &Event) -> Result<(), RunError> {
        let slot = &mut self.slots[event.conn as usize];
        if slot.generation != event.generation() {
            return Ok(());
        }
        let Some(connection) = slot.connection.as_mut() else {
            return Ok(());
        };
        if connection.failed {
            return Ok(());
        }
        let request = connection.app.next_request(self.now);
        let class = usize::from(connection.class);
        if self.window.contains(self.now) {
            self.classes[class].responses.started += 1;
        }
        self.write(event.conn, Side::Client, request, false);
        self.schedule(event.conn, Side::Client);
        Ok(())
    }

    fn write(&mut self, index: u32, side: Side, bytes: u64, close: bool) {
        let connection = self.slots[index as usize]
            .connection
            .as_mut()
            .expect("an application outlives its writes");
        let cx = Context {
            now: self.now,
            profile: &self.classes[usize::from(connection.class)].profile,
            host: &self.nodes[self.routes[index as usize].nodes[side as usize] as usize].clock,
        };
        let end = connection.end(side);
        // Two calls, as applications make them: what the window lets out at once goes before
        // the FIN, which then travels alone.
        if bytes > 0 {
            end.write(bytes, cx, &mut self.segments);
        }
        if close {
            end.close(cx, &mut self.segments);
        }
        self.transmit(index, side);
    }

    fn give_up(&mut self, index: u32) -> Result<(), RunError> {
        if let Some(connection) = self.slots[index as usize].connection.as_mut() {
            connection.failed = true;
        }
        self.report(index)
    }

    /// Tells the source, once, that a connection is over.
    fn report(&mut self, index: u32) -> Result<(), RunError> {
        let now = self.now;
        let Some(connection) = self.slots[index as usize].connection.as_mut() else {
            return Ok(());
        };
        if std::mem::replace(&mut connection.app.reported, true) {
            return Ok(());
        }
        connection.app.delayed_by = connection.retransmissions();
        let (token, class) = (connection.app.token, usize::from(connection.class));
        self.classes[class]
            .source
            .on_finished(now, token, &mut self.actions);
        self.act(class)
    }

    fn application(&mut self, index: u32) -> &mut Application {
        &mut self.slots[index as usize]
            .connection
            .as_mut()
            .expect("an application lives as long as its connection")
            .app
    }

    fn class_of(&self, index: u32) -> usize {
        self.slots[index as usize]
            .connection
            .as_ref()
            .map_or(0, |c| usize::from(c.class))
    }

    // ---- records ----

    fn record_response(&mut self, index: u32) -> Result<(), RunError> {
        if !self.window.contains(self.now) {
            return Ok(());
        }
        let (now, class) = (self.now, self.class_of(index));
        let app = self.application(index);
        let exchange = app.current();
        let row = ResponseRow {
            flow: app.flow,
            class,
            start: app.asked_at,
            response: now - app.asked_at,
            request_bytes: exchange.request,
            response_bytes: exchange.response,
            client: app.client,
            server: app.server,
        };
        self.classes[class].responses.add(row.response);
        self.recorder.response(&row)
    }

    fn close_flow(&mut self, connection: &Connection) -> Result<(), RunError> {
        self.count_goodput(connection);
        if !self.window.contains(self.now) {
            return Ok(());
        }
        let app = &connection.app;
        let again = connection.retransmissions();
        let (response_bytes, request_bytes) = app.received();
        let flows = &mut self.classes[usize::from(connection.class)].flows;
        flows.count += 1;
        flows.failed += u64::from(connection.failed);
        flows.retransmitted_syn += u64::from(again.syn);
        flows.retransmitted_fin += u64::from(again.fin);
        flows.retransmitted_data += u64::from(again.data);
        flows.timeouts += u64::from(again.timeouts);
        let delayed_by = app.delayed_by;
        flows.by_retransmission[match (delayed_by.syn > 0, delayed_by.fin > 0, delayed_by.data > 0)
        {
            (false, false, false) => 0,
            (true, false, false) => 1,
            (false, true, false) => 2,
            (false, false, true) => 3,
            _ => 4,
        }] += 1;
        self.recorder.flow(&FlowRow {
            flow: app.flow,
            class: usize::from(connection.class),
            start: app.connected_at,
            duration: self.now - app.connected_at,
            request_bytes,
            response_bytes,
            retransmitted_syn: again.syn,
            retransmitted_fin: again.fin,
            retransmitted_data: again.data,
            timeouts: again.timeouts,
            failed: connection.failed,
        })
    }

    fn count_goodput(&mut self, connection: &Connection) {
        let app = &connection.app;
        let span = self.window.overlap(app.connected_at, self.now);
        let flows = &mut self.classes[usize::from(connection.class)].flows;
        flows.response_bytes += app.measured_bytes;
        flows.add_goodput(app.measured_bytes, span);
    }

    /// The end of the run: counts what goes on, and checks that no segment was lost or made.
    fn close_books(&mut self, beyond: Option<&Event>) -> Result<(), RunError> {
        let slots = std::mem::take(&mut self.slots);
        for connection in slots.iter().filter_map(|slot| slot.connection.as_ref()) {
            self.count_goodput(connection);
        }
        let waiting = self
            .wheel
            .iter()
            .chain(beyond)
            .filter(|event| event.is_segment())
            .count();
        let claimed: u64 = slots
            .iter()
            .filter_map(|s| s.connection.as_ref())
            .map(|c| u64::from(c.in_network))
            .sum();
        let Tally {
            sent,
            delivered,
            dropped,
            lost,
        } = self.tally;
        if waiting as u64 != claimed || sent != delivered + dropped + lost + claimed {
            return Err(RunError::Conservation(format!(
                "{sent} segments sent, but {delivered} delivered + {dropped} dropped + {lost} lost \
                 on the wire + {waiting} in flight (connections count {claimed})"
            )));
        }
        for (port, direction) in self.ports.iter().zip(DIRECTIONS) {
            port.check_conservation(direction)?;
        }
        Ok(())
    }
}

fn classes(scenario: &Scenario, dumbbell: &Dumbbell) -> Result<Vec<Class>, RunError> {
    let hosts = HostCounts {
        clients: dumbbell.hosts.clients,
        servers: dumbbell.hosts.servers,
    };
    scenario
        .traffic
        .iter()
        .map(|traffic| {
            let name = traffic.name.clone();
            let source = Source::new(
                &traffic.model,
                &traffic.rtt,
                traffic.direction,
                hosts,
                scenario.seed,
                &name,
            )
            .map_err(|unset| RunError::Population(format!("traffic.{name}: {unset}")))?;
            Ok(Class {
                name,
                profile: traffic.tcp.clone(),
                source,
                responses: ResponseStats::new(),
                flows: FlowStats::default(),
            })
        })
        .collect()
}

/// Hosts booted at unrelated times: the phases of their timers are uniform.
fn nodes(scenario: &Scenario, count: u32) -> Vec<Node> {
    let slow = longest(scenario, |profile| match profile.clock {
        Clock::Ticks { period } => Some(period),
        Clock::Fine { .. } => None,
    });
    let fast = longest(scenario, |profile| match profile.delayed_ack {
        DelayedAck::Grid { period } => Some(period),
        _ => None,
    });
    (0..u64::from(count))
        .map(|index| {
            let mut draws = RandomStream::new(scenario.seed, "host-phase", index);
            let mut phase =
                |period: Time| Time::from_secs_f64(draws.uniform() * period.as_secs_f64());
            let clock = HostClock {
                slow: phase(slow),
                fast: phase(fast),
            };
            Node {
                clock,
                up_free: Time::ZERO,
                down_free: Time::ZERO,
            }
        })
        .collect()
}

/// The longest of the periods that the profiles in use have.
fn longest(scenario: &Scenario, period: impl Fn(&Profile) -> Option<Time>) -> Time {
    let periods = scenario
        .traffic
        .iter()
        .filter_map(|traffic| period(&traffic.tcp));
    periods.max().unwrap_or(Time::ZERO)
}
