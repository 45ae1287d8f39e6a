//! Renews what is generated from declarations: `cargo run -p aqmlab-xtask`.
//!
//! That is the schemas of scenarios and summaries, docs/scenario.md, docs/tcp-stack.md, the heads of
//! docs/metrics.md and of the pages about disciplines, congestion controls and traffic models, and the
//! playground's catalogue.

mod heads;
mod metrics;
mod playground;
mod scenario;

use std::path::{Path, PathBuf};
use std::{fs, io};

use aqmlab_record::summary_schema;
use aqmlab_scenario::Scenario;

use heads::BY_HAND;

/// A file of the checkout: what is generated of it, which ends with [`BY_HAND`] where the rest is not.
struct Generated {
    path: String,
    text: String,
}

impl Generated {
    fn new(path: impl Into<String>, text: String) -> Self {
        let path = path.into();
        Self { path, text }
    }

    fn file(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(&self.path)
    }

    /// The whole file, with what is written by hand in the present one.
    fn whole(&self) -> String {
        let present = fs::read_to_string(self.file()).unwrap_or_default();
        let by_hand = match self.text.ends_with(BY_HAND) {
            true => present.split_once(BY_HAND).map_or("", |(_, rest)| rest),
            false => "",
        };
        self.text.clone() + by_hand
    }
}

fn generated() -> Vec<Generated> {
    let json = |value: serde_json::Value| format!("{value:#}\n");
    let metrics = format!("{}\n{BY_HAND}", metrics::page());
    let mut files = vec![
        Generated::new("scenarios/schema.json", json(Scenario::json_schema())),
        Generated::new("docs/scenario.md", scenario::page()),
        Generated::new("docs/tcp-stack.md", scenario::tcp_page()),
        Generated::new("docs/summary.schema.json", json(summary_schema())),
        Generated::new("docs/metrics.md", metrics),
        Generated::new("web/src/catalog.json", json(playground::catalog())),
    ];
    for (folder, heads) in heads::all() {
        let heads = heads.into_iter();
        files.extend(heads.map(|(kind, head)| {
            let path = format!("docs/{folder}/{kind}.md");
            Generated::new(path, head)
        }));
    }
    files
}

fn main() -> io::Result<()> {
    generated()
        .iter()
        .try_for_each(|it| fs::write(it.file(), it.whole()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_generated_is_fresh() {
        for it in generated() {
            let present = fs::read_to_string(it.file()).unwrap_or_default();
            let renew = "renew it: cargo run -p aqmlab-xtask";
            assert!(present == it.whole(), "{}: {renew}", it.path);
        }
    }

    #[test]
    fn every_page_with_a_head_is_that_of_a_kind_and_complete() {
        for (folder, heads) in heads::all() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../docs")
                .join(folder);
            let pages = fs::read_dir(folder).unwrap();
            let pages = pages.map(|page| fs::read_to_string(page.unwrap().path()).unwrap());
            let generated: Vec<_> = pages.filter(|page| page.contains(BY_HAND)).collect();
            assert_eq!(generated.len(), heads.len());
            for page in generated {
                for heading in ["## How it works", "## Validation"] {
                    assert!(page.contains(heading), "{heading}: {page}");
                }
            }
        }
    }
}
