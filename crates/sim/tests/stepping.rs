//! However a run is stepped, looked at and changed, its files are those of the run in one go.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aqmlab_net::{RandomStream, Time};
use aqmlab_parquet::recorder;
use aqmlab_record::Summary;
use aqmlab_scenario::Scenario;
use aqmlab_sim::{Memory, Simulation};

/// Pairs of a field and its value.
type Overrides = &'static [(&'static str, &'static str)];

type Files = BTreeMap<String, Vec<u8>>;

/// Where a test writes, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stepping-{name}"));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// What is here, which goes.
    fn take(&self) -> Files {
        let mut files = Files::new();
        for entry in fs::read_dir(&self.0).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files.insert(name, fs::read(&path).unwrap());
            fs::remove_file(path).unwrap();
        }
        files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn scenario(file: &str, overrides: &[(&str, &str)]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(file);
    let short = [("measure.warm_up", "1 s"), ("measure.duration", "5 s")];
    let overrides = short.iter().chain(overrides);
    let overrides: Vec<_> = overrides
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    let mut scenario =
        Scenario::load(&path, &overrides).unwrap_or_else(|error| panic!("{file}: {error}"));
    for class in 0..scenario.traffic.len() {
        if scenario.population(class).is_none() {
            scenario.set_population(class, 60.0);
        }
    }
    scenario
}

/// The run in one go.
fn whole(scenario: &Scenario, scratch: &Scratch) -> (Summary, Files) {
    let records = recorder(Some(&scratch.0), &scenario.measure);
    let summary = aqmlab_sim::run(scenario, records, &mut |_| true).unwrap();
    (summary, scratch.take())
}

/// The run in steps of random lengths, looked at after each; `change` may change something.
fn stepped(
    scenario: &Scenario,
    scratch: &Scratch,
    changeable: bool,
    mut change: impl FnMut(&mut Simulation),
) -> (Scenario, Summary, Files) {
    let records = recorder(Some(&scratch.0), &scenario.measure);
    let start = match changeable {
        true => Simulation::start_changeable,
        false => Simulation::start,
    };
    let mut simulation = start(scenario, records, Memory::UNLIMITED).unwrap();
    let mut draws = RandomStream::new(scenario.seed, "steps", 0);
    while simulation.now() < simulation.end_time() {
        change(&mut simulation);
        let step = Time::from_secs_f64(draws.exponential(0.05));
        simulation.run_until(simulation.now() + step).unwrap();
        let seen = simulation.observe();
        for (name, port) in &seen.links {
            let counters = &port.counters;
            let dropped = counters.dropped_packets();
            let left = counters.arrived_packets - dropped - counters.departed_packets;
            assert_eq!(
                left,
                u64::from(port.backlog.packets),
                "{name:?} at {}",
                seen.time
            );
        }
    }
    let scenario = simulation.scenario();
    (scenario, simulation.end().unwrap(), scratch.take())
}

/// What classes have received so far becomes what the summary has of them. Hosts' clocks may be behind
/// by some packets.
#[test]
fn received_bytes_are_those_of_the_summary() {
    for file in ["bulk.toml", "quickstart.toml", "disciplines/flood.toml"] {
        let scenario = scenario(file, &[]);
        let records = Box::new(aqmlab_record::Discard);
        let mut simulation = Simulation::start(&scenario, records, Memory::UNLIMITED).unwrap();
        let mut before = vec![0; scenario.traffic.len()];
        for second in 0..=6 {
            simulation.run_until(Time::from_secs(second)).unwrap();
            let received = simulation.observe().received;
            assert!(received.iter().zip(&before).all(|(now, then)| now >= then));
            before = received;
        }
        let summary = simulation.end().unwrap();
        for (class, received) in scenario.traffic.iter().zip(before) {
            let total = summary.flows[&class.name].goodput_bps / 8.0 * 5.0;
            let share = received as f64 / total;
            assert!(
                (0.9..1.000_001).contains(&share),
                "{file}: {}: {share}",
                class.name
            );
        }
    }
}

#[test]
fn steps_change_nothing() {
    let scratch = Scratch::new("steps");
    let cases: [(&str, &[(&str, &str)]); 9] = [
        ("bulk.toml", &[]),
        (
            "bulk.toml",
            &[("topology.bottleneck.forward.discipline", "codel")],
        ),
        ("quickstart.toml", &[]),
        (
            "quickstart.toml",
            &[("topology.bottleneck.forward.discipline", "pie")],
        ),
        ("sync-tcp-long.toml", &[]),
        ("open-loop.toml", &[]),
        ("packmime.toml", &[]),
        ("parking-lot.toml", &[]),
        (
            "rate-change.toml",
            &[(
                "topology.links.radio.rate_changes",
                "[{at = \"2 s\", rate = \"5 Mbit/s\"}]",
            )],
        ),
    ];
    for (file, overrides) in cases {
        let scenario = scenario(file, overrides);
        let expected = whole(&scenario, &scratch);
        for changeable in [false, true] {
            let (same, summary, files) = stepped(&scenario, &scratch, changeable, |_| {});
            assert_eq!(same, scenario, "{file}");
            assert_eq!(summary, expected.0, "{file}, changeable: {changeable}");
            for (name, bytes) in &expected.1 {
                assert!(
                    files[name] == *bytes,
                    "{file}, changeable: {changeable}: {name}"
                );
            }
        }
    }
}

/// Changes a key to one of some values at random, some ten times a run, and repeats the run from
/// the scenario that is left.
fn changes_are_repeated(
    name: &str,
    file: &str,
    overrides: &[(&str, &str)],
    choices: &[(&str, &[&str])],
) {
    let scratch = Scratch::new(name);
    let scenario = scenario(file, overrides);
    let unchanged = whole(&scenario, &scratch);
    let mut draws = RandomStream::new(7, "changes", 0);
    let (changed, summary, files) = stepped(&scenario, &scratch, true, |simulation| {
        if draws.uniform() < 0.1 {
            let (key, values) = choices[draws.below(choices.len())];
            let value = values[draws.below(values.len())];
            simulation
                .set(key, value)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    });
    assert!(changed.changes.len() > 3, "{:?}", changed.changes);
    assert!(summary != unchanged.0, "{file}: the changes do something");
    // From its text, as a user would.
    let text = changed.to_toml();
    let again = Scenario::load_text(&text, Path::new("."), &[]).unwrap();
    assert_eq!(again, changed);
    let repeated = whole(&again, &scratch);
    assert_eq!(repeated.0, summary, "{file}");
    for (name, bytes) in &repeated.1 {
        assert!(files[name] == *bytes, "{file} {overrides:?}: {name}");
    }
}

#[test]
fn changes_of_a_link_are_repeated() {
    changes_are_repeated(
        "link",
        "bulk.toml",
        &[],
        &[
            (
                "bottleneck.forward.rate",
                &["2 Mbit/s", "10 Mbit/s", "30 Mbit/s"],
            ),
            ("bottleneck.forward.delay", &["0 s", "20 ms", "50 ms"]),
            ("bottleneck.reverse.rate", &["1 Mbit/s", "10 Mbit/s"]),
            (
                "bottleneck.forward.discipline.limit",
                &["20 packets", "100 packets"],
            ),
        ],
    );
}

const CAKE: &str = "{ kind = \"cake\", bandwidth = \"6 Mbit/s\" }";
const STEP: &str = "{ kind = \"codel\", ecn = true, ce_threshold = \"5 ms\" }";
const STEP_FQ: &str = "{ kind = \"fq-codel\", ce_threshold = \"5 ms\" }";

#[test]
fn changes_of_parameters_are_repeated() {
    let disciplines: [(&str, &str, &[&str]); 18] = [
        ("red-12-36", "max_p", &["0.02", "0.5"]),
        ("ared-auto", "target_delay", &["5 ms", "50 ms"]),
        ("pi-24", "q_ref", &["5 packets", "40 packets"]),
        ("rem-24", "gamma", &["0.001", "0.02"]),
        ("avq-240", "gamma", &["0.7", "0.98"]),
        ("blue-240", "d1", &["0.01", "0.1"]),
        ("pie", "qdelay_ref", &["5 ms", "60 ms"]),
        ("codel", "target", &["1 ms", "30 ms"]),
        ("fq-codel", "interval", &["20 ms", "200 ms"]),
        ("fq-pie", "qdelay_ref", &["5 ms", "60 ms"]),
        ("dualpi2", "target", &["2 ms", "60 ms"]),
        ("cobalt", "target", &["1 ms", "30 ms"]),
        ("l4s-step", "limit", &["10 packets", "60 packets"]),
        (CAKE, "bandwidth", &["4 Mbit/s", "9 Mbit/s"]),
        (CAKE, "target", &["20 ms", "2 ms"]),
        (CAKE, "memory", &["30000 bytes", "200000 bytes"]),
        (STEP, "ce_threshold", &["500 us", "40 ms"]),
        (STEP_FQ, "ce_threshold", &["500 us", "40 ms"]),
    ];
    for (discipline, parameter, values) in disciplines {
        changes_are_repeated(
            parameter,
            "bulk.toml",
            &[
                ("topology.bottleneck.forward.discipline", discipline),
                ("measure.duration", "8 s"),
                ("traffic.transfers.tcp", "{ profile = \"rfc\", ecn = true }"),
            ],
            &[(
                &format!("bottleneck.forward.discipline.{parameter}"),
                values,
            )],
        );
    }
}

#[test]
fn changes_of_populations_are_repeated() {
    type Population = (
        &'static str,
        &'static str,
        Overrides,
        &'static str,
        &'static [&'static str],
    );
    let cases: [Population; 5] = [
        (
            "bulk",
            "bulk.toml",
            &[],
            "traffic.transfers.flows",
            &["2", "8", "20"],
        ),
        (
            "users",
            "quickstart.toml",
            &[],
            "traffic.browsers.users",
            &["10", "60", "300"],
        ),
        (
            "poisson",
            "open-loop.toml",
            &[],
            "traffic.fetches.rate",
            &["5 /s", "60 /s"],
        ),
        (
            "both",
            "quickstart.toml",
            &[("topology.hosts.rate", "100 Mbit/s")],
            "traffic.browsers.users",
            &["1", "500"],
        ),
        (
            "load-step",
            "sync-tcp-long.toml",
            &[],
            "traffic.transfers.flows",
            &["1", "9"],
        ),
    ];
    for (name, file, overrides, key, values) in cases {
        changes_are_repeated(name, file, overrides, &[(key, values)]);
    }
}

#[test]
fn transfers_come_and_go() {
    let scenario = scenario("bulk.toml", &[]);
    let mut simulation = Simulation::start_changeable(
        &scenario,
        Box::new(aqmlab_record::Discard),
        Memory::UNLIMITED,
    )
    .unwrap();
    let mut open = |until: u64, flows: &str| {
        simulation.set("traffic.transfers.flows", flows).unwrap();
        simulation.run_until(Time::from_secs(until)).unwrap();
        simulation.observe().flows.len()
    };
    // They start within two seconds.
    assert_eq!(open(3, "8"), 8);
    assert_eq!(open(4, "3"), 3);
    assert_eq!(open(6, "5"), 5);
}

#[test]
fn a_key_that_cannot_change_is_refused_with_those_that_can() {
    let scenario = scenario("bulk.toml", &[]);
    let mut simulation = Simulation::start_changeable(
        &scenario,
        Box::new(aqmlab_record::Discard),
        Memory::UNLIMITED,
    )
    .unwrap();
    let mut refused = |key: &str, value: &str| simulation.set(key, value).unwrap_err().to_string();
    let message = refused("bottleneck.forward.discipline.limt", "5 packets");
    assert!(
        message.contains("did you mean \"bottleneck.forward.discipline.limit\"?"),
        "{message}"
    );
    let message = refused("bottleneck.forward.rate", "fast");
    assert!(
        message.starts_with("bottleneck.forward.rate: found \"fast\""),
        "{message}"
    );
    let message = refused("traffic.transfers.flows", "0");
    assert!(message.contains("whole number of at least 1"), "{message}");
    assert!(simulation.scenario().changes.is_empty());
}
