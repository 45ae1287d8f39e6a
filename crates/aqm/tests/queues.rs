//! Disciplines that own their packets, and PIE, before senders that do not react: each does what
//! its paper is for. And the refusal of impossible parameters.

use aqmlab_aqm::{Discipline, LinkFacts, Queue};
use aqmlab_declare::tagged;
use aqmlab_net::{Bytes, Ecn, FlowKey, Packet, RandomStream, Rate, Time};
use toml::{Table, Value};

use crate::model::once::Numbered;

/// 10 Mbit/s: 2500 packets of 500 bytes a second.
const LINK: LinkFacts = LinkFacts {
    rate: Rate::from_mbps(10),
    framing: Bytes(0),
};

fn discipline(text: &str) -> Discipline {
    let table: Table = text.parse().unwrap();
    let discipline: Discipline = tagged::from_value(Value::Table(table)).unwrap();
    assert_eq!(discipline.check(), Ok(()));
    discipline
}

/// What a sender offers: packets of `size` bytes at random times.
#[derive(Clone, Copy)]
struct Sender {
    /// Share of the link's rate.
    load: f64,
    size: u32,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    offered: f64,
    sent_bytes: f64,
    sent: f64,
    seconds_waited: f64,
    /// Share of the link's rate that the sender got.
    throughput: f64,
}

impl Outcome {
    fn loss(&self) -> f64 {
        1.0 - self.sent / self.offered
    }

    fn mean_delay(&self) -> f64 {
        self.seconds_waited / self.sent
    }
}

/// The senders at a link for 40 s; counted from 10 s on.
fn run(discipline: &str, senders: &[Sender]) -> Vec<Outcome> {
    let [warm_up, end] = [10, 40].map(Time::from_secs);
    let mut queue: Queue<usize> = Queue::new(&self::discipline(discipline), LINK, 1);
    let mut draws = RandomStream::new(1, "law", 0);
    let mut streams: Vec<_> = (0..senders.len() as u64)
        .map(|sender| RandomStream::new(1, "sender", sender))
        .collect();
    let mut due = vec![Time::ZERO; senders.len()];
    let mut outcomes = vec![Outcome::default(); senders.len()];
    let mut wire_free = Time::ZERO;
    loop {
        let sender = (0..senders.len())
            .min_by_key(|&sender| due[sender])
            .unwrap();
        let now = due[sender];
        if now >= end {
            break;
        }
        while wire_free <= now {
            while queue.next_tick() <= wire_free {
                queue.tick();
            }
            let Some(next) = queue.take(wire_free, &mut || draws.uniform(), &mut |_, _| ()) else {
                queue.idle(wire_free);
                wire_free = now;
                break;
            };
            let outcome = &mut outcomes[next.item];
            if next.arrived >= warm_up {
                outcome.sent += 1.0;
                outcome.seconds_waited += (wire_free - next.arrived).as_secs_f64();
                outcome.sent_bytes += f64::from(next.packet.size);
            }
            wire_free += LINK.rate.transmission_time(u64::from(next.packet.size));
        }
        while queue.next_tick() <= now {
            queue.tick();
        }
        let Sender { load, size } = senders[sender];
        let packet = Packet {
            size,
            ecn: Ecn::NotEct,
            dscp: 0,
            flow: FlowKey(sender as u64),
        };
        if now >= warm_up {
            outcomes[sender].offered += 1.0;
        }
        queue.put(now, packet, sender, &mut || draws.uniform(), &mut |_, _| ());
        let mean_gap = LINK.rate.transmission_time(u64::from(size)).as_secs_f64() / load;
        due[sender] = now + Time::from_secs_f64(streams[sender].exponential(mean_gap));
    }
    let carried = LINK.rate.bps() as f64 / 8.0 * (end - warm_up).as_secs_f64();
    for outcome in &mut outcomes {
        outcome.throughput = outcome.sent_bytes / carried;
    }
    outcomes
}

/// A flood of twice the link's rate beside ten senders of 8 % each, less than their fair share.
fn flood_and_ten() -> Vec<Sender> {
    let flood = Sender {
        load: 2.0,
        size: 500,
    };
    let modest = Sender {
        load: 0.08,
        ..flood
    };
    let mut senders = vec![modest; 11];
    senders[0] = flood;
    senders
}

fn mean(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(value).sum::<f64>() / outcomes.len() as f64
}

#[test]
fn choke_takes_the_link_from_a_flood_that_has_it_under_red() {
    let thresholds = "min_th = '20 packets'\nmax_th = '60 packets'\nlimit = '120 packets'\n";
    let share = |kind: &str| run(&format!("kind = '{kind}'\n{thresholds}"), &flood_and_ten());
    let [red, choke] = ["red", "choke"].map(share);
    // RED drops all alike: 2 of 2.8 packets are the flood's, whichever are dropped.
    assert!((red[0].throughput - 2.0 / 2.8).abs() < 0.02, "{:?}", red[0]);
    let spared = mean(&choke[1..], Outcome::loss) / mean(&red[1..], Outcome::loss);
    assert!(choke[0].throughput < 0.4, "{:?}", choke[0]);
    assert!(spared < 0.3, "loses {spared} of what RED takes");
}

#[test]
fn with_a_queue_for_each_flow_a_flood_hurts_nobody_but_itself() {
    for kind in ["sfq", "drr", "fq-codel", "fq-pie"] {
        let outcomes = run(
            &format!("kind = '{kind}'\nlimit = '60 packets'"),
            &flood_and_ten(),
        );
        let flood = outcomes[0];
        assert!((flood.throughput - 0.2).abs() < 0.01, "{kind}: {flood:?}");
        let loss = mean(&outcomes[1..], Outcome::loss);
        assert!(loss < 0.001, "{kind}: {loss}");
    }
}

#[test]
fn turns_are_equal_in_bytes_whatever_the_sizes() {
    let greedy = |size| Sender { load: 1.0, size };
    let senders = [greedy(1500), greedy(500), greedy(100)];
    for kind in ["drr", "fq-codel", "fq-pie", "sfq'\nquantum = '1500 bytes"] {
        let outcomes = run(&format!("kind = '{kind}'\nlimit = '60000 bytes'"), &senders);
        for outcome in outcomes {
            let share = outcome.throughput;
            assert!((share - 1.0 / 3.0).abs() < 0.02, "{kind}: {outcome:?}");
        }
    }
    // In packets the sender of small ones gets the least.
    let outcomes = run("kind = 'sfq'", &senders);
    let in_packets = outcomes[0].throughput / outcomes[2].throughput;
    assert!((in_packets - 15.0).abs() < 0.5, "{in_packets}");
}

#[test]
fn pie_holds_its_reference_against_any_load() {
    for (load, reference) in [(1.1, 15), (1.3, 15), (1.3, 40)] {
        let text = format!("kind = 'pie'\nqdelay_ref = '{reference} ms'");
        let outcome = run(&text, &[Sender { load, size: 500 }])[0];
        let delay = outcome.mean_delay() * 1e3;
        let expected = f64::from(reference);
        assert!((delay / expected - 1.0).abs() < 0.15, "{load}: {delay} ms");
        let excess = 1.0 - 1.0 / load;
        assert!((outcome.loss() - excess).abs() < 0.01, "{outcome:?}");
    }
}

#[test]
fn codel_keeps_the_standing_delay_near_its_target() {
    let steady = [Sender {
        load: 1.05,
        size: 1500,
    }];
    let droptail = run("kind = 'droptail'\nlimit = '1000 packets'", &steady)[0];
    assert!(droptail.mean_delay() > 0.9, "{droptail:?}");
    for kind in ["codel", "fq-codel"] {
        let outcome = run(&format!("kind = '{kind}'"), &steady)[0];
        assert!(outcome.mean_delay() < 0.05, "{kind}: {outcome:?}");
        assert!(outcome.throughput > 0.98, "{kind}: {outcome:?}");
    }
}

#[test]
fn impossible_parameters_are_refused_with_the_field_and_the_remedy() {
    let thresholds = "min_th = '5 packets'\nmax_th = '15 packets'\n";
    let cases = [
        (
            "kind = 'choke'\nmin_th = '200 packets'",
            "max_th",
            "must exceed min_th",
        ),
        (
            "kind = 'choke'\nlimit = '100 packets'",
            "limit",
            "must exceed min_th",
        ),
        (
            "kind = 'choke'\ncandidates = 0",
            "candidates",
            "from 1 to 1000",
        ),
        (
            "kind = 'choke'\nregions = 1001",
            "regions",
            "from 0 to 1000",
        ),
        ("kind = 'choke'\nw_q = 0.0", "w_q", "above 0"),
        ("kind = 'choke'\nmax_p = 1.1", "max_p", "at most 1"),
        (
            "kind = 'choke'\nmean_packet = '0 bytes'",
            "mean_packet",
            "0 bytes",
        ),
        ("kind = 'sfq'\nbuckets = 0", "buckets", "from 1 to 65536"),
        ("kind = 'sfq'\ndepth = 0", "depth", "at least 1"),
        (
            "kind = 'sfq'\nquantum = '0 bytes'",
            "quantum",
            "at least 1 byte",
        ),
        ("kind = 'sfq'\nperturb = '0 s'", "perturb", "at least"),
        (
            "kind = 'sfq'\nlimit = '0 packets'",
            "limit",
            "holds no packet",
        ),
        ("kind = 'drr'\nflows = 65537", "flows", "from 1 to 65536"),
        (
            "kind = 'drr'\nquantum = '0 bytes'",
            "quantum",
            "at least 1 byte",
        ),
        (
            "kind = 'codel'\ntarget = '100 ms'",
            "target",
            "shorter than interval, 100 ms",
        ),
        (
            "kind = 'codel'\ntarget = '0 ms'",
            "target",
            "longer than 0 s",
        ),
        (
            "kind = 'codel'\ninterval = '0 ms'",
            "interval",
            "longer than 0 s",
        ),
        ("kind = 'fq-codel'\nflows = 0", "flows", "from 1 to 65536"),
        ("kind = 'fq-codel'\nbatch = 0", "batch", "at least 1"),
        (
            "kind = 'fq-codel'\nmemory = '0 bytes'",
            "memory",
            "at least 1 byte",
        ),
        (
            "kind = 'fq-codel'\ntarget = '1 s'",
            "target",
            "shorter than interval",
        ),
        ("kind = 'pie'\nt_update = '0 ms'", "t_update", "at least"),
        (
            "kind = 'pie'\nqdelay_ref = '0 ms'",
            "qdelay_ref",
            "longer than 0 s",
        ),
        ("kind = 'pie'\nalpha = -1.0", "alpha", "at least 0"),
        ("kind = 'pie'\nbeta = 1e7", "beta", "at most 1000000"),
        ("kind = 'pie'\nmark_ecnth = 1.5", "mark_ecnth", "at most 1"),
        (
            "kind = 'pie'\ndelay = 'rate'\nlimit = '9 packets'",
            "limit",
            "16384 bytes",
        ),
        (
            "kind = 'fq-pie'\nflows = 100000",
            "flows",
            "from 1 to 65536",
        ),
        (
            "kind = 'fq-pie'\nquantum = '0 bytes'",
            "quantum",
            "at least 1 byte",
        ),
        (
            "kind = 'fq-pie'\nmark_ecnth = -0.1",
            "mark_ecnth",
            "at least 0",
        ),
    ];
    for (text, field, words) in cases {
        let table: Table = text.parse().unwrap();
        let discipline: Discipline = tagged::from_value(Value::Table(table)).unwrap();
        let (found, message) = discipline.check().unwrap_err();
        assert_eq!(found, field, "{text}: {message}");
        assert!(message.contains(words), "{text}: {message}");
    }
    assert_eq!(
        discipline(&format!("kind = 'choke'\n{thresholds}")).check(),
        Ok(())
    );
}

/// Bounded by 1, PIE's probability falls to 0 with the delay, which the sojourn time shows late: the
/// queue is full again before it has grown. Linux's is not bounded.
#[test]
fn pie_holds_a_flood_of_four_times_the_link_where_its_probability_is_not_bounded() {
    let flood = [Sender {
        load: 4.0,
        size: 1500,
    }];
    let delay = |more: &str| run(&format!("kind = 'pie'\n{more}"), &flood)[0].mean_delay();
    for bounded in ["", "rules = 'linux'\np_max = 1.0"] {
        assert!(delay(bounded) > 0.4, "{bounded}");
    }
    for held in ["rules = 'linux'", "delay = 'rate'"] {
        assert!((0.010..0.018).contains(&delay(held)), "{held}");
    }
}

/// A queue that was empty is sparse when it wakes: overloaded flows whose queues COBALT empties pass
/// for sparse, and the sparse flow waits for them. Else it waits for the packet on the wire alone.
#[test]
fn a_sparse_flow_in_cake_waits_for_half_a_packet_where_the_others_are_never_empty() {
    let wait = |load: f64, more: &str| {
        let mut senders = vec![Sender { load, size: 1500 }; 10];
        senders.push(Sender {
            load: 0.01,
            size: 100,
        });
        let cake = format!("kind = 'cake'\ntins = 'besteffort'\nisolation = 'flows'\n{more}");
        run(&cake, &senders)[10].mean_delay() * 1e3
    };
    let half = 0.6;
    for (load, more) in [(0.2, "rtt = '1000 s'"), (1.0, "")] {
        let found = wait(load, more);
        assert!((found - half).abs() < 0.03, "{load} {more}: {found}");
    }
    assert!(wait(0.2, "") > 0.75);
}
