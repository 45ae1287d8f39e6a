//! Renews what is generated from the scenario's types: scenarios/schema.json, docs/scenario.md,
//! docs/tcp-stack.md and the heads of the pages about disciplines, congestion controls and traffic models.

use std::path::Path;
use std::{fs, io};

use aqmlab_scenario::{BY_HAND, Scenario, page_heads, reference, tcp_reference};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::write(root.join("docs/scenario.md"), reference())?;
    fs::write(root.join("docs/tcp-stack.md"), tcp_reference())?;
    fs::write(
        root.join("scenarios/schema.json"),
        format!("{:#}\n", Scenario::json_schema()),
    )?;
    for (folder, heads) in page_heads() {
        let folder = root.join("docs").join(folder);
        fs::create_dir_all(&folder)?;
        for (kind, head) in heads {
            let path = folder.join(format!("{kind}.md"));
            let page = fs::read_to_string(&path).unwrap_or_default();
            let by_hand = page.split_once(BY_HAND).map_or("", |(_, rest)| rest);
            fs::write(path, head + by_hand)?;
        }
    }
    Ok(())
}
