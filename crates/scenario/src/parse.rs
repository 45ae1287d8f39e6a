//! From text to a scenario and back.

use aqmlab_declare::tagged;
use toml::{Table, Value};

use crate::tables::{self, MAX_SCENARIO_BYTES, ReadFile};
use crate::{Scenario, ScenarioError, check, overrides};

impl Scenario {
    /// Reads a scenario.
    ///
    /// `overrides` are pairs of a path, such as `topology.bottleneck.discipline.limit` or
    /// `traffic.browsers.users`, and a value: TOML if it parses as TOML, else a plain string. They
    /// take effect before anything is checked. The files that the scenario names are read through
    /// `read` and become part of it.
    pub fn parse(
        text: &str,
        overrides: &[(String, String)],
        read: &mut ReadFile<'_>,
    ) -> Result<Self, ScenarioError> {
        if text.len() > MAX_SCENARIO_BYTES {
            let message = tables::too_large(text.len(), MAX_SCENARIO_BYTES);
            return Err(ScenarioError::new(
                "",
                format!("found a scenario {message}"),
            ));
        }
        let mut table: Table = toml::from_str(text).map_err(|error| syntax_error(text, &error))?;
        for (path, value) in overrides {
            overrides::set(&mut table, path, value)?;
        }
        let mut scenario: Self = tagged::from_value(Value::Table(table))?;
        check::names(&scenario)?;
        tables::inline(&mut scenario, read)?;
        check::scenario(&scenario)?;
        Ok(scenario)
    }

    /// The effective scenario: every default spelled out, every table it refers to inside.
    /// Reading it gives the same scenario.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario holds only what TOML can say")
    }
}

/// Where TOML's grammar is violated and how, in one line.
fn syntax_error(text: &str, error: &toml::de::Error) -> ScenarioError {
    let reason = match error.message().trim() {
        message if message.starts_with("invalid type: integer") => {
            format!("a whole number outside {} to {}", i64::MIN, i64::MAX)
        }
        message => message.replace('\n', ", "),
    };
    let place = error.span().map_or_else(String::new, |span| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before
            .iter()
            .rev()
            .take_while(|&&byte| byte != b'\n')
            .count()
            + 1;
        format!("line {line}, column {column}: ")
    });
    let reason: String = reason.chars().take(200).collect();
    ScenarioError::new("", format!("{place}not TOML: {reason}"))
}
