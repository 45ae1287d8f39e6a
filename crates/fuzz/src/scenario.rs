//! Scenario texts, files that they name, and overrides: a scenario that is written and read as the
//! same, or one line that says what is wrong.

use std::io;

use aqmlab_scenario::Scenario;

/// Stands between the parts of an input: the scenario, then overrides, then the text of every file
/// that it names.
const PART: &str = "\n%%\n";

/// What overrides alone are for.
pub(crate) const SMALL: &str = include_str!("small.toml");

/// The text of a scenario, overrides, a file that it names.
pub fn check(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else {
        return;
    };
    let mut parts = input.splitn(3, PART);
    let text = parts
        .next()
        .filter(|text| !text.is_empty())
        .unwrap_or(SMALL);
    let overrides: Vec<(String, String)> = parts
        .next()
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(path, value)| (path.to_owned(), value.to_owned()))
        .collect();
    let file = parts.next();
    let mut read = |_: &str| {
        file.map(str::to_owned)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    match Scenario::parse(text, &overrides, &mut read) {
        Ok(scenario) => {
            let effective = scenario.to_toml();
            let again = Scenario::parse(&effective, &[], &mut read);
            assert_eq!(again.as_ref(), Ok(&scenario), "{effective}");
            assert_eq!(again.expect("it is equal").to_toml(), effective);
            for class in 0..scenario.traffic.len() {
                assert!(scenario.population(class).is_none_or(f64::is_finite));
            }
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains(char::is_control), "{message:?}");
            assert!(message.len() < 2_000, "{message}");
        }
    }
}
