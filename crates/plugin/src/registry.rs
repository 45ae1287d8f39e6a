//! The plug-ins that this process knows, by kind and name.

use std::sync::{PoisonError, RwLock};

use aqmlab_declare::tagged::quoted;

use crate::declared::{Makers, Plugin, Role};

/// What a plug-in is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginKind {
    /// A queue discipline.
    Discipline,
    /// A congestion control.
    Control,
}

impl PluginKind {
    /// As a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Discipline => "discipline",
            Self::Control => "control",
        }
    }
}

impl Plugin {
    /// What it is.
    pub const fn kind(&self) -> PluginKind {
        match self.makers {
            Makers::Discipline(_) => PluginKind::Discipline,
            Makers::Control(_) => PluginKind::Control,
        }
    }
}

static PLUGINS: RwLock<Vec<&'static Plugin>> = RwLock::new(Vec::new());

/// Names that parameters cannot have: those that every plug-in has in a scenario.
const TAKEN: [&str; 6] = ["kind", "name", "sha256", "limit", "ecn", "preset"];

/// The longest name of a plug-in or a field, in letters.
const LONGEST: usize = 60;

/// Makes a plug-in known by its name; it takes the place of one of that kind and name.
pub fn register(plugin: Plugin) -> Result<&'static Plugin, String> {
    let name = plugin.name;
    if !is_word(name, '-') {
        return Err(format!(
            "name: found {}; expected at most {LONGEST} letters, digits and hyphens, as \"my-red\"",
            quoted(name)
        ));
    }
    let mut seen: Vec<&str> = Vec::new();
    for field in &plugin.fields {
        if !is_word(field.name, '_') || TAKEN.contains(&field.name) || seen.contains(&field.name) {
            return Err(format!(
                "{name}: found a field {}; expected at most {LONGEST} letters, digits and \
                 underscores, once, and none of {}",
                quoted(field.name),
                TAKEN.join(", ")
            ));
        }
        if let Role::Optional(value) = field.role
            && !value.number().is_finite()
        {
            return Err(format!(
                "{name}: the default of {} is not finite",
                field.name
            ));
        }
        seen.push(field.name);
    }
    let plugin: &'static Plugin = Box::leak(Box::new(plugin));
    let mut plugins = PLUGINS.write().unwrap_or_else(PoisonError::into_inner);
    plugins.retain(|other| (other.kind(), other.name) != (plugin.kind(), name));
    plugins.push(plugin);
    Ok(plugin)
}

fn is_word(text: &str, joint: char) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == joint)
}

/// The plug-in of a kind and name.
pub fn find(kind: PluginKind, name: &str) -> Option<&'static Plugin> {
    registered()
        .into_iter()
        .find(|plugin| plugin.kind() == kind && plugin.name == name)
}

/// All plug-ins, in the order in which they were made known.
pub fn registered() -> Vec<&'static Plugin> {
    PLUGINS
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}
