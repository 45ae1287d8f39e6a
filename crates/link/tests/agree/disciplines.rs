//! Every discipline of the registry: its presets, and a small queue that marks where it can.

use std::collections::BTreeSet;

use aqmlab_aqm::Discipline;
use aqmlab_declare::tagged;
use toml::{Table, Value};

/// A discipline under test.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) discipline: Discipline,
    /// A small queue, which the arrivals overload.
    pub(crate) is_small: bool,
}

/// One parameter set per kind for a link of 10 Mbit/s.
const SMALL: &str = r#"
droptail = { limit = "20 packets" }
red = { min_th = "4 packets", max_th = "15 packets", limit = "40 packets", w_q = 0.02, ecn = true }
step = { threshold = "6 packets", limit = "20 packets" }
ared-feng = { min_th = "4 packets", max_th = "12 packets", limit = "40 packets", w_q = 0.02, ecn = true }
ared = { target_delay = "6 ms", limit = "60 packets", interval = "100 ms", ecn = true }
pi = { q_ref = "10 packets", limit = "40 packets", a = 0.02, b = 0.018, interval = "10 ms", ecn = true }
rem = { q_ref = "5 packets", limit = "40 packets", gamma = 0.02, phi = 1.05, interval = "2 ms", ecn = true }
avq = { virtual_buffer = "8 packets", limit = "30 packets", ecn = true }
sred = { limit = "30 packets", ecn = true }
blue = { limit = "30 packets", d1 = 0.05, d2 = 0.01, freeze_time = "20 ms", ecn = true }
lqd = { q_ref = "8 packets", limit = "120 packets", ecn = true }
pie = { qdelay_ref = "10 ms", limit = "200 packets", max_burst = "20 ms", ecn = true }
dcn = { q_ref = "8 packets", limit = "120 packets", ecn = true }
afd = { q_ref = "8 packets", limit = "120 packets", ecn = true }
rio = { min_in = "10 packets", max_in = "20 packets", min_out = "4 packets", max_out = "12 packets", limit = "30 packets", w_q = 0.02, in_codepoints = [10, 12], ecn = true }
rio-ps = { short_min_th = "4 packets", short_max_th = "20 packets", long_min_th = "4 packets", long_max_th = "12 packets", limit = "30 packets", w_q = 0.02, ecn = true }
fred = { limit = "90 packets", w_q = 0.02, ecn = true }
sfb = { limit = "90 packets", bin_size = 4, rehash = "300 ms", penalty_rate = "1 Mbit/s", ecn = true }
bernoulli = { p = 0.03, limit = "40 packets", ecn = true }
red-pd = { min_th = "4 packets", max_th = "12 packets", limit = "40 packets", gentle = true, w_q = 0.02, ecn = true }
choke = { min_th = "4 packets", max_th = "15 packets", limit = "40 packets", w_q = 0.02, ecn = true }
codel = { target = "5 ms", interval = "50 ms", limit = "60 packets", ecn = true }
dualpi2 = { target = "5 ms", t_update = "5 ms", alpha = 2.0, beta = 20.0, limit = "60 packets" }
cake = { bandwidth = "9 Mbit/s", link_layer = "docsis", flows = 16, tins = "diffserv4", rtt = "50 ms", memory = "40 kB" }
cobalt = { target = "5 ms", interval = "50 ms", limit = "60 packets" }
l4s-marking = { step = "5 ms", limit = "60 packets" }
drr = { flows = 16, limit = "30 kB" }
fq-codel = { flows = 16, target = "5 ms", interval = "50 ms", limit = "60 packets" }
fq-pie = { flows = 16, qdelay_ref = "5 ms", limit = "60 packets", max_burst = "20 ms", ecn = true }
sfq = { buckets = 16, limit = "30 packets", perturb = "300 ms" }
policer = { rate = "7 Mbit/s", burst = "10 kB", limit = "30 packets", excess = "mark" }
shaper = { rate = "8 Mbit/s", burst = "10 kB", leaf = { kind = "fq-codel", flows = 16, target = "5 ms", interval = "50 ms", limit = "60 packets" } }
cake-mq = { queues = 2, cake = { rtt = "50 ms", bandwidth = "8 Mbit/s", flows = 16, memory = "60 kB" } }
htb = { leaf = { kind = "codel", target = "5 ms", interval = "50 ms", limit = "60 packets", ecn = true }, unknown = "home", plans = { home = { ceil = "8 Mbit/s", count = 3 } } }
"#;

fn discipline(name: &str, table: Table) -> Discipline {
    let discipline: Discipline =
        tagged::from_value(Value::Table(table)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(discipline.check(), Ok(()), "{name}");
    discipline
}

fn small() -> impl Iterator<Item = (String, Table)> {
    let tables: Table = SMALL.parse().expect("TOML");
    tables.into_iter().map(|(kind, table)| {
        let Value::Table(mut table) = table else {
            unreachable!("{kind} is a table");
        };
        table.insert("kind".to_owned(), kind.clone().into());
        (kind, table)
    })
}

/// All presets, and a small queue of each kind.
pub(crate) fn cases() -> Vec<Case> {
    let small = small().map(|(kind, table)| Case {
        discipline: discipline(&kind, table),
        name: format!("small {kind}"),
        is_small: true,
    });
    let presets = Discipline::presets().into_iter().map(|preset| Case {
        discipline: discipline(&preset.name, preset.discipline),
        name: preset.name,
        is_small: false,
    });
    small.chain(presets).collect()
}

#[test]
fn every_kind_has_presets_and_a_small_queue() {
    let small: BTreeSet<String> = small().map(|(kind, _)| kind).collect();
    let presets = Discipline::presets().into_iter();
    let presets: BTreeSet<String> = presets
        .map(|preset| {
            preset.discipline["kind"]
                .as_str()
                .expect("a word")
                .to_owned()
        })
        .collect();
    // A tree, and a device with several queues, are those of a network.
    let trees = BTreeSet::from(["cake-mq", "htb"].map(str::to_owned));
    assert_eq!(small, &presets | &trees);
    // A plug-in is none before somebody writes it.
    assert_eq!(small.len(), Discipline::ABOUT.len() - 1);
}
