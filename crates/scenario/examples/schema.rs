//! Renews what is generated from the scenario's types: scenarios/schema.json and docs/scenario.md.

use std::path::Path;
use std::{fs, io};

use aqmlab_scenario::{Scenario, reference};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::create_dir_all(root.join("docs"))?;
    fs::write(root.join("docs/scenario.md"), reference())?;
    fs::write(
        root.join("scenarios/schema.json"),
        format!("{:#}\n", Scenario::json_schema()),
    )
}
