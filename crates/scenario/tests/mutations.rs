//! Whatever the text: a scenario or a message, never a panic; and what is read can be written.

use std::io;
use std::path::Path;

use aqmlab_scenario::Scenario;
use proptest::prelude::*;

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

fn read(name: &str) -> io::Result<String> {
    match name {
        "rtt_pairs_7x7.csv" => Ok(shipped(name)),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// A scenario that was read can be written and is read as the same; an error is a line.
fn check(text: &str, overrides: &[(String, String)]) {
    match Scenario::parse(text, overrides, &mut read) {
        Ok(scenario) => {
            let effective = scenario.to_toml();
            let again = Scenario::parse(&effective, &[], &mut read);
            assert_eq!(again.as_ref(), Ok(&scenario), "{effective}");
            assert_eq!(again.unwrap().to_toml(), effective);
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains(char::is_control), "{message:?}");
            assert!(message.len() < 2_000, "{message}");
        }
    }
}

fn scenario() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "quickstart.toml",
        "christiansen2000.toml",
        "open-loop.toml",
        "bulk.toml",
    ])
    .prop_map(shipped)
}

/// What might stand where a value stands.
fn value() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x:e}")),
        (0u32..1_000).prop_map(|n| n.to_string()),
        (0.0..2.0f64).prop_map(|x| x.to_string()),
    ];
    let unit = prop::sample::select(vec![
        "", " s", " ms", " h", " packets", " bytes", " KiB", " Mbit/s", " kbit/s", " /s",
    ]);
    let quantity = (number.clone(), unit).prop_map(|(n, unit)| format!("\"{n}{unit}\""));
    let word = prop::sample::select(vec![
        "true",
        "false",
        "nan",
        "-inf",
        "[]",
        "{}",
        "[[]]",
        "1979-05-27",
        "\"red\"",
        "\"rfc\"",
        "\"ethernet\"",
        "\"both\"",
        "\"\"",
        "{ kind = \"off\" }",
        "\"\\u001e\\u001f\"",
        "\"\\n\"",
    ]);
    prop_oneof![quantity, number, word.prop_map(str::to_owned)]
}

proptest! {
    #[test]
    fn values_are_replaced(text in scenario(), place in any::<prop::sample::Index>(), value in value()) {
        let lines: Vec<&str> = text.lines().collect();
        let settings: Vec<usize> = (0..lines.len())
            .filter(|&line| lines[line].contains(" = ") && !lines[line].starts_with('#'))
            .collect();
        let line = settings[place.index(settings.len())];
        let key = lines[line].split(" = ").next().unwrap();
        let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        lines[line] = format!("{key} = {value}");
        check(&lines.join("\n"), &[]);
    }

    #[test]
    fn lines_are_lost_doubled_and_cut(
        text in scenario(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3u8), 1..4),
    ) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (place, edit) in edits {
            let line = place.index(lines.len());
            match edit {
                0 => drop(lines.remove(line)),
                1 => lines.insert(line, lines[line].clone()),
                _ => {
                    let half = lines[line].chars().take(lines[line].chars().count() / 2);
                    lines[line] = half.collect();
                }
            }
        }
        check(&lines.join("\n"), &[]);
    }

    #[test]
    fn characters_are_replaced(
        text in scenario(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..4),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (place, character) in edits {
            let place = place.index(characters.len());
            characters[place] = character;
        }
        check(&characters.into_iter().collect::<String>(), &[]);
    }

    #[test]
    fn overrides_are_anything(
        text in scenario(),
        path in prop_oneof![
            "[a-z._0-9]{0,20}",
            Just("topology.bottleneck.discipline".to_owned()),
            Just("topology.bottleneck.forward.rate".to_owned()),
            Just("traffic.0.rtt".to_owned()),
            Just("traffic.0.tcp.mss".to_owned()),
            Just("traffic.0.name".to_owned()),
            Just("measure.queue_sample".to_owned()),
            Just("load".to_owned()),
        ],
        value in prop_oneof![value(), any::<String>()],
    ) {
        check(&text, &[(path, value)]);
    }
}
