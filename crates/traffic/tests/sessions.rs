//! The closed loops beside Mah's users, and bursts of datagrams, against their published numbers.

use std::collections::HashMap;

use aqmlab_net::{Bytes, Rate, Time};
use aqmlab_traffic::cbr::Gaps;
use aqmlab_traffic::ideal::{Burst, UNLIMITED, Watch, play};
use aqmlab_traffic::{
    Activity, Bulk, Cbr, Connect, Direction, Exchange, HostCounts, Model, OnOff, Opening, Rtt,
    Setting, Sizes, Source, Starts, Telnet, UncWeb, WebSessions,
};

const HOSTS: HostCounts = HostCounts {
    clients: 14,
    servers: 8,
};

const RTT: Rtt = Rtt::Uniform {
    min: Time::from_millis(10),
    max: Time::from_millis(150),
};

/// Everything that a source did.
#[derive(Default)]
struct Seen {
    connections: Vec<(Time, Time, Connect)>,
    datagrams: Vec<(Time, u32)>,
    refused: Vec<Time>,
}

impl Watch for Seen {
    fn connection(&mut self, at: Time, end: Time, connect: &Connect, _: &[Burst]) {
        self.connections.push((at, end, connect.clone()));
    }

    fn datagram(&mut self, at: Time, token: u32, _: u32) {
        self.datagrams.push((at, token));
    }

    fn refused(&mut self, at: Time) {
        self.refused.push(at);
    }
}

fn source(model: &Model, direction: Direction) -> Source {
    model.check().unwrap();
    Source::new(
        model,
        &Setting {
            rtt: &RTT,
            direction,
            hosts: HOSTS,
            seed: 1,
            class: "class",
        },
    )
    .unwrap()
}

fn seen(mut source: Source, until: Time) -> Seen {
    let mut seen = Seen::default();
    play(&mut source, until, UNLIMITED, &mut seen);
    seen
}

fn exchanges(connect: &Connect) -> std::slice::Iter<'_, Exchange> {
    connect.script.exchanges().iter()
}

fn unc(users: u32) -> Model {
    Model::UncWeb(UncWeb {
        users: Some(users),
        parallel: 2,
        persistent: 0.245,
        think_scale: 1.0,
        response_scale: 1.0,
        start_within: None,
    })
}

/// 90 minutes of 1000 users.
fn unc_hour() -> Seen {
    seen(source(&unc(1000), Direction::Both), Time::from_secs(5400))
}

#[test]
fn unc_users_have_the_published_shares_of_persistent_connections() {
    let seen = unc_hour();
    let (mut connections, mut objects, mut bytes) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    for (_, _, connect) in &seen.connections {
        let kind = usize::from(exchanges(connect).len() > 1);
        connections[kind] += 1.0;
        for exchange in exchanges(connect) {
            objects[kind] += 1.0;
            // Without the largest, whose sum means little in a run of this length.
            bytes[kind] += exchange.response.min(1_000_000) as f64;
        }
    }
    let share = |of: [f64; 2]| of[1] / (of[0] + of[1]);
    // Section 3.2.1: 15 % of the connections, over 50 % of the objects, 40 % of the bytes.
    assert!((share(connections) - 0.15).abs() < 0.01, "{connections:?}");
    assert!((share(objects) - 0.505).abs() < 0.01, "{objects:?}");
    assert!((share(bytes) - 0.4).abs() < 0.02, "{bytes:?}");
    // Requests per user in 90 minutes: 850.8 by the published counts; here pages take less time
    // than over TCP.
    let per_user = (objects[0] + objects[1]) / 1000.0;
    assert!((per_user / 850.8 - 1.0).abs() < 0.05, "{per_user}");
}

#[test]
fn unc_sizes_have_the_published_quantiles() {
    let seen = unc_hour();
    let all = || {
        seen.connections
            .iter()
            .flat_map(|(_, _, connect)| exchanges(connect))
    };
    let n = all().count() as f64;
    let share = |is: &dyn Fn(&&Exchange) -> bool| all().filter(is).count() as f64 / n;
    // 99 % of requests are below 1500 bytes, 90 % of responses below 10,500. The factors on the
    // responses of both kinds of connections move the second by little.
    assert!((share(&|it| it.request < 1500) - 0.99).abs() < 0.001);
    assert!((share(&|it| it.response < 10_500) - 0.9).abs() < 0.006);
    assert!((share(&|it| it.response < 1000) - 0.5).abs() < 0.01);
    assert!((share(&|it| it.request < 360) - 0.5).abs() < 0.005);
    // The mean of the responses, each counted up to a megabyte: of the 7.25 kB in all, larger ones
    // hold a seventh, which a run of this length does not pin down.
    let mean = all()
        .map(|it| it.response.min(1_000_000) as f64)
        .sum::<f64>()
        / n;
    assert!((mean / MEAN_TO_A_MEGABYTE - 1.0).abs() < 0.02, "{mean}");
}

/// E[min(X, 1 MB)] of the response sizes, factors included, by numerical integration of the
/// published form.
const MEAN_TO_A_MEGABYTE: f64 = 6299.0;

#[test]
fn unc_users_keep_at_most_so_many_connections_and_think_in_between() {
    let seen = seen(source(&unc(50), Direction::Both), Time::from_secs(3600));
    let mut open: HashMap<u32, Vec<Time>> = HashMap::new();
    let mut thoughts = 0;
    for (at, end, connect) in &seen.connections {
        assert_eq!(connect.flipped, connect.token % 2 == 1);
        let ends = open.entry(connect.token).or_default();
        let newest = ends.iter().copied().max();
        ends.retain(|end| end > at);
        assert!(ends.len() < 2, "a third connection");
        if ends.is_empty() && newest.is_some_and(|newest| newest < *at) {
            thoughts += 1;
        }
        ends.push(*end);
    }
    // 50 users, one page in 30.06 s of thought and less than 1.5 s of fetching.
    assert!((4500..=6300).contains(&thoughts), "{thoughts}");
}

#[test]
fn web_sessions_fetch_30_kb_and_think_between_1_and_3_s() {
    let model = Model::WebSessions(WebSessions {
        sessions: Some(40),
        transfer: Sizes::Constant {
            size: Bytes(30_000),
        },
        think_min: Time::from_secs(1),
        think_max: Time::from_secs(3),
        transfers_per_connection: 1,
        start_within: Time::from_secs(3),
    });
    let seen = seen(source(&model, Direction::Forward), Time::from_secs(1000));
    let mut last: HashMap<u32, Time> = HashMap::new();
    let mut thinks = Vec::new();
    for (at, end, connect) in &seen.connections {
        assert_eq!(connect.script.exchanges()[0].response, 30_000);
        if let Some(end) = last.insert(connect.token, *end) {
            thinks.push((*at - end).as_secs_f64());
        }
    }
    assert_eq!(last.len(), 40);
    let n = thinks.len() as f64;
    let mean = thinks.iter().sum::<f64>() / n;
    let square = thinks
        .iter()
        .map(|think| (think - mean).powi(2))
        .sum::<f64>()
        / n;
    // Uniform on [1, 3] s: mean 2, variance 1/3; within 4 standard errors.
    assert!(
        (mean - 2.0).abs() < 4.0 * (1.0 / 3.0 / n).sqrt(),
        "{mean} of {n}"
    );
    assert!((square - 1.0 / 3.0).abs() < 0.02, "{square}");
    assert!(thinks.iter().all(|think| (0.999..3.001).contains(think)));
}

#[test]
fn a_web_session_may_keep_its_connection() {
    let transfers = |transfers_per_connection| {
        let model = Model::WebSessions(WebSessions {
            sessions: Some(3),
            transfer: Sizes::Lognormal {
                median: Bytes(30_000),
                sigma: 1.0,
            },
            think_min: Time::from_secs(1),
            think_max: Time::from_secs(3),
            transfers_per_connection,
            start_within: Time::from_secs(3),
        });
        let seen = seen(source(&model, Direction::Forward), Time::from_secs(1000));
        let of_first = seen
            .connections
            .into_iter()
            .filter(|(_, _, it)| it.token == 0);
        let connects: Vec<Connect> = of_first.map(|(_, _, connect)| connect).collect();
        let all = connects.iter().flat_map(exchanges).copied();
        (
            exchanges(&connects[0]).len(),
            all.take(12).collect::<Vec<Exchange>>(),
        )
    };
    // The same transfers, and the same thoughts, which lie within the connection now.
    let (apart, kept) = (transfers(1), transfers(5));
    assert_eq!((apart.0, kept.0), (1, 5));
    let sizes = |exchanges: &[Exchange]| exchanges.iter().map(|it| it.response).collect::<Vec<_>>();
    assert_eq!(sizes(&apart.1), sizes(&kept.1));
    for (number, exchange) in kept.1.iter().enumerate() {
        let pause = exchange.pause.as_secs_f64();
        assert_eq!(
            (1.0..=3.0).contains(&pause),
            number % 5 < 4,
            "{number}: {pause}"
        );
    }
}

#[test]
fn telnet_pauses_are_those_of_tcplib() {
    let model = Model::Telnet(Telnet {
        sessions: 6,
        keystroke: Bytes(1),
        echo: Bytes(460),
        keystrokes: 500,
        start_within: Time::from_secs(1),
    });
    let seen = seen(source(&model, Direction::Forward), Time::from_secs(40_000));
    let mut pauses: Vec<f64> = seen
        .connections
        .iter()
        .flat_map(|(_, _, connect)| exchanges(connect))
        .map(|exchange| {
            assert_eq!((exchange.request, exchange.response), (1, 460));
            exchange.pause.as_secs_f64()
        })
        .collect();
    pauses.sort_by(f64::total_cmp);
    let n = pauses.len() as f64;
    assert!(n > 150_000.0);
    // The published moments: mean 1.092, median 0.236, 90th percentile 1.566, 99th 20.04 s.
    let mean = pauses.iter().sum::<f64>() / n;
    assert!((mean / 1.091_87 - 1.0).abs() < 0.06, "{mean}");
    for (s, expected) in [
        (0.236_403_58, 0.5),
        (0.532_298_2, 0.75),
        (1.565_541_4, 0.9),
        (20.0388, 0.99),
    ] {
        let share = pauses.partition_point(|pause| *pause <= s) as f64 / n;
        let bound = 4.0 * (expected * (1.0 - expected) / n).sqrt();
        assert!((share - expected).abs() < bound + 1e-4, "{s} s: {share}");
    }
    // A session is on one connection at a time, and never ends.
    for token in 0..6 {
        let of: Vec<_> = seen
            .connections
            .iter()
            .filter(|it| it.2.token == token)
            .collect();
        assert!(of.len() > 10 && of.windows(2).all(|pair| pair[1].0 > pair[0].1));
    }
}

#[test]
fn bursts_have_their_rate_their_means_and_their_shape() {
    // Zhang and Qiu: shape 1.5, on for 1 s and off for 2 s on average; 24 kbit/s and 210 bytes.
    let model = Model::OnOff(OnOff {
        flows: 200,
        rate: Rate::from_bps(24_000),
        packet: Bytes(210),
        mean_on: Time::from_secs(1),
        mean_off: Time::from_secs(2),
        shape: 1.5,
        start_within: Time::from_secs(3),
    });
    let seen = seen(source(&model, Direction::Forward), Time::from_secs(4000));
    let mut last: HashMap<u32, Time> = HashMap::new();
    let gap = 0.07;
    // A run of datagrams that are 70 ms apart is a burst; longer gaps hold an off time.
    let (mut offs, mut runs, mut run): (Vec<f64>, Vec<f64>, HashMap<u32, u32>) = Default::default();
    for (at, token) in &seen.datagrams {
        let Some(before) = last.insert(*token, *at) else {
            run.insert(*token, 1);
            continue;
        };
        let wait = (*at - before).as_secs_f64();
        if wait < gap + 1e-6 {
            *run.get_mut(token).unwrap() += 1;
        } else {
            offs.push(wait - gap);
            runs.push(f64::from(run.insert(*token, 1).unwrap()) * gap);
        }
    }
    // The tails of both: P(X > x) = (least / x)^1.5 with least a third of the mean. An off time is
    // exact; a run is its burst to the nearest gap.
    let share = |values: &[f64], above: f64| {
        values.iter().filter(|value| **value > above).count() as f64 / values.len() as f64
    };
    let n = offs.len() as f64;
    assert!(n > 200_000.0, "{n}");
    for x in [1.0, 2.0, 5.0, 20.0, 100.0_f64] {
        let expected = (2.0 / 3.0 / x).powf(1.5);
        let bound = 4.5 * (expected * (1.0 - expected) / n).sqrt();
        let found = share(&offs, x);
        assert!(
            (found - expected).abs() < bound,
            "off {x}: {found}, not {expected}"
        );
    }
    for x in [1.0, 3.0, 10.0, 50.0_f64] {
        let expected = (1.0 / 3.0 / x).powf(1.5);
        let found = share(&runs, x);
        assert!(
            (found / expected - 1.0).abs() < 0.15,
            "on {x}: {found}, not {expected}"
        );
    }
    // A third of 24 kbit/s, each. The means of such bursts settle slowly.
    let rate = seen.datagrams.len() as f64 * 210.0 * 8.0 / 200.0 / 4000.0;
    assert!((rate / 8000.0 - 1.0).abs() < 0.1, "{rate}");
}

fn at(s: u64) -> Time {
    Time::from_secs(s)
}

#[test]
fn a_class_acts_between_its_start_and_its_stop() {
    let activity = Activity {
        start: Starts::Together(at(100)),
        stop: at(200),
        ..Activity::default()
    };
    let cbr = Model::Cbr(Cbr {
        flows: 5,
        rate: Rate::from_bps(24_000),
        packet: Bytes(210),
        gaps: Gaps::Constant,
        ect: Default::default(),
        start_within: at(1),
    });
    for model in [unc(200), cbr] {
        let source = || source(&model, Direction::Forward);
        let acting = seen(source().with_activity(activity.clone()), at(400));
        let always = seen(source(), at(100));
        let times = |seen: &Seen| -> Vec<Time> {
            let opened = seen.connections.iter().map(|it| it.0);
            opened.chain(seen.datagrams.iter().map(|it| it.0)).collect()
        };
        // What it does is what it does in a run of its own, later.
        let shifted: Vec<_> = times(&always).iter().map(|time| *time + at(100)).collect();
        assert_eq!(times(&acting), shifted);
        assert!(shifted.len() > 500);
    }
}

#[test]
fn each_flow_can_begin_at_a_time_of_its_own() {
    let examples = Model::examples();
    let models = examples.iter().filter_map(|text| {
        let table: toml::Table = text.parse().unwrap();
        let mut class = table["traffic"][0].as_table().unwrap().clone();
        class.remove("rtt");
        class.remove("tcp");
        class.remove("direction");
        let mut model: Model = class.try_into().unwrap();
        model.parameters_mut().set_population(4.0);
        (model.parameters().opening() != Opening::OpenLoop).then_some(model)
    });
    let mut tried = 0;
    for model in models {
        tried += 1;
        let start = Starts::Each([7, 3, 20, 11].map(at).to_vec());
        let activity = Activity {
            start,
            ..Activity::default()
        };
        let seen = seen(
            source(&model, Direction::Both).with_activity(activity),
            at(60),
        );
        let opened = seen.connections.iter().map(|(at, _, it)| (it.token, *at));
        let sent = seen.datagrams.iter().map(|(at, token)| (*token, *at));
        let acts: Vec<_> = opened.chain(sent).collect();
        // Where a user has several flows, they follow each other in number.
        let largest = acts.iter().map(|(token, _)| *token).max();
        let flows = largest.expect("they act") / 4 + 1;
        let mut first = [Time::NEVER; 4];
        for (token, time) in acts {
            let first = &mut first[(token / flows) as usize];
            *first = (*first).min(time);
        }
        assert_eq!(first, [7, 3, 20, 11].map(at), "{model:?}");
    }
    assert_eq!(tried, 13);
}

#[test]
fn even_round_trips_are_one_for_each_flow_or_user() {
    let rtt = Rtt::Even {
        min: Time::from_millis(10),
        max: Time::from_millis(100),
    };
    let setting = Setting {
        rtt: &rtt,
        direction: Direction::Both,
        hosts: HOSTS,
        seed: 1,
        class: "class",
    };
    let bulk = Model::Bulk(Bulk {
        flows: 10,
        size: Some(Bytes(9)),
        start_within: at(1),
        limit: None,
        pauses: Vec::new(),
    });
    for model in [bulk, unc(10)] {
        let seen = seen(Source::new(&model, &setting).unwrap(), at(900));
        assert!(seen.connections.len() >= 10);
        for (_, _, connect) in &seen.connections {
            let expected = Time::from_millis(10 + 10 * u64::from(connect.token));
            assert_eq!(connect.rtt, expected);
        }
    }
}

#[test]
fn stopping_ends_what_would_never_end() {
    let activity = Activity {
        stop: at(50),
        ..Activity::default()
    };
    let bulk = |size| {
        Model::Bulk(Bulk {
            flows: 3,
            size,
            start_within: at(1),
            limit: None,
            pauses: Vec::new(),
        })
    };
    let telnet = Model::Telnet(Telnet {
        sessions: 1,
        keystroke: Bytes(1),
        echo: Bytes(1),
        keystrokes: 10,
        start_within: at(1),
    });
    for (model, ends) in [
        (bulk(None), true),
        (bulk(Some(Bytes(9))), false),
        (telnet, true),
    ] {
        let mut source = source(&model, Direction::Forward).with_activity(activity.clone());
        let mut actions = Vec::new();
        source.start(&mut actions);
        let Some(&aqmlab_traffic::Action::WakeAt { at: stop, token }) = actions.last() else {
            panic!("it wants to be woken when it stops");
        };
        assert_eq!(stop, at(50));
        actions.clear();
        source.on_wake(at(50), token, &mut actions);
        let expected: &[_] = if ends {
            &[aqmlab_traffic::Action::EndConnections]
        } else {
            &[]
        };
        assert_eq!(actions, expected);
        assert!(source.waits_for_connections());
    }
}

#[test]
fn connections_beyond_the_limit_are_refused_and_users_go_on() {
    let limit = |most| Activity {
        max_connections: most,
        ..Activity::default()
    };
    let free = seen(source(&unc(100), Direction::Forward), at(3600));
    assert!(free.refused.is_empty());
    let tight = seen(
        source(&unc(100), Direction::Forward).with_activity(limit(1)),
        at(3600),
    );
    // Never two at a time.
    for pair in tight.connections.windows(2) {
        assert!(pair[1].0 >= pair[0].1);
    }
    assert!(tight.refused.len() > 1000);
    // Refused or not, users think and ask again: as many connections are asked for, to a few per
    // cent.
    let asked = (tight.connections.len() + tight.refused.len()) as f64;
    let ratio = asked / free.connections.len() as f64;
    assert!((0.97..1.05).contains(&ratio), "{ratio}");
    // Late in the run they still do.
    assert!(tight.connections.iter().any(|it| it.0 > at(3500)));
}

#[test]
fn impossible_models_are_refused_with_the_field() {
    let on_off = Model::OnOff(OnOff {
        flows: 1,
        rate: Rate::from_bps(1000),
        packet: Bytes(210),
        mean_on: at(1),
        mean_off: at(2),
        shape: 1.0,
        start_within: at(1),
    });
    let sessions = |change: fn(&mut WebSessions)| {
        let mut params = WebSessions {
            sessions: Some(1),
            transfer: Sizes::Constant { size: Bytes(1) },
            think_min: at(1),
            think_max: at(3),
            transfers_per_connection: 1,
            start_within: at(1),
        };
        change(&mut params);
        Model::WebSessions(params)
    };
    for (model, field) in [
        (on_off, "shape"),
        (sessions(|p| p.think_max = Time::ZERO), "think_max"),
        (
            sessions(|p| (p.think_min, p.think_max) = (Time::ZERO, Time::ZERO)),
            "think_max",
        ),
        (
            sessions(|p| p.transfer = Sizes::Constant { size: Bytes(0) }),
            "transfer.size",
        ),
    ] {
        assert_eq!(model.check().unwrap_err().0, field);
    }
}
