//! Scenarios that come from Python, which has made them effective.

use std::io;

use aqmlab_scenario::Scenario;
use pyo3::prelude::*;

use crate::ScenarioError;

/// An effective scenario names no files: they are part of it.
pub(crate) fn read_effective(effective: &str) -> PyResult<Scenario> {
    let mut read = |_: &str| Err(io::Error::other("an effective scenario names no files"));
    Scenario::parse(effective, &[], &mut read)
        .map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// The effective scenario of a finished run: its plug-ins need not be loaded.
pub(crate) fn read_record(effective: &str) -> PyResult<Scenario> {
    aqmlab_plugin::reading_a_record(|| read_effective(effective))
}
