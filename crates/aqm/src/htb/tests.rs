//! The kernel's traces, what the tree must keep in any case, and shares.

use std::collections::VecDeque;

use aqmlab_net::{Bytes, RandomStream, Time};

use super::tree::{Allowance, Pulled, Shape, Tree};
use crate::parts::Holder;
use crate::worked::{Row, rows};

fn number(row: &Row, column: &str) -> u64 {
    row.text(column).parse().unwrap()
}

/// A node: its number, its parent's (0: none), rates in bytes per second, bursts, quantum, priority,
/// and whether it is a leaf.
#[derive(Clone, Copy)]
struct Plan {
    number: u64,
    parent: u64,
    rates: [u64; 2],
    bursts: [u64; 2],
    quantum: u32,
    priority: u8,
    leaf: bool,
}

/// The tree of these nodes, in the order of their numbers, and the place of each number.
fn tree(plans: &[Plan]) -> (Tree, Vec<u64>) {
    let mut plans = plans.to_vec();
    plans.sort_by_key(|plan| plan.number);
    let numbers: Vec<_> = plans.iter().map(|plan| plan.number).collect();
    let place = |number| numbers.binary_search(&number).ok().map(|at| at as u32);
    let allowance = |plan: &Plan, which: usize| Allowance {
        bytes_per_second: plan.rates[which],
        burst: Bytes(plan.bursts[which]),
    };
    let shapes: Vec<_> = plans
        .iter()
        .map(|plan| Shape {
            parent: place(plan.parent),
            rate: allowance(plan, 0),
            ceil: allowance(plan, 1),
            leaf: plan.leaf.then_some((plan.quantum, plan.priority)),
        })
        .collect();
    (Tree::new(&shapes), numbers)
}

/// Packets of each place: number and size.
type Queues = Vec<VecDeque<(u64, u32)>>;

fn pull(queues: &mut Queues, leaf: u32) -> Pulled<(u32, u64, u32)> {
    let queue = &mut queues[leaf as usize];
    match queue.pop_front() {
        Some((packet, size)) => Pulled::Packet((leaf, packet, size), size, queue.is_empty()),
        None => Pulled::Empty,
    }
}

/// What left: when, packet, leaf, size and level.
type Sent = (u64, u64, u64, u32, usize);

/// Plays arrivals (time, packet, leaf, size) before a wire: departures come first, then arrivals, each
/// followed by a dequeue if the wire is free. Also gives the packets that did not fit.
fn play(
    plans: &[Plan],
    arrivals: &[(u64, u64, u64, u32)],
    ns_per_byte: impl Fn(u32) -> u64,
    limit: usize,
) -> (Vec<Sent>, Vec<u64>) {
    play_in(tree(plans), arrivals, ns_per_byte, limit)
}

/// Plays arrivals before a wire in a tree of rates.
fn play_in(
    (mut tree, numbers): (Tree, Vec<u64>),
    arrivals: &[(u64, u64, u64, u32)],
    ns_per_byte: impl Fn(u32) -> u64,
    limit: usize,
) -> (Vec<Sent>, Vec<u64>) {
    let mut queues: Queues = vec![VecDeque::new(); numbers.len()];
    let mut coming: VecDeque<_> = arrivals.iter().copied().collect();
    let (mut sent, mut lost) = (Vec::new(), Vec::new());
    let (mut wake, mut on_wire) = (u64::MAX, false);
    loop {
        let arrival = coming.front().map_or(u64::MAX, |(at, ..)| *at);
        let at = wake.min(arrival);
        if at == u64::MAX {
            assert!(queues.iter().all(VecDeque::is_empty), "all packets leave");
            return (sent, lost);
        }
        let now = Time::from_nanos(at);
        if wake <= arrival {
            on_wire = false;
        } else if let Some((_, packet, leaf, size)) = coming.pop_front() {
            let place = numbers.binary_search(&leaf).unwrap();
            if queues[place].len() < limit {
                queues[place].push_back((packet, size));
                tree.activate(Time::from_nanos(at), place as u32);
            } else {
                lost.push(packet);
            }
        }
        if on_wire {
            continue;
        }
        wake = u64::MAX;
        if let Some(((leaf, packet, size), level)) =
            tree.dequeue(now, |leaf| pull(&mut queues, leaf))
        {
            sent.push((at, packet, numbers[leaf as usize], size, level));
            (wake, on_wire) = (at + ns_per_byte(size), true);
        } else if queues.iter().any(|queue| !queue.is_empty()) {
            wake = match tree.is_plain {
                true => tree.first_change(now).as_nanos(),
                false => tree.next_release().as_nanos(),
            };
            assert!(wake > at, "what is held back is released later");
        }
    }
}

fn follows(tree: &str, trace: &str, mbps: u64, limit: usize) {
    let nodes = rows(tree);
    let plans: Vec<_> = nodes
        .iter()
        .map(|row| Plan {
            number: number(row, "node"),
            parent: number(row, "parent"),
            rates: ["rate_bytes_per_s", "ceil_bytes_per_s"].map(|key| number(row, key)),
            bursts: ["burst_bytes", "cburst_bytes"].map(|key| number(row, key)),
            quantum: number(row, "quantum_bytes") as u32,
            priority: number(row, "prio") as u8,
            leaf: number(row, "level") == 0,
        })
        .collect();
    let (mut arrivals, mut right, mut right_lost) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows(trace) {
        let at = number(&row, "time_ns");
        let (packet, leaf) = (number(&row, "packet"), number(&row, "leaf"));
        let size = number(&row, "size_bytes") as u32;
        match row.event() {
            "arrive" => arrivals.push((at, packet, leaf, size)),
            "lost" => right_lost.push(packet),
            _ => right.push((at, packet, leaf, size, number(&row, "level") as usize)),
        }
    }
    let wire = |size| u64::from(size) * 8000 / mbps;
    let (sent, lost) = play(&plans, &arrivals, wire, limit);
    assert_eq!(lost, right_lost);
    assert_eq!(sent.len(), right.len());
    for (found, expected) in sent.iter().zip(&right) {
        assert_eq!(found, expected);
    }
}

#[test]
fn without_borrowing_the_kernel_sends_the_same_at_the_same_ns() {
    follows(
        include_str!("../../tests/data/htb_plain_tree.csv"),
        include_str!("../../tests/data/htb_plain.csv"),
        100,
        usize::MAX,
    );
}

#[test]
fn with_borrowing_the_kernel_sends_the_same_at_the_same_ns() {
    follows(
        include_str!("../../tests/data/htb_borrow_tree.csv"),
        include_str!("../../tests/data/htb_borrow.csv"),
        100,
        25,
    );
}

#[test]
fn with_priorities_the_kernel_sends_the_same_at_the_same_ns() {
    follows(
        include_str!("../../tests/data/htb_prio_tree.csv"),
        include_str!("../../tests/data/htb_prio.csv"),
        50,
        20,
    );
}

#[test]
fn over_subscribed_the_kernel_sends_the_same_at_the_same_ns() {
    follows(
        include_str!("../../tests/data/htb_oversubscribed_tree.csv"),
        include_str!("../../tests/data/htb_oversubscribed.csv"),
        100,
        usize::MAX,
    );
}

/// Rates in Mbit/s, bursts of tc.
fn plan(number: u64, parent: u64, rate: f64, ceil: f64, leaf: Option<(u32, u8)>) -> Plan {
    let bytes = |mbps: f64| (mbps * 125_000.0) as u64;
    let (quantum, priority) = leaf.unwrap_or_default();
    Plan {
        number,
        parent,
        rates: [bytes(rate), bytes(ceil)],
        bursts: [1600, 1600],
        quantum,
        priority,
        leaf: leaf.is_some(),
    }
}

/// What each leaf gets in Mbit/s when all always have packets of 1500 bytes, on a wire.
fn shares(plans: &[Plan], mbps: u64) -> Vec<f64> {
    const SECONDS: u64 = 10;
    let (mut tree, numbers) = tree(plans);
    let place = |number| numbers.binary_search(&number).unwrap() as u32;
    let leaves: Vec<_> = plans.iter().filter(|plan| plan.leaf).collect();
    let mut bytes = vec![0_u64; numbers.len()];
    for leaf in &leaves {
        tree.activate(Time::ZERO, place(leaf.number));
    }
    let mut at = 0;
    while at < (SECONDS + 1) * 1_000_000_000 {
        let now = Time::from_nanos(at);
        match tree.dequeue(now, |leaf| Pulled::Packet(leaf, 1500, false)) {
            Some((leaf, _)) => {
                if at >= 1_000_000_000 {
                    bytes[leaf as usize] += 1500;
                }
                at += 1500 * 8000 / mbps;
            }
            None => at = tree.next_release().as_nanos(),
        }
    }
    let of = |plan: &&Plan| bytes[place(plan.number) as usize] as f64 * 8e-6 / SECONDS as f64;
    leaves.iter().map(of).collect()
}

fn assert_shares(plans: &[Plan], mbps: u64, right: &[f64], bound: f64) {
    let found = shares(plans, mbps);
    assert_eq!(found.len(), right.len());
    for (found, right) in found.iter().zip(right) {
        let is_near = (found - right).abs() <= bound * right;
        assert!(is_near, "found {found} Mbit/s, expected {right}");
    }
}

const PACKET: Option<(u32, u8)> = Some((1514, 3));

#[test]
fn without_borrowing_each_has_its_rate() {
    let leaf = |number, rate| plan(number, 1, rate, rate, PACKET);
    let root = plan(1, 0, 100.0, 100.0, None);
    let plans = [root, leaf(10, 10.0), leaf(20, 20.0), leaf(30, 30.0)];
    assert_shares(&plans, 1000, &[10.0, 20.0, 30.0], 0.001);
}

#[test]
fn spare_capacity_goes_by_quantum() {
    let root = plan(1, 0, 100.0, 100.0, None);
    let plans = |quanta: [u32; 3]| {
        let leaf = |of: usize| {
            let rate = 10.0 * (of + 1) as f64;
            let number = 10 * (of as u64 + 1);
            plan(number, 1, rate, 100.0, Some((quanta[of], 3)))
        };
        [root, leaf(0), leaf(1), leaf(2)]
    };
    let equal = [23.33, 33.34, 43.33];
    assert_shares(&plans([1514; 3]), 1000, &equal, 0.01);
    let by_rate = [16.67, 33.35, 49.99];
    assert_shares(&plans([2000, 4000, 6000]), 1000, &by_rate, 0.01);
    let clamped = [19.5, 35.31, 45.2];
    assert_shares(&plans([125_000, 200_000, 200_000]), 1000, &clamped, 0.01);
}

#[test]
fn assured_rates_above_the_parents_exceed_its_ceiling() {
    let leaf = |number| plan(number, 1, 60.0, 100.0, PACKET);
    let plans = [plan(1, 0, 100.0, 100.0, None), leaf(10), leaf(20), leaf(30)];
    assert_shares(&plans, 1000, &[60.0; 3], 0.01);
}

#[test]
fn spare_capacity_goes_by_leaf_and_not_by_node() {
    let leaf = |number, parent| plan(number, parent, 1.0, 100.0, PACKET);
    let node = |number| plan(number, 1, 10.0, 100.0, None);
    let root = plan(1, 0, 100.0, 100.0, None);
    let leaves = [leaf(10, 2), leaf(20, 3), leaf(21, 3), leaf(22, 3)];
    let plans: Vec<_> = [root, node(2), node(3)].into_iter().chain(leaves).collect();
    assert_shares(&plans, 1000, &[25.0; 4], 0.01);
}

#[test]
fn the_wire_the_priority_and_the_ceiling_decide() {
    let root = plan(1, 0, 100.0, 100.0, None);
    let leaf = |number, rate, ceil, priority| plan(number, 1, rate, ceil, Some((1514, priority)));
    let wire = [root, leaf(10, 30.0, 100.0, 3), leaf(20, 60.0, 100.0, 3)];
    assert_shares(&wire, 50, &[25.0, 25.0], 0.01);
    let first = [root, leaf(10, 10.0, 100.0, 0), leaf(20, 10.0, 100.0, 1)];
    assert_shares(&first, 1000, &[90.0, 10.0], 0.01);
    let below = [root, leaf(10, 50.0, 20.0, 3), leaf(20, 10.0, 100.0, 3)];
    assert_shares(&below, 1000, &[20.0, 80.0], 0.01);
}

#[test]
fn under_an_idle_tree_and_under_a_full_parent() {
    let root = plan(1, 0, 100.0, 100.0, None);
    let alone = [root, plan(10, 1, 10.0, 80.0, PACKET)];
    assert_shares(&alone, 1000, &[80.0], 0.005);
    let node = plan(2, 1, 50.0, 50.0, None);
    let full = [
        root,
        node,
        plan(10, 2, 10.0, 50.0, PACKET),
        plan(11, 2, 40.0, 50.0, PACKET),
        plan(20, 1, 50.0, 100.0, PACKET),
    ];
    assert_shares(&full, 1000, &[10.0, 40.0, 50.0], 0.005);
}

/// Row 13: two access points have 79 of the 99 that their site has, one above the other.
#[test]
fn two_nodes_of_79_under_a_site_of_100_get_158() {
    let site = plan(1, 0, 99.0, 100.0, None);
    let node = |number, rate| plan(number, 1, rate, 80.0, None);
    let leaf = |number, parent| plan(number, parent, 39.5, 80.0, PACKET);
    let leaves = [leaf(10, 2), leaf(11, 2), leaf(20, 3), leaf(21, 3)];
    let over = [site, node(2, 79.0), node(3, 79.0)]
        .into_iter()
        .chain(leaves);
    let found = shares(&over.collect::<Vec<_>>(), 1000);
    let sum: f64 = found.iter().sum();
    assert!((sum - 158.0).abs() < 1.58, "{found:?}");
    let half = |number, parent| plan(number, parent, 24.5, 80.0, PACKET);
    let leaves = [half(10, 2), half(11, 2), half(20, 3), half(21, 3)];
    let fits = [site, node(2, 49.0), node(3, 49.0)]
        .into_iter()
        .chain(leaves);
    let found = shares(&fits.collect::<Vec<_>>(), 1000);
    let sum: f64 = found.iter().sum();
    // All that is assured to the site.
    assert!((sum - 99.0).abs() < 1.0, "{found:?}");
}

/// Row 15: a leaf at its ceiling loses what is left of a turn: a large burst of the ceiling gives it back.
#[test]
fn turns_above_the_burst_are_lost() {
    let plans = |cburst: u64| {
        let of = [(25.0, 1522), (100.0, 5997), (500.0, 29_990)];
        let leaves = of
            .into_iter()
            .zip(10..)
            .map(move |((ceil, quantum), number)| {
                let mut leaf = plan(number, 1, 1.0, ceil, Some((quantum, 3)));
                leaf.bursts[1] = cburst;
                leaf
            });
        let node = plan(1, 0, 199.0, 200.0, None);
        std::iter::once(node).chain(leaves).collect::<Vec<_>>()
    };
    assert_shares(&plans(1600), 1000, &[9.7, 18.5, 171.8], 0.01);
    assert_shares(&plans(60_000), 1000, &[9.0, 32.5, 158.5], 0.01);
}

/// Row 6: what the user's guide of HTB shows, in kB/s: customer A has WWW and SMTP, B is one leaf.
#[test]
fn the_examples_of_the_users_guide() {
    let node = |number, parent, rate: f64, ceil: f64, priority: Option<u8>| Plan {
        number,
        parent,
        rates: [rate, ceil].map(|kilo| (1e3 * kilo) as u64),
        bursts: [1600, 1600],
        quantum: (100.0 * rate) as u32,
        priority: priority.unwrap_or_default(),
        leaf: priority.is_some(),
    };
    let root = node(1, 0, 100.0, 100.0, None);
    let tree = |section: u64| {
        let (ceil_a, ceil_smtp) = if section == 4 {
            (60.0, 20.0)
        } else {
            (100.0, 100.0)
        };
        let first = u8::from(section == 6);
        let above = if section == 2 { 1 } else { 2 };
        let a = node(2, 1, 40.0, ceil_a, None);
        let www = node(10, above, 30.0, ceil_a, Some(first));
        let smtp = node(11, above, 10.0, ceil_smtp, Some(0));
        let b = node(12, 1, 60.0, 100.0, Some(first));
        let a = (section != 2).then_some(a);
        [root]
            .into_iter()
            .chain(a)
            .chain([www, smtp, b])
            .collect::<Vec<_>>()
    };
    let guide = rows(include_str!("../../tests/data/htb_guide.csv"));
    for section in [2, 3, 4, 6] {
        let phases: Vec<_> = guide
            .iter()
            .filter(|row| number(row, "section") == section)
            .collect();
        assert!(phases.len() >= 7, "{}", phases.len());
        let columns = ["www_kB_per_s", "smtp_kB_per_s", "b_kB_per_s"];
        // Who gets nothing sends nothing; the others send 90 kB/s in packets of 500 bytes.
        let sends = |at: f64, leaf: usize| {
            let in_phase = |row: &&&Row| row.number("from_s") <= at && at < row.number("to_s");
            phases
                .iter()
                .find(in_phase)
                .is_some_and(|row| row.number(columns[leaf]) > 0.0)
        };
        let mut arrivals = Vec::new();
        for turn in 0..(21 * 180) {
            for leaf in 0..3 {
                let at = turn as f64 / 180.0 + leaf as f64 / 540.0;
                if sends(at, leaf) {
                    let packet = arrivals.len() as u64;
                    arrivals.push(((at * 1e9) as u64, packet, 10 + leaf as u64, 500));
                }
            }
        }
        let (sent, _) = play(&tree(section), &arrivals, |size| u64::from(size) * 8, 5);
        for row in &phases {
            let [from, to] = ["from_s", "to_s"].map(|key| row.number(key));
            for (leaf, column) in columns.iter().enumerate() {
                let span = (from + 1.0) * 1e9..to * 1e9;
                let of_leaf =
                    |it: &&Sent| it.2 == 10 + leaf as u64 && span.contains(&(it.0 as f64));
                let found = sent.iter().filter(of_leaf).count() as f64 * 0.5 / (to - from - 1.0);
                let right = row.number(column);
                let is_near = (found - right).abs() <= 0.03 * right + 0.3;
                assert!(
                    is_near,
                    "section {section}, {from} s, {column}: {found}, not {right}"
                );
            }
        }
    }
}

/// Leaves of 8 and 8 under a node of 10 leave a debt, at most 60 s of it. Until it is paid, another leaf has
/// no more than its assured rate of 1.
#[test]
fn a_node_pays_its_debt_before_it_lends() {
    let over = |number| plan(number, 1, 8.0, 10.0, PACKET);
    let plans = [
        plan(1, 0, 10.0, 10.0, None),
        over(10),
        over(11),
        plan(12, 1, 1.0, 10.0, PACKET),
    ];
    for (seconds, right) in [(10, 6.7), (100, 66.7)] {
        let (mut tree, _) = tree(&plans);
        let end = Time::from_secs(seconds);
        let mut now = Time::ZERO;
        (1..=2).for_each(|leaf| tree.activate(now, leaf));
        while now < end {
            let sent = tree.dequeue(now, |leaf| Pulled::Packet(leaf, 1500, false));
            now = match sent {
                Some(_) => now + Time::from_micros(12),
                None => tree.next_release(),
            };
        }
        // The first two have nothing more; the third begins.
        tree.activate(now, 3);
        let mut last = now;
        loop {
            let sent = tree.dequeue(now, |leaf| match leaf {
                3 => Pulled::Packet(leaf, 1500, false),
                _ => Pulled::Empty,
            });
            if sent.is_some() {
                // At 1 Mbit/s a packet takes 12 ms.
                if now > end + Time::from_secs(1) && now - last < Time::from_millis(2) {
                    break;
                }
                last = now;
            }
            now = match sent {
                Some(_) => now + Time::from_micros(12),
                None => tree.next_release(),
            };
        }
        let paid = (now - end).as_secs_f64();
        assert!(
            (paid - right).abs() < 0.02 * right + 0.1,
            "{seconds} s: {paid} s"
        );
    }
}

/// Row 10: nodes of equal rates, one above the other, change nothing.
#[test]
fn a_chain_of_equal_nodes_is_one_node() {
    let mut stream = RandomStream::new(3, "chain", 0);
    let mut at = 0;
    let arrivals: Vec<_> = (0..2000)
        .map(|packet| {
            at += stream.below(1_200_000) as u64;
            (at, packet, 10, [64, 576, 1500][stream.below(3)])
        })
        .collect();
    let chain = |nodes: u64| {
        let nodes = (1..=nodes).map(|number| plan(number, number - 1, 10.0, 10.0, None));
        let count = nodes.clone().count() as u64;
        let leaf = plan(10, count, 10.0, 10.0, PACKET);
        let plans: Vec<_> = nodes.chain([leaf]).collect();
        play(&plans, &arrivals, |size| u64::from(size) * 80, usize::MAX).0
    };
    let one = chain(1);
    assert_eq!(one.len(), arrivals.len());
    assert_eq!(chain(3), one);
    assert_eq!(chain(6), one);
}

/// How long a node holds packets follows from what it sends.
#[test]
fn a_leaf_at_its_ceiling_holds_its_packets() {
    let plans = [
        plan(1, 0, 100.0, 100.0, None),
        plan(10, 1, 10.0, 10.0, PACKET),
    ];
    let (mut tree, _) = tree(&plans);
    let end = Time::from_secs(2);
    let (mut now, mut left) = (Time::ZERO, 100);
    tree.begin(now);
    tree.activate(now, 1);
    tree.watches = true;
    while left > 0 {
        let pulled = tree.dequeue(now, |leaf| {
            left -= 1;
            Pulled::Packet(leaf, 1500, left == 0)
        });
        now = match pulled {
            Some(_) => now + Time::from_micros(12),
            None => tree.next_release(),
        };
    }
    // 100 packets take 1.2 ms each: the last ones waited until 118 ms or so.
    let held = tree.held(1, end);
    let ms = held.at_ceiling.as_nanos() as f64 / 1e6;
    assert!((115.0..119.0).contains(&ms), "{ms} ms");
    assert!(held.borrowing < Time::from_millis(1), "{held:?}");
    assert_eq!(tree.held(0, end).at_ceiling, Time::ZERO);
    assert!(
        tree.last_holder()
            .is_some_and(|(holder, _)| holder == Holder::ceiling(1))
    );
}

/// Row 8: the same rings without a heap, in random trees: the same packets at the same ns.
#[test]
fn colours_from_credit_alone_give_the_same_order_and_times() {
    for seed in 0..10_000 {
        let mut stream = RandomStream::new(seed, "oracle", 0);
        let plans = random(&mut stream);
        let leaves: Vec<_> = plans.iter().filter(|plan| plan.leaf).collect();
        let mut at = 0;
        let arrivals: Vec<_> = (0..60)
            .map(|packet| {
                at += stream.below(900_000) as u64;
                let leaf = leaves[stream.below(leaves.len())].number;
                (at, packet, leaf, [64, 576, 1500][stream.below(3)])
            })
            .collect();
        let wire = |size: u32| u64::from(size) * 80;
        let found = play(&plans, &arrivals, wire, usize::MAX);
        let mut plain = tree(&plans);
        plain.0.is_plain = true;
        let right = play_in(plain, &arrivals, wire, usize::MAX);
        assert_eq!(found, right, "seed {seed}");
    }
}

/// A random tree whose children's rates fit into their parent's.
fn random(stream: &mut RandomStream) -> Vec<Plan> {
    let mut plans = vec![plan(1, 0, 20.0, 20.0, None)];
    let nodes = 1 + stream.below(3) as u64;
    for node in 0..nodes {
        let number = 10 * (node + 1);
        let rate = 20.0 / nodes as f64;
        let ceil = rate + stream.below(10) as f64;
        plans.push(plan(number, 1, rate, ceil, None));
        let leaves = 1 + stream.below(4) as u64;
        for leaf in 1..=leaves {
            let rate = rate / leaves as f64;
            let ceil = rate + stream.below(10) as f64;
            let turns = Some(([300, 1514, 6000][stream.below(3)], stream.below(3) as u8));
            plans.push(plan(number + leaf, number, rate, ceil, turns));
        }
    }
    plans
}

/// In any tree every packet leaves once, in the order of its leaf. No leaf has more than its ceiling, its
/// burst and a packet in any interval.
#[test]
fn random_trees_lose_nothing_and_hold_the_ceilings_of_leaves() {
    for seed in 0..300 {
        let mut stream = RandomStream::new(seed, "tree", 0);
        let plans = random(&mut stream);
        let leaves: Vec<_> = plans.iter().filter(|plan| plan.leaf).collect();
        let mut at = 0;
        let arrivals: Vec<_> = (0..400)
            .map(|packet| {
                at += stream.below(1_000_000) as u64;
                let leaf = leaves[stream.below(leaves.len())].number;
                (at, packet, leaf, [64, 576, 1500][stream.below(3)])
            })
            .collect();
        let (sent, lost) = play(&plans, &arrivals, |size| u64::from(size) * 80, usize::MAX);
        assert_eq!((sent.len(), lost.len()), (arrivals.len(), 0), "seed {seed}");
        for plan in leaves {
            let of_leaf = |packet: &&Sent| packet.2 == plan.number;
            let packets: Vec<_> = sent.iter().filter(of_leaf).map(|packet| packet.1).collect();
            assert!(packets.is_sorted(), "seed {seed}: a leaf keeps its order");
            let ceil = plan.rates[1] as f64 / 1e9;
            let (mut above, mut least, mut last) = (0.0_f64, 0.0_f64, 0);
            for (at, _, _, size, _) in sent.iter().filter(of_leaf) {
                above -= (at - last) as f64 * ceil;
                last = *at;
                least = least.min(above);
                above += f64::from(*size);
                let most = 1600.0 + 1500.0 + 4.0; // Credit is whole ns.
                assert!(above - least <= most, "seed {seed}, leaf {}", plan.number);
            }
        }
    }
}
