//! Renews what is generated from the scenario's types: scenarios/schema.json, docs/scenario.md and
//! the heads of the pages in docs/disciplines.

use std::path::Path;
use std::{fs, io};

use aqmlab_scenario::{BY_HAND, Scenario, discipline_heads, reference};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let disciplines = root.join("docs/disciplines");
    fs::create_dir_all(&disciplines)?;
    fs::write(root.join("docs/scenario.md"), reference())?;
    fs::write(
        root.join("scenarios/schema.json"),
        format!("{:#}\n", Scenario::json_schema()),
    )?;
    for (kind, head) in discipline_heads() {
        let path = disciplines.join(format!("{kind}.md"));
        let page = fs::read_to_string(&path).unwrap_or_default();
        let by_hand = page.split_once(BY_HAND).map_or("", |(_, rest)| rest);
        fs::write(path, head + by_hand)?;
    }
    Ok(())
}
