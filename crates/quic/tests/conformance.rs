//! The table of rules in rules.md names what is there: every test exists, no rule is called met
//! without one, and the page counts them.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Each rule: its id, whether it is met, and what shows it.
fn rules() -> Vec<(String, String, String)> {
    let page = fs::read_to_string(root().join("tests/rules.md")).unwrap();
    let rows = page
        .lines()
        .map(|line| line.split(" | ").collect::<Vec<_>>());
    let rows = rows.filter(|cells| cells.len() == 6 && !cells[0].ends_with("---"));
    let rules = rows.filter(|cells| cells[0] != "| id").map(|cells| {
        let id = cells[0].trim_start_matches("| ").to_owned();
        let shown = cells[5].trim_end_matches(" |").to_owned();
        (id, cells[4].to_owned(), shown)
    });
    rules.collect()
}

/// All source files of the crate.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// Whether the crate has this test: `file.rs: function`.
fn has_test(name: &str) -> bool {
    let (file, function) = name.split_once(": ").expect("a file and a function");
    let of_name = sources().into_iter().filter(|path| path.ends_with(file));
    of_name
        .map(|path| fs::read_to_string(path).unwrap())
        .any(|text| text.contains("#[test]\n") && text.contains(&format!("fn {function}(")))
}

#[test]
fn every_rule_is_met_with_a_test_or_has_a_reason() {
    let rules = rules();
    assert_eq!(rules.len(), 70);
    for (id, met, shown) in &rules {
        let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        match met.as_str() {
            "met" => {
                assert!(!tests.is_empty(), "{id} is called met without a test");
                for name in tests {
                    assert!(has_test(name), "{id}: there is no {name}");
                    assert!(
                        name.contains(&id.to_lowercase()),
                        "{id}: {name} does not name it"
                    );
                }
            }
            "no" => assert!(tests.is_empty() && shown.len() > 15, "{id} has no reason"),
            other => panic!("{id}: {other:?} is neither met nor no"),
        }
    }
}

#[test]
fn the_page_counts_the_rules() {
    let page = fs::read_to_string(root().join("../../docs/transports.md")).unwrap();
    let rules = rules();
    let met = rules.iter().filter(|(_, met, _)| met == "met").count();
    let sentence = format!("{met} of {} rules", rules.len());
    assert!(page.contains(&sentence), "{sentence}");
    for (id, ..) in rules.iter().filter(|(_, met, _)| met == "no") {
        assert!(
            page.contains(id.as_str()),
            "docs/transports.md: {id} is not met"
        );
    }
}
