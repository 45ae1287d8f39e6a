//! Why a run did not end well.

use aqmlab_scenario::ClassError;
use aqmlab_traffic::SourceError;

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A class of traffic has neither users nor a rate: it must be calibrated first.
    #[error("{0}")]
    Population(String),
    /// A file of connection vectors could not be read to its end.
    #[error("{0}")]
    Vectors(String),
    /// What the scenario says is to change cannot.
    #[error("{0}")]
    Change(String),
    /// A record could not be written.
    #[error("cannot write {0}")]
    Record(String),
    /// Packets are missing or too many: an error of the engine. Nothing of the run can be trusted.
    #[error("conservation violated, please report this: {0}")]
    Conservation(String),
    /// The scenario cannot fit into the memory that it may take. The message begins with the field.
    #[error("{0}")]
    TooLarge(String),
    /// It has grown beyond the memory that it may take.
    #[error("{0}")]
    Memory(String),
    /// The caller asked for it.
    #[error("the run was stopped")]
    Stopped,
}

impl From<ClassError> for RunError {
    fn from(error: ClassError) -> Self {
        match error.error {
            SourceError::PopulationUnset(_) | SourceError::NoTables => {
                Self::Population(error.to_string())
            }
            SourceError::File(_) => Self::Vectors(error.to_string()),
        }
    }
}
