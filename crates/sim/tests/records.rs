//! The files of a run: one error where they cannot be written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use aqmlab_parquet::recorder;
use aqmlab_record::RunError;
use aqmlab_scenario::Scenario;

/// Small fetches: more rows of each kind than one group of columns holds.
const MANY_ROWS: &str = r#"
    [measure]
    warm_up = "0 s"
    duration = "15 s"
    queue_sample = "10 ms"
    record = ["responses", "flows", "queue", "sojourn"]
    flow_trace = { flows = 500, min_response = "1 byte", period = "0 s" }
    [topology]
    kind = "dumbbell"
    [topology.bottleneck]
    rate = "20 Mbit/s"
    discipline = { kind = "codel" }
    [[traffic]]
    name = "fetches"
    kind = "poisson"
    rate = "400 /s"
    request = { kind = "constant", size = "100 bytes" }
    response = { kind = "constant", size = "4000 bytes" }
    tcp = "rfc"
    rtt = { kind = "uniform", min = "10 ms", max = "60 ms" }
"#;

/// A folder of this test's own, that goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("aqmlab-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn record(directory: &Path) -> Result<(), RunError> {
    let mut read = |_: &str| unreachable!("it reads no file");
    let scenario = Scenario::parse(MANY_ROWS, &[], &mut read).unwrap();
    let records = recorder(Some(directory), &scenario.measure);
    aqmlab_sim::run(&scenario, records, &mut |_| true).map(drop)
}

#[test]
fn a_full_disk_is_one_error() {
    for file in ["responses.parquet", "distribution.parquet"] {
        let folder = Folder::new("full");
        symlink("/dev/full", folder.0.join(file)).unwrap();
        let error = record(&folder.0).unwrap_err().to_string();
        assert!(error.starts_with("cannot write "), "{error}");
        assert!(error.contains("No space left on device"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
