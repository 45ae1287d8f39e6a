//! Rules are named after the list that they come from: DQ and a number. The worked examples are
//! those of `tests/data`.

use aqmlab_net::{Ecn, FlowKey, RandomStream};

use super::*;
use crate::worked::queues::LINK;
use crate::worked::{Row, assert_close, rows};

type Queue = DualPi2<u32>;

fn params(text: &str) -> Params {
    let params: Params = toml::from_str(text).unwrap();
    assert_eq!(params.check(), Ok(()));
    params
}

/// A queue with a given base probability.
fn with_base(text: &str, base: f64) -> (Queue, Stats<u32>) {
    let mut queue = params(text).scheduler(LINK, 1);
    queue.controller.set(base);
    (queue, Stats::new(Params::REASONS))
}

fn packet(ecn: Ecn, size: u32) -> Packet {
    Packet {
        size,
        ecn,
        dscp: 0,
        flow: FlowKey(1),
    }
}

const NO_DRAW: fn() -> f64 = || unreachable!("nothing is left to chance");

fn arrive(queue: &mut Queue, stats: &mut Stats<u32>, us: u64, ecn: Ecn, size: u32) {
    let now = Time::from_micros(us);
    queue.enqueue(now, packet(ecn, size), 0, stats, &mut { NO_DRAW });
}

fn marked(stats: &Stats<u32>, reason: Reason) -> u64 {
    stats.counters().marked[reason.index()]
}

fn dropped(stats: &Stats<u32>, reason: Reason) -> u64 {
    stats.counters().dropped[reason.index()]
}

/// Keeps both queues busy, and tells a closure of each packet that leaves: what it was, and what it
/// is, if it is anything.
fn under_load(
    text: &str,
    base: f64,
    kinds: &[Ecn],
    count: u32,
    mut seen: impl FnMut(Ecn, Option<Ecn>),
) -> Stats<u32> {
    let (mut queue, mut stats) = with_base(text, base);
    let mut stream = RandomStream::new(1, "law", 0);
    for number in 0..count {
        let ecn = kinds[number as usize % kinds.len()];
        let queued = Queued::new(Time::ZERO, packet(ecn, 1500), number);
        // Others wait, so that the coupled law is at work.
        for _ in 0..5 {
            queue.classic.push(queued);
        }
        let side = queue.side_of(&queued.packet);
        if side == Side::L4s {
            queue.l4s.push(queued);
        }
        let taken = queue.take(side, Time::ZERO, &mut stats, &mut || stream.uniform());
        seen(ecn, taken.map(|queued| queued.packet.ecn));
        while queue.classic.pop().is_some() {}
        stats.hand_back(|_, _| ());
    }
    stats
}

#[test]
fn dq01_ect1_and_ce_go_to_the_l4s_queue() {
    for (l4s, expected) in [("ect1", [2, 2]), ("any-ect", [3, 1])] {
        let (mut queue, mut stats) = with_base(&format!("l4s = '{l4s}'"), 0.0);
        for bits in 0..4 {
            arrive(&mut queue, &mut stats, 0, Ecn::from_bits(bits), 100);
        }
        let found = [&queue.l4s, &queue.classic].map(|line| line.backlog().packets);
        assert_eq!(found, expected, "{l4s}");
    }
}

/// The trace's column of delays drives the classic queue; the same on the L4S side.
#[test]
fn dq02_dq19_the_controller_follows_the_worked_example() {
    let rules = [
        ("", "p_base"),
        ("max_rtt = '100 ms'\ntypical_rtt = '15 ms'", "p_base_rfc"),
    ];
    for (text, column) in rules {
        for l4s in [false, true] {
            let mut controller = params(text).scheduler::<u32>(LINK, 1).controller;
            for row in rows(include_str!("../../tests/data/dualpi2_controller.csv")) {
                let delay = Time::from_secs_f64(row.number("qdelay_ms") / 1e3);
                let delays = match l4s {
                    true => [delay, Time::ZERO],
                    false => [Time::ZERO, delay],
                };
                controller.update(row.time(), delays);
                let what = format!("tick {}, {column}", row.text("tick"));
                assert_close(controller.base, row.number(column), &what);
                let suffix = column.strip_prefix("p_base").unwrap();
                let classic = row.number(&format!("p_classic{suffix}"));
                // Their digits are twelve.
                assert!((controller.classic() - classic).abs() <= 1e-11, "{what}");
                let coupled = row.number(&format!("p_coupled{suffix}"));
                assert!((controller.coupled().min(1.0) - coupled).abs() <= 1e-11);
                if suffix.is_empty() {
                    let overloaded = row.text("overload") == "true";
                    assert_eq!(controller.is_overloaded(), overloaded, "{what}");
                }
            }
        }
    }
}

/// Linux counts in 2^-32 and rounds its gains down: what is lost stays below 0.1 %.
#[test]
fn dq12_linux_integers_agree_and_overflow_stops_at_one_over_k() {
    for (text, column) in [
        ("", "linux_p"),
        ("overload = 'overflow'", "linux_p_overflow_mode"),
    ] {
        let mut controller = params(text).scheduler::<u32>(LINK, 1).controller;
        for row in rows(include_str!("../../tests/data/dualpi2_controller.csv")) {
            let delay = Time::from_secs_f64(row.number("qdelay_ms") / 1e3);
            controller.update(row.time(), [Time::ZERO, delay]);
            let expected = row.number(column);
            let what = format!("tick {}: {} {expected}", row.text("tick"), controller.base);
            assert!(
                (controller.base - expected).abs() < 1e-3 * expected + 1e-9,
                "{what}"
            );
        }
        assert_eq!(controller.is_overloaded(), text.is_empty());
    }
    // Nothing in the L4S queue is dropped then, and all of it is marked.
    let stats = under_load(
        "overload = 'overflow'",
        1.0,
        &[Ecn::Ect1],
        1000,
        |_, sent| {
            assert_eq!(sent, Some(Ecn::Ce));
        },
    );
    assert_eq!(stats.counters().dropped_packets(), 0);
}

#[test]
fn dq03_the_longer_of_the_two_delays_counts_and_an_empty_queue_has_none() {
    for (ecn, ms) in [(Ecn::Ect0, 20), (Ecn::Ect1, 3)] {
        let (mut queue, mut stats) = with_base("", 0.0);
        let now = queue.next_tick();
        arrive(&mut queue, &mut stats, now.as_nanos() / 1000, ecn, 1500);
        queue.on_tick(now + Time::from_millis(ms));
        assert_eq!(queue.controller.previous, ms as f64 / 1e3);
        while queue.dequeue(now, &mut stats, &mut || 1.0).is_some() {}
        queue.on_tick(now + Time::from_millis(40));
        assert_eq!(queue.controller.previous, 0.0);
    }
}

#[test]
fn dq04_the_square_for_classic_packets_and_k_times_for_l4s() {
    for (k, rules) in [(2, "linux"), (3, "linux"), (2, "rfc")] {
        let text = format!("coupling = {k}\nrules = '{rules}'");
        let (mut l4s, mut classic) = ([0.0; 2], [0.0; 2]);
        under_load(
            &text,
            0.1,
            &[Ecn::Ect1, Ecn::Ect0],
            100_000,
            |came, sent| {
                let counts = if came == Ecn::Ect1 {
                    &mut l4s
                } else {
                    &mut classic
                };
                counts[0] += 1.0;
                counts[1] += f64::from(u8::from(sent == Some(Ecn::Ce)));
            },
        );
        for ([count, hits], p) in [(l4s, 0.1 * f64::from(k)), (classic, 0.01)] {
            let sigma = f64::sqrt(count * p * (1.0 - p));
            let what = format!("k = {k}, {rules}: {hits} of {count}");
            assert!((hits - count * p).abs() < 3.0 * sigma, "{what}");
        }
    }
}

#[test]
fn dq05_classic_packets_without_ect_are_dropped_where_others_are_marked() {
    let mut counts = [0.0_f64; 2];
    under_load(
        "",
        0.45,
        &[Ecn::NotEct, Ecn::Ect0],
        40_000,
        |came, sent| match sent {
            None => {
                assert_eq!(came, Ecn::NotEct);
                counts[0] += 1.0;
            }
            Some(Ecn::Ce) => {
                assert_eq!(came, Ecn::Ect0);
                counts[1] += 1.0;
            }
            Some(_) => {}
        },
    );
    let [drops, marks] = counts;
    // 0.2025 of 20,000; five standard deviations of the difference.
    assert!((drops - marks).abs() < 5.0 * (2.0 * 20_000.0 * 0.2025 * 0.7975_f64).sqrt());
    assert!((drops - 4050.0).abs() < 300.0);
}

/// A row's packet in a queue with what it leaves behind, and the queue after it.
fn play_decision(queue: &mut Queue, stats: &mut Stats<u32>, row: &Row, draws: &str) -> String {
    let now = Time::from_secs(1);
    queue.controller.set(row.number("p_base"));
    let ecn = match row.text("ecn") {
        "ect1" => Ecn::Ect1,
        "ect0" => Ecn::Ect0,
        "ce" => Ecn::Ce,
        _ => Ecn::NotEct,
    };
    let arrived = now - Time::from_micros(row.number("sojourn_us") as u64);
    let side = match row.text("queue") {
        "L" => Side::L4s,
        _ => Side::Classic,
    };
    let first = Queued::new(arrived, packet(ecn, 1500), 0);
    match side {
        Side::L4s => queue.l4s.push(first),
        Side::Classic => queue.classic.push(first),
    }
    let left = row.number("l_packets_left") as u32;
    let filler = |size| Queued::new(now, packet(Ecn::Ect1, size), 1);
    (0..left).for_each(|_| queue.l4s.push(filler(100)));
    queue
        .classic
        .push(filler(row.number("bytes_left") as u32 - 100 * left));

    let mut draws = draws.split(';').filter_map(|draw| draw.parse().ok());
    let before = [STEP, COUPLED, Reason::EARLY].map(|reason| marked(stats, reason));
    let taken = queue.take(side, now, stats, &mut || {
        draws.next().expect("a draw that the example lacks")
    });
    assert_eq!(draws.next(), None, "a draw was not made");
    stats.hand_back(|_, _| ());
    while queue.l4s.pop().is_some() {}
    while queue.classic.pop().is_some() {}
    let now = [STEP, COUPLED, Reason::EARLY].map(|reason| marked(stats, reason));
    let was = |reason: usize| now[reason] > before[reason];
    match taken {
        None => "drop",
        Some(_) if was(0) => "step",
        Some(_) if was(1) || was(2) => "mark",
        Some(_) => "send",
    }
    .to_owned()
}

const DECISIONS: &str = include_str!("../../tests/data/dualpi2_decisions.csv");

#[test]
fn dq06_dq09_decisions_follow_the_worked_example_by_linux_rules() {
    let (mut queue, mut stats) = with_base("", 0.0);
    for row in rows(DECISIONS) {
        let draws = row.text("linux_draws").to_owned();
        let found = play_decision(&mut queue, &mut stats, &row, &draws);
        // A mark of a marked packet is not counted again: the first law is named.
        let expected = row.text("linux_decision").replace("mark+step", "mark");
        assert_eq!(found, expected, "row {}", row.step());
        let sojourn = Time::from_micros(row.number("sojourn_us") as u64);
        let steps = queue.settings.native.probability(sojourn, 5) > 0.0;
        if row.text("queue") == "L" && row.text("linux_decision") != "drop" {
            let expected = row.text("linux_decision").contains("step");
            assert_eq!(steps, expected, "row {}", row.step());
        }
    }
}

#[test]
fn dq06_dq07_dq11_decisions_follow_the_worked_example_by_the_rfc() {
    let (mut queue, mut stats) = with_base("rules = 'rfc'\nnative = 'ramp'", 0.0);
    for row in rows(DECISIONS) {
        let found = play_decision(&mut queue, &mut stats, &row, "");
        let expected = match row.text("rfc_decision") {
            "already_ce" => "send".to_owned(),
            "mark" if queue.settings.native_wins(&row) => "step".to_owned(),
            other => other.to_owned(),
        };
        let step = row.step();
        assert_eq!(found, expected, "row {step}");
        assert_close(
            queue.sums[0],
            row.number("recur_l"),
            &format!("row {step}, L"),
        );
        assert_close(
            queue.sums[1],
            row.number("recur_c"),
            &format!("row {step}, C"),
        );
        if row.text("queue") == "L" {
            let sojourn = Time::from_micros(row.number("sojourn_us") as u64);
            let left = row.number("l_packets_left") as u32;
            let native = queue.settings.native.probability(sojourn, left);
            assert!((native - row.number("p_native")).abs() < 1e-9, "row {step}");
        }
    }
}

impl Settings {
    /// Whether the native probability of a row exceeds the coupled one, which names the mark.
    fn native_wins(&self, row: &Row) -> bool {
        let coupled = 2.0 * row.number("p_base");
        row.text("queue") == "L" && row.number("p_native") > coupled
    }
}

#[test]
fn dq07_the_ramp_is_linear_and_off_for_a_queue_of_one() {
    let ramp = params("native = 'ramp'")
        .scheduler::<u32>(LINK, 1)
        .settings
        .native;
    let us = Time::from_micros;
    for (sojourn, left, expected) in [
        (us(799), 5, 0.0),
        (us(800), 5, 0.0),
        (us(1000), 5, 0.5),
        (us(1200), 5, 1.0),
        (us(5000), 5, 1.0),
        (us(1000), 1, 0.0),
        (us(1000), 0, 0.0),
        (us(1000), 2, 0.5),
    ] {
        assert_close(ramp.probability(sojourn, left), expected, "ramp");
    }
}

#[test]
fn dq08_the_step_is_strict_in_time_and_in_packets() {
    let law = |text: &str| params(text).scheduler::<u32>(LINK, 1).settings.native;
    let us = Time::from_micros;
    assert_eq!(law("").probability(us(1000), 9), 0.0);
    assert_eq!(law("").probability(us(1001), 0), 1.0);
    assert_eq!(law("step_packets = 5").probability(us(9000), 5), 0.0);
    assert_eq!(law("step_packets = 5").probability(us(0), 6), 1.0);
}

#[test]
fn dq09_two_packets_bytes_are_left_alone_but_for_the_step() {
    let (mut queue, mut stats) = with_base("", 1.0);
    arrive(&mut queue, &mut stats, 0, Ecn::NotEct, 1500);
    let now = Time::from_micros(5000);
    assert!(queue.dequeue(now, &mut stats, &mut { NO_DRAW }).is_some());
    arrive(&mut queue, &mut stats, 5000, Ecn::Ect1, 1500);
    let now = Time::from_micros(10_000);
    let sent = queue.dequeue(now, &mut stats, &mut { NO_DRAW }).unwrap();
    assert_eq!(sent.packet.ecn, Ecn::Ce);
    assert_eq!((marked(&stats, STEP), marked(&stats, COUPLED)), (1, 0));
}

#[test]
fn dq10_in_overload_l4s_packets_are_dropped_like_classic_ones_and_else_marked() {
    // The RFC adds both probabilities to one sum: 0.36 and 1.2 - 1 a packet where a drop takes 1 off,
    // so a drop costs 0.64 and a mark brings 0.56.
    for (rules, p) in [("linux", 0.36), ("rfc", 0.56 / 1.2)] {
        let (mut drops, count) = (0.0, 100_000);
        let text = format!("rules = '{rules}'");
        let stats = under_load(&text, 0.6, &[Ecn::Ect1], count, |_, sent| match sent {
            None => drops += 1.0,
            Some(ecn) => assert_eq!(ecn, Ecn::Ce),
        });
        let count = f64::from(count);
        assert!(
            (drops - p * count).abs() < 3.0 * f64::sqrt(count * p * (1.0 - p)),
            "{rules}"
        );
        assert_eq!(dropped(&stats, Reason::FORCED) as f64, drops);
    }
}

#[test]
fn dq11_from_one_over_k_squared_on_no_classic_packet_is_marked() {
    // Linux's comparison is strict: at 1/2 exactly it still marks.
    for (rules, base) in [("rfc", 0.5), ("rfc", 0.8), ("linux", 0.51)] {
        let text = format!("rules = '{rules}'");
        let stats = under_load(&text, base, &[Ecn::Ect0], 2000, |_, sent| {
            assert_ne!(sent, Some(Ecn::Ce), "{rules} {base}");
        });
        assert!(dropped(&stats, Reason::FORCED) > 400);
    }
}

#[test]
fn dq13_weighted_round_robin_follows_the_worked_example() {
    let (mut queue, mut stats) = with_base("", 0.0);
    for _ in 0..30 {
        arrive(&mut queue, &mut stats, 0, Ecn::Ect1, 1514);
    }
    for _ in 0..5 {
        arrive(&mut queue, &mut stats, 0, Ecn::Ect0, 1514);
    }
    for row in rows(include_str!("../../tests/data/dualpi2_wrr.csv")) {
        let what = format!("row {}", row.step());
        assert_eq!(queue.credit, row.number("credit_before") as i64, "{what}");
        let sent = queue
            .dequeue(Time::ZERO, &mut stats, &mut { NO_DRAW })
            .unwrap();
        let served = if sent.packet.ecn == Ecn::Ect1 {
            "L"
        } else {
            "C"
        };
        assert_eq!(served, row.text("served"), "{what}");
        assert_eq!(queue.credit, row.number("credit_after") as i64, "{what}");
        let left = [&queue.l4s, &queue.classic].map(|line| f64::from(line.backlog().packets));
        assert_eq!(
            left,
            [row.number("l_packets"), row.number("c_packets")],
            "{what}"
        );
    }
}

#[test]
fn dq14_the_credit_moves_for_packets_that_are_sent_beside_the_other_queue_only() {
    let (mut queue, mut stats) = with_base("step = '0 s'\necn = false", 0.0);
    let fresh = queue.credit;
    for ecn in [Ecn::Ect1, Ecn::Ect1, Ecn::NotEct, Ecn::NotEct] {
        arrive(&mut queue, &mut stats, 0, ecn, 1000);
    }
    // The step drops both L4S packets where nothing may be marked; then classic packets are alone.
    let later = Time::from_micros(1);
    queue.dequeue(later, &mut stats, &mut { NO_DRAW });
    assert_eq!(dropped(&stats, STEP), 2);
    assert_eq!(queue.credit, fresh);
    arrive(&mut queue, &mut stats, 1, Ecn::Ect1, 1000);
    queue.dequeue(later, &mut stats, &mut { NO_DRAW });
    assert_eq!(queue.credit, fresh + 10 * 1000);
}

#[test]
fn dq15_empty_queues_begin_anew_with_l4s_first() {
    let (mut queue, mut stats) = with_base("", 0.0);
    for _ in 0..12 {
        arrive(&mut queue, &mut stats, 0, Ecn::Ect1, 1514);
    }
    arrive(&mut queue, &mut stats, 0, Ecn::Ect0, 1514);
    for _ in 0..9 {
        queue.dequeue(Time::ZERO, &mut stats, &mut { NO_DRAW });
    }
    assert!(queue.credit > 0);
    while queue
        .dequeue(Time::ZERO, &mut stats, &mut { NO_DRAW })
        .is_some()
    {}
    arrive(&mut queue, &mut stats, 0, Ecn::Ect0, 1514);
    arrive(&mut queue, &mut stats, 0, Ecn::Ect1, 1514);
    let first = queue
        .dequeue(Time::ZERO, &mut stats, &mut { NO_DRAW })
        .unwrap();
    assert_eq!(first.packet.ecn, Ecn::Ect1);
}

#[test]
fn dq16_both_queues_share_one_limit_and_memory() {
    for (text, fits) in [("limit = '10 packets'", 10), ("memory = '4500 bytes'", 4)] {
        for last in [Ecn::Ect1, Ecn::NotEct] {
            let (mut queue, mut stats) = with_base(text, 0.0);
            for number in 0..fits {
                let ecn = if number % 2 == 0 {
                    Ecn::Ect1
                } else {
                    Ecn::Ect0
                };
                arrive(&mut queue, &mut stats, 0, ecn, 1000);
            }
            assert_eq!(queue.backlog().packets, fits);
            arrive(&mut queue, &mut stats, 0, last, 1000);
            assert_eq!(dropped(&stats, Reason::OVERFLOW), 1);
        }
    }
    let memory = |text: &str| match params(text).memory() {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(_) => unreachable!("memory is in bytes"),
    };
    assert_eq!(memory(""), 2 * 1514 * 10_000);
}

#[test]
fn dq17_ce_stays_ce_and_counts_nothing() {
    let stats = under_load("", 0.5, &[Ecn::Ce], 1000, |_, sent| {
        assert_eq!(sent, Some(Ecn::Ce));
    });
    assert_eq!(stats.counters().marked_packets(), 0);
}

#[test]
fn dq18_gains_by_the_rule_of_the_rfc() {
    let gains = |text: &str| params(text).gains();
    let rule = gains("max_rtt = '100 ms'\ntypical_rtt = '15 ms'");
    assert_close(rule.alpha, 0.15, "alpha");
    assert_close(rule.beta, 3.0, "beta");
    let ms = Time::from_millis;
    assert_eq!((rule.target, rule.t_update), (ms(15), ms(15)));
    // One of the two gives the other: a sixth, six times.
    assert_eq!(gains("max_rtt = '90 ms'"), gains("typical_rtt = '15 ms'"));
    let slow = gains("max_rtt = '30 ms'\ntypical_rtt = '20 ms'");
    assert_eq!((slow.target, slow.t_update), (ms(20), ms(10)));
}

#[test]
fn native_marking_spares_packets_that_found_a_short_queue() {
    let (mut queue, mut stats) = with_base("min_qlen_step = 2", 0.0);
    (0..4).for_each(|_| arrive(&mut queue, &mut stats, 0, Ecn::Ect1, 100));
    let sent = (0..4).map(|_| {
        let sent = queue.dequeue(Time::from_millis(5), &mut stats, &mut { NO_DRAW });
        sent.unwrap().packet.ecn == Ecn::Ce
    });
    assert_eq!(sent.collect::<Vec<_>>(), [false, false, true, true]);
}

#[test]
fn a_classic_packet_goes_first_once_it_is_older_by_the_shift() {
    for (l4s_us, first) in [(40_000, Ecn::Ect1), (40_001, Ecn::Ect0)] {
        let text = "service = 'time-shifted'\ntime_shift = '40 ms'";
        let (mut queue, mut stats) = with_base(text, 0.0);
        arrive(&mut queue, &mut stats, 0, Ecn::Ect0, 1500);
        arrive(&mut queue, &mut stats, l4s_us, Ecn::Ect1, 1500);
        let now = Time::from_micros(l4s_us);
        let sent = queue.dequeue(now, &mut stats, &mut { NO_DRAW }).unwrap();
        assert_eq!(sent.packet.ecn, first, "{l4s_us}");
    }
}

#[test]
fn early_decisions_fall_on_arrival() {
    let (mut queue, mut stats) = with_base("drop_early = true", 1.0);
    for ecn in [Ecn::Ect1, Ecn::Ect1, Ecn::Ect1, Ecn::NotEct] {
        arrive(&mut queue, &mut stats, 0, ecn, 1500);
    }
    // The first three found less than two packets, or too few bytes.
    assert_eq!(dropped(&stats, Reason::FORCED), 1);
    for _ in 0..3 {
        let sent = queue.dequeue(Time::ZERO, &mut stats, &mut { NO_DRAW });
        assert_eq!(sent.unwrap().packet.ecn, Ecn::Ect1);
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let field = |text: &str| {
        let params: Params = toml::from_str(text).unwrap();
        params.check().unwrap_err().0
    };
    assert_eq!(field("max_rtt = '100 ms'\nalpha = 0.2"), "alpha");
    assert_eq!(field("typical_rtt = '15 ms'\ntarget = '15 ms'"), "target");
    assert_eq!(field("drop_early = true\nrules = 'rfc'"), "drop_early");
    assert_eq!(field("coupling = 0"), "coupling");
    assert_eq!(field("classic_protection = 101"), "classic_protection");
    assert_eq!(field("t_update = '1 us'"), "t_update");
    assert_eq!(field("max_rtt = '0 s'"), "max_rtt");
}

/// Linux resets the credit with each new share, whatever it was.
#[test]
fn another_share_of_the_classic_queue_begins_with_its_own_credit() {
    let (mut queue, mut stats) = with_base("", 0.0);
    for ecn in [Ecn::Ect1, Ecn::NotEct, Ecn::Ect1] {
        arrive(&mut queue, &mut stats, 0, ecn, 1500);
    }
    queue.dequeue(Time::ZERO, &mut stats, &mut { NO_DRAW });
    let moved = queue.credit;
    queue.adopt(params("step = '2 ms'").scheduler(LINK, 1));
    assert_eq!(queue.credit, moved, "the share is the same");
    queue.adopt(params("classic_protection = 30").scheduler(LINK, 1));
    assert_eq!(queue.credit, 1514 * (30 - 70));
}
