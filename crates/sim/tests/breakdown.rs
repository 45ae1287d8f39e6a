//! Every scenario of the project with the time of its responses broken down: parts add up, and nothing else
//! changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aqmlab_net::Time;
use aqmlab_record::{
    Breakdown, ClassMetrics, Discard, Exchange, Flow, LinkStats, Part, QueueSamples, Records,
    RunError, Summary, TraceRow,
};
use aqmlab_scenario::Scenario;
use aqmlab_sim::{Memory, Simulation};

/// Checks each row, and counts those of responses and of breakdowns.
#[derive(Clone, Default)]
struct Checked(Arc<Mutex<(usize, usize)>>);

impl Records for Checked {
    fn begin(&mut self, _classes: &[String], _probes: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }

    fn response(&mut self, _row: &Exchange) {
        self.0.lock().unwrap().0 += 1;
    }

    fn breakdown(&mut self, row: &Exchange, breakdown: &Breakdown<'_>) {
        let response = row.response_time().as_nanos();
        assert_eq!(breakdown.parts.iter().sum::<u64>(), response, "{row:?}");
        assert_eq!(breakdown.parts[Part::CarriedOver as usize], 0, "{row:?}");
        self.0.lock().unwrap().1 += 1;
    }

    fn flow(&mut self, _row: &Flow) {}

    fn trace(&mut self, _row: &TraceRow) {}

    fn queue(&mut self, _samples: &QueueSamples) {}

    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        _classes: &[ClassMetrics],
        _links: &[&LinkStats],
    ) -> Result<(), RunError> {
        Ok(())
    }
}

/// A few seconds of a scenario, with some users where it leaves their number to calibration.
fn shortened(file: &Path) -> Option<Scenario> {
    let name = file.display();
    let mut scenario = Scenario::load(file, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
    if scenario
        .traffic
        .iter()
        .any(|class| class.transport.quinn > 0.0)
    {
        return None;
    }
    let measure = &mut scenario.measure;
    (measure.warm_up, measure.duration) = (Time::from_secs(1), Time::from_secs(4));
    measure.capture = None;
    scenario
        .changes
        .retain(|change| change.at.is_none_or(|at| at < Time::from_secs(5)));
    for class in 0..scenario.traffic.len() {
        if scenario.population(class).is_none() {
            let population = match scenario.traffic[class].population_key() {
                "users" => 300.0,
                "sessions" => 60.0,
                "rate" => 40.0,
                _ => 1.0,
            };
            scenario.set_population(class, population);
        }
    }
    Some(scenario)
}

/// The summary without its breakdown.
fn others(mut summary: Summary) -> String {
    summary.breakdown.clear();
    serde_json::to_string(&summary).unwrap()
}

/// All scenarios of the project: those that are shipped, and those of its papers.
fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    let mut folders = vec![root.join("scenarios")];
    for paper in fs::read_dir(root.join("papers")).unwrap() {
        folders.push(paper.unwrap().path().join("scenarios"));
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("sweeps") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn parts_add_up_in_every_shipped_scenario_and_nothing_else_changes() {
    let (mut responses, mut refused) = (0, Vec::new());
    for file in shipped() {
        let Some(scenario) = shortened(&file) else {
            refused.push(file.file_name().unwrap().to_owned());
            continue;
        };
        let name = file.display();
        responses += explained(&scenario, &name.to_string()).0;
    }
    assert!(responses > 10_000, "{responses}");
    // Nobody sees what connections of quinn wait for.
    assert_eq!(refused, ["quic.toml"]);
}

/// Runs a scenario with and without the breakdown: nothing else changes. How many responses there were, and
/// the nanoseconds of each part.
fn explained(scenario: &Scenario, name: &str) -> (usize, BTreeMap<&'static str, f64>) {
    let ended = |error: RunError| -> Summary { panic!("{name}: {error}") };
    let mut scenario = scenario.clone();
    scenario.measure.breakdown = false;
    let plain = aqmlab_sim::run(&scenario, Box::new(Discard), &mut |_| true);
    let plain = plain.unwrap_or_else(ended);
    scenario.measure.breakdown = true;
    let checked = Checked::default();
    let explained = aqmlab_sim::run(&scenario, Box::new(checked.clone()), &mut |_| true);
    let explained = explained.unwrap_or_else(ended);
    let (rows, broken_down) = *checked.0.lock().unwrap();
    assert_eq!(rows, broken_down, "{name}");
    let all = explained.breakdown["all"].get("all");
    assert_eq!(all.map_or(0, |all| all.count), rows as u64, "{name}");
    let value = serde_json::to_value(all).unwrap();
    let parts = Part::ALL.map(|part| {
        let key = part.column().replace("_ns", "_s");
        (part.column(), value[key].as_f64().unwrap_or(0.0))
    });
    assert_eq!(others(explained), others(plain), "{name}");
    (rows, parts.into_iter().collect())
}

/// Pages and transfers over our QUIC, behind several queues, with losses and reordering, with and without
/// 0-RTT.
#[test]
fn parts_add_up_over_quic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let text = fs::read_to_string(folder.join("quic.toml")).unwrap();
    let text = text.replace("\"quinn\"", "\"quic\"").replace(
        "[[traffic]]\nname = \"quic\"",
        "[[traffic]]\nname = \"transfers\"\nkind = \"poisson\"\nrate = \"20 /s\"\n\
         transport = { quic = 0.7, tcp = 0.3 }\n\
         request = { kind = \"constant\", size = \"3 kB\" }\n\
         response = { kind = \"constant\", size = \"70 kB\" }\n\
         rtt = { kind = \"uniform\", min = \"15 ms\", max = \"200 ms\" }\n\n\
         [[traffic]]\nname = \"quic\"",
    );
    let queues = [
        "{ kind = 'droptail', limit = '60 packets' }",
        "{ kind = 'red', min_th = '20 packets', max_th = '60 packets', limit = '200 packets', ecn = true }",
        "'fq-codel'",
        "'pie'",
        "'cake'",
    ];
    let mut variants: Vec<Vec<(&str, String)>> = Vec::new();
    for queue in queues {
        for loss in ["0", "0.01", "0.05"] {
            variants.push(vec![
                ("topology.bottleneck.discipline", queue.to_owned()),
                ("topology.bottleneck.loss", loss.to_owned()),
            ]);
        }
    }
    for early in ["accepted", "rejected"] {
        for loss in ["0", "0.03"] {
            let early = format!("{{ early_data = '{early}', pace_bursts = true }}");
            variants.push(vec![
                ("traffic.transfers.quic", early.clone()),
                ("traffic.quic.quic", early),
                ("topology.bottleneck.loss", loss.to_owned()),
            ]);
        }
    }
    let reordered = "{ share = 0.05, delay = '8 ms' }";
    variants.push(vec![(
        "topology.bottleneck.reordering",
        reordered.to_owned(),
    )]);
    variants.push(vec![("topology.hosts.rate", "\"50 Mbit/s\"".to_owned())]);
    let narrow = "{ receive_window = '20 kB', server_flight = '6 kB' }";
    variants.push(vec![("traffic.transfers.quic", narrow.to_owned())]);
    let (mut responses, mut sums) = (0, BTreeMap::new());
    for variant in variants {
        let name = format!("{variant:?}");
        let settings: Vec<_> = variant
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let scenario = Scenario::load_text(&text, &folder, &settings);
        let mut scenario = scenario.unwrap_or_else(|error| panic!("{name}: {error}"));
        let measure = &mut scenario.measure;
        (measure.warm_up, measure.duration) = (Time::from_secs(1), Time::from_secs(9));
        let (count, parts) = explained(&scenario, &name);
        responses += count;
        for (part, mean) in parts {
            *sums.entry(part).or_insert(0.0) += mean * count as f64;
        }
    }
    assert!(responses > 3_000, "{responses}");
    for part in Part::ALL {
        let sum = sums[part.column()];
        match part {
            Part::OtherTimer | Part::CarriedOver => assert_eq!(sum, 0.0, "{part:?}"),
            _ => assert!(sum > 0.0, "{part:?}"),
        }
    }
}

#[test]
fn a_stepped_run_gives_the_same_breakdown() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut scenario = shortened(&folder.join("quickstart.toml")).unwrap();
    scenario.measure.breakdown = true;
    scenario.set_population(0, 3_000.0);
    let whole = aqmlab_sim::run(&scenario, Box::new(Discard), &mut |_| true).unwrap();
    let records = Box::new(Discard);
    let mut stepped = Simulation::start_changeable(&scenario, records, Memory::UNLIMITED).unwrap();
    for step in 1..=50 {
        stepped.run_until(Time::from_millis(100 * step)).unwrap();
        let _ = stepped.observe();
    }
    let stepped = stepped.end().unwrap();
    assert_eq!(stepped.breakdown, whole.breakdown);
    assert!(whole.breakdown["all"]["all"].count > 100);
}
