//! Runs a scenario without Python and prints its summary: `cargo run --release -p aqmlab-sim
//! --example run -- SCENARIO [KEY=VALUE]... [OUT_DIRECTORY]`; `--presets` alone lists the disciplines
//! that have a name.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aqmlab_aqm::Discipline;
use aqmlab_scenario::Scenario;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("--presets") {
        print_presets();
        return ExitCode::SUCCESS;
    }
    let Some(file) = first else {
        eprintln!("usage: run SCENARIO [KEY=VALUE]... [OUT_DIRECTORY]");
        return ExitCode::from(2);
    };
    let (mut overrides, mut directory) = (Vec::new(), None);
    for argument in arguments {
        match argument.split_once('=') {
            Some((key, value)) => overrides.push((key.to_owned(), value.to_owned())),
            None => directory = Some(PathBuf::from(argument)),
        }
    }
    match run(Path::new(&file), &overrides, directory.as_deref()) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The name and the kind of every preset of a discipline.
fn print_presets() {
    for preset in Discipline::presets() {
        let kind = preset.discipline["kind"].as_str().unwrap_or_default();
        println!("{} {kind}", preset.name);
    }
}

fn run(
    file: &Path,
    overrides: &[(String, String)],
    directory: Option<&Path>,
) -> Result<String, Box<dyn std::error::Error>> {
    let scenario = Scenario::load(file, overrides)?;
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory)?;
    }
    let records = aqmlab_parquet::recorder(directory, &scenario.measure);
    let summary = aqmlab_sim::run(&scenario, records, &mut |_| true)?;
    Ok(serde_json::to_string_pretty(&summary)?)
}
