//! Why a source cannot be made.

use std::{fmt, io};

/// A model without its number of users (or its rate): it has to be calibrated first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopulationUnset {
    /// The field that is missing.
    pub field: &'static str,
}

impl fmt::Display for PopulationUnset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not set; give it, or a load to calibrate it to",
            self.field
        )
    }
}

impl std::error::Error for PopulationUnset {}

/// Why a source cannot be made.
#[derive(Debug)]
pub enum SourceError {
    /// It has to be calibrated first.
    PopulationUnset(PopulationUnset),
    /// The model's tables are large, and builds for browsers do without them.
    NoTables,
    /// A file that it needs cannot be opened.
    File(io::Error),
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PopulationUnset(unset) => unset.fmt(f),
            Self::NoTables => {
                f.write_str("found a model whose tables are not in a browser's build")
            }
            Self::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SourceError {}

impl From<PopulationUnset> for SourceError {
    fn from(unset: PopulationUnset) -> Self {
        Self::PopulationUnset(unset)
    }
}
