//! What is wrong with a scenario.

use std::fmt;

use aqmlab_declare::tagged::Located;

/// What is wrong with a scenario, in one sentence, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The field, as `--set` would name it: keys joined by dots, classes of traffic by name.
    /// Empty if the text as a whole is wrong.
    pub path: String,
    /// What was found, what would be right, and the nearest valid word.
    pub message: String,
}

impl ScenarioError {
    /// What is wrong with the value of a field.
    pub fn of(path: &str, message: String) -> Self {
        Self::new(path, message)
    }

    pub(crate) fn new(path: impl AsRef<str>, message: impl AsRef<str>) -> Self {
        Self {
            path: printable(path.as_ref()),
            message: printable(message.as_ref()),
        }
    }
}

/// Repeated input must not break the line, nor play with the terminal.
fn printable(text: &str) -> String {
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for ScenarioError {}

impl From<Located> for ScenarioError {
    fn from(error: Located) -> Self {
        Self::new(error.path().join("."), error.message())
    }
}
