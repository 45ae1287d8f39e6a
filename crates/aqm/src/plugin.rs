//! Disciplines that come from outside ([`aqmlab_plugin`]): an AQM over a single FIFO, or one that
//! chooses among queues. The packets stay here, so none is lost or sent twice whatever the plug-in
//! does; limit, ECN and counters are here as well.

use std::borrow::Cow;

use aqmlab_net::{Ecn, Packet, QueueSize, Time};
use aqmlab_plugin::abi::{AQMLAB_ADMIT, AQMLAB_DROP, AQMLAB_FORCE, AQMLAB_SIGNAL, AqmlabEvent};
use aqmlab_plugin::failure::{self, Failure};
use aqmlab_plugin::{Callback, Callbacks, Instance, Makers, NOTHING, PluginKind, Settings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::aqm::{Aqm, Decision, Hooks, Outcome};
use crate::check::{self, Problem};
use crate::context::Context;
use crate::counters::Reason;
use crate::link::{Backlog, Limit, LinkFacts};
use crate::queue::{PacketQueue, Queued, Scheduler, Stats};
use aqmlab_declare::tagged::{self, Located};
use aqmlab_declare::{About, Declared, Parameters, Refused, extremes};

/// Parameters of a plug-in: those that it declares, and these.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The plug-in and its own parameters.
    pub settings: Settings,
    /// Buffer size.
    pub limit: QueueSize,
    /// If true, ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// What the seed of its random numbers also depends on: a scenario's own, so that no plug-in
    /// knows a scenario by its seed.
    pub salt: u64,
}

const LIMIT: &str = "limit";
const ECN: &str = "ecn";

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = tagged::table(deserializer)?;
        let mut own = |key: &str| table.remove(key);
        let limit = own(LIMIT).map_or(Ok(QueueSize::Packets(1000.0)), tagged::from_value);
        let ecn = own(ECN).map_or(Ok(false), tagged::from_value);
        let read = || {
            Ok(Self {
                limit: limit.map_err(|error: Located| error.under(LIMIT))?,
                ecn: ecn.map_err(|error: Located| error.under(ECN))?,
                settings: Settings::read(PluginKind::Discipline, table, &[LIMIT, ECN])?,
                salt: 0,
            })
        };
        read().map_err(Located::pass)
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.settings.write(&mut map)?;
        map.serialize_entry(LIMIT, &self.limit)?;
        map.serialize_entry(ECN, &self.ecn)?;
        map.end()
    }
}

impl JsonSchema for Params {
    fn schema_name() -> Cow<'static, str> {
        "PluginDiscipline".into()
    }

    fn inline_schema() -> bool {
        true
    }

    #[inline]
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<QueueSize>();
        let limit = json_schema!({
            "description": "Buffer size. A packet that does not fit is dropped.",
            "allOf": [size],
            "default": "1000 packets",
        });
        let ecn = json_schema!({
            "description": "If true, ECN-capable packets are marked instead of dropped.",
            "type": "boolean",
            "default": false,
        });
        Settings::schema([(LIMIT, limit), (ECN, ecn)])
    }
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "A discipline of your own",
        paper: "Your own: a Python class, a class compiled with numba, or a shared object with the \
                C ABI of aqmlab.h",
        purpose: "Runs a discipline from a file outside aqmlab, given by --plugin FILE.",
        departures: &[],
        memory: "the state of the plug-in",
    };
}

/// What a plug-in declares has bounds of its own.
impl Declared for Params {
    const CHANGEABLE: &'static [&'static str] = &[];

    fn check_each(&self) -> Result<(), Problem> {
        check::buffer(LIMIT, self.limit)
    }

    fn refused() -> Vec<Refused> {
        let mut refused = Vec::new();
        extremes(LIMIT, check::buffer, &mut refused);
        refused
    }
}

impl Params {
    pub(crate) const REASONS: &'static [Reason] =
        &[Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];

    /// Whether it is an AQM over a single FIFO: it neither chooses queues nor judges their heads.
    pub(crate) fn is_aqm(&self) -> bool {
        let choosing = [Callback::Enqueue, Callback::Dequeue, Callback::OnHead];
        !self.settings.plugin.callbacks.has_any(&choosing)
    }

    /// All its parameters can change.
    pub(crate) fn changeable(&self) -> impl Iterator<Item = &'static str> {
        self.settings
            .plugin
            .parameter_names()
            .iter()
            .copied()
            .chain([LIMIT, ECN])
    }

    pub(crate) fn aqm(&self, link: LinkFacts, seed: u64) -> PluginAqm {
        PluginAqm(Running::new(self, link, seed))
    }

    pub(crate) fn scheduler<T>(&self, link: LinkFacts, seed: u64) -> PluginScheduler<T> {
        PluginScheduler {
            running: Running::new(self, link, seed),
            limit: Limit::new(self.limit),
            queues: vec![PacketQueue::default()],
            backlog: Backlog::default(),
        }
    }
}

/// An instance, and the event that it gets.
#[derive(Clone, Debug)]
struct Running {
    settings: Settings,
    instance: Box<dyn Instance<AqmlabEvent>>,
    callbacks: Callbacks,
    event: AqmlabEvent,
    ecn: bool,
    next_tick: Time,
}

const fn nanos(time: Time) -> i64 {
    time.as_nanos() as i64
}

impl Running {
    fn new(params: &Params, link: LinkFacts, seed: u64) -> Self {
        let settings = params.settings;
        let Makers::Discipline(maker) = &settings.plugin.makers else {
            unreachable!("it was found among disciplines");
        };
        let mut running = Self {
            settings,
            instance: maker.make(settings.values),
            callbacks: settings.plugin.callbacks,
            event: AqmlabEvent::default(),
            ecn: params.ecn,
            next_tick: Time::NEVER,
        };
        running.event.seed = seed ^ params.salt;
        running.see_link(link);
        let next = running.tell(Callback::Start, Time::ZERO);
        running.tick_at(Callback::Start, next);
        if running.callbacks.has(Callback::Tick) && !running.callbacks.has(Callback::Start) {
            let problem = "is never due: there is no start, which returns the time of the first";
            running.fail(Callback::Tick, problem.to_owned());
        }
        running
    }

    fn see_link(&mut self, link: LinkFacts) {
        self.event.rate = link.rate.bps() as i64;
        self.event.framing = link.framing.0 as i64;
    }

    /// Notes when the next tick is due, as `start` or `tick` has said; a negative number: never.
    fn tick_at(&mut self, callback: Callback, next: i64) {
        self.next_tick = Time::NEVER;
        let now = self.event.now;
        if !self.callbacks.has(Callback::Tick) || next < 0 {
            return;
        }
        if next > now {
            self.next_tick = Time::from_nanos(next as u64);
            return;
        }
        let problem = format!(
            "returned {next}, which is not after now ({now}); return the time of the next tick in \
             nanoseconds, such as now plus an interval, or a negative number for never"
        );
        self.fail(callback, problem);
    }

    /// Tells the instance of something that is not about a packet, if it listens.
    fn tell(&mut self, callback: Callback, now: Time) -> i64 {
        self.event.now = nanos(now);
        if !self.callbacks.has(callback) {
            return NOTHING;
        }
        self.instance.call(callback, &mut self.event)
    }

    #[inline]
    fn see_packet(&mut self, now: Time, packet: &Packet, queue: Backlog) {
        let event = &mut self.event;
        event.now = nanos(now);
        event.flow = packet.flow.0;
        event.size = i64::from(packet.size);
        event.ecn = packet.ecn as i64;
        event.dscp = i64::from(packet.dscp);
        event.marks = i64::from(self.ecn && packet.ecn != Ecn::NotEct);
        event.packets = i64::from(queue.packets);
        event.bytes = queue.bytes as i64;
    }

    /// Asks it about the packet that it sees.
    #[inline]
    fn ask(&mut self, callback: Callback, draw: &mut impl FnMut() -> f64) -> i64 {
        let instance = &mut self.instance;
        let answer = self
            .event
            .with_draws(draw, |event| instance.call(callback, event));
        if self.event.take_nan() {
            let problem = "chance: found NaN; expected a probability, 0 to 1";
            self.fail(callback, problem.to_owned());
        }
        answer
    }

    #[inline]
    fn decide(&mut self, callback: Callback, draw: &mut impl FnMut() -> f64) -> Decision {
        match self.ask(callback, draw) {
            AQMLAB_ADMIT => Decision::Admit,
            AQMLAB_SIGNAL => Decision::Signal(Reason::EARLY),
            AQMLAB_DROP => Decision::Drop(Reason::EARLY),
            AQMLAB_FORCE => Decision::Drop(Reason::FORCED),
            other => {
                let found = shown(other);
                let problem = format!("returned {found}; return ADMIT, SIGNAL, DROP or FORCE");
                self.fail(callback, problem);
                Decision::Admit
            }
        }
    }

    /// A packet leaves.
    #[inline]
    fn on_departure(&mut self, now: Time, packet: &Packet, arrived: Time, left: Backlog) {
        self.see_packet(now, packet, left);
        self.event.arrived = nanos(arrived);
        self.instance.call(Callback::OnDeparture, &mut self.event);
    }

    fn on_tick(&mut self, now: Time, queue: Backlog) {
        (self.event.packets, self.event.bytes) = (i64::from(queue.packets), queue.bytes as i64);
        let next = self.tell(Callback::Tick, now);
        self.tick_at(Callback::Tick, next);
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.see_link(link);
        self.tell(Callback::OnLink, Time::from_nanos(self.event.now as u64));
    }

    fn adopt(&mut self, fresh: &Self) {
        self.check_parameters();
        (self.settings, self.ecn) = (fresh.settings, fresh.ecn);
        self.instance.set(self.settings.values);
        self.tell(Callback::OnChange, Time::from_nanos(self.event.now as u64));
    }

    /// Its variables, for records.
    fn probe(&self, out: &mut Vec<f64>) {
        self.check_parameters();
        let before = out.len();
        self.instance.variables(out);
        let names = self.settings.plugin.variable_names();
        let mut found = names.iter().zip(&out[before..]);
        if let Some((name, value)) = found.find(|(_, value)| !value.is_finite()) {
            let problem = format!("found {name} = {value}; expected a finite number");
            self.fail_at("its variables", problem);
        }
    }

    /// Whether its parameters are those of the scenario: records say so.
    fn check_parameters(&self) {
        if let Some(problem) = self.settings.overwritten(&*self.instance) {
            self.fail_at("its parameters", problem);
        }
    }

    #[cold]
    fn fail(&self, callback: Callback, problem: String) {
        self.fail_at(callback.name(), problem);
    }

    #[cold]
    fn fail_at(&self, callback: &'static str, problem: String) {
        failure::set(Failure {
            plugin: self.settings.plugin.name,
            callback,
            error: problem.into(),
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.check_parameters();
    }
}

/// What a callback has returned, in words.
fn shown(answer: i64) -> String {
    match answer {
        NOTHING => "None".to_owned(),
        number => number.to_string(),
    }
}

/// A plug-in over a single FIFO.
#[derive(Clone, Debug)]
pub struct PluginAqm(Running);

impl Aqm for PluginAqm {
    #[inline]
    fn on_arrival(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: Backlog,
        draw: &mut impl FnMut() -> f64,
    ) -> Decision {
        if !self.0.callbacks.has(Callback::OnArrival) {
            return Decision::Admit;
        }
        self.0.see_packet(now, packet, queue);
        self.0.decide(Callback::OnArrival, draw)
    }

    #[inline]
    fn on_outcome(&mut self, now: Time, packet: &Packet, queue: Backlog, _outcome: Outcome) {
        self.0.see_packet(now, packet, queue);
        self.0
            .instance
            .call(Callback::OnOverflow, &mut self.0.event);
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            arrivals: true,
            outcomes: false,
            overflows: self.0.callbacks.has(Callback::OnOverflow),
            departures: self.0.callbacks.has(Callback::OnDeparture),
        }
    }

    #[inline]
    fn on_departure(&mut self, now: Time, packet: &Packet, arrived: Time, queue: Backlog) {
        self.0.on_departure(now, packet, arrived, queue);
    }

    #[inline]
    fn on_idle(&mut self, since: Time) {
        self.0.tell(Callback::OnIdle, since);
    }

    fn next_tick(&self) -> Time {
        self.0.next_tick
    }

    fn on_tick(&mut self, now: Time, queue: Backlog) {
        self.0.on_tick(now, queue);
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.0.set_link(link);
    }

    fn adopt(&mut self, fresh: Self) {
        self.0.adopt(&fresh.0);
    }

    fn probe_names(&self) -> &'static [&'static str] {
        self.0.settings.plugin.variable_names()
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.0.probe(out);
    }
}

/// A plug-in that chooses among queues, or judges their heads.
#[derive(Debug)]
pub struct PluginScheduler<T> {
    running: Running,
    limit: Limit,
    queues: Vec<PacketQueue<T>>,
    /// What waits in all of them.
    backlog: Backlog,
}

/// More queues than these are a mistake.
const MOST_QUEUES: i64 = 65_536;

impl<T> PluginScheduler<T> {
    /// The queue that a packet joins.
    fn join(&mut self, draw: &mut impl FnMut() -> f64) -> usize {
        if !self.running.callbacks.has(Callback::Enqueue) {
            return 0;
        }
        let queue = self.running.ask(Callback::Enqueue, draw);
        if !(0..MOST_QUEUES).contains(&queue) {
            let found = shown(queue);
            let problem = format!("returned {found}; return the number of a queue, 0 to 65535");
            self.running.fail(Callback::Enqueue, problem);
            return 0;
        }
        let queue = queue as usize;
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, PacketQueue::default);
        }
        queue
    }

    /// The queue to serve, of which one is not empty.
    fn choose(&mut self, now: Time, draw: &mut impl FnMut() -> f64) -> usize {
        let first = || {
            self.queues
                .iter()
                .position(|queue| queue.head().is_some())
                .unwrap_or(0)
        };
        if !self.running.callbacks.has(Callback::Dequeue) {
            return if self.queues.len() == 1 { 0 } else { first() };
        }
        let event = &mut self.running.event;
        event.now = nanos(now);
        event.packets = i64::from(self.backlog.packets);
        event.bytes = self.backlog.bytes as i64;
        let queue = self.running.ask(Callback::Dequeue, draw);
        let found = usize::try_from(queue)
            .ok()
            .and_then(|queue| self.queues.get(queue));
        if found.is_some_and(|queue| queue.head().is_some()) {
            return queue as usize;
        }
        let found = shown(queue);
        let problem =
            format!("returned {found}; return the number of a queue in which packets wait");
        self.running.fail(Callback::Dequeue, problem);
        first()
    }
}

impl<T> Scheduler<T> for PluginScheduler<T> {
    fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        item: T,
        stats: &mut Stats<T>,
        context: &mut impl Context,
    ) {
        let mut draw = || context.draw();
        let running = &mut self.running;
        running.see_packet(now, &packet, self.backlog);
        let decision = match running.callbacks.has(Callback::OnArrival) {
            true => running.decide(Callback::OnArrival, &mut draw),
            false => Decision::Admit,
        };
        let fits = self.limit.admits(self.backlog, packet.size);
        let outcome = decision.outcome(&packet, running.ecn, fits);
        if outcome == Outcome::Drop(Reason::OVERFLOW) {
            running.tell(Callback::OnOverflow, now);
        }
        if let Some(queued) = stats.settle(Queued::new(now, packet, item), outcome) {
            let queue = self.join(&mut draw);
            self.backlog.add(packet.size);
            self.queues[queue].push(queued);
        }
    }

    fn dequeue(
        &mut self,
        now: Time,
        stats: &mut Stats<T>,
        draw: &mut impl FnMut() -> f64,
    ) -> Option<Queued<T>> {
        while self.backlog.packets > 0 {
            let queue = self.choose(now, draw);
            let mut queued = self.queues[queue].pop()?;
            self.backlog.remove(queued.packet.size);
            if self.running.callbacks.has(Callback::OnHead) {
                self.running.see_packet(now, &queued.packet, self.backlog);
                let left = self.queues[queue].backlog();
                let event = &mut self.running.event;
                event.arrived = nanos(queued.arrived);
                event.queue = queue as i64;
                event.queue_packets = i64::from(left.packets);
                event.queue_bytes = left.bytes as i64;
                let decision = self.running.decide(Callback::OnHead, draw);
                let outcome = decision.outcome(&queued.packet, self.running.ecn, true);
                match stats.settle(queued, outcome) {
                    Some(settled) => queued = settled,
                    None => continue,
                }
            }
            if self.running.callbacks.has(Callback::OnDeparture) {
                self.running.event.queue = queue as i64;
                self.running
                    .on_departure(now, &queued.packet, queued.arrived, self.backlog);
            }
            return Some(queued);
        }
        self.running.tell(Callback::OnIdle, now);
        None
    }

    fn next_tick(&self) -> Time {
        self.running.next_tick
    }

    fn on_tick(&mut self, now: Time) {
        self.running.on_tick(now, self.backlog);
    }

    fn set_link(&mut self, link: LinkFacts) {
        self.running.set_link(link);
    }

    fn adopt(&mut self, fresh: Self) {
        self.limit = fresh.limit;
        self.running.adopt(&fresh.running);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn probe_names(&self) -> &'static [&'static str] {
        self.running.settings.plugin.variable_names()
    }

    fn probe(&self, out: &mut Vec<f64>) {
        self.running.probe(out);
    }
}
