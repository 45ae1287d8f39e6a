//! Why a run did not end well.

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A class of traffic has neither users nor a rate: it must be calibrated first.
    #[error("{0}")]
    Population(String),
    /// A file of connection vectors could not be read to its end.
    #[error("{0}")]
    Vectors(String),
    /// A record could not be written.
    #[error("cannot write {0}")]
    Record(String),
    /// Packets are missing or too many: an error of the engine. Nothing of the run can be trusted.
    #[error("conservation violated, please report this: {0}")]
    Conservation(String),
    /// The caller asked for it.
    #[error("the run was stopped")]
    Stopped,
}
