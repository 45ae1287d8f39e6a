//! The table of rules in rules.md names what is there: every script and test exists,
//! every script names the rules that it shows, no rule is called met without one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A rule as the table has it.
struct Rule {
    met: String,
    /// The last cell: names in backquotes, remarks.
    shown: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rules() -> BTreeMap<String, Rule> {
    let page = fs::read_to_string(root().join("tests/rules.md")).unwrap();
    let mut rules = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<_> = line.split(" | ").collect();
        let id = cells[0].trim_start_matches("| ");
        if cells.len() != 6 || !is_rule(id) {
            continue;
        }
        let rule = Rule {
            met: cells[4].to_owned(),
            shown: cells[5].trim_end_matches(" |").to_owned(),
        };
        assert!(rules.insert(id.to_owned(), rule).is_none(), "{id} twice");
    }
    rules
}

/// Two letters and two digits.
fn is_rule(word: &str) -> bool {
    let (letters, digits) = word.split_at_checked(2).unwrap_or_default();
    letters.len() == 2
        && letters.bytes().all(|byte| byte.is_ascii_uppercase())
        && digits.len() == 2
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a cell has in backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The rules that each script names in its first line.
fn scripts() -> BTreeMap<String, BTreeSet<String>> {
    let mut scripts = BTreeMap::new();
    for path in files("tests/scripts") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".script") {
            let text = fs::read_to_string(&path).unwrap();
            let head = text.lines().next().unwrap().trim_start_matches("# ");
            let words = head
                .split(' ')
                .map(|word| word.trim_end_matches([':', '.']));
            let named = words.take_while(|word| is_rule(word)).map(str::to_owned);
            scripts.insert(name, named.collect());
        }
    }
    scripts
}

fn files(folder: &str) -> Vec<PathBuf> {
    fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// All files below a folder.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in files(&folder) {
            if path.is_dir() {
                folders.push(path.to_string_lossy().into_owned());
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// Whether the crate has this test: `file.rs: function`.
fn has_test(name: &str) -> bool {
    let Some((file, function)) = name.split_once(": ") else {
        return false;
    };
    ["src", "tests"]
        .into_iter()
        .flat_map(sources)
        .filter(|path| path.file_name().is_some_and(|found| found == file))
        .any(|path| {
            let text = fs::read_to_string(path).unwrap();
            text.contains(&format!("fn {function}("))
        })
}

#[test]
fn every_rule_is_met_with_a_test_or_has_a_reason() {
    let rules = rules();
    assert_eq!(rules.len(), 245);
    let scripts = scripts();
    let mut met = 0;
    for (id, rule) in &rules {
        let mut tests = 0;
        for name in quoted(&rule.shown) {
            if let Some(named) = scripts.get(name) {
                assert!(named.contains(id), "{id}: {name} does not name it");
                tests += 1;
            } else if name.contains(".rs: ") {
                assert!(has_test(name), "{id}: there is no {name}");
                tests += 1;
            } else {
                assert!(!name.contains(".script"), "{id}: there is no {name}");
            }
        }
        match rule.met.as_str() {
            "met" | "profile" => {
                assert!(tests > 0, "{id} is called met without a test");
                met += 1;
            }
            "no" => assert!(rule.shown.len() > 15, "{id} is not met, without a reason"),
            other => panic!("{id}: {other:?} is neither met, profile nor no"),
        }
    }
    assert!(met >= 140, "only {met} rules are met");
}

#[test]
fn the_page_counts_the_rules_and_lists_those_that_are_not_met() {
    let page = fs::read_to_string(root().join("../../docs/tcp-conformance.md")).unwrap();
    let rules = rules();
    let count = |word: &str| rules.values().filter(|rule| rule.met == word).count();
    let sentence = format!(
        "Of {} rules {} are met, {} by profile, {} are not.",
        rules.len(),
        count("met"),
        count("profile"),
        count("no")
    );
    assert!(page.contains(&sentence), "{sentence}");
    for (id, _) in rules.iter().filter(|(_, rule)| rule.met == "no") {
        assert!(
            page.contains(id),
            "docs/tcp-conformance.md: {id} is not met"
        );
    }
}

#[test]
fn the_table_lists_all_that_the_scripts_show() {
    let rules = rules();
    for (script, named) in scripts() {
        for id in named {
            let rule = rules.get(&id);
            let listed = rule.is_some_and(|rule| quoted(&rule.shown).any(|name| name == script));
            assert!(listed, "{id} does not list {script}");
        }
    }
}
