//! Every scenario of the project with the time of its responses broken down: parts add up, and nothing else
//! changes.

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
        .any(|class| !class.transport.is_tcp())
    {
        return None;
    }
    let measure = &mut scenario.measure;
    (measure.warm_up, measure.duration) = (Time::from_secs(1), Time::from_secs(4));
    measure.capture = None;
    scenario
        .changes
        .retain(|change| change.at < Time::from_secs(5));
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
        let Some(mut scenario) = shortened(&file) else {
            refused.push(file.file_name().unwrap().to_owned());
            continue;
        };
        let name = file.display();
        let ended = |error: RunError| -> Summary { panic!("{name}: {error}") };
        let plain = aqmlab_sim::run(&scenario, Box::new(Discard), &mut |_| true);
        let plain = plain.unwrap_or_else(ended);
        scenario.measure.breakdown = true;
        let checked = Checked::default();
        let records = Box::new(checked.clone());
        let explained = aqmlab_sim::run(&scenario, records, &mut |_| true);
        let explained = explained.unwrap_or_else(ended);
        let (rows, broken_down) = *checked.0.lock().unwrap();
        assert_eq!(rows, broken_down, "{name}");
        responses += rows;
        let summed: u64 = explained.breakdown["all"]
            .get("all")
            .map_or(0, |all| all.count);
        assert_eq!(summed, rows as u64, "{name}");
        assert_eq!(others(explained), others(plain), "{name}");
    }
    assert!(responses > 10_000, "{responses}");
    // Nobody sees what connections of QUIC wait for.
    assert_eq!(refused, ["quic.toml"]);
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
