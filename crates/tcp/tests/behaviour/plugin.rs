//! Congestion controls from outside: what they are shown, and what the windows do that they set.

use std::sync::{Arc, Mutex};

use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Rate, Time};
use aqmlab_plugin::abi::{AQMLAB_ECHO, AQMLAB_LOSS, AQMLAB_TIMEOUT, AqmlabAck};
use aqmlab_plugin::{
    Callback, Callbacks, Field, Form, Instance, Maker, Makers, Plugin, Role, Value, failure,
    register,
};
use aqmlab_tcp::control::reno;
use aqmlab_tcp::{CongestionControlKind, DelayedAck, EcnEcho, Flags, Profile, Recovery};
use toml::Table;

use crate::behaviour::pair::{Fate, Pair, Way};

const MSS: u64 = 1000;
/// A round trip of 100 ms without a queue.
const PATH: [(Option<Rate>, Time); 1] = [(None, Time::from_millis(50))];

type Seen = Arc<Mutex<Vec<(Callback, AqmlabAck)>>>;

/// A plug-in's code: the callback and the event.
type Code = fn(Callback, &mut AqmlabAck);

#[derive(Clone, Debug)]
struct Scripted {
    code: Code,
    seen: Seen,
    /// Whether it has overwritten its parameter.
    overwrites: bool,
}

impl Maker<AqmlabAck> for Scripted {
    fn make(&self, _: &[Value]) -> Box<dyn Instance<AqmlabAck>> {
        Box::new(self.clone())
    }
}

impl Instance<AqmlabAck> for Scripted {
    fn call(&mut self, callback: Callback, event: &mut AqmlabAck) -> i64 {
        self.seen.lock().unwrap().push((callback, event.clone()));
        (self.code)(callback, event);
        0
    }

    fn set(&mut self, _: &[Value]) {}

    fn variables(&self, _: &mut Vec<f64>) {}

    fn overwritten(&self, _: &[Value]) -> Option<usize> {
        self.overwrites.then_some(0)
    }

    fn boxed_clone(&self) -> Box<dyn Instance<AqmlabAck>> {
        Box::new(self.clone())
    }
}

/// A stack with a plug-in of that name, and what the plug-in sees.
fn plugged(name: &'static str, callbacks: &[Callback], code: Code) -> (Profile, Seen) {
    let seen = Seen::default();
    let maker = Scripted {
        code,
        seen: Arc::clone(&seen),
        overwrites: name == "overwrites",
    };
    let plugin = Plugin::new(
        (name, "for a test"),
        "0".repeat(64),
        vec![Field {
            name: "gain",
            meaning: "",
            form: Form::Number,
            role: Role::Optional(Value::Number(0.5)),
        }],
        callbacks
            .iter()
            .fold(Callbacks::default(), |all, &one| all.with(one)),
        Makers::Control(Box::new(maker)),
    );
    register(plugin).unwrap();
    let table: Table = format!("kind = 'plugin'\nname = '{name}'").parse().unwrap();
    (stack(tagged::from_value(table.into()).unwrap()), seen)
}

fn stack(congestion_control: CongestionControlKind) -> Profile {
    Profile {
        congestion_control,
        recovery: Recovery::NewReno,
        delayed_ack: DelayedAck::Off,
        ack_every: 1,
        mss: Bytes(MSS),
        initial_window: 2,
        initial_ssthresh: Bytes(8 * MSS),
        send_buffer: Bytes(100 * MSS),
        receive_buffer: Bytes(100 * MSS),
        ..Profile::named("rfc").expect("a shipped profile")
    }
}

/// A long transfer of which data segments of these numbers, in the order of their leaving, are lost.
fn transfer(stack: &Profile, lost: &[u32]) -> Pair<'static> {
    let (lost, mut sent) = (lost.to_vec(), 0);
    let mut pair = Pair::new(stack, &PATH, move |way, segment| {
        let data = way == Way::ToClient && segment.len > 0;
        sent += u32::from(data);
        match data && lost.contains(&sent) {
            true => Fate::Drop,
            false => Fate::Pass,
        }
    });
    pair.exchange(100, u64::MAX / 4, Time::from_millis(10));
    pair
}

/// The events of the server's calls of a kind; the client has a plug-in as well, which sends one segment.
fn events(seen: &Seen, callback: Callback) -> Vec<AqmlabAck> {
    let seen = seen.lock().unwrap();
    let of_kind = seen.iter().filter(|(one, _)| *one == callback);
    of_kind.map(|(_, event)| event.clone()).collect()
}

const ALL: [Callback; 6] = [
    Callback::Start,
    Callback::OnAck,
    Callback::OnRecoveryAck,
    Callback::OnSend,
    Callback::OnLoss,
    Callback::OnTimeout,
];

#[test]
fn a_callback_that_is_missing_is_that_of_reno() {
    let reno = stack(CongestionControlKind::Reno(reno::Params::default()));
    let (plugged, seen) = plugged("says-nothing", &[Callback::Start], |_, _| ());
    let ends = |stack: &Profile| {
        let mut pair = transfer(stack, &[40, 90, 91, 92, 93, 94, 95]);
        pair.go_on(Time::from_secs(20));
        pair.server_data()
    };
    assert_eq!(ends(&plugged), ends(&reno));
    assert!(!events(&seen, Callback::Start).is_empty());
}

const GROWS_AS_RENO: Code = |callback, event| {
    if callback == Callback::OnAck {
        event.cwnd = event.reno;
    }
};

#[test]
fn a_control_sees_each_acknowledgement() {
    let (stack, seen) = plugged("sees-acks", &ALL, GROWS_AS_RENO);
    let mut pair = transfer(&stack, &[]);
    // The response begins after a round trip and a half; 2, 4, 8 segments leave in a round trip.
    pair.go_on(Time::from_millis(450));
    let acks = events(&seen, Callback::OnAck);
    let ack = |number: usize| acks[acks.len() - 6 - 8 + number].clone();
    let first = ack(0);
    assert_eq!((first.acked, first.una, first.mss), (1000, 1001, 1000));
    assert_eq!((first.rtt, first.now), (100_000_000, 250_000_000));
    assert_eq!((first.max, first.segments), (2001, 1));
    assert_eq!(
        (first.cwnd, first.reno, first.slow_start),
        (2000.0, 3000.0, 1)
    );
    assert_eq!(first.ssthresh, 8000.0);
    let last = ack(13);
    assert_eq!((last.slow_start, last.una), (0, 14_001));
    assert!((last.reno - last.cwnd - 1000.0 / last.cwnd * 1000.0).abs() < 1.0);
    let sends = events(&seen, Callback::OnSend);
    let second = sends.iter().rfind(|it| it.una == 1001).unwrap();
    assert_eq!((second.max, second.resent, second.segments), (2001, 0, 1));
    assert_eq!(second.now, 150_000_000);
}

#[test]
fn a_control_decides_about_losses() {
    let quarter: Code = |callback, event| match callback {
        Callback::OnAck => event.cwnd = event.reno,
        Callback::OnLoss => event.ssthresh = event.base * 0.75,
        Callback::OnTimeout => event.ssthresh = 5000.0,
        _ => {}
    };
    let (stack, seen) = plugged("decides", &ALL, quarter);
    let mut pair = transfer(&stack, &[40]);
    pair.go_on(Time::from_secs(3));
    let losses = events(&seen, Callback::OnLoss);
    assert_eq!(losses.len(), 1);
    let loss = &losses[0];
    assert_eq!((loss.cause, loss.mss), (AQMLAB_LOSS, 1000));
    assert_eq!(loss.base, loss.flight as f64);
    assert_eq!(loss.ssthresh, loss.base / 2.0);
    assert_eq!(loss.segments, loss.flight / 1000);
    assert_eq!(pair.server.ssthresh() as f64, 0.75 * loss.base);
    let repaired = events(&seen, Callback::OnRecoveryAck);
    assert_eq!(repaired.len(), 1);
    assert_eq!(repaired[0].rtt, -1, "the newest waited for the repair");
    let again = events(&seen, Callback::OnSend);
    assert_eq!(again.iter().filter(|it| it.resent == 1).count(), 1);
    assert!(events(&seen, Callback::OnTimeout).is_empty());

    // A whole window is lost.
    let from = 1 + pair.server_data().len() as u32;
    drop(pair);
    let lost: Vec<u32> = (from..from + 40).collect();
    let late = |name, callbacks: &[Callback]| {
        let (stack, seen) = plugged(name, callbacks, quarter);
        let mut pair = transfer(&stack, &lost);
        let mut now = Time::from_secs(2);
        while pair.server.retransmissions().timeouts == 0 {
            now += Time::from_millis(10);
            pair.go_on(now);
        }
        (pair.server.ssthresh(), seen)
    };
    let (ssthresh, seen) = late("late", &ALL);
    assert_eq!(ssthresh, 5000);
    assert_eq!(events(&seen, Callback::OnTimeout)[0].cause, AQMLAB_TIMEOUT);
    let (ssthresh, seen) = late("late-by-loss", &[Callback::OnAck, Callback::OnLoss]);
    let loss = events(&seen, Callback::OnLoss).pop().unwrap();
    assert_eq!(loss.cause, AQMLAB_TIMEOUT);
    assert_eq!(ssthresh as f64, (0.75 * loss.base).floor());
}

#[test]
fn a_control_sees_echoes() {
    let (stack, seen) = plugged("echoes", &ALL, GROWS_AS_RENO);
    let stack = Profile {
        ecn: true,
        ecn_echo: EcnEcho::UntilCwr,
        ..stack
    };
    let mut sent = 0;
    let mut pair = Pair::new(&stack, &PATH, move |way, segment| {
        sent += u32::from(way == Way::ToClient && segment.len > 0);
        match sent == 30 {
            true => Fate::Mark,
            false => Fate::Pass,
        }
    });
    pair.exchange(100, u64::MAX / 4, Time::from_secs(2));
    let causes = events(&seen, Callback::OnLoss);
    let causes: Vec<_> = causes.iter().map(|event| event.cause).collect();
    assert_eq!(causes, [AQMLAB_ECHO]);
    let reduced = |sent: &&crate::behaviour::pair::Sent| {
        sent.way == Way::ToClient && sent.segment.flags.has(Flags::CWR) && sent.segment.len > 0
    };
    assert_eq!(pair.log.iter().filter(reduced).count(), 1);
}

#[test]
fn the_window_is_what_a_control_sets_but_a_segment_at_least() {
    let fixed: Code = |callback, event| {
        if callback == Callback::OnAck {
            event.cwnd = 7000.0;
        }
    };
    let (stack, _) = plugged("fixed", &ALL, fixed);
    let mut pair = transfer(&stack, &[]);
    pair.go_on(Time::from_secs(2));
    assert_eq!((pair.server.cwnd(), pair.server.in_flight()), (7000, 7000));
    let none: Code = |callback, event| {
        if callback == Callback::OnAck {
            event.cwnd = -3.0;
        }
    };
    let (stack, _) = plugged("none", &ALL, none);
    let mut pair = transfer(&stack, &[]);
    pair.go_on(Time::from_secs(2));
    assert_eq!((pair.server.cwnd(), pair.server.in_flight()), (1000, 1000));
    assert!(failure::take().is_none());
}

#[test]
fn a_window_that_is_no_number_is_refused() {
    for (name, code) in [
        (
            "wrong-window",
            (|_, event| event.cwnd = f64::INFINITY) as Code,
        ),
        ("wrong-threshold", |_, event| event.ssthresh = -1.0),
    ] {
        failure::take();
        let (stack, _) = plugged(name, &[Callback::OnAck], code);
        let mut pair = transfer(&stack, &[]);
        pair.go_on(Time::from_millis(300));
        assert!(pair.server.cwnd() < 10_000, "it is not the window");
        let found = failure::take().expect("it is refused");
        assert_eq!((found.plugin, found.callback), (name, "on_ack"));
        let message = found.error.to_string();
        assert!(
            message.ends_with("; expected numbers of bytes"),
            "{message}"
        );
    }
}

#[test]
fn a_control_paces() {
    let paced: Code = |callback, event| {
        if callback == Callback::OnAck {
            (event.cwnd, event.pacing) = (50_000.0, 100_000.0);
        }
    };
    let (stack, _) = plugged("paced", &ALL, paced);
    let stack = Profile {
        recovery: Recovery::RackTlp,
        ..stack
    };
    let mut pair = transfer(&stack, &[]);
    pair.go_on(Time::from_secs(3));
    let sent = pair.server_data();
    let last: Vec<_> = sent[sent.len() - 20..].iter().map(|it| it.0).collect();
    for gap in last.windows(2) {
        // A segment of 1,000 bytes at 100 kB/s, headers left out or not.
        let gap = (gap[1] - gap[0]).as_secs_f64();
        assert!((0.0099..0.0106).contains(&gap), "{gap}");
    }
}

#[test]
fn a_control_that_overwrites_a_parameter_is_refused_when_it_ends() {
    failure::take();
    let (stack, _) = plugged("overwrites", &[Callback::OnAck], |_, _| ());
    drop(transfer(&stack, &[]));
    let found = failure::take().expect("it is refused");
    assert_eq!(
        (found.plugin, found.callback),
        ("overwrites", "its parameters")
    );
    assert!(found.error.to_string().contains("gain"), "{}", found.error);
}
