//! A build without the live bed says so.

use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn live_missing() -> Option<String> {
    Some("this build has no live bed: `make build` in the checkout adds it".to_owned())
}

/// More rights do not help.
#[pyfunction]
pub(crate) fn live_privileged() -> bool {
    true
}
