//! Disciplines from outside: what a plug-in is shown, what its answers do, and that wrong answers end
//! the run with a message.

use std::sync::{Arc, Mutex};

use aqmlab_aqm::{Discipline, LinkFacts, Queue, Reason};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, Rate, Time};
use aqmlab_plugin::abi::{AQMLAB_ADMIT, AQMLAB_DROP, AQMLAB_FORCE, AQMLAB_SIGNAL, AqmlabEvent};
use aqmlab_plugin::{
    Callback, Callbacks, Field, Form, Instance, Maker, Makers, Plugin, Role, Value, failure,
    register,
};
use toml::Table;

use crate::model::once::Numbered;

/// The calls of a plug-in: the callback and the event.
type Seen = Arc<Mutex<Vec<(Callback, AqmlabEvent)>>>;

/// A plug-in's code: its parameters, its variable, the callback and the event.
type Code = fn(&[Value], &mut f64, Callback, &mut AqmlabEvent) -> i64;

/// With its variable at this a plug-in has overwritten its parameter.
const OVERWRITES: f64 = 99.0;

#[derive(Clone, Debug)]
struct Scripted {
    code: Code,
    values: Vec<Value>,
    variable: f64,
    seen: Seen,
}

impl Maker<AqmlabEvent> for Scripted {
    fn make(&self, values: &[Value]) -> Box<dyn Instance<AqmlabEvent>> {
        let mut instance = self.clone();
        instance.values = values.to_vec();
        Box::new(instance)
    }
}

impl Instance<AqmlabEvent> for Scripted {
    fn call(&mut self, callback: Callback, event: &mut AqmlabEvent) -> i64 {
        self.seen.lock().unwrap().push((callback, event.clone()));
        (self.code)(&self.values, &mut self.variable, callback, event)
    }

    fn set(&mut self, values: &[Value]) {
        self.values = values.to_vec();
    }

    fn variables(&self, out: &mut Vec<f64>) {
        out.push(self.variable);
    }

    fn overwritten(&self, _: &[Value]) -> Option<usize> {
        (self.variable == OVERWRITES).then_some(0)
    }

    fn boxed_clone(&self) -> Box<dyn Instance<AqmlabEvent>> {
        Box::new(self.clone())
    }
}

/// A queue with a plug-in of that name, and what the plug-in sees.
fn plugged(
    name: &'static str,
    callbacks: &[Callback],
    code: Code,
    settings: &str,
) -> (Queue<usize>, Seen) {
    let seen = Seen::default();
    let maker = Scripted {
        code,
        values: Vec::new(),
        variable: 0.0,
        seen: Arc::clone(&seen),
    };
    let field = |name, form, role| Field {
        name,
        meaning: "",
        form,
        role,
    };
    let plugin = Plugin::new(
        (name, "for a test"),
        "0".repeat(64),
        vec![
            field("every", Form::Integer, Role::Optional(Value::Whole(2))),
            field("count", Form::Number, Role::Variable),
        ],
        callbacks
            .iter()
            .fold(Callbacks::default(), |all, &one| all.with(one)),
        Makers::Discipline(Box::new(maker)),
    );
    register(plugin).unwrap();
    let queue = Queue::new(&discipline(name, settings), LINK, 5);
    (queue, seen)
}

fn discipline(name: &str, settings: &str) -> Discipline {
    let table: Table = format!("kind = 'plugin'\nname = '{name}'\n{settings}")
        .parse()
        .unwrap();
    let discipline: Discipline = tagged::from_value(table.into()).unwrap();
    assert_eq!(discipline.check(), Ok(()));
    discipline
}

const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(8),
    framing: Bytes(38),
};
const MS: fn(u64) -> Time = Time::from_millis;

fn packet(flow: u64, size: u32, ecn: Ecn) -> Packet {
    Packet {
        size,
        ecn,
        dscp: 10,
        flow: FlowKey(flow),
    }
}

/// A packet comes; why it, or another, was dropped.
fn come(queue: &mut Queue<usize>, now: Time, packet: Packet) -> Option<Reason> {
    let mut dropped = None;
    queue.put(now, packet, 0, &mut || 0.25, &mut |_, reason| {
        dropped = Some(reason);
    });
    dropped
}

/// The flow and the code point of the next packet; why others were dropped.
fn go(queue: &mut Queue<usize>, now: Time) -> (Option<(u64, Ecn)>, Vec<Reason>) {
    let mut dropped = Vec::new();
    let next = queue.take(now, &mut || 0.25, &mut |_, reason| dropped.push(reason));
    (next.map(|it| (it.packet.flow.0, it.packet.ecn)), dropped)
}

fn calls(seen: &Seen) -> Vec<Callback> {
    seen.lock()
        .unwrap()
        .iter()
        .map(|(callback, _)| *callback)
        .collect()
}

/// The event of the last call of that kind.
fn last(seen: &Seen, callback: Callback) -> AqmlabEvent {
    let seen = seen.lock().unwrap();
    let found = seen.iter().rev().find(|(one, _)| *one == callback);
    found.unwrap().1.clone()
}

/// Signals every so many packets.
fn every(values: &[Value], count: &mut f64, callback: Callback, _: &mut AqmlabEvent) -> i64 {
    if callback != Callback::OnArrival {
        return AQMLAB_ADMIT;
    }
    *count += 1.0;
    match *count % values[0].number() {
        0.0 => AQMLAB_SIGNAL,
        _ => AQMLAB_ADMIT,
    }
}

#[test]
fn all_parameters_of_a_plugin_can_change() {
    for (name, callbacks) in [
        ("one-queue", &[Callback::OnArrival, Callback::OnChange][..]),
        (
            "queues",
            &[Callback::OnArrival, Callback::OnChange, Callback::OnHead],
        ),
    ] {
        let (mut queue, seen) = plugged(name, callbacks, every, "");
        let own = discipline(name, "");
        assert_eq!(own.changeable(), ["every", "limit", "ecn"], "{name}");
        let reasons = [Reason::EARLY, Reason::FORCED, Reason::OVERFLOW];
        assert_eq!(own.reasons(), reasons);
        let dropped = |queue: &mut Queue<usize>| {
            let arrivals = 0..6;
            let each = |_| come(queue, MS(1), packet(1, 1000, Ecn::Ect0));
            arrivals.map(each).filter(Option::is_some).count()
        };
        assert_eq!(dropped(&mut queue), 3, "{name}");
        queue.set_parameters(&discipline(name, "every = 3"), LINK, 5);
        assert_eq!(calls(&seen).last(), Some(&Callback::OnChange));
        assert_eq!(last(&seen, Callback::OnChange).now, 1_000_000);
        assert_eq!(dropped(&mut queue), 2, "{name}");
        queue.set_parameters(&discipline(name, "every = 3\necn = true"), LINK, 5);
        assert_eq!(dropped(&mut queue), 0, "{name}: they are marked");
        assert_eq!(queue.counters().marked_packets(), 2);
        let mut values = Vec::new();
        queue.probe(&mut values);
        assert_eq!(
            (queue.probe_names(), &*values),
            (&["count"][..], &[18.0][..])
        );
        assert!(failure::take().is_none(), "a finite number is right");
        queue.set_parameters(&discipline(name, "limit = '13 packets'"), LINK, 5);
        assert_eq!(queue.backlog().packets, 13);
        assert_eq!(
            come(&mut queue, MS(2), packet(1, 40, Ecn::Ect0)),
            Some(Reason::OVERFLOW)
        );
    }
}

/// The code of a packet says what becomes of it.
fn by_flow(_: &[Value], _: &mut f64, callback: Callback, event: &mut AqmlabEvent) -> i64 {
    match callback {
        Callback::Start => 5_000_000,
        Callback::Tick if event.now < 15_000_000 => event.now + 5_000_000,
        Callback::Tick => -1,
        Callback::OnArrival if event.flow == 9 => match event.draw() < 0.5 {
            true => AQMLAB_FORCE,
            false => AQMLAB_ADMIT,
        },
        Callback::OnArrival => {
            [AQMLAB_ADMIT, AQMLAB_SIGNAL, AQMLAB_DROP, AQMLAB_FORCE][event.flow as usize]
        }
        _ => 0,
    }
}

const WATCHED: [Callback; 7] = [
    Callback::Start,
    Callback::OnArrival,
    Callback::OnOverflow,
    Callback::OnDeparture,
    Callback::OnIdle,
    Callback::Tick,
    Callback::OnLink,
];

#[test]
fn what_a_plugin_answers_happens() {
    let head = [&WATCHED[..], &[Callback::Enqueue]].concat();
    for (name, callbacks) in [("answers", &WATCHED[..]), ("answers-queues", &head)] {
        let (mut queue, seen) = plugged(name, callbacks, by_flow, "ecn = true");
        let start = last(&seen, Callback::Start);
        assert_eq!((start.rate, start.framing, start.seed), (8_000_000, 38, 5));
        let mut offer = |flow, ecn| come(&mut queue, MS(1), packet(flow, 1000, ecn));
        assert_eq!(offer(0, Ecn::Ect1), None);
        assert_eq!(offer(1, Ecn::Ect1), None);
        assert_eq!(offer(1, Ecn::NotEct), Some(Reason::EARLY));
        assert_eq!(offer(2, Ecn::Ect0), Some(Reason::EARLY));
        assert_eq!(offer(3, Ecn::Ect0), Some(Reason::FORCED));
        assert_eq!(offer(9, Ecn::Ect0), Some(Reason::FORCED));
        assert_eq!(go(&mut queue, MS(2)), (Some((0, Ecn::Ect1)), vec![]));
        assert_eq!(go(&mut queue, MS(3)), (Some((1, Ecn::Ce)), vec![]));
        assert_eq!(failure::take().map(|it| it.error.to_string()), None);
    }
}

#[test]
fn a_plugin_sees_what_happens() {
    let (mut queue, seen) = plugged(
        "watches",
        &WATCHED,
        by_flow,
        "limit = '2 packets'\necn = true",
    );
    assert_eq!(queue.next_tick(), MS(5));
    come(&mut queue, MS(1), packet(0, 700, Ecn::Ect0));
    let event = last(&seen, Callback::OnArrival);
    assert_eq!((event.now, event.flow, event.size), (1_000_000, 0, 700));
    assert_eq!((event.ecn, event.dscp, event.marks), (2, 10, 1));
    assert_eq!((event.packets, event.bytes), (0, 0));
    come(&mut queue, MS(2), packet(0, 300, Ecn::NotEct));
    let event = last(&seen, Callback::OnArrival);
    assert_eq!((event.ecn, event.marks), (0, 0));
    assert_eq!((event.packets, event.bytes), (1, 700));
    assert!(!calls(&seen).contains(&Callback::OnOverflow));
    assert_eq!(
        come(&mut queue, MS(3), packet(0, 40, Ecn::Ect1)),
        Some(Reason::OVERFLOW)
    );
    let event = last(&seen, Callback::OnOverflow);
    assert_eq!((event.now, event.size, event.packets), (3_000_000, 40, 2));
    go(&mut queue, MS(4));
    let event = last(&seen, Callback::OnDeparture);
    assert_eq!(
        (event.now, event.arrived, event.size),
        (4_000_000, 1_000_000, 700)
    );
    assert_eq!((event.packets, event.bytes), (1, 300));
    queue.tick();
    let event = last(&seen, Callback::Tick);
    assert_eq!((event.now, event.packets, event.bytes), (5_000_000, 1, 300));
    assert_eq!(queue.next_tick(), MS(10));
    queue.tick();
    queue.tick();
    assert_eq!(
        queue.next_tick(),
        Time::NEVER,
        "a negative number ends them"
    );
    go(&mut queue, MS(16));
    queue.idle(MS(17));
    assert_eq!(last(&seen, Callback::OnIdle).now, 17_000_000);
    queue.set_link(LinkFacts {
        rate: Rate::from_mbps(2),
        framing: Bytes(4),
    });
    let event = last(&seen, Callback::OnLink);
    assert_eq!((event.rate, event.framing), (2_000_000, 4));
    assert_eq!(event.now, 17_000_000);
}

/// A queue for each flow; the highest goes first, and what waited there for long is dropped.
fn highest_first(_: &[Value], most: &mut f64, callback: Callback, event: &mut AqmlabEvent) -> i64 {
    match callback {
        Callback::Enqueue => {
            *most = most.max(event.flow as f64);
            event.flow as i64
        }
        // The queues above 1 hold one packet each.
        Callback::Dequeue => {
            let queue = *most as i64;
            *most = (*most - 1.0).max(0.0);
            queue
        }
        Callback::OnHead if event.now - event.arrived > 50_000_000 => AQMLAB_DROP,
        Callback::OnHead if event.queue == 1 => AQMLAB_SIGNAL,
        Callback::OnHead => AQMLAB_ADMIT,
        _ => 0,
    }
}

#[test]
fn a_plugin_chooses_among_its_queues_and_judges_their_heads() {
    let callbacks = [
        Callback::Enqueue,
        Callback::Dequeue,
        Callback::OnHead,
        Callback::OnDeparture,
        Callback::OnIdle,
    ];
    let (mut queue, seen) = plugged("chooses", &callbacks, highest_first, "ecn = true");
    come(&mut queue, MS(1), packet(0, 500, Ecn::Ect0));
    come(&mut queue, MS(1), packet(0, 600, Ecn::Ect0));
    come(&mut queue, MS(60), packet(2, 700, Ecn::Ect0));
    come(&mut queue, MS(60), packet(1, 800, Ecn::Ect0));
    assert_eq!(queue.backlog().bytes, 2600);
    assert_eq!(go(&mut queue, MS(61)), (Some((2, Ecn::Ect0)), vec![]));
    let event = last(&seen, Callback::Dequeue);
    assert_eq!(
        (event.now, event.packets, event.bytes),
        (61_000_000, 4, 2600)
    );
    let event = last(&seen, Callback::OnHead);
    assert_eq!(
        (event.queue, event.queue_packets, event.queue_bytes),
        (2, 0, 0)
    );
    assert_eq!((event.packets, event.bytes), (3, 1900));
    let event = last(&seen, Callback::OnDeparture);
    assert_eq!(
        (event.queue, event.arrived, event.packets),
        (2, 60_000_000, 3)
    );
    assert_eq!(go(&mut queue, MS(61)), (Some((1, Ecn::Ce)), vec![]));
    let (next, dropped) = go(&mut queue, MS(61));
    assert_eq!((next, dropped), (None, vec![Reason::EARLY; 2]));
    let event = last(&seen, Callback::OnHead);
    assert_eq!(
        (event.queue_packets, event.queue_bytes, event.bytes),
        (0, 0, 0)
    );
    assert_eq!(calls(&seen).last(), Some(&Callback::OnIdle));
    assert_eq!(queue.backlog().packets, 0);
    assert!(failure::take().is_none());
}

#[test]
fn without_a_choice_the_first_queue_with_packets_goes() {
    let callbacks = [Callback::Enqueue, Callback::OnHead];
    let (mut queue, _) = plugged("first", &callbacks, highest_first, "");
    for flow in [3, 1, 2] {
        come(&mut queue, MS(1), packet(flow, 500, Ecn::NotEct));
    }
    let order = [(); 2].map(|()| go(&mut queue, MS(2)).0.map(|(flow, _)| flow));
    // The head of queue 1 is signalled, and its packet cannot be marked.
    assert_eq!(order, [Some(2), Some(3)]);
}

/// What a wrong answer is refused with.
fn refusal(callbacks: &[Callback], code: Code) -> String {
    failure::take();
    let (mut queue, _) = plugged("wrong", callbacks, code, "");
    come(&mut queue, MS(1), packet(1, 500, Ecn::NotEct));
    go(&mut queue, MS(2));
    while queue.next_tick() < MS(20) {
        queue.tick();
    }
    let mut values = Vec::new();
    queue.probe(&mut values);
    let found = failure::take().expect("it is refused");
    assert_eq!(found.plugin, "wrong");
    format!("{}: {}", found.callback, found.error)
}

#[test]
fn wrong_answers_are_refused() {
    use Callback::{Dequeue, Enqueue, OnArrival, Start, Tick};
    let refused = [
        refusal(&[OnArrival], |_, _, _, _| 77),
        refusal(&[Enqueue], |_, _, _, _| 65_536),
        refusal(&[Enqueue], |_, _, _, _| -1),
        refusal(&[Dequeue], |_, _, _, _| 1),
        refusal(&[Tick], |_, _, _, _| 0),
        refusal(&[Start, Tick], |_, _, _, event| event.now),
        refusal(&[OnArrival], |_, variable, _, _| {
            *variable = f64::INFINITY;
            AQMLAB_ADMIT
        }),
    ];
    let expected = [
        "on_arrival: returned 77; return ADMIT, SIGNAL, DROP or FORCE",
        "enqueue: returned 65536; return the number of a queue, 0 to 65535",
        "enqueue: returned -1; return the number of a queue, 0 to 65535",
        "dequeue: returned 1; return the number of a queue in which packets wait",
        "tick: is never due: there is no start, which returns the time of the first",
        "start: returned 0, which is not after now (0); return the time of the next tick in \
         nanoseconds, such as now plus an interval, or a negative number for never",
        "its variables: found count = inf; expected a finite number",
    ];
    assert_eq!(refused, expected);
}

#[test]
fn a_plugin_that_overwrites_a_parameter_is_refused() {
    let overwrites: Code = |_, variable, _, _| {
        *variable = OVERWRITES;
        AQMLAB_ADMIT
    };
    let message = "its parameters: ";
    let found = refusal(&[Callback::OnArrival], overwrites);
    assert!(
        found.starts_with(message) && found.contains("every"),
        "{found}"
    );
    // Where nobody looks at its variables, a change of parameters finds it, or the end.
    for changes in [true, false] {
        failure::take();
        let (mut queue, _) = plugged("overwrites", &[Callback::OnArrival], overwrites, "");
        come(&mut queue, MS(1), packet(1, 500, Ecn::NotEct));
        assert!(failure::take().is_none());
        if changes {
            queue.set_parameters(&discipline("overwrites", "every = 5"), LINK, 5);
        } else {
            drop(queue);
        }
        let found = failure::take().expect("it is refused");
        assert_eq!(found.callback, "its parameters", "{changes}");
    }
}
