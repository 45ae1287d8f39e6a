//! The simulated world: hosts, connections, ports, and the loop that moves them.
//!
//! A segment costs one or two events. Everything between is computed: a host's own link and most
//! bottlenecks serve in order, so the time at which a segment leaves them is known when it enters.
//!
//! # Shifted clocks
//!
//! Between a host and the bottleneck's entrance a segment is delayed by a constant, d, if the
//! host's link has no finite rate. Both ends of a connection have the same d, unless the scenario
//! says that one of them has all of it. So everything that
//! happens on the connection may be computed d later than it happens, with the clocks of its hosts
//! d behind: then its segments reach the bottleneck in the very moment in which they are sent, and
//! need no event for the way there. What the bottleneck sees is the same. It is exact as long as
//! nothing else depends on when a host does something: the connections of users who wait for one
//! another's responses are not shifted, nor those whose hosts share a link.

use aqmlab_link::{AccessLinks, Port};
use aqmlab_net::{Rate, Time};
use aqmlab_record::{
    Conservation, LinkDirection, MeasuredSpan, Metrics, Records, RunError, Summary, View,
};
use aqmlab_scenario::{DelayAt, Link, Scenario};
use aqmlab_tcp::{HostClock, Profile};
use aqmlab_traffic::{Action, Source};

use crate::build;
use crate::capture::Capture;
use crate::connection::{Connection, Path};
use crate::datagrams::DatagramFlow;
use crate::event::{Event, Kind};
use crate::event_queue::{EventQueue, Next};
use crate::limits::Variants;
use crate::network::Network;
use crate::options::OptionsAside;
use crate::trace::Tracer;

/// Housekeeping (progress, writing out queue samples) happens this many times a run.
const CHECKPOINTS: u64 = 200;

/// One class of traffic.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    /// Number of the path between its servers and clients.
    pub(crate) path: usize,
    pub(crate) dscp: u8,
    pub(crate) profile: Profile,
    pub(crate) variants: Variants,
    pub(crate) source: Source,
    /// The datagram flows, by the source's token.
    pub(crate) datagrams: Vec<u32>,
}

/// Ways to save events. All are exact; the tests run without them to show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortcuts {
    /// Departures are computed where the discipline decides on arrival.
    pub(crate) analytic_service: bool,
    /// Connections have shifted clocks where nothing else depends on them.
    pub(crate) shifted_clocks: bool,
}

impl Default for Shortcuts {
    fn default() -> Self {
        Self {
            analytic_service: true,
            shifted_clocks: true,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) connection: Option<Connection>,
    pub(crate) generation: u32,
}

/// A run under way.
pub(crate) struct World<A> {
    pub(crate) seed: u64,
    /// The time at the host that acts.
    pub(crate) now: Time,
    pub(crate) window: MeasuredSpan,
    pub(crate) network: Network<A>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) free: Vec<u32>,
    pub(crate) datagrams: Vec<DatagramFlow>,
    pub(crate) flows_opened: u64,
    /// The timers of each host's stack.
    pub(crate) clocks: Vec<HostClock>,
    /// Server hosts of each path.
    pub(crate) servers: u32,
    pub(crate) paths: Vec<Path>,
    pub(crate) delay_at: DelayAt,
    pub(crate) shifted_clocks: bool,
    pub(crate) classes: Vec<Class>,
    pub(crate) metrics: Metrics,
    pub(crate) tracer: Tracer,
    pub(crate) events: u64,
    /// Reused between events.
    pub(crate) actions: Vec<Action>,
}

/// The highest rate that a link has in the run.
fn fastest_rate(link: &Link) -> Rate {
    let changes = link.rate_changes.iter().map(|change| change.rate);
    changes.fold(link.rate, Ord::max)
}

impl<A: EventQueue> World<A> {
    pub(crate) fn new(
        scenario: &Scenario,
        shortcuts: Shortcuts,
        records: Box<dyn Records>,
    ) -> Result<Self, RunError> {
        let network = scenario.topology.network();
        let window = MeasuredSpan::of(&scenario.measure);
        let links: Vec<&Link> = network
            .links
            .values()
            .flat_map(|link| [&link.forward, &link.reverse])
            .collect();
        let port_names = LinkDirection::all(&network);
        let port = |(link, name)| {
            let make = match shortcuts.analytic_service {
                true => Port::new,
                false => Port::stored,
            };
            make(name, link, scenario.seed, &scenario.measure)
        };
        let ports: Vec<Port<Event>> = links.iter().copied().zip(&port_names).map(port).collect();
        let classes = build::classes(scenario, &network)?;
        let of_ports = ports.iter().map(Port::stats);
        let mut metrics = Metrics::new(scenario, View::Everything, of_ports, records)?;
        let mut capture = None;
        if let Some(wanted) = &scenario.measure.capture
            && let Some(sink) = metrics.capture()?
        {
            let profiles = classes.iter().map(|class| &class.profile);
            capture = Some(Box::new(Capture::new(sink, wanted, &port_names, profiles)?));
        }
        let hosts = &network.hosts;
        let fastest = links.iter().map(|link| fastest_rate(link)).max();
        let fastest = fastest.expect("a network has links");
        let (paths, hops) = build::paths(&network);
        let clocks = build::clocks(scenario, &network);
        Ok(Self {
            seed: scenario.seed,
            now: Time::ZERO,
            window,
            network: Network {
                event_queue: A::new(ports.len(), fastest),
                routes: Vec::with_capacity(1 << 10),
                options: OptionsAside::default(),
                access: AccessLinks::new(hosts, clocks.len()).map(|up| [up.clone(), up]),
                hops,
                ports,
                capture,
                conservation: Conservation::default(),
                end: window.end,
                dropped: Vec::new(),
                #[cfg(test)]
                fingerprint: Default::default(),
            },
            slots: Vec::with_capacity(1 << 10),
            free: Vec::new(),
            datagrams: Vec::new(),
            flows_opened: 0,
            clocks,
            servers: hosts.servers,
            paths,
            delay_at: hosts.delay_at,
            shifted_clocks: shortcuts.shifted_clocks
                && hosts.rate.is_none()
                && hosts.delay_at == DelayAt::Both,
            tracer: Tracer::new(scenario.measure.flow_trace.clone(), classes.len()),
            classes,
            metrics,
            events: 0,
            actions: Vec::new(),
        })
    }

    /// Runs to the end of the measured span. `progress` is told the share done, now and then;
    /// it returns false to stop the run.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), RunError> {
        for class in 0..self.classes.len() {
            self.classes[class].source.start(&mut self.actions);
            self.act(class);
        }
        let end = self.window.end;
        let step = Time::from_nanos(end.as_nanos() / CHECKPOINTS + 1);
        let mut checkpoint = step;
        while let Some((time, next)) = self.network.event_queue.next(end) {
            while time >= checkpoint {
                if !progress(checkpoint.as_secs_f64() / end.as_secs_f64()) {
                    return Err(RunError::Stopped);
                }
                self.catch_up(checkpoint);
                self.metrics.check()?;
                checkpoint += step;
            }
            self.events += 1;
            match next {
                Next::Event(event) => self.handle(time, event),
                Next::Departure(port) => {
                    self.network.depart(time, port);
                    self.notify_losses(None);
                }
            }
        }
        for port in &mut self.network.ports {
            port.close(end);
        }
        self.finish_shifted();
        self.check_conservation()
    }

    /// The time has come to the end at the bottleneck, but not yet at hosts with shifted clocks.
    /// What they still send does not reach the bottleneck in time.
    fn finish_shifted(&mut self) {
        let end = self.window.end;
        for port in 0..self.network.ports.len() {
            self.network.event_queue.set_departure(port, Time::NEVER);
        }
        while let Some((time, next)) = self.network.event_queue.next(Time::NEVER) {
            let Next::Event(event) = next else {
                unreachable!("there are no departures any more");
            };
            let is_early = match event.kind() {
                Kind::AtPort(_) | Kind::Source => false,
                _ => time - self.network.routes[event.conn as usize].shift() < end,
            };
            if is_early {
                self.events += 1;
                self.handle_late(time, event);
            } else if event.is_packet() {
                self.network.conservation.in_flight += 1;
            }
        }
        self.now = end;
    }

    /// Writes what is left of the records, and sums up.
    pub(crate) fn finish(self, scenario: &Scenario) -> Result<Summary, RunError> {
        let mut network = self.network;
        if let Some(capture) = network.capture.take() {
            capture.finish()?;
        }
        let links = network.ports.iter_mut().map(Port::stats_mut);
        self.metrics.finish(scenario, links, self.events)
    }

    /// [`handle`](Self::handle) where it is not worth its space.
    #[inline(never)]
    fn handle_late(&mut self, time: Time, event: Event) {
        self.handle(time, event);
    }

    #[inline(always)]
    fn handle(&mut self, time: Time, event: Event) {
        // Four of five.
        if let Some(sender) = event.arrives_from() {
            return self.at_host(time, sender, &event);
        }
        match event.kind() {
            Kind::AtPort(_) => {
                self.network.at_port(time, event);
                self.notify_losses(None);
            }
            Kind::AtHost(_) => unreachable!("it has been dealt with"),
            Kind::Timer(side) => self.timer(time, side, &event),
            Kind::Resume(side) => self.resume(time, side, &event),
            Kind::Source => {
                self.now = time;
                let class = event.conn as usize;
                self.classes[class]
                    .source
                    .on_wake(self.now, event.seq, &mut self.actions);
                self.act(class);
            }
        }
    }

    /// Carries out what the source of `class` asked for.
    #[inline(never)]
    pub(crate) fn act(&mut self, class: usize) {
        // Nothing that happens here asks a source for more, so the list does not grow meanwhile.
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Connect(connect) => self.open(class, connect),
                Action::OpenDatagrams(open) => self.open_datagrams(class, &open),
                Action::Datagram { token, size } => self.send_datagram(class, token, size),
                Action::Refused => self.refused(class),
                Action::EndConnections => self.end_connections(class),
                Action::WakeAt { at, token } => {
                    let event = Event::source(class as u32, token);
                    self.network.event_queue.push(at.max(self.now), event);
                }
            }
        }
        self.actions = actions;
    }

    /// Brings the ports' books up to `time` and writes out their samples.
    fn catch_up(&mut self, time: Time) {
        self.network.catch_up(time);
        for port in &mut self.network.ports {
            self.metrics.record_samples(port.stats_mut());
        }
    }
}
