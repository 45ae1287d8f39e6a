//! What the engine does, as hashes of the values that it records: every shipped scenario, every
//! preset of a discipline, every stack and congestion control, a few seconds of each.
//!
//! The name of the engine is part of every run's key: runs of another engine are not taken for those
//! of this one. It stays as long as no effective scenario of `tests/behaviour/hashes.txt` has another
//! result, whatever happens to the source. A new line does not change it, nor does a scenario that is
//! another, since a stack or a preset has other values: its runs have other keys already. Parquet
//! encodings and the names of columns are no behaviour: `tests/pinned` watches the bytes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use aqmlab_aqm::Discipline;
use aqmlab_net::{Bytes, FNV_BASIS, Time, fnv1a};
use aqmlab_parquet::recorder;
use aqmlab_scenario::{FlowTrace, Record, Scenario};
use aqmlab_tcp::Profile;
use aqmlab_traffic::Starts;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// Set to renew the file instead of comparing with it.
const RENEW: &str = "AQMLAB_RENEW";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run: its name, and a scenario with the values that replace its overrides.
struct Case {
    name: String,
    file: PathBuf,
    overrides: Vec<(String, String)>,
}

impl Case {
    fn new(name: &str, file: &Path, overrides: &[(&str, &str)]) -> Self {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Self {
            name: name.to_owned(),
            file: file.to_owned(),
            overrides: overrides.iter().map(owned).collect(),
        }
    }

    /// The scenario, with some users where it leaves their number to calibration.
    fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::load(&self.file, &self.overrides)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        shorten(&mut scenario);
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
        scenario
    }

    /// A line for each table: the hashes of its values and of the effective scenario, and its name.
    fn lines(&self, scratch: &Path) -> Vec<String> {
        let directory = scratch.join(self.name.replace(['/', ' '], "_"));
        fs::create_dir_all(&directory).unwrap();
        let scenario = self.scenario();
        let asked = asked(&scenario);
        let records = recorder(Some(&directory), &scenario.measure);
        aqmlab_sim::run(&scenario, records, &mut |_| true)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let mut tables: Vec<PathBuf> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
            .collect();
        tables.sort();
        let line = |path: &PathBuf| {
            let table = path.file_stem().unwrap().to_string_lossy();
            format!("{:016x} {asked:016x} {} {table}", digest(path), self.name)
        };
        let lines = tables.iter().map(line).collect();
        fs::remove_dir_all(&directory).unwrap();
        lines
    }
}

/// Five seconds with all records; what would begin or end later does so in their second half.
fn shorten(scenario: &mut Scenario) {
    let measure = &mut scenario.measure;
    (measure.warm_up, measure.duration) = (Time::from_secs(1), Time::from_secs(4));
    measure.record = vec![
        Record::Responses,
        Record::Flows,
        Record::Queue,
        Record::Sojourn,
    ];
    measure.flow_trace = Some(FlowTrace {
        flows: 2,
        min_response: Bytes(0),
        after: Time::ZERO,
        period: Time::ZERO,
    });
    for class in &mut scenario.traffic {
        let begin = class.start.first().min(Time::from_secs(3));
        class.start = match class.start {
            Starts::Together(_) => Starts::Together(begin),
            _ => Starts::Every {
                first: begin,
                every: Time::from_millis(10),
            },
        };
        class.stop = class.stop.map(|stop| stop.min(Time::from_secs(4)));
    }
}

/// Every file under `folder` that is a scenario: it has a network and traffic.
fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|end| end == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let table: toml::Table = text.parse().unwrap();
            if table.contains_key("topology") && table.contains_key("traffic") {
                found.push(path);
            }
        }
    }
}

fn cases() -> Vec<Case> {
    let mut files = Vec::new();
    for folder in ["scenarios", "papers", "tests/behaviour"] {
        scenarios(&root().join(folder), &mut files);
    }
    let shipped = files.iter().map(|file| {
        let name = file.strip_prefix(root()).unwrap().to_string_lossy();
        Case::new(&name, file, &[])
    });
    let pinned = root().join("tests/pinned/scenario.toml");
    let varied = |name: String, set: &[(&str, &str)]| Case::new(&name, &pinned, set);
    let presets = Discipline::presets().into_iter().flat_map(|preset| {
        let name = preset.name;
        let plain = format!("{{ preset = \"{name}\" }}");
        let key = "topology.bottleneck.discipline";
        let ecn = preset.discipline.contains_key("ecn");
        let marking = format!("{{ preset = \"{name}\", ecn = {} }}", !ecn);
        let both = [
            varied(format!("preset {name}"), &[(key, &plain)]),
            varied(format!("preset {name} other ecn"), &[(key, &marking)]),
        ];
        // Disciplines without ECN refuse the key.
        both.into_iter().filter(parses)
    });
    let profiles = Profile::NAMES.iter().flat_map(|profile| {
        let recoveries = ["tahoe", "reno", "new-reno", "sack", "sack-pipe", "rack-tlp"];
        recoveries.into_iter().map(move |recovery| {
            let tcp =
                format!("{{ profile = \"{profile}\", recovery = \"{recovery}\", ecn = true }}");
            (format!("stack {profile} {recovery}"), tcp)
        })
    });
    let controls = ["reno", "vegas", "fast", "cubic", "sync-tcp", "santa-cruz"];
    let controls = controls.into_iter().flat_map(|control| {
        [true, false].map(|ecn| {
            let tcp =
                format!("{{ profile = \"rfc\", congestion_control = \"{control}\", ecn = {ecn} }}");
            (
                format!("control {control} {}", if ecn { "ecn" } else { "loss" }),
                tcp,
            )
        })
    });
    // Controls that need a record of each segment.
    let tracked = [
        (
            "dctcp",
            "congestion_control = \"dctcp\", ecn = true, ecn_echo = \"each-change\"",
        ),
        ("scalable", "congestion_control = \"scalable\""),
        (
            "ledbat-plus-plus",
            "congestion_control = \"ledbat-plus-plus\"",
        ),
        ("bbr1", "congestion_control = \"bbr1\""),
        ("bbr3", "congestion_control = \"bbr3\""),
        (
            "prague",
            "congestion_control = \"prague\", ecn = true, ecn_echo = \"accurate\", ect = \"ect1\"",
        ),
        ("cubic accurate", "ecn = true, ecn_echo = \"accurate\""),
    ];
    let tracked = tracked.into_iter().map(|(name, keys)| {
        let tcp = format!("{{ profile = \"linux\", {keys} }}");
        (format!("control {name}"), tcp)
    });
    let stacks = profiles.chain(controls).chain(tracked);
    let stacks = stacks.map(|(name, tcp)| varied(name, &[("traffic.poisson.tcp", &tcp)]));
    shipped.chain(presets).chain(stacks).collect()
}

fn parses(case: &Case) -> bool {
    let text = fs::read_to_string(&case.file).unwrap();
    let mut read = |name: &str| panic!("it asks for {name}");
    Scenario::parse(&text, &case.overrides, &mut read).is_ok()
}

struct Hash(u64);

impl Hash {
    const fn new() -> Self {
        Self(FNV_BASIS)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0 = fnv1a(self.0, bytes.iter().copied());
    }
}

/// Hash of an effective scenario, wherever its files lie.
fn asked(scenario: &Scenario) -> u64 {
    let here = root();
    let text = scenario.to_toml();
    let mut hash = Hash::new();
    hash.add(text.replace(&*here.to_string_lossy(), "").as_bytes());
    hash.0
}

/// Hash of all values of a Parquet file, column by column.
fn digest(path: &Path) -> u64 {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let width = reader
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .len();
    let mut columns: Vec<Hash> = (0..width).map(|_| Hash::new()).collect();
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        for (hash, (_, value)) in columns.iter_mut().zip(row.get_column_iter()) {
            add_value(hash, value);
        }
    }
    let mut all = Hash::new();
    for column in columns {
        all.add(&column.0.to_le_bytes());
    }
    all.0
}

fn add_value(hash: &mut Hash, value: &Field) {
    match value {
        Field::Null => hash.add(b"null"),
        Field::UInt(value) => hash.add(&value.to_le_bytes()),
        Field::ULong(value) => hash.add(&value.to_le_bytes()),
        Field::Double(value) => hash.add(&value.to_le_bytes()),
        Field::Bool(value) => hash.add(&[u8::from(*value)]),
        Field::Str(value) => hash.add(value.as_bytes()),
        other => panic!("a value of {other}"),
    }
}

/// All cases on all processors; the lines in the order of the cases.
fn run_all() -> Vec<String> {
    let cases = cases();
    let scratch = std::env::temp_dir().join(format!("aqmlab-behaviour-{}", std::process::id()));
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((number, case)) = {
                    let number = next.fetch_add(1, Relaxed);
                    cases.get(number).map(|case| (number, case))
                } {
                    let lines = case.lines(&scratch);
                    found.lock().unwrap().insert(number, lines);
                }
            });
        }
    });
    fs::remove_dir_all(&scratch).unwrap();
    let mut lines: Vec<String> = found
        .into_inner()
        .unwrap()
        .into_values()
        .flatten()
        .collect();
    lines.sort_by(|one, two| parts(one).2.cmp(parts(two).2));
    lines
}

/// The hash of the values, that of the effective scenario, and the name of a line.
fn parts(line: &str) -> (&str, &str, &str) {
    (&line[..16], &line[17..33], &line[34..])
}

#[test]
fn the_engine_does_what_it_did() {
    let path = root().join("tests/behaviour/hashes.txt");
    let known = fs::read_to_string(&path).unwrap_or_default();
    let known: Vec<&str> = known.lines().collect();
    let found = run_all();
    let is_found = |line: &&&str| found.iter().any(|one| one == **line);
    let lost: Vec<_> = known.iter().filter(|line| !is_found(line)).collect();
    let is_known = |line: &&String| known.contains(&line.as_str());
    let new: Vec<_> = found.iter().filter(|line| !is_known(line)).collect();
    if std::env::var_os(RENEW).is_none() {
        assert!(
            lost.is_empty() && new.is_empty(),
            "behaviour has changed; if that is meant, run this test with {RENEW}=1, which renews \
             tests/behaviour/hashes.txt and, where a scenario that is the same has another result, the \
             engine's name, and say why in the change log.\n\
             Not found any more: {lost:#?}\nNew: {new:#?}"
        );
        return;
    }
    let text: String = found.iter().map(|line| format!("{line}\n")).collect();
    let is_other = |line: &&&str| {
        let (values, scenario, name) = parts(line);
        let same = |one: &&String| parts(one).1 == scenario && parts(one).2 == name;
        found
            .iter()
            .find(same)
            .is_some_and(|one| parts(one).0 != values)
    };
    if lost.iter().any(is_other) {
        let mut name = Hash::new();
        name.add(text.as_bytes());
        let file = root().join("crates/sim/src/engine.txt");
        fs::write(file, format!("{:016x}\n", name.0)).unwrap();
    }
    fs::write(&path, text).unwrap();
}
