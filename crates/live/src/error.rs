//! Why a live run did not end well.

use aqmlab_record::RunError;

/// Why a live run did not end well.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// This machine, or this scenario, can have no live run.
    #[error("{0}")]
    Refused(String),
    /// The bed could not be made or broke down.
    #[error("the live bed failed: {0}")]
    Bed(String),
    /// What can also happen to a simulated run.
    #[error(transparent)]
    Run(#[from] RunError),
}
