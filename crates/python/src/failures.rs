//! The engine's errors as exceptions of Python.

use aqmlab_live::LiveError;
use pyo3::prelude::*;

use crate::{AqmlabError, RunError, ScenarioError};

/// Why there was no live run, or why it did not end well.
pub(crate) fn live_error(error: LiveError) -> PyErr {
    match error {
        LiveError::Refused(message) => AqmlabError::new_err(message),
        LiveError::Run(error) => run_error(error),
        other => RunError::new_err(other.to_string()),
    }
}

/// Why a run did not end well.
pub(crate) fn run_error(error: aqmlab_record::RunError) -> PyErr {
    match error {
        // A file that the scenario names is not what it was.
        aqmlab_record::RunError::Vectors(message) | aqmlab_record::RunError::TooLarge(message) => {
            ScenarioError::new_err(message)
        }
        error => RunError::new_err(error.to_string()),
    }
}
