//! From a file, or from text, to a scenario and back.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aqmlab_aqm::Discipline;
use aqmlab_declare::tagged::{self, quoted};
use aqmlab_net::{FNV_BASIS, fnv1a};
use toml::{Table, Value};

use crate::tables::{self, MAX_SCENARIO_BYTES, MAX_TABLE_BYTES, ReadFile};
use crate::{Scenario, ScenarioError, changes, check, overrides, vector_files};

impl Scenario {
    /// Reads a scenario file, and the files that it names from its folder: tables become part of
    /// the scenario, files of connection vectors are found and checked. `overrides` are those of
    /// [`parse`](Self::parse).
    pub fn load(path: &Path, overrides: &[(String, String)]) -> Result<Self, ScenarioError> {
        let text = read_text(path, MAX_SCENARIO_BYTES).map_err(|error| {
            let found = quoted(&path.to_string_lossy());
            ScenarioError::new("", format!("found {found}, which cannot be read: {error}"))
        })?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        Self::load_text(&text, folder, overrides)
    }

    /// Reads a scenario as [`load`](Self::load) does, from the text of a file in `folder`.
    pub fn load_text(
        text: &str,
        folder: &Path,
        overrides: &[(String, String)],
    ) -> Result<Self, ScenarioError> {
        let mut read = |name: &str| read_text(&folder.join(name), MAX_TABLE_BYTES);
        let mut scenario = Self::parse(text, overrides, &mut read)?;
        vector_files::find(&mut scenario, folder)?;
        scenario.salt_plugins();
        Ok(scenario)
    }

    /// Reads a scenario where there are no files, or where they are not the caller's. What
    /// [`load`](Self::load) adds is that files of connection vectors are found.
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
        #[cfg(feature = "air")]
        crate::wifi::check_place(&table)?;
        let mut scenario: Self = tagged::from_value(Value::Table(table))?;
        check::names(&scenario)?;
        tables::inline(&mut scenario, read)?;
        changes::spell_out(&mut scenario);
        check::scenario(&scenario)?;
        scenario.salt_plugins();
        Ok(scenario)
    }

    /// Gives the disciplines that are plug-ins random numbers of this scenario's own; its seed
    /// alone would give the same numbers in every scenario.
    fn salt_plugins(&mut self) {
        let is_plugin = |discipline: &Discipline| matches!(discipline, Discipline::Plugin(_));
        let disciplines = self.topology.disciplines_mut();
        if !disciplines.into_iter().any(|it| is_plugin(it)) {
            return;
        }
        let seed = std::mem::take(&mut self.seed);
        let salt = fnv1a(FNV_BASIS, self.to_toml().bytes());
        self.seed = seed;
        for discipline in self.topology.disciplines_mut() {
            if let Discipline::Plugin(params) = discipline {
                params.salt = salt;
            }
        }
    }

    /// The effective scenario: every default spelled out, every table it refers to inside.
    /// Reading it gives the same scenario.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario holds only what TOML can say")
    }
}

/// What a text of TOML says, as JSON, before anything is checked; none: it is no TOML.
pub fn content(text: &str) -> Option<String> {
    let table: Table = toml::from_str(text).ok()?;
    serde_json::to_string(&table).ok()
}

/// Reads a file, but never much more than it may have.
fn read_text(path: &Path, most: usize) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(most as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
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
