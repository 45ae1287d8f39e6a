//! The engine's errors as exceptions of Python.

use pyo3::prelude::*;

use crate::{RunError, ScenarioError};

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
