//! SRED, both drop rules.

use aqmlab_aqm::sred::{Params, Rule, Zombie};
use aqmlab_aqm::{Aqm, AqmParameters, Discipline};
use aqmlab_net::QueueSize;

use crate::worked::trace::{flow, follow, link, rows};

fn example(rule: Rule) -> Params {
    Params {
        limit: QueueSize::Bytes(9000),
        rule,
        zombies: 3,
        overwrite: 0.25,
        alpha: Some(0.01),
        p_max: 0.15,
        ecn: true,
    }
}

fn follow_sred(csv: &str, rule: Rule) {
    let params = example(rule);
    let variables = ["hit", "P", "p_zap"].map(|name| (name, name));
    let discipline = Discipline::Sred(params.clone());
    follow(csv, &discipline, link(1000, 500), &variables, &[]);

    let mut sred = params.aqm(link(1000, 500), 1);
    for row in rows(csv) {
        let mut draws = row.draws();
        let mut draw = || draws.pop_front().expect("a draw that the example lacks");
        sred.on_arrival(row.time(), &row.packet(), row.queue(), &mut draw);
        let expected: Vec<Zombie> = row.text("zombies").split('|').map(zombie).collect();
        assert_eq!(sred.zombies(), expected, "row {}", row.step());
    }
}

/// A zombie as the example writes it, `flow:count`.
fn zombie(text: &str) -> Zombie {
    let (name, count) = text.split_once(':').unwrap();
    Zombie {
        flow: flow(name),
        count: count.parse().unwrap(),
    }
}

#[test]
fn sred_simple() {
    follow_sred(include_str!("../data/sred_simple.csv"), Rule::Simple);
}

#[test]
fn sred_full() {
    follow_sred(include_str!("../data/sred_full.csv"), Rule::Full);
}
